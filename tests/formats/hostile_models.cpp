// llama2.c, tokenizer and TorchScript files made to hurt, and what the tokenizer does with any text.
#include <random>

#include "formats/hostile.hpp"

namespace tang::formats {
namespace {

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
  const File text{"text", std::vector<uint8_t>(1 << 18, 'a')};
  within_limits(text, [&] { EXPECT_EQ(t.encode(text.text(0, text.size())).size(), 2 + text.size() / 512); });
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
  const std::string_view bytes = wrong.text(0, wrong.size());
  std::memcpy(wrong.bytes.data() + bytes.find("<0x00>"), "<0x-1>", 6);
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

}  // namespace
}  // namespace tang::formats
