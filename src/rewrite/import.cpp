#include "tang/rewrite/import.hpp"

#include <algorithm>

namespace tang::rewrite {

int add_read(Comp& to, const Arg& a) {
  for (size_t k = 0; k < to.args.size(); ++k)
    if (to.args[k].from == a.from && to.args[k].view == a.view) return int(k);
  to.args.push_back(a);
  return int(to.args.size()) - 1;
}

Id add_guard(Pool& p, Comp& to, const Domain& d) {
  auto it = std::find(to.guards.begin(), to.guards.end(), d);
  if (it == to.guards.end()) it = to.guards.insert(to.guards.end(), d);
  return p.leaf(Op::holds, Type::boolean, it - to.guards.begin());
}

std::map<int, Form> picked_axes(const Comp& source, const Arg& a) {
  const ir::Out& out = source.outs[a.from.port];
  check(out.view.empty(), "axes read through an output view");
  std::map<int, Form> at;
  for (size_t d = 0; d < a.view.size(); ++d) at[out.axes[d]] = a.view[d];
  return at;
}

std::optional<Id> as_term(Pool& p, const Form& f) {
  if (!f.c.is_constant()) return {};
  std::optional<Id> out;
  auto grow = [&](int64_t k, Id leaf) {
    const Id term = k == 1 ? leaf : p.make(Op::mul, {p.literal(expr::whole(k)), leaf});
    out = out ? p.make(Op::add, {*out, term}) : term;
  };
  for (auto& [a, k] : f.axes) grow(k, p.leaf(Op::coord, Type::index, a));
  for (auto& [a, k] : f.args) grow(k, read_leaf(p, Type::index, a));
  const Id c = p.literal(expr::whole(f.c.value()));
  if (!out) return c;
  return f.c.value() ? p.make(Op::add, {*out, c}) : *out;
}

Form Import::form(const Form& f) {
  return ir::compose(f, at_, [&](int u) { return ir::uniform(take(u)); });
}

int Import::take(int k) {
  if (auto it = taken_.find(k); it != taken_.end()) return it->second;
  Arg a{from_.args[size_t(k)].from, {}};
  for (auto& f : from_.args[size_t(k)].view) a.view.push_back(form(f));
  return taken_[k] = add_read(to_, a);
}

Domain Import::domain(const Domain& d) {
  return ir::moved(d, [&](const Form& f) { return form(f); });
}

Id Import::guard(const Domain& d) { return add_guard(pool_, to_, d); }

Id Import::body(Id term) {
  std::map<Id, Id> move;
  for (Id x : expr::schedule(pool_, {term})) {
    const expr::Term t = pool_[x];
    if (t.op == Op::arg) move[x] = read_leaf(pool_, t.type, take(int(t.whole)));
    if (t.op == Op::holds) move[x] = guard(domain(from_.guards[size_t(t.whole)]));
    if (t.op == Op::coord) {
      if (auto e = as_term(pool_, at_(int(t.whole))))
        move[x] = *e;
      else
        why_ = "a coordinate with a symbolic offset";
    }
  }
  return expr::substitute(pool_, term, move);
}

Result<Id> spliced(Pool& p, const Comp& source, const Arg& a, Comp& to, const ir::Symbols& symbols) {
  const std::map<int, Form> at = picked_axes(source, a);
  Import in(p, source, to, [&](int x) { return at.at(x); });
  Id body = in.body(source.lift[a.from.port]);
  if (source.domain != ir::everywhere()) {
    const Domain d = ir::pruned(in.domain(source.domain), to.extents(), symbols);
    if (d != ir::everywhere() && !ir::implies(to.domain, d)) body = p.make(Op::only, {in.guard(d), body});
  }
  if (!in.why().empty()) return Refusal{in.why()};
  return body;
}

} // namespace tang::rewrite
