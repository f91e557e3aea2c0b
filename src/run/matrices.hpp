// What a target with matrix instructions asks of a graph before it is planned.
#pragma once
#include "tang/run/program.hpp"

namespace tang::run {

// The graph in the forms whose sums become matrix instructions; with the format of the options' operands, what products
// read is an array.
ir::Graph for_matrices(ir::Graph g, const Options& o);
// Arrays, and whatever products read, are stored in `f`, unless the schedule says otherwise; parts of sums are stored, and
// are arrays where their sum is one.
void store_operands(ir::Graph& g, ir::Format f, schedule::Schedule& s);

} // namespace tang::run
