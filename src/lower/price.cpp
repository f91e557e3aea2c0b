#include "tang/lower/price.hpp"

#include "tang/base/number.hpp"

namespace tang::lower {

using ir::Comp;
using plan::axes_of;

namespace {
constexpr double copy_cost = 0.4, transpose_cost = 1.5; // cycles an element, with and without neighbours next to each other

// Elements that a read moves by, one axis of the node after the other.
std::vector<int64_t> strides(const ir::Graph& g, const Comp& n, const ir::Arg& a) {
  std::vector<int64_t> out(size_t(n.axis_count()), 0);
  const auto shape = g.shape(a.from);
  int64_t below = 1;
  for (size_t d = a.view.size(); d-- > 0; below *= std::max<int64_t>(1, shape[d].value()))
    for (auto& [x, k] : a.view[d].axes) out[size_t(x)] += k * below;
  return out;
}

double size(const Comp& n, const std::vector<int>& axes) {
  double s = 1;
  for (int a : axes) s *= double(n.extent(a).value());
  return s;
}

// A bound of the domain that names one of these axes.
bool bounded(const Comp& n, const std::vector<int>& axes) {
  for (auto& piece : n.domain)
    for (auto& f : piece)
      for (int a : axes_of(n, f))
        if (std::find(axes.begin(), axes.end(), a) != axes.end()) return true;
  return false;
}

double laid_out(double elements, const std::optional<int64_t>& stride) {
  return elements * (stride == 1 ? copy_cost : transpose_cost);
}
} // namespace

std::optional<int64_t> stride_of(const ir::Graph& g, const Comp& n, const Contraction& c, const std::vector<int>& factors,
                                 int axis) {
  if (factors.size() != 1 || factors[0] < 0) return {};
  const expr::Term& t = g.pool[c.factors[size_t(factors[0])]];
  if (t.op != expr::Op::arg) return {};
  const ir::Arg& a = n.args[size_t(t.whole)];
  for (auto& f : a.view)
    if (!f.args.empty()) return {};
  return std::abs(strides(g, n, a)[size_t(axis)]);
}

int vector_axis(const ir::Graph& g, const Comp& n) {
  std::vector<int64_t> score(size_t(n.axis_count()), 0);
  for (auto& a : n.args) {
    if (a.view.empty()) continue;
    int64_t volume = 1;
    for (auto& e : g.shape(a.from)) volume *= e.value();
    const std::vector<int64_t> moves = strides(g, n, a);
    for (size_t x = 0; x < moves.size(); ++x) score[x] += moves[x] == 1 ? volume : moves[x] ? -volume : 0;
  }
  for (auto& o : n.outs)
    if (o.view.empty() && !o.axes.empty()) {
      int64_t volume = 1;
      for (int a : o.axes) volume *= n.points[size_t(a)].value();
      score[size_t(o.axes.back())] += volume;
    }
  int best = -1;
  for (int a = n.axis_count(); a-- > 0;)
    if (n.extent(a).value() > 1 && (best < 0 || score[size_t(a)] > score[size_t(best)])) best = a;
  return best;
}

bool reads_rows_in_place(double panels, double size, int64_t apart) {
  return size <= double(16 << 10) || (panels <= 4 && apart == 1);
}

double price(const ir::Graph& g, const Comp& n, size_t component, const Contraction& c, int64_t rows, int64_t columns,
             int64_t lanes) {
  const double m = size(n, c.sides.m) * size(n, c.outer_m), wide = size(n, c.outer_n), k = size(n, c.sides.k);
  const int64_t one = n.extent(c.sides.m[0]).value(), panels = ceil_div(n.extent(c.sides.n[0]).value(), columns);
  const double padded = wide * double(panels * columns);
  std::vector<int> of_rows = c.sides.m, of_columns = c.sides.n;
  of_rows.insert(of_rows.end(), c.outer_m.begin(), c.outer_m.end());
  of_columns.insert(of_columns.end(), c.outer_n.begin(), c.outer_n.end());
  const auto a = stride_of(g, n, c, c.sides.a, c.sides.m[0]), b = stride_of(g, n, c, c.sides.b, c.sides.n[0]);
  const auto terms = stride_of(g, n, c, c.sides.a, c.sides.k.back());
  const bool a_lies = a && !bounded(n, of_rows) && reads_rows_in_place(wide * double(panels), m * k, terms.value_or(0));
  const bool b_lies = b == 1 && !bounded(n, of_columns) && one <= rows;
  double cycles = padded * k / double(2 * lanes) * (a_lies ? m : m / double(one) * double(ceil_div(one, rows) * rows));
  if (!a_lies) cycles += laid_out(m * k, a);
  if (!b_lies) cycles += laid_out(padded * k, b);
  if (n.outs[component].axes.back() != c.sides.n[0]) cycles += m * padded;
  return cycles;
}

} // namespace tang::lower
