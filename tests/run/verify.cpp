// Verification finds a wrong kernel and says what its buffer holds; a right program passes with nothing unwritten.
#include "run/harness.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;
using namespace tang::ir;

TEST(verify, every_buffer_of_a_two_layer_net) {
  Builder b;
  Tensor x = b.input("x", {9, 20}), u = b.param("u", {20, 31}), w = b.param("w", {31, 6});
  auto [i, j, k, l] = axes<"i j k l">();
  Tensor hidden = map({i, k}, relu(sum(j, x(i, j) * u(j, k))), "hidden");
  b.output(map({i, l}, sum(k, hidden(i, k) * w(k, l)), "y"), "y");
  const Graph g = b.graph();
  run::Options o;
  o.guards = true;
  run::Program p(g, test::shared_compiler(), std::make_shared<device::Cpu>(1), o);
  eval::Inputs in{{"x", test::random_reals({9, 20}, 1)}, {"u", test::random_reals({20, 31}, 2)}, {"w", test::random_reals({31, 6}, 3)}};
  const auto report = verify::verify(p, g, in, 1e-5);
  EXPECT_TRUE(report.ok());
  EXPECT_GE(report.kernels.size(), 2u);
  for (auto& c : report.kernels) EXPECT_EQ(c.unwritten, 0) << c.what;
  const auto strict = verify::verify(p, g, in, 0);
  EXPECT_FALSE(strict.ok()) << "f32 sums cannot be exact: a budget of 0 must fail";
}
