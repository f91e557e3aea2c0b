// Joint groups whose results are added to along an axis that is not their last: the gradient of the weights that a hidden
// layer is read with.
#include "lower/pipeline.hpp"
#include "run/harness.hpp"
#include "tang/grad/surface.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/models/attention.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
// y = D act(W x), its gradients by W and D, for a given dy.
Graph hidden_layer(int64_t rows, int64_t in, int64_t hidden, int64_t out) {
  Builder b;
  const Tensor x = b.input("x", {2, rows, in}), w = b.input("w", {hidden, in}), d = b.input("d", {out, hidden});
  auto [n, i, m, h, o] = axes<"n i m h o">();
  const Tensor act = map({n, i, h}, square(sum(m, x(n, i, m) * w(h, m))), "act");
  const Tensor y = map({n, i, o}, sum(h, act(n, i, h) * d(o, h)), "y");
  const auto g = diff::vjp(y, b.input("dy", {2, rows, out}), {x, w, d});
  b.output(g[0], "dx"), b.output(g[1], "dw"), b.output(g[2], "dd");
  return b.graph();
}

int apart(const Derived& d) { // kernels that only lay out a result that was added to
  int n = 0;
  for (auto& k : d.program.kernels) n += k.schedule == "join 1 parts";
  return n;
}
} // namespace

TEST(grad_columns, results_of_joint_groups_are_added_to_along_their_columns) {
  for (int64_t hidden : {160, 256}) { // several blocks: one that ends early, whole ones
    const Graph g = hidden_layer(33, 12, hidden, 12);
    schedule::Schedule s; // rows on the grid: dw and dd are added to from several blocks of them
    for (auto name : {"dx", "dw", "dd"}) {
      s.groups[name].joint = true;
      s.groups[name].role = {{0, schedule::Role::grid}, {1, schedule::Role::grid}, {2, schedule::Role::looped}};
    }
    expect_derived(g, {}, s, 1e-5);
    const Derived one = derive(g, s, target::c_target(4, 1));
    EXPECT_GE(apart(one), 1) << plan::print(one.plan); // dd, whose rows are not its blocks
  }
}

// A table's gradient: rows that many tokens, one or none have; keys beyond the table; no token at all.
TEST(grad_keyed, rows_of_a_table_are_added_to_where_they_were_read) {
  for (int64_t tokens : {0, 1, 300}) {
    Builder b;
    const Tensor table = b.param("table", {40, 24}), ids = b.input("ids", {2, tokens}, Format::i32);
    auto [n, t, m] = axes<"n t m">();
    const Tensor x = map({n, t, m}, square(table(Index(ids(n, t)), m)), "x");
    b.output(diff::vjp(x, b.input("dx", {2, tokens, 24}), {table})[0], "dtable");
    const Graph g = b.graph();
    eval::Array keys({2, tokens}, expr::Type::index);
    for (size_t k = 0; k < keys.i.size(); ++k) keys.i[k] = int64_t(k * k % 37);
    run::Options o;
    o.guards = true;
    for (int threads : {1, 2}) {
      o.target = target::c_target_of_host(threads);
      run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(threads), o);
      const auto report = verify::verify(p, g, random_inputs(g, {{"ids", keys}}), 1e-5, 2);
      for (auto& c : report.kernels) EXPECT_TRUE(c.ok) << c.what << " (" << c.schedule << "): error " << c.error << ". " << c.why;
      for (auto& c : report.outputs) EXPECT_TRUE(c.ok) << c.what << " error " << c.error;
      EXPECT_TRUE(report.trespass.empty());
    }
  }
}

// A bias of distances where results are stored once: its gradient evaluates the scores along its own diagonals.
TEST(grad_columns, diagonals_of_scores_for_workgroups_of_many_lanes) {
  Builder b;
  const int64_t n = 48;
  const Tensor q = b.input("q", {1, 2, n, 8}), k = b.input("k", {1, 2, n, 8}), v = b.input("v", {1, 2, n, 8});
  const Tensor table = b.input("table", {2 * n + 1});
  models::AttentionOptions o;
  o.mask = models::causal();
  o.changes = {models::distance_bias(table, n)};
  const auto d = diff::vjp(models::attention(q, k, v, o).out, b.input("dout", {1, 2, n, 8}), {q, k, v, table});
  for (size_t x = 0; x < d.size(); ++x) b.output(d[x], "d" + std::to_string(x));
  const Graph g = b.graph();
  target::Target t = target::cuda_target();
  t.workgroup_limit = 64;
  Derived derived = derive(g, {}, t);
  for (auto& x : derived.plan.buffers) {
    int64_t size = 1;
    for (int64_t e : x.shape) size *= e;
    EXPECT_LT(size, 2 * n * n) << plan::print(derived.plan);
  }
  for (auto& l : derived.program.kernels) l.kernel = kernel::legalize(l.kernel, t);
  const eval::Inputs in = random_inputs(g);
  auto got = simulate(derived, in);
  for (auto& [name, a] : eval::run(g, in)) EXPECT_LT(eval::difference(got[name], filled(a)), 1e-5) << name;
}
