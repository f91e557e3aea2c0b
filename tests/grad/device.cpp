// Every builder's gradient on the C target: each kernel and each gradient against the oracle.
#include "grad/further.hpp"
#include "grad/on_c.hpp"

using namespace tang;
using namespace tang::test;

namespace {
class grad_on_c : public testing::TestWithParam<const char*> {};
} // namespace

TEST_P(grad_on_c, verified) {
  cases::each_graph(GetParam(), [](const Graph& g, const Inputs& in, const std::string& label, double budget) {
    verify_gradient(g, in, budget, label);
  });
}
INSTANTIATE_TEST_SUITE_P(grad, grad_on_c, testing::ValuesIn(cases::names_of_differentiated()),
                         [](const auto& i) { return std::string(i.param); });
