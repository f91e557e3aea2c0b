// One case of the fuzzer: a graph, how it runs, its inputs, and by what it is judged.
#pragma once
#include "tang/eval/oracle.hpp"
#include "tang/fuzz/choices.hpp"
#include "tang/run/program.hpp"

namespace tang::fuzz {

struct Case {
  ir::Graph graph;       // as written, perhaps with symbols
  ir::Bindings bindings; // of its symbols
  bool integer =
      false; // every value is an integer that f32 holds exactly: targets must give the oracle's bits
  bool optimize = true;
  bool late = false;       // rules run on the symbols, which are bound after
  int lanes = 16;          // of the C target
  int64_t fast_memory = 0; // bytes of the target's workgroup memory; 0: as it is
  int rule = 0;            // from which on the rules are tried that are also applied alone
  bool every_rule = true;  // each directed one that fires, not only the first
  schedule::Schedule schedule;
  uint64_t input_seed = 1;
  eval::Inputs inputs; // of that seed, rounded to their formats
  Sequence choices;
};

// What a generated case may hold beyond the plain.
struct Reach {
  bool f64 = true;    // inputs of f64
  bool narrow = true; // inputs of 8 and 16 bits
  bool templates = true; // graphs that one rule each is for
  int nodes = 6;         // at most
};

Case generate(Choices& c, const Reach& reach = {});
// Inputs from a seed, the same for the graph's names and shapes: integers of small size, or dyadic reals.
eval::Inputs inputs_for(const ir::Graph& bound, bool integer, uint64_t seed);
// The graph that the pipeline is given: symbols bound, before or after the rules.
ir::Graph given_graph(const Case& c);

} // namespace tang::fuzz
