// The f64 oracle: every node by brute force, by type, with absence; and the same walk with emulated formats.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "tang/eval/array.hpp"
#include "tang/ir/absorb.hpp"

namespace tang::eval {

// How one port is computed when formats are emulated: the body in f64, the state rounded after each combine,
// the stored value rounded once more.
struct Numeric {
  ir::Format store = ir::Format::f64, accumulate = ir::Format::f64;
  ir::FoldOrder order = {};
};

struct Options {
  std::map<ir::NodeId, Numeric> numerics; // nodes not named: exact f64, sequential
  ir::FoldOrder order = {};               // for nodes not named
  int threads = 1;
  bool faults_are_infinite = false; // a live term that faults is no Error but infinite
};

using Inputs = std::map<std::string, Array>;

class Oracle {
public:
  Oracle(const ir::Graph& g, Inputs inputs, Options options = {});
  ~Oracle();
  // A live term that faults (reads outside its array) is an Error that names the node.
  const Array& port(ir::Port p);
  // Replaces an input; what depends on it is computed again.
  void rebind(const std::string& input, Array value);
  // Takes this value for a port instead of computing it: what reads it is evaluated from there.
  void place(ir::Port p, Array value);
  int64_t terms() const; // terms visited so far, for work counts

private:
  struct State;
  std::unique_ptr<State> state_;
};

// All outputs, by name.
std::map<std::string, Array> run(const ir::Graph& g, const Inputs& inputs, const Options& options = {});

// Largest |a - b| / max(1, max |b|) over present points; inf when presence, NaN or shape differ.
double difference(const Array& a, const Array& b);

} // namespace tang::eval
