// From a kernel to one that a target can print: local substitutions and defaults, nothing that changes a
// value's order.
#pragma once
#include "tang/kernel/kernel.hpp"
#include "tang/target/target.hpp"

namespace tang::kernel {

// For targets whose workgroup is one lane: pipelines become loops, barriers go, vector axes and register
// blocks are chosen where the kernel leaves them open. A target with more lanes is refused: its expansions
// are not here yet.
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
