#include "tang/target/target.hpp"

namespace tang::target {

// 163 KiB a workgroup, 108 processors; 312 TFLOP/s and 2 TB/s by its data sheet, the cache twice as fast.
Target ampere_target() {
  Target t = cuda_target();
  t.name = "ampere", t.small_matrices = t.subgroup_blocks = true, t.cluster = 1, t.workers = 108;
  t.fast_memory = 160 << 10, t.near_memory = 40 << 10, t.shared_limit = 166912;
  t.matrix_rate = 312e12 / 108, t.near_rate = 4e12 / 108, t.memory_rate = 1.6e12;
  return t;
}

} // namespace tang::target
