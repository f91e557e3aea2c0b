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

// In points of the axis, each the extremum of its parts: of one piece of a domain.
struct Parts {
  std::vector<Affine> live_lo, live_hi, full_lo, full_hi;
  bool some_full = true, of_data = false; // of_data: what is read decides, and may be anything
  void add(const Run& r) {
    live_lo.push_back(r.live_lo), live_hi.push_back(r.live_hi);
    full_lo.push_back(r.full_lo), full_hi.push_back(r.full_hi);
  }
};

// In blocks: those of [lo, hi) may live, those of [from, last) do wholly, where some do at all.
struct Reach {
  Affine lo, hi, from, last;
  bool some_full = true;
};

bool is_constant(const std::vector<Affine>& of) {
  return std::all_of(of.begin(), of.end(), [](const Affine& a) { return a.terms.empty(); });
}

struct Domains {
  Frame& f;
  const ir::Comp& n;
  const std::vector<int>& core;
  int axis;
  Builder b;
  bool exact;
  const Known& known;
  int64_t step, whole, blocks;

  // The greatest and the least value of a bound over a block, without its part along the axis; nothing when it is not known.
  std::optional<std::pair<Affine, Affine>> reach_of(const ir::Form& bound) const {
    Affine most = constant(bound.c.value()), least = most;
    for (auto& [a, x] : bound.axes) {
      const int c = core[size_t(a)];
      if (c == axis) continue;
      const int64_t last = f.extent(n, core, a) - 1;
      const Affine base = c < 0 ? constant(0) : variable(f.block[size_t(c)]);
      if (c >= 0 && f.group.role[size_t(c)] == plan::Role::looped && f.tile(c) < f.group.extent[size_t(c)]) return {};
      most = most + x * base + constant(x > 0 ? x * last : 0);
      least = least + x * base + constant(x < 0 ? x * last : 0);
    }
    for (auto& [u, x] : bound.args) {
      if (auto v = f.uniform(n, core, u)) {
        most = most + x * *v;
        least = least + x * *v;
      } else if (auto both = known.extrema ? known.extrema(u) : std::nullopt) {
        most = most + x * (x > 0 ? both->second : both->first);
        least = least + x * (x > 0 ? both->first : both->second);
      } else {
        return {};
      }
    }
    return std::pair(most, least);
  }

  // k j + r >= 0: from below for k > 0, from above for k < 0.
  void along(int64_t k, const Affine& most, const Affine& least, Parts& to) {
    if (k > 0) {
      to.live_lo.push_back(b.let(Let::floor_div, {constant(k - 1) - most}, k));
      to.full_lo.push_back(b.let(Let::floor_div, {constant(k - 1) - least}, k));
    } else {
      to.live_hi.push_back(b.let(Let::floor_div, {most}, -k) + constant(1));
      to.full_hi.push_back(b.let(Let::floor_div, {least}, -k) + constant(1));
    }
  }

  // A bound that the axis has no part in leaves everything or nothing. Of an end that is the same for all blocks nothing is
  // lost, so that pieces which begin, or end, together still do.
  void of_a_block(const Affine& most, const Affine& least, Parts& to) {
    auto holds = [&](const Affine& v) { return b.let(Let::min, {b.let(Let::max, {v + constant(1), constant(0)}), constant(1)}); };
    const int64_t all = blocks * step;
    if (is_constant(to.live_lo) && !is_constant(to.live_hi)) {
      to.live_hi.push_back(all * holds(most)), to.full_hi.push_back(all * holds(least));
    } else {
      to.live_lo.push_back(constant(all) - all * holds(most)), to.full_lo.push_back(constant(all) - all * holds(least));
    }
  }

  Parts parts(const ir::Conj& piece) {
    Parts out{{constant(0)}, {constant(whole)}, {constant(0)}, {constant(whole)}};
    std::vector<const ir::Form*> unknown;
    std::vector<std::pair<Affine, Affine>> others;
    for (auto& bound : piece) {
      out.of_data |= !bound.args.empty();
      int64_t k = 0;
      for (auto& [a, x] : bound.axes)
        if (core[size_t(a)] == axis) k += x;
      const auto reach = reach_of(bound);
      if (!reach) unknown.push_back(&bound);
      else if (k) along(k, reach->first, reach->second, out);
      else others.push_back(*reach);
    }
    for (auto& [most, least] : others) of_a_block(most, least, out);
    if (unknown.empty()) return out;
    if (auto run = known.runs ? known.runs(unknown) : std::nullopt) out.add(*run);
    else out.some_full = false; // tests inside the block
    return out;
  }

  Affine floor_block(const Affine& a) { return b.let(Let::floor_div, {a}, step); }
  Affine ceil_block(const Affine& a) { return floor_block(a + constant(step - 1)); }

  Reach reach(const ir::Conj& piece) {
    const Parts x = parts(piece);
    Reach out;
    out.some_full = x.some_full;
    out.lo = floor_block(b.let(Let::max, x.live_lo));
    if (x.of_data) out.lo = b.let(Let::min, {out.lo, constant(blocks)});
    out.hi = ceil_block(b.let(Let::min, x.live_hi));
    if (!x.some_full) return out;
    out.from = ceil_block(b.let(Let::max, x.full_lo));
    Affine last = b.let(Let::min, x.full_hi);
    if (const int64_t pad = (step - whole % step) % step; pad && !exact) { // the ragged last block is full when the bound reaches the end
      const Affine reaches = b.let(Let::floor_div, {last + constant(1)}, whole + 1);
      last = last + pad * reaches;
    }
    out.last = floor_block(last);
    return out;
  }

  Affine at(const Affine& block) const { return step * block; }

  std::vector<Segment> segments(const Affine& lo, const Affine& hi, const Affine& from, const Affine& last) {
    const Affine f0 = b.let(Let::min, {b.let(Let::max, {from, lo}), hi});
    const Affine f1 = b.let(Let::max, {b.let(Let::min, {last, hi}), f0});
    return {{at(lo), at(f0), true}, {at(f0), at(f1), false}, {at(f1), at(hi), true}};
  }

  std::vector<Segment> one(const ir::Conj& piece) {
    const Reach r = reach(piece);
    const Affine hi = b.let(Let::max, {r.hi, r.lo});
    if (!r.some_full) return {{at(r.lo), at(hi), true}};
    return segments(r.lo, hi, r.from, r.last);
  }

  std::vector<Segment> several(const ir::Domain& domain) {
    std::vector<Affine> lo, hi, from, last;
    for (auto& piece : domain) {
      const Reach r = reach(piece);
      lo.push_back(r.lo), hi.push_back(r.hi);
      if (r.some_full) from.push_back(r.from), last.push_back(r.last);
    }
    const Affine first = b.let(Let::min, lo), end = b.let(Let::max, {b.let(Let::max, hi), first});
    if (from.empty()) return {{at(first), at(end), true}};
    auto same = [](const std::vector<Affine>& of) {
      return std::all_of(of.begin(), of.end(), [&](const Affine& a) { return a == of[0]; });
    };
    return segments(first, end, same(last) ? b.let(Let::min, from) : from[0], same(from) ? b.let(Let::max, last) : last[0]);
  }
};
}  // namespace

std::vector<Segment> segments(Frame& f, const ir::Comp& n, const std::vector<int>& core, const ir::Domain& domain, int axis,
                              kernel::Block& before, bool exact, const Known& known) {
  const int64_t step = f.tile(axis), whole = f.group.extent[size_t(axis)], blocks = (whole + step - 1) / step;
  if (domain.size() == 1 && domain[0].empty()) return {{constant(0), constant(blocks * step), false}};
  Domains d{f, n, core, axis, {f, before}, exact, known, step, whole, blocks};
  return domain.size() == 1 ? d.one(domain[0]) : d.several(domain);
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

std::set<int> places_of_run(const ir::Comp& n, const std::vector<int>& core, int axis) {
  std::set<int> axes, out;
  for (auto& piece : n.domain)
    for (auto& bound : piece)
      if (std::any_of(bound.axes.begin(), bound.axes.end(), [&](auto& x) { return core[size_t(x.first)] == axis; }))
        for (auto& u : bound.args) ir::moving(n, ir::uniform(u.first), axes);
  for (int a : axes)
    if (core[size_t(a)] >= 0) out.insert(core[size_t(a)]);
  return out;
}

}  // namespace tang::lower
