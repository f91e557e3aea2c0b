// Convolutions and pooling against brute-force loops over every variant.
#include "tang/models/conv.hpp"

#include "models/data.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
struct Variant {
  int64_t n = 2, c = 4, o = 6, h = 5, w = 7, kh = 3, kw = 2;
  std::vector<int64_t> stride{1}, pad{0}, pad_end{}, dilation{1};
  int64_t groups = 1;
  bool bias = true;
};

int64_t at(const std::vector<int64_t>& v, size_t d, int64_t other) {
  return v.empty() ? other : v.size() == 1 ? v[0] : v[d];
}

void compare(const Variant& z) {
  const int64_t cg = z.c / z.groups, og = z.o / z.groups;
  int64_t s[2], p[2], e[2], d[2], out[2];
  const int64_t in[2] = {z.h, z.w}, k[2] = {z.kh, z.kw};
  for (size_t a = 0; a < 2; ++a) {
    s[a] = at(z.stride, a, 1), p[a] = at(z.pad, a, 0), e[a] = at(z.pad_end, a, p[a]),
    d[a] = at(z.dilation, a, 1);
    out[a] = (in[a] + p[a] + e[a] - d[a] * (k[a] - 1) - 1) / s[a] + 1;
  }
  const Array x = u(1, {z.n, z.c, z.h, z.w}), w = u(2, {z.o, cg, z.kh, z.kw}), bias = u(3, {z.o});
  auto X = [&](int64_t n, int64_t c, int64_t i, int64_t j) {
    return x.r[size_t(((n * z.c + c) * z.h + i) * z.w + j)];
  };
  auto W = [&](int64_t o, int64_t c, int64_t i, int64_t j) {
    return w.r[size_t(((o * cg + c) * z.kh + i) * z.kw + j)];
  };
  std::vector<double> want;
  for (int64_t n = 0; n < z.n; ++n)
    for (int64_t o = 0; o < z.o; ++o)
      for (int64_t i = 0; i < out[0]; ++i)
        for (int64_t j = 0; j < out[1]; ++j) {
          double acc = z.bias ? bias.r[size_t(o)] : 0;
          for (int64_t c = 0; c < cg; ++c)
            for (int64_t a = 0; a < z.kh; ++a)
              for (int64_t b = 0; b < z.kw; ++b) {
                const int64_t y = s[0] * i + d[0] * a - p[0], q = s[1] * j + d[1] * b - p[1];
                if (y >= 0 && y < z.h && q >= 0 && q < z.w)
                  acc += X(n, o / og * cg + c, y, q) * W(o, c, a, b);
              }
          want.push_back(acc);
        }
  for (bool last : {false, true}) {
    Builder b;
    Conv options{z.stride, z.pad, z.pad_end, z.dilation, z.groups, last};
    auto order = [&](int64_t n, int64_t c, int64_t i, int64_t j) {
      return last ? std::vector<Extent>{n, i, j, c} : std::vector<Extent>{n, c, i, j};
    };
    const Tensor y = conv2d(b.input("x", order(z.n, z.c, z.h, z.w)), b.input("w", order(z.o, cg, z.kh, z.kw)),
                            z.bias ? b.input("bias", {z.o}) : Tensor{}, options);
    b.output(y, "y");
    const Graph g = b.graph();
    ir::validate(g);
    auto moved = [&](const Array& a) { // channels last, if asked
      if (!last) return a;
      Array out_ = filled({a.shape[0], a.shape[2], a.shape[3], a.shape[1]}, 0);
      for (int64_t n = 0; n < a.shape[0]; ++n)
        for (int64_t c = 0; c < a.shape[1]; ++c)
          for (int64_t q = 0; q < a.shape[2] * a.shape[3]; ++q)
            out_.r[size_t((n * a.shape[2] * a.shape[3] + q) * a.shape[1] + c)] =
                a.r[size_t((n * a.shape[1] + c) * a.shape[2] * a.shape[3] + q)];
      return out_;
    };
    Inputs bound{{"x", moved(x)}, {"w", moved(w)}};
    if (z.bias) bound["bias"] = bias;
    const Array got = value(g, bound, "y");
    EXPECT_TRUE(got.all_present());
    const Array ref = moved(eval::reals({z.n, z.o, out[0], out[1]}, want));
    ASSERT_EQ(got.shape, ref.shape);
    for (size_t q = 0; q < ref.r.size(); ++q) ASSERT_NEAR(got.r[q], ref.r[q], 1e-12) << q << " last " << last;
  }
}
} // namespace

TEST(conv, plain_and_without_bias) {
  compare({});
  compare({1, 1, 1, 3, 2, 3, 2, {1}, {0}, {}, {1}, 1, false});
}

TEST(conv, padded_strided_dilated) {
  for (int64_t stride : {1, 2, 3})
    for (int64_t pad : {0, 1, 2})
      for (int64_t dilation : {1, 2}) compare({1, 2, 3, 7, 6, 3, 2, {stride}, {pad}, {}, {dilation}});
}

TEST(conv, one_number_a_dimension_and_uneven_padding) {
  compare({1, 2, 3, 7, 6, 3, 2, {2, 1}, {1, 0}, {2, 1}, {1, 3}});
}

TEST(conv, grouped_and_depthwise) {
  compare({2, 4, 6, 5, 7, 3, 2, {1}, {1}, {}, {1}, 2});
  compare({2, 4, 4, 5, 7, 3, 2, {2}, {1}, {}, {1}, 4});
  compare({2, 4, 8, 5, 7, 3, 2, {1}, {0}, {}, {2}, 4}); // two outputs a channel
  compare({2, 4, 2, 5, 7, 3, 2, {1}, {0}, {}, {1}, 2}); // one output a group
}

TEST(conv, one_dimension_with_activation) {
  Builder b;
  b.output(conv1d(b.input("x", {1, 1, 4}), b.input("w", {1, 1, 3}), {}, {{1}, {1}, {}, {1}}, relu), "y");
  EXPECT_EQ(value(b.graph(),
                  {{"x", eval::reals({1, 1, 4}, {1, 2, -9, 4})}, {"w", eval::reals({1, 1, 3}, {1, 1, 1})}},
                  "y")
                .r,
            (std::vector<double>{3, 0, 0, 0}));
}

TEST(conv, zero_sizes) {
  for (auto [n, c, o] : {std::tuple<int64_t, int64_t, int64_t>{0, 2, 3}, {2, 0, 3}, {2, 2, 0}})
    compare({n, c, o, 4, 4, 3, 3, {1}, {1}});
}

TEST(conv, transposed_is_the_adjoint) {
  // <conv(x, w), y> = <x, conv_transpose(y, w)> for every variant: the definition of an adjoint.
  for (int64_t stride : {1, 2, 3})
    for (int64_t pad : {0, 1})
      for (int64_t dilation : {1, 2})
        for (int64_t groups : {1, 2}) {
          const int64_t h = 7, k = 3, c = 4, o = 6, out = (h + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
          const int64_t left = h - ((out - 1) * stride - 2 * pad + dilation * (k - 1) + 1);
          Builder b;
          Tensor x = b.input("x", {2, c, h}), y = b.input("y", {2, o, out}),
                 w = b.input("w", {o, c / groups, k});
          b.output(models::conv(x, w, {}, {{stride}, {pad}, {}, {dilation}, groups}), "forward");
          b.output(conv_transpose(y, w, {}, {{stride}, {pad}, {dilation}, {left}, groups}), "back");
          const Inputs in{{"x", u(1, {2, c, h})}, {"y", u(2, {2, o, out})}, {"w", u(3, {o, c / groups, k})}};
          auto r = eval::run(b.graph(), in);
          ASSERT_EQ(r["back"].shape, (std::vector<int64_t>{2, c, h}));
          double left_side = 0, right_side = 0;
          for (size_t q = 0; q < r["forward"].r.size(); ++q) left_side += r["forward"].r[q] * in.at("y").r[q];
          for (size_t q = 0; q < r["back"].r.size(); ++q) right_side += r["back"].r[q] * in.at("x").r[q];
          EXPECT_NEAR(left_side, right_side, 1e-11) << stride << pad << dilation << groups;
        }
}

TEST(pooling, max_and_average_against_loops) {
  for (int64_t window : {2, 3})
    for (int64_t stride : {1, 2})
      for (int64_t pad : {0, 1})
        for (bool counted : {false, true}) {
          const int64_t h = 5, w = 6, oh = (h + 2 * pad - window) / stride + 1,
                        ow = (w + 2 * pad - window) / stride + 1;
          const Array x = u(1, {2, 3, h, w});
          Builder b;
          const Tensor in = b.input("x", {2, 3, h, w});
          b.output(max_pool(in, {{window}, {stride}, {pad}}), "max");
          b.output(avg_pool(in, {{window}, {stride}, {pad}, false, counted}), "avg");
          auto out = eval::run(b.graph(), {{"x", x}});
          ASSERT_EQ(out["max"].shape, (std::vector<int64_t>{2, 3, oh, ow}));
          for (int64_t p = 0; p < 6; ++p)
            for (int64_t i = 0; i < oh; ++i)
              for (int64_t j = 0; j < ow; ++j) {
                double best = -inf, sum = 0;
                int64_t n = 0;
                for (int64_t a = 0; a < window; ++a)
                  for (int64_t c = 0; c < window; ++c) {
                    const int64_t y = stride * i + a - pad, q = stride * j + c - pad;
                    if (y < 0 || y >= h || q < 0 || q >= w) continue;
                    const double v = x.r[size_t((p * h + y) * w + q)];
                    best = std::max(best, v), sum += v, ++n;
                  }
                const size_t k = size_t((p * oh + i) * ow + j);
                EXPECT_EQ(out["max"].r[k], best);
                EXPECT_NEAR(out["avg"].r[k], sum / double(counted ? window * window : n), 1e-13);
              }
        }
}

TEST(pooling, channels_last) {
  Builder b;
  b.output(max_pool(b.input("x", {1, 4, 2}), {{2}, {}, {0}, true}), "y");
  EXPECT_EQ(value(b.graph(), {{"x", eval::reals({1, 4, 2}, {1, 8, 2, 7, 3, 6, 4, 5})}}, "y").r,
            (std::vector<double>{2, 8, 4, 6}));
}
