// libFuzzer target: a vocabulary whose fixed tokens are made and whose rest is fuzzed; text -> ids -> text.
// Build: clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I .rooms/formats
//   -I .rooms/base -I tests tests/fuzz/formats_tokenizer.cpp formats/*.cpp src/base/*.cpp
#include "tang/formats/tokenizer.hpp"

#include <cstdio>

#include "fuzz/formats.hpp"

using namespace tang::formats;

namespace {
void append(std::vector<uint8_t>& out, const std::string& piece) {
  const int32_t size = int32_t(piece.size());
  out.resize(out.size() + 4);  // score 0
  out.insert(out.end(), reinterpret_cast<const uint8_t*>(&size), reinterpret_cast<const uint8_t*>(&size) + 4);
  out.insert(out.end(), piece.begin(), piece.end());
}
}  // namespace

// The first byte says how much of the input is text; an odd one leaves the whole file to the fuzzer.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t length = std::min<size_t>(data[0], size - 1);
  const std::string text(reinterpret_cast<const char*>(data) + 1, length);
  File file{"fuzzed", {}};
  if (data[0] % 2 == 0) {
    file.bytes = {64, 0, 0, 0};
    for (const char* special : {"<unk>", "\n<s>\n", "\n</s>\n"}) append(file.bytes, special);
    for (int i = 0; i < 256; i++) {
      char piece[8];
      std::snprintf(piece, sizeof piece, "<0x%02X>", i);
      append(file.bytes, piece);
    }
  }
  file.bytes.insert(file.bytes.end(), data + 1 + length, data + size);
  accepts([&] {
    const auto t = read_tokenizer(std::move(file));
    const auto ids = t.encode(text, true, true);
    for (int id : ids) demand(id >= 0 && id < t.size());
    demand(t.decode(ids) == text);
  });
  return 0;
}
