#include "tang/lower/emitters.hpp"

#include <algorithm>
#include <numeric>

#include "tang/expr/absence.hpp"
#include "tang/expr/effort.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/lower/act.hpp"

namespace tang::lower {

using expr::Op;
using expr::Term;
using expr::Type;
using expr::Value;
using ir::Id;
using kernel::Apply;
using kernel::Bounds;
using kernel::constant;
using kernel::Fold;
using kernel::variable;

namespace {
std::vector<int> point_axes(const ir::Comp& n) {
  std::vector<int> out(n.points.size());
  std::iota(out.begin(), out.end(), 0);
  return out;
}
// An expression that is cheaper to evaluate twice than to keep.
bool is_cheap(const ir::Pool& p, Id e) { return expr::effort(p, e) <= 6; }
// A fold over `folds` for each place of `axes`: the two places, the point where both meet, and the statement.
struct OpenFold {
  Place kept, terms, at;
  Fold statement;
};
OpenFold open_fold(Frame& f, const ir::Comp& n, const std::vector<int>& core, const std::vector<int>& axes,
                   const std::vector<int>& folds, const std::string& stem) {
  Place kept = f.place(n, core, axes), terms = f.place(n, core, folds, stem), at = kept;
  for (int a : folds) at.at[size_t(a)] = terms.at[size_t(a)];
  Fold s;
  s.kept = kept.axes;
  s.folded = terms.axes;
  s.bounds = kept.tails;
  s.limits = terms.tails;
  return {std::move(kept), std::move(terms), std::move(at), std::move(s)};
}
// The monoid of a subset of components, over variables renumbered to it.
std::vector<expr::Id> combine_of(kernel::Pool& to, const ir::Graph& g, const ir::Monoid& m, const std::vector<int>& components) {
  std::vector<expr::Id> out;
  for (int c : components)
    out.push_back(expr::transplant(g.pool, m.combine[size_t(c)], to, [&](const Term& t) {
      const auto it = std::find(components.begin(), components.end(), int(t.whole / 2));
      check(it != components.end(), "a combine that reads a component it does not see");
      return to.leaf(Op::var, t.type, 2 * (it - components.begin()) + t.whole % 2);
    }));
  return out;
}
}  // namespace

// ---- state --------------------------------------------------------------------------------------------------------
void Emitters::state_tile(const plan::Member& m, const MemberForm& form, uint32_t component) {
  std::map<int, int64_t> pads;
  int inner = -1;
  auto it = form.contractions.find(int(component));
  if (it != form.contractions.end()) {
    pads[it->second.sides.m[0]] = f_.choice.rows;
    pads[it->second.sides.n[0]] = f_.choice.columns();
    inner = it->second.sides.n[0];
  }
  f_.tile_for({m.node, component}, m.axis, "s", pads, inner);
}
void Emitters::shared_tile(const plan::Shared& s, const std::optional<Contraction>& c) {
  std::map<int, int64_t> pads;
  if (c) pads = {{c->sides.m[0], f_.choice.rows}, {c->sides.n[0], f_.choice.columns()}};
  f_.tile_for({s.node, 0}, s.axis, "d", pads, c ? c->sides.n[0] : -1);
}
// The components that the fold of ports with these axes sees.
std::vector<int> Emitters::seen_by(const ir::Comp& n, const std::vector<int>& axes) const {
  std::vector<int> seen;
  for (size_t c = 0; c < n.lift.size(); ++c)
    if (std::includes(axes.begin(), axes.end(), n.outs[c].axes.begin(), n.outs[c].axes.end())) seen.push_back(int(c));
  return seen;
}
int Emitters::copy_of(const plan::Member& m, int component, const std::vector<int>& axes) {
  const auto [it, fresh] = copies_.try_emplace({m.node, component, axes}, -1);
  if (!fresh) return it->second;
  const ir::Comp& n = comp(m.node);
  std::vector<int64_t> shape;
  for (auto& x : f_.place(n, m.axis, axes).axes) shape.push_back(x.extent);
  return it->second = f_.scratch("w", shape, f_.tile_format(n.monoid->identity[size_t(component)].type));
}
void Emitters::start(const plan::Member& m, const MemberForm& form, kernel::Block& to) {
  const ir::Comp& n = comp(m.node);
  // The whole tile, padding too: a contraction reads what it adds to.
  auto fill = [&](int memory, size_t c) {
    Apply a;
    Ref dst{memory, {}, false};
    for (int64_t e : f_.k.memories[size_t(memory)].shape) {
      const kernel::Var v = f_.k.fresh("z");
      if (e != 1) a.axes.push_back({v, e});
      dst.index.push_back({e != 1 ? variable(v) : constant(0), {}});
    }
    a.dst = {dst};
    a.body.values = {f_.k.pool->literal(n.monoid->identity[c])};
    a.fill = {std::nullopt};
    vectorize(f_.k, a);
    emit(to, std::move(a));
  };
  for (uint32_t c = 0; c < n.lift.size(); ++c) fill(f_.tile_ref({m.node, c}, f_.place(n, m.axis, {})).memory, c);
  if (form.kind != MemberForm::fold || !form.contractions.empty()) return;
  std::set<std::vector<int>> done;
  for (auto& out : n.outs)
    if (done.insert(out.axes).second)
      for (int c : seen_by(n, out.axes))
        if (n.outs[size_t(c)].axes != out.axes) fill(copy_of(m, c, out.axes), size_t(c));
}
void Emitters::store(const plan::Member& m, kernel::Block& to) {
  const ir::Comp& n = comp(m.node);
  for (uint32_t c = 0; c < n.lift.size(); ++c) {
    const Port port{m.node, c};
    if (!f_.plan.buffer(port)) continue;
    Place at = f_.place(n, m.axis, n.outs[c].axes);
    Apply a;
    a.axes = at.axes;
    a.bounds = at.tails;
    a.dst = {f_.result_ref(port, n, at)};
    Body b = f_.body(n, at, m.axis);
    b.out.values.push_back(b.leaf(f_.tile_ref(port, at), f_.g.type(port)));
    a.body = std::move(b.out);
    a.fill = {std::nullopt};
    vectorize(f_.k, a);
    emit(to, std::move(a));
  }
}

// ---- forms --------------------------------------------------------------------------------------------------------
void Emitters::shared(const plan::Shared& x, const std::optional<Contraction>& c, int axis, kernel::Block& pre, kernel::Block& operands,
                      kernel::Block& body) {
  const ir::Comp& n = comp(x.node);
  std::vector<int> core = x.axis;
  core.resize(size_t(n.axis_count()), -1);
  if (c) return contract({x.node, core, *c, n.domain, axis, pre, operands, body}, {x.node, 0}, {}, false);
  plan::Member m{x.node, core, plan::Flush::store, false};
  fold(m, {}, n.domain, false, false, body);
}

void Emitters::fold(const plan::Member& m, const MemberForm& form, const ir::Domain& domain, bool in_place, bool accumulate, kernel::Block& to) {
  const ir::Comp& n = comp(m.node);
  // Ports with the same axes fold together, with the components that they see.
  std::set<std::vector<int>> done;
  for (uint32_t port = 0; port < n.lift.size(); ++port) {
    const std::vector<int>& axes = n.outs[port].axes;
    if (!done.insert(axes).second) continue;
    const std::vector<int> seen = seen_by(n, axes);
    auto [kept, terms, at, s] = open_fold(f_, n, m.axis, axes, folds_of(n), "r");
    Body b = f_.body(n, at, m.axis);
    if (domain.size() == 1) b.assume(domain[0]);
    std::vector<Id> lifts;
    for (int c : seen) lifts.push_back(n.lift[size_t(c)]);
    b.add(lifts);
    if (domain.size() == 1) {
      for (auto& f : domain[0]) s.limits.push_back(b.coordinate(f));
    } else {
      s.partial = b.pieces(domain);
    }
    for (int c : seen) {
      s.identity.push_back(n.monoid->identity[size_t(c)]);
      const Port p{m.node, uint32_t(c)};
      const bool own = n.outs[size_t(c)].axes == axes;
      if (own && in_place && f_.plan.buffer(p)) {
        s.dst.push_back(f_.global_ref(p, n, kept, true));
      } else if (own && (f_.has_tile(p) || (accumulate && f_.plan.buffer(p)))) {
        s.dst.push_back(result(p, n, kept));
      } else {  // seen but stored elsewhere: a scratch of these axes
        Ref r{-1, {}, false};
        for (auto& x : kept.axes) r.index.push_back({variable(x.var), {}});
        check(!accumulate || copies_.count({m.node, c, axes}), "a component that blocks add to was started");
        r.memory = copy_of(m, c, axes);
        s.dst.push_back(r);
      }
    }
    s.combine = combine_of(*f_.k.pool, f_.g, *n.monoid, seen);
    s.accumulate = accumulate;
    s.held = form.held;
    s.body = std::move(b.out);
    s.search = form.search && s.folded.size() == 1 && s.limits.empty() && !accumulate;
    if (s.search) {
      emit(to, std::move(s));
      continue;
    }
    // Lanes: the chosen axis of a plain group, else the innermost.
    int v = form.vector;
    if (kept.find(v) < 0 && terms.find(v) < 0) v = -1;
    if (s.held && kept.find(v) < 0) v = kept.of.empty() ? -2 : kept.of.back(); // lanes are points
    if (v == -1) v = !terms.of.empty() ? terms.of.back() : !kept.of.empty() ? kept.of.back() : -1;
    if (kept.find(v) >= 0) {
      std::rotate(s.kept.begin() + kept.find(v), s.kept.begin() + kept.find(v) + 1, s.kept.end());
      s.vector = int(s.kept.size()) - 1;
    } else if (terms.find(v) >= 0) {
      // The lanes' axis must be innermost; another order of terms needs a commutative monoid.
      const int at_ = terms.find(v);
      if (at_ + 1 == int(s.folded.size()) || n.monoid->commutative) {
        std::rotate(s.folded.begin() + at_, s.folded.begin() + at_ + 1, s.folded.end());
        s.vector = int(s.kept.size() + s.folded.size()) - 1;
      }
    }
    if (s.vector >= int(s.kept.size()) && !n.monoid->commutative) s.vector = -1;
    s.ways = n.monoid->commutative && s.vector >= int(s.kept.size()) ? f_.choice.ways : 1;
    emit(to, std::move(s));
  }
}

void Emitters::absorb(const plan::Member& m, const MemberForm& form, const ir::Domain& domain, int axis, kernel::Block& pre,
                      kernel::Block& operands, kernel::Block& body) {
  const ir::Comp& n = comp(m.node);
  ir::Graph& g = f_.g;
  kernel::Pool& p = *f_.k.pool;
  const std::vector<int>& bases = form.absorb.base;
  if (bases.empty()) {
    for (int c : form.absorb.added)
      if (const auto w = values_.find({m.node, c}); w != values_.end())
        contract({m.node, m.axis, form.contractions.at(c), ir::everywhere(), axis, pre, operands, body}, {m.node, uint32_t(c)}, w->second, true);
      else
        contract({m.node, m.axis, form.contractions.at(c), domain, axis, pre, operands, body}, {m.node, uint32_t(c)}, {}, true);
    return;
  }
  // Rows: the base's own axes. Terms: rows and folds.
  const std::vector<int> rows = n.outs[size_t(bases[0])].axes, folds = folds_of(n);
  std::vector<int> both = rows;
  both.insert(both.end(), folds.begin(), folds.end());
  std::map<int, Ref> kept_lift;  // base component -> its lift kept in a tile, when it is dear
  auto term_place = [&] { return f_.place(n, m.axis, both, "j"); };
  auto tile_over = [&](const std::string& name, const std::vector<int>& axes, const std::map<int, int64_t>& pads, Type type) {
    std::vector<int64_t> shape;
    for (int a : axes) {
      auto it = pads.find(a);
      shape.push_back(round_up(f_.extent(n, m.axis, a), it == pads.end() ? 1 : it->second));
    }
    return f_.scratch(name, shape, f_.tile_format(type));
  };
  auto local = [&](int memory, const std::vector<int>& axes, const Place& at) {
    Ref r{memory, {}, false};
    for (int a : axes) r.index.push_back({at.at[size_t(a)] - base(m.axis, a), {}});
    return r;
  };
  auto identity = [&](int b) { return n.monoid->identity[size_t(b)]; };
  const bool everywhere = domain == ir::everywhere();
  // Every term is in the block: nothing was folded before.
  const bool whole = axis < 0 && form.contractions.empty() && f_.choice.walked.empty();
  // A term's base value: its lift, or the tile that keeps it. Sets the condition under which the term exists.
  auto base_value = [&](Body& b, const Place& at, int c) {
    auto it = kept_lift.find(c);
    if (it != kept_lift.end()) return b.leaf(it->second.memory >= 0 ? local(it->second.memory, both, at) : it->second, identity(c).type);
    const expr::Present x = expr::present(g.pool, n.lift[size_t(c)]);
    return b.value(x.value);
  };
  // One condition for the whole term: the lifts' residual predicates.
  Id when = expr::yes(g.pool);
  for (Id l : n.lift) {
    const expr::Present x = expr::present(g.pool, l);
    when = expr::both(g.pool, when, x.when);
  }
  const bool predicate = when != expr::yes(g.pool);
  for (int c : bases) {
    const expr::Present x = expr::present(g.pool, n.lift[size_t(c)]);
    if (is_cheap(g.pool, x.value) && !predicate) continue;
    Place at = term_place();
    Body b = f_.body(n, at, m.axis);
    b.out.values.push_back(b.value(x.value));
    if (predicate) b.out.when = b.value(when);
    const int tile = tile_over("e", both, {}, identity(c).type);
    Apply a;
    a.axes = at.axes;
    a.bounds = at.tails;
    if (!everywhere) a.partial = b.pieces(domain);
    a.dst = {local(tile, both, at)};
    a.fill = {identity(c)};
    a.body = std::move(b.out);
    vectorize(f_.k, a, int(a.axes.size()) - 1);
    emit(body, std::move(a));
    kept_lift[c] = Ref{tile, {}, false};
  }
  // old := base; base := fold of the block's terms into it.
  std::map<int, int> old;
  for (int c : bases) {
    if (whole) break;
    Place at = f_.place(n, m.axis, rows);
    old[c] = tile_over("y", rows, {}, identity(c).type);
    Body b = f_.body(n, at, m.axis);
    b.out.values.push_back(b.leaf(f_.tile_ref({m.node, uint32_t(c)}, at), identity(c).type));
    Apply a{at.axes, at.tails, {}, {local(old[c], rows, at)}, std::move(b.out), {std::nullopt}, -1};
    vectorize(f_.k, a);
    emit(body, std::move(a));
  }
  {
    auto [kept, terms, at, s] = open_fold(f_, n, m.axis, rows, folds, "j");
    Body b = f_.body(n, at, m.axis);
    for (int c : bases) {
      b.out.values.push_back(base_value(b, at, c));
      s.identity.push_back(identity(c));
      s.dst.push_back(f_.tile_ref({m.node, uint32_t(c)}, kept));
    }
    if (!everywhere && kept_lift.size() != bases.size()) s.partial = b.pieces(domain);
    s.combine = combine_of(p, g, *n.monoid, bases);
    s.accumulate = !whole;
    s.body = std::move(b.out);
    s.vector = s.folded.empty() ? (s.kept.empty() ? -1 : int(s.kept.size()) - 1) : int(s.kept.size() + s.folded.size()) - 1;
    s.ways = f_.choice.ways;
    emit(body, std::move(s));
  }
  // act over (own base, new base): where it reads the join of both, the new base is that join.
  auto act = [&](Id a, const std::map<int, expr::Id>& own, const std::map<int, expr::Id>& now) {
    std::map<Id, Id> joins;
    for (int b : bases) joins[n.monoid->combine[size_t(b)]] = g.pool.leaf(Op::var, identity(b).type, 2 * b + 1);
    return expr::transplant(g.pool, settled_act(g.pool, expr::substitute(g.pool, a, joins), *n.monoid), p,
                            [&](const Term& t) { return (t.whole % 2 ? now : own).at(int(t.whole / 2)); });
  };
  auto new_base = [&](Body& b, const Place& at) {
    std::map<int, expr::Id> now;
    for (int c : bases) now[c] = b.leaf(f_.tile_ref({m.node, uint32_t(c)}, at), identity(c).type);
    return now;
  };
  std::map<Id, int> scale, weight;  // distinct acts -> tile over rows, tile over terms
  for (int c : form.absorb.added) {
    const Id a = form.absorb.act.at(c);
    if (whole || scale.count(a)) continue;
    Place at = f_.place(n, m.axis, rows);
    Body b = f_.body(n, at, m.axis);
    std::map<int, expr::Id> own;
    for (int x : bases) own[x] = b.leaf(local(old[x], rows, at), identity(x).type);
    const std::map<int, expr::Id> now = new_base(b, at);
    b.out.values.push_back(act(a, own, now));
    scale[a] = tile_over("a", rows, {}, Type::real);
    Apply s{at.axes, at.tails, {}, {local(scale[a], rows, at)}, std::move(b.out), {std::nullopt}, -1};
    vectorize(f_.k, s);
    emit(body, std::move(s));
  }
  auto weighted = [&](Body& b, const Place& at, Id a) {
    std::map<int, expr::Id> own;
    for (int x : bases) own[x] = base_value(b, at, x);
    const std::map<int, expr::Id> now = new_base(b, at);
    return act(a, own, now);
  };
  for (auto& [component, c] : form.contractions) {
    const Id a = form.absorb.act.at(component);
    if (weight.count(a)) continue;
    Place at = f_.place(n, m.axis, both, "j", {{c.sides.m[0], f_.choice.rows}}); // whole register blocks are read
    Body b = f_.body(n, at, m.axis);
    b.out.values.push_back(weighted(b, at, a));
    weight[a] = tile_over("e", both, {{c.sides.m[0], f_.choice.rows}, {c.sides.k.back(), f_.choice.lanes}}, Type::real);
    Apply s;
    s.axes = at.axes;
    s.bounds = at.tails;
    if (!everywhere) s.partial = b.pieces(domain);
    if (predicate && !dies_at_identity(g.pool, a, *n.monoid, bases)) b.out.when = b.value(when);
    s.dst = {local(weight[a], both, at)};
    s.fill = {expr::real(0)};
    s.body = std::move(b.out);
    vectorize(f_.k, s, int(s.axes.size()) - 1);
    emit(body, std::move(s));
  }
  for (int c : form.absorb.added) {
    const Id a = form.absorb.act.at(c);
    const Port port{m.node, uint32_t(c)};
    if (!whole) {  // what was folded so far moves to the new base
      Place at = f_.place(n, m.axis, n.outs[size_t(c)].axes);
      Body b = f_.body(n, at, m.axis);
      const expr::Id so_far = b.leaf(f_.tile_ref(port, at), Type::real), factor = b.leaf(local(scale[a], rows, at), Type::real);
      b.out.values.push_back(p.make(Op::mul, {so_far, factor}));
      Apply s{at.axes, at.tails, {}, {f_.tile_ref(port, at)}, std::move(b.out), {std::nullopt}, -1};
      vectorize(f_.k, s);
      emit(body, std::move(s));
    }
    auto it = form.contractions.find(c);
    if (it != form.contractions.end()) {
      contract({m.node, m.axis, it->second, ir::everywhere(), axis, pre, operands, body}, port, Weight{weight.at(a), both}, true);
      continue;
    }
    auto [kept, terms, at, s] = open_fold(f_, n, m.axis, n.outs[size_t(c)].axes, folds, "j");
    Body b = f_.body(n, at, m.axis);
    const expr::Id w = weight.count(a) ? b.leaf(local(weight[a], both, at), Type::real) : weighted(b, at, a);
    const expr::Id lift = b.value(expr::present(g.pool, n.lift[size_t(c)]).value);
    const bool one = p[lift].op == Op::literal && p[lift].r == 1;
    b.out.values.push_back(one ? w : p.make(Op::mul, {w, lift}));
    // Dead terms have weight 0 in the tile, which is enough where nothing is multiplied by it; else they are skipped.
    const bool weights = weight.count(a) && one;
    if (!weights && !everywhere) s.partial = b.pieces(domain);
    if (!weights && predicate) b.out.when = b.value(when);
    s.dst = {f_.tile_ref(port, kept)};
    s.identity = {expr::real(0)};
    s.combine = {p.make(Op::add, {p.leaf(Op::var, Type::real, 0), p.leaf(Op::var, Type::real, 1)})};
    s.accumulate = !whole;
    s.body = std::move(b.out);
    s.vector = s.folded.empty() ? (s.kept.empty() ? -1 : int(s.kept.size()) - 1) : int(s.kept.size() + s.folded.size()) - 1;
    s.ways = f_.choice.ways;
    emit(body, std::move(s));
  }
}

void Emitters::map(const plan::Member& m, bool keep_tile, kernel::Block& to) {
  const ir::Comp& n = comp(m.node);
  const Port port{m.node, 0};
  Place at = f_.place(n, m.axis, point_axes(n));
  Apply a;
  a.axes = at.axes;
  a.bounds = at.tails;
  Body b = f_.body(n, at, m.axis);
  const plan::Buffer* buffer = f_.plan.buffer(port);
  Id lift = n.lift[0];
  const bool masked = buffer && buffer->masked && !keep_tile;  // a tile holds all points
  if (masked) {  // only the points that the select's condition names are stored
    const Term condition = f_.g.pool[buffer->when];
    if (condition.op == Op::holds && n.guards[size_t(condition.whole)].size() == 1) {
      for (auto& f : n.guards[size_t(condition.whole)][0]) a.bounds.push_back(b.coordinate(f));
    } else if (const auto bounds = as_bounds(f_.g, buffer->when)) {
      for (auto& f : *bounds) a.bounds.push_back(b.coordinate(f));
    } else {
      b.out.when = b.value(buffer->when);
    }
    b.out.values.push_back(b.value(expr::present(f_.g.pool, lift).value));
  } else {
    if (n.domain.size() == 1) b.assume(n.domain[0]);
    b.add({lift});
  }
  const Type type = f_.g.type(port);
  const bool may_be_absent = n.domain != ir::everywhere() || b.out.when;
  const std::optional<Value> fill = may_be_absent && !masked ? std::optional(Value{type, expr::State::present, 0, 0}) : std::nullopt;
  // The fill goes where the domain fails, never beyond a ragged edge: there it is written first, in a pass of its own.
  const bool filled_first = fill && !a.bounds.empty();
  if (filled_first) {
    Apply clear;
    clear.axes = at.axes;
    clear.bounds = at.tails;
    clear.body.values = {f_.k.pool->literal(*fill)};
    clear.fill = {std::nullopt};
    if (buffer) clear.dst = {f_.global_ref(port, n, at, true)};
    if (buffer) {
      vectorize(f_.k, clear, int(clear.axes.size()) - 1);
      emit(to, std::move(clear));
    }
  }
  if (n.domain.size() == 1)
    for (auto& f : n.domain[0]) a.bounds.push_back(b.coordinate(f));
  else a.partial = b.pieces(n.domain);
  const expr::Id value = b.out.values[0];
  if (buffer) {
    a.dst.push_back(f_.global_ref(port, n, at, true));
    a.fill.push_back(filled_first ? std::nullopt : fill);
  }
  if (keep_tile || !buffer) {
    f_.tile_for(port, m.axis, "v");
    if (buffer) b.out.values.push_back(value);
    a.dst.push_back(f_.tile_ref(port, at));
    a.fill.push_back(fill);
  }
  a.body = std::move(b.out);
  vectorize(f_.k, a, int(a.axes.size()) - 1);
  emit(to, std::move(a));
}

}  // namespace tang::lower
