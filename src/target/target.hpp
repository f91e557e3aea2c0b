// What a chip offers, as data: capacities, widths and limits. No code asks which chip it is.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tang::target {

enum class Class : uint8_t { exact, finite }; // finite: fast-math drivers, a finite sentinel replaces -inf

struct Target {
  std::string name; // "c", "cuda", ..
  Class values = Class::exact;
  int lanes = 1; // SIMD width in f32 of one vector register (C), subgroup size elsewhere
  int vector_registers = 16;
  int workgroup_limit = 1;           // lanes of one workgroup
  bool exchanges = false;            // lanes of a subgroup read each other's registers
  bool meets = false;                // lanes share a row without that: they meet in shared memory
  int access_bytes = 1;              // of neighbours that one lane moves at once; 1: one element
  int block_rows = 0, block_vectors = 0; // of a contraction's register block; 0: from vector_registers
  int long_row_lanes = 0;            // of a workgroup with one long row; 0: as any
  int cluster = 1;                   // workgroups that may share one block, and write each other's tiles
  int64_t fast_memory = 0;           // bytes private to a workgroup: L2 of a core, shared memory of an SM
  int64_t near_memory = 0;           // bytes of the level above: L1
  std::vector<int> clustered = {};   // workers that workgroups in clusters of 1, 2, .. reach at once
  int workers = 1;                   // workgroups that run at once: threads, SMs
  int64_t beside = 0;                // bytes up to which values keep places of their own: kernels that need
                                     // nothing of each other then run at once; 0: kernels run one by one
  double sum_cost = 0; // multiply-adds worth adding a word to a result in memory; 0: never
  int storage_bindings = 1 << 20;    // memories that one kernel may name
  int64_t binding_bytes = INT64_MAX; // of one of them
  int64_t alignment = 64;            // bytes: where a part of an allocation may begin as a memory of its own
  bool f64 = true;                   // arithmetic in f64
  bool index64 = true;               // integers of 64 bits; else every index must fit 32
  bool aliases = true;               // two memories of one kernel may overlap
  bool small_matrices = false;       // a subgroup multiplies 16 x 16 by 16 x 8 elements of 16 bits
  bool warpgroups = false;           // matrix instructions of 64 rows, bulk copies, barriers that count bytes
  bool subgroup_blocks = false;      // small matrices make blocks; lanes copy their operands ahead
  int64_t shared_limit = 0;          // bytes of shared memory a workgroup may have, all of them
  // What one worker reaches: 16-bit multiply-adds (two operations each), bytes from the shared cache; and all
  // of them together from memory. Per second; 0: unknown.
  double matrix_rate = 0, near_rate = 0, memory_rate = 0;
  bool blocks() const { return warpgroups || subgroup_blocks; } // of products, for kernels in tensor form
};

Target c_target(int lanes, int threads); // a CPU: 16 lanes have 32 vector registers, fewer have 16
Target c_target_of_host(int threads);    // lanes from what this machine has

// What a driver says of a GPU.
struct Facts {
  int workgroup = 256, workers = 1, bindings = 1 << 20;
  int64_t shared_bytes = 16 << 10, binding_bytes = INT64_MAX, alignment = 64;
  bool f64 = false, index64 = true, aliases = true, meets = false;
  Class values = Class::exact;
};

Target gpu_target(const std::string& name,
                  const Facts& facts); // plain kernels for many lanes within these facts
Target cuda_target();                  // a GPU of compute capability 9.0, its plain instructions
Target hopper_target();                // the same with warpgroups: sm_90a
Target ampere_target();                // compute capability 8.0: blocks of products by subgroups

} // namespace tang::target
