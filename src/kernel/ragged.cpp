#include "tang/kernel/ragged.hpp"

#include <algorithm>
#include <map>

#include "tang/kernel/analyze.hpp"

namespace tang::kernel {

namespace {
Affine without_variable(const Affine& a, Var v) { return a - variable(v, coefficient(a, v)); }

class Aligner {
public:
  Aligner(const Kernel& k, int64_t columns, int run, int64_t places) : k_(k), columns_(columns), places_(places), run_(run) {
    k_.pool = std::make_shared<Pool>(*k.pool);
  }

  std::optional<Kernel> run() {
    for (auto& s : k_.body)
      if (!see(s)) return {};
    if (begins_.empty()) return {};
    choose_begin();
    Block body;
    if (!begin_.terms.empty() || begin_.c) {
      const Var q = k_.fresh("q");
      skipped_ = k_.fresh("p");
      aligned_ = begin_ - run_ * variable(q);
      body.push_back({Let{q, Let::floor_div, {begin_}, run_, {}}});
      body.push_back({Let{skipped_, Let::affine, {aligned_}, 1, {}}});
    }
    for (size_t s = 0; s < k_.body.size(); ++s) {
      if (auto* a = std::get_if<Apply>(&k_.body[s].node); a && vars_[s] >= 0) move(*a, vars_[s]);
      if (auto* f = std::get_if<Fold>(&k_.body[s].node); f && vars_[s] >= 0) move(*f, vars_[s]);
      body.push_back(std::move(k_.body[s]));
    }
    k_.body = std::move(body);
    for (auto& [m, d] : orders_) {
      if (d < 0) continue;
      k_.memories[size_t(m)].shape[size_t(d)] = places_;
      k_.memories[size_t(m)].strides = row_major(k_.memories[size_t(m)].shape);
    }
    return std::move(k_);
  }

private:
  // The statement's column goes to `vars_`, -1: it has none.
  bool see(const Stmt& s) {
    Var v = -1;
    const Body* body = nullptr;
    const std::vector<Ref>* dst = nullptr;
    auto take = [&](const std::vector<TileAxis>& axes) {
      for (auto& a : axes) {
        if (a.extent == 1) continue;
        if (v >= 0 || a.extent != columns_) return false;
        v = a.var;
      }
      return true;
    };
    if (auto* a = std::get_if<Apply>(&s.node)) {
      for (auto& f : a->fill)
        if (f) return false;
      if (!take(a->axes)) return false;
      body = &a->body, dst = &a->dst;
    } else if (auto* f = std::get_if<Fold>(&s.node)) {
      if (!take(f->kept) || v >= 0 || !take(f->folded)) return false;
      body = &f->body, dst = &f->dst;
    } else if (!std::holds_alternative<Let>(s.node)) {
      return false;
    }
    vars_.push_back(v);
    for (auto* refs : {body ? &body->refs : nullptr, dst})
      for (size_t r = 0; refs && r < refs->size(); ++r)
        if (!see((*refs)[r], v)) return false;
    return true;
  }

  // Tiles along the row are read at the column alone; where rows begin in memory goes to `begins_`.
  bool see(const Ref& r, Var v) {
    const Memory& m = k_.memories[size_t(r.memory)];
    if (m.home != Home::global) {
      int at = -1;
      for (size_t d = 0; d < r.index.size(); ++d) {
        if (v < 0 || !coefficient(r.index[d].affine, v)) continue;
        if (at >= 0 || !(r.index[d].affine == variable(v)) || !r.index[d].refs.empty()) return false;
        at = int(d);
      }
      return orders_.emplace(r.memory, at).first->second == at && (at < 0 || m.shape[size_t(at)] == columns_);
    }
    const auto at = address(k_, r);
    if (v < 0 || !at || r.checked || coefficient(*at, v) != 1) return true;
    const Affine begin = without_variable(*at, v);
    for (auto& [x, c] : begin.terms)
      if (std::none_of(k_.grid.begin(), k_.grid.end(), [&, x = x](const GridAxis& g) { return g.var == x; })) return true;
    begins_.push_back(begin);
    return true;
  }

  bool alike(const Affine& a, const Affine& b) const {
    const Affine apart = a - b;
    return apart.c % run_ == 0 && std::all_of(apart.terms.begin(), apart.terms.end(), [&](auto& t) { return t.second % run_ == 0; });
  }

  // Where most references begin; the first of them speaks for all.
  void choose_begin() {
    size_t most = 0;
    for (auto& b : begins_) {
      const size_t n = size_t(std::count_if(begins_.begin(), begins_.end(), [&](auto& x) { return alike(x, b); }));
      if (n <= most) continue;
      most = n, begin_ = b;
    }
    if (alike(begin_, {})) begin_ = {};
  }

  // The column is place - begin mod run.
  Affine column(Var v) const { return skipped_ < 0 ? variable(v) : variable(v) - variable(skipped_); }

  void move(Ref& r, Var v) const {
    if (k_.memories[size_t(r.memory)].home != Home::global) return;
    const auto at = address(k_, r);
    const bool with_row = skipped_ >= 0 && at && coefficient(*at, v) == 1 && alike(without_variable(*at, v), begin_);
    for (auto& c : r.index) c.affine = replaced(c.affine, v, with_row ? variable(v) - aligned_ : column(v));
  }

  void move(Bounds& all, Var v) const {
    for (auto& c : all) c.affine = replaced(c.affine, v, column(v));
  }

  void move(Body& b, Var v) {
    for (auto& r : b.refs) move(r, v);
    for (auto& g : b.guards)
      for (auto& x : g) move(x, v);
    if (skipped_ < 0) return;
    Pool& p = *k_.pool;
    const Id place = p.leaf(expr::Op::coord, Type::index, v), less = p.leaf(expr::Op::coord, Type::index, skipped_);
    const Id column = p.make(expr::Op::add, {place, p.make(expr::Op::mul, {p.literal(expr::whole(-1)), less})});
    // Places before the row are left out; saying so keeps the term's range that of a column.
    const std::map<Id, Id> to{{place, p.make(expr::Op::max, {column, p.literal(expr::whole(0))})}};
    for (Id& id : b.values) id = expr::substitute(p, id, to);
    if (b.when) b.when = expr::substitute(p, *b.when, to);
  }

  void leave_out(Bounds& all, Var v) const {
    if (skipped_ >= 0) all.push_back({column(v), {}});
    all.push_back({constant(columns_ - 1) - column(v), {}});
  }

  void widen(std::vector<TileAxis>& axes, Var v) const {
    for (auto& a : axes)
      if (a.var == v) a.extent = places_;
  }

  void move(Apply& a, Var v) {
    move(a.body, v), move(a.bounds, v);
    for (auto& b : a.partial) move(b, v);
    for (auto& r : a.dst) move(r, v);
    leave_out(a.bounds, v), widen(a.axes, v);
  }

  void move(Fold& f, Var v) {
    move(f.body, v), move(f.limits, v);
    for (auto& b : f.partial) move(b, v);
    leave_out(f.limits, v), widen(f.folded, v);
  }

  Kernel k_;
  const int64_t columns_, places_;
  const int run_;
  std::vector<Var> vars_;          // the column of each statement
  std::map<int, int> orders_;      // which dimension of a tile is the row; -1: none
  std::vector<Affine> begins_;     // where rows begin in memory
  Affine begin_, aligned_;         // the chosen one; what precedes the row: begin - run * (begin / run)
  Var skipped_ = -1;               // the same as a variable
};
} // namespace

std::optional<Kernel> aligned_columns(const Kernel& k, int64_t columns, int run, int64_t places) {
  return Aligner(k, columns, run, places).run();
}

} // namespace tang::kernel
