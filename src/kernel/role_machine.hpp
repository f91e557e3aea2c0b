// The roles of one workgroup at work: program counters, barriers, slots, copies and contractions on their
// way.
#pragma once
#include <map>
#include <random>
#include <set>

#include "tang/base/number.hpp"
#include "tang/kernel/role_points.hpp"
#include "tang/kernel/simulate_roles.hpp"

namespace tang::kernel::role {

inline constexpr int64_t row_bytes = 128;

// Arrivals and bytes of one phase; `phase` counts the completed ones.
struct Barrier {
  int count = 1, arrived = 0;
  int64_t bytes = 0;
  int64_t phase = 0;
};

struct Slot {
  int64_t version = 0;        // of its contents; fills begin a new one
  int64_t fills = 0;          // that began
  int pending = 0;            // copies on their way
  std::vector<double> values; // at the byte where each begins
};

struct Copy {
  int to; // workgroup of the cluster
  int ring, index, map;
  int64_t at;
  std::vector<int64_t> from;
  int team = -1;     // whose lanes copy, a share of the box; -1: a unit of its own, all
  int64_t group = 0; // of that team's copies
};

struct Flight { // an issued contraction
  const Issue* what;
  std::vector<std::pair<Slot*, int64_t>> slots; // and their versions at issue
  int a_index = 0, b_index = 0;
};

struct Near { // a staged vector
  Slot* slot;
  int64_t at;
};

struct Store { // a flush on its way out of a slot
  Slot* slot;
  int64_t version;
};

struct Frame {
  const Block* block;
  size_t at = 0;
  const Loop* loop = nullptr;
  const Works* works = nullptr;
  bool teams = false;
  bool share = false; // of a team's rows
  int state = 0; // of works
  int64_t next = 0;
};

struct Agent {
  bool producer = false;
  int team = 0, group = 0; // which workgroup of the cluster
  int64_t meeting = 0;     // that it waits for
  int64_t committed = 0;               // groups of copies
  int64_t from_row = 0, to_row = 0;    // its own for now
  std::vector<int64_t> vars, advanced; // by variable; by ring
  std::vector<Frame> stack;
  std::vector<Flight> flying;
  std::vector<Store> stores;
  std::map<int, std::vector<double>> fragments; // [rows of a team, columns]
  std::set<int> partial;
  std::map<int, Near> near;
};

// What a workgroup has.
struct Workgroup {
  int number = 0;
  std::vector<Barrier> barriers;
  std::vector<std::vector<Slot>> slots;
  std::vector<std::vector<int64_t>> words; // of the work ring's slots
  std::vector<int> turns;                  // gifts that wait for each team
  int met = 0;                             // teams that wait for the others
  int64_t meetings = 0;
};

class RoleMachine {
public:
  RoleMachine(const Program& p, std::vector<Buffer>& globals, const RoleOptions& o)
      : p_(p), globals_(globals), o_(o), random_(o.seed) {}

  std::optional<RoleFault> run() {
    const int n = int(ceil_div(o_.workgroups, p_.fields.cluster));
    resident_ = n * p_.fields.cluster;
    for (int c = 0; c < n && !fault_; ++c) cluster((o_.reverse ? n - 1 - c : c) * p_.fields.cluster);
    return fault_;
  }

private:
  enum Step { went, waits, over };

  void tell(RoleFault::Kind k, const std::string& text) {
    if (!fault_) fault_ = RoleFault{k, text};
  }

  int copies_of(int ring) const {
    return p_.rings[size_t(ring)].depth * (p_.rings[size_t(ring)].own ? p_.fields.math : 1);
  }

  int index(const Agent& a, int ring, int64_t back = 0) const {
    const Ring& r = p_.rings[size_t(ring)];
    const int s = int(floor_mod(a.advanced[size_t(ring)] - back, r.depth));
    return r.own ? s * p_.fields.math + int(a.vars[size_t(p_.team)]) : s;
  }

  Workgroup& here(const Agent& a) { return groups_[size_t(a.group)]; }

  Slot& slot(const Agent& a, int ring) { return here(a).slots[size_t(ring)][size_t(index(a, ring))]; }

  Barrier& barrier(const Agent& a, int ring, bool full, int64_t back = 0) {
    const Ring& r = p_.rings[size_t(ring)];
    return here(a).barriers[size_t((full ? r.full : r.empty) + index(a, ring, back))];
  }

  // Waits of phase `lap` of the slot: its parity is all that the machine compares.
  bool passes(const Agent& a, int ring, bool full) {
    const int64_t lap = a.advanced[size_t(ring)] / p_.rings[size_t(ring)].depth,
                  parity = (lap & 1) ^ (full ? 0 : 1);
    return (barrier(a, ring, full).phase & 1) != parity;
  }

  // Of a copy that a cluster shares some bytes may come before their workgroup expects them.
  void arrive(Barrier& b, int n, int64_t bytes, bool early = false) {
    b.arrived += n, b.bytes += bytes;
    if (b.arrived > b.count || (b.bytes < 0 && !(early && b.arrived < b.count)))
      tell(RoleFault::uncounted,
           "a barrier of " + std::to_string(b.count) + " arrivals has " + std::to_string(b.arrived));
    if (b.arrived == b.count && b.bytes == 0) b.arrived = 0, ++b.phase;
  }

  int64_t value(const Agent& a, const Affine& x) const {
    int64_t v = x.c;
    for (auto& [var, k] : x.terms) v += k * a.vars[size_t(var)];
    return v;
  }

  // At the ring's barrier, in every workgroup that the ring is for.
  void arrive_at(const Agent& a, int ring, bool full, int64_t back, int n) {
    const Ring& r = p_.rings[size_t(ring)];
    const size_t at = size_t((full ? r.full : r.empty) + index(a, ring, back));
    for (size_t g = 0; g < groups_.size(); ++g)
      if (r.cluster || int(g) == a.group) arrive(groups_[g].barriers[at], n, 0);
  }

  void cluster(int first);
  void workgroup(int number);
  void load(Agent& a, const Load& x);
  void begin(Workgroup& g, int ring, int slot, int64_t fill);
  void offer(Agent& a, const Offer& x);
  bool meet(Agent& a);
  bool share(Agent& a, const Join& x);
  Step step(Agent& a);
  Step works(Agent& a, Frame& f);
  void leave(Agent& a);

  void enter(Agent& a, const Block& b) { a.stack.push_back({&b}); }

  bool land(); // the oldest copy, or one at random
  void arrived(const Agent& a, int left);
  void landed(const Copy& c);
  void let(Agent& a, const kernel::Let& l);
  void fill(Agent& a, const Fill& x);
  void issue(Agent& a, const Issue& x);
  void finish(Agent& a, const Finish& x);
  double operand(const Agent& a, const Window& w, int slot, int64_t bytes, int64_t row, int64_t k);
  void rows(Agent& a, const Rows& x);
  void flush(Agent& a, const Flush& x);
  void add(Agent& a, const Add& x);
  bool join(Agent& a, const Join& x);
  bool touches_flying(const Agent& a, const Touched& t) const;

  RowPoints points(Agent& a) {
    return RowPoints{p_.kernel,
                     globals_,
                     a.fragments,
                     a.vars,
                     p_.fields.team_rows(),
                     p_.first_row(a.team),
                     p_.first_column(a.team),
                     a.from_row,
                     a.to_row,
                     [this](const std::string& s) { tell(RoleFault::outside, s); },
                     [this, &a](int memory, int64_t at) { return near(a, memory, at); }};
  }

  double* near(Agent& a, int memory, int64_t at);

  const Program& p_;
  std::vector<Buffer>& globals_;
  const RoleOptions& o_;
  std::mt19937_64 random_;
  std::vector<Workgroup> groups_; // of the cluster at work
  std::vector<Copy> copies_;
  std::vector<Agent> agents_;
  int64_t counter_ = 0;
  std::map<std::pair<int64_t, int>, std::map<int64_t, std::vector<double>>>
      parts_; // of (tile, team), by part
  int resident_ = 1; // workgroups
  std::optional<RoleFault> fault_;
};

} // namespace tang::kernel::role
