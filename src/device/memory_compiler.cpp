#include "tang/device/memory_compiler.hpp"

#include <cmath>
#include <cstring>
#include <mutex>

#if defined TANG_TCC
#include <libtcc.h>
#endif

namespace tang::device {

#if defined TANG_TCC
namespace {
// What the scalar row declares, and what the compiler itself calls: conversions that are no instruction.
struct Symbol {
  const char* name;
  const void* at;
};

template <class F> const void* place(F* f) { return reinterpret_cast<const void*>(f); }

double of_u64(uint64_t u) { return double(u); }

float of_u64_single(uint64_t u) { return float(u); }

uint64_t to_u64(double x) { return uint64_t(x); }

uint64_t to_u64_single(float x) { return uint64_t(x); }

const Symbol symbols[] = {
    {"memcpy", place<void*(void*, const void*, size_t)>(std::memcpy)},
    {"memmove", place<void*(void*, const void*, size_t)>(std::memmove)},
    {"memset", place<void*(void*, int, size_t)>(std::memset)},
    {"sqrtf", place<float(float)>(::sqrtf)},
    {"sqrt", place<double(double)>(::sqrt)},
    {"fmaf", place<float(float, float, float)>(::fmaf)},
    {"fma", place<double(double, double, double)>(::fma)},
    {"floor", place<double(double)>(::floor)},
    {"fabs", place<double(double)>(::fabs)},
    {"exp2", place<double(double)>(::exp2)},
    {"log2", place<double(double)>(::log2)},
    {"sin", place<double(double)>(::sin)},
    {"atan2", place<double(double, double)>(::atan2)},
    {"__floatundidf", place(of_u64)},
    {"__floatundisf", place(of_u64_single)},
    {"__fixunsdfdi", place(to_u64)},
    {"__fixunssfdi", place(to_u64_single)},
};

std::mutex one_at_a_time; // the library keeps its state in globals while it works

void heard(void* log, const char* line) {
  auto& s = *static_cast<std::string*>(log);
  if (s.size() < 1000) s += std::string(line) + "\n";
}
} // namespace

Result<std::shared_ptr<MemoryCompiler>> MemoryCompiler::find() { return std::make_shared<MemoryCompiler>(); }

std::shared_ptr<Library> MemoryCompiler::compile(const std::string& unit) {
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  std::string log;
  std::shared_ptr<TCCState> state(tcc_new(), tcc_delete);
  check(state.get(), "no state of the compiler in memory");
  tcc_set_error_func(state.get(), &log, heard);
  tcc_set_options(state.get(), "-nostdlib -nostdinc -w");
  tcc_set_output_type(state.get(), TCC_OUTPUT_MEMORY);
  for (auto& s : symbols) tcc_add_symbol(state.get(), s.name, s.at);
  if (tcc_compile_string(state.get(), unit.c_str()))
    throw CompileError(CompileError::rejected, "the C compiler in memory refused a generated kernel", {{log, {}}},
                       "report it: the generator is wrong, or uses what small compilers lack");
  if (tcc_relocate(state.get(), TCC_RELOCATE_AUTO))
    throw CompileError(CompileError::not_loadable, "kernels compiled in memory do not load", {{log, {}}},
                       "report it: a symbol is missing, or memory may not be executed here");
  return std::make_shared<Library>([state](const std::string& name) { return tcc_get_symbol(state.get(), name.c_str()); });
}
#else
Result<std::shared_ptr<MemoryCompiler>> MemoryCompiler::find() {
  return Refusal{"this build has no C compiler in memory: libtcc was not there when it was configured"};
}

std::shared_ptr<Library> MemoryCompiler::compile(const std::string&) {
  bug(__FILE__, __LINE__, "a compiler that this build lacks");
}
#endif

} // namespace tang::device
