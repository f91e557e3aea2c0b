// Which form each part of a group takes, and the sizes of its blocks: rules on shapes and the target's data only.
#pragma once
#include <algorithm>

#include "tang/ir/absorb.hpp"
#include "tang/lower/keyed.hpp"
#include "tang/lower/split.hpp"
#include "tang/plan/plan.hpp"

namespace tang::lower {

// A sum that becomes a Contract: the node's axes by role; `batch` axes are one element wide.
struct Contraction {
  Sides sides;                       // factor ids index `factors`
  std::vector<ir::Id> factors;       // of the component's lift, as written; the act of a base is factor -1
  std::vector<int> batch;
  std::vector<int> outer_m, outer_n; // more axes of a side, around its blocked one
  std::optional<ir::Id> when = {};   // a predicate of data that terms live under: the rows' operand is 0 where it fails
};
struct MemberForm {
  enum Kind : uint8_t { map, fold, chunked, keyed } kind = map;
  std::optional<Key> key;                            // of a keyed sum: each term is added where it belongs
  ir::Absorb absorb;                                 // of a chunked fold: fold the base, rescale, add
  std::map<int, Contraction> contractions;           // component -> how it contracts; missing: a plain fold
  std::optional<ir::Format> held;                    // a fold's state, where it is narrow
  bool search = false;                               // a count of sorted keys, which halving finds
  int vector = -1;                                   // the node's axis that lanes run along; -1: the innermost
};
struct Choice {
  std::vector<int64_t> tile;                         // core axis -> elements a block
  std::vector<MemberForm> members, epilogues;        // one each
  std::vector<std::optional<Contraction>> shared;    // one a shared subterm; none: a plain fold
  int lanes = 1, rows = 1, vectors = 1;              // of a contraction's register block
  std::optional<schedule::Pack> pack_b;
  int ways = 4;
  // Grid axes that some member folds are walked: a workgroup loops over their blocks, outermost first, and adds in that
  // order. The blocks of `split` are shared by `parts` workgroups, `part` elements each, whose sums are joined after.
  std::vector<int> walked;
  int split = -1;
  int64_t parts = 1, part = 0;
  bool walks(int core) const { return std::find(walked.begin(), walked.end(), core) != walked.end(); }
  // Workgroups that share a block of this grid axis follow each other, whatever rows they have; -1: in the axes' order.
  int outer = -1;
  std::vector<char> panels;                          // core axes of which a block is whole panels of columns, or all
  std::string text;                                  // for people
  bool panel_ends(size_t core, int64_t extent, int64_t tile) const {  // a block of `tile` ends where a panel does
    return core >= panels.size() || !panels[core] || tile >= extent || tile % columns() == 0;
  }
  int64_t columns() const { return int64_t(lanes) * vectors; }
};
// `fragments`: for a kernel in tensor form, where the weights of a sum are a tile of their own. `rows`: most that a
// workgroup of one lane has, where rows are read again.
Choice choose(ir::Graph& g, const plan::Group& group, const schedule::Schedule& s, const target::Target& t,
              bool fragments = false, int64_t rows = 8);

// Does a block hold less than a looped axis? An axis of nothing is no block either: its loop makes no trip.
bool is_loop(const plan::Group& group, const Choice& c, size_t axis);
// The one looped core axis of the group's pipeline, or -1: every looped axis is whole in a block.
int pipeline_axis(const plan::Group& group, const Choice& c);

}  // namespace tang::lower
