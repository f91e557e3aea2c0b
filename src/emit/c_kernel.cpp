// Names, types, element access and loop limits of the C printer.
#include "tang/emit/c_body.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tang/base/error.hpp"
#include "tang/base/number.hpp"

namespace tang::emit {

void Unit::line(const std::string& s) { out += std::string(size_t(indent) * 2, ' ') + s + "\n"; }

std::string Unit::helper(const std::string& text) {
  size_t at = 0;
  while (at < helpers.size() && helpers[at] != text) ++at;
  if (at == helpers.size()) helpers.push_back(text);
  return k.name + "_part" + std::to_string(at);
}

std::string number(int64_t v) {
  if (v == INT64_MIN) return "INT64_MIN";
  return v < 0 ? "(" + std::to_string(v) + ")" : std::to_string(v);
}

std::string divisor(int64_t v) { return number(std::max<int64_t>(1, v)); }

std::string name(Var v) { return "x" + std::to_string(v); }

std::string text(const Affine& a) {
  std::string s;
  for (auto& [v, k] : a.terms) {
    const std::string x = k == 1 || k == -1 ? name(v) : name(v) + " * " + std::to_string(k < 0 ? -k : k);
    s += s.empty() ? (k < 0 ? "-" + x : x) : (k < 0 ? " - " : " + ") + x;
  }
  if (s.empty()) return number(a.c);
  if (a.c) s += (a.c < 0 ? " - " : " + ") + std::to_string(a.c < 0 ? -a.c : a.c);
  return a.terms.size() == 1 && !a.c && a.terms[0].second == 1 ? s : "(" + s + ")";
}

std::string literal(const Value& v, bool wide) {
  if (v.type == Type::boolean) return v.i ? "1" : "0";
  if (v.type == Type::bits)
    return v.i < 0 || v.i > INT32_MAX ? std::to_string(uint64_t(v.i)) + "u" : std::to_string(v.i);
  if (v.type == Type::index) return v.i == INT64_MAX ? "INT64_MAX" : number(v.i);
  const double r = wide ? v.r : double(float(v.r));
  if (std::isnan(r)) return wide ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")";
  if (std::isinf(r))
    return std::string(r < 0 ? "(-" : "(") + (wide ? "__builtin_inf())" : "__builtin_inff())");
  char s[48];
  std::snprintf(s, sizeof s, wide ? "%a" : "%af", r);
  return std::signbit(r) ? "(" + std::string(s) + ")" : s;
}

const char* element_type(Format f) {
  switch (f) {
  case Format::f64: return "double";
  case Format::f32:
  case Format::tf32: return "float";
  case Format::f16:
  case Format::bf16:
  case Format::u16: return "uint16_t";
  case Format::e4m3:
  case Format::e5m2:
  case Format::u8:
  case Format::boolean: return "uint8_t";
  case Format::i64: return "int64_t";
  case Format::i32: return "int32_t";
  case Format::i16: return "int16_t";
  case Format::i8: return "int8_t";
  case Format::u32: return "uint32_t";
  default: bug(__FILE__, __LINE__, "a format without storage");
  }
}

std::string value_type(Type t, bool wide, bool vector) {
  if (t == Type::real) return vector ? (wide ? "D" : "F") : wide ? "double" : "float";
  if (vector) return t == Type::boolean ? (wide ? "N" : "M") : wide ? "L" : "I";
  return t == Type::boolean ? "int" : "int64_t"; // bits are kept as int64 and used as uint64
}

std::string fn(const Unit& u, const std::string& stem, bool vector) {
  return std::string(u.wide ? "tang_d" : "tang_") + stem + (vector ? "W" : "1");
}

std::string load_element(const Unit& u, Format f, const std::string& place) {
  const auto& row = expr::row(f);
  if (f == Format::f32 || f == Format::f64)
    return f == (u.wide ? Format::f64 : Format::f32) ? place : (u.wide ? "(double)" : "(float)") + place;
  if (row.type == Type::real)
    return std::string(u.wide ? "(double)" : "") + "tang_from_" + row.name + "(" + place + ")";
  if (row.type == Type::boolean) return "(" + place + " != 0)";
  return "(int64_t)" + place;
}

std::string store_element(const Unit& u, Format f, const std::string& place, const std::string& value) {
  const auto& row = expr::row(f);
  if (f == Format::f32 || f == Format::f64) return place + " = (" + element_type(f) + ")" + value + ";";
  if (row.type == Type::real)
    return place + " = tang_to_" + row.name + "(" + (u.wide ? "tang_odd(" + value + ")" : value) + ");";
  return place + " = (" + element_type(f) + ")" + value + ";";
}

bool has_vector_access(const Unit& u, Format f) {
  if (u.wide) return f == Format::f64;
  return f == Format::f32 || f == Format::f16 || f == Format::bf16;
}

std::string load_vector(const Unit& u, Format f, const std::string& p) {
  if (u.wide) return "tang_dloadW(" + p + ")";
  return (f == Format::f32   ? "tang_loadW("
          : f == Format::f16 ? "tang_load_f16("
                             : "tang_load_bf16(") +
         p + ")";
}

std::string store_vector(const Unit& u, Format f, const std::string& p, const std::string& v) {
  if (u.wide) return "tang_dstoreW(" + p + ", " + v + ");";
  return (f == Format::f32   ? "tang_storeW("
          : f == Format::f16 ? "tang_store_f16("
                             : "tang_store_bf16(") +
         p + ", " + v + ");";
}

std::string swapped(const Unit& u, Type t, int apart, const std::string& x) {
  const std::string call = (u.wide ? "tang_dswap" : "tang_swap") + std::to_string(apart) + "(";
  if (t == Type::boolean)
    return (u.wide ? "tang_dmask_of((L)" : "tang_mask_of((I)") + call +
           (u.wide ? "(D)tang_dmask_ints(" : "(F)tang_mask_ints(") + x + ")))";
  if (t == Type::real) return call + x + ")";
  return "((" + value_type(t, u.wide, true) + ")" + call + (u.wide ? "(D)" : "(F)") + x + "))";
}

void declare_old(Unit& u, const std::string& as, const Ref& dst, Type t, Var lane, const std::string& mask) {
  const Memory& m = u.memory(dst.memory);
  const std::string base = "m" + std::to_string(dst.memory);
  const Affine at = offset(u, dst);
  const int64_t k = lane >= 0 ? coefficient(at, lane) : 0;
  const std::string type = value_type(t, u.wide, lane >= 0);
  if (lane < 0)
    return u.line("const " + type + " " + as + " = " + load_element(u, m.format, base + "[" + text(at) + "]") + ";");
  if (k == 1 && mask.empty() && has_vector_access(u, m.format))
    return u.line("const " + type + " " + as + " = " + load_vector(u, m.format, base + " + " + text(at)) + ";");
  const std::string one = load_element(u, m.format, base + "[" + text(at) + " + l * " + number(k) + "]");
  const bool boolean = t == Type::boolean; // read as integers, then a mask
  const std::string into = boolean ? as + "_ints" : as;
  u.line((boolean ? u.wide ? "L" : "I" : type) + " " + into + ";");
  u.line("for (int l = 0; l < " + number(u.lanes) + "; ++l) " + into + "[l] = " +
         (mask.empty() ? "" : at_mask(u, mask) + " ? ") + (boolean ? "-" : "") + one + (mask.empty() ? "" : " : 0") +
         ";");
  if (boolean)
    u.line("const " + type + " " + as + " = " + (u.wide ? "tang_dmask_of(" : "tang_mask_of(") + into + ");");
}

Affine offset(const Unit& u, const Ref& r) {
  Affine out;
  const Memory& m = u.memory(r.memory);
  check(r.index.size() == m.shape.size(), "a ref of " + m.name + " with another rank");
  for (size_t d = 0; d < r.index.size(); ++d) out = out + m.strides[d] * r.index[d].affine;
  return out;
}

bool never_inside(const Unit& u, const Ref& r) {
  for (auto& c : r.index)
    if (!c.refs.empty()) return false;
  const Memory& m = u.memory(r.memory);
  int64_t last = 0;
  for (size_t d = 0; d < m.shape.size(); ++d) last += m.strides[d] * (m.shape[d] - 1);
  const Range at = u.range(offset(u, r));
  return at.known() && (at.hi < 0 || at.lo > last);
}

Affine without(Affine a, Var v) {
  for (size_t i = 0; i < a.terms.size(); ++i)
    if (a.terms[i].first == v) {
      a.terms.erase(a.terms.begin() + long(i));
      break;
    }
  return a;
}

bool pure(const Ref& r) {
  for (auto& c : r.index)
    if (!c.refs.empty()) return false;
  return !r.checked;
}

bool pure(const kernel::Bounds& b) {
  for (auto& c : b)
    if (!c.refs.empty()) return false;
  return true;
}

Limits limits(const std::vector<TileAxis>& axes, const std::vector<const kernel::Bounds*>& bounds,
              Var vector) {
  Limits out;
  for (auto& a : axes) out.levels.push_back({a, {}, {}, {}, {}});
  out.lanes.resize(axes.size());
  for (auto* b : bounds)
    for (auto& c : *b) {
      int deepest = -1;
      for (size_t i = 0; i < axes.size(); ++i)
        if (coefficient(c.affine, axes[i].var)) deepest = int(i);
      if (deepest < 0) {
        out.outside.push_back(c.affine);
        continue;
      }
      Level& l = out.levels[size_t(deepest)];
      const int64_t k = coefficient(c.affine, l.axis.var), across = vector >= 0 ? coefficient(c.affine, vector) : 0;
      Affine rest = without(c.affine, l.axis.var);
      if (l.axis.var != vector && across) { // a test of lanes; the loop runs while any lane may live
        out.lanes[size_t(deepest)].push_back(c.affine);
        if (across > 0) rest = rest + kernel::constant(15 * across);
      }
      if (k == 1)
        l.lower.push_back(-1 * rest); // v >= -rest
      else if (k == -1)
        l.upper.push_back(rest + kernel::constant(1)); // v < rest + 1
      else if (k > 0)
        l.lower_text.push_back("-tang_floor_div(" + text(rest) + ", " + number(k) + ")");
      else
        l.upper_text.push_back("tang_floor_div(" + text(rest) + ", " + number(-k) + ") + 1");
    }
  return out;
}

std::pair<std::string, std::string> interval(const Level& l) {
  std::string lo = "0", hi = number(l.axis.extent);
  bool limited = false;
  for (auto& a : l.lower) lo = "tang_greater(" + lo + ", " + text(a) + ")", limited = true;
  for (auto& t : l.lower_text) lo = "tang_greater(" + lo + ", " + t + ")", limited = true;
  if (limited) lo = "tang_lesser(" + lo + ", " + number(l.axis.extent) + ")";
  for (auto& a : l.upper) hi = "tang_lesser(" + hi + ", " + text(a) + ")";
  for (auto& t : l.upper_text) hi = "tang_lesser(" + hi + ", " + t + ")";
  return {lo, hi};
}

// ---- The C dialect
const Dialect& c_dialect() {
  static const Dialect d;
  return d;
}

std::string Dialect::type(Type t, bool wide) const {
  return t == Type::real ? (wide ? wide_real : real) : t == Type::boolean ? truth : integer; // bits as integers
}

std::string Dialect::literal(const Value& v, bool wide) const { return emit::literal(v, wide); }

std::string Dialect::inside(const std::string& x, int64_t extent) const {
  return cast(natural, "(" + x + ")") + " < " + number(extent);
}

std::string Dialect::wrapped(const std::string& a, const char* op, const std::string& b) const {
  return cast(integer, "(" + cast(natural, a) + op + cast(natural, b) + ")");
}

std::string Dialect::zero(Type t, bool wide) const {
  return literal({t, expr::State::present, 0.0, 0}, wide);
}

std::string Dialect::load(const Memory& m, const std::string& as, const std::string& at, bool wide) const {
  const auto& row = expr::row(m.format);
  const std::string place = this->place(as, at);
  if (m.format == Format::f32 || m.format == Format::f64)
    return m.format == (wide ? Format::f64 : Format::f32) ? place : cast(wide ? wide_real : real, place);
  if (row.type == Type::real) {
    const std::string value = std::string("tang_from_") + row.name + "(" + place + ")";
    return wide ? cast(wide_real, value) : value;
  }
  if (row.type == Type::boolean) return "(" + place + " != " + cast(element_type(m.format), "0") + ")";
  return cast(integer, place);
}

std::string Dialect::rounded(Format f, const std::string& value, bool wide) const {
  if (f == Format::f64 || (f == Format::f32 && !wide)) return value;
  if (f == Format::f32) return cast(wide_real, cast(real, value));
  const std::string name = expr::row(f).name, in = wide ? "tang_odd(" + value + ")" : value;
  const std::string out = "tang_from_" + name + "(tang_to_" + name + "(" + in + "))";
  return wide ? cast(wide_real, out) : out;
}

std::string Dialect::store(const Memory& m, const std::string& as, const std::string& at,
                           const std::string& value, bool wide) const {
  const auto& row = expr::row(m.format);
  std::string v = value;
  if (row.type == Type::real && m.format != Format::f32 && m.format != Format::f64)
    v = std::string("tang_to_") + row.name + "(" + (wide ? "tang_odd(" + v + ")" : v) + ")";
  return place(as, at) + " = " + cast(element_type(m.format), v) + ";";
}

} // namespace tang::emit
