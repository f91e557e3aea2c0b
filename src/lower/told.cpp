#include "tang/lower/told.hpp"

namespace tang::lower {

namespace {
std::string axis_of(const ir::Graph& g, const plan::Group& group, size_t member, int64_t axis) {
  return "axis " + std::to_string(axis) + " of '" + g.label({group.members[member].node, 0}) + "'";
}
} // namespace

void need_single(const ir::Graph& g, const plan::Group& group, const std::vector<char>& one, const Choice& c) {
  for (size_t x = 0; x < one.size(); ++x)
    if (one[x] && c.tile[x] > 1)
      throw Error({}, "the schedule gives " + axis_of(g, group, 0, int64_t(x)) + " a tile of " + std::to_string(c.tile[x]),
                  {{"a contraction of this group takes that axis one element at a time", {}}}, "give it the tile 1");
}

void need_whole_maps(const ir::Graph& g, const plan::Group& group, const Choice& c) {
  for (size_t k = 0; k < group.members.size(); ++k)
    for (int x : c.members[k].kind == MemberForm::map ? group.members[k].axis : std::vector<int>())
      if (x >= 0 && group.role[size_t(x)] == plan::Role::looped && c.tile[size_t(x)] < group.extent[size_t(x)])
        throw Error({}, "the schedule loops over " + axis_of(g, group, k, x) + " in blocks",
                    {{"it is a map: nothing is carried from block to block", {}}}, "put the axis on the grid");
}

void need_columns(const ir::Graph& g, const plan::Group& group, const Choice& c) {
  for (size_t x = 0; x < c.tile.size(); ++x)
    if (!c.panel_ends(x, group.extent[x], c.tile[x]))
      throw Error({}, "the schedule gives " + axis_of(g, group, 0, int64_t(x)) + " a tile of " + std::to_string(c.tile[x]),
                  {{"its register block has " + std::to_string(c.columns()) + " columns", {}}}, "give it a multiple of them, or fewer vectors");
}

} // namespace tang::lower
