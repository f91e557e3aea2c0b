#include "tang/kernel/windows.hpp"

#include <algorithm>

#include "tang/base/match.hpp"

namespace tang::kernel {

namespace {
constexpr int64_t widest = 16; // terms of a window that are written out

struct Window {
  size_t kept, folded; // indices of the axes
  int64_t results;     // that a lane sums
};

Affine put(const Affine& a, Var v, const Affine& by) {
  const int64_t k = coefficient(a, v);
  return k ? a - variable(v, k) + k * by : a;
}

Ref put(Ref r, Var v, const Affine& by) {
  for (auto& c : r.index) c.affine = put(c.affine, v, by);
  return r;
}

bool same(const Ref& a, const Ref& b) {
  if (a.memory != b.memory || a.checked != b.checked || a.index.size() != b.index.size()) return false;
  for (size_t d = 0; d < a.index.size(); ++d)
    if (!(a.index[d].affine == b.index[d].affine)) return false;
  return true;
}

class Windows {
public:
  explicit Windows(Kernel k) : k_(std::move(k)) {}

  Kernel run() {
    k_.body = block(k_.body);
    return std::move(k_);
  }

private:
  const Memory& memory(const Ref& r) const { return k_.memories[size_t(r.memory)]; }

  Block block(const Block& b) {
    Block out;
    for (auto& s : b)
      std::visit(Match{[&](const Fold& x) {
                         Fold f = x;
                         if (const auto w = window(f)) {
                           keep_near(f, *w, out);
                           f = held(f, *w);
                         }
                         out.push_back({std::move(f)});
                       },
                       [&](const Loop& x) {
                         Loop l = x;
                         l.body = block(x.body);
                         out.push_back({std::move(l)});
                       },
                       [&](const auto& x) { out.push_back({x}); }},
                 s.node);
    return out;
  }

  // One sum of products of plain reads.
  bool is_sum(const Fold& f) const {
    const Pool& p = *k_.pool;
    if (f.dst.size() != 1 || f.body.when || !f.partial.empty() || !f.body.guards.empty()) return false;
    const expr::Term& join = p[f.combine[0]];
    if (join.op != expr::Op::add || join.type != Type::real) return false;
    for (int i : {0, 1})
      if (p[join.args[size_t(i)]].op != expr::Op::var) return false;
    const expr::Term& v = p[f.body.values[0]];
    if (v.op != expr::Op::mul) return false;
    for (int i : {0, 1})
      if (p[v.args[size_t(i)]].op != expr::Op::arg) return false;
    for (auto& r : f.body.refs)
      for (auto& c : r.index)
        if (!c.refs.empty()) return false;
    return true;
  }

  std::optional<Window> window(Fold& f) const {
    if (!is_sum(f)) return {};
    for (size_t s = f.folded.size(); s-- > 0;)
      for (size_t x = f.kept.size(); x-- > 0;) {
        if (!overlap(f, f.kept[x], f.folded[s])) continue;
        int64_t n = std::min(most_results, f.kept[x].extent);
        while (f.kept[x].extent % n) --n;
        if (n < 2 || !drop_limits(f, f.kept[x].var, f.folded[s].var)) continue;
        return Window{x, s, n};
      }
    return {};
  }

  static bool overlap(const Fold& f, const TileAxis& kept, const TileAxis& folded) {
    if (folded.extent < 2 || folded.extent > widest) return false;
    for (auto& r : f.body.refs)
      for (auto& c : r.index) {
        const int64_t a = coefficient(c.affine, kept.var), b = coefficient(c.affine, folded.var);
        if (a > 0 && b > 0 && (a % b == 0 || b % a == 0) && a < b * folded.extent) return true;
      }
    return false;
  }

  // Whether no limit or bound names these axes once what a checked read implies is gone.
  bool drop_limits(Fold& f, Var kept, Var folded) const {
    Fold out = f;
    out.limits.clear();
    for (auto& l : f.limits) {
      const bool named = coefficient(l.affine, kept) || coefficient(l.affine, folded);
      if (!named && l.refs.empty()) {
        out.limits.push_back(l);
      } else if (!l.refs.empty() || !implied(l.affine, out.body)) {
        return false;
      }
    }
    for (auto& b : f.bounds)
      if (!b.refs.empty() || coefficient(b.affine, kept)) return false;
    f = std::move(out);
    return true;
  }

  // Does the bound hold wherever some factor is read inside its memory? That read is then checked.
  bool implied(const Affine& bound, Body& b) const {
    for (auto& r : b.refs)
      for (size_t d = 0; d < r.index.size(); ++d) {
        const Affine at = r.index[d].affine;
        for (const Affine& inside : {at, constant(memory(r).shape[d] - 1) - at})
          if (const Affine rest = bound - inside; rest.terms.empty() && rest.c >= 0) return r.checked = true;
      }
    return false;
  }

  // Elements from one lane's to the next's: points lie along the last kept axis.
  int64_t apart(const Fold& f, const Ref& r) const {
    int64_t n = 0;
    for (size_t d = 0; d < r.index.size(); ++d)
      n += memory(r).strides[d] * coefficient(r.index[d].affine, f.kept.back().var);
    return n;
  }

  void keep_near(Fold& f, const Window& w, Block& to) {
    for (auto& r : f.body.refs) {
      const int64_t lanes = apart(f, r);
      if (memory(r).home != Home::global || lanes == 0 || lanes == 1) continue;
      if (auto copy = tile(f, w, r)) {
        r = copy->dst[0];
        to.push_back({std::move(*copy)});
      }
    }
  }

  // All that the statement reads of an operand, the axis of the lanes innermost; rows begin in different
  // banks.
  std::optional<Apply> tile(const Fold& f, const Window& w, const Ref& r) {
    std::vector<TileAxis> axes = f.folded, own; // of the tile; in the order of the memory
    axes.insert(axes.end(), f.kept.begin(), f.kept.end());
    std::erase_if(axes, [&](const TileAxis& a) {
      return std::none_of(r.index.begin(), r.index.end(),
                          [&](auto& c) { return coefficient(c.affine, a.var); });
    });
    for (auto& c : r.index) {
      int moved = 0;
      for (auto& a : axes)
        if (const int64_t k = coefficient(c.affine, a.var)) {
          if (k != 1 || a.var == f.kept[w.kept].var) return {};
          own.push_back(a), ++moved;
        }
      if (moved > 1) return {};
    }
    if (own.size() != axes.size()) return {};
    Memory m;
    m.name = "w" + std::to_string(k_.memories.size());
    m.home = Home::register_;
    m.format = k_.compute;
    m.access = Access::read_write;
    m.team = Team::workgroup;
    for (auto& a : axes) m.shape.push_back(a.extent);
    std::vector<int64_t> padded = m.shape;
    padded.back() |= 1;
    m.strides = row_major(padded);
    Ref at{k_.add(std::move(m)), {}, false};
    for (auto& a : axes) at.index.push_back({variable(a.var), {}});
    Apply copy;
    copy.axes = own;
    copy.body.refs = {r};
    copy.body.refs[0].checked |= !f.bounds.empty();
    copy.body.values = {k_.pool->leaf(expr::Op::arg, Type::real, 0)};
    copy.fill = {std::nullopt};
    copy.dst = {at};
    return copy;
  }

  // A component a result; the window's terms written out, in order.
  Fold held(const Fold& f, const Window& w) {
    Pool& p = *k_.pool;
    const TileAxis kept = f.kept[w.kept], folded = f.folded[w.folded];
    const Var run = k_.fresh("w");
    Fold out;
    out.kept = f.kept, out.folded = f.folded;
    out.kept[w.kept] = {run, kept.extent / w.results};
    out.folded.erase(out.folded.begin() + int64_t(w.folded));
    if (out.folded.empty()) out.folded = {{folded.var, 1}};
    out.bounds = f.bounds, out.limits = f.limits, out.accumulate = f.accumulate;
    const expr::Term product = p[f.body.values[0]];
    auto factor = [&](int i, const Affine& x, int64_t t) {
      const Ref& r = f.body.refs[size_t(p[product.args[size_t(i)]].whole)];
      const Ref at = put(put(r, kept.var, x), folded.var, constant(t));
      size_t n = 0;
      while (n < out.body.refs.size() && !same(out.body.refs[n], at)) ++n;
      if (n == out.body.refs.size()) out.body.refs.push_back(at);
      return p.leaf(expr::Op::arg, Type::real, int64_t(n));
    };
    for (int64_t j = 0; j < w.results; ++j) {
      const Affine x = variable(run, w.results) + constant(j);
      Id sum{};
      for (int64_t t = 0; t < folded.extent; ++t) {
        const Id term = p.make(expr::Op::mul, {factor(0, x, t), factor(1, x, t)});
        sum = t ? p.make(expr::Op::add, {sum, term}) : term;
      }
      out.body.values.push_back(sum);
      out.dst.push_back(put(f.dst[0], kept.var, x));
      out.identity.push_back(f.identity[0]);
      out.combine.push_back(p.make(expr::Op::add, {p.leaf(expr::Op::var, Type::real, 2 * j),
                                                   p.leaf(expr::Op::var, Type::real, 2 * j + 1)}));
    }
    return out;
  }

  Kernel k_;
};
} // namespace

Kernel hold_windows(const Kernel& k) {
  Kernel own = k;
  own.pool = std::make_shared<Pool>(*k.pool); // it grows
  return Windows(std::move(own)).run();
}

} // namespace tang::kernel
