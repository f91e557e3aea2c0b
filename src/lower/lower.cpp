#include "tang/lower/lower.hpp"

#include "tang/lower/recur.hpp"

namespace tang::lower {

Program lower(const plan::Plan& p, const schedule::Schedule& s, const target::Target& t) {
  Program out;
  lower_steps(p, top_level(*p.graph, p), s, t, 0, std::nullopt, out);
  return out;
}

}  // namespace tang::lower
