// A GPU's floor, estimate and space, without one: a machine of round numbers.
#include "tang/run/cuda.hpp"
#include "tune/graphs.hpp"

namespace {
using namespace tang;

tune::Machine made_up_gpu() {
  tune::Machine m;
  m.device = "made up", m.driver = "1.2";
  m.workers = 132, m.lanes = 32, m.margin = 1;
  m.fma = m.exp = {50e12, 40e12};
  m.write = {4e12, 4e12};
  m.call = m.launch = 0.5e-6;
  m.workgroup = 1e-9;
  m.levels = {{"L1", 32 << 20, {30e12, 30e12}, false, 0},
              {"L2", 50 << 20, {10e12, 10e12}, true, 0.2e-6},
              {"memory", 0, {4e12, 4e12}, true, 0.4e-6}};
  m.matrix = {1000e12, 800e12};
  m.one = {0.5e-6, 0.7e-6, 0.9e-6}, m.every = {0.6e-6, 0.8e-6, 1e-6}, m.full = {0.7e-6, 0.9e-6, 1.1e-6};
  m.begin_early = 0.4e-6;
  m.ingress = 200e9;
  m.in_flight = {{512, 1e12}, {65536, 4e12}};
  return m;
}
double named(const tune::Time& t, const std::string& name) {
  for (auto& x : t.terms)
    if (x.name == name) return x.seconds;
  return -1;
}

TEST(tune_cuda, probes_survive_their_json) {
  const tune::Machine m = made_up_gpu();
  auto back = tune::machine_of(tune::as_json(m));
  ASSERT_TRUE(bool(back)) << back.why();
  EXPECT_EQ(tune::as_json(*back), tune::as_json(m));
}
TEST(tune_cuda, the_probes_compile_where_there_is_a_compiler) {
  const auto compiler = device::CudaCompiler::find();
  if (!compiler) {
    EXPECT_NE(compiler.why().find("NVRTC"), std::string::npos);
    return;
  }
  EXPECT_FALSE((*compiler)->compile(tune::cuda_probes(), "sm_90a").empty());
}
TEST(tune_cuda, the_floor_is_a_launch_and_the_largest_of_rates) {
  const tune::Machine m = made_up_gpu();
  tune::Work w;
  w.launches = 1, w.workgroups = 10, w.read = 40e6;
  // Ten workgroups bring 40 MB at 2 TB/s; what the second level held before comes no faster.
  EXPECT_NEAR(tune::floor(w, m).seconds, 20e-6 + 0.7e-6, 1e-12);
  EXPECT_EQ(tune::floor(w, m).binding().name, "reads of the busy workers");
  w.workgroups = 132, w.planned = true;
  EXPECT_NEAR(tune::floor(w, m).seconds, 4e-6 + 0.8e-6, 1e-12);
  EXPECT_NEAR(tune::floor(w, m, true).seconds, 10e-6 + 1e-6, 1e-12); // cold: all of it from memory
  EXPECT_EQ(tune::floor(w, m, true).binding().name, "reads from memory");
  w.launches = 3; // later kernels find what the ones before them left
  EXPECT_NEAR(tune::floor(w, m, true).seconds, 10e-6 + 1e-6 + 2 * 0.8e-6, 1e-12);
  w.launches = 1, w.contracted = w.matrix = 100e9, w.resident = true;
  EXPECT_NEAR(tune::floor(w, m).seconds, 100e-6 + 0.9e-6, 1e-12);
  EXPECT_EQ(tune::floor(w, m).binding().name, "matrix instructions");
  w.matrix = 0;
  EXPECT_EQ(tune::floor(w, m).binding().name, "arithmetic");
  tune::Work idle; // reads nothing
  idle.launches = 1;
  EXPECT_NEAR(tune::floor(idle, m).seconds, 0.5e-6, 1e-15);
}
ir::Graph product(int64_t m, int64_t n, int64_t k) {
  ir::Builder g;
  Tensor x = g.input("x", {m, k}, ir::Format::bf16), w = g.input("w", {n, k}, ir::Format::bf16);
  auto [i, j, l] = axes<"i j l">();
  g.output(map({i, j}, sum(l, x(i, l) * w(j, l))), "y", ir::Format::bf16);
  return g.graph();
}
TEST(tune_cuda, roles_are_fields_of_the_space) {
  const run::Options o = run::hopper_options();
  const run::Derivation d = run::derive(product(512, 1024, 2048), o);
  const tune::Space s = tune::space_of(d, o, 0, made_up_gpu());
  EXPECT_TRUE(s.ruled);
  EXPECT_GE(s.candidates.size(), 20u);
  std::set<std::string> texts;
  for (auto& c : s.candidates) {
    EXPECT_TRUE(c.roles) << c.shown;
    EXPECT_TRUE(texts.insert(c.text).second) << c.shown;
    EXPECT_EQ(c.work.matrix, c.work.contracted);
    EXPECT_GE(c.work.contracted, 2.0 * 512 * 1024 * 2048);
    EXPECT_GT(c.estimated, tune::floor(c.work, made_up_gpu()).seconds * 0.5);
  }
  EXPECT_EQ(s.candidates[0].work.read, 2.0 * 2048 * (512 + 1024));
  for (size_t k = 1; k < s.candidates.size(); ++k) EXPECT_LE(s.candidates[k - 1].estimated, s.candidates[k].estimated);
  run::Options told = o; // any of them is a schedule
  told.schedule.groups[s.key] = s.candidates.back().fields;
  const run::Derivation other = run::derive(product(512, 1024, 2048), told);
  EXPECT_EQ(other.kernels.kernels[0].schedule, s.candidates.back().shown);
  EXPECT_NE(other.names, d.names);
}
TEST(tune_cuda, candidates_of_a_rule_are_priced_by_it_the_automatic_one_too) {
  const run::Options o = run::hopper_options();
  tune::Machine slow = made_up_gpu();
  slow.fma.typical /= 100, slow.matrix.typical /= 100;
  for (auto& l : slow.levels) l.read.typical /= 100;
  for (const int64_t rows : {8, 512}) { // few rows on small instructions, blocks of warpgroups
    const run::Derivation d = run::derive(product(rows, 1024, 2048), o);
    const tune::Space s = tune::space_of(d, o, 0, made_up_gpu()), other = tune::space_of(d, o, 0, slow);
    ASSERT_TRUE(s.ruled);
    ASSERT_EQ(s.candidates.size(), other.candidates.size());
    for (size_t k = 0; k < s.candidates.size(); ++k)
      EXPECT_EQ(s.candidates[k].estimated, other.candidates[k].estimated) << s.candidates[k].shown;
  }
}
TEST(tune_cuda, resolved_fields_hold_the_roles) {
  const run::Options o = run::hopper_options();
  const ir::Graph g = product(512, 1024, 2048);
  const run::Derivation d = run::derive(g, o);
  run::Options fixed = o;
  const auto f = tune::resolved(d, o, 0);
  ASSERT_TRUE(f.roles);
  fixed.schedule.groups[schedule::key(*d.plan.graph, d.plan.steps[0].group.members[0].node)] = f;
  EXPECT_EQ(run::derive(g, fixed).names, d.names);
}
TEST(tune_cuda, a_gpu_is_estimated_by_its_own_terms) {
  const tune::Machine m = made_up_gpu();
  tune::Work w;
  w.launches = 2, w.workgroups = 132, w.planned = true, w.read = 1e6, w.scattered = 40e6, w.padded = w.contracted = 50e9;
  const tune::Time t = tune::estimate(w, m);
  EXPECT_NEAR(named(t, "launches and first loads"), 1.6e-6, 1e-12);
  EXPECT_NEAR(named(t, "reads by index"), 10e-6, 1e-12);
  EXPECT_NEAR(named(t, "contractions"), 50e9 / 40e12, 1e-12);
  w.workgroups = 133; // a second wave for one workgroup
  EXPECT_NEAR(named(tune::estimate(w, m), "contractions"), 50e9 / 40e12 * 264 / 133, 1e-9);
}
} // namespace
