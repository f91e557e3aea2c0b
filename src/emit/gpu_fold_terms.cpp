#include "tang/emit/gpu_fold_terms.hpp"

#include <algorithm>

namespace tang::emit {

using expr::Id;
using expr::Op;
using expr::Term;
using kernel::Fold;
using kernel::Pool;
using kernel::Type;

namespace {
// Whether a term differs along the folded axes.
class Along {
public:
  Along(const Pool& p, const Fold& f) : p_(p), f_(f) {}

  bool moves(Id id) const {
    const std::vector<Id> all = expr::schedule(p_, id);
    return std::any_of(all.begin(), all.end(), [&](Id x) { return leaf_moves(p_[x]); });
  }

private:
  bool leaf_moves(const Term& t) const {
    if (t.op == Op::coord) return names(kernel::variable(kernel::Var(t.whole)));
    if (t.op == Op::arg) return ref_moves(int(t.whole));
    if (t.op != Op::holds) return false;
    for (auto& piece : f_.body.guards[size_t(t.whole)])
      for (auto& c : piece)
        if (coordinate_moves(c)) return true;
    return false;
  }

  bool names(const kernel::Affine& a) const {
    return std::any_of(f_.folded.begin(), f_.folded.end(), [&](auto& x) { return coefficient(a, x.var) != 0; });
  }

  bool coordinate_moves(const kernel::Coordinate& c) const {
    return names(c.affine) || std::any_of(c.refs.begin(), c.refs.end(), [&](auto& r) { return ref_moves(r.first); });
  }

  bool ref_moves(int r) const {
    const auto& index = f_.body.refs[size_t(r)].index;
    return std::any_of(index.begin(), index.end(), [&](auto& c) { return coordinate_moves(c); });
  }

  const Pool& p_;
  const Fold& f_;
};

bool is_identity(const Term& t, const kernel::Value& identity) {
  if (t.op != Op::literal || t.type != identity.type) return false;
  return t.type == Type::real ? t.r == identity.r : t.whole == identity.i;
}

bool adds(const Pool& p, const Fold& f) {
  const Term& t = p[f.combine[0]];
  return t.op == Op::add && t.type == Type::real && p[t.args[0]].op == Op::var &&
         p[t.args[1]].op == Op::var && t.args[0] != t.args[1];
}

// x / 2, inside of a product with a number.
Id half(Pool& p, Id x) {
  const Term t = p[x];
  for (int k : {0, 1})
    if (t.op == Op::mul && p[t.args[size_t(k)]].op == Op::literal)
      return p.make(Op::mul, {p.literal(p[t.args[size_t(k)]].r / 2), t.args[size_t(1 - k)]});
  return p.make(Op::mul, {p.literal(0.5), x});
}
} // namespace

FoldTerms fold_terms(Pool& p, const Fold& f, bool powers) {
  FoldTerms out{f, {}, false, f.body.values};
  if (f.combine.size() != 1 || f.accumulate) return out;
  Id& value = out.fold.body.values[0];
  if (const Term t = p[value]; t.op == Op::select && !Along(p, f).moves(t.args[0])) {
    if (is_identity(p[t.args[1]], f.identity[0])) out.empty = t.args[0], value = t.args[2];
    else if (is_identity(p[t.args[2]], f.identity[0])) out.empty = p.make(Op::flip, {t.args[0]}), value = t.args[1];
  }
  out.roots = {value};
  if (const Term t = p[value]; powers && t.op == Op::exp2 && adds(p, f))
    out.power = true, out.roots = {half(p, t.args[0])};
  if (out.empty) out.roots.push_back(*out.empty);
  return out;
}

std::optional<int64_t> slope(const Pool& p, Id id, kernel::Var v) {
  const Term& t = p[id];
  if (t.op == Op::literal) return 0;
  if (t.op == Op::coord) return kernel::Var(t.whole) == v;
  if (t.op != Op::add && t.op != Op::mul) return {};
  const auto a = slope(p, t.args[0], v), b = slope(p, t.args[1], v);
  if (!a || !b) return {};
  if (t.op == Op::add) return *a + *b;
  for (int k : {0, 1})
    if (const Term& x = p[t.args[size_t(k)]]; x.op == Op::literal) return x.whole * (k ? *a : *b);
  return *a || *b ? std::nullopt : std::optional<int64_t>(0);
}

} // namespace tang::emit
