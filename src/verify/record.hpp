// What a run stored, as a file, and the first place where two such runs differ.
#pragma once
#include "tang/verify/verify.hpp"

namespace tang::verify {

struct Stored {
  std::string what, schedule; // the buffer's label, and how its kernel ran; no schedule: an output
  double error = 0; // against f64, from the run's own earlier results, relative to the largest value
  bool ok = false;  // within the budget of its run
  std::vector<int64_t> shape;
  std::vector<double> got, want; // element by element; want is NaN where nothing is asked
};

struct Recording {
  std::string graph, target; // hash of the graph as written and its inputs; where it ran
  std::vector<Stored> all;   // in the order of the run, the outputs last
};

// Names a graph as written, with the formats of its outputs, and the seed of its inputs: runs of others are
// not compared.
std::string name_of(const ir::Graph& g, uint64_t seed);
// Fills a recording as `verify` goes along.
Seen recorder(Recording& r);
std::string print(const Recording& r);
Recording recording(const std::string& text, const std::string& name); // throws Error: no such file's text

// Elements that differ between two stored arrays of one label.
struct Difference {
  size_t a = 0, b = 0; // which of the recordings' arrays
  int64_t differ = 0;  // elements whose values are not equal
  int64_t at = 0;      // the element with the largest difference
  double gap = 0;      // that difference, relative to the largest reference
};

struct Comparison {
  int64_t common = 0, equal = 0;           // arrays that both stored, and those of them with the same values
  std::optional<Difference> first, beyond; // that differs at all, and by more than the budget
};

// Throws Error when they are runs of different graphs or inputs.
Comparison compare(const Recording& a, const Recording& b, double budget);
std::string text(const Comparison& c, const Recording& a, const Recording& b, double budget);

} // namespace tang::verify
