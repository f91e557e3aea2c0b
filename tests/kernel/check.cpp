// Legality: every sample has no problem, and each seeded fault is found by the checker, the simulator or the
// values.
#include "tang/kernel/check.hpp"

#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/base/match.hpp"
#include "tang/kernel/facts.hpp"

using namespace samples;

namespace {
std::string lines(const std::vector<std::string>& v) {
  std::string out;
  for (auto& s : v) out += s + "\n";
  return out;
}
}  // namespace

TEST(check, the_samples_have_no_problem) {
  for (auto& [name, s] : all()) {
    EXPECT_EQ(lines(problems(s.kernel)), "") << name;
    EXPECT_EQ(lines(problems(expand_pipelines(s.kernel))), "") << name << ", expanded";
  }
  for (int64_t n : {1, 7, 8, 9, 16, 17}) {
    EXPECT_EQ(lines(problems(flash({n, n, 4, 8, 4}).kernel)), "") << n;
    EXPECT_EQ(lines(problems(flash({n, (n + 1) / 2, 4, 8, 4}).kernel)), "") << n;
    EXPECT_EQ(lines(problems(matmul({n, n + 1, n + 2, 8, 8, 4, 4}).kernel)), "") << n;
  }
}

namespace {
struct Flaw {
  std::string says;
  Sample sample;
  std::function<void(Kernel&)> change;
};
template <class T>
T& node(Kernel& k, size_t n) {
  return std::get<T>(k.body[n].node);
}
Contract& contract(Kernel& k) { return std::get<Contract>(node<Pipeline>(k, 1).body[0].node); }
}  // namespace

TEST(check, each_flaw_of_form_is_named) {
  const std::vector<Flaw> flaws = {
      {"two memories are called x", map(), [](Kernel& k) { k.memories[1].name = "x"; }},
      {"comes after a tile", matmul(),
       [](Kernel& k) {
         k.memories[3].home = Home::global;
         std::swap(k.memories[2].home, k.memories[4].home);
       }},
      {"strides for its rank", map(), [](Kernel& k) { k.memories[0].strides = {}; }},
      {"is defined twice", map(), [](Kernel& k) { node<Apply>(k, 0).axes[0].var = k.grid[0].var; }},
      {"coordinates for rank 1", map(),
       [](Kernel& k) { node<Apply>(k, 0).dst[0].index.push_back(at(constant(0))); }},
      {"not an earlier one", gather(),
       [](Kernel& k) { node<Apply>(k, 0).body.refs[1].index[0].refs[0].first = 1; }},
      {"reads the real", gather(), [](Kernel& k) { k.memories[0].format = Format::f32; }},
      {"for a value of type real", map(), [](Kernel& k) { k.memories[0].format = Format::i32; }},
      {"stores a value of type real", map(), [](Kernel& k) { k.memories[1].format = Format::i32; }},
      {"which it does not have", map(), [](Kernel& k) { node<Apply>(k, 0).body.refs.clear(); }},
      {"one value a destination", map(), [](Kernel& k) { node<Apply>(k, 0).body.values.clear(); }},
      {"one fill a destination", matmul(),
       [](Kernel& k) {
         node<Apply>(k, 0).fill = {expr::real(0), expr::real(0)};
       }},
      {"a fill of another type", matmul(), [](Kernel& k) { node<Apply>(k, 0).fill = {expr::whole(0)}; }},
      {"`when` is not boolean", map(),
       [](Kernel& k) { node<Apply>(k, 0).body.when = node<Apply>(k, 0).body.values[0]; }},
      {"the vector axis does not exist", map(), [](Kernel& k) { node<Apply>(k, 0).vector = 1; }},
      {"a body holds `only`", map(),
       [](Kernel& k) {
         Id& x = node<Apply>(k, 0).body.values[0];
         x = k.pool->make(Op::only, {k.pool->literal(expr::truth(true)), x});
       }},
      {"has extent -1", map(), [](Kernel& k) { node<Apply>(k, 0).axes[0].extent = -1; }},
      {"one value, identity and combine", row_fold(monoids()[0]),
       [](Kernel& k) { node<Fold>(k, 0).identity.clear(); }},
      {"an identity of another type", row_fold(monoids()[0]),
       [](Kernel& k) { node<Fold>(k, 0).identity = {expr::whole(0)}; }},
      {"a component that it does not have", row_fold(monoids()[0]),
       [](Kernel& k) { node<Fold>(k, 0).combine = {k.pool->leaf(Op::var, Type::real, 2)}; }},
      {"more than its components", row_fold(monoids()[0]),
       [](Kernel& k) { node<Fold>(k, 0).combine = {k.pool->leaf(Op::arg, Type::real, 0)}; }},
      {"at least one accumulator", row_fold(monoids()[0]), [](Kernel& k) { node<Fold>(k, 0).ways = 0; }},
      {"depends on t", matmul(),
       [](Kernel& k) {
         contract(k).dst.index[0].affine = contract(k).dst.index[0].affine + v(contract(k).k[0].var);
       }},
      {"is not contiguous in j", matmul(),
       [](Kernel& k) {
         k.memories[4].strides = {32, 4, 2};
       }},
      {"a register block needs", matmul(), [](Kernel& k) { contract(k).rows = 0; }},
      {"into itself", matmul(), [](Kernel& k) { contract(k).a = contract(k).dst; }},
      {"a pipeline inside a pipeline", matmul(),
       [](Kernel& k) {
         Pipeline p = node<Pipeline>(k, 1);
         p.var = k.fresh("p");
         node<Pipeline>(k, 1).body.push_back({p});
       }},
      {"a pipeline with a step", matmul(), [](Kernel& k) { node<Pipeline>(k, 1).stages = 0; }},
      {"divides by less than 1", flash(), [](Kernel& k) { node<Let>(k, 5).divisor = 0; }},
      {"wrong number of operands", flash(),
       [](Kernel& k) { node<Let>(k, 5).operands.push_back(constant(1)); }},
      {"is used where it has no value", flash(), [](Kernel& k) { k.body.erase(k.body.begin() + 6); }},
      {"which may not have been written", matmul(),
       [](Kernel& k) { node<Pipeline>(k, 1).operands.erase(node<Pipeline>(k, 1).operands.begin()); }},
      {"a loop with a step below 1", matmul(),
       [](Kernel& k) {
         k = expand_pipelines(k);
         node<Loop>(k, 1).step = 0;
       }},
  };
  for (auto& f : flaws) {
    Kernel k = f.sample.kernel;
    k.pool = std::make_shared<Pool>(*k.pool);
    f.change(k);
    EXPECT_NE(lines(problems(k)).find(f.says), std::string::npos) << "wanted: " << f.says << "\n"
                                                                  << lines(problems(k));
  }
}
TEST(check, a_loop_that_may_not_run_writes_nothing_for_certain) {
  // t is written in a loop over i < i0, which is empty in the first workgroup.
  Kernel k;
  const int y = global(k, "y", {8}, Access::write), t = tile(k, "t", {1});
  const Var i0 = k.fresh("i0"), i = k.fresh("i");
  k.grid = {{i0, 8, 1}};
  const Block write = {apply({}, ref(t, {constant(0)}), {}, lit(k, 1))};
  k.body = {{Loop{i, constant(0), v(i0), 1, write}},
            apply({}, ref(y, {v(i0)}), {ref(t, {constant(0)})}, arg(k, 0))};
  EXPECT_NE(lines(problems(k)).find("may not have been written"), std::string::npos);
  node<Loop>(k, 0).end = v(i0) + 1;
  EXPECT_EQ(lines(problems(k)), "");
}
TEST(check, one_workgroup_may_own_a_place_by_a_test) {
  Kernel k;
  const int y = global(k, "y", {1}, Access::write);
  const Var i0 = k.fresh("i0");
  k.grid = {{i0, 8, 1}};
  const Block write = {apply({}, ref(y, {constant(0)}), {}, lit(k, 1))};
  k.body = write;
  EXPECT_NE(lines(problems(k)).find("two workgroups"), std::string::npos);
  k.body = {{If{{v(i0, -1)}, write}}};
  EXPECT_EQ(lines(problems(k)), "");
}
TEST(check, a_neighbours_element_may_not_be_read_while_it_is_written) {
  Kernel k;  // y[i] = y[i + 1]: in place across workgroups
  const int y = global(k, "y", {9}, Access::read_write);
  const Var i0 = k.fresh("i0");
  k.grid = {{i0, 8, 1}};
  k.body = {apply({}, ref(y, {v(i0)}), {ref(y, {v(i0) + 1})}, arg(k, 0))};
  EXPECT_NE(lines(problems(k)).find("two workgroups that differ in i0"), std::string::npos);
  std::vector<Buffer> b = {reals(9, 1)};
  EXPECT_EQ(simulate(k, b).faults.at(0).kind, Fault::race);
}
