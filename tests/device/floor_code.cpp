// Machine code as paths: what a kernel starts at least, and what of it comes after its loads.
#include <gtest/gtest.h>

#include "tang/device/cuda.hpp"
#include "tang/device/cuda_code.hpp"

namespace {
using namespace tang;
using device::Instruction;
using device::MachineCode;

Instruction to(std::vector<int> next) {
  Instruction i;
  i.next = std::move(next);
  return i;
}
Instruction leave() {
  Instruction i;
  i.leaves = true;
  return i;
}

TEST(device_floor_code, the_shortest_path_counts) {
  // 0 -> 1 -> 2 -> 3 ends, 0 -> 3: a loop 1 -> 1 makes nothing shorter.
  const MachineCode k{"k", {to({1, 3}), to({1, 2}), to({3}), leave()}};
  EXPECT_EQ(device::least_left(k), (std::vector<int64_t>{2, 3, 2, 1}));
  EXPECT_EQ(device::issued(k).all, 2);
}
TEST(device_floor_code, a_certificate_is_refused_where_an_edge_contradicts_it) {
  const MachineCode k{"k", {to({1, 3}), to({1, 2}), to({3}), leave()}};
  const std::vector<int64_t> left = device::least_left(k);
  EXPECT_TRUE(device::below_every_path(k, left));
  for (size_t i = 0; i < left.size(); ++i) {
    std::vector<int64_t> more = left;
    ++more[i];
    EXPECT_FALSE(device::below_every_path(k, more)) << i;
  }
  EXPECT_FALSE(device::below_every_path(k, {2, 3, 2}));
}
TEST(device_floor_code, what_follows_the_load_that_comes_last) {
  // Two loads by counters 0 and 1; 2 waits for the first, 4 for the second; then 5 and 6.
  MachineCode k{"k", {to({1}), to({2}), to({3}), to({4}), to({5}), to({6}), leave()}};
  for (int n : {0, 1}) k.code[size_t(n)].loads = true, k.code[size_t(n)].counter = n;
  k.code[2].waits = 1, k.code[4].waits = 2;
  EXPECT_EQ(device::issued(k).all, 7);
  EXPECT_EQ(device::issued(k).after, 3); // 4, 5, 6: the second may be the last
  k.code[4].waits = 0;                   // nothing waits for it
  EXPECT_EQ(device::issued(k).after, 0);
  k.code[4].waits = 2, k.code[3].next = {4, 6}; // a way around
  EXPECT_EQ(device::issued(k).after, 0);
  k.code[3].next = {4}, k.code[0].copies = true; // bytes that no counter tells of
  EXPECT_EQ(device::issued(k).after, 0);
}
TEST(device_floor_code, no_loads_no_end) {
  EXPECT_EQ(device::issued({"k", {to({1}), leave()}}).after, 0);
  EXPECT_EQ(device::issued({"k", {}}).all, 0);
  const MachineCode forever{"k", {to({1}), to({0})}};
  EXPECT_TRUE(device::below_every_path(forever, device::least_left(forever)));
}

// What NVRTC makes of a body over `float* x`, `n` and `i`; empty where there is no compiler.
std::vector<MachineCode> compiled(const std::string& body, const std::string& architecture = "sm_90a") {
  const auto compiler = device::CudaCompiler::find();
  if (!compiler) return {};
  const auto code = device::machine_code((*compiler)->compile(
      "extern \"C\" __global__ void k(float* x, float* y, int n) {\n  const int i = threadIdx.x;\n" + body + "}\n",
      architecture));
  EXPECT_TRUE(bool(code)) << code.why();
  return code ? *code : std::vector<MachineCode>();
}
std::string times(int n, const std::string& what) {
  std::string s;
  for (int k = 0; k < n; ++k) s += "  v = v " + what + " + 1.5f;\n";
  return s;
}

TEST(device_floor_code, compiled_chains_are_counted) {
  const auto chain = compiled("float v = x[i];\n" + times(50, "* 1.25f") + "  y[i] = v;\n");
  if (chain.empty()) { // no compiler: it says so
    EXPECT_FALSE(bool(device::CudaCompiler::find()));
    return;
  }
  ASSERT_EQ(chain.size(), 1u);
  EXPECT_EQ(chain[0].name, "k");
  const device::Issued i = device::issued(chain[0]);
  EXPECT_GE(i.after, 101); // fifty products, fifty sums, a store
  EXPECT_LE(i.after, 120);
  EXPECT_GT(i.all, i.after);
  EXPECT_LE(i.all, int64_t(chain[0].code.size()));
}
TEST(device_floor_code, arms_and_loops_are_taken_at_their_shortest) {
  const auto arms = compiled("float v = x[i];\n  if (n > 3) {\n" + times(60, "* v") + "  } else {\n" +
                             times(4, "* 3.0f") + "  }\n  y[i] = v;\n");
  if (arms.empty()) return;
  EXPECT_GE(device::issued(arms[0]).all, 9);
  EXPECT_LT(device::issued(arms[0]).all, 60);
  const auto loop = compiled("float v = x[i];\n#pragma unroll 1\n  for (int k = 0; k < n; ++k) {\n" +
                             times(60, "* v") + "  }\n  y[i] = v;\n");
  EXPECT_LT(device::issued(loop[0]).all, 60);
  const auto once = compiled("float v = x[i];\n#pragma unroll 1\n  for (int k = 0; k < 7; ++k) {\n" +
                             times(60, "* v") + "  }\n  y[i] = v;\n");
  EXPECT_GE(device::issued(once[0]).all, 120); // one turn of seven
}
TEST(device_floor_code, bytes_that_come_beside_the_registers_leave_nothing_after) {
  for (const char* copy :
       {"asm volatile(\"cp.async.ca.shared.global [%0], [%1], 16;\" :: \"r\"(to), \"l\"(x));\n"
        "asm volatile(\"cp.async.wait_all;\" ::: \"memory\");\n",
        "asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 64, [%0];\" ::"
        " \"r\"(to), \"l\"(x) : \"memory\");\n"}) {
    const auto k = compiled("__shared__ __align__(128) float s[64];\n  unsigned to = (unsigned)__cvta_generic_to_shared(s);\n" +
                            std::string(copy) + "  __syncthreads();\n  float v = s[i] + x[i];\n" + times(20, "* v") +
                            "  y[i] = v;\n");
    if (k.empty()) return;
    EXPECT_EQ(device::issued(k[0]).after, 0) << copy;
    EXPECT_GE(device::issued(k[0]).all, 40);
  }
}
TEST(device_floor_code, other_files_are_refused_and_cut_ones_do_no_harm) {
  EXPECT_FALSE(bool(device::machine_code("")));
  EXPECT_FALSE(bool(device::machine_code("no ELF at all")));
  const auto compiler = device::CudaCompiler::find();
  if (!compiler) return;
  const std::string text = "extern \"C\" __global__ void k(int* x) { x[threadIdx.x] += 1; }\n";
  const auto older = device::machine_code((*compiler)->compile(text, "sm_80"));
  ASSERT_FALSE(bool(older));
  EXPECT_EQ(older.why(), "machine code for compute capability 8.0");
  const std::string good = (*compiler)->compile(text, "sm_90");
  ASSERT_TRUE(bool(device::machine_code(good)));
  for (size_t n = 0; n < good.size(); n += 61) (void)device::machine_code(good.substr(0, n));
  for (size_t n = 0; n < good.size(); n += 13) {
    std::string other = good;
    other[n] = char(other[n] ^ 0xff);
    const auto k = device::machine_code(other);
    if (!k) continue;
    for (auto& x : *k) EXPECT_TRUE(device::below_every_path(x, device::least_left(x)));
  }
}
} // namespace
