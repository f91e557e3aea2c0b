#include "tang/kernel/products.hpp"

#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/kernel/analyze.hpp"
#include "tang/kernel/rows.hpp"

namespace tang::kernel {

namespace {
constexpr int64_t run_of_terms = 8; // elements of 16 bytes
// Steps of a subgroup whose operands its registers hold, all on their way at once; fewer subgroups leave a processor idle.
constexpr int64_t steps_on_their_way = 8, fewest_subgroups = 8;

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
    return terms_ && block.size() == 2 && axes_[0].extent * axes_[1].extent == block[0] * block[1] && tiles_stay();
  }

  Kernel made() {
    Kernel out = k_;
    out.pool = std::make_shared<Pool>(*k_.pool);
    out.subgroup = t_.lanes;
    out.lanes = int(t_.lanes * parts_);
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
    const int64_t most = t_.long_row_lanes / t_.lanes;
    parts_ = fewest_subgroups;
    while (parts_ < most && parts_ * steps_on_their_way * terms_at_once < terms_) parts_ *= 2;
    return parts_ * t_.lanes <= t_.long_row_lanes;
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

  // Subgroup w has terms 32 (u parts + w) .., for u = 0, 1, ..: neighbours read neighbours. Then a lane a result adds the
  // parts, in order.
  void share(Kernel& k, const Fold& f, Block& shares, Block& joins) const {
    const Var w = k.fresh("w"), u = k.fresh("u"), v = k.fresh("v"), from = k.fresh("w");
    const Affine index = variable(u, parts_ * terms_at_once) + variable(w, terms_at_once) + variable(v);
    Fold part = f, sum;
    const int64_t rounds = ceil_div(terms_, parts_ * terms_at_once);
    part.vector = int(f.kept.size());
    part.ways = 1;
    part.deal = {0, t_.lanes, int(run_of_terms), false, true};
    part.kept.push_back({w, parts_});
    part.folded = {{u, rounds}, {v, terms_at_once}};
    for (auto& r : part.body.refs)
      for (auto& c : r.index) c.affine = replaced(c.affine, f.folded[0].var, index);
    if (rounds * parts_ * terms_at_once != terms_) part.limits = {Coordinate{constant(terms_ - 1) - index, {}}};
    sum.kept = f.kept;
    sum.folded = {{from, parts_}};
    sum.dst = f.dst;
    sum.identity = f.identity;
    sum.combine = f.combine;
    sum.deal = {0, 1, 1, true};
    const Affine row = f.kept[1].extent * variable(f.kept[0].var) + variable(f.kept[1].var);
    for (size_t c = 0; c < f.dst.size(); ++c) {
      Memory m;
      m.name = "part" + std::to_string(k.memories.size());
      m.home = Home::shared;
      m.format = k.compute;
      m.shape = {parts_, f.kept[0].extent * f.kept[1].extent};
      m.strides = row_major(m.shape);
      m.access = Access::read_write;
      m.team = Team::workgroup;
      const int memory = k.add(std::move(m));
      part.dst[c] = {memory, {{variable(w), {}}, {row, {}}}, false};
      sum.body.refs.push_back({memory, {{variable(from), {}}, {row, {}}}, false});
      sum.body.values.push_back(k.pool->leaf(expr::Op::arg, Type::real, int64_t(c)));
    }
    shares.push_back({std::move(part)});
    joins.push_back({std::move(sum)});
  }

  const Kernel& k_;
  const target::Target& t_;
  std::vector<TileAxis> axes_; // of a block
  int64_t terms_ = 0, parts_ = 0;
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

std::optional<Kernel> deal_products(const Kernel& k, const target::Target& t) {
  if (!t.small_matrices || t.lanes != 32) return {};
  Products p(k, t);
  if (!p.fits()) return {};
  return p.made();
}

} // namespace tang::kernel
