#include "tang/target/target.hpp"

namespace tang::target {

Target c_target(int lanes, int threads) {
  Target t;
  t.name = "c";
  t.lanes = lanes;
  t.vector_registers = lanes >= 16 ? 32 : 16;
  t.fast_memory = 512 << 10;
  t.near_memory = 32 << 10;
  t.workers = threads;
  t.sum_cost = lanes; // two words through the second level, beside a multiply-add of all lanes a cycle
  return t;
}

Target c_target_of_host(int threads) {
  int lanes = 4;
#if (defined(__x86_64__) || defined(__i386__)) && !defined(__EMSCRIPTEN__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) lanes = 8;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) lanes = 16;
#endif
  return c_target(lanes, threads);
}

// Groups of 32 lanes share out a contraction; no machine's subgroup is assumed.
Target gpu_target(const std::string& name, const Facts& f) {
  Target t;
  t.name = name;
  t.values = f.values;
  t.lanes = 32;
  t.vector_registers = 32;
  // Of 12 x 2, 8 x 4, 8 x 2 and 4 x 4 the best, or near it, for products and attention on an H200.
  t.block_rows = 8, t.block_vectors = 2;
  t.workgroup_limit = f.workgroup >= 256 ? 256 : f.workgroup >= 128 ? 128 : 64;
  t.fast_memory = t.near_memory = f.shared_bytes;
  t.workers = f.workers;
  t.storage_bindings = f.bindings;
  t.binding_bytes = f.binding_bytes;
  t.alignment = f.alignment;
  t.f64 = f.f64;
  t.index64 = f.index64;
  t.aliases = f.aliases;
  t.meets = f.meets;
  return t;
}

// 227 KiB of shared memory a processor, some of it free for the partial results of shared folds; four
// workgroups of contractions share it (products of 2048 rows in 0.87 ms, 1.70 with one; blocks as of
// gpu_target; H200, 2026-11-30).
Target cuda_target() {
  Target t;
  t.name = "cuda";
  t.lanes = 32;
  t.vector_registers = 32; // of a lane, for a register block
  t.workgroup_limit = 256;
  t.exchanges = true;
  t.access_bytes = 16;
  t.long_row_lanes = 1024;
  t.cluster = 8; // any such chip runs that many
  t.fast_memory = 200 << 10;
  t.near_memory = 56 << 10;
  t.block_rows = 8, t.block_vectors = 2;
  t.workers = 132;
  t.beside = 32 << 20; // of a shared cache of 50 MB
  return t;
}

// 227 KiB a workgroup. Rates: an 8192-cubed product's 790 TFLOP/s over 132 workers, a shared cache of
// about 5.5 TB/s, reads of 4.2 TB/s (measured 2026-11-29).
Target hopper_target() {
  Target t = cuda_target();
  t.name = "hopper";
  t.small_matrices = t.warpgroups = true;
  t.shared_limit = 232448;
  // A cluster lies within one section of the chip (`clusters` of bench/h200/tensor.cpp; 2026-11-30).
  t.clustered = {132, 132, 117, 120, 110, 102, 105, 120};
  t.matrix_rate = 790e12 / 132, t.near_rate = 5.5e12 / 132, t.memory_rate = 4.2e12;
  return t;
}

} // namespace tang::target
