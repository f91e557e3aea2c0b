// Many kernels of many sizes under many schedules: none may be faster than its floor.
#include <cstdio>
#include <random>

#include "bench.hpp"
#include "tang/tune/step_floor.hpp"

namespace bench {

namespace {
Problem random_problem(std::mt19937_64& rng) {
  auto size = [&](int64_t least, int64_t most) { return least + int64_t(rng() % uint64_t(most - least + 1)); };
  ir::Builder g;
  auto [i, j, k] = axes<"i j k">();
  switch (rng() % 8) {
    case 0: {
      const int64_t m = size(8, 200), n = size(8, 200), d = size(8, 200);
      Tensor x = g.input("x", {m, d}), w = g.input("w", {d, n});
      g.output(map({i, j}, sum(k, x(i, k) * w(k, j))), "y");
      return {"x w", g.graph()};
    }
    case 1: {
      const int64_t m = size(8, 160), n = size(8, 160), d = size(8, 160);
      Tensor x = g.input("x", {m, d}), w = g.input("w", {n, d}), bias = g.input("bias", {n});
      g.output(map({i, j}, tanh(sum(k, x(i, k) * w(j, k)) + bias(j))), "y");
      return {"tanh(x w^T + b)", g.graph()};
    }
    case 2: {
      const int64_t m = size(16, 2000), d = size(16, 2000);
      Tensor x = g.input("x", {m, d}), w = g.input("w", {d});
      g.output(map({i}, sum(k, x(i, k) * w(k))), "y");
      return {"x w, one column", g.graph()};
    }
    case 3: {
      const int64_t m = size(16, 1000), d = size(16, 3000);
      Tensor x = g.input("x", {m, d});
      g.output(map({i}, max(k, x(i, k))), "y");
      return {"row maxima", g.graph()};
    }
    case 4: {
      const int64_t m = size(16, 600), d = size(16, 600);
      Tensor x = g.input("x", {m, d}), y = g.input("v", {d, m});
      g.output(map({i, j}, x(i, j) + y(j, i)), "y");
      return {"x + v^T", g.graph()};
    }
    case 5: {
      const int64_t m = size(8, 120), n = size(8, 120), d = size(8, 64);
      Tensor q = g.input("q", {m, d}), w = g.input("k", {n, d}), v = g.input("v", {n, d});
      auto [c, e] = axes<"c e">();
      Tensor s = map({i, j}, sum(k, q(i, k) * w(j, k)));
      Tensor p = map({i, j}, exp(s(i, j) - max(e, s(i, e))));
      g.output(map({i, c}, sum(j, p(i, j) * v(j, c)) / sum(e, p(i, e))), "y");
      return {"attention", g.graph()};
    }
    case 6: {
      const int64_t rows = size(64, 20000), width = size(1, 64), n = size(64, 4000);
      Tensor t = g.input("t", {rows, width}), at = g.input("at", {n}, ir::Format::i32);
      g.output(map({i, j}, t(at(i), j) * 2.0), "y");
      return {"rows looked up", g.graph()};
    }
    default: {
      const int64_t m = size(16, 400), d = size(64, 4000);
      Tensor x = g.input("x", {m, d});
      Scalar mean = sum(k, x(i, k)) / double(d);
      g.output(map({i, j}, x(i, j) - mean), "y");
      return {"rows less their mean", g.graph()};
    }
  }
}
}  // namespace

namespace {
// Schedules of a program in which every step has one of its candidates: the automatic ones, then `most` others evenly
// over the order of the estimates.
struct Chosen {
  std::vector<tune::Space> spaces;
  std::vector<schedule::Schedule> all;
  std::vector<size_t> of;  // of each schedule, the candidate that steps have
};
Chosen chosen(const Setup& s, const run::Derivation& d, size_t most) {
  Chosen out;
  size_t rounds = 0;
  for (size_t k = 0; k < d.plan.steps.size(); ++k) {
    out.spaces.push_back(tune::space_of(d, s.options, k, s.machine));
    rounds = std::max(rounds, out.spaces.back().candidates.size());
  }
  const size_t apart = std::max<size_t>(1, rounds / most);
  for (size_t k = 0; k < rounds && out.all.size() < most; k += apart) {
    schedule::Schedule one = s.options.schedule;
    for (auto& x : out.spaces)
      if (k < x.candidates.size()) one.groups[x.key] = x.candidates[k].fields;
    out.all.push_back(one), out.of.push_back(k);
  }
  return out;
}
}  // namespace

ordered_json sound(const Setup& s) {
  std::mt19937_64 rng(17);
  int64_t pairs = 0, below = 0, bad = 0, kernels = 0, wholes = 0;
  double closest = 0, logs = 0;
  ordered_json worst;
  while (pairs < s.pairs) {
    const Problem p = random_problem(rng);
    const run::Derivation d = run::derive(p.graph, s.options);
    const eval::Inputs inputs = inputs_of(p.graph);
    const Chosen c = chosen(s, d, 24);
    ++kernels;
    // Compiled here, two at once, before anything is timed.
    tune::Bench bench{p.graph, inputs, s.options, s.compiler, tune::reference_of(p.graph, inputs, s.options, s.compiler)};
    const auto trials = tune::measure(bench, c.all, 0.002, 9);
    const double step = tune::step_floor(*d.plan.graph, s.machine).time.seconds; // of the whole program
    for (size_t k = 0; k < c.all.size(); ++k) {
      if (trials[k].kind != tune::Trial::ok) {
        ++bad;
        std::printf("  %s: %s\n", p.name.c_str(), trials[k].why.c_str());
        continue;
      }
      ++wholes, below += step > trials[k].whole.best;
      for (size_t x = 0; x < c.spaces.size(); ++x) {
        if (c.of[k] >= c.spaces[x].candidates.size()) continue;
        const tune::Candidate& one = c.spaces[x].candidates[c.of[k]];
        const double floor = tune::floor(one.work, s.machine).seconds, best = trials[k].steps[x].best;
        ++pairs;
        const double ratio = floor / best;
        logs += ratio;
        if (ratio > closest) closest = ratio, worst = {{"kernel", p.name}, {"schedule", one.shown}, {"floor", floor}, {"best", best}};
        below += ratio > 1;
      }
    }
    if (kernels > s.pairs) throw Error({}, "too few schedules pass", {{std::to_string(bad) + " are not right", {}}}, "look at those first");
  }
  std::printf("%lld graphs, %lld (kernel, schedule, size) pairs, %lld faster than their floor, %lld not ok; mean floor / best time %.3f, largest %.3f\n", static_cast<long long>(kernels),
              static_cast<long long>(pairs), static_cast<long long>(below), static_cast<long long>(bad), logs / double(std::max<int64_t>(1, pairs)), closest);
  return {{"threads", s.threads}, {"graphs", kernels}, {"pairs", pairs}, {"wholes", wholes}, {"below", below}, {"not_ok", bad}, {"mean_ratio", logs / double(std::max<int64_t>(1, pairs))}, {"largest_ratio", closest}, {"largest", worst}};
}

}  // namespace bench
