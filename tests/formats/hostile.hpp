// Makers of files, good and bad, and what every reader must do with them: a clean Error within the limits.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>

#include "formats/files.hpp"
#include "tang/formats/json_tensors.hpp"
#include "tang/formats/llama2c.hpp"
#include "tang/formats/npy.hpp"
#include "tang/formats/safetensors.hpp"
#include "tang/formats/tokenizer.hpp"
#include "tang/formats/torchscript.hpp"

namespace tang::formats {

using Read = std::function<void(File)>;

// At most twice the file and 64 MiB on the heap, at most 5 s of this process's time.
template <class F>
inline void within_limits(const File& file, F read) {
  const HeapPeak peak;
  const std::clock_t start = std::clock();
  read();
  EXPECT_LE(peak.bytes(), 2 * file.size() + (64u << 20)) << file.path;
  EXPECT_LE(double(std::clock() - start) / CLOCKS_PER_SEC, 5) << file.path;
}
inline std::string refused(const Read& read, const File& file, const std::vector<std::string>& words = {}) {
  std::string said;
  within_limits(file, [&] { said = error_of([&] { read(file); }); });
  expect_words(said, words);
  expect_words(said, {file.path});
  return said;
}
// Any outcome but a crash, a Bug or another exception.
inline void survives(const Read& read, const File& file) {
  within_limits(file, [&] {
    try {
      read(file);
    } catch (const Error&) {}
  });
}

inline const Read safetensors = [](File f) { read_safetensors(std::move(f)); };
inline const Read npy = [](File f) { read_npy(std::move(f)); };
inline const Read llama2c = [](File f) { read_llama2c(std::move(f)); };
inline const Read tokenizer = [](File f) {
  const auto t = read_tokenizer(std::move(f));
  t.decode(t.encode("Any text, \xff\xfe \xf0\x9f\x98\x80 \xe2\x82"));
};
inline const Read json = [](File f) { read_json_tensors(std::move(f)); };
inline const Read torchscript = [](File f) { read_torchscript(std::move(f)); };

inline std::string entry(const std::string& name, const std::string& shape, const std::string& offsets,
                         const std::string& dtype = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}
inline File tensors(const std::string& entries, size_t data) {
  return safetensors_of("{" + entries + "}", data);
}

inline std::string dict(const std::string& shape, const std::string& descr = "'<f4'",
                        const std::string& order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

inline Bytes llama_header(int32_t dim, int32_t hidden, int32_t layers, int32_t heads, int32_t kv,
                          int32_t vocab, int32_t seq) {
  return Bytes().put(dim).put(hidden).put(layers).put(heads).put(kv).put(vocab).put(seq);
}
inline File small_llama(bool tied, int extra = 0) {
  const int d = 4, h = 6, l = 2, heads = 2, kv = 1, v = 5, s = 3, hs = 2;
  const int floats =
      v * d + l * (d + 2 * d * d + 2 * kv * hs * d + d + 3 * h * d) + d + s * hs + (tied ? 0 : v * d);
  auto b = llama_header(d, h, l, heads, kv, tied ? v : -v, s);
  for (int i = 0; i < floats; i++) b.put(float(i));
  return b.zeros(size_t(extra)).file("small.bin");
}

struct Piece {
  std::string text;
  float score = 0;
};
inline Bytes vocabulary(const std::vector<Piece>& more, int32_t max_len = 16) {
  Bytes b;
  b.put(max_len);
  std::vector<Piece> all = {{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}};
  for (int i = 0; i < 256; i++) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", i);
    all.push_back({text, 0});
  }
  all.insert(all.end(), more.begin(), more.end());
  for (auto& p : all) b.put(p.score).put(int32_t(p.text.size())).text(p.text);
  return b;
}

inline File json_of(const std::string& s) { return {"hostile.json", {s.begin(), s.end()}}; }

struct Item {
  std::string name, data;
  uint16_t method = 0, flags = 0;
};
inline uint32_t checksum(std::string_view bytes) {  // bit by bit, unlike the reader's table
  uint32_t c = ~0u;
  for (unsigned char b : bytes) {
    c ^= b;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
  }
  return ~c;
}
inline File zip_of(const std::vector<Item>& items, const std::string& comment = "") {
  Bytes b, directory;
  for (auto& i : items) {
    const auto at = uint32_t(b.size());
    const auto crc = checksum(i.data), size = uint32_t(i.data.size());
    b.put(0x04034b50u).put(uint16_t(20)).put(i.flags).put(i.method).put(0u).put(0u).put(0u).put(0u);
    b.put(uint16_t(i.name.size())).put(uint16_t(4)).text(i.name).zeros(4).text(i.data);
    directory.put(0x02014b50u).put(0u).put(i.flags).put(i.method).put(0u).put(crc).put(size).put(size);
    directory.put(uint16_t(i.name.size())).put(uint16_t(0)).put(uint16_t(0)).zeros(8).put(at).text(i.name);
  }
  const auto at = uint32_t(b.size()), size = uint32_t(directory.size());
  b.text({reinterpret_cast<const char*>(directory.bytes().data()), size});
  b.put(0x06054b50u).put(0u).put(uint16_t(items.size())).put(uint16_t(items.size())).put(size).put(at);
  return b.put(uint16_t(comment.size())).text(comment).file("hostile.pt");
}

}  // namespace tang::formats
