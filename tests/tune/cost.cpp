// Counts, the floor and the estimate on a machine of round numbers.
#include "tang/text/text.hpp"
#include "tune/graphs.hpp"

namespace {
using namespace tang;

tune::Space space(const ir::Graph& g, const run::Options& o, const tune::Machine& m, size_t step = 0) { return tune::space_of(run::derive(g, o), o, step, m); }

TEST(tune_cost, a_product_is_counted_exactly) {
  run::Options o;
  o.target = target::c_target(16, 1);
  const auto s = space(tests::product(48, 64, 40), o, tests::made_up());
  ASSERT_FALSE(s.candidates.empty());
  const tune::Work& w = s.candidates[0].work;
  EXPECT_EQ(w.contracted, 2.0 * 48 * 64 * 40);
  EXPECT_EQ(w.padded, 2.0 * 48 * 64 * 40);  // 48 = 4 x 12 rows, 64 = 2 x 32 columns
  EXPECT_EQ(w.read, 4.0 * (48 * 40 + 40 * 64));
  EXPECT_EQ(w.special, 0);
}
TEST(tune_cost, padding_is_executed_and_counted) {
  run::Options o;
  o.target = target::c_target(16, 1);
  const auto s = space(tests::product(49, 65, 40), o, tests::made_up());
  // 65 columns are two workgroups of two panels of 32; 49 rows are five strips of 12, the last of one row.
  EXPECT_EQ(s.candidates[0].work.contracted, 2.0 * 49 * 128 * 40);
  EXPECT_EQ(s.candidates[0].work.padded, 2.0 * 60 * 128 * 40);
  EXPECT_EQ(s.candidates[0].work.read, 4.0 * (49 + 65) * 40);
}
TEST(tune_cost, the_floor_is_the_larger_of_arithmetic_and_bytes) {
  const tune::Machine m = tests::made_up();
  tune::Work w;
  w.contracted = 115e9;  // one second at 1.15 times the best rate
  EXPECT_NEAR(tune::floor(w, m).seconds, 1, 1e-9);
  EXPECT_EQ(tune::floor(w, m).binding().name, "arithmetic");
  w.contracted = 0;
  w.read = 11.5e9;  // from memory, less what two caches hold
  EXPECT_NEAR(tune::floor(w, m).seconds, 1 - (32768 + 1048576) / 11.5e9, 1e-9);
  EXPECT_EQ(tune::floor(w, m).binding().name, "reads from memory");
  w.read = 16384;  // may all be in the first level
  EXPECT_NEAR(tune::floor(w, m).seconds, 16384 / 115e9, 1e-15);
}
TEST(tune_cost, bytes_behind_a_mask_do_not_count) {
  // y[i] = sum over j <= i of x[i, j]: 32 * 33 / 2 elements
  ir::Builder b;
  Tensor x = b.input("x", {32, 32});
  auto [i, j] = axes<"i j">();
  b.output(map({i}, sum(j, masked(j <= i, x(i, j)))), "y");
  run::Options o;
  const auto d = run::derive(b.graph(), o);
  EXPECT_EQ(tune::read_bytes(d.plan, d.plan.steps[0]), 4.0 * 32 * 33 / 2);
}
TEST(tune_cost, probes_survive_their_json) {
  const tune::Machine m = tests::made_up();
  auto back = tune::machine_of(tune::as_json(m));
  ASSERT_TRUE(bool(back)) << back.why();
  EXPECT_EQ(tune::as_json(*back), tune::as_json(m));
  for (const char* bad : {"", "{", "[]", "{\"schema\":\"tang.probe/1\"}", "{\"schema\":\"x\"}"}) EXPECT_FALSE(bool(tune::machine_of(bad))) << bad;
}
// A row of a table that is looked up costs whole lines: from the second level, or from memory where it is larger.
TEST(tune_cost, reads_by_index_cost_their_lines) {
  auto work = [](int64_t rows, int64_t width) {
    ir::Builder b;
    Tensor table = b.input("table", {rows, width}), at = b.input("at", {1000}, ir::Format::i32);
    auto [i, j] = axes<"i j">();
    b.output(map({i, j}, table(at(i), j) * 2.0), "y");
    run::Options o;
    o.target = target::c_target(16, 1);
    return space(b.graph(), o, tests::made_up()).candidates.at(0).work;
  };
  EXPECT_EQ(work(1000, 1).gathered, 1000 * 64.0);
  EXPECT_EQ(work(1000, 1).scattered, 0);
  EXPECT_EQ(work(1 << 20, 1).scattered, 1000 * 64.0);
  EXPECT_EQ(work(1000, 32).gathered, 1000 * 128.0);
  EXPECT_EQ(work(1000, 24).gathered, 1000 * 128.0); // 96 bytes are two lines
  tune::Machine third = tests::made_up(); // a level between: its rate
  third.levels.insert(third.levels.begin() + 2, {"L3", 16 << 20, {20e9, 20e9}});
  tune::Work between;
  between.launches = between.workgroups = 1, between.gathered_far = 64e3;
  for (auto& x : tune::unweighted(between, third))
    if (x.name == "reads by index") EXPECT_NEAR(x.seconds, 64e3 / 20e9, 1e-12);
  auto seconds = [](const tune::Work& w) {
    for (auto& x : tune::unweighted(w, tests::made_up()))
      if (x.name == "reads by index") return x.seconds;
    return -1.0;
  };
  EXPECT_NEAR(seconds(work(1000, 1)), 64e3 / 50e9, 1e-12);
  EXPECT_NEAR(seconds(work(1 << 20, 1)), 64e3 / 10e9, 1e-12);
}
// Of a table that is read by index only the rows that are known to differ are surely read.
TEST(tune_cost, the_floor_counts_rows_that_are_known_to_differ) {
  ir::Builder b;
  Tensor table = b.input("table", {100, 32}), at = b.input("at", {50}, ir::Format::i32);
  auto [i, j] = axes<"i j">();
  b.output(map({i, j}, table(at(i), j) * 2.0), "y");
  run::Options o;
  const auto d = run::derive(b.graph(), o);
  EXPECT_EQ(tune::read_bytes(d.plan, d.plan.steps[0]), 50 * 4.0 + 32 * 4.0);
  EXPECT_EQ(tune::read_bytes(d.plan, d.plan.steps[0], {{"table", 20}}), 50 * 4.0 + 20 * 32 * 4.0);
}
TEST(tune_cost, probes_measure_this_machine) {
  auto compiler = tests::compiler_in("");
  device::Cpu cpu(1);
  const tune::Machine m = tune::probe(*compiler, cpu, target::c_target_of_host(1).lanes);
  EXPECT_GT(m.fma.best, 1e9);
  EXPECT_GE(m.fma.best, m.fma.typical);
  EXPECT_GT(m.exp.best, 1e7);
  ASSERT_EQ(m.levels.size(), 4u);
  EXPECT_GT(m.levels[0].read.best, m.levels[3].read.best);  // the first level is faster than memory
  EXPECT_LT(m.call, 1e-3);
}
TEST(tune_space, every_candidate_differs_and_the_first_is_automatic) {
  run::Options o;
  o.target = target::c_target(16, 2);
  const auto s = space(tests::product(300, 200, 500), o, tests::made_up());
  EXPECT_GE(s.candidates.size(), 40u);
  std::set<std::string> texts;
  for (auto& c : s.candidates) EXPECT_TRUE(texts.insert(c.text).second);
  EXPECT_EQ(s.candidates[0].fields, schedule::GroupFields{});
  for (size_t k = 2; k < s.candidates.size(); ++k) EXPECT_LE(s.candidates[k - 1].estimated, s.candidates[k].estimated);
}
// h' = tanh(u h + x[t]): the space is that of the body's product, its kernels are the step's, once for each step.
TEST(tune_space, a_recurrence_has_the_space_of_its_body) {
  const ir::Graph g = text::parse("input x[t: 24, i: 96] : f32\n"
                                  "input h0[i: 96, j: 96] : f32\n"
                                  "param u[i, k: 96] : f32\n"
                                  "recur cell over s: 24\n"
                                  "  state h[i: 96, j: 96] = h0[i,j]\n"
                                  "  next h[i,j] = tanh(x[s,i] + sum[k] u[i,k] * h[k,j])\n"
                                  "output last = h\n",
                                  "cell.tang");
  run::Options o;
  o.target = target::c_target(8, 1);
  const run::Derivation d = run::derive(g, o);
  size_t step = d.plan.steps.size();
  for (size_t k = 0; k < d.plan.steps.size(); ++k)
    if (d.plan.steps[k].recur) step = k;
  ASSERT_LT(step, d.plan.steps.size());
  const tune::Space s = tune::space_of(d, o, step, tests::made_up());
  ASSERT_GE(s.candidates.size(), 10u);
  const auto& best = *std::min_element(s.candidates.begin(), s.candidates.end(), [](auto& a, auto& b) { return a.estimated < b.estimated; });
  EXPECT_GE(best.estimated, 24 * 2.0 * 96 * 96 * 96 / tests::made_up().fma.typical);  // every step is counted
  run::Options told = o;
  told.schedule.groups[s.key] = s.candidates.back().fields;
  EXPECT_NE(run::derive(g, told).names, d.names);  // the field reaches the body
}
TEST(tune_space, what_is_illegal_is_refused_with_a_reason) {
  ir::Builder b;  // batched: one batch at a time
  Tensor x = b.input("x", {4, 48, 40}), w = b.input("w", {4, 40, 64});
  auto [n, i, j, k] = axes<"n i j k">();
  b.output(map({n, i, j}, sum(k, x(n, i, k) * w(n, k, j))), "y");
  run::Options o;
  o.target = target::c_target(16, 1);
  const auto s = space(b.graph(), o, tests::made_up());
  bool found = false;
  for (auto& r : s.refused) found |= r.find("a tile of") != std::string::npos;
  EXPECT_TRUE(found);
  o.schedule.groups["sum"].tile[0] = 2;
  EXPECT_THROW(run::derive(b.graph(), o), Error);
}
TEST(tune_space, resolved_fields_give_the_same_kernels) {
  run::Options o;
  const ir::Graph g = tests::two_layers(100, 130, 70);
  const run::Derivation d = run::derive(g, o);
  run::Options fixed = o;
  for (size_t s = 0; s < d.plan.steps.size(); ++s) fixed.schedule.groups[schedule::key(*d.plan.graph, d.plan.steps[s].group.members[0].node)] = tune::resolved(d, o, s);
  EXPECT_EQ(run::derive(g, fixed).names, d.names);
}
}  // namespace
