// The worked table of docs/bound.md: leading term, correction and bound apart, in exact integers.
#include "bound/nests.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr Model chain = Model::chain, any = Model::any;
Bound words(const ir::Graph& g, int64_t memory) { return must(nest_of(g, last_fold(g), Unit::words), memory); }
}  // namespace

TEST(bound_table, matmul_has_the_half_cover_and_two_v_over_root_m) {
  const Bound b = words(matmul(1024, 1024, 1024), 4096);
  EXPECT_EQ(b.points, int64_t(1) << 30);
  ASSERT_TRUE(b.chain && b.any);
  EXPECT_EQ(text(b.chain->s), "1/2 1/2 1/2");
  EXPECT_EQ(text(b.chain->t), "0 0 0");
  EXPECT_EQ(b.chain->sigma, Rational(3, 2));
  EXPECT_EQ(b.chain->leading, 33'554'432);
  EXPECT_EQ(b.chain->correction, 8192);
  EXPECT_EQ(b.value(chain), 33'554'432 - 8192);
  EXPECT_EQ(b.any->leading, 23'726'566);  // sqrt(2) m n k / sqrt(M)
  EXPECT_EQ(b.any->correction, 16'384);
  EXPECT_EQ(b.value(any), 23'710'182);
  EXPECT_EQ(b.compulsory, 3'145'728);
  EXPECT_EQ(b.unsplit(), 33'546'240 - 1'048'576);
  for (auto& x : b.certificate.x) EXPECT_TRUE(is_zero(x + Form{Rational(-1, 2)}));
}
TEST(bound_table, matmul_at_larger_memories) {
  EXPECT_EQ(words(matmul(1024, 1024, 1024), 16384).chain->leading, 16'777'216);
  EXPECT_EQ(words(matmul(1024, 1024, 1024), 65536).chain->leading, 8'388'608);
}
TEST(bound_table, every_vertex_is_evaluated_and_the_program_optimum_is_not_the_best) {
  // At the tie of exponents the vertex (A = 1, t_n = 1) gives 16.8M, the vertex of halves 33.5M.
  const Bound b = words(matmul(4096, 64, 4096), 4096);
  EXPECT_EQ(b.chain->leading, 33'554'432);
  bool weaker = false;
  for (auto& v : b.vertices) {
    Rational sum = 0;
    for (auto& s : v.s) sum = sum + s;
    weaker |= sum == Rational(1) && std::abs(v.estimate - 16'777'216) < 1e-3;
  }
  EXPECT_TRUE(weaker);
}
TEST(bound_table, skinny_matmul_is_compulsory) {
  const Bound b = words(matmul(4096, 8, 4096), 16384);
  EXPECT_EQ(b.chain->sigma, Rational(1));
  EXPECT_EQ(b.chain->leading, 16'777'216);
  EXPECT_EQ(b.chain->correction, 0);
  EXPECT_EQ(b.compulsory, 16'842'752);
  EXPECT_EQ(b.value(chain), 16'842'752);
  // The program's own cover: A once, t of the short loop once; its tile takes that loop whole.
  EXPECT_EQ(text(b.certificate.s), "1 0 0");
  EXPECT_EQ(text(b.certificate.t), "0 1 0");
  EXPECT_EQ(b.certificate.x[1], b.certificate.extents[1]);
  EXPECT_NEAR(b.certificate.atoms.value(b.certificate.value()), 1.2143, 5e-5);
}
TEST(bound_table, gemv_moves_its_matrix_whatever_the_memory) {
  for (int64_t m : {64, 4096, 1 << 20}) {
    ir::Builder b;
    auto [i, k] = ir::axes<"i k">();
    ir::Tensor a = b.input("a", {4096, 4096}), x = b.input("x", {4096});
    b.output(ir::map({i}, ir::sum(k, a(i, k) * x(k))), "y");
    const Bound r = words(b.graph(), m);
    EXPECT_EQ(r.chain->leading, 16'777'216);
    EXPECT_EQ(r.chain->correction, 0);
    EXPECT_EQ(r.compulsory, 16'785'408);
  }
}
TEST(bound_table, a_batch_loop_multiplies_the_bound) {
  const Bound b = must(picks("bmnk", {8, 256, 256, 256}, {"bmk", "bkn", "bmn"}), 4096);
  EXPECT_EQ(text(b.chain->s), "1/2 1/2 1/2");
  EXPECT_EQ(b.chain->leading, 8 * 2 * (int64_t(1) << 24) / 64);
}
TEST(bound_table, pointwise_maps_move_what_they_touch) {
  ir::Builder b;
  auto [i, j] = ir::axes<"i j">();
  ir::Tensor x = b.input("x", {300, 500});
  b.output(ir::map({i, j}, ir::exp(x(i, j))), "y");
  const ir::Graph g = b.graph();
  const Bound r = must(nest_of(g, g.outputs[0].port.node, Unit::words), 1024);
  EXPECT_EQ(r.compulsory, 300'000);
  EXPECT_EQ(r.value(chain), 300'000);
  EXPECT_EQ(r.chain->leading, 300'000);  // both arrays have one kernel: they weigh together
}
TEST(bound_table, convolutions) {
  Bound b = words(convolution(64, 64, 56, 56, 3, 3, 1), 16384);
  EXPECT_EQ(b.chain->leading, 602'112);
  EXPECT_EQ(b.chain->correction, 32'768);
  EXPECT_EQ(b.value(chain), 569'344);
  EXPECT_EQ(b.compulsory, 452'864);
  b = words(convolution(64, 64, 56, 56, 3, 3, 1), 2048);
  EXPECT_EQ(b.chain->leading, 1'703'029);  // 1,703,029.9
  EXPECT_NEAR(b.chain->estimate, 1'703'030, 0.5);
  b = words(convolution(256, 256, 14, 14, 1, 1, 1), 2048);
  EXPECT_EQ(b.chain->leading, 567'676);
  EXPECT_NEAR(b.chain->estimate, 567'677, 0.5);
  b = words(convolution(1, 1, 14, 14, 1, 1, 1), 2048);
  EXPECT_EQ(b.compulsory, 14 * 14 * 2 + 1);
}
TEST(bound_table, a_stride_gives_back_its_root_by_class_of_remainders) {
  // Three taps at stride two: two of one remainder, one of the other. Each class is a convolution of step one.
  const Bound b = words(convolution(64, 128, 28, 28, 3, 3, 2), 2048);
  const double v = 64.0 * 128 * 28 * 28, even = 2 / std::sqrt(2.0), odd = 1;
  const double want = 2 * v * (even + odd) * (even + odd) / std::sqrt(2048.0);
  EXPECT_NEAR(double(b.chain->leading), want, 4);  // each class is rounded down
  EXPECT_NEAR(b.chain->estimate, want, 1e-3);
  EXPECT_EQ(b.compulsory, 382'016);
  // Two taps at stride two: the classes are equal and the step-one bound of half the taps is reached exactly.
  const Bound two = words(convolution(64, 64, 28, 28, 2, 2, 2), 2048);
  EXPECT_NEAR(two.chain->estimate, 2.0 * 64 * 64 * 28 * 28 * 4 / std::sqrt(2048.0), 1e-3);
}
TEST(bound_table, depthwise_is_compulsory) {
  ir::Builder b;
  auto [c, p, q, r, s] = ir::axes<"c p q r s">();
  ir::Axis p2 = ir::axis("p", 56), q2 = ir::axis("q", 56);
  ir::Tensor x = b.input("x", {64, 58, 58}), w = b.input("w", {64, 3, 3});
  b.output(ir::map({c, p2, q2}, ir::sum({r, s}, x(c, p2 + r, q2 + s) * w(c, r, s))), "y");
  const Bound k = words(b.graph(), 256);
  EXPECT_EQ(k.points, 1'806'336);
  EXPECT_EQ(k.compulsory, 416'576);
  EXPECT_EQ(k.value(chain), 416'576);
}
TEST(bound_table, attention_is_a_product_of_rows) {
  const ir::Graph g = attention(4096, 4096, 64);
  const Bound b = must(chained_nest_of(g, last_fold(g), Unit::words), 16384);
  ASSERT_EQ(b.nest.arrays.size(), 2u);
  std::vector<int64_t> w{b.nest.arrays[0].weight, b.nest.arrays[1].weight};
  std::sort(w.begin(), w.end());
  EXPECT_EQ(w, (std::vector<int64_t>{128, 130}));
  EXPECT_EQ(text(b.chain->s), "1 1");
  EXPECT_EQ(b.chain->leading, 17'039'360);
  EXPECT_EQ(b.chain->correction, 16'384);
  EXPECT_EQ(b.compulsory, 4 * 4096 * 64 + 2 * 4096);  // the state keeps its maximum and its sum
  const ir::Graph masked = attention(4096, 4096, 64, true);
  const Bound half = must(chained_nest_of(masked, last_fold(masked), Unit::words), 16384);
  EXPECT_EQ(half.points, 8'390'656);
  EXPECT_EQ(half.chain->leading, int64_t(8'390'656) * 130 * 128 / 16384);
}
TEST(bound_table, masks_count_live_points) {
  const ir::Domain window{{ir::axis(0) - ir::axis(1), ir::axis(1) - ir::axis(0) + ir::constant(127)}};
  EXPECT_EQ(*count_points({4096, 4096}, window), 516'160);
  EXPECT_EQ(*count_points({1024, 1024}, {{ir::axis(0) - ir::axis(1)}}), 524'800);
}
TEST(bound_table, routed_layers) {
  const double want[] = {10, 19.805, 38.843, 74.74, 138.57, 239.64, 313.35, 367.11};
  const int64_t tokens[] = {1, 2, 4, 8, 16, 32, 48, 64};
  for (int k = 0; k < 8; ++k) EXPECT_NEAR(expected_experts(512, 10, tokens[k]), want[k], 6e-3);
  EXPECT_EQ(expected_experts(8, 8, 3), 8);
  // Experts of T_e tokens each: leading terms add up, the correction is paid once.
  const Nest expert = picks("tnk", {1, 512, 512}, {"tk", "kn", "tn"});
  const auto all = by_part(expert, 0, {512, 512, 1024}, 4096, chain);
  ASSERT_TRUE(bool(all)) << all.why();
  EXPECT_EQ(all->leading, 2 * int64_t(2048) * 512 * 512 / 64);
  EXPECT_EQ(all->correction, 8192);
  const auto one = by_part(expert, 0, std::vector<int64_t>(16, 1), 4096, chain);
  ASSERT_TRUE(bool(one));
  EXPECT_EQ(one->leading, 16 * 512 * 512);  // single tokens: every expert's matrix once
}
TEST(bound_table, best_integer_tiles) {
  const Nest n = picks("mnk", {1024, 1024, 1024}, {"mk", "kn", "mn"});
  auto t = best_tiles(n, Room{4096, {}, {}, {0, 0, 1}});
  ASSERT_TRUE(bool(t)) << t.why();
  EXPECT_EQ(t->traffic, 35'651'584);
  EXPECT_EQ(std::min(t->tile[0], t->tile[1]), 61);
  EXPECT_EQ(std::max(t->tile[0], t->tile[1]), 64);
  const Bound b = must(n, 4096);
  EXPECT_NEAR(double(t->traffic) / double(b.value(chain) + 1'048'576), 1.031, 5e-4);
  EXPECT_GE(t->traffic, b.unsplit());
  struct Row { int64_t memory, a, b, q; };
  for (auto& r : {Row{4096, 48, 48, 47'185'920}, Row{16384, 96, 128, 20'971'520}, Row{65536, 208, 256, 10'485'760}}) {
    auto g = best_tiles(n, Room{r.memory, {16, 16, 16}, {}, {0, 0, 16}});
    ASSERT_TRUE(bool(g));
    EXPECT_EQ(g->traffic, r.q);
    EXPECT_EQ(std::minmax(g->tile[0], g->tile[1]), std::minmax(r.a, r.b));
  }
}
TEST(bound_table, best_attention_tiles) {
  const ir::Graph g = attention(4096, 4096, 64);
  auto n = chained_nest_of(g, last_fold(g), Unit::words);
  ASSERT_TRUE(bool(n));
  auto t = best_tiles(*n, Room{16384, {}, {{0, 1}}, {}});
  ASSERT_TRUE(bool(t)) << t.why();
  // Keys pass over query rows that stay; the state is stored whole, two words a row more than its output.
  EXPECT_EQ(t->traffic, 18'350'080 + 2 * 4096);
  EXPECT_EQ(t->tile[1], 1);
  EXPECT_LE(t->tile[0], 124);
  const Bound b = must(n, 16384);
  EXPECT_NEAR(double(t->traffic) / double(b.chain->leading), 1.08, 5e-3);
  auto coarse = best_tiles(*n, Room{16384, {16, 16}, {{0, 1}}, {}});
  ASSERT_TRUE(bool(coarse));
  EXPECT_EQ(coarse->traffic, 23'068'672 + 2 * 4096);
  EXPECT_EQ(coarse->tile[0], 96);
  EXPECT_EQ(coarse->tile[1], 16);
}
