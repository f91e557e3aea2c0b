// A C compiler inside this process: text in, machine code in memory out, with no file and no process. It optimizes
// nothing; a unit of the C target's scalar row takes milliseconds. There when the build found libtcc.
#pragma once
#include "tang/device/compiler.hpp"

namespace tang::device {

class MemoryCompiler {
public:
  static Result<std::shared_ptr<MemoryCompiler>> find(); // why this build has none
  // Units of the scalar row (emit::COptions::lanes 1). Throws CompileError::rejected with the compiler's first words,
  // not_loadable when a symbol is not known.
  std::shared_ptr<Library> compile(const std::string& unit);
};

} // namespace tang::device
