#include <algorithm>

#include "tang/kernel/expander.hpp"

// What the workgroups of a cluster have in common: parts of one loop that join in their shared memory, or copies that
// arrive at all of them.
namespace tang::kernel::role {

// The grid's variables that move a tile's window, by more than one element a block. Of several that move it along one
// dimension, those that have one block do not.
std::vector<size_t> Expander::grid_axes_of(int tile) const {
  std::vector<size_t> out;
  for (auto& c : parts_.tiles[size_t(tile)].source.index) {
    std::vector<size_t> here, moving;
    for (size_t g = 0; g < k_.grid.size(); ++g) {
      const int64_t apart = coefficient(c.affine, k_.grid[g].var) * k_.grid[g].step;
      if (apart > 1 || apart < -1) here.push_back(g);
    }
    for (size_t g : here)
      if (k_.grid[g].extent > k_.grid[g].step) moving.push_back(g);
    const auto& those = here.size() > 1 && !moving.empty() ? moving : here;
    out.insert(out.end(), those.begin(), those.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// A ring of one slot for the parts of a loop. It lies over all other rings: their slots are read by then, and the
// producer waits until the parts are.
std::string Expander::join_in_cluster() {
  if (f_.cluster != f_.split) return "a cluster has as many workgroups as the loop has parts";
  if (f_.reuse) return "parts and results would be staged in the same slots";
  parts_ring_ = add_ring("parts", {}, 1, false);
  Ring& ring = p_.rings.back();
  ring.made = ring.cluster = true;
  ring.releases *= f_.cluster;
  ring.bytes = atom * f_.math * parts_.contracts[0].columns * 4;
  if (ring.bytes > p_.staging) return "the parts of a loop do not fit into the slots of its operands";
  return "";
}

// The tile that the workgroups of a cluster have in common, each of which copies as many of its rows; and the axis of
// the grid along which their blocks lie.
std::string Expander::share() {
  if (f_.cluster == 1 || f_.split > 1) return "";
  if (parts_.contracts.size() != 1 || f_.persist == target::Persist::dynamic)
    return "copies are shared in the loop of one sum whose blocks take turns";
  const ContractParts& c = parts_.contracts[0];
  const int tile = f_.beneath ? c.b : c.a, other = f_.beneath ? c.a : c.b;
  if (tile < 0 || other < 0) return "a shared operand is not copied";
  const StagedTile& t = parts_.tiles[size_t(tile)];
  if (t.hoisted || t.row.size() != 1 || t.rows % (8 * f_.cluster))
    return "a shared operand has no rows for each workgroup";
  const auto here = grid_axes_of(tile), along = grid_axes_of(other);
  if (along.size() != 1 || std::count(here.begin(), here.end(), along[0]))
    return "no blocks have an operand in common";
  const GridAxis& g = k_.grid[along[0]];
  if (ceil_div(g.extent, g.step) % f_.cluster) return "blocks are no multiple of a cluster";
  rings_of_.assign(parts_.tiles.size(), -1);
  if (box_rows(tile) != t.rows) return "a shared operand is not copied whole";
  shared_ = tile, shared_axis_ = int(along[0]), p_.rank = fresh("rank");
  return "";
}

} // namespace tang::kernel::role
