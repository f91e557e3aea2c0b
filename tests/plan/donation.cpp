// State inputs updated in place.
#include "plan/graphs.hpp"
#include "tang/models/attention.hpp"

using namespace tang;
using namespace tang::test;

namespace {
const plan::Buffer* taken(const Plan& p) {
  for (auto& b : p.buffers)
    if (b.overwrites) return &b;
  return nullptr;
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Decode over a cache of 12 rows of which `pos` are live; the rest hold NaN.
struct Decode {
  Builder b;
  Tensor k = b.state("k", {12, 2, 4}), v = b.input("v", {12, 2, 3}), fresh = b.input("fresh", {2, 4}),
         q = b.input("q", {2, 4});
  Tensor pos = b.input("pos", {}, Format::i32);

  eval::Inputs in() const {
    eval::Array cache = waves(3, {12, 2, 4});
    for (size_t x = 5 * 8; x < cache.r.size(); ++x) cache.r[x] = nan;
    return {{"k", cache}, {"pos", eval::indices({}, {5})}};
  }

  Tensor attend(const Tensor& keys, const Axis& t) {
    auto [h, d, c] = axes<"h d c">();
    Scalar score = masked(Index(t) <= Index(pos()), sum(d, q(h, d) * keys(t, h, d)));
    Scalar weight = exp(score - max(t, score));
    return map({h, c}, ratio(sum(t, weight * v(t, h, c)), sum(t, weight)), "attended");
  }
};
} // namespace

TEST(donation, one_row_of_the_cache_is_stored) {
  Decode d;
  Tensor k = models::append(d.k, d.fresh, d.pos);
  d.b.output(k, "k");
  d.b.output(d.attend(k, axis("t")), "y");
  const Plan p = verified(d.b.graph(), d.in());
  const plan::Buffer* b = taken(p);
  ASSERT_TRUE(b) << plan::print(p);
  EXPECT_TRUE(b->masked);
  // fresh and pos in, one row of 8 out
  for (auto& s : p.steps)
    for (auto& m : s.group.members)
      if (m.node == b->of.node) { EXPECT_EQ(p.bytes_of(s), 4 * (8 + 1 + 8)) << plan::print(p); }
  verified(optimized(d.b.graph()), d.in());
}

TEST(donation, a_guard_names_the_row_as_well) {
  Decode d;
  auto [t, h, x] = axes<"t h x">();
  Tensor k = map({t, h, x}, where(Index(t) == Index(d.pos()), d.fresh(h, x), d.k(t, h, x)), "k next");
  d.b.output(k, "k");
  const Plan p = verified(d.b.graph(), d.in());
  ASSERT_TRUE(taken(p)) << plan::print(p);
  EXPECT_TRUE(taken(p)->masked);
  EXPECT_EQ(p.bytes_moved(), 4 * (8 + 1 + 8));
}

// What is called otherwise has memory of its own, of which a masked store would leave the other points unwritten.
TEST(donation, an_output_of_another_name_does_not_take_the_memory) {
  Decode d;
  d.b.output(models::append(d.k, d.fresh, d.pos), "k next");
  const Plan p = verified(d.b.graph(), d.in());
  EXPECT_FALSE(taken(p)) << plan::print(p);
  EXPECT_NE(joined(p.notes).find("under another name, 'k next'"), std::string::npos) << joined(p.notes);
}

TEST(donation, a_reader_of_the_old_value_runs_first) {
  Decode d;
  auto [h, x] = axes<"h x">();
  d.b.output(models::append(d.k, d.fresh, d.pos), "k");
  const Axis t = axis("t");
  d.b.output(map({h, x}, sum(t, masked(Index(t) < Index(d.pos()), d.k(t, h, x))), "of old"), "of old");
  const Plan p = verified(d.b.graph(), d.in());
  ASSERT_TRUE(taken(p)) << plan::print(p);
  EXPECT_EQ(taken(p)->first, int(p.steps.size()) - 1);
}

TEST(donation, a_reader_of_the_old_value_that_needs_the_new_one_refuses_it) {
  Decode d;
  auto [h, x] = axes<"h x">();
  Tensor k = models::append(d.k, d.fresh, d.pos);
  d.b.output(k, "k");
  const Axis t = axis("t");
  Tensor last = map({h, x}, sum(t, masked(Index(t) <= Index(d.pos()), k(t, h, x))), "of new");
  d.b.output(map({h, x}, sum(t, masked(Index(t) < Index(d.pos()), d.k(t, h, x) * last(h, x))), "of both"),
             "of both");
  const Plan p = verified(d.b.graph(), d.in());
  EXPECT_FALSE(taken(p)) << plan::print(p);
  EXPECT_NE(joined(p.notes).find("copying"), std::string::npos);
}

TEST(donation, an_optimizer_updates_parameters_and_moments_in_place) {
  Builder b;
  Tensor p = b.state("p", {5, 7}), m = b.state("m", {5, 7}), v = b.state("v", {5, 7}),
         g = b.input("g", {5, 7});
  auto [i, j] = axes<"i j">();
  auto m1 = [&] { return 0.9 * m(i, j) + 0.1 * g(i, j); };
  auto v1 = [&] { return 0.99 * v(i, j) + 0.01 * square(g(i, j)); };
  b.output(map({i, j}, m1(), "m1"), "m");
  b.output(map({i, j}, v1(), "v1"), "v");
  b.output(map({i, j}, p(i, j) - 0.1 * m1() / (sqrt(abs(v1())) + 1e-3), "p1"), "p");
  const Plan plan = verified(b.graph());
  int in_place = 0;
  for (auto& x : plan.buffers) in_place += x.overwrites.has_value();
  EXPECT_EQ(in_place, 3) << plan::print(plan);
}

TEST(donation, shifts_outputs_and_other_formats_are_copied) {
  Builder b;
  Tensor x = b.state("x", {8}), y = b.state("y", {8}), z = b.state("z", {8}, Format::f16);
  const Axis i = axis("i", Extent(8));
  b.output(map({i}, x.at_or(0.0, {Index(i) - Index(1)}), "shifted"), "shifted");
  b.output(y, "old");
  b.output(map({i}, y(i) + 1.0, "new"), "new");
  b.output(map({i}, z(i) + 1.0, "wide"), "wide");
  const Plan p = verified(b.graph());
  EXPECT_FALSE(taken(p)) << plan::print(p);
}

// A number made of a count, and a full value made of a narrow one, are no new values of it, though they have its shape.
TEST(donation, a_value_of_another_type_or_format_does_not_take_the_memory) {
  Builder b;
  Tensor step = b.state("step", {}, Format::i32), x = b.state("x", {8}, Format::bf16);
  const Axis i = axis("i");
  const Tensor rate = map(std::vector<Axis>{}, recip(to_real(step()) + 1.0), "rate");
  const Tensor wide = map({i}, x(i) * rate(), "wide");
  b.output(map({i}, wide(i) * wide(i) + rate()), "y");
  b.output(map(std::vector<Axis>{}, to_index(to_real(step()) + 1.0), "next"), "step");
  const Plan p = verified(b.graph(), {}, schedule::as_written());
  for (auto& buffer : p.buffers) {
    if (!buffer.overwrites) continue;
    const Format held = p.graph->nodes[*buffer.overwrites].input()->format;
    EXPECT_EQ(p.graph->label(buffer.of), "next") << plan::print(p);
    EXPECT_EQ(held, Format::i32);
  }
}
