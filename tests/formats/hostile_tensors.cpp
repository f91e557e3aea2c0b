// safetensors, npy and JSON files made to hurt: sizes that wrap, spans that lie, headers that cost.
#include "formats/hostile.hpp"

namespace tang::formats {
namespace {

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
  for (int count : {100'000, 300'000}) {
    std::string many;
    for (int i = 0; i < count; i++)
      many += (i ? "," : "") + entry(std::to_string(i), "[0,0,0,0,0,0,0,0]", "[0,0]", "U8");
    const auto file = tensors(many, 0);
    if (count == 100'000) {
      within_limits(file, [&] { EXPECT_EQ(read_safetensors(file).entries().size(), size_t(count)); });
    } else {
      refused(safetensors, file, {"too much memory"});
    }
  }
  refused(safetensors, safetensors_of("{\"a\":{}" + repeated(",\"a\":{}", 7'000'000) + "}", 0),
          {"too many tensors"});
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

}  // namespace
}  // namespace tang::formats
