#include "tang/emit/glsl.hpp"

#include <cmath>
#include <cstdio>

#include "tang/base/error.hpp"
#include "tang/emit/c.hpp"
#include "tang/emit/gpu_teams.hpp"
#include "tang/emit/shared_text.hpp"

namespace tang::emit {

namespace {
// SignedZeroInfNanPreserve: infinities and NaN are kept, which plain Vulkan does not promise.
const char* const glsl_head = R"(#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4466], 4461, 32);
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807l
#define INT64_MIN (-9223372036854775807l - 1l)
#define tang_shift1(x) floor((x) + 0.5f)
#define tang_shifted1(t) (t)
#define tang_count1(t) int(t)
#define tang_scale1(p, t, n) tang_scale_by_parts1(p, tang_count1(t))
)";
const char* const glsl_functions = R"(
float tang_sqrt1(float x) { return sqrt(x); }
float tang_fma1(float a, float b, float c) { return fma(a, b, c); }
int64_t tang_widened(int x) { return int64_t(uint64_t(uint(x) ^ 0x80000000u)) - 0x80000000l; }
)";

Spelling glsl_spelling() {
  Spelling s = c_like_spelling();
  for (auto& [word, text] : std::map<std::string, std::string>{
           {"TANG", ""}, {"I", "int"}, {"U", "uint"}, {"R", "float"}, {"ZTOP", "0x1p63f"}, {"TO_Z", "int64_t"},
           {"TO_N", "uint64_t"}, {"TO_U", "uint"}, {"tang_int1", "int"}, {"tang_unsigned1", "uint"},
           {"tang_real1", "float"}, {"tang_real_of_u1", "float"}, {"tang_whole1", "int"},
           {"tang_u1", "floatBitsToUint"}, {"tang_f1", "uintBitsToFloat"}, {"INF", "uintBitsToFloat(0x7f800000u)"},
           {"NAN_", "uintBitsToFloat(0x7fc00000u)"}})
    s.words[word] = text;
  s.words["ZTOP"] = "9.22337204e+18f";
  s.hex_floats = false;
  return s;
}

class GlslDialect : public GpuDialect {
public:
  GlslDialect() {
    plain_counter = "uint";
    barrier = "groupMemoryBarrier(); barrier();"; // only the workgroup waits for what it wrote, in whatever memory
    unroll = "[[unroll]]";
    lane = "gl_LocalInvocationIndex";
    group = "(gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x)";
    launched = "(gl_NumWorkGroups.x * gl_NumWorkGroups.y)";
    row_of_groups = 65535;
  }

  std::string cast(const std::string& type, const std::string& x) const override { return type + "(" + x + ")"; }

  std::string is_nan(const std::string& x) const override { return "tang_is_nan1(" + x + ")"; }

  std::string literal(const kernel::Value& v, bool wide) const override {
    if (v.type == kernel::Type::boolean) return v.i ? yes : no;
    if (v.type == kernel::Type::bits) { // held as the integers that they are computed in: no conversion is implied
      kernel::Value same = v;
      same.type = kernel::Type::index;
      return literal(same, wide);
    }
    if (v.type == kernel::Type::index) return v.i > INT32_MAX || v.i < -INT32_MAX ? wide_literal(v.i) : Dialect::literal(v, wide);
    if (std::isnan(v.r)) return "uintBitsToFloat(0x7fc00000u)";
    if (std::isinf(v.r)) return v.r < 0 ? "uintBitsToFloat(0xff800000u)" : "uintBitsToFloat(0x7f800000u)";
    return decimal_float(v.r);
  }

  // lavapipe (Mesa 22.3) compares an int that was loaded and widened with a constant as if it had no sign; the sign is
  // extended in a way that its optimizer does not see through.
  std::string load(const kernel::Memory& m, const std::string& as, const std::string& at, bool wide) const override {
    return m.format == kernel::Format::i32 ? "tang_widened(" + place(as, at) + ")" : Dialect::load(m, as, at, wide);
  }

  std::string place(const std::string& as, const std::string& at) const override { return as + "[uint(" + at + ")]"; }

  std::string prelude() const override {
    const Spelling s = glsl_spelling();
    return glsl_head + std::string(scalar_macros) + spelled(order_text, s) + spelled(integer_text, s) + glsl_functions +
           spelled(simple_text, s) + spelled(split_pi_text, s) + spelled(scale_text, s) + spelled(exp2_text, s) +
           spelled(elementary_text, s) + spelled(far_sine_text, s) + spelled(narrow_text, s);
  }

  std::string above(const kernel::Kernel& k) const override {
    std::string out = "layout(local_size_x = " + std::to_string(k.lanes) + ") in;\n";
    int binding = 0;
    for (size_t m = 0; m < k.memories.size(); ++m) {
      const kernel::Memory& x = k.memories[m];
      const std::string n = std::to_string(m), type = element_type(x.format);
      if (x.home == kernel::Home::global) {
        const bool reads = x.access == kernel::Access::read;
        out += "layout(std430, set = 0, binding = " + std::to_string(binding++) + ") " + (reads ? "readonly " : "") +
               "buffer B" + n + " { " + type + " m" + n + "[]; };\n";
      } else if (x.home != kernel::Home::register_) {
        out += "shared " + type + " m" + n + "[" + std::to_string(std::max<int64_t>(1, x.size())) + "];\n";
      }
    }
    return out;
  }

  std::string head(const kernel::Kernel&) const override { return "void main()"; }

  std::string tiles(const kernel::Kernel& k) const override { return row_registers(k, *this); }

  void rows(Unit& u, const kernel::Stmt& s) const override { print_rows(u, *this, s); }

private:
  static std::string wide_literal(int64_t v) {
    return v == INT64_MIN ? "INT64_MIN" : v < 0 ? "(" + std::to_string(v) + "l)" : std::to_string(v) + "l";
  }
};
} // namespace

const GpuDialect& glsl_dialect() {
  static const GlslDialect d;
  return d;
}

} // namespace tang::emit
