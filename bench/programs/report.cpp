// Results as JSON (schema tang.bench/1), and several runs gathered into one table.
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench.hpp"

namespace bench {

using nlohmann::ordered_json;

namespace {
std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}
std::string first_line_of(const std::string& command) {
  std::string out;
  if (FILE* f = popen((command + " 2>/dev/null").c_str(), "r")) {
    char line[256];
    if (std::fgets(line, sizeof line, f)) out = line;
    pclose(f);
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}
std::string load_average() {
  std::ifstream in("/proc/loadavg");
  std::string one;
  in >> one;
  return one;
}
ordered_json times(const Samples& s) {
  return {{"best", s.best() * 1e9}, {"median", s.median() * 1e9}, {"p10", s.at(0.1) * 1e9}, {"p90", s.at(0.9) * 1e9}, {"runs", s.t.size()}};
}
std::string digits(double v, int n) {
  char s[64];
  std::snprintf(s, sizeof s, "%.*f", n, v);
  return s;
}
std::string span(const ordered_json& t) {  // median [p10 p90]
  const double unit = double(t["median"]) >= 1e6 ? 1e6 : 1e3;
  return digits(double(t["median"]) / unit, 2) + " [" + digits(double(t["p10"]) / unit, 2) + " " + digits(double(t["p90"]) / unit, 2) + "] " + (unit == 1e6 ? "ms" : "us");
}
bool met(const ordered_json& r) { return !r.contains("met") || r["met"].get<bool>(); }
}  // namespace

std::string to_json(const Bench& b) {
  ordered_json rows = ordered_json::array();
  for (auto& r : b.rows) {
    ordered_json j{{"section", r.section}, {"name", r.name}, {"threads", r.threads}, {"schedule", r.schedule}, {"ns", times(r.ours)}};
    if (!r.unit.empty()) j["rate"] = r.rate, j["unit"] = r.unit;
    if (!r.peer.empty()) j["peer"] = r.peer, j["peer_rate"] = r.peer_rate;
    if (!r.theirs.t.empty()) j["peer_ns"] = times(r.theirs);
    if (r.ratio != 0) j["ratio"] = r.ratio, j["ratio_of_medians"] = r.ratio_median;
    if (r.least) j["ratio_needed"] = *r.least, j["met"] = r.ratio >= *r.least;
    if (r.most_seconds) j["median_ns_needed"] = *r.most_seconds * 1e9, j["met"] = r.ours.median() <= *r.most_seconds;
    if (r.max_error) j["max_error"] = *r.max_error;
    for (auto& [k, v] : r.more) j[k] = v;
    if (r.section == "matmul" || r.section == "attention" || r.section == "backward") j["openblas_core"] = openblas_get_corename();
    rows.push_back(std::move(j));
  }
  char date[32];
  const time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  ordered_json doc{{"schema", "tang.bench/1"},
                   {"date", date},
                   {"cpu", cpu_model()},
                   {"cores", std::thread::hardware_concurrency()},
                   {"lanes", b.options().target.lanes},
                   {"compiler", first_line_of(b.compiler->path() + " --version")},
                   {"built_with", __VERSION__},
                   {"openblas", first_line_of("dpkg-query -W -f='${Version}' libopenblas0-pthread")},
                   {"load_average", load_average()},
                   {"rows", rows}};
  return doc.dump(1) + "\n";
}

int report(const std::string& prefix, const std::vector<std::string>& parts) {
  ordered_json head, rows = ordered_json::array(), torch = nullptr;
  std::string cores, loads;
  for (auto& file : parts) {
    std::ifstream in(file);
    ordered_json part = ordered_json::parse(in, nullptr, false);
    if (part.is_discarded() || part.value("schema", "") != "tang.bench/1") throw Error({}, file + " is no result of bench_programs or torch_peers.py", {}, "make it again");
    if (part.contains("torch")) {
      if (torch.is_null()) torch = part;
      else if (!part["rows"].empty()) torch["rows"].insert(torch["rows"].end(), part["rows"].begin(), part["rows"].end());
      continue;
    }
    if (head.is_null())
      for (auto& [k, v] : part.items())
        if (k != "rows") head[k] = v;
    loads += (loads.empty() ? "" : " ") + part.value("load_average", "");
    for (auto& r : part["rows"]) {
      const std::string core = r.value("openblas_core", "");
      if (!core.empty() && cores.find(core) == std::string::npos) cores += (cores.empty() ? "" : ", ") + core;
      auto same = [&](const ordered_json& o) { return o["section"] == r["section"] && o["name"] == r["name"] && o["threads"] == r["threads"]; };
      auto known = std::find_if(rows.begin(), rows.end(), same);
      if (known == rows.end()) rows.push_back(r);
      else if (double(r["peer_rate"]) > double((*known)["peer_rate"])) *known = r;  // measured beside the faster peer
    }
  }
  for (auto& r : rows)
    if (torch.is_object())
      for (auto& t : torch["rows"])
        if (t.value("section", "attention") == r["section"] && t["name"] == r["name"] && t["threads"] == r["threads"]) {
          r["torch_median_ns"] = t["median_ns"];
          r["times_torch"] = double(t["median_ns"]) / double(r["ns"]["median"]);
          if (double(r["times_torch"]) < 1) r["met"] = false;
        }
  head["load_average"] = loads, head["openblas_cores"] = cores, head["torch"] = torch.is_object() ? torch["torch"] : ordered_json("not present");
  int missed = 0;
  for (auto& r : rows) missed += !met(r);
  std::string md = "# Speed on a CPU\n\n`make bench` reprints this page. Every program is derived from its textbook form; the peer runs in the same process, in turns.\n"
                   "Times are medians [10th and 90th percentile]; rates and ratios are of best runs; medians' ratios stand beside them. Of runs with\n"
                   "several OpenBLAS core types the row beside the faster peer is kept. Rows that miss what they need stay in the table.\n\n";
  for (auto k : {"date", "cpu", "cores", "lanes", "compiler", "built_with", "openblas", "openblas_cores", "torch", "load_average"}) {
    const ordered_json& v = head[k];
    md += std::string("- ") + k + ": " + (v.is_string() ? v.get<std::string>() : v.dump()) + "\n";
  }
  std::string section;
  for (auto& r : rows) {
    const bool torch_here = r["section"] == "attention" || r["section"] == "backward" || r["section"] == "training";
    if (r["section"] != section) {
      section = r["section"];
      md += "\n## " + section + "\n\n| program | threads | time | rate | peer | peer's rate | ratio | of medians | needed | " +
            (torch_here ? "x torch | " : "") + "max error | also | schedule | |\n|---|---|---|---|---|---|---|---|---|" + (torch_here ? "---|" : "") + "---|---|---|---|\n";
    }
    std::string also;
    for (auto k : {"p99_us", "allocations", "weight_bytes", "kernels", "planned_MB", "runs"})
      if (r.contains(k)) also += (also.empty() ? "" : ", ") + std::string(k) + " " + digits(r[k], std::string(k) == "p99_us" || std::string(k) == "planned_MB" ? 2 : 0);
    char error[32] = "";
    if (r.contains("max_error")) std::snprintf(error, sizeof error, "%.1e", double(r["max_error"]));
    auto number = [&](const char* key, int n) { return r.contains(key) ? digits(r[key], n) : std::string(); };
    std::string needed = r.contains("ratio_needed") ? ">= " + number("ratio_needed", 2) : "";
    if (r.contains("median_ns_needed")) needed = "median <= " + digits(double(r["median_ns_needed"]) / 1e3, 2) + " us";
    std::string peer = r.value("peer", "");
    if (r.contains("openblas_core")) peer += " (" + r["openblas_core"].get<std::string>() + ")";
    md += "| " + r["name"].get<std::string>() + " | " + r["threads"].dump() + " | " + span(r["ns"]) + " | " + (r.contains("rate") ? number("rate", 1) + " " + r["unit"].get<std::string>() : "") +
          " | " + peer + " | " + number("peer_rate", 1) + " | " + number("ratio", 3) + " | " + number("ratio_of_medians", 3) + " | " + needed + " | " +
          (torch_here ? (r.contains("times_torch") ? number("times_torch", 2) : "torch not present") + " | " : "") + error + " | " + also + " | " +
          r["schedule"].get<std::string>() + " | " + (r.contains("met") || r.contains("times_torch") ? (met(r) ? "ok" : "**missed**") : "") + " |\n";
  }
  md += "\n" + std::to_string(missed) + " rows miss what they need.\n";
  head["rows"] = rows, head["missed"] = missed;
  for (auto& [ext, text] : {std::pair<std::string, std::string>{".md", md}, {".json", head.dump(1) + "\n"}}) {
    std::ofstream out(prefix + ext);
    out << text;
    if (!out) throw Error({}, prefix + ext + " cannot be written", {}, "name a folder that exists");
  }
  std::printf("%s", md.c_str());
  return missed;
}

}  // namespace bench
