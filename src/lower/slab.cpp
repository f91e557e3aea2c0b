// A columns' operand whose terms read overlapping windows of one array: the box that a block reads is kept once, with zeros
// around it, instead of every window's elements.
#include <algorithm>

#include "tang/lower/emitters.hpp"

namespace tang::lower {

using kernel::constant;
using kernel::variable;

namespace {
// f = sign * (a coordinate without its constant) + a constant: which coordinate, and the sign.
std::optional<std::pair<size_t, int64_t>> along(const ir::Form& f, const std::vector<ir::Form>& view) {
  for (size_t d = 0; d < view.size(); ++d)
    for (int64_t sign : {1, -1}) {
      auto axes = view[d].axes;
      for (auto& x : axes) x.second *= sign;
      if (f.args.empty() && !axes.empty() && axes == f.axes) return std::pair(d, sign);
    }
  return {};
}
} // namespace

std::optional<Emitters::Box> Emitters::box(const Site& s, const ir::Arg& a) const {
  const ir::Comp& n = comp(s.node);
  const int column = s.c.sides.n[0];
  const int64_t width = round_up(f_.extent(n, s.core, column), f_.choice.columns());
  std::vector<int> moving = s.c.sides.k;
  moving.push_back(column);
  moving.insert(moving.end(), s.c.outer_n.begin(), s.c.outer_n.end());
  double laid_out = double(width), volume = 1;
  for (int x : moving)
    if (x != column) laid_out *= double(f_.extent(n, s.core, x));
  for (int x : s.c.sides.k)
    if (n.extent(x).value() % f_.extent(n, s.core, x)) return {}; // terms beyond the end read elements of others
  Box out;
  for (size_t d = 0; d < a.view.size(); ++d) {
    const ir::Form& f = a.view[d];
    if (!f.args.empty() || (f.axis(column) && (d + 1 < a.view.size() || f.axis(column) != 1))) return {};
    Affine low = constant(f.c.value());
    int64_t extent = 1;
    for (auto& [x, k] : f.axes) {
      const bool moves = std::find(moving.begin(), moving.end(), x) != moving.end();
      const int64_t e = !moves ? 1 : x == column ? width : f_.extent(n, s.core, x);
      low = low + k * base(s.core, x) + constant(k < 0 ? k * (e - 1) : 0);
      extent += std::abs(k) * (e - 1);
    }
    out.low.push_back(low);
    out.extent.push_back(extent);
    volume *= double(extent);
  }
  if (a.view.empty() || !a.view.back().axis(column) || 2 * volume > laid_out) return {};
  return out;
}

std::optional<Ref> Emitters::slab(const Site& s, const Place& at) {
  const ir::Comp& n = comp(s.node);
  if (f_.target.workgroup_limit > 1 || s.c.sides.b.size() != 1 || s.c.sides.b[0] < 0) return {};
  const expr::Term& t = f_.g.pool[s.c.factors[size_t(s.c.sides.b[0])]];
  if (t.op != expr::Op::arg) return {};
  const ir::Arg& a = n.args[size_t(t.whole)];
  if (f_.has_tile(a.from)) return {};
  const ir::Conj masks = assumed_of(s, s.c.sides.n[0]);
  for (auto& f : masks)
    if (!along(f, a.view)) return {};
  const Home home = f_.homes()(a.from);
  const auto b = home.view.empty() ? box(s, a) : std::nullopt;
  if (!b) return {};
  const std::string key = "box:" + std::to_string(s.node) + ":" + std::to_string(t.whole);
  auto known = staged_.find(key);
  if (known == staged_.end()) {
    kernel::Apply fill;
    Ref dst{f_.scratch("o", b->extent, f_.k.compute), {}, false};
    std::vector<kernel::Coordinate> from;
    for (size_t d = 0; d < b->extent.size(); ++d) {
      Affine x = b->low[d];
      dst.index.push_back({constant(0), {}});
      if (b->extent[d] > 1) {
        const kernel::Var v = f_.k.fresh("w");
        fill.axes.push_back({v, b->extent[d]});
        dst.index.back() = {variable(v), {}};
        x = x + variable(v);
      }
      from.push_back({x, {}});
      if (a.view[d].axes.empty()) continue;
      fill.bounds.push_back({x, {}});
      fill.bounds.push_back({constant(f_.g.shape(a.from)[d].value() - 1) - x, {}});
    }
    for (auto& f : masks) {
      const auto [d, sign] = *along(f, a.view);
      const Affine edge = sign * from[d].affine + constant(f.c.value() - sign * a.view[d].c.value());
      const bool seen = std::any_of(fill.bounds.begin(), fill.bounds.end(), [&](auto& c) { return c.affine == edge; });
      if (!seen) fill.bounds.push_back({edge, {}});
    }
    Body body = f_.body(n, at, s.core);
    body.out.values.push_back(body.leaf(element(home, from), expr::Type::real));
    fill.dst = {dst};
    fill.fill = {expr::real(0)};
    fill.body = std::move(body.out);
    vectorize(f_.k, fill);
    bool moves = false;
    for (auto& f : a.view)
      for (auto& x : f.axes) moves |= s.axis >= 0 && s.core[size_t(x.first)] == s.axis;
    emit(moves ? s.operands : s.pre, std::move(fill));
    known = staged_.emplace(key, dst.memory).first;
  }
  Ref r{known->second, {}, false};
  for (size_t d = 0; d < b->extent.size(); ++d) {
    Affine x = constant(a.view[d].c.value());
    for (auto& [axis, k] : a.view[d].axes) x = x + k * at.at[size_t(axis)];
    r.index.push_back({x - b->low[d], {}});
  }
  return r;
}

} // namespace tang::lower
