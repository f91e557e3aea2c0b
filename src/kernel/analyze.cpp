#include "tang/kernel/analyze.hpp"

#include <algorithm>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"

namespace tang::kernel {

namespace {
std::vector<TileAxis> axes_of(const Stmt& s) {
  std::vector<TileAxis> out;
  auto add = [&](const std::vector<TileAxis>& a) { out.insert(out.end(), a.begin(), a.end()); };
  std::visit(Match{[&](const Apply& x) { add(x.axes); }, [&](const Fold& x) { add(x.kept), add(x.folded); },
                   [&](const Contract& x) { add(x.m), add(x.n), add(x.k); }, [](const auto&) {}},
             s.node);
  return out;
}

struct Operand {
  const Ref* ref;
  bool writes;
};

std::vector<Operand> operands_of(const Stmt& s) {
  std::vector<Operand> out;
  std::visit(Match{[&](const Apply& x) {
                     for (auto& r : x.body.refs) out.push_back({&r, false});
                     for (auto& r : x.dst) out.push_back({&r, true});
                   },
                   [&](const Fold& x) {
                     for (auto& r : x.body.refs) out.push_back({&r, false});
                     for (auto& r : x.dst) out.push_back({&r, true});
                   },
                   [&](const Contract& x) {
                     out = {{&x.a, false}, {&x.b, false}, {&x.dst, true}};
                   },
                   [&](const Let& x) {
                     if (x.kind == Let::load) out.push_back({&x.ref, false});
                   },
                   [](const auto&) {}},
             s.node);
  return out;
}

void collect(const Kernel& k, const Block& b, Facts f, int limit, std::vector<Use>& out) {
  for (auto& s : b) {
    const auto axes = axes_of(s);
    for (auto& o : operands_of(s)) {
      Use u{&s, o.ref, o.writes, contiguous_axis(k, *o.ref, axes), 1};
      if (u.axis >= 0) u.width = vector_width(k, *o.ref, axes, u.axis, f, limit);
      out.push_back(u);
    }
    auto inside = [&](Var v, const Affine& begin, const Affine& end, int64_t step, const Block& body) {
      Facts g = f;
      define_loop(g, v, begin, end, step);
      collect(k, body, g, limit, out);
    };
    std::visit(Match{[&](const Let& x) { define_let(f, x, k); },
                     [&](const Loop& x) { inside(x.var, x.begin, x.end, x.step, x.body); },
                     [&](const If& x) { collect(k, x.then, f, limit, out); },
                     [&](const Pipeline& x) {
                       if (x.segments.empty()) return;
                       // All segments at once: a block starts a whole number of steps after the first.
                       inside(x.var, x.segments.front().begin, x.segments.back().end, x.step, x.operands);
                       inside(x.var, x.segments.front().begin, x.segments.back().end, x.step, x.body);
                     },
                     [](const auto&) {}},
               s.node);
  }
}
} // namespace

std::optional<Affine> address(const Kernel& k, const Ref& r) {
  Affine a;
  for (size_t d = 0; d < r.index.size(); ++d) {
    if (!r.index[d].refs.empty()) return {};
    a = a + k.memories[size_t(r.memory)].strides[d] * r.index[d].affine;
  }
  return a;
}

int contiguous_axis(const Kernel& k, const Ref& r, const std::vector<TileAxis>& axes) {
  const auto a = address(k, r);
  if (!a) return -1;
  for (size_t x = axes.size(); x-- > 0;)
    if (axes[x].extent > 1 && coefficient(*a, axes[x].var) == 1) return int(x);
  return -1;
}

int vector_width(const Kernel& k, const Ref& r, const std::vector<TileAxis>& axes, int axis,
                 const Facts& known, int limit) {
  const auto a = address(k, r);
  if (!a || axis < 0 || coefficient(*a, axes[size_t(axis)].var) != 1) return 1;
  Facts f = known;
  for (auto& x : axes)
    if (!f.defined(x.var)) f.define(x.var, 0, x.extent - 1);
  const Affine rest = *a - variable(axes[size_t(axis)].var);
  int w = 1;
  while (2 * w <= limit && axes[size_t(axis)].extent % (2 * w) == 0 && f.multiple(rest, 2 * w)) w *= 2;
  return w;
}

std::vector<Use> uses(const Kernel& k, int limit) {
  Facts f;
  for (auto& g : k.grid) f.define(g.var, 0, std::max<int64_t>(0, g.extent - 1), {g.step, 0});
  std::vector<Use> out;
  collect(k, k.body, f, limit, out);
  return out;
}

} // namespace tang::kernel
