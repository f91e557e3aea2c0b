// libFuzzer target: llama2.c checkpoint bytes.
// Build: clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I .rooms/formats
//   -I .rooms/base -I tests tests/fuzz/formats_llama2c.cpp formats/*.cpp src/base/*.cpp
#include "tang/formats/llama2c.hpp"

#include "fuzz/formats.hpp"

using namespace tang::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  accepts([&] { convert_all(read_llama2c(file_of(data, size)).tensors); });
  return 0;
}
