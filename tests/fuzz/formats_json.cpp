// libFuzzer target: tensors in JSON.
// Build: clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I .rooms/formats
//   -I .rooms/base -I tests tests/fuzz/formats_json.cpp formats/*.cpp src/base/*.cpp
#include "tang/formats/json_tensors.hpp"

#include "fuzz/formats.hpp"

using namespace tang::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  accepts([&] { convert_all(read_json_tensors(file_of(data, size))); });
  return 0;
}
