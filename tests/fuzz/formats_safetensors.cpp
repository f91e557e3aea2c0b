// libFuzzer target: safetensors bytes, and that writing what was read reads back the same.
// Build: clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I .rooms/formats
//   -I .rooms/base -I tests tests/fuzz/formats_safetensors.cpp formats/*.cpp src/base/*.cpp
#include "tang/formats/safetensors.hpp"

#include "fuzz/formats.hpp"

using namespace tang::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  accepts([&] {
    const auto t = read_safetensors(file_of(data, size));
    convert_all(t);
    const auto path = scratch();
    write_safetensors(path, t);
    const auto back = read_safetensors(read_file(path));
    demand(back.entries().size() == t.entries().size() && back.metadata() == t.metadata());
    for (auto& e : t.entries()) {
      const auto a = t.data(e), b = back.data(back.at(e.name));
      demand(back.at(e.name).shape == e.shape && std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
  });
  return 0;
}
