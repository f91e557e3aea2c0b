// Long rows that several workgroups share, and folds that only select pairs.
#include "lower/pipeline.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/kernel/selection.hpp"

using namespace tang;
using namespace tang::ir;
using namespace tang::test;

namespace {
Graph softmax(int64_t m, int64_t n) {
  Builder b;
  Tensor x = b.input("x", {m, n}, Format::bf16);
  auto [i, j] = axes<"i j">();
  Scalar e = exp(x(i, j) - max(j, x(i, j)));
  b.output(map({i, j}, e / sum(j, e)), "y");
  return b.graph();
}

Graph places(int64_t m, int64_t n) {
  Builder b;
  Tensor x = b.input("x", {m, n}, Format::bf16);
  auto [i, j] = axes<"i j">();
  const auto s = fold(argmax(), j, {x(i, j), iota(j)});
  b.output(map({i}, s[0]), "top");
  b.output(map({i}, s[1]), "at");
  return b.graph();
}

eval::Array coarse(int64_t m, int64_t n) {
  eval::Array a = random_array({m, n}, 7);
  for (double& v : a.r) v = expr::rounded(v, Format::bf16);
  return a;
}

kernel::Kernel shared_kernel(const Graph& g) {
  const target::Target t = target::cuda_target();
  Derived d = derive(g, {}, t);
  EXPECT_EQ(d.program.kernels.size(), 1u);
  return kernel::legalize(d.program.kernels[0].kernel, t);
}

std::vector<kernel::Fault> faults(const kernel::Kernel& k) {
  std::vector<kernel::Buffer> globals;
  for (auto& m : k.memories)
    if (m.home == kernel::Home::global)
      globals.push_back(
          {std::vector<double>(size_t(m.size()), 0.5), std::vector<int64_t>(size_t(m.size()), 1)});
  return kernel::simulate(k, globals).faults;
}

std::optional<kernel::Selection> selected(const MonoidSpec& m, Pool& p) {
  std::vector<expr::E> a, b;
  for (size_t c = 0; c < m.identity.size(); ++c) {
    a.push_back({&p, p.leaf(expr::Op::var, m.identity[c].type, int64_t(2 * c))});
    b.push_back({&p, p.leaf(expr::Op::var, m.identity[c].type, int64_t(2 * c + 1))});
  }
  std::vector<expr::Id> combine;
  for (auto& e : m.combine(p, a, b)) combine.push_back(e.id);
  return kernel::selection(p, combine, m.identity);
}
} // namespace

// Few rows, and rows too long for one workgroup's registers; odd lengths leave some lanes of the last
// workgroup idle.
TEST(rows_shared, workgroups_of_a_cluster_share_a_row) {
  const target::Target t = target::cuda_target();
  for (auto [m, n] : {std::pair<int64_t, int64_t>{3, 16384}, {2, 20003}, {2, 70001}})
    for (const Graph& g : {softmax(m, n), places(m, n)}) {
      const eval::Inputs in{{"x", coarse(m, n)}};
      Derived d = derive(g, {}, t);
      for (auto& l : d.program.kernels) {
        l.kernel = kernel::legalize(l.kernel, t);
        EXPECT_GT(l.kernel.cluster, 1) << m << " x " << n << " " << l.label << "\n"
                                       << kernel::print(l.kernel);
        EXPECT_EQ(l.kernel.lanes % l.kernel.cluster, 0);
      }
      auto got = simulate(d, in);
      for (auto& [name, a] : eval::run(g, in))
        EXPECT_LT(eval::difference(got[name], filled(a)), 2e-6) << name;
    }
  target::Target many = t, alone = t;
  alone.cluster = 1;
  for (auto* x : {&many, &alone}) {
    Derived d = derive(softmax(400, 8192), {}, *x); // enough rows for all workers, and short
    EXPECT_EQ(kernel::legalize(d.program.kernels[0].kernel, *x).cluster, 1);
  }
  EXPECT_EQ(kernel::legalize(derive(softmax(1, 70001), {}, alone).program.kernels[0].kernel, alone).cluster,
            1);
}

TEST(rows_shared, a_long_row_stays_in_the_registers_of_its_cluster) {
  const kernel::Kernel k = shared_kernel(softmax(1000, 151936));
  EXPECT_EQ(k.cluster, 8);
  EXPECT_LE(kernel::problems(k).size(), 0u);
  for (auto& m : k.memories)
    if (m.home == kernel::Home::shared) { EXPECT_LE(m.size(), 128) << m.name; }
}

TEST(rows_shared, what_one_workgroup_writes_another_does_not_read_unless_they_meet) {
  const kernel::Kernel good = shared_kernel(softmax(2, 20003));
  EXPECT_TRUE(faults(good).empty());
  int meetings = 0, tiles = 0;
  for (size_t s = 0; s < good.body.size(); ++s) {
    auto* b = std::get_if<kernel::Barrier>(&good.body[s].node);
    if (!b) continue;
    kernel::Kernel less = good, near = good;
    less.body.erase(less.body.begin() + long(s));
    EXPECT_FALSE(faults(less).empty()) << s;
    if (b->team != kernel::Team::cluster) continue;
    ++meetings;
    near.body[s] = {kernel::Barrier{}}; // of one workgroup alone
    EXPECT_FALSE(faults(near).empty()) << s;
  }
  for (size_t m = 0; m < good.memories.size(); ++m) {
    if (good.memories[m].team != kernel::Team::cluster) continue;
    ++tiles;
    kernel::Kernel own = good; // each workgroup has one of its own
    own.memories[m].team = kernel::Team::workgroup;
    EXPECT_FALSE(faults(own).empty()) << good.memories[m].name;
  }
  EXPECT_EQ(meetings, 2);
  EXPECT_EQ(tiles, 2);
}

TEST(rows_shared, selections_are_found_in_the_terms_of_a_combine) {
  for (auto& m : {argmax(), topk(1), topk(2), topk(8)}) {
    Pool p;
    const auto s = selected(m, p);
    ASSERT_TRUE(s) << m.name;
    EXPECT_TRUE(s->largest);
    EXPECT_EQ(s->out.size(), m.identity.size() / 2);
  }
  Pool p;
  const auto least = selected(argmin(), p);
  ASSERT_TRUE(least);
  EXPECT_FALSE(least->largest);
  for (auto& m : {sum_of_reals(), max_of_reals(), online_softmax(1), welford()})
    EXPECT_FALSE(selected(m, p)) << m.name;
  MonoidSpec late = argmax(); // of equal values the later one, which no complement of the place says
  late.combine = [](Pool&, const std::vector<expr::E>& a, const std::vector<expr::E>& b) {
    const expr::E left = b[0] < a[0] || (a[0] == b[0] && b[1] < a[1]);
    return std::vector<expr::E>{select(left, a[0], b[0]), select(left, a[1], b[1])};
  };
  EXPECT_FALSE(selected(late, p));
  MonoidSpec split = argmax(); // a value of one side with the place of the other
  split.combine = [](Pool& q, const std::vector<expr::E>& a, const std::vector<expr::E>& b) {
    auto out = argmax().combine(q, a, b);
    out[1] = select(b[1] < a[1], b[1], a[1]);
    return out;
  };
  EXPECT_FALSE(selected(split, p));
}
