// What every verb shares: where things are found, how results and progress are printed.
#pragma once
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "tang/run/program.hpp"
#include "tang/run/targets.hpp"

namespace tang::cli {

struct Common {
  bool json = false;
  int threads = 0; // 0: all
  std::string
      cache; // folder of compiled kernels; empty: $TANG_CACHE_DIR, $XDG_CACHE_HOME/tang or ~/.cache/tang
  std::string out; // folder of written files
};

struct Host {
  std::shared_ptr<device::Compiler> compiler;
  std::shared_ptr<device::Cpu> cpu;
  run::Options options;
  std::string cache;
};

// Opens the compiler and the thread pool; the kernel cache is skipped with a line on stderr when its folder
// cannot be used.
Host open_host(const Common& c);
Host open_host_in(const Common& c, const std::string& cache); // with this folder of compiled kernels
std::string private_cache();                                  // a new folder of our own, for this process
run::TargetOptions target_options(const Common& c);
run::Opened open_or_throw(const Common& c, const std::string& target); // Error: why it cannot be used here
int thread_count(const Common& c);
std::string read_text(const std::string& path); // Error when it cannot be read
double memory_bytes();                          // of this machine; 0 or less: unknown
void write_text(const std::string& path, const std::string& text);
bool exists(const std::string& path);

// A graph with every symbol bound: as given, else to the smallest round value that its declaration allows, said on stderr.
ir::Graph read_graph(const std::string& file, const ir::Bindings& given = {});
void need_output(const ir::Graph& g, const std::string& file); // Error where it has none
void refuse_too_large(const ir::Graph& g); // Error where its inputs and outputs are more than this machine holds

// Statistics of repeated runs, in seconds.
struct Timing {
  double median = 0, low = 0, high = 0, p99 = 0; // low, high: 95% interval of the median
  int runs = 0;
};

std::string time_text(double seconds); // "12.3 us", "4.56 ms"
Timing measure(const std::function<void()>& once, double budget_seconds, int least = 5);

int demo(const Common& c, int64_t scale);
int explain(const Common& c, const std::string& file);
struct RunArguments {
  uint64_t seed = 1;
  std::string schedule;
  bool locked = false;
  std::string target; // empty: c; a schedule is for the C target
  double budget = 0;  // largest error of an output; 0: any
};

int run_file(const Common& c, const std::string& file, const RunArguments& a);
int run_model(const Common& c, const std::string& model, const std::string& tokenizer,
              const std::string& prompt, int tokens, bool greedy);
// A class drawn by softmax of the logits, or the largest.
int sample(const float* logits, int64_t n, bool greedy, std::mt19937_64& rng);

// A character model trained on a text; results to `out` of Common if that is given.
struct TrainArguments {
  std::string text, format = "f32", prompt = "\n";
  int64_t steps = 500, batch = 4, context = 256, model = 128, layers = 2, heads = 4;
  double rate = 3e-3, clip = 1;
  int64_t memory = 0; // bytes of stored values to hold at once; 0: all are kept
  uint64_t seed = 1;
  int letters = 300; // of the samples before and after
};

int train(const Common& c, const TrainArguments& a);
struct VerifyArguments {
  uint64_t seed = 1;
  double budget = 0;                     // largest error relative to the largest value
  std::string target, schedule, record;  // record: a file for what the run stored, which diff_runs compares
};

int verify_file(const Common& c, const std::string& file, const VerifyArguments& a);
int diff_runs(const Common& c, const std::string& a, const std::string& b, double budget);
// What is predicted for narrow storage and accumulation beside what happens, as a page; `only`: a part of a builder's name.
int verify_formats(const Common& c, const std::string& target, const std::string& only);

// Every builder of models/, forward and backward, under every way to schedule it (matrix.hpp); `sample`: cells in which
// every two of builder, direction, target and way meet.
struct MatrixArguments {
  std::string target, builder; // empty: all
  bool sample = false;
};

using Opener = std::function<Result<run::Opened>(const std::string& target)>;
int verify_all(const Common& c, const MatrixArguments& a);
int verify_all(const Common& c, const MatrixArguments& a, const Opener& open); // targets as this opens them
constexpr int absent = 77; // what verify_all returns where the target that was asked for is not here
int emit_c(const Common& c, const std::string& file, const std::string& name, int lanes,
           const std::vector<std::string>& sizes);
int export_proofs(const std::string& folder);
int bound_file(const Common& c, const std::string& file, int64_t memory, bool in_words, bool as_written,
               const std::string& coq);
int devices(const Common& c);

struct FuzzArguments {
  uint64_t seed = 1;
  double seconds = 0;
  int64_t cases = 0;
  int batch = 40, jobs = 1, limit = 120;
  uint64_t skip = 0;
  int64_t mutants = 0; // sites an operator, of kernels that random cases give
  bool no_shrinking = false;
  bool no_templates = false;
  std::vector<std::string> targets;
  std::string choices; // of one case, to repeat it
  std::string file;    // of one case, as a finding is written
  bool show = false;   // that case as a file, whatever it shows
  std::string compiler; // of the C target: the system's, or tcc inside this process
};

int fuzz_targets(const Common& c, const FuzzArguments& a); // 0: nothing was found

} // namespace tang::cli
