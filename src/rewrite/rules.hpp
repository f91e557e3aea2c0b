// The rules, one file each. The order of `normal_rules` is the order in which the driver tries them.
#pragma once
#include "tang/rewrite/rule.hpp"

namespace tang::rewrite {

Rule absence_to_domain();
Rule guard_to_absence();
Rule drop_guard();
Rule drop_copies();
Rule fuse();
Rule reshape();
Rule one_term_splice();
Rule factor();
Rule hoist();
Rule normalise();
Rule keep_row();
Rule reuse();
Rule stabilize_softmax();
Rule swap_folds();
Rule merge_siblings();

const std::vector<Rule>& normal_rules();

}  // namespace tang::rewrite
