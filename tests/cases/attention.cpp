// Part A of the cases: masks, softmax, attention forward.
#include "tang/models/attention.hpp"

#include "cases/everywhere.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
struct Head {
  int64_t rows = 5, keys = 5, d = 4, c = 4;
  double scale = 0.5;
};

using Out = std::map<std::string, Array>;

// One head with the cases' filling; `more` binds further inputs.
Out attended(const Head& z, const std::function<void(Builder&, AttentionOptions&, Inputs&)>& setup,
        eval::Options how = {}, Inputs data = {}) {
  Builder b;
  Tensor q = b.input("q", {1, 1, z.rows, z.d}), k = b.input("k", {1, 1, z.keys, z.d}),
         v = b.input("v", {1, 1, z.keys, z.c});
  Inputs in{
      {"q", u(1, {1, 1, z.rows, z.d})}, {"k", u(2, {1, 1, z.keys, z.d})}, {"v", u(3, {1, 1, z.keys, z.c})}};
  for (auto& [name, a] : data) in[name] = a;
  AttentionOptions o;
  o.scale = z.scale;
  setup(b, o, in);
  const Attention a = attention(q, k, v, o);
  b.output(a.out, "out");
  b.output(a.lse, "lse");
  return everywhere(b.graph(), in, how);
}

void just_causal(Builder&, AttentionOptions& o, Inputs&) { o.mask = causal(); }

double at(const Out& o, int64_t row, int64_t c) {
  const Array& a = o.at("out");
  return a.r[size_t(row * a.shape.back() + c)];
}

double lse(const Out& o, size_t row) { return o.at("lse").r[row]; }

double sum_of(const Out& o) { return total(o.at("out")); }

const eval::Options split4{{}, {ir::FoldOrder::split, 4}, 2}, chunks{{}, {ir::FoldOrder::chunked, 4}, 1},
    lanes{{}, {ir::FoldOrder::tree, 32}, 1};

// The nodes whose name is `name`, computed under `n`.
eval::Options numerics(const Graph& g, const std::string& name, eval::Numeric n) {
  eval::Options o;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].name == name) o.numerics[id] = n;
  EXPECT_FALSE(o.numerics.empty()) << name;
  return o;
}
} // namespace

TEST(cases, case_01_a_row_without_visible_keys_is_zero) {
  for (auto& how : {eval::Options{}, split4, chunks, lanes}) {
    const Out o = attended(
        {},
        [](Builder&, AttentionOptions& a, Inputs&) {
          a.mask = causal() && Mask{[](const Spot& s) { return Index(s.row) != Index(2); }};
        },
        how);
    for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(at(o, 2, c), 0);
    EXPECT_EQ(lse(o, 2), -inf);
    EXPECT_NEAR(at(o, 0, 0), 0.141120008060, 1e-12);
    EXPECT_NEAR(at(o, 4, 3), -0.107711134042, 1e-12);
    EXPECT_NEAR(sum_of(o), -2.027835597591, 1e-11);
    EXPECT_NEAR(lse(o, 0), 0.491165939644, 1e-12);
    EXPECT_NEAR(lse(o, 4), 1.708652443551, 1e-12);
  }
}

TEST(cases, case_03_nan_at_a_masked_key_stays_there) {
  for (const char* which : {"k", "v"}) {
    const Array rows = eval::reals({1, 1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
    Inputs data{{"q", rows}, {"k", rows}, {"v", rows}};
    data[which].r[4] = std::nan("");
    const Out o = attended(
        {2, 2}, [](Builder&, AttentionOptions& a, Inputs&) { a.mask = prefix(1); }, {}, data);
    EXPECT_EQ(o.at("out").r, (std::vector<double>{0, 1, 2, 3, 0, 1, 2, 3})) << which;
  }
}

TEST(cases, case_04_a_mask_of_the_lowest_f32) {
  Builder b;
  Tensor score = b.input("score", {4}), mask = b.input("mask", {4}), v = b.input("v", {4});
  auto [j] = axes<"j">();
  const Axis one = axis("one", Extent(1));
  const Tensor shifted = map({j}, score(j) + mask(j), "shifted");
  b.output(map({one}, attend(j, shifted(j), v(j)).out), "out");
  const Graph g = b.graph();
  const double lowest = -3.4028234663852886e38;
  const Inputs in{{"score", eval::reals({4}, {0.3, -2, 5, 1})},
                  {"mask", filled({4}, lowest)},
                  {"v", eval::reals({4}, {1, 2, 3, 4})}};
  EXPECT_EQ(everywhere(g, in, "out", numerics(g, "shifted", {ir::Format::f32, ir::Format::f32, {}})).r[0], 2.5);
  // f64 rounds these sums to the mask as well (its ulp there is 3.7e22), so the oracle says 2.5 too.
  EXPECT_EQ(everywhere(g, in, "out").r[0], 2.5);
  // What the scores alone would give, so that a mask that is left out shows.
  double e[4], total_ = 0, mixed = 0;
  for (size_t k = 0; k < 4; ++k)
    e[k] = std::exp(in.at("score").r[k]), total_ += e[k], mixed += e[k] * double(k + 1);
  Inputs unmasked = in;
  unmasked["mask"] = filled({4}, 0);
  EXPECT_NEAR(everywhere(g, unmasked, "out").r[0], mixed / total_, 1e-12);
}

TEST(cases, case_05_keys_that_do_not_fill_a_tile) {
  auto ahead = [](Builder&, AttentionOptions& a, Inputs&) {
    a.mask = causal();
    a.changes = {[](const Scalar& s, const Spot& p) { return s + to_real(iota(p.position - Index(p.key))); }};
  };
  for (auto& how : {eval::Options{}, split4, chunks}) {
    const Out o = attended({}, ahead, how);
    EXPECT_NEAR(sum_of(o), -5.892887593905, 1e-11);
    EXPECT_NEAR(at(o, 4, 3), -0.099671629077, 1e-12);
    EXPECT_NEAR(lse(o, 0), 0.491165939644, 1e-12);
    EXPECT_NEAR(lse(o, 4), 4.227653610217, 1e-12);
  }
  eval::Options two, tiles;
  two.threads = tiles.threads = 2;
  tiles.order = {ir::FoldOrder::chunked, 64};
  const Out whole = attended({257, 257}, ahead, two), tiled = attended({257, 257}, ahead, tiles);
  EXPECT_LT(eval::difference(tiled.at("out"), whole.at("out")), 1e-12);
  for (double v : whole.at("out").r) ASSERT_TRUE(std::isfinite(v));
}

TEST(cases, case_07_two_documents_as_a_block_mask) {
  const Mask blocks{[](const Spot& s) {
    return (Index(s.row) < Index(4) && Index(s.key) < Index(4)) ||
           (Index(s.row) >= Index(4) && Index(s.key) >= Index(4));
  }};
  const Out o = attended({8, 8}, [&](Builder&, AttentionOptions& a, Inputs&) { a.mask = blocks; });
  EXPECT_NEAR(at(o, 0, 0), 0.327972221532, 1e-12);
  EXPECT_NEAR(at(o, 7, 3), -0.256797188923, 1e-12);
  EXPECT_NEAR(sum_of(o), -2.093744671877, 1e-11);
  for (int half = 0; half < 2; ++half) {
    Inputs data;
    for (const char* n : {"q", "k", "v"}) {
      const Array all = u(n[0] == 'q' ? 1 : n[0] == 'k' ? 2 : 3, {1, 1, 8, 4});
      data[n] = eval::reals({1, 1, 4, 4}, {all.r.begin() + half * 16, all.r.begin() + half * 16 + 16});
    }
    const Out alone = attended(
        {4, 4}, [](auto&, auto&, auto&) {}, {}, data);
    for (size_t k = 0; k < 16; ++k) EXPECT_EQ(alone.at("out").r[k], o.at("out").r[size_t(half) * 16 + k]);
  }
}

TEST(cases, case_08_paged_keys_do_not_depend_on_the_pages) {
  EXPECT_NEAR(sum_of(attended({8, 8}, just_causal)), -3.800160932160, 1e-11);
  EXPECT_NEAR(sum_of(attended({8, 8}, just_causal, split4)), -3.800160932160, 1e-11);
  auto paged = [](std::vector<int64_t> pages) {
    Builder b;
    Tensor q = b.input("q", {8, 4}), k = b.input("k", {8, 4}), v = b.input("v", {8, 4}),
           page = b.input("page", {2}, Format::i32);
    const Axis i = axis("i"), d = axis("d"), c = axis("c"), s = axis("s"), o = axis("o", Extent(4));
    const Index slot = 4 * Index(page(s)) + Index(o);
    const Scalar dot = sum(d, q(i, d) * k(slot, d)) * 0.5;
    b.output(map({i, c}, attend({s, o}, masked(4 * Index(s) + Index(o) <= i, dot), v(slot, c)).out), "out");
    Inputs in{{"q", u(1, {8, 4})}, {"page", eval::indices({2}, pages)}};
    for (auto [n, seed] : {std::pair{"k", 2.0}, {"v", 3.0}}) {
      const Array all = u(seed, {8, 4});
      in[n] = all;
      for (size_t e = 0; e < 32; ++e) in[n].r[size_t(pages[e / 16]) * 16 + e % 16] = all.r[e];
    }
    return everywhere(b.graph(), in, "out");
  };
  const Array straight = paged({0, 1}), crossed = paged({1, 0});
  EXPECT_NEAR(total(straight), -3.800160932160, 1e-11);
  EXPECT_EQ(straight.r, crossed.r);
}

// Blocks of any size, whole and cut by the mask, give one sum to the rounding of its order.
TEST(cases, case_08_blocks_are_a_field_of_the_schedule) {
  Builder b;
  AttentionOptions o;
  o.scale = 0.5;
  o.mask = causal();
  b.output(attention(b.input("q", {1, 1, 8, 4}), b.input("k", {1, 1, 8, 4}), b.input("v", {1, 1, 8, 4}), o).out, "out");
  const Graph g = b.graph();
  const Inputs in{{"q", u(1, {1, 1, 8, 4})}, {"k", u(2, {1, 1, 8, 4})}, {"v", u(3, {1, 1, 8, 4})}};
  const run::Derivation free = run::derive(g, c_options());
  std::set<std::string> texts;
  for (int64_t rows : {1, 4, 8})
    for (int64_t keys : {2, 4, 8}) {
      run::Options fixed = c_options();
      for (auto& step : free.plan.steps)
        for (auto& m : step.group.members) {
          const ir::Comp* n = free.plan.graph->nodes[m.node].comp();
          auto& fields = fixed.schedule.groups[schedule::key(*free.plan.graph, m.node)];
          for (int a = 0; a < n->axis_count(); ++a)
            if (n->extent(a).value() == 8) fields.tile[a] = size_t(a) < n->points.size() ? rows : keys;
        }
      run::Program p(g, keeping_compiler(), std::make_shared<device::Cpu>(1), fixed);
      texts.insert(run::source(p.derivation(), fixed));
      const auto r = verify::verify(p, g, in, 1e-6);
      EXPECT_TRUE(r.ok()) << rows << " x " << keys << ": " << r.worst();
      EXPECT_NEAR(total(test::output(p, g, "out")), -3.800160932160, 1e-5);
    }
  EXPECT_GE(texts.size(), 3u); // the fields did change the kernels
}

TEST(cases, case_10_causal_is_bottom_right) {
  const Out o = attended({6, 2}, just_causal);
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(at(o, i, c), 0);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(lse(o, i), -inf);
  EXPECT_NEAR(at(o, 4, 0), 0.141120008060, 1e-12);
  EXPECT_NEAR(at(o, 5, 0), 0.018027316847, 1e-12);
}

TEST(cases, case_11_one_row_sees_the_last_keys) {
  EXPECT_NEAR(at(attended({1, 6}, just_causal), 0, 0), 0.491404001527, 1e-12);
  EXPECT_NEAR(
      at(attended({1, 6}, [](auto&, AttentionOptions& o, auto&) { o.mask = causal() && window(3); }), 0, 0),
      0.590605436584, 1e-12);
}

TEST(cases, case_13_several_rows_after_a_prefix) {
  const Out all = attended({9, 9}, [](auto&, AttentionOptions& o, auto&) { o.mask = causal() && window(4); });
  Inputs last;
  const Array q = u(1, {9, 4});
  last["q"] = eval::reals({1, 1, 3, 4}, {q.r.begin() + 24, q.r.end()});
  const Out chunk = attended(
      {3, 9},
      [](Builder& b, AttentionOptions& o, Inputs& in) {
        o.mask = causal() && window(4);
        o.first = Index(b.input("pos", {}, Format::i32)()); // a run-time offset
        in["pos"] = eval::indices({}, {6});
      },
      {}, last);
  const double want[3] = {0.015088534202, 0.133161392592, -0.228225824436};
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(at(chunk, i, 0), want[i], 1e-12);
    for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(at(chunk, i, c), at(all, 6 + i, c));
  }
}

TEST(cases, case_14_a_ring_cache_keeps_the_last_window) {
  Builder b;
  Tensor cache = b.state("cache", {8, 1, 1}), fresh = b.input("fresh", {1, 1}),
         pos = b.input("pos", {}, Format::i32);
  b.output(append_to_ring(cache, fresh, pos), "cache");
  const Graph g = b.graph();
  Array state = filled({8, 1, 1}, -1);
  for (int64_t t = 0; t < 10; ++t) {
    state = everywhere(g,
                  {{"cache", state},
                   {"fresh", eval::reals({1, 1}, {10 + 0.1 * double(t)})},
                   {"pos", eval::indices({}, {t})}},
                  "cache");
    std::vector<double> live, want;
    for (int64_t s = 0; s <= std::min<int64_t>(t, 7); ++s) live.push_back(state.r[size_t(s)]);
    for (int64_t s = std::max<int64_t>(0, t - 7); s <= t; ++s) want.push_back(10 + 0.1 * double(s));
    std::sort(live.begin(), live.end());
    EXPECT_EQ(live, want) << t;
  }
}

TEST(cases, case_16_packed_sequences_one_without_keys) {
  const Out o = attended({6, 4}, [](Builder& b, AttentionOptions& a, Inputs& in) {
    a.mask = key_range(b.input("start", {1, 6}, Format::i32), b.input("end", {1, 6}, Format::i32));
    in["start"] = eval::indices({1, 6}, {0, 0, 0, 2, 2, 2}); // kv lengths 0, 2, 0, 2 of rows 1, 2, 1, 2
    in["end"] = eval::indices({1, 6}, {0, 2, 2, 2, 4, 4});
  });
  const double want[6] = {0, -0.276733959238, -0.127026663285, 0, 0.055792408850, 0.046662355308};
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(at(o, i, 0), want[i], 1e-12) << i;
  for (int64_t i : {0, 3}) {
    EXPECT_EQ(at(o, i, 2), 0);
    EXPECT_EQ(lse(o, size_t(i)), -inf);
  }
}

TEST(cases, case_18_softmax_over_a_length_bound_at_run_time) {
  Builder b;
  const Extent k = b.symbol("k");
  b.output(softmax(b.input("x", {10, k})), "p");
  const Graph g = b.graph();
  for (int64_t n : {1, 10, 31, 32, 33})
    for (auto& how : {eval::Options{}, split4, lanes, eval::Options{{}, {ir::FoldOrder::split, 7}, 1}})
      for (double v : everywhere(ir::bind(g, {{"k", n}}).graph, {{"x", filled({10, n}, 1)}}, "p", how).r)
        EXPECT_NEAR(v, 1.0 / double(n), 1e-15);
}

TEST(cases, case_19_softmax_of_minus_infinity_is_zero_at_every_length) {
  for (int64_t n : {1, 127, 128, 129})
    for (auto& how : {eval::Options{}, split4, lanes, chunks}) {
      Builder b;
      b.output(softmax(b.input("x", {n})), "p");
      for (double v : everywhere(b.graph(), {{"x", filled({n}, -inf)}}, "p", how).r) EXPECT_EQ(v, 0);
    }
}

TEST(cases, case_21_head_dimension_128) {
  const Out o = attended({3, 3, 128, 128, 1 / std::sqrt(128.0)}, just_causal);
  EXPECT_NEAR(at(o, 2, 127), -0.393204796579, 1e-10);
  EXPECT_NEAR(sum_of(o), -3.046542479883, 1e-10);
  EXPECT_NEAR(lse(o, 2), 4.808023927406, 1e-10);
}

TEST(cases, case_22_awkward_head_dimensions) {
  struct Row {
    int64_t d;
    double last, sum, lse;
  };

  for (const Row& r : {Row{1, -0.309887422507, -0.284454512536, 1.392351584706},
                       {63, 0.589581485228, 0.193590130365, 3.661604638959},
                       {72, 0.569746559983, 0.214485177023, 3.905117000725},
                       {80, 0.640522485265, -2.048266713878, 2.560038002977},
                       {96, 0.305936370997, -0.274623157439, 2.794984517967},
                       {192, -0.182588699142, -0.238109402547, 3.807971539178}}) {
    const Out o = attended({3, 3, r.d, r.d, 0}, just_causal); // the default scale
    EXPECT_NEAR(at(o, 2, r.d - 1), r.last, 1e-10) << r.d;
    EXPECT_NEAR(sum_of(o), r.sum, 1e-10) << r.d;
    EXPECT_NEAR(lse(o, 2), r.lse, 1e-10) << r.d;
  }
}

TEST(cases, case_24_tanh_of_large_arguments) {
  Builder b;
  auto [i] = axes<"i">();
  Tensor x = b.input("x", {9}), y = b.input("y", {2}, Format::f16);
  b.output(map({i}, tanh(x(i)), "t"), "t");
  const Axis j = axis("j");
  b.output(map({j}, tanh(y(j)), "narrow"), "narrow");
  const Graph g = b.graph();
  const Inputs in{{"x", eval::reals({9}, {-1000, -89, -50, -44.2, 0, 44.2, 50, 89, 1000})},
                  {"y", eval::reals({2}, {-12, 12})}};
  EXPECT_EQ(everywhere(g, in, "t", numerics(g, "t", {ir::Format::f32, ir::Format::f32, {}})).r,
            (std::vector<double>{-1, -1, -1, -1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(everywhere(g, in, "narrow", numerics(g, "narrow", {ir::Format::f16, ir::Format::f16, {}})).r,
            (std::vector<double>{-1, 1}));
  const Out capped = attended({}, [](auto&, AttentionOptions& o, auto&) {
    o.mask = causal();
    o.changes = {soft_cap(5)};
  });
  EXPECT_NEAR(sum_of(capped), -2.644723299312, 1e-11);
}

TEST(cases, case_25_a_score_stored_in_f16_before_scaling_overflows) {
  for (bool scaled_first : {false, true}) {
    Builder b;
    Tensor q = b.input("q", {128}), k = b.input("k", {2, 128}), v = b.input("v", {2});
    auto [j, d] = axes<"j d">();
    const Axis one = axis("one", Extent(1));
    const double scale = 1 / std::sqrt(128.0);
    const Scalar dot = sum(d, q(d) * k(j, d));
    const Tensor score = map({j}, scaled_first ? dot * scale : dot, "score");
    b.output(map({one}, attend(j, score(j) * (scaled_first ? 1.0 : scale), v(j)).out), "out");
    b.output(score, "score");
    const Graph g = b.graph();
    const Inputs in{{"q", filled({128}, 30)}, {"k", filled({2, 128}, 30)}, {"v", eval::reals({2}, {1, 3})}};
    EXPECT_NEAR(everywhere(g, in, "out").r[0], 2, 1e-12);
    const eval::Options narrow = numerics(g, "score", {ir::Format::f16, ir::Format::f32, {}});
    if (scaled_first) {
      EXPECT_NEAR(everywhere(g, in, "score").r[0], 10182.337, 1e-3);
      EXPECT_NEAR(everywhere(g, in, "out", narrow).r[0], 2, 1e-12);
    } else { // the emulator predicts what the device would do
      EXPECT_EQ(everywhere(g, in, "score", narrow).r[0], inf);
      EXPECT_TRUE(std::isnan(everywhere(g, in, "out", narrow).r[0]));
    }
  }
}

TEST(cases, case_27_rows_do_not_depend_on_how_many_are_computed_together) {
  const double want[8] = {-0.339402308438, -0.300551662641, -0.258047756614, -0.212288912616,
                          -0.165477798845, -0.114917380780, -0.062796652943, -0.009827875243};
  Array q = filled({1, 2, 4, 9, 4}, 0), k = filled({1, 2, 9, 4}, 0), v = k;
  for (size_t h = 0; h < 8; ++h)
    for (size_t e = 0; e < 36; ++e) q.r[h * 36 + e] = std::sin(1 + 0.1 * double(h) + 0.7 * double(e));
  for (size_t g = 0; g < 2; ++g)
    for (size_t e = 0; e < 36; ++e)
      k.r[g * 36 + e] = std::sin(2 + 0.1 * double(g) + 0.7 * double(e)),
                   v.r[g * 36 + e] = std::sin(3 + 0.1 * double(g) + 0.7 * double(e));
  auto rows = [&](int64_t first, int64_t count) {
    Builder b;
    AttentionOptions o;
    o.scale = 0.5;
    o.mask = causal();
    o.first = Index(first);
    b.output(attention(b.input("q", {1, 2, 4, count, 4}), b.input("k", {1, 2, 9, 4}),
                       b.input("v", {1, 2, 9, 4}), o)
                 .out,
             "out");
    Array part = filled({1, 2, 4, count, 4}, 0);
    for (size_t h = 0; h < 8; ++h)
      for (size_t e = 0; e < size_t(count * 4); ++e)
        part.r[h * size_t(count * 4) + e] = q.r[h * 36 + size_t(first * 4) + e];
    return everywhere(b.graph(), {{"q", part}, {"k", k}, {"v", v}}, "out");
  };
  const Array all = rows(0, 9), pair = rows(7, 2), one = rows(8, 1);
  EXPECT_NEAR(total(all), -25.218286933846, 1e-10);
  for (size_t h = 0; h < 8; ++h) {
    EXPECT_NEAR(all.r[h * 36 + 32], want[h], 1e-11) << h;
    for (size_t c = 0; c < 4; ++c) {
      EXPECT_EQ(pair.r[h * 8 + 4 + c], all.r[h * 36 + 32 + c]);
      EXPECT_EQ(one.r[h * 4 + c], all.r[h * 36 + 32 + c]);
    }
  }
}

TEST(cases, case_70_a_sequence_does_not_depend_on_its_batch_or_on_the_run) {
  Graph graph;
  Inputs inputs;
  auto run_batch = [&](int64_t first, int64_t count, int threads) {
    Builder b;
    AttentionOptions o;
    o.scale = 0.25;
    o.mask = causal();
    b.output(attention(b.input("q", {count, 1, 33, 16}), b.input("k", {count, 1, 33, 16}),
                       b.input("v", {count, 1, 33, 16}), o)
                 .out,
             "out");
    Inputs in;
    for (auto [n, seed] : {std::pair{"q", 1.0}, {"k", 2.0}, {"v", 3.0}}) {
      std::vector<double> data;
      for (int64_t s = first; s < first + count; ++s)
        for (int64_t e = 0; e < 33 * 16; ++e)
          data.push_back(std::sin(seed + 0.1 * double(s) + 0.7 * double(e)));
      in[n] = eval::reals({count, 1, 33, 16}, data);
    }
    eval::Options how;
    how.threads = threads;
    graph = b.graph(), inputs = in;
    return everywhere(graph, in, "out", how);
  };
  const Array all = run_batch(0, 8, 2);
  run::Program p(graph, keeping_compiler(), std::make_shared<device::Cpu>(2), c_options(2));
  verify::feed(p, graph, inputs);
  p.run();
  const Array once = output(p, graph, "out");
  for (int again = 0; again < 50; ++again) {
    p.run();
    ASSERT_EQ(output(p, graph, "out").r, once.r) << again;
  }
  for (int64_t s : {0, 3, 7}) {
    const Array alone = run_batch(s, 1, 1);
    for (size_t e = 0; e < alone.r.size(); ++e) ASSERT_EQ(alone.r[e], all.r[size_t(s) * alone.r.size() + e]);
  }
  for (int again = 0; again < 3; ++again) EXPECT_EQ(run_batch(0, 8, 1 + again % 2).r, all.r);
}
