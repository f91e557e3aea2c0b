// Errors of a schedule are predicted and budgeted; narrow storage stays away from what is discrete.
#include "tune/graphs.hpp"

#include "tang/tune/precision.hpp"

namespace {
using namespace tang;
using tests::Folder;

// x -> relu(x w) -> (.. u): one buffer in between.
struct Layers {
  ir::Graph g = tests::two_layers(24, 40, 32);
  eval::Inputs in = tests::inputs_of(g);
  run::Options o;
  run::Options narrow(ir::Format f) const {
    run::Options n = o;
    const run::Derivation d = run::derive(g, o);
    for (auto& b : d.plan.buffers)
      if (!b.output) n.schedule.groups[schedule::key(*d.plan.graph, b.of.node)].store = f;
    return n;
  }
  double error(const run::Options& x) const { return tune::predicted_errors(run::derive(g, x), g, in).at("y"); }
};
TEST(tune_precision, predicted_errors_grow_as_formats_narrow) {
  Layers l;
  const double f32 = l.error(l.o), f16 = l.error(l.narrow(ir::Format::f16)), bf16 = l.error(l.narrow(ir::Format::bf16));
  EXPECT_GT(f32, 0);
  EXPECT_LT(f32, 1e-5);  // 72 roundings of 2^-24 each, of which most cancel
  EXPECT_GT(f16, 8 * f32);
  EXPECT_GT(bf16, 4 * f16);  // three bits less
  EXPECT_LT(bf16, 0x1p-7);   // each of 40 terms is off by at most 2^-9 of itself
}
TEST(tune_precision, what_is_predicted_is_what_happens) {
  Layers l;
  Folder f;
  auto compiler = tests::compiler_in(f / "kernels");
  for (ir::Format format : {ir::Format::f16, ir::Format::bf16}) {
    const run::Options o = l.narrow(format);
    run::Program p(l.g, compiler, std::make_shared<device::Cpu>(1), o);
    const auto t = tune::checked(p, l.g, l.in, tune::reference_of(l.g, l.in, l.o, compiler), 1);
    EXPECT_EQ(t.second, "");
    EXPECT_LT(t.first, 1.5 * l.error(o));
    EXPECT_GT(t.first, 0.5 * l.error(o));
  }
}
TEST(tune_precision, a_schedule_over_budget_is_refused_with_both_numbers) {
  Layers l;
  tune::ErrorBudget b;
  b.all = 1e-4;
  EXPECT_TRUE(bool(tune::within(b, l.g, l.o, l.in)));
  const auto r = tune::within(b, l.g, l.narrow(ir::Format::bf16), l.in);
  ASSERT_FALSE(bool(r));
  EXPECT_NE(r.why().find("output 'y'"), std::string::npos) << r.why();
  EXPECT_NE(r.why().find("the budget is 0.0001"), std::string::npos) << r.why();
  b.of["y"] = 1e-2;  // an output may have a budget of its own
  EXPECT_TRUE(bool(tune::within(b, l.g, l.narrow(ir::Format::bf16), l.in)));
}
std::vector<std::string> narrowable(const ir::Graph& g) {
  run::Options o;
  o.schedule = schedule::as_written();
  o.optimize = false;
  const run::Derivation d = run::derive(g, o);
  std::vector<std::string> out;
  for (auto id : tune::narrowable(d.plan)) out.push_back(d.plan.graph->label({id, 0}));
  return out;
}
TEST(tune_precision, counts_phases_and_choices_stay_whole) {
  auto [i, j] = axes<"i j">();
  {  // a phase: of coordinates and an index input only
    ir::Builder g;
    const Axis row = axis("row", 8), column = axis("column", 8);
    Tensor x = g.input("x", {8, 8}), pos = g.input("pos", {8}, ir::Format::i32);
    Tensor phase = map({row, column}, to_real(pos(row)) * exp2(-0.5 * to_real(iota(column))));
    g.output(map({i, j}, x(i, j) * cos(phase(i, j))), "y");
    EXPECT_TRUE(narrowable(g.graph()).empty());
  }
  {  // a choice: scores of an arg-max
    ir::Builder g;
    Tensor x = g.input("x", {8, 8}), w = g.input("w", {8, 8});
    auto [k] = axes<"k">();
    Tensor scores = map({i, j}, sum(k, x(i, k) * w(k, j)));
    g.output(map({i}, fold(argmax(), j, {scores(i, j), iota(j)})[1]), "best");
    EXPECT_TRUE(narrowable(g.graph()).empty());
  }
  {  // a comparison
    ir::Builder g;
    Tensor x = g.input("x", {8, 8});
    Tensor mean = map({i}, sum(j, x(i, j)) / 8.0);
    g.output(map({i, j}, select(x(i, j) < mean(i), Scalar(1.0), Scalar(0.0))), "y");
    EXPECT_TRUE(narrowable(g.graph()).empty());
  }
  {  // and what may be narrowed
    const auto n = narrowable(tests::two_layers(8, 8, 8));
    EXPECT_FALSE(n.empty());
  }
}
TEST(tune_precision, moves_are_kept_only_within_the_budget) {
  Layers l;
  Folder f;
  auto compiler = tests::compiler_in(f / "kernels");
  tune::Bench bench{l.g, l.in, l.o, compiler, tune::reference_of(l.g, l.in, l.o, compiler)};
  tune::ErrorBudget tight;
  tight.all = 1e-6;
  tune::Precision p = tune::tune_precision(bench, tight, 0.002);
  EXPECT_EQ(p.schedule, l.o.schedule);
  ASSERT_FALSE(p.moves.empty());
  for (auto& m : p.moves) EXPECT_NE(m.result.find("the budget is"), std::string::npos) << m.result;
  tune::ErrorBudget wide;
  wide.all = 0.05;
  p = tune::tune_precision(bench, wide, 0.002);
  for (auto& m : p.moves) {
    EXPECT_TRUE(m.result == "kept" || m.result == "not faster") << m.fields << ": " << m.result;
    EXPECT_GT(m.before.runs, 0);
    EXPECT_GT(m.after.runs, 0);
  }
}
// A stored value that many kernels read, too large for the caches and small enough in half the bytes: the move is kept,
// with the numbers that say why, and what it gives stays within the budget.
TEST(tune_precision, a_move_that_pays_is_kept) {
  ir::Builder g;
  Tensor x = g.input("x", {64, 256}), v = g.input("v", {256});
  auto [i, j] = axes<"i j">();
  Tensor h = map({i, j}, x(i, j) * 0.5 + v(j));
  for (int k = 0; k < 6; ++k) {
    const std::string n = std::to_string(k);
    g.output(map({i}, sum(j, h(i, j) * g.input("w" + n, {256})(j))), "y" + n);
  }
  const ir::Graph graph = g.graph();
  const eval::Inputs in = tests::inputs_of(graph);
  run::Options o;
  o.optimize = false, o.schedule = schedule::as_written();  // h is stored
  Folder f;
  auto compiler = tests::compiler_in(f / "kernels");
  tune::Bench bench{graph, in, o, compiler, tune::reference_of(graph, in, o, compiler)};
  bench.clock = [](const run::Derivation& d) { return 1e-9 * double(d.plan.bytes_moved()); };
  tune::ErrorBudget budget;
  budget.all = 1e-2;
  const tune::Precision p = tune::tune_precision(bench, budget, 0.01);
  const auto kept = std::find_if(p.moves.begin(), p.moves.end(), [](auto& m) { return m.result == "kept"; });
  std::string all;
  for (auto& m : p.moves) all += m.group + " " + m.fields + ": " + m.result + ", " + std::to_string(m.before.median * 1e3) + " -> " + std::to_string(m.after.median * 1e3) + " ms\n";
  ASSERT_NE(kept, p.moves.end()) << all;
  EXPECT_LT(kept->after.high, kept->before.low) << all;
  EXPECT_GT(kept->predicted, 0);
  EXPECT_LT(kept->predicted, budget.all);
  EXPECT_EQ(p.schedule.groups.at(kept->group).store.has_value(), true) << all;
  o.schedule = p.schedule, o.guards = true;
  run::Program program(graph, compiler, std::make_shared<device::Cpu>(1), o);
  const auto t = tune::checked(program, graph, in, bench.reference, budget.all);
  EXPECT_EQ(t.second, "");
  EXPECT_GT(t.first, 0);
}
}  // namespace
