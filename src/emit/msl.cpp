#include "tang/emit/msl.hpp"

#include <cmath>

#include "tang/emit/c.hpp"
#include "tang/emit/gpu_teams.hpp"
#include "tang/emit/shared_text.hpp"

namespace tang::emit {

namespace {
const char* const msl_head = R"(#include <metal_stdlib>
using namespace metal;
#define TANG static inline
#ifndef INT64_MAX
#define INT64_MAX 9223372036854775807l
#define INT64_MIN (-INT64_MAX - 1l)
#define INT32_MAX 2147483647
#endif
)";
const char* const msl_functions = R"(
TANG float tang_ratio1(float a, float b) { return b == 0 ? 0 : a / b; }
TANG float tang_sqrt1(float x) { return precise::sqrt(x); }
TANG float tang_fma1(float a, float b, float c) { return fma(a, b, c); }
TANG float tang_floor1(float x) { return floor(x); }
TANG float tang_exp21(float x) { return precise::exp2(x); }
TANG float tang_log21(float x) { return tang_greater_real(precise::log2(x)); }
TANG float tang_sin1(float x) { return precise::sin(x); }
TANG float tang_atan21(float y, float x) { return precise::atan2(y, x); }
)";

class MslDialect : public GpuDialect {
public:
  MslDialect() {
    barrier = "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);";
    unroll = "#pragma unroll";
    lane = "lane_id", group = "group_id", launched = "groups";
  }

  std::string is_nan(const std::string& x) const override { return "tang_is_nan1(" + x + ")"; }

  std::string literal(const kernel::Value& v, bool wide) const override {
    if (v.type == kernel::Type::boolean) return v.i ? yes : no;
    if (v.type == kernel::Type::real && std::isnan(v.r)) return "as_type<float>(0x7fc00000u)";
    if (v.type == kernel::Type::real && std::isinf(v.r)) return v.r < 0 ? "(-0x1.fffffep+127f)" : "0x1.fffffep+127f";
    return Dialect::literal(v, wide);
  }

  std::string prelude() const override {
    Spelling s = c_like_spelling();
    for (auto& [word, text] : std::map<std::string, std::string>{{"R", "float"}, {"ZTOP", "0x1p63f"}, {"U", "uint"},
                                                                 {"I", "int"}, {"tang_u1", "as_type<uint>"},
                                                                 {"tang_f1", "as_type<float>"}})
      s.words[word] = text;
    return msl_head + std::string(scalar_macros) + spelled(order_text, s) + spelled(integer_text, s) +
           "TANG float tang_greater_real(float x) { return x < -0x1.fffffep+127f ? -0x1.fffffep+127f : x; }\n" +
           msl_functions + spelled(narrow_text, s);
  }

  std::string head(const kernel::Kernel& k) const override {
    std::string out = "kernel void " + k.name + "(";
    int n = 0;
    for (size_t m = 0; m < k.memories.size(); ++m) {
      const kernel::Memory& x = k.memories[m];
      if (x.home != kernel::Home::global) continue;
      out += std::string("device ") + (x.access == kernel::Access::read ? "const " : "") + element_type(x.format) + "* m" +
             std::to_string(m) + " [[buffer(" + std::to_string(n++) + ")]], ";
    }
    return out + "threadgroup uchar* shared [[threadgroup(0)]], uint lane_id [[thread_index_in_threadgroup]], "
                 "uint group_id [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]])";
  }

  std::string tiles(const kernel::Kernel& k) const override { return row_registers(k, *this) + tile_pointers(k, "threadgroup "); }

  void rows(Unit& u, const kernel::Stmt& s) const override { print_rows(u, *this, s); }
};
} // namespace

const GpuDialect& msl_dialect() {
  static const MslDialect d;
  return d;
}

} // namespace tang::emit
