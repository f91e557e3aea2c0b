// The laws of differentiation: what each file of this room rests on.
#pragma once
#include "tang/rewrite/rule.hpp"

namespace tang::diff {

struct GradientLaw {
  std::string file, name; // the file without its ending; what it makes
  rewrite::Law law;
};

const std::vector<GradientLaw>& laws();
const rewrite::Law& law_of(const std::string& name);

} // namespace tang::diff
