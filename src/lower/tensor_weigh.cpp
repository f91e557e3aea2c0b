#include <algorithm>

#include "tang/expr/absence.hpp"
#include "tang/expr/effort.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/lower/tensor_lowerer.hpp"

// Sums whose weights are functions of the block's contractions: evaluated on the fragments, then the rows'
// operand of each sum.
namespace tang::lower {

using expr::Op;
using expr::Type;
using kernel::Apply;
using kernel::Bounds;
using kernel::constant;
using kernel::variable;

namespace {
// The reads of `ids`, through guards and gathers.
std::set<int> reads_of(const expr::Pool& p, const kernel::Body& all, const std::vector<expr::Id>& ids,
                       const std::vector<Bounds>& partial) {
  std::set<int> out;
  std::function<void(const Coordinate&)> look = [&](const Coordinate& c) {
    for (auto& [r, k] : c.refs) {
      out.insert(r);
      for (auto& inner : all.refs[size_t(r)].index) look(inner);
    }
  };
  auto bounds = [&](const std::vector<Bounds>& pieces) {
    for (auto& piece : pieces)
      for (auto& c : piece) look(c);
  };
  bounds(partial);
  for (expr::Id id : expr::schedule(p, ids)) {
    const expr::Term& t = p[id];
    if (t.op == Op::holds) bounds(all.guards[size_t(t.whole)]);
    if (t.op != Op::arg) continue;
    out.insert(int(t.whole));
    for (auto& c : all.refs[size_t(t.whole)].index) look(c);
  }
  return out;
}
} // namespace

namespace {
bool is_dear(const expr::Pool& p, expr::Id id) {
  return p[id].op == Op::exp2 || expr::effort(p[id].op) > expr::effort(Op::mul);
}

// Something dear that reads one of the leaves stands in more than one of the roots.
bool share_dear(const expr::Pool& p, const std::vector<expr::Id>& roots, const std::vector<expr::Id>& leaves) {
  std::map<expr::Id, int> in;
  for (expr::Id root : roots) {
    std::set<expr::Id> reads(leaves.begin(), leaves.end());
    for (expr::Id id : expr::schedule(p, {root}))
      for (int i = 0; i < p[id].arity(); ++i)
        if (reads.count(p[id].args[size_t(i)])) reads.insert(id);
    for (expr::Id id : reads)
      if (p[id].arity() && is_dear(p, id) && ++in[id] > 1) return true;
  }
  return false;
}
} // namespace

// The statement's body with the reads that it has.
kernel::Body TensorLowerer::trimmed(const kernel::Body& all, const std::vector<expr::Id>& values,
                                    std::optional<expr::Id> when, std::vector<Bounds>& partial) const {
  kernel::Pool& p = *f_.k.pool;
  std::vector<expr::Id> roots = values;
  if (when) roots.push_back(*when);
  kernel::Body out;
  std::map<int, int> now;
  for (int r : reads_of(p, all, roots, partial)) {
    now[r] = int(out.refs.size());
    out.refs.push_back(all.refs[size_t(r)]);
  }
  auto renumber = [&](Coordinate& c) {
    for (auto& x : c.refs) x.first = now.at(x.first);
  };
  for (auto& r : out.refs)
    for (auto& c : r.index) renumber(c);
  for (auto& piece : partial)
    for (auto& c : piece) renumber(c);
  std::map<expr::Id, expr::Id> to;
  for (expr::Id id : expr::schedule(p, roots)) {
    const expr::Term t = p[id];
    if (t.op == Op::arg) to[id] = p.leaf(Op::arg, t.type, now.at(int(t.whole)));
    if (t.op != Op::holds) continue;
    to[id] = p.leaf(Op::holds, t.type, int64_t(out.guards.size()));
    out.guards.push_back(all.guards[size_t(t.whole)]);
    for (auto& piece : out.guards.back())
      for (auto& c : piece) renumber(c);
  }
  for (expr::Id value : values) out.values.push_back(expr::substitute(p, value, to));
  if (when) out.when = expr::substitute(p, *when, to);
  return out;
}

// The term nearest to the roots through which all of them read `leaf`, if it reads nothing of `others` and
// is used more than once.
std::optional<expr::Id> TensorLowerer::common_term(const std::vector<expr::Id>& roots, expr::Id leaf,
                                                   const std::set<expr::Id>& others) const {
  const kernel::Pool& p = *f_.k.pool;
  const std::vector<expr::Id> order = expr::schedule(p, roots);
  auto reaches = [&](const std::set<expr::Id>& of, std::optional<expr::Id> without) {
    std::set<expr::Id> out = of;
    for (expr::Id id : order)
      for (int i = 0; i < p[id].arity() && id != without; ++i)
        if (out.count(p[id].args[size_t(i)])) out.insert(id);
    return out;
  };
  const std::set<expr::Id> all = reaches({leaf}, {}), foreign = reaches(others, {});
  std::optional<expr::Id> out;
  bool dear = false; // something costs more than to read it again
  for (expr::Id id : order) {
    if (!all.count(id) || id == leaf || foreign.count(id)) continue;
    dear |= is_dear(p, id);
    const std::set<expr::Id> past = reaches({leaf}, id);
    size_t uses = size_t(std::count(roots.begin(), roots.end(), id));
    bool all_through =
        std::none_of(roots.begin(), roots.end(), [&](expr::Id r) { return r != id && past.count(r); });
    for (expr::Id x : order)
      for (int i = 0; i < p[x].arity(); ++i) uses += p[x].args[size_t(i)] == id;
    if (all_through && uses > 1 && dear && p[id].type == Type::real) out = id;
  }
  return out;
}

// Operands of commutative operations in one order, so that equal terms are one.
expr::Id TensorLowerer::ordered(expr::Id root) {
  kernel::Pool& p = *f_.k.pool;
  std::map<expr::Id, expr::Id> now;
  for (expr::Id id : expr::schedule(p, {root})) {
    const expr::Term t = p[id];
    std::vector<expr::Id> args;
    for (int i = 0; i < t.arity(); ++i) args.push_back(now.at(t.args[size_t(i)]));
    const bool commutes = t.op == Op::add || t.op == Op::mul || t.op == Op::max || t.op == Op::min;
    if (commutes && args[1] < args[0]) std::swap(args[0], args[1]);
    now[id] = args.empty() ? id : p.make(t.op, args);
  }
  return now.at(root);
}

// What a statement over (x rows, y terms) reads of globals: numbers a row become fragments before the loop,
// numbers a term vectors that are staged with the operands.
void TensorLowerer::bring_near(Ref& r, kernel::Var x, kernel::Var y) {
  const kernel::Memory& m = f_.k.memories[size_t(r.memory)];
  if (m.home != kernel::Home::global) return;
  bool row = false, term = false, gathers = false, moves = false;
  for (auto& c : r.index) {
    row |= coefficient(c.affine, x) != 0, term |= coefficient(c.affine, y) != 0;
    gathers |= !c.refs.empty();
    for (int o : tensor_.outer) moves |= coefficient(c.affine, f_.block[size_t(o)]) != 0;
  }
  moves |= reads_loop(r);
  const bool ragged_rows = group_.extent[size_t(tensor_.rows)] % f_.tile(tensor_.rows);
  const bool ragged_terms = group_.extent[size_t(tensor_.loop)] % f_.tile(tensor_.loop);
  r.checked |= (row && ragged_rows) || (term && ragged_terms);
  const Type type = expr::type_of(m.format);
  if (gathers || row == term || (row && (moves || type != Type::real))) return;
  const int64_t n = f_.tile(row ? tensor_.rows : tensor_.loop);
  if (term) {
    const size_t last = m.shape.size() - 1;
    bool window = m.shape.size() <= 5 && expr::row(m.format).bits == 32 && n % 4 == 0 && n <= 256;
    for (size_t d = 0; d < r.index.size(); ++d)
      window &= (coefficient(r.index[d].affine, y) != 0) == (d == last) &&
                (d == last || m.shape[d] == 1 || m.strides[d] % 4 == 0);
    if (!window || coefficient(r.index[last].affine, y) != 1 || m.strides[last] != 1) return;
  }
  const kernel::Var v = f_.k.fresh(row ? "x" : "y");
  Apply copy;
  copy.axes = {{v, n}};
  copy.fill = {std::nullopt};
  copy.body.values = {f_.k.pool->leaf(Op::arg, type, 0)};
  Ref from = r;
  for (auto& c : from.index)
    if (const int64_t k = coefficient(c.affine, row ? x : y))
      c.affine = c.affine - variable(row ? x : y, k) + variable(v, k);
  from.checked |= row ? ragged_rows : ragged_terms;
  copy.body.refs = {from};
  const kernel::Format format = m.format;
  const int memory = row ? fragment("y", {n}) : f_.scratch("w", {n}, format);
  if (!row) f_.k.memories[size_t(memory)].home = kernel::Home::shared;
  copy.dst = {Ref{memory, {{variable(v), {}}}, false}};
  (row ? starts_ : pipe_.operands).push_back({std::move(copy)});
  r = Ref{memory, {{variable(row ? x : y), {}}}, false};
}

No TensorLowerer::weigh() {
  kernel::Pool& p = *f_.k.pool;
  const std::vector<kernel::TileAxis> axes{{f_.k.fresh("x"), f_.tile(tensor_.rows)},
                                           {f_.k.fresh("y"), f_.tile(tensor_.loop)}};

  struct Weight {
    size_t member;
    const Contraction* of;
    expr::Id value;
    size_t tiles; // that it reads
  };

  std::vector<Weight> weights;
  kernel::Body all;
  std::optional<expr::Id> when;
  std::vector<Bounds> partial;
  const size_t stay = group_.members.size();
  for (size_t i = 0; i < stay + added_.size(); ++i) {
    const plan::Member& m = i < stay ? group_.members[i] : added_[i - stay].member;
    const ir::Comp& n = comp(m.node);
    const Contraction& c = i < stay ? choice_.members[i].contractions.begin()->second : added_[i - stay].form;
    Place at;
    for (int core : m.axis)
      at.at.push_back((core < 0 ? constant(0) : variable(f_.block[size_t(core)])) +
                      (core == tensor_.rows   ? variable(axes[0].var)
                       : core == tensor_.loop ? variable(axes[1].var)
                                              : constant(0)));
    Body b = f_.body(n, at, m.axis);
    b.out = all;
    std::vector<ir::Id> factors;
    for (int x : c.sides.a) factors.push_back(c.factors[size_t(x)]);
    weights.push_back({i, &c, ordered(b.value(expr::product(g_.pool, factors))), 0});
    const ir::Id exists = expr::present(g_.pool, n.lift[0]).when;
    const std::optional<expr::Id> mine =
        exists == expr::yes(g_.pool) ? std::nullopt : std::optional(b.value(exists));
    const ir::Domain domain = ragged(n, n.domain, m.axis);
    const std::vector<Bounds> pieces = domain == ir::everywhere() ? std::vector<Bounds>{} : b.pieces(domain);
    if (i == 0) when = mine, partial = pieces;
    if (when != mine || !same_pieces(partial, pieces)) return "its results live at different points";
    all = std::move(b.out);
  }
  for (size_t i = 0; i < added_.size(); ++i) {
    const auto same = std::find_if(weights.begin(), weights.begin() + int64_t(stay),
                                   [&](auto& w) { return w.value == weights[stay + i].value; });
    if (same == weights.begin() + int64_t(stay)) return "what a result adds up is weighed in no other sum";
    added_[i].with = group_.members[same->member].node;
    if (No no = place_sums(added_[i])) return no;
  }
  weights.resize(stay, weights[0]);
  std::vector<expr::Id> leaves; // of the tiles
  std::set<expr::Id> roots_of;
  for (size_t r = 0; r < all.refs.size(); ++r)
    if (f_.k.memories[size_t(all.refs[r].memory)].home == kernel::Home::fragment)
      leaves.push_back(p.leaf(Op::arg, Type::real, int64_t(r)));
  for (auto& w : weights) {
    const std::vector<expr::Id> own = expr::schedule(p, {w.value});
    for (expr::Id l : leaves) w.tiles += size_t(std::count(own.begin(), own.end(), l));
    if (!w.tiles) return "a weight reads no contraction";
  }
  std::stable_sort(weights.begin(), weights.end(), [](auto& a, auto& b) { return a.tiles < b.tiles; });
  for (auto& r : all.refs) bring_near(r, axes[0].var, axes[1].var);
  auto set = [&](const std::vector<expr::Id>& values, bool masked, std::vector<Ref> dst) {
    Apply a;
    a.axes = axes;
    if (masked) a.partial = partial;
    a.body = trimmed(all, values, masked ? when : std::nullopt, a.partial);
    a.fill.assign(dst.size(), masked && (when || !partial.empty()) ? std::optional(expr::real(0)) : std::nullopt);
    a.dst = std::move(dst);
    pipe_.body.push_back({std::move(a)});
  };
  auto values = [&] {
    std::vector<expr::Id> out;
    for (auto& w : weights) out.push_back(w.value);
    return out;
  };
  for (expr::Id l : leaves) { // what several weights make of a tile alone is made once, in its place
    std::set<expr::Id> others(leaves.begin(), leaves.end());
    others.erase(l);
    const auto term = common_term(values(), l, others);
    if (!term) continue;
    set({*term}, false, {all.refs[size_t(p[l].whole)]});
    for (auto& w : weights) w.value = expr::substitute(p, w.value, {{*term, l}});
  }
  std::vector<int> tiles;
  for (size_t i = 0; i < weights.size(); ++i) // pieces are made of the values
    tiles.push_back(fragment(tensor_.pieces ? "v" : "p", {axes[0].extent, axes[1].extent},
                             tensor_.pieces ? kernel::Format::f32 : tensor_.format));
  // What is dear in several weights, or a test of integers at the loop's places, is evaluated once if they are
  // made together; else the first product begins before the others' weights are made.
  bool together = weights.size() > 1 && share_dear(p, values(), leaves);
  for (auto& piece : partial)
    for (auto& c : piece)
      for (auto& [r, k] : c.refs)
        for (auto& at : all.refs[size_t(r)].index) together |= coefficient(at.affine, axes[1].var) != 0;
  if (together) {
    std::vector<Ref> dst;
    for (int t : tiles) dst.push_back(whole(t, axes));
    set(values(), true, dst);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const plan::Member& m = group_.members[weights[i].member];
    if (!together) set({weights[i].value}, true, {whole(tiles[i], axes)});
    std::vector<int> operand{tiles[i]};
    if (tensor_.pieces) operand = as_operand(whole(tiles[i], axes), axes, false);
    for (auto& x : added_) // its part is complete while the sum that stays goes on
      if (x.with == m.node)
        if (No no = start_adding(x, tiles[i])) return no;
    if (No no = contract(comp(m.node), m.axis, *weights[i].of, {m.node, 0}, operand, true)) return no;
  }
  for (auto& x : added_) finish_adding(x);
  return {};
}

} // namespace tang::lower
