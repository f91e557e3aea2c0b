#include "tang/kernel/roles_parts.hpp"

#include <algorithm>

namespace tang::kernel {

namespace {
const Apply* as_apply(const Stmt& s) { return std::get_if<Apply>(&s.node); }

Home home(const Kernel& k, const Ref& r) { return k.memories[size_t(r.memory)].home; }

// The dimension of `r` that moves with `v` alone, one element a step or at most `apart`; or -1.
int dimension_of(const Ref& r, Var v, int64_t apart = 1) {
  int found = -1;
  for (size_t d = 0; d < r.index.size(); ++d)
    if (int64_t c = coefficient(r.index[d].affine, v)) {
      if (c < 1 || c > apart || found >= 0) return -1;
      found = int(d);
    }
  return found;
}

bool reads_one(const Kernel& k, const Apply& a) {
  return a.dst.size() == 1 && a.body.values.size() == 1 && (*k.pool)[a.body.values[0]].op == expr::Op::arg;
}

// Rows of one axis or of several, in the order of the global's dimensions: as a box lies in a slot.
Result<StagedTile> staged_tile(const Kernel& k, const Apply& a, bool hoisted) {
  constexpr int64_t most_apart = 8; // places between the elements of a box
  const Ref& dst = a.dst[0];
  if (!reads_one(k, a) || a.axes.size() < 2) return Refusal{"an operand is computed while it is staged"};
  const Ref& src = a.body.refs[size_t((*k.pool)[a.body.values[0]].whole)];
  if (home(k, src) != Home::global) return Refusal{"an operand is staged from another tile"};
  for (auto& f : a.fill)
    if (f && f->r != 0) return Refusal{"an operand is padded with something other than 0"};
  StagedTile t;
  t.memory = dst.memory, t.source = src, t.hoisted = hoisted, t.rows = 1;
  const int columns = int(dst.index.size()) - 1;
  for (auto& x : a.axes) {
    const int d = dimension_of(dst, x.var);
    if (d < 0 || (d != columns && size_t(d) != t.row.size()))
      return Refusal{"a tile is not staged row by row"};
    if (d == columns)
      t.column = x.var, t.columns = x.extent;
    else
      t.row.push_back(x), t.rows *= x.extent;
  }
  const Memory& g = k.memories[size_t(src.memory)];
  const int bits = expr::row(g.format).bits, last = int(g.shape.size()) - 1;
  if (t.row.empty() || t.column < 0) return Refusal{"a tile is not staged row by row"};
  if (g.format != k.memories[size_t(dst.memory)].format)
    return Refusal{"an operand changes its format while it is staged"};
  for (auto& c : src.index)
    if (!c.refs.empty()) return Refusal{"an operand is gathered"};
  if (dimension_of(src, t.column) != last || g.strides[size_t(last)] != 1)
    return Refusal{"the columns of an operand do not lie next to each other"};
  for (int before = -1; auto& x : t.row) {
    const int d = dimension_of(src, x.var, most_apart);
    if (d < 0 || d == last) return Refusal{"the rows of an operand lie along no dimension"};
    if (d <= before) return Refusal{"the rows of an operand lie in another order"};
    if (x.extent * coefficient(src.index[size_t(d)].affine, x.var) > 256)
      return Refusal{"a copied box has more than 256 rows"};
    before = d;
  }
  if (last > 4) return Refusal{"an operand has more than five dimensions"};
  for (int d = 0; d < last; ++d)
    if (g.strides[size_t(d)] * bits / 8 % 16)
      return Refusal{"rows of an operand do not begin at multiples of 16 bytes"};
  return t;
}

// One row of 32-bit values, as it lies.
Result<StagedTile> staged_vector(const Kernel& k, const Apply& a) {
  if (!reads_one(k, a) || a.axes.size() != 1) return Refusal{"a vector is computed while it is staged"};
  const Ref& src = a.body.refs[size_t((*k.pool)[a.body.values[0]].whole)];
  const Memory& g = k.memories[size_t(src.memory)];
  const int last = int(g.shape.size()) - 1, bits = expr::row(g.format).bits;
  StagedTile t;
  t.memory = a.dst[0].memory, t.source = src, t.vector = true;
  t.column = a.axes[0].var, t.rows = 1, t.columns = a.axes[0].extent;
  if (g.home != Home::global || g.format != k.memories[size_t(t.memory)].format || bits != 32)
    return Refusal{"a staged vector is not of 32-bit values"};
  if (last > 4 || t.columns > 256 || t.columns % 4) return Refusal{"a vector has no window"};
  if (dimension_of(src, t.column) != last || g.strides[size_t(last)] != 1)
    return Refusal{"the values of a vector do not lie next to each other"};
  for (int d = 0; d < last; ++d)
    if (g.strides[size_t(d)] * bits / 8 % 16 && g.shape[size_t(d)] > 1)
      return Refusal{"rows of vectors do not begin at multiples of 16 bytes"};
  return t;
}

// A fragment of 16 bits becomes an operand in shared memory, element by element.
Result<StagedTile> made_tile(const Kernel& k, const Apply& a) {
  if (!reads_one(k, a) || a.axes.size() != 2 || !a.partial.empty() || a.body.when)
    return Refusal{"a tile is computed while it is stored"};
  const Ref &src = a.body.refs[size_t((*k.pool)[a.body.values[0]].whole)], &dst = a.dst[0];
  const Memory &from = k.memories[size_t(src.memory)], &to = k.memories[size_t(dst.memory)];
  if (from.home != Home::fragment || from.format != to.format || expr::row(to.format).bits != 16)
    return Refusal{"a tile of shared memory is not stored from a fragment of 16 bits"};
  for (int d : {0, 1})
    if (src.index.size() != 2 || dst.index.size() != 2 || dimension_of(src, a.axes[size_t(d)].var) != d ||
        dimension_of(dst, a.axes[size_t(d)].var) != d)
      return Refusal{"a tile of shared memory lies otherwise than its fragment"};
  StagedTile t;
  t.memory = dst.memory, t.made = true;
  t.row = {a.axes[0]}, t.rows = a.axes[0].extent;
  t.column = a.axes[1].var, t.columns = a.axes[1].extent;
  return t;
}

// The loop's pipeline, inside loops that count from 0.
Result<const Pipeline*> innermost(const Loop& l, std::vector<const Loop*>& outer) {
  if (l.body.size() != 1 || !(l.begin == constant(0))) return Refusal{"a loop holds more than a loop"};
  outer.push_back(&l);
  if (auto* p = std::get_if<Pipeline>(&l.body[0].node)) return p;
  auto* in = std::get_if<Loop>(&l.body[0].node);
  return in ? innermost(*in, outer) : Result<const Pipeline*>(Refusal{"a loop holds more than a loop"});
}

} // namespace

int matrix_terms(Format f) {
  const bool has = f == Format::bf16 || f == Format::f16 || f == Format::tf32 || f == Format::e4m3 ||
                   f == Format::e5m2 || f == Format::i8;
  return has ? 256 / expr::row(f).bits : 0;
}

namespace {
int64_t rows_of(const Contract& c) {
  int64_t n = 1;
  for (auto& x : c.m) n *= x.extent;
  return n;
}

Result<ContractParts> contract_parts(const Kernel& k, const TensorParts& parts, const Contract& c) {
  if (c.n.size() != 1 || c.k.size() != 1) return Refusal{"a contraction has several axes on a side"};
  ContractParts out;
  out.node = &c, out.k = c.k[0].var;
  out.columns = c.n[0].extent, out.terms = c.k[0].extent;
  if (home(k, c.dst) != Home::fragment) return Refusal{"a contraction's result is no fragment"};
  auto side = [&](const Ref& r, int& tile, bool& k_major) {
    tile = parts.tile(r.memory);
    if (tile >= 0) k_major = dimension_of(r, out.k) == int(r.index.size()) - 1;
    return tile >= 0;
  };
  if (!side(c.b, out.b, out.b_k_major)) return Refusal{"the columns' operand is not staged"};
  if (!side(c.a, out.a, out.a_k_major) && home(k, c.a) != Home::fragment)
    return Refusal{"the rows' operand is not staged"};
  const Format f = k.memories[size_t(c.b.memory)].format;
  const int bits = expr::row(f).bits, step = matrix_terms(f);
  if (!step) return Refusal{"no matrix instruction for this format"};
  if (k.memories[size_t(c.a.memory)].format != f) return Refusal{"operands of two formats"};
  if (bits != 16 && !(out.a_k_major && out.b_k_major))
    return Refusal{"only 16-bit operands may have their terms apart"};
  if (bits != 16 && out.a < 0) return Refusal{"only 16-bit fragments are operands"};
  if (out.columns % 8 || out.columns > 256) return Refusal{"columns are no multiple of 8, or more than 256"};
  if (out.terms % step) return Refusal{"terms are no multiple of an instruction's"};
  if (rows_of(c) != parts.rows) return Refusal{"contractions of different rows"};
  return out;
}
} // namespace

int TensorParts::tile(int memory) const {
  for (size_t t = 0; t < tiles.size(); ++t)
    if (tiles[t].memory == memory) return int(t);
  return -1;
}

FragmentShape fragment_shape(const Memory& m) {
  FragmentShape out;
  for (size_t d = 0; d < m.shape.size(); ++d)
    if (m.shape[d] != 1) out.row_dims.push_back(int(d));
  std::stable_sort(out.row_dims.begin(), out.row_dims.end(),
                   [&](int a, int b) { return m.strides[size_t(a)] > m.strides[size_t(b)]; });
  if (out.row_dims.size() > 1) out.column_dim = out.row_dims.back(), out.row_dims.pop_back();
  for (int d : out.row_dims) out.rows *= m.shape[size_t(d)];
  if (out.column_dim >= 0) out.columns = m.shape[size_t(out.column_dim)];
  return out;
}

Touched touched(const Stmt& s) {
  Touched out;
  auto body = [&](const Body& b) {
    for (auto& r : b.refs) out.reads.push_back(r.memory);
  };
  if (auto* a = std::get_if<Apply>(&s.node)) {
    body(a->body);
    for (auto& r : a->dst) out.writes.push_back(r.memory);
  } else if (auto* f = std::get_if<Fold>(&s.node)) {
    body(f->body);
    for (auto& r : f->dst) {
      out.writes.push_back(r.memory);
      if (f->accumulate) out.reads.push_back(r.memory);
    }
  } else if (auto* c = std::get_if<Contract>(&s.node)) {
    out.reads = {c->a.memory, c->b.memory, c->dst.memory};
    out.writes = {c->dst.memory};
  }
  return out;
}

Result<TensorParts> tensor_parts(const Kernel& k) {
  TensorParts out;
  for (auto& s : k.body) {
    const auto* p = std::get_if<Pipeline>(&s.node);
    const auto* loop = std::get_if<Loop>(&s.node);
    if (p || loop) {
      if (out.pipe) return Refusal{"it has several loops"};
      if (loop) {
        auto in = innermost(*loop, out.outer);
        if (!in) return Refusal{in.why()};
        p = *in;
      }
      out.pipe = p;
    } else if (std::get_if<Let>(&s.node)) {
      if (out.pipe) return Refusal{"integers after the loop"};
      out.lets.push_back(s);
    } else if (out.pipe) {
      out.finish.push_back(s);
    } else if (const Apply* a = as_apply(s); a && home(k, a->dst[0]) == Home::shared) {
      auto t = staged_tile(k, *a, true);
      if (!t) return Refusal{t.why()};
      out.tiles.push_back(*t);
    } else {
      out.starts.push_back(s);
    }
  }
  if (!out.pipe) return Refusal{"it has no loop over blocks"};
  for (auto& s : out.pipe->operands) {
    const Apply* a = as_apply(s);
    if (!a || home(k, a->dst[0]) != Home::shared)
      return Refusal{"an operand is not copied into shared memory"};
    auto t = a->axes.size() == 1 ? staged_vector(k, *a) : staged_tile(k, *a, false);
    if (!t) return Refusal{t.why()};
    out.tiles.push_back(*t);
  }
  for (auto& s : out.pipe->body)
    if (const Apply* a = as_apply(s); a && home(k, a->dst[0]) == Home::shared) {
      auto t = made_tile(k, *a);
      if (!t) return Refusal{t.why()};
      out.tiles.push_back(*t);
    }
  for (auto& s : out.pipe->body)
    if (auto* c = std::get_if<Contract>(&s.node)) {
      if (!out.rows) out.rows = rows_of(*c);
      auto p = contract_parts(k, out, *c);
      if (!p) return Refusal{p.why()};
      out.contracts.push_back(*p);
    }
  if (out.contracts.empty()) return Refusal{"it contracts nothing"};
  return out;
}

} // namespace tang::kernel
