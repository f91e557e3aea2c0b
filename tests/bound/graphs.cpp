// From comprehensions to nests: guards, masks, gathers, data predicates, shared tensors, and the report.
#include "bound/nests.hpp"
#include "tang/bound/report.hpp"

using namespace tang;
using namespace tang::test;

namespace {
Result<Nest> nest(const ir::Graph& g, const Keys& keys = {}) { return nest_of(g, last_fold(g), Unit::words, keys); }
int64_t units(const Bound& b, const std::string& name) {
  for (auto& a : b.arrays)
    if (a.name == name) return a.units;
  return -1;
}
}  // namespace

TEST(bound_graph, bytes_follow_formats) {
  const ir::Graph g = matmul(64, 64, 64, ir::Format::f16);
  auto n = nest_of(g, last_fold(g), Unit::bytes);
  ASSERT_TRUE(bool(n));
  for (auto& a : n->arrays) EXPECT_EQ(a.weight, a.output ? 4 : 2) << a.name;  // the fold itself keeps f32
}
TEST(bound_graph, padding_touches_nothing_and_its_points_are_not_counted) {
  ir::Builder b;
  auto [i, r, c] = ir::axes<"i r c">();
  ir::Axis p = ir::axis("p", 10);
  ir::Tensor x = b.input("x", {4, 10}), w = b.input("w", {6, 4, 3});
  b.output(ir::map({i, p}, ir::sum({c, r}, x.at_or(0, {c, p + r - 1}) * w(i, c, r))), "y");
  const ir::Graph g = b.graph();
  auto n = nest(g);
  ASSERT_TRUE(bool(n)) << n.why();
  const Bound k = must(n, 16);
  EXPECT_EQ(k.points, 6 * 10 * 4 * 3);
  EXPECT_EQ(units(k, "x"), 40);
  // A cover that uses x counts only the 28 of 30 (p, r) pairs inside.
  bool guarded = false;
  for (auto& a : k.nest.arrays) guarded |= a.guard != ir::everywhere();
  EXPECT_TRUE(guarded);
}
TEST(bound_graph, gathers_count_known_keys_only) {
  ir::Builder b;
  auto [t, d] = ir::axes<"t d">();
  ir::Tensor table = b.input("table", {1000, 64}), ids = b.input("ids", {20}, ir::Format::i32);
  b.output(ir::map({t, d}, table(ids(t), d)), "y");
  const ir::Graph g = b.graph();
  const ir::NodeId id = g.outputs[0].port.node;
  Bound k = must(nest_of(g, id, Unit::words), 256);
  EXPECT_EQ(units(k, "table"), 64);  // all keys may be equal
  EXPECT_EQ(units(k, "ids"), 20);
  k = must(nest_of(g, id, Unit::words, {{"table", 17}}), 256);
  EXPECT_EQ(units(k, "table"), 17 * 64);
}
TEST(bound_graph, data_predicates_are_refused) {
  ir::Builder b;
  auto [i, j] = ir::axes<"i j">();
  ir::Tensor x = b.input("x", {8, 8});
  b.output(ir::map({i}, ir::sum(j, ir::masked(x(i, j) > ir::Scalar(0), x(i, j)))), "y");
  auto n = nest(b.graph());
  ASSERT_FALSE(bool(n));
  EXPECT_NE(n.why().find("predicate"), std::string::npos);
}
TEST(bound_graph, branches_that_data_can_skip_are_not_charged) {
  ir::Builder b;
  auto [i, j] = ir::axes<"i j">();
  ir::Tensor x = b.input("x", {8, 8}), z = b.input("z", {8, 8});
  b.output(ir::map({i}, ir::sum(j, ir::select(x(i, j) > ir::Scalar(0), z(i, j), ir::Scalar(1)))), "y");
  const Bound k = must(nest(b.graph()), 16);
  EXPECT_EQ(units(k, "x"), 64);
  EXPECT_EQ(units(k, "z"), -1);
}
TEST(bound_graph, two_views_of_one_tensor_share_what_they_touch) {
  ir::Builder b;
  auto [i, j, d] = ir::axes<"i j d">();
  ir::Tensor x = b.input("x", {64, 64});
  b.output(ir::map({i, j}, ir::sum(d, x(i, d) * x(j, d))), "gram");
  const Bound k = must(nest(b.graph()), 64);
  EXPECT_EQ(k.compulsory, 2 * 64 * 64);
  // Two tensors of 1/2 each would allow 2 V / sqrt(M); one tensor with exponent 1 may fill two thirds of a segment.
  EXPECT_EQ(text(k.chain->s), "1/2 1/2 1/2");
  EXPECT_EQ(k.chain->leading, 64 * 64 * 64 / 8);
}
TEST(bound_graph, chains_need_a_fold_larger_than_its_operands) {
  const ir::Graph g = matmul(64, 64, 64);
  EXPECT_FALSE(bool(chained_nest_of(g, last_fold(g), Unit::words)));
}
TEST(bound_graph, a_memory_smaller_than_an_element_is_refused) {
  const ir::Graph g = attention(64, 64, 16);
  auto n = chained_nest_of(g, last_fold(g), Unit::words);
  ASSERT_TRUE(bool(n)) << n.why();
  auto b = bound::bound(*n, 8);
  ASSERT_FALSE(bool(b));
  EXPECT_NE(b.why().find("larger than fast memory"), std::string::npos);
}
TEST(bound_graph, subgroups_that_do_not_close_are_refused) {
  // Four points of a plane in general position generate its whole net.
  const std::vector<Space> corners{space({{1, 0, 0}}), space({{0, 1, 0}}), space({{0, 0, 1}}), space({{1, 1, 1}})};
  EXPECT_FALSE(bool(lattice(corners, 3)));
  EXPECT_TRUE(bool(lattice({corners[0], corners[1], corners[2]}, 3)));
  // Views whose kernels are such points: the bound leaves them out and says so.
  Nest n = picks("ijk", {64, 64, 64}, {"ij", "jk", "ik", "ij"});
  n.arrays[2].rows = {{1, -1, 0}, {0, 1, -1}};
  n.arrays[0].rows = {{1, -2, 0}, {0, 1, -3}};
  EXPECT_FALSE(bool(conditions(n)));
  const Bound b = must(n, 256);
  EXPECT_EQ(b.nest.arrays.size(), 2u);
  EXPECT_FALSE(b.notes.empty());
}
TEST(bound_graph, two_levels_of_tiles_nest) {
  const Nest n = picks("mnk", {512, 512, 512}, {"mk", "kn", "mn"});
  auto two = best_tiles(n, Room{16384, {16, 16, 16}, {}, {}}, 1, Room{512, {4, 4, 1}, {}, {}}, 8);
  ASSERT_TRUE(bool(two)) << two.why();
  for (size_t a = 0; a < 3; ++a) EXPECT_LE(two->inner.tile[a], two->outer.tile[a]);
  EXPECT_GE(two->time, double(two->outer.traffic));
}
TEST(bound_graph, the_report_says_both_models_and_checks_its_certificates) {
  const ir::Graph g = attention(256, 256, 32, true);
  const auto lines = bounds_of(g, 4096, Unit::words);
  const std::string text = as_text(lines, 4096, Unit::words), json = as_json(lines, 4096, Unit::words);
  EXPECT_NE(text.find("chain evaluated inside"), std::string::npos) << text;
  EXPECT_NE(text.find("certificate holds"), std::string::npos) << text;
  EXPECT_EQ(text.find("FAILS"), std::string::npos) << text;
  EXPECT_NE(json.find("\"schema\":\"tang.bound/1\""), std::string::npos);
}
