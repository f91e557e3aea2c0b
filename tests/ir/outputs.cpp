// An output with the name of a state is its new value: it takes the state's format, and anything else is refused.
#include <gtest/gtest.h>

#include "tang/ir/surface.hpp"

using namespace tang;
using namespace tang::ir;

namespace {
std::string refused(const std::function<void(Builder&)>& build) {
  Builder b;
  try {
    build(b);
  } catch (const Error& e) {
    std::string all = e.headline();
    for (auto& f : e.facts()) all += " | " + f.text;
    return all + " | " + e.fix();
  }
  return "not refused";
}
} // namespace

TEST(outputs, the_new_value_of_a_state_has_its_format) {
  for (Format f : {Format::f16, Format::bf16, Format::f32}) {
    Builder b;
    Tensor h = b.state("h", {4}, f);
    auto [i] = axes<"i">();
    b.output(map({i}, h(i) + 1.0), "h");
    b.output(map({i}, h(i) * 2.0), "twice");
    for (auto& o : b.graph().outputs) EXPECT_EQ(o.format, o.name == "h" ? f : Format::f32);
  }
}

TEST(outputs, another_shape_type_or_format_is_refused) {
  auto [i, j] = axes<"i j">();
  EXPECT_EQ(refused([&](Builder& b) {
              b.state("h", {4}, Format::f16);
              Tensor x = b.input("x", {5});
              b.output(map({i}, x(i) * 1.0), "h");
            }),
            "the new value of state 'h' has another shape or type | the value is [5] of real | the state is [4] of real | a "
            "state keeps its shape and type");
  EXPECT_EQ(refused([&](Builder& b) {
              Tensor h = b.state("h", {4}, Format::f16);
              b.output(map({i}, h(i) * 2.0), "h", Format::f32);
            }),
            "the new value of state 'h' is to be f32 | the state is f16 | leave the format out: a state keeps its own");
  EXPECT_EQ(refused([&](Builder& b) {
              Tensor x = b.input("x", {4});
              b.output(map({i}, x(i) * 2.0), "x");
            }),
            "output 'x' has the name of an input | the input is declared here | give it another name, or declare a state: an "
            "output of a state's name is its new value");
}
