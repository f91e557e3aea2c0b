#include "tang/rewrite/terms.hpp"

#include <algorithm>

#include "tang/expr/order.hpp"
#include "tang/ir/absence.hpp"
#include "tang/rewrite/import.hpp"

namespace tang::rewrite {

Axes point_axes(const Comp& n) { return n.points.size() >= 64 ? ~Axes(0) : bit(int(n.points.size())) - 1; }

Axes fold_axes(const Comp& n) {
  Axes out = 0;
  for (size_t f = 0; f < n.folds.size(); ++f) out |= bit(int(n.points.size() + f));
  return out;
}

Axes own_axes(const Comp& n, size_t c) {
  Axes out = 0;
  for (int a : n.outs[c].axes) out |= bit(a);
  return out;
}

Axes common_axes(const Comp& n) {
  Axes out = point_axes(n);
  for (size_t c = 0; c < n.outs.size(); ++c) out &= own_axes(n, c);
  return out;
}

Axes Dependence::of_arg(int a) {
  if (auto it = args_.find(a); it != args_.end()) return it->second;
  Axes out = 0;
  for (auto& f : n_.args[size_t(a)].view) out |= of(f);
  return args_[a] = out;
}

Axes Dependence::of(const Form& f) {
  Axes out = 0;
  for (auto& t : f.axes) out |= bit(t.first);
  for (auto& t : f.args) out |= of_arg(t.first);
  return out;
}

Axes Dependence::of(const Domain& d) {
  Axes out = 0;
  for (auto& c : d)
    for (auto& f : c) out |= of(f);
  return out;
}

Axes Dependence::of(Id id) {
  if (auto it = terms_.find(id); it != terms_.end()) return it->second;
  const expr::Term& t = p_[id];
  Axes out = 0;
  if (t.op == Op::coord) out = bit(int(t.whole));
  if (t.op == Op::arg) out = of_arg(int(t.whole));
  if (t.op == Op::holds) out = of(n_.guards[size_t(t.whole)]);
  for (int k = 0; k < t.arity(); ++k) out |= of(t.args[size_t(k)]);
  return terms_[id] = out;
}

bool uses_arg(const Pool& p, Id term, int arg) {
  for (Id x : expr::schedule(p, {term}))
    if (p[x].op == Op::arg && p[x].whole == arg) return true;
  return false;
}

bool has_reads(const Pool& p, Id term) {
  for (Id x : expr::schedule(p, {term}))
    if (p[x].op == Op::arg) return true;
  return false;
}

std::set<int> index_reads(const Comp& n) {
  std::set<int> out;
  auto take = [&](const Form& f) {
    for (auto& t : f.args) out.insert(t.first);
  };
  for (auto& a : n.args)
    for (auto& f : a.view) take(f);
  for (auto& d : n.guards)
    for (auto& c : d)
      for (auto& f : c) take(f);
  for (auto& c : n.domain)
    for (auto& f : c) take(f);
  for (auto& o : n.outs)
    for (auto& f : o.view) take(f);
  return out;
}

Id ordered(Pool& p, Id term) { return expr::ordered(p, term); }

bool is_plain_component(const Pool& p, const Comp& n, size_t c, Op op) {
  if (!n.monoid) return false;
  const expr::Term& t = p[n.monoid->combine[c]];
  if (t.op != op || t.arity() != 2) return false;
  const expr::Term &a = p[t.args[0]], &b = p[t.args[1]];
  const int64_t left = int64_t(2 * c);
  return a.op == Op::var && b.op == Op::var && std::min(a.whole, b.whole) == left &&
         std::max(a.whole, b.whole) == left + 1;
}

bool is_plain_fold(const Pool& p, const Comp& n, Op op) {
  return n.monoid && n.lift.size() == 1 && n.monoid->identity[0].type == Type::real &&
         is_plain_component(p, n, 0, op);
}

namespace {
void split(Pool& p, Id id, Product& out) {
  const expr::Term t = p[id];
  if (t.op == Op::mul && t.type == Type::real) {
    split(p, t.args[0], out);
    split(p, t.args[1], out);
  } else if (t.op == Op::neg && t.type == Type::real) {
    out.factors.push_back(p.literal(-1.0));
    split(p, t.args[0], out);
  } else if (t.op == Op::ratio) {
    split(p, t.args[0], out);
    out.divisors.push_back(t.args[1]);
  } else if (!(t.op == Op::literal && t.type == Type::real && t.r == 1)) {
    out.factors.push_back(id);
  }
}
} // namespace

Product product_of(Pool& p, Id id) {
  Product out;
  split(p, id, out);
  return out;
}

Id term_of(Pool& p, const Product& f) {
  double sign = 1;
  std::vector<Id> rest;
  for (Id x : f.factors) {
    if (p[x].op == Op::literal)
      sign *= p[x].r;
    else
      rest.push_back(x);
  }
  if (sign != 1 || rest.empty()) rest.insert(rest.begin(), p.literal(sign));
  Id out = expr::product(p, rest);
  for (Id d : f.divisors) out = p.make(Op::ratio, {out, d});
  return out;
}

bool is_expensive(Op op) {
  switch (op) {
  case Op::exp2:
  case Op::log2:
  case Op::sin:
  case Op::atan2:
  case Op::sqrt:
  case Op::recip:
  case Op::ratio:
  case Op::div:
  case Op::mod: return true;
  default: return false;
  }
}

bool reaches(const Graph& g, NodeId from, NodeId target) {
  if (from < target) return false;
  std::set<NodeId> seen;
  std::vector<NodeId> todo{from};
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    if (id == target) return true;
    if (id < target || !seen.insert(id).second) continue;
    if (auto* c = g[id].comp()) {
      for (auto& a : c->args) todo.push_back(a.from.node);
    } else {
      for (Port p : ir::sources(g, id)) todo.push_back(p.node);
    }
  }
  return false;
}

bool is_total(Graph& g, const Comp& n, int arg) {
  const Arg& a = n.args[size_t(arg)];
  if (ir::may_be_absent(g, a.from, ir::by_predicates)) return false;
  if (const Comp* c = g[a.from.node].comp(); c && c->is_map() && c->domain != ir::everywhere()) return false;
  const auto shape = g.shape(a.from);
  const auto extents = n.extents();
  for (size_t d = 0; d < a.view.size(); ++d) {
    if (!a.view[d].is_affine()) return false;
    if (a.view[d].is_pick() && extents[size_t(a.view[d].picked())] == shape[d]) continue;
    if (ir::range(a.view[d], extents, g.symbols).first < 0) return false;
    if (ir::range(ir::constant(shape[d] - ir::Extent(1)) - a.view[d], extents, g.symbols).first < 0)
      return false;
  }
  return true;
}

bool reads_inside(const Comp& n, const Arg& read, const std::vector<ir::Extent>& shape) {
  for (size_t d = 0; d < read.view.size(); ++d) {
    const Form& f = read.view[d];
    if (f.is_pick()) continue;
    const Form left = ir::constant(shape[d] - ir::Extent(1)) - f;
    if (!ir::implies(n.domain, {{f}}) || !ir::implies(n.domain, {{left}})) return false;
  }
  return true;
}

bool never_empty(const Comp& n, const ir::Symbols& symbols) {
  if (n.domain != ir::everywhere()) return false;
  for (auto& e : n.folds)
    if (e.range(symbols).first < 1) return false;
  return true;
}

namespace {
// May a read of `n` find nothing there, inside the domain of `n`?
bool may_miss(Graph& g, const Comp& n, int arg) {
  const Arg& a = n.args[size_t(arg)];
  if (ir::may_be_absent(g, a.from, ir::by_predicates | ir::by_domains_read)) return true;
  const Comp* source = g[a.from.node].comp();
  if (!source || !source->is_map() || source->domain == ir::everywhere()) return false;
  const Comp m = *source;
  Comp reader = n;
  const auto picked = picked_axes(m, a);
  Import in(g.pool, m, reader, [&](int x) { return picked.at(x); });
  const Domain needed = ir::pruned(in.domain(m.domain), reader.extents(), g.symbols);
  return !in.why().empty() || !ir::implies(n.domain, needed);
}
} // namespace

bool tighten(Graph& g, Comp& n) {
  Pool& p = g.pool;
  bool partial = false;
  for (Id l : n.lift) partial = partial || !expr::subterms(p, l, Op::only).empty();
  if (!partial || !axes_fit(n)) return false;
  std::vector<std::set<Id>> conds;
  std::vector<Id> values;
  // The graph may not be closed yet: what catches the absence of a read has to stay, and the read itself.
  const expr::MayMiss missing = [&](Id read) { return may_miss(g, n, int(p[read].whole)); };
  for (Id l : n.lift) {
    const expr::Present x = expr::present(p, l, missing);
    const auto parts = expr::conjuncts(p, x.when);
    conds.emplace_back(parts.begin(), parts.end());
    values.push_back(x.value);
  }
  // A term is absent as a whole, but a port sees only the components within its axes: a bound may leave a
  // body only if every port sees it, so it stands in a component whose axes all others have.
  const Axes common = common_axes(n);
  std::set<Id> seen_by_all;
  for (size_t c = 0; c < n.lift.size(); ++c)
    if (own_axes(n, c) == common) seen_by_all.insert(conds[c].begin(), conds[c].end());
  std::vector<Id> order(seen_by_all.begin(), seen_by_all.end());
  std::sort(order.begin(), order.end(), [&](Id a, Id b) { return p.before(a, b); });
  std::set<Id> moved;
  Dependence depends(p, n);
  for (Id c : order) {
    if (p[c].op != Op::holds || (depends.of(c) & point_axes(n) & ~common)) continue;
    const Domain d =
        ir::pruned(ir::intersection(n.domain, n.guards[size_t(p[c].whole)]), n.extents(), g.symbols);
    if (ir::disjoint(d).size() > ir::most_pieces) continue;
    n.domain = d;
    moved.insert(c);
  }
  if (moved.empty()) return false;
  for (size_t c = 0; c < n.lift.size(); ++c) {
    std::vector<Id> rest;
    for (Id x : conds[c])
      if (!moved.count(x)) rest.push_back(x);
    std::sort(rest.begin(), rest.end(), [&](Id a, Id b) { return p.before(a, b); });
    const Id when = expr::conjunction(p, rest, missing);
    n.lift[c] = when == expr::yes(p) ? values[c] : p.make(Op::only, {when, values[c]});
  }
  return true;
}

// Sums and products of sums and products in one order, so that equal values are one node.
Id in_one_order(Pool& p, Id root) {
  std::map<Id, Id> done;
  auto mapped = [&](std::vector<Id> ids) {
    for (Id& x : ids)
      if (auto it = done.find(x); it != done.end()) x = it->second;
    std::sort(ids.begin(), ids.end(), [&](Id a, Id b) { return p.before(a, b); });
    return ids;
  };
  for (Id x : expr::schedule(p, {root})) {
    const expr::Term t = p[x];
    std::vector<Id> args;
    for (int k = 0; k < t.arity(); ++k) args.push_back(done.at(t.args[size_t(k)]));
    const bool real = t.type == Type::real;
    if (args.empty()) {
      done[x] = x;
    } else if (real && (t.op == Op::mul || t.op == Op::neg)) {
      const Product all = product_of(p, x);
      done[x] = term_of(p, {mapped(all.factors), mapped(all.divisors)});
    } else if (real && t.op == Op::add) {
      std::vector<Id> terms;
      for (Id of : expr::addends(p, x)) // what was one term may be a sum by now
        for (Id term : expr::addends(p, done.count(of) ? done.at(of) : of)) terms.push_back(term);
      std::sort(terms.begin(), terms.end(), [&](Id a, Id b) { return p.before(a, b); });
      Id sum = terms[0];
      for (size_t k = 1; k < terms.size(); ++k) sum = p.make(Op::add, {sum, terms[k]});
      done[x] = sum;
    } else {
      if (args.size() == 2 && expr::row(t.op).commutative && p.before(args[1], args[0]))
        std::swap(args[0], args[1]);
      done[x] = p.make(t.op, args);
    }
  }
  return done.at(root);
}

// Those of `axes` in the order in which they lie in the read of `value` that has most of them, others first:
// whoever reads what is stored in this order finds one array.
std::vector<int> axes_as_read(const Pool& p, const Comp& n, Axes axes, Id value) {
  std::vector<int> best;
  for (Id x : expr::subterms(p, value, Op::arg)) {
    std::vector<int> mine;
    for (auto& f : n.args[size_t(p[x].whole)].view) {
      auto moves = f.axes;
      std::stable_sort(moves.begin(), moves.end(),
                       [](auto& a, auto& b) { return std::abs(a.second) > std::abs(b.second); });
      for (auto& [a, k] : moves)
        if (std::find(mine.begin(), mine.end(), a) == mine.end()) mine.push_back(a);
    }
    if (mine.size() > best.size()) best = mine;
  }
  std::vector<int> out;
  for (int a = 0; a < n.axis_count(); ++a)
    if ((axes & bit(a)) && std::find(best.begin(), best.end(), a) == best.end()) out.push_back(a);
  out.insert(out.end(), best.begin(), best.end());
  return out;
}

} // namespace tang::rewrite
