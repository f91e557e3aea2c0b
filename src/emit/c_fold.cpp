// Fold as C loops: accumulators in registers, independent chains, lanes that are points or partial results.
// Term t of the innermost fold loop goes to chain t mod ways while whole rounds last, the rest to chain 0;
// chains are combined as a tree, then lanes l and l + n/2, n/4, .. 1.
#include <algorithm>
#include <memory>

#include "tang/base/error.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/c_body.hpp"
#include "tang/emit/c_joint.hpp"

namespace tang::emit {

namespace {
class FoldText : public RowPass {
public:
  FoldText(Unit& u, const kernel::Fold& f) : u_(u), f_(f), kept_(f.kept), folded_(f.folded), p_(*u.k.pool) {
    n_ = f.combine.size();
    check(f.dst.size() == n_ && f.identity.size() == n_ && f.body.values.size() == n_, "a fold's components");
    hoists_ = pure(f.bounds) && pure(f.limits) &&
              (f.partial.empty() || (f.partial.size() == 1 && pure(f.partial[0])));
    safe_ = hoists_;
    roots_ = f.body.values;
    if (f.body.when) roots_.push_back(*f.body.when);
    if (f.vector >= 0 && u.lanes > 1) choose_lanes();
    axes_ = kept_;
    axes_.insert(axes_.end(), folded_.begin(), folded_.end());
    std::vector<Var> vars;
    for (auto& a : axes_) vars.push_back(a.var);
    text_ = std::make_unique<BodyText>(u, &f_.body, roots_, vars, lane_);
    std::vector<const kernel::Bounds*> b;
    if (hoists_) {
      b = {&f_.bounds, &f_.limits};
      if (!f_.partial.empty()) b.push_back(&f_.partial[0]);
    }
    limits_ = limits(axes_, b, lane_);
    // A bound of the terms that names only kept axes must leave the point's identity stored: it is tested
    // inside.
    if (hoists_) split_term_bounds();
    ways_ = folded_.empty() ? 1 : std::max(1, f.ways);
  }

  // One axis of partial lanes, without a test.
  bool is_row(const std::string& prefix) {
    prefix_ = prefix;
    return kept_.empty() && folded_.size() == 1 && partial_lanes_ && hoists_ && !f_.body.when &&
           f_.bounds.empty() && f_.limits.empty() && f_.partial.empty() && !f_.accumulate;
  }

  const TileAxis& axis() const override { return folded_[0]; }

  int ways() const override { return ways_; }

  BodyText& terms() override { return *text_; }

  void combine(int way, RowPass* before) override {
    const int chain = ways_ > 1 ? way : 0;
    if (!keeps_one()) return add(chain, "");
    const char* which = p_[f_.combine[0]].op == expr::Op::max ? "tang_upperW(" : "tang_lowerW(";
    u_.line(acc(chain, 0) + " = " + which + value(0) + ", " + acc(chain, 0) + ");");
    if (before) u_.line(seen() + " = tang_unorderedW(" + seen() + ", " + before->value(0) + ", " + value(0) + ");");
  }

  void store() override {}

  void after() override {
    join_chains();
    if (keeps_one()) u_.line(acc(0, 0) + " = tang_selW(" + seen() + ", tang_splatW(__builtin_nanf(\"\")), " + acc(0, 0) + ");");
    finish();
  }

  std::string value(size_t c) override { return text_->value(f_.body.values[c], lane_ >= 0); }

  void print() {
    u_.open("");
    if (!why_scalar_.empty()) u_.line("// one lane: " + why_scalar_);
    std::string outside = tests(limits_.outside);
    if (!outside.empty()) u_.open("if (" + outside + ")");
    if (safe_) text_->declare(0);
    nest(0);
    if (!outside.empty()) u_.close();
    u_.close();
  }

private:
  static std::string tests(const std::vector<Affine>& all) {
    std::string s;
    for (auto& b : all) s += (s.empty() ? "" : " && ") + text(b) + " >= 0";
    return s;
  }

  void choose_lanes() {
    const bool folded = size_t(f_.vector) >= f_.kept.size();
    const Var want =
        folded ? f_.folded[size_t(f_.vector) - f_.kept.size()].var : f_.kept[size_t(f_.vector)].var;
    if (!hoists_) return void(why_scalar_ = "tests of points");
    if (f_.held) return void(why_scalar_ = "a narrow state");
    for (auto& d : f_.dst)
      if (!pure(d)) return void(why_scalar_ = "a gathered destination");
    std::vector<Var> vars;
    for (auto& a : f_.kept) vars.push_back(a.var);
    for (auto& a : f_.folded) vars.push_back(a.var);
    BodyText probe(u_, &f_.body, roots_, vars, want);
    if (auto why = probe.refuses_lanes()) return void(why_scalar_ = *why);
    // Components of type index keep their range through the combine, or they do not fit.
    BodyText joint(u_, nullptr, f_.combine, {}, -1);
    std::map<int64_t, Range> state;
    nowhere_ = probe.has_nowhere();
    for (size_t c = 0; c < n_; ++c) {
      if (f_.identity[c].type == Type::bits) return void(why_scalar_ = "bits in lanes");
      if (f_.identity[c].type != Type::index) continue;
      if (f_.accumulate && !folded && !u_.wide) return void(why_scalar_ = "an index that accumulates");
      const int64_t e = f_.identity[c].i == INT64_MAX && !u_.wide ? INT32_MAX : f_.identity[c].i;
      nowhere_ |= f_.identity[c].i == INT64_MAX;
      const Range r = probe.term_range(f_.body.values[c]);
      state[int64_t(2 * c)] = state[int64_t(2 * c + 1)] = {std::min(e, r.lo), std::max(e, r.hi)};
    }
    for (size_t c = 0; c < n_; ++c)
      for (int side = 0; side < 2; ++side) joint.name_var(int64_t(2 * c) + side, "a", true);
    if (auto why = joint.refuses_lanes(state)) return void(why_scalar_ = *why);
    for (size_t c = 0; c < n_ && !u_.wide; ++c)
      if (f_.identity[c].type == Type::index) {
        const Range &r = joint.term_range(f_.combine[c]), &s = state[int64_t(2 * c)];
        if (r.lo < s.lo || r.hi > s.hi) return void(why_scalar_ = "an index that grows");
      }
    lane_ = want;
    partial_lanes_ = folded;
    auto& axes = folded ? folded_ : kept_;
    auto it = std::find_if(axes.begin(), axes.end(), [&](auto& x) { return x.var == want; });
    std::rotate(it, it + 1, axes.end());
  }

  void split_term_bounds() {
    // limits() put every bound at its deepest axis; those of terms that ended on a kept axis move to
    // `term_tests_`.
    std::vector<Affine> terms;
    auto collect = [&](const kernel::Bounds& b) {
      for (auto& c : b) {
        bool deep = false;
        for (auto& a : folded_) deep |= coefficient(c.affine, a.var) != 0;
        if (!deep) terms.push_back(c.affine);
      }
    };
    collect(f_.limits);
    if (!f_.partial.empty()) collect(f_.partial[0]);
    if (terms.empty()) return;
    std::vector<const kernel::Bounds*> b{&f_.bounds};
    kernel::Bounds deep;
    auto keep = [&](const kernel::Bounds& from) {
      for (auto& c : from)
        for (auto& a : folded_)
          if (coefficient(c.affine, a.var)) {
            deep.push_back(c);
            break;
          }
    };
    keep(f_.limits);
    if (!f_.partial.empty()) keep(f_.partial[0]);
    b.push_back(&deep);
    limits_ = limits(axes_, b, lane_);
    for (auto& t : terms) (lane_ >= 0 && coefficient(t, lane_) ? lane_terms_ : term_tests_).push_back(t);
    safe_ = false;
  }

  // Accumulators.
  std::string acc(int chain, size_t c) const { return prefix_ + "a" + std::to_string(chain) + "_" + std::to_string(c); }

  std::string type(size_t c, bool vector) const { return value_type(f_.identity[c].type, u_.wide, vector); }

  std::vector<std::string> accs(int chain) const {
    std::vector<std::string> out;
    for (size_t c = 0; c < n_; ++c) out.push_back(acc(chain, c));
    return out;
  }

  // into = combine(a, b), where `mask` (or everywhere).
  void join(const std::vector<std::string>& into, const std::vector<std::string>& a,
            const std::vector<std::string>& b, bool vector, const std::string& mask) {
    BodyText t(u_, nullptr, f_.combine, {}, -1);
    for (size_t c = 0; c < n_; ++c) {
      t.name_var(int64_t(2 * c), a[c], vector);
      t.name_var(int64_t(2 * c + 1), b[c], vector);
    }
    u_.open("");
    t.declare(0);
    std::vector<std::string> out;
    for (size_t c = 0; c < n_; ++c) {
      out.push_back("n" + std::to_string(c));
      const std::string v = t.value(f_.combine[c], vector);
      const bool held = f_.held && f_.identity[c].type == Type::real;
      u_.line("const " + type(c, vector) + " " + out[c] + " = " + (held ? u_.d.rounded(*f_.held, v, u_.wide) : v) + ";");
    }
    for (size_t c = 0; c < n_; ++c)
      u_.line(into[c] + " = " +
              (mask.empty() ? out[c]
                            : fn(u_, choice(f_.identity[c].type), true) + "(" + mask + ", " + out[c] + ", " +
                                  into[c] + ")") +
              ";");
    u_.close();
  }

  // Loops.
  void nest(size_t level) {
    if (level == kept_.size()) return point();
    auto [lo, hi] = interval(limits_.levels[level]);
    const std::string v = name(axes_[level].var);
    if (axes_[level].var != lane_) {
      u_.open("for (int64_t " + v + " = " + lo + "; " + v + " < " + hi + "; ++" + v + ")");
      if (safe_) text_->declare(int(level) + 1);
      nest(level + 1);
      return u_.close();
    }
    const std::string end = u_.fresh("hi");
    u_.line("const int64_t " + end + " = " + hi + ";");
    u_.line("int64_t " + v + " = " + lo + ";");
    u_.open("for (; " + v + " + " + number(u_.lanes) + " <= " + end + "; " + v + " += " + number(u_.lanes) +
            ")");
    if (safe_) text_->declare(int(level) + 1);
    point();
    u_.close();
    if (lo == "0" && hi == number(axes_[level].extent) && axes_[level].extent % u_.lanes == 0) return;
    u_.open("if (" + v + " < " + end + ")");
    u_.line(live("tail", end));
    kept_mask_ = "tail";
    if (safe_) text_->declare(int(level) + 1, "tail");
    point();
    kept_mask_ = "";
    u_.close();
  }

  std::string live(const std::string& as, const std::string& end) const {
    const std::string left = "(" + end + " - " + name(lane_) + ")";
    return "const " + value_type(Type::boolean, u_.wide, true) + " " + as + " = " + fn(u_, "live", true) +
           left + ";";
  }

  void point() {
    std::string test;
    if (!hoists_ && !f_.bounds.empty()) {
      test = conjunction(u_, f_.body, f_.bounds);
      u_.open("if (" + test + ")");
    }
    start();
    if (!term_tests_.empty()) u_.open("if (" + tests(term_tests_) + ")");
    if (lane_terms_.empty()) terms(kept_mask_);
    else terms_of_lanes();
    if (!term_tests_.empty()) u_.close();
    join_chains();
    finish();
    if (!test.empty()) u_.close();
  }

  void terms(const std::string& mask) {
    if (!safe_ && hoists_)
      for (size_t i = 0; i <= kept_.size(); ++i) text_->declare(int(i), mask);
    fold(0);
  }

  // Some lanes are points without a term: they keep the identity, and nothing is read for them.
  void terms_of_lanes() {
    std::string all, any;
    for (auto& t : lane_terms_) {
      const Affine last = t + kernel::constant(coefficient(t, lane_) * (u_.lanes - 1));
      const bool falls = coefficient(t, lane_) < 0;
      all += (all.empty() ? "" : " && ") + text(falls ? last : t) + " >= 0";
      any += (any.empty() ? "" : " && ") + text(falls ? t : last) + " >= 0";
    }
    if (kept_mask_.empty()) u_.open("if (" + all + ")"), terms(""), u_.close();
    u_.open(std::string(kept_mask_.empty() ? "else " : "") + "if (" + any + ")");
    u_.line("const " + value_type(Type::boolean, u_.wide, true) + " alive = " + holding(lane_terms_) +
            (kept_mask_.empty() ? "" : " & " + kept_mask_) + ";");
    term_mask_ = "alive";
    terms("alive");
    term_mask_ = "";
    u_.close();
  }

  // The lanes in which all of these are >= 0.
  std::string holding(const std::vector<Affine>& all) const {
    std::string mask;
    for (auto& t : all) mask += (mask.empty() ? "" : " & ") + lanes_hold(u_, text(t), coefficient(t, lane_));
    return mask;
  }

  // The larger or the smaller of f32 numbers along a joint row: whether one is NaN is asked once two vectors, beside an
  // instruction that drops it.
  bool keeps_one() const {
    const expr::Term& t = p_[f_.combine[0]];
    return !prefix_.empty() && n_ == 1 && !u_.wide && !f_.held && t.type == Type::real && p_[t.args[0]].op == expr::Op::var &&
           p_[t.args[1]].op == expr::Op::var && t.args[0] != t.args[1] && (t.op == expr::Op::max || t.op == expr::Op::min);
  }

  std::string seen() const { return prefix_ + "nan"; }

  void start() override {
    const bool vector = lane_ >= 0;
    if (keeps_one()) u_.line("M " + seen() + " = tang_allW(0);");
    for (int w = 0; w < ways_; ++w)
      for (size_t c = 0; c < n_; ++c) {
        const std::string e = literal(f_.identity[c], u_.wide);
        u_.line(type(c, vector) + " " + acc(w, c) + " = " + (vector ? splat(u_, f_.identity[c].type, e) : e) +
                ";");
      }
  }

  void join_chains() {
    for (int step = 1; step < ways_; step *= 2)
      for (int w = 0; w + step < ways_; w += 2 * step) join(accs(w), accs(w), accs(w + step), lane_ >= 0, "");
  }

  void finish() {
    std::vector<std::string> out = accs(0);
    bool vector = lane_ >= 0;
    if (partial_lanes_) {
      for (int d = u_.lanes / 2; d; d /= 2) {
        u_.open("");
        std::vector<std::string> right;
        for (size_t c = 0; c < n_; ++c) {
          right.push_back("r" + std::to_string(c));
          u_.line("const " + type(c, true) + " " + right[c] + " = " + swapped(u_, f_.identity[c].type, d, out[c]) + ";");
        }
        join(out, out, right, true, "");
        u_.close();
      }
      vector = false;
      for (size_t c = 0; c < n_; ++c) {
        const Type t = f_.identity[c].type;
        const std::string one = out[c] + "[0]";
        std::string v = one;
        if (t == Type::boolean)
          v = "(" + std::string(u_.wide ? "tang_dat(" : "tang_at(") + out[c] + ", 0) != 0)";
        if (t == Type::index && nowhere_ && !u_.wide)
          v = "(" + one + " == INT32_MAX ? INT64_MAX : " + one + ")";
        u_.line(type(c, false) + " s" + std::to_string(c) + " = " + v + ";");
        out[c] = "s" + std::to_string(c);
      }
    }
    const std::string mask = vector ? kept_mask_ : "";
    if (f_.accumulate) {
      std::vector<std::string> old;
      for (size_t c = 0; c < n_; ++c) {
        old.push_back("o" + std::to_string(c));
        declare_old(u_, old[c], f_.dst[c], f_.identity[c].type, vector ? lane_ : -1, mask);
      }
      join(out, old, out, vector, "");
    }
    for (size_t c = 0; c < n_; ++c)
      print_store(u_, f_.dst[c], out[c], f_.identity[c].type, vector, lane_, mask, nowhere_);
  }

  void fold(size_t f) {
    const size_t level = kept_.size() + f;
    if (f == folded_.size()) return term(0);
    auto [lo, hi] = interval(limits_.levels[level]);
    const std::string v = name(axes_[level].var);
    const bool last = f + 1 == folded_.size();
    if (!last) {
      u_.open("for (int64_t " + v + " = " + lo + "; " + v + " < " + hi + "; ++" + v + ")");
      if (hoists_) text_->declare(int(level) + 1, term_mask_.empty() ? kept_mask_ : term_mask_);
      fold(f + 1);
      return u_.close();
    }
    const int step = axes_[level].var == lane_ ? u_.lanes : 1;
    const std::string i = u_.fresh("i"), end = u_.fresh("hi");
    u_.line("int64_t " + i + " = " + lo + ";");
    u_.line("const int64_t " + end + " = " + hi + ";");
    if (ways_ > 1) {
      u_.open("for (; " + i + " + " + number(ways_ * step) + " <= " + end + "; " + i +
              " += " + number(ways_ * step) + ")");
      for (int w = 0; w < ways_; ++w) {
        u_.open("");
        u_.line("const int64_t " + v + " = " + i + " + " + number(w * step) + ";");
        for (auto& p : u_.prefetches)
          if (p.host == &f_ && w * step % 16 == 0) // once a line
            u_.line("__builtin_prefetch(m" + std::to_string(p.memory) + " + " + text(p.at) + ", 0, 2);");
        term(w);
        u_.close();
      }
      u_.close();
    }
    u_.open("for (; " + i + " + " + number(step) + " <= " + end + "; " + i + " += " + number(step) + ")");
    u_.line("const int64_t " + v + " = " + i + ";");
    term(0);
    u_.close();
    if (step == 1 || (lo == "0" && hi == number(axes_[level].extent) && axes_[level].extent % step == 0))
      return;
    u_.open("if (" + i + " < " + end + ")");
    u_.line("const int64_t " + v + " = " + i + ";");
    u_.line(live("rest", end));
    term_mask_ = "rest";
    term(0);
    term_mask_ = "";
    u_.close();
  }

  void term(int chain) {
    const int level = int(axes_.size());
    std::vector<Affine> lane_tests;
    for (auto& l : limits_.lanes) lane_tests.insert(lane_tests.end(), l.begin(), l.end());
    if (lane_ >= 0 && !lane_tests.empty()) {
      std::string all;
      for (auto& t : lane_tests) {
        const int64_t k = coefficient(t, lane_);
        all += (all.empty() ? "" : " && ") + text(k < 0 ? t + kernel::constant(k * (u_.lanes - 1)) : t) +
               " >= 0";
      }
      const std::string outer = !term_mask_.empty() ? term_mask_ : kept_mask_;
      if (outer.empty()) {
        u_.open("if (" + all + ")");
        live_term(chain, level, "", "");
        u_.close();
        u_.open("else");
      } else {
        u_.open("");
      }
      u_.line("const " + value_type(Type::boolean, u_.wide, true) + " some = " + holding(lane_tests) +
              (outer.empty() ? "" : " & " + outer) + ";");
      live_term(chain, level, "some", "some");
      return u_.close();
    }
    live_term(chain, level, term_mask_.empty() ? kept_mask_ : term_mask_, term_mask_);
  }

  void add(int chain, const std::string& mask) {
    std::vector<std::string> lift;
    for (size_t c = 0; c < n_; ++c) lift.push_back(value(c));
    join(accs(chain), accs(chain), lift, lane_ >= 0, mask);
  }

  // Reads under `reads`; counts under `counts` (dead lanes of a kept tail may count: they are not stored).
  void live_term(int chain, int level, const std::string& reads, const std::string& counts) {
    const bool vector = lane_ >= 0;
    std::string test, mask = counts;
    if (!hoists_) {
      test = conjunction(u_, f_.body, f_.limits);
      std::string any;
      for (auto& b : f_.partial) any += (any.empty() ? "(" : " || (") + conjunction(u_, f_.body, b) + ")";
      if (!any.empty()) test += " && (" + any + ")";
      if (!test.empty()) u_.open("if (" + test + ")");
      for (int i = 0; i < level; ++i) text_->declare(i);
    }
    const bool late = !folded_.empty() || !hoists_; // else the point has declared everything
    if (late) text_->declare(level, reads, f_.body.when ? BodyText::condition : BodyText::both);
    if (f_.body.when && vector) {
      u_.line("const " + value_type(Type::boolean, u_.wide, true) +
              " here = " + text_->value(*f_.body.when, true) + (mask.empty() ? "" : " & " + mask) + ";");
      mask = "here";
      const bool both = !reads.empty() && reads != counts;
      if (late && both)
        u_.line("const " + value_type(Type::boolean, u_.wide, true) + " seen = here & " + reads + ";");
      if (late) text_->declare(level, both ? "seen" : "here", BodyText::rest);
    } else if (f_.body.when) {
      u_.open("if (" + text_->value(*f_.body.when, false) + ")");
      if (late) text_->declare(level, "", BodyText::rest);
    }
    add(chain, mask);
    if (f_.body.when && !vector) u_.close();
    if (!test.empty()) u_.close();
  }

  Unit& u_;
  const kernel::Fold& f_;
  std::vector<TileAxis> kept_, folded_, axes_;
  const kernel::Pool& p_;
  size_t n_ = 0;
  std::vector<Id> roots_;
  std::vector<Affine> term_tests_, lane_terms_;
  bool hoists_ = true, safe_ = true, partial_lanes_ = false, nowhere_ = false;
  int ways_ = 1;
  Var lane_ = -1;
  std::string why_scalar_, kept_mask_, term_mask_, prefix_;
  std::unique_ptr<BodyText> text_;
  Limits limits_;
};
} // namespace

void print_fold(Unit& u, const kernel::Fold& f) { FoldText(u, f).print(); }

std::unique_ptr<RowPass> row_pass(Unit& u, const kernel::Fold& f, const std::string& prefix) {
  auto out = std::make_unique<FoldText>(u, f);
  if (!out->is_row(prefix)) return nullptr;
  return out;
}

} // namespace tang::emit
