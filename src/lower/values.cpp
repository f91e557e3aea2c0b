// Joint groups: what several members read of one block is evaluated once, and results that are added to from several blocks.
#include <algorithm>
#include <numeric>

#include "tang/expr/absence.hpp"
#include "tang/expr/order.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/lower/emitters.hpp"
#include "tang/lower/joint.hpp"

namespace tang::lower {

using expr::Op;
using ir::Id;
using kernel::Apply;
using kernel::constant;
using kernel::Fold;
using kernel::variable;
using kernel::Var;

namespace {

bool reads_tile(Frame& f, const ir::Comp& n, Id e) {
  for (Id t : expr::subterms(f.g.pool, e, Op::arg))
    if (f.has_tile(n.args[size_t(f.g.pool[t].whole)].from)) return true;
  return false;
}
}  // namespace

Ref Emitters::result(Port p, const ir::Comp& n, const Place& at) {
  return f_.has_tile(p) ? f_.tile_ref(p, at) : f_.result_ref(p, n, at);
}

Ref Emitters::read_at(const Site& s, const std::vector<int>& factors, const Place& at) {
  Body b = f_.body(comp(s.node), at, s.core);
  return b.out.refs[size_t(b.ref(int(f_.g.pool[s.c.factors[size_t(factors[0])]].whole)))];
}
bool Emitters::lies(const Site& s, const std::vector<int>& factors, int side_axis, int64_t far) {
  const ir::Comp& n = comp(s.node);
  if (factors.size() != 1 || factors[0] < 0) return false;
  const expr::Term& t = f_.g.pool[s.c.factors[size_t(factors[0])]];
  if (t.op != Op::arg) return false;
  const ir::Arg& a = n.args[size_t(t.whole)];
  for (auto& v : a.view)
    if (!v.args.empty()) return false;
  std::vector<int> all(size_t(n.axis_count()));
  std::iota(all.begin(), all.end(), 0);
  const Place at = f_.place(n, s.core, all);
  Body probe = f_.body(n, at, s.core);
  if (!masks(s, probe, side_axis).empty()) return false;
  const Ref r = read_at(s, factors, at);
  if (r.checked || f_.k.memories[size_t(r.memory)].format != f_.k.compute) return false;
  auto stride = [&](int axis) {
    const int x = at.find(axis);
    return x < 0 ? 0 : std::abs(stride_along(f_.k, r, at.axes[size_t(x)].var));
  };
  int wide_terms = 0;
  bool ragged = false;
  for (int k : s.c.sides.k) {
    const int64_t e = f_.extent(n, s.core, k);
    wide_terms += e != 1;
    ragged |= e > 0 && n.extent(k).value() % e != 0;
  }
  if (wide_terms > 1 && ragged) return false;  // only one axis of terms can end early
  const bool is_column = side_axis == s.c.sides.n[0];
  for (int x : is_column ? s.c.outer_n : s.c.outer_m) { // and one axis of points
    const int64_t e = f_.extent(n, s.core, x);
    if (e != 1 && n.extent(side_axis).value() % f_.extent(n, s.core, side_axis)) return false;
    if (e > 0 && n.extent(x).value() % e) return false; // beside the blocked one nothing ends early
  }
  if (is_column && stride(side_axis) != 1) return false;
  int64_t row = is_column ? 0 : stride(side_axis);
  for (int k : s.c.sides.k) row = std::max(row, stride(k));
  return row < far;
}

// The node at a point of the block, given by variables along core axes.
Place Emitters::place(const plan::Member& m, const std::map<int, Var>& along) const {
  Place p;
  for (int core : m.axis) {
    p.at.push_back(core < 0 ? constant(0) : variable(f_.block[size_t(core)]));
    if (auto v = along.find(core); v != along.end()) p.at.back() = p.at.back() + variable(v->second);
  }
  return p;
}
namespace {
std::vector<kernel::Bounds> tests(Body& b, const ir::Domain& d) { return d == ir::everywhere() ? std::vector<kernel::Bounds>{} : b.pieces(d); }
}  // namespace

// Do all members live at the same points of the core axes, a conjunction?
bool Emitters::one_domain(const std::vector<plan::Member>& members, const std::vector<std::optional<Key>>& keys) {
  std::map<int, Var> along;
  for (size_t c = 0; c < f_.group.extent.size(); ++c)
    if (f_.tile(int(c)) != 1) along[int(c)] = f_.k.fresh("x");
  std::optional<std::vector<kernel::Bounds>> first;
  for (size_t k = 0; k < members.size(); ++k) {
    const plan::Member& m = members[k];
    const ir::Comp& n = comp(m.node);
    const ir::Domain& domain = keys[k] ? keys[k]->domain : n.domain;
    if (domain.size() > 1) return false;
    for (auto& piece : domain)
      for (auto& f : piece)
        for (int a : axes_of(n, f))
          if (m.axis[size_t(a)] < 0) return false;
    Body b = f_.body(n, place(m, along), m.axis);
    const std::vector<kernel::Bounds> mine = tests(b, domain);
    for (auto& piece : mine)
      for (auto& c : piece)
        if (!c.refs.empty()) return false;
    if (first && !same_pieces(*first, mine)) return false;
    first = mine;
  }
  return true;
}

// Has the member every wide axis of the block, in whole register blocks of its rows? In a joint group it has. What a base
// scales has a tile of its own.
bool Emitters::fills_block(const plan::Member& m, const MemberForm& form) const {
  if (!f_.choice.walked.empty()) return true;
  if (!form.absorb.base.empty()) return false;
  for (size_t c = 0; c < f_.group.extent.size(); ++c)
    if (f_.tile(int(c)) != 1 && std::find(m.axis.begin(), m.axis.end(), int(c)) == m.axis.end()) return false;
  return std::all_of(form.contractions.begin(), form.contractions.end(), [&](auto& c) {
    const int row = m.axis[size_t(c.second.sides.m[0])];
    return row >= 0 && f_.tile(row) % f_.choice.rows == 0;
  });
}

// Tiles of the products that lie on core axes alone: each an array [rows, columns] of the block, 0 where the domain fails.
void Emitters::values(const std::vector<plan::Member>& members, const std::vector<MemberForm>& forms,
                      const std::vector<const ir::Domain*>& domains, kernel::Block& body) {
  struct Wanted {
    size_t member;
    int component;
    std::vector<Id> product;
    Id when;
  };
  std::vector<Wanted> wanted;
  for (size_t m = 0; m < members.size(); ++m) {
    const ir::Comp& n = comp(members[m].node);
    if (!fills_block(members[m], forms[m])) continue;
    auto on_core = [&](const std::vector<Id>& product) {
      bool core = true, tile = false;
      for (Id e : product) {
        tile |= reads_tile(f_, n, e);
        for (int a : axes_of(f_.g, n, e)) core &= members[m].axis[size_t(a)] >= 0;
      }
      return core && tile;
    };
    // A bound of another axis masks the other side, which has no tile here.
    bool pieces_on_core = true;
    for (auto& piece : *domains[m])
      for (auto& f : piece)
        for (int a : axes_of(n, f)) pieces_on_core &= members[m].axis[size_t(a)] >= 0;
    for (auto& [component, c] : forms[m].contractions) {
      std::vector<Id> product;
      for (int x : c.sides.a) product.push_back(c.factors[size_t(x)]);
      if (pieces_on_core && on_core(product)) wanted.push_back({m, component, product, expr::present(f_.g.pool, n.lift[size_t(component)]).when});
    }
    // Dead terms lie in the tile as 0: the identity of a sum alone.
    if (forms[m].kind != MemberForm::fold || n.lift.size() != 1 || !ir::is_plain(f_.g.pool, *n.monoid, Op::add) ||
        n.monoid->identity[0].type != expr::Type::real)
      continue;
    const expr::Present lift = expr::present(f_.g.pool, n.lift[0]);
    for (int a : axes_of(f_.g, n, lift.when)) pieces_on_core &= members[m].axis[size_t(a)] >= 0;
    if (pieces_on_core && on_core({lift.value})) wanted.push_back({m, 0, {lift.value}, lift.when});
  }
  // One statement for all that have one domain.
  std::vector<char> done(wanted.size(), 0);
  for (size_t first = 0; first < wanted.size(); ++first) {
    if (done[first]) continue;
    const plan::Member& one = members[wanted[first].member];
    // The statement's axes: core axes that are wide in a block, those along vectors last.
    std::map<int, Var> var;
    Apply a;
    std::vector<int> cores;
    for (size_t c = 0; c < f_.group.extent.size(); ++c)
      if (f_.tile(int(c)) != 1) cores.push_back(int(c));
    std::stable_partition(cores.begin(), cores.end(), [&](int c) { return !f_.choice.walks(c); });
    for (int c : cores) {
      var[c] = f_.k.fresh("x");
      a.axes.push_back({var[c], f_.tile(c)});
      const int64_t whole = f_.group.extent[size_t(c)];
      if (whole % f_.tile(c)) a.bounds.push_back({constant(whole - 1) - variable(f_.block[size_t(c)]) - variable(var[c]), {}});
    }
    auto condition = [&](size_t w, Body& b) {
      return wanted[w].when == expr::yes(f_.g.pool) ? std::optional<expr::Id>() : b.value(wanted[w].when);
    };
    auto domain_of = [&](size_t w, Body& b) { return tests(b, *domains[wanted[w].member]); };
    kernel::Body merged;
    {
      Body b = f_.body(comp(one.node), place(one, var), one.axis);
      a.partial = domain_of(first, b);
      b.out.when = condition(first, b);
      merged = std::move(b.out);
    }
    std::vector<expr::Id> values;                  // distinct
    std::vector<std::pair<size_t, size_t>> takers; // wanted, value
    for (size_t w = first; w < wanted.size(); ++w) {
      if (done[w]) continue;
      const plan::Member& m = members[wanted[w].member];
      const Place at = place(m, var);
      Body b = f_.body(comp(m.node), at, m.axis);
      b.out = merged;
      if (domains[wanted[w].member]->size() == 1) b.assume((*domains[wanted[w].member])[0]);
      if (!same_pieces(a.partial, domain_of(w, b)) || b.out.when != condition(w, b)) continue;
      done[w] = 1;
      // Members write one value in different orders, whose tile is one all the same.
      const expr::Id value = expr::ordered(*f_.k.pool, b.value(expr::product(f_.g.pool, wanted[w].product)));
      const auto known = std::find(values.begin(), values.end(), value);
      takers.emplace_back(w, size_t(known - values.begin()));
      if (known == values.end()) values.push_back(value), b.out.values.push_back(value);
      merged = std::move(b.out);
    }
    const bool all = takers.size() == wanted.size() && wanted.size() == components(members);
    std::vector<Tile> tiles = all ? spent_tiles(merged, var, values.size()) : std::vector<Tile>();
    for (size_t x = tiles.size(); x < values.size(); ++x) {
      const Wanted& w = wanted[std::find_if(takers.begin(), takers.end(), [&](auto& t) { return t.second == x; })->first];
      tiles.push_back(value_tile(std::to_string(w.member) + ":" + std::to_string(w.component), cores, var));
    }
    for (auto& t : tiles) {
      a.dst.push_back(t.ref);
      a.fill.push_back(a.bounds.empty() && a.partial.empty() && !merged.when ? std::optional<expr::Value>() : expr::real(0));
    }
    for (auto& [w, x] : takers) {
      const plan::Member& m = members[wanted[w].member];
      Weight weight{tiles[x].ref.memory, {}};
      for (int c : tiles[x].cores) weight.axes.push_back(int(std::find(m.axis.begin(), m.axis.end(), c) - m.axis.begin()));
      values_[{m.node, wanted[w].component}] = weight;
    }
    a.body = std::move(merged);
    vectorize(f_.k, a, int(a.axes.size()) - 1);
    emit(body, std::move(a));
  }
}

size_t Emitters::components(const std::vector<plan::Member>& members) const {
  size_t n = 0;
  for (auto& m : members) n += comp(m.node).lift.size();
  return n;
}

// A tile of its own for a value at these variables, the same one for every block of the kernel.
Emitters::Tile Emitters::value_tile(const std::string& name, const std::vector<int>& cores, const std::map<int, Var>& var) {
  std::vector<int64_t> shape;
  for (int c : cores) shape.push_back(f_.tile(c));
  auto tile = value_tiles_.find(name);
  if (tile == value_tiles_.end()) tile = value_tiles_.emplace(name, f_.scratch("e", shape)).first;
  Tile out{{tile->second, {}, false}, cores};
  for (int c : cores) out.ref.index.push_back({variable(var.at(c)), {}});
  return out;
}

// Tiles of shared subterms that a statement over all of a block is the last to read, each point at its own place: values may
// take their places. At most `most`; none in a joint group, whose tiles have the layout that its lanes want.
std::vector<Emitters::Tile> Emitters::spent_tiles(const kernel::Body& body, const std::map<int, Var>& var, size_t most) const {
  std::vector<Tile> out;
  if (!f_.choice.walked.empty()) return out;
  for (auto& x : f_.group.shared) {
    const ir::Out& o = comp(x.node).outs[0];
    Tile t{{-1, {}, false}, {}};
    for (int a : o.axes) t.cores.push_back(x.axis[size_t(a)]);
    int reads = 0;
    for (auto& r : body.refs)
      if (r.memory == f_.tile_memory({x.node, 0})) t.ref = r, ++reads;
    std::set<int> named;
    bool own = reads == 1 && t.ref.index.size() == t.cores.size();
    for (size_t d = 0; own && d < t.cores.size(); ++d) {
      const int c = t.cores[d];
      own = c >= 0 && t.ref.index[d].refs.empty() && (!var.count(c) || t.ref.index[d].affine == variable(var.at(c)));
      if (var.count(c)) named.insert(c);
    }
    if (own && named.size() == var.size() && out.size() < most) out.push_back(std::move(t));
  }
  return out;
}

// A sum of a value that lies in a tile; without blocks there is nothing to add to.
void Emitters::fold_value(const plan::Member& m, bool accumulate, kernel::Block& to) {
  const ir::Comp& n = comp(m.node);
  const Weight& w = values_.at({m.node, 0});
  Place kept = f_.place(n, m.axis, n.outs[0].axes), terms = f_.place(n, m.axis, folds_of(n), "r"), at = kept;
  for (int a : folds_of(n)) at.at[size_t(a)] = terms.at[size_t(a)];
  Fold s;
  s.kept = kept.axes;
  s.folded = terms.axes;
  s.bounds = kept.tails;
  Ref r{w.memory, {}, false};
  for (int a : w.axes) r.index.push_back({at.at[size_t(a)] - base(m.axis, a), {}});
  s.body.refs = {r};
  s.body.values = {f_.k.pool->leaf(Op::arg, expr::Type::real, 0)};
  s.dst = {result({m.node, 0}, n, kept)};
  s.identity = {n.monoid->identity[0]};
  expr::Pool& p = *f_.k.pool;
  s.combine = {p.make(Op::add, {p.leaf(Op::var, expr::Type::real, 0), p.leaf(Op::var, expr::Type::real, 1)})};
  s.accumulate = accumulate;
  auto contiguous = [&](const std::vector<kernel::TileAxis>& axes) {
    for (size_t x = 0; x < axes.size(); ++x)
      if (stride_along(f_.k, r, axes[x].var) == 1) return int(x);
    return -1;
  };
  if (const int k = contiguous(s.kept); k >= 0) {
    std::rotate(s.kept.begin() + k, s.kept.begin() + k + 1, s.kept.end());
    s.vector = int(s.kept.size()) - 1;
  } else if (const int x = contiguous(s.folded); x >= 0) {
    std::rotate(s.folded.begin() + x, s.folded.begin() + x + 1, s.folded.end());
    s.vector = int(s.kept.size() + s.folded.size()) - 1;
    s.ways = f_.choice.ways;
  }
  emit(to, std::move(s));
}

// All of the result that the loops outside `inside` leave open.
void Emitters::start_result(const plan::Member& m, const std::vector<int>& inside, kernel::Block& to) {
  const ir::Comp& n = comp(m.node);
  for (uint32_t c = 0; c < n.lift.size(); ++c) {
    const Port port{m.node, c};
    Place at;
    at.at.resize(size_t(n.axis_count()));
    Apply a;
    for (int x : n.outs[c].axes) {
      const int core = m.axis[size_t(x)];
      const bool fixed = core >= 0 && std::find(inside.begin(), inside.end(), core) == inside.end();
      const int64_t whole = n.extent(x).value(), e = fixed && whole ? f_.tile(core) : whole;
      if (fixed) at.at[size_t(x)] = variable(f_.block[size_t(core)]);
      if (e == 1) continue;
      const Var v = f_.k.fresh("z");
      a.axes.push_back({v, e});
      at.at[size_t(x)] = at.at[size_t(x)] + variable(v);
      if (e && whole % e) a.bounds.push_back({constant(whole - 1) - at.at[size_t(x)], {}}); // no element: no point
    }
    a.dst = {f_.result_ref(port, n, at)};
    a.body.values = {f_.k.pool->literal(n.monoid->identity[c])};
    a.fill = {std::nullopt};
    vectorize(f_.k, a);
    emit(to, std::move(a));
  }
}

// A product adds along its columns: they must be neighbours in the array that it adds to.
bool Emitters::adds_where_stored(const plan::Member& m, const MemberForm& form) const {
  const ir::Comp& n = comp(m.node);
  return std::all_of(form.contractions.begin(), form.contractions.end(), [&](auto& c) {
    return stride_in_result(f_.g, {m.node, uint32_t(c.first)}, n, c.second.sides.n[0]) == 1;
  });
}

void Emitters::partial_results(const plan::Member& m, const MemberForm& form) {
  const ir::Comp& n = comp(m.node);
  for (uint32_t c = 0; c < n.lift.size(); ++c) {
    const Port port{m.node, c};
    if (!f_.plan.buffer(port)) continue;
    kernel::Memory memory;
    memory.shape = {f_.choice.parts};
    for (int x : n.outs[c].axes) memory.shape.push_back(n.extent(x).value());
    memory.format = f_.k.compute;
    memory.strides = kernel::row_major(memory.shape);
    if (const auto it = form.contractions.find(int(c)); it != form.contractions.end()) {
      const auto& axes = n.outs[c].axes;
      const auto column = std::find(axes.begin(), axes.end(), it->second.sides.n[0]);
      memory.strides = innermost(memory.shape, size_t(1 + (column - axes.begin())));
    }
    const int id = int(temporaries_.size());
    temporaries_.push_back(memory.size() * expr::row(memory.format).bits / 8 + 64);
    f_.partial(port, f_.temporary(id, memory, true));
    after.push_back(join(port, id, memory));
  }
}
// port[point] = the sum of its parts, in order.
Lowered Emitters::join(Port port, int temporary, const kernel::Memory& parts) {
  constexpr int64_t elements = 8192;  // of a workgroup
  const ir::Comp& n = comp(port.node);
  plan::Group group;
  Choice choice;
  std::vector<int> core(size_t(n.axis_count()), -1);
  int64_t room = elements;
  std::vector<int64_t> tiles;
  const std::vector<int>& axes = n.outs[port.port].axes;
  for (size_t d = axes.size(); d-- > 0;) {  // whole inner dimensions
    const int64_t e = std::max<int64_t>(1, n.extent(axes[d]).value());
    tiles.insert(tiles.begin(), std::min(e, std::max<int64_t>(1, room)));
    room /= tiles.front();
  }
  for (size_t d = 0; d < axes.size(); ++d) {
    core[size_t(axes[d])] = int(d);
    group.extent.push_back(n.extent(axes[d]).value());
  }
  group.role.assign(group.extent.size(), plan::Role::grid);
  choice.tile = tiles;
  Frame frame(f_.g, f_.plan, f_.around, group, choice, f_.target);
  Place kept = frame.place(n, core, axes);
  Fold s;
  s.kept = kept.axes;
  s.bounds = kept.tails;
  const Var p = frame.k.fresh("p");
  s.folded = {{p, parts.shape[0]}};
  s.dst = {frame.global_ref(port, n, kept, true)};
  Ref r{frame.temporary(temporary, parts, false), {{variable(p), {}}}, false};
  for (int a : axes) r.index.push_back({kept.at[size_t(a)], {}});
  expr::Pool& pool = *frame.k.pool;
  s.body.refs = {r};
  s.body.values = {pool.leaf(Op::arg, expr::Type::real, 0)};
  s.identity = {expr::real(0)};
  s.combine = {pool.make(Op::add, {pool.leaf(Op::var, expr::Type::real, 0), pool.leaf(Op::var, expr::Type::real, 1)})};
  s.vector = s.kept.empty() ? -1 : int(s.kept.size()) - 1;
  emit(frame.k.body, std::move(s));
  return finished(frame, "join " + std::to_string(parts.shape[0]) + " parts");
}

}  // namespace tang::lower
