// How a tensor-core kernel is divided among warpgroups: schedule fields as plain data.
#pragma once
#include <cstdint>
#include <vector>

namespace tang::target {

enum class Persist : uint8_t { taking_turns, dynamic }; // which block of work a workgroup takes next
// Of the blocks of work; the first rows' first: where their loops are the longest.
enum class WorkOrder : uint8_t { linear, grouped, longest_first, first_rows_first };

// One producer warpgroup copies operands into rings of slots; `math` warpgroups of 64 rows each contract
// them. Or (`tall`) there are no roles: the lanes of `math` subgroups all copy ahead of what they contract, a
// subgroup for `tall` times 16 rows, `across` of them beside each other, each for a share of the columns.
struct Roles {
  int math = 2;
  int tall = 0, across = 1;
  std::vector<int> stages; // slots of each contraction's ring, in body order
  int hoisted = 1;         // slots of an operand that stays for the whole loop
  int skew = 0;            // blocks between the first and the last contraction
  bool turns = false;      // math warpgroups issue contractions one after the other
  bool late = false;       // what rescales the last contraction's result runs between the two issues
  int lag = 1;        // contractions in flight before a slot is given back, where nothing reads the result
  bool reuse = false; // results are staged in the slot of a hoisted operand
  // Of eight neighbouring powers of two of a lane, how many are polynomials on the multiply-add units: where
  // the unit for special functions is the slower one.
  int polynomial = 0;
  // Full blocks and those whose bounds are tested share one loop, in which only what tests them is there
  // twice: where a loop for each would leave too few registers.
  bool one_loop = false;
  // Parts of a sum's loop that are blocks of work of their own: the last team to finish a tile adds them, in
  // order.
  int split = 1;
  // Workgroups that run at once and reach each other's shared memory: the parts of a split loop, which join
  // there; or blocks of work beside each other, where one copy of the operand they have in common arrives
  // at all of them: the rows' operand, or (beneath) blocks under each other and the columns'. 1: none.
  int cluster = 1;
  bool beneath = false;
  Persist persist = Persist::taking_turns;
  WorkOrder order = WorkOrder::linear;
  int group = 8; // blocks of rows (grouped) or of the other grid axes (longest first) in a section
  int producer_registers = 24, math_registers = 240;

  bool operator==(const Roles&) const = default;

  int threads() const { return tall ? 32 * math : 128 * (1 + math); }
  int64_t team_rows() const { return tall ? 16 * tall : 64; }
  int64_t rows() const { return team_rows() * (math / across); } // of a block
};

} // namespace tang::target
