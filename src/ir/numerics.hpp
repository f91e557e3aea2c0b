// Formats and fold orders as plain data: lowering fills them in, the emulator reads them.
#pragma once
#include "tang/expr/format.hpp"

namespace tang::ir {

using expr::default_format;
using expr::Format;
using expr::format_named;
using expr::FormatRow;
using expr::rounded;
using expr::row;
using expr::Type;
using expr::type_of;

// In which order a fold combines its terms.
struct FoldOrder {
  enum Kind : uint8_t { sequential, tree, split, chunked } kind = sequential;

  int64_t n =
      0; // tree: width of the lanes; split: parts; chunked: terms a chunk (fold the base, rescale, add)
};

} // namespace tang::ir
