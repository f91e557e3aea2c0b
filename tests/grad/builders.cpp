// Every builder of models/: its gradient against central differences and forward mode.
#include "grad/check.hpp"
#include "grad/further.hpp"

using namespace tang;
using namespace tang::test;

namespace {
class grad_builders : public testing::TestWithParam<const char*> {};
} // namespace

TEST_P(grad_builders, against_differences_and_forward_mode) {
  cases::each_graph(GetParam(), [](const Graph& g, const Inputs& in, const std::string& label, double) {
    GradientCheck check(g, in, label);
    ASSERT_NO_FATAL_FAILURE(check.run());
    check.expect_central();
    check.expect_forward();
  });
}
INSTANTIATE_TEST_SUITE_P(grad, grad_builders, testing::ValuesIn(cases::names_of_differentiated()),
                         [](const auto& i) { return std::string(i.param); });
