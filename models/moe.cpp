#include "tang/models/moe.hpp"

namespace tang::models {

namespace {
// One tensor of k columns out of k scalars over `points`.
Tensor columns(const std::vector<Axis>& points, const std::vector<Scalar>& values, const char* name,
               Where where) {
  const Axis r = axis("r", Extent(int64_t(values.size())));
  Builder& b = *values[0].builder();
  Scalar out = values.back();
  for (size_t k = values.size() - 1; k-- > 0;)
    out = select(iota(r) == index_literal(b, int64_t(k)), values[k], out);
  std::vector<Axis> all = points;
  all.push_back(r);
  return map(all, out, name, where);
}
} // namespace

Routing route(const Tensor& logits, int k, bool renormalise, Where where) {
  Shapes s(where);
  s("logits", logits, "token expert");
  if (k < 1 || (s["expert"].is_constant() && k > s["expert"].value()))
    reject(where, "the top " + std::to_string(k) + " of " + s["expert"].text() + " experts",
           {{logits.name() + " is " + text(logits.shape()), logits.where()}},
           "route to at least one expert and at most all of them");
  auto [t, e, r] = axes<"t e r">();
  const Scalar logit = logits.at({t, e}, where);
  const auto best = top(k, e, logit, where);
  const Tensor experts = columns({t}, best.second, "experts", where),
               scores = columns({t}, best.first, "scores", where);
  const Scalar chosen = scores.at({t, r}, where);
  // softmax over all and then over the chosen is softmax over the chosen.
  const Scalar lse = renormalise ? attend(r, chosen, 1.0, where).lse : attend(e, logit, 1.0, where).lse;
  return {experts, map({t, r}, exp(chosen - lse), "routing", where)};
}

Tensor moe(const Tensor& x, const Routing& p, const Experts& w, Where where) {
  Shapes s(where);
  s("x", x, "token m")("experts", p.experts, "token k")("weights", p.weights, "token k");
  s("gate", w.gate, "expert f m")("up", w.up, "expert f m")("down", w.down, "expert m f");
  auto [t, r, f, m, o] = axes<"t r f m o">();
  const Scalar expert = p.experts.at({t, r}, where);
  const Scalar g = sum(m, w.gate.at({expert, f, m}, where) * x.at({t, m}, where), where);
  const Scalar u = sum(m, w.up.at({expert, f, m}, where) * x.at({t, m}, where), where);
  const Tensor hidden = map({t, r, f}, silu(g) * u, "hidden", where);
  const Scalar term =
      p.weights.at({t, r}, where) * hidden.at({t, r, f}, where) * w.down.at({expert, o, f}, where);
  return map({t, o}, sum({r, f}, term, where), "moe", where);
}

Tensor tokens_of_experts(const Tensor& routed, const Tensor& scores, int capacity, Where where) {
  Shapes s(where);
  s("routed", routed, "token expert")("scores", scores, "token expert");
  auto [t, e] = axes<"t e">();
  return columns({e},
                 top(capacity, t, masked(routed.at({t, e}, where), scores.at({t, e}, where)), where).second,
                 "tokens", where);
}

} // namespace tang::models
