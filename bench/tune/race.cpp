// Every schedule in the space of a group is timed: how far the pick without timing, and the pick with eight timed, are
// from the best.
#include <cmath>
#include <cstdio>

#include "bench.hpp"
#include "tang/models/attention.hpp"
#include "tang/text/schedule.hpp"
#include "tang/tune/measured.hpp"

namespace bench {

namespace {
Problem matmul(int64_t n) {
  ir::Builder g;
  Tensor x = g.input("x", {n, n}), w = g.input("w", {n, n});
  auto [i, j, k] = axes<"i j k">();
  g.output(map({i, j}, sum(k, x(i, k) * w(k, j))), "y");
  return {"matmul " + std::to_string(n), g.graph()};
}
Problem attention(int64_t h, int64_t n, int64_t d, bool causal) {
  ir::Builder b;
  Tensor q = b.input("q", {1, h, n, d}), k = b.input("k", {1, h, n, d}), v = b.input("v", {1, h, n, d});
  models::AttentionOptions how;
  how.naive = true;
  if (causal) how.mask = models::causal();
  b.output(models::attention(q, k, v, how).out, "o");
  return {std::string(causal ? "causal" : "full") + " attention h" + std::to_string(h) + " n" + std::to_string(n) + " d" + std::to_string(d), b.graph()};
}
}  // namespace

std::vector<Problem> race_problems() {
  return {matmul(128),   matmul(256),
          matmul(512),   matmul(1024),
          attention(8, 256, 64, false), attention(4, 512, 64, true),
          attention(2, 1024, 128, false), attention(1, 2048, 64, true)};
}
size_t main_step(const run::Derivation& d, const Setup& s) {
  size_t best = 0;
  double most = -1;
  for (auto& l : d.kernels.kernels) {
    const double w = tune::work_of({&l}, s.machine).contracted;
    if (w > most) most = w, best = size_t(l.step);
  }
  return best;
}
// The race as it was timed, with what is counted of each schedule today: kernels are those that were timed.
ordered_json recounted(const Setup& s, const Problem& p, const ordered_json& timed) {
  const run::Derivation d = run::derive(p.graph, s.options);
  const tune::Space space = tune::space_of(d, s.options, main_step(d, s), s.machine);
  for (auto& x : timed) {
    if (x["problem"] != p.name) continue;
    ordered_json out = x;
    size_t known = 0;
    for (auto& row : out["candidates"])
      for (auto& c : space.candidates)
        if (row["fields"] == text::fields(c.fields) && row["schedule"] == c.shown) {
          row["work"] = ordered_json::parse(tune::as_json(c.work)), row["estimated"] = c.estimated;
          ++known;
        }
    std::printf("%-32s %zu of %zu candidates counted again\n", p.name.c_str(), known, out["candidates"].size());
    if (known != out["candidates"].size()) throw Error({}, "the race timed other schedules than there are now", {{p.name, {}}}, "run it again");
    return out;
  }
  throw Error({}, "the race did not time this problem", {{p.name, {}}}, "run it again");
}
ordered_json race(const Setup& s, const Problem& p) {
  const run::Derivation d = run::derive(p.graph, s.options);
  const size_t step = main_step(d, s);
  const tune::Space space = tune::space_of(d, s.options, step, s.machine);
  std::vector<schedule::Schedule> all;
  for (auto& c : space.candidates) {
    schedule::Schedule one = s.options.schedule;
    one.groups[space.key] = c.fields;
    all.push_back(one);
  }
  if (s.compile_only) {
    std::vector<std::string> units;
    for (auto& one : all) {
      run::Options o = s.options;
      o.schedule = one;
      units.push_back(run::source(run::derive(p.graph, o), o));
      s.compiler->compile(units.back());
    }
    std::printf("%-32s %zu candidates compiled, %zu refused\n", p.name.c_str(), all.size(), space.refused.size());
    return {};
  }
  const eval::Inputs inputs = inputs_of(p.graph);
  tune::Bench bench{p.graph, inputs, s.options, s.compiler, tune::reference_of(p.graph, inputs, s.options, s.compiler)};
  const auto trials = tune::measure(bench, all, s.seconds, 7);
  ordered_json out{{"problem", p.name}, {"threads", s.threads}, {"device", s.machine.device}, {"date", s.machine.date}, {"refused", space.refused.size()}};
  out["candidates"] = ordered_json::array();
  int wrong = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    const auto& c = space.candidates[k];
    if (trials[k].kind != tune::Trial::ok) {
      ++wrong;
      std::printf("  %s: %s\n", c.shown.c_str(), trials[k].why.c_str());
      continue;
    }
    const tune::Sample& t = trials[k].steps[step];
    const tune::Work& w = c.work;
    out["candidates"].push_back({{"fields", text::fields(c.fields)}, {"schedule", c.shown}, {"estimated", c.estimated}, {"floor", tune::floor(w, s.machine).seconds},
                                 {"median", t.median}, {"low", t.low}, {"high", t.high}, {"best", t.best}, {"runs", t.runs}, {"error", trials[k].error},
                                 {"work", ordered_json::parse(tune::as_json(w))}});
  }
  out["wrong"] = wrong;
  std::printf("%-32s %zu candidates timed, %d not ok, %zu refused\n", p.name.c_str(), all.size() - size_t(wrong), wrong, space.refused.size());
  return out;
}

}  // namespace bench
