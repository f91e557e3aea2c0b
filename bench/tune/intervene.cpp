// Interventions: for each term of the estimate two programs or two schedules of one that differ in little else. What the
// estimate says the change saves is written down first (predict), then the change is made and timed (intervene).
#include <cmath>
#include <cstdio>
#include <fstream>

#include "bench.hpp"
#include "tang/text/schedule.hpp"

namespace bench {

namespace {
struct Side {
  ir::Graph graph;
  run::Options options;
  double estimated = 0;
  std::vector<double> terms;
};

struct Change {
  std::string term, what;
  Side before, after;
};

std::vector<double> terms_of(const tune::Work& w, const tune::Machine& m) {
  std::vector<double> out;
  for (auto& t : tune::estimate(w, m).terms) out.push_back(t.seconds);
  return out;
}

// A program under a schedule, and what the estimate says of all its steps.
Side side(const Setup& s, ir::Graph g, const schedule::Schedule& sched = {}) {
  Side x{std::move(g), s.options, 0, {}};
  x.options.schedule = sched;
  const run::Derivation d = run::derive(x.graph, x.options);
  for (size_t k = 0; k < d.plan.steps.size(); ++k) {
    std::vector<const lower::Lowered*> kernels;
    for (auto& l : d.kernels.kernels)
      if (size_t(l.step) == k) kernels.push_back(&l);
    const auto t = terms_of(tune::work_of(kernels, s.machine, tune::read_bytes(d.plan, d.plan.steps[k])), s.machine);
    x.terms.resize(t.size());
    for (size_t n = 0; n < t.size(); ++n) x.terms[n] += t[n], x.estimated += t[n];
  }
  return x;
}

ir::Graph map_of(int64_t rows, int64_t columns, int operands, bool exponential) {
  ir::Builder g;
  auto [i, j] = axes<"i j">();
  Scalar sum = g.input("x0", {rows, columns})(i, j);
  for (int k = 1; k < operands; ++k) sum = sum + g.input("x" + std::to_string(k), {rows, columns})(i, j);
  g.output(map({i, j}, exponential ? exp2(sum) : sum * 1.5), "y");
  return g.graph();
}

ir::Graph looked_up(int64_t rows, int64_t table, bool by_index) {
  ir::Builder g;
  Tensor t = g.input("t", {by_index ? table : rows}), at = g.input("at", {rows}, ir::Format::i32);
  auto [i] = axes<"i">();
  g.output(map({i}, by_index ? t(at(i)) * 2.0 : t(i) * to_real(at(i))), "y");
  return g.graph();
}

// Two schedules of a problem's main group with the largest saving in one term, of those pairs in which all other terms
// together move by less than a third of it.
std::optional<Change> pair_of(const Setup& s, const Problem& p, size_t term, const std::string& name) {
  const run::Derivation d = run::derive(p.graph, s.options);
  const tune::Space space = tune::space_of(d, s.options, main_step(d, s), s.machine);
  std::vector<std::vector<double>> all;
  for (auto& c : space.candidates) all.push_back(terms_of(c.work, s.machine));
  double most = 0;
  std::pair<size_t, size_t> best;
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < all.size(); ++b) {
      double rest = 0;
      for (size_t k = 0; k < all[a].size(); ++k)
        if (k != term) rest += std::fabs(all[a][k] - all[b][k]);
      const double saved = all[a][term] - all[b][term];
      if (saved > most && rest < saved / 3) most = saved, best = {a, b};
    }
  if (most <= 0) return std::nullopt;
  auto at = [&](size_t k) {
    schedule::Schedule one = s.options.schedule;
    one.groups[space.key] = space.candidates[k].fields;
    return side(s, p.graph, one);
  };
  return Change{name, p.name + ": " + space.candidates[best.first].shown + " -> " + space.candidates[best.second].shown,
                at(best.first), at(best.second)};
}

std::vector<Change> changes(const Setup& s) {
  std::vector<Change> out;
  auto product = [&](int64_t n, int64_t k) {
    ir::Builder g;
    Tensor x = g.input("x", {n, k}), w = g.input("w", {k, n});
    auto [i, j, l] = axes<"i j l">();
    g.output(map({i, j}, sum(l, x(i, l) * w(l, j))), "y");
    return g.graph();
  };
  out.push_back({"contractions", "384 x 384, 384 terms -> 192", side(s, product(384, 384)), side(s, product(384, 192))});
  out.push_back({"exponentials", "2^x of 40 x 48 -> 1.5 x", side(s, map_of(40, 48, 1, true)), side(s, map_of(40, 48, 1, false))});
  out.push_back({"statements' bytes", "sum of 6 arrays of 24 x 48 -> of 2", side(s, map_of(24, 48, 6, false)), side(s, map_of(24, 48, 2, false))});
  out.push_back({"reads by index", "2^22 floats looked up, 2^18 times -> in order", side(s, looked_up(1 << 18, 1 << 22, true)), side(s, looked_up(1 << 18, 1 << 22, false))});
  out.push_back({"reads by index", "2^16 floats looked up, 2^16 times -> in order", side(s, looked_up(1 << 16, 1 << 16, true)), side(s, looked_up(1 << 16, 1 << 16, false))});
  // Each learned term, of four products and of an attention.
  const auto names = tune::unweighted({}, s.machine);
  for (size_t k = 0; k < names.size(); ++k)
    for (auto& p : race_problems())
      if (tune::is_learned(names[k].name) && (p.name.rfind("matmul", 0) == 0 || p.name == "full attention h8 n256 d64"))
        if (auto c = pair_of(s, p, k, names[k].name)) out.push_back(std::move(*c));
  return out;
}

tune::Bench bench_of(const Setup& s, const Side& x, const eval::Inputs& in) {
  tune::Bench b{x.graph, in, s.options, s.compiler, tune::reference_of(x.graph, in, s.options, s.compiler)};
  b.options.optimize = x.options.optimize;
  return b;
}

std::vector<tune::Sample> timed(const tune::Bench& b, const std::vector<schedule::Schedule>& all) {
  std::vector<tune::Sample> out;
  for (auto& t : tune::measure(b, all, 0.15, 15)) {
    if (t.kind != tune::Trial::ok) throw Error({}, "an intervention's program is not right: " + t.why, {}, "look at it first");
    out.push_back(t.whole);
  }
  return out;
}

// Two schedules of one graph are timed in turns, two graphs one after the other.
std::vector<tune::Sample> timed(const Setup& s, const Change& c) {
  const eval::Inputs before = inputs_of(c.before.graph), after = inputs_of(c.after.graph);
  const tune::Bench b = bench_of(s, c.before, before);
  if (ir::hash(c.before.graph) == ir::hash(c.after.graph)) return timed(b, {c.before.options.schedule, c.after.options.schedule});
  return {timed(b, {c.before.options.schedule})[0], timed(bench_of(s, c.after, after), {c.after.options.schedule})[0]};
}
} // namespace

ordered_json predict(const Setup& s) {
  ordered_json doc{{"schema", "tang.tune-predictions/1"}, {"machine", ordered_json::parse(tune::as_json(s.machine))}};
  for (auto& c : changes(s)) {
    doc["predictions"].push_back({{"term", c.term}, {"change", c.what}, {"before_us", c.before.estimated * 1e6}, {"after_us", c.after.estimated * 1e6},
                                  {"saving_us", (c.before.estimated - c.after.estimated) * 1e6}});
    std::printf("%-20s %8.2f us of %8.2f  %s\n", c.term.c_str(), (c.before.estimated - c.after.estimated) * 1e6, c.before.estimated * 1e6, c.what.c_str());
  }
  return doc;
}

// `predicted`: what predict wrote before.
ordered_json intervene(const Setup& s, const ordered_json& predicted) {
  ordered_json doc{{"schema", "tang.tune-interventions/1"}, {"device", s.machine.device}, {"date", tune::today()}};
  for (auto& c : changes(s)) {
    for (auto& p : predicted["predictions"]) {
      if (p["change"] != c.what || p["term"] != c.term) continue;
      if (s.compile_only) {
        for (auto* x : {&c.before, &c.after}) s.compiler->compile(run::source(run::derive(x->graph, x->options), x->options));
        continue;
      }
      const auto times = timed(s, c);
      const tune::Sample &a = times[0], &b = times[1];
      const double saved = (a.median - b.median) * 1e6, wanted = p["saving_us"];
      std::printf("%-20s predicted %8.2f us, saved %8.2f of %8.2f  %s\n", c.term.c_str(), wanted, saved, a.median * 1e6, c.what.c_str());
      std::fflush(stdout);
      ordered_json row = p;
      row["saved_us"] = saved, row["measured_before_us"] = a.median * 1e6, row["measured_after_us"] = b.median * 1e6;
      doc["interventions"].push_back(row);
    }
  }
  return doc;
}

} // namespace bench
