// How much a plan holds at once: the order of its steps, and values that are computed again.
#include "plan/graphs.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr int64_t array = 32 * 32 * 4;

int again(const Plan& p) {
  int n = 0;
  for (auto& s : p.steps) n += s.again;
  return n;
}

Scalar total(const Tensor& t) {
  auto [i, j] = axes<"i j">();
  return sum({i, j}, t(i, j));
}

Tensor bent(const Tensor& t, const Scalar& by, const char* name) {
  auto [i, j] = axes<"i j">();
  return map({i, j}, tanh(t(i, j) * by), name);
}

// y is read at both ends of a chain: y -> z -> w -> their sum, then y again.
Graph chain() {
  Builder b;
  const Tensor x = b.input("x", {32, 32}), y = bent(x, 0.5, "y"), z = bent(y, 0.25, "z"), w = bent(z, 2, "w");
  const Tensor s = map(std::vector<Axis>{}, total(w), "s");
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, y(i, j) * s())), "out");
  return b.graph();
}
} // namespace

TEST(memory, of_two_orders_the_one_that_holds_less) {
  Builder b;
  Scalar all = 0.0;
  for (auto* name : {"p", "q", "r"}) all = all + total(bent(b.input(name, {32, 32}), 0.5, name));
  b.output(map(std::vector<Axis>{}, all), "out");
  const Plan p = verified(b.graph(), {}, schedule::as_written());
  EXPECT_LT(p.arena_bytes, 2 * array) << plan::print(p); // an array is summed before the next is made
}

TEST(memory, what_is_read_at_both_ends_is_computed_again) {
  Schedule s = schedule::as_written();
  const Plan kept = verified(chain(), {}, s);
  EXPECT_EQ(again(kept), 0);
  EXPECT_GE(kept.arena_bytes, 3 * array);
  s.memory = 2 * array + 512;
  const Plan less = verified(chain(), {}, s);
  EXPECT_EQ(again(less), 1) << plan::print(less);
  EXPECT_LE(less.arena_bytes, s.memory) << plan::print(less);
  EXPECT_EQ(less.bytes_moved(), kept.bytes_moved() + 2 * array); // x is read and y written once more
  const plan::Buffer* y = nullptr;
  for (auto& x : less.buffers)
    if (x.again >= 0) y = &x;
  ASSERT_TRUE(y);
  EXPECT_EQ(less.graph->label(y->of), "y");
  EXPECT_LT(y->away, y->again);
  EXPECT_TRUE(less.notes.empty());
}

TEST(memory, what_cannot_be_had_is_said) {
  Schedule s = schedule::as_written();
  s.memory = 100;
  const Plan p = verified(chain(), {}, s);
  EXPECT_NE(joined(p.notes).find("refused: 100 bytes of memory: the least found holds"), std::string::npos);
}

// Before a state's memory is taken its readers have run, those that run again among them.
TEST(memory, a_state_that_was_overwritten_is_not_read_again) {
  Builder b;
  const Tensor x = b.state("x", {32, 32}), y = bent(x, 0.5, "y"), z = bent(y, 0.25, "z"), w = bent(z, 2, "w");
  const Tensor s = map(std::vector<Axis>{}, total(w), "s");
  auto [i, j] = axes<"i j">();
  const Tensor next = map({i, j}, x(i, j) + s(), "next");
  b.output(next, "x");
  b.output(map({i}, sum(j, y(i, j) * next(i, j))), "out");
  Schedule scarce = schedule::as_written();
  scarce.memory = 1;
  const Plan p = verified(b.graph(), {}, scarce);
  for (auto& buffer : p.buffers) EXPECT_TRUE(p.graph->label(buffer.of) != "y" || buffer.again < 0) << plan::print(p);
}

TEST(memory, places_are_used_again_late_where_kernels_could_run_at_once) {
  Builder b;
  Tensor t = b.input("x", {32, 32});
  for (int n = 0; n < 12; ++n) t = bent(t, 0.5, ("y" + std::to_string(n)).c_str()); // one after another
  b.output(map(std::vector<Axis>{}, total(t)), "out");
  const ir::Graph g = ir::canonical(b.graph()).graph;
  target::Target target = target::cuda_target();
  auto bytes_with = [&](int64_t beside) {
    target.beside = beside;
    const Plan p = plan::make_plan(g, schedule::as_written(), target);
    for (auto& x : p.buffers)
      for (auto& y : p.buffers)
        EXPECT_TRUE(&x == &y || x.offset < 0 || y.offset < 0 || x.offset != y.offset || !plan::together(x, y));
    return p.arena_bytes;
  };
  const int64_t least = bytes_with(0), all = bytes_with(INT64_MAX);
  EXPECT_EQ(least, 2 * array);
  EXPECT_GE(all, 12 * array);
  for (int64_t granted : {3, 5, 8}) {
    const int64_t some = bytes_with(granted * array);
    EXPECT_GE(some, least + (granted > 3) * array);
    EXPECT_LE(some, granted * array);
  }
}
