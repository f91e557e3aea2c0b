#include "tang/rewrite/rules.hpp"

#include "tang/rewrite/directed.hpp"

namespace tang::rewrite {

// Bounds leave bodies before anything is merged: a merged node can lose a guard only if all its components
// allow it.
const std::vector<Rule>& normal_rules() {
  static const std::vector<Rule> rules = {
      absence_to_domain(), guard_to_absence(), drop_guard(),  sorted_runs(), one_term_splice(), fuse(),
      reshape(),           drop_copies(),      factor(),      hoist(),       normalise(),       keep_row(),
      reuse(),             stabilize_softmax(), swap_folds(), tabulate(),    merge_siblings()};
  return rules;
}

const std::vector<Rule>& directed_rules() {
  static const std::vector<Rule> rules = {expose_support_rule(), split_fold_rule(), definition_form_rule(),
                                          strip_mine_rule(), chunk_rule(), sum_by_key_rule(),
                                          follow_reader_rule()};
  return rules;
}

} // namespace tang::rewrite
