// Parts C, D and G of the cases as far as they are about values of the forward graph: views, indices,
// scatters, routing, scans.
#include "cases/everywhere.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/moe.hpp"
#include "tang/models/recurrent.hpp"
#include "tang/models/rope.hpp"
#include "tang/rewrite/driver.hpp"
#include "tang/text/text.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

TEST(cases, case_38_dimensions_of_extent_zero) {
  Builder b;
  Tensor x = b.input("x", {2, 0, 3}), a = b.input("a", {2, 0}), c = b.input("c", {0, 4}),
         table = b.param("table", {5, 3}), ids = b.input("ids", {0}, Format::i32);
  auto [i, j, k] = axes<"i j k">();
  b.output(map({i, k}, sum(j, x(i, j, k))), "sum");
  b.output(linear(a, c, {}, {}, Layout::in_out), "matmul");
  b.output(embedding(table, ids), "rows");
  auto out = everywhere(b.graph(), {{"x", filled({2, 0, 3}, 0)},
                                   {"a", filled({2, 0}, 0)},
                                   {"c", filled({0, 4}, 0)},
                                   {"table", u(1, {5, 3})},
                                   {"ids", eval::indices({0}, {})}});
  EXPECT_EQ(out["sum"].r, std::vector<double>(6, 0));
  EXPECT_EQ(out["matmul"].r, std::vector<double>(8, 0));
  EXPECT_EQ(out["rows"].shape, (std::vector<int64_t>{0, 3}));
}

TEST(cases, case_46_the_branch_not_taken_does_not_show) {
  Builder b;
  Tensor x = b.input("x", {1}), r = b.input("r", {3, 2});
  auto [i, j, k] = axes<"i j k">();
  b.output(map({i}, select(x(i) < 1, x(i), sqrt(x(i)))), "f");
  const Tensor norm = map({j}, sqrt(sum(k, square(r(j, k)))));
  const Axis one = axis("one", Extent(1));
  b.output(map({one}, sum(j, select(norm(j) > 0.5, norm(j), 1.0))), "sum");
  auto out = everywhere(b.graph(), {{"x", filled({1}, 0)}, {"r", eval::reals({3, 2}, {1, 2, 3, 4, 0, 0})}});
  EXPECT_EQ(out["f"].r[0], 0);
  EXPECT_NEAR(out["sum"].r[0], 8.236067977, 1e-9);
}

TEST(cases, case_48_atan2_masked_at_the_origin) {
  Builder b;
  Tensor a = b.input("a", {3}), m = b.input("m", {3});
  const Axis i = axis("i"), one = axis("one", Extent(1));
  b.output(map({one}, sum(i, select(m(i) > 0.5, 0.0, atan2(a(i), a(i))))), "sum");
  EXPECT_NEAR(
      everywhere(b.graph(), {{"a", eval::reals({3}, {3, 0, -5})}, {"m", eval::reals({3}, {0, 1, 0})}}, "sum").r[0],
      -M_PI / 2, 1e-15);
}

TEST(cases, case_50_equal_parameters_stay_two) {
  Builder b;
  Tensor w1 = b.param("w1", {1}), w2 = b.param("w2", {1});
  auto [i] = axes<"i">();
  b.output(map({i}, w1(i) + w2(i)), "sum");
  const Graph g = b.graph();
  int params = 0;
  for (auto& n : g.nodes) params += n.input() && n.input()->kind == ir::Input::param;
  EXPECT_EQ(params, 2);
  EXPECT_EQ(everywhere(g, {{"w1", filled({1}, 3)}, {"w2", filled({1}, 3)}}, "sum").r[0], 6);
  EXPECT_EQ(everywhere(g, {{"w1", filled({1}, 3)}, {"w2", filled({1}, 4)}}, "sum").r[0], 7);
}

TEST(cases, case_57_rows_added_into_zeros) {
  Builder b;
  Tensor src = b.input("src", {3, 8}), idx = b.input("idx", {3}, Format::i32);
  const Axis r = axis("r", Extent(4)), s = axis("s"), c = axis("c");
  b.output(map({r, c}, sum(s, masked(Index(idx(s)) == r, src(s, c)))), "rows");
  const Array out =
      everywhere(b.graph(), {{"src", filled({3, 8}, 1)}, {"idx", eval::indices({3}, {0, 1, 0})}}, "rows");
  for (size_t k = 0; k < 32; ++k) EXPECT_EQ(out.r[k], std::vector<double>({2, 1, 0, 0})[k / 8]);
}

TEST(cases, case_57_a_broadcast_is_no_place_to_write) {
  for (const char* left : {"z[0*i + c : 8]", "z[0*i, c]", "z[c]"}) {
    try {
      text::parse(std::string("input x[i: 3, c: 8]\n") + left + " = x[i,c]\noutput z\n", "z.tang");
      ADD_FAILURE() << left;
    } catch (const Error& e) { EXPECT_NE(std::string(e.what()).find("i"), std::string::npos) << e.what(); }
  }
}

TEST(cases, case_59_flip_and_strided_slice_commute) {
  Builder b;
  Tensor t = b.input("t", {3, 4, 5});
  const Axis i = axis("i", Extent(3)), j = axis("j", Extent(4)), k = axis("k", Extent(5)),
             half = axis("half", Extent(3));
  const Tensor flipped = map({i, j, k}, t(Index(2) - i, j, Index(4) - k)),
               sliced = map({i, j, half}, t(i, j, 2 * Index(half)));
  const Tensor flip_first = map({i, j, half}, flipped(i, j, 2 * Index(half))),
               slice_first = map({i, j, half}, sliced(Index(2) - i, j, Index(2) - half));
  const Tensor direct = map({i, j, half}, t(Index(2) - i, j, Index(4) - 2 * Index(half)));
  b.output(flip_first, "flip");
  b.output(slice_first, "slice");
  b.output(direct, "direct");
  const Array data = u(1, {3, 4, 5});
  auto out = everywhere(b.graph(), {{"t", data}});
  for (auto& [name, a] : out) {
    ASSERT_EQ(a.shape, (std::vector<int64_t>{3, 4, 3})) << name;
    for (int64_t x = 0; x < 3; ++x)
      for (int64_t y = 0; y < 4; ++y)
        for (int64_t z = 0; z < 3; ++z)
          EXPECT_EQ(a.r[size_t((x * 4 + y) * 3 + z)], data.r[size_t(44 - 20 * x + 5 * y - 2 * z)]);
  }
}

TEST(cases, case_59_views_have_one_normal_form) {
  auto of = [](int which) {
    Builder b;
    Tensor t = b.input("t", {3, 4, 5});
    const Axis i = axis("i", Extent(3)), j = axis("j", Extent(4)), k = axis("k", Extent(5)), half = axis("half", Extent(3));
    const Tensor flipped = map({i, j, k}, t(Index(2) - i, j, Index(4) - k)), sliced = map({i, j, half}, t(i, j, 2 * Index(half)));
    b.output(which == 0   ? map({i, j, half}, flipped(i, j, 2 * Index(half)))
             : which == 1 ? map({i, j, half}, sliced(Index(2) - i, j, Index(2) - half))
                          : map({i, j, half}, t(Index(2) - i, j, Index(4) - 2 * Index(half))),
             "y");
    return rewrite::optimize(b.graph()).graph;
  };
  const Graph direct = of(2);
  for (int which : {0, 1}) {
    EXPECT_EQ(text::print(of(which)), text::print(direct));
    EXPECT_EQ(ir::hash(of(which)), ir::hash(direct));
  }
  EXPECT_NE(text::print(direct).find("-2*"), std::string::npos) << text::print(direct);
}

TEST(cases, case_60_transposed_convolution) {
  auto run = [](int64_t n, ConvTranspose o) {
    Builder b;
    b.output(conv_transpose(b.input("x", {1, 1, n, n}), b.input("w", {1, 1, 3, 3}), {}, o), "y");
    std::vector<double> count;
    for (int k = 1; k <= 9; ++k) count.push_back(k);
    return everywhere(b.graph(),
                 {{"x", eval::reals({1, 1, n, n}, {count.begin(), count.begin() + n * n})},
                  {"w", eval::reals({1, 1, 3, 3}, count)}},
                 "y");
  };
  EXPECT_EQ(run(3, {{2}, {2}, {2}}).r,
            (std::vector<double>{26, 0,   56, 0, 54, 0, 0, 0,   0, 0,   84, 0,  165,
                                 0,  144, 0,  0, 0,  0, 0, 134, 0, 236, 0,  186}));
  EXPECT_EQ(run(2, {{2}, {1}, {1}, {1}}).r,
            (std::vector<double>{5, 14, 10, 12, 14, 36, 24, 30, 15, 34, 20, 24, 24, 55, 32, 36}));
  Builder b;
  const Tensor y = conv_transpose(b.input("x", {1, 1, 50}), b.input("w", {1, 1, 3}), {}, {{2}, {4}, {3}});
  EXPECT_EQ(models::text(y.shape()), "[1, 1, 97]");
}

TEST(cases, case_61_max_pooling_pads_with_nothing) {
  Builder b;
  b.output(max_pool(b.input("x", {1, 1, 2}), {{3}, {1}, {1}}), "y");
  EXPECT_EQ(everywhere(b.graph(), {{"x", eval::reals({1, 1, 2}, {-1, -2})}}, "y").r,
            (std::vector<double>{-1, -1}));
}

TEST(cases, case_65_index_arithmetic_beyond_32_bits) {
  Builder b;
  Tensor x = b.input("x", {4}, Format::i32);
  auto [i] = axes<"i">();
  const auto lit = [&](int64_t v) { return index_literal(b, v); };
  b.output(map({i}, ((x(i) + lit(1073741826)) / lit(3) - lit(357913942)) * lit(1536)), "y");
  EXPECT_EQ(everywhere(b.graph(), {{"x", eval::indices({4}, {0, 1, 3, 6})}}, "y").i,
            (std::vector<int64_t>{0, 0, 1536, 3072}));
}

TEST(cases, case_72_close_scores_keep_their_order) {
  auto best = [](const Array& x) {
    Builder b;
    Tensor in = b.input("x", {512});
    const Axis i = axis("i"), one = axis("one", Extent(1));
    b.output(map({one}, ir::top(1, i, in(i)).second[0]), "at");
    return everywhere(b.graph(), {{"x", x}}, "at").i[0];
  };
  Array x = filled({512}, 0);
  x.r[0] = 0.50000, x.r[511] = 0.50010;
  EXPECT_EQ(best(x), 511);
  x.r[511] = 0.5;
  EXPECT_EQ(best(x), 0);
}

TEST(cases, case_74_top_8_of_128_experts) {
  Array logits = filled({2, 128}, 0);
  for (size_t e = 0; e < 128; ++e) logits.r[e] = std::sin(0.7 * double(e)), logits.r[128 + e] = std::nan("");
  const std::vector<int64_t> ids{92, 101, 83, 110, 74, 119, 65, 56};
  const std::vector<double> weights{0.016690965, 0.016689350, 0.016687863, 0.016683017,
                                    0.016680045, 0.016671975, 0.016667521, 0.016650305};
  for (bool renormalise : {false, true}) {
    Builder b;
    const Routing r = route(b.input("logits", {2, 128}), 8, renormalise);
    b.output(r.experts, "experts");
    b.output(r.weights, "weights");
    const Graph g = b.graph(); // a network of 128 by 8: compiled once
    auto out = renormalise ? eval::run(g, {{"logits", logits}}) : everywhere(g, {{"logits", logits}});
    double sum = 0;
    for (size_t k = 0; k < 8; ++k) {
      EXPECT_EQ(out["experts"].i[k], ids[k]);
      EXPECT_NEAR(out["weights"].r[k], weights[k] / (renormalise ? 0.133421040 : 1), 1e-8);
      sum += out["weights"].r[k];
      EXPECT_EQ(out["experts"].i[8 + k], int64_t(k)); // a row of NaN: eight experts, none twice
    }
    EXPECT_NEAR(sum, renormalise ? 1 : 0.133421040, 1e-9);
  }
}

TEST(cases, case_75_an_unrouted_token_takes_no_slot) {
  Builder b;
  b.output(tokens_of_experts(b.input("routed", {3, 1}, Format::boolean), b.input("score", {3, 1}), 2),
           "tokens");
  b.output(tokens_of_experts(b.input("few", {3, 1}, Format::boolean), b.input("score2", {3, 1}), 2), "one");
  const Array score = eval::reals({3, 1}, {-1, -2, 0});
  auto out = everywhere(b.graph(), {{"routed", booleans({3, 1}, {1, 1, 0})},
                                   {"score", score},
                                   {"few", booleans({3, 1}, {0, 1, 0})},
                                   {"score2", score}});
  EXPECT_EQ(out["tokens"].i, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(out["one"].i, (std::vector<int64_t>{1, -1}));
}

namespace {
std::map<std::string, Array> delta(int64_t time, int64_t dk, int64_t dv, const Inputs& in) {
  Builder b;
  const DeltaRule r =
      gated_delta_rule(b.input("q", {time, dk}), b.input("k", {time, dk}), b.input("v", {time, dv}),
                       b.input("gate", {time}), b.input("beta", {time}), b.input("start", {dk, dv}));
  b.output(r.out, "out");
  b.output(r.state, "state");
  return everywhere(b.graph(), in);
}
} // namespace

TEST(cases, case_85_gated_delta_rule_with_strong_decay) {
  Array k = u(2, {5, 2});
  for (size_t t = 0; t < 5; ++t) {
    const double n = std::hypot(k.r[2 * t], k.r[2 * t + 1]);
    k.r[2 * t] /= n, k.r[2 * t + 1] /= n;
  }
  auto out = delta(5, 2, 2,
                   {{"q", u(1, {5, 2})},
                    {"k", k},
                    {"v", u(3, {5, 2})},
                    {"gate", eval::reals({5}, {-0.1, -2, 0, -30, -0.5})},
                    {"beta", eval::reals({5}, {0.9, 0.5, 1, 0.3, 0.7})},
                    {"start", filled({2, 2}, 0)}});
  expect_near(out["out"],
              {0.150297689495, -0.564293815488, 0.124099439360, 0.076244123116, -0.619750676172,
               0.093324407260, -0.058207082526, -0.073261705269, 0.483799545097, 0.156655197123},
              1e-12);
  expect_near(out["state"], {0.313305349157, -0.015251884631, 0.454110230036, 0.189792850099}, 1e-12);
  auto scalar = [](double gate, double beta) {
    return delta(3, 1, 1,
                 {{"q", filled({3, 1}, 1)},
                  {"k", filled({3, 1}, 1)},
                  {"v", eval::reals({3, 1}, {1, 2, 3})},
                  {"gate", filled({3}, gate)},
                  {"beta", filled({3}, beta)},
                  {"start", filled({1, 1}, 0)}})["out"];
  };
  expect_near(scalar(-100, .5), {0.5, 1, 1.5}, 1e-12);
  expect_near(scalar(0, .5), {0.5, 1.25, 2.125}, 1e-12);
  expect_near(scalar(0, 1), {1, 2, 3}, 1e-12);
}

TEST(cases, case_87_rotary_pairings) {
  for (auto [pairing, want] :
       {std::pair{Pairing::interleaved, std::vector<double>{-1.142640, 1.922076, 2.959851, 4.029800}},
        {Pairing::half, {-1.984111, 1.959901, 2.462378, 4.019800}}}) {
    Builder b;
    Tensor x = b.input("x", {2, 4});
    b.output(rope(x, {10000, pairing}), "y");
    const Array y = everywhere(b.graph(), {{"x", eval::reals({2, 4}, {1, 2, 3, 4, 1, 2, 3, 4})}}, "y");
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(y.r[k], double(k + 1)); // position 0 turns nothing
      EXPECT_NEAR(y.r[4 + k], want[k], 1e-6);
    }
  }
}
