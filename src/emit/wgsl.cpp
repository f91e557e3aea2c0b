#include "tang/emit/wgsl.hpp"

#include <cmath>

#include "tang/base/error.hpp"
#include "tang/emit/shared_text.hpp"

namespace tang::emit {

namespace {
using kernel::Access;
using kernel::Format;
using kernel::Home;
using kernel::Memory;
using kernel::Type;

const char* const wgsl_head = R"(
var<private> tang_nan_bits: u32 = 0x7fc00000u;
fn tang_nan() -> f32 { return bitcast<f32>(tang_nan_bits); }
fn tang_sel1(m: bool, a: f32, b: f32) -> f32 { return select(b, a, m); }
fn tang_selu1(m: bool, a: u32, b: u32) -> u32 { return select(b, a, m); }
fn tang_less1(a: f32, b: f32) -> bool { return a < b; }
fn tang_equal1(a: f32, b: f32) -> bool { return a == b; }
fn tang_iless1(a: i32, b: i32) -> bool { return a < b; }
fn tang_both1(a: bool, b: bool) -> bool { return a && b; }
fn tang_shift1(x: f32) -> f32 { return floor(x + 0.5f); }
fn tang_scale1(p: f32, t: f32, n: f32) -> f32 { return tang_scale_by_parts1(p, i32(t)); }
fn tang_sqrt1(x: f32) -> f32 { return sqrt(x); }
fn tang_fma1(a: f32, b: f32, c: f32) -> f32 { return fma(a, b, c); }
// 64-bit storage: INT64_MAX is nowhere, as INT32_MAX is here.
fn tang_from_i64(v: vec2<u32>) -> i32 {
  if (v.y == 0x7fffffffu && v.x == 0xffffffffu) { return 2147483647; }
  return i32(v.x);
}
fn tang_to_i64(v: i32) -> vec2<u32> {
  if (v == 2147483647) { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
  return vec2<u32>(u32(v), u32(v >> 31u));
}
)";

Spelling wgsl_spelling() {
  Spelling s = c_like_spelling();
  s.declares_names_first = true;
  for (auto& [word, text] : std::map<std::string, std::string>{
           {"F", "f32"}, {"I", "i32"}, {"U", "u32"}, {"R", "f32"}, {"Z", "i32"}, {"N", "u32"}, {"TO_Z", "i32"},
           {"TO_N", "u32"}, {"TO_U", "u32"}, {"ZBITS", "32"}, {"NEAR_SINE", "1.5f"}, {"ZMAX", "2147483647"}, {"ZMIN", "(-2147483647 - 1)"},
           {"ZTOP", "2147483648.0f"}, {"INF", "0x1.fffffep+127f"}, {"NAN_", "tang_nan()"}, {"tang_int1", "i32"},
           {"tang_unsigned1", "u32"}, {"tang_real1", "f32"}, {"tang_real_of_u1", "f32"}, {"tang_whole1", "i32"},
           {"tang_u1", "bitcast<u32>"}, {"tang_f1", "bitcast<f32>"}, {"tang_splat1", ""}, {"tang_ints1", ""},
           {"tang_not1", "!"}, {"tang_shifted1", ""}, {"tang_count1", "i32"}})
    s.words[word] = text;
  return s;
}

int bits(const Memory& m) { return expr::row(m.format).bits; }

bool packed(const Memory& m) { return m.home == Home::global && bits(m) < 32; }

bool atomic(const Memory& m) { return packed(m) && m.access != Access::read; }

// What one element, or one word of elements, is declared as.
std::string element(const Memory& m) {
  const auto& row = expr::row(m.format);
  if (m.format == Format::f32 || m.format == Format::tf32) return "f32";
  if (packed(m)) return atomic(m) ? "atomic<u32>" : "u32";
  if (row.type == Type::index) return row.bits == 64 && m.home == Home::global ? "vec2<u32>" : "i32";
  return "u32";
}

class WgslDialect : public GpuDialect {
public:
  WgslDialect() {
    integer = counter = "i32", natural = plain_counter = "u32", real = "f32";
    barrier = "storageBarrier(); workgroupBarrier();";
    lane = "lane_id", group = "(group_id.x + group_id.y * groups.x)", launched = "(groups.x * groups.y)";
    row_of_groups = 65535;
  }

  std::string cast(const std::string& type, const std::string& x) const override { return type + "(" + x + ")"; }

  std::string pick(const std::string& c, const std::string& a, const std::string& b) const override {
    return "select(" + b + ", " + a + ", " + c + ")";
  }

  std::string is_nan(const std::string& x) const override { return "tang_is_nan1(" + x + ")"; }

  std::string inside(const std::string& x, int64_t extent) const override {
    return unsigned_of(x) + " < " + std::to_string(extent) + "u";
  }

  std::string wrapped(const std::string& a, const char* op, const std::string& b) const override {
    return "(" + a + op + b + ")";
  }

  std::string literal(const kernel::Value& v, bool) const override {
    if (v.type == Type::boolean) return v.i ? yes : no;
    if (v.type == Type::index) return v.i == INT64_MAX ? "2147483647" : v.i < 0 ? "(" + std::to_string(v.i) + ")" : std::to_string(v.i);
    check(v.type == Type::real, "bits have no 32-bit form");
    if (std::isnan(v.r)) return "tang_nan()";
    if (std::isinf(v.r)) return v.r < 0 ? "(-0x1.fffffep+127f)" : "0x1.fffffep+127f";
    return decimal_float(v.r);
  }

  std::string load(const Memory& m, const std::string& as, const std::string& at, bool) const override {
    const auto& row = expr::row(m.format);
    std::string x = as + "[" + at + "]";
    if (packed(m)) {
      const std::string word = as + "[" + word_of(m, at) + "]";
      x = "((" + (atomic(m) ? "atomicLoad(&" + word + ")" : word) + " >> " + shift_of(m, at) + ") & " + mask_of(m) + ")";
    }
    if (row.type == Type::boolean) return "(" + x + " != 0u)";
    if (row.type == Type::real) return m.format == Format::f32 ? x : std::string("tang_from_") + row.name + "(" + x + ")";
    if (row.type == Type::index && packed(m)) { // its sign is extended
      const std::string up = std::to_string(32 - bits(m)) + "u";
      return "((i32(" + x + ") << " + up + ") >> " + up + ")";
    }
    return element(m) == "vec2<u32>" ? "tang_from_i64(" + x + ")" : "i32(" + x + ")";
  }

  std::string store(const Memory& m, const std::string& as, const std::string& at, const std::string& value,
                    bool) const override {
    const auto& row = expr::row(m.format);
    std::string v = value;
    if (row.type == Type::real && m.format != Format::f32) v = std::string("tang_to_") + row.name + "(" + v + ")";
    if (element(m) == "vec2<u32>") v = "tang_to_i64(" + v + ")";
    if (element(m) == "u32" && row.type != Type::real) v = "u32(" + v + ")";
    if (!packed(m)) return as + "[" + at + "] = " + v + ";";
    const std::string word = "&" + as + "[" + word_of(m, at) + "]", shift = shift_of(m, at);
    return "atomicAnd(" + word + ", ~(" + mask_of(m) + " << " + shift + ")); atomicOr(" + word + ", (u32(" + v + ") & " +
           mask_of(m) + ") << " + shift + ");";
  }

  std::string constant(const std::string& type, const std::string& name, const std::string& value) const override {
    return "let " + name + ": " + type + " = " + value + ";";
  }

  std::string variable(const std::string& type, const std::string& name, const std::string& value) const override {
    return "var " + name + ": " + type + " = " + value + ";";
  }

  std::string loop(const std::string& type, const std::string& v, const std::string& begin,
                   const std::string& condition, const std::string& step) const override {
    return "for (var " + v + ": " + type + " = " + begin + "; " + condition + "; " + v + " += " + step + ")";
  }

  std::string array(const std::string& type, const std::string& name, int64_t n, int64_t m) const override {
    const std::string row = m ? "array<" + type + ", " + std::to_string(m) + ">" : type;
    return "var " + name + ": array<" + row + ", " + std::to_string(n) + ">;";
  }

  // WGSL asks that what decides about a barrier is seen to be equal in all lanes.
  std::vector<std::string> uniform(const std::string& name, const std::string& value) const override {
    return {"if (lane == 0) { tang_same = " + value + "; }", "let " + name + ": i32 = workgroupUniformLoad(&tang_same);"};
  }

  std::string prelude() const override {
    const Spelling s = wgsl_spelling();
    return wgsl_head + spelled(order_text, s) + spelled(integer_text, s) + spelled(simple_text, s) +
           spelled(split_pi_text, s) + spelled(scale_text, s) + spelled(exp2_text, s) + spelled(elementary_text, s) + spelled(far_sine_text, s) + spelled(narrow_text, s);
  }

  std::string above(const kernel::Kernel& k) const override {
    std::string out = "var<workgroup> tang_same: i32;\n";
    int binding = 0;
    for (size_t m = 0; m < k.memories.size(); ++m) {
      const Memory& x = k.memories[m];
      const std::string n = std::to_string(m);
      if (x.home == Home::global)
        out += "@group(0) @binding(" + std::to_string(binding++) + ") var<storage, read_write> m" + n + ": array<" + element(x) + ">;\n";
      else
        out += "var<workgroup> m" + n + ": array<" + element(x) + ", " + std::to_string(std::max<int64_t>(1, x.size())) + ">;\n";
    }
    return out;
  }

  std::string head(const kernel::Kernel& k) const override {
    return "@compute @workgroup_size(" + std::to_string(k.lanes) +
           ")\nfn main(@builtin(local_invocation_index) lane_id: u32, @builtin(workgroup_id) group_id: vec3<u32>, "
           "@builtin(num_workgroups) groups: vec3<u32>)";
  }

  std::string tiles(const kernel::Kernel& k) const override { // every binding is used, so that layouts list it
    std::string out;
    for (size_t m = 0; m < k.memories.size(); ++m)
      if (k.memories[m].home == Home::global) out += "  _ = &m" + std::to_string(m) + ";\n";
    return out;
  }

private:
  // The bits of a place. A constant below 0 is no u32 in this language, but an i32 that becomes one.
  static std::string unsigned_of(const std::string& x) {
    const bool constant = x.find_first_not_of("0123456789()+-* ") == std::string::npos;
    return constant && x.find('-') != std::string::npos ? "u32(i32(" + x + "))" : "u32(" + x + ")";
  }

  static std::string word_of(const Memory& m, const std::string& at) {
    return unsigned_of(at) + " / " + std::to_string(32 / bits(m)) + "u";
  }

  static std::string shift_of(const Memory& m, const std::string& at) {
    return "((" + unsigned_of(at) + " % " + std::to_string(32 / bits(m)) + "u) * " + std::to_string(bits(m)) + "u)";
  }

  static std::string mask_of(const Memory& m) { return bits(m) == 8 ? "0xffu" : "0xffffu"; }
};
} // namespace

const GpuDialect& wgsl_dialect() {
  static const WgslDialect d;
  return d;
}

} // namespace tang::emit
