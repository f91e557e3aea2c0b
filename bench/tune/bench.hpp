// What the tuning benchmarks share.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tang.hpp"
#include "tang/tune/search.hpp"
#include "tang/verify/samples.hpp"

namespace bench {
using namespace tang;
using nlohmann::ordered_json;

struct Problem {
  std::string name;
  ir::Graph graph;
};

std::vector<Problem> race_problems();  // matmul and attention at four sizes each

struct Setup {
  int threads = 1;
  bool compile_only = false;
  double seconds = 0.05;  // of measuring a candidate
  std::string only;       // a part of a problem's name
  std::vector<int64_t> sizes = {480, 720}; // of the products of interventions
  int64_t pairs = 2000;   // of a kernel and a schedule whose floor is held against their time
  std::shared_ptr<device::Compiler> compiler;
  tune::Machine machine;
  run::Options options;
};

inline eval::Inputs inputs_of(const ir::Graph& g) { return verify::random_inputs(g, 1); }
// The step with the most contracted arithmetic, or the first.
size_t main_step(const run::Derivation& d, const Setup& s);
ordered_json race(const Setup& s, const Problem& p);
ordered_json recounted(const Setup& s, const Problem& p, const ordered_json& timed);
ordered_json sound(const Setup& s);
ordered_json predict(const Setup& s);  // what changes of one term save
ordered_json intervene(const Setup& s, const ordered_json& predicted);
int report(const std::string& prefix, const std::vector<std::string>& parts);

}  // namespace bench
