// Many kernels of many sizes under many schedules: none may be faster than its floor.
#include <cstdio>
#include <random>

#include "bench.hpp"

namespace bench {

namespace {
Problem random_problem(std::mt19937_64& rng) {
  auto size = [&](int64_t least, int64_t most) { return least + int64_t(rng() % uint64_t(most - least + 1)); };
  ir::Builder g;
  auto [i, j, k] = axes<"i j k">();
  switch (rng() % 6) {
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

ordered_json sound(const Setup& s) {
  std::mt19937_64 rng(17);
  int64_t pairs = 0, below = 0, bad = 0, kernels = 0;
  double closest = 0, logs = 0;
  ordered_json worst;
  const double end = device::Cpu::seconds() + 3600;
  for (int n = 0; n < 60 && device::Cpu::seconds() < end; ++n) {
    const Problem p = random_problem(rng);
    const run::Derivation d = run::derive(p.graph, s.options);
    const eval::Inputs inputs = inputs_of(p.graph);
    ++kernels;
    std::vector<tune::Space> spaces;
    size_t rounds = 0;
    for (size_t k = 0; k < d.plan.steps.size(); ++k) {
      spaces.push_back(tune::space_of(d, s.options, k, s.machine));
      rounds = std::max(rounds, spaces.back().candidates.size());
    }
    std::vector<schedule::Schedule> all;
    // The automatic one, the most promising, and some of the others.
    std::vector<size_t> of;
    for (size_t k = 0; k < rounds && all.size() < 7; k += k < 4 ? 1 : std::max<size_t>(1, rounds / 5)) {
      schedule::Schedule one = s.options.schedule;
      for (auto& x : spaces)
        if (k < x.candidates.size()) one.groups[x.key] = x.candidates[k].fields;
      all.push_back(one), of.push_back(k);
    }
    if (s.compile_only) {
      for (auto& one : all) {
        run::Options o = s.options;
        o.schedule = one;
        s.compiler->compile(run::source(run::derive(p.graph, o), o));
      }
      continue;
    }
    tune::Bench bench{p.graph, inputs, s.options, s.compiler, tune::reference_of(p.graph, inputs, s.options, s.compiler)};
    const auto trials = tune::measure(bench, all, 0.004, 15);
    for (size_t k = 0; k < all.size(); ++k) {
      if (trials[k].kind != tune::Trial::ok) {
        ++bad;
        std::printf("  %s: %s\n", p.name.c_str(), trials[k].why.c_str());
        continue;
      }
      for (size_t x = 0; x < spaces.size(); ++x) {
        if (of[k] >= spaces[x].candidates.size()) continue;
        const double floor = tune::floor(spaces[x].candidates[of[k]].work, s.machine).seconds, best = trials[k].steps[x].best;
        ++pairs;
        const double ratio = floor / best;
        logs += ratio;
        if (ratio > closest) closest = ratio, worst = {{"kernel", p.name}, {"schedule", spaces[x].candidates[of[k]].shown}, {"floor", floor}, {"best", best}};
        below += ratio > 1;
      }
    }
  }
  std::printf("%lld graphs, %lld (kernel, schedule, size) pairs, %lld faster than their floor, %lld not ok; mean floor / best time %.3f, largest %.3f\n", static_cast<long long>(kernels),
              static_cast<long long>(pairs), static_cast<long long>(below), static_cast<long long>(bad), logs / double(std::max<int64_t>(1, pairs)), closest);
  return {{"threads", s.threads}, {"graphs", kernels}, {"pairs", pairs}, {"below", below}, {"not_ok", bad}, {"mean_ratio", logs / double(std::max<int64_t>(1, pairs))}, {"largest_ratio", closest}, {"largest", worst}};
}

}  // namespace bench
