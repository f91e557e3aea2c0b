// Sums that several workgroups add to where they lie.
#pragma once
#include "tang/kernel/kernel.hpp"

namespace tang::kernel {

// Both name one element, and nothing is gathered.
bool same_place(const Ref& a, const Ref& b);

// Index of the reference that is the destination itself, where a statement adds to an f32 global what reads
// nothing of it; or -1. Such statements of several workgroups may meet at an element: the target adds in
// memory, in whatever order they come, so that the last bits need not be those of another run.
int added_to(const Kernel& k, const Apply& a);

// The statement's body without that reference: what is added.
Body addend(const Kernel& k, const Apply& a, int to);

} // namespace tang::kernel
