// The tables of docs/results/tune.md from the parts that were measured, and the estimate's weights as they are learned.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "bench.hpp"
#include "figures.hpp"
#include "tang/tune/measured.hpp"
#include "tang/tune/ranking.hpp"

namespace bench {

namespace {
struct Group : tune::JudgedGroup {
  std::string problem;
  int threads = 1;
  std::vector<double> floors;

  double plain_regret(const tune::Judged& c) const { return c.time.median / tune::fastest(*this).time.median - 1; }
};

struct Way {
  std::string name;
  tune::Trainer train;
};

std::vector<Way> ways() {
  return {{"least squares", tune::least_squares}, {"pairwise", [](auto& g, auto& p) { return tune::pairwise(g, p); }}};
}

// Each way of learning the weights: on all groups; then, graph by graph, what they pick where they never saw it.
std::string learned(const std::vector<Group>& groups) {
  tune::Groups all;
  for (auto& g : groups) all.push_back(&g);
  const tune::Prior prior = tune::prior_of_cpu();
  tune::Machine any;
  any.levels = {{}};
  std::string md = "| weights |";
  for (auto& t : tune::unweighted({}, any)) md += " " + t.name + " |";
  md += "\n|---|";
  for (size_t k = 0; k < prior.weights.size(); ++k) md += "---|";
  auto row = [&](const std::string& head, const std::vector<double>& w) {
    md += "\n| " + head + " |";
    for (double v : w) md += " " + number("%.2f", v) + " |";
  };
  row("in the source", prior.weights);
  for (auto& w : ways()) row(w.name, w.train(all, prior));
  md += "\n\n| graph left out | threads |";
  for (auto& w : ways()) md += " " + w.name + ": estimated | eight timed | rank correlation |";
  md += "\n|---|---|---|---|---|---|---|---|\n";
  struct Sum {
    Mean zero, eight;
    double correlation = 0;
  };
  std::vector<std::vector<std::vector<double>>> apart;
  for (auto& w : ways()) apart.push_back(tune::held_out(all, prior, w.train));
  std::map<int, std::vector<Sum>> sums;
  for (size_t g = 0; g < groups.size(); ++g) {
    md += "| " + groups[g].problem + " | " + std::to_string(groups[g].threads) + " |";
    auto& sum = sums[groups[g].threads];
    sum.resize(apart.size());
    for (size_t w = 0; w < apart.size(); ++w) {
      const auto& by = apart[w][g];
      const double zero = tune::regret(groups[g], tune::lowest(groups[g], by)),
                   eight = tune::regret(groups[g], tune::fastest_of(groups[g], by)),
                   correlation = tune::rank_correlation(groups[g], by);
      sum[w].zero.add(zero), sum[w].eight.add(eight), sum[w].correlation += correlation;
      md += " " + percent(zero) + " | " + percent(eight) + " | " + number("%.2f", correlation) + " |";
    }
    md += "\n";
  }
  for (auto& [n, sum] : sums) {
    md += "| mean, worst | " + std::to_string(n) + " |";
    for (auto& x : sum)
      md += " " + percent(x.zero.value()) + ", " + percent(x.zero.worst) + " | " + percent(x.eight.value()) + ", " + percent(x.eight.worst) + " | " +
            number("%.2f", x.correlation / x.zero.n) + " |";
    md += "\n";
  }
  return md;
}
// Predicted before the run (`bench_tune predict`), then timed: a term stays where both agree within 25%.
std::string interventions(const ordered_json& doc) {
  std::string md = "\n## Interventions\n\nSavings that the estimate predicted of changes to one term, written down before they were timed, " + doc["date"].get<std::string>();
  if (doc.contains("speed_before"))
    md += "; probed before and after them, multiply-adds ran at " + number("%.2f", doc["speed_before"]) + " and " + number("%.2f", doc["speed_after"]) + " of the rate that the predictions are of";
  md += ".\n\n| term | change | predicted us | saved us | of us | off by | |\n|---|---|---|---|---|---|---|\n";
  std::vector<std::string> terms;                   // in order
  std::map<std::string, std::pair<int, int>> of;    // held, all
  for (auto& r : doc["interventions"]) {
    const double wanted = r["saving_us"], got = r["saved_us"], miss = wanted / got - 1;
    const std::string term = r["term"];
    const bool good = std::fabs(miss) <= 0.25;
    if (!of.count(term)) terms.push_back(term);
    of[term].first += good, ++of[term].second;
    md += "| " + term + " | " + r["change"].get<std::string>() + " | " + number("%.2f", wanted) + " | " + number("%.2f", got) + " | " +
          number("%.2f", r["measured_before_us"]) + " | " + percent(miss) + " | " + (good ? "holds" : "**missed**") + " |\n";
  }
  md += "\nWithin 25%:";
  for (auto& t : terms) md += (t == terms[0] ? " " : ", ") + t + " " + std::to_string(of[t].first) + " of " + std::to_string(of[t].second);
  return md + ".\n";
}
}  // namespace

int report(const std::string& prefix, const std::vector<std::string>& parts) {
  std::map<int, tune::Machine> machines;
  std::vector<ordered_json> docs;
  for (auto& file : parts) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    if (auto m = tune::machine_of(text.str())) machines[m->workers] = *m;
    else docs.push_back(ordered_json::parse(text.str()));
  }
  std::vector<Group> groups;
  std::vector<ordered_json> soundness, changed;
  int64_t pairs = 0, below = 0;
  for (auto& doc : docs) {
    if (doc.contains("interventions")) {
      changed.push_back(doc);
      continue;
    }
    for (auto& p : doc) {
      if (p.contains("pairs")) {
        soundness.push_back(p);
        continue;
      }
      Group g;
      g.graph = g.problem = p["problem"], g.threads = p["threads"];
      const tune::Machine& m = machines.at(g.threads);
      for (auto& c : p["candidates"]) {
        const tune::Work w = tune::work_in(c["work"].dump());
        tune::Judged x{{}, {c["median"], c["low"], c["high"], c["best"], c["runs"]}};
        for (auto& t : tune::unweighted(w, m)) x.terms.push_back(t.seconds);
        g.floors.push_back(tune::floor(w, m).seconds);
        ++pairs;
        below += g.floors.back() > x.time.best;
        g.all.push_back(std::move(x));
      }
      groups.push_back(std::move(g));
    }
  }
  std::sort(groups.begin(), groups.end(), [](auto& a, auto& b) { return a.threads < b.threads; });
  std::string md = "# Schedules: the race, the floor\n\n`make bench-tune` reprints this page.\n\n";
  for (auto& [n, m] : machines)
    md += "- " + std::to_string(n) + " worker" + (n > 1 ? "s" : "") + ", probed " + m.date + ": multiply-adds " + number("%.1f", m.fma.typical / 1e9) + " Gflop/s, exponentials " + number("%.2f", m.exp.typical / 1e9) +
          " G/s, reads from L1 / L2 / L3 / memory " + number("%.0f", m.levels[0].read.typical / 1e9) + " / " + number("%.0f", m.levels[1].read.typical / 1e9) + " / " + number("%.0f", m.levels[2].read.typical / 1e9) + " / " +
          number("%.0f", m.levels[3].read.typical / 1e9) + " GB/s, launch " + number("%.2f", m.launch * 1e6) + " us\n";
  md += "\n## The tile race\n\nEvery schedule in a group's space is run, checked and timed in turns with the others. Regret: how much slower than the best of all; where the 95% intervals of\n"
        "two medians overlap it is 0 (in brackets: by medians alone). *Automatic*: the rules without a model. *Estimated*: the lowest estimate, nothing timed. *Eight timed*: the automatic\n"
        "one and the seven lowest estimates are timed.\n\n"
        "| problem | threads | schedules | worst / best | automatic | estimated | eight timed | estimate / time of the automatic one | rank correlation |\n|---|---|---|---|---|---|---|---|---|\n";
  tune::Groups judged;
  for (auto& g : groups) judged.push_back(&g);
  std::map<int, std::vector<Mean>> means;  // automatic, estimated, eight; then by medians alone
  for (auto& g : groups) {
    auto& m = means[g.threads];
    m.resize(6);
    const tune::Judged &automatic = g.all[0], &zero = tune::lowest(g, tune::weights()), &eight = tune::fastest_of(g, tune::weights());
    const tune::Judged* of[] = {&automatic, &zero, &eight};
    double worst = 0;
    for (auto& c : g.all) worst = std::max(worst, c.time.median);
    md += "| " + g.problem + " | " + std::to_string(g.threads) + " | " + std::to_string(g.all.size()) + " | " + number("%.2f", worst / tune::fastest(g).time.median) + " |";
    for (int k = 0; k < 3; ++k) {
      m[size_t(k)].add(tune::regret(g, *of[k]));
      m[size_t(k) + 3].add(g.plain_regret(*of[k]));
      md += " " + percent(tune::regret(g, *of[k])) + " (" + percent(g.plain_regret(*of[k])) + ") |";
    }
    md += " " + number("%.2f", tune::estimated(automatic, tune::weights()) / automatic.time.median) + " | " + number("%.2f", tune::rank_correlation(g, tune::weights())) + " |\n";
  }
  md += "\n| threads | | automatic | estimated | eight timed |\n|---|---|---|---|---|\n";
  for (auto& [n, m] : means) {
    for (int plain : {0, 3})
      md += "| " + std::to_string(n) + " | geometric mean" + (plain ? ", medians alone" : "") + " | " + percent(m[size_t(plain)].value()) + " | " + percent(m[size_t(plain) + 1].value()) + " | " + percent(m[size_t(plain) + 2].value()) + " |\n" +
            "| " + std::to_string(n) + " | worst" + (plain ? ", medians alone" : "") + " | " + percent(m[size_t(plain)].worst) + " | " + percent(m[size_t(plain) + 1].worst) + " | " + percent(m[size_t(plain) + 2].worst) + " |\n";
  }
  md += "| | needed: mean, worst | | 5%, 15% | 1.5%, 5% |\n\n## The weights of the estimate\n\n"
        "Learned in two ways from every candidate of both numbers of threads: by least squares of relative errors, and from pairs of candidates of one\n"
        "group whose intervals are disjoint (`tune::pairwise`; " + std::to_string(tune::pairs(judged)) + " pairs). Then each graph is left out in turn, with both\n"
        "numbers of threads, and picked with weights that never saw it. Those of the source are what savings of one term were (below). `tang cache train`\n"
        "learns from pairs of what the tuning cache holds.\n\n" + learned(groups);
  md += "\n## The floor\n\nPairs of a kernel and a schedule whose fastest run is below their floor (`tune::floor`, the same function as in `tang why`); needed: none.\n\n| where | pairs | below | largest floor / fastest run | mean |\n|---|---|---|---|---|\n";
  double largest = 0, sum = 0;
  for (auto& g : groups)
    for (size_t k = 0; k < g.all.size(); ++k) {
      const double ratio = g.floors[k] / g.all[k].time.best;
      largest = std::max(largest, ratio), sum += ratio;
    }
  md += "| the race | " + std::to_string(pairs) + " | " + std::to_string(below) + " | " + number("%.3f", largest) + " | " + number("%.3f", sum / double(std::max<int64_t>(1, pairs))) + " |\n";
  for (auto& s : soundness) {
    md += "| random sizes of eight kernels, " + std::to_string(s["threads"].get<int>()) + " thread" + (s["threads"].get<int>() > 1 ? "s" : "") + ", " + std::to_string(s["graphs"].get<int>()) + " graphs | " + std::to_string(s["pairs"].get<int64_t>()) + " | " + std::to_string(s["below"].get<int64_t>()) + " | " +
          number("%.3f", s["largest_ratio"]) + " | " + number("%.3f", s["mean_ratio"]) + " |\n";
    pairs += s["pairs"].get<int64_t>(), below += s["below"].get<int64_t>();
  }
  md += "| all | " + std::to_string(pairs) + " | " + std::to_string(below) + " | | |\n";
  for (auto& doc : changed) md += interventions(doc);
  std::ofstream(prefix + ".md") << md;
  std::printf("%zu groups, %lld pairs, %lld below their floor: %s.md\n", groups.size(), static_cast<long long>(pairs), static_cast<long long>(below), prefix.c_str());
  return below ? 1 : 0;
}

}  // namespace bench
