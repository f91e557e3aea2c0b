// Which axis lanes run along, and the list of a kernel's memories.
#include <algorithm>

#include "tang/base/match.hpp"
#include "tang/lower/emitters.hpp"

namespace tang::lower {

using kernel::Apply;
using kernel::Fold;

int64_t stride_along(const kernel::Kernel& k, const Ref& r, kernel::Var v) {
  int64_t s = 0;
  for (size_t d = 0; d < r.index.size(); ++d)
    for (auto& [x, c] : r.index[d].affine.terms)
      if (x == v) s += c * k.memories[size_t(r.memory)].strides[d];
  return s;
}
void vectorize(const kernel::Kernel& k, Apply& a, int prefer) {
  if (a.axes.empty()) return;
  int best = -1;
  int64_t best_score = 0;
  for (size_t x = 0; x < a.axes.size(); ++x) {
    if (a.axes[x].extent < 2) continue;
    int64_t score = int(x) == prefer ? 1 : 0;
    auto judge = [&](const Ref& r, int64_t weight) {
      const int64_t s = stride_along(k, r, a.axes[x].var);
      score += s == 1 ? 4 * weight : s == 0 ? 2 * weight : -weight;
    };
    for (auto& r : a.dst) judge(r, stride_along(k, r, a.axes[x].var) == 0 ? -4 : 2);
    for (auto& r : a.body.refs) judge(r, 1);
    if (best < 0 || score >= best_score) best = int(x), best_score = score;
  }
  if (best < 0) return;
  std::rotate(a.axes.begin() + best, a.axes.begin() + best + 1, a.axes.end());
  a.vector = int(a.axes.size()) - 1;
}
namespace {
using See = std::function<void(Ref&, bool read)>;

void each_ref(kernel::Block& b, const See& see) {
  auto refs = [&](std::vector<Ref>& v, bool read) { for (auto& r : v) see(r, read); };
  for (auto& s : b)
    std::visit(Match{[&](Apply& x) { refs(x.dst, false); refs(x.body.refs, true); }, [&](Fold& x) { refs(x.dst, x.accumulate); refs(x.body.refs, true); },
                     [&](kernel::Contract& x) { see(x.dst, x.accumulate); see(x.a, true); see(x.b, true); }, [&](kernel::Let& x) { see(x.ref, true); },
                     [&](kernel::Loop& x) { each_ref(x.body, see); }, [&](kernel::If& x) { each_ref(x.then, see); },
                     [&](kernel::Pipeline& x) { each_ref(x.operands, see); each_ref(x.body, see); }, [](kernel::Barrier&) {}},
               s.node);
}
}  // namespace

void globals_first(kernel::Kernel& k, std::vector<Argument>& arguments) {
  std::vector<char> is_named(k.memories.size(), 0), is_read = is_named;
  each_ref(k.body, [&](Ref& r, bool read) { if (r.memory >= 0) is_named[size_t(r.memory)] = 1, is_read[size_t(r.memory)] |= read; });
  std::vector<int> now(k.memories.size(), -1);
  std::vector<kernel::Memory> sorted;
  std::vector<Argument> named;
  size_t argument = 0;
  for (bool global : {true, false})
    for (size_t m = 0; m < k.memories.size(); ++m) {
      kernel::Memory& x = k.memories[m];
      if ((x.home == kernel::Home::global) != global) continue;
      const size_t of = global ? argument++ : 0;
      if (!is_named[m]) continue;  // probed, and read from a copy
      if (global) named.push_back(arguments[of]);
      if (global && x.access == kernel::Access::read_write && !is_read[m]) x.access = kernel::Access::write;
      now[m] = int(sorted.size());
      sorted.push_back(std::move(x));
    }
  k.memories = std::move(sorted);
  arguments = std::move(named);
  each_ref(k.body, [&](Ref& r, bool) { if (r.memory >= 0) r.memory = now[size_t(r.memory)]; });
}

Lowered finished(Frame& frame, const std::string& schedule) {
  Lowered out;
  out.arguments = std::move(frame.arguments);
  out.kernel = std::move(frame.k);
  out.schedule = schedule;
  globals_first(out.kernel, out.arguments);
  return out;
}

}  // namespace tang::lower
