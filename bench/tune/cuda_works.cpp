// What is timed on an NVIDIA GPU.
#include <random>

#include "cuda.hpp"
#include "tang/models/attention.hpp"

namespace bench {

namespace {
constexpr ir::Format bf16 = ir::Format::bf16;
constexpr int64_t hidden = 2048, heads = 4096, kv = 512, experts = 128, routed_to = 32, inner = 768, picked = 8, words = 16384;

// x [t, k] by w [n, k], then what `after` makes of a sum.
using After = std::function<Scalar(ir::Builder&, const Scalar& sum, const Axis& i, const Axis& j)>;

ir::Graph product(int64_t m, int64_t n, int64_t k, const After& after = {}) {
  ir::Builder b;
  Tensor x = b.input("x", {m, k}, bf16), w = b.input("w", {n, k}, bf16);
  auto [i, j, l] = axes<"i j l">();
  const Scalar s = sum(l, x(i, l) * w(j, l));
  b.output(map({i, j}, after ? after(b, s, i, j) : s), "y", bf16);
  return b.graph();
}

ir::Graph gated(int64_t t) { // silu(x g^T) (x u^T)
  ir::Builder b;
  Tensor x = b.input("x", {t, hidden}, bf16), g = b.input("g", {inner, hidden}, bf16),
         u = b.input("u", {inner, hidden}, bf16);
  auto [i, j, l] = axes<"i j l">();
  const Scalar gate = sum(l, x(i, l) * g(j, l)), up = sum(l, x(i, l) * u(j, l));
  b.output(map({i, j}, gate / (1.0 + exp(-gate)) * up), "y", bf16);
  return b.graph();
}

ir::Graph routed(int64_t t) { // each token's picked experts, looked up
  ir::Builder b;
  Tensor h = b.input("h", {t, picked, inner}, bf16), w = b.input("w", {routed_to, hidden, inner}, bf16),
         e = b.input("e", {t, picked}, ir::Format::i32);
  auto [i, s, j, l] = axes<"i s j l">();
  b.output(map({i, s, j}, sum(l, h(i, s, l) * w(e(i, s), j, l))), "y", bf16);
  return b.graph();
}

int64_t distinct(const ir::Graph& g, const std::string& name) {
  const auto in = inputs_of(g);
  const auto& all = in.at(name).i;
  return int64_t(std::set<int64_t>(all.begin(), all.end()).size());
}

ir::Graph attention(int64_t b_, int64_t h, int64_t n, int64_t d, bool causal) {
  ir::Builder b;
  Tensor q = b.input("q", {b_, h, n, d}, bf16), k = b.input("k", {b_, h, n, d}, bf16),
         v = b.input("v", {b_, h, n, d}, bf16);
  models::AttentionOptions how;
  if (causal) how.mask = models::causal();
  b.output(models::attention(q, k, v, how).out, "o", bf16);
  return b.graph();
}

CudaProblem plain(std::mt19937_64& rng) { // folds along rows and maps
  auto size = [&](int64_t least, int64_t most) {
    return least + int64_t(rng() % uint64_t(most - least + 1));
  };
  ir::Builder g;
  auto [i, j, k] = axes<"i j k">();
  const int64_t m = size(64, 6000), n = size(64, 4000);
  const std::string shape = " " + std::to_string(m) + "x" + std::to_string(n);
  const int kind = int(rng() % 5);
  Tensor x = g.input("x", {m, n});
  if (kind == 0) g.output(map({i}, max(j, x(i, j))), "y");
  if (kind == 1) g.output(map({i, j}, x(i, j) - sum(k, x(i, k)) / double(n)), "y");
  if (kind == 2) g.output(map({i, j}, x(i, j) + g.input("v", {n, m})(j, i)), "y");
  if (kind == 3) g.output(map({i}, sum(j, x(i, j) * g.input("w", {n})(j))), "y");
  if (kind == 4) g.output(map({i, j}, tanh(x(i, j)) * g.input("w", {n})(j)), "y");
  const char* const names[] = {"row maxima", "rows less their mean", "x + v^T", "x w, one column", "tanh(x) w"};
  return {names[kind] + shape, "sound", g.graph(), false, {}, 1e-4, 3};
}
} // namespace

std::vector<CudaProblem> class_problems() {
  std::vector<CudaProblem> out;
  for (int64_t t : {1, 8, 48}) {
    // Of products with several rows, which have rules of their own, the first candidates.
    auto add = [&](const std::string& name, ir::Graph g) {
      out.push_back({name + ", " + std::to_string(t) + (t > 1 ? " tokens" : " token"), "class", std::move(g)});
      out.back().most = t > 1 ? 8 : 1;
    };
    auto residual = [&](ir::Builder& b, const Scalar& s, const Axis& i, const Axis& j) {
      return s + b.input("r", {t, hidden}, bf16)(i, j);
    };
    add("q, k, v", product(t, heads + 2 * kv, hidden));
    add("k, v", product(t, 2 * kv, hidden));
    add("heads to hidden, residual", product(t, hidden, heads, residual));
    add("router", product(t, experts, hidden));
    add("expert's gate and up", gated(t));
    add("expert's down, residual", product(t, hidden, inner, residual));
    add("experts' down, looked up", routed(t));
    out.back().most = 1;
    out.back().keys = {{"w", distinct(out.back().graph, "e")}};
    add("words, part", product(t, words, hidden));
  }
  return out;
}

std::vector<CudaProblem> cuda_race_problems() {
  std::vector<CudaProblem> out;
  for (auto [m, n, k] : {std::array<int64_t, 3>{896, 896, 896}, {1792, 1792, 1792}, {3584, 3584, 3584}, {2560, 10240, 2560}})
    out.push_back({"matmul " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k), "race",
                   product(m, n, k), true, {}, 1e-2, 200});
  struct Shape {
    int64_t b, h, n, d;
    bool causal;
  };
  for (Shape s : {Shape{4, 16, 1024, 64, false}, {2, 16, 2048, 128, true}, {1, 16, 4096, 128, false}, {1, 16, 8192, 64, true}})
    out.push_back({std::string(s.causal ? "causal" : "full") + " attention b" + std::to_string(s.b) + " h" +
                       std::to_string(s.h) + " n" + std::to_string(s.n) + " d" + std::to_string(s.d),
                   "race", attention(s.b, s.h, s.n, s.d, s.causal), true, {}, 1e-2, 200});
  return out;
}

std::vector<CudaProblem> cuda_sound_problems() {
  std::mt19937_64 rng(23);
  std::vector<CudaProblem> out;
  for (int n = 0; n < 100; ++n) out.push_back(plain(rng));
  return out;
}

} // namespace bench
