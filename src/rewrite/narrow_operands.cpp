// Narrow operands: a product that reads a scaled array reads the array as it is stored, and the scale beside
// it.
#include <algorithm>

#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// Matrix instructions have operands of this format: 16 bits, tf32, and f32 (`wide`) where it is taken in
// pieces.
bool is_operand(ir::Format f, bool wide) {
  return expr::type_of(f) == Type::real &&
         (expr::row(f).bits == 16 || f == ir::Format::tf32 || (wide && f == ir::Format::f32));
}

bool is_narrow(const Graph& g, Port from, bool wide) {
  auto* in = g[from.node].input();
  return in && is_operand(in->format, wide);
}

// Does the map scale a narrow array by values that lack one of its axes?
bool scales_narrow(Graph& g, const Comp& m, bool wide) {
  if (!m.is_map() || m.lift.size() != 1 || m.domain != ir::everywhere() || !m.outs[0].view.empty() ||
      !axes_fit(m))
    return false;
  Dependence depends(g.pool, m);
  const Product all = product_of(g.pool, m.lift[0]);
  int narrow = 0;
  Axes array = 0, scale = 0;
  for (Id f : all.factors) {
    const expr::Term& t = g.pool[f];
    const bool is = t.op == Op::arg && is_narrow(g, m.args[size_t(t.whole)].from, wide);
    narrow += is;
    (is ? array : scale) |= depends.of(f);
  }
  for (Id d : all.divisors) scale |= depends.of(d);
  return narrow == 1 && all.factors.size() + all.divisors.size() > 1 && (array & ~scale);
}

class Narrower {
public:
  Narrower(const Graph& g, const std::set<NodeId>& kept, bool wide)
      : from_(g), wide_(wide), stored_(g.outputs), fixed_(g.nodes.size(), 0), block_(g.nodes.size(), 0) {
    for (NodeId id : kept) stored_.push_back({{id, 0}, "", ir::Format::bf16});
    for (auto& o : g.outputs) fixed_[o.port.node] = 1;
    for (NodeId id = 0; id < g.nodes.size(); ++id)
      if (!g[id].comp())
        for (Port q : ir::sources(g, id)) fixed_[q.node] = 1;
    for (NodeId id = 0; id < g.nodes.size(); ++id) block_[id] = is_weight(id);
  }

  Changed run() {
    Edit e(from_);
    std::vector<std::string> what;
    for (NodeId id = 0; id < from_.nodes.size(); ++id) {
      if (!e.live[id]) continue;
      Node node = e.node(id);
      if (auto* n = std::get_if<Comp>(&node.what); n && axes_fit(*n)) {
        bool changes = takes_scales(e.to, id, *n);
        if (is_plain_fold(e.to.pool, *n, Op::add) && !n->folds.empty()) {
          changes |= takes_weights(e.to, id, *n);
          changes |= reads_outputs(e, id, *n);
          changes |= reads_arrays(e.to, id, *n);
        }
        if (changes) what.push_back(from_.label({id, 0}));
      }
      e.put(id, std::move(node));
    }
    return {e.finish(), std::move(what)};
  }

private:
  bool is_product(NodeId id) const {
    const Comp* c = from_[id].comp();
    return c && is_plain_fold(from_.pool, *c, Op::add) && !c->folds.empty();
  }

  // A map that weighs contractions point for point, only for other sums: it belongs on their fragments.
  bool is_weight(NodeId id) const {
    const Comp* m = from_[id].comp();
    if (!m || !m->is_map() || fixed_[id] || m->lift.size() != 1 || !m->outs[0].view.empty() || !axes_fit(*m))
      return false;
    const bool reads = std::any_of(m->args.begin(), m->args.end(), [&](auto& a) {
      return is_product(a.from.node) && a.view.size() == m->points.size() && a.view.size() >= 2;
    });
    for (NodeId r = 0; r < from_.nodes.size() && reads; ++r)
      for (Port q : ir::sources(from_, r))
        if (q.node == id && !is_product(r)) return false;
    return reads;
  }

  bool takes_weights(Graph& g, NodeId id, Comp& n) {
    Pool& p = g.pool;
    bool fired = false;
    for (Id f : product_of(p, expr::present(p, n.lift[0]).value).factors) {
      const expr::Term t = p[f];
      if (t.op != Op::arg || size_t(t.whole) >= from_[id].comp()->args.size() ||
          !block_[from_[id].comp()->args[size_t(t.whole)].from.node])
        continue;
      const Arg at = n.args[size_t(t.whole)];
      Comp m = *g[at.from.node].comp();
      const expr::Term root = p[m.lift[0]]; // 0 where it does not exist: no term of a sum
      if (root.op == Op::or_else && p[root.args[1]].op == Op::literal && p[root.args[1]].r == 0)
        m.lift[0] = root.args[0];
      const auto body = spliced(p, m, at, n, g.symbols);
      if (!body) continue;
      n.lift[0] = expr::substitute(p, n.lift[0], {{f, *body}});
      fired = true;
    }
    return fired;
  }

  // A read of a sum x whose quotient by a row's number is a narrow output reads that, times the number.
  bool reads_outputs(Edit& e, NodeId id, Comp& n) {
    Pool& p = e.to.pool;
    bool fired = false;
    for (Id f : product_of(p, expr::present(p, n.lift[0]).value).factors) {
      const expr::Term t = p[f];
      if (t.op != Op::arg || size_t(t.whole) >= from_[id].comp()->args.size()) continue;
      const Port wide = from_[id].comp()->args[size_t(t.whole)].from;
      if (!from_[wide.node].comp()) continue;
      for (auto& o : stored_)
        if (const auto x = quotient(e, o, wide, id, int(t.whole), n)) {
          n.lift[0] = expr::substitute(p, n.lift[0], {{f, *x}});
          fired = true;
          break;
        }
    }
    return fired;
  }

  std::optional<Id> quotient(Edit& e, const ir::Output& o, Port wide, NodeId reader, int arg, Comp& n) {
    Pool& p = e.to.pool;
    const Comp* m = from_[o.port.node].comp();
    if (!m || o.port.node >= reader || !is_operand(o.format, wide_) || !m->is_map() ||
        m->lift.size() != 1 || m->domain != ir::everywhere() || !m->outs[0].view.empty() || !axes_fit(*m))
      return {};
    const Product all = product_of(p, m->lift[0]);
    if (all.factors.size() != 1 || all.divisors.empty() || p[all.factors[0]].op != Op::arg) return {};
    const Arg& source = m->args[size_t(p[all.factors[0]].whole)];
    Dependence depends(p, *m);
    Axes scale = 0;
    for (Id d : all.divisors) scale |= depends.of(d);
    if (source.from != wide || source.view.size() != m->points.size() || !(point_axes(*m) & ~scale))
      return {};
    std::map<int, Form> at;
    for (size_t d = 0; d < source.view.size(); ++d)
      if (source.view[d].is_pick()) at[source.view[d].picked()] = n.args[size_t(arg)].view[d];
    if (at.size() != m->points.size()) return {};
    const Comp map = *e.to[e.at({o.port.node, 0}).node].comp();
    const Product now = product_of(p, map.lift[0]);
    Import in(p, map, n, [&](int x) { return at.at(x); });
    Arg read{e.at({o.port.node, 0}), {}};
    for (int x : map.outs[0].axes) read.view.push_back(at.at(x));
    Product out{{read_leaf(p, Type::real, add_read(n, read))}, {}};
    for (Id d : now.divisors) out.factors.push_back(in.body(d));
    if (!in.why().empty()) return {};
    fresh_output_.insert({reader, read.from});
    return term_of(p, out);
  }

  // A sum whose scale came out is read times that scale.
  bool takes_scales(Graph& g, NodeId id, Comp& n) {
    bool fired = false;
    for (int a = 0, count = int(n.args.size()); a < count; ++a) {
      const auto it = scaled_.find(from_[id].comp()->args[size_t(a)].from.node);
      if (it == scaled_.end()) continue;
      Comp m = it->second;
      m.args[0].from = n.args[size_t(a)].from;
      const auto body = spliced(g.pool, m, n.args[size_t(a)], n, g.symbols);
      check(bool(body), "a scale has no form where its sum is read");
      for (Id& l : n.lift) l = expr::substitute(g.pool, l, {{read_leaf(g.pool, Type::real, a), *body}});
      fired = true;
    }
    return fired;
  }

  bool reads_arrays(Graph& g, NodeId id, Comp& n) {
    Pool& p = g.pool;
    const expr::Present lift = expr::present(p, n.lift[0]);
    Product out;
    bool fired = false;
    auto add = [&](const Product& x) {
      out.factors.insert(out.factors.end(), x.factors.begin(), x.factors.end());
      for (Id d : x.divisors) out.factors.push_back(p.make(Op::ratio, {p.literal(1.0), d}));
    };
    const Product read = product_of(p, lift.value);
    const bool weighs =
        std::any_of(read.factors.begin(), read.factors.end(), [&](Id f) { return p[f].arity() > 0; });
    for (Id f : read.factors) {
      const expr::Term t = p[f];
      const Comp* m = t.op == Op::arg ? g[n.args[size_t(t.whole)].from.node].comp() : nullptr;
      std::optional<Id> body;
      if (m && scales_narrow(g, *m, wide_)) body = unscaled(g, *m, int(t.whole), weighs, n);
      add(body ? product_of(p, *body) : Product{{f}, {}});
      fired |= bool(body) || (t.op == Op::arg && fresh_output_.count({id, n.args[size_t(t.whole)].from}));
    }
    if (!fired) return false;
    add({{}, product_of(p, lift.value).divisors});
    Product inside = out;
    if (!fixed_[id] && lift.when == expr::yes(p) && never_empty(n, g.symbols)) inside = leave(g, id, n, out);
    const Id value = term_of(p, inside);
    n.lift[0] = lift.when == expr::yes(p) ? value : p.make(Op::only, {lift.when, value});
    return true;
  }

  // The array that `m` scales and the scale, which leaves the sum or joins the sum's own weight: a stored
  // operand has no place for it.
  std::optional<Id> unscaled(Graph& g, Comp m, int arg, bool weighs, Comp& n) {
    Pool& p = g.pool;
    Comp trial = n;
    const auto body = spliced(p, m, n.args[size_t(arg)], trial, g.symbols);
    if (!body) return {};
    Dependence depends(p, trial);
    const Product all = product_of(p, *body);
    bool fits = weighs || !(depends.of(term_of(p, {{}, all.divisors})) & fold_axes(n));
    for (Id f : all.factors) {
      const expr::Term& t = p[f];
      const bool array = t.op == Op::arg && is_narrow(g, trial.args[size_t(t.whole)].from, wide_);
      fits = fits && (array || weighs || !(depends.of(f) & fold_axes(n)));
    }
    if (!fits) return {};
    n = std::move(trial);
    return *body;
  }

  // What stays of the product; the factors that do not change along the folds are kept for the readers.
  Product leave(Graph& g, NodeId id, const Comp& n, const Product& all) {
    Pool& p = g.pool;
    Dependence depends(p, n);
    Product inside, outside;
    for (Id f : all.factors) {
      bool total = true;
      for (Id x : expr::subterms(p, f, Op::arg)) total = total && is_total(g, n, int(p[x].whole));
      (total && !(depends.of(f) & fold_axes(n)) && has_reads(p, f) ? outside : inside).factors.push_back(f);
    }
    if (outside.factors.empty() || !n.outs[0].view.empty() || n.outs[0].axes.size() != n.points.size())
      return all;
    Comp m;
    m.points = n.points;
    Arg sum{{0, 0}, {}};
    for (int a : n.outs[0].axes) sum.view.push_back(ir::axis(a));
    m.args = {sum};
    Import in(p, n, m, [](int a) { return ir::axis(a); });
    outside.factors = {in.body(term_of(p, outside))};
    outside.factors.push_back(read_leaf(p, Type::real, 0));
    m.lift = {term_of(p, outside)};
    m.outs = {n.outs[0]};
    if (!in.why().empty()) return all;
    scaled_[id] = std::move(m);
    return inside;
  }

  const Graph& from_;
  const bool wide_;
  std::vector<ir::Output> stored_; // outputs, and maps that are stored narrow as if they were
  std::vector<char> fixed_; // read by something that is no comprehension
  std::vector<char> block_; // weights of blocks
  std::set<std::pair<NodeId, Port>> fresh_output_;
  std::map<NodeId, Comp>
      scaled_; // a sum without its scale, by its old node: the scaled sum, read 0 is the sum
};
} // namespace

Graph narrow_operands(const Graph& g, const std::set<NodeId>& kept, bool wide) {
  Changed c = Narrower(g, kept, wide).run();
  return c.what.empty() ? g : ir::canonical(c.graph).graph;
}

} // namespace tang::rewrite
