// libFuzzer target: npy bytes, and that writing what was read reads back the same.
// Build: clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I .rooms/formats
//   -I .rooms/base -I tests tests/fuzz/formats_npy.cpp formats/*.cpp src/base/*.cpp
#include "tang/formats/npy.hpp"

#include "fuzz/formats.hpp"

using namespace tang::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  accepts([&] {
    const auto t = read_npy(file_of(data, size));
    convert_all(t);
    const auto path = scratch();
    write_npy(path, t, t.at("array"), 1 + int(size % 3));
    const auto back = read_npy(read_file(path));
    demand(back.floats(back.at("array")).size() == t.floats(t.at("array")).size());
    demand(back.at("array").shape == t.at("array").shape);
  });
  return 0;
}
