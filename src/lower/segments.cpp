#include "tang/lower/segments.hpp"

namespace tang::lower {

using kernel::Affine;
using kernel::constant;
using kernel::Let;
using kernel::Segment;
using kernel::variable;
using kernel::Var;

namespace {
struct Builder {
  Frame& f;
  kernel::Block& before;
  Affine let(Let::Kind kind, std::vector<Affine> operands, int64_t divisor = 1) {
    bool constants = true;
    int64_t v = operands[0].c;
    for (auto& o : operands) {
      constants &= o.terms.empty();
      v = kind == Let::min ? std::min(v, o.c) : kind == Let::max ? std::max(v, o.c) : v;
    }
    if (constants) return constant(kind == Let::floor_div ? (v >= 0 ? v / divisor : -((-v + divisor - 1) / divisor)) : v);
    if (kind == Let::floor_div && divisor == 1) return operands[0];
    const Var var = f.k.fresh("s");
    before.push_back({Let{var, kind, std::move(operands), divisor, {}}});
    return variable(var);
  }
};
}  // namespace

std::vector<Segment> segments(Frame& f, const ir::Comp& n, const std::vector<int>& core, const ir::Conj& piece, int axis,
                              kernel::Block& before, bool exact, const Extrema& extrema) {
  const int64_t step = f.tile(axis), whole = f.group.extent[size_t(axis)];
  Builder b{f, before};
  // Points [live_lo, live_hi) may live; those in [full_lo, full_hi) do for every other coordinate of the block.
  std::vector<Affine> live_lo{constant(0)}, live_hi{constant(whole)}, full_lo{constant(0)}, full_hi{constant(whole)};
  bool some_full = true;
  for (auto& bound : piece) {
    Affine most = constant(bound.c.value()), least = most;  // of everything but the axis
    int64_t k = 0;
    bool usable = true;
    for (auto& [a, x] : bound.axes) {
      const int c = core[size_t(a)];
      if (c == axis) {
        k += x;
        continue;
      }
      const int64_t last = f.extent(n, core, a) - 1;
      const Affine base = c < 0 ? constant(0) : variable(f.block[size_t(c)]);
      if (c >= 0 && f.group.role[size_t(c)] == plan::Role::looped && f.tile(c) < f.group.extent[size_t(c)]) usable = false;
      most = most + x * base + constant(x > 0 ? x * last : 0);
      least = least + x * base + constant(x < 0 ? x * last : 0);
    }
    for (auto& [u, x] : bound.args) {
      if (auto v = f.uniform(n, core, u)) {
        most = most + x * *v;
        least = least + x * *v;
      } else if (auto both = extrema ? extrema(u) : std::nullopt) {
        most = most + x * (x > 0 ? both->second : both->first);
        least = least + x * (x > 0 ? both->first : both->second);
      } else {
        usable = false;
      }
    }
    if (!usable || k == 0) {  // a test inside the block
      some_full = false;
      continue;
    }
    // k j + r >= 0: from below for k > 0, from above for k < 0.
    if (k > 0) {
      live_lo.push_back(b.let(Let::floor_div, {constant(k - 1) - most}, k));
      full_lo.push_back(b.let(Let::floor_div, {constant(k - 1) - least}, k));
    } else {
      live_hi.push_back(b.let(Let::floor_div, {most}, -k) + constant(1));
      full_hi.push_back(b.let(Let::floor_div, {least}, -k) + constant(1));
    }
  }
  if (piece.empty()) return {{constant(0), constant((whole + step - 1) / step * step), false}};
  // From here on in blocks, so that every edge is a multiple of the step.
  auto floor_block = [&](const Affine& a) { return b.let(Let::floor_div, {a}, step); };
  auto ceil_block = [&](const Affine& a) { return floor_block(a + constant(step - 1)); };
  auto at = [&](const Affine& block) { return step * block; };
  const Affine lo = floor_block(b.let(Let::max, live_lo));
  const Affine hi = b.let(Let::max, {ceil_block(b.let(Let::min, live_hi)), lo});
  if (!some_full) return {{at(lo), at(hi), true}};
  const Affine from = b.let(Let::max, {ceil_block(b.let(Let::max, full_lo)), lo});
  Affine last = b.let(Let::min, full_hi);
  if (const int64_t pad = (step - whole % step) % step; pad && !exact) {  // the ragged last block is full when the bound reaches the end
    const Affine reaches = b.let(Let::floor_div, {last + constant(1)}, whole + 1);
    last = last + pad * reaches;
  }
  const Affine f0 = b.let(Let::min, {from, hi});
  const Affine f1 = b.let(Let::max, {b.let(Let::min, {floor_block(last), hi}), f0});
  return {{at(lo), at(f0), true}, {at(f0), at(f1), false}, {at(f1), at(hi), true}};
}

bool is_run(const ir::Comp& n, const std::vector<int>& core, int axis) {
  for (auto& piece : n.domain) {
    bool below = false, above = false;
    for (auto& bound : piece)
      for (auto& [a, x] : bound.axes)
        if (core[size_t(a)] == axis && !bound.args.empty()) (x > 0 ? below : above) = true;
    if (!below || !above) return false;
  }
  return !n.domain.empty();
}

}  // namespace tang::lower
