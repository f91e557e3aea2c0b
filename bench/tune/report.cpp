// The tables of docs/results/tune.md from the parts that were measured, and the fit of the estimate's weights.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "bench.hpp"
#include "figures.hpp"

namespace bench {

namespace {
struct Candidate {
  double median, low, high, best, estimated, floor;
  std::vector<double> terms;  // unweighted
};
struct Group {
  std::string problem;
  int threads;
  std::vector<Candidate> all;
  const Candidate& best() const {
    return *std::min_element(all.begin(), all.end(), [](auto& a, auto& b) { return a.median < b.median; });
  }
  // 0 where the intervals overlap: then nobody knows which is faster.
  double regret(const Candidate& c) const { return c.low <= best().high ? 0 : c.median / best().median - 1; }
  double plain_regret(const Candidate& c) const { return c.median / best().median - 1; }
};
double estimated(const Candidate& c, const std::vector<double>& w) {
  double s = 0;
  for (size_t k = 0; k < w.size(); ++k) s += w[k] * c.terms[k];
  return s;
}
const Candidate& pick(const Group& g, const std::vector<double>& w) {
  return *std::min_element(g.all.begin(), g.all.end(), [&](auto& a, auto& b) { return estimated(a, w) < estimated(b, w); });
}
// The automatic choice and the seven best of the others by estimate are timed.
const Candidate& pick_of_eight(const Group& g, const std::vector<double>& w) {
  std::vector<const Candidate*> order;
  for (size_t k = 1; k < g.all.size(); ++k) order.push_back(&g.all[k]);
  std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return estimated(*a, w) < estimated(*b, w); });
  order.resize(std::min<size_t>(7, order.size()));
  order.push_back(&g.all[0]);
  return **std::min_element(order.begin(), order.end(), [](auto* a, auto* b) { return a->median < b->median; });
}
// Least squares of relative errors under weights >= 0, coordinate by coordinate. Launches stay as they were probed: they go
// with further kernels, and the race cannot tell the two apart.
std::vector<double> fit(const std::vector<Group>& groups, const Group* left_out) {
  const size_t n = tune::weights().size();
  std::vector<double> a(n * n, 0), b(n, 0), x(n, 0);
  x[n - 1] = tune::weights()[n - 1];
  for (auto& g : groups) {
    if (&g == left_out) continue;
    for (auto& c : g.all)
      for (size_t i = 0; i < n; ++i) {
        b[i] += c.terms[i] / c.median;
        for (size_t j = 0; j < n; ++j) a[i * n + j] += c.terms[i] * c.terms[j] / (c.median * c.median);
      }
  }
  for (int round = 0; round < 20000; ++round)
    for (size_t i = 0; i + 1 < n; ++i) {
      if (a[i * n + i] <= 0) continue;
      double r = b[i];
      for (size_t j = 0; j < n; ++j) r -= a[i * n + j] * x[j];
      x[i] = std::max(0.0, x[i] + r / a[i * n + i]);
    }
  return x;
}
// Predicted before the run (`bench_tune predict`), then timed: a term stays where both agree within 25%.
std::string interventions(const ordered_json& doc) {
  std::string md = "\n## Interventions\n\nSavings that the estimate predicted of changes to one term, written down before they were timed, " + doc["date"].get<std::string>() +
                   ".\n\n| term | change | predicted us | saved us | of us | off by | |\n|---|---|---|---|---|---|---|\n";
  int held = 0, all = 0;
  for (auto& r : doc["interventions"]) {
    const double wanted = r["saving_us"], got = r["saved_us"], miss = wanted / got - 1;
    const bool good = std::fabs(miss) <= 0.25;
    ++all, held += good;
    md += "| " + r["term"].get<std::string>() + " | " + r["change"].get<std::string>() + " | " + number("%.2f", wanted) + " | " + number("%.2f", got) + " | " +
          number("%.2f", r["measured_before_us"]) + " | " + percent(miss) + " | " + (good ? "holds" : "**missed**") + " |\n";
  }
  return md + "\n" + std::to_string(held) + " of " + std::to_string(all) + " within 25%.\n";
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
      Group g{p["problem"], p["threads"], {}};
      const tune::Machine& m = machines.at(g.threads);
      for (auto& c : p["candidates"]) {
        tune::Work w;
        const auto& j = c["work"];
        w.launches = j["launches"], w.workgroups = j["workgroups"], w.contracted = j["contracted"], w.padded = j["padded"], w.plain = j["plain"], w.special = j["special"];
        w.moved = j["moved"], w.near = j["near"], w.far = j["far"], w.loads = j["loads"], w.blocks = j["blocks"], w.read = j["read"], w.gathered = j.value("gathered", 0.0), w.scattered = j.value("scattered", 0.0);
        Candidate x{c["median"], c["low"], c["high"], c["best"], tune::estimate(w, m).seconds, tune::floor(w, m).seconds, {}};
        for (auto& t : tune::unweighted(w, m)) x.terms.push_back(t.seconds);
        ++pairs;
        below += x.floor > x.best;
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
        "| problem | threads | schedules | worst / best | automatic | estimated | eight timed | estimate / time of the automatic one |\n|---|---|---|---|---|---|---|---|\n";
  std::map<int, std::vector<Mean>> means;  // automatic, estimated, eight; then by medians alone
  for (auto& g : groups) {
    auto& m = means[g.threads];
    m.resize(6);
    const Candidate &automatic = g.all[0], &zero = pick(g, tune::weights()), &eight = pick_of_eight(g, tune::weights());
    const Candidate* of[] = {&automatic, &zero, &eight};
    double worst = 0;
    for (auto& c : g.all) worst = std::max(worst, c.median);
    md += "| " + g.problem + " | " + std::to_string(g.threads) + " | " + std::to_string(g.all.size()) + " | " + number("%.2f", worst / g.best().median) + " |";
    for (int k = 0; k < 3; ++k) {
      m[size_t(k)].add(g.regret(*of[k]));
      m[size_t(k) + 3].add(g.plain_regret(*of[k]));
      md += " " + percent(g.regret(*of[k])) + " (" + percent(g.plain_regret(*of[k])) + ") |";
    }
    md += " " + number("%.2f", automatic.estimated / automatic.median) + " |\n";
  }
  md += "\n| threads | | automatic | estimated | eight timed |\n|---|---|---|---|---|\n";
  for (auto& [n, m] : means) {
    for (int plain : {0, 3})
      md += "| " + std::to_string(n) + " | geometric mean" + (plain ? ", medians alone" : "") + " | " + percent(m[size_t(plain)].value()) + " | " + percent(m[size_t(plain) + 1].value()) + " | " + percent(m[size_t(plain) + 2].value()) + " |\n" +
            "| " + std::to_string(n) + " | worst" + (plain ? ", medians alone" : "") + " | " + percent(m[size_t(plain)].worst) + " | " + percent(m[size_t(plain) + 1].worst) + " | " + percent(m[size_t(plain) + 2].worst) + " |\n";
  }
  md += "| | needed: mean, worst | | 5%, 15% | 1.5%, 5% |\n\n## The weights of the estimate\n\nLeast squares of relative errors over every candidate; then each problem left out in turn and picked with weights that never saw it.\n\n| threads | fitted without |";
  const auto names = tune::unweighted({}, machines.begin()->second);
  for (auto& t : names) md += " " + t.name + " |";
  md += " regret estimated | eight timed |\n|---|---|";
  for (size_t k = 0; k < names.size() + 2; ++k) md += "---|";
  md += "\n";
  auto row = [&](const std::string& head, const std::vector<double>& w, const std::string& tail) {
    md += head;
    for (double v : w) md += " " + number("%.2f", v) + " |";
    md += tail + "\n";
  };
  row("| | in the source |", tune::weights(), " | |");
  for (auto& [n, unused] : means) {
    std::vector<Group> mine;
    for (auto& g : groups)
      if (g.threads == n) mine.push_back(g);
    row("| " + std::to_string(n) + " | nothing |", fit(mine, nullptr), " | |");
    Mean zero, eight;
    for (auto& g : mine) {
      const auto w = fit(mine, &g);
      const double z = g.regret(pick(g, w)), e = g.regret(pick_of_eight(g, w));
      zero.add(z), eight.add(e);
      row("| " + std::to_string(n) + " | " + g.problem + " |", w, " " + percent(z) + " | " + percent(e) + " |");
    }
    md += "| " + std::to_string(n) + " | mean, worst |";
    for (size_t k = 0; k < names.size(); ++k) md += " |";
    md += " " + percent(zero.value()) + ", " + percent(zero.worst) + " | " + percent(eight.value()) + ", " + percent(eight.worst) + " |\n";
  }
  md += "\n## The floor\n\nPairs of a kernel and a schedule whose fastest run is below their floor (`tune::floor`, the same function as in `tang why`); needed: none.\n\n| where | pairs | below | largest floor / fastest run | mean |\n|---|---|---|---|---|\n";
  double largest = 0, sum = 0;
  for (auto& g : groups)
    for (auto& c : g.all) largest = std::max(largest, c.floor / c.best), sum += c.floor / c.best;
  md += "| the race | " + std::to_string(pairs) + " | " + std::to_string(below) + " | " + number("%.3f", largest) + " | " + number("%.3f", sum / double(std::max<int64_t>(1, pairs))) + " |\n";
  for (auto& s : soundness) {
    md += "| random sizes of six kernels, " + std::to_string(s["threads"].get<int>()) + " thread" + (s["threads"].get<int>() > 1 ? "s" : "") + ", " + std::to_string(s["graphs"].get<int>()) + " graphs | " + std::to_string(s["pairs"].get<int64_t>()) + " | " + std::to_string(s["below"].get<int64_t>()) + " | " +
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
