// Attention with its gradients, and what their kernels are given.
#pragma once
#include "backward/tensor_roles.hpp"
#include "tang/grad/surface.hpp"
#include "tang/models/attention.hpp"

namespace tang::test {

struct Size { // of attention in bf16
  int64_t heads, kv, rows, keys, d;
  bool causal;
};

inline ir::Graph gradient(const Size& s) {
  constexpr auto bf16 = ir::Format::bf16;
  ir::Builder b;
  const int64_t group = s.heads / s.kv;
  using Shape = std::vector<ir::Extent>;
  ir::Tensor q = b.input("q", group > 1 ? Shape{1, s.kv, group, s.rows, s.d} : Shape{1, s.heads, s.rows, s.d},
                         bf16),
             k = b.input("k", {1, s.kv, s.keys, s.d}, bf16), v = b.input("v", {1, s.kv, s.keys, s.d}, bf16);
  models::AttentionOptions o;
  if (s.causal) o.mask = models::causal();
  const auto a = models::attention(q, k, v, o);
  const ir::Tensor dout = b.input("dout", a.out.shape(), bf16);
  const auto d = diff::vjp(a.out, dout, {q, k, v});
  b.output(a.out, "out", bf16);
  b.output(d[0], "dq", bf16), b.output(d[1], "dk", bf16), b.output(d[2], "dv", bf16);
  return b.graph();
}

// Random values for what a kernel reads; results are poisoned. `adds`: its temporaries are 0, which it adds to.
inline std::vector<kernel::Buffer> buffers(const lower::Lowered& l, bool adds = false) {
  std::vector<kernel::Buffer> out;
  uint64_t seed = 7;
  for (size_t a = 0; a < l.arguments.size(); ++a) {
    const kernel::Memory& m = l.kernel.memories[a];
    kernel::Buffer b = poisoned(m.size());
    if (adds && std::holds_alternative<int>(l.arguments[a].what)) b.r.assign(b.r.size(), 0.0);
    if (!l.arguments[a].written) {
      b.r = random_array({m.size()}, seed++).r;
      for (double& x : b.r) x = ir::rounded(x, m.format);
    }
    out.push_back(std::move(b));
  }
  return out;
}

} // namespace tang::test
