// Many cases: batches of them in a process of their own, so that a crash is one more finding.
#pragma once
#include <functional>

#include "tang/fuzz/judge.hpp"
#include "tang/run/targets.hpp"

namespace tang::fuzz {

struct Settings {
  uint64_t seed = 1, skip = 0; // the first case is 1000000 seed + skip
  double seconds = 0;          // 0: until `cases` are done
  int64_t cases = 0;           // 0: until `seconds` are over
  std::vector<std::string> targets = {"c"};
  run::TargetOptions opening;
  // How targets other than the processor are opened; empty: as `run::open_target` does.
  std::function<Result<run::Opened>(const std::string&)> open;
  bool at_once = false;   // on such a target all programs of a batch are one text, where it takes that
  bool in_memory = false; // C kernels by the compiler in this process, in the scalar row
  std::string folder;     // where findings are written; empty: nowhere
  int batch = 40;         // cases a compilation of the C target
  int limit = 120;        // seconds a batch: more is a finding
  bool laws = true;
  bool shrink = true;
  Reach reach;
};

struct Finding {
  uint64_t seed = 0; // of its case
  std::string target, kind, what;
  Sequence choices; // of the smallest case that shows it
  std::string file;
};

struct Summary {
  std::map<std::string, int64_t> cases, refused; // by target
  int64_t values = 0, open = 0;                  // compared, and without a finite bound
  std::map<std::string, int64_t> fired, kinds;   // of rules; of nodes and fields that the cases held
  std::vector<Finding> findings;
  double seconds = 0;
};

using Report = std::function<void(const Finding&)>;

Summary fuzz(const Settings& s, const Report& report = {});
// The same cases in `jobs` processes side by side, each a part of them; findings are reported at the end.
Summary fuzz_side_by_side(const Settings& s, int jobs, const Report& report = {});
std::string text(const Summary& s);
Reach reach_on(const std::string& target, const Settings& s);
// What one case shows, in this process.
std::vector<Fault> try_case(const Case& c, const std::string& target, const Settings& s);

// The same, of the case that choices make; making it may be what fails.
struct Trial {
  std::vector<Fault> faults;
  Sequence taken; // normal form of the choices: what generating really drew
};

Trial try_choices(const Sequence& q, const std::string& target, const Settings& s);
// The case as a `.tang` file: the graph, and in comments how it runs and the command that repeats it.
std::string repro(const Case& c, const Finding& f);
Case case_of(const std::string& file,
             const std::string& name); // what such a file says; throws text::Problems
std::string words(const Sequence& s);  // "3,0,17": of --choices
Sequence sequence(const std::string& words);

} // namespace tang::fuzz
