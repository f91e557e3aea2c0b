// Terms as text that parses back to the same term, operation by operation.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"
#include "tang/text/print.hpp"
#include "tang/text/syntax.hpp"

namespace tang::text {

using namespace ir;
using expr::Term;

namespace {
// Binding strength; the grammar's levels.
enum Level {
  lowest,
  either,
  both,
  flip,
  compared,
  bit_or,
  bit_xor,
  bit_and,
  shift,
  sum,
  product,
  prefix,
  atom
};

constexpr uint32_t most_nested = 14;
constexpr int64_t most_whole = int64_t(1) << 53;

struct Infix {
  Op op;
  const char* mark;
  Level level;
};

constexpr Infix infixes[] = {
    {Op::either, " or ", either},     {Op::both, " and ", both},     {Op::bit_or, " | ", bit_or},
    {Op::bit_xor, " ^ ", bit_xor},    {Op::bit_and, " & ", bit_and}, {Op::shift_left, " << ", shift},
    {Op::shift_right, " >> ", shift}, {Op::div, " / ", product},     {Op::mod, " % ", product}};

const char* call_name(Op op) {
  switch (op) {
  case Op::both: return "both";
  case Op::either: return "either";
  case Op::flip: return "flip";
  case Op::to_real: return "to_real";
  case Op::to_index: return "to_index";
  case Op::to_bits: return "to_bits";
  default: return expr::row(op).name;
  }
}
} // namespace

bool is_placeholder(const std::string& n) {
  return n.size() > 1 && (n[0] == 'i' || n[0] == 't') &&
         n.find_first_not_of("0123456789", 1) == std::string::npos;
}

std::string quoted(const std::string& n) {
  static const char* hex = "0123456789abcdef";
  std::string out = "\"";
  for (char c : n) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (u < 0x20 || u >= 0x7f)
      out += "\\x", out += hex[u >> 4], out += hex[u & 15];
    else
      out += c;
  }
  return out + "\"";
}

std::string Spelling::name(const std::string& n) const {
  const bool plain =
      is_identifier(n) && !is_reserved(n) && !is_contextual(n) && !is_placeholder(n) && n != "a" && n != "b";
  return plain ? n : quoted(n);
}

std::string Spelling::symbol(const std::string& n) const {
  if (!is_identifier(n)) return "$" + quoted(n);
  const bool plain = !is_reserved(n) && !is_contextual(n) && !is_placeholder(n) && !tensors.count(n);
  return plain ? n : "$" + n;
}

std::string Spelling::extent(const Extent& e) const {
  return e.text([&](const std::string& n) { return symbol(n); });
}

void TermPrinter::prepare(const std::vector<Id>& roots, const std::function<bool(const Term&)>& is_long) {
  std::unordered_map<Id, int> uses;
  std::unordered_map<Id, uint32_t> depth; // nested parts down to the next name
  const std::vector<Id> order = expr::schedule(pool, roots);
  for (Id x : order)
    for (int k = 0; k < pool[x].arity(); ++k) ++uses[pool[x].args[size_t(k)]];
  for (Id r : roots) ++uses[r];
  for (Id x : order) {
    const Term& t = pool[x];
    uint32_t d = 0;
    for (int k = 0; k < t.arity(); ++k) d = std::max(d, depth[t.args[size_t(k)]]);
    depth[x] = d + 1;
    const bool shared = uses[x] > 1 && (t.arity() ? true : is_long(t));
    const bool deep = t.arity() && d + 1 >= most_nested;
    if (!shared && !deep) continue;
    int level = lowest;
    const std::string s = spelled(x, level);
    const std::string name = "t" + std::to_string(first_let + lets.size());
    lets.push_back(name + " = " + s);
    named.emplace(x, name);
    depth[x] = 0;
  }
}

std::string TermPrinter::with_lets(const std::string& body) const {
  if (lets.empty()) return body;
  std::string out = "let ";
  for (size_t k = 0; k < lets.size(); ++k) out += (k ? ", " : "") + lets[k];
  return out + " in " + body;
}

std::string TermPrinter::literal(const Term& t, bool typed) {
  if (t.type == Type::boolean) return t.whole ? "true" : "false";
  if (t.type == Type::real) {
    if (std::isnan(t.r) && bits_of(t.r) != 0x7ff8000000000000u)
      return "real_bits(" + std::to_string(bits_of(t.r)) + "u)";
    if (t.r == std::floor(t.r) && std::fabs(t.r) < 1e15)
      return (std::signbit(t.r) ? "-" : "") + std::to_string(int64_t(std::fabs(t.r)));
    return shortest(t.r);
  }
  if (t.type == Type::bits) {
    if (!typed && t.whole >= 0 && t.whole <= most_whole) return std::to_string(t.whole);
    return std::to_string(uint64_t(t.whole)) + "u";
  }
  if (t.whole == INT64_MAX) return "MAX";
  if (!typed && t.whole <= most_whole && t.whole >= -most_whole) return std::to_string(t.whole);
  return std::to_string(t.whole) + "i";
}

// An operand next to a sibling: a plain number takes the sibling's type, so a literal may be plain.
std::string TermPrinter::operand(Id id, Id sibling, int level) {
  const Term &t = pool[id], &s = pool[sibling];
  if (t.op == Op::literal && !named.count(id)) {
    const std::string out = literal(t, s.op == Op::literal || s.type != t.type);
    return out[0] == '-' && level > prefix ? "(" + out + ")" : out;
  }
  return term(id, level);
}

std::string TermPrinter::term(Id id, int level) {
  if (auto it = named.find(id); it != named.end()) return it->second;
  int own = atom;
  const std::string s = spelled(id, own);
  return own < level ? "(" + s + ")" : s;
}

std::string TermPrinter::spelled(Id id, int& level) {
  const Term& t = pool[id];
  level = atom;
  if (t.op == Op::literal) {
    const std::string s = literal(t, true);
    if (s[0] == '-') level = prefix;
    return s;
  }
  if (!t.arity()) {
    if (t.op == Op::coord) level = prefix;
    return leaf(t);
  }
  const Id a = t.args[0], b = t.arity() > 1 ? t.args[1] : a;
  auto is = [&](Id x, Op op) { return pool[x].op == op && !named.count(x); };
  auto literal_at = [&](Id x) { return pool[x].op == Op::literal; };
  const bool literals = literal_at(a) && literal_at(b);
  if (t.arity() == 2 && !literals) {
    if (t.op == Op::add) {
      level = sum;
      // x - y is x + neg(y), and x - 3 is x + -3
      auto minus = [&](Id x, Id y) { return operand(x, y, sum) + " - " + term(pool[y].args[0], product); };
      auto negative = [&](Id y) {
        return literal_at(y) && !named.count(y) &&
               (pool[y].type == Type::real
                    ? std::signbit(pool[y].r) && !std::isnan(pool[y].r)
                    : pool[y].type == Type::index && pool[y].whole < 0 && pool[y].whole >= -most_whole);
      };
      auto subtract = [&](Id x, Id y) {
        return operand(x, y, sum) + " - " + operand(y, x, lowest).substr(1);
      };
      if (is(b, Op::neg) && !literal_at(pool[b].args[0])) return minus(a, b);
      if (is(a, Op::neg) && !literal_at(pool[a].args[0])) return minus(b, a);
      if (negative(b)) return subtract(a, b);
      if (negative(a)) return subtract(b, a);
      return operand(a, b, sum) + " + " + operand(b, a, product);
    }
    if (t.op == Op::mul) {
      level = product;
      auto divide = [&](Id x, Id y) {
        return operand(x, y, product) + " / " + term(pool[y].args[0], prefix);
      };
      if (is(b, Op::recip) && !literal_at(pool[b].args[0])) return divide(a, b);
      if (is(a, Op::recip) && !literal_at(pool[a].args[0])) return divide(b, a);
      return operand(a, b, product) + " * " + operand(b, a, prefix);
    }
    const bool whole = pool[a].type == Type::index; // index comparisons would read as bounds
    if ((t.op == Op::less || t.op == Op::equal) && !whole) {
      level = compared;
      return operand(a, b, bit_or) + (t.op == Op::less ? " < " : " == ") + operand(b, a, bit_or);
    }
    for (auto& i : infixes)
      if (i.op == t.op) {
        level = i.level;
        return operand(a, b, i.level) + i.mark + operand(b, a, i.level + 1);
      }
  }
  if (t.op == Op::neg && !literal_at(a)) {
    level = prefix;
    return "-" + term(a, prefix);
  }
  if (t.op == Op::flip && !literal_at(a)) {
    level = flip;
    return "not " + term(a, flip);
  }
  const bool converts =
      (t.op == Op::to_real || t.op == Op::to_index || t.op == Op::to_bits) && pool[a].type != t.type;
  std::string out = converts ? expr::row(t.op).name : call_name(t.op);
  const int first = expr::row(t.op).takes == expr::Takes::guarded ? 1 : 0;
  for (int k = 0; k < t.arity(); ++k) {
    const Id x = t.args[size_t(k)];
    Id sibling = x; // itself: a literal then keeps its type
    for (int j = first; j < t.arity() && k >= first; ++j)
      if (j != k && !literal_at(t.args[size_t(j)])) sibling = t.args[size_t(j)];
    out += (k ? ", " : "(") + operand(x, sibling, lowest);
  }
  return out + ")";
}

} // namespace tang::text
