// Blocks of products by subgroups: all lanes copy ahead of what they contract; what comes out, and what some order of
// events shows to be wrong with a program whose waits or copies are others.
#include <algorithm>

#include "lower/role_programs.hpp"

using namespace tang;
using namespace tang::test;

namespace {
namespace role = kernel::role;

target::Target subgroups_alone() {
  target::Target t = target::ampere_target();
  t.small_matrices = false; // few rows are folds of rows otherwise
  return t;
}

ir::Graph attention(int64_t heads, int64_t rows, int64_t keys, int64_t d, bool causal) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {heads, rows, d}, bf16), k = b.input("k", {heads, keys, d}, bf16),
             v = b.input("v", {heads, keys, d}, bf16);
  auto [h, i, j, c, e] = ir::axes<"h i j c e">();
  ir::Scalar s = ir::sum(c, q(h, i, c) * k(h, j, c)) * 0.125;
  if (causal) s = ir::masked(j <= i, s);
  ir::Scalar w = ir::exp(s - ir::max(j, s)), l = ir::sum(j, w);
  b.output(ir::map({h, i, e}, ir::ratio(ir::sum(j, w * v(h, j, e)), l)), "out", bf16);
  return b.graph();
}

// The kernel that multiplies; others lay its operands out.
const lower::Lowered& the_blocks(const Derived& d) {
  for (auto& l : d.program.kernels)
    if (l.roles) return l;
  bug(__FILE__, __LINE__, "no blocks of products: " + d.program.kernels.back().refused);
}

struct Blocks { // fields that a test sets
  int down, across, tall, stages;
  int64_t columns;
};

// The product's program in such blocks; the lowered kernel's own result is what it has to give.
Roles in_blocks(const ir::Graph& g, std::optional<Blocks> blocks = {}) {
  schedule::Schedule s;
  if (blocks) {
    const Derived first = derive(g, {}, subgroups_alone());
    const auto& of = the_blocks(first);
    const plan::Group& group = first.plan.steps.at(size_t(of.step)).group;
    schedule::GroupFields& f = s.groups[schedule::key(*first.plan.graph, group.members.at(0).node)];
    f.roles = of.roles;
    f.roles->math = blocks->down * blocks->across, f.roles->across = blocks->across, f.roles->tall = blocks->tall;
    for (int& depth : f.roles->stages) depth = blocks->stages;
    if (blocks->columns) {
      f.tile[1] = blocks->columns;
      f.tile[2] = 64;
    }
  }
  const Derived d = derive(g, s, subgroups_alone());
  const lower::Lowered& l = the_blocks(d);
  check(l.roles->tall > 0, "warpgroups");
  auto p = kernel::expand_roles(l.kernel, *l.roles);
  check(bool(p), p.why());
  const eval::Inputs in = rounded_inputs(g);
  Roles r{*p, buffers(d, l, in), {}};
  r.want = r.before;
  EXPECT_TRUE(kernel::simulate(l.kernel, r.want).clean());
  const auto oracle = eval::run(g, in);
  auto got = simulate(d, in);
  EXPECT_LT(eval::difference(got["out"], filled(oracle.at("out"))), 8e-3);
  return r;
}

std::set<int> single; // rings of one slot, of the program that is changed

std::string other_wait(role::Stmt& s) {
  if (auto* x = std::get_if<role::Arrived>(&s.node)) return ++x->left, "a wait for one group less";
  return "";
}

std::string no_meeting(role::Stmt& s) {
  if (!std::get_if<role::Meet>(&s.node)) return "";
  s.node = role::Commit{};
  return "no meeting";
}

std::string other_slot(role::Stmt& s) {
  if (auto* x = std::get_if<role::Load>(&s.node)) return ++x->ahead, "a copy to the next slot";
  return "";
}

// A ring of one slot may stand still.
std::string no_advance(role::Stmt& s) {
  auto* x = std::get_if<role::Advance>(&s.node);
  if (!x || single.count(x->ring)) return "";
  s.node = role::Let{kernel::Let{0, kernel::Let::affine, {kernel::constant(0)}, 1, {}}};
  return "a ring stands still";
}

std::string no_group(role::Stmt& s) {
  if (!std::get_if<role::Commit>(&s.node)) return "";
  s.node = role::Let{kernel::Let{0, kernel::Let::affine, {kernel::constant(0)}, 1, {}}};
  return "two groups are one";
}

// Places whose change no order of events shows.
std::vector<std::string> hidden(const Roles& r, std::string (*change)(role::Stmt&), int& mutants) {
  std::vector<std::string> out;
  single.clear();
  for (size_t x = 0; x < r.program.rings.size(); ++x)
    if (r.program.rings[x].depth == 1) single.insert(int(x));
  each_mutant(r.program, change, [&](const role::Program& p, const std::string& what) {
    ++mutants;
    if (trouble(p, r.before, r.want, 16).empty()) out.push_back(what);
  });
  return out;
}
} // namespace

TEST(sm80_subgroups, products_in_every_transpose_and_ragged) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      const Roles r = in_blocks(matmul(136, 200, 88, ta, tb));
      EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "") << ta << tb;
    }
}

TEST(sm80_subgroups, any_division_of_a_block_among_subgroups) {
  for (const Blocks& b : {Blocks{2, 2, 1, 2, 64}, Blocks{1, 4, 2, 3, 64}, Blocks{4, 1, 1, 4, 48}, Blocks{2, 2, 2, 3, 128},
                          Blocks{1, 2, 4, 2, 32}})
    for (bool apart : {false, true}) {
      const Roles r = in_blocks(matmul(72, 136, 200, apart, !apart), b);
      EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "") << b.down << b.across << b.tall;
    }
}

TEST(sm80_subgroups, products_of_tf32_and_f16) {
  for (auto f : {ir::Format::tf32, ir::Format::f16}) {
    const Roles r = in_blocks(matmul(72, 136, 200, false, true, f, ir::Format::f32));
    EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
  }
}

TEST(sm80_subgroups, attention) {
  for (bool causal : {false, true})
    for (int64_t d : {64, 128}) {
      const Roles r = in_blocks(attention(1, 136, 200, d, causal));
      EXPECT_EQ(trouble(r.program, r.before, r.want, 2), "") << causal << d;
    }
}

// A wait, a meeting, a slot or a group less: some order of events shows it.
TEST(sm80_subgroups, no_mutant_survives) {
  const std::vector<std::pair<std::string, Roles>> all = {
      {"product", in_blocks(matmul(40, 72, 328, false, true), Blocks{2, 2, 1, 3, 64})},
      {"attention", in_blocks(attention(2, 40, 264, 16, false))}};
  for (auto& [name, r] : all)
    for (auto* change : {other_wait, no_meeting, other_slot, no_advance, no_group}) {
      int mutants = 0;
      const auto left = hidden(r, change, mutants);
      EXPECT_GT(mutants, 0) << name;
      for (auto& l : left) ADD_FAILURE() << name << ": " << l;
    }
}

TEST(sm80_subgroups, refusals) {
  const Derived d = derive(matmul(128, 128, 256, false, true), {}, subgroups_alone());
  const lower::Lowered& l = d.program.kernels.at(0);
  ASSERT_TRUE(l.roles) << l.refused;
  auto why = [&](auto change) {
    target::Roles f = *l.roles;
    change(f);
    auto p = kernel::expand_roles(l.kernel, f);
    return p ? std::string() : p.why();
  };
  EXPECT_EQ(why([](auto&) {}), "");
  EXPECT_EQ(why([](auto& f) { f.stages = {1}; }), "no slot is free while one is read");
  EXPECT_EQ(why([](auto& f) { f.skew = 1; }), "skew, turns, reuse, parts, clusters and a counter of work are of warpgroups");
  EXPECT_NE(why([](auto& f) { f.tall += 1; }).find("rows for"), std::string::npos);
  EXPECT_NE(why([](auto& f) { f.math_registers = 24; }).find("registers of a lane"), std::string::npos);
}
