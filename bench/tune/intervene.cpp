// Interventions: for each term of the estimate two programs, or two schedules of one, that differ in one thing. What the
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

// A sum over j of f(x[i] w[j]): operands stay in the first level, so that only arithmetic counts.
template <class F> ir::Graph sums_of(int64_t rows, int64_t terms, F f) {
  ir::Builder g;
  Tensor x = g.input("x", {rows}), w = g.input("w", {terms});
  auto [i, j] = axes<"i j">();
  g.output(map({i}, sum(j, f(x(i) * w(j)))), "y");
  return g.graph();
}

// The parts of t above so many thresholds, added: three operations each, of which few wait for another.
Scalar above(Scalar t, int thresholds) {
  Scalar sum = relu(t);
  for (int k = 1; k <= thresholds; ++k) sum = sum + relu(t - 0.25 * k);
  return sum;
}

ir::Graph looked_up(int64_t rows, int64_t table, bool by_index) {
  ir::Builder g;
  Tensor t = g.input("t", {by_index ? table : rows}), at = g.input("at", {rows}, ir::Format::i32);
  auto [i] = axes<"i">();
  g.output(map({i}, by_index ? t(at(i)) * 2.0 : t(i) * to_real(at(i))), "y");
  return g.graph();
}

ir::Graph product(int64_t n, int64_t terms) {
  ir::Builder g;
  Tensor x = g.input("x", {n, terms}), w = g.input("w", {terms, n});
  auto [i, j, l] = axes<"i j l">();
  g.output(map({i, j}, sum(l, x(i, l) * w(l, j))), "y");
  return g.graph();
}

struct Blocks {
  int rows = 6, vectors = 2;
  int64_t terms = 0; // of a tile; 0: a third of all
};

// A product whose columns lie in panels, in tiles that are whole blocks: 48 or 60 rows.
Side blocked(const Setup& s, int64_t n, int64_t terms, const Blocks& b) {
  ir::Graph g = product(n, terms);
  const run::Derivation d = run::derive(g, s.options);
  schedule::GroupFields f;
  f.rows = b.rows, f.vectors = b.vectors, f.pack_b = schedule::Pack::copy;
  f.tile = {{0, b.rows % 5 ? 48 : 60}, {1, n}, {2, b.terms ? b.terms : terms / 3}};
  schedule::Schedule one = s.options.schedule;
  one.groups[schedule::key(*d.plan.graph, d.plan.steps[0].group.members[0].node)] = f;
  return side(s, std::move(g), one);
}

std::string shape(const Blocks& b) { return std::to_string(b.rows) + "x" + std::to_string(8 * b.vectors); }

// One term each: the same product of fewer terms, in other blocks, in tiles of fewer terms.
void of_blocks(const Setup& s, int64_t n, std::vector<Change>& out) {
  const std::string name = "product of " + std::to_string(n) + ", blocks of ";
  auto change = [&](const char* term, const Blocks& a, const Blocks& b) {
    out.push_back({term, name + shape(a) + " -> " + shape(b), blocked(s, n, n, a), blocked(s, n, n, b)});
  };
  out.push_back({"contractions", name + "6x16, all terms -> half of them", blocked(s, n, n, {6, 2, n / 4}), blocked(s, n, n / 2, {6, 2, n / 4})});
  out.push_back({"contractions", name + "5x16, all terms -> a third of them", blocked(s, n, n, {5, 2, n / 3}), blocked(s, n, n / 3, {5, 2, n / 3})});
  change("operands of register blocks", {4, 2}, {6, 2});
  change("operands of register blocks", {4, 3}, {6, 2});
  change("operands of register blocks", {3, 3}, {6, 2});
  change("operands of register blocks", {12, 1}, {6, 2});
  change("chains of register blocks", {5, 1}, {10, 1});
  change("chains of register blocks", {5, 1}, {5, 2});
  change("chains of register blocks", {6, 1}, {12, 1});
  for (int r : {5, 6})
    out.push_back({"starts of register blocks", name + shape({r, 2}) + ", " + std::to_string(n / 30) + " terms a tile -> " + std::to_string(n / 3),
                   blocked(s, n, n, {r, 2, n / 30}), blocked(s, n, n, {r, 2, n / 3})});
}

std::vector<Change> changes(const Setup& s) {
  std::vector<Change> out;
  for (int64_t n : s.sizes) of_blocks(s, n, out);
  for (int64_t n : s.sizes) {
    const int64_t rows = 4 * n, terms = 2 * n;
    const std::string name = std::to_string(rows) + " sums of " + std::to_string(terms);
    auto two = [&](const char* term, const std::string& what, auto before, auto after) {
      out.push_back({term, name + what, side(s, sums_of(rows, terms, before)), side(s, sums_of(rows, terms, after))});
    };
    auto some = [](int k) { return [k](Scalar t) { return above(t, k); }; };
    two("other arithmetic", ", parts above 6 thresholds -> 2", some(6), some(2));
    two("other arithmetic", ", parts above 8 thresholds -> 1", some(8), some(1));
    two("exponentials", ", 2^t -> the larger of t and 0", [](Scalar t) { return exp2(t); }, [](Scalar t) { return relu(t); });
    two("exponentials", ", 2^t + 2^(t t) -> 2^t + t t", [](Scalar t) { return exp2(t) + exp2(t * t); }, [](Scalar t) { return exp2(t) + t * t; });
    const int64_t table = n * n * 16, small = n * 128;
    for (int64_t m : {table, small})
      out.push_back({"reads by index", std::to_string(m) + " floats looked up, " + std::to_string(small) + " times -> in order", side(s, looked_up(small, m, true)), side(s, looked_up(small, m, false))});
  }
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

// Seconds of a loop of one cycle a turn: twice as long where others take half of the core.
double beat() {
  const double from = device::Cpu::seconds();
  for (int64_t n = 0; n < 3000000; ++n) __asm__ volatile("" : "+r"(n));
  return device::Cpu::seconds() - from;
}

// Again, up to five times, where the core was not alone with what it timed.
template <class F> std::vector<tune::Sample> alone(F measured) {
  static double least = beat();
  std::vector<tune::Sample> out;
  for (int round = 0; round < 5; ++round) {
    const double before = beat();
    out = measured();
    const double after = beat();
    least = std::min({least, before, after});
    if (std::max(before, after) < 1.05 * least) break;
  }
  return out;
}

// Two schedules of one graph are timed in turns; two graphs one after the other, twice, and the lower median counts.
std::vector<tune::Sample> timed(const Setup& s, const Change& c) {
  const eval::Inputs before = inputs_of(c.before.graph), after = inputs_of(c.after.graph);
  const tune::Bench b = bench_of(s, c.before, before);
  if (ir::hash(c.before.graph) == ir::hash(c.after.graph)) return timed(b, {c.before.options.schedule, c.after.options.schedule});
  const tune::Bench a = bench_of(s, c.after, after);
  std::vector<tune::Sample> out;
  for (int round = 0; round < 2; ++round) {
    const tune::Sample now[] = {timed(b, {c.before.options.schedule})[0], timed(a, {c.after.options.schedule})[0]};
    for (size_t k = 0; k < 2; ++k)
      if (!round) out.push_back(now[k]);
      else if (now[k].median < out[k].median) out[k] = now[k];
  }
  return out;
}

// What a machine does now against what it did when savings were predicted: others may share it.
double speed(const Setup& s, const tune::Machine& then) {
  device::Cpu cpu(s.threads);
  return tune::probe(*s.compiler, cpu, s.options.target.lanes).fma.typical / then.fma.typical;
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
  const auto then = tune::machine_of(predicted["machine"].dump());
  if (!then) throw Error({}, "the predictions do not say for which machine", {}, "bench_tune predict writes them");
  if (!s.compile_only) doc["speed_before"] = speed(s, *then);
  for (auto& c : changes(s)) {
    for (auto& p : predicted["predictions"]) {
      if (p["change"] != c.what || p["term"] != c.term) continue;
      if (s.compile_only) {
        for (auto* x : {&c.before, &c.after}) s.compiler->compile(run::source(run::derive(x->graph, x->options), x->options));
        continue;
      }
      const auto times = alone([&] { return timed(s, c); });
      const tune::Sample &a = times[0], &b = times[1];
      const double saved = (a.median - b.median) * 1e6, wanted = p["saving_us"];
      std::printf("%-20s predicted %8.2f us, saved %8.2f of %8.2f  %s\n", c.term.c_str(), wanted, saved, a.median * 1e6, c.what.c_str());
      std::fflush(stdout);
      ordered_json row = p;
      row["saved_us"] = saved, row["measured_before_us"] = a.median * 1e6, row["measured_after_us"] = b.median * 1e6;
      doc["interventions"].push_back(row);
    }
  }
  if (!s.compile_only) doc["speed_after"] = speed(s, *then);
  return doc;
}

} // namespace bench
