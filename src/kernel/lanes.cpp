#include "tang/kernel/lanes.hpp"

#include <cmath>

namespace tang::kernel {

using expr::Op;
using expr::Type;

namespace {
template <class F> void real1(const Reg& a, Reg& d, int n, F f) {
  for (int l = 0; l < n; ++l) d.r[l] = f(a.r[l]);
}

template <class F> void real2(const Reg& a, const Reg& b, Reg& d, int n, F f) {
  for (int l = 0; l < n; ++l) d.r[l] = f(a.r[l], b.r[l]);
}

template <class F> void whole2(const Reg& a, const Reg& b, Reg& d, int n, F f) {
  for (int l = 0; l < n; ++l) d.i[l] = f(a.i[l], b.i[l]);
}

// The common ones without a call per lane; the table of meanings serves the rest.
bool fast(const Instr& in, const Reg& a, const Reg& b, Reg& d, int n) {
  if (in.in == Type::real) switch (in.op) {
    case Op::add: real2(a, b, d, n, [](double x, double y) { return x + y; }); return true;
    case Op::mul: real2(a, b, d, n, [](double x, double y) { return x * y; }); return true;
    case Op::neg: real1(a, d, n, [](double x) { return -x; }); return true;
    case Op::recip: real1(a, d, n, [](double x) { return 1 / x; }); return true;
    case Op::sqrt: real1(a, d, n, [](double x) { return std::sqrt(x); }); return true;
    case Op::exp2: real1(a, d, n, [](double x) { return std::exp2(x); }); return true;
    case Op::max: real2(a, b, d, n, expr::max_real); return true;
    case Op::min: real2(a, b, d, n, expr::min_real); return true;
    case Op::less:
      for (int l = 0; l < n; ++l) d.i[l] = a.r[l] < b.r[l];
      return true;
    default: return false;
    }
  switch (in.op) {
  case Op::both: whole2(a, b, d, n, [](int64_t x, int64_t y) { return int64_t(x && y); }); return true;
  case Op::less: whole2(a, b, d, n, [](int64_t x, int64_t y) { return int64_t(x < y); }); return true;
  case Op::equal: whole2(a, b, d, n, [](int64_t x, int64_t y) { return int64_t(x == y); }); return true;
  default: return false;
  }
}
} // namespace

void compute(const Instr& in, std::vector<Reg>& regs, int n, expr::Format round) {
  Reg& d = regs[size_t(in.dst)];
  const Reg &a = regs[size_t(in.a)], &b = regs[size_t(in.b >= 0 ? in.b : in.a)];
  if (in.op == Op::select) {
    const Reg& c = regs[size_t(in.c)];
    for (int l = 0; l < n; ++l) {
      const Reg& v = a.i[l] ? b : c;
      d.r[l] = v.r[l];
      d.i[l] = v.i[l];
    }
    return;
  }
  if (!fast(in, a, b, d, n))
    for (int l = 0; l < n; ++l) {
      const expr::Value v = expr::compute(in.op, {in.in, expr::State::present, a.r[l], a.i[l]},
                                          {in.in, expr::State::present, b.r[l], b.i[l]});
      d.r[l] = v.r;
      d.i[l] = v.i;
    }
  if (in.out != Type::real || round == expr::Format::f64) return;
  if (round == expr::Format::f32)
    for (int l = 0; l < n; ++l) d.r[l] = double(float(d.r[l]));
  else
    for (int l = 0; l < n; ++l) d.r[l] = expr::rounded(d.r[l], round);
}

} // namespace tang::kernel
