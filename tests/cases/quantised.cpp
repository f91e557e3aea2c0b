// Part F of the cases as far as it is arithmetic: block formats of other engines as graphs over bytes.
#include <fstream>
#include <sstream>

#include "cases/everywhere.hpp"
#include "tang/text/text.hpp"

using namespace tang;
using namespace tang::test;

namespace {
int64_t byte(int64_t i) { return (37 * i + 11) % 256; }

Array words(Type type, std::vector<int64_t> v) {
  Array a = eval::indices({int64_t(v.size())}, v);
  a.type = type;
  return a;
}

Array bytes(int64_t first, int64_t last) {
  std::vector<int64_t> v;
  for (int64_t i = first; i <= last; ++i) v.push_back(byte(i));
  return words(Type::bits, v);
}

std::map<std::string, Array> block(const char* file, const Inputs& in) {
  std::ifstream text(std::string(TANG_SOURCE) + "/tests/cases/blocks/" + file);
  std::stringstream s;
  s << text.rdbuf();
  return everywhere(text::parse(s.str(), file), in);
}

void expect_numbers(const Array& y, const std::map<size_t, double>& some, double sum, double squares) {
  double s = 0, q = 0;
  for (double v : y.r) s += v, q += v * v;
  for (auto& [at, v] : some) EXPECT_EQ(y.r[at], v) << at;
  EXPECT_EQ(s, sum);
  EXPECT_EQ(q, squares);
}
} // namespace

TEST(cases, case_76_q5_k) {
  auto out = block("q5_k.tang", {{"scales", bytes(0, 11)},
                                 {"high", bytes(12, 43)},
                                 {"low", bytes(44, 171)},
                                 {"d", filled({1}, 1)},
                                 {"dmin", filled({1}, 0.5)}});
  EXPECT_EQ(out["scale"].i, (std::vector<int64_t>{11, 48, 21, 58, 3, 8, 29, 18}));
  EXPECT_EQ(out["least"].i, (std::vector<int64_t>{31, 4, 41, 14, 35, 53, 55, 10}));
  expect_numbers(out["y"], {{0, 237.5}, {1, 116.5}, {31, 6.5}, {32, 1054}, {100, 1443}, {255, 211}}, 92328, 74525704);
}

TEST(cases, case_78_q6_k) {
  std::vector<int64_t> scales;
  for (int64_t i = 192; i < 208; ++i) scales.push_back(int8_t(uint8_t(byte(i))));
  auto out = block("q6_k.tang", {{"low", bytes(0, 127)},
                                 {"high", bytes(128, 191)},
                                 {"scales", words(Type::index, scales)},
                                 {"d", filled({1}, 1)}});
  expect_numbers(out["y"], {{0, -1431}, {1, 1696}, {31, -96}, {32, 231}, {100, 2523}, {255, -60}}, 4612, 473900260);
}

TEST(cases, case_80_affine_4_bits) {
  std::vector<int64_t> w;
  for (int64_t k = 0; k < 8; ++k)
    w.push_back(byte(4 * k) | byte(4 * k + 1) << 8 | byte(4 * k + 2) << 16 | byte(4 * k + 3) << 24);
  auto out = block("mlx_q4.tang", {{"word", words(Type::bits, w)}, {"scale", filled({1}, 0.5)}, {"bias", filled({1}, -3)}});
  expect_numbers(out["y"], {{0, 2.5}, {1, -3}, {31, -1.5}, {32, 2.5}}, 41, 359);
}
