#include "tang/verify/bound.hpp"

#include <cmath>
#include <limits>

#include "tang/base/match.hpp"
#include "tang/expr/build.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/verify/error_term.hpp"

namespace tang::verify {

using namespace ir;
using expr::E;
using expr::lit;

Arithmetic single() { return {0x1p-24, 0x3p-23, 0x1p-126, 0x1.fffffep127}; }

Arithmetic twice() { return {0x1p-53, 0x3p-52, 0x1p-1022, std::numeric_limits<double>::max()}; }

namespace {
// The value that exists where `v` does, and is 0 (NaN where v is).
E presence(E v) {
  const E r = v.type() == Type::real ? v : expr::to_real(v), zero = lit(*v.pool, 0);
  return expr::max(expr::min(r, zero), zero);
}

Comp plain_map(const std::vector<Extent>& shape) {
  Comp c;
  c.points = shape;
  Out o;
  for (size_t a = 0; a < shape.size(); ++a) o.axes.push_back(int(a));
  c.outs = {o};
  return c;
}

bool polynomial(const Pool& p, const Monoid& m) {
  for (Id c : m.combine)
    for (Id x : expr::schedule(p, {c})) {
      const expr::Term& t = p[x];
      if (t.type != Type::real) return false;
      if (t.op != Op::add && t.op != Op::mul && t.op != Op::neg && t.op != Op::var && t.op != Op::literal)
        return false;
    }
  return true;
}

int operations(const Pool& p, const Monoid& m) {
  int n = 0;
  for (Id x : expr::schedule(p, m.combine)) n += p[x].op == Op::add || p[x].op == Op::mul;
  return n;
}

class Bounder {
public:
  Bounder(const Graph& g, const Arithmetic& a, const std::set<std::string>& rescaled)
      : copier(g), from_(g), a_(a), rescaled_(rescaled) {}

  Copier copier;
  std::map<Port, Format> narrow; // ports whose stored value is rounded once more, and read so

  void all() {
    for (NodeId id = 0; id < from_.nodes.size(); ++id) {
      const NodeId now = place(id);
      if (!done_.insert(now).second) continue;
      const Node node = to()[now];
      if (auto* c = node.comp()) comp(*c, now, node.name);
      if (auto* r = node.recur()) recur(*r, now);
      for (uint32_t k = 0; k < from_.ports(id); ++k)
        if (auto it = narrow.find({id, k}); it != narrow.end()) stored(copier.at({id, k}), row(it->second));
    }
  }

  NodeId place(NodeId id) { // of the copy
    auto it = placed_.find(id);
    return it != placed_.end() ? it->second : placed_[id] = copier.copy(id);
  }

  Graph& to() { return copier.to; }

  std::optional<Port> error(Port now) const { // of a port of to()
    auto it = errors_.find(now);
    return it == errors_.end() ? std::nullopt : std::optional(it->second);
  }

  void set(Port now, Port error) { errors_[now] = error; }

private:
  Port add(Comp c, const std::string& name) { return {to().add({std::move(c), name + " error", {}}), 0}; }

  // The node's reads, and the error of each beside them: its own, and infinite where it is uncertain what is
  // read.
  Leaves reads(Comp& c) {
    Leaves out;
    const size_t n = c.args.size();
    auto widen = [&](std::map<int64_t, Id>& table, int64_t at, Id more) {
      auto [it, fresh] = table.try_emplace(at, more);
      if (!fresh) it->second = (E{&to().pool, it->second} + E{&to().pool, more}).id;
    };
    for (size_t k = 0; k < n; ++k) { // a read that a view uses comes before it
      if (const auto e = error(c.args[k].from)) {
        widen(out.arg, int64_t(k), to().pool.leaf(Op::arg, Type::real, int64_t(c.args.size())));
        c.args.push_back({*e, c.args[k].view});
      }
      for (auto& f : c.args[k].view)
        for (auto& t : f.args)
          if (out.arg.count(t.first)) widen(out.arg, int64_t(k), out.arg.at(t.first));
    }
    for (size_t k = 0, guards = c.guards.size(); k < guards; ++k) {
      const Domain guard = c.guards[k];
      const auto e = uncertain(c, guard, out);
      if (!e) continue;
      widen(out.holds, int64_t(k), *e);
      out.certain[int64_t(k)] = holds(c, certain(guard, out)).id;
    }
    return out;
  }

  std::optional<E> uncertain(const Form& f, const Leaves& leaves) { // of what it reads
    std::optional<E> out;
    for (auto& t : f.args)
      if (auto it = leaves.arg.find(t.first); it != leaves.arg.end()) {
        const E e{&to().pool, it->second};
        out = out ? expr::max(*out, e) : e;
      }
    return out;
  }

  // The bounds without those that are uncertain.
  Conj certain(const Conj& piece, const Leaves& leaves) {
    Conj out;
    for (auto& f : piece)
      if (!uncertain(f, leaves)) insert(out, f);
    return out;
  }

  Domain certain(const Domain& d, const Leaves& leaves) {
    Domain out;
    for (auto& piece : d) out.push_back(certain(piece, leaves));
    return normal(out);
  }

  // Of a domain's bounds that are read. They count where the other bounds of their piece hold: elsewhere they
  // decide nothing, and what they read may lie outside its array.
  std::optional<Id> uncertain(Comp& n, const Domain& d, const Leaves& leaves) {
    std::optional<E> out;
    for (auto& piece : d) {
      std::optional<E> own;
      for (auto& f : piece)
        if (const auto e = uncertain(f, leaves)) own = own ? expr::max(*own, *e) : *e;
      if (!own) continue;
      if (const Conj rest = certain(piece, leaves); !rest.empty())
        own = expr::select(holds(n, {rest}), *own, lit(to().pool, 0));
      out = out ? expr::max(*out, *own) : *own;
    }
    return out ? std::optional(out->id) : std::nullopt;
  }

  E holds(Comp& n, Domain d) {
    n.guards.push_back(std::move(d));
    return {&to().pool, to().pool.leaf(Op::holds, Type::boolean, int64_t(n.guards.size()) - 1)};
  }

  // A domain whose bounds are uncertain becomes a guard: a point where they are has an infinite error.
  void open_domain(Comp& n, const Leaves& leaves) {
    doubt_ = uncertain(n, n.domain, leaves);
    if (!doubt_) return;
    inside_ = holds(n, n.domain).id;
    n.domain = certain(n.domain, leaves);
  }

  E sure(E value, const Value& otherwise) { // of a fold's term: the identity outside
    if (!doubt_) return value;
    return expr::or_else(expr::only({&to().pool, *inside_}, value),
                         {&to().pool, to().pool.literal(otherwise)});
  }

  E doubtful(E error) {
    if (!doubt_) return error;
    const E d{&to().pool, *doubt_};
    return expr::select(lit(to().pool, 0) < d, lit(to().pool, HUGE_VAL), error);
  }

  void comp(const Comp& c, NodeId now, const std::string& name) {
    Comp n = c;
    const Leaves leaves = reads(n);
    open_domain(n, leaves);
    ErrorTerms terms(to().pool, a_, leaves);
    std::vector<std::optional<Id>> lifts;
    for (Id l : c.lift) lifts.push_back(terms.of(l));
    if (doubt_)
      for (auto& l : lifts)
        if (!l) l = to().pool.literal(0.0);
    if (c.is_map()) {
      if (!lifts[0]) return;
      E e = E{&to().pool, *lifts[0]} + presence({&to().pool, c.lift[0]});
      if (doubt_) e = doubtful(expr::only({&to().pool, *inside_}, e));
      n.lift = {e.id};
      set({now, 0}, add(std::move(n), name));
      return;
    }
    if (polynomial(to().pool, *c.monoid)) return sums(c, n, lifts, now, name);
    running(c, n, lifts, now, name);
  }

  E existing(const Comp& c, size_t component) { // 0 where the term exists
    E out = lit(to().pool, 0);
    for (size_t k = 0; k < c.lift.size(); ++k) {
      const auto &own = c.outs[component].axes, &other = c.outs[k].axes;
      if (std::includes(own.begin(), own.end(), other.begin(), other.end()))
        out = out + presence({&to().pool, c.lift[k]});
    }
    return out;
  }

  // A polynomial combine on the sizes of its terms bounds every order: each path from a term to the result
  // has at most `count` roundings. error <= (1 + gamma) fold(|v| + e) - fold(|v|).
  void sums(const Comp& c, Comp n, const std::vector<std::optional<Id>>& lifts, NodeId now,
            const std::string& name) {
    Pool& p = to().pool;
    const size_t k = c.lift.size();
    bool any = false;
    for (auto& l : lifts) any |= l.has_value();
    double count = operations(p, *c.monoid);
    for (auto& f : c.folds) count *= double(std::max<int64_t>(1, f.value()));
    // A chunk at a time: each term is also rescaled by an act (a difference, an exponential, a product) per
    // chunk.
    if (rescaled_.count(name)) count *= 4 + a_.elementary / a_.unit;
    if (count <= 1 && !any && c.folds.empty()) count = 0;
    const double gamma = count * a_.unit / (1 - count * a_.unit);
    Monoid m = *c.monoid;
    const auto flat = [&](Id x) { // neg drops: sizes add up
      std::map<Id, Id> now_;
      for (Id t : expr::schedule(p, {x})) {
        const expr::Term term = p[t];
        if (term.op == Op::literal)
          now_[t] = p.literal(std::fabs(term.r));
        else if (term.op == Op::neg)
          now_[t] = now_.at(term.args[0]);
        else if (term.op == Op::var)
          now_[t] = t;
        else
          now_[t] = p.make(term.op, {now_.at(term.args[0]), now_.at(term.args[1])});
      }
      return now_.at(x);
    };
    for (Id& x : m.combine) x = flat(x);
    for (Value& v : m.identity) v.r = std::fabs(v.r);
    n.lift.clear();
    n.outs.clear();
    for (size_t x = 0; x < k; ++x) {
      n.lift.push_back(sure(expr::abs(E{&p, c.lift[x]}) + existing(c, x), expr::real(0)).id);
      n.outs.push_back(c.outs[x]);
    }
    if (any) { // the same with the errors added
      for (size_t x = 0; x < k; ++x) {
        const E e = lifts[x] ? E{&p, n.lift[x]} + sure({&p, *lifts[x]}, expr::real(0)) : E{&p, n.lift[x]};
        n.lift.push_back(doubtful(e).id);
        n.outs.push_back(c.outs[x]);
        m.identity.push_back(m.identity[x]);
      }
      for (size_t x = 0; x < k; ++x) {
        std::map<Id, Id> later;
        for (size_t y = 0; y < 2 * k; ++y)
          later[p.leaf(Op::var, Type::real, int64_t(y))] = p.leaf(Op::var, Type::real, int64_t(y + 2 * k));
        m.combine.push_back(expr::substitute(p, m.combine[x], later));
      }
    }
    m.name += " of sizes";
    n.monoid = m;
    const Port sizes = add(std::move(n), name);
    for (size_t x = 0; x < k; ++x) {
      Comp f = plain_map(to().shape({now, uint32_t(x)}));
      std::vector<Form> view;
      for (size_t a = 0; a < f.points.size(); ++a) view.push_back(axis(int(a)));
      const auto leaf = [&](size_t port) {
        f.args.push_back({{sizes.node, uint32_t(port)}, view});
        return E{&p, p.leaf(Op::arg, Type::real, int64_t(f.args.size()) - 1)};
      };
      const E size = leaf(x);
      const E more = any ? leaf(k + x) : size;
      const E gap = any ? expr::max(more - size, lit(p, 0)) : lit(p, 0);
      f.lift = {(gap + more * gamma + a_.tiny * (count + 1)).id};
      set({now, uint32_t(x)}, add(std::move(f), name));
    }
  }

  // Values and errors folded together, in order. For selections (max, arg-max, top-k, any) a certain winner
  // is certain in every order: margins add up.
  void running(const Comp& c, Comp n, const std::vector<std::optional<Id>>& lifts, NodeId now,
               const std::string& name) {
    Pool& p = to().pool;
    const size_t k = c.lift.size();
    Leaves vars;
    bool any = false;
    for (size_t x = 0; x < k; ++x) {
      any |= lifts[x].has_value();
      for (int64_t side : {0, 1})
        vars.var[int64_t(2 * x) + side] = p.leaf(Op::var, Type::real, int64_t(2 * (k + x)) + side);
    }
    if (!any) { // does the combine round by itself?
      ErrorTerms exact(p, a_, {}, true);
      for (Id x : c.monoid->combine) any |= exact.of(x).has_value();
      if (!any) return;
    }
    ErrorTerms terms(p, a_, vars, true);
    Monoid m = *c.monoid;
    for (size_t x = 0; x < k; ++x) {
      m.identity.push_back(expr::real(0));
      const auto e = terms.of(c.monoid->combine[x]);
      m.combine.push_back(e ? *e : p.literal(0.0));
      const E own{&p, lifts[x] ? *lifts[x] : p.literal(0.0)};
      n.lift.push_back(doubtful(sure(own + existing(c, x), expr::real(0))).id);
      n.outs.push_back(c.outs[x]);
    }
    for (size_t x = 0; x < k; ++x) n.lift[x] = sure({&p, n.lift[x]}, c.monoid->identity[x]).id;
    m.name += " with errors";
    n.monoid = m;
    const Port both = add(std::move(n), name);
    for (size_t x = 0; x < k; ++x) set({now, uint32_t(x)}, {both.node, uint32_t(k + x)});
  }

  void stored(Port now, const FormatRow& f) {
    Pool& p = to().pool;
    Comp c = plain_map(to().shape(now));
    std::vector<Form> view;
    for (size_t a = 0; a < c.points.size(); ++a) view.push_back(axis(int(a)));
    c.args.push_back({now, view});
    const E v = expr::abs(E{&p, p.leaf(Op::arg, Type::real, 0)});
    E e = lit(p, 0);
    if (const auto known = error(now)) {
      c.args.push_back({*known, view});
      e = {&p, p.leaf(Op::arg, Type::real, 1)};
    }
    const E inf = lit(p, HUGE_VAL);
    const E room = e + (v + e) * std::ldexp(1.0, -f.mantissa - 1) +
                   std::ldexp(1.0, 2 - (1 << (f.exponent - 1)) - f.mantissa);
    const E fits = expr::select(v + e < lit(p, std::ldexp(1.0, (1 << (f.exponent - 1)) - 1)), room, inf);
    c.lift = {expr::select(v == inf, e, fits).id};
    set(now, add(std::move(c), "stored"));
  }

  Port zeros(Graph& g, const std::vector<Extent>& shape) {
    Comp c = plain_map(shape);
    c.lift = {g.pool.literal(0.0)};
    return {g.add({std::move(c), "exact", {}}), 0};
  }

  // The step carries errors of its states beside them.
  void recur(const Recur& r, NodeId now) {
    Recur n = r;
    Bounder inner(*r.step, a_, rescaled_);
    auto error_input = [&](NodeId in) {
      const Node node = (*r.step)[in];
      const NodeId e =
          inner.to().add({Input{Input::data, node.input()->shape, Format::f64}, node.name + " error", {}});
      return e;
    };
    std::vector<std::pair<NodeId, NodeId>> inputs; // of the step, and of its error
    for (size_t k = 0; k < r.states.size(); ++k) {
      Recur::State s;
      if (r.states[k].init) s.init = error(*r.states[k].init);
      s.in = error_input(r.states[k].in);
      inputs.push_back({r.states[k].in, s.in});
      n.states.push_back(s);
    }
    for (auto& a : r.args)
      if (auto e = error(a.from)) {
        n.args.push_back({*e, a.view, error_input(a.in)});
        inputs.push_back({a.in, n.args.back().in});
      }
    for (auto& [in, e] : inputs) inner.set({inner.place(in), 0}, {e, 0});
    inner.all();
    auto at = [&](Port p) { return inner.copier.at(p); };
    Graph& step = inner.to();
    auto error_of = [&](Port p) {
      const auto e = inner.error(at(p));
      return e ? *e : inner.zeros(step, step.shape(at(p)));
    };
    const size_t states = r.states.size(), emits = r.emits.size();
    for (size_t k = 0; k < states; ++k) {
      n.states[states + k].out = error_of(r.states[k].out);
      n.states[k].in = at({r.states[k].in, 0}).node;
      n.states[k].out = at(r.states[k].out);
    }
    for (size_t k = 0; k < r.args.size(); ++k) n.args[k].in = at({r.args[k].in, 0}).node;
    for (size_t k = 0; k < emits; ++k) {
      n.emits[k].out = at(r.emits[k].out);
      Recur::Emit e = r.emits[k];
      e.out = error_of(r.emits[k].out);
      n.emits.push_back(e);
    }
    n.time = at({r.time, 0}).node;
    step.outputs.clear();
    n.step = std::make_shared<const Graph>(step);
    const NodeId id = to().add({std::move(n), "recur error", {}});
    for (size_t k = 0; k < states; ++k) set({now, uint32_t(k)}, {id, uint32_t(states + k)});
    for (size_t k = 0; k < emits; ++k)
      set({now, uint32_t(states + k)}, {id, uint32_t(2 * states + emits + k)});
  }

  const Graph& from_;
  Arithmetic a_;
  std::set<std::string> rescaled_;
  std::set<NodeId> done_;
  std::map<NodeId, NodeId> placed_;
  std::map<Port, Port> errors_;
  std::optional<Id> doubt_, inside_; // of the node at hand: the error of its domain's bounds, and the domain
};

void named_folds(const Graph& g, std::set<std::string>& out) {
  for (auto& n : g.nodes) {
    if (auto* c = n.comp(); c && c->monoid && c->monoid->size() > 1) out.insert(n.name);
    if (auto* r = n.recur()) named_folds(*r->step, out);
  }
}
} // namespace

std::map<std::string, eval::Array> error_bounds(const Graph& g, const eval::Inputs& inputs,
                                                const Arithmetic& a) {
  std::set<std::string> rescaled; // what may be folded by chunk
  named_folds(g, rescaled);
  const Graph defined = rewrite::definition_form(g);
  Bounder b(defined, a, rescaled);
  std::set<Port> seen; // a value is stored once, in the format of its first output
  for (auto& o : defined.outputs)
    if (a.unit > 0x1p-30 && seen.insert(o.port).second && row(o.format).type == Type::real &&
        row(o.format).mantissa < 23)
      b.narrow[o.port] = o.format; // what the oracle computes is not stored in formats
  b.all();
  eval::Options options; // an error that reads outside its array, on a path that may be taken, has no bound
  options.faults_are_infinite = true;
  eval::Oracle oracle(b.to(), inputs, options);
  std::map<std::string, eval::Array> out;
  for (auto& o : defined.outputs) {
    const auto e = b.error(b.copier.at(o.port));
    out[o.name] = e ? oracle.port(*e) : eval::Array({0}, Type::real);
  }
  return out;
}

} // namespace tang::verify
