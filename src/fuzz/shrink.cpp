#include "tang/fuzz/shrink.hpp"

#include <chrono>
#include <fstream>

#include "tang/fuzz/message.hpp"
#include "tang/text/schedule.hpp"

namespace tang::fuzz {

namespace {
struct Trial {
  Fault fault;
  Sequence taken; // normal form of the choices: what generating really drew
};

std::optional<Trial> tried(const Sequence& q, const Finding& f, const Settings& s) {
  Summary unused;
  const auto found = in_process(
      [&](Sender& out) {
        Choices c(q);
        const Case k = generate(c, reach_on(f.target, s));
        for (auto& x : try_case(k, f.target, s)) out.fault(0, x, k.choices);
      },
      unused, f.target, 20);
  for (auto& x : found)
    if (x.kind == f.kind) return Trial{{x.kind, x.what}, x.choices.empty() ? q : x.choices};
  return {};
}
} // namespace

Finding shrink(Finding f, const Settings& s, int tries) {
  if (f.choices.empty()) { // it ended the process: its choices are those of the seed
    Choices c(f.seed);
    f.choices = generate(c, reach_on(f.target, s)).choices;
  }
  auto better = [&](Sequence q) {
    while (!q.empty() && q.back() == 0) q.pop_back();
    if (tries <= 0 || q == f.choices || q.size() > f.choices.size()) return false;
    --tries;
    const auto t = tried(q, f, s);
    if (!t) return false;
    f.choices = q;
    f.what = t->fault.what;
    return true;
  };
  for (bool again = true; again && tries > 0;) {
    again = false;
    for (size_t span = std::max<size_t>(1, f.choices.size() / 2); span > 0; span /= 2)
      for (size_t at = f.choices.size(); at-- > 0 && tries > 0;) {
        if (at % span) continue;
        if (at + span > f.choices.size() + span - 1) continue;
        Sequence q = f.choices;
        const size_t end = std::min(q.size(), at + span);
        q.erase(q.begin() + long(at), q.begin() + long(end));
        if (better(q)) again = true;
      }
    for (size_t at = 0; at < f.choices.size() && tries > 0; ++at) {
      if (!f.choices[at]) continue;
      Sequence q = f.choices;
      q[at] = 0;
      if (better(q)) {
        again = true;
        continue;
      }
      if (q = f.choices; q[at] > 1) {
        q[at] /= 2;
        again |= better(q);
      }
    }
  }
  return f;
}

std::string repro(const Case& c, const Finding& f) {
  std::string out = "# found by fuzzing: " + f.kind + " on " + f.target + ", seed " + std::to_string(f.seed) +
                    "\n# " + f.what + "\n";
  out += "# repeat: tang fuzz --targets " + f.target + " --choices " + words(f.choices) + "\n";
  out += std::string("# ") + (c.integer ? "integers" : "reals") + (c.optimize ? ", rules" : ", as written") +
         (c.late ? ", bound after the rules" : "") + ", lanes " + std::to_string(c.lanes);
  for (auto& [s, v] : c.bindings) out += ", " + s + " = " + std::to_string(v);
  if (c.fast_memory) out += ", fast memory " + std::to_string(c.fast_memory);
  out += "\n";
  for (auto& [name, g] : c.schedule.groups) out += "# schedule " + name + ": " + text::fields(g) + "\n";
  return out + text::print(c.graph);
}

std::string write_finding(const Finding& f, const Settings& s) {
  Choices c(f.choices);
  const Case k = generate(c, reach_on(f.target, s));
  const std::string path = s.folder + "/" + f.target + "-" + std::to_string(f.seed) + "-" + f.kind + ".tang";
  std::ofstream(path) << repro(k, f);
  return path;
}

} // namespace tang::fuzz
