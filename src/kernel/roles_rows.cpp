#include "tang/kernel/expander.hpp"

#include <algorithm>

namespace tang::kernel::role {

Varies Expander::varies(const Body& b, Var column) const {
  auto moves = [column](const std::vector<Coordinate>& index, const std::vector<Ref>& refs) {
    std::function<bool(const std::vector<Coordinate>&)> any = [&](const std::vector<Coordinate>& at) {
      for (auto& c : at) {
        if (coefficient(c.affine, column)) return true;
        for (auto& [r, x] : c.refs)
          if (any(refs[size_t(r)].index)) return true;
      }
      return false;
    };
    return any(index);
  };
  auto memo = std::make_shared<std::map<Id, bool>>();
  return [this, &b, column, moves, memo](Id root) {
    const Pool& p = *k_.pool;
    for (Id id : expr::schedule(p, {root})) {
      if (memo->count(id)) continue;
      const expr::Term& t = p[id];
      bool v = t.op == expr::Op::coord && Var(t.whole) == column;
      if (t.op == expr::Op::arg) v = moves(b.refs[size_t(t.whole)].index, b.refs);
      if (t.op == expr::Op::holds)
        for (auto& piece : b.guards[size_t(t.whole)]) v |= moves(piece, b.refs);
      for (int i = 0; i < t.arity(); ++i) v |= memo->at(t.args[size_t(i)]);
      (*memo)[id] = v;
    }
    return memo->at(root);
  };
}

// The axes of a statement over fragments, and its terms as a lane wants them.
Rows Expander::by_row(const kernel::Stmt& s) const {
  Rows out{s, -1, -1, false, 1, f_.polynomial};
  auto axes = [&](const std::vector<TileAxis>& all, const Ref& r) {
    const Memory& m = k_.memories[size_t(r.memory)];
    const FragmentShape shape = m.home == Home::fragment ? fragment_shape(m) : FragmentShape{};
    for (auto& x : all) {
      const bool is_row = shape.row_dim >= 0 ? coefficient(r.index[size_t(shape.row_dim)].affine, x.var) != 0
                                             : x.extent == parts_.rows;
      (is_row ? out.row : out.column) = x.var;
    }
  };
  if (auto* a = std::get_if<Apply>(&out.what.node)) {
    const Ref* on = &a->dst[0]; // a fragment says which axis is its rows
    for (auto& r : a->body.refs)
      if (k_.memories[size_t(on->memory)].home != Home::fragment &&
          k_.memories[size_t(r.memory)].home == Home::fragment)
        on = &r;
    axes(a->axes, *on);
    if (out.column >= 0)
      for (Id& v : a->body.values) v = kernel::by_rows(*k_.pool, v, varies(a->body, out.column));
  } else if (auto* f = std::get_if<Fold>(&out.what.node)) {
    out.row = f->kept[0].var, out.column = f->folded[0].var;
    out.late = is_late(*f);
    f->body.values[0] = kernel::by_rows(*k_.pool, f->body.values[0], varies(f->body, out.column));
    const Scaled x = scaled(*k_.pool, f->body.values[0]);
    const expr::Op join = (*k_.pool)[f->combine[0]].op;
    if (join == expr::Op::add || ((join == expr::Op::max || join == expr::Op::min) && x.factor > 0))
      out.factor = x.factor, f->body.values[0] = x.rest;
  }
  return out;
}

// A sum whose tile is otherwise only scaled by row factors may stay in parts, one a lane, until the loop is
// over.
bool Expander::is_late(const Fold& f) const {
  return f.dst.size() == 1 && std::find(late_.begin(), late_.end(), f.dst[0].memory) != late_.end();
}

// A result of two axes in 16 or 32 bits goes through shared memory and a bulk copy; others are stored by the
// lanes.
void Expander::store(const Apply& a, Block& to) {
  const Ref& dst = a.dst[0];
  const Memory& g = k_.memories[size_t(dst.memory)];
  const int last_dim = int(g.shape.size()) - 1, bits = expr::row(g.format).bits;
  bool bulk = a.dst.size() == 1 && a.axes.size() == 2 && expr::type_of(g.format) == Type::real &&
              (bits == 16 || (bits == 32 && !f_.reuse)) && !a.body.when && a.partial.empty() &&
              last_dim <= 4 && last_dim >= 1 && g.strides[size_t(last_dim)] == 1;
  std::vector<int64_t> box;
  for (size_t d = 0; bulk && d < dst.index.size(); ++d) {
    const Affine& x = dst.index[d].affine;
    bulk = dst.index[d].refs.empty() && (int(d) == last_dim || g.strides[d] * bits / 8 % 16 == 0);
    int64_t width = 1;
    for (auto& axis : a.axes)
      if (const int64_t c = coefficient(x, axis.var)) {
        bulk &= c == 1 && width == 1;
        width = int(d) == last_dim ? line * 8 / bits : warp_rows;
        // A box reaches beyond the tile's columns only where the global ends: it would overwrite a neighbour.
        if (int(d) == last_dim) bulk &= axis.extent % width == 0 || axis.extent >= g.shape[d];
      }
    box.push_back(width);
  }
  bulk = bulk && box.back() > 1 && std::count(box.begin(), box.end(), warp_rows) == 1;
  if (!bulk) {
    put(to, by_row({a}));
    return;
  }
  Rows r = by_row({a});
  Flush f{std::get<Apply>(r.what.node), -1, -1, map_for(dst.memory, box), f_.reuse ? 0 : -1, 0};
  for (auto& axis : a.axes) {
    const bool column = coefficient(dst.index[size_t(last_dim)].affine, axis.var);
    (column ? f.column : f.row) = axis.var;
    if (column) f.columns = axis.extent;
  }
  put(to, std::move(f));
}

} // namespace tang::kernel::role
