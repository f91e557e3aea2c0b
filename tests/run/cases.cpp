// Cases that are about targets, on every target that this machine has: tails of tiles, overflow in composed functions,
// nothing to compute, infinities as values, many workgroups, literals, offsets beyond 2^31.
#include "run/opened.hpp"
#include "tang/ir/surface.hpp"
#include "tang/models/attention.hpp"

using namespace tang;
using namespace tang::ir;
using test::opened;

namespace {
const double inf = HUGE_VAL;

class Cases : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    if (!opened(GetParam())) GTEST_SKIP() << "not present: " << opened(GetParam()).why();
  }

  const run::Opened& target() { return *opened(GetParam()); }

  bool exact() { return target().target.values == target::Class::exact; }

  run::Program program(const Graph& g) {
    run::Options o = run::options_for(target().target);
    o.guards = true;
    return run::Program(g, target().backend, o);
  }
};

std::vector<float> floats(run::Program& p, const std::string& name) {
  std::vector<float> out(size_t(p.elements(name)));
  p.read(name, out.data());
  return out;
}
} // namespace

// Positions ahead of the keys make scores that would overflow where a tile's tail is not cut before the exponential.
// The reference is untiled: a row at a time in f64, from the inputs as f32 holds them.
TEST_P(Cases, case_05_keys_that_do_not_fill_a_tile) {
  const int64_t n = 1025, d = 4;
  Builder b;
  Tensor q = b.input("q", {1, 1, n, d}), k = b.input("k", {1, 1, n, d}), v = b.input("v", {1, 1, n, d});
  models::AttentionOptions o;
  o.scale = 0.5;
  o.mask = models::causal();
  o.changes = {[](const Scalar& s, const models::Spot& p) { return s + to_real(iota(p.position - Index(p.key))); }};
  b.output(models::attention(q, k, v, o).out, "out");
  run::Program p = program(b.graph());
  std::map<std::string, std::vector<float>> in;
  for (auto [name, seed] : {std::pair{"q", 1.0}, {"k", 2.0}, {"v", 3.0}}) {
    for (int64_t e = 0; e < n * d; ++e) in[name].push_back(float(std::sin(seed + 0.7 * double(e))));
    p.write(name, in[name].data());
  }
  p.run();
  const auto out = floats(p, "out");
  double worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> s;
    for (int64_t j = 0; j <= i; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < d; ++c) dot += double(in["q"][size_t(i * d + c)]) * double(in["k"][size_t(j * d + c)]);
      s.push_back(0.5 * dot + double(i - j));
    }
    const double top = *std::max_element(s.begin(), s.end());
    double all = 0;
    for (double& x : s) all += x = std::exp(x - top);
    for (int64_t c = 0; c < d; ++c) {
      double want = 0;
      for (int64_t j = 0; j <= i; ++j) want += s[size_t(j)] / all * double(in["v"][size_t(j * d + c)]);
      worst = std::max(worst, std::fabs(double(out[size_t(i * d + c)]) - want));
      ASSERT_TRUE(std::isfinite(out[size_t(i * d + c)])) << i;
    }
  }
  EXPECT_LT(worst, 2e-4); // a score of 1024 is rounded by 6e-5
  EXPECT_TRUE(p.trespass().empty());
}

TEST_P(Cases, case_24_tanh_of_large_arguments) {
  Builder b;
  auto [i, j] = axes<"i j">();
  Tensor x = b.input("x", {9}), y = b.input("y", {2}, Format::f16);
  b.output(map({i}, tanh(x(i))), "t");
  b.output(map({j}, tanh(y(j))), "narrow", Format::f16);
  run::Program p = program(b.graph());
  const std::vector<float> in{-1000, -89, -50, -44.2f, 0, 44.2f, 50, 89, 1000};
  p.write("x", in.data());
  uint16_t narrow[2];
  run::write(narrow, Format::f16, std::vector<double>{-12, 12});
  p.write("y", narrow);
  p.run();
  EXPECT_EQ(floats(p, "t"), (std::vector<float>{-1, -1, -1, -1, 0, 1, 1, 1, 1}));
  p.read("narrow", narrow);
  EXPECT_EQ(run::read_reals(narrow, Format::f16, 2), (std::vector<double>{-1, 1}));
}

TEST_P(Cases, case_38_dimensions_of_extent_zero) {
  Builder b;
  Tensor x = b.input("x", {2, 0, 3}), a = b.input("a", {2, 0}), c = b.input("c", {0, 4}),
         table = b.param("table", {5, 3}), ids = b.input("ids", {0}, Format::i32);
  auto [i, j, k, m, n, at] = axes<"i j k m n at">();
  b.output(map({i, k}, sum(j, x(i, j, k))), "sum");
  b.output(map({i, n}, sum(m, a(i, m) * c(m, n))), "matmul");
  b.output(map({at, k}, table(Index(ids(at)), k)), "rows");
  run::Program p = program(b.graph());
  p.poison_scratch();
  p.run();
  EXPECT_EQ(floats(p, "sum"), std::vector<float>(6, 0));
  EXPECT_EQ(floats(p, "matmul"), std::vector<float>(8, 0));
  EXPECT_EQ(p.elements("rows"), 0);
  EXPECT_TRUE(p.trespass().empty());
}

TEST_P(Cases, case_91_infinity_and_nan_are_values) {
  Builder b;
  Tensor x = b.input("x", {2}), y = b.input("y", {2});
  auto [i] = axes<"i">();
  b.output(map({i}, x(i) * inf), "times");
  b.output(map({i}, select(is_nan(y(i)), 1.0, 0.0)), "nan");
  b.output(map({i}, select(!(y(i) == y(i)), 1.0, 0.0)), "differs");
  b.output(map({i}, is_nan(x(i) * inf - x(i) * inf)), "minus");
  run::Program p = program(b.graph());
  const float xs[2] = {2, 3}, ys[2] = {std::nanf(""), 1};
  p.write("x", xs), p.write("y", ys);
  p.run();
  const auto times = floats(p, "times");
  for (float v : times) { // on a target of class finite the largest number stands for infinity
    if (exact()) EXPECT_EQ(v, float(inf));
    else EXPECT_GE(v, std::numeric_limits<float>::max());
  }
  if (!exact()) return; // such a target promises nothing of NaN, and says so: docs/targets.md
  EXPECT_EQ(floats(p, "nan"), (std::vector<float>{1, 0}));
  EXPECT_EQ(floats(p, "differs"), (std::vector<float>{1, 0}));
  unsigned char minus[2];
  p.read("minus", minus);
  EXPECT_EQ(minus[0] + minus[1], 2);
}

TEST_P(Cases, case_93_more_workgroups_than_a_dimension_holds) {
  for (int64_t n : {int64_t(4194240), int64_t(4194241), int64_t(16777216)}) {
    if (GetParam() == "metal" && n > 5000000) continue; // emulated lane by lane
    Builder b;
    Tensor x = b.input("x", {n});
    auto [i] = axes<"i">();
    b.output(map({i}, x(i) + 1.0), "y");
    run::Program p = program(b.graph());
    std::vector<float> in(static_cast<size_t>(n));
    for (size_t k = 0; k < in.size(); ++k) in[k] = float(k % 4096);
    p.write("x", in.data());
    p.run();
    const auto out = floats(p, "y");
    int64_t wrong = 0;
    for (size_t k = 0; k < in.size(); ++k) wrong += out[k] != in[k] + 1;
    EXPECT_EQ(wrong, 0) << n;
    EXPECT_TRUE(p.trespass().empty()) << n; // lanes beyond the end
  }
}

TEST_P(Cases, case_97_literals_and_shifts) {
  const std::vector<float> all{0.1f, 16777217.0f, 1.17549435e-38f, 3.4028235e38f, 1e-45f, -0.0f, 1.0f / 3};
  Builder b;
  Tensor x = b.input("x", {1});
  auto [i] = axes<"i">();
  for (size_t k = 0; k < all.size(); ++k)
    b.output(map({i}, select(x(i) > 0.0, Scalar(double(all[k])), x(i))), "c" + std::to_string(k));
  run::Program p = program(b.graph());
  const float one = 1;
  p.write("x", &one);
  p.run();
  for (size_t k = 0; k < all.size(); ++k) {
    const float got = floats(p, "c" + std::to_string(k))[0];
    // Numbers below the least normal one may be read as 0 by a GPU.
    const bool flushed = GetParam() != "c" && std::fabs(all[k]) < 1e-37f && got == 0;
    EXPECT_TRUE(flushed || std::memcmp(&got, &all[k], 4) == 0) << all[k] << " became " << got;
  }
  // Eight nibbles of a word, the count of the shift computed.
  Builder c;
  Tensor word = c.input("word", {3}, Format::u32);
  const Axis w = axis("w"), at = axis("at", Extent(8));
  const Scalar count = to_bits(iota(4 * Index(at)));
  c.output(map({w, at}, to_index(apply(Op::bit_and, {apply(Op::shift_right, {word(w), count}), to_bits(index_literal(c, 15))}))), "nibble");
  const uint32_t words[3] = {0x76543210u, 0xfedcba98u, 0x80000001u};
  std::optional<run::Program> q;
  try {
    q.emplace(program(c.graph()));
  } catch (const Error& e) { // 32-bit targets have no bits; one clear error
    EXPECT_FALSE(target().target.index64) << e.what();
    return;
  }
  q->write("word", words);
  q->run();
  std::vector<int32_t> out(24);
  q->read("nibble", out.data());
  for (size_t k = 0; k < 24; ++k) EXPECT_EQ(out[k], int32_t(words[k / 8] >> (4 * (k % 8)) & 15)) << k;
}

INSTANTIATE_TEST_SUITE_P(every, Cases, testing::ValuesIn(run::target_names()), [](const auto& x) { return x.param; });

// 2147635200 bytes, of which pages of two rows are touched.
TEST(run_cases, case_63_offsets_beyond_31_bits) {
  const int64_t rows = 20973, width = 102400;
  const Axis c = axis("c");
  Builder b;
  Tensor x = b.state("x", {rows, width}, Format::i8), at = b.input("at", {}, Format::i32), fresh = b.input("fresh", {width}, Format::i8);
  const Axis r = axis("r");
  b.output(map({c}, x(Index(at()), c)), "row", Format::i8);
  b.output(map({r, c}, select(as_scalar(Index(r) == Index(at()), fresh(c)), fresh(c), x(r, c))), "x");
  run::Options o;
  o.target = target::c_target(o.target.lanes, 1);
  run::Program p(b.graph(), test::shared_compiler(), std::make_shared<device::Cpu>(1), o);
  EXPECT_EQ(p.memory("x")->size(), 2147635200u);
  auto* bytes = p.data<int8_t>("x");
  std::vector<int8_t> before(size_t(width), 7), last(size_t(width), 5);
  std::copy(before.begin(), before.end(), bytes + 20971 * width);
  std::vector<int8_t> next(static_cast<size_t>(width));
  for (size_t k = 0; k < next.size(); ++k) next[k] = int8_t(k % 100);
  for (int32_t row : {20971, 20972}) {
    p.write("at", &row);
    p.write("fresh", row == 20971 ? last.data() : next.data());
    p.run();
    std::vector<int8_t> read(static_cast<size_t>(width));
    p.read("row", read.data());
    EXPECT_EQ(read, row == 20971 ? before : std::vector<int8_t>(size_t(width), 0)) << row; // what was there before
  }
  EXPECT_EQ(std::vector<int8_t>(bytes + 2147532800, bytes + 2147532800 + width), next);
  EXPECT_EQ(std::vector<int8_t>(bytes + 20971 * width, bytes + 20972 * width), last);
  EXPECT_EQ(std::count(bytes + 20970 * width, bytes + 20971 * width, 0), width); // neighbours
}

// Narrow states, each in its own format and updated twice.
TEST(run_cases, a_state_keeps_its_format) {
  for (ir::Format f : {ir::Format::f16, ir::Format::bf16, ir::Format::f32}) {
    Builder b;
    Tensor h = b.state("h", {5}, f);
    const Axis i = axis("i", Extent(5));
    b.output(map({i}, h(Index(4) - i) + 0.5), "h"); // reads other points: the new value lies elsewhere first
    run::Program p(b.graph(), test::shared_compiler(), std::make_shared<device::Cpu>(1));
    std::vector<char> held(size_t(5 * run::bytes_of(f)));
    run::write(held.data(), f, std::vector<double>{1, 2, 3, 4, 5});
    p.write("h", held.data());
    p.run();
    p.run();
    p.read("h", held.data());
    EXPECT_EQ(run::read_reals(held.data(), f, 5), (std::vector<double>{2, 3, 4, 5, 6}));
  }
}
