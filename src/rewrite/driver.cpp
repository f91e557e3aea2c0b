#include "tang/rewrite/driver.hpp"

#include <algorithm>
#include <cmath>

#include "tang/rewrite/directed.hpp"

namespace tang::rewrite {

namespace {
constexpr int most_rounds = 64; // every rule lowers a measure; more rounds than this is a bug in one

std::vector<std::string> names_gone(const Cost& before, const Cost& after) {
  std::multiset<std::string> left;
  auto shown = [](const StoredArray& a) {
    std::string s = a.name + "[";
    for (size_t k = 0; k < a.shape.size(); ++k) s += (k ? "," : "") + a.shape[k].text();
    return s + "]";
  };
  for (auto& a : after.stored) left.insert(shown(a));
  std::vector<std::string> out;
  for (auto& a : before.stored) {
    auto it = left.find(shown(a));
    if (it != left.end())
      left.erase(it);
    else
      out.push_back(shown(a));
  }
  return out;
}

// Steps of recurrences are graphs of their own: their outputs are the next states and what is emitted.
Graph with_steps(const Graph& g, const std::vector<Rule>& rules, Trace& trace) {
  if (std::none_of(g.nodes.begin(), g.nodes.end(), [](const Node& n) { return n.recur(); })) return g;
  Edit e(g);
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    Node n = e.node(id);
    if (auto* r = std::get_if<ir::Recur>(&n.what)) {
      Trace steps;
      auto next = with_step(*r, [&](const Graph& step) -> std::optional<Graph> {
        Optimized o = optimize(step, rules);
        steps = std::move(o.trace);
        if (steps.steps.empty()) return {};
        return std::move(o.graph);
      });
      if (next) {
        *r = std::move(*next);
        for (auto& s : steps.steps) {
          s.what.insert(s.what.begin(), "in the step of " + g.label({id, 0}) + ":");
          trace.steps.push_back(std::move(s));
        }
      }
    }
    e.put(id, std::move(n));
  }
  return e.finish();
}
} // namespace

Optimized optimize(const Graph& g, const std::vector<Rule>& rules) {
  Optimized out;
  out.graph = g;
  Cost cost = cost_of(g);
  auto fired = [&](const Rule& r) {
    auto next = r.apply(out.graph);
    if (!next) {
      out.trace.refused[r.name] = next.why();
      return false;
    }
    out.graph = std::move(next->graph);
    Cost after = cost_of(out.graph);
    out.trace.steps.push_back({r.name, r.law, std::move(next->what), cost.kernels, after.kernels,
                               cost.bytes(), after.bytes(), names_gone(cost, after)});
    cost = std::move(after);
    return true;
  };
  // Where a map exists must show in its domain before its readers are closed.
  const Rule bounds = absence_to_domain();
  if (std::any_of(rules.begin(), rules.end(), [&](const Rule& r) { return r.name == bounds.name; }))
    fired(bounds);
  out.graph = with_steps(closed(out.graph), rules, out.trace);
  cost = cost_of(out.graph);
  std::map<std::string, int> refused_at; // rule -> version of the graph that it refused
  int version = 0;
  for (int round = 0;; ++round) {
    if (round >= most_rounds) {
      std::string last;
      for (size_t k = out.trace.steps.size() - std::min<size_t>(6, out.trace.steps.size());
           k < out.trace.steps.size(); ++k)
        last += " " + out.trace.steps[k].rule + " (" + out.trace.steps[k].what[0] + ")";
      bug(__FILE__, __LINE__, "the rules do not come to an end:" + last);
    }
    const int start = version;
    for (auto& r : rules) {
      auto seen = refused_at.find(r.name);
      if (seen != refused_at.end() && seen->second == version) continue;
      if (fired(r))
        ++version;
      else
        refused_at[r.name] = version;
    }
    if (version == start) break;
  }
  out.graph = ir::canonical(out.graph).graph;
  return out;
}

namespace {
std::string bytes_text(double b) {
  const char* unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int k = 0;
  while (b >= 1024 && k < 4) b /= 1024, ++k;
  const long long tenths = std::llround(b * 10);
  return std::to_string(tenths / 10) + (tenths % 10 ? "." + std::to_string(tenths % 10) : "") + " " + unit[k];
}
} // namespace

std::string explain(const Trace& t) {
  std::string out;
  int number = 0;
  for (auto& s : t.steps) {
    out += std::to_string(++number) + ". " + s.rule + " (" +
           (s.law.strength == Law::exact ? "exact" : "algebraic") + ")\n";
    out += "   law: " + s.law.statement + "  [" + s.law.theorem + "]\n";
    for (size_t k = 0; k < s.what.size() && k < 8; ++k) out += "   " + s.what[k] + "\n";
    if (s.what.size() > 8) out += "   and " + std::to_string(s.what.size() - 8) + " more\n";
    if (s.kernels_before != s.kernels_after)
      out +=
          "   kernels: " + std::to_string(s.kernels_before) + " -> " + std::to_string(s.kernels_after) + "\n";
    if (!s.unstored.empty()) {
      out += "   no longer stored:";
      for (size_t k = 0; k < s.unstored.size() && k < 8; ++k) out += " " + s.unstored[k];
      if (s.unstored.size() > 8) out += " and " + std::to_string(s.unstored.size() - 8) + " more";
      out += "\n";
    }
    if (s.bytes_before != s.bytes_after)
      out += "   stored: " + bytes_text(s.bytes_before) + " -> " + bytes_text(s.bytes_after) + "\n";
  }
  if (t.steps.empty()) out = "nothing to rewrite\n";
  return out;
}

} // namespace tang::rewrite
