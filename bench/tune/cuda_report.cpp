// docs/results/tune-h200.md from what was measured: the floor is computed here, from the probe's constants.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "cuda.hpp"
#include "figures.hpp"
#include "tang/tune/measured.hpp"
#include "tang/tune/ranking.hpp"

namespace bench {

namespace {
// A measured row with its floor.
struct Row : tune::Measured {
  double floor = 0, read = 0;
  std::string binds;

  Row(tune::Measured r, const tune::Machine& m) : tune::Measured(std::move(r)) {
    const tune::Time t = tune::floor(*this, m);
    floor = t.seconds, binds = t.binding().name;
    for (auto& w : works) read += w.read;
  }

  std::string mode() const { return cold ? "cold" : "warm"; }
};

struct Ratios {
  int64_t pairs = 0, below = 0;
  double largest = 0, sum = 0;

  void add(double r) { ++pairs, below += r > 1, largest = std::max(largest, r), sum += r; }

  std::string row(const std::string& what) const {
    return "| " + what + " | " + std::to_string(pairs) + " | " + std::to_string(below) + " | " + number("%.3f", largest) +
           " | " + number("%.3f", sum / double(std::max<int64_t>(1, pairs))) + " |\n";
  }
};

double at(std::vector<double> v, double share) { // a quantile, of sorted neighbours the lower
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[size_t(share * double(v.size() - 1))];
}

std::string us(double s) { return number("%.2f", s * 1e6); }

std::string machine_text(const tune::Machine& m) {
  std::string s = "- " + m.device + ", driver " + m.driver + ", probed " + m.date + " (`tang probe --target cuda`)\n";
  s += "- arithmetic: multiply-adds " + number("%.1f", m.fma.best * 1e-12) + " Tflop/s, matrix instructions of 16 bits " +
       number("%.0f", m.matrix.best * 1e-12) + " on zeros and " + number("%.0f", m.matrix.typical * 1e-12) +
       " on random operands, exponentials " + number("%.2f", m.exp.best * 1e-12) + " T/s\n- reads:";
  for (auto& l : m.levels) {
    s += " " + l.name + " " + number("%.0f", l.read.best * 1e-9) + " GB/s";
    if (l.latency > 0) s += " (a dependent load " + number("%.0f", l.latency * 1e9) + " ns)";
    s += l.name == "memory" ? "; " : ", ";
  }
  if (m.clock > 0) s += "clock " + number("%.0f", m.clock * 1e-6) + " MHz at most (told, not probed); ";
  s += "one worker alone from L2 " + number("%.0f", m.ingress * 1e-9) + " GB/s; writes " + number("%.0f", m.write.best * 1e-9) +
       " GB/s\n";
  auto start = [](const tune::Start& x) {
    return number("%.3f", x.empty * 1e6) + " us empty, " + number("%.3f", x.near * 1e6) + " that loads from L2 and stores, " +
           number("%.3f", x.cold * 1e6) + " from memory";
  };
  s += "- a launch that waits for the one before: of one workgroup " + start(m.one);
  for (auto& [n, x] : m.some) s += "; of " + std::to_string(n) + " " + start(x);
  s += "; of one a worker " + start(m.every) +
       "; of one a worker with 200 KiB of shared memory " + start(m.full) + "; one that may start early, empty " +
       number("%.3f", m.begin_early * 1e6) + " us; a further workgroup " + number("%.2f", m.workgroup * 1e9) + " ns\n";
  s += "- reads from memory against bytes in flight (one workgroup a worker):\n\n| bytes a worker |";
  for (auto& f : m.in_flight) s += " " + std::to_string(f.bytes) + " |";
  s += "\n|---|";
  for (size_t k = 0; k < m.in_flight.size(); ++k) s += "---|";
  s += "\n| GB/s |";
  for (auto& f : m.in_flight) s += " " + number("%.0f", f.rate * 1e-9) + " |";
  return s + "\n";
}

std::string class_text(const std::vector<Row>& rows) {
  std::string s = "| kernel | MB read | floor us | measured us [95%] | floor / measured | binds | warm us | error | schedule | a faster one |\n"
                  "|---|---|---|---|---|---|---|---|---|---|\n";
  std::vector<double> ratios;
  for (auto& r : rows) {
    if (r.group != "class" || !r.cold || r.candidate) continue;
    const Row* best = &r; // of those that were timed cold
    for (auto& x : rows)
      if (x.problem == r.problem && x.cold && x.time.median < best->time.median) best = &x;
    const double ratio = r.floor / r.time.median;
    const auto warm = std::find_if(rows.begin(), rows.end(), [&](auto& x) { return x.problem == r.problem && !x.cold && !x.candidate; });
    ratios.push_back(ratio);
    s += "| " + r.problem + " | " + number("%.2f", r.read * 1e-6) + " | " + us(r.floor) + " | " + us(r.time.median) + " [" +
         us(r.time.low) + ", " + us(r.time.high) + "] | " + number("%.2f", ratio) + " | " + r.binds + " | " +
         (warm == rows.end() ? "" : us(warm->time.median)) + " | " + number("%.1e", r.error) + " | " + r.schedule + " | " + (best == &r ? "" : us(best->time.median) + ": " + best->schedule) + " |\n";
  }
  return s + "\n" + std::to_string(ratios.size()) + " kernels: median " + number("%.2f", at(ratios, 0.5)) +
         " (needed 0.6), 10th percentile " + number("%.2f", at(ratios, 0.1)) + " (needed 0.4).\n";
}

// Savings that were predicted before the run, beside what was saved: a term stays where they agree within 25%.
std::string interventions(const ordered_json& predictions, const std::vector<Row>& rows) {
  std::string s = "\n## Interventions\n\n" + predictions["what"].get<std::string>() +
                  "\n\n| kernel | term | predicted us | saved us | off by | |\n|---|---|---|---|---|---|\n";
  auto find = [&](const ordered_json& side) -> const Row* {
    for (auto& r : rows)
      if (r.problem == side["problem"] && r.mode() == side["mode"] && r.candidate == side["candidate"]) return &r;
    return nullptr;
  };
  int held = 0, all = 0;
  for (auto& p : predictions["predictions"]) {
    const Row *before = find(p["before"]), *after = find(p["after"]);
    if (!before || !after) continue;
    const double wanted = p["saving_us"], got = (before->time.median - after->time.median) * 1e6;
    const double miss = wanted / got - 1;
    const bool good = std::fabs(miss) <= 0.25;
    ++all, held += good;
    s += "| " + before->problem + ": " + p["change"].get<std::string>() + " | " + p["term"].get<std::string>() + " | " + number("%.2f", wanted) +
         " | " + number("%.2f", got) + " | " + percent(miss) + " | " + (good ? "holds" : "**missed**") + " |\n";
  }
  return s + "\n" + std::to_string(held) + " of " + std::to_string(all) + " within 25%.\n";
}

// What was timed against what the space of today says of it, problem by problem: nothing is timed here.
std::string rank_text(const std::vector<Row>& rows, const tune::Machine& m) {
  std::string s = "| problem | candidates | rank correlation | that of the order | lowest estimate behind the best |\n|---|---|---|---|---|\n";
  std::vector<CudaProblem> all = cuda_race_problems();
  for (auto& p : class_problems()) all.push_back(p);
  Mean regret;
  double sum = 0, order = 0, problems = 0;
  for (auto& p : all) {
    const auto said = estimates(p, m);
    std::vector<double> time, estimate, place;
    for (auto& r : rows)
      if (const auto it = said.find(r.schedule); it != said.end() && r.problem == p.name && r.group == p.group && !r.cold)
        time.push_back(r.time.median), estimate.push_back(it->second), place.push_back(double(r.candidate));
    if (time.size() < 3) continue;
    const auto pick = size_t(std::min_element(estimate.begin(), estimate.end()) - estimate.begin());
    const double behind = time[pick] / *std::min_element(time.begin(), time.end()) - 1, c = tune::rank_correlation(estimate, time), o = tune::rank_correlation(place, time);
    sum += c, order += o, ++problems, regret.add(behind);
    s += "| " + p.name + " | " + std::to_string(time.size()) + " | " + number("%.2f", c) + " | " + number("%.2f", o) + " | " + percent(behind) + " |\n";
  }
  return s + "\n" + number("%.0f", problems) + " problems: mean rank correlation " + number("%.2f", sum / problems) + ", of the order " +
         number("%.2f", order / problems) + "; the lowest estimate is " + percent(regret.value()) + " behind the best, at most " + percent(regret.worst) + ".\n";
}

// Weights of the terms of `tune::estimate`, learned from the same rows; each problem is picked with weights that never
// saw it.
std::string learned_text(const std::vector<Row>& rows, const tune::Machine& m) {
  std::map<std::string, tune::JudgedGroup> groups;
  for (auto& r : rows) {
    if (r.cold || (r.group != "race" && r.group != "class")) continue;
    tune::Judged c{{}, r.time};
    for (auto& w : r.works) {
      const auto terms = tune::unweighted(w, m);
      c.terms.resize(terms.size());
      for (size_t k = 0; k < terms.size(); ++k) c.terms[k] += terms[k].seconds;
    }
    groups[r.problem].graph = r.problem;
    groups[r.problem].all.push_back(std::move(c));
  }
  tune::Groups all;
  for (auto& [name, g] : groups)
    if (g.all.size() > 2) all.push_back(&g);
  const size_t n = tune::unweighted({}, m).size();
  const tune::Prior prior{std::vector<double>(n, 1), std::vector<char>(n, 0)};
  std::string s = "| learned | rank correlation, problem left out | lowest estimate behind the best: mean, worst |\n|---|---|---|\n";
  const std::pair<const char*, tune::Trainer> ways[] = {{"least squares", tune::least_squares},
                                                        {"pairwise", [](auto& g, auto& p) { return tune::pairwise(g, p); }}};
  for (auto& [name, train] : ways) {
    const auto apart = tune::held_out(all, prior, train);
    Mean behind;
    double sum = 0;
    for (size_t k = 0; k < all.size(); ++k) {
      sum += tune::rank_correlation(*all[k], apart[k]);
      behind.add(tune::lowest(*all[k], apart[k]).time.median / tune::fastest(*all[k]).time.median - 1);
    }
    s += "| " + std::string(name) + " | " + number("%.2f", sum / double(all.size())) + " | " + percent(behind.value()) + ", " + percent(behind.worst) + " |\n";
  }
  return s + "\n" + std::to_string(all.size()) + " problems, " + std::to_string(tune::pairs(all)) + " pairs.\n";
}

std::string race_text(const std::vector<Row>& rows, const std::string& of) {
  std::map<std::string, std::vector<const Row*>> groups;
  for (auto& r : rows)
    if (r.group == of && !r.cold) groups[r.problem].push_back(&r);
  std::string s = "| problem | candidates | worst / best | the rule's pick | eight timed | best us | floor / best |\n|---|---|---|---|---|---|---|\n";
  Mean zero, eight, plain_zero, plain_eight;
  for (auto& [name, all] : groups) {
    if (all.size() < 2) continue;
    auto faster = [](auto* a, auto* b) { return a->time.median < b->time.median; };
    const Row& best = **std::min_element(all.begin(), all.end(), faster);
    const Row& worst = **std::max_element(all.begin(), all.end(), faster);
    const Row& some = **std::min_element(all.begin(), all.begin() + long(std::min<size_t>(8, all.size())), faster);
    auto plain = [&](const Row& r) { return r.time.median / best.time.median - 1; };
    auto regret = [&](const Row& r) { return r.time.low <= best.time.high ? 0 : plain(r); };
    zero.add(regret(*all[0])), eight.add(regret(some)), plain_zero.add(plain(*all[0])), plain_eight.add(plain(some));
    s += "| " + name + " | " + std::to_string(all.size()) + " | " + number("%.2f", worst.time.median / best.time.median) + " | " +
         percent(regret(*all[0])) + " (" + percent(plain(*all[0])) + ") | " + percent(regret(some)) + " (" + percent(plain(some)) +
         ") | " + us(best.time.median) + " | " + number("%.2f", best.floor / best.time.median) + " |\n";
  }
  return s + "\nGeometric mean, worst: the rule's pick " + percent(zero.value()) + ", " + percent(zero.worst) + " (needed 5%, 15%; by medians alone " +
         percent(plain_zero.value()) + ", " + percent(plain_zero.worst) + "); eight timed " + percent(eight.value()) + ", " +
         percent(eight.worst) + " (needed 1.5%, 5%; by medians alone " + percent(plain_eight.value()) + ", " +
         percent(plain_eight.worst) + ").\n";
}
} // namespace

int cuda_report(const std::string& file, const std::vector<std::string>& parts) {
  std::optional<tune::Machine> machine;
  std::vector<std::string> texts;
  for (auto& part : parts) {
    std::ifstream in(part);
    std::ostringstream text;
    text << in.rdbuf();
    if (auto m = tune::machine_of(text.str())) machine = *m;
    else texts.push_back(text.str());
  }
  if (!machine) throw Error({}, "no probe among the parts", {}, "name probe.json");
  std::vector<tune::Measured> measured;
  for (auto& text : texts)
    if (auto some = tune::measured_of(text, *machine))
      measured.insert(measured.end(), some->begin(), some->end());
  for (auto& text : texts) tune::put_counts(measured, text);
  std::vector<Row> rows;
  std::map<std::string, Ratios> sound;
  for (auto& r : measured) {
    rows.emplace_back(r, *machine);
    const bool library = r.group.rfind("torch", 0) == 0;
    sound[library ? r.group : "derived: " + r.group + ", " + rows.back().mode()].add(rows.back().floor / r.time.best);
  }
  std::string md = "# Schedules on an H200: the floor, the race\n\n"
                   "`bench_tune_cuda report docs/results/tune-h200.md PARTS` reprints this page. Parts, on the machine: `bench_tune_cuda run CACHE FOLDER`,\n"
                   "`python3 bench/tune/cuda_peers.py FOLDER/peers.json`. One launch mode everywhere: a CUDA graph of launches, each after the end of the one\n"
                   "before it. Every derived kernel was compared with the graph as written (plain kernels, f32) before it was timed. Instructions are those of\n"
                   "the kernels compiled again (`bench_tune_cuda count`, needs no GPU; decision 43).\n\n" +
                   machine_text(*machine);
  md += "\n## Soundness\n\nPairs of a kernel, a schedule and a size whose fastest run is below their floor (`tune::floor`); needed: 0 of 2,000 or more. Kernels of torch,\n"
        "cuBLAS and cuDNN are held against the floor of their work: one launch, each operand read once, the operations of the definition.\n\n"
        "| kernels | pairs | below | largest floor / fastest run | mean |\n|---|---|---|---|---|\n";
  Ratios all;
  for (auto& [what, r] : sound) {
    md += r.row(what);
    all.pairs += r.pairs, all.below += r.below, all.sum += r.sum, all.largest = std::max(all.largest, r.largest);
  }
  md += all.row("all");
  md += "\n## Tightness\n\nLayers of a mixture of experts, bf16, hidden 2048. Cold: copies of all memories in turn, together larger than twice the second level, as\n"
        "weights are met in a step of decoding; the floor is that of cold bytes.\n\n" + class_text(rows);
  md += "\n## The tile race\n\nEvery candidate of the space (`tune::space_of`), in the order of the rule that makes it: its first is what compilation takes, the eight are its\n"
        "first eight. Regret 0 where the 95% intervals of two medians overlap (in brackets: by medians alone). The rule's constants were fitted to other\n"
        "sizes (`src/lower/tensor_choice.cpp`).\n\n" + race_text(rows, "race");
  if (std::any_of(rows.begin(), rows.end(), [](auto& r) { return r.group == "class" && r.candidate; }))
    md += "\nThe same of the products of the class above with several rows, warm:\n\n" + race_text(rows, "class");
  md += "\n## How estimates rank\n\nOf the rows above that were timed warm: the rank correlation (Spearman's) of their times with what the space of today says of them\n"
        "(`tune::Candidate::estimated`: the price of the rule that makes them, of attention `tune::estimate`) and with the order in which they were made.\n\n" +
        rank_text(rows, *machine);
  md += "\nThe rule's price against weights of the terms that are learned from these rows, by least squares of relative errors and from pairs of\n"
        "candidates whose intervals are disjoint (`tune::pairwise`). The terms count what is moved and computed, not how warpgroups wait for each\n"
        "other, which is what the candidates of a rule differ in: the price stays.\n\n" + learned_text(rows, *machine);
  for (auto& text : texts)
    if (const auto doc = ordered_json::parse(text); doc.contains("predictions")) md += interventions(doc, rows);
  std::ofstream(file) << md;
  std::printf("%lld pairs, %lld below their floor: %s\n", static_cast<long long>(all.pairs), static_cast<long long>(all.below), file.c_str());
  return all.below ? 1 : 0;
}

} // namespace bench
