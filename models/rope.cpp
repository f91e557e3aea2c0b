#include "tang/models/rope.hpp"

#include <cmath>
#include <functional>

namespace tang::models {

Scalar rope_angle(const Scalar& position, const Axis& pair, int64_t dim, double base) {
  return to_real(position) * exp2(to_real(iota(pair)) * (-2 * std::log2(base) / double(dim)));
}

Turned turn(const Scalar& a, const Scalar& b, const Scalar& angle) {
  return turn(a, b, cos(angle), sin(angle));
}

Turned turn(const Scalar& a, const Scalar& b, const Scalar& c, const Scalar& s) {
  const Scalar first = a * c - b * s, second = b * c + a * s;
  return {first, second};
}

namespace {
using Position = std::function<Scalar(const Axis& row)>;

Tensor rope_by(const Tensor& x, const Position& position, const Rope& o, Where where) {
  if (!given(x) || x.shape().size() < 2)
    reject(
        where, "rope of a tensor that is no [.., row, d]",
        {{given(x) ? x.name() + " is " + text(x.shape()) : "x is no tensor", given(x) ? x.where() : Where{}}},
        "map it to that shape first");
  const std::vector<Extent> shape = x.shape();
  if (!shape.back().is_constant())
    reject(where, "rope over a symbolic number of features: " + shape.back().text(), {}, "give d a number");
  const int64_t d = shape.back().value(), dim = o.dim ? o.dim : d;
  if (dim % 2 || dim > d || dim < 0)
    reject(where, "rope turns " + std::to_string(dim) + " of " + std::to_string(d) + " features",
           {{x.name() + " is " + text(shape), x.where()}},
           "features turn in pairs: an even number, at most d");
  std::vector<Axis> rows = axes_of(x, "i");
  const Axis feature = rows.back();
  rows.pop_back();
  const Axis side = axis("side", Extent(2)), pair = axis("p", Extent(dim / 2));
  const bool half = o.pairing == Pairing::half;
  auto place = [&](const Index& s) { return half ? dim / 2 * s + Index(pair) : s + 2 * Index(pair); };
  const Coords at = coords(rows);
  const Scalar a = x.at(at + Coords{place(0)}, where), b = x.at(at + Coords{place(1)}, where);
  if (given(o.cos) != given(o.sin))
    reject(where, "rope has a table of only one of cos and sin", {}, "give both, or none");
  if (given(o.cos)) {
    Shapes s(where);
    s("cos", o.cos, "row pair")("sin", o.sin, "row pair");
    if (!(s["row"] == shape[shape.size() - 2]) || !(s["pair"] == Extent(dim / 2)))
      reject(where, "rope's tables are " + text(o.cos.shape()),
             {{x.name() + " is " + text(shape) + ", of which " + std::to_string(dim) + " features turn",
               x.where()}},
             "a table has a number for each row and each pair of features");
  }
  const Turned y =
      given(o.cos)
          ? turn(a, b, o.cos.at({rows.back(), pair}, where), o.sin.at({rows.back(), pair}, where))
          : turn(a, b, rope_angle(position(rows.back()), pair, dim, o.base));
  std::vector<Axis> points = rows;
  points.push_back(side);
  points.push_back(pair);
  const std::vector<Extent> turned_shape = [&] {
    auto s = shape;
    s.back() = dim;
    return s;
  }();
  const Tensor turned = map_at(points, at + Coords{place(side)}, turned_shape,
                               select(iota(side) == index_literal(*x.builder, 0), y.a, y.b), "rope", where);
  if (dim == d) return turned;
  std::vector<Axis> all = rows;
  all.push_back(feature);
  const Coords here = at + Coords{feature};
  return map(all, or_else(turned.where_in_range(here, where), x.at(here, where)), "rope", where);
}
} // namespace

Tensor rope(const Tensor& x, const Rope& options, const Index& first, Where where) {
  return rope_by(
      x, [&](const Axis& row) { return iota(Index(row) + first); }, options, where);
}

Tensor rope_at(const Tensor& x, const Tensor& positions, const Rope& options, Where where) {
  return rope_by(
      x, [&](const Axis& row) { return positions.at({row}, where); }, options, where);
}

} // namespace tang::models
