// Monoids as printed rows: what they range over, and the theorem that a fold may be split.
#pragma once
#include "tang/ir/surface.hpp"

namespace tang::prove {

// A self-contained file that proves one theorem, or several.
struct File {
  std::string name, text; // without folder, with ".v"
  int theorems = 0;
};

// The row as `combine` is traced, before operands are ordered; `name` becomes the Coq name and the file's.
// Refused: a combine with an operation that has no row.
Result<File> monoid_file(const ir::MonoidSpec& m, const std::string& name);

} // namespace tang::prove
