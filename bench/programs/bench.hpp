// What the benchmarks share: programs compiled for a number of threads, interleaved measurements, rows of results.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tang.hpp"
#include "tang/run/program.hpp"

extern "C" {
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void openblas_set_num_threads(int);
char* openblas_get_corename();
}

namespace bench {
using namespace tang;

// Seconds of each run.
struct Samples {
  std::vector<double> t;
  double at(double quantile) const;  // 0: the best
  double best() const { return at(0); }
  double median() const { return at(0.5); }
};

// One measured thing beside its peer. ratio = peer's seconds / ours of equal work (or our rate / the peer's).
struct Row {
  std::string section, name;
  int threads = 1;
  std::string schedule;
  Samples ours;
  double rate = 0;                  // of the best run, in `unit`
  std::string unit;                 // "GFLOP/s", "GB/s"; empty: only times
  std::string peer;                 // what it is; empty: none
  Samples theirs;
  double peer_rate = 0;
  double ratio = 0, ratio_median = 0;
  std::optional<double> least;      // ratio needed
  std::optional<double> most_seconds;  // or the median needed
  std::optional<double> max_error;
  std::map<std::string, double> more;  // anything else, by name
};

class Bench {
 public:
  Bench(int threads, bool quick, std::string cache);
  const int threads;
  const bool quick;
  const std::string cache;  // folder of compiled kernels, shared by the runs
  bool kernels = false;     // also each kernel's share of a program's time
  std::shared_ptr<device::Compiler> compiler;
  std::shared_ptr<device::Cpu> cpu;
  std::vector<Row> rows;

  run::Options options() const;
  std::unique_ptr<run::Program> program(const ir::Graph& g) const { return program(g, options()); }
  std::unique_ptr<run::Program> program(const ir::Graph& g, const run::Options& o) const {
    return std::make_unique<run::Program>(g, compiler, cpu, o);
  }
  // Turns of ours and theirs, first each in turn, `rounds` of them and at least for `seconds`. Between a threaded peer and
  // ours there is a pause: idle threads of a library spin for a while and would take a core from whoever runs next.
  void interleave(Row& row, const std::function<void()>& ours, const std::function<void()>& theirs, int rounds, double seconds) const;
  void add(Row row);  // prints it, too
};

void fill(float* p, int64_t n, uint32_t seed);  // in (-0.5, 0.5)
void sgemm(int64_t n, const float* a, const float* b, float* c);  // c = a b, n x n
std::string schedules(const run::Program& p);
// A table of a program's kernels, the dearest first: best of `rounds` runs in order, share, rate of its contractions.
void print_kernels(run::Program& p, int rounds);

// Calls of malloc and its kin so far, of all threads.
uint64_t allocations();

void matmul(Bench& b);        // (a)
void attention(Bench& b);     // (b)
void backward(Bench& b);      // its backward
void training(Bench& b);      // a block forward and backward, whole training steps
void sorted(Bench& b);        // gradients of gathers by sorted keys beside gated sums
void chunks(Bench& b);        // recurrences in chunks beside step after step
void streams(Bench& b);       // (c) norms and softmax beside a copy
void small(Bench& b);         // (d) batch one, one thread
void compile_time(Bench& b);  // (e)
void figure(Bench& b);        // (f) three schedules of one graph: traffic and time

std::string to_json(const Bench& b);
// Parts (files of to_json, and of torch_peers.py) into one table: of rows measured in several parts the one with the
// faster peer. Writes PREFIX.md and PREFIX.json; returns how many rows miss what they need.
int report(const std::string& prefix, const std::vector<std::string>& parts);

}  // namespace bench
