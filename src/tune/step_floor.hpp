// How fast any implementation of a whole graph can be: no schedule, no launches.
#pragma once
#include "tang/tune/cost.hpp"

namespace tang::tune {

struct StepFloor {
  Time time;             // the largest of its terms
  int64_t exchanges = 0; // on the longest path: edges on which every result needs what many workers made
};

// Of a bound graph whose inputs are stored, on a machine as it was probed; never above a run of it:
// - the distinct bytes of all inputs that the outputs need, once, less what stays on the chip from the step
//   before (`cold`: nothing does), at the best read rate of memory;
// - the multiply-adds of its sums of products, at the best rate of any unit;
// - exchanges, one after the other, each at least the latency of the nearest level that all workers share.
//   An edge from a node to one of its readers counts where each point of the reader needs all points of the
//   node, and where one worker alone would take longer than the exchange to make them: their weights are more
//   than a worker holds, or their arithmetic is long. Weights may be read ahead of any exchange, so bytes are
//   never added to the path (decision 53).
// Of a recurrence nothing is counted but what it reads. `keys`: as read_bytes has them.
StepFloor step_floor(const ir::Graph& g, const Machine& m, const bound::Keys& keys = {}, bool cold = false);

} // namespace tang::tune
