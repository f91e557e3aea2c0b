// Prints scalar bodies: each term once, in the loop level where all that it reads is known, for one lane or a
// vector.
#include "tang/emit/c_body.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/number.hpp"

namespace tang::emit {

using expr::Op;
using expr::Term;

namespace {
std::string w(const Unit& u) { return u.wide ? "H" : "W"; }

std::string at_lane(const Affine& a, Var lane, const std::string& l) {
  const int64_t k = lane >= 0 && !l.empty() ? coefficient(a, lane) : 0;
  if (!k) return text(a);
  return text(a) + (k == 1 ? " + " + l : " + " + l + " * " + number(k));
}
} // namespace

const char* choice(Type t) { return t == Type::real ? "sel" : t == Type::boolean ? "selm" : "seli"; }

std::string splat(const Unit& u, Type t, const std::string& x) {
  const std::string d = u.wide ? "d" : "";
  if (t == Type::real) return "tang_" + d + "splatW(" + x + ")";
  if (t == Type::boolean) return "tang_" + d + "allW(" + x + ")";
  return u.wide ? "tang_dintsW(" + x + ")" : "tang_intsW((int32_t)tang_lesser(" + x + ", INT32_MAX))";
}

std::string at_mask(const Unit& u, const std::string& mask) {
  return (u.wide ? "tang_dat(" : "tang_at(") + mask + ", l)";
}

std::string lanes_hold(const Unit& u, const std::string& start, int64_t k) {
  if (u.wide)
    return "tang_dilessW(tang_dintsW(-1), tang_dintsW(" + start + ") + tang_diota() * " + number(k) + ")";
  return "tang_ilessW(tang_intsW(-1), tang_intsW((int32_t)tang_clamp(" + start + ")) + tang_iota() * " +
         number(k) + ")";
}

BodyText::BodyText(Unit& u, const kernel::Body* body, std::vector<Id> roots, std::vector<Var> levels,
                   Var vector)
    : u_(u), body_(body), p_(*u.k.pool), levels_(std::move(levels)), lane_(vector), roots_(std::move(roots)),
      order_(expr::schedule(p_, roots_)) {
  if (body_ && body_->when)
    for (Id id : expr::schedule(p_, {*body_->when})) condition_.insert(id);
  for (Id id : order_) {
    const Term& t = p_[id];
    int level = 0;
    bool lanes = false;
    if (t.op == Op::coord) {
      level = level_of(kernel::variable(Var(t.whole)));
      lanes = Var(t.whole) == lane_;
    } else if (t.op == Op::arg) {
      level = body_->when && !condition_.count(id) ? int(levels_.size()) : ref_level(int(t.whole));
      lanes = ref_vector(int(t.whole));
    } else if (t.op == Op::holds) {
      for (auto& b : body_->guards[size_t(t.whole)])
        for (auto& c : b) {
          level = std::max(level, level_of(c.affine));
          lanes |= lane_ >= 0 && coefficient(c.affine, lane_);
          for (auto& r : c.refs) {
            level = std::max(level, ref_level(r.first));
            lanes |= ref_vector(r.first);
          }
        }
    }
    for (int k = 0; k < t.arity(); ++k) {
      level = std::max(level, level_[t.args[size_t(k)]]);
      lanes |= vector_[t.args[size_t(k)]];
    }
    level_[id] = level;
    vector_[id] = lanes;
    if (body_ && t.op == Op::select && lanes && !vector_[t.args[0]] && level_[t.args[0]] < level &&
        p_[t.args[0]].op != Op::literal)
      masks_[t.args[0]];
    nowhere_ |= t.op == Op::literal && t.type == Type::index && t.whole == INT64_MAX;
  }
  if (body_ && !body_->when) find_usual();
}

void BodyText::name_var(int64_t leaf, std::string text, bool vector) {
  for (Id id : order_) {
    const Term& t = p_[id];
    if (t.op == Op::var && t.whole == leaf) {
      names_[id] = text;
      vector_[id] = vector;
    }
    for (int k = 0; k < t.arity(); ++k) vector_[id] = vector_[id] || vector_[t.args[size_t(k)]];
  }
}

void BodyText::fuse() {
  for (Id id : order_)
    if (const Term& t = p_[id]; t.op == Op::add && t.type == Type::real && p_[t.args[1]].op == Op::mul)
      fused_.insert(t.args[1]);
  for (Id id : order_) // read by anything else, it has a name
    for (int k = 0; k < p_[id].arity(); ++k)
      if (!(p_[id].op == Op::add && k == 1)) fused_.erase(p_[id].args[size_t(k)]);
}

int BodyText::level_of(const Affine& a) const {
  int level = 0;
  for (size_t i = 0; i < levels_.size(); ++i)
    if (coefficient(a, levels_[i])) level = int(i) + 1;
  return level;
}

int BodyText::ref_level(int r) const {
  int level = 0;
  for (auto& c : body_->refs[size_t(r)].index) {
    level = std::max(level, level_of(c.affine));
    for (auto& x : c.refs) level = std::max(level, ref_level(x.first));
  }
  return level;
}

bool BodyText::ref_vector(int r) const {
  if (lane_ < 0) return false;
  for (auto& c : body_->refs[size_t(r)].index) {
    if (coefficient(c.affine, lane_)) return true;
    for (auto& x : c.refs)
      if (ref_vector(x.first)) return true;
  }
  return false;
}

// Reads.
std::string BodyText::coordinate(const kernel::Coordinate& c, const std::string& lane) const {
  std::string s = at_lane(c.affine, lane_, lane);
  for (auto& [r, k] : c.refs) s += " + " + element(r, lane) + (k == 1 ? "" : " * " + number(k));
  return s;
}

std::string BodyText::element(int r, const std::string& lane) const {
  if (auto it = ref_text_.find(r); it != ref_text_.end()) return it->second;
  const Ref& ref = body_->refs[size_t(r)];
  const Memory& m = u_.memory(ref.memory);
  std::string at = at_lane(offset(u_, ref), lane_, lane), inside;
  for (size_t d = 0; d < ref.index.size(); ++d) {
    auto& c = ref.index[d];
    for (auto& [x, k] : c.refs) {
      const int64_t stride = k * m.strides[d];
      at += " + " + element(x, lane) + (stride == 1 ? "" : " * " + number(stride));
    }
    if (ref.checked) {
      const Range known = c.refs.empty() ? u_.range(c.affine) : Range{};
      if (known.known() && known.lo >= 0 && known.hi < m.shape[d]) continue;
      inside += (inside.empty() ? "" : " && ") + u_.d.inside(coordinate(c, lane), m.shape[d]);
    }
  }
  const std::string zero = u_.d.zero(expr::type_of(m.format), u_.wide);
  if (never_inside(u_, ref)) return zero; // tested before, or not needed
  if (inside.empty()) return u_.load(ref.memory, at);
  return u_.d.pick(inside, u_.load(ref.memory, at), zero);
}

void BodyText::declare_ref(const std::string& as, int r, const std::string& mask) {
  const Ref& ref = body_->refs[size_t(r)];
  const Memory& m = u_.memory(ref.memory);
  const Type type = expr::type_of(m.format);
  if (!ref_vector(r)) return u_.line(u_.d.constant(u_.d.type(type, u_.wide), as, element(r, "")));
  const std::string t = value_type(type, u_.wide, true);
  if (auto it = ref_text_.find(r); it != ref_text_.end()) return u_.line("const " + t + " " + as + " = " + it->second + ";");
  const Affine at = offset(u_, ref);
  bool scatters = false; // a gathered coordinate differs from lane to lane
  std::string gathered;
  for (size_t d = 0; d < ref.index.size(); ++d)
    for (auto& [x, k] : ref.index[d].refs) {
      scatters |= ref_vector(x);
      gathered += " + " + element(x, "") + " * " + number(k * m.strides[d]);
    }
  const bool whole = !scatters && coefficient(at, lane_) == 1 && has_vector_access(u_, m.format);
  const std::string pointer =
      "m" + std::to_string(ref.memory) + " + " + text(at) + (scatters ? "" : gathered);
  if (whole && !ref.checked && mask.empty())
    return u_.line("const " + t + " " + as + " = " + load_vector(u_, m.format, pointer) + ";");
  if (whole && !ref.checked && (u_.wide || m.format == Format::f32))
    return u_.line("const " + t + " " + as + " = " + fn(u_, "load_masked", true) + "(" + pointer + ", " +
                   mask + ");");
  const bool boolean = type == Type::boolean; // read as integers, then a mask
  if (boolean && !u_.wide && !scatters && coefficient(at, lane_) == 1 && !ref.checked && mask.empty())
    return u_.line("const " + t + " " + as + " = tang_load_boolW(" + pointer + ");");
  const std::string into = boolean ? as + "_ints" : as,
                    one = boolean ? "-(" + element(r, "l") + ")" : element(r, "l");
  const std::string lanes = "for (int l = 0; l < " + w(u_) + "; ++l) " + into +
                            "[l] = " + (mask.empty() ? one : at_mask(u_, mask) + " ? " + one + " : 0") + ";";
  if (whole && mask.empty()) { // checked: one test for all lanes
    std::string inside;
    for (size_t d = 0; d < ref.index.size(); ++d) {
      const bool moves = coefficient(ref.index[d].affine, lane_) != 0;
      for (auto& l :
           moves ? std::vector<std::string>{"(0)", "(" + w(u_) + " - 1)"} : std::vector<std::string>{""})
        inside += (inside.empty() ? "" : " && ") + u_.d.inside(coordinate(ref.index[d], l), m.shape[d]);
    }
    u_.line(t + " " + as + ";");
    u_.line("if (" + inside + ") " + as + " = " + load_vector(u_, m.format, pointer) + ";");
    return u_.line("else " + lanes);
  }
  u_.line((boolean ? u_.wide ? "L" : "I" : t) + " " + into + ";");
  u_.line(lanes);
  if (boolean)
    u_.line("const " + t + " " + as + " = " + (u_.wide ? "tang_dmask_of(" : "tang_mask_of(") + into + ");");
}

std::string BodyText::guard(int g, bool vector) const {
  std::string any;
  for (auto& b : body_->guards[size_t(g)]) {
    std::string all;
    for (auto& c : b) {
      const int64_t k = vector ? coefficient(c.affine, lane_) : 0;
      std::string one;
      if (k) {
        one = lanes_hold(u_, coordinate(c, ""), k); // what it reads is one value for all lanes (refused else)
      } else {
        one = "(" + coordinate(c, "") + " >= 0)";
        if (vector) one = splat(u_, Type::boolean, one);
      }
      all += (all.empty() ? "" : u_.d.both) + one;
    }
    if (all.empty()) all = vector ? splat(u_, Type::boolean, "1") : u_.d.yes;
    any += (any.empty() ? "(" : u_.d.either + "(") + all + ")";
  }
  return any.empty() ? (vector ? splat(u_, Type::boolean, "0") : u_.d.no) : "(" + any + ")";
}

// Terms.
std::string BodyText::value(Id id, bool as_vector) {
  id = settled(id);
  const Term& t = p_[id];
  std::string s = t.op == Op::literal ? u_.d.literal({t.type, expr::State::present, t.r, t.whole}, u_.wide)
                                      : names_.at(id);
  return as_vector && !vector_.at(id) ? splat(u_, t.type, s) : s;
}

std::string BodyText::expression(Id id) {
  const Term& t = p_[id];
  const bool v = vector_.at(id);
  if (t.op == Op::coord) {
    if (!v) return name(Var(t.whole));
    return u_.wide ? "tang_dintsW(" + name(lane_) + ") + tang_diota()"
                   : "tang_intsW((int32_t)" + name(lane_) + ") + tang_iota()";
  }
  if (t.op == Op::holds) return guard(int(t.whole), v);
  auto in = [&](size_t k) { return value(t.args[k], v); };
  if (t.op == Op::add && fused_.count(t.args[1])) {
    const Term& m = p_[t.args[1]];
    return fn(u_, "fma", v) + "(" + value(m.args[0], v) + ", " + value(m.args[1], v) + ", " + in(0) + ")";
  }
  const Type of = p_[t.args[0]].type;
  const std::string a = in(0), b = t.arity() > 1 ? in(1) : "";
  auto call = [&](const std::string& stem) {
    return fn(u_, stem, v) + "(" + a + (b.empty() ? "" : ", " + b) + ")";
  };
  auto wrap = [&](const char* op) { // integers wrap around
    return v ? "(" + a + op + b + ")" : u_.d.wrapped(a, op, b);
  };
  const bool real = of == Type::real;
  switch (t.op) {
  case Op::add: {
    if (!real) return wrap(" + ");
    if (p_[t.args[1]].op == Op::neg) return "(" + a + " - " + value(p_[t.args[1]].args[0], v) + ")";
    return "(" + a + " + " + b + ")";
  }
  case Op::mul:
    if (!real) return wrap(" * ");
    // A reciprocal that is known further out is evaluated there, once.
    for (size_t k : {1, 0})
      if (const Term& x = p_[t.args[k]]; x.op == Op::recip && level_.at(t.args[k]) == level_.at(id))
        return "(" + (k ? a : b) + " / " + value(x.args[0], v) + ")";
    return "(" + a + " * " + b + ")";
  case Op::neg: return real || v ? "(-" + a + ")" : u_.d.wrapped(u_.d.zero(Type::index, false), " - ", a);
  case Op::recip: return "(1 / " + a + ")";
  case Op::sqrt: return call("sqrt");
  case Op::sin: return call("sin");
  case Op::atan2: return call("atan2");
  case Op::exp2: return call("exp2");
  case Op::log2: return call("log2");
  case Op::floor: return call("floor");
  case Op::ratio: return call("ratio");
  case Op::is_nan:
    return v ? fn(u_, "not", true) + "(" + fn(u_, "equal", true) + "(" + a + ", " + a + "))" : u_.d.is_nan(a);
  case Op::max:
  case Op::min: {
    const bool max = t.op == Op::max;
    if (real) return call(max ? "max" : "min");
    if (v)
      return fn(u_, "seli", true) + "(" + fn(u_, "iless", true) + "(" + a + ", " + b + "), " +
             (max ? b + ", " + a : a + ", " + b) + ")";
    return std::string(max ? "tang_greater(" : "tang_lesser(") + a + ", " + b + ")";
  }
  case Op::less:
    return v ? fn(u_, real ? "less" : "iless", true) + "(" + a + ", " + b + ")" : "(" + a + " < " + b + ")";
  case Op::equal:
    if (!v) return "(" + a + " == " + b + ")";
    return fn(u_, real ? "equal" : of == Type::boolean ? "same" : "iequal", true) + "(" + a + ", " + b + ")";
  case Op::both: return "(" + a + u_.d.both + b + ")";
  case Op::either: {
    const Term &x = p_[t.args[0]], &y = p_[t.args[1]];
    const Term &l = x.op == Op::less ? x : y, &e = x.op == Op::less ? y : x;
    const bool same = (l.args[0] == e.args[0] && l.args[1] == e.args[1]) ||
                      (l.args[0] == e.args[1] && l.args[1] == e.args[0]);
    if (!v && l.op == Op::less && e.op == Op::equal && same)
      return "(" + value(l.args[0], false) + " <= " + value(l.args[1], false) + ")";
    return "(" + a + u_.d.either + b + ")";
  }
  case Op::flip: return v ? fn(u_, "not", true) + "(" + a + ")" : "(!" + a + ")";
  case Op::div: return "tang_div(" + a + ", " + b + ")";
  case Op::mod: return "tang_mod(" + a + ", " + b + ")";
  case Op::bit_and: return "(" + a + " & " + b + ")";
  case Op::bit_or: return "(" + a + " | " + b + ")";
  case Op::bit_xor: return "(" + a + " ^ " + b + ")";
  case Op::shift_left: return "tang_shl(" + a + ", " + b + ")";
  case Op::shift_right: return (t.type == Type::index ? "tang_shr(" : "tang_shru(") + a + ", " + b + ")";
  case Op::to_real:
    if (real) return a;
    if (of == Type::boolean && v)
      return fn(u_, "sel", true) + "(" + a + ", " + splat(u_, Type::real, "1") + ", " +
             splat(u_, Type::real, "0") + ")";
    return v ? std::string("__builtin_convertvector(") + a + (u_.wide ? ", D)" : ", F)")
             : u_.d.cast(u_.d.type(Type::real, u_.wide), a);
  case Op::to_index:
  case Op::to_bits:
    if (real) return "tang_trunc(" + a + ")";
    return of == Type::boolean && v ? fn(u_, "seli", true) + "(" + a + ", " + splat(u_, Type::index, "1") +
                                          ", " + splat(u_, Type::index, "0") + ")"
           : of == Type::boolean ? u_.d.cast(u_.d.integer, a)
                                 : a;
  case Op::select: {
    const std::string c = in(2);
    if (!v) return u_.d.pick(a, b, c);
    // One condition for all lanes: known outside the loop it is a mask, else a test.
    if (auto m = masks_.find(t.args[0]); m != masks_.end() && !m->second.empty())
      return fn(u_, choice(t.type), true) + "(" + m->second + ", " + b + ", " + c + ")";
    if (!vector_.at(t.args[0])) return "(" + value(t.args[0], false) + " ? " + b + " : " + c + ")";
    return fn(u_, choice(t.type), true) + "(" + a + ", " + b + ", " + c + ")";
  }
  default:
    bug(__FILE__, __LINE__,
        std::string("the C target has no ") + row(t.op).name + "; absence is lowered to `when`");
  }
}

bool BodyText::is_declared_at(Id id, int level) const {
  return level_.at(id) == level && p_[id].op != Op::literal && p_[id].op != Op::var && !fused_.count(id) &&
         !idle_.count(id);
}

void BodyText::declare_one(size_t n, const std::string& mask) {
  const Id id = order_[n];
  const Term& t = p_[id];
  const std::string as = name_of(n);
  if (t.op == Op::arg) {
    declare_ref(as, int(t.whole), vector_.at(id) ? mask : "");
  } else {
    const std::string e = expression(id);
    u_.line(vector_.at(id) ? "const " + value_type(t.type, u_.wide, true) + " " + as + " = " + e + ";"
                           : u_.d.constant(u_.d.type(t.type, u_.wide), as, e));
  }
  names_[id] = as;
  if (auto m = masks_.find(id); m != masks_.end()) {
    m->second = as + "m";
    u_.line("const " + value_type(Type::boolean, u_.wide, true) + " " + m->second + " = " +
            splat(u_, Type::boolean, as) + ";");
  }
}

void BodyText::declare(int level, const std::string& mask, Part part) {
  for (size_t n = 0; n < order_.size(); ++n) {
    const Id id = order_[n];
    if (!is_declared_at(id, level) || (part != both && condition_.count(id) != (part == condition))) continue;
    declare_one(n, mask);
  }
}

void BodyText::declare_together(const std::vector<BodyText*>& copies, int level) {
  BodyText& one = *copies[0];
  for (size_t n = 0; n < one.order_.size(); ++n) {
    const Id id = one.order_[n];
    if (!one.is_declared_at(id, level)) continue;
    const bool rare = one.p_[id].op == Op::exp2 && one.vector_.at(id) && !one.u_.wide && copies.size() == 2;
    if (!rare) {
      for (auto* c : copies) c->declare_one(n, "");
      continue;
    }
    std::string of[2];
    for (size_t c = 0; c < 2; ++c) {
      of[c] = copies[c]->value(one.p_[id].args[0], true);
      copies[c]->names_[id] = copies[c]->name_of(n);
      one.u_.line("F " + copies[c]->names_[id] + " = tang_exp2_quickW(" + of[c] + ");");
    }
    one.u_.open("if (__builtin_expect(tang_far_of_2W(" + of[0] + ", " + of[1] + "), 0))");
    for (size_t c = 0; c < 2; ++c) one.u_.line(copies[c]->names_[id] + " = tang_exp2_farW(" + of[c] + ");");
    one.u_.close();
  }
}

// What fits lanes.
std::optional<std::string> BodyText::refuses_lanes(const std::map<int64_t, Range>& vars) {
  constexpr int64_t steep = int64_t(1) << 25; // of a guard's coefficient
  bool narrow_load = false;
  auto fits = [](const Range& r) { return r.known() && r.lo >= INT32_MIN && r.hi <= INT32_MAX; };
  for (Id id : order_) {
    const Term& t = p_[id];
    Range& r = ranges_[id];
    auto in = [&](size_t k) { return ranges_.at(t.args[k]); };
    if (t.op == Op::literal && t.type == Type::index) {
      r = t.whole == INT64_MAX && !u_.wide ? Range{INT32_MAX, INT32_MAX} : Range{t.whole, t.whole};
      continue;
    }
    if (t.type == Type::index) r = kernel::term_range(p_, t, in);
    if (t.op == Op::coord) r = u_.ranges[size_t(t.whole)];
    if (t.op == Op::var && t.type == Type::index && vars.count(t.whole)) r = vars.at(t.whole);
    if (t.op == Op::arg && t.type == Type::index)
      r = kernel::format_range(u_.memory(body_->refs[size_t(t.whole)].memory).format);
    if (!vector_.at(id)) continue;
    if (t.type == Type::bits) return "bits in lanes";
    if (t.op == Op::arg) narrow_load |= t.type == Type::index && ranges_[id].hi == INT32_MAX;
    if (t.op == Op::div || t.op == Op::mod || t.op == Op::bit_and || t.op == Op::bit_or ||
        t.op == Op::bit_xor || t.op == Op::shift_left || t.op == Op::shift_right)
      return "integer operations in lanes";
    if (t.op == Op::to_index && p_[t.args[0]].type == Type::real) return "a truncation in lanes";
    if (t.type == Type::index && !u_.wide && !fits(r)) return "an index beyond 32 bits";
    if (t.op == Op::to_real && p_[t.args[0]].type == Type::index && !u_.wide && in(0).hi >= INT32_MAX)
      return "an index beyond 32 bits";
    if (t.op == Op::holds)
      for (auto& b : body_->guards[size_t(t.whole)])
        for (auto& c : b) {
          for (auto& x : c.refs)
            if (ref_vector(x.first)) return "a gathered guard";
          if (std::abs(coefficient(c.affine, lane_)) > steep) return "a guard with a large coefficient";
        }
  }
  if (nowhere_ && narrow_load) return "32-bit indices beside INT64_MAX";
  return std::nullopt;
}

std::string gathered_offset(const Unit& u, const kernel::Body& b, const Ref& ref) {
  std::string out;
  const Memory& m = u.memory(ref.memory);
  for (size_t d = 0; d < ref.index.size(); ++d)
    for (auto& [r, k] : ref.index[d].refs) {
      const Ref& from = b.refs[size_t(r)];
      const std::string at = text(offset(u, from)) + gathered_offset(u, b, from);
      out += " + " + u.load(from.memory, at) + " * " + number(k * m.strides[d]);
    }
  return out;
}

std::string bound(const Unit& u, const kernel::Body& b, const kernel::Coordinate& c) {
  std::string out = text(c.affine);
  for (auto& [r, k] : c.refs) {
    const Ref& from = b.refs[size_t(r)];
    const std::string at = text(offset(u, from)) + gathered_offset(u, b, from);
    out += " + " + u.load(from.memory, at) + " * " + number(k);
  }
  return out;
}

std::string conjunction(const Unit& u, const kernel::Body& b, const kernel::Bounds& all) {
  std::string out;
  for (auto& c : all) out += (out.empty() ? "" : " && ") + bound(u, b, c) + " >= 0";
  return out.empty() ? u.d.yes : out;
}

// Writes.
void print_store(Unit& u, const Ref& dst, const std::string& value, Type type, bool vector, Var lane,
                 const std::string& mask, bool nowhere, bool stream, const std::string& gathered) {
  const Memory& m = u.memory(dst.memory);
  check(expr::type_of(m.format) == type, "a value of another type than its memory " + m.name);
  check(!dst.checked && (!vector || pure(dst)), "a destination that is checked, or gathered in lanes");
  const Affine at = offset(u, dst);
  const std::string base = "m" + std::to_string(dst.memory);
  if (!vector) return u.line(u.store(dst.memory, text(at) + gathered, value));
  if (coefficient(at, lane) == 1 && has_vector_access(u, m.format)) {
    const std::string pointer = base + " + " + text(at);
    if (stream && mask.empty() && m.format == Format::f32 && !u.wide) {
      u.streams = true;
      return u.line("tang_stream(" + pointer + ", " + value + ");");
    }
    if (mask.empty()) return u.line(store_vector(u, m.format, pointer, value));
    if (u.wide || m.format == Format::f32)
      return u.line(fn(u, "store_masked", true) + "(" + pointer + ", " + mask + ", " + value + ");");
  }
  std::string one = "v[l]";
  if (type == Type::boolean) one = "(" + at_mask(u, "v") + " != 0)";
  if (type == Type::index && nowhere && !u.wide) one = "(v[l] == INT32_MAX ? INT64_MAX : v[l])";
  u.line("{ const " + value_type(type, u.wide, true) + " v = " + value + ";");
  u.line("for (int l = 0; l < " + w(u) + "; ++l) " + (mask.empty() ? "" : "if (" + at_mask(u, mask) + ") ") +
         store_element(u, m.format, base + "[" + at_lane(at, lane, "l") + "]", one) + " }");
}

} // namespace tang::emit
