#include "tang/lower/tensor.hpp"

#include <algorithm>
#include <functional>

#include "tang/lower/tensor_lowerer.hpp"

namespace tang::lower {

using expr::Op;
using expr::Type;
using ir::Id;
using kernel::Apply;
using kernel::constant;
using kernel::Fold;
using kernel::variable;

int TensorLowerer::fragment(const std::string& name, std::vector<int64_t> shape, kernel::Format f) {
  const int m = f_.scratch(name, std::move(shape), f);
  kernel::Memory& x = f_.k.memories[size_t(m)];
  x.home = kernel::Home::fragment, x.team = kernel::Team::warpgroup;
  return m;
}

// `columns`: the axis whose elements lie next to each other; else the last.
void TensorLowerer::state(Port port, const std::vector<int>& core, const std::string& name, int columns) {
  kernel::Memory& x = f_.k.memories[size_t(f_.tile_for(port, core, name, {}, columns))];
  x.home = kernel::Home::fragment, x.team = kernel::Team::warpgroup;
  if (tensor_.row_axes.empty()) return;
  const auto& axes = comp(port.node).outs[port.port].axes;
  const auto& rows = tensor_.row_axes;
  int64_t stride = 1;
  for (size_t d = axes.size(); d-- > 0;)
    if (!std::count(rows.begin(), rows.end(), core[size_t(axes[d])]))
      x.strides[d] = stride, stride *= x.shape[d];
  for (size_t r = rows.size(); r-- > 0;)
    for (size_t d = 0; d < axes.size(); ++d)
      if (core[size_t(axes[d])] == rows[r]) x.strides[d] = stride, stride *= x.shape[d];
}

Ref TensorLowerer::whole(int memory, const std::vector<kernel::TileAxis>& axes) const {
  Ref r{memory, {}, false};
  for (auto& a : axes) r.index.push_back({variable(a.var), {}});
  return r;
}

bool TensorLowerer::reads_loop(const Ref& r) const {
  for (auto& c : r.index) {
    if (coefficient(c.affine, pipe_.var)) return true;
    for (int o : tensor_.outer)
      if (coefficient(c.affine, f_.block[size_t(o)])) return true;
  }
  return false;
}

// A side of a contraction as a tile of its own, rows as they lie in memory.
No TensorLowerer::operand(const ir::Comp& n, const std::vector<int>& core, const Contraction& c,
                          const std::vector<int>& factors, const Axes& side, kernel::Var k_var, int piece,
                          Ref& out) {
  if (factors.size() != 1 || factors[0] < 0) return "an operand is a product";
  const Id value = stored_value(g_.pool, c.factors[size_t(factors[0])]);
  const expr::Term& t = g_.pool[value];
  if (t.op != Op::arg) return "an operand is computed";
  const ir::Arg& a = n.args[size_t(t.whole)];
  if (f_.has_tile(a.from)) return "an operand is computed in this kernel";
  const bool as_stored = piece < 0;
  const kernel::Format format = as_stored ? f_.format(a.from) : tensor_.format;
  if (!kernel::matrix_terms(format)) return "an operand is " + std::string(expr::row(format).name);
  if (a.view.empty()) return "an operand is one number";
  const int k = term_axis(core, c), only = side[0].first;
  const ir::Form& last = a.view.back();
  // What no bulk copy can address is laid out anew first: rows of terms that begin at multiples of 16 bytes.
  const int64_t terms = block_of_terms(f_.extent(n, core, k));
  const bool copies = !addressable(n, a, k, side, terms, format, !as_stored);
  const bool k_inner = copies || last.axis(k) == 1;
  if (copies && t.type != Type::real) return "no copy can address an operand of integers";
  if (side.size() > 1 && copies) return "no copy can address an operand whose rows have several axes";
  if (!as_stored && copies) return "no copy can address the pieces of an operand";
  Place pl;
  pl.at.resize(size_t(n.axis_count()));
  for (int x = 0; x < n.axis_count(); ++x)
    pl.at[size_t(x)] = core[size_t(x)] >= 0 ? variable(f_.block[size_t(core[size_t(x)])]) : constant(0);
  Apply copy;
  Axes order = side; // rows, then columns
  order.insert(k_inner ? order.end() : order.begin(), {k, k_var});
  std::vector<int64_t> shape;
  bool ragged = false;
  for (auto& [axis, var] : order) {
    shape.push_back(axis == k ? terms : f_.extent(n, core, axis));
    ragged |= n.extent(axis).value() % shape.back() != 0;
    copy.axes.push_back({f_.k.fresh(&axis == &order.back().first ? "c" : "r"), shape.back()});
    pl.at[size_t(axis)] = pl.at[size_t(axis)] + variable(copy.axes.back().var);
  }
  if (copies) {
    auto r = copied(n, c, factors[0], only, k, pl);
    if (!r) return r.why();
    copy.body.refs = {*r};
    copy.body.values = {f_.k.pool->leaf(Op::arg, Type::real, 0)};
  } else {
    Body b = f_.body(n, pl, core);
    copy.body.values = {b.value(value)};
    copy.body.refs = b.out.refs;
    if (copy.body.refs.size() != 1 || !b.out.guards.empty()) return "an operand is gathered";
    if (!as_stored) {
      auto of = this->piece(a.from, piece);
      if (!of) return of.why();
      copy.body.refs[0].memory = *of;
    }
  }
  copy.body.refs[0].checked |= ragged || (n.domain != ir::everywhere() && product());
  const bool in_loop = reads_loop(copy.body.refs[0]);
  auto use = [&](int memory) {
    out = {memory, {}, false};
    for (auto& [axis, var] : order) out.index.push_back({variable(var), {}});
  };
  if (const auto known = staged(copy, in_loop)) {
    use(*known);
    return {};
  }
  const int memory = f_.scratch("o", shape, format);
  f_.k.memories[size_t(memory)].home = kernel::Home::shared;
  if (!as_stored) f_.k.memories[size_t(memory)].pieces = tensor_.pieces;
  copy.dst = {whole(memory, copy.axes)};
  copy.fill = {std::nullopt};
  (in_loop ? pipe_.operands : copies_).push_back({std::move(copy)});
  use(memory);
  return {};
}

// Whole instructions, and whole 16-bit fragments as operands.
int64_t TensorLowerer::block_of_terms(int64_t extent) const {
  return round_up(extent, std::max(16, kernel::matrix_terms(tensor_.format)));
}

// The axis of terms that is blocked.
int TensorLowerer::term_axis(const std::vector<int>& core, const Contraction& c) const {
  for (int k : c.sides.k)
    if (core[size_t(k)] == tensor_.loop) return k;
  return c.sides.k[0];
}

// The tile of a copy that was made before: several contractions of one block read it. Skewed ones are not of
// one block.
std::optional<int> TensorLowerer::staged(const Apply& copy, bool in_loop) const {
  if (tensor_.roles.skew) return {};
  for (auto& s : in_loop ? pipe_.operands : copies_) {
    const Apply& a = std::get<Apply>(s.node);
    if (a.axes.size() != copy.axes.size() || a.body.refs[0].memory != copy.body.refs[0].memory) continue;
    bool same = true;
    for (size_t x = 0; x < a.axes.size(); ++x) same &= a.axes[x].extent == copy.axes[x].extent;
    for (size_t d = 0; same && d < copy.body.refs[0].index.size(); ++d) {
      Affine at = a.body.refs[0].index[d].affine;
      for (size_t x = 0; x < a.axes.size(); ++x)
        if (const int64_t c = coefficient(at, a.axes[x].var))
          at = at - variable(a.axes[x].var, c) + variable(copy.axes[x].var, c);
      same = at == copy.body.refs[0].index[d].affine;
    }
    if (same) return a.dst[0].memory;
  }
  return {};
}

// One contraction onto `dst`, of these pieces of the sides (-1: whole ones).
No TensorLowerer::multiply(const ir::Comp& n, const std::vector<int>& core, const Contraction& c, Port dst,
                              std::optional<int> into, const std::vector<int>& weight, bool accumulate, int a_piece,
                              int b_piece) {
  const int terms = term_axis(core, c);
  for (int k : c.sides.k)
    if (k != terms && f_.extent(n, core, k) != 1) return "a contraction folds over several axes";
  for (int a : c.outer_n)
    if (f_.extent(n, core, a) != 1) return "a contraction has several axes on a side";
  std::vector<int> rows; // the node's, the slowest first
  for (int r : tensor_.row_axes)
    for (int a = 0; a < n.axis_count(); ++a)
      if (core[size_t(a)] == r && f_.extent(n, core, a) != 1) rows.push_back(a);
  if (rows.empty()) rows = {c.sides.m[0]};
  for (int a : c.outer_m)
    if (f_.extent(n, core, a) != 1 && !std::count(rows.begin(), rows.end(), a))
      return "a contraction has several axes on a side";
  Place at;
  at.at.resize(size_t(n.axis_count()));
  for (int x = 0; x < n.axis_count(); ++x)
    at.at[size_t(x)] = core[size_t(x)] >= 0 ? variable(f_.block[size_t(core[size_t(x)])]) : constant(0);
  kernel::Contract k;
  auto axis = [&](int a, const char* stem, std::vector<kernel::TileAxis>& to, bool whole) {
    const int64_t e = f_.extent(n, core, a);
    to.push_back({f_.k.fresh(stem), whole ? block_of_terms(e) : e});
    at.at[size_t(a)] = at.at[size_t(a)] + variable(to.back().var);
    return std::pair(a, to.back().var);
  };
  Axes m;
  for (int a : rows) m.push_back(axis(a, "m", k.m, false));
  const auto column = axis(c.sides.n[0], "n", k.n, false);
  axis(terms, "k", k.k, true);
  if (!weight.empty()) {
    k.a = {weight[size_t(std::max(0, a_piece))], {{variable(k.m[0].var), {}}, {variable(k.k[0].var), {}}}, false};
  } else if (No no = operand(n, core, c, c.sides.a, m, k.k[0].var, a_piece, k.a)) {
    return no;
  }
  if (No no = operand(n, core, c, c.sides.b, {column}, k.k[0].var, b_piece, k.b)) return no;
  k.dst = f_.tile_ref(dst, at);
  k.dst.memory = into.value_or(k.dst.memory);
  k.accumulate = accumulate;
  pipe_.body.push_back({std::move(k)});
  return {};
}

// Blocks of the loop's axis: where some point lives, and where all do. A ragged end is a bound like any
// other, unless another bound and the ragged end of the rows imply it.
No TensorLowerer::masks(const ir::Comp& n, const ir::Domain& domain, const std::vector<int>& core) {
  domain_ = ragged(n, domain, core);
  if (domain_.empty()) return "it is empty";
  const Known known{
      [&](int arg) { return extrema(n, core, arg); },
      [&](const std::vector<const ir::Form*>& bounds) { return runs(n, core, bounds); }};
  pipe_.segments = segments(f_, n, core, domain_, tensor_.loop, lets_, true, known);
  return {};
}

// The domain of the loop's terms, with its ragged end.
ir::Domain TensorLowerer::ragged(const ir::Comp& n, const ir::Domain& domain,
                                 const std::vector<int>& core) const {
  int axis = -1;
  for (int a = 0; a < n.axis_count(); ++a)
    if (core[size_t(a)] == tensor_.loop) axis = a;
  const int64_t whole = n.extent(axis).value();
  ir::Domain out;
  for (ir::Conj piece : domain) {
    if (whole % f_.tile(tensor_.loop)) {
      const ir::Form tail = ir::constant(ir::Extent(whole - 1)) - ir::axis(axis);
      bool implied = false;
      for (auto& b : piece)
        for (int a = 0; a < n.axis_count(); ++a) {
          const ir::Form rest = tail - b - (ir::constant(ir::Extent(n.extent(a).value() - 1)) - ir::axis(a));
          implied |= core[size_t(a)] == tensor_.rows && rest.is_constant() && rest.c.value() >= 0;
        }
      if (!implied) ir::insert(piece, tail);
    }
    out.push_back(piece);
  }
  return out;
}

// A port to its buffer: a state as it is, or a map of the group's results.
No TensorLowerer::output(const ir::Comp& n, const std::vector<int>& core, Port port, bool is_state) {
  const plan::Buffer* buffer = plan_.buffer(port);
  if (!buffer && is_state) return {};
  if (!is_state && (n.domain != ir::everywhere() || (buffer && buffer->masked))) return "a result is partial";
  Place at = f_.place(n, core, n.outs[port.port].axes);
  if (at.axes.empty() || at.axes.size() > std::max<size_t>(1, tensor_.row_axes.size()) + 1)
    return "a result has no rows";
  Body b = f_.body(n, at, core);
  if (is_state)
    b.out.values.push_back(b.leaf(f_.tile_ref(port, at), g_.type(port)));
  else
    b.add({n.lift[0]});
  if (b.out.when) return "a result is partial";
  Apply a;
  a.axes = at.axes;
  a.bounds = at.tails;
  a.body = std::move(b.out);
  for (auto& r : a.body.refs)
    if (f_.k.memories[size_t(r.memory)].home == kernel::Home::global) r.checked |= !at.tails.empty();
  a.fill = {std::nullopt};
  if (!is_state && (!buffer || read_by_a_map(port))) {
    // What is stored is on its way only: other maps read the fragment.
    state(port, core, "v");
    Apply tile = a;
    tile.bounds.clear();
    tile.dst = {f_.tile_ref(port, at)};
    finish_.push_back({std::move(tile)});
    if (!buffer) return {};
    Body stored = f_.body(n, at, core);
    stored.out.values.push_back(stored.leaf(f_.tile_ref(port, at), g_.type(port)));
    a.body = std::move(stored.out);
  }
  a.dst = {f_.global_ref(port, n, at, true)};
  finish_.push_back({std::move(a)});
  return {};
}

bool TensorLowerer::read_by_a_map(Port port) const {
  return std::any_of(group_.epilogues.begin(), group_.epilogues.end(), [&](const plan::Epilogue& e) {
    auto& args = comp(e.node).args;
    return std::any_of(args.begin(), args.end(), [&](const ir::Arg& a) { return a.from == port; });
  });
}

// The states of a member, at their identities.
void TensorLowerer::start(const plan::Member& m) {
  const ir::Comp& n = comp(m.node);
  for (uint32_t c = 0; c < n.lift.size(); ++c) state({m.node, c}, m.axis, "s");
  for (uint32_t c = 0; c < n.lift.size(); ++c) {
    Place at = place(n, m.axis, n.outs[c].axes);
    Apply a;
    a.axes = at.axes;
    a.body.values = {f_.k.pool->literal(n.monoid->identity[c])};
    a.dst = {f_.tile_ref({m.node, c}, at)};
    a.fill = {std::nullopt};
    starts_.push_back({std::move(a)});
  }
}

Result<GroupKernels> TensorLowerer::run() {
  const plan::Member& m = group_.members[0];
  const MemberForm& form = choice_.members[0];
  const ir::Comp& n = comp(m.node);
  pipe_.var = f_.block[size_t(tensor_.loop)];
  pipe_.step = f_.tile(tensor_.loop);
  for (size_t a = 0; a < group_.extent.size(); ++a)
    if (group_.role[a] == plan::Role::looped && group_.extent[a] == 1)
      lets_.push_back({kernel::Let{f_.block[a], kernel::Let::affine, {constant(0)}, 1, {}}});
  pipe_.reverse = !form.absorb.base.empty() && n.monoid->commutative;
  const bool weighs = form.absorb.base.empty() && !group_.shared.empty() && !tensor_.blocks;
  const std::optional<Key> key = weighs ? few_keys(g_, m) : std::nullopt;
  for (auto& member : group_.members)
    if (!key) start(member);
  if (form.absorb.base.empty() && !weighs) {
    const int64_t whole = round_up(group_.extent[size_t(tensor_.loop)], pipe_.step);
    pipe_.segments = {{constant(0), constant(whole), false}};
  } else if (No no = masks(n, key ? key->domain : n.domain, m.axis)) {
    return Refusal{*no};
  }
  for (size_t x = 0; x < group_.shared.size(); ++x) {
    const plan::Shared& s = group_.shared[x];
    const ir::Comp& shared = comp(s.node);
    if (!choice_.shared[x] || shared.domain != ir::everywhere())
      return Refusal{"a shared subterm is no contraction"};
    std::vector<int> core = s.axis;
    core.resize(size_t(shared.axis_count()), -1);
    state({s.node, 0}, core, "d", choice_.shared[x]->sides.n[0]);
    if (No no = contract(shared, core, *choice_.shared[x], {s.node, 0}, {}, false)) return Refusal{*no};
  }
  if (No no = tensor_.blocks ? add_block(m) : key ? weigh_by_key(m, *key) : weighs ? weigh() : absorb(m, form))
    return Refusal{*no};
  for (auto& member : key ? std::vector<plan::Member>() : group_.members)
    for (uint32_t c = 0; c < comp(member.node).lift.size(); ++c)
      if (No no = output(comp(member.node), member.axis, {member.node, c}, true)) return Refusal{*no};
  for (auto& e : group_.epilogues)
    if (No no = output(comp(e.node), e.axis, {e.node, 0}, false)) return Refusal{*no};
  auto append = [&](const kernel::Block& b) { f_.k.body.insert(f_.k.body.end(), b.begin(), b.end()); };
  append(f_.head), append(lets_), append(starts_), append(copies_);
  kernel::Block loop;
  loop.push_back({std::move(pipe_)});
  for (size_t o = tensor_.outer.size(); o-- > 0;) {
    const size_t core = size_t(tensor_.outer[o]);
    kernel::Loop l{f_.block[core], constant(0), constant(group_.extent[core]), 1, std::move(loop)};
    loop = {};
    loop.push_back({std::move(l)});
  }
  append(loop);
  append(finish_);
  Lowered out;
  out.kernel = std::move(f_.k);
  out.arguments = std::move(f_.arguments);
  out.schedule = tensor_.text;
  out.roles = tensor_.roles;
  out.pieces = tensor_.pieces;
  globals_first(out.kernel, out.arguments);
  for (auto& x : added_) {
    before_.push_back(cleared(x));
    after_.push_back(rounded(x));
    out.schedule += " adds";
  }
  return GroupKernels{std::move(before_), std::move(out), std::move(after_)};
}

// The group in the first candidate's sizes that suit; `added`: members that its blocks add to.
Result<GroupKernels> lower_whole(ir::Graph& g, const plan::Plan& p, const Surroundings& around,
                                 const plan::Group& group, const std::vector<Added>& added,
                                 const schedule::Schedule& s, const target::Target& t,
                                 std::vector<int64_t>& temporaries) {
  const Choice forms = choose(g, group, s, t, true);
  for (auto& m : forms.members)
    if (m.held) return Refusal{"a state in a narrow format"};
  auto candidates = tensor_choices(g, p, group, forms, s, t);
  if (candidates && !candidates->empty())
    if (const int pieces = pieces_of(g, group, forms, s, (*candidates)[0].format)) {
      if (!t.warpgroups) return Refusal{"operands in pieces are products of warpgroups"};
      candidates = in_pieces(*candidates, pieces, group, forms, t);
    }
  std::string why = candidates ? "no tile sizes" : candidates.why();
  const bool told = std::any_of(group.members.begin(), group.members.end(), [&](auto& m) {
    auto* f = schedule::fields_of(s, g, m.node);
    return f && f->roles;
  });
  for (auto& c : candidates ? *candidates : std::vector<TensorChoice>()) {
    if (!added.empty() && !told) c.roles.one_loop = true; // five contractions leave no registers for a second loop
    Choice choice = forms;
    choice.tile = c.tile;
    choice.rows = choice.vectors = choice.lanes = 1;
    std::vector<int64_t> more = temporaries;
    TensorLowerer lowerer(g, p, around, group, choice, c, t, more);
    for (auto& x : added) lowerer.add(x);
    auto l = lowerer.run();
    if (!l && (!c.row_axes.empty() || !added.empty())) { // another one may suit
      why = l.why();
      continue;
    }
    if (!l) return Refusal{l.why()};
    if (auto legal = kernel::expand_roles(l->main.kernel, c.roles, t.shared_limit); !legal) {
      why = legal.why();
      continue;
    }
    temporaries = std::move(more);
    return std::move(*l);
  }
  return Refusal{why};
}

Result<GroupKernels> lower_tensor(ir::Graph& g, const plan::Plan& p, const Surroundings& around,
                                  const plan::Group& group, const schedule::Schedule& s,
                                  const target::Target& t, std::vector<int64_t>& temporaries) {
  if (!t.blocks()) return Refusal{"the target has no blocks of products on matrix instructions"};
  const Parted parted = part(g, group);
  std::vector<Added> added;
  for (auto& own : parted.added)
    if (auto x = added_to(g, own, s, t))
      added.push_back(*x);
    else
      return Refusal{"a result that is added to is no contraction"};
  if (parted.stays.members.empty()) return Refusal{"all its results are added to"};
  auto k = lower_whole(g, p, around, parted.stays, added, s, t, temporaries);
  if (k) return k;
  // What does not fit in one kernel has several, which evaluate the subterms anew.
  std::vector<plan::Group> pieces = parted.added;
  if (!added.empty()) pieces.push_back(parted.stays);
  for (auto& m : added.empty() && group.members.size() > 1 ? group.members : std::vector<plan::Member>()) {
    const auto one = alone(g, group, m);
    if (!one) return k;
    pieces.push_back(*one);
  }
  if (pieces.empty()) return k;
  GroupKernels out;
  std::vector<int64_t> more = temporaries;
  for (auto& piece : pieces) {
    auto one = lower_tensor(g, p, around, piece, s, t, more);
    if (!one) return one;
    out.before.insert(out.before.end(), one->before.begin(), one->before.end());
    if (&piece == &pieces.back())
      out.main = std::move(one->main);
    else
      out.before.push_back(std::move(one->main));
  }
  temporaries = std::move(more);
  return out;
}

} // namespace tang::lower
