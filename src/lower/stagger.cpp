#include "tang/lower/stagger.hpp"

#include <algorithm>

#include "tang/kernel/passes.hpp"
#include "tang/lower/emitters.hpp"

namespace tang::lower {

using kernel::Affine;
using kernel::Apply;
using kernel::Bounds;
using kernel::Fold;
using kernel::joined_chains;
using kernel::Kernel;
using kernel::Ref;
using kernel::Stmt;
using kernel::TileAxis;
using kernel::Var;
using kernel::wide_row;

namespace {
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

struct Rows {
  Kernel& k;
  int64_t rows = 0;
  int64_t beside = 1; // rows that a stage has at a time
  size_t first = 0;                 // statement; those before are Lets
  std::vector<Var> row_of = {};     // of each statement
  std::vector<int> stage = {};      // of each statement: how many rows it is behind the first one
  std::vector<char> is_wide = {};   // passes over the columns of a row

  bool is_tile(int m) const { return k.memories[size_t(m)].home != kernel::Home::global; }

  // A tile of many elements a row, of which there is room for one row.
  bool is_long(int m) const { return is_tile(m) && k.memories[size_t(m)].size() > rows; }

  std::set<int> long_tiles(size_t s) const {
    std::set<int> out;
    each_affine(k.body[s], [&](Affine&, Ref* r, size_t) {
      if (r && is_long(r->memory)) out.insert(r->memory);
    });
    return out;
  }

  static int64_t columns(const Stmt& s) {
    int64_t n = 1;
    if (auto* a = std::get_if<Apply>(&s.node))
      for (size_t x = 1; x < a->axes.size(); ++x) n *= a->axes[x].extent;
    if (auto* f = std::get_if<Fold>(&s.node)) {
      for (size_t x = 1; x < f->kept.size(); ++x) n *= f->kept[x].extent;
      for (auto& x : f->folded) n *= x.extent;
    }
    return n;
  }

  // Straight-line statements over the same rows, each with tiles that have the row as their first dimension.
  bool fits() {
    while (first < k.body.size() && std::holds_alternative<kernel::Let>(k.body[first].node)) ++first;
    if (first + 1 >= k.body.size()) return false;
    row_of.assign(k.body.size(), -1);
    is_wide.assign(k.body.size(), 0);
    for (size_t s = first; s < k.body.size(); ++s) {
      auto* axes = leading(k.body[s]);
      if (!axes || axes->empty()) return false;
      const TileAxis row = axes->front();
      if (rows == 0) rows = row.extent;
      if (row.extent != rows || rows < 4) return false;
      row_of[s] = row.var;
      is_wide[s] = columns(k.body[s]) >= wide_row;
      const auto* a = std::get_if<Apply>(&k.body[s].node);
      const auto* f = std::get_if<Fold>(&k.body[s].node);
      if ((a && a->vector == 0 && a->axes.size() > 1) || (f && f->vector == 0)) return false; // lanes are rows
      if (names_coordinate(k, a ? a->body : f->body, row.var)) return false;
      bool good = true;
      each_affine(k.body[s], [&](Affine& x, Ref* r, size_t d) {
        const bool named = kernel::coefficient(x, row.var) != 0;
        if (r && is_tile(r->memory)) good &= d == 0 ? x == kernel::variable(row.var) : !named;
      });
      if (!good) return false;
    }
    for (size_t m = 0; m < k.memories.size(); ++m)
      if (is_tile(int(m)) && (k.memories[m].shape.empty() || k.memories[m].shape[0] != rows)) return false;
    return is_wide[first] && std::count(is_wide.begin(), is_wide.end(), 1) > 1;
  }

  // The first pass brings a row in, the last one may store it while the next is worked on: as many stages as
  // leave every long tile with one row at a time. One that a stage writes is read in that stage or the next, which
  // goes first.
  bool one_row_a_tile() {
    std::map<int, std::pair<int, int>> used;
    for (size_t s = first; s < k.body.size(); ++s)
      for (int m : long_tiles(s)) {
        auto [at, is_new] = used.try_emplace(m, stage[s], stage[s]);
        at->second = {std::min(at->second.first, stage[s]), std::max(at->second.second, stage[s])};
      }
    return std::all_of(used.begin(), used.end(), [](auto& u) { return u.second.second - u.second.first <= 1; });
  }

  int finds_stages() {
    const int64_t wide = std::count(is_wide.begin(), is_wide.end(), 1);
    size_t last_wide = first;
    for (size_t s = first; s < k.body.size(); ++s)
      if (is_wide[s]) last_wide = s;
    for (int last : {2, 1}) {
      stage.assign(k.body.size(), 0);
      if (wide < last + 1) continue;
      int now = 0;
      for (size_t s = first + 1; s < k.body.size(); ++s) { // what is no pass belongs to the one before
        if (is_wide[s]) now = s == last_wide ? last : 1;
        stage[s] = now;
      }
      if (one_row_a_tile()) return last;
    }
    return 0;
  }

  // A core that only waits reads two streams at once faster than one; one that computes needs its registers.
  bool has_dear_pass() const {
    for (size_t s = first; s < k.body.size(); ++s) {
      if (!is_wide[s]) continue;
      const auto* a = std::get_if<Apply>(&k.body[s].node);
      const auto* f = std::get_if<Fold>(&k.body[s].node);
      const kernel::Body& body = a ? a->body : f->body;
      const TileAxis& column = a ? a->axes.back() : f->folded.empty() ? f->kept.back() : f->folded.back();
      if (kernel::effort_along(*k.pool, body, column.var) >= kernel::dear_pass) return true;
    }
    return false;
  }

  // Statement s for one row, which is number `place` of those beside each other.
  Stmt at_row(size_t s, const Affine& row, int64_t place) {
    Stmt out = k.body[s];
    const Var v = row_of[s];
    leading(out)->erase(leading(out)->begin());
    if (auto* a = std::get_if<Apply>(&out.node))
      a->vector = a->vector > 0 ? a->vector - 1 : a->axes.empty() ? -1 : a->vector;
    if (auto* f = std::get_if<Fold>(&out.node)) {
      f->vector = f->vector > 0 ? f->vector - 1 : -1;
      if (is_wide[s]) f->ways = std::min(f->ways, joined_chains);
    }
    each_affine(out, [&](Affine& x, Ref* ref, size_t) {
      const int64_t c = kernel::coefficient(x, v);
      if (!c) return;
      x = x + kernel::variable(v, -c);
      x = x + c * (ref && is_long(ref->memory) ? kernel::constant(place) : row);
    });
    return out;
  }

  // What no pass of its stage waits for can follow all passes, which then stand side by side: but for what reads a
  // row that a pass of the stage before replaces with the next one.
  bool may_follow(size_t s) const {
    if (is_wide[s]) return false;
    const std::set<int> mine = long_tiles(s);
    for (size_t x = first; x < k.body.size(); ++x) {
      if (!is_wide[x]) continue;
      if (x > s && stage[x] == stage[s]) return false;
      if (stage[x] >= stage[s]) continue;
      for (int m : long_tiles(x))
        if (mine.count(m)) return false;
    }
    return true;
  }

  // What happens at one time: the stages that have a row, the last one first.
  void at_time(const Affine& t, int from, int to, kernel::Block& out) {
    for (bool after : {false, true})
      for (int g = to; g >= from; --g)
        for (size_t s = first; s < k.body.size(); ++s)
          if (stage[s] == g && may_follow(s) == after)
            for (int64_t i = 0; i < beside; ++i)
              out.push_back(at_row(s, beside * (t - kernel::constant(g)) + kernel::constant(i), i));
  }

  void run(int last) {
    const int64_t times = rows / beside;
    kernel::Block out(k.body.begin(), k.body.begin() + long(first));
    for (int t = 0; t < last; ++t) at_time(kernel::constant(t), 0, t, out);
    kernel::Loop steady;
    steady.var = k.fresh("row");
    steady.begin = kernel::constant(last), steady.end = kernel::constant(times);
    at_time(kernel::variable(steady.var), 0, last, steady.body);
    out.push_back({std::move(steady)});
    for (int t = 0; t < last; ++t) at_time(kernel::constant(times + t), t + 1, last, out);
    k.body = std::move(out);
    for (size_t m = 0; m < k.memories.size(); ++m)
      if (is_long(int(m))) k.memories[m].shape[0] = beside;
  }
};
} // namespace

bool stagger_rows(Kernel& k) {
  Rows r{k};
  const int last = r.fits() ? r.finds_stages() : 0;
  if (last && r.rows % 2 == 0 && r.rows / 2 > last && !r.has_dear_pass()) r.beside = 2;
  if (last) r.run(last);
  return last > 0;
}

int64_t rows_to_stagger(int64_t all, int64_t most) {
  int64_t n = most;
  while (n > 1 && all % n) --n;
  return std::max<int64_t>(1, n);
}

} // namespace tang::lower
