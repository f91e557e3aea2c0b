#include "tang/lower/body.hpp"

#include <algorithm>

#include "tang/expr/absence.hpp"

namespace tang::lower {

using expr::Op;
using expr::Term;
using expr::Type;

expr::Id index_value(kernel::Pool& p, const Affine& a) {
  std::optional<expr::Id> out;
  auto grow = [&](expr::Id x) { out = out ? p.make(Op::add, {*out, x}) : x; };
  for (auto& [v, k] : a.terms) {
    const expr::Id leaf = p.leaf(Op::coord, Type::index, v);
    grow(k == 1 ? leaf : p.make(Op::mul, {p.literal(expr::whole(k)), leaf}));
  }
  if (a.c || !out) grow(p.literal(expr::whole(a.c)));
  return *out;
}

bool same_pieces(const std::vector<kernel::Bounds>& x, const std::vector<kernel::Bounds>& y) {
  auto covers = [](const kernel::Bounds& p, const kernel::Bounds& q) {
    return std::all_of(p.begin(), p.end(), [&](auto& c) {
      return std::any_of(q.begin(), q.end(), [&](auto& e) { return c.affine == e.affine && c.refs == e.refs; });
    });
  };
  bool out = x.size() == y.size();
  for (size_t k = 0; out && k < x.size(); ++k) out = covers(x[k], y[k]) && covers(y[k], x[k]);
  return out;
}

Ref element(const Home& h, std::vector<Coordinate> at) {
  for (size_t d = 0; d < at.size() && !h.base.empty(); ++d) at[d].affine = at[d].affine - h.base[d];
  if (h.view.empty()) return {h.memory, std::move(at), false};
  Ref r{h.memory, {}, false};
  for (auto& f : h.view) {
    Coordinate c{kernel::constant(f.c.value()), {}};
    for (auto& [a, x] : f.axes) {
      c.affine = c.affine + x * (a == 0 ? h.time : at[size_t(a) - 1].affine);
      if (a > 0)
        for (auto& [ref, y] : at[size_t(a) - 1].refs) c.refs.emplace_back(ref, x * y);
    }
    r.index.push_back(std::move(c));
  }
  return r;
}

Body::Body(kernel::Kernel& k, ir::Graph& g, const ir::Comp& node, std::vector<Affine> axis, Homes homes, Uniforms uniforms)
    : k_(k), g_(g), node_(node), axis_(std::move(axis)), homes_(std::move(homes)), uniforms_(std::move(uniforms)) {}

Coordinate Body::coordinate(const ir::Form& f) {
  Coordinate c{kernel::constant(f.c.value()), {}};
  for (auto& [a, x] : f.axes) c.affine = c.affine + x * axis_[size_t(a)];
  for (auto& [a, x] : f.args) {
    if (const auto u = uniforms_(a)) c.affine = c.affine + x * u->value;
    else c.refs.emplace_back(ref(a), x);
  }
  return c;
}
kernel::Bounds Body::bounds(const ir::Conj& conj) {
  kernel::Bounds out;
  for (auto& f : conj) out.push_back(coordinate(f));
  return out;
}
std::vector<kernel::Bounds> Body::pieces(const ir::Domain& d) {
  std::vector<kernel::Bounds> out;
  for (auto& c : d) out.push_back(bounds(c));
  return out;
}
// One bound is enough: f is that bound and what is never negative.
bool Body::assumed(const ir::Form& f) const {
  const auto extents = node_.extents();
  return std::any_of(assumed_.begin(), assumed_.end(), [&](auto& b) { return ir::range(f - b, extents, {}).first >= 0; });
}
int Body::ref(int arg) {
  if (auto it = refs_.find(arg); it != refs_.end()) return it->second;
  const ir::Arg& a = node_.args[size_t(arg)];
  const Home home = homes_(a.from);
  std::vector<Coordinate> at;
  kernel::Bounds valid;
  bool checked = !home.view.empty() && !home.inside;  // a window may reach beyond its source
  const auto extents = node_.extents();
  const auto shape = g_.shape(a.from);
  for (size_t d = 0; d < a.view.size(); ++d) {
    const ir::Form& f = a.view[d];
    // A coordinate that is one uniform alone is clamped and guarded: the read itself stays a plain, contiguous one.
    if (f.axes.empty() && f.args.size() == 1 && f.args[0].second == 1 && f.c == ir::Extent(0) && shape[d].value() > 0 && !home.is_tile)
      if (const auto u = uniforms_(f.args[0].first)) {
        const int64_t limit = shape[d].value();
        at.push_back({u->clamped(limit), {}});
        valid.push_back({u->value, {}});
        valid.push_back({kernel::constant(limit - 1) - u->value, {}});
        continue;
      }
    at.push_back(coordinate(f));
    const auto [lo, hi] = ir::range(f, extents, {});
    const bool low = lo >= 0 || assumed(f), high = hi < shape[d].value() || assumed(ir::constant(shape[d] - ir::Extent(1)) - f);
    checked |= !(low && high);
  }
  Ref r = element(home, std::move(at));
  r.checked = checked;
  const int index = add_ref(std::move(r));
  if (!valid.empty()) {
    out.guards.push_back({valid});
    valid_[arg] = int(out.guards.size()) - 1;
  }
  return refs_[arg] = index;
}
int Body::add_ref(Ref r) {
  auto equal = [&](const Ref& x) {
    if (x.memory != r.memory || x.checked != r.checked || x.index.size() != r.index.size()) return false;
    for (size_t d = 0; d < x.index.size(); ++d)
      if (!(x.index[d].affine == r.index[d].affine) || x.index[d].refs != r.index[d].refs) return false;
    return true;
  };
  const auto known = std::find_if(out.refs.begin(), out.refs.end(), equal);
  if (known != out.refs.end()) return int(known - out.refs.begin());
  out.refs.push_back(std::move(r));
  return int(out.refs.size()) - 1;
}
bool Body::never_inside(int arg) const {
  const ir::Arg& a = node_.args[size_t(arg)];
  const auto extents = node_.extents();
  const auto shape = g_.shape(a.from);
  for (size_t d = 0; d < a.view.size(); ++d) {
    const auto [lo, hi] = ir::range(a.view[d], extents, {});
    if (lo <= hi && (hi < 0 || lo >= shape[d].value())) return true;
  }
  return false;
}
expr::Id Body::leaf(const Ref& r, Type type) { return k_.pool->leaf(Op::arg, type, add_ref(r)); }
expr::Id Body::value(ir::Id e) {
  kernel::Pool& p = *k_.pool;
  for (ir::Id x : expr::schedule(g_.pool, {e})) {
    if (memo_.count(x)) continue;
    const Term t = g_.pool[x];
    auto at = [&](size_t k) { return memo_.at(t.args[k]); };
    expr::Id made;
    switch (t.op) {
      case Op::literal: made = p.literal(expr::Value{t.type, expr::State::present, t.r, t.whole}); break;
      case Op::coord: made = index_value(p, axis_[size_t(t.whole)]); break;
      case Op::arg: {
        if (never_inside(int(t.whole))) { // some targets refuse a constant index beyond an array
          made = p.literal(expr::Value{t.type, expr::State::present, 0, 0});
          break;
        }
        made = p.leaf(Op::arg, t.type, ref(int(t.whole)));
        if (auto it = valid_.find(int(t.whole)); it != valid_.end()) {
          const expr::Id holds = p.leaf(Op::holds, Type::boolean, it->second);
          made = p.make(Op::select, {holds, made, p.literal(expr::Value{t.type, expr::State::present, 0, 0})});
        }
        break;
      }
      case Op::holds: {
        auto it = guards_.find(int(t.whole));
        if (it == guards_.end()) {
          std::vector<kernel::Bounds> g = pieces(node_.guards[size_t(t.whole)]);
          out.guards.push_back(std::move(g));
          it = guards_.emplace(int(t.whole), int(out.guards.size()) - 1).first;
        }
        made = p.leaf(Op::holds, Type::boolean, it->second);
        break;
      }
      case Op::only: made = at(1); break;  // its condition is taken by the or_else above it, or by `when`
      case Op::or_else: {
        const Term inner = g_.pool[t.args[0]];
        made = inner.op == Op::only ? p.make(Op::select, {memo_.at(inner.args[0]), at(0), at(1)}) : at(0);
        break;
      }
      default: {
        std::vector<expr::Id> a;
        for (int k = 0; k < t.arity(); ++k) a.push_back(at(size_t(k)));
        made = p.make(t.op, a);
      }
    }
    memo_[x] = made;
  }
  return memo_.at(e);
}
void Body::add(const std::vector<ir::Id>& lifts) {
  kernel::Pool& p = *k_.pool;
  ir::Pool& pool = g_.pool;
  ir::Id when = expr::yes(pool);
  for (ir::Id e : lifts) {
    const expr::Present x = expr::present(pool, e);
    when = expr::both(pool, when, x.when);
    out.values.push_back(value(x.value));
  }
  if (when == expr::yes(pool)) return;
  const expr::Id condition = value(when);
  out.when = out.when ? p.make(Op::both, {*out.when, condition}) : condition;
}

}  // namespace tang::lower
