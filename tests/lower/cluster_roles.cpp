// Workgroups of a cluster in role programs: parts of a loop that join in shared memory, copies that arrive at several.
#include "lower/role_programs.hpp"

using namespace tang;
using namespace tang::test;

namespace {
namespace role = kernel::role;

struct Blocks {
  int64_t rows, columns, terms;
};

// A product in blocks of that size: its roles say what a cluster is for.
Roles product(const ir::Graph& g, const Blocks& b, const std::function<void(target::Roles&)>& say) {
  const Derived d = derive(g, {}, warpgroups_alone());
  schedule::Schedule s;
  auto& f = s.groups[schedule::key(*d.plan.graph, d.plan.steps[0].group.members[0].node)];
  f.roles.emplace();
  f.roles->math = int(b.rows / 64), f.roles->stages = {2}, f.roles->order = target::WorkOrder::grouped;
  say(*f.roles);
  f.vectors = 1;
  f.tile = {{0, b.rows}, {1, b.columns}, {2, b.terms}};
  return roles(g, 1, s);
}

Roles parts(int n, const ir::Graph& g) {
  return product(g, {128, 16, 64}, [n](target::Roles& f) { f.split = f.cluster = n; });
}

Roles copies(bool beneath, bool ta, bool tb, int cluster = 2) {
  const ir::Graph g = matmul(ta ? 512 : 256, tb ? 64 : 256, 136, ta, tb);
  const int64_t columns = tb ? 32 : 64;
  return product(g, {ta ? 128 : 64, columns, 64}, [&](target::Roles& f) {
    f.cluster = cluster, f.beneath = beneath;
  });
}

// Every mutant of what workgroups tell each other; those that no order of events shows.
std::vector<std::string> survivors(const Roles& r, int& mutants) {
  std::vector<std::string> left;
  for (int kind = 0; kind < 4; ++kind)
    each_mutant(
        r.program,
        [&](role::Stmt& at) -> std::string {
          auto& s = at.node;
          auto* meet = std::get_if<role::Meet>(&s);
          auto* load = std::get_if<role::Load>(&s);
          const bool drops = std::get_if<role::Await>(&s) || std::get_if<role::Release>(&s) ||
                             std::get_if<role::Advance>(&s) || std::get_if<role::Arm>(&s) ||
                             std::get_if<role::Finish>(&s) || std::get_if<role::Offer>(&s) || (meet && meet->all);
          const std::string dropped = "drop " + std::to_string(s.index());
          if (kind == 0 && drops) return s = role::Meet{}, dropped;
          auto* release = std::get_if<role::Release>(&s);
          if (release && r.program.rings[size_t(release->ring)].depth == 1) release = nullptr; // its slots are one
          if (release && kind == 1) return --release->back, "early release";
          if (auto* x = std::get_if<role::Finish>(&s); x && kind == 2) return ++x->left, "short finish";
          if (load && load->each && kind == 3) return load->each = 0, "copy for one";
          return "";
        },
        [&](const role::Program& p, const std::string& what) {
          ++mutants;
          if (trouble(p, r.before, r.want, 16).empty()) left.push_back(what);
        });
  for (size_t ring = 0; ring < r.program.rings.size(); ++ring)
    for (int by : {-4, 4}) { // a barrier that counts one team less or more
      role::Program p = r.program;
      if (!p.rings[ring].cluster) continue;
      p.rings[ring].releases += by;
      ++mutants;
      if (trouble(p, r.before, r.want, 16).empty()) left.push_back("releases of ring " + std::to_string(ring));
    }
  for (size_t ring = 0; ring < r.program.rings.size(); ++ring) { // who only tells its own workgroup
    role::Program p = r.program;
    if (!p.rings[ring].cluster) continue;
    p.rings[ring].cluster = false;
    ++mutants;
    if (trouble(p, r.before, r.want, 16).empty()) left.push_back("ring " + std::to_string(ring) + " of one workgroup");
  }
  return left;
}
} // namespace

TEST(cluster_roles, parts_of_a_loop_join_in_order) {
  for (int n : {2, 3, 4, 7}) {
    const Roles r = parts(n, matmul(200, 40, 448, false, true));
    EXPECT_EQ(r.program.tiles, 0) << "nothing joins in memory";
    EXPECT_EQ(trouble(r.program, r.before, r.want, 6), "") << n;
  }
}

// A workgroup adds the rows of its warps, each warp's once: 8 warps of 3 parts are 3, 3 and 2.
TEST(cluster_roles, rows_are_shared_out) {
  target::Roles f;
  for (f.math = 1; f.math <= 4; ++f.math)
    for (f.split = 2; f.split <= 8; ++f.split) {
      std::vector<int64_t> of(size_t(f.split), 0);
      for (int64_t w = 0; w < 4 * f.math; ++w) {
        ASSERT_GE(role::owner(f, w), w ? role::owner(f, w - 1) : 0);
        ASSERT_LT(role::owner(f, w), f.split);
        ++of[size_t(role::owner(f, w))];
      }
      const auto [least, most] = std::minmax_element(of.begin(), of.end());
      EXPECT_LE(*most - *least, 1) << f.math << " " << f.split;
    }
}

TEST(cluster_roles, copies_arrive_at_all_workgroups) {
  for (bool beneath : {false, true})
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        for (int cluster : {2, 4}) {
          if (cluster == 4 && !beneath && tb) continue; // as many blocks side by side
          const Roles r = copies(beneath, ta, tb, cluster);
          EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "") << beneath << ta << tb << cluster;
        }
}

TEST(cluster_roles, no_mutant_survives) {
  for (const Roles& r : {parts(2, matmul(256, 16, 320, false, true)), parts(3, matmul(200, 32, 520, false, true)),
                         copies(false, false, true), copies(true, false, true)}) {
    int mutants = 0;
    const auto left = survivors(r, mutants);
    EXPECT_GT(mutants, 12);
    for (auto& l : left) ADD_FAILURE() << l;
  }
}

TEST(cluster_roles, refusals) {
  const Derived d = derive(matmul(512, 320, 200, false, true), {}, warpgroups_alone());
  const lower::Lowered& l = d.program.kernels.at(0);
  ASSERT_TRUE(l.roles);
  auto why = [&](auto change) {
    target::Roles f = *l.roles;
    f.split = f.cluster = 1, f.beneath = false, f.persist = target::Persist::taking_turns;
    change(f);
    auto p = kernel::expand_roles(l.kernel, f);
    return p ? std::string() : p.why();
  };
  EXPECT_EQ(why([](auto&) {}), "");
  EXPECT_EQ(why([](auto& f) { f.split = 2, f.cluster = 3; }), "a cluster has as many workgroups as the loop has parts");
  EXPECT_EQ(why([](auto& f) { f.cluster = 7; }), "a shared operand has no rows for each workgroup");
  EXPECT_EQ(why([](auto& f) { f.cluster = 2, f.persist = target::Persist::dynamic; }),
            "copies are shared in the loop of one sum whose blocks take turns");
}
