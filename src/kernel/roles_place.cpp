#include "tang/kernel/expander.hpp"

namespace tang::kernel::role {

namespace {
// Registers a thread that a launch of so many threads is given at most; setmaxnreg deals from that pool.
int64_t register_pool(int threads) { return 65536 / threads / 8 * 8 * (threads / 128); }
} // namespace

int Expander::map_for(int memory, std::vector<int64_t> box) {
  for (size_t m = 0; m < p_.maps.size(); ++m)
    if (p_.maps[m].memory == memory && p_.maps[m].box == box) return int(m);
  p_.maps.push_back({memory, std::move(box)});
  return int(p_.maps.size()) - 1;
}

std::optional<std::string> Expander::place() {
  rings_of_.assign(parts_.tiles.size(), -1);
  offset_.assign(parts_.tiles.size(), 0);
  auto add = [&](const std::string& name, std::vector<int> tiles, int depth, bool own) {
    for (int t : tiles) rings_of_[size_t(t)] = int(p_.rings.size());
    p_.rings.push_back({name, depth, own, 0, 0, 0, 0, 4 * (own ? 1 : f_.math)});
    ring_tiles_.push_back(std::move(tiles));
    return int(p_.rings.size()) - 1;
  };
  for (size_t t = 0; t < parts_.tiles.size(); ++t) {
    const StagedTile& x = parts_.tiles[t];
    if (!x.hoisted) continue;
    bool rows = false; // it holds the teams' own rows
    for (auto& c : parts_.contracts) rows |= c.a == int(t);
    for (auto& c : parts_.contracts)
      if (rows && (c.b == int(t) || !c.a_k_major)) return "a hoisted operand of rows has its terms apart";
    add(k_.memories[size_t(x.memory)].name, {int(t)}, rows ? f_.hoisted : 1, rows);
  }
  size_t depth = 0;
  for (auto& c : parts_.contracts) {
    std::vector<int> mine;
    for (int t : {c.a, c.b})
      if (t >= 0 && rings_of_[size_t(t)] < 0) mine.push_back(t);
    if (mine.empty()) {
      contract_ring_.push_back(-1);
      continue;
    }
    if (depth >= f_.stages.size())
      return "the schedule names no ring depth for contraction " + std::to_string(depth);
    contract_ring_.push_back(
        add("c" + std::to_string(contract_ring_.size()), mine, f_.stages[depth++], false));
  }
  int64_t at = 0;
  int bars = 0;
  for (size_t r = 0; r < p_.rings.size(); ++r) {
    Ring& ring = p_.rings[r];
    const int copies = ring.depth * (ring.own ? f_.math : 1);
    for (int t : ring_tiles_[r]) offset_[size_t(t)] = ring.bytes, ring.bytes += bytes(t);
    ring.at = at, at += ring.bytes * copies;
    ring.full = bars, ring.empty = bars + copies, bars += 2 * copies;
  }
  p_.staging = at;
  if (!f_.reuse) at += f_.math * 2 * atom * line;
  if (f_.persist == target::Persist::dynamic) {
    work_ring_ = int(p_.rings.size());
    p_.rings.push_back({"work", 2, false, 0, 0, bars, bars + 2, 4 * f_.math});
    ring_tiles_.push_back({});
    bars += 4;
  }
  p_.barriers = at, p_.barrier_count = bars;
  p_.words = at + 8 * bars;
  p_.shared_bytes = p_.words + 2 * 4 * int64_t(k_.grid.size() + 1) + 4 * f_.math +
                    box_alignment; // the dynamic base is aligned by hand
  if (p_.shared_bytes > limit_)
    return "it needs " + std::to_string(p_.shared_bytes) + " bytes of shared memory";
  for (size_t t = 0; t < parts_.tiles.size(); ++t) {
    const StagedTile& x = parts_.tiles[t];
    std::vector<int64_t> box;
    for (auto& c : x.source.index)
      box.push_back(coefficient(c.affine, x.column) ? box_columns(x)
                    : coefficient(c.affine, x.row)  ? slot_rows(int(t))
                                                    : 1);
    map_of_.push_back(map_for(x.source.memory, box));
  }
  return {};
}

std::string Expander::roles_refuse() const {
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
  if (parts_.contracts.size() != 1 || parts_.pipe->body.size() != 1 || segments_.size() != 1 || all.partial ||
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
  p_.tiles = workgroups(k_), p_.part_values = atom * parts_.contracts[0].columns;
  const Var from = fresh("from"), to = fresh("to");
  put(part_, role::Let{kernel::Let{
                 from, kernel::Let::affine, {all.begin + variable(p_.part, each * step())}, 1, {}}});
  put(part_, role::Let{kernel::Let{
                 to, kernel::Let::min, {variable(from) + constant(each * step()), all.end}, 1, {}}});
  segments_ = {{variable(from), variable(to), false}};
  return "";
}

std::string Expander::fields_refuse() const {
  int64_t held = 0;
  for (auto& m : k_.memories)
    if (m.home == Home::fragment) {
      const FragmentShape s = fragment_shape(m);
      held += s.columns == 1 ? 2 : s.columns / 2 * expr::row(m.format).bits / 32;
    }
  if (held + 24 > f_.math_registers) return "fragments take " + std::to_string(held) + " registers of a lane";
  const size_t n = parts_.contracts.size();
  if (f_.skew && (n != 2 || contract_ring_[0] < 0 || contract_ring_[1] < 0))
    return "skew is between two contractions with rings";
  if (f_.turns && f_.math < 2) return "turns need two math warpgroups";
  if (f_.reuse && (p_.rings.empty() || !p_.rings[0].own))
    return "no slot of a hoisted operand to stage results in";
  if (f_.skew && !parts_.pipe->reverse) return "skewed blocks run from the last to the first";
  return "";
}

} // namespace tang::kernel::role
