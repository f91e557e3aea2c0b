// From a kernel to one that a target can print: local substitutions and defaults. Nothing changes a value's order, but
// that lanes share long folds.
#pragma once
#include "tang/kernel/kernel.hpp"
#include "tang/target/target.hpp"

namespace tang::kernel {

// Pipelines become loops; register blocks are chosen where the kernel leaves them open. A workgroup of one lane:
// barriers go, vector axes are chosen. One of many: tiles are shared, points dealt to lanes (distribute.hpp) and barriers
// placed (barriers.hpp); refused when the tiles exceed the fast memory, or when the kernel was made for other lanes.
Result<Kernel> try_legalize(const Kernel& k, const target::Target& t);
Kernel legalize(const Kernel& k, const target::Target& t);  // a refusal is an Error

// The register block (rows x vectors) with the most arithmetic a load that fits the target's vector
// registers.
void choose_block(Contract& c, const target::Target& t);
// The axis along which all references are contiguous or constant, at least one vector long; -1 where there is
// none.
int choose_vector(const Kernel& k, const std::vector<TileAxis>& axes, const std::vector<const Ref*>& writes,
                  const std::vector<const Ref*>& reads);

}  // namespace tang::kernel
