// libFuzzer target: TorchScript zips.
// Build: clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I .rooms/formats
//   -I .rooms/base -I tests tests/fuzz/formats_torchscript.cpp formats/*.cpp src/base/*.cpp
#include "tang/formats/torchscript.hpp"

#include "fuzz/formats.hpp"

using namespace tang::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  accepts([&] { convert_all(read_torchscript(file_of(data, size))); });
  return 0;
}
