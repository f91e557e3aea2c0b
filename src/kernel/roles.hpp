// Role programs: a Pipeline on a chip with bulk copies, barriers that count bytes and matrix instructions of
// whole warpgroups. All that a schedule decides is decided in expand_roles; a printer only spells statements.
#pragma once
#include "tang/kernel/kernel.hpp"
#include "tang/target/roles.hpp"

namespace tang::kernel {

namespace role {

// A window of a global: `box` elements along each of its dimensions, `apart` places from one to the next; the
// innermost is one 128-byte row of a slot. A vector's window lies in a slot as it is: one row of any length.
struct Map {
  int memory = -1;
  std::vector<int64_t> box;
  bool vector = false;
  std::vector<int64_t> apart; // 1 of the innermost
  bool operator==(const Map&) const = default;
};

// The rows of a statement: one axis, or several whose places count as digits, the last the fastest.
struct RowAxes {
  Var flat = -1;                // the row's number; the only axis itself
  std::vector<TileAxis> digits; // where there are several
};

// Slots that the producer fills, or the math teams themselves, and the math teams empty. Barrier of slot s: full + s, empty + s; of a ring
// that each team owns: full + s * teams + team.
struct Ring {
  std::string name;
  int depth = 1;
  bool own = false;
  bool made = false; // the math teams fill its slots with fragments, a warp its rows
  bool cluster = false; // who fills or empties a slot tells so in every workgroup of the cluster
  int64_t at = 0, bytes = 0;             // of slot 0 in shared memory; of one slot (of one team)
  int64_t arrives = 0;                   // bytes of the copies that fill one slot
  int64_t vectors = 0, vector_bytes = 0; // a slot's vectors lie apart: places from `bytes` on
  int full = 0, empty = 0;
  int releases = 4; // arrivals that empty a slot: one a warp of each team that reads it
};

struct Stmt;
using Block = std::vector<Stmt>;

struct Await { // until the ring's next slot is full (its bytes arrived) or empty (every reader released it)
  int ring;
  bool full;
};

struct Arm { // the next slot's bytes are on their way
  int ring;
};

struct Load { // one box into the next slot, `at` bytes into it; completes on its barrier
  int ring, map;
  int64_t at;
  std::vector<Affine> from;
  int64_t each = 0; // of a copy for the whole cluster: a piece, `each` bytes on for each workgroup before this one
  int ahead = 0;    // the slot so many advances on; without roles every lane copies its share
};

struct Commit {}; // without roles: this lane's copies since the last one are a group

struct Arrived { // this lane's groups are complete, but for the `left` last ones; the others' are after a meeting
  int left;
};

struct Advance {
  int ring;
};

// A fragment of 16-bit values becomes this team's rows of an operand in the ring's next slot, `at` bytes in:
// boxes of 128-byte rows, `box` bytes apart. Each warp arrives at the slot's barrier when its rows are there.
struct Fill {
  int tile, ring;
  int64_t at, box, columns;
  kernel::Apply what;
};

struct Release { // the window `back` advances ago may be overwritten
  int ring, back;
};

// A staged vector: until its slot is released the lanes read it in the ring's next slot, `at` bytes in.
struct Locate {
  int memory, ring;
  int64_t at;
};

// A matrix operand in shared memory: the ring's next slot, `at` bytes in, team * `team` bytes on; its k step
// s starts steps[s] * 16 bytes further. Rows of k: its contiguous axis is k, else rows or columns in boxes
// `lead` * 16 bytes apart.
struct Window {
  int ring = -1;
  int64_t at = 0, team = 0, lead = 1;
  bool k_major = true;
  std::vector<int64_t> steps;
};

struct Issue { // asynchronous: dst (+)= a b for this team's 64 rows
  int dst;
  int a_tile; // a fragment; -1: window a
  Window a, b;
  int n;
  Format format;
  bool fresh; // the first step overwrites dst
  Contract what;
};

struct Finish { // at most `left` issues stay in flight; these tiles may be read and written again
  int left;
  std::vector<int> tiles;
  std::vector<int> whole = {}; // of them, sums of integers: they become reals now
};

// What defines these tiles stays above, in the machine's code too.
struct Hold {
  std::vector<int> tiles;
};

struct Turn { // math teams take turns: `open` is the last team's gift before the first

  enum Kind : uint8_t { open, take, give } kind;
};

struct Meet { // all lanes of this team, or of all math teams
  bool all = false;
};

// A tile statement of the kernel for this team's rows, its terms arranged by rows; `partial` bounds are
// tested. `column` is -1 where there is one value a row. A late fold leaves each lane its own
// partial result; a fold's result is multiplied by `factor` before it joins what it accumulates onto.
struct Rows {
  kernel::Stmt what;
  RowAxes row;
  Var column = -1;
  bool late = false;
  double factor = 1;
  int polynomial = 0; // of eight neighbouring powers of two
};

struct Settle { // lanes that kept partials of a fold combine them
  int memory;
  Id combine;
};

// dst global = value, through shared memory: a ring's current slot or the team's staging. Several results of one
// tile, with a map each, are evaluated together.
struct Flush {
  Apply what;
  RowAxes row;
  Var column = -1;
  std::vector<int> maps;
  int ring = -1;
  int64_t columns = 0;
};

// dst global += value, where others may add as well, each lane its own elements. The statement's axes are digits of
// the rows and of the columns, in powers of two but for the slowest.
struct Add {
  Apply what; // its value is what is added
  RowAxes row, column;
  int64_t columns = 0;
};

struct Flushed { // this thread's flushes: their shared memory was read, or (all) they are complete
  bool all;
};

// This team's part of a sum, kept beside the others' of its tile; the last team to arrive adds all of them,
// in order, and goes on. Or (`ring`) the parts lie in the ring's slot of each workgroup of the cluster: the warps
// whose rows are this workgroup's share add them, in the same order, and go on.
struct Join {
  int dst;
  Affine tile;
  Block then;
  int ring = -1;
};

// This team's part of a sum, for the other workgroups of the cluster to read in the ring's slot, which lies over all
// other rings. Each warp arrives at the slot's barrier in every workgroup when its rows are there.
struct Offer {
  int tile, ring;
};

struct Let {
  kernel::Let what;
};

struct Divide { // value = quotient * divisor + remainder, all >= 0
  Var quotient, remainder;
  Affine value, divisor;
};

struct Loop { // v = from, from + step, .. while it is on this side of `to` (exclusive going up, inclusive
              // going down)
  Var v;
  Affine from, to;
  int64_t step;
  Block body;
};

struct When {
  Affine at_least_0;
  Block then;
  Block otherwise;
};

struct Teams { // once for each math team
  Block body;
};

// The blocks of work: `decode` turns the flat number `w` into the grid's variables. Dynamic: a counter deals
// them, the producer passes the variables on through ring `ring`.
struct Works {
  bool producer;
  int ring; // -1: taking turns
  Var w;
  Block decode, body;
};

struct Stmt {
  std::variant<Await, Arm, Load, Advance, Fill, Release, Issue, Finish, Hold, Turn, Meet, Rows, Settle, Flush,
               Add, Flushed, Join, Offer, Let, Divide, Loop, When, Teams, Works, Locate, Commit, Arrived>
      node;
};

struct Program {
  Kernel kernel; // its variables, memories and terms are what the statements name
  target::Roles fields;
  std::vector<Map> maps;  // arguments, in order; then the globals that no map covers
  std::vector<int> plain; // those globals
  std::vector<int> integers; // tiles that contractions sum in integers, from their values at the Hold before
  std::vector<Ring> rings;
  int64_t staging = 0, barriers = 0, words = 0, shared_bytes = 0; // places in shared memory
  int barrier_count = 0;
  int64_t work = 0;                   // blocks of it
  Var part = -1;                      // of a split loop
  Var rank = -1;                      // of this workgroup in its cluster
  int64_t tiles = 0, part_values = 0; // that join; of one part of one team
  Var team = -1;                      // this math team's number
  int64_t beside = 0;                 // columns of a fragment, where teams lie beside each other
  Block producer, math;

  int64_t first_row(int64_t team_) const { return team_ / fields.across * fields.team_rows(); }

  int64_t first_column(int64_t team_) const { return team_ % fields.across * beside; }
};

} // namespace role

// What a tile of fragments is: rows and columns of it, by the memory's strides. A tile of one value a row has
// one column and one dimension of rows; else columns have the smallest stride, and all other dimensions are
// rows.
struct FragmentShape {
  std::vector<int> row_dims; // the slowest first
  int column_dim = -1;
  int64_t rows = 1, columns = 1;
};

FragmentShape fragment_shape(const Memory& m);

namespace role {
// The part of a loop whose workgroup adds a warp's rows (of all parts) and stores them; warps of a block count through.
inline int64_t owner(const target::Roles& f, int64_t warp) { return warp * f.split / (4 * f.math); }
} // namespace role

// Terms of one matrix instruction: 32 bytes. 0: operands of this format have no instruction.
int matrix_terms(Format f);

// Refused, with the reason: operands that no bulk copy can address, shapes without a matrix instruction,
// shared memory or registers that do not suffice. `shared_limit`: bytes a workgroup may have.
Result<role::Program> expand_roles(const Kernel& k, const target::Roles& fields,
                                   int64_t shared_limit = 232448);

} // namespace tang::kernel
