#include "tang/lower/choose.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "tang/base/number.hpp"
#include "tang/expr/absence.hpp"
#include "tang/expr/effort.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/kernel/rows.hpp"
#include "tang/lower/body.hpp"
#include "tang/lower/fit.hpp"
#include "tang/lower/joint.hpp"
#include "tang/lower/price.hpp"
#include "tang/lower/segments.hpp"
#include "tang/lower/stagger.hpp"
#include "tang/lower/told.hpp"
#include "tang/lower/window.hpp"

namespace tang::lower {

using ir::Comp;
using ir::Id;
using plan::Group;
using plan::Role;

namespace {
constexpr int64_t small_work = 48 << 10;  // terms
constexpr int64_t most_rows = 168;  // of a block of a contraction
constexpr int64_t short_run = 32;  // terms a block where each run of them is its own
constexpr int64_t narrow = 4;  // fewer rows than this are folded row by row: a register block would be mostly padding

struct Chooser {
  ir::Graph& g;
  const Group& group;
  const schedule::Schedule& s;
  const target::Target& t;
  const bool fragments;
  const int64_t most_rows;
  Choice out = {};
  std::vector<char> is_m = std::vector<char>(group.extent.size(), 0), is_n = is_m, is_k = is_m, around_m = is_m, around_n = is_m;

  const Comp& comp(ir::NodeId id) const { return *g[id].comp(); }
  std::set<int> long_points(const Comp& n) const {
    std::set<int> out_;
    for (size_t a = 0; a < n.points.size(); ++a)
      if (n.points[a].value() > 1) out_.insert(int(a));
    return out_;
  }
  // Where products are tiles of a block: is the rows' side a function of the block alone, so that it is one, 0 where `when`
  // fails?
  bool in_a_tile(const Comp& n, const Contraction& c, const std::vector<int>& core, Id when) const {
    std::vector<Id> terms{when};
    for (int x : c.sides.a) terms.push_back(c.factors[size_t(x)]);
    bool on_core = !out.walked.empty() || fragments || t.workgroup_limit > 1, computed = false;
    for (Id e : terms) {
      for (int a : axes_of(g, n, e)) on_core &= core[size_t(a)] >= 0;
      for (Id t : expr::subterms(g.pool, e, expr::Op::arg))
        computed |= e != when && std::any_of(group.shared.begin(), group.shared.end(), [&](auto& x) { return x.node == n.args[size_t(g.pool[t].whole)].from.node; });
    }
    return on_core && computed;
  }
  // Lanes that share an operand write it once for all of them: it may say where a term lives, if that is of rows and terms.
  bool rides_with_rows(const Comp& n, const Contraction& c, Id when) const {
    if (t.workgroup_limit == 1 || fragments) return false;
    const std::set<int> named = axes_of(g, n, when);
    auto names = [&](int a) { return named.count(a) > 0; };
    return !names(c.sides.n[0]) && std::none_of(c.outer_n.begin(), c.outer_n.end(), names);
  }
  int64_t register_rows() const { return t.block_rows ? t.block_rows : t.vector_registers >= 32 ? 12 : 6; }
  bool is_looped(const Comp& n, const std::vector<int>& core) const {
    bool looped = false;
    for (size_t a = 0; a < n.points.size(); ++a) looped |= core[a] >= 0 && group.role[size_t(core[a])] == Role::looped;
    return looped;
  }
  // Factors by side, columns along `last`; one axis a side is blocked, the others are loops around it, inside the workgroup.
  // Nothing, or why not.
  std::optional<std::string> take_sides(const Comp& n, Contraction& c, const std::vector<Factor>& factors, const std::set<int>& points,
                                        const std::set<int>& folds, int last, bool weighted) const {
    auto sides = split_factors(factors, points, folds, last);
    if (!sides) return sides.why();
    c.sides = *sides;
    if (!weighted && t.workgroup_limit == 1) lighten(c.sides, factors, points, folds, [&](int a) { return double(n.extent(a).value()); });
    // The weight of a base is a tile of its own over (rows, terms): it stands alone on the rows' side.
    if (weighted && (c.sides.a != std::vector<int>{-1} || c.sides.k.size() != 1)) return "the base's weight does not stand alone";
    auto keep_one = [&](std::vector<int>& side, int keep, std::vector<int>& outer) {
      outer.clear();
      for (int a : side)
        if (a != keep) outer.push_back(a);
      side = {keep};
    };
    int widest = c.sides.m[0];
    for (int a : c.sides.m)
      if (n.extent(a).value() > n.extent(widest).value()) widest = a;
    keep_one(c.sides.m, widest, c.outer_m);
    keep_one(c.sides.n, last, c.outer_n);
    return {};
  }
  // Classifies a sum of `lift` over the node's folds; `base_axes`: axes of the act factor, empty without a base.
  Result<Contraction> classify(const Comp& n, size_t component, const std::vector<int>& core, const std::set<int>& base_axes) {
    Contraction c;
    for (auto& e : n.extents())
      if (e.value() == 0) return Refusal{"it has no element"};
    const Id value = expr::present(g.pool, n.lift[component]).value;
    c.factors = expr::factors(g.pool, value);
    std::vector<Factor> factors;
    for (size_t f = 0; f < c.factors.size(); ++f) factors.push_back({int(f), axes_of(g, n, c.factors[f])});
    if (!base_axes.empty()) factors.push_back({-1, base_axes});
    std::set<int> folds, points = long_points(n);
    for (size_t f = 0; f < n.folds.size(); ++f)
      if (n.folds[f].value() > 1) folds.insert(int(n.points.size() + f));
    if (folds.empty()) return Refusal{"it folds one term"};
    for (int a : std::set<int>(points))
      if (std::find(n.outs[component].axes.begin(), n.outs[component].axes.end(), a) == n.outs[component].axes.end()) points.erase(a);
    const std::set<int> batch = batch_axes(factors, points);
    for (int a : batch) points.erase(a);
    // Columns lie along vectors: of a shared subterm the axis that its readers fold, else the innermost axis of the
    // result that fills a vector, else the widest.
    int last = -1, widest_point = -1;
    bool folded_later = false;
    for (int a : n.outs[component].axes) {
      if (!points.count(a)) continue;
      if (widest_point < 0 || n.extent(a).value() > n.extent(widest_point).value()) widest_point = a;
      const bool later = out.walked.empty() && core[size_t(a)] >= 0 && group.role[size_t(core[size_t(a)])] == Role::looped;
      const bool longer = !fragments || !folded_later || n.extent(a).value() > n.extent(last).value();
      if (later ? longer : !folded_later && n.extent(a).value() >= t.lanes / 2) last = a;
      folded_later |= later;
    }
    if (last < 0) last = widest_point;
    if (!out.walked.empty()) last = columns_of_joint(n, points, core, out.walked, last);
    if (last < 0) return Refusal{"no axis of its own on either side"};
    c.batch.assign(batch.begin(), batch.end());
    if (auto why = take_sides(n, c, factors, points, folds, last, !base_axes.empty())) return Refusal{*why};
    // The lanes may also run along the other side, where nothing else decides it.
    const bool free = base_axes.empty() && out.walked.empty() && !folded_later && t.workgroup_limit == 1 && !is_looped(n, core);
    std::vector<int> across = c.sides.m;
    across.insert(across.end(), c.outer_m.begin(), c.outer_m.end());
    const Contraction first = c;
    auto cost = [&](const Contraction& x) { return price(g, n, component, x, register_rows(), 2 * t.lanes, t.lanes); };
    for (int a : free ? across : std::vector<int>())
      if (Contraction other = first; !take_sides(n, other, factors, points, folds, a, false))
        if (cost(other) < std::min(cost(c), 0.85 * cost(first))) c = other, last = a;
    const int widest = c.sides.m[0];
    int64_t rows = n.extent(widest).value();
    for (int a : c.outer_m) rows *= n.extent(a).value();
    for (int a : c.batch)
      if (core[size_t(a)] < 0) return Refusal{"a batch axis is private"};
    if (n.extent(widest).value() < narrow || rows < narrow) return Refusal{"too few rows for a register block"};
    auto names = [](const std::set<int>& axes, int one, const std::vector<int>& more) {
      return axes.count(one) || std::any_of(more.begin(), more.end(), [&](int a) { return axes.count(a); });
    };
    // A bound that reads both sides masks single products: no operand can carry it.
    if (base_axes.empty())
      for (auto& piece : n.domain)
        for (auto& f : piece) {
          const std::set<int> axes = axes_of(n, f);
          if (names(axes, widest, c.outer_m) && names(axes, last, c.outer_n)) return Refusal{"its domain ties rows to columns"};
        }
    const Id when = expr::present(g.pool, n.lift[component]).when;
    if (n.domain.size() > 1 && base_axes.empty() && !(fragments && in_a_tile(n, c, core, when)))
      return Refusal{"its domain is a union"};
    if (base_axes.empty() && when != expr::yes(g.pool) && !in_a_tile(n, c, core, when) && !rides_with_rows(n, c, when))
      return Refusal{"a data predicate"};
    if (when != expr::yes(g.pool)) c.when = when;
    return c;
  }
  void mark(const Contraction& c, const std::vector<int>& core) {
    auto put = [&](std::vector<char>& to, int a) {
      if (core[size_t(a)] >= 0) to[size_t(core[size_t(a)])] = 1;
    };
    for (int a : c.sides.m) put(is_m, a);
    for (int a : c.outer_m) put(around_m, a);
    for (int a : c.outer_n) put(around_n, a);
    for (int a : c.sides.n) put(is_n, a);
    for (int a : c.sides.k) put(is_k, a);
  }
  std::optional<MemberForm> keyed(const plan::Member& m) const {
    MemberForm f;
    f.kind = MemberForm::keyed;
    f.key = key_of_lone(g, group, m);
    return f.key ? std::optional(f) : std::nullopt;
  }
  MemberForm form(const plan::Member& m) {
    MemberForm f;
    const Comp& n = comp(m.node);
    if (!n.monoid) return f;
    f.kind = MemberForm::fold;
    if ((f.search = ir::counts_sorted_keys(g, n))) return f;
    if (auto* told = schedule::fields_of(s, g, m.node)) f.held = told->accumulate;
    if (f.held) return f; // term by term
    auto& absorb = ir::absorbing(g, *n.monoid);
    if (!absorb) return f;
    std::set<int> base_axes;
    for (int b : absorb->base) {
      const std::set<int> more = axes_of(g, n, n.lift[size_t(b)]);
      base_axes.insert(more.begin(), more.end());
    }
    for (int a : absorb->base)
      for (int x : n.outs[size_t(a)].axes) base_axes.insert(x);
    for (int c : absorb->added)
      if (auto k = classify(n, size_t(c), m.axis, base_axes)) f.contractions.emplace(c, *k);
    // A plain sum that does not contract is better off in registers; a base needs the absorbing form to fold by chunks.
    if (absorb->base.empty() && f.contractions.size() != absorb->added.size()) f.contractions.clear();
    if (absorb->base.empty() && f.contractions.empty()) return f;
    f.kind = MemberForm::chunked;
    f.absorb = *absorb;
    return f;
  }
  int64_t blocks(size_t a, int64_t tile) const { return (group.extent[a] + tile - 1) / tile; }
  // Core axes that one bound of a domain names with another: a block across its edge is partly dead, so that small extents
  // want small blocks.
  std::vector<char> tied_axes() const {
    std::vector<char> tied(group.extent.size(), 0);
    for (auto& m : group.members)
      for (auto& piece : comp(m.node).domain)
        for (auto& bound : piece) {
          std::vector<int> named;
          for (auto& term : bound.axes)
            if (const int c = m.axis[size_t(term.first)]; c >= 0) named.push_back(c);
          if (named.size() > 1)
            for (int c : named) tied[size_t(c)] = 1;
        }
    return tied;
  }
  int64_t most_of_tied(size_t a) const { return std::max<int64_t>(64 / unit(a) * unit(a), group.extent[a] / 8 / unit(a) * unit(a)); }

  // Blocks of a group with contractions: rows x columns x depth that fit the fast memory, enough blocks for the workers.
  void contraction_tiles() {
    out.rows = int(register_rows());
    out.vectors = t.block_vectors ? t.block_vectors : 2;
    const int64_t nr = out.columns();
    const std::vector<char> tied = tied_axes();
    for (size_t a = 0; a < group.extent.size(); ++a) {
      const int64_t e = group.extent[a];
      int64_t tile = 1;
      if (group.role[a] == Role::grid) {
        if (is_m[a]) tile = std::min(round_to(e, unit(a)), round_to(96, unit(a)));
        else if (is_n[a]) tile = std::min(round_to(e, nr), int64_t(1024) / nr * nr);
      } else if (is_n[a] || is_m[a]) {
        tile = std::min(round_to(e, unit(a)), std::max(unit(a), int64_t(128) / unit(a) * unit(a)));
      } else if (is_k[a]) {
        // No block of a few terms at the end: each block reads and writes the whole state.
        tile = is_run(comp(group.members[0].node), group.members[0].axis, int(a)) ? std::min(e, short_run)
               : e <= 512 ? e : e % 384 && e % 384 < 128 ? (e + e / 384 - 1) / (e / 384) : 384;
      } else {
        tile = std::min<int64_t>(e, 512);
      }
      if (tied[a] && (is_m[a] || is_n[a])) tile = std::min(tile, std::max(unit(a), most_of_tied(a)));
      out.tile.push_back(std::max<int64_t>(1, tile));
    }
    // Narrow sides take more axes into the block.
    int64_t rows = 1, columns = 1;
    for (size_t a = 0; a < group.extent.size(); ++a) {
      if (is_m[a]) rows = std::max(rows, out.tile[a]);
      if (is_n[a] && group.role[a] == Role::grid) columns = std::max(columns, out.tile[a]);
    }
    for (size_t a = group.extent.size(); a-- > 0;) {
      if (group.role[a] != Role::grid || is_m[a] || is_n[a]) continue;
      int64_t& filled = around_n[a] ? columns : rows;
      if (!around_m[a] && !around_n[a]) continue;
      out.tile[a] = even_tile(group.extent[a], (around_n[a] ? 1024 : 96) / filled);
      filled *= out.tile[a];
    }
    cut_depth(group, is_k, out.tile);
    // Enough workgroups for every worker, evenly: halve the rows, then the columns.
    auto total = [&] {
      int64_t n = 1;
      for (size_t a = 0; a < group.extent.size(); ++a)
        if (group.role[a] == Role::grid) n *= blocks(a, out.tile[a]);
      return n;
    };
    for (size_t a = 0; a < group.extent.size(); ++a)
      if (group.role[a] == Role::grid && !is_m[a] && !is_n[a])
        while (total() < 2 * t.workers && out.tile[a] > 1) out.tile[a] = (out.tile[a] + 1) / 2;
    for (size_t a = 0; a < group.extent.size(); ++a) {
      if (group.role[a] != Role::grid || !(is_n[a] && !is_m[a])) continue;
      while (total() < 2 * t.workers && out.tile[a] > nr) out.tile[a] = round_to((out.tile[a] + 1) / 2, nr);
      if (t.workgroup_limit == 1 && blocks(a, out.tile[a]) > 1)
        out.tile[a] = std::min(out.tile[a], columns_that_stay(group, t.fast_memory, nr, is_m, is_k, out.tile));
      if (const int64_t n = blocks(a, out.tile[a])) out.tile[a] = round_to((group.extent[a] + n - 1) / n, nr);
    }
    const bool based = std::any_of(out.members.begin(), out.members.end(), [](auto& m) { return !m.absorb.base.empty(); });
    for (size_t a = 0; a < group.extent.size(); ++a) {
      if (group.role[a] != Role::grid || !is_m[a]) continue;
      while (total() < 2 * t.workers && out.tile[a] > 2 * unit(a)) out.tile[a] = round_to((out.tile[a] + 1) / 2, unit(a));
      out.tile[a] = even_rows(a, tied[a] ? std::min(most_rows, most_of_tied(a)) : most_rows, total() / std::max<int64_t>(1, blocks(a, out.tile[a])));
      // One block: no row beyond the last. A base's weights lie in whole register blocks.
      if (!is_n[a] && !based && t.workgroup_limit == 1) out.tile[a] = std::min(out.tile[a], std::max<int64_t>(1, group.extent[a]));
    }
    if (t.workgroup_limit == 1) out.outer = outer_columns(group, is_m, is_n, out.tile);
  }
  // Rows a block so that the worker with the most blocks computes the fewest rows, padding counted; of equals the larger
  // block, which reads each column panel less often. `beside`: workgroups for one block of rows.
  int64_t even_rows(size_t a, int64_t most, int64_t beside) const {
    const int64_t e = group.extent[a], now = out.tile[a], u = unit(a);
    int64_t depth = 1, around = 1;
    for (size_t x = 0; x < group.extent.size(); ++x) {
      if (is_k[x]) depth *= out.tile[x];
      if (around_m[x] && group.role[x] == Role::grid) around *= out.tile[x];
    }
    const bool fits = most * around * depth * 4 <= t.fast_memory * 3 / 4;
    const int64_t enough = std::min<int64_t>(2 * t.workers, beside * blocks(a, now));
    int64_t best = now, least = INT64_MAX;
    for (int64_t n = 1; n <= 2 * blocks(a, now); ++n) {
      const int64_t tile = round_to((e + n - 1) / n, u);
      if (tile > std::max(now, fits ? most : 0) || 3 * tile < 2 * now || beside * n < enough) continue;
      const int64_t cost = (beside * n + t.workers - 1) / t.workers * tile;
      if (cost < least) best = tile, least = cost;
    }
    return best;
  }
  // A block of rows is whole register blocks; a block of columns whole panels.
  int64_t unit(size_t a) const {
    return is_m[a] && is_n[a] ? std::lcm(int64_t(out.rows), out.columns()) : is_m[a] ? out.rows : out.columns();
  }
  static int64_t round_to(int64_t v, int64_t to) { return (v + to - 1) / to * to; }
  // Rows for teams of lanes: as many as the workgroup has at once, or a whole number of times as many.
  void rows_of_teams(const plan::Member& m, int64_t points, int64_t work) {
    int joining = 0; // a sum joins as it folds; others as their monoid says
    auto look = [&](ir::NodeId id) {
      int effort = 0;
      if (comp(id).monoid)
        for (Id e : expr::schedule(g.pool, comp(id).monoid->combine)) effort += expr::effort(g.pool[e].op);
      joining = std::max(joining, effort);
    };
    for (size_t k = 0; k < group.members.size(); ++k)
      if (out.members[k].kind == MemberForm::fold) look(group.members[k].node);
    for (size_t k = 0; k < group.epilogues.size(); ++k)
      if (out.epilogues[k].kind == MemberForm::fold) look(group.epilogues[k].node);
    const kernel::Teams x = kernel::teams(work, points, joining, t);
    const int64_t at_once = x.lanes / x.team;
    int best = -1; // the innermost axis with rows enough for all lanes, or the longest
    for (int a = int(comp(m.node).points.size()); a-- > 0;) {
      const int c = m.axis[size_t(a)];
      const int64_t e = c < 0 || group.role[size_t(c)] != Role::grid ? 1 : group.extent[size_t(c)];
      if (e > 1 && (best < 0 || group.extent[size_t(best)] < std::min(at_once, e))) best = c;
    }
    const int64_t fit = best < 0 ? 0 : std::min(x.rows, group.extent[size_t(best)]);
    if (fit) out.tile[size_t(best)] = fit <= at_once ? fit : fit / at_once * at_once;
  }
  void plain_tiles() {
    out.tile.assign(group.extent.size(), 1);
    if (group.members.empty()) return;
    const plan::Member& m = group.members[0];
    if (out.members[0].kind == MemberForm::keyed) return keyed_tiles(group, comp(m.node), t, out.tile);
    const Comp& n = comp(m.node);
    const bool base = out.members[0].kind == MemberForm::chunked;
    int64_t work = 1;
    for (auto& f : n.folds) work = mul_saturated(work, std::max<int64_t>(1, f.value()));
    if (out.members[0].search) work = std::bit_width(uint64_t(work));
    // Rows that stay at hand beside what is kept of their terms are folded whole: the base first, then what it scales.
    const bool by_chunks = base && mul_saturated(work, 8) > t.fast_memory && !kernel::has_teams(t);
    for (int a = 0; a < n.axis_count(); ++a) {  // folds whole in a block, or by chunks of the base
      const int c = m.axis[size_t(a)];
      if (c >= 0 && group.role[size_t(c)] == Role::looped) {
        const bool innermost = a + 1 == n.axis_count();
        out.tile[size_t(c)] = !by_chunks ? group.extent[size_t(c)] : innermost ? std::min<int64_t>(group.extent[size_t(c)], 2048) : 1;
      }
    }
    const int v = out.members[0].vector = out.members[0].search ? int(n.points.size()) - 1 : vector_axis(g, n);
    for (size_t x = 0; x < group.epilogues.size(); ++x) out.epilogues[x].vector = vector_axis(g, comp(group.epilogues[x].node));
    int64_t points = 1;
    for (auto& e : n.points) points *= std::max<int64_t>(1, e.value());
    if (n.monoid && n.monoid->commutative && kernel::has_teams(t) && !(v >= 0 && size_t(v) < n.points.size())) return rows_of_teams(m, points, work);
    const bool columns = n.monoid && v >= 0 && size_t(v) < n.points.size() && !slides(n);
    // One workgroup: waking another thread costs more than the work. A chip of many lanes starts all workgroups at once.
    if (points * work <= (t.workgroup_limit > 1 && (!n.monoid || columns) ? t.workgroup_limit : small_work)) {
      for (size_t c = 0; c < group.extent.size(); ++c)
        if (group.role[c] == Role::grid) out.tile[c] = std::max<int64_t>(1, group.extent[c]);
      return;
    }
    if (n.monoid && kernel::has_teams(t) && window_tiles(n, m, group, v, out.tile)) return;
    // Points: from the vector axis outwards until a block is worth a call.
    std::vector<int> order;
    if (v >= 0 && size_t(v) < n.points.size()) order.push_back(v);
    for (int a = int(n.points.size()); a-- > 0;)
      if (a != v) order.push_back(a);
    const bool rows = !(v >= 0 && size_t(v) < n.points.size());
    // Rows that are read again lie near, a few at a time; those of a workgroup of one lane are issued one by one.
    const bool again = t.workgroup_limit == 1 && rows && work >= 1024 && !group.epilogues.empty();
    const int64_t few = again ? rows_to_stagger(points, most_rows) : 4;
    int64_t budget = n.monoid ? std::max<int64_t>(rows ? few : 4 * t.lanes, 8192 / std::max<int64_t>(1, work)) : 8192;
    for (int a : order) {
      const int c = m.axis[size_t(a)];
      if (c < 0 || group.role[size_t(c)] != Role::grid) continue;
      const int64_t e = group.extent[size_t(c)];
      const int64_t tile = std::max<int64_t>(1, std::min(e, budget));
      out.tile[size_t(c)] = tile;
      budget /= tile;
      if (tile < e) break;
    }
    const bool runs = n.monoid && kernel::has_teams(t) && v >= 0;  // lanes read neighbours
    enough_blocks(group, t, !n.monoid, runs ? m.axis[size_t(v)] : -1, out.tile);
  }
  // A workgroup folds one run, in short blocks from where it begins to where it ends.
  void one_run() {
    const plan::Member& m = group.members[0];
    const Comp& n = comp(m.node);
    for (size_t c = 0; c < group.extent.size() && n.monoid; ++c) {
      if (group.role[c] != Role::looped || group.extent[c] <= short_run || !is_run(n, m.axis, int(c))) continue;
      out.tile[c] = short_run;
      for (int x : places_of_run(n, m.axis, int(c)))
        if (group.role[size_t(x)] == Role::grid) out.tile[size_t(x)] = 1;
    }
  }
  const schedule::GroupFields* fields() const {
    for (auto& m : group.members)
      if (auto* f = schedule::fields_of(s, g, m.node)) return f;
    return nullptr;
  }
  // Core axes that some contraction of the group takes one element at a time.
  std::vector<char> single() const {
    std::vector<char> one(group.extent.size(), 0);
    auto mark_batch = [&](const Contraction& c, const std::vector<int>& core) {
      for (int a : c.batch)
        if (core[size_t(a)] >= 0) one[size_t(core[size_t(a)])] = 1;
    };
    for (size_t k = 0; k < group.shared.size(); ++k)
      if (out.shared[k]) mark_batch(*out.shared[k], full_axes(group.shared[k]));
    for (size_t k = 0; k < group.members.size(); ++k)
      for (auto& c : out.members[k].contractions) mark_batch(c.second, group.members[k].axis);
    return one;
  }
  bool keeps_whole(size_t core) const {
    return (out.members[0].kind == MemberForm::keyed || out.members[0].search) && group.role[core] == Role::looped;
  }
  Choice run() {
    out.lanes = t.lanes;
    out.walked = walked_axes(g, group);
    bool contracts = false;
    for (auto& x : group.shared) {
      auto c = classify(comp(x.node), 0, full_axes(x), {});
      out.shared.push_back(c ? std::optional(*c) : std::nullopt);
      if (c) mark(*c, full_axes(x));
      contracts |= bool(c);
    }
    for (auto& m : group.members) {
      out.members.push_back(keyed(m).value_or(form(m)));
      for (auto& [component, c] : out.members.back().contractions) {
        mark(c, m.axis);
        contracts = true;
      }
    }
    for (auto& e : group.epilogues) out.epilogues.push_back(form({e.node, e.axis, plan::Flush::store, false}));
    if (!out.walked.empty()) joint_tiles(g, group, t, is_m, is_n, out);
    else if (contracts) contraction_tiles();
    else if (group.shared.empty()) plain_tiles(), one_run();
    else contraction_tiles();
    const std::vector<char> one = single();
    for (size_t x = 0; x < one.size(); ++x)
      if (one[x]) out.tile[x] = 1;
    if (contracts || !group.shared.empty()) out.panels = is_n;
    if (const schedule::GroupFields* f = fields()) {
      for (auto& [a, tile] : f->tile)
        if (a >= 0 && size_t(a) < out.tile.size() && group.extent[size_t(a)] && !keeps_whole(size_t(a))) out.tile[size_t(a)] = std::max<int64_t>(1, tile);
      if (f->rows) out.rows = *f->rows;
      if (f->vectors) out.vectors = *f->vectors;
      if (f->ways) out.ways = *f->ways;
      out.pack_b = f->pack_b;
      need_single(g, group, one, out);
      need_whole_maps(g, group, out);
      need_whole_blocks(g, group, is_m, is_n, out);
      if (!fragments) need_columns(g, group, out);
      if (!out.walked.empty()) split_joint(g, group, t, f->parts, out);
    }
    for (size_t a = 0; a < out.tile.size(); ++a) out.text += (a ? "x" : "tile ") + std::to_string(out.tile[a]);
    if (contracts) out.text += " block " + std::to_string(out.rows) + "x" + std::to_string(out.columns());
    if (out.parts > 1) out.text += " parts " + std::to_string(out.parts);
    return out;
  }
  // A shared subterm's folds are private.
  std::vector<int> full_axes(const plan::Shared& x) const {
    std::vector<int> axes = x.axis;
    axes.resize(size_t(comp(x.node).axis_count()), -1);
    return axes;
  }
};

}  // namespace

Choice choose(ir::Graph& g, const Group& group, const schedule::Schedule& s, const target::Target& t, bool fragments,
              int64_t rows) {
  return Chooser{g, group, s, t, fragments, rows}.run();
}
bool is_loop(const Group& group, const Choice& c, size_t a) {
  return group.role[a] == Role::looped && (c.tile[a] < group.extent[a] || (group.extent[a] == 0 && c.tile[a] > 0));
}
int pipeline_axis(const Group& group, const Choice& c) {
  int out = -1;
  for (size_t a = 0; a < group.extent.size(); ++a)
    if (is_loop(group, c, a)) out = int(a);
  return out;
}
}  // namespace tang::lower
