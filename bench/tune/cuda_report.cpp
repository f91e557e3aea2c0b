// docs/results/tune-h200.md from what was measured: the floor is computed here, from the probe's constants.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "cuda.hpp"
#include "figures.hpp"

namespace bench {

namespace {
struct Row {
  std::string group, problem, schedule, mode;
  size_t candidate = 0;
  tune::Sample time;
  double floor = 0, error = 0, read = 0, matrix = 0;
  std::string binds;
};

tune::Work work_from(const ordered_json& j) {
  tune::Work w;
  w.launches = j["launches"], w.workgroups = j["workgroups"], w.contracted = j["contracted"], w.padded = j["padded"];
  w.plain = j["plain"], w.special = j["special"], w.moved = j["moved"], w.near = j["near"], w.far = j["far"];
  w.loads = j["loads"], w.blocks = j["blocks"], w.gathered = j["gathered"], w.scattered = j["scattered"];
  w.matrix = j["matrix"], w.read = j["read"], w.resident = j["resident"], w.planned = j["planned"];
  return w;
}

// Steps run one after the other: their floors add up. What the first one reads may be cold; a later one may find what
// the one before it left.
void add_floor(Row& r, const std::vector<tune::Work>& works, const tune::Machine& m, bool cold) {
  double largest = 0;
  for (size_t s = 0; s < works.size(); ++s) {
    const tune::Time t = tune::floor(works[s], m, cold && s == 0);
    r.floor += t.seconds, r.read += works[s].read, r.matrix += works[s].matrix;
    if (t.binding().seconds > largest) largest = t.binding().seconds, r.binds = t.binding().name;
  }
}

// Of a kernel of a library only the work is known: one launch, each operand read once.
tune::Work work_of_peer(const ordered_json& r, const tune::Machine& m) {
  tune::Work w;
  w.launches = 1, w.workgroups = m.workers;
  const double width = r["format"] == "f32" ? 4 : 2;
  const auto shape = r["shape"].get<std::vector<double>>();
  if (r["kind"] == "product") {
    w.contracted = 2 * shape[0] * shape[1] * shape[2], w.matrix = w.contracted * width / 2;
    w.read = width * (shape[0] + shape[1]) * shape[2];
  } else if (r["kind"] == "attention") {
    const double pairs = r["causal"].get<bool>() ? shape[2] * (shape[2] + 1) / 2 : shape[2] * shape[2];
    w.contracted = w.matrix = 4 * shape[0] * shape[1] * pairs * shape[3];
    w.read = 3 * width * shape[0] * shape[1] * shape[2] * shape[3];
  } else {
    w.read = width * shape[0] * shape[1] * (r["kind"] == "add" ? 2 : 1);
  }
  return w;
}

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
    if (r.group != "class" || r.mode != "cold" || r.candidate) continue;
    const Row* best = &r; // of those that were timed cold
    for (auto& x : rows)
      if (x.problem == r.problem && x.mode == "cold" && x.time.median < best->time.median) best = &x;
    const double ratio = r.floor / r.time.median;
    const auto warm = std::find_if(rows.begin(), rows.end(), [&](auto& x) { return x.problem == r.problem && x.mode == "warm" && !x.candidate; });
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
      if (r.problem == side["problem"] && r.mode == side["mode"] && r.candidate == side["candidate"]) return &r;
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

std::string race_text(const std::vector<Row>& rows, const std::string& of) {
  std::map<std::string, std::vector<const Row*>> groups;
  for (auto& r : rows)
    if (r.group == of && r.mode == "warm") groups[r.problem].push_back(&r);
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
  std::vector<ordered_json> docs;
  for (auto& part : parts) {
    std::ifstream in(part);
    std::ostringstream text;
    text << in.rdbuf();
    if (auto m = tune::machine_of(text.str())) machine = *m;
    else docs.push_back(ordered_json::parse(text.str()));
  }
  if (!machine) throw Error({}, "no probe among the parts", {}, "name probe.json");
  std::vector<Row> rows;
  std::map<std::string, Ratios> sound;
  for (auto& doc : docs) {
    for (auto& r : doc.value("records", ordered_json::array()))
      sound["torch: " + std::string(r["kind"] == "product" || r["kind"] == "attention" ? r["kind"] : "rows")].add(
          tune::floor(work_of_peer(r, *machine), *machine).seconds / (r["best_us"].get<double>() * 1e-6));
    for (auto& j : doc.value("rows", ordered_json::array())) {
      Row r{j["group"], j["problem"], j["schedule"], j["mode"], j["candidate"], {j["median"], j["low"], j["high"], j["best"], j["runs"]}, 0, j["error"], 0, 0, ""};
      std::vector<tune::Work> works;
      for (auto& w : j["works"]) works.push_back(work_from(w));
      add_floor(r, works, *machine, r.mode == "cold");
      sound["derived: " + r.group + ", " + r.mode].add(r.floor / r.time.best);
      rows.push_back(std::move(r));
    }
  }
  std::string md = "# Schedules on an H200: the floor, the race\n\n"
                   "`bench_tune_cuda report docs/results/tune-h200.md PARTS` reprints this page. Parts, on the machine: `bench_tune_cuda run CACHE FOLDER`,\n"
                   "`python3 bench/tune/cuda_peers.py FOLDER/peers.json`. One launch mode everywhere: a CUDA graph of launches, each after the end of the one\n"
                   "before it. Every derived kernel was compared with the graph as written (plain kernels, f32) before it was timed.\n\n" +
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
  for (auto& doc : docs)
    if (doc.contains("predictions")) md += interventions(doc, rows);
  std::ofstream(file) << md;
  std::printf("%lld pairs, %lld below their floor: %s\n", static_cast<long long>(all.pairs), static_cast<long long>(all.below), file.c_str());
  return all.below ? 1 : 0;
}

} // namespace bench
