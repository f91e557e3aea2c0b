// Buffers: what leaves its group or is an output; lifetimes, and places in one arena.
#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/plan/planner.hpp"

namespace tang::plan {

void Planner::place_buffers() {
  std::map<Port, Buffer> made;
  auto buffer = [&](Port q) -> Buffer& {
    auto [it, fresh] = made.try_emplace(q);
    Buffer& b = it->second;
    if (!fresh) return b;
    b.of = q;
    for (auto& e : g_.shape(q)) b.shape.push_back(e.value());
    const ir::Type t = g_.type(q);
    b.format = t == ir::Type::index ? ir::Format::i64 : ir::default_format(t);
    if (const auto* f = schedule::fields_of(s_, g_, q.node); f && f->store && t == ir::Type::real)
      b.format = *f->store;
    b.first = b.last = step_of_[size_t(home_[q.node])];
    return b;
  };
  for (NodeId id : order_) {
    const ir::Recur* r = g_[id].recur();
    if (r) // a state is stored while it is carried, whether or not it is read afterwards
      for (uint32_t k = 0; k < r->states.size(); ++k)
        buffer({id, k}).format = (*r->step)[r->states[k].in].input()->format;
    for (NodeId x : evaluators(id)) {
      const int step = step_of_[size_t(home_[x])];
      for (Port q : sources(g_, id)) {
        if (g_[q.node].input() || shared_[q.node] || home_[q.node] == home_[x]) continue;
        Buffer& b = buffer(q);
        b.last = std::max(b.last, step);
      }
    }
  }
  for (auto& o : g_.outputs) {
    if (g_[o.port.node].input()) continue;
    Buffer& b = buffer(o.port);
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
    Buffer& b = buffer({id, 0});
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

// Largest first, each in the tightest gap between those that live at the same time.
void Planner::place_arena() {
  auto rounded = [&](int64_t n) { return ceil_div(n, s_.alignment) * s_.alignment; };
  std::vector<Buffer*> todo, placed;
  for (Buffer& b : p_.buffers)
    if (!b.output && !b.overwrites) todo.push_back(&b);
  std::stable_sort(todo.begin(), todo.end(), [](Buffer* a, Buffer* b) { return bytes(*a) > bytes(*b); });
  for (Buffer* b : todo) {
    std::vector<std::pair<int64_t, int64_t>> busy;
    for (Buffer* o : placed)
      if (o->first <= b->last && b->first <= o->last)
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
