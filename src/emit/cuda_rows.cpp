#include "tang/emit/cuda_rows.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/emit/cuda_row_text.hpp"
#include "tang/kernel/fragment.hpp"

namespace tang::emit {

using expr::Term;

namespace rows_text {
// Element e of a lane's registers: row (e >> 1) & 1 of its two, 8 apart; column (e >> 2) * 8 + pair + (e &
// 1).
const char* const row_of_element = "(e >> 1 & 1)";

struct TermSpelling {
  Op op;
  const char* text; // $0, $1, $2: operands
};

constexpr TermSpelling spellings[] = {{Op::mul, "($0 * $1)"},
                                      {Op::neg, "(-$0)"},
                                      {Op::recip, "tang_fast_recip($0)"},
                                      {Op::sqrt, "tang_sqrt1($0)"},
                                      {Op::sin, "tang_sin1($0)"},
                                      {Op::atan2, "tang_atan21($0, $1)"},
                                      {Op::log2, "tang_log21($0)"},
                                      {Op::floor, "tang_floor1($0)"},
                                      {Op::is_nan, "($0 != $0)"},
                                      {Op::ratio, "tang_ratio1($0, $1)"},
                                      {Op::less, "($0 < $1)"},
                                      {Op::equal, "($0 == $1)"},
                                      {Op::both, "($0 && $1)"},
                                      {Op::either, "($0 || $1)"},
                                      {Op::flip, "(!$0)"},
                                      {Op::div, "tang_div($0, $1)"},
                                      {Op::mod, "tang_mod($0, $1)"},
                                      {Op::bit_and, "($0 & $1)"},
                                      {Op::bit_or, "($0 | $1)"},
                                      {Op::bit_xor, "($0 ^ $1)"},
                                      {Op::select, "($0 ? $1 : $2)"}};

const char* type_name(Type t) {
  return t == Type::real ? "float" : t == Type::boolean ? "bool" : t == Type::bits ? "uint32_t" : "int";
}

bool RowText::moves(const std::vector<Coordinate>& at) const {
  for (auto& c : at) {
    if (column_ >= 0 && coefficient(c.affine, column_)) return true;
    for (auto& r : c.refs)
      if (moves(b_.refs[size_t(r.first)].index)) return true;
  }
  return false;
}

void RowText::name_coordinates(bool in_row_loop) {
  if (row_.flat >= 0) print_row(u_, row_, std::string("own + 8 * ") + (in_row_loop ? "r" : row_of_element));
  if (column_ >= 0 && !in_row_loop)
    u_.line("const int " + name(column_) + " = (e >> 2) * 8 + pair + (e & 1);");
}

std::string RowText::coordinate(const Coordinate& c, bool in_row_loop) {
  std::string s = emit::text(c.affine);
  for (auto& [r, k] : c.refs) s += " + " + number(k) + " * (int)" + element(b_.refs[size_t(r)], in_row_loop);
  return s;
}

// Where an element lies, and whether that is inside.
std::pair<std::string, std::string> RowText::address(const Ref& r, bool in_row_loop) {
  std::string at, inside;
  for (size_t d = 0; d < r.index.size(); ++d) {
    const Memory& m = u_.memory(r.memory);
    const std::string c = coordinate(r.index[d], in_row_loop), and_ = d ? " && " : "";
    at += (d ? " + " : "") + ("(int64_t)(" + c + ") * " + std::to_string(m.strides[d]));
    inside += and_ + "(uint32_t)(" + c + ") < " + std::to_string(m.shape[d]) + "u";
  }
  return {at.empty() ? "0" : at, inside};
}

// One element of a memory at this place of the statement.
std::string RowText::element(const Ref& r, bool in_row_loop) {
  const Memory& m = u_.memory(r.memory);
  const std::string as = "m" + std::to_string(r.memory);
  if (m.home == kernel::Home::fragment) {
    const kernel::FragmentShape s = kernel::fragment_shape(m);
    if (s.columns == 1) return as + "[" + (in_row_loop ? "r" : row_of_element) + "]";
    // Columns a multiple of 8 on are the same lane's; beyond the tile stands what a guard leaves out.
    const int64_t on = r.index[size_t(s.column_dim)].affine.c / 2;
    if (expr::row(m.format).bits == 16) { // two to a register
      const std::string at = on ? "((unsigned)(e + " + number(on) + ") < " + number(s.columns / 2) + "u ? e + " +
                                      number(on) + " : 0)"
                                : "e";
      return std::string(m.format == Format::f16 ? "tang_half_f16(" : "tang_half_bf16(") + as + ", " + at + ")";
    }
    if (!on) return as + "[e]";
    return as + "[(unsigned)(e + " + number(on) + ") < " + number(s.columns / 2) + "u ? e + " + number(on) + " : 0]";
  }
  if (auto it = pairs_.find(&r); it != pairs_.end()) return it->second + "[e & 1]";
  const auto [at, inside] = address(r, in_row_loop);
  const std::string load = load_element(u_, m.format, as + "[" + at + "]");
  return r.checked ? "(" + inside + " ? " + load + " : 0)" : load;
}

void RowText::prepare(const std::vector<Id>& roots) {
  std::map<Id, int> uses;
  const std::vector<Id> order = expr::schedule(p_, roots);
  for (Id id : order) {
    const Term& t = p_[id];
    bool v = t.op == Op::coord && column_ >= 0 && Var(t.whole) == column_;
    if (t.op == Op::arg) v = moves(b_.refs[size_t(t.whole)].index);
    if (t.op == Op::holds)
      for (auto& piece : b_.guards[size_t(t.whole)]) v |= moves(piece);
    for (int i = 0; i < t.arity(); ++i) v |= varies_[t.args[size_t(i)]], ++uses[t.args[size_t(i)]];
    varies_[id] = v;
  }
  for (Id id : roots) ++uses[id];
  if (column_ < 0) {
    row_loop_ = true;
    return;
  }
  auto is_column = [&](Id id) {
    return p_[id].op == Op::to_real && p_[p_[id].args[0]].op == Op::coord &&
           Var(p_[p_[id].args[0]].whole) == column_;
  };
  // k column + rest: the lane's part of the column goes to the rest, once a row.
  std::map<Id, std::pair<Id, int>> stepped; // k column: its column, and how many such sums read it
  for (Id id : order)
    for (int i = 0; p_[id].op == Op::add && p_[id].type == Type::real && i < 2; ++i) {
      const Term& m = p_[p_[id].args[size_t(i)]];
      const Id rest = p_[id].args[size_t(1 - i)];
      if (m.op != Op::mul || varies_[rest] || steps_.count(id)) continue;
      for (int c : {0, 1})
        if (const Id k = m.args[size_t(1 - c)]; is_column(m.args[size_t(c)]) && !varies_[k])
          steps_[id] = {k, rest, u_.fresh("h")},
          stepped[p_[id].args[size_t(i)]].first = m.args[size_t(c)], ++stepped[p_[id].args[size_t(i)]].second;
    }
  for (auto& [product, of] : stepped)
    if (uses[product] == of.second) --uses[of.first];
  for (Id id : order) // else every column's number is kept in a register for the whole kernel
    if (is_column(id) && uses[id] > 0)
      if (pair_.empty()) {
        pair_ = u_.fresh("pair");
        u_.line("const float " + pair_ + " = tang_fresh((float)pair);");
      }
  // Row terms that a varying term reads.
  std::vector<Id> rows;
  auto worth = [&](Id id) {
    return !varies_[id] && p_[id].op != Op::literal &&
           !(p_[id].op == Op::arg &&
             u_.memory(b_.refs[size_t(p_[id].whole)].memory).home == kernel::Home::fragment);
  };
  for (Id id : order)
    for (int i = 0; varies_[id] && i < p_[id].arity(); ++i)
      if (worth(p_[id].args[size_t(i)]) && !names_.count(p_[id].args[size_t(i)]))
        rows.push_back(p_[id].args[size_t(i)]), names_[rows.back()] = "";
  for (Id id : roots)
    if (worth(id) && !names_.count(id)) rows.push_back(id), names_[id] = "";
  if (rows.empty() && steps_.empty()) return;
  std::vector<std::string> as;
  for (auto& [id, step] : steps_) u_.line("float " + step.start + "[2];");
  for (Id id : rows) {
    names_.erase(id);
    as.push_back(u_.fresh("h"));
    u_.line(std::string(type_name(p_[id].type)) + " " + as.back() + "[2];");
  }
  u_.line("#pragma unroll");
  u_.open("for (int r = 0; r < 2; ++r)");
  name_coordinates(true);
  row_loop_ = true;
  for (size_t i = 0; i < rows.size(); ++i) u_.line(as[i] + "[r] = " + text(rows[i]) + ";");
  for (auto& [id, step] : steps_)
    u_.line(step.start + "[r] = __fmaf_rn(" + text(step.factor) + ", (float)pair, " + text(step.rest) + ");");
  row_loop_ = false;
  u_.close();
  for (size_t i = 0; i < rows.size(); ++i) names_[rows[i]] = as[i] + "[" + row_of_element + "]";
}

void RowText::name_repeated(const std::vector<Id>& roots) {
  std::map<Id, int> uses;
  const std::vector<Id> order = expr::schedule(p_, roots);
  for (Id id : order)
    for (int i = 0; i < p_[id].arity(); ++i) ++uses[p_[id].args[size_t(i)]];
  for (Id id : order) {
    const Term& t = p_[id];
    // Sums and products are left to the compiler: a name would part a multiplication from its addition.
    if (uses[id] < 2 || !t.arity() || !varies_[id] || names_.count(id)) continue;
    if (t.op == Op::add || t.op == Op::mul || t.op == Op::neg || t.op == Op::to_real) continue;
    const std::string as = u_.fresh("s");
    u_.line("const " + std::string(type_name(t.type)) + " " + as + " = " + text(id) + ";");
    names_[id] = as;
    repeated_.push_back(id);
  }
}

void RowText::forget_repeated() {
  for (Id id : repeated_) names_.erase(id);
  repeated_.clear();
}

std::string RowText::text(Id id) {
  if (auto it = names_.find(id); it != names_.end()) return it->second;
  const Term& t = p_[id];
  auto arg = [&](int i) { return text(t.args[size_t(i)]); };
  switch (t.op) {
  case Op::literal: return literal({t.type, expr::State::present, t.r, t.whole}, false);
  case Op::coord: return name(Var(t.whole));
  case Op::var: return t.whole % 2 ? "b" : "a"; // of a fold's combine
  case Op::arg: return element(b_.refs[size_t(t.whole)], row_loop_);
  case Op::holds: {
    std::string any;
    for (auto& piece : b_.guards[size_t(t.whole)]) {
      std::string all;
      for (auto& c : piece) all += (all.empty() ? "" : " && ") + ("(" + coordinate(c, row_loop_) + ") >= 0");
      any += (any.empty() ? "(" : " || (") + (all.empty() ? "true" : all) + ")";
    }
    return "(" + (any.empty() ? "false" : any) + ")";
  }
  case Op::add:
    if (auto s = steps_.find(id); s != steps_.end() && !row_loop_)
      return "__fmaf_rn(" + text(s->second.factor) + ", (float)((e >> 2) * 8 + (e & 1)), " + s->second.start +
             "[" + row_of_element + "])";
    for (int i : {0, 1})
      if (const Term& m = p_[t.args[size_t(i)]];
          t.type == Type::real && m.op == Op::mul && !names_.count(t.args[size_t(i)]))
        return "__fmaf_rn(" + text(m.args[0]) + ", " + text(m.args[1]) + ", " + arg(1 - i) + ")";
    return "(" + arg(0) + " + " + arg(1) + ")";
  case Op::to_real: // of a column: the lane's part and a number that is known when the loop is unrolled
    if (const Term& c = p_[t.args[0]]; c.op == Op::coord && column_ >= 0 && Var(c.whole) == column_)
      return "(" + pair_ + " + (float)((e >> 2) * 8 + (e & 1)))";
    return "(float)(" + arg(0) + ")";
  case Op::exp2: // the loop over e is unrolled
    if (row_loop_ || !polynomial_) return "tang_fast_exp2(" + arg(0) + ")";
    return "tang_some_exp2<" + number(polynomial_) + ">(e, " + arg(0) + ")";
  case Op::max:
  case Op::min: {
    const bool is_max = t.op == Op::max;
    if (t.type == Type::real)
      return std::string(is_max ? "tang_nan_max(" : "tang_nan_min(") + arg(0) + ", " + arg(1) + ")";
    return "(" + arg(0) + (is_max ? " > " : " < ") + arg(1) + " ? " + arg(0) + " : " + arg(1) + ")";
  }
  default:
    for (auto& s : spellings)
      if (s.op == t.op) {
        std::string out;
        for (const char* c = s.text; *c; ++c) out += *c == '$' ? arg(*++c - '0') : std::string(1, *c);
        return out;
      }
    bug(__FILE__, __LINE__, std::string("no spelling of ") + expr::row(t.op).name);
  }
}

// All of `all` at element e: the row's part is compared with the column's number, which is known when the
// loop is unrolled.
std::string RowText::bounds(const kernel::Bounds& all, const std::string& and_) {
  std::string out;
  for (auto& c : all) {
    const int64_t k = column_ >= 0 ? coefficient(c.affine, column_) : 0;
    const bool gathers_column = gathers({c});
    const std::string as = u_.fresh("g");
    u_.line("int " + as + "[2];");
    u_.line("#pragma unroll");
    u_.open("for (int r = 0; r < 2; ++r)");
    name_coordinates(true);
    Coordinate at = c, along{{}, {}}; // of the row; of the column
    if (k) at.affine = at.affine - kernel::variable(column_, k);
    if (gathers_column) std::swap(at.refs, along.refs);
    u_.line(as + "[r] = " + coordinate(at, true) + (k ? " + " + number(k) + " * pair;" : ";"));
    u_.close();
    const std::string test = as + "[" + row_of_element + "]" +
                             (gathers_column ? " + (" + coordinate(along, false) + ")" : "") + " >= " +
                             (k ? number(-k) + " * ((e >> 2) * 8 + (e & 1))" : std::string("0"));
    out += (out.empty() ? "(" : and_ + "(") + test + ")";
  }
  return out.empty() ? "true" : out;
}

bool RowText::gathers(const kernel::Bounds& all) const {
  for (auto& c : all)
    for (auto& r : c.refs)
      if (moves(b_.refs[size_t(r.first)].index)) return true;
  return false;
}

int64_t registers(const Unit& u, int memory) {
  const Memory& m = u.memory(memory);
  const kernel::FragmentShape s = kernel::fragment_shape(m);
  return s.columns == 1 ? 2 : s.columns / 2 * expr::row(m.format).bits / 32;
}

const char* pack(Format f) { return f == Format::f16 ? "tang_pack_f16" : "tang_pack_bf16"; }

// Where any piece of `partial` and all of `bounds` hold. Tests that read along the columns do not branch: each
// would wait for its read. Others skip the work of dead places (documents, head size 64, 2048 rows, H200,
// 2026-11-30: dk and dv 0.060 ms without branches, 0.098 with; dq 0.044 without, 0.037 with).
std::string tests(RowText& t, const std::vector<kernel::Bounds>& partial, const kernel::Bounds& bounds,
                  bool branches) {
  const std::string and_ = branches ? " && " : " & ", or_ = branches ? " || (" : " | (";
  std::string any, all = bounds.empty() ? "" : t.bounds(bounds, and_);
  for (auto& p : partial) any += (any.empty() ? "(" : or_) + t.bounds(p, and_) + ")";
  if (any.empty()) return all;
  return all.empty() ? any : all + and_ + "(" + any + ")";
}

// Destinations of one statement lie alike: all are packed in halves, or none is.
std::string halves(size_t destination) { return destination ? "v" + number(int64_t(destination)) : "v"; }

void print_apply(Unit& u, const kernel::Apply& a, const kernel::role::Rows& s) {
  const Var column = s.column;
  u.open("");
  RowText t(u, a.body, s.row, column, s.polynomial);
  std::vector<Id> roots = a.body.values;
  if (a.body.when) roots.push_back(*a.body.when);
  t.prepare(roots);
  const bool global = u.memory(a.dst[0].memory).home == kernel::Home::global;
  const bool branches = !t.gathers(a.bounds) && std::none_of(a.partial.begin(), a.partial.end(),
                                                             [&](auto& piece) { return t.gathers(piece); });
  std::string live = tests(t, a.partial, a.bounds, branches);
  if (a.body.when) live += (live.empty() ? "" : branches ? " && " : " & ") + t.value(*a.body.when);
  const std::string i = column >= 0 ? "e" : "r";
  int64_t n = 2;
  bool packed = false;
  if (column >= 0)
    for (auto& x : a.axes)
      if (x.var == column) n = x.extent / 2;
  if (!global) packed = column >= 0 && expr::row(u.memory(a.dst[0].memory).format).bits == 16;
  if (column < 0 && global) u.open("if ((lane & 3) == 0)");
  int loops = 0;
  if (column >= 0) {
    loops = t.open_pairs(n / 2, roots);
    for (size_t d = 0; packed && d < a.dst.size(); ++d) u.line("float " + halves(d) + "[2];");
    u.line("#pragma unroll");
    u.open("for (int e = 2 * e2; e < 2 * e2 + 2; ++e)");
  } else {
    u.line("#pragma unroll");
    u.open("for (int " + i + " = 0; " + i + " < " + number(n) + "; ++" + i + ")");
  }
  if (column < 0) u.line("[[maybe_unused]] const int e = 2 * r;");
  t.name_coordinates(column < 0);
  for (size_t d = 0; d < a.dst.size(); ++d) {
    const Memory& m = u.memory(a.dst[d].memory);
    const bool fills = d < a.fill.size() && a.fill[d] && !live.empty();
    std::string value = t.value(a.body.values[d]);
    if (fills && !branches) {
      const std::string as = "all" + number(int64_t(d));
      u.line("const float " + as + " = " + value + ";");
      value = as;
    }
    if (fills) value = "(" + live + " ? " + value + " : " + literal(*a.fill[d], false) + ")";
    std::string place = packed ? halves(d) + "[e & 1]" : "m" + std::to_string(a.dst[d].memory) + "[" + i + "]";
    std::string store = place + " = " + value + ";";
    if (global) {
      place = "m" + std::to_string(a.dst[d].memory) + "[";
      for (size_t x = 0; x < a.dst[d].index.size(); ++x)
        place += (x ? " + " : "") +
                 ("(int64_t)(" + text(a.dst[d].index[x].affine) + ") * " + std::to_string(m.strides[x]));
      store = store_element(u, m.format, place + "]", value);
    }
    u.line((live.empty() || fills ? "" : "if (" + live + ") ") + store);
  }
  u.close();
  for (size_t d = 0; packed && d < a.dst.size(); ++d)
    u.line("m" + std::to_string(a.dst[d].memory) + "[e2] = " + pack(u.memory(a.dst[d].memory).format) + "(" +
           halves(d) + "[0], " + halves(d) + "[1]);");
  for (; loops; --loops) u.close();
  if (column < 0 && global) u.close();
  u.close();
}

std::string join(Unit& u, Id combine, const std::string& a, const std::string& b) {
  const Term& t = (*u.k.pool)[combine];
  if (t.op == Op::add) return a + " + " + b;
  check(t.op == Op::max || t.op == Op::min || t.op == Op::mul, "a fold over lanes of this operation");
  return t.op == Op::mul
             ? a + " * " + b
             : std::string(t.op == Op::max ? "tang_nan_max(" : "tang_nan_min(") + a + ", " + b + ")";
}

void quad(Unit& u, Id combine, const std::string& x) { // the four lanes of a row
  for (int with : {1, 2})
    u.line(x + " = " +
           join(u, combine, x, "__shfl_xor_sync(0xffffffffu, " + x + ", " + std::to_string(with) + ")") +
           ";");
}

// A lane folds its columns of each row in chains, then joins them.
void print_fold(Unit& u, const kernel::role::Rows& x) {
  constexpr int ways = 2;
  const auto& f = std::get<kernel::Fold>(x.what.node);
  check(f.dst.size() == 1 && f.partial.empty() && f.limits.empty() && !f.body.when,
        "a fold over lanes keeps one value and has no bounds");
  const int64_t n = f.folded[0].extent / 2;
  const Id c = f.combine[0];
  u.open("");
  RowText t(u, f.body, x.row, x.column, x.polynomial);
  t.prepare(f.body.values);
  u.line("float f[" + number(2 * ways) + "];");
  u.line("#pragma unroll");
  u.open("for (int e = 0; e < " + number(n) + "; ++e)");
  t.name_coordinates(false);
  // Column c of a row joins chain c mod ways.
  u.line("const int c = (e >> 2) * 2 + (e & 1), k = c % " + number(ways) + " * 2 + " + row_of_element + ";");
  u.line("const float v = " + t.value(f.body.values[0]) + ";");
  u.line("f[k] = c < " + number(ways) + " ? v : " + join(u, c, "f[k]", "v") + ";");
  u.close();
  u.line("#pragma unroll");
  u.open("for (int r = 0; r < 2; ++r)");
  for (int w = 1; w < ways; ++w) u.line("f[r] = " + join(u, c, "f[r]", "f[" + number(2 * w) + " + r]") + ";");
  if (!x.late) quad(u, c, "f[r]");
  if (x.factor != 1) u.line("f[r] *= " + literal(expr::real(x.factor), false) + ";");
  const std::string dst = "m" + std::to_string(f.dst[0].memory) + "[r]";
  u.line(dst + " = " + (f.accumulate ? join(u, c, dst, "f[r]") : std::string("f[r]")) + ";");
  u.close();
  u.close();
}

std::vector<std::string> print_values(Unit& u, RowText& t, const kernel::role::Flush& x, int64_t from, int64_t n) {
  const auto& roots = x.what.body.values;
  const Format f = u.memory(x.what.dst[0].memory).format;
  const bool pairs = expr::row(f).bits == 16;
  std::vector<std::string> out;
  for (size_t d = 0; d < roots.size(); ++d) {
    out.push_back(u.fresh("values"));
    u.line((pairs ? "uint32_t " : "float ") + out.back() + "[" + number(n / (pairs ? 4 : 2)) + "];");
  }
  u.open("");
  int loops = t.open_pairs(n / 4, roots, from / 4);
  for (size_t d = 0; pairs && d < roots.size(); ++d) u.line("float " + halves(d) + "[2];");
  u.line("#pragma unroll");
  u.open("for (int e = 2 * e2; e < 2 * e2 + 2; ++e)");
  t.name_coordinates(false);
  t.name_repeated(roots);
  const std::string before = from ? " - " + number(from / (pairs ? 4 : 2)) : "";
  for (size_t d = 0; d < roots.size(); ++d)
    u.line((pairs ? halves(d) + "[e & 1]" : out[d] + "[e" + before + "]") + " = " + t.value(roots[d]) + ";");
  t.forget_repeated();
  u.close();
  for (size_t d = 0; pairs && d < roots.size(); ++d)
    u.line(out[d] + "[e2" + before + "] = " + pack(u.memory(x.what.dst[d].memory).format) + "(" + halves(d) +
           "[0], " + halves(d) + "[1]);");
  for (; loops; --loops) u.close();
  u.close();
  return out;
}
} // namespace rows_text

std::string declare_fragment(const Unit& u, int memory) {
  const bool halves = expr::row(u.memory(memory).format).bits == 16;
  return std::string(halves ? "uint32_t" : "float") + " m" + std::to_string(memory) + "[" +
         number(rows_text::registers(u, memory)) + "];";
}

void print_row(Unit& u, const kernel::role::RowAxes& row, const std::string& value) {
  u.line("const int " + name(row.flat) + " = " + value + ";");
  int64_t below = 1;
  for (size_t d = row.digits.size(); d-- > 0; below *= row.digits[d].extent)
    u.line("[[maybe_unused]] const int " + name(row.digits[d].var) + " = " + name(row.flat) + " / " +
           number(below) + " % " + number(row.digits[d].extent) + ";");
}

void print_rows(Unit& u, const kernel::role::Rows& x) {
  if (auto* a = std::get_if<kernel::Apply>(&x.what.node))
    rows_text::print_apply(u, *a, x);
  else
    rows_text::print_fold(u, x);
}

void print_settle(Unit& u, const kernel::role::Settle& x) {
  u.line("#pragma unroll");
  u.open("for (int r = 0; r < 2; ++r)");
  rows_text::quad(u, x.combine, "m" + std::to_string(x.memory) + "[r]");
  u.close();
}

} // namespace tang::emit
