// Literals in every dialect's text are the bits that they were: case 97.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tang/emit/cuda.hpp"
#include "tang/emit/glsl.hpp"
#include "tang/emit/msl.hpp"
#include "tang/emit/opencl.hpp"
#include "tang/emit/wgsl.hpp"

using namespace tang;

namespace {
// The number that a literal's text means: of brackets, a sign, digits of either base and a suffix.
float meant(std::string text) {
  while (!text.empty() && text.front() == '(') text = text.substr(1, text.size() - 2);
  char* end = nullptr;
  const float v = std::strtof(text.c_str(), &end);
  EXPECT_NE(end, text.c_str()) << text;
  EXPECT_TRUE(!*end || !std::strcmp(end, "f")) << text;
  return v;
}
} // namespace

TEST(literals, case_97_every_dialect_keeps_their_bits) {
  const std::vector<const emit::GpuDialect*> dialects{&emit::cuda_dialect(), &emit::opencl_dialect(false), &emit::glsl_dialect(),
                                                      &emit::wgsl_dialect(), &emit::msl_dialect()};
  const emit::Dialect c;
  std::vector<float> values{0.1f, 16777217.0f, 1.17549435e-38f, 3.4028235e38f, 1e-45f, 1.0f, -1.5e-40f, 1.0f / 3, 123456789.0f};
  uint32_t bits = 1;
  for (int k = 0; k < 2000; ++k) {
    bits = bits * 1664525u + 1013904223u;
    float v;
    std::memcpy(&v, &bits, 4);
    if (std::isfinite(v)) values.push_back(v);
  }
  for (float v : values)
    for (float signed_ : {v, -v}) {
      const expr::Value x = expr::real(double(signed_));
      std::vector<std::string> texts{c.literal(x, false)};
      for (auto* d : dialects) texts.push_back(d->literal(x, false));
      for (auto& t : texts) {
        const float back = meant(t);
        EXPECT_EQ(std::memcmp(&back, &signed_, 4), 0) << t;
      }
    }
  const expr::Value zero = expr::real(-0.0);
  EXPECT_TRUE(std::signbit(meant(c.literal(zero, false))));
  for (auto* d : dialects) EXPECT_TRUE(std::signbit(meant(d->literal(zero, false)))) << d->literal(zero, false);
}
