#include "tang/lower/few_rows.hpp"

#include <algorithm>
#include <set>

#include "tang/base/number.hpp"
#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/kernel/products.hpp"
#include "tang/lower/lower.hpp"
#include "tang/lower/tensor_choice.hpp"
#include "tang/plan/keyed.hpp"

namespace tang::lower {

namespace {
using ir::Comp;

constexpr int64_t least_rows_at_once = 4, most_rows_at_once = 48; // rows: fewer are folded one by one, more are for warpgroups
constexpr int64_t least_columns = 8;
constexpr double kept_near = 32e6; // bytes that the shared cache keeps

struct ProductAxes {
  int rows = -1, columns = -1, terms = -1; // axes of a node: the side with fewer elements is the rows'
};

class FewRows {
public:
  FewRows(ir::Graph& g, const plan::Plan& p, const plan::Group& group) : g_(g), p_(p), group_(group) {}

  // Of one sum; nothing where it is no product of two stored arrays, each with an axis of its own.
  std::optional<ProductAxes> sides(const Comp& n, size_t component) const {
    const expr::Present lift = expr::present(g_.pool, n.lift[component]);
    const std::vector<ir::Id> factors = expr::factors(g_.pool, lift.value);
    if (lift.when != expr::yes(g_.pool) || n.domain != ir::everywhere() || factors.size() != 2) return {};
    std::set<int> axes[2];
    for (int i : {0, 1}) {
      const expr::Term& t = g_.pool[factors[size_t(i)]];
      if (t.op != expr::Op::arg) return {};
      const ir::Arg& a = n.args[size_t(t.whole)];
      for (auto& v : a.view)
        if (!v.is_affine()) return {};
      if (!stored(a.from) || expr::row(format_of(p_, a.from)).bits != 16) return {};
      axes[i] = plan::axes_of(g_, n, factors[size_t(i)]);
    }
    ProductAxes out;
    for (int a = 0; a < n.axis_count(); ++a) {
      const int64_t e = n.extent(a).value();
      const bool first = axes[0].count(a), second = axes[1].count(a);
      if (e == 1 || (size_t(a) < n.points.size() && first && second)) continue;
      if (first && second && out.terms < 0) out.terms = a;
      else if (first != second && out.rows < 0) out.rows = a;
      else if (first != second && out.columns < 0 && first != bool(axes[0].count(out.rows))) out.columns = a;
      else return {};
    }
    if (out.rows < 0 || out.columns < 0 || out.terms < 0) return {};
    if (n.extent(out.columns).value() < n.extent(out.rows).value()) std::swap(out.rows, out.columns);
    return out;
  }

  bool stored(ir::Port port) const {
    for (auto& m : group_.members)
      if (m.node == port.node) return false;
    return g_[port.node].input() || p_.buffer(port);
  }

private:
  ir::Graph& g_;
  const plan::Plan& p_;
  const plan::Group& group_;
};

struct FewColumns {
  int64_t count = 0;
  double seconds = 0;
};

// `sums` products of `rows` x `terms` with `columns` x `terms`: which of `some` columns a workgroup has. `batch`: of all that.
FewColumns columns_of(int64_t rows, int64_t columns, int64_t terms, int64_t sums, int64_t batch, const std::vector<int64_t>& some,
                      const target::Target& t) {
  FewColumns best;
  for (int64_t c : some) {
    if (columns % c) continue;
    const kernel::Share s = kernel::share_of({rows, c, terms, sums, batch * (columns / c)}, t);
    if (s.parts && (!best.count || s.seconds < best.seconds)) best = {c, s.seconds};
  }
  const double bytes = 2 * double(batch) * double(terms) * double(rows + sums * columns);
  if (bytes > kept_near && t.memory_rate > 0) best.seconds += (bytes - kept_near) / t.memory_rate;
  return best;
}

// What the rule for warpgroups expects of its best.
std::optional<double> seconds_of_roles(ir::Graph& g, const plan::Plan& p, const plan::Group& group, const schedule::Schedule& s,
                                       const target::Target& t) {
  if (!t.blocks()) return {};
  const auto all = tensor_choices(g, p, group, choose(g, group, s, t, true), s, t);
  if (!all || all->empty()) return {};
  return all->front().seconds;
}
} // namespace

std::optional<PricedChoice> few_rows(ir::Graph& g, const plan::Plan& p, const plan::Group& group, const schedule::Schedule& s,
                                     const target::Target& t) {
  if (!t.small_matrices || !group.shared.empty() || group.members.empty()) return {};
  PricedChoice c;
  const FewRows few(g, p, group);
  int rows = -1, columns = -1;
  std::optional<int64_t> told;
  int64_t terms = 0, sums = 0;
  for (auto& m : group.members) {
    const Comp& n = *g[m.node].comp();
    const schedule::GroupFields* fields = schedule::fields_of(s, g, m.node);
    if (fields && (fields->roles || fields->accumulate)) return {};
    if (!n.monoid) return {};
    const auto& absorb = ir::absorbing(g, *n.monoid);
    if (!absorb || !absorb->base.empty() || absorb->added.size() != n.lift.size()) return {};
    MemberForm f;
    f.kind = MemberForm::fold;
    for (size_t x = 0; x < n.lift.size(); ++x) {
      const auto sides = few.sides(n, x);
      if (!sides) return {};
      const int r = m.axis[size_t(sides->rows)], col = m.axis[size_t(sides->columns)];
      if (r < 0 || col < 0 || (rows >= 0 && (r != rows || col != columns))) return {};
      rows = r, columns = col, f.vector = sides->terms;
      terms = n.extent(sides->terms).value(), ++sums;
    }
    if (fields)
      if (const auto x = fields->tile.find(columns); x != fields->tile.end()) told = x->second;
    c.members.push_back(f);
  }
  for (auto& e : group.epilogues) {
    if (g[e.node].comp()->monoid) return {};
    c.epilogues.emplace_back();
  }
  if (group.extent[size_t(columns)] % least_columns) std::swap(rows, columns);
  const int64_t m = group.extent[size_t(rows)], n = group.extent[size_t(columns)];
  if (m < least_rows_at_once || m > most_rows_at_once || group.role[size_t(rows)] != plan::Role::grid || group.role[size_t(columns)] != plan::Role::grid) return {};
  int64_t batch = 1;
  c.lanes = t.lanes;
  for (size_t a = 0; a < group.extent.size(); ++a) {
    const bool grid = group.role[a] == plan::Role::grid;
    c.tile.push_back(grid ? 1 : std::max<int64_t>(1, group.extent[a]));
    if (grid && int(a) != rows && int(a) != columns) batch *= group.extent[a];
  }
  c.tile[size_t(rows)] = m;
  const bool as_told = told && *told >= least_columns && *told % least_columns == 0 && n % *told == 0;
  const FewColumns best = columns_of(m, n, terms, sums, batch, as_told ? std::vector<int64_t>{*told} : std::vector<int64_t>{8, 16, 32, 64}, t);
  if (!as_told)
    if (const auto roles = seconds_of_roles(g, p, group, s, t); !best.count || (roles && *roles < best.seconds)) return {};
  c.tile[size_t(columns)] = as_told ? *told : best.count;
  c.seconds = best.count ? best.seconds : 0;
  for (size_t a = 0; a < c.tile.size(); ++a) c.text += (a ? "x" : "tile ") + std::to_string(c.tile[a]);
  return c;
}

} // namespace tang::lower
