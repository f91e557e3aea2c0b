#include "tang/lower/lower.hpp"

#include <algorithm>
#include <map>

#include "tang/kernel/merge.hpp"
#include "tang/lower/recur.hpp"

namespace tang::lower {

namespace {
constexpr int64_t small = 64 << 10; // bytes: holding as much until the end costs nothing

// What reads ports alone and writes temporaries that nothing else writes prepares them for others: operands are
// laid out anew, where a mask begins and ends is found. Of two that do the same the first is enough: its results
// stay for all that follow, so that they are few bytes, or operands in the form of `any_size`. Inside of a loop a
// port is another value every time.
void prepare_once(Program& p, bool any_size) {
  std::map<std::pair<std::string, std::vector<ir::Port>>, std::vector<int>> known; // text, reads -> what it writes
  std::map<int, int> now;                                                          // of a temporary: the first
  std::map<int, int> writers; // of a temporary: a state that a recurrence starts from is written by its steps, too
  for (auto& l : p.kernels)
    for (auto& a : l.arguments)
      if (auto* n = std::get_if<int>(&a.what)) writers[*n] += a.written;
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    Lowered& l = p.kernels[k];
    const bool looped = std::any_of(p.loops.begin(), p.loops.end(), [&](const Loop& x) {
      return size_t(x.first) <= k && k < size_t(x.first + x.count);
    });
    std::vector<ir::Port> reads;
    std::vector<int> writes;
    int64_t bytes = 0;
    bool copies = !looped && !l.roles;
    for (auto& a : l.arguments) {
      if (auto* n = std::get_if<int>(&a.what)) {
        copies &= writers[*n] == 1;
        if (auto it = now.find(*n); it != now.end()) *n = it->second;
        writes.push_back(*n), copies &= a.written;
        bytes += p.temporaries[size_t(*n)];
      } else {
        reads.push_back(std::get<ir::Port>(a.what)), copies &= !a.written;
      }
    }
    if (!l.roles) {
      const auto differ = name_once(l, [](const Argument& a) { return a.what; });
      check(!differ, "two readers of one temporary are laid out alike");
    }
    if (!copies || writes.empty() || (bytes > small && !any_size)) continue;
    const auto [it, fresh] = known.try_emplace({kernel::print(l.kernel), reads}, writes);
    if (fresh) continue;
    for (size_t w = 0; w < writes.size(); ++w) now[writes[w]] = it->second[w];
    p.kernels.erase(p.kernels.begin() + long(k));
    for (auto& x : p.loops) x.first -= size_t(x.first) > k;
    --k;
  }
}
} // namespace

std::optional<Refusal> name_once(Lowered& l, const PlaceOf& place) {
  for (size_t b = 1; b < l.arguments.size(); ++b)
    for (size_t a = 0; a < b; ++a) {
      if (place(l.arguments[a]) != place(l.arguments[b])) continue;
      auto one = kernel::merged(l.kernel, int(a), int(b)); // globals come first, in the order of arguments
      if (!one) return Refusal{one.why()};
      l.kernel = std::move(*one);
      l.arguments[a].written |= l.arguments[b].written;
      l.arguments.erase(l.arguments.begin() + long(b--));
      break;
    }
  return {};
}

Program lower(const plan::Plan& p, const schedule::Schedule& s, const target::Target& t) {
  Program out;
  lower_steps(p, top_level(*p.graph, p), s, t, 0, std::nullopt, out);
  prepare_once(out, t.blocks());
  return out;
}

} // namespace tang::lower
