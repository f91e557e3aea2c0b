#include "tang/kernel/disjoint.hpp"

#include <algorithm>

namespace tang::kernel {

namespace {
// Where x is larger in one state by at least its step, some coordinate differs: proved for one sign of the
// difference.
bool differs(const Place& a, const Place& b, const Facts& fa, const Facts& fb, const Separator& x,
             bool second_larger, const std::set<Var>& shared, int offset) {
  Facts both = fa.beside(fb, shared, offset);
  const Affine gap = variable(x.var + offset) - variable(x.var);
  both.assume((second_larger ? 1 : -1) * gap - constant(x.step));
  for (size_t d = 0; d < a.index.size(); ++d) {
    const Affine delta = renamed(b.index[d], shared, offset) - a.index[d];
    if (delta.terms.empty() && delta.c == 0) continue;
    if (both.proves(delta - constant(1)) || both.proves(constant(-1) - delta)) return true;
  }
  return both.impossible();
}
} // namespace

std::vector<Var> unseparated(const Place& a, const Place& b, const std::vector<Separator>& by,
                             const std::set<Var>& shared, int offset) {
  std::vector<Separator> left = by;
  std::set<Var> equal = shared; // grows: coordinates that are equal force these to be equal
  for (bool moved = true; moved && !left.empty();) {
    moved = false;
    for (size_t s = 0; s < left.size() && !moved; ++s) {
      bool apart = true;
      for (auto& fa : a.known)
        for (auto& fb : b.known) {
          const std::set<Var> same = fa.determined_by(equal);
          for (bool second_larger : {true, false})
            apart = apart && differs(a, b, fa, fb, left[s], second_larger, same, offset);
        }
      if (!apart) continue;
      equal.insert(left[s].var);
      left.erase(left.begin() + int64_t(s));
      moved = true;
    }
  }
  std::vector<Var> out;
  for (auto& s : left) out.push_back(s.var);
  return out;
}

} // namespace tang::kernel
