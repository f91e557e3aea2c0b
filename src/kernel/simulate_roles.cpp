#include "tang/kernel/simulate_roles.hpp"

#include <algorithm>
#include <cmath>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/role_machine.hpp"

namespace tang::kernel {

namespace role {

void RoleMachine::workgroup(int number) {
  Workgroup g;
  g.number = number;
  g.barriers.assign(size_t(p_.barrier_count), {});
  for (size_t r = 0; r < p_.rings.size(); ++r) {
    const Ring& ring = p_.rings[r];
    for (int i = 0; i < copies_of(int(r)); ++i) {
      g.barriers[size_t(ring.empty + i)].count = ring.releases;
      if (ring.made) g.barriers[size_t(ring.full + i)].count = ring.releases;
    }
    g.slots.emplace_back(size_t(copies_of(int(r))));
    for (auto& s : g.slots.back()) s.values.assign(size_t(ring.bytes + ring.vector_bytes), std::nan(""));
  }
  g.words.assign(2, {});
  g.turns.assign(size_t(p_.fields.math), 0);
  for (int t = p_.fields.tall ? 0 : -1; t < p_.fields.math; ++t) {
    Agent a;
    a.producer = t < 0, a.team = std::max(0, t), a.group = int(groups_.size());
    a.vars.assign(p_.kernel.vars.size(), 0);
    a.vars[size_t(p_.team)] = a.team, a.to_row = p_.fields.team_rows();
    a.advanced.assign(p_.rings.size(), 0);
    agents_.push_back(std::move(a));
    enter(agents_.back(), t < 0 ? p_.producer : p_.math);
  }
  groups_.push_back(std::move(g));
}

// The workgroups of a cluster run together, their roles in any order.
void RoleMachine::cluster(int first) {
  groups_.clear(), copies_.clear(), agents_.clear();
  for (int g = 0; g < p_.fields.cluster; ++g) workgroup(first + g);
  std::vector<size_t> order(agents_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int64_t n = 0; !fault_; ++n) {
    if (o_.seed) std::shuffle(order.begin(), order.end(), random_);
    bool moved = false, all_over = true;
    for (size_t i : order) {
      // A role runs until it waits, or for a while.
      const int64_t most = o_.seed ? 1 + int64_t(random_() % 40) : o_.step_limit;
      for (int64_t k = 0; k < most && !fault_; ++k) {
        const Step s = step(agents_[i]);
        all_over &= s == over;
        if (s != went) break;
        moved = true;
      }
    }
    if (all_over && copies_.empty()) return;
    if (!moved && !land()) return tell(RoleFault::stuck, "no role can go on");
    if (n > o_.step_limit) return tell(RoleFault::stuck, "no end");
  }
}

bool RoleMachine::land() {
  if (copies_.empty()) return false;
  const size_t which = o_.seed ? random_() % copies_.size() : 0;
  const Copy c = copies_[which];
  copies_.erase(copies_.begin() + int64_t(which));
  landed(c);
  return true;
}

// One statement, or why not.
RoleMachine::Step RoleMachine::step(Agent& a) {
  if (a.stack.empty()) return over;
  Frame& f = a.stack.back();
  if (f.works) return works(a, f);
  if (f.at == f.block->size()) {
    leave(a);
    return went;
  }
  const Stmt& s = (*f.block)[f.at];
  bool stays = false;
  std::visit(Match{[&](const Await& x) { stays = !passes(a, x.ring, x.full); },
                   [&](const Arm& x) {
                     const Ring& ring = p_.rings[size_t(x.ring)];
                     begin(here(a), x.ring, index(a, x.ring), a.advanced[size_t(x.ring)] / ring.depth + 1);
                     arrive(barrier(a, x.ring, true), 1, ring.arrives, ring.cluster);
                   },
                   [&](const Load& x) { load(a, x); },
                   [&](const Commit&) { ++a.committed; },
                   [&](const Arrived& x) { arrived(a, x.left); },
                   [&](const Locate& x) {
                     a.near[x.memory] = {&slot(a, x.ring), x.at};
                   },
                   [&](const Advance& x) { ++a.advanced[size_t(x.ring)]; },
                   [&](const Fill& x) { fill(a, x); },
                   [&](const Release& x) { arrive_at(a, x.ring, false, x.back, 4); },
                   [&](const Issue& x) { issue(a, x); },
                   [&](const Finish& x) { finish(a, x); },
                   [&](const Turn& x) {
                     const int last = p_.fields.math - 1;
                     std::vector<int>& turns = here(a).turns;
                     if (x.kind == Turn::open && a.team == last) ++turns[0];
                     if (x.kind == Turn::give) ++turns[size_t(a.team == last ? 0 : a.team + 1)];
                     if (x.kind == Turn::take && !(stays = !turns[size_t(a.team)])) --turns[size_t(a.team)];
                   },
                   [](const auto&) {}, // a hold on tiles
                   [&](const Meet& x) { stays = x.all && !meet(a); }, // a team of its own always has
                   [&](const Offer& x) { offer(a, x); },
                   [&](const Rows& x) { rows(a, x); },
                   [&](const Settle& x) { a.partial.erase(x.memory); },
                   [&](const Flush& x) { flush(a, x); },
                   [&](const Add& x) { add(a, x); },
                   [&](const Flushed&) {
                     for (auto& st : a.stores)
                       if (st.slot->version != st.version)
                         tell(RoleFault::overwritten, "a slot is filled again while it is stored");
                     a.stores.clear();
                   },
                   [&](const Join& x) {
                     ++f.at, stays = true;
                     if (!join(a, x)) return;
                     enter(a, x.then);
                     a.stack.back().share = x.ring >= 0;
                   },
                   [&](const Let& x) { let(a, x.what); },
                   [&](const Divide& x) {
                     const int64_t v = value(a, x.value), by = std::max<int64_t>(1, value(a, x.divisor));
                     a.vars[size_t(x.quotient)] = v / by, a.vars[size_t(x.remainder)] = v % by;
                   },
                   [&](const Loop& x) {
                     a.vars[size_t(x.v)] = value(a, x.from);
                     const int64_t to = value(a, x.to), v = a.vars[size_t(x.v)];
                     ++f.at, stays = true;
                     if (x.step > 0 ? v >= to : v < to) return;
                     Frame inner{&x.body};
                     inner.loop = &x;
                     a.stack.push_back(inner);
                   },
                   [&](const When& x) {
                     ++f.at, stays = true;
                     const Block& next = value(a, x.at_least_0) >= 0 ? x.then : x.otherwise;
                     if (!next.empty()) enter(a, next);
                   },
                   [&](const Teams& x) {
                     a.vars[size_t(p_.team)] = 0;
                     ++f.at, stays = true;
                     Frame inner{&x.body};
                     inner.teams = true;
                     a.stack.push_back(inner);
                   },
                   [&](const Works& x) {
                     ++f.at, stays = true;
                     Frame inner{nullptr};
                     inner.works = &x, inner.next = here(a).number;
                     a.stack.push_back(inner);
                   }},
             s.node);
  if (!stays) ++a.stack.back().at;
  const bool control = std::get_if<Loop>(&s.node) || std::get_if<When>(&s.node) ||
                       std::get_if<Teams>(&s.node) || std::get_if<Works>(&s.node) ||
                       std::get_if<Join>(&s.node);
  return stays && !control ? waits : went;
}

void RoleMachine::leave(Agent& a) {
  Frame& f = a.stack.back();
  if (f.loop) {
    int64_t& v = a.vars[size_t(f.loop->v)];
    v += f.loop->step;
    const int64_t to = value(a, f.loop->to);
    if (f.loop->step > 0 ? v < to : v >= to) {
      f.at = 0;
      return;
    }
  }
  if (f.teams && ++a.vars[size_t(p_.team)] < p_.fields.math) {
    f.at = 0;
    return;
  }
  if (f.teams) a.vars[size_t(p_.team)] = 0;
  if (f.share) a.from_row = 0, a.to_row = p_.fields.team_rows();
  a.stack.pop_back();
}

// The rounds of a role over blocks of work; the frame's state says what comes next.
RoleMachine::Step RoleMachine::works(Agent& a, Frame& f) {
  const Works& w = *f.works;
  auto go = [&](int state, const Block& b) {
    f.state = state;
    enter(a, b);
    return went;
  };
  if (w.ring < 0) {
    if (f.state == 0) {
      if (f.next >= p_.work) {
        a.stack.pop_back();
        return went;
      }
      a.vars[size_t(w.w)] = f.next, f.next += resident_;
      return go(1, w.decode);
    }
    a.fragments.clear();
    return go(0, w.body);
  }
  if (w.producer) {
    if (f.state == 0) {
      if (!passes(a, w.ring, false)) return waits;
      a.vars[size_t(w.w)] = f.next;
      return go(1, w.decode);
    }
    auto& words = here(a).words[size_t(index(a, w.ring))];
    words = {f.next < p_.work};
    for (auto& g : p_.kernel.grid) words.push_back(a.vars[size_t(g.var)]);
    arrive(barrier(a, w.ring, true), 1, 0);
    ++a.advanced[size_t(w.ring)];
    if (f.next >= p_.work) {
      a.stack.pop_back();
      return went;
    }
    f.next = counter_++ + resident_;
    return go(0, w.body);
  }
  if (!passes(a, w.ring, true)) return waits;
  const auto words = here(a).words[size_t(index(a, w.ring))];
  arrive(barrier(a, w.ring, false), 4, 0);
  ++a.advanced[size_t(w.ring)];
  if (!words[0]) {
    a.stack.pop_back();
    return went;
  }
  for (size_t g = 0; g < p_.kernel.grid.size(); ++g) a.vars[size_t(p_.kernel.grid[g].var)] = words[g + 1];
  a.fragments.clear();
  return go(0, w.body);
}

} // namespace role

std::optional<RoleFault> simulate_roles(const role::Program& p, std::vector<Buffer>& globals,
                                        const RoleOptions& o) {
  return role::RoleMachine(p, globals, o).run();
}

} // namespace tang::kernel
