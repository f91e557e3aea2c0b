// A term that is masked out does no harm, even where what it would have read is infinite or NaN: in kernels of every
// schedule, forward and in gradients, where blocks of products hold 0 for it. Decision 42.
#include "cases/everywhere.hpp"
#include "tang/models/attention.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
// Sizes that are multiplied by blocks, the last ones ragged.
constexpr int64_t rows = 40, depth = 16;

struct Harm {
  const char* input;
  int64_t row;  // of `depth` numbers
  double value;
};

bool is_whole(const Array& a) {
  return std::all_of(a.r.begin(), a.r.end(), [](double v) { return std::isfinite(v); });
}

std::vector<double> row_of(const Array& a, int64_t row, int64_t width) {
  return {a.r.begin() + row * width, a.r.begin() + (row + 1) * width};
}

// Attention, or its gradient by q, k and v, with `harm` in one row of one input.
std::map<std::string, Array> attended(const Mask& mask, bool gradient, const Harm& harm) {
  Builder b;
  std::map<std::string, Tensor> t;
  Inputs in;
  double first = 0.3;
  for (auto* name : {"w", "q", "k", "v"}) {
    if (std::string(name) == "w" && !gradient) continue;
    t[name] = b.input(name, {1, 1, rows, depth});
    in[name] = u(first++, {1, 1, rows, depth});
  }
  AttentionOptions o;
  o.scale = 0.25;
  o.mask = mask;
  const Attention a = attention(t["q"], t["k"], t["v"], o);
  if (gradient) {
    const auto d = vjp(a.out, t["w"], {t["q"], t["k"], t["v"]});
    const char* const names[] = {"dq", "dk", "dv"};
    for (size_t n = 0; n < 3; ++n) b.output(d[n], names[n]);
  } else {
    b.output(a.out, "out");
  }
  std::fill_n(in[harm.input].r.begin() + harm.row * depth, depth, harm.value);
  return everywhere(b.graph(), in);
}

const double odd[] = {std::nan(""), HUGE_VAL, -HUGE_VAL};
} // namespace

// The last key is seen by the last row alone, the first query sees the first key alone.
TEST(cases, masked_keys_of_attention) {
  for (double x : odd) {
    auto out = attended(causal(), false, {"v", rows - 1, x});
    for (int64_t r = 0; r < rows; ++r) EXPECT_EQ(std::isfinite(out["out"].r[size_t(r * depth)]), r < rows - 1) << r;
    out = attended(causal(), false, {"k", rows - 1, std::nan("")});
    for (int64_t r = 0; r < rows; ++r) EXPECT_EQ(std::isfinite(out["out"].r[size_t(r * depth)]), r < rows - 1) << r;
  }
}

TEST(cases, masked_keys_of_attentions_gradient) {
  const double x = std::nan("");
  for (auto* name : {"k", "v"}) {
    auto d = attended(causal(), true, {name, rows - 1, x});
    for (int64_t r = 0; r < rows - 1; ++r) EXPECT_TRUE(std::isfinite(d["dq"].r[size_t(r * depth)])) << name << r;
    EXPECT_TRUE(std::isnan(d["dq"].r[size_t((rows - 1) * depth)])) << name;
  }
  for (auto* name : {"q", "w"}) { // seen by the first key alone
    auto d = attended(causal(), true, {name, 0, x});
    for (auto* of : {"dk", "dv"})
      for (int64_t r = 1; r < rows; ++r) EXPECT_TRUE(std::isfinite(d[of].r[size_t(r * depth)])) << name << of << r;
  }
}

// Pages that were never written: no row sees what lies in them.
TEST(cases, masked_pages_hold_anything) {
  const int64_t written = 25;
  const Mask pages{[](const Spot& s) { return Index(s.key) < Index(written) && Index(s.key) <= s.position; }};
  for (bool gradient : {false, true})
    for (auto* name : {"k", "v"}) {
      const auto want = attended(pages, gradient, {name, rows - 1, 0}), got = attended(pages, gradient, {name, rows - 1, odd[0]});
      for (auto& [output, a] : got) {
        EXPECT_TRUE(is_whole(a)) << name << output;
        EXPECT_EQ(a.r, want.at(output).r) << name << output;
      }
    }
}

// A row that sees no key, and holds NaN: 0, and no other row knows.
TEST(cases, masked_row_without_keys) {
  const Mask mask = causal() && Mask{[](const Spot& s) { return Index(s.row) != Index(2); }};
  for (auto* name : {"q", "w"}) {
    auto d = attended(mask, true, {name, 2, std::nan("")});
    EXPECT_EQ(row_of(d["dq"], 2, depth), std::vector<double>(depth, 0)) << name;
    for (auto& [of, a] : d) EXPECT_TRUE(is_whole(a)) << name << of;
  }
}

// A plain product under bounds of its rows, of its columns, of its terms, and under a condition on data.
TEST(cases, masked_terms_of_products) {
  const int64_t terms = 48, columns = 32;
  enum Where { of_rows, of_columns, of_terms, of_data };
  for (Where where : {of_rows, of_columns, of_terms, of_data})
    for (double x : odd) {
      const int64_t named = where == of_rows ? rows : where == of_columns ? columns : terms;
      Builder b;
      const Tensor l = b.input("l", {terms, columns}), r = b.input("r", {rows, terms}),
                   n = b.input("n", {named}, where == of_data ? Format::f32 : Format::i32);
      auto [i, j, k] = axes<"i j k">();
      const Scalar product = r(i, k) * l(k, j);
      const Scalar s = where == of_rows      ? masked(Index(k) < Index(n(i)), product)
                       : where == of_columns ? masked(Index(k) < Index(n(j)), product)
                       : where == of_terms   ? masked(Index(n(k)) > 0, product)
                                             : masked(n(k) > 0.5, product);
      b.output(map({i, j}, sum(k, s)), "y");
      Inputs in{{"l", u(1, {terms, columns})}, {"r", u(2, {rows, terms})}};
      std::vector<int64_t> most;
      for (int64_t at = 0; at < named; ++at) most.push_back(where == of_terms ? at < terms - 1 : at == 3 ? terms : terms - 1);
      in["n"] = eval::indices({named}, most);
      if (where == of_data) in["n"] = eval::reals({terms}, std::vector<double>(size_t(terms), 1)), in["n"].r[size_t(terms - 1)] = 0;
      // The last term is seen by row or column 3, or by none; the side that does not say so is not a number there.
      for (int64_t j2 = 0; where != of_columns && j2 < columns; ++j2) in["l"].r[size_t((terms - 1) * columns + j2)] = x;
      for (int64_t i2 = 0; where != of_rows && i2 < rows; ++i2) in["r"].r[size_t(i2 * terms + terms - 1)] = x;
      const Array y = everywhere(b.graph(), in, "y");
      for (int64_t i2 = 0; i2 < rows; ++i2)
        for (int64_t j2 = 0; j2 < columns; ++j2)
          ASSERT_EQ(std::isfinite(y.r[size_t(i2 * columns + j2)]),
                    where == of_rows ? i2 != 3 : where == of_columns ? j2 != 3 : true)
              << where << " " << i2 << " " << j2;
    }
}

// A filter that is infinite where an image's edge leaves it out: taps outside are no terms.
TEST(cases, masked_taps_of_a_filter) {
  for (double x : odd) {
    Builder b;
    const Tensor image = b.input("image", {8, 14, 14}), filter = b.input("filter", {16, 8, 3, 3});
    const Axis o = axis("o"), y = axis("y", Extent(14)), z = axis("z", Extent(14)), c = axis("c"), v = axis("v"), w = axis("w");
    const Index row = Index(y) + Index(v) - Index(1), column = Index(z) + Index(w) - Index(1);
    const auto inside = row >= Index(0) && row < Index(14) && column >= Index(0) && column < Index(14);
    b.output(map({o, y, z}, sum({c, v, w}, masked(inside, image(c, row, column) * filter(o, c, v, w)))), "out");
    Inputs in{{"image", u(1, {8, 14, 14})}, {"filter", u(2, {16, 8, 3, 3})}};
    in["filter"].r[0] = x; // of the first channel: the tap above on the left
    const Array out = everywhere(b.graph(), in, "out");
    for (int64_t k = 0; k < 16 * 14 * 14; ++k)
      ASSERT_EQ(std::isfinite(out.r[size_t(k)]), k >= 14 * 14 || k < 14 || k % 14 == 0) << k;
  }
}
