#include "tang/models/attention.hpp"

#include <cmath>

namespace tang::models {

Attention attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                    Where where) {
  if (!given(q) || (q.shape().size() != 4 && q.shape().size() != 5))
    reject(
        where, "q is neither [batch, head, row, d] nor [batch, kv, group, row, d]",
        {{given(q) ? q.name() + " is " + text(q.shape()) : "q is no tensor", given(q) ? q.where() : Where{}}},
        "map it to one of those shapes first");
  const bool grouped = q.shape().size() == 5;
  Shapes s(where);
  s("q", q, grouped ? "batch kv group row d" : "batch head row d");
  s("k", k, grouped ? "batch kv key d" : "batch head key d");
  s("v", v, grouped ? "batch kv key c" : "batch head key c");
  const Axis b = axis("b", s["batch"]), i = axis("i", s["row"]), j = axis("j", s["key"]),
             d = axis("d", s["d"]), c = axis("c", s["c"]);
  Spot spot{b,        {axis(grouped ? "g" : "h", s[grouped ? "kv" : "head"])}, i,         j,    0, s["row"],
            s["key"], o.first ? *o.first : Index(s["key"] - s["row"]),         q.builder, where};
  spot.position = Index(i) + spot.first;
  const Coords of_key = Coords{b, spot.heads[0], j};
  if (grouped) spot.heads.push_back(axis("r", s["group"]));
  const Coords rows = Coords{b} + coords(spot.heads) + Coords{i};
  std::vector<Axis> points{b};
  points.insert(points.end(), spot.heads.begin(), spot.heads.end());
  points.push_back(i);
  auto plus = [&](const Axis& a) {
    std::vector<Axis> out = points;
    out.push_back(a);
    return out;
  };
  const double scale = o.scale != 0 ? o.scale : 1 / std::sqrt(double(s.whole("d")));
  Scalar score = sum(d, q.at(rows + Coords{d}, where) * k.at(of_key + Coords{d}, where), where) * scale;
  Attention result;
  if (o.naive) {
    result.scores = keep(plus(j), score, "scores", where);
    score = result.scores.at(rows + Coords{j}, where);
  }
  for (auto& change : o.changes) score = change(score, spot);
  if (given(o.keep)) {
    s("keep", o.keep, "row key");
    if (o.keep.type() != Type::boolean)
      reject(where, "keep holds " + std::string(expr::name(o.keep.type())) + " values",
             {{o.keep.name() + " is declared here", o.keep.where()}}, "declare it with Format::boolean");
    score = masked(o.keep.at({i, j}, where), score);
  }
  if (o.mask) score = masked(o.mask->at(spot), score);
  const Scalar value = v.at(of_key + Coords{c}, where);

  if (!o.naive && !o.sigmoid) {
    const Attended a = attend(j, score, value, where);
    result.out = map(plus(c), a.out, "attention", where);
    result.lse = map(points, a.lse, "lse", where);
    return result;
  }
  Scalar weight = o.sigmoid ? sigmoid(score + o.sigmoid_bias) : softmax_weight(j, score, where);
  const Scalar total = sum(j, weight, where);
  if (!o.sigmoid) weight = ratio(weight, total);
  if (o.naive) {
    result.probabilities = keep(plus(j), weight, "probabilities", where);
    weight = result.probabilities.at(rows + Coords{j}, where);
  }
  result.out = map(plus(c), sum(j, weight * value, where), "attention", where);
  if (!o.sigmoid) result.lse = map(points, max(j, score, where) + log(total), "lse", where);
  return result;
}

namespace {
Tensor replaced(const Tensor& cache, const Tensor& fresh, const Tensor& pos, bool ring, Where where) {
  Shapes s(where);
  s("cache", cache, "time heads d")("fresh", fresh, "heads d")("pos", pos, "");
  if (pos.type() != Type::index)
    reject(where, "pos holds " + std::string(expr::name(pos.type())) + " values",
           {{pos.name() + " is declared here", pos.where()}}, "declare it with an integer format");
  auto [t, h, d] = axes<"t h d">();
  Scalar slot = pos.at({}, where);
  if (ring) slot = slot % index_literal(*cache.builder, s.whole("time"));
  return map({t, h, d}, select(iota(t) == slot, fresh.at({h, d}, where), cache.at({t, h, d}, where)),
             cache.name(), where);
}
} // namespace

Tensor append(const Tensor& cache, const Tensor& fresh, const Tensor& pos, Where where) {
  return replaced(cache, fresh, pos, false, where);
}

Tensor append_to_ring(const Tensor& cache, const Tensor& fresh, const Tensor& pos, Where where) {
  return replaced(cache, fresh, pos, true, where);
}

} // namespace tang::models
