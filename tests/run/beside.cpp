// How many kernels of a program stand one behind another, when each waits for those alone that it needs.
#include <map>

#include <gtest/gtest.h>

#include "tang/device/order.hpp"
#include "tang/models/block.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

namespace {
struct Chain {
  size_t kernels = 0, longest = 0;
};

Chain chain(const run::Derivation& d) {
  static const char arena = 0;
  std::map<ir::Port, char> bound;
  std::map<int, char> temporary;
  std::vector<std::vector<device::Touch>> touches;
  for (auto& l : d.kernels.kernels) {
    touches.emplace_back();
    for (auto& a : l.arguments) {
      const auto* port = std::get_if<ir::Port>(&a.what);
      const plan::Buffer* b = port ? d.plan.buffer(*port) : nullptr;
      if (!port)
        touches.back().push_back({&temporary[std::get<int>(a.what)], 0, 1, a.written});
      else if (b && b->offset >= 0) {
        size_t bytes = size_t(run::bytes_of(b->format));
        for (int64_t e : b->shape) bytes *= size_t(e);
        touches.back().push_back({&arena, size_t(b->offset), size_t(b->offset) + bytes, a.written});
      } else
        touches.back().push_back({&bound[*port], 0, 1, a.written});
    }
  }
  const auto waits = device::waits(touches);
  Chain out{waits.size(), 0};
  std::vector<size_t> behind(waits.size(), 1);
  for (size_t k = 0; k < waits.size(); ++k) {
    for (size_t j : waits[k]) behind[k] = std::max(behind[k], behind[j] + 1);
    out.longest = std::max(out.longest, behind[k]);
  }
  return out;
}

run::Derivation block(int64_t beside) {
  ir::Builder b;
  const models::BlockSize size;
  const auto f = ir::Format::bf16;
  const models::BlockWeights w = models::block_weights(b, "w", size, f);
  b.output(models::block(b.input("x", {1, 128, size.model}, f), w, size), "y", f);
  run::Options o = run::hopper_options();
  o.operands = f;
  o.target.beside = beside;
  return run::derive(b.graph(), o);
}

TEST(beside, kernels_of_a_block_wait_for_what_they_need) {
  const Chain few = chain(block(0)), own = chain(block(32 << 20));
  EXPECT_EQ(few.kernels, own.kernels);
  EXPECT_EQ(own.longest, 8u); // norm, k, its positions, attention, out, norm, gate, down
  EXPECT_GT(few.longest, own.longest); // places that are used again hold kernels back
  EXPECT_LT(few.longest, few.kernels);
}
} // namespace
