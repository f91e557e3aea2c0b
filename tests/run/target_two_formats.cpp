// A step that stores one value in a narrow and in a wide format: both may come from its registers.
#include "run/harness.hpp"
#include "tang/text/text.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;

namespace {
const char* const twice = R"(
exact
input x[6, 8] : f32
input y[6, 8] : f32
n[i: 6, j: 8] = %c * x[i, j] + y[i, j]
output narrow = n : %s
output wide = n : f32
)";

ir::Graph graph_of(const std::string& format, const char* factor = "2") {
  std::string text = twice;
  text.replace(text.find("%s"), 2, format);
  text.replace(text.find("%c"), 2, factor);
  return text::parse(text, "twice.tang");
}
} // namespace

TEST(two_formats, a_wide_copy_of_a_narrow_value_is_right) {
  for (const char* format : {"f16", "bf16"}) {
    const ir::Graph g = graph_of(format);
    run::Options o;
    o.guards = true;
    run::Program p(g, test::shared_compiler(), std::make_shared<device::Cpu>(1), o);
    const eval::Inputs in{{"x", test::random_reals({6, 8}, 1)}, {"y", test::random_reals({6, 8}, 2)}};
    const auto report = verify::verify(p, g, in, 1e-5);
    EXPECT_TRUE(report.ok()) << format;
    for (auto& c : report.outputs) EXPECT_LT(c.error, c.what == "wide" ? 1e-6 : 5e-3) << format;
  }
}

// What a kernel stores is still held against its inputs: another value is found in both formats.
TEST(two_formats, another_value_is_found) {
  const ir::Graph g = graph_of("f16");
  run::Options o;
  run::Program p(graph_of("f16", "3"), test::shared_compiler(), std::make_shared<device::Cpu>(1), o);
  const eval::Inputs in{{"x", test::random_reals({6, 8}, 1)}, {"y", test::random_reals({6, 8}, 2)}};
  const auto report = verify::verify(p, g, in, 1e-5);
  for (auto& c : report.outputs) EXPECT_FALSE(c.ok) << c.what;
}
