// Sums over windows on workgroups of many lanes: a lane sums a run of neighbouring results.
#include "lower/pipeline.hpp"
#include "tang/ir/surface.hpp"
#include "tang/target/target.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// A filter of its own for each channel, zeros around the image.
ir::Graph depthwise(int64_t n, int64_t height, int64_t width, int64_t channels, int64_t taps, int64_t stride,
                    int64_t dilation) {
  ir::Builder b;
  ir::Tensor image = b.input("x", {n, height, width, channels}), w = b.input("w", {channels, taps, taps});
  const int64_t pad = dilation * (taps / 2);
  auto places = [&](int64_t in) { return (in + 2 * pad - dilation * (taps - 1) - 1) / stride + 1; };
  const ir::Axis i = ir::axis("n", ir::Extent(n)), u = ir::axis("u", ir::Extent(places(height))),
                 v = ir::axis("v", ir::Extent(places(width))), c = ir::axis("c", ir::Extent(channels)),
                 r = ir::axis("r", ir::Extent(taps)), s = ir::axis("s", ir::Extent(taps));
  auto at = [&](ir::Axis place, ir::Axis tap) {
    return stride * ir::Index(place) + dilation * ir::Index(tap) - ir::Index(pad);
  };
  b.output(ir::map({i, u, v, c}, ir::sum({r, s}, image.at_or(0.0, {i, at(u, r), at(v, s), c}) * w(c, r, s))),
           "out");
  return b.graph();
}

const kernel::Fold* first_fold(const kernel::Block& b) {
  for (auto& s : b)
    if (auto* f = std::get_if<kernel::Fold>(&s.node)) return f;
  return nullptr;
}

const kernel::Fold* expect_right(const ir::Graph& g, Derived& d) {
  const eval::Inputs in = random_inputs(g);
  d = derive(g, {}, target::cuda_target());
  auto got = simulate(d, in);
  EXPECT_LT(eval::difference(got["out"], filled(eval::run(g, in).at("out"))), 2e-6);
  return first_fold(d.program.kernels.back().kernel.body);
}
} // namespace

TEST(window_sums, a_lane_reads_each_element_once_for_a_run_of_results) {
  Derived d;
  const kernel::Fold* f = expect_right(depthwise(2, 14, 28, 64, 7, 1, 1), d);
  ASSERT_TRUE(f);
  EXPECT_EQ(f->dst.size(), 14u);            // results of a run
  EXPECT_EQ(f->body.refs.size(), 20u + 7u); // their window and a line of the filter
  EXPECT_EQ(f->folded.size(), 1u);
  for (auto& r : f->body.refs) { // the filter lies near, what lies outside the image is 0
    const bool image =
        d.program.kernels.back().kernel.memories[size_t(r.memory)].home == kernel::Home::global;
    EXPECT_EQ(r.checked, image);
  }
}

TEST(window_sums, strides_dilations_and_odd_sizes) {
  Derived d;
  EXPECT_EQ(expect_right(depthwise(1, 9, 15, 40, 3, 1, 1), d)->dst.size(), 15u);
  EXPECT_EQ(expect_right(depthwise(3, 16, 16, 33, 3, 2, 1), d)->dst.size(), 8u);
  EXPECT_EQ(expect_right(depthwise(2, 8, 12, 32, 5, 1, 2), d)->dst.size(), 12u);
  // No run divides 13 results but one of all; none divides 17: then it goes along lines.
  EXPECT_EQ(expect_right(depthwise(1, 6, 13, 32, 3, 1, 1), d)->dst.size(), 13u);
  EXPECT_EQ(expect_right(depthwise(1, 6, 17, 32, 3, 1, 1), d)->dst.size(), 6u);
}
