#include "tang/fuzz/judge.hpp"

#include <cmath>

#include "tang/base/number.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/text/text.hpp"
#include "tang/verify/bound.hpp"
#include "tang/verify/verify.hpp"

namespace tang::fuzz {

using eval::Array;
using expr::State;

ir::Graph given_graph(const Case& c) {
  if (!c.late) return ir::bind(c.graph, c.bindings).graph;
  return ir::bind(rewrite::optimize(c.graph).graph, c.bindings).graph;
}

Reference reference(const Case& c) {
  Reference r{ir::bind(c.graph, c.bindings).graph, {}};
  r.outputs = eval::run(r.graph, c.inputs);
  return r;
}

namespace {
// The first difference, or nothing. `bound`: the largest error of each element; none: the values must be
// equal, as far as the target promises them.
std::string difference(const Array& want, const Array& got, const Array* bound, const ir::FormatRow& format,
                       target::Class values, Judged& count) {
  const bool real = want.type == expr::Type::real;
  for (int64_t k = 0; k < want.size(); ++k) {
    expr::Value w = want.at(k), g = got.at(k);
    if (w.state != State::present) continue;
    if (real) w.r = verify::as_promised(w.r, values), g.r = verify::as_promised(g.r, values);
    const std::string at = " at " + std::to_string(k) + " of " + std::to_string(want.size());
    if (!real) {
      if (bound && !bound->r.empty() && !(bound->r[size_t(k)] == 0)) {
        ++count.open;
        continue;
      }
      ++count.values;
      if (w.i != g.i) return std::to_string(w.i) + " expected, " + std::to_string(g.i) + " found" + at;
      continue;
    }
    if (std::isnan(w.r)) { // a rule may give a number where the graph as written meets a NaN
      ++count.open;
      continue;
    }
    double room = 0;
    if (bound) { // the stored value is rounded once more, to its format
      room = bound->r.empty() ? 0 : bound->r[size_t(k)];
      const double largest =
          std::ldexp(2 - std::ldexp(1.0, -format.mantissa), (1 << (format.exponent - 1)) - 1);
      if (std::isfinite(w.r) && std::fabs(w.r) + room > largest) room = HUGE_VAL;
      room += std::ldexp(std::fabs(w.r) + room, -format.mantissa - 1) +
              std::ldexp(1.0, -(1 << (format.exponent - 1)) + 2 - format.mantissa);
      if (!(room < HUGE_VAL)) {
        ++count.open;
        continue;
      }
    }
    ++count.values;
    if (w.r == g.r || std::fabs(w.r - g.r) <= room) continue;
    return shortest(w.r) + " expected, " + shortest(g.r) + " found, bound " + shortest(room) + at;
  }
  return "";
}
} // namespace

std::vector<Fault> judge(const Case& c, const Reference& r, const run::Derivation& d, const Outputs& got,
                         Judged& count, target::Class values) {
  std::vector<Fault> out;
  std::map<std::string, Array> bounds;
  if (!c.integer) bounds = verify::error_bounds(*d.plan.graph, c.inputs, verify::single());
  for (auto& o : r.graph.outputs) {
    const auto it = got.find(o.name);
    if (it == got.end()) continue;
    const ir::FormatRow* format = &ir::row(o.format);
    for (auto& p : d.plan.graph->outputs)
      if (p.name == o.name) format = &ir::row(lower::format_of(d.plan, p.port));
    const std::string gap = difference(r.outputs.at(o.name), it->second,
                                       c.integer ? nullptr : &bounds.at(o.name), *format, values, count);
    if (!gap.empty()) out.push_back({"value", o.name + ": " + gap});
  }
  return out;
}

Outputs execute(run::Program& p, const Case& c, const ir::Graph& written, std::vector<Fault>& faults) {
  verify::feed(p, written, c.inputs);
  p.poison_scratch();
  for (auto& o : written.outputs)
    if (!c.inputs.count(o.name)) p.memory(o.name)->poison();
  p.run();
  Outputs out;
  for (auto& o : written.outputs) {
    Array a(eval::bound(written.shape(o.port)), written.type(o.port));
    const ir::Format f = p.format(o.name);
    std::vector<char> held(size_t(a.size() * run::bytes_of(f)));
    p.read(o.name, held.data());
    if (a.type == expr::Type::real)
      a.r = run::read_reals(held.data(), f, a.size());
    else
      a.i = run::read_integers(held.data(), f, a.size());
    out[o.name] = std::move(a);
  }
  for (auto& t : p.trespass()) faults.push_back({"trespass", t});
  return out;
}

std::vector<std::string> rule_names() {
  std::vector<std::string> out;
  for (auto* rules : {&rewrite::normal_rules(), &rewrite::directed_rules()})
    for (auto& r : *rules) out.push_back(r.name);
  return out;
}

std::vector<Fault> laws(const Case& c, const Reference& r, std::map<std::string, int64_t>& fired,
                        Judged& count) {
  std::vector<Fault> out;
  const std::string text = text::print(c.graph);
  const ir::Graph back = text::parse(text, "case.tang");
  if (ir::hash(back) != ir::hash(c.graph) || text::print(back) != text)
    out.push_back({"text", "the graph read back from its text is another"});
  std::map<std::string, Array> own, bounds; // of the graph as written, and of the other
  if (!c.integer) own = verify::error_bounds(r.graph, c.inputs, verify::twice());
  auto same = [&](const ir::Graph& g, const std::string& who) {
    const auto got = eval::run(g, c.inputs);
    if (!c.integer) bounds = verify::error_bounds(g, c.inputs, verify::twice());
    for (auto& [name, want] : r.outputs) {
      const Array &a = got.at(name), &b = bounds[name], &w0 = own[name];
      for (int64_t k = 0; k < want.size(); ++k) {
        const expr::Value w = want.at(k), v = a.at(k);
        const double room = (b.r.empty() ? 0 : b.r[size_t(k)]) + (w0.r.empty() ? 0 : w0.r[size_t(k)]);
        if (w.type == expr::Type::real && std::isnan(w.r)) continue;
        if (w.state != v.state) {
          out.push_back({"rule", who + ": " + name + " is " +
                                     (v.state == State::present ? "there" : "absent") + " at " +
                                     std::to_string(k)});
          break;
        }
        if (w.state != State::present) continue;
        if (!(room < HUGE_VAL)) {
          ++count.open;
          continue;
        }
        ++count.values;
        const bool equal =
            w.type == expr::Type::real ? w.r == v.r || std::fabs(w.r - v.r) <= room : w.i == v.i || room > 0;
        if (equal) continue;
        out.push_back({"rule", who + ": " + name + " at " + std::to_string(k) + ": " + shortest(w.r) +
                                   " became " + shortest(v.r) + " " + std::to_string(w.i) + "/" +
                                   std::to_string(v.i)});
        break;
      }
    }
  };
  std::string who = "closed";
  try {
    const ir::Graph before = rewrite::closed(r.graph);
    auto fires = [&](const rewrite::Rule& rule) {
      who = rule.name;
      auto alone = rule.apply(before);
      if (!alone) return false;
      ++fired[rule.name];
      ir::validate(alone->graph);
      same(ir::canonical(alone->graph).graph, rule.name);
      return true;
    };
    // From the drawn one on: the first that fires; of those that `optimize` never runs perhaps each.
    for (auto* rules : {&rewrite::normal_rules(), &rewrite::directed_rules()})
      for (size_t k = 0; k < rules->size(); ++k)
        if (fires((*rules)[(size_t(c.rule) + k) % rules->size()]) &&
            !(c.every_rule && rules == &rewrite::directed_rules()))
          break;
    who = "all rules";
    const rewrite::Optimized o = rewrite::optimize(c.graph);
    for (auto& s : o.trace.steps) ++fired[s.rule];
    if (!o.trace.steps.empty()) same(ir::bind(o.graph, c.bindings).graph, "all rules");
  } catch (const std::exception& e) { out.push_back({"rule", who + ": " + e.what()}); }
  return out;
}

} // namespace tang::fuzz
