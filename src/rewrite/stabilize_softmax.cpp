// Stabilize softmax: a max and every sum of exp2(k (score - max)) * rest over the same terms become one fold,
// whose sums are rescaled when the running max moves. Nothing is stored between the two passes any more.
#include <algorithm>
#include <limits>

#include "tang/expr/diff.hpp"
#include "tang/ir/absence.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/rules.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

// A component that is a running max (or min) of one score.
struct Base {
  NodeId node; // old
  uint32_t port;
  bool is_max;
};

std::optional<bool> extreme(const Graph& g, Port p) {
  const Comp* c = g[p.node].comp();
  if (!c || !c->monoid || g.pool[c->lift[p.port]].type != Type::real || !axes_fit(*c)) return {};
  for (bool up : {true, false})
    if (is_plain_component(g.pool, *c, p.port, up ? Op::max : Op::min) &&
        c->monoid->identity[p.port].r == (up ? -inf : inf))
      return up;
  return {};
}

struct Family {
  Base base;
  std::vector<NodeId> sums; // old nodes
};

// Sums that read an extreme over as many fold axes.
std::vector<Family> candidates(const Graph& g) {
  const auto live = alive(g);
  std::map<Port, Family> by_base;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const Comp* n = g[id].comp();
    if (!live[id] || !n || !axes_fit(*n) || !is_plain_fold(g.pool, *n, Op::add) || n->folds.empty()) continue;
    for (auto& a : n->args) {
      const auto up = extreme(g, a.from);
      if (!up || g[a.from.node].comp()->folds != n->folds ||
          !g[a.from.node].comp()->outs[a.from.port].view.empty())
        continue;
      Family& f = by_base.try_emplace(a.from, Family{{a.from.node, a.from.port, *up}, {}}).first->second;
      if (f.sums.empty() || f.sums.back() != id) f.sums.push_back(id);
    }
  }
  std::vector<Family> out;
  for (auto& [port, f] : by_base) out.push_back(f);
  return out;
}

// Builds the one fold. All nodes are those of the graph `g`, in which it will be added.
struct Merger {
  Graph& g;
  Pool& p = g.pool;
  NodeId base_id;
  uint32_t base_port;
  bool is_max;
  Comp base; // the base node
  Comp merged = {};
  std::vector<std::string> why = {};

  std::vector<int> base_at = {}; // the base's points in the merged node

  std::vector<int> base_own() const {
    std::vector<int> out;
    for (int a : base.outs[base_port].axes) out.push_back(base_at[size_t(a)]);
    return out;
  }

  // Places n's axes: those that the max is read at are the max's; folds go to folds in order; the rest become
  // new points.
  bool place(const Comp& n, std::vector<int>& at, std::vector<ir::Extent>& extra) {
    at.assign(size_t(n.axis_count()), -1);
    const ir::Out& out = base.outs[base_port];
    for (auto& a : n.args) {
      if (a.from != Port{base_id, base_port}) continue;
      for (size_t d = 0; d < a.view.size(); ++d) {
        if (!a.view[d].is_pick()) return false;
        int& x = at[size_t(a.view[d].picked())];
        if (size_t(a.view[d].picked()) >= n.points.size() || (x >= 0 && x != out.axes[d])) return false;
        x = out.axes[d];
      }
    }
    Axes taken = 0;
    for (int x : at) {
      if (x >= 0 && (taken & bit(x))) return false;
      if (x >= 0) taken |= bit(x);
    }
    for (size_t a = 0; a < n.points.size(); ++a) {
      if (at[a] < 0) {
        at[a] = int(base.points.size() + extra.size());
        extra.push_back(n.points[a]);
      } else if (!(base.points[size_t(at[a])] == n.points[a])) {
        return false;
      }
    }
    return true;
  }

  // e = k (score - top) with a literal k of the sign that keeps the exponential from growing?
  std::optional<double> scale_of(Id e, Id score, Id top) {
    const auto slope = expr::linear_factor(p, e, top);
    if (!slope) return {};
    const Id s = expr::simplify(p, *slope);
    if (p[s].op != Op::literal) return {};
    const double k = -p[s].r;
    if (!(is_max ? k > 0 : k < 0) || k == inf || k == -inf) return {};
    const expr::E want = (expr::E{&p, score} - expr::E{&p, top}) * k;
    if (expr::simplify(p, e) == expr::simplify(p, want.id)) return k;
    return {};
  }

  bool is_equality(Id c, Id a, Id b) {
    const expr::Term& t = p[c];
    return t.op == Op::equal && ((t.args[0] == a && t.args[1] == b) || (t.args[0] == b && t.args[1] == a));
  }

  // Without the condition that the max is not its identity: where it is, every term has weight 0 in the
  // merged fold, which is the sum of no terms. Written `-inf < max` it fails for a NaN as well, which the
  // merged fold does not repeat: the sum is NaN there.
  Id beyond_identity(Id when, Id top) {
    std::vector<Id> kept;
    for (Id c : expr::conjuncts(p, when)) {
      const expr::Term t = p[c];
      const Id low = p.literal(is_max ? -inf : inf);
      const bool above =
          t.op == Op::less && t.args[0] == (is_max ? low : top) && t.args[1] == (is_max ? top : low);
      if (!above && !(t.op == Op::flip && is_equality(t.args[0], top, low))) kept.push_back(c);
    }
    return expr::conjunction(p, kept);
  }

  struct Added {
    NodeId sum;
    Id lift;
    double scale;
    std::vector<int> own;
  };

  // One sum as a component of the merged node, or the reason why not.
  Result<Added> component(NodeId sum, const Comp& n, const std::vector<int>& at, Id score, Id when) {
    const size_t folds = merged.points.size();
    Comp trial = merged;
    Import in(p, n, trial, [&](int a) {
      return ir::axis(size_t(a) < n.points.size() ? at[size_t(a)] : int(folds) + a - int(n.points.size()));
    });
    const expr::Present x = expr::present(p, in.body(n.lift[0]));
    const Domain domain = in.domain(n.domain);
    if (!in.why().empty()) return Refusal{in.why()};
    const Id top = read_leaf(p, Type::real, add_read(trial, self_read()));
    if (domain != merged.domain || ordered(p, beyond_identity(x.when, top)) != when)
      return Refusal{"another domain"};
    for (auto& a : n.args) {
      if (a.from != Port{base_id, base_port} && reaches(g, a.from.node, base_id))
        return Refusal{"the rest reads what the max feeds"};
      if (ir::may_be_absent(g, a.from, ir::by_predicates))
        return Refusal{"a read of " + g.label(a.from) + " may be absent"};
    }
    Product f = product_of(p, x.value);
    for (size_t k = 0; k < f.factors.size(); ++k) {
      const expr::Term t = p[f.factors[k]];
      if (t.op != Op::exp2) continue;
      const auto scale = scale_of(t.args[0], score, top);
      if (!scale) continue;
      Product rest = f;
      rest.factors.erase(rest.factors.begin() + long(k));
      const Id lift = term_of(p, rest);
      bool clean = true;
      for (Id y : expr::schedule(p, {lift})) clean = clean && y != top;
      if (!clean) continue;
      merged.args = trial.args;
      merged.guards = trial.guards;
      Added out{sum, when == expr::yes(p) ? lift : p.make(Op::only, {when, lift}), *scale, {}};
      for (int a : n.outs[0].axes) out.own.push_back(at[size_t(a)]);
      // It is rescaled by the max, so it has the max's axes too.
      for (int a : base_own())
        if (std::find(out.own.begin(), out.own.end(), a) == out.own.end())
          return Refusal{"the sum lacks an axis of the max"};
      return out;
    }
    return Refusal{"not exp2(k (score - max)) * rest: " + p.print(x.value)};
  }

  Arg self_read() {
    Arg self{{base_id, base_port}, {}};
    for (int a : base_own()) self.view.push_back(ir::axis(a));
    return self;
  }

  void extend_monoid(const std::vector<Added>& added) {
    ir::Monoid& m = *merged.monoid;
    const Id own = p.leaf(Op::var, Type::real, 2 * int64_t(base_port)),
             other = p.leaf(Op::var, Type::real, 2 * int64_t(base_port) + 1);
    const expr::E x{&p, own}, y{&p, other}, top = is_max ? max(x, y) : min(x, y);
    const expr::E low = expr::lit(p, is_max ? -inf : inf), zero = expr::lit(p, 0);
    for (auto& a : added) {
      const int64_t c = int64_t(m.size());
      // No term has been seen where the base is its identity: the guard keeps -inf - -inf out of the
      // exponential.
      const expr::E left = select(x == low, zero, exp2((x - top) * a.scale)),
                    right = select(y == low, zero, exp2((y - top) * a.scale));
      const expr::E s = left * expr::E{&p, p.leaf(Op::var, Type::real, 2 * c)},
                    t = right * expr::E{&p, p.leaf(Op::var, Type::real, 2 * c + 1)};
      m.identity.push_back(expr::real(0));
      m.combine.push_back((s + t).id);
    }
    m.name += "+" + std::to_string(added.size());
  }

  Result<std::vector<Added>> run(const std::vector<std::pair<NodeId, Comp>>& sums) {
    std::vector<std::vector<int>> places;
    std::vector<size_t> kept;
    std::vector<ir::Extent> extra;
    for (size_t k = 0; k < sums.size(); ++k) {
      std::vector<int> at;
      const auto before = extra;
      if (!place(sums[k].second, at, extra)) {
        extra = before;
        why.push_back("the max is not read point for point");
        continue;
      }
      places.push_back(at);
      kept.push_back(k);
    }
    if (kept.empty()) return Refusal{why.empty() ? "no sums" : why[0]};
    // The base in the wider space, whose points stand in the order of the widest sum, so that ports keep
    // ascending axes.
    std::vector<ir::Extent> points = base.points;
    points.insert(points.end(), extra.begin(), extra.end());
    size_t widest = 0;
    for (size_t k = 0; k < kept.size(); ++k)
      if (sums[kept[k]].second.points.size() > sums[kept[widest]].second.points.size()) widest = k;
    std::vector<int> final_at(points.size(), -1);
    int next = 0;
    for (size_t a = 0; a < sums[kept[widest]].second.points.size(); ++a)
      final_at[size_t(places[widest][a])] = next++;
    for (int& a : final_at)
      if (a < 0) a = next++;
    merged.points.resize(points.size());
    for (size_t a = 0; a < points.size(); ++a) merged.points[size_t(final_at[a])] = points[a];
    for (auto& at : places)
      for (int& a : at)
        if (a >= 0) a = final_at[size_t(a)];
    base_at.assign(final_at.begin(), final_at.begin() + long(base.points.size()));
    merged.folds = base.folds;
    if (!axes_fit(merged)) return Refusal{"too many axes"};
    const int shift = int(extra.size());
    Import in(p, base, merged, [&](int a) {
      return ir::axis(size_t(a) < base.points.size() ? base_at[size_t(a)] : a + shift);
    });
    for (Id l : base.lift) merged.lift.push_back(in.body(l));
    merged.domain = in.domain(base.domain);
    merged.outs = base.outs;
    for (auto& o : merged.outs)
      for (int& a : o.axes) a = base_at[size_t(a)];
    merged.monoid = base.monoid;
    if (!in.why().empty()) return Refusal{in.why()};
    const expr::Present score = expr::present(p, merged.lift[base_port]);
    const Id when = ordered(p, score.when);
    for (auto& a : base.args)
      if (ir::may_be_absent(g, a.from, ir::by_predicates))
        return Refusal{"a read of " + g.label(a.from) + " may be absent"};
    for (size_t c = 0; c < merged.lift.size(); ++c)
      if (ordered(p, expr::present(p, merged.lift[c]).when) != when) return Refusal{"another domain"};
    std::vector<Added> added;
    for (size_t k = 0; k < kept.size(); ++k) {
      auto one = component(sums[kept[k]].first, sums[kept[k]].second, places[k], score.value, when);
      if (one)
        added.push_back(*one);
      else
        why.push_back(one.why());
    }
    if (added.empty()) return Refusal{why.empty() ? "no sums" : why[0]};
    for (auto& a : added) {
      merged.lift.push_back(a.lift);
      merged.outs.push_back({a.own, {}, {}});
    }
    extend_monoid(added);
    drop_unused_points(added);
    return added;
  }

  // Points of sums that were refused.
  void drop_unused_points(std::vector<Added>&) {
    Axes used = 0;
    for (size_t c = 0; c < merged.outs.size(); ++c) used |= own_axes(merged, c);
    if (used == point_axes(merged)) return;
    std::vector<int> now(size_t(merged.axis_count()), 0);
    int next = 0;
    std::vector<ir::Extent> points;
    for (int a = 0; a < merged.axis_count(); ++a) {
      const bool point = size_t(a) < merged.points.size();
      now[size_t(a)] = next;
      if (point && !(used & bit(a))) continue;
      if (point) points.push_back(merged.points[size_t(a)]);
      ++next;
    }
    Comp out = merged;
    out.args.clear();
    out.guards.clear();
    out.points = points;
    Import in(p, merged, out, [&](int a) { return ir::axis(now[size_t(a)]); });
    out.domain = in.domain(merged.domain);
    for (size_t c = 0; c < out.lift.size(); ++c) {
      out.lift[c] = in.body(merged.lift[c]);
      for (int& a : out.outs[c].axes) a = now[size_t(a)];
    }
    merged = out;
  }
};

// Families that share no node, tried together; the others wait in `families` for their turn.
std::vector<Family> take_disjoint(std::vector<Family>& families) {
  std::vector<Family> out, rest;
  std::set<NodeId> used;
  for (auto& f : families) {
    bool free = !used.count(f.base.node);
    for (NodeId s : f.sums) free = free && !used.count(s);
    if (!free) {
      rest.push_back(f);
      continue;
    }
    used.insert(f.base.node);
    used.insert(f.sums.begin(), f.sums.end());
    out.push_back(f);
  }
  families = rest;
  return out;
}

Result<Rewritten> attempt(const Graph& g, const std::vector<Family>& families) {
  Edit e(g);
  std::map<NodeId, const Family*> at_base;
  std::set<NodeId> sums;
  for (auto& f : families) {
    at_base[f.base.node] = &f;
    sums.insert(f.sums.begin(), f.sums.end());
  }
  std::vector<std::string> what;
  std::string why;
  // The fold takes the place of the max: what its sums read is put before it, which never depends on the max.
  // A sum may be reached before its max, by what another fold reads: the fold takes it on the way.
  std::vector<char> done(g.nodes.size(), 0), taken(g.nodes.size(), 0);
  std::function<void(NodeId)> put = [&](NodeId id) {
    if (done[id] || !e.live[id]) return;
    done[id] = 1;
    for (Port p : ir::sources(g, id)) put(p.node);
    if (taken[id]) return;
    const bool is_sum = sums.count(id);
    if (auto it = at_base.find(id); it != at_base.end() && !is_sum) {
      // Everything that the sums read, except what reads the base, goes first.
      const Family& f = *it->second;
      std::vector<std::pair<NodeId, Comp>> members;
      // A trial copy of the base lets the sums be read in the new graph; it is dead if the fold replaces it.
      e.put(id, e.node(id));
      for (NodeId s : f.sums) {
        bool ready = true;
        for (Port p : ir::sources(g, s)) {
          if (p.node == id) continue;
          if (reaches(g, p.node, id)) ready = false;
        }
        if (!ready) {
          why = "the rest reads what the max feeds";
          continue;
        }
        for (Port p : ir::sources(g, s)) put(p.node);
        Node copy = e.node(s);
        members.emplace_back(s, std::get<Comp>(copy.what));
      }
      if (members.empty()) return;
      const Port now = e.at({id, f.base.port});
      Merger m{e.to, e.to.pool, now.node, now.port, f.base.is_max, *e.to[now.node].comp()};
      auto added = m.run(members);
      if (!added) {
        why = added.why();
        return;
      }
      Node node{std::move(m.merged), g[id].name, g[id].where};
      const size_t before = g.ports(id);
      const NodeId fold = e.to.add(std::move(node));
      std::string line = g.label({id, f.base.port});
      for (uint32_t c = 0; c < before; ++c) e.set({id, c}, {fold, c});
      for (size_t k = 0; k < added->size(); ++k) {
        const NodeId s = (*added)[k].sum;
        e.set({s, 0}, {fold, uint32_t(before + k)});
        done[s] = taken[s] = 1;
        line += " + " + g.label({s, 0});
      }
      what.push_back(line);
      return;
    }
    e.copy(id);
  };
  for (NodeId id = 0; id < g.nodes.size(); ++id) put(id);
  if (what.empty()) return Refusal{why};
  return Rewritten{e.finish(), what};
}

Result<Rewritten> apply_stabilize_softmax(const Graph& g) {
  auto families = candidates(g);
  std::string why = "no sum reads a max over its own terms";
  while (!families.empty()) {
    auto out = attempt(g, take_disjoint(families));
    if (out) return out;
    why = out.why();
  }
  return Refusal{why};
}

Graph stabilize_softmax_witness() {
  ir::Builder b;
  auto q = b.input("q", {5, 3}), k = b.input("k", {6, 3}), v = b.input("v", {6, 2});
  auto [i, j, x, c] = ir::axes<"i j x c">();
  auto score = masked(j <= i, sum(x, q(i, x) * k(j, x)) * 0.5);
  auto top = max(j, score), weight = exp(score - top), total = sum(j, weight);
  b.output(ir::map({i, c}, ratio(sum(j, weight * v(j, c)), total)), "out");
  b.output(ir::map({i}, top + log(total)), "lse");
  return b.graph();
}
} // namespace

Rule stabilize_softmax() {
  return {"stabilize_softmax",
          {"max s and sums of exp2(k (s - max s)) f over one domain are one fold of (m, l): l is rescaled by "
           "exp2(k (m - m')) when m moves",
           "absorbing_chunked", Law::algebraic},
          apply_stabilize_softmax,
          stabilize_softmax_witness};
}

} // namespace tang::rewrite
