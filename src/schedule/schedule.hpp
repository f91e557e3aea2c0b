// Schedules as plain data: how a program runs, unable to touch what it computes. Fields that are not set are
// chosen by the automatic rules.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tang/ir/graph.hpp"
#include "tang/target/roles.hpp"
#include "tang/target/target.hpp"

namespace tang::schedule {

enum class Role : uint8_t { grid, looped };
enum class Pack : uint8_t {
  none,
  tile,
  copy
}; // an operand read in place, staged per block, or laid out once before

// Of one group (one or more kernels); found by the key or the label of any of its members.
struct GroupFields {
  std::map<int, Role> role;         // core axis -> role
  std::map<int, int64_t> tile;      // core axis -> elements a block
  std::optional<bool> stored;       // the member must not be accumulated, nor shared
  // The member joins a group in which some result is added to from several blocks: false never, true wherever
  // that is legal; not set: if it costs less than evaluating again what both read.
  std::optional<bool> joint;
  std::optional<int> parts; // of such a group: workgroups that share the blocks of one axis, joined after
  std::optional<int> rows, vectors; // register block of a contraction: rows x vectors of accumulators
  std::optional<Pack> pack_a, pack_b;
  std::optional<int> ways;  // independent accumulators of a fold
  std::optional<int> split; // parts of the first fold axis that run as workgroups of their own, joined after
  std::optional<ir::Format> store; // in which format a real value that never leaves the program is stored
  // In which format a fold keeps its real state between terms; it then adds term by term, in order.
  std::optional<ir::Format> accumulate;
  std::optional<int> pieces; // as in Schedule, of this group
  std::optional<target::Roles> roles; // of a kernel of matrix instructions; `tile` holds its blocks

  // A narrow state is the member's own: no part of it lies elsewhere, and no reader evaluates it.
  bool is_stored() const { return stored.value_or(false) || accumulate; }

  bool operator==(const GroupFields&) const = default;
};

struct Schedule {
  int64_t short_contraction = 256; // a sum over at most this many terms may be recomputed per tile
  bool share_contractions = true;  // false: every fold is stored (the as-written schedule)
  bool epilogues = true;
  // Bytes of stored values to hold at once: beyond, they may be computed again. 0: all are kept.
  int64_t memory = 0;
  // Steps a chunk of recurrences that are affine in their states (`rewrite::chunk`); 0: step after step.
  int64_t chunk = 0;
  // Of 32-bit operands on matrix instructions: they are taken in so many 16-bit pieces, 2 (16 bits of a
  // value) or 3 (all 24). 0: not at all, products of f32 are ordinary arithmetic.
  int pieces = 0;
  int64_t alignment = 64; // bytes: where a buffer may begin in the arena; a fact of the target
  std::map<std::string, GroupFields> groups;

  bool operator==(const Schedule&) const = default;
};

Schedule as_written(); // one kernel a node, nothing shared: always a candidate

// A name for a node that no other node of a graph has: its label and the head of its structural hash. It
// stays the same while what the node computes does.
std::string key(const ir::Graph& g, ir::NodeId id);
const GroupFields* fields_of(const Schedule& s, const ir::Graph& g, ir::NodeId id); // by key, else by label

// A schedule and what it was made for: the form in which it is kept and replayed.
struct Record {
  uint64_t graph = 0;      // ir::hash of the bound graph as written
  std::string target;      // "c, 16 lanes, 2 threads"
  int kernels = 0;         // how many, and the digest of their names, which are digests of their texts
  std::string digest;
  Schedule schedule;

  bool operator==(const Record&) const = default;
};

} // namespace tang::schedule
