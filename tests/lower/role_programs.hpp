// What tests of role programs share: a product, its program, and what some order of events shows to be wrong with it.
#pragma once
#include "lower/role_runs.hpp"
#include "tang/ir/surface.hpp"
#include "tang/kernel/simulate_roles.hpp"

namespace tang::test {
inline constexpr auto bf16 = ir::Format::bf16;

inline ir::Graph matmul(int64_t m, int64_t n, int64_t k, bool ta, bool tb, ir::Format f = bf16,
                 std::optional<ir::Format> out = {}) {
  ir::Builder b;
  using Shape = std::vector<ir::Extent>;
  ir::Tensor x = b.input("a", ta ? Shape{k, m} : Shape{m, k}, f),
             y = b.input("b", tb ? Shape{n, k} : Shape{k, n}, f);
  auto [i, j, l] = ir::axes<"i j l">();
  b.output(ir::map({i, j}, ir::sum(l, (ta ? x(l, i) : x(i, l)) * (tb ? y(j, l) : y(l, j)))), "out",
           out.value_or(f));
  return b.graph();
}

inline std::vector<kernel::Buffer> buffers(const Derived& d, const lower::Lowered& l, const eval::Inputs& in) {
  std::vector<kernel::Buffer> out;
  for (size_t a = 0; a < l.arguments.size(); ++a) {
    const ir::Port* port_ = std::get_if<ir::Port>(&l.arguments[a].what);
    if (!port_) { // parts of a sum
      out.push_back(poisoned(l.kernel.memories[a].size()));
      continue;
    }
    const ir::Port port = *port_;
    if ((*d.plan.graph)[port.node].input())
      out.push_back({in.at((*d.plan.graph)[port.node].name).r, in.at((*d.plan.graph)[port.node].name).i});
    else
      out.push_back(poisoned(l.kernel.memories[a].size()));
  }
  return out;
}

// What a role program does wrong for some order of events: a fault, or another result.
inline std::string trouble(const kernel::role::Program& p, const std::vector<kernel::Buffer>& before,
                    const std::vector<kernel::Buffer>& want, uint64_t seeds) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    kernel::RoleOptions o;
    o.seed = seed;
    o.copies = seed == 1 ? kernel::RoleOptions::early : kernel::RoleOptions::late;
    o.workgroups = 1 + int(seed % 2); // one: every block of work goes through the same rings
    o.reverse = true;
    std::vector<kernel::Buffer> got = before;
    if (auto fault = kernel::simulate_roles(p, got, o))
      return std::string(kernel::word(fault->kind)) + ": " + fault->text;
    if (!(difference(want, got) < 1e-2)) return "another result";
  }
  return "";
}

struct Roles {
  kernel::role::Program program;
  std::vector<kernel::Buffer> before, want;
};

inline Roles roles(const ir::Graph& g, int split = 1, const schedule::Schedule& s = {}) {
  const Derived d = derive(g, s, warpgroups_alone());
  const auto found =
      std::find_if(d.program.kernels.begin(), d.program.kernels.end(), [](auto& l) { return bool(l.roles); });
  check(found != d.program.kernels.end(), "no kernel of roles: " + d.program.kernels[0].refused);
  const lower::Lowered& l = *found;
  target::Roles fields = *l.roles;
  fields.split = std::max(fields.split, split);
  auto p = kernel::expand_roles(l.kernel, fields);
  EXPECT_TRUE(bool(p)) << p.why();
  Roles r{*p, buffers(d, l, rounded_inputs(g)), {}};
  r.want = r.before;
  EXPECT_TRUE(kernel::simulate(l.kernel, r.want).clean());
  return r;
}

// Every place of a program, to change one.
inline void each_block(kernel::role::Block& b, const std::function<void(kernel::role::Block&, size_t)>& f) {
  namespace role = kernel::role;
  for (size_t i = 0; i < b.size(); ++i) {
    if (auto* x = std::get_if<role::Loop>(&b[i].node))
      each_block(x->body, f);
    else if (auto* w = std::get_if<role::When>(&b[i].node))
      each_block(w->then, f), each_block(w->otherwise, f);
    else if (auto* t = std::get_if<role::Teams>(&b[i].node))
      each_block(t->body, f);
    else if (auto* k = std::get_if<role::Works>(&b[i].node))
      each_block(k->body, f);
    else if (auto* j = std::get_if<role::Join>(&b[i].node))
      each_block(j->then, f);
    else
      f(b, i);
  }
}

// The program with one place changed, for every place at which `change` says what it did.
inline void each_mutant(const kernel::role::Program& whole,
                        const std::function<std::string(kernel::role::Stmt&)>& change,
                        const std::function<void(const kernel::role::Program&, const std::string&)>& see) {
  bool more = true;
  for (size_t which = 0; more; ++which) {
    kernel::role::Program p = whole;
    size_t n = 0;
    std::string what;
    for (auto* b : {&p.producer, &p.math})
      each_block(*b, [&](kernel::role::Block& in, size_t i) {
        if (n++ == which) what = change(in[i]);
      });
    more = which < n;
    if (!what.empty()) see(p, what + " at place " + std::to_string(which));
  }
}

} // namespace tang::test
