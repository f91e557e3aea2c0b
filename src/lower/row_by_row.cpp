// Statements over the same rows, one after the other, become one loop over rows: what they hand on is then a row, not a
// block.
#include <algorithm>

#include "tang/lower/reuse.hpp"
#include "tang/lower/sites.hpp"

namespace tang::lower {

namespace {
constexpr int64_t least_far = 64 << 10; // bytes of the tiles that become rows: the nearest memory holds less

class Joiner {
public:
  explicit Joiner(Kernel& k) : k_(k) { count(k.body); }

  void block(kernel::Block& b) {
    kernel::Block out;
    for (size_t i = 0; i < b.size();) {
      if (auto* x = std::get_if<kernel::Loop>(&b[i].node)) block(x->body);
      if (auto* x = std::get_if<kernel::If>(&b[i].node)) block(x->then);
      if (auto* x = std::get_if<kernel::Pipeline>(&b[i].node)) block(x->body);
      const size_t end = run_from(b, i);
      if (end - i > 1 && is_worth_it()) out.push_back(joined(b, i, end));
      else end_as_it_was(b, i, std::max(end, i + 1), out);
      i = std::max(end, i + 1);
    }
    b = std::move(out);
  }

private:
  static void end_as_it_was(kernel::Block& b, size_t from, size_t to, kernel::Block& out) {
    for (size_t i = from; i < to; ++i) out.push_back(std::move(b[i]));
  }

  template <class F> static void each_ref(Stmt& s, F f) {
    if (auto x = site(s, 0)) {
      for (auto& r : x->body->refs) f(r);
      for (auto& r : *x->dst) f(r);
    } else if (auto* c = std::get_if<kernel::Contract>(&s.node)) {
      f(c->dst), f(c->a), f(c->b);
    } else if (auto* l = std::get_if<kernel::Let>(&s.node); l && l->kind == kernel::Let::load) {
      f(l->ref);
    }
  }

  void count(kernel::Block& b) {
    for (auto& s : b) {
      if (auto* x = std::get_if<kernel::Loop>(&s.node)) count(x->body);
      if (auto* x = std::get_if<kernel::If>(&s.node)) count(x->then);
      if (auto* x = std::get_if<kernel::Pipeline>(&s.node)) count(x->operands), count(x->body);
      each_ref(s, [&](Ref& r) { ++uses_[r.memory]; });
    }
  }

  std::optional<TileAxis> rows_of(Stmt& s) const {
    auto* a = std::get_if<Apply>(&s.node);
    if (!a || a->axes.size() != 2 || a->vector != 1 || !a->partial.empty() || a->body.when) return {};
    const TileAxis row = a->axes[0];
    for (auto& f : a->fill)
      if (f && !a->bounds.empty()) return {};
    for (auto& c : a->bounds)
      if (!c.refs.empty() || kernel::coefficient(c.affine, a->axes[1].var)) return {};
    for (Id id : expr::schedule(*k_.pool, a->body.values))
      if ((*k_.pool)[id].op == Op::coord && (*k_.pool)[id].whole == row.var) return {};
    return row;
  }

  static std::vector<Affine> bounds_at(const Apply& a, Var row) {
    std::vector<Affine> out;
    for (auto& c : a.bounds) {
      const int64_t k = kernel::coefficient(c.affine, a.axes[0].var);
      out.push_back(c.affine + kernel::variable(a.axes[0].var, -k) + kernel::variable(row, k));
    }
    return out;
  }

  // The dimension of which the reference names row `v` alone; -1: the row is elsewhere, or not alone.
  static int row_dimension(const Ref& r, Var v) {
    int at = -1;
    for (size_t d = 0; d < r.index.size(); ++d) {
      if (!kernel::coefficient(r.index[d].affine, v)) continue;
      if (at >= 0 || !(r.index[d].affine == kernel::variable(v)) || !r.index[d].refs.empty()) return -1;
      at = int(d);
    }
    return at;
  }

  // Takes statements from `i` on that may share a loop over rows; where they end.
  size_t run_from(kernel::Block& b, size_t i) {
    dimension_.clear(), inside_.clear();
    std::set<int> written, fixed;  // memories of the run; those that are not row by row
    const auto first = rows_of(b[i]);
    size_t end = i;
    for (; first && end < b.size(); ++end) {
      const auto row = rows_of(b[end]);
      if (!row || row->extent != first->extent) break;
      const auto& a = std::get<Apply>(b[end].node);
      if (!(bounds_at(a, first->var) == bounds_at(std::get<Apply>(b[i].node), first->var))) break;
      auto dimension = dimension_, inside = inside_;
      auto now = written, other = fixed;
      for (auto& d : a.dst) now.insert(d.memory);
      bool good = true;
      each_ref(b[end], [&](Ref& r) {
        const int d = row_dimension(r, row->var);
        const auto [at, fresh] = dimension.try_emplace(r.memory, d);
        if (d < 0 || at->second != d) other.insert(r.memory);
        ++inside[r.memory];
      });
      for (int m : other) good &= !now.count(m) || inside[m] == 1;
      if (!good) break;
      dimension_ = std::move(dimension), inside_ = std::move(inside);
      written = std::move(now), fixed = std::move(other);
    }
    for (auto it = dimension_.begin(); it != dimension_.end();) {
      const kernel::Memory& m = k_.memories[size_t(it->first)];
      const bool own = written.count(it->first) && m.home != kernel::Home::global && inside_[it->first] == uses_[it->first];
      it = own ? std::next(it) : dimension_.erase(it);
    }
    return end;
  }

  bool is_worth_it() const {
    int64_t bytes = 0;
    for (auto& [m, d] : dimension_) bytes += k_.memories[size_t(m)].size() * expr::row(k_.memories[size_t(m)].format).bits / 8;
    return bytes >= least_far;
  }

  Stmt joined(kernel::Block& b, size_t from, size_t to) {
    kernel::Loop rows;
    rows.var = k_.fresh("row");
    rows.begin = kernel::constant(0), rows.end = kernel::constant(std::get<Apply>(b[from].node).axes[0].extent);
    kernel::If live{bounds_at(std::get<Apply>(b[from].node), rows.var), {}};
    kernel::Block& body = live.all.empty() ? rows.body : live.then;
    for (size_t i = from; i < to; ++i) {
      auto& a = std::get<Apply>(b[i].node);
      rename_row(b[i], a.axes[0].var, rows.var);
      a.axes.erase(a.axes.begin());
      a.vector = 0;
      a.bounds.clear();
      body.push_back(std::move(b[i]));
    }
    for (auto& [m, d] : dimension_) {
      k_.memories[size_t(m)].shape[size_t(d)] = 1;
      k_.memories[size_t(m)].strides = kernel::row_major(k_.memories[size_t(m)].shape);
    }
    if (!live.all.empty()) rows.body.push_back({std::move(live)});
    return {std::move(rows)};
  }

  void rename_row(Stmt& s, Var from, Var to) {
    auto& a = std::get<Apply>(s.node);
    rename(a.body, {{from, to}});
    auto settle = [&](Ref& r) {
      const auto own = dimension_.find(r.memory);
      for (size_t d = 0; d < r.index.size(); ++d) {
        rename(r.index[d].affine, {{from, to}});
        if (own != dimension_.end() && own->second == int(d)) r.index[d].affine = kernel::constant(0);
      }
    };
    for (auto& r : a.dst) settle(r);
    for (auto& r : a.body.refs) settle(r);
  }

  Kernel& k_;
  std::map<int, int> uses_, inside_;   // of each memory: references in the kernel, in the run at hand
  std::map<int, int> dimension_;       // which dimension of a memory is the row
};
} // namespace

void row_by_row(Kernel& k) { Joiner(k).block(k.body); }

} // namespace tang::lower
