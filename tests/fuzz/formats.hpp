// What the fuzz targets of formats/ share: a reader may throw Error and nothing else; what it accepts
// survives a trip.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tang/base/error.hpp"
#include "tang/formats/file.hpp"
#include "tang/formats/tensor_file.hpp"

namespace tang::formats {

inline void demand(bool ok) {
  if (!ok) std::abort();
}
template <class F>
bool accepts(F read) {
  try {
    read();
    return true;
  } catch (const Error&) {
    return false;
  }
}
inline File file_of(const uint8_t* data, size_t size) { return {"fuzzed", {data, data + size}}; }
// Touches every byte of every tensor.
inline void convert_all(const TensorFile& t) {
  for (auto& e : t.entries()) {
    const size_t count = t.floats(e).size();
    demand(t.doubles(e).size() == count && &t.at(e.name) == &e);
  }
}
inline std::string scratch() { return "/tmp/tang-fuzz-" + std::to_string(::getpid()); }

}  // namespace tang::formats
