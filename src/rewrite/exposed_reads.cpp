#include "tang/rewrite/exposed_reads.hpp"

#include <algorithm>

#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// When a read is there: bounds over the reader's axes, and bool reads.
struct Needs {
  Domain where = ir::everywhere();
  std::vector<Id> flags;

  bool none() const { return where == ir::everywhere() && flags.empty(); }
};

// One leaf of a term put under conditions wherever it does not stand under them already.
class Under {
public:
  Under(Pool& p, Id leaf, std::vector<Id> needs) : p_(p), leaf_(leaf), needs_(std::move(needs)) {}

  Id of(Id x) { return at(x, 0); }

private:
  using Met = uint64_t; // which of the needs hold here

  Met met_by(Id condition) const {
    Met out = 0;
    for (Id x : expr::conjuncts(p_, condition))
      for (size_t k = 0; k < needs_.size(); ++k)
        if (x == needs_[k]) out |= Met(1) << k;
    return out;
  }

  Id wrapped(Met met) {
    std::vector<Id> missing;
    for (size_t k = 0; k < needs_.size(); ++k)
      if (!(met >> k & 1)) missing.push_back(needs_[k]);
    if (missing.empty()) return leaf_;
    const Id all = expr::conjunction(p_, missing);
    return p_[leaf_].op == Op::holds ? ordered(p_, p_.make(Op::both, {leaf_, all}))
                                     : p_.make(Op::only, {ordered(p_, all), leaf_});
  }

  Id at(Id x, Met met) {
    if (x == leaf_) return wrapped(met);
    const expr::Term t = p_[x];
    if (!t.arity()) return x;
    if (auto it = done_.find({x, met}); it != done_.end()) return it->second;
    std::vector<Id> a;
    for (int k = 0; k < t.arity(); ++k) {
      Met here = met;
      if ((t.op == Op::only || t.op == Op::select) && k == 1) here |= met_by(t.args[0]);
      // A bound beside its condition: neither is ever absent.
      if (t.op == Op::both && p_[leaf_].op == Op::holds) here |= met_by(x);
      a.push_back(at(t.args[size_t(k)], here));
    }
    const bool same = std::equal(a.begin(), a.end(), t.args.begin());
    return done_[{x, met}] = same ? x : p_.make(t.op, a);
  }

  Pool& p_;
  const Id leaf_;
  const std::vector<Id> needs_;
  std::map<std::pair<Id, Met>, Id> done_;
};

class Exposer {
public:
  Exposer(Graph& to, Comp& n, const std::map<Port, Exists>& exists)
      : to_(to), n_(n), p_(to.pool), exists_(exists) {}

  bool run() {
    const size_t reads = n_.args.size();
    for (size_t g = 0, count = n_.guards.size(); g < count; ++g) guard(g);
    own_domain();
    for (size_t a = 0; a < reads; ++a) value(int(a));
    return changed_;
  }

private:
  const Needs& needs_of(int a) {
    if (auto it = known_.find(a); it != known_.end()) return it->second;
    const Arg read = n_.args[size_t(a)];
    Needs out;
    const Comp* at = to_[read.from.node].comp();
    if (at && at->is_map() && at->outs[0].view.empty() && at->domain != ir::everywhere()) {
      const Comp m = *at;
      const auto picked = picked_axes(m, read);
      Import in(p_, m, n_, [&](int x) { return picked.at(x); });
      out.where = ir::pruned(in.domain(m.domain), n_.extents(), to_.symbols);
    }
    if (auto it = exists_.find(read.from); it != exists_.end()) add(out, it->second, read);
    for (auto& f : read.view) add(out, f);
    return known_[a] = out;
  }

  void add(Needs& to, const Exists& e, const Arg& read) {
    auto flag = [&](Port p) { return read_leaf(p_, Type::boolean, add_read(n_, {p, read.view})); };
    const auto at = [&](const Form& f) { return compose(f, [&](int d) { return read.view[size_t(d)]; }); };
    const Domain where = ir::pruned(ir::moved(e.where, at), n_.extents(), to_.symbols);
    std::vector<Id> there;
    if (where != ir::everywhere()) there.push_back(add_guard(p_, n_, where));
    for (Port p : e.flags) there.push_back(flag(p));
    if (e.flag && !there.empty()) { // a condition is never absent itself
      const Id all = ordered(p_, expr::conjunction(p_, there));
      to.flags.push_back(p_.make(
          Op::or_else, {p_.make(Op::only, {all, flag(*e.flag)}), p_.literal(expr::truth(false))}));
      return;
    }
    to.where = ir::intersection(to.where, where);
    for (Port p : e.flags) to.flags.push_back(flag(p));
    if (e.flag) to.flags.push_back(flag(*e.flag));
  }

  void add(Needs& to, const Form& f) { // of the indices that a form reads
    for (auto& u : f.args) {
      const Needs more = needs_of(u.first);
      to.where = ir::intersection(to.where, more.where);
      for (Id x : more.flags)
        if (std::find(to.flags.begin(), to.flags.end(), x) == to.flags.end()) to.flags.push_back(x);
    }
  }

  Needs needs_of(const ir::Conj& c) {
    Needs out;
    for (auto& f : c) add(out, f);
    return out;
  }

  // A union of pieces, each with the needs of its own indices; what no domain says stays as a term.
  struct Split {
    Domain bounds; // of the pieces without flags
    std::vector<std::pair<Domain, std::vector<Id>>> flagged;
    bool same = true;
  };

  Split split(const Domain& d) {
    Split out;
    for (auto& piece : d) {
      const Needs needs = needs_of(piece);
      const Domain all =
          ir::implies({piece}, needs.where) ? Domain{piece} : ir::intersection({piece}, needs.where);
      out.same = out.same && needs.flags.empty() && all == Domain{piece};
      if (needs.flags.empty())
        out.bounds.insert(out.bounds.end(), all.begin(), all.end());
      else
        out.flagged.emplace_back(all, needs.flags);
    }
    return out;
  }

  void guard(size_t g) {
    const Id leaf = p_.leaf(Op::holds, Type::boolean, int64_t(g));
    const Domain d = n_.guards[g];
    const Split s = split(d);
    if (s.same) return;
    if (s.flagged.size() == 1 && s.bounds.empty()) {
      const auto& [all, flags] = s.flagged[0];
      if (all == d) return put(leaf, flags);
    }
    std::map<Id, Id> to{{leaf, term_of(s)}};
    replace([&](Id l) { return expr::substitute(p_, l, to); });
  }

  Id term_of(const Split& s) {
    std::optional<Id> any;
    auto one_more = [&](Id x) { any = any ? p_.make(Op::either, {*any, x}) : x; };
    if (!s.bounds.empty() || s.flagged.empty()) one_more(add_guard(p_, n_, ir::normal(s.bounds)));
    for (auto& [all, flags] : s.flagged) {
      std::vector<Id> parts = flags;
      parts.push_back(add_guard(p_, n_, ir::normal(all)));
      one_more(expr::conjunction(p_, parts));
    }
    return ordered(p_, *any);
  }

  void own_domain() {
    const Split s = split(n_.domain);
    if (s.same) return;
    if (s.flagged.empty()) {
      n_.domain = ir::normal(s.bounds);
      changed_ = true;
      return;
    }
    const Id all =
        s.flagged.size() == 1 && s.bounds.empty() ? expr::conjunction(p_, s.flagged[0].second) : term_of(s);
    if (s.flagged.size() == 1 && s.bounds.empty()) n_.domain = ir::normal(s.flagged[0].first);
    replace([&](Id l) { return stands_under(l, {all}) ? l : p_.make(Op::only, {ordered(p_, all), l}); });
  }

  void value(int a) {
    const Id leaf = read_leaf(p_, to_.type(n_.args[size_t(a)].from), a);
    const bool used = std::any_of(n_.lift.begin(), n_.lift.end(), [&](Id l) { return uses_arg(p_, l, a); });
    if (!used) return;
    const Needs needs = needs_of(a);
    std::vector<Id> all = needs.flags;
    if (needs.where != ir::everywhere() && !ir::implies(n_.domain, needs.where))
      all.push_back(add_guard(p_, n_, ir::normal(needs.where)));
    if (!all.empty()) put(leaf, all);
  }

  bool stands_under(Id l, const std::vector<Id>& needs) {
    const auto parts = expr::conjuncts(p_, expr::present(p_, l).when);
    std::vector<Id> each;
    for (Id x : needs)
      for (Id y : expr::conjuncts(p_, x)) each.push_back(y);
    return std::all_of(each.begin(), each.end(),
                       [&](Id x) { return std::find(parts.begin(), parts.end(), x) != parts.end(); });
  }

  void put(Id leaf, const std::vector<Id>& needs) {
    replace([&](Id l) {
      return p_[leaf].op != Op::holds && stands_under(l, needs) ? l : Under(p_, leaf, needs).of(l);
    });
  }

  template <class F> void replace(const F& f) {
    for (Id& l : n_.lift) {
      const Id next = f(l);
      changed_ |= next != l;
      l = next;
    }
  }

  Graph& to_;
  Comp& n_;
  Pool& p_;
  const std::map<Port, Exists>& exists_;
  std::map<int, Needs> known_;
  bool changed_ = false;
};
} // namespace

bool expose_reads(Graph& to, Comp& n, const std::map<Port, Exists>& known) {
  return Exposer(to, n, known).run();
}

} // namespace tang::rewrite
