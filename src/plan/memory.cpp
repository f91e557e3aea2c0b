// How much is held at once: orders of steps that hold little, and what is computed again instead of kept
// (docs/decisions/0015).
#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/plan/planner.hpp"

namespace tang::plan {

Order::At Order::at(size_t groups) const {
  At out{std::vector<int>(groups, -1), std::vector<int>(groups, -1)};
  for (size_t k = 0; k < entries.size(); ++k)
    (entries[k].again ? out.again : out.first)[size_t(entries[k].group)] = int(k);
  return out;
}

Span span(const Value& v, const Order::At& at) {
  const size_t home = size_t(v.home);
  Span s{at.first[home], at.first[home], -1, at.again[home]};
  if (s.again >= 0) s.away = s.first, s.last = s.again;
  auto use = [&](int step) {
    if (step < 0) return;
    if (s.again >= 0 && step < s.again) s.away = std::max(s.away, step);
    s.last = std::max(s.last, step);
  };
  for (int r : v.readers) use(at.first[size_t(r)]), use(at.again[size_t(r)]);
  return s;
}

std::vector<int64_t> held(const std::vector<Value>& values, const Order& o, size_t groups) {
  const Order::At at = o.at(groups);
  std::vector<int64_t> change(o.entries.size() + 1, 0);
  auto add = [&](int from, int to, int64_t bytes) {
    change[size_t(from)] += bytes;
    change[size_t(to) + 1] -= bytes;
  };
  for (auto& v : values) {
    if (!v.held) continue;
    const Span s = span(v, at);
    if (s.again < 0) {
      add(s.first, s.last, v.bytes);
      continue;
    }
    add(s.first, s.away, v.bytes);
    add(s.again, s.last, v.bytes);
  }
  change.pop_back();
  for (size_t k = 1; k < change.size(); ++k) change[k] += change[k - 1];
  return change;
}

ir::Format Planner::own_format(Port q) const {
  const ir::Type t = g_.type(q);
  const auto* f = schedule::fields_of(s_, g_, q.node);
  if (f && f->store && t == ir::Type::real) return *f->store;
  return t == ir::Type::index ? ir::Format::i64 : ir::default_format(t);
}

std::vector<Value> Planner::values() const {
  std::map<Port, Value> made;
  auto value = [&](Port q) -> Value& {
    auto [it, fresh] = made.try_emplace(q);
    Value& v = it->second;
    if (!fresh) return v;
    v.of = q;
    v.home = home_[q.node];
    v.format = own_format(q);
    return v;
  };
  for (NodeId id : order_) {
    if (const ir::Recur* r = g_[id].recur()) // a state is stored while it is carried, read or not
      for (uint32_t k = 0; k < r->states.size(); ++k)
        value({id, k}).format = (*r->step)[r->states[k].in].input()->format;
    for (NodeId x : evaluators(id))
      for (Port q : sources(g_, id)) {
        if (g_[q.node].input() || shared_[q.node] || home_[q.node] == home_[x]) continue;
        auto& readers = value(q).readers;
        if (std::find(readers.begin(), readers.end(), home_[x]) == readers.end()) readers.push_back(home_[x]);
      }
  }
  for (auto& o : g_.outputs)
    if (!g_[o.port.node].input()) value(o.port).held = false;
  for (auto& [id, d] : donated_) value({id, 0}).held = false;
  std::vector<Value> out;
  for (auto& [q, v] : made) {
    v.bytes = ceil_div(mul_saturated(volume(g_.shape(q)), ir::row(v.format).bits), 8);
    v.bytes = ceil_div(v.bytes, s_.alignment) * s_.alignment;
    out.push_back(std::move(v));
  }
  return out;
}

namespace {
// What running a group adds to what is held: its values, less those that nobody reads afterwards.
struct Sparing {
  const std::vector<Value>& values;
  std::vector<std::vector<size_t>> made, read; // by group
  std::vector<size_t> left;                    // readers of a value still to run

  Sparing(const std::vector<Value>& all, size_t groups) : values(all), made(groups), read(groups) {
    for (size_t v = 0; v < all.size(); ++v) {
      left.push_back(all[v].readers.size());
      if (!all[v].held) continue;
      made[size_t(all[v].home)].push_back(v);
      for (int r : all[v].readers) read[size_t(r)].push_back(v);
    }
  }

  int64_t cost(int h) const {
    int64_t bytes = 0;
    for (size_t v : made[size_t(h)]) bytes += values[v].readers.empty() ? 0 : values[v].bytes;
    for (size_t v : read[size_t(h)]) bytes -= left[v] == 1 ? values[v].bytes : 0;
    return bytes;
  }

  void run(int h) {
    for (size_t v : read[size_t(h)]) --left[v];
  }
};
} // namespace

// Of the ready groups the one that adds least to what is held, if that is asked for; then the one whose first
// node comes first.
std::vector<int> Planner::sequence(const std::vector<std::set<int>>& before,
                                   const std::vector<Value>* sparing) const {
  const size_t n = groups_.size();
  std::vector<NodeId> key(n);
  std::vector<size_t> waits(n);
  std::vector<std::vector<int>> then(n);
  for (size_t h = 0; h < n; ++h) {
    const auto nodes = nodes_of(int(h));
    key[h] = *std::min_element(nodes.begin(), nodes.end());
    waits[h] = before[h].size();
    for (int b : before[h]) then[size_t(b)].push_back(int(h));
  }
  std::optional<Sparing> held;
  if (sparing) held.emplace(*sparing, n);
  std::vector<int> ready, out;
  for (size_t h = 0; h < n; ++h)
    if (!waits[h]) ready.push_back(int(h));
  while (!ready.empty()) {
    auto rank = [&](int h) { return std::pair(held ? held->cost(h) : 0, key[size_t(h)]); };
    const auto next = std::min_element(ready.begin(), ready.end(),
                                       [&](int a, int b) { return rank(a) < rank(b); });
    const int h = *next;
    ready.erase(next);
    out.push_back(h);
    if (held) held->run(h);
    for (int t : then[size_t(h)])
      if (!--waits[size_t(t)]) ready.push_back(t);
  }
  check(out.size() == n, "the graph of groups has a cycle");
  return out;
}

namespace {
// The most that is held, and where it begins.
struct Peak {
  int64_t bytes = 0;
  int at = 0;

  explicit Peak(const std::vector<int64_t>& held) {
    for (size_t k = 0; k < held.size(); ++k)
      if (held[k] > bytes) bytes = held[k], at = int(k);
  }
};

// Lowers the most that is held by running groups again, before the first use that follows it.
struct Repeater {
  const std::vector<Value>& values;
  const std::vector<std::vector<int>>& takers; // of each group: who takes the memory of a state it reads
  const std::vector<int64_t>& work;            // of each group
  size_t groups;
  std::vector<char> repeatable = std::vector<char>(groups, 1);
  std::vector<std::vector<size_t>> made = std::vector<std::vector<size_t>>(groups), read = made;

  void prepare() {
    for (size_t v = 0; v < values.size(); ++v) {
      made[size_t(values[v].home)].push_back(v);
      if (!values[v].held) repeatable[size_t(values[v].home)] = 0;
      for (int r : values[v].readers)
        if (values[v].held) read[size_t(r)].push_back(v);
    }
  }

  // The first use of what the group makes after this step; -1: none.
  int use_after(int group, int step, const Order::At& at) const {
    int best = -1;
    for (size_t v : made[size_t(group)])
      for (int r : values[v].readers)
        for (int s : {at.first[size_t(r)], at.again[size_t(r)]})
          if (s > step && (best < 0 || s < best)) best = s;
    return best;
  }

  // Collects what must run again before step q, operands first, so that the group can; what is held at the
  // peak is kept until then instead. False: it cannot run there, or something would have to be moved.
  bool collect(int group, int q, int peak, const Order::At& at, std::vector<int>& out) const {
    if (std::find(out.begin(), out.end(), group) != out.end()) return true;
    if (!repeatable[size_t(group)] || at.again[size_t(group)] >= 0) return false;
    if (at.first[size_t(group)] >= peak) return false;
    for (int t : takers[size_t(group)])
      if (at.first[size_t(t)] < q) return false;
    for (size_t v : read[size_t(group)]) {
      const Span s = span(values[v], at);
      if (s.again > q) return false;
      if (s.again >= 0 || s.holds(peak) || s.holds(q)) continue;
      if (!collect(values[v].home, q, peak, at, out)) return false;
    }
    out.push_back(group);
    return true;
  }

  // One more repetition: of those that lower what is held at the peak, and nowhere raise it above, the one
  // that saves most for its work. False: there is none.
  bool improve(Order& o) const {
    const std::vector<int64_t> now = held(values, o, groups);
    const Peak peak(now);
    const Order::At at = o.at(groups);
    double best = 0;
    Order chosen;
    std::set<int> tried;
    for (auto& v : values) {
      if (!v.held || !tried.insert(v.home).second) continue;
      const int q = use_after(v.home, peak.at, at);
      std::vector<int> again;
      if (q < 0 || !span(v, at).holds(peak.at)) continue;
      if (!collect(v.home, q, peak.at, at, again)) continue;
      Order trial = o;
      double cost = 1;
      std::vector<Order::Entry> more;
      for (int g : again) more.push_back({g, true}), cost += double(work[size_t(g)]);
      trial.entries.insert(trial.entries.begin() + q, more.begin(), more.end());
      const std::vector<int64_t> then = held(values, trial, groups);
      const int64_t saved = now[size_t(peak.at)] - then[size_t(peak.at)];
      if (saved <= 0 || Peak(then).bytes > peak.bytes || double(saved) / cost <= best) continue;
      best = double(saved) / cost;
      chosen = std::move(trial);
    }
    if (best <= 0) return false;
    o = std::move(chosen);
    return true;
  }
};
} // namespace

Order Planner::within_memory(Order o, const std::vector<Value>& all) {
  const size_t n = groups_.size();
  std::vector<std::vector<int>> takers(n);
  std::vector<int64_t> work(n, 0);
  for (NodeId id : order_) {
    for (NodeId x : evaluators(id)) {
      const size_t home = size_t(home_[x]);
      if (g_[id].comp()) work[home] = add_saturated(work[home], terms(comp(id)));
      for (Port q : sources(g_, id))
        for (auto& [taker, d] : donated_)
          if (d.input == q.node) takers[home].push_back(home_[taker]);
    }
  }
  Repeater r{all, takers, work, n};
  r.prepare();
  while (Peak(held(all, o, n)).bytes > s_.memory && r.improve(o)) {}
  if (const int64_t bytes = Peak(held(all, o, n)).bytes; bytes > s_.memory)
    note("refused: " + std::to_string(s_.memory) + " bytes of memory: the least found holds " +
         std::to_string(bytes) + " at once");
  return o;
}

} // namespace tang::plan
