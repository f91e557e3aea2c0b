// Attention against a reference loop: every mask and score change, the naive form, grouped heads, sizes 0 and
// odd.
#include "tang/models/attention.hpp"

#include <functional>

#include "models/data.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {

struct Sizes {
  int64_t batch = 1, kv = 1, group = 1, rows = 5, keys = 5, d = 4, c = 4;
};

using Visible = std::function<bool(int64_t b, int64_t i, int64_t j)>;
using Score = std::function<double(double s, int64_t h, int64_t i, int64_t j)>;

struct Reference {
  std::vector<double> out, lse;
};

// Textbook loops in f64 over q [b, kv, group, rows, d], k [b, kv, keys, d], v [b, kv, keys, c].
Reference reference(const Sizes& z, const Array& q, const Array& k, const Array& v, double scale,
                    const Visible& sees, const Score& change, bool sigmoid = false) {
  Reference r;
  for (int64_t b = 0; b < z.batch; ++b)
    for (int64_t h = 0; h < z.kv * z.group; ++h)
      for (int64_t i = 0; i < z.rows; ++i) {
        const int64_t g = h / z.group;
        std::vector<double> s(size_t(z.keys), -inf);
        double top = -inf, sum = 0;
        for (int64_t j = 0; j < z.keys; ++j) {
          if (!sees(b, i, j)) continue;
          double dot = 0;
          for (int64_t d = 0; d < z.d; ++d)
            dot += q.r[size_t(((b * z.kv * z.group + h) * z.rows + i) * z.d + d)] *
                   k.r[size_t(((b * z.kv + g) * z.keys + j) * z.d + d)];
          s[size_t(j)] = change(dot * scale, h, i, j);
          top = std::max(top, s[size_t(j)]);
        }
        std::vector<double> p(size_t(z.keys), 0);
        for (int64_t j = 0; j < z.keys; ++j)
          if (s[size_t(j)] > -inf) {
            p[size_t(j)] = sigmoid ? 1 / (1 + std::exp(-s[size_t(j)])) : std::exp(s[size_t(j)] - top);
            sum += p[size_t(j)];
          }
        r.lse.push_back(sum > 0 ? top + std::log(sum) : -inf);
        for (int64_t c = 0; c < z.c; ++c) {
          double o = 0;
          for (int64_t j = 0; j < z.keys; ++j)
            o += p[size_t(j)] * v.r[size_t(((b * z.kv + g) * z.keys + j) * z.c + c)];
          r.out.push_back(sigmoid ? o : sum > 0 ? o / sum : 0);
        }
      }
  return r;
}

const Score same = [](double s, int64_t, int64_t, int64_t) { return s; };

// Runs both forms of the builder and compares out and lse with the reference.
using Setup = std::function<void(Builder&, AttentionOptions&, Inputs&)>;

void compare(const Sizes& z, const Setup& setup, const Visible& sees, const Score& change,
             bool sigmoid = false) {
  const bool grouped = z.group > 1;
  for (bool naive : {false, true}) {
    Builder b;
    std::vector<Extent> head{z.batch, z.kv};
    auto shape = [&](int64_t n, int64_t d, bool of_q) {
      std::vector<Extent> s = head;
      if (of_q && grouped) s.push_back(z.group);
      s.push_back(n), s.push_back(d);
      return s;
    };
    Tensor q = b.input("q", shape(z.rows, z.d, true)), k = b.input("k", shape(z.keys, z.d, false)),
           v = b.input("v", shape(z.keys, z.c, false));
    Inputs in{{"q", u(1, eval::bound(q.shape()))},
              {"k", u(2, eval::bound(k.shape()))},
              {"v", u(3, eval::bound(v.shape()))}};
    AttentionOptions o;
    o.naive = naive;
    o.scale = 0.5;
    setup(b, o, in);
    o.sigmoid = sigmoid;
    const Attention a = attention(q, k, v, o);
    b.output(a.out, "out");
    if (!sigmoid) b.output(a.lse, "lse");
    EXPECT_TRUE(b.warnings().empty()) << b.warnings()[0];
    auto out = eval::run(b.graph(), in);
    const Reference r = reference(z, in["q"], in["k"], in["v"], 0.5, sees, change, sigmoid);
    ASSERT_EQ(out["out"].r.size(), r.out.size());
    EXPECT_TRUE(out["out"].all_present());
    for (size_t n = 0; n < r.out.size(); ++n)
      ASSERT_NEAR(out["out"].r[n], r.out[n], 1e-12) << n << " naive " << naive;
    if (sigmoid) continue;
    ASSERT_EQ(out["lse"].r.size(), r.lse.size());
    for (size_t n = 0; n < r.lse.size(); ++n) {
      if (r.lse[n] == -inf) {
        ASSERT_EQ(out["lse"].r[n], -inf) << n;
      } else {
        ASSERT_NEAR(out["lse"].r[n], r.lse[n], 1e-12) << n;
      }
    }
  }
}

Setup with(Mask m) {
  return [m](Builder&, AttentionOptions& o, Inputs&) { o.mask = m; };
}

const Visible all = [](int64_t, int64_t, int64_t) { return true; };
} // namespace

TEST(attention, plain) {
  compare(
      {2, 3, 1, 5, 7, 4, 6}, [](auto&, auto&, auto&) {}, all, same);
}

TEST(attention, causal_is_bottom_right_for_unequal_lengths) {
  for (auto [n, m] : {std::pair{5, 5}, {3, 7}, {6, 2}, {1, 6}, {1, 1}})
    compare(
        {1, 2, 1, n, m}, with(causal()),
        [n = n, m = m](int64_t, int64_t i, int64_t j) { return j <= i + m - n; }, same);
}

TEST(attention, window_counts_the_row_itself) {
  compare(
      {1, 1, 1, 9, 9}, with(causal() && window(4)),
      [](int64_t, int64_t i, int64_t j) { return j <= i && j > i - 4; }, same);
}

TEST(attention, window_and_sink) {
  compare(
      {1, 1, 1, 9, 9}, with(causal() && (window(3) || sink(2))),
      [](int64_t, int64_t i, int64_t j) { return j <= i && (j > i - 3 || j < 2); }, same);
}

TEST(attention, prefix_of_a_fixed_and_of_a_run_time_length) {
  compare(
      {1, 1, 1, 6, 6}, with(causal() || prefix(3)),
      [](int64_t, int64_t i, int64_t j) { return j <= i || j < 3; }, same);
  compare(
      {2, 1, 1, 6, 6},
      [](Builder& b, AttentionOptions& o, Inputs& in) {
        o.mask = causal() || prefix(b.input("length", {2}, Format::i32));
        in["length"] = eval::indices({2}, {4, 0});
      },
      [](int64_t b, int64_t i, int64_t j) { return j <= i || j < (b ? 0 : 4); }, same);
}

TEST(attention, documents_by_equal_ids) {
  const std::vector<int64_t> ids{5, 5, 7, 7, 7, 5, 1, 1};
  compare(
      {1, 2, 1, 8, 8},
      [&](Builder& b, AttentionOptions& o, Inputs& in) {
        Tensor doc = b.input("doc", {1, 8}, Format::i32);
        o.mask = causal() && same_document(doc, doc);
        in["doc"] = eval::indices({1, 8}, ids);
      },
      [&](int64_t, int64_t i, int64_t j) { return j <= i && ids[size_t(i)] == ids[size_t(j)]; }, same);
}

TEST(attention, documents_by_start_and_end_one_of_them_empty) {
  const std::vector<int64_t> start{0, 0, 2, 2, 3}, end{2, 2, 2, 3, 5};
  compare(
      {1, 1, 1, 5, 5},
      [&](Builder& b, AttentionOptions& o, Inputs& in) {
        o.mask = key_range(b.input("start", {1, 5}, Format::i32), b.input("end", {1, 5}, Format::i32));
        in["start"] = eval::indices({1, 5}, start);
        in["end"] = eval::indices({1, 5}, end);
      },
      [&](int64_t, int64_t i, int64_t j) { return start[size_t(i)] <= j && j < end[size_t(i)]; }, same);
}

TEST(attention, boolean_mask_with_a_dead_row) {
  std::vector<int64_t> keep(25);
  for (int i = 0; i < 25; ++i) keep[size_t(i)] = i / 5 != 2 && (i * 7) % 3 != 0;
  compare(
      {1, 1, 1, 5, 5},
      [&](Builder& b, AttentionOptions& o, Inputs& in) {
        o.keep = b.input("keep", {5, 5}, Format::boolean);
        in["keep"] = booleans({5, 5}, keep);
      },
      [&](int64_t, int64_t i, int64_t j) { return keep[size_t(i * 5 + j)] != 0; }, same);
}

TEST(attention, alibi_with_grouped_heads) {
  const std::vector<double> slopes{0.5, 0.25, 0.125, 0.0625, 2, 3};
  compare(
      {2, 2, 3, 4, 6},
      [&](Builder& b, AttentionOptions& o, Inputs& in) {
        o.mask = causal();
        o.changes = {alibi(b.input("slopes", {2, 3}))};
        in["slopes"] = eval::reals({2, 3}, slopes);
      },
      [](int64_t, int64_t i, int64_t j) { return j <= i + 2; },
      [&](double s, int64_t h, int64_t i, int64_t j) { return s - slopes[size_t(h)] * double(i + 2 - j); });
}

TEST(attention, soft_cap) {
  compare(
      {1, 2, 1, 5, 5}, [](Builder&, AttentionOptions& o, Inputs&) { o.changes = {soft_cap(5)}; }, all,
      [](double s, int64_t, int64_t, int64_t) { return 5 * std::tanh(s / 5); });
}

namespace {
int64_t t5_bucket(int64_t relative, bool both, int64_t buckets, int64_t max_distance) { // HF's T5, in f64
  int64_t out = 0, n = buckets;
  if (both) {
    n /= 2;
    if (relative > 0) out += n;
    relative = std::abs(relative);
  } else {
    relative = std::max<int64_t>(-relative, 0);
  }
  const int64_t exact = n / 2;
  if (relative < exact) return out + relative;
  const double far = std::log2(double(relative) / double(exact)) /
                     std::log2(double(max_distance) / double(exact)) * double(n - exact);
  return out + std::min<int64_t>(exact + int64_t(far), n - 1);
}
} // namespace

TEST(attention, t5_relative_bias) {
  for (bool both : {true, false}) {
    const Array table = u(4, {8, 2});
    compare(
        {1, 2, 1, 21, 30},
        [&](Builder& b, AttentionOptions& o, Inputs& in) {
          o.changes = {relative_bias(b.input("table", {8, 2}), {16, both})};
          in["table"] = table;
        },
        all,
        [&](double s, int64_t h, int64_t i, int64_t j) {
          return s + table.r[size_t(t5_bucket(j - (i + 9), both, 8, 16) * 2 + h)];
        });
  }
}

TEST(attention, additive_bias_of_both_ranks_and_learned_scale) {
  const Array shared = u(5, {4, 6}), own = u(6, {3, 4, 6});
  compare(
      {1, 3, 1, 4, 6},
      [&](Builder& b, AttentionOptions& o, Inputs& in) {
        o.changes = {scale_by(b.input("factor", {})), add_bias(b.input("shared", {4, 6})),
                     add_bias(b.input("own", {3, 4, 6}))};
        in["factor"] = eval::reals({}, {1.5});
        in["shared"] = shared;
        in["own"] = own;
      },
      all,
      [&](double s, int64_t h, int64_t i, int64_t j) {
        return 1.5 * s + shared.r[size_t(i * 6 + j)] + own.r[size_t((h * 4 + i) * 6 + j)];
      });
}

TEST(attention, sigmoid_weights) {
  compare(
      {1, 2, 1, 5, 5},
      [](Builder&, AttentionOptions& o, Inputs&) {
        o.mask = causal();
        o.sigmoid_bias = -1;
      },
      [](int64_t, int64_t i, int64_t j) { return j <= i; },
      [](double s, int64_t, int64_t, int64_t) { return s - 1; }, true);
}

TEST(attention, grouped_queries) {
  compare(
      {2, 2, 4, 3, 5, 4, 2}, with(causal()), [](int64_t, int64_t i, int64_t j) { return j <= i + 2; }, same);
}

TEST(attention, zero_sizes_are_legal) {
  compare(
      {1, 1, 1, 3, 0}, [](auto&, auto&, auto&) {}, all, same); // no key: zeros
  compare(
      {1, 1, 1, 0, 3}, [](auto&, auto&, auto&) {}, all, same);
  compare({0, 1, 1, 2, 3}, with(causal()), all, same);
  compare(
      {1, 1, 1, 2, 3, 0, 2}, [](auto&, auto&, auto&) {}, all, same); // d = 0: the mean of v
}

TEST(attention, a_row_of_minus_infinity_is_zero_like_a_masked_row) {
  Builder b;
  Tensor q = b.input("q", {1, 1, 1, 1}), k = b.input("k", {1, 1, 3, 1}), v = b.input("v", {1, 1, 3, 1});
  AttentionOptions o;
  const Attention a = attention(q, k, v, o);
  b.output(a.out, "out");
  b.output(a.lse, "lse");
  auto out = eval::run(
      b.graph(),
      {{"q", filled({1, 1, 1, 1}, 1)}, {"k", filled({1, 1, 3, 1}, -inf)}, {"v", filled({1, 1, 3, 1}, 2)}});
  EXPECT_EQ(out["out"].r[0], 0);
  EXPECT_EQ(out["lse"].r[0], -inf);
}

TEST(attention, appending_to_a_cache_writes_one_row) {
  Builder b;
  Tensor cache = b.state("cache", {4, 1, 2}), fresh = b.input("fresh", {1, 2}),
         pos = b.input("pos", {}, Format::i32);
  b.output(append(cache, fresh, pos), "cache");
  const Array out = value(b.graph(),
                          {{"cache", filled({4, 1, 2}, 7)},
                           {"fresh", eval::reals({1, 2}, {1, 2})},
                           {"pos", eval::indices({}, {2})}},
                          "cache");
  EXPECT_EQ(out.r, (std::vector<double>{7, 7, 7, 7, 1, 2, 7, 7}));
}
