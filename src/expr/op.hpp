// The one table of scalar operations: what each is called, what it takes and gives, and what it means.
#pragma once
#include <cstdint>

namespace tang::expr {

enum class Type : uint8_t { real, index, bits, boolean };
const char* name(Type t);

enum class Op : uint8_t {
  // Leaves. `whole` of the term says which: a monoid's operand, an axis, a read, a guard of the node.
  literal,
  var,
  coord,
  arg,
  holds,
  // real
  add,
  mul,
  neg,
  recip,
  sqrt,
  sin,
  atan2,
  exp2,
  log2,
  floor,
  max,
  min,
  is_nan,
  ratio,
  // any type
  less,
  equal,
  // boolean
  both,
  either,
  flip,
  // index and bits (add, mul, neg, max, min, less and equal serve them too)
  div,
  mod,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  // between types
  to_real,
  to_index,
  to_bits,
  // absence
  select,
  only,
  or_else,
  count_
};

enum class Gives : uint8_t { leaf, same, real, index, bits, boolean, second };   // the result's type
enum class Takes : uint8_t { none, real, number, whole, boolean, any, guarded }; // what the operands must be

struct OpRow {
  Op op;
  const char* name;
  uint8_t arity;
  Takes takes;
  Gives gives;
  bool commutative = false;
};

const OpRow& row(Op op);

inline int arity(Op op) { return row(op).arity; }

// Finds a row by its name; Op::count_ when there is none.
Op op_named(const char* name);

// Absent beats fault beats present, so strict operations may evaluate their operands in any order.
enum class State : uint8_t { present, absent, fault };

struct Value {
  Type type = Type::real;
  State state = State::present;
  double r = 0;  // real
  int64_t i = 0; // index, bits, boolean
};

inline Value real(double r) { return {Type::real, State::present, r, 0}; }

inline Value whole(int64_t i) { return {Type::index, State::present, 0, i}; }

inline Value bits(int64_t i) { return {Type::bits, State::present, 0, i}; }

inline Value truth(bool b) { return {Type::boolean, State::present, 0, b}; }

bool identical(const Value& a, const Value& b); // same type and bits (NaN equals NaN, -0 is not 0)

// What a strict operation means, on present operands; `a` carries the operand type.
Value compute(Op op, const Value& a, const Value& b);
// max and min propagate NaN (contract of the language; devices print a select).
double max_real(double a, double b);
double min_real(double a, double b);

} // namespace tang::expr
