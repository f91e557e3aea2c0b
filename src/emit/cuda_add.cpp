#include "tang/emit/cuda_add.hpp"

#include "tang/emit/cuda_rows.hpp"

namespace tang::emit {

namespace {
// Where the digits of `number` lead, in elements. Digits are runs of bits, so that numbers without a common bit lead to
// the sum of their places.
int64_t place(const kernel::role::RowAxes& axes, const kernel::Affine& flat, int64_t number) {
  int64_t out = 0;
  for (size_t d = axes.digits.size(); d-- > 0; number /= axes.digits[d].extent)
    out += number % axes.digits[d].extent * coefficient(flat, axes.digits[d].var);
  return out;
}

// Whether all places of the numbers below `end` that have no bit of `without` are multiples of `n`.
bool aligned(const kernel::role::RowAxes& axes, const kernel::Affine& flat, int64_t end, int64_t without, int64_t n) {
  for (int64_t bit = 1; bit < end; bit *= 2)
    if (!(bit & without) && place(axes, flat, bit) % n) return false;
  return true;
}
} // namespace

// Element e of a lane is in row own + 8 (e >> 1 & 1) and column (e >> 2) 8 + pair + (e & 1): the lane's part of the
// place is a pointer, the element's a constant.
void print_add(Unit& u, const kernel::role::Add& x) {
  const kernel::Ref& to = x.what.dst[0];
  const kernel::Memory& m = u.memory(to.memory);
  kernel::Affine flat;
  for (size_t d = 0; d < to.index.size(); ++d) flat = flat + m.strides[d] * to.index[d].affine;
  kernel::Affine block = flat;
  for (auto* axes : {&x.row, &x.column})
    for (auto& digit : axes->digits) block = kernel::replaced(block, digit.var, kernel::constant(0));
  auto element = [&](int64_t e) {
    return place(x.row, flat, 8 * (e >> 1 & 1)) + place(x.column, flat, (e >> 2) * 8 + (e & 1));
  };
  const int64_t all = x.columns / 2;
  int64_t run = 4; // elements of a lane that lie next to each other
  auto lie = [&] {
    for (int64_t e = 0; e < all; ++e)
      if (element(e) != element(e / run * run) + e % run || element(e / run * run) % run) return false;
    int64_t rows = 1;
    for (auto& digit : x.row.digits) rows *= digit.extent;
    kernel::Affine rest = block;
    bool whole = rest.c % run == 0;
    for (auto& t : rest.terms) whole &= t.second % run == 0;
    return whole && aligned(x.row, flat, rows, 8, run) && aligned(x.column, flat, 8, 1, run);
  };
  while (run > 1 && !lie()) run /= 2;
  u.open("");
  print_row(u, x.row, "own");
  print_row(u, x.column, "pair");
  std::string at = "0";
  for (auto& [v, k] : flat.terms) at += " + (int64_t)" + name(v) + " * " + number(k);
  u.line("float* const to = m" + number(int64_t(to.memory)) + " + " + at + " + " + number(flat.c) + ";");
  const kernel::Body& b = x.what.body;
  const std::string from = "m" + number(int64_t(b.refs[size_t((*u.k.pool)[b.values[0]].whole)].memory));
  for (int64_t e = 0; e < all; e += run)
    u.line("tang_add" + number(run) + "(to + " + number(element(e)) + ", " + from + " + " + number(e) + ");");
  u.close();
}

} // namespace tang::emit
