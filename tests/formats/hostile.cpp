// Files made to hurt: each must be a clean Error that names the file and both facts, within the memory
// promised.
#include <chrono>
#include <functional>
#include <random>

#include "formats/files.hpp"
#include "tang/formats/json_tensors.hpp"
#include "tang/formats/llama2c.hpp"
#include "tang/formats/npy.hpp"
#include "tang/formats/safetensors.hpp"
#include "tang/formats/tokenizer.hpp"
#include "tang/formats/torchscript.hpp"

namespace tang::formats {
namespace {

using Read = std::function<void(File)>;

// At most twice the file and 64 MiB on the heap, at most 5 s.
template <class F>
void within_limits(const File& file, F read) {
  const HeapPeak peak;
  const auto start = std::chrono::steady_clock::now();
  read();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LE(peak.bytes(), 2 * file.size() + (64u << 20)) << file.path;
  EXPECT_LE(seconds, 5) << file.path;
}
std::string refused(const Read& read, const File& file, const std::vector<std::string>& words = {}) {
  std::string said;
  within_limits(file, [&] { said = error_of([&] { read(file); }); });
  expect_words(said, words);
  expect_words(said, {file.path});
  return said;
}
// Any outcome but a crash, a Bug or another exception.
void survives(const Read& read, const File& file) {
  within_limits(file, [&] {
    try {
      read(file);
    } catch (const Error&) {}
  });
}

const Read safetensors = [](File f) { read_safetensors(std::move(f)); };
const Read npy = [](File f) { read_npy(std::move(f)); };
const Read llama2c = [](File f) { read_llama2c(std::move(f)); };
const Read tokenizer = [](File f) {
  const auto t = read_tokenizer(std::move(f));
  t.decode(t.encode("Any text, \xff\xfe \xf0\x9f\x98\x80 \xe2\x82"));
};
const Read json = [](File f) { read_json_tensors(std::move(f)); };
const Read torchscript = [](File f) { read_torchscript(std::move(f)); };

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets,
                  const std::string& dtype = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}
File tensors(const std::string& entries, size_t data) { return safetensors_of("{" + entries + "}", data); }

TEST(HeapPeak, SeesWhatIsAllocatedAndFreed) {
  const HeapPeak peak;
  { std::vector<char> v(1 << 20); }
  EXPECT_GE(peak.bytes(), 1u << 20);
  EXPECT_LE(peak.bytes(), 2u << 20);
}

// --- safetensors

TEST(Safetensors, OffsetsThatDoNotMatchTheShape) {
  refused(safetensors, tensors(entry("w", "[2,3]", "[0,20]"), 20),
          {"'w'", "[2, 3] of F32 takes 24 bytes", "span 20"});
  refused(safetensors, tensors(entry("w", "[2,3]", "[0,28]"), 28), {"24", "28"});
}
TEST(Safetensors, OffsetsPastTheEnd) {
  refused(safetensors, tensors(entry("w", "[6]", "[0,24]"), 20),
          {"'w'", "outside the file", "[0, 24]", "20 bytes"});
  refused(safetensors, tensors(entry("w", "[1]", "[18446744073709551612,18446744073709551615]"), 20),
          {"outside the file"});
  refused(safetensors, tensors(entry("w", "[1]", "[8,4]"), 20), {"ends before it begins"});
}
TEST(Safetensors, ProductsThatWrap) {
  // 2^62 * 4 wraps to 0; 65536 * 65536 wraps to 0 in 32 bits; (2^32 + 1) * 1 truncates to 1.
  refused(safetensors, tensors(entry("w", "[4611686018427387904]", "[0,0]"), 0), {"'w'", "64 bits"});
  refused(safetensors, tensors(entry("w", "[4294967296,4294967296]", "[0,0]"), 0), {"64 bits"});
  refused(safetensors, tensors(entry("w", "[65536,65536]", "[0,0]"), 0), {"17179869184"});
  refused(safetensors, tensors(entry("w", "[4294967297]", "[0,4]"), 4), {"17179869188"});
  refused(safetensors, tensors(entry("w", "[4294967296,4294967296,0]", "[0,0]"), 0), {"64 bits"});
  refused(safetensors, tensors(entry("w", "[9223372036854775808]", "[0,0]"), 0), {"2^63"});
  refused(safetensors, tensors(entry("w", "[9223372036854775807,2]", "[0,0]"), 0), {"64 bits"});
}
TEST(Safetensors, HeaderLengths) {
  for (uint64_t n :
       {uint64_t(3), uint64_t(1) << 31, uint64_t(1) << 32, uint64_t(1) << 63, UINT64_MAX, UINT64_MAX - 7})
    refused(safetensors, Bytes().put(n).text("{}").file());
  refused(safetensors, Bytes().put(uint64_t(0)).file(), {"begin with {"});
  refused(safetensors, Bytes().put(uint64_t(100'000'001)).file(), {"100000001", "100000000"});
  for (size_t n = 0; n < 8; n++) refused(safetensors, Bytes().zeros(n).file());
}
TEST(Safetensors, OverlapsHolesAndTrailingBytes) {
  refused(safetensors, tensors(entry("a", "[2]", "[0,8]") + "," + entry("b", "[2]", "[4,12]"), 12),
          {"'b' overlaps", "'a' takes 0..8", "'b' takes 4..12"});
  refused(safetensors, tensors(entry("a", "[2]", "[0,8]") + "," + entry("b", "[2]", "[0,8]"), 8),
          {"overlaps"});
  refused(safetensors, tensors(entry("a", "[2]", "[0,8]") + "," + entry("b", "[0]", "[4,4]"), 8),
          {"'b' overlaps"});
  refused(safetensors, tensors(entry("a", "[2]", "[4,12]"), 12),
          {"'a' follows a hole", "begins at 0", "4..12"});
  refused(safetensors, tensors(entry("a", "[1]", "[0,4]") + "," + entry("b", "[1]", "[8,12]"), 12),
          {"'b' follows a hole"});
  refused(safetensors, tensors(entry("a", "[1]", "[0,4]"), 5), {"belong to no tensor"});
  refused(safetensors, safetensors_of("{}", 1), {"belong to no tensor"});
  // A polyglot: text between the JSON and the data, inside the header.
  refused(safetensors, safetensors_of("{" + entry("a", "[1]", "[0,4]") + "}PK\x03\x04", 4),
          {"no valid JSON"});
}
TEST(Safetensors, NamesAndKeysThatOccurTwice) {
  refused(safetensors, tensors(entry("a", "[1]", "[0,4]") + "," + entry("a", "[1]", "[4,8]"), 8),
          {"'a' occurs twice"});
  refused(safetensors, tensors(entry("a", "[1]", "[0,4]") + "," + entry("\\u0061", "[1]", "[4,8]"), 8),
          {"'a' occurs twice"});
  refused(safetensors,
          tensors("\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4),
          {"'a'", "'dtype' twice"});
  refused(safetensors, tensors("\"__metadata__\":{},\"__metadata__\":{}", 0), {"__metadata__ twice"});
  refused(safetensors, tensors("\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}", 0), {"'k' twice"});
}
TEST(Safetensors, WrongValues) {
  refused(safetensors, tensors(entry("a", "[NaN]", "[0,4]"), 4), {"no valid JSON"});
  refused(safetensors, tensors(entry("a", "[Infinity]", "[0,4]"), 4), {"no valid JSON"});
  refused(safetensors, tensors(entry("a", "[-1]", "[0,4]"), 4), {"'a'", "'-1' in a list"});
  refused(safetensors, tensors(entry("a", "[1.0]", "[0,4]"), 4), {"'1.0' in a list"});
  refused(safetensors, tensors(entry("a", "[1e3]", "[0,4]"), 4), {"'1e3' in a list"});
  refused(safetensors, tensors(entry("a", "[1e999]", "[0,4]"), 4), {"out of range"});
  refused(safetensors, tensors(entry("a", "[18446744073709551616]", "[0,4]"), 4), {"in a list"});
  refused(safetensors, tensors(entry("a", "[true]", "[0,4]"), 4), {"'true' in a list"});
  refused(safetensors, tensors(entry("a", "[\"1\"]", "[0,4]"), 4), {"in a list"});
  refused(safetensors, tensors(entry("a", "[[1]]", "[0,4]"), 4), {"a list inside a list"});
  refused(safetensors, tensors(entry("a", "{}", "[0,4]"), 4), {"an object inside a record"});
  refused(safetensors, tensors(entry("a", "1", "[0,4]"), 4), {"'a' has a wrong 'shape'"});
  refused(safetensors, tensors(entry("a", "[1]", "[0,4,8]"), 4), {"wrong 'data_offsets'"});
  refused(safetensors, tensors(entry("a", "[1]", "[]"), 4), {"wrong 'data_offsets'"});
  refused(safetensors, tensors(entry("a", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), {"over 8 numbers"});
  refused(safetensors, tensors(entry("a", "[1]", "[0,4]", "F31"), 4),
          {"'a'", "unknown dtype", "'F31'", "F32 U64"});
  refused(safetensors, tensors(entry("a", "[1]", "[0,4]", "f32"), 4), {"unknown dtype"});
  refused(safetensors, tensors("\"a\":{\"dtype\":\"F32\",\"shape\":[1]}", 4), {"'a' has no data_offsets"});
  refused(safetensors, tensors("\"a\":{}", 0), {"'a' has no dtype"});
  refused(safetensors, tensors("\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}", 4),
          {"wrong 'x'"});
  refused(safetensors, tensors("\"a\":5", 0), {"plain value '5' for 'a'"});
  refused(safetensors, tensors("\"a\":[]", 0), {"a list outside a record"});
  refused(safetensors, tensors("\"__metadata__\":{\"k\":1}", 0), {"'k' is not a text"});
  refused(safetensors, tensors(entry("a\xff", "[1]", "[0,4]"), 4), {"UTF-8"});
  refused(safetensors, tensors(entry("a\xc0\x80", "[1]", "[0,4]"), 4), {"UTF-8"});
  refused(safetensors, tensors(entry("\\ud800", "[1]", "[0,4]"), 4), {"no valid JSON"});
  refused(safetensors, tensors(entry(std::string(1025, 'n'), "[1]", "[0,4]"), 4), {"1025 bytes"});
  refused(safetensors, safetensors_of("{\"a\"", 0), {"no valid JSON"});
  refused(safetensors, safetensors_of("[]", 0), {"begin with {"});
  refused(safetensors, safetensors_of("{}{}", 0), {"no valid JSON"});
  // A parser that stops at a zero byte would not see what follows.
  refused(safetensors, safetensors_of(std::string("{}\0", 3), 0), {"zero byte"});
  refused(safetensors, safetensors_of(std::string("{}\0{", 4), 0), {"zero byte"});
}
TEST(Safetensors, ErrorsShowHostileNamesOnOneLineInAscii) {
  const auto said = refused(safetensors, tensors(entry("x\\n\\u001b[31m%s%n*/ \\u00e9", "[1]", "[0,8]"), 8),
                            {"x\\x0a\\x1b[31m%s%n*/ \\xc3\\xa9"});
  for (unsigned char c : said) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
}
TEST(Safetensors, NestingTenThousandDeep) {
  for (const char* open : {"[", "{\"a\":", "{\"a\":["}) {
    std::string deep = "{\"a\":";
    for (int i = 0; i < 10000; i++) deep += open;
    refused(safetensors, safetensors_of(deep, 0));
  }
}
TEST(Safetensors, HeadersThatCostMemory) {
  const size_t mib = 1 << 20;
  auto repeated = [](const std::string& s, size_t bytes) {
    std::string out;
    while (out.size() < bytes) out += s;
    return out;
  };
  refused(safetensors, tensors("\"__metadata__\":{\"k\":\"" + std::string(9 * mib, 'x') + "\"}", 0),
          {"too long", "8388608"});
  survives(safetensors, tensors("\"__metadata__\":{\"k\":\"" + std::string(8 * mib - 64, 'x') + "\"}", 0));
  refused(safetensors, tensors(entry("a", "[" + std::string(mib, '1') + "]", "[0,4]"), 4),
          {"number that is too long"});
  refused(safetensors, tensors("\"a\":{\"shape\":[" + repeated("0,", mib) + "0]}", 0), {"over 8 numbers"});
  refused(safetensors, safetensors_of(repeated("{", mib), 0));
  refused(safetensors, safetensors_of("{" + repeated("\"", mib), 0));
  refused(safetensors, safetensors_of("{" + repeated("\"a\":", mib), 0));
  survives(safetensors, safetensors_of("{" + repeated(" ", 4 * mib) + "}", 0));
  std::string keys;
  for (int i = 0; i < 5000; i++) keys += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  refused(safetensors, tensors("\"__metadata__\":{" + keys + "}", 0), {"over 4096 keys"});
  // Tables of the smallest records: read while they are cheap, refused when not.
  for (int count : {100'000, 300'000, 1'000'001}) {
    std::string many;
    for (int i = 0; i < count; i++)
      many += (i ? "," : "") + entry(std::to_string(i), "[0,0,0,0,0,0,0,0]", "[0,0]", "U8");
    const auto file = tensors(many, 0);
    if (count < 200'000)
      within_limits(file, [&] { EXPECT_EQ(read_safetensors(file).entries().size(), size_t(count)); });
    else
      refused(safetensors, file);
  }
}

// --- npy

std::string dict(const std::string& shape, const std::string& descr = "'<f4'",
                 const std::string& order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}
TEST(Npy, SizesThatWrapOrDoNotMatch) {
  refused(npy, npy_of(dict("(2, 3)"), 20), {"[2, 3] of '<f4' takes 24 bytes", "has 20"});
  refused(npy, npy_of(dict("(2, 3)"), 25), {"24", "25"});
  refused(npy, npy_of(dict("(4611686018427387904,)"), 0), {"64 bits"});
  refused(npy, npy_of(dict("(4294967296, 4294967296)"), 0), {"64 bits"});
  refused(npy, npy_of(dict("(9223372036854775808,)"), 0), {"2^63 - 1"});
  refused(npy, npy_of(dict("(99999999999999999999999999,)"), 0), {"2^63 - 1"});
  refused(npy, npy_of(dict("(-1,)"), 4), {"whole number"});
}
TEST(Npy, HeadersThatAreNoHeader) {
  refused(npy, npy_of("{'descr': '<f4'}", 0), {"no descr, fortran_order or shape"});
  refused(npy, npy_of("{'descr': '<f4', 'descr': '<f4'}", 0), {"'descr' unknown or twice"});
  refused(npy, npy_of(dict("(1,)", "'>f4'"), 4), {"'>f4'", "'<f4'"});
  refused(npy, npy_of(dict("(1,)", "'|O'"), 4), {"'|O'", "element type"});
  refused(npy, npy_of(dict("(1,)", "'<c8'"), 8), {"element type"});
  refused(npy, npy_of(dict("(1,)", "'|f4'"), 4), {"element type"});
  refused(npy, npy_of(dict("(1,)", "[('a', '<f4')]"), 4), {"structure"});
  refused(npy, npy_of(dict("(1,)", "'<f4'", "0"), 4), {"True nor False"});
  refused(npy, npy_of(dict("(1)"), 4), {"(n,)"});
  refused(npy, npy_of(dict("[1]"), 4), {"'('"});
  refused(npy, npy_of(dict("(1,1,1,1,1,1,1,1,1)"), 4), {"over 8 dimensions"});
  refused(npy, npy_of(dict("(1,)") + "import os", 4), {"after the dict"});
  refused(npy, npy_of("{'descr': '<f4", 4), {"without end"});
  refused(npy, npy_of("", 0));
  refused(npy, npy_of(std::string(60000, '('), 0));
  refused(npy, npy_of(std::string(60000, '{'), 0));
  refused(npy, Bytes().text("\x93NUMPY").put(uint8_t(4)).put(uint8_t(0)).zeros(8).file(), {"4.0"});
  refused(npy, Bytes().text("\x93NUMPY").put(uint8_t(2)).put(uint8_t(0)).put(UINT32_MAX).file(),
          {"4294967295", "65536"});
  refused(npy, Bytes().text("PK\x03\x04 a zip").file(), {"no npy file"});
}

// --- llama2.c

Bytes llama_header(int32_t dim, int32_t hidden, int32_t layers, int32_t heads, int32_t kv, int32_t vocab,
                   int32_t seq) {
  return Bytes().put(dim).put(hidden).put(layers).put(heads).put(kv).put(vocab).put(seq);
}
File small_llama(bool tied, int extra = 0) {
  const int d = 4, h = 6, l = 2, heads = 2, kv = 1, v = 5, s = 3, hs = 2;
  const int floats =
      v * d + l * (d + 2 * d * d + 2 * kv * hs * d + d + 3 * h * d) + d + s * hs + (tied ? 0 : v * d);
  auto b = llama_header(d, h, l, heads, kv, tied ? v : -v, s);
  for (int i = 0; i < floats; i++) b.put(float(i));
  return b.zeros(size_t(extra)).file("small.bin");
}
TEST(Llama2c, TensorsFollowEachOther) {
  for (bool tied : {true, false}) {
    const auto m = read_llama2c(small_llama(tied));
    EXPECT_EQ(m.config.tied, tied);
    EXPECT_EQ(m.config.vocab, 5);
    EXPECT_EQ(m.tensors.entries().size(), tied ? 11u : 12u);
    EXPECT_EQ(m.tensors.floats(m.tensors.at("tok_emb"))[0], 0);
    EXPECT_EQ(m.tensors.floats(m.tensors.at("att_norm"))[0], 20);
    EXPECT_EQ(m.tensors.at("wk").shape, (std::vector<int64_t>{2, 2, 4}));
    const float final = m.tensors.floats(m.tensors.at("final_norm"))[3];
    if (!tied) {
      EXPECT_EQ(m.tensors.floats(m.tensors.at("wcls"))[0], final + 1 + 3 * 2);
    }
  }
}
TEST(Llama2c, HeadersThatLie) {
  refused(llama2c, small_llama(true, 4), {"longer than its header", "bytes"});
  refused(llama2c, small_llama(true, 1), {"longer"});
  refused(llama2c, llama_header(0, 1, 1, 1, 1, 1, 1).file(), {"dim is 0"});
  refused(llama2c, llama_header(4, 1, 1, 0, 1, 1, 1).file(), {"n_heads is 0"});
  refused(llama2c, llama_header(4, 1, 1, 2, 0, 1, 1).file(), {"n_kv_heads is 0"});
  refused(llama2c, llama_header(4, 1, -1, 2, 1, 1, 1).file(), {"n_layers is -1"});
  refused(llama2c, llama_header(4, 1, 1, 2, 1, 0, 1).file(), {"vocab_size is 0"});
  refused(llama2c, llama_header(4, 1, 1, 2, 1, INT32_MIN, 1).file(), {"shorter"});
  refused(llama2c, llama_header(5, 1, 1, 2, 1, 1, 1).file(), {"dim is 5"});
  refused(llama2c, llama_header(6, 1, 1, 2, 1, 1, 1).file(), {"dim / n_heads is 3"});
  refused(llama2c, llama_header(12, 1, 1, 3, 2, 1, 1).file(), {"n_heads is 3"});
  const int32_t m = INT32_MAX;
  refused(llama2c, llama_header(m - 1, m, m, 1, 1, m, m).file(), {"shorter"});
  refused(llama2c, llama_header(1 << 30, 1 << 30, 1 << 30, 2, 1, 1, 1).file(), {"shorter"});
  refused(llama2c, llama_header(65536, 1, 1 << 30, 2, 1, 1, 1).zeros(1 << 20).file(), {"shorter"});
  refused(llama2c, llama_header(0x616b3432, 1, 1, 1, 1, 1, 1).file(), {"later version"});
}

// --- tokenizer

struct Piece {
  std::string text;
  float score = 0;
};
Bytes vocabulary(const std::vector<Piece>& more, int32_t max_len = 16) {
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
TEST(Tokenizer, JoinsTheBestPairFirstAndTheLeftmostOfEquals) {
  // Ids from 259: a b c ab bc abc aa " "
  const auto t = read_tokenizer(
      vocabulary({{"a", 0}, {"b", 0}, {"c", 0}, {"ab", -3}, {"bc", -2}, {"abc", -1}, {"aa", -5}, {" ", 0}})
          .file());
  EXPECT_EQ(t.encode("abc"), (std::vector<int>{1, 266, 264}));  // bc, then abc
  EXPECT_EQ(t.encode("ab"), (std::vector<int>{1, 266, 262}));
  EXPECT_EQ(t.encode("aaa"), (std::vector<int>{1, 266, 265, 259}));  // leftmost
  EXPECT_EQ(t.encode("aaaa"), (std::vector<int>{1, 266, 265, 265}));
  EXPECT_EQ(t.encode(""), (std::vector<int>{1}));
  EXPECT_EQ(t.encode("", false, true), (std::vector<int>{2}));
  EXPECT_EQ(t.encode("b", false, true), (std::vector<int>{266, 260, 2}));
}
// The rule as it is usually written: look at all pairs, join the best, again.
std::vector<int> encode_slowly(const Tokenizer& t, std::string_view text) {
  std::vector<int> ids = {1, *t.find(" ")};
  for (char c : text) {
    const auto id = t.find(std::string_view(&c, 1));
    ids.push_back(id ? *id : 3 + static_cast<unsigned char>(c));
  }
  while (true) {
    int best = -1;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); i++) {
      const auto id = t.find(std::string(t.piece(ids[i])) + std::string(t.piece(ids[i + 1])));
      if (id && (best < 0 || t.score(*id) > t.score(best))) best = *id, at = i;
    }
    if (best < 0) return ids;
    ids[at] = best;
    ids.erase(ids.begin() + std::ptrdiff_t(at) + 1);
  }
}
TEST(Tokenizer, HeapAndPlainSearchAgree) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; round++) {
    std::vector<Piece> pieces = {{" ", 0}, {"a", 0}, {"b", 0}};
    std::vector<std::string> known = {" ", "a", "b"};
    while (pieces.size() < 20) {
      const auto joined = known[random() % known.size()] + known[random() % known.size()];
      if (joined.size() > 16 || std::find(known.begin(), known.end(), joined) != known.end()) continue;
      known.push_back(joined);
      pieces.push_back({joined, -float(random() % 6)});  // few scores: many ties
    }
    const auto t = read_tokenizer(vocabulary(pieces).file());
    for (int i = 0; i < 20; i++) {
      std::string text;
      for (size_t n = random() % 40; text.size() <= n;) text += "ab c"[random() % 4];
      EXPECT_EQ(t.encode(text), encode_slowly(t, text)) << text;
      EXPECT_EQ(t.decode(t.encode(text)), text);
    }
  }
}
TEST(Tokenizer, AnyBytesComeBack) {
  const auto t =
      read_tokenizer(vocabulary({{" ", 0}, {"\xc3\xa9", -1}, {"\xff", -2}, {"e\xcc\x81", -3}}).file());
  EXPECT_EQ(t.encode("\xc3\xa9"), (std::vector<int>{1, 259, 260}));
  EXPECT_EQ(t.encode("\xc3"), (std::vector<int>{1, 259, 3 + 0xc3}));
  EXPECT_EQ(t.encode("\xf0\x9f\x98\x80"), (std::vector<int>{1, 259, 3 + 0xf0, 3 + 0x9f, 3 + 0x98, 3 + 0x80}));
  std::mt19937 random(3);
  for (int i = 0; i < 500; i++) {
    std::string text;
    for (size_t n = random() % 30; text.size() < n;) text += char(random());
    EXPECT_EQ(t.decode(t.encode(text)), text);
  }
  EXPECT_EQ(t.decode(5, 259), " ");
  EXPECT_EQ(t.decode(Tokenizer::bos, 259), "");
  for (int id : {-1, 263, INT32_MIN, INT32_MAX})
    expect_words(error_of([&] { t.decode(0, id); }), {std::to_string(id), "262"});
}
TEST(Tokenizer, NoTextBecomesAFixedToken) {
  // "</s>" and "<0x41>" can be joined from pieces, but their tokens are not text.
  const auto t = read_tokenizer(vocabulary({{"<", 0},
                                            {"s", 0},
                                            {"\n", 0},
                                            {"\n<", 1},
                                            {"s>", 1},
                                            {"s>\n", 2},
                                            {"<0x4", 0},
                                            {"1>", 0},
                                            {">", 0}})
                                    .file());
  EXPECT_TRUE(t.find("\n<s>\n") == Tokenizer::bos);
  for (const std::string text : {"\n<s>\n", "<0x41>", "<unk>", "\n</s>\n"}) {
    const auto ids = t.encode(text, false);
    for (int id : ids) EXPECT_GT(id, 2);
    EXPECT_EQ(t.decode(t.encode(text)), text);
  }
}
TEST(Tokenizer, LongTextsTakeLogLinearTime) {
  std::vector<Piece> pieces = {{" ", 0}, {"a", 0}};
  for (int n = 2; n <= 512; n *= 2) pieces.push_back({std::string(size_t(n), 'a'), float(n)});
  const auto t = read_tokenizer(vocabulary(pieces, 512).file());
  const auto start = std::chrono::steady_clock::now();
  const std::string text(1 << 18, 'a');
  EXPECT_EQ(t.encode(text).size(), 2 + text.size() / 512);
  EXPECT_LE(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5);
}
TEST(Tokenizer, VocabulariesThatLie) {
  refused(tokenizer, vocabulary({{"ab", 0}, {"ab", 1}}).file(), {"tokens 259 and 260 are both 'ab'"});
  refused(tokenizer, vocabulary({{"<0x41>", 0}}).file(), {"tokens 68 and 259"});
  refused(tokenizer, vocabulary({{"", 0}}).file(), {"token 259", "it says 0"});
  refused(tokenizer, vocabulary({{"abc", 0}}, 2).file(), {"token 0", "longest is 2"});
  refused(tokenizer, vocabulary({}, -1).file(), {"longest is -1"});
  refused(tokenizer, vocabulary({{std::string(1025, 'x'), 0}}, 5000).file(), {"1025"});
  refused(tokenizer, vocabulary({{"x", NAN}}).file(), {"token 259 has no finite score"});
  for (int32_t n : {-1, INT32_MIN, INT32_MAX, 17})
    refused(tokenizer, vocabulary({}).put(0.0f).put(n).text("x").file(), {"token 259"});
  refused(tokenizer, vocabulary({}).put(0.0f).put(int32_t(9)).text("x").file(), {"ends inside a piece"});
  refused(tokenizer, Bytes().put(int32_t(8)).file(), {"token 3 must be <0x00>", "there are 0"});
  // "<0x-1>" in place of a byte.
  auto wrong = vocabulary({}).file();
  std::memcpy(std::search(wrong.bytes.begin(), wrong.bytes.end(), "<0x00>", "<0x00>" + 6).base(), "<0x-1>",
              6);
  refused(tokenizer, wrong, {"token 3 must be <0x00>", "<0x-1>"});
  survives(tokenizer, vocabulary({{"<0x-1>", 0}, {"\xff\xfe", 1}, {std::string("\0", 1), 2}}).file());
  const auto file = vocabulary({{"x", 0}}).file();
  expect_words(error_of([&] { read_tokenizer(file, 259); }), {"more tokens", "259"});
  expect_words(error_of([&] { read_tokenizer(file, 261); }), {"has 260", "261"});
  expect_words(error_of([&] { read_tokenizer(file, -1); }), {"has 260", "-1"});
  EXPECT_EQ(read_tokenizer(file, 260).size(), 260);
  // Many tiny tokens: the table stays within the memory promised.
  Bytes many = vocabulary({});
  for (int i = 0; i < 300'000; i++) many.put(0.0f).put(int32_t(7)).text(std::to_string(1'000'000 + i));
  survives(tokenizer, many.file());
}

// --- json tensors

File json_of(const std::string& s) { return {"hostile.json", {s.begin(), s.end()}}; }
TEST(JsonTensors, WrongValues) {
  auto one = [](const std::string& shape, const std::string& data,
                const std::string& dtype = "torch.float32") {
    return json_of("{\"w\":{\"shape\":" + shape + ",\"dtype\":\"" + dtype + "\",\"data\":\"" + data + "\"}}");
  };
  const auto ok = read_json_tensors(one("[1]", "AACAPw=="));
  EXPECT_EQ(ok.floats(ok.at("w")), (std::vector<float>{1}));
  refused(json, one("[2]", "AACAPw=="), {"'w'", "8 bytes", "given 4"});
  refused(json, one("[1]", "AACAPw="), {"not base64"});
  refused(json, one("[1]", "AACAPx=="), {"not base64"});  // bits that belong to no byte
  refused(json, one("[1]", "AACA*w=="), {"not base64"});
  refused(json, one("[1]", "===="), {"not base64"});
  refused(json, one("[1]", "AAC=APw="), {"not base64"});
  refused(json, one("[0,4611686018427387904,4]", ""), {"64 bits"});
  refused(json, one("[1]", "AACAPw==", "torch.float64"), {"torch.float64"});
  refused(json, json_of("{\"w\":{\"shape\":[0],\"data\":\"\"}}"), {"no dtype"});
  refused(json, json_of("{\"config\":{},\"config\":{}}"), {"config twice"});
  refused(json,
          json_of("{\"w\":{\"shape\":[0],\"data\":\"\",\"dtype\":\"torch.float32\"},\"w\":{\"shape\":[0],"
                  "\"data\":\"\",\"dtype\":\"torch.float32\"}}"),
          {"'w' occurs twice"});
  refused(json, json_of(""));
  refused(json, json_of("\xef\xbb\xbf"));
  refused(json, json_of(std::string(10000, '[')));
  refused(json, json_of(std::string(1 << 20, '{')));
}

// --- zip

struct Item {
  std::string name, data;
  uint16_t method = 0, flags = 0;
};
uint32_t checksum(std::string_view bytes) {  // bit by bit, unlike the reader's table
  uint32_t c = ~0u;
  for (unsigned char b : bytes) {
    c ^= b;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
  }
  return ~c;
}
File zip_of(const std::vector<Item>& items, const std::string& comment = "") {
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
TEST(TorchScript, BlobsInOrderOfNumber) {
  const std::string one("\0\0\x80\x3f", 4), two("\0\0\0\x40", 4);
  const auto t = read_torchscript(zip_of(
      {{"m/data/10", two}, {"m/code.py", "x", 8}, {"m/data/2", one}, {"m/data/x", "no"}}, "PK\x05\x06"));
  ASSERT_EQ(t.entries().size(), 2u);
  EXPECT_EQ(t.entries()[0].name, "data/2");
  EXPECT_EQ(t.floats(t.at("data/2")), (std::vector<float>{1}));
  EXPECT_EQ(t.floats(t.at("data/10")), (std::vector<float>{2}));
}
TEST(TorchScript, ZipsThatLie) {
  const std::string four(4, '\0');
  refused(torchscript, zip_of({{"m/data/0", four, 8}}),
          {"'m/data/0' is compressed", "method is 8", "method 0"});
  refused(torchscript, zip_of({{"m/data/0", four, 0, 1}}), {"encrypted"});
  refused(torchscript, zip_of({{"m/data/0", "abc"}}), {"'data/0'", "3 bytes"});
  refused(torchscript, zip_of({{"m/data/0", four}, {"m/data/0", four}}), {"twice"});
  refused(torchscript, zip_of({{"m/data/0", four}, {"n/data/1", four}}), {"two archives", "'m' and 'n'"});
  refused(torchscript, zip_of({{"m/data/0", four}, {"m/byteorder", "big"}}), {"'big'"});
  refused(torchscript, zip_of({{"m/version", "3"}}), {"no tensors"});
  refused(torchscript, zip_of({}), {"no tensors"});
  refused(torchscript, Bytes().zeros(1000).file(), {"no end record"});
  const auto good = zip_of({{"m/data/0", "12345678"}, {"m/data/1", "abcd"}});
  const size_t directory = 2 * (30 + 8 + 4) + 12;
  auto patched = [&](size_t at, auto value) {
    File f = good;
    std::memcpy(f.bytes.data() + at, &value, sizeof value);
    return f;
  };
  refused(torchscript, patched(42, char('x')), {"'m/data/0' is damaged", "checksum"});
  refused(torchscript, patched(directory + 42, uint32_t(50)), {"disagrees"});
  refused(torchscript, patched(directory + 42, uint32_t(0x7fffffff)), {"outside the file"});
  refused(torchscript, patched(directory + 42, UINT32_MAX), {"wrong size"});
  refused(torchscript, patched(directory + 20, uint32_t(1 << 30)), {"wrong size"});
  refused(torchscript, patched(directory + 28, uint16_t(0xffff)), {"ends inside the zip directory"});
  refused(torchscript, patched(good.size() - 6, uint32_t(good.size())), {"wrong zip directory"});
  refused(torchscript, patched(good.size() - 6, UINT32_MAX), {"zip64"});
  refused(torchscript, patched(good.size() - 12, uint16_t(9)), {"wrong zip directory"});
  // Both sizes of an item too large: it runs into the next one.
  auto overlapping = patched(directory + 20, uint32_t(52));
  std::memcpy(overlapping.bytes.data() + directory + 24, overlapping.bytes.data() + directory + 20, 4);
  refused(torchscript, overlapping, {"'data/1' overlaps 'data/0'"});
}
TEST(TorchScript, ManyItemsInEachOtherAreNotReadManyTimes) {
  // Every item's data holds all later ones: checksums of all would read gigabytes.
  Bytes b, directory;
  const int count = 8000;
  for (int i = 0; i < count; i++) {
    const std::string name = "m/data/" + std::to_string(i);
    const auto at = uint32_t(b.size());
    b.put(0x04034b50u).zeros(22).put(uint16_t(name.size())).put(uint16_t(0)).text(name);
    const auto size = uint32_t((count - 1 - i) * 36);
    directory.put(0x02014b50u).zeros(12).put(0u).put(size).put(size);
    directory.put(uint16_t(name.size())).put(uint16_t(0)).put(uint16_t(0)).zeros(8).put(at).text(name);
  }
  b.zeros(600'000);
  const auto at = uint32_t(b.size()), size = uint32_t(directory.size());
  b.text({reinterpret_cast<const char*>(directory.bytes().data()), size});
  b.put(0x06054b50u).put(0u).put(uint16_t(count)).put(uint16_t(count)).put(size).put(at).put(uint16_t(0));
  refused(torchscript, b.file(), {"overlaps"});
}

// --- all readers

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

// --- the file system

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
