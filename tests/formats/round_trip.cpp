// What is written reads back: every element type, every npy version, empty and scalar shapes, odd names.
#include <cmath>
#include <limits>
#include <random>

#include "formats/files.hpp"
#include "tang/formats/npy.hpp"
#include "tang/formats/safetensors.hpp"

namespace tang::formats {
namespace {

using Shape = std::vector<int64_t>;

std::vector<uint8_t> random_bytes(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> out(n);
  for (auto& b : out) b = uint8_t(random());
  return out;
}
bool same_data(const TensorFile& a, const Entry& ea, const TensorFile& b, const Entry& eb) {
  const auto x = a.data(ea), y = b.data(eb);
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin());
}

TEST(RoundTrip, SafetensorsOfEveryTypeAndShape) {
  Folder folder;
  TensorFile t("made here");
  const Shape shapes[] = {{}, {0}, {3}, {2, 3}, {4, 0, 5}, {1, 2, 3, 1, 2, 1, 1, 2}};
  for (size_t type = 0; type < size_t(Dtype::count_); type++) {
    for (auto& shape : shapes) {
      const auto data = random_bytes(*count_bytes(shape, Dtype(type)), type);
      t.add(std::string(row(Dtype(type)).name) + text(shape), Dtype(type), shape, data);
    }
  }
  t.add("quotes \" \\ and \n \xc3\xa9 \xf0\x9f\x98\x80", {1}, {1.5f});
  t.add("", {1}, {2.5f});
  t.set_metadata({{"format", "pt"}, {"note \"x\"", "line\nline"}});
  const auto path = folder / "all.safetensors";
  write_safetensors(path, t);
  const auto file = read_file(path);
  const auto back = read_safetensors(file);
  EXPECT_EQ(back.metadata(), t.metadata());
  ASSERT_EQ(back.entries().size(), t.entries().size());
  for (auto& e : t.entries()) {
    const auto& b = back.at(e.name);
    EXPECT_EQ(b.dtype, e.dtype);
    EXPECT_EQ(b.shape, e.shape);
    EXPECT_TRUE(same_data(t, e, back, b)) << e.name;
    EXPECT_EQ(b.size ? b.offset % row(b.dtype).bytes : 0, 0u) << "aligned in the file";
  }
  // Writing what was read gives the same bytes.
  const auto again = folder / "again.safetensors";
  write_safetensors(again, back);
  EXPECT_EQ(read_file(again).bytes, file.bytes);
}

TEST(RoundTrip, SafetensorsWithoutTensors) {
  Folder folder;
  const auto path = folder / "empty.safetensors";
  write_safetensors(path, TensorFile());
  EXPECT_TRUE(read_safetensors(read_file(path)).entries().empty());
  EXPECT_TRUE(read_safetensors(safetensors_of("{}", 0)).entries().empty());
}

TEST(RoundTrip, NpyOfEveryTypeShapeAndVersion) {
  Folder folder;
  const auto path = folder / "a.npy";
  const Shape shapes[] = {{}, {0}, {3}, {2, 3}, {2, 0}, {1, 2, 3, 1, 2, 1, 1, 2}};
  for (size_t type = 0; type < size_t(Dtype::count_); type++) {
    if (!*row(Dtype(type)).npy) continue;
    for (auto& shape : shapes) {
      for (int version = 1; version <= 3; version++) {
        TensorFile t("made here");
        t.add("a", Dtype(type), shape, random_bytes(*count_bytes(shape, Dtype(type)), type));
        write_npy(path, t, t.at("a"), version);
        const auto file = read_file(path);
        EXPECT_EQ(file.bytes[6], version);
        const auto back = read_npy(file);
        const auto& e = back.at("array");
        EXPECT_EQ(e.offset % 64, 0u);
        EXPECT_EQ(e.dtype, Dtype(type));
        EXPECT_EQ(e.shape, shape);
        EXPECT_FALSE(e.fortran_order);
        EXPECT_TRUE(same_data(t, t.at("a"), back, e));
      }
    }
  }
}

TEST(RoundTrip, NpyHeaderIsWhatNumpyWrites) {
  Folder folder;
  const auto path = folder / "a.npy";
  TensorFile t("made here");
  t.add("a", {2, 3}, {1, 2, 3, 4, 5, 6});
  write_npy(path, t, t.at("a"));
  const auto file = read_file(path);
  std::string known = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  known.resize(117, ' ');
  EXPECT_EQ(file.text(0, 10), std::string_view("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(file.text(10, 118), known + "\n");
  EXPECT_EQ(file.size(), 128u + 24);
}

TEST(RoundTrip, FortranOrderIsReportedAndValuesAreRowMajor) {
  // [2, 3, 2] holding 100 i + 10 j + k, first axis fastest.
  Bytes data;
  for (int k = 0; k < 2; k++)
    for (int j = 0; j < 3; j++)
      for (int i = 0; i < 2; i++) data.put(int32_t(100 * i + 10 * j + k));
  auto file = npy_of("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 2), }\n", 0);
  file.bytes.insert(file.bytes.end(), data.bytes().begin(), data.bytes().end());
  const auto t = read_npy(file);
  EXPECT_TRUE(t.at("array").fortran_order);
  std::vector<double> known;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 2; k++) known.push_back(100 * i + 10 * j + k);
  EXPECT_EQ(t.doubles(t.at("array")), known);
  Folder folder;
  const auto path = folder / "f.npy";
  write_npy(path, t, t.at("array"));
  const auto back = read_npy(read_file(path));
  EXPECT_TRUE(back.at("array").fortran_order);
  EXPECT_EQ(back.doubles(back.at("array")), known);
  expect_words(error_of([&] { write_safetensors(folder / "no", back); }), {"fortran order"});
}

TEST(RoundTrip, NpyDictMayBeSpelledFreely) {
  for (const char* dict : {"{'shape':(2,),'descr':'<f4','fortran_order':False}",
                           "{ \"descr\": '<f4', 'shape': ( 2 , ), 'fortran_order': False , }  \n"}) {
    for (int version = 1; version <= 3; version++)
      EXPECT_EQ(read_npy(npy_of(dict, 8, version)).at("array").shape, (Shape{2}));
  }
  EXPECT_EQ(read_npy(npy_of("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", 1)).at("array").shape,
            (Shape{}));
}

TEST(Convert, NarrowFloatsWidenExactly) {
  auto one = [](Dtype type, auto bits) {
    float f;
    double d;
    convert(type, reinterpret_cast<const uint8_t*>(&bits), 1, &f);
    convert(type, reinterpret_cast<const uint8_t*>(&bits), 1, &d);
    EXPECT_TRUE(f == d || (std::isnan(f) && std::isnan(d)));
    return f;
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(one(Dtype::f16, uint16_t(0x3c00)), 1);
  EXPECT_EQ(one(Dtype::f16, uint16_t(0xc000)), -2);
  EXPECT_EQ(one(Dtype::f16, uint16_t(0x7bff)), 65504);
  EXPECT_EQ(one(Dtype::f16, uint16_t(0x0001)), std::ldexp(1.0f, -24));
  EXPECT_EQ(one(Dtype::f16, uint16_t(0x03ff)), std::ldexp(1023.0f, -24));
  EXPECT_EQ(one(Dtype::f16, uint16_t(0x0400)), std::ldexp(1.0f, -14));
  EXPECT_EQ(one(Dtype::f16, uint16_t(0xfc00)), -inf);
  EXPECT_TRUE(std::isnan(one(Dtype::f16, uint16_t(0x7e01))));
  EXPECT_TRUE(std::signbit(one(Dtype::f16, uint16_t(0x8000))));
  EXPECT_EQ(one(Dtype::bf16, uint16_t(0x3fc0)), 1.5f);
  EXPECT_EQ(one(Dtype::bf16, uint16_t(0x0001)), std::ldexp(1.0f, -133));
  EXPECT_EQ(one(Dtype::f8_e4m3, uint8_t(0x01)), std::ldexp(1.0f, -9));
  EXPECT_EQ(one(Dtype::f8_e4m3, uint8_t(0x07)), .013671875f);
  EXPECT_EQ(one(Dtype::f8_e4m3, uint8_t(0x08)), std::ldexp(1.0f, -6));
  EXPECT_EQ(one(Dtype::f8_e4m3, uint8_t(0x39)), 1.125f);
  EXPECT_EQ(one(Dtype::f8_e4m3, uint8_t(0x7e)), 448);
  EXPECT_TRUE(std::isnan(one(Dtype::f8_e4m3, uint8_t(0xff))));
  EXPECT_EQ(one(Dtype::f8_e5m2, uint8_t(0x7b)), 57344);
  EXPECT_EQ(one(Dtype::f8_e5m2, uint8_t(0x7c)), inf);
  EXPECT_TRUE(std::isnan(one(Dtype::f8_e5m2, uint8_t(0x7d))));
  EXPECT_EQ(one(Dtype::boolean, uint8_t(7)), 1);
  EXPECT_EQ(one(Dtype::i8, int8_t(-128)), -128);
  EXPECT_EQ(one(Dtype::i64, int64_t(-5)), -5);
  EXPECT_EQ(one(Dtype::u64, uint64_t(1) << 63), 9223372036854775808.0f);
}

TEST(Write, LeavesNothingHalfWrittenAndReplacesWhole) {
  Folder folder;
  TensorFile t("made here");
  t.add("\xff", {1}, {1});
  const auto path = folder / "x.safetensors";
  expect_words(error_of([&] { write_safetensors(path, t); }), {"\\xff", "UTF-8"});
  EXPECT_FALSE(is_present(path));
  error_of([&] { write_safetensors(folder.path() + "/no such folder/x", TensorFile()); });
  TensorFile bf("made here");
  bf.add("b", Dtype::bf16, {1}, std::vector<uint8_t>(2));
  expect_words(error_of([&] { write_npy(path, bf, bf.at("b")); }), {"BF16", "'b'"});
  TensorFile reserved("made here");
  reserved.add("__metadata__", {1}, {1});
  expect_words(error_of([&] { write_safetensors(path, reserved); }), {"__metadata__"});
  EXPECT_FALSE(is_present(path));
  write_file(path, {});
  const std::vector<uint8_t> one = {1, 2, 3};
  write_file(path, {one, one});
  EXPECT_EQ(read_file(path).bytes, (std::vector<uint8_t>{1, 2, 3, 1, 2, 3}));
}

TEST(TensorFile, AddRefusesWhatDoesNotFit) {
  TensorFile t("made here");
  t.add("a", {2}, {1, 2});
  expect_words(error_of([&] { t.add("a", {1}, {1}); }), {"'a'", "twice"});
  expect_words(error_of([&] { t.add("b", {3}, {1}); }), {"'b'", "12 bytes", "given 4"});
  error_of([&] { t.add("b", {-1}, {1}); });
  error_of([&] { t.add("b", {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1}); });
  error_of([&] { t.add(std::string(1025, 'n'), {1}, {1}); });
  EXPECT_EQ(t.entries().size(), 1u);
  expect_words(error_of([&] { t.at("c"); }), {"'c'", "it holds a"});
}

}  // namespace
}  // namespace tang::formats
