#include "tang/kernel/role_machine.hpp"

#include <algorithm>
#include <cmath>

#include "tang/base/number.hpp"

namespace tang::kernel::role {

// A box of rows of 128 bytes; what lies outside its global is 0 and counts its bytes all the same.
void RoleMachine::landed(const Copy& c) {
  const Map& m = p_.maps[size_t(c.map)];
  const Memory& g = p_.kernel.memories[size_t(m.memory)];
  Workgroup& w = groups_[size_t(c.to)];
  Slot& s = w.slots[size_t(c.ring)][size_t(c.index)];
  const int64_t width = m.box.back(), bytes = expr::row(g.format).bits / 8;
  int64_t lines = 1;
  for (size_t d = 0; d + 1 < m.box.size(); ++d) lines *= m.box[d];
  const int64_t row = width * bytes; // of a box in the slot
  constexpr int64_t at_once = 4; // rows that a subgroup's lanes copy, 16 bytes each; then come the next one's
  for (int64_t r = 0; r < lines; ++r) {
    if (c.team >= 0 && r / at_once % p_.fields.math != c.team) continue;
    for (int64_t x = 0; x < width; ++x) {
      int64_t left = r, at = (c.from.back() + x) * g.strides.back();
      bool inside = c.from.back() + x >= 0 && c.from.back() + x < g.shape.back();
      for (size_t d = m.box.size() - 1; d-- > 0;) {
        const int64_t i = c.from[d] + left % m.box[d] * m.apart[d];
        left /= m.box[d];
        inside &= i >= 0 && i < g.shape[d];
        at += i * g.strides[d];
      }
      const Buffer& from = globals_[size_t(m.memory)];
      const bool real = expr::type_of(g.format) == Type::real;
      s.values[size_t(c.at + r * row + x * bytes)] = !inside ? 0
                                                     : real  ? from.r[size_t(at)]
                                                             : double(from.i[size_t(at)]);
    }
  }
  --s.pending;
  if (c.team >= 0) return; // lanes wait for their groups
  const Ring& r = p_.rings[size_t(c.ring)];
  arrive(w.barriers[size_t(r.full + c.index)], 0, -lines * row, r.cluster);
}

// The fill of that number: what the slot held is gone, and what lies over the ring.
void RoleMachine::begin(Workgroup& g, int ring, int slot, int64_t fill) {
  Slot& s = g.slots[size_t(ring)][size_t(slot)];
  if (s.fills >= fill) return;
  s.fills = fill, ++s.version;
  std::fill(s.values.begin(), s.values.end(), std::nan(""));
  for (size_t r = 0; r < p_.rings.size(); ++r)
    if (p_.rings[r].made && p_.rings[r].cluster)
      for (auto& parts : g.slots[r]) std::fill(parts.values.begin(), parts.values.end(), std::nan(""));
}

// A copy for the whole cluster brings its piece to all workgroups.
void RoleMachine::load(Agent& a, const Load& x) {
  const int64_t piece = x.each ? a.vars[size_t(p_.rank)] * x.each : 0;
  const int depth = p_.rings[size_t(x.ring)].depth;
  for (int g = 0; g < int(groups_.size()); ++g) {
    if (!x.each && g != a.group) continue;
    Copy c{g, x.ring, index(a, x.ring, -x.ahead), x.map, x.at + piece, {}, p_.fields.tall ? a.team : -1, a.committed};
    for (auto& at : x.from) c.from.push_back(value(a, at));
    begin(groups_[size_t(g)], c.ring, c.index, (a.advanced[size_t(x.ring)] + x.ahead) / depth + 1);
    ++groups_[size_t(g)].slots[size_t(c.ring)][size_t(c.index)].pending;
    constexpr int sometimes = 4; // lanes' copies come in any order: one before those that were started first
    if (o_.copies == RoleOptions::early || (p_.fields.tall && o_.seed && random_() % sometimes == 0))
      landed(c);
    else
      copies_.push_back(std::move(c));
  }
}

// A team's lanes waited for all but the last groups of their copies, which come in any order.
void RoleMachine::arrived(const Agent& a, int left) {
  const auto waited = std::stable_partition(copies_.begin(), copies_.end(), [&](const Copy& c) {
    return c.to != a.group || c.team != a.team || c.group >= a.committed - left;
  });
  std::vector<Copy> now(waited, copies_.end());
  copies_.erase(waited, copies_.end());
  if (o_.seed) std::shuffle(now.begin(), now.end(), random_);
  for (const Copy& c : now) landed(c);
}

double* RoleMachine::near(Agent& a, int memory, int64_t at) {
  const auto it = a.near.find(memory);
  if (it == a.near.end() || it->second.slot->pending || !it->second.slot->version) {
    tell(RoleFault::early, "lanes read a vector before it is there");
    return nullptr;
  }
  return &it->second.slot->values[size_t(it->second.at + at * 4)];
}

void RoleMachine::let(Agent& a, const kernel::Let& l) {
  int64_t v = 0;
  if (l.kind == kernel::Let::load) {
    v = points(a).integer(l.ref);
  } else {
    v = value(a, l.operands[0]);
    if (l.kind == kernel::Let::floor_div) v = floor_div(v, l.divisor);
    for (size_t i = 1; i < l.operands.size(); ++i) {
      const int64_t o = value(a, l.operands[i]);
      v = l.kind == kernel::Let::min ? std::min(v, o) : std::max(v, o);
    }
  }
  a.vars[size_t(l.var)] = v;
}

// This team's rows of a slot; what it held is gone.
void RoleMachine::fill(Agent& a, const Fill& x) {
  if (touches_flying(a, {{x.tile}, {}}))
    tell(RoleFault::unfinished, "an operand is made of what a contraction works on");
  Slot& s = slot(a, x.ring);
  ++s.version;
  const auto& from = a.fragments[x.tile];
  const int64_t width = row_bytes / 2;
  for (int64_t r = 0; r < p_.fields.team_rows(); ++r)
    for (int64_t c = 0; c < x.columns; ++c)
      s.values[size_t(x.at + c / width * x.box + (a.team * p_.fields.team_rows() + r) * row_bytes + c % width * 2)] =
          from.at(size_t(r * x.columns + c));
  arrive_at(a, x.ring, true, 0, 4);
}

void RoleMachine::issue(Agent& a, const Issue& x) {
  Flight f{&x, {}, 0, 0};
  auto use = [&](const Window& w, int& at) {
    at = index(a, w.ring);
    Slot& s = slot(a, w.ring);
    if (s.pending || !s.version)
      tell(RoleFault::early, "a contraction reads ring " + p_.rings[size_t(w.ring)].name);
    const Ring& ring = p_.rings[size_t(w.ring)];
    if (p_.fields.tall && s.fills > a.advanced[size_t(w.ring)] / ring.depth + 1)
      tell(RoleFault::overwritten, "a slot is filled again before a contraction reads it");
    f.slots.emplace_back(&s, s.version);
  };
  if (x.a_tile < 0) use(x.a, f.a_index);
  use(x.b, f.b_index);
  for (auto& other : a.flying)
    if (x.a_tile == other.what->dst || (x.dst == other.what->a_tile && x.a_tile >= 0))
      tell(RoleFault::unfinished, "a contraction reads what another works on");
  a.flying.push_back(std::move(f));
  if (p_.fields.tall) finish(a, {0, {}}); // a subgroup's instructions are complete when they are issued
}

double RoleMachine::operand(const Agent& a, const Window& w, int slot, int64_t bytes, int64_t row,
                            int64_t k) {
  const Slot& s = here(a).slots[size_t(w.ring)][size_t(slot)];
  const int64_t terms = 32 / bytes, step = k / terms, in = k % terms, width = row_bytes / bytes;
  int64_t byte = w.at + a.team * w.team + w.steps[size_t(step)] * 16;
  if (w.k_major)
    byte += row * row_bytes + in * bytes;
  else
    byte += row / width * (int64_t(w.lead) * 16) + row % width * bytes + in * row_bytes;
  return s.values[size_t(byte)];
}

void RoleMachine::finish(Agent& a, const Finish& x) {
  while (int(a.flying.size()) > x.left) {
    const Flight f = a.flying.front();
    a.flying.erase(a.flying.begin());
    for (auto& [slot, version] : f.slots)
      if (slot->version != version)
        tell(RoleFault::overwritten, "a slot is filled again while a contraction reads it");
    const Issue& i = *f.what;
    auto& d = a.fragments[i.dst];
    d.resize(size_t(p_.fields.team_rows() * i.n), std::nan(""));
    const int64_t bytes = expr::row(i.format).bits / 8, terms = int64_t(i.b.steps.size()) * 32 / bytes;
    const std::vector<double>* left = i.a_tile >= 0 ? &a.fragments[i.a_tile] : nullptr;
    for (int64_t m = 0; m < p_.fields.team_rows(); ++m)
      for (int64_t n = 0; n < i.n; ++n) {
        double sum = i.fresh ? 0 : d[size_t(m * i.n + n)];
        for (int64_t k = 0; k < terms; ++k)
          sum += (left ? (*left)[size_t(m * terms + k)] : operand(a, i.a, f.a_index, bytes, m + (p_.fields.tall ? p_.first_row(a.team) : 0), k)) *
                 operand(a, i.b, f.b_index, bytes, n + p_.first_column(a.team), k);
        d[size_t(m * i.n + n)] = sum;
      }
  }
}

bool RoleMachine::touches_flying(const Agent& a, const Touched& t) const {
  auto has = [](const std::vector<int>& v, int m) { return std::find(v.begin(), v.end(), m) != v.end(); };
  for (auto& f : a.flying)
    if (has(t.reads, f.what->dst) || has(t.writes, f.what->dst) ||
        (f.what->a_tile >= 0 && has(t.writes, f.what->a_tile)))
      return true;
  return false;
}

void RoleMachine::rows(Agent& a, const Rows& x) {
  const Touched t = touched(x.what);
  if (touches_flying(a, t))
    tell(RoleFault::unfinished, "a statement touches a fragment that a contraction works on");
  for (int m : t.reads)
    if (a.partial.count(m) && !x.late) {
      auto* apply = std::get_if<Apply>(&x.what.node);
      if (!apply || apply->dst[0].memory != m) tell(RoleFault::unsettled, "a part of a fold is read");
    }
  points(a).run(x);
  if (x.late) a.partial.insert(t.writes[0]);
}

void RoleMachine::flush(Agent& a, const Flush& x) {
  Touched t = touched({x.what});
  if (touches_flying(a, t)) tell(RoleFault::unfinished, "a result is stored while a contraction works on it");
  for (int m : t.reads)
    if (a.partial.count(m)) tell(RoleFault::unsettled, "a part of a fold is stored");
  points(a).run({{x.what}, x.row, x.column, false, 1});
  // Boxes are stored whole: what a tile has no columns for is junk that lands beside it.
  const int64_t width = p_.maps[size_t(x.maps[0])].box.back(), whole = ceil_div(x.columns, width) * width;
  if (whole != x.columns && !p_.fields.tall) {
    Apply beside = x.what;
    for (auto& d : beside.dst) d.checked = true;
    beside.bounds = {{variable(x.column) - constant(x.columns), {}}};
    for (auto& axis : beside.axes)
      if (axis.var == x.column) axis.extent = whole;
    beside.body.values.assign(beside.dst.size(), p_.kernel.pool->literal(std::nan("")));
    points(a).run({{beside}, x.row, x.column, false, 1});
  }
  if (x.ring < 0) return;
  Slot& s = slot(a, x.ring);
  a.stores.push_back({&s, s.version});
}

// Each element of the team's rows, once.
void RoleMachine::add(Agent& a, const Add& x) {
  const Touched t = touched({x.what});
  if (touches_flying(a, t)) tell(RoleFault::unfinished, "a result is added while a contraction works on it");
  Apply what = x.what;
  Pool& p = *p_.kernel.pool;
  const Id there = p.leaf(expr::Op::arg, Type::real, int64_t(what.body.refs.size()));
  what.body.refs.push_back(what.dst[0]);
  what.body.values = {p.make(expr::Op::add, {what.body.values[0], there})};
  RowPoints all = points(a);
  for (int64_t c = 0; c < x.columns; ++c) {
    all.at_row(x.column, c);
    all.run({{what}, x.row, -1, false, 1});
  }
}

// Whether this team is the last of its tile; then its fragment is the sum of the parts.
bool RoleMachine::join(Agent& a, const Join& x) {
  if (x.ring >= 0) return share(a, x);
  if (touches_flying(a, {{x.dst}, {}}))
    tell(RoleFault::unfinished, "a part is stored while a contraction works on it");
  auto& mine = parts_[{value(a, x.tile), a.team}];
  mine[a.vars[size_t(p_.part)]] = a.fragments[x.dst];
  if (int(mine.size()) < p_.fields.split) return false;
  std::vector<double> sum(mine.begin()->second.size(), 0.0);
  for (auto& [part, v] : mine)
    for (size_t i = 0; i < v.size(); ++i) sum[i] += v[i];
  a.fragments[x.dst] = sum;
  mine.clear();
  return true;
}

// Whether all math teams of the workgroup are here.
bool RoleMachine::meet(Agent& a) {
  Workgroup& g = here(a);
  if (!a.meeting) {
    a.meeting = g.meetings + 1;
    if (++g.met == p_.fields.math) g.met = 0, ++g.meetings;
  }
  if (g.meetings < a.meeting) return false;
  a.meeting = 0;
  return true;
}

// Parts lie over all other rings: nothing may be on its way into their slots, and no contraction reads them.
void RoleMachine::offer(Agent& a, const Offer& x) {
  if (touches_flying(a, {{x.tile}, {}}))
    tell(RoleFault::unfinished, "a part is stored while a contraction works on it");
  for (size_t r = 0; r < p_.rings.size(); ++r)
    for (auto& s : here(a).slots[r]) {
      if (int(r) == x.ring) continue;
      ++s.version;
      if (s.pending) tell(RoleFault::overwritten, "a part is stored where a copy is on its way to");
    }
  const auto& from = a.fragments[x.tile];
  std::copy(from.begin(), from.end(), slot(a, x.ring).values.begin() + a.team * int64_t(from.size()));
  arrive_at(a, x.ring, true, 0, 4);
}

// The rows of this team that are this workgroup's become the sum of all parts, in order; whether there are any.
bool RoleMachine::share(Agent& a, const Join& x) {
  const int64_t warp_rows = p_.fields.team_rows() / 4, warp = a.team * 4, part = a.vars[size_t(p_.part)];
  auto& mine = a.fragments[x.dst];
  const int64_t columns = int64_t(mine.size()) / p_.fields.team_rows();
  std::vector<int64_t> warps;
  for (int64_t w = 0; w < 4; ++w)
    if (owner(p_.fields, warp + w) == part) warps.push_back(w);
  if (warps.empty()) return false;
  a.from_row = warps.front() * warp_rows, a.to_row = (warps.back() + 1) * warp_rows;
  std::vector<double> sum(mine.size(), std::nan("")); // rows of others are theirs alone
  std::fill(sum.begin() + a.from_row * columns, sum.begin() + a.to_row * columns, 0.0);
  for (auto& g : groups_)
    for (int64_t i = a.from_row * columns; i < a.to_row * columns; ++i)
      sum[size_t(i)] += g.slots[size_t(x.ring)][0].values[size_t(a.team * int64_t(mine.size()) + i)];
  mine = sum;
  return true;
}

} // namespace tang::kernel::role
