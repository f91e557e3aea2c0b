// Sums by key: each term is added where its key says.
#include "lower/pipeline.hpp"
#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
bool by_key(const plan::Plan& p) {
  for (auto& s : p.steps)
    for (auto& m : s.group.members)
      if (m.flush == plan::Flush::ordered && s.group.members.size() == 1 && s.group.shared.empty()) return true;
  return false;
}
// A table's gradient by what was gathered from it.
Graph gathered(int64_t places, std::vector<int64_t> keys, int64_t width, bool masked_rows) {
  Builder b;
  const std::vector<Extent> shape(keys.begin(), keys.end());
  const Tensor key = b.input("key", shape, Format::i32), d = b.input("d", {keys[0], keys[1], width});
  auto [x, s, t, m] = axes<"x s t m">();
  const Axis place = axis("x", Extent(places));
  Scalar term = d(s, t, m) * d(s, t, m) + 1;
  if (masked_rows) term = masked(t <= s, term);
  b.output(map({place, m}, sum({s, t}, masked(Index(place) == Index(key(s, t)), term))), "table");
  return b.graph();
}
} // namespace

TEST(lower_grad_keyed, a_gradient_of_a_table_adds_each_row_once) {
  for (bool masked_rows : {false, true}) {
    const Graph g = gathered(23, {4, 9}, 7, masked_rows);
    eval::Array keys({4, 9}, expr::Type::index);
    for (size_t k = 0; k < keys.i.size(); ++k) keys.i[k] = int64_t(k * k % 31) - 3; // repeated, missing, beyond both ends
    expect_derived(g, {{"key", keys}});
    EXPECT_TRUE(by_key(derive(g).plan)) << plan::print(derive(g).plan);
    // Each term once: rows times width, not places times that.
    int64_t points = 0;
    for (auto& l : derive(g).program.kernels) points += kernel::workgroups(l.kernel);
    EXPECT_LE(points, 2);
  }
}
TEST(lower_grad_keyed, a_histogram_and_a_stride) {
  Builder b;
  const Tensor key = b.input("key", {50}, Format::i32), w = b.input("w", {50}), y = b.input("y", {9}), k = b.input("k", {3});
  const Axis bin = axis("bin", Extent(12)), p = axis("p", Extent(19));
  auto [t, i, j] = axes<"t i j">();
  b.output(map({bin}, sum(t, masked(Index(bin) == Index(key(t)), w(t)))), "histogram");
  b.output(map({p}, sum({i, j}, masked(Index(p) == 2 * Index(i) + Index(j), y(i) * k(j)))), "transposed");
  const Graph g = b.graph();
  eval::Array keys({50}, expr::Type::index);
  for (size_t n = 0; n < keys.i.size(); ++n) keys.i[n] = int64_t(n * 7 % 13);
  expect_derived(g, {{"key", keys}});
  EXPECT_TRUE(by_key(derive(g).plan)) << plan::print(derive(g).plan);
}
TEST(lower_grad_keyed, few_places_and_targets_that_store_once_test_each_place) {
  EXPECT_FALSE(by_key(derive(gathered(3, {4, 9}, 7, false)).plan));
  EXPECT_FALSE(by_key(derive(gathered(23, {4, 9}, 7, false), {}, target::cuda_target()).plan));
}
