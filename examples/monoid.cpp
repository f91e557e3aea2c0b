// A fold of your own: the largest value and how often it occurs. The compiler treats it as it treats a sum.
#include <cstdio>
#include <limits>
#include <tang.hpp>

using namespace tang;

int main() {
  MonoidSpec tallest{"tallest",
                     {expr::real(-std::numeric_limits<double>::infinity()), expr::real(0)},
                     [](expr::Pool& p, const auto& a, const auto& b) -> std::vector<expr::E> {
                       const expr::E top = max(a[0], b[0]), none = expr::lit(p, 0);
                       return {top, select(a[0] == top, a[1], none) + select(b[0] == top, b[1], none)};
                     }};
  Builder b;
  Tensor x = b.input("x", {2, 4});
  auto [row, i] = axes<"row i">();
  b.output(map({row}, fold(tallest, i, {x(row, i), 1})[1]), "count");
  auto got = eval::run(b.graph(), {{"x", eval::reals({2, 4}, {3, 1, 3, 3, 0, 5, 2, 5})}});
  std::printf("%g %g\n", got["count"].r[0], got["count"].r[1]);
}
