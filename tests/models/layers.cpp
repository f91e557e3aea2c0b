// Norms, softmax, rotary embedding, MLPs, routing and blocks against plain loops or stated values.
#include <functional>

#include "models/data.hpp"
#include "tang/models/block.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/moe.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
// (x - mean) / sqrt(var + eps) over x[k], k in `group`.
void normalise(const Array& x, const std::vector<size_t>& group, double eps, std::vector<double>& out) {
  double mean = 0, var = 0;
  for (size_t k : group) mean += x.r[k] / double(group.size());
  for (size_t k : group) var += (x.r[k] - mean) * (x.r[k] - mean) / double(group.size());
  for (size_t k : group) out[k] = (x.r[k] - mean) / std::sqrt(var + eps);
}

// Elements grouped by a key of their flat index.
template <class F> std::vector<double> normalised(const Array& x, F key, double eps) {
  std::map<int64_t, std::vector<size_t>> groups;
  for (size_t k = 0; k < x.r.size(); ++k) groups[key(int64_t(k))].push_back(k);
  std::vector<double> out(x.r.size());
  for (auto& [id, g] : groups) normalise(x, g, eps, out);
  return out;
}
} // namespace

TEST(norms, layer_norm_both_ways_and_stored) {
  const Array x = u(1, {3, 2, 7}), gain = u(2, {7}), bias = u(3, {7});
  std::vector<double> want = normalised(
      x, [](int64_t k) { return k / 7; }, 1e-5);
  for (size_t k = 0; k < want.size(); ++k) want[k] = want[k] * gain.r[k % 7] + bias.r[k % 7];
  for (auto how : {Variance::two_pass, Variance::welford})
    for (bool stored : {false, true}) {
      Builder b;
      b.output(layer_norm(b.input("x", {3, 2, 7}), b.param("gain", {7}), b.param("bias", {7}),
                          {1e-5, how, stored}),
               "y");
      expect_near(value(b.graph(), {{"x", x}, {"gain", gain}, {"bias", bias}}, "y"), want, 1e-12);
    }
}

TEST(norms, rms_norm) {
  const Array x = u(1, {2, 5}), gain = u(2, {5});
  std::vector<double> want;
  for (size_t i = 0; i < 2; ++i) {
    double s = 0;
    for (size_t c = 0; c < 5; ++c) s += x.r[i * 5 + c] * x.r[i * 5 + c] / 5;
    for (size_t c = 0; c < 5; ++c) want.push_back(x.r[i * 5 + c] / std::sqrt(s + 1e-5) * gain.r[c]);
  }
  Builder b;
  b.output(rms_norm(b.input("x", {2, 5}), b.param("gain", {5})), "y");
  expect_near(value(b.graph(), {{"x", x}, {"gain", gain}}, "y"), want, 1e-12);
}

TEST(norms, batch_instance_and_group) {
  const int64_t n = 2, c = 6, h = 3, w = 5, hw = h * w;
  const Array x = u(1, {n, c, h, w}), gain = u(2, {c}), bias = u(3, {c});
  auto affine = [&](std::vector<double> y) {
    for (size_t k = 0; k < y.size(); ++k)
      y[k] = y[k] * gain.r[k / size_t(hw) % size_t(c)] + bias.r[k / size_t(hw) % size_t(c)];
    return y;
  };
  for (auto how : {Variance::two_pass, Variance::welford}) {
    Builder b;
    Tensor t = b.input("x", {n, c, h, w}), g = b.param("gain", {c}), d = b.param("bias", {c});
    const Normed batch = batch_norm(t, g, d, 1e-5, how);
    b.output(batch.y, "batch");
    b.output(batch.mean, "mean");
    b.output(instance_norm(t, g, d, 1e-5, how), "instance");
    b.output(group_norm(t, 3, g, d, 1e-5, how), "group");
    auto out = eval::run(b.graph(), {{"x", x}, {"gain", gain}, {"bias", bias}});
    expect_near(out["batch"],
                affine(normalised(
                    x, [&](int64_t k) { return k / hw % c; }, 1e-5)),
                1e-12);
    expect_near(out["instance"],
                affine(normalised(
                    x, [&](int64_t k) { return k / hw; }, 1e-5)),
                1e-12);
    expect_near(out["group"],
                affine(normalised(
                    x, [&](int64_t k) { return k / hw / 2; }, 1e-5)),
                1e-12);
    EXPECT_TRUE(out["group"].all_present());
  }
}

TEST(norms, zero_rows_and_zero_channels_are_legal) {
  Builder b;
  b.output(layer_norm(b.input("x", {0, 4}), b.param("g", {4}), {}), "rows");
  b.output(rms_norm(b.input("y", {3, 0}), b.param("h", {0})), "none");
  b.output(softmax(b.input("z", {3, 0})), "soft");
  auto out = eval::run(b.graph(), {{"x", filled({0, 4}, 0)},
                                   {"g", filled({4}, 1)},
                                   {"y", filled({3, 0}, 0)},
                                   {"h", filled({0}, 0)},
                                   {"z", filled({3, 0}, 0)}});
  for (auto& [name, a] : out) EXPECT_EQ(a.size(), 0) << name;
}

TEST(softmax, forms_agree_and_a_row_of_minus_infinity_is_zero) {
  Array x = u(1, {4, 5});
  for (size_t c = 0; c < 5; ++c) x.r[10 + c] = -inf;
  for (bool stored : {false, true}) {
    Builder b;
    Tensor in = b.input("x", {4, 5});
    b.output(softmax(in, stored), "p");
    b.output(log_softmax(in), "log");
    auto out = eval::run(b.graph(), {{"x", x}});
    for (size_t i = 0; i < 4; ++i) {
      double s = 0;
      for (size_t c = 0; c < 5; ++c) s += std::exp(x.r[i * 5 + c]);
      for (size_t c = 0; c < 5; ++c) {
        EXPECT_NEAR(out["p"].r[i * 5 + c], s > 0 ? std::exp(x.r[i * 5 + c]) / s : 0, 1e-14);
        if (s > 0) { EXPECT_NEAR(out["log"].r[i * 5 + c], x.r[i * 5 + c] - std::log(s), 1e-13); }
      }
    }
  }
}

TEST(softmax, cross_entropy_with_and_without_smoothing) {
  const Array x = u(1, {3, 4});
  const std::vector<int64_t> target{2, 0, 3};
  Builder b;
  Tensor logits = b.input("x", {3, 4}), t = b.input("t", {3}, Format::i32);
  b.output(cross_entropy(logits, t), "plain");
  b.output(models::mean(cross_entropy(logits, t, 0.1)), "smooth");
  auto out = eval::run(b.graph(), {{"x", x}, {"t", eval::indices({3}, target)}});
  double mean = 0;
  for (size_t i = 0; i < 3; ++i) {
    double s = 0, all = 0;
    for (size_t c = 0; c < 4; ++c) s += std::exp(x.r[i * 4 + c]);
    for (size_t c = 0; c < 4; ++c) all += (std::log(s) - x.r[i * 4 + c]) / 4;
    const double hit = std::log(s) - x.r[i * 4 + size_t(target[i])];
    EXPECT_NEAR(out["plain"].r[i], hit, 1e-13);
    mean += (0.9 * hit + 0.1 * all) / 3;
  }
  EXPECT_NEAR(out["smooth"].r[0], mean, 1e-13);
}

TEST(rope, both_pairings_partial_and_given_positions) {
  Builder b;
  Tensor x = b.input("x", {3, 6}), at = b.input("at", {3}, Format::i32);
  for (auto p : {Pairing::half, Pairing::interleaved}) {
    const std::string n = p == Pairing::half ? "half" : "inter";
    b.output(rope(x, {100, p}, 5), n);
    b.output(rope(x, {100, p, 4}, 5), n + "_part");
    b.output(rope_at(x, at, {100, p}), n + "_at");
  }
  const Array in = u(1, {3, 6});
  auto out = eval::run(b.graph(), {{"x", in}, {"at", eval::indices({3}, {5, 6, 7})}});
  auto want = [&](bool half, int64_t dim) {
    std::vector<double> y = in.r;
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t p = 0; p < dim / 2; ++p) {
        const double angle = double(5 + i) * std::pow(100.0, -2.0 * double(p) / double(dim));
        const size_t a = size_t(i * 6 + (half ? p : 2 * p)),
                     c = size_t(i * 6 + (half ? p + dim / 2 : 2 * p + 1));
        y[a] = in.r[a] * std::cos(angle) - in.r[c] * std::sin(angle);
        y[c] = in.r[c] * std::cos(angle) + in.r[a] * std::sin(angle);
      }
    return y;
  };
  for (bool half : {true, false}) {
    const std::string n = half ? "half" : "inter";
    expect_near(out[n], want(half, 6), 1e-13);
    expect_near(out[n + "_part"], want(half, 4), 1e-13);
    EXPECT_EQ(out[n].r, out[n + "_at"].r);
    EXPECT_TRUE(out[n + "_part"].all_present());
  }
}

TEST(mlp, every_activation_and_both_layouts) {
  const std::vector<std::pair<Activation, std::function<double(double)>>> acts{
      {relu, [](double x) { return std::max(x, 0.0); }},
      {gelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {gelu_tanh,
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {elu, [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {silu, [](double x) { return x / (1 + std::exp(-x)); }}};
  const Array x = u(1, {2, 3}), w = u(2, {4, 3}), c = u(3, {4}), v = u(4, {2, 4});
  for (size_t k = 0; k < acts.size(); ++k) {
    Builder b;
    b.output(mlp(b.input("x", {2, 3}),
                 {{b.param("w", {4, 3}), b.param("c", {4})}, {b.param("v", {2, 4}), {}}}, acts[k].first),
             "y");
    std::vector<double> want;
    for (size_t i = 0; i < 2; ++i)
      for (size_t o = 0; o < 2; ++o) {
        double y = 0;
        for (size_t h = 0; h < 4; ++h) {
          double a = c.r[h];
          for (size_t m = 0; m < 3; ++m) a += w.r[h * 3 + m] * x.r[i * 3 + m];
          y += v.r[o * 4 + h] * acts[k].second(a);
        }
        want.push_back(y);
      }
    expect_near(value(b.graph(), {{"x", x}, {"w", w}, {"c", c}, {"v", v}}, "y"), want, 1e-12);
  }
  Builder b;
  Tensor in = b.input("x", {2, 3}), p = b.param("p", {3, 4});
  auto [i, j] = axes<"i j">();
  b.output(linear(in, p, {}, {}, Layout::in_out), "a");
  b.output(linear(in, map({j, i}, p(i, j))), "b");
  auto out = eval::run(b.graph(), {{"x", x}, {"p", u(5, {3, 4})}});
  EXPECT_EQ(out["a"].r, out["b"].r);
}

TEST(mlp, swiglu_stored_or_not) {
  const Array x = u(1, {2, 3}), g = u(2, {5, 3}), up = u(3, {5, 3}), d = u(4, {3, 5});
  std::vector<double> want(6, 0);
  for (size_t i = 0; i < 2; ++i)
    for (size_t f = 0; f < 5; ++f) {
      double a = 0, c = 0;
      for (size_t m = 0; m < 3; ++m)
        a += g.r[f * 3 + m] * x.r[i * 3 + m], c += up.r[f * 3 + m] * x.r[i * 3 + m];
      for (size_t o = 0; o < 3; ++o) want[i * 3 + o] += d.r[o * 5 + f] * a / (1 + std::exp(-a)) * c;
    }
  for (bool stored : {false, true}) {
    Builder b;
    b.output(swiglu(b.input("x", {2, 3}), b.param("g", {5, 3}), b.param("u", {5, 3}), b.param("d", {3, 5}),
                    stored),
             "y");
    expect_near(value(b.graph(), {{"x", x}, {"g", g}, {"u", up}, {"d", d}}, "y"), want, 1e-12);
  }
}

TEST(moe, routed_sum_of_experts) {
  const int64_t T = 5, E = 4, K = 2, F = 3, M = 2;
  const Array x = u(1, {T, M}), r = u(2, {T, E}), g = u(3, {E, F, M}), up = u(4, {E, F, M}),
              d = u(5, {E, M, F});
  for (bool renormalise : {false, true}) {
    Builder b;
    const Routing route_ = route(b.input("r", {T, E}), K, renormalise);
    b.output(moe(b.input("x", {T, M}), route_,
                 {b.param("g", {E, F, M}), b.param("u", {E, F, M}), b.param("d", {E, M, F})}),
             "y");
    b.output(route_.experts, "experts");
    auto out = eval::run(b.graph(), {{"x", x}, {"r", r}, {"g", g}, {"u", up}, {"d", d}});
    std::vector<double> want(size_t(T * M), 0);
    for (int64_t t = 0; t < T; ++t) {
      std::vector<int64_t> order{0, 1, 2, 3};
      auto logit = [&](int64_t e) { return r.r[size_t(t * E + e)]; };
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t c) { return logit(a) > logit(c); });
      double all = 0, chosen = 0;
      for (int64_t e = 0; e < E; ++e) all += std::exp(logit(e));
      for (int64_t k = 0; k < K; ++k) chosen += std::exp(logit(order[size_t(k)]));
      for (int64_t k = 0; k < K; ++k) {
        const int64_t e = order[size_t(k)];
        EXPECT_EQ(out["experts"].i[size_t(t * K + k)], e);
        const double weight = std::exp(logit(e)) / (renormalise ? chosen : all);
        for (int64_t f = 0; f < F; ++f) {
          double a = 0, c = 0;
          for (int64_t m = 0; m < M; ++m) {
            a += g.r[size_t((e * F + f) * M + m)] * x.r[size_t(t * M + m)];
            c += up.r[size_t((e * F + f) * M + m)] * x.r[size_t(t * M + m)];
          }
          for (int64_t o = 0; o < M; ++o)
            want[size_t(t * M + o)] += weight * d.r[size_t((e * M + o) * F + f)] * a / (1 + std::exp(-a)) * c;
        }
      }
    }
    expect_near(out["y"], want, 1e-12);
  }
}

TEST(blocks, naive_and_fused_forms_agree_and_rows_see_no_later_row) {
  BlockSize z;
  z.model = 12, z.heads = 4, z.kv_heads = 2, z.head = 4, z.hidden = 10;
  auto run = [&](bool naive, int64_t rows) {
    BlockSize s = z;
    s.naive = naive;
    Builder b;
    const BlockWeights w = block_weights(b, "w", s);
    b.output(block(b.input("x", {1, rows, 12}), w, s), "y");
    const Graph g = b.graph();
    ir::validate(g);
    Inputs in{{"x", u(1, {1, rows, 12})}};
    for (auto& n : g.nodes)
      if (n.input() && n.name != "x")
        in[n.name] = u(double(n.name[2] + n.name.back()), eval::bound(n.input()->shape));
    return value(g, in, "y");
  };
  const Array full = run(false, 5), naive = run(true, 5), shorter = run(false, 3);
  EXPECT_LT(eval::difference(full, naive), 1e-12);
  for (size_t k = 0; k < shorter.r.size(); ++k) EXPECT_EQ(shorter.r[k], full.r[k]);
}

TEST(blocks, the_papers_block_has_its_shapes) {
  Builder b;
  const BlockSize z;
  const Tensor y = block(b.input("x", {1, 128, 576}), block_weights(b, "w", z), z);
  EXPECT_EQ(models::text(y.shape()), "[1, 128, 576]");
  b.output(y, "y");
  int64_t weights = 0;
  const Graph g = b.graph();
  for (auto& n : g.nodes)
    if (n.input() && n.input()->kind == ir::Input::param)
      weights += eval::volume(eval::bound(n.input()->shape));
  EXPECT_EQ(weights, 576 * (9 * 64 * 2 + 3 * 64 * 2 + 3 * 1536) + 2 * 576);
}
