#include "tang/cli/programs.hpp"

#include "tang/grad/surface.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/block.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/moe.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/recurrent.hpp"

namespace tang::cli {

using namespace ir;
using namespace models;

namespace {
std::string by(std::initializer_list<std::pair<const char*, int64_t>> dims) {
  std::string s;
  for (auto& [n, v] : dims) s += (s.empty() ? "" : " ") + std::string(n) + std::to_string(v);
  return s;
}

Naive causal_attention(int64_t n) {
  const int64_t h = 4, d = 64;
  Builder b;
  Tensor q = b.input("q", {1, h, n, d}), k = b.input("k", {1, h, n, d}), v = b.input("v", {1, h, n, d});
  AttentionOptions o;
  o.mask = causal();
  o.changes = {soft_cap(20)};
  o.naive = true;
  b.output(attention(q, k, v, o).out, "out");
  return {"causal attention, soft cap", by({{"H", h}, {"N", n}, {"D", d}}), b.graph(),
          4.0 * double(h * d) * double(n) * double(n + 1) / 2};
}

Naive attention_backward(int64_t n) {
  const int64_t h = 1, d = 64;
  Builder b;
  Tensor q = b.input("q", {1, h, n, d}), k = b.input("k", {1, h, n, d}), v = b.input("v", {1, h, n, d});
  AttentionOptions o;
  o.mask = causal();
  o.naive = true;
  const std::vector<Tensor> g = diff::vjp(attention(q, k, v, o).out, b.input("dout", {1, h, n, d}), {q, k, v});
  const char* const names[] = {"dq", "dk", "dv"};
  for (size_t x = 0; x < g.size(); ++x) b.output(g[x], names[x]);
  return {"causal attention, its gradient", by({{"H", h}, {"N", n}, {"D", d}}), b.graph(),
          10.0 * double(h * d) * double(n) * double(n + 1) / 2};
}

Naive transformer_block(int64_t n) {
  BlockSize s;
  s.naive = true;
  Builder b;
  Tensor x = b.input("x", {1, n, s.model});
  b.output(block(x, block_weights(b, "layer", s), s), "y");
  const double weights = double(s.model * (s.heads + 2 * s.kv_heads) * s.head + s.heads * s.head * s.model +
                                3 * s.model * s.hidden);
  return {"transformer block", by({{"N", n}, {"D", s.model}, {"H", s.heads}, {"FF", s.hidden}}), b.graph(),
          2 * double(n) * weights + 4.0 * double(s.heads * s.head) * double(n) * double(n + 1) / 2};
}

Naive top_2_experts(int64_t tokens) {
  const int64_t e = 8, m = 64, f = 128;
  Builder b;
  Tensor x = b.input("x", {tokens, m});
  const Routing r = route(b.input("logits", {tokens, e}), 2, true);
  b.output(moe(x, r, {b.param("gate", {e, f, m}), b.param("up", {e, f, m}), b.param("down", {e, m, f})}),
           "y");
  return {"top-2 of 8 experts", by({{"T", tokens}, {"M", m}, {"F", f}}), b.graph(),
          2.0 * double(tokens) * 2 * 3 * double(m * f)};
}

Naive padded_conv_and_norm(int64_t side) {
  const int64_t c = 32;
  Builder b;
  Tensor x = b.input("x", {1, c, side, side});
  Tensor y = conv2d(x, b.param("w", {c, c, 3, 3}), {}, {{1}, {1}});
  b.output(instance_norm(y, b.param("gain", {c}), b.param("bias", {c})), "y");
  return {"padded conv 3x3 + instance norm", by({{"C", c}, {"S", side}}), b.graph(),
          2.0 * double(c * c * 9) * double(side * side)};
}

Naive gru_step() {
  Builder b;
  Tensor x = b.input("x", {1, 114}), h = b.state("h", {1, 96});
  Gru p;
  p.cell = {b.param("w", {288, 114}), b.param("u", {288, 96}), b.param("bias", {288}), {}};
  b.output(gru_cell(x, h, p), "h");
  return {"GRU step, batch 1", by({{"I", 114}, {"H", 96}}), b.graph(), 2.0 * 288 * (114 + 96)};
}
} // namespace

std::vector<Naive> demo_programs(int64_t scale) {
  std::vector<Naive> out;
  out.push_back(causal_attention(256 * scale));
  out.push_back(attention_backward(256 * scale));
  out.push_back(transformer_block(32 * scale));
  out.push_back(top_2_experts(32 * scale));
  out.push_back(padded_conv_and_norm(32 * scale));
  out.push_back(gru_step());
  return out;
}

} // namespace tang::cli
