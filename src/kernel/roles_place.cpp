#include "tang/kernel/expander.hpp"

#include <algorithm>

#include "tang/expr/effort.hpp"

namespace tang::kernel::role {

namespace {
// Registers a thread that a launch of so many threads is given at most; setmaxnreg deals from that pool.
int64_t register_pool(int threads) { return 65536 / threads / 8 * 8 * (threads / 128); }

int64_t round_up(int64_t v, int64_t to) { return ceil_div(v, to) * to; }
} // namespace

// Rows of a sum's side that do not exist are not copied: what they hold reaches results that are not stored.
// Rows of terms are 0 instead, and so are those of a program that reads its contractions' results.
int64_t Expander::box_rows(int tile) const {
  const StagedTile& x = parts_.tiles[size_t(tile)];
  const int64_t slot = slot_rows(tile);
  if (x.row.size() != 1 || x.made) return slot;
  if (parts_.contracts.size() != 1 || parts_.pipe->body.size() != 1) return slot;
  const ContractParts& c = parts_.contracts[0];
  if ((c.a == tile && !c.a_k_major) || (c.b == tile && !c.b_k_major)) return slot;
  for (size_t d = 0; d < x.source.index.size(); ++d) {
    const Affine& at = x.source.index[d].affine;
    const int64_t apart = coefficient(at, x.row[0].var);
    if (!apart) continue;
    if (apart != 1) return slot;
    const bool onward =
        at.c >= 0 && std::all_of(at.terms.begin(), at.terms.end(), [](auto& t) { return t.second > 0; });
    return onward ? std::min(slot, k_.memories[size_t(x.source.memory)].shape[d]) : slot;
  }
  return slot;
}

int Expander::map_for(Map m) {
  if (m.apart.empty()) m.apart.assign(m.box.size(), 1);
  const auto known = std::find(p_.maps.begin(), p_.maps.end(), m);
  if (known != p_.maps.end()) return int(known - p_.maps.begin());
  p_.maps.push_back(std::move(m));
  return int(p_.maps.size()) - 1;
}

int Expander::add_ring(const std::string& name, std::vector<int> tiles, int depth, bool own) {
  for (int t : tiles) rings_of_[size_t(t)] = int(p_.rings.size());
  Ring ring;
  ring.name = name, ring.depth = depth, ring.own = own;
  ring.releases = 4 * (own ? 1 : f_.math);
  ring.cluster = std::find(tiles.begin(), tiles.end(), shared_) != tiles.end() && shared_ >= 0;
  if (ring.cluster) ring.releases *= f_.cluster;
  p_.rings.push_back(std::move(ring));
  ring_tiles_.push_back(std::move(tiles));
  return int(p_.rings.size()) - 1;
}

// A ring a hoisted operand; one for what a contraction is the first to read. Vectors travel with the operands
// that stay the longest.
std::optional<std::string> Expander::rings() {
  rings_of_.assign(parts_.tiles.size(), -1);
  for (size_t t = 0; t < parts_.tiles.size(); ++t) {
    const StagedTile& x = parts_.tiles[t];
    if (!x.hoisted) continue;
    bool rows = false; // it holds the teams' own rows, and no team reads another's
    for (auto& c : parts_.contracts) rows |= c.a == int(t);
    if (rows && x.row.size() != 1) return "a hoisted operand's rows have several axes";
    for (auto& c : parts_.contracts) rows &= c.b != int(t) && (c.a != int(t) || c.a_k_major);
    rows &= !f_.tall;
    add_ring(k_.memories[size_t(x.memory)].name, {int(t)}, rows ? f_.hoisted : 1, rows);
  }
  size_t depth = 0;
  std::map<int, size_t> last; // contraction that reads a ring last
  for (size_t i = 0; i < parts_.contracts.size(); ++i) {
    const ContractParts& c = parts_.contracts[i];
    std::vector<int> mine;
    for (int t : {c.a, c.b})
      if (t >= 0 && rings_of_[size_t(t)] < 0) mine.push_back(t);
    if (!mine.empty() && depth >= f_.stages.size())
      return "the schedule names no ring depth for contraction " + std::to_string(depth);
    contract_ring_.push_back(
        mine.empty() ? -1 : add_ring("c" + std::to_string(i), mine, f_.stages[depth++], false));
    for (int t : mine)
      if (parts_.tiles[size_t(t)].made) {
        if (mine.size() > 1) return "a slot is filled by the producer and by the teams";
        p_.rings.back().made = true;
      }
    for (int t : {c.a, c.b})
      if (t >= 0 && !parts_.tiles[size_t(t)].hoisted) last[rings_of_[size_t(t)]] = i;
  }
  for (size_t t = 0; t < parts_.tiles.size(); ++t) {
    if (!parts_.tiles[t].vector) continue;
    const auto with = ring_of_vector(parts_.tiles[t].memory, last);
    if (!with) return "a vector goes with no operand";
    rings_of_[t] = *with;
    ring_tiles_[size_t(*with)].push_back(int(t));
  }
  closes_.resize(parts_.contracts.size());
  for (auto& [ring, i] : last) closes_[i].push_back(ring);
  return {};
}

// The ring that is there before the vector's first reader and stays until after its last: a contraction that
// is issued later has waited for all lanes. One that would be given back earlier stays longer.
std::optional<int> Expander::ring_of_vector(int memory, std::map<int, size_t>& last) const {
  size_t issued = 0, first = 0, until = 0; // contractions before the first reader; that after the last
  bool read = false;
  for (auto& s : parts_.pipe->body) {
    issued += std::get_if<Contract>(&s.node) != nullptr;
    const Touched t = touched(s);
    if (std::find(t.reads.begin(), t.reads.end(), memory) == t.reads.end()) continue;
    if (!read) first = issued;
    read = true, until = issued;
  }
  if (until >= parts_.contracts.size()) return {}; // nothing is issued after its last reader
  std::optional<int> out;
  for (size_t i = 0; i < first; ++i)
    if (const int r = contract_ring_[i]; r >= 0 && (!out || last[r] > last[*out])) out = r;
  if (out) last[*out] = std::max(last[*out], until);
  return out;
}

std::optional<std::string> Expander::place() {
  if (const auto why = rings()) return why;
  offset_.assign(parts_.tiles.size(), 0);
  int64_t at = 0;
  int bars = 0;
  for (size_t r = 0; r < p_.rings.size(); ++r) {
    Ring& ring = p_.rings[r];
    const int copies = ring.depth * (ring.own ? f_.math : 1);
    for (int t : ring_tiles_[r]) {
      const StagedTile& x = parts_.tiles[size_t(t)];
      ring.arrives += x.vector ? bytes(t) : box_rows(t) * boxes(x) * line;
    }
    for (int t : ring_tiles_[r])
      if (!parts_.tiles[size_t(t)].vector) offset_[size_t(t)] = ring.bytes, ring.bytes += bytes(t);
    for (int t : ring_tiles_[r])
      if (parts_.tiles[size_t(t)].vector)
        offset_[size_t(t)] = ring.bytes + ring.vector_bytes, ring.vector_bytes += round_up(bytes(t), line);
    ring.at = at, at += ring.bytes * copies;
    ring.full = bars, ring.empty = bars + copies, bars += 2 * copies;
  }
  p_.staging = at;
  if (!f_.reuse) at += f_.math * (f_.tall ? warp_rows : 2 * atom) * line;
  for (Ring& ring : p_.rings) ring.vectors = at, at += ring.depth * ring.vector_bytes;
  if (f_.persist == target::Persist::dynamic) {
    work_ring_ = add_ring("work", {}, 2, false);
    Ring& ring = p_.rings.back();
    ring.full = bars, ring.empty = bars + 2, bars += 4;
  }
  if (joins_in_cluster()) {
    if (const std::string why = join_in_cluster(); !why.empty()) return why;
    p_.rings.back().full = bars, p_.rings.back().empty = bars + 1, bars += 2;
  }
  p_.barriers = at, p_.barrier_count = bars;
  p_.words = at + 8 * bars;
  p_.shared_bytes = p_.words + 2 * 4 * int64_t(k_.grid.size() + 1) + 4 * f_.math +
                    box_alignment; // the dynamic base is aligned by hand
  if (p_.shared_bytes > limit_)
    return "it needs " + std::to_string(p_.shared_bytes) + " bytes of shared memory";
  for (size_t t = 0; t < parts_.tiles.size(); ++t) {
    const StagedTile& x = parts_.tiles[t];
    if (x.made) {
      map_of_.push_back(-1);
      continue;
    }
    Map m{x.source.memory, {}, x.vector, {}};
    for (auto& c : x.source.index) {
      m.box.push_back(!coefficient(c.affine, x.column) ? 1 : x.vector ? x.columns : box_columns(x));
      m.apart.push_back(1);
      for (auto& row : x.row)
        if (const int64_t apart = coefficient(c.affine, row.var))
          m.box.back() = x.row.size() == 1 ? box_rows(int(t)) : row.extent, m.apart.back() = apart;
      if (int(t) == shared_ && coefficient(c.affine, x.row[0].var)) m.box.back() /= f_.cluster;
    }
    map_of_.push_back(map_for(std::move(m)));
  }
  return {};
}

std::string Expander::roles_refuse() const {
  if (f_.tall) return subgroups_refuse();
  if (parts_.rows != atom * f_.math)
    return "blocks have " + std::to_string(parts_.rows) + " rows for " + std::to_string(f_.math) +
           " warpgroups of 64";
  if (f_.producer_registers % 8 || f_.math_registers % 8) return "registers of a role are a multiple of 8";
  if (f_.producer_registers + f_.math * f_.math_registers > register_pool(f_.threads()))
    return "the roles ask for more registers than the launch has"; // they would wait forever
  return "";
}

// Each part of a split loop is a run of its blocks. Legal where the loop is one sum that starts at 0.
std::string Expander::split() {
  const Segment all = segments_[0];
  if (!parts_.outer.empty() || parts_.contracts.size() != 1 || parts_.pipe->body.size() != 1 ||
      segments_.size() != 1 || all.partial ||
      !(all.end - all.begin).terms.empty())
    return "only the loop of one sum can be split";
  for (auto& s : parts_.starts) {
    auto* a = std::get_if<Apply>(&s.node);
    const expr::Term& v = (*k_.pool)[a->body.values[0]];
    if (v.op != expr::Op::literal || v.r != 0) return "a split sum does not start at 0";
  }
  const int64_t blocks = ceil_div((all.end - all.begin).c, step()), each = ceil_div(blocks, f_.split);
  if ((f_.split - 1) * each >= blocks) return "a part of the loop is empty";
  if (f_.persist == target::Persist::dynamic) return "split loops take turns";
  p_.part = fresh("part"), tile_ = fresh("tile");
  p_.rank = p_.part;
  p_.part_values = atom * parts_.contracts[0].columns;
  if (f_.cluster == 1) p_.tiles = workgroups(k_); // that join in memory
  const Var from = fresh("from"), to = fresh("to");
  put(part_, role::Let{kernel::Let{
                 from, kernel::Let::affine, {all.begin + variable(p_.part, each * step())}, 1, {}}});
  put(part_, role::Let{kernel::Let{
                 to, kernel::Let::min, {variable(from) + constant(each * step()), all.end}, 1, {}}});
  segments_ = {{variable(from), variable(to), false}};
  return "";
}

// Registers of a lane that the fragments take at most: of those that some statement before wrote and one
// after reads; what a statement makes of a tile takes the tile's place, element by element. A skewed loop has
// two blocks of everything. `over`: contractions of the block before, whose fragments stay until the first
// wait.
int64_t Expander::held(const std::vector<Flying>& over) const {
  auto size = [&](int m) {
    const Memory& x = k_.memories[size_t(m)];
    const FragmentShape s = fragment_shape(x);
    return s.columns == 1 ? 2 : s.columns / 2 * expr::row(x.format).bits / 32;
  };
  std::map<int, std::pair<size_t, size_t>> life; // of the loop's own fragments: first and last statement
  const kernel::Block& body = parts_.pipe->body;
  size_t wait = 0;
  while (wait < body.size() && std::get_if<Contract>(&body[wait].node)) ++wait;
  for (size_t i = 0; i < body.size(); ++i) {
    const Touched t = touched(body[i]);
    auto* c = std::get_if<Contract>(&body[i].node);
    for (auto* list : {&t.reads, &t.writes})
      for (int m : *list)
        life.try_emplace(m, i, i).first->second.second = c && c->a.memory == m ? body.size() : i;
  }
  for (auto* b : {&parts_.starts, &parts_.finish})
    for (auto& s : *b) {
      const Touched t = touched(s);
      for (auto* list : {&t.reads, &t.writes})
        for (int m : *list) life.erase(m);
    }
  int64_t always = 0, most = 0;
  for (size_t m = 0; m < k_.memories.size(); ++m)
    if (k_.memories[m].home == Home::fragment && (f_.skew || !life.count(int(m)))) always += size(int(m));
  for (size_t i = 0; i <= body.size() && !f_.skew; ++i) {
    int64_t now = 0;
    for (auto& [m, l] : life)
      if (k_.memories[size_t(m)].home == Home::fragment && l.first < i && l.second >= i) now += size(m);
    for (auto& x : over)
      if (const ContractParts& c = parts_.contracts[x.contract]; i <= wait && c.a < 0)
        now += size(c.node->a.memory);
    most = std::max(most, now);
  }
  return always + most;
}

// Registers of a lane beside its fragments: what a statement's elementary functions and further results are made
// of stays until all are complete. A skewed loop counts all its fragments, most of which are idle then.
int64_t Expander::spare() const {
  constexpr int64_t each = 16, most_each = 2; // of a function after the first; a further result is worth more
  int64_t most = 0;
  for (auto& s : parts_.pipe->body) {
    auto* a = std::get_if<Apply>(&s.node);
    if (!a || f_.skew) continue;
    int64_t more = -1 + (most_each + 1) * int64_t(a->dst.size() - 1);
    for (Id id : expr::schedule(*k_.pool, a->body.values)) more += expr::effort((*k_.pool)[id].op) > 1;
    most = std::max(most, std::min(more, most_each));
  }
  return spare_registers + each * most;
}

std::string Expander::fields_refuse() const {
  if (f_.tall) return slots_refuse();
  if (const int64_t n = held({}); n + spare() > f_.math_registers)
    return "fragments take " + std::to_string(n) + " registers of a lane";
  const size_t n = parts_.contracts.size();
  if (sums_integers() && (f_.skew || !is_one_sum())) return "integers are summed in the loop of one sum";
  if (f_.skew && (n != 2 || contract_ring_[0] < 0 || contract_ring_[1] < 0))
    return "skew is between two contractions with rings";
  if (f_.turns && f_.math < 2) return "turns need two math warpgroups";
  if (f_.reuse && (p_.rings.empty() || !p_.rings[0].own))
    return "no slot of a hoisted operand to stage results in";
  if (f_.skew && !parts_.outer.empty()) return "skew is over one loop";
  if (f_.reuse && parts_.finish.size() > 1 && parts_.contracts.size() > 2)
    return "several results are staged one after the other";
  if (f_.skew && !parts_.pipe->reverse) return "skewed blocks run from the last to the first";
  return "";
}

} // namespace tang::kernel::role
