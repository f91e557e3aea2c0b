// Candidates in a child process, and the search on top of them.
#include "tune/graphs.hpp"

#include "tang/text/schedule.hpp"

namespace {
using namespace tang;
using tests::Folder;
using tune::Trial;

struct Setting {
  Folder folder;
  ir::Graph graph = tests::product(40, 70, 30);
  eval::Inputs inputs = tests::inputs_of(graph);
  run::Options options;
  std::shared_ptr<device::Compiler> compiler = tests::compiler_in(folder / "kernels");
  tune::Bench bench{graph, inputs, options, compiler, tune::reference_of(graph, inputs, options, compiler)};
};
std::vector<schedule::Schedule> four_schedules() {
  std::vector<schedule::Schedule> all(4);
  all[1] = schedule::as_written();
  all[2].groups["y"].rows = 6;
  all[3].groups["sum"].ways = 2;
  return all;
}

Tensor map_of(const Tensor& x, const Axis& i, const Axis& j) { return map({i, j}, x(i, j) * 2.0 + x(j, i)); }

TEST(tune_trial, candidates_are_checked_and_timed) {
  Setting s;
  EXPECT_EQ(s.bench.reference.from, "the f64 oracle");
  const auto t = tune::measure(s.bench, four_schedules(), 0.01);
  ASSERT_EQ(t.size(), 4u);
  for (auto& x : t) {
    EXPECT_EQ(x.kind, Trial::ok) << x.why;
    EXPECT_GE(x.whole.runs, 5);
    EXPECT_GT(x.whole.median, 0);
    EXPECT_LE(x.whole.low, x.whole.median);
    EXPECT_LE(x.whole.median, x.whole.high);
    EXPECT_LT(x.error, 1e-5);
    EXPECT_EQ(x.steps.size(), x.derivation.plan.steps.size());
  }
}
TEST(tune_trial, a_hung_one_dies_by_deadline_and_the_others_are_timed) {
  Setting s;
  s.bench.deadline = 0.5;
  s.bench.in_child = [](size_t k) {
    if (k == 1)
      for (;;) usleep(1000);
  };
  const double start = device::Cpu::seconds();
  const auto t = tune::measure(s.bench, four_schedules(), 0.005);
  EXPECT_LT(device::Cpu::seconds() - start, 30);
  EXPECT_EQ(t[1].kind, Trial::hung);
  EXPECT_EQ(t[1].whole.runs, 0);
  for (size_t k : {0, 2, 3}) EXPECT_EQ(t[k].kind, Trial::ok) << t[k].why;
  for (size_t k : {0, 2, 3}) EXPECT_GE(t[k].whole.runs, 5);
}
TEST(tune_trial, a_crash_takes_only_its_candidate) {
  Setting s;
  s.bench.in_child = [](size_t k) {
    if (k == 2) abort();
  };
  const auto t = tune::measure(s.bench, four_schedules(), 0.005);
  EXPECT_EQ(t[2].kind, Trial::crashed);
  for (size_t k : {0, 1, 3}) EXPECT_EQ(t[k].kind, Trial::ok) << t[k].why;
}
TEST(tune_trial, wrong_results_are_never_timed) {
  Setting s;
  s.bench.reference.outputs["y"].r[77] += 0.5;  // now every candidate is wrong at one element
  const auto t = tune::measure(s.bench, four_schedules(), 0.005);
  for (auto& x : t) {
    EXPECT_EQ(x.kind, Trial::wrong);
    EXPECT_EQ(x.whole.runs, 0);
    EXPECT_NE(x.why.find("'y'"), std::string::npos) << x.why;
  }
}
TEST(tune_trial, inputs_stay_as_they_are) {
  // A state is updated in place, by the child only.
  ir::Builder g;
  Tensor x = g.input("x", {64}), h = g.state("h", {64});
  auto [i] = axes<"i">();
  g.output(map({i}, h(i) + x(i)), "h");
  const ir::Graph graph = g.graph();
  const eval::Inputs inputs = tests::inputs_of(graph);
  Folder f;
  run::Options o;
  auto compiler = tests::compiler_in(f / "kernels");
  tune::Bench b{graph, inputs, o, compiler, tune::reference_of(graph, inputs, o, compiler)};
  const auto t = tune::measure(b, {schedule::Schedule{}, schedule::as_written()}, 0.005);
  for (auto& one : t) EXPECT_EQ(one.kind, Trial::ok) << one.why;  // the second starts from the same state as the first
}
TEST(tune_trial, a_split_fold_is_joined_and_one_that_cannot_be_split_is_refused) {
  Setting s;
  schedule::Schedule split;
  const run::Derivation d = run::derive(s.graph, s.options);
  std::string key;
  for (ir::NodeId id = 0; id < d.plan.graph->nodes.size(); ++id)
    if (auto* c = (*d.plan.graph)[id].comp(); c && !c->folds.empty()) key = schedule::key(*d.plan.graph, id);
  split.groups[key].split = 3;
  schedule::Schedule map = split;
  map.groups[key].split = 1;
  map.groups[key].stored = true;
  auto t = tune::measure(s.bench, {split, map}, 0.005);
  EXPECT_EQ(t[0].kind, Trial::ok) << t[0].why;  // a sum splits; its parts are a kernel of their own
  EXPECT_EQ(t[0].derivation.plan.steps.size(), 2u);
  EXPECT_EQ(t[1].kind, Trial::ok) << t[1].why;
  // A map has nothing to split.
  ir::Builder g;
  Tensor x = g.input("x", {8, 8});
  auto [i, j] = axes<"i j">();
  g.output(map_of(x, i, j), "y");
  const ir::Graph maps = g.graph();
  const eval::Inputs in = tests::inputs_of(maps);
  const run::Derivation dm = run::derive(maps, s.options);
  schedule::Schedule bad;
  bad.groups[schedule::key(*dm.plan.graph, dm.plan.steps[0].group.members[0].node)].split = 2;
  tune::Bench b{maps, in, s.options, s.compiler, tune::reference_of(maps, in, s.options, s.compiler)};
  t = tune::measure(b, {bad}, 0.005);
  EXPECT_EQ(t[0].kind, Trial::refused);
  EXPECT_NE(t[0].why.find("no such fold axis"), std::string::npos) << t[0].why;
}
TEST(tune_trial, contractions_over_a_looped_batch_are_right) {
  // y[i, j] = sum over p of a contraction with p on both sides: p is a batch axis that the group folds.
  ir::Builder g;
  Tensor x = g.input("x", {3, 40, 10}), w = g.input("w", {3, 10, 70});
  auto [p, i, j, k] = axes<"p i j k">();
  Tensor parts = map({p, i, j}, sum(k, x(p, i, k) * w(p, k, j)));
  auto [a, b, c] = axes<"a b c">();
  g.output(map({a, b}, sum(c, parts(c, a, b))), "y");
  const ir::Graph graph = g.graph();
  const eval::Inputs in = tests::inputs_of(graph);
  Folder f;
  auto compiler = tests::compiler_in(f / "kernels");
  for (bool optimize : {false, true}) {
    run::Options o;
    o.optimize = optimize;
    tune::Bench bench{graph, in, o, compiler, tune::reference_of(graph, in, o, compiler)};
    const auto t = tune::measure(bench, {schedule::Schedule{}}, 0.005);
    EXPECT_EQ(t[0].kind, Trial::ok) << t[0].why << "\n" << plan::print(t[0].derivation.plan);
  }
}
TEST(tune_trial, stopping_ends_at_once) {
  Setting s;
  std::atomic<bool> stop{true};
  s.bench.stop = &stop;
  for (auto& t : tune::measure(s.bench, four_schedules(), 1)) EXPECT_NE(t.kind, Trial::ok);
}

TEST(tune_search, finds_a_schedule_keeps_it_and_replays_it) {
  Folder f;
  const ir::Graph g = tests::two_layers(48, 96, 64);
  const eval::Inputs in = tests::inputs_of(g);
  run::Options o;
  auto compiler = tests::compiler_in(f / "kernels");
  tune::Store store(f / "store");
  tune::Options how;
  how.store = &store;
  how.each = 0.005;
  how.most = 3;
  int said = 0;
  how.progress = [&](const tune::Progress& p) {
    ++said;
    EXPECT_LE(p.done, p.of + 20);
  };
  const tune::Tuned t = tune::tune(g, in, o, compiler, tests::made_up(), how);
  EXPECT_FALSE(t.from_store);
  EXPECT_GT(said, 3);
  bool written = false;
  for (auto& x : t.timed) {
    written |= x.fields == "as written" && x.kind == Trial::ok;
    EXPECT_NE(x.kind, Trial::wrong) << x.fields << ": " << x.why;
  }
  EXPECT_TRUE(written);
  EXPECT_GT(store.rows("candidate").size(), 2u);
  // Known now, and the same.
  const tune::Tuned again = tune::tune(g, in, o, compiler, tests::made_up(), how);
  EXPECT_TRUE(again.from_store);
  EXPECT_EQ(again.record, t.record);
  EXPECT_TRUE(again.timed.empty());
  // As text, locked: the very kernels.
  const schedule::Record r = text::parse_schedule(text::print(t.record), "a.tangsched");
  EXPECT_EQ(r, t.record);
  const run::Options replayed = tune::restored(r, g, o, true);
  const run::Derivation d = run::derive(g, replayed);
  EXPECT_EQ(int(d.kernels.kernels.size()), r.kernels);
  // A corrupt row is a miss.
  store.put("program", tune::program_key(g, o, *compiler), "tangsched 1\ngroup \"nobody\" rows 3\n");
  EXPECT_FALSE(tune::recalled(g, o, *compiler, store));
  store.put("program", tune::program_key(g, o, *compiler), "\x01\x02");
  EXPECT_FALSE(tune::recalled(g, o, *compiler, store));
}
TEST(tune_search, an_interrupted_one_keeps_the_best_so_far) {
  Folder f;
  const ir::Graph g = tests::two_layers(48, 96, 64);
  auto compiler = tests::compiler_in(f / "kernels");
  std::atomic<bool> stop{false};
  tune::Options how;
  how.each = 0.005;
  how.stop = &stop;
  how.progress = [&](const tune::Progress& p) {
    if (p.done >= 4) stop = true;
  };
  const tune::Tuned t = tune::tune(g, tests::inputs_of(g), {}, compiler, tests::made_up(), how);
  EXPECT_TRUE(t.stopped);
  EXPECT_GT(t.record.kernels, 0);
  tune::restored(t.record, g, {}, true);  // it applies
}
}  // namespace
