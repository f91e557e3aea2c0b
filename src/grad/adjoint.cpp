#include "tang/grad/adjoint.hpp"

#include <algorithm>

#include "tang/base/match.hpp"
#include "tang/grad/pull.hpp"

namespace tang::diff {

namespace {
// A component moves when a real read in its own lift does, or a component that its combine sees.
std::vector<char> moving_components(const Graph& g, const Comp& n, const std::set<Port>& needed) {
  std::vector<char> out(n.lift.size(), 0);
  for (size_t c = 0; c < n.lift.size(); ++c)
    for (Id leaf : expr::subterms(g.pool, n.lift[c], Op::arg))
      if (needed.count(n.args[size_t(g.pool[leaf].whole)].from)) out[c] = 1;
  for (bool again = bool(n.monoid); again;) {
    again = false;
    for (size_t c = 0; c < n.lift.size(); ++c)
      for (Id v : expr::subterms(g.pool, n.monoid->combine[c], Op::var))
        if (!out[c] && out[size_t(g.pool[v].whole / 2)]) out[c] = 1, again = true;
  }
  return out;
}
} // namespace

Moving moving(const Graph& g, const ir::Recur& r, const std::set<Port>& needed) {
  const Graph& step = *r.step;
  Moving m{std::vector<char>(r.states.size(), 0), std::vector<char>(r.args.size(), 0), {}};
  auto real = [&](NodeId in) { return step.type({in, 0}) == Type::real; };
  for (size_t a = 0; a < r.args.size(); ++a) m.args[a] = needed.count(r.args[a].from) && real(r.args[a].in);
  for (size_t s = 0; s < r.states.size(); ++s)
    m.states[s] = r.states[s].init && needed.count(*r.states[s].init) && real(r.states[s].in);
  for (bool again = true; again;) {
    again = false;
    std::set<Port> wanted;
    for (size_t a = 0; a < r.args.size(); ++a)
      if (m.args[a]) wanted.insert({r.args[a].in, 0});
    for (size_t s = 0; s < r.states.size(); ++s)
      if (m.states[s]) wanted.insert({r.states[s].in, 0});
    m.step = dependents(step, wanted);
    for (size_t s = 0; s < r.states.size(); ++s)
      if (!m.states[s] && m.step.count(r.states[s].out)) m.states[s] = 1, again = true;
  }
  (void)g;
  return m;
}

std::set<Port> dependents(const Graph& g, const std::set<Port>& wanted) {
  std::set<Port> out;
  for (Port p : wanted)
    if (g.type(p) == Type::real) out.insert(p);
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const auto read = ir::sources(g, id);
    if (std::none_of(read.begin(), read.end(), [&](Port p) { return out.count(p) > 0; })) continue;
    std::vector<char> moves;
    if (auto* c = g[id].comp()) moves = moving_components(g, *c, out);
    if (auto* r = g[id].recur()) {
      const Moving m = moving(g, *r, out);
      moves = m.states;
      for (auto& e : r->emits) moves.push_back(m.step.count(e.out) > 0);
    }
    for (uint32_t k = 0; k < moves.size(); ++k)
      if (moves[k] && g.type({id, k}) == Type::real) out.insert({id, k});
  }
  return out;
}

// An adjoint has its node's domain.
void Adjoints::inherit_domain(Comp& n, Port p) {
  const Comp* source = g_[p.node].comp();
  if (!source || !source->is_map() || !source->outs[0].view.empty() || source->domain == ir::everywhere())
    return;
  const Comp s = *source;
  std::map<int, int> coordinate;
  for (size_t d = 0; d < s.outs[0].axes.size(); ++d) coordinate[s.outs[0].axes[d]] = int(d);
  rewrite::Import in(g_.pool, s, n, [&](int a) { return ir::axis(coordinate.at(a)); });
  n.domain = ir::pruned(ir::intersection(n.domain, in.domain(s.domain)), n.points, g_.symbols);
}

namespace {
bool is_sum(const Graph& g, Port p) {
  const Comp* c = g[p.node].comp();
  return c && c->lift.size() == 1 && !c->folds.empty() && c->outs[0].view.empty() && rewrite::axes_fit(*c) &&
         folds_alone(g.pool, *c, 0, Op::add);
}

// Two sums over the same terms that have factors in common, as one: sum c a + sum c b = sum c (a + b).
std::optional<Port> joined(Graph& g, Port x, Port y) {
  if (x == y || !is_sum(g, x) || !is_sum(g, y)) return {};
  Pool& p = g.pool;
  Comp n = *g[x.node].comp();
  const Comp other = *g[y.node].comp();
  if (n.points != other.points || n.folds != other.folds || n.outs[0].axes != other.outs[0].axes) return {};
  rewrite::Import in(p, other, n, [](int a) { return ir::axis(a); });
  const expr::Present mine = expr::present(p, n.lift[0]), its = expr::present(p, in.body(other.lift[0]));
  if (in.domain(other.domain) != n.domain || !in.why().empty()) return {};
  if (rewrite::ordered(p, mine.when) != rewrite::ordered(p, its.when)) return {};
  rewrite::Product a = rewrite::product_of(p, mine.value), b = rewrite::product_of(p, its.value);
  if (!a.divisors.empty() || !b.divisors.empty()) return {};
  std::vector<Id> common;
  for (size_t k = 0; k < a.factors.size();) {
    const auto same = std::find_if(b.factors.begin(), b.factors.end(), [&](Id f) {
      return rewrite::ordered(p, f) == rewrite::ordered(p, a.factors[k]);
    });
    if (same == b.factors.end() || !rewrite::has_reads(p, a.factors[k])) {
      ++k;
      continue;
    }
    common.push_back(a.factors[k]);
    a.factors.erase(a.factors.begin() + long(k));
    b.factors.erase(same);
  }
  if (common.empty()) return {};
  common.push_back(p.make(Op::add, {rewrite::term_of(p, a), rewrite::term_of(p, b)}));
  const Id value = expr::product(p, common);
  n.lift = {mine.when == expr::yes(p) ? value : p.make(Op::only, {mine.when, value})};
  const std::string name = g[x.node].name;
  const Where where = g[x.node].where;
  return Port{g.add({std::move(n), name, where}), 0};
}

void join_sums(Graph& g, std::vector<Port>& parts) {
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = i + 1; j < parts.size();) {
      if (const auto both = joined(g, parts[i], parts[j])) {
        parts[i] = *both;
        parts.erase(parts.begin() + long(j));
        j = i + 1;
      } else {
        ++j;
      }
    }
}
} // namespace

Port Adjoints::bar(Port p) {
  auto it = parts_.find(p);
  if (it != parts_.end()) join_sums(g_, it->second);
  if (it != parts_.end() && it->second.size() == 1) return it->second[0];
  const std::string name = "d" + g_.label(p);
  const Where where = g_[p.node].where;
  Comp sum;
  sum.points = g_.shape(p);
  sum.outs = {every_axis(sum.points.size())};
  std::optional<Id> total;
  for (Port part : it == parts_.end() ? std::vector<Port>{} : it->second) {
    const Id x = read_at(g_, sum, part, here(sum.points.size()));
    total = total ? g_.pool.make(Op::add, {*total, x}) : x;
  }
  sum.lift = {total ? *total : g_.pool.literal(0.0)};
  inherit_domain(sum, p);
  const Port out{g_.add({std::move(sum), name, where}), 0};
  parts_[p] = {out};
  return out;
}

namespace {
// Where a part of an adjoint may be other than 0, and its body there when it folds nothing.
struct Live {
  Comp frame; // the node that the terms and bounds are of
  Domain domain = ir::everywhere();
  Id when;
  std::optional<Id> body = {};
};

// Does every read that a condition or a bound makes lie inside its array wherever the domain of n holds?
bool reads_within(Graph& g, const Comp& n, std::vector<int> reads) {
  for (size_t k = 0; k < reads.size(); ++k) {
    const ir::Arg& a = n.args[size_t(reads[k])];
    if (!rewrite::is_total(g, n, reads[k]) && !rewrite::reads_inside(n, a, g.shape(a.from))) return false;
    for (auto& f : a.view)
      for (auto& t : f.args) reads.push_back(t.first);
  }
  return true;
}

std::vector<int> reads_of(const Form& f) {
  std::vector<int> out;
  for (auto& t : f.args) out.push_back(t.first);
  return out;
}

std::vector<int> reads_of(const Pool& p, const Comp& n, Id condition) {
  std::vector<int> out;
  for (Id x : expr::schedule(p, {condition})) {
    if (p[x].op == Op::arg) out.push_back(int(p[x].whole));
    if (p[x].op != Op::holds) continue;
    for (auto& piece : n.guards[size_t(p[x].whole)])
      for (auto& f : piece)
        for (int a : reads_of(f)) out.push_back(a);
  }
  return out;
}

Live live_of(Graph& g, Port part) {
  Pool& p = g.pool;
  const Comp* at = g[part.node].comp();
  if (!at || at->lift.size() != 1 || !at->outs[0].view.empty() || !rewrite::axes_fit(*at))
    return {{}, ir::everywhere(), expr::yes(p)};
  Live out{*at, ir::everywhere(), expr::yes(p)};
  const Comp& n = out.frame;
  Id lift = n.lift[0];
  if (n.is_map()) { // or_else(only(when, v), 0): 0 where it does not exist
    const expr::Term t = p[lift];
    if (t.op == Op::or_else && p[t.args[1]].op == Op::literal && p[t.args[1]].r == 0) lift = t.args[0];
  } else if (!folds_alone(p, n, 0, Op::add)) {
    return out;
  }
  const expr::Present x = expr::present(p, lift);
  if (n.folds.empty()) {
    out.domain = n.domain;
    out.when = x.when;
    out.body = x.value;
    return out;
  }
  rewrite::Dependence depends(p, n);
  const rewrite::Axes folds = rewrite::fold_axes(n);
  // What stays behind may be what keeps a read inside its array: such a bound or condition stays as well.
  Comp outer = n;
  outer.domain = ir::everywhere();
  if (n.domain.size() == 1)
    for (auto& f : n.domain[0])
      if (!(depends.of(f) & folds) && f.args.empty()) insert(outer.domain[0], f);
  if (n.domain.size() == 1)
    for (auto& f : n.domain[0])
      if (!(depends.of(f) & folds) && reads_within(g, outer, reads_of(f))) insert(out.domain[0], f);
  for (Id c : expr::conjuncts(p, x.when))
    if (!(depends.of(c) & folds) && reads_within(g, outer, reads_of(p, n, c)))
      out.when = expr::both(p, out.when, c);
  if (n.domain.empty()) out.domain = {};
  return out;
}
} // namespace

namespace {
// A part over the points of its port: what it is where its domain and condition hold; elsewhere it is 0.
struct Piece {
  Port part;
  Domain domain;
  Id when;
  std::optional<Id> body; // none: a read of the part, which exists everywhere
};

Id conditions_of_both(Pool& p, Id a, Id b) {
  const std::vector<Id> other = expr::conjuncts(p, b);
  Id out = expr::yes(p);
  for (Id c : expr::conjuncts(p, a))
    if (std::find(other.begin(), other.end(), c) != other.end()) out = expr::both(p, out, c);
  return a == b ? a : rewrite::ordered(p, out);
}

std::optional<Piece> piece_of(Graph& g, Comp& n, Port part) {
  const Live live = live_of(g, part);
  std::map<int, int> coordinate;
  if (!live.frame.outs.empty())
    for (size_t d = 0; d < live.frame.outs[0].axes.size(); ++d)
      coordinate[live.frame.outs[0].axes[d]] = int(d);
  rewrite::Import in(g.pool, live.frame, n, [&](int a) { return ir::axis(coordinate.at(a)); });
  Piece out{part, ir::pruned(in.domain(live.domain), n.points, g.symbols),
            rewrite::ordered(g.pool, in.body(live.when)), {}};
  if (live.body) out.body = in.body(*live.body);
  return in.why().empty() ? std::optional(out) : std::nullopt;
}
} // namespace

// The adjoint as its node's terms read it: absent where every part is 0, so that what a term reads there (it
// may be no number) is never met. Parts that fold nothing, and are 0 nowhere else, are its body.
Port Adjoints::seed(Port p) {
  Pool& pool = g_.pool;
  Comp n;
  n.points = g_.shape(p);
  n.outs = {every_axis(n.points.size())};
  std::vector<Piece> pieces;
  for (Port part : parts_.at(p))
    if (auto piece = piece_of(g_, n, part))
      pieces.push_back(std::move(*piece));
    else
      return bar(p);
  const Domain domain = pieces[0].domain;
  Id when = pieces[0].when;
  for (auto& x : pieces) {
    if (x.domain != domain) return bar(p);
    when = conditions_of_both(pool, when, x.when);
  }
  std::optional<Id> total;
  bool all = true; // does every part end where the others do?
  for (auto& x : pieces) {
    const bool here_only = x.when == when;
    all &= here_only;
    const Id value = here_only && x.body ? *x.body : read_at(g_, n, x.part, here(n.points.size()));
    total = total ? pool.make(Op::add, {*total, value}) : value;
  }
  if (!all && domain == ir::everywhere() && when == expr::yes(pool)) return bar(p);
  n.domain = domain;
  inherit_domain(n, p);
  n.lift = {when == expr::yes(pool) ? *total : pool.make(Op::only, {when, *total})};
  const Id lift = n.lift[0];
  if (pool[lift].op == Op::arg && n.domain == ir::everywhere()) return parts_.at(p)[0];
  const std::string name = "d" + g_.label(p);
  const Where where = g_[p.node].where;
  return {g_.add({std::move(n), name, where}), 0};
}

namespace {
// Terms are read where the seed exists.
Id seed_read(Graph& g, Linear& l, Port seed, const std::vector<Form>& at) {
  Pool& p = g.pool;
  const Live live = live_of(g, seed);
  std::map<int, int> coordinate;
  if (!live.frame.outs.empty())
    for (size_t d = 0; d < live.frame.outs[0].axes.size(); ++d)
      coordinate[live.frame.outs[0].axes[d]] = int(d);
  rewrite::Import in(p, live.frame, l.at, [&](int a) { return at[size_t(coordinate.at(a))]; });
  const Domain d =
      ir::pruned(ir::intersection(l.at.domain, in.domain(live.domain)), l.at.extents(), g.symbols);
  const Id when = rewrite::ordered(p, in.body(live.when));
  if (in.why().empty()) {
    l.when = expr::both(p, rewrite::ordered(p, l.when), when);
    if (ir::disjoint(d).size() <= ir::most_pieces)
      l.at.domain = d;
    else
      l.when = expr::both(p, l.when, rewrite::add_guard(p, l.at, in.domain(live.domain)));
  }
  return read_at(g, l.at, seed, at);
}
} // namespace

void Adjoints::comprehension(NodeId id) {
  const size_t components = g_[id].comp()->lift.size();
  for (uint32_t c = 0; c < components; ++c) {
    const Port p{id, c};
    if (!parts_.count(p) || !needed_.count(p)) continue;
    const Comp& n = *g_[id].comp();
    if (proofs_ && (folds_alone(g_.pool, n, c, Op::max) || folds_alone(g_.pool, n, c, Op::min)))
      if (auto proof = stabilizing(g_, p, roots_, end_)) {
        if (!forward_) forward_ = std::make_shared<const Graph>(g_);
        proof->graph = forward_;
        proofs_->push_back(std::move(*proof));
        continue;
      }
    Linear l = linearise(g_, id, c);
    const auto reads = coefficients(g_.pool, l, [&](Port s) { return moves(s); });
    if (reads.empty()) continue;
    std::vector<Form> at = l.out.view;
    if (at.empty())
      for (int a : l.out.axes) at.push_back(ir::axis(a));
    const Id adjoint = seed_read(g_, l, seed(p), at);
    for (auto& [arg, coefficient] : reads) {
      const Port source = l.at.args[size_t(arg)].from;
      const Id term = product(g_.pool, adjoint, coefficient);
      add(source, pull(g_, l.at, arg, term, l.when, "d" + g_.label(source), g_[id].where));
    }
  }
}

void Adjoints::run() {
  needed_ = dependents(g_, wanted_);
  for (auto& [p, parts] : parts_) roots_.push_back(p);
  end_ = NodeId(g_.nodes.size());
  for (NodeId id = end_; id-- > 0;) {
    bool any = false;
    for (uint32_t k = 0; k < g_.ports(id); ++k) any |= parts_.count({id, k}) && needed_.count({id, k});
    if (!any) continue;
    if (g_[id].comp()) comprehension(id);
    if (g_[id].recur()) recurrence(id);
  }
}

} // namespace tang::diff
