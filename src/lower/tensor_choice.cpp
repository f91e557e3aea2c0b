#include "tang/lower/tensor_choice.hpp"

#include <algorithm>
#include <functional>

#include "tang/kernel/row_terms.hpp"
#include "tang/lower/frame.hpp"
#include "tang/lower/tensor_subgroups.hpp"

namespace tang::lower {

namespace {
using target::Persist;
using target::Roles;
using target::WorkOrder;

constexpr int64_t shared_cache = int64_t(32) << 20; // bytes of operands that workgroups of one section share
constexpr int64_t long_loop = 8192; // blocks are so many that a wider one beats a second slot

struct TensorChooser {
  const ir::Graph& g;
  const plan::Plan& p;
  const plan::Group& group;
  const Choice& forms;
  const target::Target& t;
  TensorChoice base = {};
  int columns = -1;             // core axis of a plain contraction's columns
  int64_t depth = 0, width = 0; // terms of the first contraction, columns of the last
  std::vector<TensorChoice> out = {};

  const ir::Comp& comp(ir::NodeId id) const { return *g[id].comp(); }
  int core_of(const std::vector<int>& core, int axis) const {
    return size_t(axis) < core.size() ? core[size_t(axis)] : -1;
  }

  int64_t extent(int core) const { return group.extent[size_t(core)]; }
  int64_t blocks(int core, int64_t tile) const { return (extent(core) + tile - 1) / tile; }
  bool weighs() const { return forms.members[0].absorb.base.empty() && !group.shared.empty() && !base.blocks; }

  // A sum of products and nothing else: no base, no subterm of its own.
  bool product() const { return forms.members[0].absorb.base.empty() && group.shared.empty(); }

  // The looped axis whose terms lie next to each other in both operands, or -1.
  int terms_that_lie() const {
    const plan::Member& m = group.members[0];
    for (auto& [c, x] : forms.members[0].contractions)
      for (int k : x.sides.k) {
        bool lies = true;
        for (int f : {x.sides.a[0], x.sides.b[0]})
          if (const ir::Arg* a = read_of(x, f))
            lies &= !a->view.empty() && a->view.back().axis(k) == 1;
          else
            lies = false;
        if (lies) return core_of(m.axis, k);
      }
    return -1;
  }

  // What a factor of the first member reads, where it is one plain read.
  const ir::Arg* read_of(const Contraction& x, int factor) const {
    if (factor < 0) return nullptr;
    const expr::Term& t = g.pool[stored_value(g.pool, x.factors[size_t(factor)])];
    return t.op == expr::Op::arg ? &comp(group.members[0].node).args[size_t(t.whole)] : nullptr;
  }

  std::optional<std::string> looped() {
    std::vector<int> all;
    for (size_t a = 0; a < group.extent.size(); ++a) {
      if (!extent(int(a))) return "it is empty";
      if (group.role[a] == plan::Role::looped && extent(int(a)) > 1) all.push_back(int(a));
    }
    if (all.empty()) return "it has no loop";
    base.loop = all[0];
    if (all.size() == 1) return {};
    if (base.blocks) { // in their order: each step is a block
      base.loop = all.back(), all.pop_back(), base.outer = all;
      return {};
    }
    // Of several the one that the block's contractions have as columns, or the terms that lie next to each
    // other, or the widest; the others go around it.
    if (weighs() && forms.shared[0])
      base.loop = core_of(group.shared[0].axis, forms.shared[0]->sides.n[0]);
    else
      base.loop = product() ? terms_that_lie() : -1;
    if (base.loop < 0 && product())
      for (int a : all)
        if (base.loop < 0 || extent(a) >= extent(base.loop)) base.loop = a;
    if (base.loop < 0) return "it loops over several axes";
    for (int a : all)
      if (a != base.loop) base.outer.push_back(a);
    return base.outer.size() + 1 == all.size() ? std::optional<std::string>() : "it loops over several axes";
  }

  // A sum of weights at few private points, each decided by a key: numbers a row.
  std::optional<std::string> keyed() {
    if (group.members.size() != 1 || !base.outer.empty()) return "a sum by key is alone in its kernel";
    const auto& x = forms.shared[0];
    const int rows = x ? core_of(group.shared[0].axis, x->sides.m[0]) : -1;
    if (rows < 0 || group.role[size_t(rows)] != plan::Role::grid) return "the rows of a sum by key are no grid axis";
    base.rows = rows;
    return {};
  }

  std::optional<std::string> member(const plan::Member& m, const MemberForm& form) {
    if (weighs() && few_keys(g, m)) return keyed();
    if (form.kind != MemberForm::chunked || form.contractions.empty()) return "its result is no contraction";
    if (weighs() && (form.contractions.size() != 1 || comp(m.node).lift.size() != 1))
      return "a result is more than one contraction";
    for (auto& [c, x] : form.contractions) {
      const int rows = core_of(m.axis, x.sides.m[0]);
      if (rows < 0 || group.role[size_t(rows)] != plan::Role::grid || (base.rows >= 0 && rows != base.rows))
        return "its contractions have different rows";
      base.rows = rows;
      bool blocked = false;
      for (int k : x.sides.k) {
        const int core = core_of(m.axis, k);
        blocked |= core == base.loop;
        if (core != base.loop && std::find(base.outer.begin(), base.outer.end(), core) == base.outer.end())
          return "a contraction does not fold the looped axis";
      }
      const auto folded =
          std::count_if(base.outer.begin(), base.outer.end(), [&](int a) { return extent(a) > 1; });
      if (!blocked || x.sides.k.size() != size_t(folded) + 1)
        return "a contraction does not fold the looped axis";
      if (product()) base.row_axes = several_rows(m, x);
      columns = core_of(m.axis, x.sides.n[0]);
      width = std::max(width, comp(m.node).extent(x.sides.n[0]).value());
    }
    return {};
  }

  // Rows of several axes go in the order in which the rows' operand lies, one axis a dimension.
  // Otherwise one of them has a block of rows.
  std::vector<int> several_rows(const plan::Member& m, const Contraction& x) const {
    const ir::Arg* a = x.sides.a.size() == 1 ? read_of(x, x.sides.a[0]) : nullptr;
    if (!a || x.outer_m.empty()) return {};
    std::vector<int> rows = x.outer_m, out;
    rows.push_back(x.sides.m[0]);
    for (auto& v : a->view) {
      int here = 0;
      for (int r : rows)
        if (v.axis(r)) ++here, out.push_back(core_of(m.axis, r));
      if (here > 1) return {};
    }
    for (int r : out)
      if (r < 0 || group.role[size_t(r)] != plan::Role::grid) return {};
    return out.size() == rows.size() ? out : std::vector<int>();
  }

  // Elements of each axis of rows in a block: powers of two, the fewest blocks, then the longest runs.
  std::vector<int64_t> row_tiles(int64_t rows) const {
    if (base.row_axes.empty()) return {rows};
    std::vector<int64_t> best, now(base.row_axes.size(), 1);
    auto total = [&](const std::vector<int64_t>& t) {
      int64_t n = 1;
      for (size_t i = 0; i < t.size(); ++i) n *= blocks(base.row_axes[i], t[i]);
      return n;
    };
    std::function<void(size_t, int64_t)> deal = [&](size_t i, int64_t left) { // axis i and slower ones
      if (i == 0) {
        now[0] = left;
        if (best.empty() || total(now) < total(best)) best = now;
        return;
      }
      for (int64_t t = left; t >= 1; t /= 2)
        if (left % t == 0) now[i] = t, deal(i - 1, left / t);
    };
    deal(now.size() - 1, rows);
    return best;
  }

  int64_t row_blocks(int64_t rows) const {
    if (base.row_axes.empty()) return blocks(base.rows, rows);
    const std::vector<int64_t> t = row_tiles(rows);
    int64_t n = 1;
    for (size_t i = 0; i < t.size(); ++i) n *= blocks(base.row_axes[i], t[i]);
    return n;
  }

  bool is_row(int core) const {
    return core == base.rows || std::count(base.row_axes.begin(), base.row_axes.end(), core);
  }

  std::optional<std::string> structure() {
    base.blocks = folds_blocks(g, group, forms);
    if (group.members.size() != 1 && !weighs()) return "it computes several results";
    if (const auto why = looped()) return why;
    if (base.blocks) {
      const Contraction& c = *forms.shared[0];
      base.rows = core_of(group.shared[0].axis, c.sides.m[0]);
      columns = core_of(group.shared[0].axis, c.sides.n[0]);
      return operand_format(comp(group.shared[0].node), c);
    }
    for (size_t i = 0; i < group.members.size(); ++i)
      if (const auto why = member(group.members[i], forms.members[i])) return why;
    const plan::Member& m = group.members[0];
    const MemberForm& form = forms.members[0];
    for (size_t i = 0; i < group.shared.size(); ++i) {
      const auto& x = forms.shared[i];
      const auto& core = group.shared[i].axis;
      if (!x) return "a shared subterm is no contraction";
      if (core_of(core, x->sides.m[0]) != base.rows || core_of(core, x->sides.n[0]) != base.loop ||
          x->sides.k.size() != 1 || core_of(core, x->sides.k[0]) >= 0)
        return "a shared contraction has other rows or columns";
      depth = std::max(depth, comp(group.shared[i].node).extent(x->sides.k[0]).value());
    }
    const bool has_base = !form.absorb.base.empty();
    if (has_base && group.shared.empty()) return "its weights are computed some other way";
    if (weighs() && columns >= 0) return "its columns are on the grid";
    if (group.shared.empty() && (columns < 0 || columns == base.rows))
      return "its columns are not on the grid";
    if (!group.shared.empty() && (width > 256 || depth > 256))
      return "a contraction has more than 256 private columns";
    const ir::Comp& n = comp(group.shared.empty() ? m.node : group.shared[0].node);
    return operand_format(n, group.shared.empty() ? form.contractions.begin()->second : *forms.shared[0]);
  }

  std::optional<std::string> operand_format(const ir::Comp& n, const Contraction& c) {
    for (int f : c.sides.b) {
      const expr::Term& term = g.pool[stored_value(g.pool, c.factors[size_t(f)])];
      if (term.op == expr::Op::arg) {
        const ir::Port from = n.args[size_t(term.whole)].from;
        if (g[from.node].input() || p.buffer(from)) base.format = format_of(p, from);
      }
    }
    return {};
  }

  void add(int64_t rows, int64_t loop, int64_t column_tile, const Roles& r) {
    TensorChoice c = base;
    c.tile.assign(group.extent.size(), 1);
    c.tile[size_t(base.rows)] = rows, c.tile[size_t(base.loop)] = loop;
    const std::vector<int64_t> tiles = row_tiles(rows);
    for (size_t i = 0; i < base.row_axes.size(); ++i) c.tile[size_t(base.row_axes[i])] = tiles[i];
    if (columns >= 0) c.tile[size_t(columns)] = column_tile;
    c.roles = r;
    c.text = text_of(r, columns >= 0, column_tile, loop);
    out.push_back(std::move(c));
  }

  // Blocks of rows of several axes first, then of one axis: not every operand can be addressed in the first
  // way.
  void products() {
    plain();
    if (base.row_axes.empty()) return;
    base.row_axes.clear();
    plain();
  }

  Product shape() const {
    Product all;
    all.n = extent(columns), all.k = extent(base.loop), all.sums = 0, all.bits = expr::row(base.format).bits;
    for (auto& form : forms.members) all.sums += int64_t(form.contractions.size());
    for (int a : base.outer) all.around *= extent(a);
    for (size_t a = 0; a < group.extent.size(); ++a) {
      if (group.role[a] != plan::Role::grid || int(a) == columns) continue;
      (is_row(int(a)) ? all.m : all.batch) *= group.extent[a];
    }
    return all;
  }

  // Blocks of one sum: waves of workgroups, each as slow as its arithmetic or its bytes from the shared
  // cache; everything at least as slow as memory; parts of a loop are joined.
  void plain() {
    for (auto& s : t.subgroup_blocks ? subgroup_products(shape(), t, [&](int64_t rows) { return row_blocks(rows); })
                                     : std::vector<SubgroupBlock>())
      add(s.roles.rows(), s.loop, s.columns, s.roles), out.back().seconds = s.seconds;
    if (t.subgroup_blocks) return;
    struct Candidate {
      double seconds;
      ProductBlock s;
      Apart apart;
      bool uneven; // its last blocks read less, and reads are what it waits for
    };

    const Product all = shape();
    const int64_t m = all.m, n = all.n, k = all.k, sums = all.sums, around = all.around;
    const double narrower = double(all.bits) / 16; // a box is 128 bytes of terms
    std::vector<Candidate> order;
    for (ProductBlock s : {ProductBlock{2, 256, 64, 4, 1.0}, ProductBlock{2, 192, 64, 4, 0.97}, ProductBlock{2, 128, 64, 6, 0.93},
                    ProductBlock{2, 64, 128, 4, 0.9}, ProductBlock{1, 256, 64, 4, 0.96}, ProductBlock{1, 192, 64, 6, 0.93}, ProductBlock{1, 128, 128, 4, 0.9},
                    ProductBlock{1, 96, 128, 5, 0.87}, ProductBlock{1, 64, 128, 6, 0.73}, ProductBlock{1, 32, 128, 8, 0.5},
                    ProductBlock{3, 64, 64, 5, 0.9}, ProductBlock{4, 64, 64, 4, 0.93}, ProductBlock{3, 256, 64, 3, 0.9},
                    ProductBlock{3, 192, 64, 3, 0.88}}) {
      // Narrow results: the more rows, the less often the columns; four teams where loops read rows again.
      if (s.math > 2 && s.columns == 64 && (n > 64 || (s.math > 3 && base.outer.empty()))) continue;
      if (s.math > 2 && s.columns > 64 && !base.row_axes.empty()) continue; // boxes are powers of two
      // Several stored maps of the result hold what they read of other arrays beside it.
      if (s.columns * sums > (stored_maps() > 1 ? 192 : 256)) continue;
      s.loop = int64_t(double(s.loop) / narrower);
      if (sums > 1) s.loop = std::min(s.loop, int64_t(64 / narrower)); // shorter slots, and more of them
      if (s.loop >= 2 * k && double(s.loop) > 64 / narrower) s.loop /= 2, s.stages *= 2; // no slots of nothing
      const int64_t rows = team_rows * s.math, steps = around * ((k + s.loop - 1) / s.loop);
      const int64_t below = row_blocks(rows), beside = blocks(columns, s.columns);
      const int64_t most_split = around > 1 || sums > 1 || !base.outer.empty() ? 1 : 16;
      auto consider = [&](const Apart& x) {
        const ProductPrice p = product_price(all, s, x, below, beside, t);
        const double full = double(m * n) / double(rows * s.columns * below * beside);
        const bool whole = x.split == 1 && x.cluster == 1;
        order.push_back({p.seconds, s, x, whole && p.waves > 3 && full < 0.96 && p.reads});
      };
      for (int split = 1; split <= most_split && split * 2 <= std::max<int64_t>(2, steps); ++split) {
        const int64_t part = (steps + split - 1) / split;
        if ((steps + part - 1) / part != split) continue;
        consider({split, 1, false});
        if (split > 1 && split <= t.cluster) consider({split, split, false});
      }
      if (sums > 1 || !base.outer.empty() || !base.row_axes.empty() || t.cluster < 2) continue;
      if (beside % 2 == 0 && m >= rows) consider({1, 2, false});
      if (below % 2 == 0 && n >= s.columns) consider({1, 2, true});
    }
    std::stable_sort(order.begin(), order.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
    for (auto& c : order) {
      Roles r;
      r.math = c.s.math;
      r.stages.assign(size_t(sums), sums == 1 ? c.s.stages : slots({c.s.math, c.s.columns * sums, c.s.loop, 0, 1}, all.bits, t));
      r.order = WorkOrder::grouped;
      r.split = c.apart.split, r.cluster = c.apart.cluster, r.beneath = c.apart.beneath;
      if (c.uneven) r.persist = Persist::dynamic;
      constexpr int registers[][2] = {{}, {40, 232}, {24, 240}, {32, 160}, {32, 112}};
      r.producer_registers = registers[r.math][0], r.math_registers = registers[r.math][1];
      add(team_rows * r.math, c.s.loop, c.s.columns, r);
      out.back().seconds = c.seconds;
    }
  }

  int64_t stored_maps() const {
    return std::count_if(group.epilogues.begin(), group.epilogues.end(),
                         [&](const plan::Epilogue& e) { return p.buffer({e.node, 0}) != nullptr; });
  }

  // Blocks of rows have loops of different lengths: longer ones for later rows (1), earlier ones (-1), or
  // both.
  std::optional<int> tied() const {
    const plan::Member& m = group.members[0];
    std::optional<int> out;
    for (auto& piece : comp(m.node).domain)
      for (auto& bound : piece) {
        int64_t row = 0, loop = 0;
        for (auto& x : bound.axes) {
          if (m.axis[size_t(x.first)] == base.rows) row = x.second;
          if (m.axis[size_t(x.first)] == base.loop) loop = x.second;
        }
        if (row && loop) out = out.value_or(0) + (row > 0 ? 1 : -1);
      }
    return out;
  }

  void by_length(Roles& r, int64_t heads) const {
    r.order = WorkOrder::longest_first;
    r.group = 1;
    const auto longer = tied();
    if (!longer) return;
    if (*longer < 0) r.order = WorkOrder::first_rows_first;
    const int64_t bytes = extent(base.loop) * (depth + width) * 2;
    // As many as share the cache, in sections of one size; few blocks in all are one section. A section begins
    // with its longest blocks, which the last workers of a small last one would wait for.
    const int64_t most = std::clamp<int64_t>(shared_cache / bytes, 1, heads), sections = (heads + most - 1) / most;
    const bool few = heads * blocks(base.rows, 2 * team_rows) <= 4 * t.workers;
    r.group = int(few ? heads : (heads + sections - 1) / sections);
    r.persist = Persist::dynamic;
    r.producer_registers = 40, r.math_registers = 232;
  }

  int64_t others() const { // blocks of work for one block of rows
    int64_t n = 1;
    for (size_t a = 0; a < group.extent.size(); ++a)
      if (group.role[a] == plan::Role::grid && int(a) != base.rows) n *= group.extent[a];
    return n;
  }

  // Do all blocks of three teams' rows run at once, so that the one with the longest loop is the last? Lower
  // blocks end their loops sooner.
  bool longest_binds() const { return tied() && others() * blocks(base.rows, 3 * team_rows) <= t.workers; }

  // Blocks of two teams' rows are about as many as workers, and loops differ in length: the longest is the end, and
  // one team alone is through with its rows in less time than two that share a worker.
  bool teams_part() const {
    constexpr double many = 1.25;
    return tied() && double(others() * blocks(base.rows, 2 * team_rows)) <= many * double(t.workers);
  }

  // Sums whose weights are computed from contractions of the block, all on one warpgroup's fragments: the
  // widest block of terms that registers and shared memory hold. Nothing stays in flight over a block's edge:
  // that takes registers which a wider block uses better (d 256, one result: 1.34 ms against 1.30; H200,
  // 2026-11-30). One narrow result leaves room for a third warpgroup (1.39 against 1.65); sums by key do not.
  void weighed() {
    Roles r;
    by_length(r, others());
    r.producer_registers = 24, r.math_registers = 240;
    r.lag = 0;
    Roles three = r;
    three.math = 3, three.producer_registers = 32, three.math_registers = 160;
    for (int slots : {2, 1}) {
      r.stages.assign(group.shared.size() + (few_keys(g, group.members[0]) ? 0 : group.members.size()), slots);
      three.stages = r.stages;
      if (group.members.size() == 1 && width && std::max(depth, width) <= 64 && !longest_binds())
        for (int64_t b : {128, 96, 80, 64}) add(3 * team_rows, b, 0, three);
      for (int math : {1, 2})
        for (int64_t b : {128, 96, 80, 64, 48, 32, 16})
          for (bool reuse : {false, true}) {
            r.math = math, r.reuse = reuse;
            if (math > 1 || teams_part()) add(math * team_rows, b, 0, r);
          }
    }
  }

  void folded() {
    const Contraction& c = *forms.shared[0];
    const ir::Comp& n = comp(group.shared[0].node);
    const int64_t terms = n.extent(c.sides.k[0]).value();
    Product all{extent(base.rows), extent(columns), terms * extent(base.loop), 1, 1, 1, expr::row(base.format).bits};
    int64_t panels = 1; // of columns
    for (int a : c.outer_n) panels *= n.extent(a).value();
    for (int a : base.outer) all.around *= extent(a);
    all.batch = others() / extent(columns) / panels;
    for (auto& x : block_roles(all, panels, terms, t)) {
      add(team_rows * x.roles.math, 1, x.columns, x.roles);
      out.back().seconds = x.seconds;
    }
  }

  // Whether a term's weight starts from more than a multiple of a contraction: that takes registers of its
  // own.
  bool computed() const {
    const ir::Comp& n = comp(group.members[0].node);
    ir::Id lift = n.lift[size_t(forms.members[0].absorb.base[0])];
    while (g.pool[lift].op == expr::Op::only) lift = g.pool[lift].args[1];
    return g.pool[kernel::scaled(g.pool, lift).rest].op != expr::Op::arg;
  }

  void weighted() {
    Roles r;
    if (t.subgroup_blocks) {
      by_length(r, others());
      for (auto& s : subgroup_weighted(std::max(depth, width), r)) add(s.roles.rows(), s.loop, 0, s.roles);
      return;
    }
    r.stages = {2, 2};
    r.skew = 1, r.turns = true;
    const bool uneven = bool(tied());
    const int64_t most = std::max(depth, width);
    by_length(r, others());
    if (most <= 64) {
      Roles three = r, two = r;
      three.math = 3, three.hoisted = 2;
      three.producer_registers = 32, three.math_registers = 160;
      two.stages = {4, 4}, two.hoisted = 2;
      Roles one = two;
      one.math = 1, one.turns = false;
      if (teams_part()) add(team_rows, 128, 0, one);
      if (uneven && (extent(base.rows) <= 1024 || longest_binds())) add(2 * team_rows, 128, 0, two);
      add(3 * team_rows, 128, 0, three);
      add(2 * team_rows, 128, 0, two);
    }
    Roles twice = r, once = r;
    twice.hoisted = 2;
    once.reuse = true;
    if (most > 128) once.late = true, once.turns = false;
    auto wide = [&] {
      for (int64_t b = 176; b >= 48; b -= 16) add(2 * team_rows, b, 0, once);
    };
    if (!uneven && !computed() && extent(base.loop) >= long_loop) wide();
    add(2 * team_rows, computed() ? 112 : 128, 0, twice);
    wide();
  }
};
} // namespace

Result<std::vector<TensorChoice>> tensor_choices(const ir::Graph& g, const plan::Plan& p,
                                                 const plan::Group& group, const Choice& forms,
                                                 const schedule::Schedule& s, const target::Target& t) {
  TensorChooser c{g, p, group, forms, t};
  if (const auto why = c.structure()) return Refusal{*why};
  for (auto& m : group.members)
    if (const schedule::GroupFields* f = schedule::fields_of(s, g, m.node); f && f->roles) {
      auto tile = [&](int core, int64_t otherwise) {
        auto x = f->tile.find(core);
        return x == f->tile.end() ? otherwise : x->second;
      };
      c.add(f->roles->rows(), c.base.blocks ? 1 : tile(c.base.loop, 64), c.columns < 0 ? 0 : tile(c.columns, 128),
            *f->roles);
      return c.out;
    }
  if ((c.base.blocks || c.weighs()) && t.subgroup_blocks) return Refusal{"such sums are for warpgroups"};
  if (c.base.blocks)
    c.folded();
  else if (c.weighs())
    c.weighed();
  else if (forms.members[0].absorb.base.empty())
    c.products();
  else
    c.weighted();
  return c.out;
}

} // namespace tang::lower
