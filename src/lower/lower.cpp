#include "tang/lower/lower.hpp"

#include <map>
#include <set>

#include "tang/kernel/print.hpp"
#include "tang/lower/recur.hpp"

namespace tang::lower {

namespace {
constexpr int64_t small = 64 << 10; // bytes: holding as much until the end costs nothing

// The inputs that a kernel reads to write a few bytes of temporaries, as a part of its text; nothing where it does
// anything else.
std::optional<std::string> made_of_inputs(const plan::Plan& p, const Lowered& l,
                                          const std::vector<int64_t>& temporaries) {
  std::string text = kernel::print(l.kernel);
  int64_t bytes = 0;
  for (auto& a : l.arguments) {
    const auto* port = std::get_if<ir::Port>(&a.what);
    if (bool(port) == a.written) return {};
    if (!port) {
      bytes += temporaries[size_t(std::get<int>(a.what))];
      continue;
    }
    if (!(*p.graph)[port->node].input()) return {};
    for (auto& b : p.buffers)
      if (b.overwrites && *b.overwrites == port->node) return {};
    text += " " + std::to_string(port->node);
  }
  return bytes && bytes <= small && !l.roles ? std::optional(text) : std::nullopt;
}

// What several kernels need of inputs beforehand (where masks begin and end, say) is computed once.
void compute_once(const plan::Plan& p, Program& out) {
  if (!out.loops.empty()) return;
  std::map<std::string, std::vector<int>> known; // temporaries, in the order of arguments
  std::map<int, int> now;
  std::vector<Lowered> kept;
  for (Lowered& l : out.kernels) {
    const auto text = made_of_inputs(p, l, out.temporaries);
    std::vector<int> made;
    for (auto& a : l.arguments)
      if (int* t = std::get_if<int>(&a.what)) {
        if (auto it = now.find(*t); it != now.end()) *t = it->second;
        made.push_back(*t);
      }
    if (const auto it = text ? known.find(*text) : known.end(); it != known.end()) {
      for (size_t i = 0; i < made.size(); ++i) now[made[i]] = it->second[i];
      continue;
    }
    if (text) known.emplace(*text, made);
    kept.push_back(std::move(l));
  }
  out.kernels = std::move(kept);
}
}  // namespace

Program lower(const plan::Plan& p, const schedule::Schedule& s, const target::Target& t) {
  Program out;
  lower_steps(p, top_level(*p.graph, p), s, t, 0, std::nullopt, out);
  compute_once(p, out);
  return out;
}

}  // namespace tang::lower
