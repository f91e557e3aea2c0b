// Canonical text: names and numbering do not show, everything else does.
#include "tang/kernel/print.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernel/samples.hpp"
#include "tang/base/match.hpp"

using namespace samples;

TEST(print, a_small_kernel_reads_like_this) {
  Kernel k;
  const int x = global(k, "x", {10, 4}, Access::read), y = global(k, "y", {10}, Access::write);
  const int t = tile(k, "t", {8, 4});
  const Var i0 = k.fresh("row"), i = k.fresh("r"), j = k.fresh("c");
  k.grid = {{i0, 10, 8}};
  const E twice = arg(k, 0) + arg(k, 0);
  k.body = {apply({{i, 8}, {j, 4}}, ref(t, {v(i), v(j)}), {ref(x, {v(i0) + v(i), v(j)})}, twice * twice,
                  {at(below(10, v(i0) + v(i)))}, {}, expr::real(0))};
  k.body.push_back({Barrier{}});
  k.body.push_back(apply({{i, 8}}, ref(y, {v(i0) + v(i)}), {ref(t, {v(i), constant(3)})}, arg(k, 0),
                         {at(below(10, v(i0) + v(i)))}));
  EXPECT_EQ(print(k),
            "kernel f32\n"
            "in a0 f32[10, 4]\n"
            "out a1 f32[10]\n"
            "shared t0 f32[8, 4] workgroup owned\n"
            "grid i0 < 10 by 8\n"
            "  apply i1 < 8, i2 < 4 if -i0 - i1 + 9 >= 0\n"
            "    x0 = (a0[i0 + i1, i2] + a0[i0 + i1, i2])\n"
            "    t0[i1, i2] = (x0 * x0) fill 0.0\n"
            "  barrier\n"
            "  apply i1 < 8 if -i0 - i1 + 9 >= 0\n"
            "    a1[i0 + i1] = t0[i1, 3]\n");
}
namespace {
// The same kernel with variables allocated in another order, other names, and tiles declared in another
// order.
Kernel renamed(const Kernel& k) {
  Kernel out = k;
  const int n = int(k.vars.size());
  auto map = [n](Var x) { return n - 1 - x; };
  for (int x = 0; x < n; ++x) out.vars[size_t(map(x))] = "z" + std::to_string(x);
  int globals = 0;
  for (auto& m : k.memories) globals += m.home == Home::global;
  std::reverse(out.memories.begin() + globals, out.memories.end());
  for (auto& m : out.memories) m.name = "q" + m.name;
  const int all = int(k.memories.size());
  auto mem = [=](int m) { return m < globals ? m : globals + all - 1 - m; };
  auto affine = [&](Affine& a) {
    Affine b = constant(a.c);
    for (auto& [x, c] : a.terms) b = b + variable(map(x), c);
    a = b;
  };
  auto coordinate = [&](Coordinate& c) { affine(c.affine); };
  auto reference = [&](Ref& r) {
    if (r.memory < 0) return;
    r.memory = mem(r.memory);
    for (auto& c : r.index) coordinate(c);
  };
  auto bounds = [&](Bounds& b) {
    for (auto& c : b) coordinate(c);
  };
  auto axes = [&](std::vector<TileAxis>& a) {
    for (auto& x : a) x.var = map(x.var);
  };
  auto body = [&](Body& b) {
    for (auto& r : b.refs) reference(r);
    for (auto& g : b.guards)
      for (auto& x : g) bounds(x);
    auto term = [&](Id& id) {
      id = expr::transplant(*k.pool, id, *out.pool, [&](const expr::Term& t) {
        return out.pool->leaf(t.op, t.type, t.op == Op::coord ? map(Var(t.whole)) : t.whole);
      });
    };
    for (auto& id : b.values) term(id);
    if (b.when) term(*b.when);
  };
  out.pool = std::make_shared<Pool>();
  out.pool->literal(12345.0);  // ids differ too
  std::function<void(Block&)> walk = [&](Block& b) {
    for (auto& s : b)
      std::visit(Match{[&](Apply& x) {
                         axes(x.axes), bounds(x.bounds), body(x.body);
                         for (auto& p : x.partial) bounds(p);
                         for (auto& r : x.dst) reference(r);
                       },
                       [&](Fold& x) {
                         axes(x.kept), axes(x.folded), bounds(x.bounds), bounds(x.limits), body(x.body);
                         for (auto& p : x.partial) bounds(p);
                         for (auto& r : x.dst) reference(r);
                         for (auto& id : x.combine)
                           id = expr::transplant(*k.pool, id, *out.pool, [&](const expr::Term& t) {
                             return out.pool->leaf(t.op, t.type, t.whole);
                           });
                       },
                       [&](Contract& x) {
                         axes(x.m), axes(x.n), axes(x.k), reference(x.dst), reference(x.a), reference(x.b);
                         for (auto* e : {&x.m_end, &x.n_end, &x.k_end})
                           if (*e) affine(**e);
                       },
                       [](Barrier&) {},
                       [&](Let& x) {
                         x.var = map(x.var), reference(x.ref);
                         for (auto& o : x.operands) affine(o);
                       },
                       [&](Loop& x) { x.var = map(x.var), affine(x.begin), affine(x.end), walk(x.body); },
                       [&](If& x) {
                         for (auto& a : x.all) affine(a);
                         walk(x.then);
                       },
                       [&](Pipeline& x) {
                         x.var = map(x.var);
                         for (auto& g : x.segments) affine(g.begin), affine(g.end);
                         walk(x.operands), walk(x.body);
                       }},
                 s.node);
  };
  for (auto& g : out.grid) g.var = map(g.var);
  walk(out.body);
  return out;
}
}  // namespace

TEST(print, equal_kernels_print_alike_whatever_their_names_and_numbers) {
  for (auto& [name, s] : all()) {
    const Kernel other = renamed(s.kernel);
    EXPECT_EQ(print(s.kernel), print(other)) << name;
    EXPECT_EQ(hash(s.kernel), hash(other)) << name;
    EXPECT_NE(Text(s.kernel, Naming::own).kernel(), Text(other, Naming::own).kernel()) << name;
    std::vector<Buffer> b = s.buffers;  // the renaming itself is right
    EXPECT_TRUE(simulate(other, b).clean()) << name;
    EXPECT_EQ(differences(s, b), "") << name;
  }
}
TEST(print, different_kernels_print_differently) {
  std::set<std::string> texts;
  size_t n = 0;
  auto add = [&](const Kernel& k) {
    texts.insert(print(k));
    ++n;
  };
  for (auto& [name, s] : all()) add(s.kernel);
  for (auto& [name, s] : all())
    if (print(expand_pipelines(s.kernel)) != print(s.kernel)) add(expand_pipelines(s.kernel));
  const Kernel base = matmul().kernel;
  auto changed = [&](auto f) {
    Kernel k = base;
    f(k);
    add(k);
  };
  changed([](Kernel& k) { k.compute = Format::f16; });
  changed([](Kernel& k) { k.memories[2].access = Access::read_write; });
  changed([](Kernel& k) { k.memories[3].strides = {9, 1}; });
  changed([](Kernel& k) { k.memories[3].format = Format::bf16; });
  changed([](Kernel& k) { k.memories[3].home = Home::register_; });
  changed([](Kernel& k) { k.memories[3].team = Team::subgroup; });
  changed([](Kernel& k) { k.memories[3].lanes = Lanes::partial; });
  changed([](Kernel& k) { k.grid[0].step = 4; });
  changed([](Kernel& k) { std::get<Pipeline>(k.body[1].node).stages = 3; });
  changed([](Kernel& k) { std::get<Pipeline>(k.body[1].node).skew = 1; });
  changed([](Kernel& k) { std::get<Pipeline>(k.body[1].node).reverse = true; });
  changed([](Kernel& k) { std::get<Pipeline>(k.body[1].node).segments[0].partial = true; });
  auto contract = [](Kernel& k) -> Contract& {
    return std::get<Contract>(std::get<Pipeline>(k.body[1].node).body[0].node);
  };
  changed([&](Kernel& k) { contract(k).rows = 8; });
  changed([&](Kernel& k) { contract(k).accumulate = false; });
  changed([&](Kernel& k) { contract(k).k_end.reset(); });
  changed([](Kernel& k) { std::get<Apply>(k.body[0].node).vector = 1; });
  changed([](Kernel& k) { std::get<Apply>(k.body[0].node).body.values[0] = k.pool->literal(-0.0); });
  EXPECT_EQ(texts.size(), n);
}
