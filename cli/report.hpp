// Results of a demonstration as data, and the files made of them.
#pragma once
#include <string>
#include <vector>

#include "tang/cli/tool.hpp"

namespace tang::cli {

struct KernelRow {
  std::string program, kernel, schedule, source;
  Timing time;
  double flops = 0, bytes = 0;
  double error = 0;
  bool ok = false;
};

struct ProgramRow {
  std::string name, size, derivation;
  size_t naive_nodes = 0, naive_kernels = 0, kernels = 0;
  double naive_bytes = 0, bytes = 0, derive_seconds = 0;
  std::vector<std::string> never_written;
  Timing time, naive;
  double reference = 0; // seconds of the program with a library's matrix products; 0: none
  int products = 0;     // library calls in it
  double flops = 0, error = 0;
  bool ok = false;
};

struct Results {
  std::string host, reference; // reference: what it is, empty without a library
  std::vector<ProgramRow> programs;
  std::vector<KernelRow> kernels;
  int verified = 0, failed = 0;
  double seconds = 0;
};

std::string as_json(const Results& r);  // schema tang.results/1
std::string as_html(const Results& r);  // one file, nothing fetched
std::string as_trace(const Results& r); // Chrome / Perfetto events

} // namespace tang::cli
