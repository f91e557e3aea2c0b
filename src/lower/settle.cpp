// Integers that are constants, and quotients by what moves slower.
#include "tang/base/match.hpp"
#include "tang/lower/reuse.hpp"
#include "tang/lower/sites.hpp"

namespace tang::lower {

namespace {
constexpr int64_t least_dividends = 16;

void each_affine(kernel::Block& b, const std::function<void(Affine&)>& f) {
  auto bounds = [&](Bounds& x) {
    for (auto& c : x) f(c.affine);
  };
  auto ref = [&](Ref& r) {
    for (auto& c : r.index) f(c.affine);
  };
  auto body = [&](kernel::Body& x) {
    for (auto& r : x.refs) ref(r);
    for (auto& g : x.guards)
      for (auto& y : g) bounds(y);
  };
  for (auto& s : b)
    std::visit(Match{[&](Apply& x) {
                       bounds(x.bounds), body(x.body);
                       for (auto& y : x.partial) bounds(y);
                       for (auto& d : x.dst) ref(d);
                     },
                     [&](Fold& x) {
                       bounds(x.bounds), bounds(x.limits), body(x.body);
                       for (auto& y : x.partial) bounds(y);
                       for (auto& d : x.dst) ref(d);
                     },
                     [&](kernel::Contract& x) {
                       ref(x.dst), ref(x.a), ref(x.b);
                       for (auto* e : {&x.m_end, &x.n_end, &x.k_end})
                         if (*e) f(**e);
                     },
                     [&](kernel::Let& x) {
                       for (auto& o : x.operands) f(o);
                       ref(x.ref);
                     },
                     [&](kernel::Loop& x) { f(x.begin), f(x.end), each_affine(x.body, f); },
                     [&](kernel::If& x) {
                       for (auto& a : x.all) f(a);
                       each_affine(x.then, f);
                     },
                     [&](kernel::Pipeline& x) {
                       for (auto& g : x.segments) f(g.begin), f(g.end);
                       each_affine(x.operands, f), each_affine(x.body, f);
                     },
                     [](kernel::Barrier&) {}},
               s.node);
}

void settle(Kernel& k, kernel::Block& b, const std::map<Var, int64_t>& value) {
  kernel::Pool& p = *k.pool;
  for (auto& s : b) {
    if (auto* x = std::get_if<kernel::Loop>(&s.node)) settle(k, x->body, value);
    if (auto* x = std::get_if<kernel::If>(&s.node)) settle(k, x->then, value);
    if (auto* x = std::get_if<kernel::Pipeline>(&s.node))
      settle(k, x->operands, value), settle(k, x->body, value);
    auto at = site(s, 0);
    if (!at) continue;
    auto leaf = [&](const Term& t) -> std::optional<Id> {
      if (t.op != Op::coord || !value.count(Var(t.whole))) return std::nullopt;
      return p.literal(expr::whole(value.at(Var(t.whole))));
    };
    for (Id& v : at->body->values) v = copied(p, v, leaf);
    if (at->body->when) at->body->when = copied(p, *at->body->when, leaf);
  }
}

void divide(Kernel& k, kernel::Block& b) {
  kernel::Pool& p = *k.pool;
  for (auto& s : b) {
    if (auto* x = std::get_if<kernel::Loop>(&s.node)) divide(k, x->body);
    if (auto* x = std::get_if<kernel::If>(&s.node)) divide(k, x->then);
    if (auto* x = std::get_if<kernel::Pipeline>(&s.node)) divide(k, x->body);
    auto at = site(s, 0);
    if (!at || at->axes.empty()) continue;
    const std::map<Var, Affine> none;
    Names names(k, *at, none);
    size_t longest = at->axes.size() - 1;
    for (size_t a = 0; a < at->axes.size(); ++a)
      if (at->axes[a].extent > at->axes[longest].extent) longest = a;
    // One divisor serves many dividends: those of the longest axis, or of one inside all that move the divisor.
    auto serves = [&](uint64_t dividend, uint64_t divisor) {
      for (size_t a = 0; a < at->axes.size(); ++a)
        if (at->axes[a].extent >= least_dividends && (dividend & ~divisor) >> a & 1 && (a == longest || !(divisor >> a)))
          return true;
      return false;
    };
    std::map<Id, Id> to;
    auto real = [&](double v) { return p.literal(expr::real(v)); };
    for (Id id : expr::schedule(p, at->body->values)) {
      const Term t = p[id];
      if (t.op != Op::ratio || !serves(names.moves_with(t.args[0]), names.moves_with(t.args[1]))) continue;
      const Id low = p.make(Op::max, {t.args[1], p.make(Op::neg, {t.args[1]})});
      const Id scale = p.make(
          Op::select, {p.make(Op::less, {low, real(0x1p-64)}), real(0x1p64),
                       p.make(Op::select, {p.make(Op::less, {real(0x1p64), low}), real(0x1p-64), real(1)})});
      const Id once = p.make(Op::ratio, {real(1), p.make(Op::mul, {t.args[1], scale})});
      const Id quotient = p.make(Op::mul, {p.make(Op::mul, {t.args[0], scale}), once});
      // By 0 it is 0, whatever is divided: NaN times 0 is not.
      to[id] = p.make(Op::select, {p.make(Op::equal, {t.args[1], real(0)}), real(0), quotient});
    }
    if (to.empty()) continue;
    for (Id& v : at->body->values) v = expr::substitute(p, v, to);
  }
}
} // namespace

void settle_constants(Kernel& k) {
  std::map<Var, int64_t> value;
  kernel::Block rest;
  for (auto& s : k.body) {
    const auto* l = std::get_if<kernel::Let>(&s.node);
    if (l && l->kind == kernel::Let::affine && l->operands[0].terms.empty())
      value[l->var] = l->operands[0].c;
    else
      rest.push_back(std::move(s));
  }
  k.body = std::move(rest);
  if (value.empty()) return;
  each_affine(k.body, [&](Affine& a) {
    Affine out = kernel::constant(a.c);
    for (auto& [v, c] : a.terms)
      out = out + (value.count(v) ? kernel::constant(c * value.at(v)) : kernel::variable(v, c));
    a = out;
  });
  settle(k, k.body, value);
}

void divide_once(Kernel& k) { divide(k, k.body); }

} // namespace tang::lower
