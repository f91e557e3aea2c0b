// Which side of a contraction gets the lanes, what is laid out before it and what is read where it lies.
#include "lower/pipeline.hpp"

#include "tang/ir/surface.hpp"
#include "tang/lower/price.hpp"

namespace {
using namespace tang;
using namespace tang::ir;
using test::Derived;

// x [tokens, k] times w [out, k], as layers have it.
Graph layer(int64_t tokens, int64_t out, int64_t k, bool gain = false) {
  Builder b;
  Tensor x = b.input("x", {tokens, k}), w = b.param("w", {out, k});
  auto [t, o, i] = axes<"t o i">();
  const Scalar in = gain ? x(t, i) * b.param("gain", {k})(i) : x(t, i);
  b.output(map({t, o}, sum(i, in * w(o, i))), "y");
  return b.graph();
}
Graph padded_conv(int64_t channels, int64_t side, int64_t stride = 1) {
  Builder b;
  Tensor x = b.input("x", {1, channels, side, side}), w = b.param("w", {channels, channels, 3, 3});
  auto n = axis("n"), o = axis("o"), c = axis("c"), r = axis("r"), s = axis("s");
  auto h = axis("h", Extent(side / stride)), v = axis("v", Extent(side / stride));
  b.output(map({n, o, h, v}, sum({c, r, s}, x.at_or(0, {n, c, stride * Index(h) + Index(r) - Index(1), stride * Index(v) + Index(s) - Index(1)}) *
                                                w(o, c, r, s))),
           "y");
  return b.graph();
}
struct Found {
  std::vector<std::pair<const lower::Lowered*, const kernel::Contract*>> contracts;
  int64_t scratch = 0; // elements of tiles, of all kernels
};
Found found(const Derived& d) {
  Found f;
  for (auto& l : d.program.kernels) {
    std::function<void(const kernel::Block&)> walk = [&](const kernel::Block& b) {
      for (auto& s : b) {
        if (auto* c = std::get_if<kernel::Contract>(&s.node)) f.contracts.emplace_back(&l, c);
        if (auto* p = std::get_if<kernel::Pipeline>(&s.node)) walk(p->operands), walk(p->body);
        if (auto* p = std::get_if<kernel::Loop>(&s.node)) walk(p->body);
      }
    };
    walk(l.kernel.body);
    for (auto& m : l.kernel.memories)
      if (m.home != kernel::Home::global) f.scratch += m.size();
  }
  return f;
}
bool reads(const Derived& d, const std::pair<const lower::Lowered*, const kernel::Contract*>& c, const std::string& input) {
  size_t global = 0;
  for (int m = 0; m < c.second->a.memory; ++m) global += c.first->kernel.memories[size_t(m)].home == kernel::Home::global;
  if (c.first->kernel.memories[size_t(c.second->a.memory)].home != kernel::Home::global) return false;
  const auto* port = std::get_if<Port>(&c.first->arguments[global].what);
  return port && (*d.plan.graph)[port->node].name == input;
}

// Weights of a few tokens are read once, where they are: the lanes run along the tokens.
TEST(lower_sides, few_tokens_leave_the_weights_where_they_are) {
  for (bool gain : {false, true}) {
    const Derived d = test::derive(layer(32, 200, 96, gain), {}, target::c_target(8, 2));
    const Found f = found(d);
    ASSERT_EQ(f.contracts.size(), 1u);
    EXPECT_TRUE(reads(d, f.contracts[0], "w"));
    test::expect_derived(layer(32, 200, 96, gain));
  }
}
TEST(lower_sides, many_tokens_are_rows_again) {
  const Derived d = test::derive(layer(512, 200, 96), {}, target::c_target(8, 2));
  for (auto& c : found(d).contracts) EXPECT_FALSE(reads(d, c, "w"));
}
// A window of 3 x 3 would be laid out nine times.
TEST(lower_sides, windows_that_overlap_are_kept_once) {
  const int64_t channels = 16, side = 32;
  const Derived d = test::derive(padded_conv(channels, side), {}, target::c_target(8, 1));
  const Found f = found(d);
  ASSERT_EQ(f.contracts.size(), 1u);
  EXPECT_TRUE(reads(d, f.contracts[0], "w"));
  EXPECT_LT(f.scratch, channels * (side + 2) * (side + 4) + channels * side * side); // the box, and the result
  test::expect_derived(padded_conv(channels, side));
  test::expect_derived(padded_conv(5, 11));
  test::expect_derived(padded_conv(8, 20, 2)); // neighbours of a stride do not lie next to each other
}
TEST(lower_sides, factors_of_terms_alone_go_to_the_smaller_side) {
  lower::Sides s;
  s.a = {0, 2}, s.b = {1}, s.m = {0}, s.n = {1}, s.k = {2};
  const std::vector<lower::Factor> factors{{0, {0, 2}}, {1, {1, 2}}, {2, {2}}};
  auto size = [](int a) { return a == 0 ? 100.0 : 10.0; };
  lower::lighten(s, factors, {0, 1}, {2}, size);
  EXPECT_EQ(s.a, std::vector<int>({0}));
  EXPECT_EQ(s.b, std::vector<int>({1, 2}));
  lower::Sides needed; // without it the side would not read every term
  needed.a = {0, 2}, needed.b = {1}, needed.m = {0}, needed.n = {1}, needed.k = {2};
  lower::lighten(needed, {{0, {0}}, {1, {1, 2}}, {2, {2}}}, {0, 1}, {2}, size);
  EXPECT_EQ(needed.a, std::vector<int>({0, 2}));
}
TEST(lower_sides, rows_lie_where_they_are_for_few_panels_or_little_data) {
  EXPECT_TRUE(lower::reads_rows_in_place(2, 1e6, 1));
  EXPECT_FALSE(lower::reads_rows_in_place(2, 1e6, 64)); // a line for each term
  EXPECT_FALSE(lower::reads_rows_in_place(40, 1e6, 1)); // laid out once, read forty times
  EXPECT_TRUE(lower::reads_rows_in_place(40, 9216, 9));
}
} // namespace
