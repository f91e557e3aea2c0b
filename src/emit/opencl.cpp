#include "tang/emit/opencl.hpp"

#include "tang/emit/c.hpp"
#include "tang/emit/gpu_teams.hpp"
#include "tang/emit/shared_text.hpp"

namespace tang::emit {

namespace {
const char* const opencl_head = R"(#pragma OPENCL FP_CONTRACT OFF
typedef char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef uchar uint8_t; typedef ushort uint16_t; typedef uint uint32_t; typedef ulong uint64_t;
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN
#define INT32_MAX INT_MAX
#define TANG static inline
#define __builtin_inff() INFINITY
#define __builtin_nanf(s) NAN
#define __builtin_inf() ((double)INFINITY)
#define __builtin_nan(s) ((double)NAN)
)";
const char* const opencl_functions = R"(
TANG float tang_ratio1(float a, float b) { return b == 0 ? 0 : a / b; }
TANG float tang_sqrt1(float x) { return sqrt(x); }
TANG float tang_fma1(float a, float b, float c) { return fma(a, b, c); }
TANG float tang_floor1(float x) { return floor(x); }
TANG float tang_exp21(float x) { return exp2(x); }
TANG float tang_log21(float x) { return log2(x); }
TANG float tang_sin1(float x) { return sin(x); }
TANG float tang_atan21(float y, float x) { return atan2(y, x); }
)";

class OpenclDialect : public GpuDialect {
public:
  explicit OpenclDialect(bool f64) : f64_(f64) {
    barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);";
    unroll = "#pragma unroll";
    lane = "get_local_id(0)", group = "get_group_id(0)", launched = "get_num_groups(0)";
  }

  std::string prelude() const override {
    Spelling s = c_like_spelling();
    s.words.insert({{"tang_u1", "as_uint"}, {"tang_f1", "as_float"}, {"D_SQRT", "sqrt"}, {"D_FMA", "fma"}});
    if (!f64_) s.words["R"] = "float", s.words["ZTOP"] = "0x1p63f";
    return (f64_ ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "") + std::string(opencl_head) + scalar_macros +
           spelled(order_text, s) + spelled(integer_text, s) + opencl_functions + spelled(narrow_text, s) +
           (f64_ ? spelled(wide_text, s) : "");
  }

  std::string head(const kernel::Kernel& k) const override {
    return "kernel __attribute__((reqd_work_group_size(" + std::to_string(k.lanes) + ", 1, 1))) void " + k.name + "(" +
           arguments(k, "global ", "base") + offsets(k) + ")";
  }

  std::string tiles(const kernel::Kernel& k) const override {
    const int64_t n = shared_bytes(k);
    if (!n) return places(k) + row_registers(k, *this);
    return places(k) + row_registers(k, *this) + "  local uchar shared[" + std::to_string(n) + "] __attribute__((aligned(16)));\n" + tile_pointers(k, "local ");
  }

  void rows(Unit& u, const kernel::Stmt& s) const override { print_rows(u, *this, s); }

private:
  // A memory begins so many bytes after its buffer does. Buffers of buffers would say the same, but where they overlap
  // NVIDIA's library (580.159) ends the process when they are released.
  static std::string offsets(const kernel::Kernel& k) {
    std::string out;
    for (size_t m = 0; m < k.memories.size(); ++m)
      if (k.memories[m].home == kernel::Home::global) out += ", const ulong from" + std::to_string(m);
    return out;
  }

  static std::string places(const kernel::Kernel& k) {
    std::string out;
    for (size_t m = 0; m < k.memories.size(); ++m) {
      const kernel::Memory& x = k.memories[m];
      if (x.home != kernel::Home::global) continue;
      const std::string n = std::to_string(m), space = std::string("global ") + (x.access == kernel::Access::read ? "const " : "");
      const std::string type = space + element_type(x.format) + "*";
      out += "  " + type + " const m" + n + " = (" + type + ")((" + space + "uchar*)base" + n + " + from" + n + ");\n";
    }
    return out;
  }

  bool f64_;
};
} // namespace

const GpuDialect& opencl_dialect(bool f64) {
  static const OpenclDialect with(true), without(false);
  return f64 ? with : without;
}

} // namespace tang::emit
