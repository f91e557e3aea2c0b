// Every builder of models/: its gradient against central differences and forward mode.
#include "grad/check.hpp"
#include "tang/models/cases.hpp"

using namespace tang;
using namespace tang::test;

namespace {
class grad_builders : public testing::TestWithParam<const char*> {};
}  // namespace

TEST_P(grad_builders, against_differences_and_forward_mode) {
  int number = 0;
  for (auto& c : cases::builders)
    if (std::string(c.name) == GetParam())
      c.run({[&](const Graph& g, Inputs in, double) {
        GradientCheck check(g, std::move(in), std::string(c.name) + " " + std::to_string(number++));
        ASSERT_NO_FATAL_FAILURE(check.run());
        check.expect_central();
        check.expect_forward();
      }});
}
INSTANTIATE_TEST_SUITE_P(grad, grad_builders, testing::ValuesIn([] {
                           std::vector<const char*> names;
                           for (auto& c : cases::builders) names.push_back(c.name);
                           return names;
                         }()),
                         [](const auto& i) { return std::string(i.param); });
