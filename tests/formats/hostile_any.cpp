// Every reader against the same damage: cuts, bit flips, other formats, a mebibyte of anything.
#include <random>

#include "formats/hostile.hpp"

namespace tang::formats {
namespace {

TEST(HeapPeak, SeesWhatIsAllocatedAndFreed) {
  const HeapPeak peak;
  { std::vector<char> v(1 << 20); }
  EXPECT_GE(peak.bytes(), 1u << 20);
  EXPECT_LE(peak.bytes(), 2u << 20);
}

struct Sample {
  const char* what;
  Read read;
  File file;
};
std::vector<Sample> samples() {
  return {
      {"safetensors", safetensors,
       tensors("\"__metadata__\":{\"k\":\"v\"}," + entry("a", "[2,2]", "[0,16]") + "," +
                   entry("b", "[3]", "[16,22]", "F16"),
               22)},
      {"npy", npy, npy_of(dict("(2, 3)"), 24)},
      {"npy2", npy, npy_of(dict("(2, 3)"), 24, 2)},
      {"llama2c", llama2c, small_llama(false)},
      {"json", json,
       json_of(
           "{\"config\":{\"n\":1},\"w\":{\"shape\":[1],\"dtype\":\"torch.float32\",\"data\":\"AACAPw==\"}}")},
      {"zip", torchscript,
       zip_of({{"m/data/0", "12345678"}, {"m/data/1", "abcd"}, {"m/byteorder", "little"}})},
      {"tokenizer", tokenizer, vocabulary({{" ", 0}, {"a", -1}, {"\xff", -2}}).file()}};
}
TEST(Readers, SamplesAreReadWhole) {
  for (auto& s : samples()) EXPECT_NO_THROW(s.read(s.file)) << s.what;
}
TEST(Readers, CutAtEveryByte) {
  for (auto& s : samples()) {
    for (size_t cut = 0; cut < s.file.size(); cut++) {
      File f{s.file.path, {s.file.bytes.begin(), s.file.bytes.begin() + std::ptrdiff_t(cut)}};
      // The tokenizer's format has no end: a cut between two tokens after the bytes is a smaller vocabulary.
      if (s.what == std::string("tokenizer"))
        survives(s.read, f);
      else
        refused(s.read, f);
    }
  }
}
TEST(Readers, FollowedByAnyByte) {
  for (auto& s : samples()) {
    if (s.what == std::string("json")) continue;  // white space may follow
    for (int extra : {0, 32, 255}) {
      File f = s.file;
      f.bytes.push_back(uint8_t(extra));
      refused(s.read, f);
    }
  }
}
TEST(Readers, EveryBitFlipped) {
  for (auto& s : samples()) {
    for (size_t bit = 0; bit < s.file.size() * 8; bit++) {
      File f = s.file;
      f.bytes[bit / 8] ^= uint8_t(1 << bit % 8);
      survives(s.read, f);
    }
  }
}
TEST(Readers, RandomDamage) {
  std::mt19937_64 random(2024);
  const uint64_t numbers[] = {0,
                              1,
                              0x7f,
                              0xff,
                              0x7fff,
                              0xffff,
                              0x7fffffff,
                              0x80000000,
                              0xffffffff,
                              uint64_t(1) << 62,
                              uint64_t(INT64_MAX),
                              uint64_t(1) << 63,
                              UINT64_MAX};
  for (auto& s : samples()) {
    for (int round = 0; round < 4000; round++) {
      File f = s.file;
      for (uint64_t n = 1 + random() % 4; n--;) {
        const size_t at = random() % f.size(), width = size_t(1) << random() % 4;
        switch (random() % 4) {
          case 0:
            f.bytes[at] = uint8_t(random());
            break;
          case 1:
            std::memcpy(&f.bytes[at], &numbers[random() % 13], std::min(width, f.bytes.size() - at));
            break;
          case 2:
            f.bytes.erase(f.bytes.begin() + std::ptrdiff_t(at));
            break;
          case 3:
            f.bytes.insert(f.bytes.begin() + std::ptrdiff_t(at), random() % 9, f.bytes[at]);
            break;
        }
        if (f.bytes.empty()) break;
      }
      survives(s.read, f);
    }
  }
}
TEST(Readers, AnothersFormatIsRefused) {
  const auto all = samples();
  for (auto& reader : all) {
    for (auto& s : all) {
      const bool same = std::string(reader.what).substr(0, 3) == std::string(s.what).substr(0, 3);
      if (!same) refused(reader.read, s.file);
    }
  }
}
TEST(Readers, AMebibyteOfAnything) {
  std::mt19937_64 random(11);
  for (auto& s : samples()) {
    for (const char* fill :
         {"", "{", "[", "\"", "\\", "0", "PK\x05\x06", "PK\x01\x02", "<0x", "\xff", "random"}) {
      File f = s.file;
      const std::string unit = fill;
      const size_t keep = random() % f.size();
      f.bytes.resize(keep);
      while (f.bytes.size() < (1u << 20)) {
        if (unit == "random" || unit.empty())
          f.bytes.push_back(unit.empty() ? 0 : uint8_t(random()));
        else
          f.bytes.insert(f.bytes.end(), unit.begin(), unit.end());
      }
      survives(s.read, f);
    }
  }
}

TEST(Cursor, TakesNothingBeyondItsEnd) {
  const File file{"five", {1, 0, 0, 0, 2}};
  Cursor whole(file), part(file, 1, 4);
  EXPECT_EQ(whole.number<uint32_t>("a number"), 1u);
  EXPECT_EQ(whole.left(), 1u);
  expect_words(error_of([&] { whole.number<uint16_t>("a number"); }),
               {"five", "2 bytes from byte 4", "there are 1"});
  expect_words(error_of([&] { whole.take(UINT64_MAX, "a text"); }), {"the file ends inside a text"});
  EXPECT_EQ(whole.number<uint8_t>("a number"), 2);
  error_of([&] { whole.number<uint8_t>("a number"); });
  error_of([&] { part.number<uint32_t>("a number"); });
  EXPECT_EQ(part.take(3, "a text").size(), 3u);
  EXPECT_EQ(part.take(0, "nothing").size(), 0u);
}
TEST(ReadFile, WhatIsNoFile) {
  Folder folder;
  expect_words(error_of([&] { read_file(folder.path() + "/absent"); }), {"absent", "cannot be opened"});
  expect_words(error_of([&] { read_file(folder.path()); }), {"not a regular file", "folder"});
  expect_words(error_of([&] { read_file("/dev/zero"); }), {"device"});
  expect_words(error_of([&] { read_file(std::string("a\0b", 3)); }), {"zero byte"});
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_words(error_of([&] { read_file(pipe); }), {"pipe"});
  const auto huge = folder / "huge";
  write_file(huge, {});
  if (::truncate(huge.c_str(), off_t(1) << 43) == 0)
    expect_words(error_of([&] { read_file(huge); }), {"memory"});
}

}  // namespace
}  // namespace tang::formats
