#include "tang/expr/effort.hpp"

namespace tang::expr {

// Elementary functions are polynomials of a dozen steps; divisions and roots take a port for as long.
int effort(Op op) {
  switch (op) {
  case Op::sin: return 24;
  case Op::atan2: return 40;
  case Op::exp2:
  case Op::log2: return 14;
  case Op::recip:
  case Op::ratio:
  case Op::sqrt: return 8;
  case Op::div:
  case Op::mod: return 20;
  default: return arity(op) > 0;
  }
}

int effort(const Pool& p, Id term) {
  int out = 0;
  for (Id x : schedule(p, {term})) out += effort(p[x].op);
  return out;
}

} // namespace tang::expr
