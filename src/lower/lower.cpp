#include "tang/lower/lower.hpp"

#include <algorithm>
#include <map>

#include "tang/lower/recur.hpp"

namespace tang::lower {

namespace {
// What reads ports alone and writes temporaries alone lays operands out anew. Of two that do the same the first is
// enough: its results stay for all that follow. Inside of a loop a port is another value every time.
void lay_out_once(Program& p) {
  std::map<std::pair<std::string, std::vector<ir::Port>>, std::vector<int>> known; // text, reads -> what it writes
  std::map<int, int> now;                                                          // of a temporary: the first
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    Lowered& l = p.kernels[k];
    const bool looped = std::any_of(p.loops.begin(), p.loops.end(), [&](const Loop& x) {
      return size_t(x.first) <= k && k < size_t(x.first + x.count);
    });
    std::vector<ir::Port> reads;
    std::vector<int> writes;
    bool copies = !looped && !l.roles;
    for (auto& a : l.arguments) {
      if (auto* n = std::get_if<int>(&a.what)) {
        if (auto it = now.find(*n); it != now.end()) *n = it->second;
        writes.push_back(*n), copies &= a.written;
      } else {
        reads.push_back(std::get<ir::Port>(a.what)), copies &= !a.written;
      }
    }
    if (!copies || writes.empty()) continue;
    const auto [it, fresh] = known.try_emplace({kernel::print(l.kernel), reads}, writes);
    if (fresh) continue;
    for (size_t w = 0; w < writes.size(); ++w) now[writes[w]] = it->second[w];
    p.kernels.erase(p.kernels.begin() + long(k));
    for (auto& x : p.loops) x.first -= size_t(x.first) > k;
    --k;
  }
}
} // namespace

Program lower(const plan::Plan& p, const schedule::Schedule& s, const target::Target& t) {
  Program out;
  lower_steps(p, top_level(*p.graph, p), s, t, 0, std::nullopt, out);
  if (t.warpgroups) lay_out_once(out);
  return out;
}

} // namespace tang::lower
