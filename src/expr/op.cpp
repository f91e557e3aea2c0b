#include "tang/expr/op.hpp"

#include <cmath>
#include <cstring>

#include "tang/base/error.hpp"
#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"

namespace tang::expr {

namespace {
// clang-format off
constexpr OpRow operations[] = {
    {Op::literal,     "literal",     0, Takes::none,    Gives::leaf},
    {Op::var,         "var",         0, Takes::none,    Gives::leaf},
    {Op::coord,       "coord",       0, Takes::none,    Gives::leaf},
    {Op::arg,         "arg",         0, Takes::none,    Gives::leaf},
    {Op::holds,       "holds",       0, Takes::none,    Gives::leaf},
    {Op::add,         "add",         2, Takes::number,  Gives::same, true},
    {Op::mul,         "mul",         2, Takes::number,  Gives::same, true},
    {Op::neg,         "neg",         1, Takes::number,  Gives::same},
    {Op::recip,       "recip",       1, Takes::real,    Gives::real},
    {Op::sqrt,        "sqrt",        1, Takes::real,    Gives::real},
    {Op::sin,         "sin",         1, Takes::real,    Gives::real},
    {Op::atan2,       "atan2",       2, Takes::real,    Gives::real},
    {Op::exp2,        "exp2",        1, Takes::real,    Gives::real},
    {Op::log2,        "log2",        1, Takes::real,    Gives::real},
    {Op::floor,       "floor",       1, Takes::real,    Gives::real},
    {Op::max,         "max",         2, Takes::number,  Gives::same, true},
    {Op::min,         "min",         2, Takes::number,  Gives::same, true},
    {Op::is_nan,      "is_nan",      1, Takes::real,    Gives::boolean},
    {Op::ratio,       "ratio",       2, Takes::real,    Gives::real},
    {Op::less,        "less",        2, Takes::number,  Gives::boolean},
    {Op::equal,       "equal",       2, Takes::any,     Gives::boolean, true},
    {Op::both,        "and",         2, Takes::boolean, Gives::boolean, true},
    {Op::either,      "or",          2, Takes::boolean, Gives::boolean, true},
    {Op::flip,        "not",         1, Takes::boolean, Gives::boolean},
    {Op::div,         "div",         2, Takes::whole,   Gives::same},
    {Op::mod,         "mod",         2, Takes::whole,   Gives::same},
    {Op::bit_and,     "bit_and",     2, Takes::whole,   Gives::same, true},
    {Op::bit_or,      "bit_or",      2, Takes::whole,   Gives::same, true},
    {Op::bit_xor,     "bit_xor",     2, Takes::whole,   Gives::same, true},
    {Op::shift_left,  "shift_left",  2, Takes::whole,   Gives::same},
    {Op::shift_right, "shift_right", 2, Takes::whole,   Gives::same},
    {Op::to_real,     "real",        1, Takes::any,     Gives::real},
    {Op::to_index,    "index",       1, Takes::any,     Gives::index},
    {Op::to_bits,     "bits",        1, Takes::any,     Gives::bits},
    {Op::select,      "select",      3, Takes::guarded, Gives::second},
    {Op::only,        "only",        2, Takes::guarded, Gives::second},
    {Op::or_else,     "or_else",     2, Takes::any,     Gives::same},
};
// clang-format on
static_assert(sizeof operations / sizeof *operations == size_t(Op::count_));

int64_t shifted(int64_t a, int64_t n, bool left, Type type) {
  if (n < 0 || n > 63) return !left && type == Type::index && a < 0 ? -1 : 0;
  if (left) return int64_t(uint64_t(a) << n);
  return type == Type::index ? a >> n : int64_t(uint64_t(a) >> n);
}

// Saturates, so that no input makes the conversion undefined; NaN gives 0.
int64_t truncated(double r) {
  if (std::isnan(r)) return 0;
  if (r >= 9223372036854775808.0) return INT64_MAX;
  if (r <= -9223372036854775808.0) return INT64_MIN;
  return int64_t(r);
}

Value compute_real(Op op, double a, double b) {
  switch (op) {
  case Op::add: return real(a + b);
  case Op::mul: return real(a * b);
  case Op::neg: return real(-a);
  case Op::recip: return real(1 / a);
  case Op::sqrt: return real(std::sqrt(a));
  case Op::sin: return real(std::sin(a));
  case Op::atan2: return real(std::atan2(a, b));
  case Op::exp2: return real(std::exp2(a));
  case Op::log2: return real(std::log2(a));
  case Op::floor: return real(std::floor(a));
  case Op::max: return real(max_real(a, b));
  case Op::min: return real(min_real(a, b));
  case Op::is_nan: return truth(std::isnan(a));
  case Op::ratio: return real(b == 0 ? 0 : a / b);
  case Op::less: return truth(a < b);
  case Op::equal: return truth(a == b);
  case Op::to_real: return real(a);
  case Op::to_index: return whole(truncated(a));
  case Op::to_bits: return bits(truncated(a));
  default: bug(__FILE__, __LINE__, std::string("no real meaning for ") + row(op).name);
  }
}

Value compute_whole(Op op, Type type, int64_t a, int64_t b) {
  auto same = [&](int64_t i) { return Value{type, State::present, 0, i}; };
  switch (op) {
  case Op::add: return same(int64_t(uint64_t(a) + uint64_t(b)));
  case Op::mul: return same(int64_t(uint64_t(a) * uint64_t(b)));
  case Op::neg: return same(int64_t(-uint64_t(a)));
  case Op::max: return same(a > b ? a : b);
  case Op::min: return same(a < b ? a : b);
  case Op::less: return truth(a < b);
  case Op::equal: return truth(a == b);
  case Op::both: return truth(a && b);
  case Op::either: return truth(a || b);
  case Op::flip: return truth(!a);
  case Op::div: return same(b > 0 ? floor_div(a, b) : 0);
  case Op::mod: return same(b > 0 ? floor_mod(a, b) : 0);
  case Op::bit_and: return same(a & b);
  case Op::bit_or: return same(a | b);
  case Op::bit_xor: return same(a ^ b);
  case Op::shift_left: return same(shifted(a, b, true, type));
  case Op::shift_right: return same(shifted(a, b, false, type));
  case Op::to_real: return real(double(a));
  case Op::to_index: return whole(a);
  case Op::to_bits: return bits(a);
  default: bug(__FILE__, __LINE__, std::string("no integer meaning for ") + row(op).name);
  }
}
} // namespace

const char* name(Type t) {
  static constexpr const char* names[] = {"real", "index", "bits", "bool"};
  return names[size_t(t)];
}

const OpRow& row(Op op) { return operations[size_t(op)]; }

Op op_named(const char* name) {
  for (auto& r : operations)
    if (!std::strcmp(r.name, name)) return r.op;
  return Op::count_;
}

double max_real(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? b : a; }

double min_real(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : b < a ? b : a; }

bool identical(const Value& a, const Value& b) {
  return a.type == b.type && a.state == b.state &&
         (bits_of(a.r) == bits_of(b.r) || (std::isnan(a.r) && std::isnan(b.r))) && a.i == b.i;
}

Value compute(Op op, const Value& a, const Value& b) {
  return a.type == Type::real ? compute_real(op, a.r, b.r) : compute_whole(op, a.type, a.i, b.i);
}

} // namespace tang::expr
