// Prints what the compiler makes of fixed graphs: canonical text, plan, kernels, and the C source's hash. Every compiler
// that builds this must print the same bytes. usage: tang_texts EXAMPLES
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>

#include "tang/base/hash.hpp"
#include "tang/emit/c.hpp"
#include "tang/grad/surface.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/lower/lower.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/block.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/mlp.hpp"
#include "tang/models/moe.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/recurrent.hpp"
#include "tang/models/rope.hpp"
#include "tang/models/softmax.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/driver.hpp"
#include "tang/text/text.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::models;

namespace {

void print(const std::string& name, const Graph& written, int lanes) {
  const Graph g = canonical(written).graph;
  std::printf("==== %s\n%s\n", name.c_str(), text::print(g).c_str());
  rewrite::Optimized best = rewrite::optimize(g);
  std::printf("---- derivation\n%s\n", rewrite::explain(best.trace).c_str());
  const target::Target t = target::c_target(lanes, 2);
  const plan::Plan p = plan::make_plan(rewrite::expose_support(best.graph), {});
  std::printf("---- plan\n%s\n", plan::print(p).c_str());
  lower::Program k = lower::lower(p, {}, t);
  std::vector<const kernel::Kernel*> all;
  std::map<std::string, bool> seen;
  for (auto& l : k.kernels) {
    l.kernel = kernel::legalize(l.kernel, t);
    const std::string text = kernel::print(l.kernel);
    char id[24];
    std::snprintf(id, sizeof id, "k%016llx", static_cast<unsigned long long>(hash_of(text)));
    l.kernel.name = id;
    if (seen.emplace(l.kernel.name, true).second) all.push_back(&l.kernel);
    std::printf("---- kernel %s (%s)\n%s\n", l.label.c_str(), l.schedule.c_str(), text.c_str());
  }
  emit::COptions c;
  c.lanes = lanes;
  const std::string source = emit::c_unit(all, c);
  std::printf("---- C: %zu bytes, hash %016llx\n\n", source.size(), static_cast<unsigned long long>(hash_of(source)));
}
Graph attended(const AttentionOptions& o, int64_t rows = 37, int64_t keys = 60) {
  Builder b;
  Tensor q = b.input("q", {1, 3, rows, 16}), k = b.input("k", {1, 3, keys, 16}), v = b.input("v", {1, 3, keys, 16});
  const Attention a = attention(q, k, v, o);
  b.output(a.out, "out");
  if (!o.sigmoid) b.output(a.lse, "lse");
  return b.graph();
}
void builders(const std::function<void(const std::string&, const Graph&)>& show) {
  AttentionOptions o;
  show("attention", attended(o));
  o.mask = (causal() && window(9)) || (causal() && sink(3));
  show("attention, window and sink", attended(o));
  o.mask = causal();
  o.changes = {soft_cap(5)};
  show("attention, soft cap", attended(o));
  o.naive = true;
  show("attention as a textbook has it", attended(o));
  o.naive = false, o.changes = {}, o.sigmoid = true;
  show("attention, sigmoid", attended(o));
  {
    Builder b;
    Tensor q = b.input("q", {2, 2, 3, 29, 8}), k = b.input("k", {2, 2, 29, 8}), v = b.input("v", {2, 2, 29, 8});
    AttentionOptions biased;
    biased.mask = causal();
    biased.changes = {relative_bias(b.input("table", {32, 2, 3}), {128, false})};
    b.output(attention(q, k, v, biased).out, "out");
    show("attention, grouped queries and a bias table", b.graph());
  }
  {
    Builder b;
    Tensor x = b.input("x", {7, 576}), gain = b.param("gain", {576}), bias = b.param("bias", {576});
    b.output(layer_norm(x, gain, bias), "two_pass");
    b.output(layer_norm(x, gain, bias, {1e-5, Variance::welford, false}), "welford");
    b.output(rms_norm(x, gain), "rms");
    show("norms of rows", b.graph());
  }
  {
    Builder b;
    Tensor x = b.input("x", {2, 6, 5, 7}), gain = b.param("gain", {6}), bias = b.param("bias", {6});
    b.output(batch_norm(x, gain, bias).y, "batch");
    b.output(instance_norm(x, gain, bias), "instance");
    b.output(group_norm(x, 3, gain, bias), "group");
    show("norms of images", b.graph());
  }
  {
    Builder b;
    Tensor x = b.input("x", {9, 50}), target = b.input("target", {9}, Format::i32);
    b.output(softmax(x), "softmax");
    b.output(log_softmax(x), "log_softmax");
    b.output(log_sum_exp(x), "lse");
    b.output(cross_entropy(x, target, 0.1), "loss");
    show("softmax and losses", b.graph());
  }
  {
    Builder b;
    Tensor x = b.input("x", {5, 47});
    std::vector<Layer> layers;
    for (auto [n, m] : {std::pair<int64_t, int64_t>{64, 47}, {12, 64}}) {
      const std::string k = std::to_string(layers.size());
      const Tensor w = b.param("w" + k, {n, m}), c = b.param("b" + k, {n});
      layers.push_back({w, c});
    }
    b.output(mlp(x, layers, [](const Scalar& s) { return gelu(s); }), "gelu");
    const Tensor gate = b.param("gate", {90, 47}), up = b.param("up", {90, 47}), down = b.param("down", {47, 90});
    b.output(swiglu(x, gate, up, down), "swiglu");
    Tensor r = b.input("r", {3, 20, 16});
    b.output(rope(r), "half");
    b.output(rope(r, {10000, Pairing::interleaved}), "interleaved");
    show("layers and positions", b.graph());
  }
  {
    Builder b;
    Tensor x = b.input("x", {2, 4, 9, 11}), w = b.param("w", {6, 4, 3, 3}), g = b.param("g", {4, 1, 3, 3}), t = b.param("t", {4, 3, 3, 3});
    b.output(conv2d(x, w, {}, {{1}, {1}}), "same");
    b.output(conv2d(x, w, {}, {{2}, {1}, {}, {2}}), "strided");
    b.output(conv2d(x, g, {}, {{1}, {1}, {}, {1}, 4}), "depthwise");
    b.output(conv_transpose(x, t, {}, {{2}, {1}, {1}, {1}}), "transposed");
    b.output(max_pool(x, {{3}, {2}, {1}}), "max");
    show("convolutions and pooling", b.graph());
  }
  {
    Builder b;
    Tensor x = b.input("x", {6, 16});
    const Routing r = route(b.input("logits", {6, 8}), 2, true);
    const Tensor gate = b.param("gate", {8, 24, 16}), up = b.param("up", {8, 24, 16}), down = b.param("down", {8, 16, 24});
    b.output(moe(x, r, {gate, up, down}), "y");
    b.output(r.experts, "experts");
    show("experts", b.graph());
  }
  for (bool naive : {false, true}) {
    BlockSize s;
    s.model = 48, s.heads = 6, s.kv_heads = 2, s.head = 8, s.hidden = 100, s.naive = naive;
    Builder b;
    Tensor x = b.input("x", {1, 40, 48});
    b.output(block(x, block_weights(b, "l0", s), s), "y");
    show(naive ? "transformer block as a textbook has it" : "transformer block", b.graph());
  }
  for (bool reverse : {false, true}) {
    Builder b;
    Tensor x = b.input("x", {9, 2, 5}), h = b.input("h0", {2, 7});
    Gru p;
    const Tensor w = b.param("w", {21, 5}), u = b.param("u", {21, 7}), bias = b.param("bias", {21});
    p.cell = {w, u, bias, {}};
    const Sequence s = gru(x, h, p, reverse);
    b.output(s.all, "all");
    b.output(s.last, "last");
    show(reverse ? "gru backwards" : "gru", b.graph());
  }
  {
    Builder b;
    Tensor x = b.input("x", {1, 114}), h = b.state("h", {1, 96});
    Gru p;
    const Tensor w = b.param("w", {288, 114}), u = b.param("u", {288, 96}), bias = b.param("bias", {288});
    p.cell = {w, u, bias, {}};
    b.output(gru_cell(x, h, p), "h");
    show("gru step with a donated state", b.graph());
  }
  {
    Builder b;
    const Tensor q = b.input("q", {5, 4}), k = b.input("k", {5, 4}), v = b.input("v", {5, 3}), gate = b.input("gate", {5}), beta = b.input("beta", {5}), start = b.input("start", {4, 3});
    const DeltaRule d = gated_delta_rule(q, k, v, gate, beta, start);
    b.output(d.out, "out");
    b.output(d.state, "state");
    show("gated delta rule", b.graph());
  }
  {
    AttentionOptions causal_only;
    causal_only.mask = causal();
    Builder b;
    Tensor q = b.input("q", {1, 2, 33, 16}), k = b.input("k", {1, 2, 33, 16}), v = b.input("v", {1, 2, 33, 16});
    const auto g = diff::vjp(attention(q, k, v, causal_only).out, b.input("dout", {1, 2, 33, 16}), {q, k, v});
    for (size_t x = 0; x < g.size(); ++x) b.output(g[x], std::vector<std::string>{"dq", "dk", "dv"}[x]);
    show("attention, its gradient", b.graph());
  }
  {
    DecoderSize s;
    s.block = {64, 8, 4, 8, 172, 1e-5, {10000, Pairing::interleaved}};
    s.layers = 2, s.vocab = 50, s.context = 20;
    Builder b;
    decode_step(b, decoder_weights(b, s), s);
    show("one decode step", b.graph());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tang_texts EXAMPLES\n");
    return 2;
  }
  try {
    for (const char* name : {"attention", "block", "conv_norm", "gru", "moe"}) {
      std::ifstream in(std::string(argv[1]) + "/" + name + ".tang", std::ios::binary);
      std::ostringstream s;
      s << in.rdbuf();
      check(in.good() && !s.str().empty(), std::string("cannot read the example ") + name);
      const Graph open = text::parse(s.str(), std::string(name) + ".tang");
      std::printf("==== %s, symbols unbound\n%s\n", name, text::print(open).c_str());
      print(name, bind(open, {{"q_len", 100}, {"k_len", 130}, {"seq", 64}, {"batch", 2}, {"tokens", 40}}).graph, 16);
    }
    builders([](const std::string& name, const Graph& g) { print(name, g, 8); });
  } catch (const std::exception& e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
}
