#include "tang/lower/skew.hpp"

#include <algorithm>

#include "tang/expr/effort.hpp"
#include "tang/lower/emitters.hpp"
#include "tang/lower/reuse.hpp"

namespace tang::lower {

using kernel::Affine;
using kernel::Apply;
using kernel::Bounds;
using kernel::Fold;

using kernel::Kernel;
using kernel::Ref;
using kernel::Stmt;
using kernel::TileAxis;
using kernel::Var;

namespace {
constexpr int64_t most_skewed = 8; // statements are repeated for each

std::vector<TileAxis>* leading(Stmt& s) {
  if (auto* a = std::get_if<Apply>(&s.node)) return &a->axes;
  if (auto* f = std::get_if<Fold>(&s.node)) return &f->kept;
  return nullptr;
}

// Calls f for every affine form of a statement that names its axes.
template <class F> void each_affine(Stmt& s, F f) {
  auto bounds = [&](Bounds& b) {
    for (auto& c : b) f(c.affine, static_cast<Ref*>(nullptr), 0);
  };
  auto refs = [&](std::vector<Ref>& all) {
    for (auto& r : all)
      for (size_t d = 0; d < r.index.size(); ++d) f(r.index[d].affine, &r, d);
  };
  auto body = [&](kernel::Body& b) {
    refs(b.refs);
    for (auto& g : b.guards)
      for (auto& x : g) bounds(x);
  };
  if (auto* a = std::get_if<Apply>(&s.node)) {
    bounds(a->bounds), refs(a->dst), body(a->body);
    for (auto& p : a->partial) bounds(p);
  } else if (auto* x = std::get_if<Fold>(&s.node)) {
    bounds(x->bounds), bounds(x->limits), refs(x->dst), body(x->body);
    for (auto& p : x->partial) bounds(p);
  }
}

bool names_coordinate(const Kernel& k, const kernel::Body& b, Var v) {
  std::vector<kernel::Id> roots = b.values;
  if (b.when) roots.push_back(*b.when);
  for (kernel::Id id : expr::schedule(*k.pool, roots))
    if ((*k.pool)[id].op == expr::Op::coord && (*k.pool)[id].whole == v) return true;
  return false;
}

struct Skew {
  Kernel& k;
  int64_t rows = 0;
  size_t first = 0; // statement; those before are Lets
  size_t dearest = 0, last = 0;
  std::vector<Var> row_of = {}; // of each statement

  bool is_tile(int m) const { return k.memories[size_t(m)].home != kernel::Home::global; }

  // Straight-line statements over the same rows, each with tiles that have the row as their first dimension.
  bool fits() {
    while (first < k.body.size() && std::holds_alternative<kernel::Let>(k.body[first].node)) ++first;
    if (first == k.body.size()) return false;
    row_of.assign(k.body.size(), -1);
    for (size_t s = first; s < k.body.size(); ++s) {
      auto* axes = leading(k.body[s]);
      if (!axes || axes->empty()) return false;
      const TileAxis row = axes->front();
      if (rows == 0) rows = row.extent;
      if (row.extent != rows || rows < 2 || rows > most_skewed) return false;
      row_of[s] = row.var;
      const auto* a = std::get_if<Apply>(&k.body[s].node);
      const auto* f = std::get_if<Fold>(&k.body[s].node);
      if ((a && a->vector == 0 && a->axes.size() > 1) || (f && f->vector == 0))
        return false; // lanes are rows
      if (names_coordinate(k, a ? a->body : f->body, row.var)) return false;
      bool good = true;
      each_affine(k.body[s], [&](Affine& x, Ref* r, size_t d) {
        const bool named = kernel::coefficient(x, row.var) != 0;
        if (!r)
          good &= !named; // a ragged last block, or a bound of rows
        else if (is_tile(r->memory))
          good &= d == 0 ? x == kernel::variable(row.var) : !named;
      });
      if (!good) return false;
    }
    for (size_t m = 0; m < k.memories.size(); ++m)
      if (is_tile(int(m)) && (k.memories[m].shape.empty() || k.memories[m].shape[0] != rows)) return false;
    return true;
  }

  static bool plain(const Apply& a) {
    return a.bounds.empty() && a.partial.empty() && !a.body.when && a.body.guards.empty() &&
           std::none_of(a.fill.begin(), a.fill.end(), [](auto& f) { return f.has_value(); });
  }

  // The last statement stores what tiles hold; the dearest of those before over the same points only fills
  // tiles.
  bool finds() {
    last = k.body.size() - 1;
    const auto* l = std::get_if<Apply>(&k.body[last].node);
    if (!l || !plain(*l) || l->axes.size() < 2) return false;
    for (auto& d : l->dst)
      if (is_tile(d.memory)) return false;
    int most = 0;
    for (size_t s = first; s < last; ++s) {
      const auto* a = std::get_if<Apply>(&k.body[s].node);
      if (!a || !plain(*a) || a->axes.size() != l->axes.size() || a->vector != l->vector) continue;
      bool same = true;
      for (size_t x = 0; x < a->axes.size(); ++x) same &= a->axes[x].extent == l->axes[x].extent;
      for (auto& d : a->dst) same &= is_tile(d.memory);
      int e = 0;
      for (kernel::Id v : a->body.values) e += expr::effort(*k.pool, v);
      if (same && e >= dear_effort && e > most) most = e, dearest = s;
    }
    return most > 0;
  }

  // Statement s for row r, which has a place in tiles of two rows.
  Stmt at_row(size_t s, int64_t r) {
    Stmt out = k.body[s];
    const Var v = row_of[s];
    leading(out)->erase(leading(out)->begin());
    if (auto* a = std::get_if<Apply>(&out.node))
      a->vector = a->vector > 0 ? a->vector - 1 : a->axes.empty() ? -1 : a->vector;
    if (auto* f = std::get_if<Fold>(&out.node)) f->vector = f->vector > 0 ? f->vector - 1 : -1;
    each_affine(out, [&](Affine& x, Ref* ref, size_t) {
      const int64_t c = kernel::coefficient(x, v);
      if (!c) return;
      x = x + kernel::variable(v, -c) + kernel::constant(c * (ref && is_tile(ref->memory) ? r % 2 : r));
    });
    return out;
  }

  // One pass: the points of `to`, then those of `rider`, whose axes take the names of `to`'s.
  void ride(Apply& to, const Apply& rider) {
    std::map<Var, Var> name;
    for (size_t x = 0; x < to.axes.size(); ++x) name[rider.axes[x].var] = to.axes[x].var;
    auto renamed = [&](const Ref& r) {
      Ref out = r;
      for (auto& c : out.index) {
        Affine now = kernel::constant(c.affine.c);
        for (auto& [v, x] : c.affine.terms) now = now + kernel::variable(name.count(v) ? name.at(v) : v, x);
        c.affine = now;
      }
      return out;
    };
    const int refs = int(to.body.refs.size());
    for (Ref r : rider.body.refs) {
      r = renamed(r);
      for (auto& c : r.index)
        for (auto& g : c.refs) g.first += refs;
      to.body.refs.push_back(std::move(r));
    }
    kernel::Pool& p = *k.pool;
    for (kernel::Id v : rider.body.values)
      to.body.values.push_back(expr::transplant(kernel::Pool(p), v, p, [&](const expr::Term& t) {
        if (t.op == expr::Op::arg) return p.leaf(t.op, t.type, t.whole + refs);
        if (t.op == expr::Op::literal)
          return p.literal(expr::Value{t.type, expr::State::present, t.r, t.whole});
        return p.leaf(t.op, t.type,
                      t.op == expr::Op::coord && name.count(Var(t.whole)) ? name.at(Var(t.whole)) : t.whole);
      }));
    for (auto& d : rider.dst) to.dst.push_back(renamed(d));
    to.fill.resize(to.dst.size());
  }

  void run() {
    kernel::Block out(k.body.begin(), k.body.begin() + long(first));
    for (int64_t r = 0; r < rows; ++r)
      for (size_t s = first; s < last; ++s) {
        Stmt now = at_row(s, r);
        if (s == dearest && r > 0) {
          const Stmt before = at_row(last, r - 1);
          ride(std::get<Apply>(now.node), std::get<Apply>(before.node));
        }
        out.push_back(std::move(now));
      }
    out.push_back(at_row(last, rows - 1));
    k.body = std::move(out);
    for (auto& m : k.memories)
      if (m.home != kernel::Home::global) m.shape[0] = 2;
  }
};
} // namespace

void skew_rows(Kernel& k) {
  Skew s{k};
  if (s.fits() && s.finds()) s.run();
}

int64_t rows_to_skew(int64_t all, int64_t most) {
  int64_t n = std::min(most, most_skewed);
  while (n > 1 && all % n) --n;
  return std::max<int64_t>(1, n);
}

} // namespace tang::lower
