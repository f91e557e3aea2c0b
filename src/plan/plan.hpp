// Between math and kernels: groups, roles, flush, placement, buffers and donation (docs/semantics.md section
// 8). Every buffer names a node, so that verification can evaluate it.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tang/ir/graph.hpp"
#include "tang/schedule/schedule.hpp"

namespace tang::plan {

using ir::NodeId;
using ir::Port;
using schedule::Role;

enum class Flush : uint8_t {
  store,
  ordered,
  accumulate
}; // once | again by the same workgroup, in order | by several
enum class Place : uint8_t { splice, share, epilogue, buffer };

struct Member {
  NodeId node = 0;
  std::vector<int>
      axis; // of each axis of the node (points, folds): its core axis, or -1: private, whole in the workgroup
  Flush flush = Flush::store;
  bool each_tile = false; // flushes per tile, else after the group's loops
};

// Evaluated once per tile: a short contraction that is never stored.
struct Shared {
  NodeId node = 0;
  std::vector<int> axis; // of each point axis: its core axis
};

// A map, or a fold whose terms are whole in the workgroup, that runs where its operands were finished.
struct Epilogue {
  NodeId node = 0;
  std::vector<int> axis; // of each axis (points, folds): its core axis (grid), or -1: private
};

struct Group {
  std::vector<int64_t> extent; // of each core axis
  std::vector<Role> role;
  std::vector<Member> members;
  std::vector<Shared> shared; // operands before users
  std::vector<Epilogue> epilogues;
};
struct Plan;

struct Step {
  Group group;
  std::optional<NodeId>
      recur; // then the group is empty and `body` is the plan of its step graph: time looped
  std::shared_ptr<const Plan> body;
  bool again = false; // an earlier step has computed it, and something of it was not kept
};

struct Buffer {
  Port of;
  std::vector<int64_t> shape;
  ir::Format format = ir::Format::f32;
  int first = 0, last = 0;          // steps between which it lives
  // Computed again: not held after step `away` and before step `again`. Both -1: held throughout.
  int away = -1, again = -1;
  std::optional<NodeId> overwrites; // the donated state input whose memory it takes
  bool masked = false; // then only points where `when` holds are stored: the others keep the old value
  ir::Id when = 0;     // a term of the graph's pool over the reads and guards of the node
  bool output = false;
  int64_t offset = -1; // bytes into the arena, 64-byte aligned; -1: bound by the caller or an alias
};

// Both are held at some step, or within so many steps of each other.
bool together(const Buffer& a, const Buffer& b, int steps = 0);

struct Plan {
  std::shared_ptr<const ir::Graph> graph; // bound, canonical, supports exposed
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  int64_t arena_bytes = 0;
  std::map<NodeId, ir::Format> states; // folds that keep their state in a narrow format
  std::vector<std::string> notes; // refusals: what was not shared, fused or donated, and why

  const Buffer*
  buffer(Port p) const;        // none: an input, a shared subterm, or a value that never leaves its group
  int64_t bytes_moved() const; // each step's inputs and outputs once: the traffic of the plan as scheduled
  int64_t bytes_of(const Step& s) const;
};

// `g` is bound (no symbols) and canonical; an unbound extent is an Error. The target's costs decide which
// folds share what they read; one CPU thread unless told.
Plan make_plan(const ir::Graph& g, const schedule::Schedule& s,
               const target::Target& t = target::c_target(16, 1));
std::string print(const Plan& p); // canonical text

} // namespace tang::plan
