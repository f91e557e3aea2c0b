// Second opinions on printed text, from compilers that execute nothing: naga on WGSL, clang's address spaces on MSL.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernel/samples.hpp"
#include "tang/device/compiler.hpp"
#include "tang/device/tool.hpp"
#include "tang/emit/msl.hpp"
#include "tang/emit/wgsl.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/kernel/ranges.hpp"

using namespace samples;

namespace {
std::vector<std::string> path() {
  const char* p = std::getenv("PATH");
  return device::split_path(p ? p : "/usr/bin:/bin");
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> out;
  target::Facts f;
  f.shared_bytes = 32 << 10;
  for (auto& [name, s] : all()) {
    Kernel k = s.kernel;
    for (auto& m : k.memories)
      if (m.format == Format::f64) m.format = Format::f32;
    out.push_back(legalize(k, target::gpu_target("any", f)));
    out.back().name = "k" + std::to_string(out.size());
  }
  for (Format narrow : {Format::f16, Format::bf16, Format::e4m3, Format::e5m2, Format::tf32}) {
    Kernel k = samples::map().kernel;
    k.memories[0].format = k.memories[1].format = narrow;
    out.push_back(legalize(k, target::gpu_target("any", f)));
    out.back().name = "k" + std::to_string(out.size());
  }
  return out;
}
} // namespace

TEST(validators, naga_reads_every_kernel_as_wgsl) {
  device::ToolOptions o;
  o.search = path(), o.names = {"node", "nodejs"}, o.in = ".wgsl", o.out = ".out";
  o.arguments = {std::string(TANG_SOURCE) + "/tests/device/naga.mjs", TANG_NAGA, "@in", "@out"};
  o.limits.memory = int64_t(1) << 40; // of addresses: WebAssembly reserves far more than it uses
  auto node = device::Tool::find(o);
  if (!node) GTEST_SKIP() << "not present: " << node.why();
  if (!device::read_file(std::string(TANG_NAGA) + "/wgsl_wasm_transpiler_bg.js")) GTEST_SKIP() << "not present: naga in " << TANG_NAGA;
  std::vector<std::string> texts;
  for (auto& k : kernels())
    if (!beyond_32_bits(k)) texts.push_back(emit::gpu_unit({&k}, emit::wgsl_dialect()));
  EXPECT_GE(texts.size(), 10u);
  EXPECT_NO_THROW((*node)->run(texts));
  EXPECT_THROW((*node)->run({"@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }"}), Error);
}

TEST(validators, clang_sees_the_address_spaces_of_every_kernel_as_msl) {
  device::ToolOptions o;
  o.search = path(), o.names = {"clang-19", "clang-14", "clang"}, o.in = ".clcpp", o.out = ".none";
  o.arguments = {"-x", "clcpp", "-cl-std=clc++2021", "-fsyntax-only", "-target", "spir64", "-cl-no-stdinc", "-w",
                 "-I" + std::string(TANG_SOURCE) + "/tests/device/metal_spaces", "@in"};
  auto clang = device::Tool::find(o);
  if (!clang) GTEST_SKIP() << "not present: " << clang.why();
  const auto all = kernels();
  std::vector<const Kernel*> pointers;
  for (auto& k : all) pointers.push_back(&k);
  std::string text = emit::gpu_unit(pointers, emit::msl_dialect());
  const std::string attribute = "[[threadgroup("; // its name is a qualifier's, which is a macro here
  for (size_t at = 0; (at = text.find(attribute, at)) != std::string::npos;) text.replace(at, attribute.size(), "[[tile(");
  try {
    (*clang)->run({text});
  } catch (const Error& e) { ADD_FAILURE() << e.facts().at(0).text; }
  EXPECT_THROW((*clang)->run({text + "void wrong(threadgroup float* a) { device float* b = a; }\n"}), Error);
}
