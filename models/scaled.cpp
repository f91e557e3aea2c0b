#include "tang/models/scaled.hpp"

namespace tang::models {

namespace {
// Elements that share a scale.
int64_t in_a_block(int64_t all, int64_t scales, const std::string& dimension, const Tensor& scale,
                   Where where) {
  if (scales < 1 || all % scales)
    reject(where, "scales do not divide " + dimension + ": " + std::to_string(all) + " elements, " +
                      std::to_string(scales) + " scales",
           {{"the scales", scale.where()}}, "give one scale for each block of as many elements");
  return all / scales;
}
} // namespace

Tensor scaled_product(const Tensor& a, const Tensor& a_scale, const Tensor& b, const Tensor& b_scale,
                      Where where) {
  Shapes s(where);
  s("a", a, "m k")("b", b, "n k")("a_scale", a_scale, "blocks m")("b_scale", b_scale, "panels blocks");
  const int64_t terms = in_a_block(s.whole("k"), s.whole("blocks"), "k", a_scale, where),
                columns = in_a_block(s.whole("n"), s.whole("panels"), "n", b_scale, where);
  const Axis m = axis("m", s["m"]), nb = axis("nb", s["panels"]), ni = axis("ni", Extent(columns)),
             kb = axis("kb", s["blocks"]), ki = axis("ki", Extent(terms));
  const Index n = columns * Index(nb) + Index(ni), k = terms * Index(kb) + Index(ki);
  const Scalar x = a.at({m, k}, where) * a_scale.at({kb, m}, where),
               y = b.at({n, k}, where) * b_scale.at({nb, kb}, where);
  return map_at({m, nb, ni}, {m, n}, {s["m"], s["n"]}, sum({kb, ki}, x * y, where), "scaled product",
                where);
}

} // namespace tang::models
