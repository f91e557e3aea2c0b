// Every builder's gradient where all inputs are equal, so that everything ties, and where a dimension has no element.
#include "grad/further.hpp"
#include "grad/on_c.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
class grad_ties : public testing::TestWithParam<const char*> {};

struct Slopes {
  double left, right, rounding;
};

// Of both sides of an entry, second order.
Slopes slopes(GradientCheck& check, eval::Oracle& o, const std::string& name, size_t entry) {
  const double h = 1e-5; // norms of equal values bend at the root of their eps
  Array a = check.in.at(name);
  const double x = a.r[entry], here = check.loss(o);
  auto at = [&](double step) {
    a.r[entry] = x + step * h;
    o.rebind(name, a);
    return check.loss(o);
  };
  const double right = (-3 * here + 4 * at(1) - at(2)) / (2 * h), left = (3 * here - 4 * at(-1) + at(-2)) / (2 * h);
  o.rebind(name, check.in.at(name));
  return {left, right, 1e-15 * std::fabs(here) / h};
}
} // namespace

// Where the slopes of both sides agree the gradient is the slope; at a tie it lies between them. Forward mode agrees.
TEST_P(grad_ties, lie_between_the_slopes_of_both_sides) {
  cases::each_graph(GetParam(), [](const Graph& g, const Inputs& given, const std::string& label, double) {
    Inputs in = given;
    for (auto& n : g.nodes)
      if (auto* x = n.input(); x && type_of(x->format) == expr::Type::real && !in.count(n.name)) {
        in[n.name] = Array(eval::bound(x->shape), expr::Type::real);
        in[n.name].r.assign(in[n.name].r.size(), 0.5);
      }
    GradientCheck check(g, in, label);
    for (auto& [name, w] : check.weights) { // of one sign: a sum of maxima has its gradient between its slopes then
      for (double& v : w.r) v = std::fabs(v);
      check.in["weight of " + name] = w;
    }
    ASSERT_NO_FATAL_FAILURE(check.run());
    check.expect_forward();
    eval::Oracle o(check.g, check.in);
    for (auto& name : check.names) {
      const Array& d = check.gradients.at(name);
      double scale = 1;
      for (double v : d.r) {
        ASSERT_TRUE(std::isfinite(v)) << label << ": d " << name;
        scale = std::max(scale, std::fabs(v));
      }
      for (int k = 0; k < 3 && d.size(); ++k) {
        const size_t at = size_t(check.rng() % uint64_t(d.size()));
        const Slopes s = slopes(check, o, name, at);
        const double room = 1e-5 * scale + s.rounding;
        EXPECT_GE(d.r[at], std::min(s.left, s.right) - room) << label << ": d " << name << " at " << at;
        EXPECT_LE(d.r[at], std::max(s.left, s.right) + room) << label << ": d " << name << " at " << at;
      }
    }
  });
}
INSTANTIATE_TEST_SUITE_P(grad, grad_ties, testing::ValuesIn(cases::names_of_differentiated()),
                         [](const auto& i) { return std::string(i.param); });

namespace {
// Builders with an extent of 0, each dimension that may have it in turn.
struct Empty {
  const char* name;
  Graph (*graph)(int dimension);
  int dimensions;
  std::vector<std::string> indices = {}; // inputs that select: they are 0
};

int64_t sized(int dimension, int mine, int64_t otherwise) { return dimension == mine ? 0 : otherwise; }

Graph empty_attention(int z) {
  Builder b;
  const int64_t batch = sized(z, 0, 1), heads = sized(z, 1, 2), rows = sized(z, 2, 5), keys = sized(z, 3, 6), d = sized(z, 4, 4),
                c = sized(z, 5, 3);
  const Tensor q = b.input("q", {batch, heads, rows, d}), k = b.input("k", {batch, heads, keys, d}),
               v = b.input("v", {batch, heads, keys, c});
  AttentionOptions o;
  o.scale = 0.5; // 1 / sqrt(d) has no value for d = 0
  o.mask = causal();
  o.changes = {soft_cap(3), alibi(b.input("slopes", {heads}))};
  b.output(attention(q, k, v, o).out, "online");
  o.naive = true;
  b.output(attention(q, k, v, o).out, "stored");
  o.naive = false, o.sigmoid = true;
  b.output(attention(q, k, v, o).out, "sigmoid");
  return b.graph();
}

Graph empty_norms(int z) {
  Builder b;
  const int64_t rows = sized(z, 0, 3), n = sized(z, 1, 4);
  const Tensor x = b.input("x", {rows, n}), gain = b.param("gain", {n}), bias = b.param("bias", {n});
  b.output(layer_norm(x, gain, bias), "layer");
  b.output(layer_norm(x, gain, bias, {1e-5, Variance::welford, false}), "welford");
  b.output(rms_norm(x, gain), "rms");
  const int64_t batch = sized(z, 2, 2), channels = sized(z, 3, 4), side = sized(z, 4, 3);
  const Tensor y = b.input("y", {batch, channels, side, 2}), g = b.param("g", {channels}), h = b.param("h", {channels});
  b.output(batch_norm(y, g, h).y, "batch"), b.output(instance_norm(y, g, h), "instance");
  if (channels) b.output(group_norm(y, 2, g, h), "group");
  return b.graph();
}

Graph empty_softmax(int z) {
  Builder b;
  const int64_t rows = sized(z, 0, 3), n = sized(z, 1, 5);
  const Tensor x = b.input("x", {rows, n});
  b.output(softmax(x), "softmax"), b.output(log_softmax(x), "log"), b.output(log_sum_exp(x), "lse");
  if (n) b.output(cross_entropy(x, b.input("target", {rows}, Format::i32), 0.1), "loss");
  return b.graph();
}

Graph empty_layers(int z) {
  Builder b;
  const int64_t rows = sized(z, 0, 3), in = sized(z, 1, 4), hidden = sized(z, 2, 6), out = sized(z, 3, 5), ids = sized(z, 4, 3);
  const Tensor x = b.input("x", {rows, in});
  b.output(mlp(x, {{b.param("w0", {hidden, in}), b.param("b0", {hidden})}, {b.param("w1", {out, hidden}), b.param("b1", {out})}},
               [](const Scalar& s) { return gelu(s); }), "mlp");
  b.output(swiglu(x, b.param("gate", {hidden, in}), b.param("up", {hidden, in}), b.param("down", {in, hidden})), "swiglu");
  b.output(rope(b.input("r", {2, rows, 4})), "rope");
  b.output(embedding(b.param("table", {5, in}), b.input("ids", {ids}, Format::i32)), "rows");
  return b.graph();
}

Graph empty_images(int z) {
  Builder b;
  const int64_t batch = sized(z, 0, 2), in = sized(z, 1, 2), out = sized(z, 2, 3);
  const Tensor x = b.input("x", {batch, in, 5, 4});
  b.output(conv2d(x, b.param("w", {out, in, 3, 3}), b.param("bias", {out}), {{2}, {1}}), "conv");
  b.output(conv_transpose(x, b.param("t", {in, out, 3, 3}), {}, {{2}, {1}, {1}, {1}}), "transposed");
  b.output(max_pool(x, {{3}, {2}, {1}}), "max"), b.output(avg_pool(x, {{3}, {2}, {1}}), "avg");
  return b.graph();
}

Graph empty_experts(int z) {
  Builder b;
  const int64_t tokens = sized(z, 0, 3), m = sized(z, 1, 4), f = sized(z, 2, 5);
  const Tensor x = b.input("x", {tokens, m});
  b.output(moe(x, route(linear(x, b.param("router", {3, m})), 2, true),
               {b.param("gate", {3, f, m}), b.param("up", {3, f, m}), b.param("down", {3, m, f})}), "y");
  return b.graph();
}

Graph empty_recurrences(int z) {
  Builder b;
  const int64_t steps = sized(z, 0, 4), batch = sized(z, 1, 2), in = sized(z, 2, 3), hidden = sized(z, 3, 2);
  const Tensor x = b.input("x", {steps, batch, in}), h = b.input("h", {batch, hidden}), c = b.input("c", {batch, hidden});
  Gru p;
  p.cell = {b.param("w", {3 * hidden, in}), b.param("u", {3 * hidden, hidden}), b.param("bias", {3 * hidden}), {}};
  const Sequence s = gru(x, h, p);
  b.output(s.all, "gru"), b.output(s.last, "gru last");
  const LstmSequence l = lstm(x, {h, c}, {b.param("lw", {4 * hidden, in}), b.param("lu", {4 * hidden, hidden}), {}, {}}, true);
  b.output(l.all, "lstm"), b.output(l.last.c, "lstm c");
  const int64_t value = sized(z, 4, 3);
  const Tensor q = b.input("q", {steps, in}), k = b.input("k", {steps, in}), v = b.input("v", {steps, value}), gate = b.input("gate", {steps});
  b.output(gated_linear_attention(q, k, v, gate).out, "linear");
  const DeltaRule d = gated_delta_rule(q, k, v, gate, b.input("beta", {steps}), b.input("start", {in, value}));
  b.output(d.out, "delta"), b.output(d.state, "delta state");
  return b.graph();
}

Graph empty_blocks(int z) {
  Builder b;
  const int64_t batch = sized(z, 0, 2), rows = sized(z, 1, 3);
  BlockSize s;
  s.model = 8, s.heads = 4, s.kv_heads = 2, s.head = 2, s.hidden = sized(z, 2, 6);
  b.output(block(b.input("x", {batch, rows, 8}), block_weights(b, "l", s), s), "block");
  DecoderSize d;
  d.block = s, d.layers = 1, d.vocab = 5;
  b.output(decode_sequences(b.input("ids", {batch, rows}, Format::i32), decoder_weights(b, d), d), "logits");
  return b.graph();
}

const Empty empties[] = {
    {"attention", empty_attention, 6},
    {"norms", empty_norms, 5},
    {"softmax", empty_softmax, 2, {"target"}},
    {"layers", empty_layers, 5, {"ids"}},
    {"images", empty_images, 3},
    {"experts", empty_experts, 3},
    {"recurrences", empty_recurrences, 5},
    {"blocks", empty_blocks, 3, {"ids"}},
};

class grad_empty : public testing::TestWithParam<Empty> {};
} // namespace

// Against differences, forward mode and, kernel by kernel, on C.
TEST_P(grad_empty, dimensions_do_no_harm) {
  const Empty& e = GetParam();
  for (int z = 0; z < e.dimensions; ++z) {
    const Graph g = e.graph(z);
    Inputs in;
    for (auto& n : g.nodes)
      if (auto* x = n.input(); x && std::count(e.indices.begin(), e.indices.end(), n.name))
        in[n.name] = Array(eval::bound(x->shape), expr::Type::index);
    const std::string label = std::string(e.name) + " without dimension " + std::to_string(z);
    GradientCheck check(g, in, label);
    ASSERT_NO_FATAL_FAILURE(check.run());
    for (size_t k = 0; k < check.wrt.size(); ++k) EXPECT_EQ(check.gradients.at(check.names[k]).shape, check.in.at(check.names[k]).shape);
    check.expect_central();
    check.expect_forward();
    verify_gradient(g, in, 1e-5, label);
  }
}
INSTANTIATE_TEST_SUITE_P(grad, grad_empty, testing::ValuesIn(empties), [](const auto& i) { return std::string(i.param.name); });
