// Tile sizes and roles of a group in tensor form: rules on its shape and the target's data, best first.
#pragma once
#include "tang/kernel/kernel.hpp"
#include "tang/lower/choose.hpp"
#include "tang/lower/keyed.hpp"
#include "tang/lower/tensor_price.hpp"
#include "tang/target/roles.hpp"

namespace tang::lower {

struct TensorChoice {
  std::vector<int64_t> tile; // core axis -> elements a block
  target::Roles roles;
  int rows = -1, loop = -1;  // core axes
  std::vector<int> row_axes; // of a product's rows where they are several, the slowest first
  std::vector<int> outer;    // looped axes around the loop, one element at a time
  kernel::Format format = kernel::Format::bf16; // of the operands
  bool blocks = false; // a fold of contractions of whole blocks, one a step of the loop
  int pieces = 0; // 32-bit operands are taken in so many pieces of `format`; 0: as they are
  std::string text;                             // for people
  double seconds = 0; // what the rule says of it; 0: the rule has an order and no price
};

// The key of a sum whose private points are few and decided by it.
std::optional<Key> few_keys(const ir::Graph& g, const plan::Member& m);

// What an operand holds of a factor: of an integer as a real the integer.
expr::Id stored_value(const expr::Pool& p, expr::Id factor);

// One fold of contractions whose rows and columns are both on the grid: each step of its loop has a whole one.
bool folds_blocks(const ir::Graph& g, const plan::Group& group, const Choice& forms);
// Columns and roles of such folds, best first: of so many `panels` of columns, in blocks of so many terms.
struct BlockRoles {
  int64_t columns;
  target::Roles roles;
  double seconds;
};
std::vector<BlockRoles> block_roles(Product all, int64_t panels, int64_t terms, const target::Target& t);

// Refused where the group is no loop of contractions over one axis with common rows.
Result<std::vector<TensorChoice>> tensor_choices(const ir::Graph& g, const plan::Plan& p,
                                                 const plan::Group& group, const Choice& forms,
                                                 const schedule::Schedule& s, const target::Target& t);

// Candidates for operands in so many 16-bit pieces, of a group that has these candidates with whole ones: each block of
// terms is a sum of its own, on registers of its own.
std::vector<TensorChoice> in_pieces(const std::vector<TensorChoice>& whole, int pieces, const plan::Group& group,
                                    const Choice& forms, const target::Target& t);

// In how many pieces the group's operands are taken: as the schedule says; what needs fragments of 32-bit operands has
// at least two. 0: whole.
int pieces_of(const ir::Graph& g, const plan::Group& group, const Choice& forms, const schedule::Schedule& s,
              kernel::Format operands);

} // namespace tang::lower
