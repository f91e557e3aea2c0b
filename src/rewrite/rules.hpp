// The rules, one file each. The order of `normal_rules` is the order in which the driver tries them.
#pragma once
#include "tang/rewrite/rule.hpp"

namespace tang::rewrite {

// One read of one map, spliced: what `tang export proofs` prints. Terms are in `pool`.
struct FusionStep {
  std::string what;                  // the sites, by label
  ir::Comp producer, before, after;  // the map; its reader without and with the body
  int arg = 0;                       // the read of `before`, all of whose uses became `body`
  ir::Id body = 0;                   // over the axes and reads of `after`
  std::shared_ptr<const ir::Pool> pool;
};
using FusionSteps = std::vector<FusionStep>;

Rule absence_to_domain();
Rule guard_to_absence();
Rule drop_guard();
Rule sorted_runs();
Rule drop_copies();
Rule fuse(FusionSteps* record = nullptr);
Rule reshape();
Rule one_term_splice();
Rule factor();
Rule hoist();
Rule normalise();
Rule keep_row();
Rule reuse();
Rule stabilize_softmax();
Rule swap_folds();
Rule tabulate();
Rule merge_siblings();

const std::vector<Rule>& normal_rules();

}  // namespace tang::rewrite
