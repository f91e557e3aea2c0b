#include <algorithm>

#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/lower/tensor_lowerer.hpp"
#include "tang/lower/tensor_price.hpp"

// Contractions of blocks of terms whose results are folded: each block is summed on the matrix unit, from 0; what
// becomes of its result is ordinary arithmetic on the fragments, so that long sums are as exact as that.
namespace tang::lower {

using expr::Type;
using kernel::Apply;

bool folds_blocks(const ir::Graph& g, const plan::Group& group, const Choice& forms) {
  if (group.members.size() != 1 || group.shared.size() != 1 || !forms.shared[0]) return false;
  const plan::Member& m = group.members[0];
  const ir::Comp& n = *g[m.node].comp();
  const Sides& s = forms.shared[0]->sides;
  std::vector<int> core = group.shared[0].axis;
  core.resize(size_t(g[group.shared[0].node].comp()->axis_count()), -1);
  const int rows = core[size_t(s.m[0])], columns = core[size_t(s.n[0])];
  auto on_grid = [&](int c) { return c >= 0 && group.role[size_t(c)] == plan::Role::grid; };
  return forms.members[0].kind == MemberForm::fold && n.lift.size() == 1 && n.monoid->commutative && on_grid(rows) &&
         on_grid(columns) && s.k.size() == 1 && core[size_t(s.k[0])] < 0 && !n.outs[0].axes.empty() &&
         m.axis[size_t(n.outs[0].axes.back())] == columns;
}

// A lane has two tiles, the fold's and the block's. While one team adds up, the others' contractions run: each
// issues in its turn.
std::vector<BlockRoles> block_roles(Product all, int64_t panels, int64_t terms, const target::Target& t) {
  constexpr int registers[][2] = {{}, {40, 232}, {24, 240}, {32, 160}};
  constexpr double reached[] = {0, 0.6, 0.73, 0.77}; // of the widest product's rate, by teams (H200, 2026-12-01)
  std::vector<BlockRoles> out;
  std::vector<int64_t> widths{128, 96, 64, 32, 16};
  const int64_t panel = all.n;
  if (panel <= widths[0] && panel % 8 == 0) widths.insert(widths.begin(), panel);
  all.n *= panels;
  for (int64_t width : widths)
    for (int math : {3, 2, 1}) {
      if (width > panel || (math > 1 && all.m <= team_rows * (math - 1))) continue;
      ProductBlock s{math, width, terms, 2, reached[math] * double(width) / 128};
      const int64_t below = (all.m + team_rows * math - 1) / (team_rows * math),
                    beside = panels * ((panel + width - 1) / width);
      for (const Apart& x : {Apart{}, Apart{1, 2, false}, Apart{1, 2, true}}) {
        if (x.cluster > 1 && (x.cluster > t.cluster || (x.beneath ? below : beside) % x.cluster)) continue;
        target::Roles r;
        r.math = math, r.turns = math > 1, r.lag = 0;
        r.producer_registers = registers[math][0], r.math_registers = registers[math][1];
        r.order = target::WorkOrder::grouped;
        r.cluster = x.cluster, r.beneath = x.beneath;
        r.stages = {std::min(8, slots(s, all.bits, t))};
        out.push_back({width, r, product_price(all, s, x, below, beside, t).seconds});
      }
    }
  std::stable_sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
  return out;
}

// What weighs a whole row of the block's result is made while the block's contraction is on its way: the terms of the
// lift that are the same along the columns, a number a row.
No TensorLowerer::add_block(const plan::Member& m) {
  const ir::Comp& n = comp(m.node);
  kernel::Pool& p = *f_.k.pool;
  if (n.domain != ir::everywhere() || expr::present(g_.pool, n.lift[0]).when != expr::yes(g_.pool))
    return "blocks of its terms are partial";
  Place at = place(n, m.axis, n.outs[0].axes);
  if (at.axes.size() != 2) return "a result has no rows and columns";
  const kernel::TileAxis row = at.axes[0], column = at.axes[1];
  std::vector<ir::Id> along, across; // the columns; the rows alone
  for (ir::Id f : expr::factors(g_.pool, n.lift[0]))
    (axes_of(g_, n, f).count(at.of[1]) ? along : across).push_back(f);
  auto statement = [&](Body& b, expr::Id value, std::vector<kernel::TileAxis> axes, Ref dst) {
    Apply a;
    a.axes = std::move(axes);
    a.body = std::move(b.out);
    a.body.values = {value};
    for (auto& r : a.body.refs)
      if (f_.k.memories[size_t(r.memory)].home == kernel::Home::global) r.checked |= !at.tails.empty();
    a.dst = {std::move(dst)};
    a.fill = {std::nullopt};
    pipe_.body.push_back({std::move(a)});
  };
  const Ref weight = across.empty() ? Ref{} : Ref{fragment("y", {row.extent}), {{kernel::variable(row.var), {}}}, false};
  if (!across.empty()) {
    Body b = f_.body(n, at, m.axis);
    statement(b, b.value(expr::product(g_.pool, across)), {row}, weight);
  }
  Body b = f_.body(n, at, m.axis);
  const Ref sum = f_.tile_ref({m.node, 0}, at);
  expr::Id term = b.value(expr::product(g_.pool, along));
  if (!across.empty()) term = p.make(expr::Op::mul, {b.leaf(weight, Type::real), term});
  const expr::Id own = b.leaf(sum, Type::real);
  statement(b, expr::transplant(g_.pool, n.monoid->combine[0], p,
                                [&](const expr::Term& t) { return t.whole % 2 ? term : own; }),
            {row, column}, sum);
  return {};
}

} // namespace tang::lower
