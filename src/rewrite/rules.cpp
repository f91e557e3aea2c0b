#include "tang/rewrite/rules.hpp"

namespace tang::rewrite {

// Bounds leave bodies before anything is merged: a merged node can lose a guard only if all its components allow it.
const std::vector<Rule>& normal_rules() {
  static const std::vector<Rule> rules = {absence_to_domain(), guard_to_absence(), fuse(), stabilize_softmax(), merge_siblings()};
  return rules;
}

}  // namespace tang::rewrite
