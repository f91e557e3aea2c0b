// What is kept of a search belongs to one size: case 68.
#include "tune/graphs.hpp"

#include "tang/tune/formats.hpp"
#include "tang/tune/store.hpp"

using namespace tang;

TEST(tune_cases, case_68_a_kept_schedule_is_of_one_size) {
  tests::Folder f;
  run::Options o;
  auto compiler = tests::compiler_in(f / "kernels");
  const ir::Graph small = tests::product(48, 32, 40), large = tests::product(48, 64, 80);
  schedule::Record kept;
  {
    tune::Store store(f / "store");
    tune::Options how;
    how.store = &store;
    how.each = 0.003;
    how.most = 2;
    kept = tune::tune(small, tests::inputs_of(small), o, compiler, tests::made_up(), how).record;
    EXPECT_FALSE(tune::recalled(large, o, *compiler, store)); // the same text but for its sizes
    EXPECT_NE(tune::program_key(small, o, *compiler), tune::program_key(large, o, *compiler));
  }
  // As another process sees it; what is restored is the kernels that were timed, and they are right.
  tune::Store store(f / "store");
  const auto again = tune::recalled(small, o, *compiler, store);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, kept);
  EXPECT_FALSE(tune::recalled(large, o, *compiler, store));
  EXPECT_THROW(tune::restored(*again, large, o, true), Error);
  run::Options restored = tune::restored(*again, small, o, true);
  restored.guards = true;
  run::Program p(small, compiler, std::make_shared<device::Cpu>(1), restored);
  EXPECT_TRUE(verify::verify(p, small, tests::inputs_of(small), 1e-5).ok());
}

// A sum of ones whose state is kept in a narrow format stops where one more is less than half a step; the emulator
// says so beforehand, and a budget refuses it.
TEST(tune_cases, case_41_a_narrow_running_sum_is_a_field_that_a_budget_refuses) {
  struct Row {
    int64_t n;
    ir::Format f;
    double stops;
  };
  tests::Folder f;
  auto compiler = tests::compiler_in(f / "kernels");
  for (const Row& r : {Row{4096, ir::Format::f16, 2048}, {512, ir::Format::bf16, 256}, {70000, ir::Format::bf16, 256}}) {
    Builder b;
    Tensor x = b.input("x", {1, r.n});
    auto [i, j] = axes<"i j">();
    b.output(map({i}, sum(j, x(i, j))), "s");
    const ir::Graph g = b.graph();
    run::Options o;
    o.target = target::c_target(o.target.lanes, 1);
    const double whole = double(r.n);
    for (bool narrow : {false, true}) {
      if (narrow) o.schedule = tune::accumulated(run::derive(g, o), {}, r.f);
      run::Program p(g, compiler, std::make_shared<device::Cpu>(1), o);
      std::fill_n(p.data<float>("x"), r.n, 1.0f);
      p.run();
      EXPECT_EQ(p.data<float>("s")[0], narrow ? r.stops : whole) << r.n;
    }
    o.budget = run::ErrorBudget{};
    o.budget->all = 1e-2;
    EXPECT_THROW(run::derive(g, o), Error) << r.n;
    o.budget->samples = {{"x", eval::reals({1, r.n}, std::vector<double>(size_t(r.n), 1))}};
    EXPECT_THROW(run::derive(g, o), Error) << r.n;
    o.schedule = {};
    EXPECT_NO_THROW(run::derive(g, o)) << r.n;
  }
}
