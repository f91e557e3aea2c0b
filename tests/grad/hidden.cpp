// Every builder's gradient where an input holds NaN or inf that no output sees, and where one tensor is read as two inputs.
#include "grad/check.hpp"
#include "grad/further.hpp"

using namespace tang;
using namespace tang::test;

namespace {
class grad_hidden : public testing::TestWithParam<const char*> {};

// Bit for bit, absence too; NaN is never equal.
bool same(const Array& a, const Array& b) {
  for (int64_t k = 0; k < a.size(); ++k) {
    if (a.at(k).state != b.at(k).state) return false;
    if (a.at(k).state == expr::State::present && a.at(k).r != b.at(k).r) return false;
  }
  return true;
}
} // namespace

// Behind a mask, outside of a window, in a row that is not gathered: found by planting NaN and comparing all outputs.
TEST_P(grad_hidden, nan_and_inf_that_no_output_sees_change_no_gradient) {
  int hidden = 0;
  cases::each_graph(GetParam(), [&](const Graph& g, const Inputs& in, const std::string& label, double) {
    GradientCheck check(g, in, label);
    ASSERT_NO_FATAL_FAILURE(check.run());
    eval::Oracle forward(check.g, check.in), back(check.reverse->graph, check.in);
    std::vector<Array> outputs;
    for (auto& s : check.seeds) outputs.push_back(forward.port(s.of));
    for (auto& name : check.names)
      for (int trial = 0; trial < 3 && check.in.at(name).size(); ++trial) {
        // The last elements first: they are the ones that masks and tails hide.
        const int64_t size = check.in.at(name).size(), at = trial ? int64_t(check.rng() % uint64_t(size)) : size - 1;
        Array a = check.in.at(name);
        a.r[size_t(at)] = std::nan("");
        forward.rebind(name, a);
        bool seen = false;
        for (size_t s = 0; s < outputs.size() && !seen; ++s) seen = !same(outputs[s], forward.port(check.seeds[s].of));
        forward.rebind(name, check.in.at(name));
        if (seen) continue;
        ++hidden;
        for (double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
          a.r[size_t(at)] = bad;
          back.rebind(name, a);
          for (size_t q = 0; q < check.wrt.size(); ++q)
            EXPECT_TRUE(same(check.gradients.at(check.names[q]), back.port(check.reverse->of[q])))
                << label << ": d " << check.names[q] << " with " << bad << " in " << name << " at " << at;
          EXPECT_EQ(check.gradients.at(name).r[size_t(at)], 0) << label << ": d " << name << " at " << at;
        }
        back.rebind(name, check.in.at(name));
      }
  });
  RecordProperty("hidden", std::to_string(hidden));
}

TEST_P(grad_hidden, one_tensor_read_as_two_inputs_gets_both_gradients) {
  cases::each_graph(GetParam(), [&](const Graph& g, const Inputs& in, const std::string& label, double) {
    for (NodeId x = 0; x < g.nodes.size(); ++x)
      for (NodeId y = x + 1; y < g.nodes.size(); ++y) {
        const Input *a = g[x].input(), *b = g[y].input();
        if (!a || !b || type_of(a->format) != expr::Type::real || a->shape != b->shape || a->format != b->format) continue;
        Graph one = g;
        redirect(one, {{{y, 0}, {x, 0}}});
        GradientCheck check(one, in, label + ": " + g[y].name + " is " + g[x].name);
        ASSERT_NO_FATAL_FAILURE(check.run());
        check.expect_central(2);
        check.expect_forward(1);
        return;
      }
  });
}
INSTANTIATE_TEST_SUITE_P(grad, grad_hidden, testing::ValuesIn(cases::names_of_differentiated()),
                         [](const auto& i) { return std::string(i.param); });
