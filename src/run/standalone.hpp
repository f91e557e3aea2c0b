// One self-contained C file and its header: a derived program with its memory planned, for places that have no tang.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tang/run/program.hpp"

namespace tang::run {

// How a self-test makes an input, by the same integers in C and here: element k comes from a hash of seed + k. Reals are
// m / 2^n of few enough bits to be exact in the input's format; integers lie in [0, below).
struct Filling {
  uint64_t seed = 0;
  int halvings = 0;    // reals lie in [-2^-halvings, 2^-halvings)
  int64_t below = 1;   // an index selects rows of what it is a coordinate of; others are 0
  int64_t row = 0;     // more than 0: rows of so many sorted integers, spread evenly
};
std::map<std::string, Filling> fillings(const ir::Graph& g, uint64_t seed);
std::vector<double> reals(const Filling& f, ir::Format format, int64_t n);
std::vector<int64_t> integers(const Filling& f, int64_t n);

// What a self-test expects of one output: a few elements and the sum of all of them.
struct Expected {
  std::string output;
  std::vector<int64_t> at;
  std::vector<double> values;       // exact for integers below 2^53
  double tolerance = 0;             // of an element
  double sum = 0, sum_tolerance = -1;  // negative: not compared
};
struct Standalone {
  std::string name;                 // an identifier: prefixes every symbol and macro
  std::string file;  // where the graph came from and the options that shape it, for the regenerating command
  std::map<std::string, Filling> fillings;
  std::vector<Expected> expected;
};
struct Files {
  std::string header, source;
  std::vector<std::string> arguments;  // by the user's names, in order; the workspace follows
};
// `written` is the graph as the user wrote it: its names and their order; `d` was derived from it under `o`.
// Throws Error when the name is no identifier.
Files standalone(const ir::Graph& written, const Derivation& d, const Options& o, const Standalone& s);

// Names of people as C identifiers: nothing but letters, digits and '_', no keyword, no macro of the C library, unique.
class CNames {
 public:
  explicit CNames(std::string prefix) : prefix_(std::move(prefix) + "_") {}  // of the functions and macros beside them
  std::string take(const std::string& name);

 private:
  std::string prefix_;
  std::map<std::string, bool> used_;
};
bool is_identifier(const std::string& s);
std::string in_comment(const std::string& s);  // what a comment can hold of a text by anyone

}  // namespace tang::run
