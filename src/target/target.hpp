// What a chip offers, as data: capacities, widths and limits. No code asks which chip it is.
#pragma once
#include <cstdint>
#include <string>

namespace tang::target {

enum class Class : uint8_t { exact, finite };  // finite: fast-math drivers, a finite sentinel replaces -inf
struct Target {
  std::string name;             // "c", "cuda", ..
  Class values = Class::exact;
  int lanes = 1;                // SIMD width in f32 of one vector register (C), subgroup size elsewhere
  int vector_registers = 16;
  int workgroup_limit = 1;      // lanes of one workgroup
  int64_t fast_memory = 0;      // bytes private to a workgroup: L2 of a core, shared memory of an SM
  int64_t near_memory = 0;      // bytes of the level above: L1
  int workers = 1;              // workgroups that run at once: threads, SMs
  int storage_bindings = 1 << 20;
};
Target c_target(int lanes, int threads);  // a CPU: 16 lanes have 32 vector registers, fewer have 16
Target c_target_of_host(int threads);     // lanes from what this machine has
Target cuda_target();                     // a GPU of compute capability 9.0, its plain instructions

}  // namespace tang::target
