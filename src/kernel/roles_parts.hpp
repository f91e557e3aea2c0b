// A kernel in tensor form, taken apart: copies into shared memory, contractions and their operands, what runs
// before and after the loop. Tensor form: one Pipeline, whose contractions read shared tiles or fragments and
// write fragments.
#pragma once
#include "tang/kernel/roles.hpp"

namespace tang::kernel {

// A shared tile and the window of a global that it holds, or what the loop's body stores in it.
struct StagedTile {
  int memory = -1;                // the tile, [rows.., columns]; of a vector [columns]
  bool made = false;              // by the teams, from a fragment of the same rows and columns; no source
  bool vector = false;            // no operand of a contraction: 32-bit values that lanes read
  Ref source;                     // over these axes
  std::vector<TileAxis> row = {}; // the slowest first; none of a vector
  Var column = -1;
  int64_t rows = 0, columns = 0;
  bool hoisted = false;
};

struct ContractParts {
  const Contract* node = nullptr;
  Var k = -1;
  int64_t columns = 0, terms = 0; // n and k
  int a = -1, b = -1;             // index into tiles; a is -1 for a fragment
  bool a_k_major = true, b_k_major = true;
};

struct TensorParts {
  const Pipeline* pipe = nullptr;
  std::vector<const Loop*> outer; // loops around the pipeline, outermost first; each starts at 0
  Block lets, starts, finish;     // integers; first values of fragments; what follows the loop
  std::vector<StagedTile> tiles;
  std::vector<ContractParts> contracts; // in body order
  int64_t rows = 0;                     // of the fragments
  int tile(int memory) const;           // index, or -1
};

// Points into `k`, which must outlive it.
Result<TensorParts> tensor_parts(const Kernel& k);

// The memories that a statement reads and writes.
struct Touched {
  std::vector<int> reads, writes;
};

Touched touched(const Stmt& s);

} // namespace tang::kernel
