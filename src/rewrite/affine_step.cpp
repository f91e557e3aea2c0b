#include "tang/rewrite/affine_step.hpp"

#include <algorithm>

#include "tang/expr/diff.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"
#include "tang/rewrite/times.hpp"

namespace tang::rewrite {

std::set<Port> depending(const Graph& step, const std::set<Port>& from) {
  std::set<Port> out = from;
  for (NodeId id = 0; id < step.nodes.size(); ++id) {
    const auto reads = ir::sources(step, id);
    if (std::none_of(reads.begin(), reads.end(), [&](Port p) { return out.count(p) > 0; })) continue;
    for (uint32_t k = 0; k < step.ports(id); ++k) out.insert({id, k});
  }
  return out;
}

std::set<int> reads_of(const Pool& p, const Comp& n, Id term, const std::set<Port>& ports) {
  std::set<int> out;
  for (Id leaf : expr::subterms(p, term, Op::arg))
    if (ports.count(n.args[size_t(p[leaf].whole)].from)) out.insert(int(p[leaf].whole));
  return out;
}

bool is_zero(const Pool& p, Id term) {
  return p[term].op == Op::literal && p[term].type == Type::real && p[term].r == 0;
}

namespace {
// The term where every read of `reads` is 0; what is multiplied by 0 goes.
Id without(Pool& p, Id id, const std::set<int>& reads) {
  std::map<Id, Id> to;
  for (Id x : expr::schedule(p, {id})) {
    const expr::Term t = p[x];
    if (t.op == Op::arg && t.type == Type::real && reads.count(int(t.whole))) to[x] = p.literal(0.0);
    if (!t.arity()) continue;
    std::vector<Id> a;
    for (int k = 0; k < t.arity(); ++k) {
      auto it = to.find(t.args[size_t(k)]);
      a.push_back(it == to.end() ? t.args[size_t(k)] : it->second);
    }
    Id now = p.make(t.op, a);
    if (t.type == Type::real) {
      const auto zero = [&](size_t k) { return is_zero(p, a[k]); };
      if (t.op == Op::add && zero(0))
        now = a[1];
      else if (t.op == Op::add && zero(1))
        now = a[0];
      else if ((t.op == Op::mul && (zero(0) || zero(1))) ||
               ((t.op == Op::neg || t.op == Op::ratio) && zero(0)))
        now = p.literal(0.0);
    }
    if (now != x) to[x] = now;
  }
  auto it = to.find(id);
  return it == to.end() ? id : it->second;
}

bool is_map(const Comp* c, uint32_t port) {
  return c && c->is_map() && c->outs[port].view.empty() && c->domain == ir::everywhere();
}
} // namespace

std::optional<LinearTerm> linear_in(Pool& p, Id term, const std::set<int>& reads) {
  if (expr::present(p, term).when != expr::yes(p)) return {};
  LinearTerm out;
  for (int a : reads) {
    const auto f = expr::linear_factor(p, term, read_leaf(p, Type::real, a));
    if (!f || std::any_of(reads.begin(), reads.end(), [&](int x) { return uses_arg(p, *f, x); })) return {};
    out.factor[a] = *f;
  }
  out.rest = without(p, term, reads);
  for (int a : reads)
    if (uses_arg(p, out.rest, a)) return {};
  return out;
}

Result<Comp> written_out(Graph& step, Comp n, const std::set<Port>& depends, const std::set<Port>& leaves) {
  for (int a = 0; a < int(n.args.size()); ++a) {
    const Arg read = n.args[size_t(a)];
    if (!depends.count(read.from) || leaves.count(read.from)) continue;
    const Id leaf = read_leaf(step.pool, step.type(read.from), a);
    const bool used =
        std::any_of(n.lift.begin(), n.lift.end(), [&](Id l) { return uses_arg(step.pool, l, a); });
    if (!used && !index_reads(n).count(a)) continue;
    const Comp* source = step[read.from.node].comp();
    if (!used || !is_map(source, read.from.port))
      return Refusal{step.label(read.from) + " is no plain map of the old state"};
    const auto body = spliced(step.pool, Comp(*source), read, n, step.symbols);
    if (!body) return Refusal{body.why()};
    for (Id& l : n.lift) l = expr::substitute(step.pool, l, {{leaf, *body}});
  }
  return n;
}

namespace {
// Sums that depend on the state: what a step may feed back.
std::set<Port> sums(const Graph& step, const std::set<Port>& depends) {
  std::set<Port> out;
  for (Port p : depends)
    if (const Comp* c = step[p.node].comp(); c && !c->is_map()) out.insert(p);
  return out;
}

Comp copy_of(Graph& step, Port p) {
  Comp n;
  n.points = step.shape(p);
  n.outs = {{}};
  for (size_t d = 0; d < n.points.size(); ++d) n.outs[0].axes.push_back(int(d));
  n.lift = {read_leaf(step.pool, step.type(p), add_read(n, {p, every(n.points.size())}))};
  return n;
}

// r, if its terms read the old state at one place each and add nothing else that depends on it.
Result<AffineStep::Correction> correction(Graph& step, Port port, Port old, const std::set<Port>& depends) {
  const std::string name = step.label(port);
  const Comp& made = *step[port.node].comp();
  if (!is_plain_fold(step.pool, made, Op::add) || !made.outs[0].view.empty() ||
      made.domain != ir::everywhere())
    return Refusal{name + " is fed back and is no plain sum"};
  auto sum = written_out(step, made, depends, {old});
  if (!sum) return Refusal{sum.why()};
  AffineStep::Correction out;
  out.port = port, out.sum = *sum;
  const std::set<int> reads = reads_of(step.pool, *sum, sum->lift[0], {old});
  const auto linear = linear_in(step.pool, sum->lift[0], reads);
  if (!linear || reads.size() != 1) return Refusal{name + " is no linear sum of the old state"};
  out.factor = linear->factor.at(*reads.begin()), out.rest = linear->rest;
  for (auto& f : sum->args[size_t(*reads.begin())].view) {
    if (!f.is_pick() || std::count(out.axis.begin(), out.axis.end(), f.picked()))
      return Refusal{name + " reads the old state elsewhere than at its axes"};
    out.axis.push_back(f.picked());
  }
  if (int(out.axis.size()) != sum->axis_count())
    return Refusal{name + " sums along an axis that the state does not have"};
  for (int a : sum->outs[0].axes) {
    const auto at = std::find(out.axis.begin(), out.axis.end(), a);
    if (at == out.axis.end()) return Refusal{name + " has an axis that the state does not have"};
    out.dims.push_back(int(at - out.axis.begin()));
  }
  return out;
}
} // namespace

Result<AffineStep> affine_step(Graph& step, const ir::Recur& r, size_t state) {
  const Port old{r.states[state].in, 0}, next = r.states[state].out;
  const std::string name = step.label(old);
  Pool& p = step.pool;
  const std::set<Port> depends = depending(step, {old});
  std::set<Port> leaves = sums(step, depends);
  leaves.insert(old);
  auto made = written_out(step, copy_of(step, next), depends, leaves);
  if (!made) return Refusal{made.why()};
  AffineStep out;
  out.next = *made;
  const Id lift = out.next.lift[0];
  const std::set<int> all = reads_of(p, out.next, lift, leaves), mine = reads_of(p, out.next, lift, {old});
  const auto linear = linear_in(p, lift, all);
  if (!linear) return Refusal{"the derivative of the next " + name + " mentions " + name};
  if (mine.size() > 1 || all.size() > mine.size() + 1)
    return Refusal{"the next " + name + " reads " + name + " at several places"};
  out.rest = linear->rest, out.factor = p.literal(0.0);
  for (int a : all) {
    const Arg& read = out.next.args[size_t(a)];
    if (read.from == old) {
      if (read.view != every(read.view.size()))
        return Refusal{"the next " + name + " reads " + name + " at another place"};
      out.factor = linear->factor.at(a);
      continue;
    }
    auto fed = correction(step, read.from, old, depends);
    if (!fed) return Refusal{fed.why()};
    for (size_t d = 0; d < read.view.size(); ++d)
      if (!(read.view[d] == ir::axis(fed->dims[d])))
        return Refusal{step.label(read.from) + " is fed back to another place"};
    fed->weight = linear->factor.at(a);
    out.correction = std::move(*fed);
  }
  const Axes along = Dependence(p, out.next).of(out.factor);
  for (size_t d = 0; d < out.next.points.size(); ++d)
    if (along & bit(int(d))) out.axes.push_back(int(d));
  return out;
}

} // namespace tang::rewrite
