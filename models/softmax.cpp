#include "tang/models/softmax.hpp"

namespace tang::models {

Scalar softmax_weight(const Over& over, const Scalar& score, Where where) {
  const Scalar top = max(over, score, where);
  // A row whose scores are all -inf is empty. One with a NaN is not: its weights are NaN.
  return exp(masked(!(top == Scalar(-infinity)), score - top));
}

Attended attend(const Over& keys, const Scalar& score, const Scalar& value, Where where) {
  const Scalar weight = softmax_weight(keys, score, where);
  const Scalar total = sum(keys, weight, where);
  const Scalar mixed = sum(keys, weight * value, where);
  return {ratio(mixed, total), max(keys, score, where) + log(total)};
}

namespace {
// The axes of x without the last one, and the last.
std::pair<std::vector<Axis>, Axis> rows_of(const Tensor& x, Where where, const char* what) {
  if (!given(x) || x.shape().empty())
    reject(where, std::string(what) + " of a tensor without dimensions", {},
           "it works along the last dimension");
  std::vector<Axis> rows = axes_of(x, "i");
  const Axis last = rows.back();
  rows.pop_back();
  return {rows, last};
}
} // namespace

Tensor softmax(const Tensor& x, bool stored, Where where) {
  const auto [rows, j] = rows_of(x, where, "softmax");
  const std::vector<Axis> all = plus(rows, j);
  // No mask: every point of the result exists, so a row of -inf is 0 rather than absent.
  const Scalar weight = or_else(softmax_weight(j, x.at(coords(all), where), where), Scalar(0.0));
  if (!stored) return map(all, ratio(weight, sum(j, weight, where)), "softmax", where);
  const Tensor kept = keep(all, weight, "exp", where);
  const Tensor total = keep(rows, sum(j, kept.at(coords(all), where), where), "total", where);
  return map(all, ratio(kept.at(coords(all), where), total.at(coords(rows), where)), "softmax", where);
}

Tensor log_softmax(const Tensor& x, Where where) {
  const auto [rows, j] = rows_of(x, where, "log_softmax");
  const std::vector<Axis> all = plus(rows, j);
  const Scalar score = x.at(coords(all), where);
  return map(all, score - attend(j, score, Scalar(1.0), where).lse, "log_softmax", where);
}

Tensor log_sum_exp(const Tensor& x, Where where) {
  const auto [rows, j] = rows_of(x, where, "log_sum_exp");
  const Scalar score = x.at(coords(plus(rows, j)), where);
  const Scalar top = max(j, score, where), lse = attend(j, score, Scalar(1.0), where).lse;
  return map(rows, select(top == Scalar(infinity), top, lse), "log_sum_exp", where); // inf - inf would be NaN
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, double smoothing, Where where) {
  Shapes s(where);
  s("logits", logits, "row class")("target", target, "row");
  if (target.type() != Type::index)
    reject(where, "target holds " + std::string(expr::name(target.type())) + " values",
           {{target.name() + " is declared here", target.where()}},
           "declare it with an integer format: class numbers");
  if (smoothing < 0 || smoothing > 1)
    reject(where, "label smoothing of " + shortest(smoothing), {}, "it is a share between 0 and 1");
  auto [i, c] = axes<"i c">();
  const Scalar score = logits.at({i, c}, where);
  const Scalar lse = attend(c, score, Scalar(1.0), where).lse;
  Scalar hit = logits.at({i, target.at({i}, where)}, where);
  if (smoothing > 0)
    hit = (1 - smoothing) * hit + smoothing / double(s.whole("class")) * sum(c, score, where);
  return map({i}, lse - hit, "cross_entropy", where);
}

Tensor mean(const Tensor& x, Where where) {
  Shapes s(where);
  s("x", x, "row");
  const Axis i = axis("i", s["row"]), one = axis("one", Extent(1));
  return map({one}, sum(i, x.at({i}, where), where) / count(i, {s["row"]}), "mean", where);
}

} // namespace tang::models
