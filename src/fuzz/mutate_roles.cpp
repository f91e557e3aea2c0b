// Mutants of role programs: what stands between a slot and those that fill and read it.
#include <cmath>

#include "tang/base/match.hpp"
#include "tang/fuzz/mutate.hpp"
#include "tang/fuzz/simulated.hpp"
#include "tang/kernel/simulate_roles.hpp"

namespace tang::fuzz {

using namespace kernel;

namespace {
namespace role = kernel::role;

// Every statement, until f says that it changed one.
bool each(role::Block& b, const std::function<bool(role::Stmt&)>& f) {
  for (auto& s : b) {
    if (f(s)) return true;
    const bool done = std::visit(
        Match{[&](role::Loop& x) { return each(x.body, f); },
              [&](role::When& x) { return each(x.then, f) || each(x.otherwise, f); },
              [&](role::Teams& x) { return each(x.body, f); },
              [&](role::Works& x) { return each(x.body, f); }, [&](role::Join& x) { return each(x.then, f); },
              [](auto&) { return false; }},
        s.node);
    if (done) return true;
  }
  return false;
}

using Change =
    std::function<bool(role::Stmt&, const std::function<bool()>&)>; // here(): is this the wanted site?

std::function<bool(role::Program&, int64_t)> by(Change change) {
  return [change](role::Program& p, int64_t n) {
    const std::function<bool()> here = [&] { return n-- == 0; };
    for (auto* b : {&p.producer, &p.math})
      if (each(*b, [&](role::Stmt& s) { return change(s, here); })) return true;
    return false;
  };
}

// A ring stands still for one round: whoever waits next passes on what was true a round ago; or does not
// wait.
bool stale_phase(role::Stmt& s, const std::function<bool()>& here) {
  const bool site = std::get_if<role::Advance>(&s.node) || std::get_if<role::Await>(&s.node) ||
                    std::get_if<role::Arm>(&s.node);
  if (!site || !here()) return false;
  s.node = role::Meet{};
  return true;
}

// A slot given back one window early or late; a wait for matrix instructions that lets one more run on.
bool wrong_distance(role::Stmt& s, const std::function<bool()>& here) {
  if (auto* x = std::get_if<role::Release>(&s.node))
    for (int by_ : {-1, 1})
      if (here()) {
        x->back += by_;
        return true;
      }
  if (auto* x = std::get_if<role::Finish>(&s.node); x && here()) {
    ++x->left;
    return true;
  }
  return false;
}

// The largest difference, over the largest value; infinite where one of them is NaN.
double difference(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  double top = 0, off = 0;
  for (size_t m = 0; m < a.size(); ++m)
    for (size_t x = 0; x < a[m].r.size(); ++x) {
      const double p = a[m].r[x], q = b[m].r[x];
      if (std::isnan(p) && std::isnan(q)) continue;
      if (std::isnan(p) || std::isnan(q)) return HUGE_VAL;
      top = std::max(top, std::fabs(p)), off = std::max(off, std::fabs(p - q));
    }
  return off == 0 ? 0 : off / top;
}

enum Seen : uint8_t { nothing, fault, value };

Seen run(const role::Program& p, const RoleSubject& s, uint64_t seed) {
  RoleOptions o;
  o.seed = seed;
  o.copies = seed == 1 ? RoleOptions::early : RoleOptions::late;
  o.workgroups = 1 + int(seed % 2); // one: every block of work goes through the same rings
  o.reverse = true;
  std::vector<Buffer> got = s.before;
  if (simulate_roles(p, got, o)) return fault;
  return difference(s.want, got) < 1e-2 ? nothing : value;
}
} // namespace

const std::vector<RoleOperator>& role_operators() {
  static const std::vector<RoleOperator> all = {{"stale ring phase", by(stale_phase)},
                                                {"wrong wait distance", by(wrong_distance)}};
  return all;
}

std::vector<RoleSubject> role_subjects(const Subject& s) {
  std::vector<RoleSubject> out;
  Simulated run(s.derivation, s.inputs);
  run.run([&](size_t k, std::vector<Buffer>& globals) {
    const lower::Lowered& l = s.derivation.kernels.kernels[k];
    RoleSubject r{s.name, {}, globals, {}};
    const bool clean = kernel::simulate(l.kernel, globals, {}).clean();
    if (!l.roles || !clean) return;
    auto p = kernel::expand_roles(l.kernel, *l.roles);
    if (!p) return;
    r.program = std::move(*p);
    r.want = globals;
    out.push_back(std::move(r));
  });
  return out;
}

std::map<std::string, Mutation> mutate(const std::vector<RoleSubject>& subjects, int64_t sites) {
  constexpr uint64_t tried = 12,
                     beyond = 40; // orders of events: of the test, and before a mutant counts as equivalent
  std::map<std::string, Mutation> out;
  for (auto& op : role_operators()) {
    Mutation& m = out[op.name];
    std::vector<std::pair<size_t, int64_t>> places;
    for (size_t s = 0; s < subjects.size(); ++s)
      for (int64_t n = 0;; ++n) {
        role::Program p = subjects[s].program;
        if (!op.change(p, n)) break;
        places.push_back({s, n});
      }
    const int64_t count = std::min<int64_t>(sites, int64_t(places.size()));
    for (int64_t n = 0; n < count; ++n) {
      const auto [s, site] = places[size_t(n) * places.size() / size_t(count)];
      role::Program p = subjects[s].program;
      op.change(p, site);
      ++m.sites;
      Seen seen = nothing;
      uint64_t seed = 0;
      while (seed < tried && seen == nothing) seen = run(p, subjects[s], seed++);
      if (seen != nothing) {
        ++(seen == fault ? m.simulator : m.value);
        continue;
      }
      while (seed < beyond && seen == nothing) seen = run(p, subjects[s], seed++);
      if (seen == nothing) {
        ++m.equivalent;
      } else {
        ++m.hidden;
        m.missed.push_back(subjects[s].name + ", site " + std::to_string(site));
      }
    }
  }
  return out;
}

} // namespace tang::fuzz
