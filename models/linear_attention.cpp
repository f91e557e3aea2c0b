#include "tang/models/recurrent.hpp"

namespace tang::models {

DeltaRule gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gate,
                           const Tensor& beta, const Tensor& start, Where where) {
  Shapes s(where);
  s("q", q, "time key")("k", k, "time key")("v", v, "time value")("gate", gate, "time")("beta", beta, "time")(
      "start", start, "key value");
  const Axis t = axis("t", s["time"]), x = axis("x", s["key"]), y = axis("y", s["key"]),
             c = axis("c", s["value"]);
  const Recurred r = recur(
      t, {carried("S", start)},
      [&](const std::vector<Tensor>& old) -> Step {
        const Tensor decayed =
            map({x, c}, exp(gate.at({t}, where)) * old[0].at({x, c}, where), "decayed", where);
        const Scalar found = sum(y, decayed.at({y, c}, where) * k.at({t, y}, where), where);
        const Tensor next = map({x, c},
                                decayed.at({x, c}, where) +
                                    beta.at({t}, where) * k.at({t, x}, where) * (v.at({t, c}, where) - found),
                                "S", where);
        const Tensor out =
            map({c}, sum(x, next.at({x, c}, where) * q.at({t, x}, where), where), "out", where);
        return {{next}, {out}};
      },
      {}, where);
  return {r.emits[0], r.states[0]};
}

DeltaRule gated_linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gate,
                                 Where where) {
  Shapes s(where);
  s("q", q, "time key")("k", k, "time key")("v", v, "time value")("gate", gate, "time");
  const Axis t = axis("t", s["time"]), x = axis("x", s["key"]), c = axis("c", s["value"]);
  const Recurred r = recur(
      t, {carried("S", {s["key"], s["value"]})},
      [&](const std::vector<Tensor>& old) -> Step {
        const Scalar kept = sigmoid(gate.at({t}, where)) * old[0].at({x, c}, where);
        const Tensor next = map({x, c}, kept + k.at({t, x}, where) * v.at({t, c}, where), "S", where);
        return {{next}, {map({c}, sum(x, next.at({x, c}, where) * q.at({t, x}, where), where), "out", where)}};
      },
      {}, where);
  return {r.emits[0], r.states[0]};
}

} // namespace tang::models
