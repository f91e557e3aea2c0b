// How far from the exact value a machine's result may be: a graph built from the graph that runs, which
// carries a bound of the error beside every value, evaluated by the oracle. Standard running error analysis
// (N. J. Higham, Accuracy and Stability of Numerical Algorithms, ch. 3 and 4); a fold is bounded for every
// order of its terms.
#pragma once
#include <optional>
#include <set>

#include "tang/eval/oracle.hpp"

namespace tang::verify {

struct Arithmetic {
  double unit = 0;       // half an ulp, relative: of add, mul and a literal
  double elementary = 0; // relative, of exp2, log2, sin, atan2, recip, sqrt, ratio
  double tiny = 0;       // absolute: below it a value may be flushed to 0
  double largest = 0;    // beyond it a value overflows
};

Arithmetic single(); // f32, elementary functions within 3 ulp
Arithmetic twice();  // f64, as the oracle itself computes

// A bound of the error of each output, by name: of reals absolute (infinite where a comparison within its
// error decides), of other types 0 or infinite. An array without elements: the output is exact. Nothing may
// rest on a rounded value that decides which points exist, or where a read goes. An output stored in a narrow
// format is read as it is stored.
std::map<std::string, eval::Array> error_bounds(const ir::Graph& g, const eval::Inputs& inputs,
                                                const Arithmetic& a);

// The bound of one stored port as a kernel computes it: from the values of `stored` ports and inputs as `o`
// has them. Without elements: exact. Nothing for what a recurrence computes.
std::optional<eval::Array> error_bound(const ir::Graph& g, eval::Oracle& o, const std::set<ir::Port>& stored,
                                       ir::Port at, const Arithmetic& a);

} // namespace tang::verify
