// Kernel IR: tiles, tile statements and the loops around them. One form for every target; a printer sees only
// statements that its target has. Scalar bodies are expr terms whose leaves name references and variables.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/expr/format.hpp"
#include "tang/expr/pool.hpp"

namespace tang::kernel {

using expr::Format;
using expr::Id;
using expr::Pool;
using expr::Type;
using expr::Value;

// Integers.

// A variable is a grid axis, a loop variable, an axis of a tile statement, or the result of a Let. All are
// int64.
using Var = int;

struct Affine {
  int64_t c = 0;
  std::vector<std::pair<Var, int64_t>> terms; // sorted by variable, no zero coefficient
};

Affine operator+(const Affine& a, const Affine& b);
Affine operator*(int64_t k, const Affine& a);

inline Affine operator-(const Affine& a, const Affine& b) { return a + (-1) * b; }

bool operator==(const Affine& a, const Affine& b);
Affine constant(int64_t c);
Affine variable(Var v, int64_t k = 1);
int64_t coefficient(const Affine& a, Var v); // 0 where v does not occur
Affine replaced(const Affine& a, Var v, const Affine& by); // v is `by` now

// Memory.

enum class Home : uint8_t { global, shared, fragment, register_ };
enum class Team : uint8_t { lane, subgroup, warpgroup, workgroup, cluster };
enum class Lanes : uint8_t { owned, replicated, partial }; // what each lane of the team holds
enum class Access : uint8_t { read, write, read_write };

// A kernel argument (home global) or a tile that lives inside the kernel. Element (i0, i1, ..) lies at sum
// i_k stride_k.
struct Memory {
  std::string name; // unique in the kernel; a generator's name, never a user's
  Home home = Home::global;
  Format format = Format::f32;
  std::vector<int64_t> shape;   // elements
  std::vector<int64_t> strides; // elements; row-major unless a layout says otherwise
  Access access = Access::read; // of a global
  Team team = Team::lane;       // who shares a tile
  Lanes lanes = Lanes::owned;
  // More than 1: it holds one of so many 16-bit pieces, which together are its values but for what is below the
  // last piece. Products of all pairs whose numbers (from 0) add up to less than that are one product.
  int pieces = 1;
  int64_t size() const; // elements from the first to the last, inclusive
};

std::vector<int64_t> row_major(const std::vector<int64_t>& shape);

// One element of a memory: coordinate d is index[d]. A term of `refs` adds k times the integer value of an
// earlier ref of the same statement (a gather). `checked`: a coordinate may be outside; then the element
// reads as 0.
struct Coordinate {
  Affine affine;
  std::vector<std::pair<int, int64_t>> refs;
};

struct Ref {
  int memory = -1;
  std::vector<Coordinate> index;
  bool checked = false;
};

// Bounds that hold where all are >= 0; terms as in a coordinate.
using Bounds = std::vector<Coordinate>;

// Statements.

// Axes of a tile statement: `extent` is a compile-time constant. Points with a bound that fails are not
// touched.
struct TileAxis {
  Var var;
  int64_t extent;
};

// Leaves of a body: `arg k` is refs[k], `coord v` the value of variable v, `holds k` guards[k] (any of its
// bounds).
struct Body {
  std::vector<Ref> refs;
  std::vector<std::vector<Bounds>> guards;
  std::vector<Id> values; // one a destination
  std::optional<Id> when; // boolean: the point (of an Apply) or term (of a Fold) exists
};

// Who evaluates the points of a statement in a workgroup of many lanes. Its axes number rows, then columns: of an Apply
// the first `lead` axes are rows, of a Fold the kept ones. Row r belongs to team r mod (lanes / team); its columns, in
// runs of `run` neighbours, to the lanes of the team in turn. A Fold's lanes join their partial results as a tree, lane
// l with l + team / 2, then team / 4, ..; all of them have the result. `each`: every lane of the team evaluates the
// whole row. What is no register tile is then written by the team's first lane. `matrix`: a subgroup folds all its rows
// at once on instructions that multiply small matrices, in their order of terms (kernel/products.hpp).
struct Deal {
  int lead = 0, team = 0; // team 0: one row for all lanes (Apply), one lane a row (Fold)
  int run = 1;
  bool each = false;
  bool matrix = false;
};

// dst[k](point) = values[k](point) for every point of the axes inside `bounds`. Where `when` fails, or `fill`
// is set and the bounds fail: dst = fill.
struct Apply {
  std::vector<TileAxis> axes;
  Bounds bounds; // always
  std::vector<Bounds>
      partial; // any of these; dropped in a full segment of the enclosing pipeline. Empty: no test
  std::vector<Ref> dst;
  Body body;
  std::vector<std::optional<Value>> fill; // one a destination
  int vector = -1;                        // index into axes: the lanes of a vector; -1: scalar code
  Deal deal = {};
};

// dst[k](kept) = combine over the fold axes, in the order that `lanes` and `ways` say, starting from dst when
// `accumulate`, else from the identity. Terms outside the bounds or without `when` are skipped.
struct Fold {
  std::vector<TileAxis> kept, folded;
  Bounds bounds;               // of the kept axes: points outside are not touched
  std::vector<Bounds> partial; // of terms: any of these; dropped in a full segment
  Bounds limits;               // of terms: all of these, always
  std::vector<Ref> dst;        // over kept
  Body body;                   // the lift
  std::vector<Value> identity;
  std::vector<Id> combine; // over var 2c, 2c + 1
  bool accumulate = false;
  std::optional<Format> held; // real components of a state are rounded to it after every combine
  int vector = -1; // index into kept (lanes are points) or kept.size() + index into folded (partial lanes)
  int ways = 1;    // independent accumulators along the innermost fold axis
  // One index is counted along one fold axis, whose terms are 1 up to some term and 0 from there on: halving finds
  // how many. No limits, no lanes.
  bool search = false;
  Deal deal = {};
};

// dst(m, n) += sum over k of a(m, k) b(k, n): all three are tiles or globals read in place. Rows beyond m_end
// and columns beyond n_end are computed but not stored; a global is not read there, nor beyond k_end.
// `block`: rows x vectors of the accumulator held in registers. a and b are real, or i8: then sums are exact.
struct Contract {
  // Does an operand hold 0 for terms that are not there? A product with such a 0 adds nothing, even where the other side
  // is infinite or NaN. `partial`: in a full segment every term is there.
  enum Dead : uint8_t { none, partial, always };

  std::vector<TileAxis> m, n, k; // innermost last; n's innermost axis is contiguous in dst and b
  Ref dst, a, b;
  std::optional<Affine> m_end, n_end; // bounds on the flat m and n
  std::optional<Affine> k_end; // terms beyond are 0 in the operands; a shorter loop is allowed, not required
  bool accumulate = true;      // false: dst starts at 0
  int rows = 1, vectors = 1;
  Dead dead_a = none, dead_b = none;
};

// Every lane's writes before it are seen after it: by its workgroup, or by all workgroups of its cluster.
struct Barrier {
  Team team = Team::workgroup;
};

// Integer values: `min`/`max` over several, floor division, or one element of an integer memory.
struct Let {
  Var var;

  enum Kind : uint8_t { affine, floor_div, min, max, load } kind = affine;

  std::vector<Affine> operands;
  int64_t divisor = 1;
  Ref ref;
};
struct Stmt;
using Block = std::vector<Stmt>;

struct Loop {
  Var var;
  Affine begin, end; // end is exclusive
  int64_t step = 1;
  Block body;
};

struct If {
  std::vector<Affine> all; // each >= 0
  Block then;
};

// The central statement: a loop over blocks of one axis, in segments; operands are staged before the body
// uses them. It is expanded upward in capability: load + barrier here, multistage copies or producer and math
// roles elsewhere.
struct Segment {
  Affine begin, end;   // of the block variable, in elements; a multiple of step apart except at the end
  bool partial = true; // points of a block may be dead: the statements' `partial` bounds are tested
};

struct Pipeline {
  Var var;          // first element of the block
  int64_t step = 1; // elements a block
  std::vector<Segment> segments;
  Block operands; // copies into tiles
  Block body;
  int stages = 1, skew = 0;
  bool reverse = false;
};

struct Stmt {
  std::variant<Apply, Fold, Contract, Barrier, Let, Loop, If, Pipeline> node;
};

// A kernel.

struct GridAxis {
  Var var;        // first element of the block: 0, step, 2 step, ..
  int64_t extent; // elements
  int64_t step = 1;
};

struct Kernel {
  std::string name; // canonical: of the code, never of the user's graph
  std::shared_ptr<Pool> pool = std::make_shared<Pool>();
  std::vector<std::string> vars; // names
  std::vector<Memory> memories;  // globals first, in argument order
  std::vector<GridAxis> grid;    // outermost first; workgroups may run in any order
  Block body;
  Format compute = Format::f32; // of real values in registers
  // Lanes of a workgroup and of a subgroup. With more than one, a statement's points are dealt out; where it has no
  // deal of its own: flat
  // point p of an Apply, flat kept point p of a Fold belongs to lane p mod lanes; a Contract's blocks of
  // `rows` x (`vectors` x subgroup) are dealt to subgroups, columns l, l + subgroup, .. of a block to its
  // lane l. Lanes meet at Barriers only. A tile in registers is read by the lanes that wrote the element: with
  // `Lanes::replicated` all lanes of a team hold it.
  int lanes = 1, subgroup = 1;
  // Workgroups that share a block of the grid, `lanes` / cluster lanes each. A workgroup's tile is one in each; of the
  // cluster's each has a copy, all of which a write goes to, or (`partial`) places of coordinate 0 mod lanes in its own.
  int cluster = 1;

  Var fresh(const std::string& stem); // a new variable with a unique name
  int add(Memory m);
};

int64_t workgroups(const Kernel& k); // blocks of the grid
// Pipelines as loops over their segments: what every target without asynchronous copies runs.
Kernel expand_pipelines(const Kernel& k);
// Readable text of the IR, canonical: equal kernels print alike. It is also the identity that caches use.
std::string print(const Kernel& k);
uint64_t hash(const Kernel& k);

} // namespace tang::kernel
