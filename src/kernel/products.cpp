#include "tang/kernel/products.hpp"

#include <algorithm>
#include <cmath>

#include "tang/base/number.hpp"
#include "tang/kernel/analyze.hpp"
#include "tang/kernel/rows.hpp"

namespace tang::kernel {

namespace {
constexpr int64_t run_of_terms = 8; // elements of 16 bytes
constexpr int64_t fewest_subgroups = 4; // of a workgroup: one on each part of a processor
constexpr int64_t most_sums = 128;      // that a lane keeps in registers
// Fitted to 43 timed products of a layer with 8 and 48 rows on an H200 (2026-11-30, `bench_tune_cuda run`; beside them the rule
// for warpgroups), most within 12%: a worker reads its columns and all rows, and all of them share a cache; parts of results
// are written and read in shared memory, then workgroups of a cluster write to each other; a subgroup waits for its loads as
// often as its registers do not hold them.
constexpr double worker_reads = 197e9, workers_read = 13.5e12, parts_move = 40e9, peers_write = 19.6e9; // bytes/s
constexpr double wait_seconds = 0.1e-6, meet_seconds = 0.15e-6; // of a subgroup for its loads, of a cluster
constexpr double in_clusters = 0.85; // of the workers, where clusters of more than two have their places

// Words from one line of results to the next: eight lanes' lines of a small matrix are in different banks, but for two.
int64_t line_of(int64_t results) {
  const int64_t line = ceil_div(results, int64_t(8)) * 8;
  return line % 16 ? line : line + 8;
}

bool adds(const Pool& p, const Fold& f) {
  for (size_t c = 0; c < f.combine.size(); ++c) {
    const expr::Term& t = p[f.combine[c]];
    if (t.op != expr::Op::add || t.type != Type::real || f.identity[c].r != 0) return false;
    const expr::Term &a = p[t.args[0]], &b = p[t.args[1]];
    if (a.op != expr::Op::var || b.op != expr::Op::var || a.whole / 2 != int64_t(c) || (a.whole ^ b.whole) != 1) return false;
  }
  return true;
}

class Products {
public:
  Products(const Kernel& k, const target::Target& t) : k_(k), t_(t) {}

  bool fits() {
    std::vector<int64_t> block;
    for (auto& g : k_.grid)
      if (g.step > 1) {
        if (g.extent % g.step) return false;
        block.push_back(g.step);
      }
    bool maps = false;
    for (auto& s : k_.body) {
      if (std::holds_alternative<Let>(s.node)) continue;
      const std::vector<TileAxis>* axes = nullptr;
      if (auto* f = std::get_if<Fold>(&s.node)) {
        if (maps || !folds(*f)) return false;
        axes = &f->kept;
      } else if (auto* a = std::get_if<Apply>(&s.node)) {
        maps = true;
        axes = &a->axes;
      } else {
        return false;
      }
      if (axes_.empty()) axes_ = *axes;
      for (size_t x = 0; x < axes->size(); ++x)
        if (axes->size() != 2 || (*axes)[x].extent != axes_[x].extent) return false;
    }
    if (!terms_ || block.size() != 2 || axes_[0].extent * axes_[1].extent != block[0] * block[1] || !tiles_stay()) return false;
    share_ = share_of({axes_[0].extent, axes_[1].extent, terms_, sums_, workgroups(k_)}, t_);
    return share_.parts > 0;
  }

  Kernel made() {
    Kernel out = k_;
    out.pool = std::make_shared<Pool>(*k_.pool);
    out.subgroup = t_.lanes;
    out.lanes = int(t_.lanes * share_.parts * share_.cluster);
    out.cluster = int(share_.cluster);
    for (auto& m : out.memories)
      if (m.home != Home::global) m.home = Home::register_, m.team = Team::workgroup, m.lanes = Lanes::replicated;
    Block lets, shares, joins, maps;
    for (auto& s : out.body) {
      if (auto* f = std::get_if<Fold>(&s.node))
        share(out, *f, shares, joins);
      else if (auto* a = std::get_if<Apply>(&s.node))
        a->vector = -1, a->deal = {2, 1, 1, true}, maps.push_back(s);
      else
        lets.push_back(s);
    }
    out.body.clear();
    for (auto* b : {&lets, &shares, &joins, &maps}) out.body.insert(out.body.end(), b->begin(), b->end());
    return out;
  }

private:
  bool folds(const Fold& f) {
    const bool any_order = f.vector >= int(f.kept.size());
    if (!any_order || f.accumulate || f.held || f.folded.size() != 1 || f.folded[0].extent % terms_at_once || !matrix_factors(k_, f))
      return false;
    for (auto& d : f.dst)
      if (!address(k_, d) || d.checked) return false;
    if (terms_ && terms_ != f.folded[0].extent) return false;
    terms_ = f.folded[0].extent;
    sums_ += int64_t(f.dst.size());
    return true;
  }

  // Each element of a tile is read by the lane that wrote it.
  bool tiles_stay() const {
    for (auto& s : k_.body) {
      auto look = [&](const std::vector<Ref>& refs, const std::vector<TileAxis>& axes) {
        return std::all_of(refs.begin(), refs.end(), [&](const Ref& r) {
          return k_.memories[size_t(r.memory)].home == Home::global || is_flat(k_, r, axes);
        });
      };
      if (auto* f = std::get_if<Fold>(&s.node); f && !look(f->dst, f->kept)) return false;
      if (auto* a = std::get_if<Apply>(&s.node); a && !(look(a->dst, a->axes) && look(a->body.refs, a->axes))) return false;
    }
    return true;
  }

  // Subgroup s of all has terms 32 (u S + s) .., for u = 0, 1, ..: neighbours read neighbours. A lane a result adds the parts
  // of its workgroup, in order; then, where several share a block, a lane a result what they have.
  void share(Kernel& k, const Fold& f, Block& shares, Block& joins) const {
    const int64_t parts = share_.parts, groups = share_.cluster, all = parts * groups;
    const Var h = k.fresh("h"), w = k.fresh("w"), u = k.fresh("u"), v = k.fresh("v");
    const Affine subgroup = variable(h, parts) + variable(w);
    const Affine index = variable(u, all * terms_at_once) + terms_at_once * subgroup + variable(v);
    Fold part = f;
    const int64_t rounds = ceil_div(terms_, all * terms_at_once);
    part.vector = int(f.kept.size());
    part.ways = 1;
    part.deal = {0, t_.lanes, int(run_of_terms), false, true};
    part.kept.push_back({h, groups});
    part.kept.push_back({w, parts});
    part.folded = {{u, rounds}, {v, terms_at_once}};
    for (auto& r : part.body.refs)
      for (auto& c : r.index) c.affine = replaced(c.affine, f.folded[0].var, index);
    if (rounds * all * terms_at_once != terms_) part.limits = {Coordinate{constant(terms_ - 1) - index, {}}};
    const At own{variable(f.kept[0].var), variable(f.kept[1].var)};
    part.dst = tiles(k, f, parts, variable(w), own, Team::workgroup);
    const std::vector<Ref> first = part.dst;
    shares.push_back({std::move(part)});
    if (groups == 1) {
      joins.push_back({sum(k, f, f.kept, first, parts, own)});
      return;
    }
    // Lane l of a workgroup of 256 has results 256 b + l of it: lines of the block.
    const int64_t wide = f.kept[1].extent, lines = t_.lanes * parts / wide;
    const std::vector<TileAxis> kept = {{k.fresh("b"), ceil_div(f.kept[0].extent, lines)},
                                        {k.fresh("g"), groups},
                                        {k.fresh("l"), lines},
                                        {k.fresh("l"), wide}};
    const At one{variable(kept[0].var, lines) + variable(kept[2].var), variable(kept[3].var)};
    Fold near = sum(k, f, kept, first, parts, one);
    near.dst = tiles(k, f, groups, variable(kept[1].var), one, Team::cluster);
    if (f.kept[0].extent % lines) near.bounds = {Coordinate{constant(f.kept[0].extent - 1) - one.line, {}}};
    const std::vector<Ref> second = near.dst;
    joins.push_back({std::move(near)});
    joins.push_back({sum(k, f, f.kept, second, groups, own)});
  }

  struct At { // of a block: where it is
    Affine line, place;
  };

  // A tile of [part, line, place] for each component, at one of them. The lines of a workgroup's parts lie apart so that
  // lanes that hold neighbouring lines of a small matrix write to different banks.
  static std::vector<Ref> tiles(Kernel& k, const Fold& f, int64_t parts, const Affine& part, const At& at, Team team) {
    std::vector<Ref> out;
    for (size_t c = 0; c < f.dst.size(); ++c) {
      Memory m;
      m.name = "part" + std::to_string(k.memories.size());
      m.home = Home::shared;
      m.format = k.compute;
      m.shape = {parts, f.kept[0].extent, f.kept[1].extent};
      const int64_t line = team == Team::cluster ? m.shape[2] : line_of(m.shape[2]);
      m.strides = {m.shape[1] * line, line, 1};
      m.access = Access::read_write;
      m.team = team;
      if (team == Team::cluster) m.lanes = Lanes::partial;
      out.push_back({k.add(std::move(m)), {{part, {}}, {at.line, {}}, {at.place, {}}}, false});
    }
    return out;
  }

  // The sum of `n` parts of a result, by one lane.
  static Fold sum(Kernel& k, const Fold& f, const std::vector<TileAxis>& kept, const std::vector<Ref>& parts, int64_t n,
                  const At& at) {
    Fold out;
    out.kept = kept;
    out.folded = {{k.fresh("w"), n}};
    out.dst = f.dst;
    out.identity = f.identity;
    out.combine = f.combine;
    out.deal = {0, 1, 1, true};
    for (size_t c = 0; c < f.dst.size(); ++c) {
      out.body.refs.push_back({parts[c].memory, {{variable(out.folded[0].var), {}}, {at.line, {}}, {at.place, {}}}, false});
      out.body.values.push_back(k.pool->leaf(expr::Op::arg, Type::real, int64_t(c)));
    }
    return out;
  }

  const Kernel& k_;
  const target::Target& t_;
  std::vector<TileAxis> axes_; // of a block
  int64_t terms_ = 0, sums_ = 0;
  Share share_;
};

// An aligned run of 16 bytes along the last folded axis, which moves with one of the first two kept axes: 0 or 1.
std::optional<int> side_of(const Kernel& k, const Fold& f, const Ref& r) {
  const Memory& m = k.memories[size_t(r.memory)];
  const auto at = address(k, r);
  if (!at || r.checked || m.home != Home::global || expr::type_of(m.format) != Type::real || expr::row(m.format).bits != 16) return {};
  if (coefficient(*at, f.folded.back().var) != 1 || at->c % run_of_terms) return {};
  for (auto& [v, c] : at->terms) {
    if (v == f.folded.back().var) continue;
    int64_t step = c;
    for (auto& g : k.grid)
      if (g.var == v) step *= g.step;
    if (step % run_of_terms) return {};
  }
  const bool first = coefficient(*at, f.kept[0].var), second = coefficient(*at, f.kept[1].var);
  if (first == second) return {};
  return second ? 1 : 0;
}
} // namespace

std::optional<std::vector<Factors>> matrix_factors(const Kernel& k, const Fold& f) {
  if (f.kept.size() < 2 || f.folded.empty() || !f.bounds.empty() || !f.partial.empty() || f.body.when || !adds(*k.pool, f)) return {};
  if (k.compute != Format::f32) return {};
  std::vector<Factors> out;
  std::optional<Format> format;
  for (Id id : f.body.values) {
    const expr::Term& t = (*k.pool)[id];
    if (t.op != expr::Op::mul) return {};
    Factors x;
    for (int i : {0, 1}) {
      const expr::Term& a = (*k.pool)[t.args[size_t(i)]];
      if (a.op != expr::Op::arg) return {};
      const Ref& r = f.body.refs[size_t(a.whole)];
      const auto s = side_of(k, f, r);
      if (!s) return {};
      const Format here = k.memories[size_t(r.memory)].format;
      if (here != format.value_or(here)) return {};
      format = here;
      (*s ? x.second : x.first) = int(a.whole);
    }
    if (x.first < 0 || x.second < 0) return {};
    out.push_back(x);
  }
  return out;
}

namespace {
// How `parts` subgroups of each of `cluster` workgroups take; 0 seconds: they have no room, or nothing to do.
double seconds_of(const FewRows& x, int64_t cluster, int64_t parts, const target::Target& t) {
  const bool tall_rows = ceil_div(x.rows, 16) * ceil_div(x.columns, 8) <= ceil_div(x.columns, 16) * ceil_div(x.rows, 8);
  const int64_t tall = tall_rows ? x.rows : x.columns, wide = tall_rows ? x.columns : x.rows;
  const int64_t sums = 4 * x.sums * ceil_div(tall, 16) * ceil_div(wide, 8);
  const int64_t loads = tall_rows ? 2 * ceil_div(tall, 16) + x.sums * ceil_div(wide, 8)
                                  : x.sums * 2 * ceil_div(tall, 16) + ceil_div(wide, 8);
  const int64_t tiles = 4 * x.sums * x.rows * (parts * line_of(x.columns) + (cluster > 1 ? cluster * x.columns : 0));
  if (cluster > 1 && (cluster * parts * terms_at_once > x.terms || parts * t.lanes % x.columns)) return 0;
  if (sums > most_sums || tiles > t.fast_memory) return 0;
  const int lanes = int(parts) * t.lanes;
  if (cluster > 1 && !workgroups_of_a_worker(lanes, x.blocks * cluster)) return 0;
  const int64_t rounds = ceil_div(x.terms, cluster * parts * terms_at_once);
  const int64_t waits = ceil_div(rounds, rounds_at_once(rounds, loads, words_at_once(lanes, x.blocks * cluster, sums)));
  const double results = 4 * double(x.sums) * double(x.rows) * double(x.columns);
  const double bytes = 2 * double(x.terms) / double(cluster) * double(x.rows + x.sums * x.columns);
  const double workgroups = double(x.blocks * cluster), places = cluster > 2 ? in_clusters * t.workers : t.workers;
  const double each = bytes / worker_reads + double(parts) * results / parts_move + double(waits) * wait_seconds +
                      (cluster > 1 ? meet_seconds + results / peers_write : 0);
  return std::ceil(workgroups / places) * each + workgroups * bytes / workers_read;
}
} // namespace

int64_t workgroups_of_a_worker(int lanes, int64_t workgroups) {
  constexpr int64_t workers = 128, most_resident = 2048, least_resident = 512; // lanes: the last have 128 registers each
  const int64_t each = ceil_div(workgroups, workers);
  return each * lanes < most_resident ? std::clamp<int64_t>(least_resident / lanes, 1, std::max<int64_t>(1, each)) : 0;
}

int64_t words_at_once(int lanes, int64_t workgroups, int64_t sums) {
  constexpr int64_t all = 65536, most = 255, other = 56, least = 24;
  const int64_t here = workgroups_of_a_worker(lanes, workgroups);
  return std::max(least, (std::min(most, here ? all / (here * lanes) : 0) - sums - other) / 4);
}

int64_t rounds_at_once(int64_t rounds, int64_t loads, int64_t words) {
  const int64_t most = std::clamp<int64_t>(words / loads, 1, rounds);
  return ceil_div(rounds, ceil_div(rounds, most));
}

Share share_of(const FewRows& x, const target::Target& t) {
  Share best;
  for (int64_t c = 1; c <= t.cluster; c *= 2)
    for (int64_t parts = fewest_subgroups; parts * t.lanes <= t.long_row_lanes; parts *= 2)
      if (const double s = seconds_of(x, c, parts, t); s > 0 && (!best.parts || s < best.seconds)) best = {c, parts, s};
  return best;
}

std::optional<Kernel> deal_products(const Kernel& k, const target::Target& t) {
  if (!t.small_matrices || t.lanes != 32) return {};
  Products p(k, t);
  if (!p.fits()) return {};
  return p.made();
}

} // namespace tang::kernel
