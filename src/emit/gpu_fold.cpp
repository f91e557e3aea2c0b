// Folds dealt by rows to teams of lanes: a lane's terms, then the lanes' partial results.
#include "tang/base/error.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/cuda_halves.hpp"
#include "tang/emit/cuda_keys.hpp"
#include "tang/emit/gpu_fold_terms.hpp"
#include "tang/emit/gpu_teams.hpp"
#include "tang/emit/gpu_walk.hpp"
#include "tang/expr/branches.hpp"

namespace tang::emit {

namespace {
class RowFold {
public:
  RowFold(Unit& u, const GpuDialect& d, const kernel::Fold& f)
      : u_(u), d_(d), terms_(fold_terms(*u.k.pool, f, d.powers_of_halves && !u.wide)), f_(terms_.fold),
        w_{u, d, f_.deal, f_.body, f_.kept, f_.folded}, n_(f.combine.size()) {
    bool element = f.body.when || !f.partial.empty();
    ends_ = !element && !f.deal.each && w_.has_ends(f.limits);
    for (auto& c : f.limits) element |= !ends_ && w_.level(c) == Walk::element;
    at_once_ = !element && !f.deal.each;
    for (auto* axes : {&f_.kept, &f_.folded})
      for (auto& a : *axes) u_.ranges[size_t(a.var)] = {0, std::max<int64_t>(0, a.extent - 1)};
    BodyText probe(u_, &f_.body, roots_of(f_.body), {}, -1);
    probe.refuses_lanes();
    if (!f_.deal.each && d.exchanges) {
      if (at_once_ && !ends_) places_ = FoldPlaces::of(w_, f_, probe);
      if (!places_) keys_ = FoldKeys::of(u_, f_, probe);
      if (!places_ && !keys_ && (at_once_ || ends_) && f_.partial.empty()) halves_ = FoldHalves::of(w_, f_);
    }
    narrow_ = !keys_ && !places_ && fits_narrow(probe);
  }

  void print() {
    u_.open("");
    w_.open_row();
    if (keys_) keys_->start();
    for (size_t c = 0; c < n_ && !keys_ && !places_; ++c) {
      check(!f_.accumulate || f_.deal.each, "lanes that join partial results start from the identity");
      u_.line(type(c) + " " + acc(c) + " = " +
              (narrow_ && f_.identity[c].type == Type::index && f_.identity[c].i == INT64_MAX
                   ? "INT32_MAX"
                   : u_.d.literal(f_.identity[c], u_.wide)) +
              ";");
    }
    const std::string live =
        joined(w_.row_exists(), f_.bounds.empty() ? "" : conjunction(u_, f_.body, f_.bounds));
    const std::string row = joined(live, w_.tests(f_.limits, Walk::row, false));
    if (places_) {
      places_->print(row);
      store(live);
      u_.close();
      u_.close();
      return;
    }
    u_.open(row.empty() ? "" : "if (" + row + ")");
    std::vector<Id> roots = terms_.roots;
    if (f_.body.when) roots.push_back(*f_.body.when);
    BodyText t(u_, &f_.body, roots, w_.levels(), -1);
    w_.declare_rows(t);
    if (f_.deal.each) {
      for (auto& a : f_.folded) {
        w_.unroll();
        u_.open(d_.loop(d_.integer, name(a.var), "0", name(a.var) + " < " + number(a.extent), "1"));
      }
      std::string test = f_.limits.empty() ? "" : conjunction(u_, f_.body, f_.limits);
      term(t, joined(test, any_partial()));
      for (size_t a = 0; a < f_.folded.size(); ++a) u_.close();
    } else {
      runs(t);
    }
    if (terms_.empty)
      u_.line(acc(0) + " = " +
              d_.pick(t.value(*terms_.empty, false), u_.d.literal(f_.identity[0], u_.wide), acc(0)) + ";");
    u_.close();
    if (!f_.deal.each) keys_ ? keys_->settle(w_.team()) : settle();
    store(live);
    u_.close();
    u_.close();
  }

private:
  std::string acc(size_t c) const { return "a" + std::to_string(c); }

  std::string type(size_t c) const {
    return narrow_ && f_.identity[c].type == Type::index ? "int" : type_of(u_, f_.identity[c].type);
  }

  // Places that fit 32 bits are carried so; INT32_MAX stands for the identity INT64_MAX.
  bool fits_narrow(const BodyText& probe) {
    bool any = false;
    for (size_t c = 0; c < n_; ++c) {
      if (f_.identity[c].type != Type::index) continue;
      any = true;
      const expr::Term& t = (*u_.k.pool)[f_.body.values[c]];
      const Range r = probe.term_range(f_.body.values[c]);
      if (f_.identity[c].i != INT64_MAX && std::abs(f_.identity[c].i) >= INT32_MAX) return false;
      if (!(t.op == Op::literal && t.whole == INT64_MAX) &&
          !(r.known() && r.lo > INT32_MIN && r.hi < INT32_MAX))
        return false;
    }
    for (Id id : expr::schedule(*u_.k.pool, f_.combine)) { // they are compared and chosen, nothing else
      const expr::Term& t = (*u_.k.pool)[id];
      if (t.type == Type::index && t.op != Op::var && t.op != Op::select && t.op != Op::max &&
          t.op != Op::min)
        return false;
    }
    return any;
  }

  std::string carried(size_t c, Id value, const std::string& text) const {
    if (!narrow_ || f_.identity[c].type != Type::index) return text;
    const expr::Term& t = (*u_.k.pool)[value];
    return t.op == Op::literal && t.whole == INT64_MAX ? "INT32_MAX" : d_.cast("int", text);
  }

  std::string stored(size_t c) const {
    if (keys_) return keys_->stored(c);
    if (places_) return places_->stored(c);
    if (!narrow_ || f_.identity[c].type != Type::index) return acc(c);
    return "(" + acc(c) + " == INT32_MAX ? INT64_MAX : " + d_.cast(d_.integer, acc(c)) + ")";
  }

  std::string any_partial() const { return f_.partial.empty() ? "" : "(" + w_.any(f_.partial) + ")"; }

  void runs(BodyText& t) {
    if (ends_) w_.load_ends(t, f_.limits, w_.touches_registers(f_.body.refs));
    if (halves_) halves_->start();
    w_.open_run(w_.touches_registers(f_.body.refs));
    const std::string run = w_.tests(f_.limits, Walk::run, false);
    u_.open(run.empty() ? "" : "if (" + run + ")");
    if (ends_) w_.begin_ends(f_.limits);
    else if (at_once_) w_.load_runs(t);
    if (halves_ && ends_) u_.open("if (whole)");
    if (halves_) halves_->run();
    if (halves_ && ends_) u_.close(), u_.open("else");
    if (!halves_ || ends_) {
      w_.open_element();
      const std::string one = w_.tests(f_.limits, Walk::element, false);
      term(t, joined(ends_ && !halves_ ? "(whole || (" + one + "))" : one, any_partial()));
      u_.close();
    }
    if (halves_ && ends_) u_.close();
    for (int k = 0; k < 3; ++k) u_.close(); // run's test, run exists, run
    if (halves_) halves_->finish(acc(0));
  }

  void term(BodyText& t, const std::string& test) {
    const bool conditional = w_.open_terms(t, test);
    if (keys_) keys_->term(t);
    if (terms_.power) {
      u_.line("const float l0 = tang_exp2_of_half(" + t.value(terms_.roots[0], false) + ");");
      u_.line(acc(0) + " = tang_fma1(l0, l0, " + acc(0) + ");");
    }
    std::vector<std::string> left, right;
    for (size_t c = 0; c < n_ && !keys_ && !terms_.power; ++c) {
      left.push_back(acc(c)), right.push_back("l" + std::to_string(c));
      u_.line(d_.constant(type(c), right[c], carried(c, f_.body.values[c], t.value(f_.body.values[c], false))));
    }
    if (!keys_ && !terms_.power) join(left, right, with_term());
    if (conditional) u_.close();
    u_.close();
  }

  // The combine of a state with a term, whose literal components decide some of its branches.
  std::vector<Id> with_term() const {
    kernel::Pool& p = *u_.k.pool;
    std::map<Id, Id> to;
    for (size_t c = 0; c < n_; ++c)
      if (p[f_.body.values[c]].op == Op::literal)
        to[p.leaf(Op::var, f_.identity[c].type, int64_t(2 * c + 1))] = f_.body.values[c];
    if (to.empty()) return f_.combine;
    std::vector<Id> out;
    for (Id id : f_.combine) out.push_back(expr::settle_branches(p, expr::substitute(p, id, to)));
    if (narrow_)
      for (Id id : expr::schedule(p, out))
        if (p[id].op == Op::literal && p[id].type == Type::index)
          return f_.combine; // it is carried in 32 bits
    return out;
  }

  void join(const std::vector<std::string>& left, const std::vector<std::string>& right,
            const std::vector<Id>& combine) {
    BodyText t(u_, nullptr, combine, {}, -1);
    for (size_t c = 0; c < n_; ++c) {
      t.name_var(int64_t(2 * c), left[c], false);
      t.name_var(int64_t(2 * c + 1), right[c], false);
    }
    t.declare(0);
    for (size_t c = 0; c < n_; ++c) {
      const bool cut = narrow_ && f_.identity[c].type == Type::index && !d_.exchanges; // no dialect but CUDA does it unasked
      const std::string v = t.value(combine[c], false);
      u_.line(d_.constant(type(c), "n" + std::to_string(c), cut ? d_.cast("int", v) : v));
    }
    for (size_t c = 0; c < n_; ++c) u_.line(acc(c) + " = n" + std::to_string(c) + ";");
  }

  // Either order of the two sides gives the same bits.
  bool symmetric() const {
    const Op op = (*u_.k.pool)[f_.combine[0]].op;
    return n_ == 1 && (op == Op::add || op == Op::max || op == Op::min || op == Op::both || op == Op::either);
  }

  // Lane l with l + d: what belongs to the lower lane stands left, so that both have the same result.
  void settle() {
    check(w_.team() == 1 || d_.exchanges, "lanes that join by exchanging registers");
    for (int64_t d = w_.team() / 2; d; d /= 2) {
      u_.open("");
      std::vector<std::string> left, right;
      if (!symmetric()) u_.line("const bool low = !(lane & " + number(d) + ");");
      for (size_t c = 0; c < n_; ++c) {
        const std::string o = "o" + std::to_string(c);
        u_.line("const " + type(c) + " " + o + " = __shfl_xor_sync(0xffffffffu, " + acc(c) + ", " +
                number(d) + ");");
        if (symmetric()) {
          left.push_back(acc(c)), right.push_back(o);
          continue;
        }
        left.push_back("p" + std::to_string(c)), right.push_back("s" + std::to_string(c));
        u_.line("const " + type(c) + " " + left[c] + " = low ? " + acc(c) + " : " + o + ", " + right[c] +
                " = low ? " + o + " : " + acc(c) + ";");
      }
      join(left, right, f_.combine);
      u_.close();
    }
  }

  void store(const std::string& live) {
    u_.open(live.empty() ? "" : "if (" + live + ")");
    for (size_t c = 0; c < n_; ++c) {
      const Ref& r = f_.dst[c];
      if (w_.in_registers(r.memory)) {
        w_.put_in_registers(r.memory, stored(c));
        continue;
      }
      if (u_.memory(r.memory).team == kernel::Team::cluster) { // a lane for each copy
        if (u_.memory(r.memory).lanes == kernel::Lanes::partial) { // it lies in one of them
          check(w_.team() == 1, "a lane a result");
          kernel::Ref in_part = r;
          in_part.index[0] = {};
          const std::string owner = "(" + text(offset(u_, in_part)) + ") % " + number(u_.k.lanes) + " / " +
                                    number(u_.k.lanes / u_.k.cluster);
          u_.line(store_element(u_, u_.memory(r.memory).format,
                                "tang_peer(m" + std::to_string(r.memory) + " + " + text(offset(u_, r)) + ", " +
                                    owner + ")[0]",
                                stored(c)));
          continue;
        }
        const std::string of = "lane % " + number(w_.team());
        check(f_.deal.each && w_.team() >= u_.k.cluster, "a lane for every workgroup of a cluster");
        u_.line("if (" + of + " < " + number(u_.k.cluster) + ") " +
                store_element(u_, u_.memory(r.memory).format,
                              "tang_peer(m" + std::to_string(r.memory) + " + " + text(offset(u_, r)) + ", " +
                                  of + ")[0]",
                              stored(c)));
        continue;
      }
      if (w_.team() > 1) u_.line("if (lane % " + number(w_.team()) + " == 0)");
      print_store(u_, r, stored(c), f_.identity[c].type, false, -1, "", false, false,
                  gathered_offset(u_, f_.body, r));
    }
    u_.close();
  }

  Unit& u_;
  const GpuDialect& d_;
  const FoldTerms terms_;
  const kernel::Fold& f_; // of the terms
  Walk w_;
  const size_t n_;
  bool at_once_ = false, ends_ = false, narrow_ = false;
  std::unique_ptr<FoldKeys> keys_;
  std::unique_ptr<FoldPlaces> places_;
  std::optional<FoldHalves> halves_;
};
} // namespace

void print_row_fold(Unit& u, const GpuDialect& d, const kernel::Fold& f) { RowFold(u, d, f).print(); }

} // namespace tang::emit
