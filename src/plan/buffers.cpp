// Buffers: what leaves its group or is an output, and places in one arena.
#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/plan/planner.hpp"

namespace tang::plan {

void Planner::place_buffers() {
  std::map<Port, Buffer> made;
  for (auto& v : values_) {
    const Span when = span(v, step_of_);
    Buffer& b = made[v.of];
    b.of = v.of;
    for (auto& e : g_.shape(v.of)) b.shape.push_back(e.value());
    b.format = v.format;
    b.first = when.first, b.last = when.last, b.away = when.away, b.again = when.again;
  }
  for (auto& o : g_.outputs) {
    if (g_[o.port.node].input()) continue;
    Buffer& b = made.at(o.port);
    if (b.output) {
      if (b.format != o.format)
        note("output " + o.name + ": stored in the format of the first output of this value");
      continue;
    }
    b.output = true;
    b.format = o.format;
    b.last = int(p_.steps.size());
  }
  for (auto& [id, d] : donated_) {
    Buffer& b = made.at({id, 0});
    b.overwrites = d.input;
    b.masked = d.when.has_value();
    b.when = d.when.value_or(0);
    b.format = g_[d.input].input()->format;
  }
  for (auto& [q, b] : made) p_.buffers.push_back(std::move(b));
  std::stable_sort(p_.buffers.begin(), p_.buffers.end(),
                   [](const Buffer& a, const Buffer& b) { return a.first < b.first; });
}

int64_t bytes(const Buffer& b) {
  int64_t n = 1;
  for (int64_t e : b.shape) n = mul_saturated(n, e);
  return ceil_div(mul_saturated(n, ir::row(b.format).bits), 8);
}

// At a time, or within so many steps of each other.
bool together(const Buffer& a, const Buffer& b, int steps) {
  auto spans = [](const Buffer& x) {
    using Steps = std::pair<int, int>;
    if (x.again < 0) return std::vector<Steps>{{x.first, x.last}};
    return std::vector<Steps>{{x.first, x.away}, {x.again, x.last}};
  };
  for (auto& [a0, a1] : spans(a))
    for (auto& [b0, b1] : spans(b))
      if (a0 <= b1 + steps && b0 <= a1 + steps) return true;
  return false;
}

// A place is used again as late as the bytes that the target grants allow: kernels that need nothing of
// each other can then run at once.
void Planner::place_arena() {
  for (int steps = t_.beside && !s_.memory ? int(p_.steps.size()) : 0;; steps /= 2) {
    p_.arena_bytes = 0;
    place_arena(steps);
    if (!steps || p_.arena_bytes <= t_.beside) return;
  }
}

// Largest first, each in the tightest gap between those that live within so many steps of it.
void Planner::place_arena(int steps) {
  auto rounded = [&](int64_t n) { return ceil_div(n, s_.alignment) * s_.alignment; };
  std::vector<Buffer*> todo, placed;
  for (Buffer& b : p_.buffers)
    if (!b.output && !b.overwrites) todo.push_back(&b);
  std::stable_sort(todo.begin(), todo.end(), [](Buffer* a, Buffer* b) { return bytes(*a) > bytes(*b); });
  for (Buffer* b : todo) {
    std::vector<std::pair<int64_t, int64_t>> busy;
    for (Buffer* o : placed)
      if (together(*o, *b, steps))
        busy.emplace_back(o->offset, o->offset + rounded(bytes(*o)));
    std::sort(busy.begin(), busy.end());
    const int64_t need = rounded(bytes(*b));
    int64_t at = 0, best = -1, slack = INT64_MAX;
    for (auto& [from, to] : busy) {
      if (from - at >= need && from - at - need < slack) {
        best = at;
        slack = from - at - need;
      }
      at = std::max(at, to);
    }
    b->offset = best >= 0 ? best : at;
    p_.arena_bytes = std::max(p_.arena_bytes, b->offset + need);
    placed.push_back(b);
  }
}

} // namespace tang::plan
