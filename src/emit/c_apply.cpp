// Apply as C loops: bounds in the loop limits, lanes along the vector axis, blocks of four rows where a copy
// transposes.
#include <algorithm>
#include <memory>

#include "tang/base/error.hpp"
#include "tang/emit/c_body.hpp"
#include "tang/emit/c_joint.hpp"
#include "tang/expr/effort.hpp"

namespace tang::emit {

namespace {
class ApplyText : public RowPass {
public:
  ApplyText(Unit& u, const kernel::Apply& a) : u_(u), a_(a), axes_(a.axes) {
    for (auto& f : a.fill) fills_ |= f.has_value();
    hoists_ = pure(a.bounds) && (a.partial.empty() || (a.partial.size() == 1 && pure(a.partial[0])));
    roots_ = a.body.values;
    if (a.body.when) roots_.push_back(*a.body.when);
    if (a.vector >= 0 && u.lanes > 1) choose_lanes(a.axes[size_t(a.vector)].var);
    text_ = std::make_unique<BodyText>(u, &a_.body, roots_, vars(), lane_);
    limits_ = limits(axes_, hoists_ ? bounds() : std::vector<const kernel::Bounds*>{}, lane_);
    for (auto& d : a.dst) {
      const Memory& m = u.memory(d.memory);
      streams_.push_back(m.home == kernel::Home::global && m.access == kernel::Access::write &&
                         m.size() * 4 >= u.o.stream_bytes);
    }
  }

  // One axis in vectors, without a test.
  bool is_row() const {
    return axes_.size() == 1 && lane_ == axes_[0].var && rows_ < 0 && hoists_ && !fills_ && !a_.body.when &&
           a_.bounds.empty() && a_.partial.empty();
  }

  const TileAxis& axis() const override { return axes_[0]; }

  int ways() const override { return 1; }

  BodyText& terms() override { return *text_; }

  void start() override {}

  void combine(int, RowPass*) override {}

  void store() override {
    for (size_t k = 0; k < a_.dst.size(); ++k) store(k, value(k), true, "");
  }

  void after() override {}

  std::string value(size_t k) override { return text_->value(a_.body.values[k], true); }

  void print() {
    u_.open("");
    if (!why_scalar_.empty()) u_.line("// one lane: " + why_scalar_);
    std::string outside;
    for (auto& b : limits_.outside) outside += (outside.empty() ? "" : " && ") + text(b) + " >= 0";
    if (!outside.empty()) u_.open("if (" + outside + ")");
    if (hoists_) text_->declare(0, "", axes_.empty() && a_.body.when ? BodyText::condition : BodyText::both);
    nest(0);
    if (!outside.empty()) {
      u_.close();
      if (fills_) u_.open("else"), fill(0), u_.close();
    }
    u_.close();
  }

private:
  std::vector<Var> vars() const {
    std::vector<Var> v;
    for (auto& x : axes_) v.push_back(x.var);
    return v;
  }

  std::vector<const kernel::Bounds*> bounds() const {
    std::vector<const kernel::Bounds*> b{&a_.bounds};
    if (!a_.partial.empty()) b.push_back(&a_.partial[0]);
    return b;
  }

  void choose_lanes(Var want) {
    if (!hoists_) return void(why_scalar_ = "tests of points");
    for (auto& d : a_.dst)
      if (!pure(d)) return void(why_scalar_ = "a gathered destination");
    const Var across = transposing(want);
    if (across < 0 && is_short(want)) return void(why_scalar_ = "fewer points than lanes");
    const Var lane = across >= 0 ? across : want;
    BodyText probe(u_, &a_.body, roots_, vars(), lane);
    if (auto why = probe.refuses_lanes()) return void(why_scalar_ = *why);
    lane_ = lane;
    rows_ = across >= 0 ? want : -1;
    auto last = [&](Var v) {
      auto it = std::find_if(axes_.begin(), axes_.end(), [&](auto& x) { return x.var == v; });
      std::rotate(it, it + 1, axes_.end());
    };
    if (rows_ >= 0) last(rows_);
    last(lane_);
  }

  // Copies and the like: a vector would be stored under a mask, which costs more than these points one by one.
  bool is_short(Var v) const {
    int work = 0;
    for (Id r : roots_) work += expr::effort(*u_.k.pool, r);
    for (auto& x : axes_)
      if (x.var == v) return x.extent < u_.lanes && work <= 2;
    return false;
  }

  // The axis along which the sources are contiguous, when the destinations are so along `x` only; else -1.
  Var transposing(Var x) const {
    if (u_.wide || a_.body.when || a_.body.refs.empty()) return -1;
    for (auto& d : a_.dst)
      if (coefficient(offset(u_, d), x) != 1 || u_.memory(d.memory).format != Format::f32) return -1;
    for (auto& y : a_.axes) {
      if (y.var == x || y.extent < u_.lanes) continue;
      bool strided = false, fits = true;
      for (auto& r : a_.body.refs) {
        if (!pure(r)) return -1;
        const Affine at = offset(u_, r);
        const int64_t kx = coefficient(at, x), ky = coefficient(at, y.var);
        strided |= kx != 0 && kx != 1 && ky == 1;
        fits &= (ky == 1 && has_vector_access(u_, u_.memory(r.memory).format)) || ky == 0;
      }
      for (auto* b : bounds())
        for (auto& c : *b) fits &= !(coefficient(c.affine, x) && coefficient(c.affine, y.var));
      if (strided && fits) return y.var;
    }
    return -1;
  }

  void store(size_t k, const std::string& value, bool vector, const std::string& mask) {
    const Type t = (*u_.k.pool)[a_.body.values[k]].type;
    print_store(u_, a_.dst[k], value, t, vector, lane_, mask, text_->has_nowhere(), streams_[k],
                vector ? "" : gathered_offset(u_, a_.body, a_.dst[k]));
  }

  void fill(size_t level) { // every point below this level
    for (size_t i = level; i < axes_.size(); ++i) {
      const std::string v = name(axes_[i].var);
      u_.open("for (int64_t " + v + " = 0; " + v + " < " + number(axes_[i].extent) + "; ++" + v + ")");
    }
    for (size_t k = 0; k < a_.dst.size(); ++k)
      if (a_.fill.size() > k && a_.fill[k]) store(k, literal(*a_.fill[k], u_.wide), false, "");
    for (size_t i = level; i < axes_.size(); ++i) u_.close();
  }

  void fill_range(size_t level, const std::string& lo, const std::string& hi) {
    const std::string v = name(axes_[level].var);
    u_.open("for (int64_t " + v + " = " + lo + "; " + v + " < " + hi + "; ++" + v + ")");
    fill(level + 1);
    u_.close();
  }

  void nest(size_t level) {
    if (level == axes_.size()) return point();
    const Level& l = limits_.levels[level];
    const bool tested =
        !l.lower.empty() || !l.upper.empty() || !l.lower_text.empty() || !l.upper_text.empty();
    auto [lo, hi] = interval(l);
    const std::string v = name(l.axis.var);
    if (tested) {
      const std::string a = u_.fresh("lo"), b = u_.fresh("hi");
      u_.line("const int64_t " + a + " = " + lo + ", " + b + " = tang_greater(" + a + ", " + hi + ");");
      lo = a, hi = b;
      if (fills_) fill_range(level, "0", lo), fill_range(level, hi, number(l.axis.extent));
    }
    if (l.axis.var == lane_) {
      lanes(level, lo, hi);
    } else if (l.axis.var == rows_) {
      row_blocks(level, lo, hi);
    } else {
      u_.open("for (int64_t " + v + " = " + lo + "; " + v + " < " + hi + "; ++" + v + ")");
      if (hoists_ && level + 1 < axes_.size()) text_->declare(int(level) + 1);
      nest(level + 1);
      u_.close();
    }
  }

  std::string mask_until(const std::string& hi) {
    const std::string left = "(" + hi + " - " + name(lane_) + ")";
    return value_type(Type::boolean, u_.wide, true) + " live = " + fn(u_, "live", true) + left + ";";
  }

  void lanes(size_t level, const std::string& lo, const std::string& hi) {
    const std::string v = name(lane_), w = number(u_.lanes);
    u_.line("int64_t " + v + " = " + lo + ";");
    u_.open("for (; " + v + " + " + w + " <= " + hi + "; " + v + " += " + w + ")");
    for (auto& p : u_.prefetches)
      if (p.host == &a_)
        u_.line("__builtin_prefetch(m" + std::to_string(p.memory) + " + " + text(p.at) + ", 0, 2);");
    point();
    u_.close();
    if (lo == "0" && hi == number(axes_[level].extent) && axes_[level].extent % u_.lanes == 0) return;
    u_.open("if (" + v + " < " + hi + ")");
    u_.line(mask_until(hi));
    mask_ = "live";
    point();
    mask_ = "";
    u_.close();
  }

  // Rows x .. x + 3 as four vectors, stored as one group of four a lane.
  void row_blocks(size_t level, const std::string& lo, const std::string& hi) {
    const std::string x = name(rows_), i = u_.fresh("i"), y = name(lane_), w = number(u_.lanes);
    check(level + 2 == axes_.size(), "a transposing copy's axes");
    u_.line("int64_t " + i + " = " + lo + ";");
    auto [ylo, yhi] = interval(limits_.levels[level + 1]);
    const std::string a = u_.fresh("lo"), b = u_.fresh("hi");
    u_.line("const int64_t " + a + " = " + ylo + ", " + b + " = tang_greater(" + a + ", " + yhi + ");");
    u_.open("for (; " + i + " + 4 <= " + hi + "; " + i + " += 4)");
    u_.line("int64_t " + y + " = " + a + ";");
    u_.open("for (; " + y + " + " + w + " <= " + b + "; " + y + " += " + w + ")");
    const size_t n = a_.dst.size();
    std::string names;
    for (size_t k = 0; k < n; ++k)
      for (int r = 0; r < 4; ++r)
        names += (names.empty() ? "F " : ", ") + ("q" + std::to_string(k) + "_" + std::to_string(r));
    u_.line(names + ";");
    for (int r = 0; r < 4; ++r) {
      u_.open("");
      u_.line("const int64_t " + x + " = " + i + " + " + std::to_string(r) + ";");
      declare_rows(level);
      for (size_t k = 0; k < n; ++k)
        u_.line("q" + std::to_string(k) + "_" + std::to_string(r) + " = " +
                text_->value(a_.body.values[k], true) + ";");
      u_.close();
    }
    u_.line("const int64_t " + x + " = " + i + ";");
    for (size_t k = 0; k < n; ++k) {
      const Affine at = offset(u_, a_.dst[k]);
      const std::string q = "q" + std::to_string(k) + "_";
      u_.line("tang_groups(m" + std::to_string(a_.dst[k].memory) + " + " + text(at) + ", " +
              number(coefficient(at, lane_)) + ", " + q + "0, " + q + "1, " + q + "2, " + q + "3);");
    }
    u_.close();
    u_.open("if (" + y + " < " + b + ")");
    u_.line(mask_until(b));
    u_.open("for (int64_t " + x + " = " + i + "; " + x + " < " + i + " + 4; ++" + x + ")");
    text_->declare(int(level) + 1);
    mask_ = "live";
    point();
    mask_ = "";
    u_.close();
    u_.close();
    if (fills_) {
      u_.open("for (int64_t " + x + " = " + i + "; " + x + " < " + i + " + 4; ++" + x + ")");
      fill_range(level + 1, "0", a), fill_range(level + 1, b, number(axes_[level + 1].extent));
      u_.close();
    }
    u_.close();
    u_.open("for (int64_t " + x + " = " + i + "; " + x + " < " + hi + "; ++" + x + ")");
    text_->declare(int(level) + 1);
    if (fills_) fill_range(level + 1, "0", a), fill_range(level + 1, b, number(axes_[level + 1].extent));
    lanes(level + 1, a, b);
    u_.close();
  }

  void declare_rows(size_t level) {
    text_->declare(int(level) + 1);
    text_->declare(int(level) + 2);
  }

  void point() {
    std::string test;
    if (!hoists_) {
      auto all = [&](const kernel::Bounds& b) { return conjunction(u_, a_.body, b); };
      test = all(a_.bounds);
      std::string any;
      for (auto& b : a_.partial) any += (any.empty() ? "" : " || ") + ("(" + all(b) + ")");
      if (!any.empty()) test += " && (" + any + ")";
    }
    const bool vector = lane_ >= 0;
    if (!test.empty()) u_.open("if (" + test + ")");
    const int innermost = int(axes_.size());
    if (!hoists_) // a dead point reads nothing
      for (int i = 0; i < innermost; ++i) text_->declare(i);
    std::string mask = mask_;
    if (innermost > 0 || !hoists_)
      text_->declare(innermost, mask, a_.body.when ? BodyText::condition : BodyText::both);
    if (a_.body.when && vector) {
      const std::string w = text_->value(*a_.body.when, true);
      u_.line("const " + value_type(Type::boolean, u_.wide, true) + " here = " + w +
              (mask.empty() ? "" : " & " + mask) + ";");
      text_->declare(innermost, "here", BodyText::rest);
    } else if (a_.body.when) {
      u_.open("if (" + text_->value(*a_.body.when, false) + ")");
      text_->declare(innermost, "", BodyText::rest);
    }
    for (size_t k = 0; k < a_.dst.size(); ++k) {
      const Type t = (*u_.k.pool)[a_.body.values[k]].type;
      const bool filled = a_.fill.size() > k && a_.fill[k];
      std::string v = text_->value(a_.body.values[k], vector);
      if (a_.body.when && vector && filled)
        v = fn(u_, choice(t), true) + "(here, " + v + ", " + splat(u_, t, literal(*a_.fill[k], u_.wide)) +
            ")";
      store(k, v, vector, a_.body.when && vector && !filled ? "here" : mask);
    }
    if (a_.body.when && !vector) {
      u_.close();
      if (fills_) u_.open("else"), fill(axes_.size()), u_.close();
    }
    if (!test.empty()) {
      u_.close();
      if (fills_) u_.open("else"), fill(axes_.size()), u_.close();
    }
  }

  Unit& u_;
  const kernel::Apply& a_;
  std::vector<TileAxis> axes_;
  std::vector<Id> roots_;
  std::vector<bool> streams_;
  bool fills_ = false, hoists_ = true;
  Var lane_ = -1, rows_ = -1;
  std::string why_scalar_, mask_;
  std::unique_ptr<BodyText> text_;
  Limits limits_;
};
} // namespace

void print_apply(Unit& u, const kernel::Apply& a) { ApplyText(u, a).print(); }

std::unique_ptr<RowPass> row_pass(Unit& u, const kernel::Apply& a, const std::string&) {
  auto out = std::make_unique<ApplyText>(u, a);
  if (!out->is_row()) return nullptr;
  return out;
}

} // namespace tang::emit
