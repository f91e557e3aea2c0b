// Narrow storage and narrow accumulation: what the emulator predicts is what happens, in the order that runs.
#include "tune/graphs.hpp"

#include "tang/run/targets.hpp"
#include "tang/text/schedule.hpp"
#include "tang/tune/formats.hpp"
#include "tang/verify/samples.hpp"

namespace {
using namespace tang;
using tests::Folder;

ir::Graph variances(int64_t rows, int64_t terms) {
  ir::Builder b;
  Tensor x = b.input("x", {rows, terms});
  auto [i, j] = axes<"i j">();
  const Tensor mean = map({i}, sum(j, x(i, j)) / double(terms), "mean");
  b.output(map({i}, sum(j, square(x(i, j) - mean(i))) / double(terms)), "variance");
  return b.graph();
}

ir::Graph softmax_product(int64_t rows, int64_t keys) {
  ir::Builder b;
  Tensor q = b.input("q", {rows, 16}), k = b.input("k", {keys, 16}), v = b.input("v", {keys, 8});
  auto [i, j, d, c] = axes<"i j d c">();
  const Scalar s = sum(d, q(i, d) * k(j, d)) / 4.0, e = exp(s - max(j, s));
  b.output(map({i, c}, ratio(sum(j, e * v(j, c)), sum(j, e))), "y");
  return b.graph();
}

struct Tried {
  int rows = 0, decided = 0;
};

// Both schedules, storage and accumulation in both formats.
Tried all_rows(const run::Opened& to, const ir::Graph& g) {
  Tried out;
  const eval::Inputs in = verify::random_inputs(g, 7);
  for (bool written : {false, true})
    for (ir::Format f : {ir::Format::f16, ir::Format::bf16})
      for (bool store : {true, false}) {
        run::Options o = run::options_for(to.target);
        if (written) o.optimize = false, o.schedule = schedule::as_written();
        const run::Derivation d = run::derive(g, o);
        o.schedule = store ? tune::narrowed(d, o.schedule, f) : tune::accumulated(d, o.schedule, f);
        for (auto& r : tune::format_rows(g, o, to.backend, in)) {
          EXPECT_TRUE(r.ok()) << to.target.name << (written ? " as written, " : " derived, ") << (store ? "store " : "accumulate ") << ir::row(f).name
                              << ": predicted " << r.predicted << ", measured " << r.measured << ", f32 adds at most " << r.bound;
          ++out.rows;
          out.decided += r.decides();
        }
      }
  return out;
}

Result<run::Opened> target(const std::string& name, const Folder& cache) {
  run::TargetOptions o;
  o.compiler.search = device::split_path("/usr/bin:/bin");
  o.compiler.cache = o.cache = cache / "kernels";
  return run::open_target(name, o);
}

TEST(tune_formats, what_is_predicted_happens) {
  Folder f;
  const auto c = target("c", f);
  ASSERT_TRUE(c);
  for (auto& g : {variances(5, 700), softmax_product(9, 40), tests::two_layers(8, 40, 24)}) {
    const Tried t = all_rows(*c, g);
    EXPECT_GE(t.rows, 6);
    EXPECT_GE(t.decided, 4);
  }
}

TEST(tune_formats, what_is_predicted_happens_on_opencl) {
  Folder f;
  const auto to = target("opencl", f);
  if (!to) GTEST_SKIP() << "not present: " << to.why();
  EXPECT_GE(all_rows(*to, variances(5, 300)).decided, 4);
}

// A variance of 4096 terms in f16: one chain after another term by term, or 64 chains that are then joined.
TEST(tune_formats, chains_that_are_joined_round_less) {
  Folder f;
  const auto c = target("c", f);
  ASSERT_TRUE(c);
  const ir::Graph g = variances(3, 4096);
  const eval::Inputs in = verify::random_inputs(g, 5);
  run::Options o = run::options_for(c->target);
  const run::Derivation d = run::derive(g, o);
  double error[2];
  for (int parts : {1, 64}) {
    o.schedule = tune::accumulated(d, {}, ir::Format::f16, parts);
    const run::Derivation narrow = run::derive(g, o);
    EXPECT_EQ(narrow.plan.states.size(), parts == 1 ? 2u : 4u); // the parts and their join, of the mean and of the variance
    const auto rows = tune::format_rows(g, o, c->backend, in);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_TRUE(rows[0].ok()) << rows[0].predicted << " " << rows[0].measured;
    EXPECT_TRUE(rows[0].decides());
    error[parts > 1] = rows[0].measured;
  }
  EXPECT_GT(error[0], 4 * error[1]);
}

// The proved bound counts a rounding a term.
TEST(tune_formats, the_bound_knows_narrow_states) {
  ir::Builder b;
  Tensor x = b.input("x", {4, 100});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, x(i, j))), "y");
  const ir::Graph g = b.graph();
  run::Options o;
  o.schedule = tune::accumulated(run::derive(g, o), {}, ir::Format::bf16);
  const run::Derivation d = run::derive(g, o);
  const kernel::Rounding r = run::roundings(d, o).at("y");
  ASSERT_TRUE(r.known()) << r.why;
  EXPECT_NEAR(r.growth, 100 * (std::log1p(0x1p-8) + std::log1p(0x1p-24)), 1e-4);
}

TEST(tune_formats, a_state_s_format_is_a_field_of_a_group) {
  schedule::GroupFields f;
  f.accumulate = ir::Format::bf16;
  EXPECT_EQ(text::fields(f), "accumulate bf16");
  EXPECT_TRUE(f.is_stored()); // nothing else evaluates it
}
} // namespace
