// A case as a file: the graph as `.tang`, and in comments how it runs. What writes a comment here reads it
// again.
#include <fstream>
#include <sstream>

#include "tang/fuzz/campaign.hpp"
#include "tang/fuzz/shrink.hpp"
#include "tang/text/schedule.hpp"

namespace tang::fuzz {

namespace {
constexpr const char* settings = "# runs: ";
constexpr const char* schedule_line = "#| ";

// "lanes 8": the number behind a word, or nothing.
std::optional<int64_t> number_after(const std::string& line, const std::string& word) {
  const size_t at = line.find(" " + word + " ");
  if (at == std::string::npos) return {};
  return std::stoll(line.substr(at + word.size() + 2));
}

bool says(const std::string& line, const std::string& word) {
  return (line + " ").find(" " + word + " ") != std::string::npos;
}
} // namespace

std::string repro(const Case& c, const Finding& f) {
  std::string out = "# found by fuzzing: " + f.kind + " on " + f.target + ", seed " + std::to_string(f.seed) +
                    "\n# " + f.what + "\n";
  out += "# repeat: tang fuzz --targets " + f.target + " --choices " + words(f.choices) + "\n";
  out += settings + std::string(c.integer ? "integers" : "reals") + (c.optimize ? " rules" : " written") +
         (c.late ? " late" : "") + " lanes " + std::to_string(c.lanes) + " rule " + std::to_string(c.rule) +
         " inputs " + std::to_string(c.input_seed) + " fast " + std::to_string(c.fast_memory);
  for (auto& [s, v] : c.bindings) out += " " + s + " " + std::to_string(v);
  out += "\n";
  if (!(c.schedule == schedule::Schedule{})) {
    std::istringstream lines(text::print(schedule::Record{0, "", 0, "", c.schedule}));
    for (std::string l; std::getline(lines, l);) out += schedule_line + l + "\n";
  }
  return out + text::print(c.graph);
}

Case case_of(const std::string& file, const std::string& name) {
  Case c;
  c.graph = text::parse(file, name);
  std::string runs, plan;
  std::istringstream lines(file);
  for (std::string l; std::getline(lines, l);) {
    if (!l.compare(0, 8, settings)) runs = l;
    if (!l.compare(0, 3, schedule_line)) plan += l.substr(3) + "\n";
  }
  c.integer = !says(runs, "reals");
  c.optimize = !says(runs, "written");
  c.late = says(runs, "late");
  c.lanes = int(number_after(runs, "lanes").value_or(16));
  c.rule = int(number_after(runs, "rule").value_or(0));
  c.input_seed = uint64_t(number_after(runs, "inputs").value_or(3));
  c.fast_memory = number_after(runs, "fast").value_or(0);
  if (!plan.empty()) c.schedule = text::parse_schedule(plan, name).schedule;
  for (auto& [s, facts] : c.graph.symbols)
    c.bindings[s] = number_after(runs, s).value_or(std::max<int64_t>(2, facts.lower));
  c.inputs = inputs_for(ir::bind(c.graph, c.bindings).graph, c.integer, c.input_seed);
  return c;
}

std::string write_finding(const Finding& f, const Settings& s) {
  Choices c(f.choices);
  Case k;
  try {
    k = generate(c, reach_on(f.target, s));
  } catch (const std::exception&) {} // no graph to show: the choices remain
  const std::string path = s.folder + "/" + f.target + "-" + std::to_string(f.seed) + "-" + f.kind + ".tang";
  std::ofstream(path) << repro(k, f);
  return path;
}

} // namespace tang::fuzz
