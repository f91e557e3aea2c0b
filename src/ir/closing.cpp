// Closing surface expressions into nodes: folds and maps.
#include <algorithm>

#include "tang/expr/absence.hpp"
#include "tang/ir/absence.hpp"
#include "tang/ir/builder_state.hpp"
#include "tang/ir/monoids.hpp"

namespace tang::ir {

using expr::Present;
using expr::Term;

namespace {

struct Closer {
  Builder::State& s;
  std::vector<int> points; // axis ids
  std::vector<int> folds;
  Where where;
  std::string name;
  Comp n = {};
  std::map<int, int> place = {}; // axis id -> position
  std::map<int, int> taken = {}; // surface read -> arg
  Graph& g = s.g;

  void open() {
    for (int a : points) place.emplace(a, int(place.size()));
    for (int a : folds)
      if (!place.emplace(a, int(place.size())).second)
        throw Error(where, "axis '" + s.axis_name(a) + "' is both kept and folded", {},
                    "fold over another axis");
    for (int a : points) n.points.push_back(s.extent(a, where));
    for (int a : folds) n.folds.push_back(s.extent(a, where));
  }

  Form moved(const Form& f) {
    return compose(
        f,
        [&](int a) {
          auto it = place.find(a);
          if (it == place.end())
            throw Error(where, "axis '" + s.axis_name(a) + "' is free here",
                        {{"the result has only the axes it names", {}}},
                        "add it to the result's axes, or fold over it");
          return axis(it->second);
        },
        [&](int r) { return uniform(take(r)); });
  }

  int take(int r) {
    if (auto it = taken.find(r); it != taken.end()) return it->second;
    Arg a{s.reads[size_t(r)].from, {}};
    for (auto& f : s.reads[size_t(r)].view) a.view.push_back(moved(f));
    n.args.push_back(std::move(a));
    return taken[r] = int(n.args.size()) - 1;
  }

  Id guard(const Domain& d) {
    n.guards.push_back(d);
    return g.pool.leaf(Op::holds, Type::boolean, int64_t(n.guards.size()) - 1);
  }

  // A read exists where its source's domain does.
  Id read(const Term& t) {
    const int a = take(int(t.whole));
    const Id leaf = g.pool.leaf(Op::arg, t.type, a);
    const Arg& arg = n.args[size_t(a)];
    const Comp* source = g[arg.from.node].comp();
    if (!source || source->monoid || source->domain == everywhere()) return leaf;
    const Out& out = source->outs[arg.from.port];
    if (!out.view.empty()) return leaf; // an output view: its absence is in the stored array
    std::map<int, Form> at;
    for (size_t d = 0; d < arg.view.size(); ++d) at[out.axes[d]] = arg.view[d];
    // Uniforms of the source's domain become reads of this node.
    std::map<int, int> uniforms;
    std::function<int(int)> bring = [&](int u) {
      if (auto it = uniforms.find(u); it != uniforms.end()) return it->second;
      Arg b{source->args[size_t(u)].from, {}};
      for (auto& f : source->args[size_t(u)].view)
        b.view.push_back(compose(
            f, [&](int x) { return at.at(x); }, [&](int x) { return uniform(bring(x)); }));
      n.args.push_back(std::move(b));
      return uniforms[u] = int(n.args.size()) - 1;
    };
    const Domain d = ir::moved(source->domain, [&](const Form& f) {
      return compose(
          f, [&](int x) { return at.at(x); }, [&](int u) { return uniform(bring(u)); });
    });
    return g.pool.make(Op::only, {guard(d), leaf});
  }

  Id body(Id e) {
    return expr::transplant(s.pool, e, g.pool, [&](const Term& t) -> Id {
      if (t.op == Op::coord) return g.pool.leaf(Op::coord, Type::index, moved(axis(int(t.whole))).picked());
      if (t.op == Op::holds)
        return guard(ir::moved(s.guards[size_t(t.whole)], [&](const Form& f) { return moved(f); }));
      return read(t);
    });
  }

  // Bounds move from the bodies to the domain; what does not fit stays a predicate.
  void close(const std::vector<Id>& bodies) {
    Pool& p = g.pool;
    Id when = expr::yes(p);
    // What a source's predicate leaves out is in no domain: such a read stays, and an or_else around it.
    const expr::MayMiss missing = [&](Id read) {
      return may_be_absent(g, n.args[size_t(p[read].whole)].from, by_predicates | by_domains_read);
    };
    for (Id e : bodies) {
      const Present x = expr::present(p, e, missing);
      when = expr::both(p, when, x.when, missing);
      n.lift.push_back(x.value);
    }
    std::vector<Id> rest;
    for (Id c : expr::conjuncts(p, when)) {
      if (p[c].op == Op::holds) {
        const Domain d = pruned(intersection(n.domain, n.guards[size_t(p[c].whole)]), n.extents(), g.symbols);
        if (disjoint(d).size() <= most_pieces) {
          n.domain = d;
          continue;
        }
      }
      rest.push_back(c);
    }
    const Id residual = expr::conjunction(p, rest, missing);
    if (residual != expr::yes(p))
      for (Id& l : n.lift) l = p.make(Op::only, {residual, l});
  }

  // A fold whose own guard names none of its fold axes hides an absence: it gives the identity, not "absent".
  bool hides(std::string& guard) const {
    if (n.domain.size() != 1) return false;
    std::function<bool(const Form&)> folds_in = [&](const Form& f) {
      for (auto& t : f.axes)
        if (size_t(t.first) >= n.points.size()) return true;
      for (auto& t : f.args)
        for (auto& v : n.args[size_t(t.first)].view)
          if (folds_in(v)) return true;
      return false;
    };
    for (auto& f : n.domain[0])
      if (!folds_in(f)) {
        guard = text(
                    f,
                    [&](int a) {
                      return s.axis_name(size_t(a) < points.size() ? points[size_t(a)]
                                                                   : folds[size_t(a) - points.size()]);
                    },
                    [&](int u) { return g.label(n.args[size_t(u)].from); }) +
                " >= 0";
        return true;
      }
    return false;
  }

  void warn_hidden(const std::vector<Id>& surface) {
    for (Id root : surface) {
      std::set<Id> covered;
      for (Id x : expr::subterms(s.pool, root, Op::only))
        for (Id r : expr::subterms(s.pool, x, Op::arg)) covered.insert(r);
      for (Id r : expr::subterms(s.pool, root, Op::arg)) {
        auto it = s.hiding.find(s.reads[size_t(s.pool[r].whole)].from);
        if (it == s.hiding.end() || covered.count(r)) continue;
        s.warnings.push_back(tang::place(it->second.second) +
                             ": warning: this fold is the identity, not absent, where its guard " +
                             it->second.first +
                             " fails, and its value is used without a mask\n  fix: masked(" +
                             it->second.first + ", sum(..)) around the fold");
        s.hiding.erase(it);
      }
    }
  }
};

Builder& builder_of(const std::vector<Scalar>& lift, Where where) {
  for (auto& l : lift)
    if (l.builder()) return *l.builder();
  if (Builder* b = Builder::current()) return *b;
  throw Error(where, "a fold or map of plain numbers only", {}, "read a tensor inside it, or use iota(axis)");
}
} // namespace

std::vector<Scalar> fold(const MonoidSpec& m, const Over& over, const std::vector<Scalar>& lift,
                         Where where) {
  Builder& b = builder_of(lift, where);
  auto& s = b.state();
  if (lift.size() != m.identity.size())
    throw Error(where,
                "monoid '" + m.name + "' has " + std::to_string(m.identity.size()) +
                    " components but the term has " + std::to_string(lift.size()),
                {}, "give one value a component");
  if (!m.unproved && !is_proved(m))
    throw Error(
        where, "monoid '" + m.name + "' has no proof, and its folds would be split and reordered",
        {{"no row of the table of monoids has its identity and combine", {}}},
        "if you know that combine is associative, the identity neutral and, unless it is ordered, that "
        "operands may be swapped, set MonoidSpec::unproved");
  std::vector<Id> bodies;
  for (size_t c = 0; c < lift.size(); ++c) {
    bodies.push_back(own_like(b, lift[c], m.identity[c].type));
    if (s.pool[bodies.back()].type != m.identity[c].type)
      throw Error(where,
                  "component " + std::to_string(c) + " of '" + m.name + "' is " +
                      expr::name(s.pool[bodies.back()].type),
                  {{std::string("its identity is ") + expr::name(m.identity[c].type), {}}},
                  "convert it: to_real(..) or to_index(..)");
  }
  Closer close{s, {}, {}, where, m.name};
  std::set<int> bound, all;
  for (auto& a : over) {
    s.form(Index(a), where);
    bound.insert(int(a.id));
    close.folds.push_back(int(a.id));
  }
  std::vector<std::set<int>> own_axes;
  for (Id e : bodies) {
    own_axes.push_back(s.free_axes(e));
    for (int a : bound) own_axes.back().erase(a);
    all.insert(own_axes.back().begin(), own_axes.back().end());
  }
  close.points.assign(all.begin(), all.end());
  close.open();
  std::vector<Id> lifted;
  for (Id e : bodies) lifted.push_back(close.body(e));
  close.close(lifted);
  close.warn_hidden(bodies);
  Comp& n = close.n;
  Monoid& mono = n.monoid.emplace();
  mono.name = m.name;
  mono.identity = m.identity;
  mono.commutative = m.commutative;
  std::vector<expr::E> left, right;
  for (size_t c = 0; c < lift.size(); ++c) {
    left.push_back({&s.g.pool, s.g.pool.leaf(Op::var, m.identity[c].type, int64_t(2 * c))});
    right.push_back({&s.g.pool, s.g.pool.leaf(Op::var, m.identity[c].type, int64_t(2 * c + 1))});
  }
  for (auto& e : m.combine(s.g.pool, left, right)) mono.combine.push_back(e.id);
  // A component also has the axes of what its combine reads (the running max under a sum), and of the term's
  // presence.
  const std::set<int> presence = points_of_domain(close.n);
  for (bool again = true; again;) {
    again = false;
    for (size_t c = 0; c < lift.size(); ++c)
      for (Id v : expr::subterms(s.g.pool, mono.combine[c], Op::var)) {
        const auto& from = own_axes[size_t(s.g.pool[v].whole / 2)];
        const size_t before = own_axes[c].size();
        own_axes[c].insert(from.begin(), from.end());
        again |= own_axes[c].size() != before;
      }
  }
  for (size_t c = 0; c < lift.size(); ++c) {
    Out out;
    for (int a : presence) own_axes[c].insert(close.points[size_t(a)]);
    for (int a : own_axes[c]) out.axes.push_back(close.place.at(a));
    n.outs.push_back(out);
  }
  std::string guard;
  const bool hides = close.hides(guard);
  const std::vector<Out> outs = n.outs;
  const NodeId id = s.g.add({std::move(n), m.name, where});
  std::vector<Scalar> result;
  for (size_t c = 0; c < lift.size(); ++c) {
    std::vector<Form> view;
    for (int a : own_axes[c]) view.push_back(axis(a));
    if (hides) s.hiding[{id, uint32_t(c)}] = {guard, where};
    result.push_back(s.read(&b, {id, uint32_t(c)}, view, where));
  }
  return result;
}

Scalar sum(const Over& over, const Scalar& e, Where where) {
  return fold(e.builder() && e.type() == Type::index ? sum_of_index() : sum_of_reals(), over, {e}, where)[0];
}

Scalar max(const Over& over, const Scalar& e, Where where) {
  return fold(max_of_reals(), over, {e}, where)[0];
}

Scalar min(const Over& over, const Scalar& e, Where where) {
  return fold(min_of_reals(), over, {e}, where)[0];
}

Scalar any(const Over& over, const Scalar& e, Where where) { return fold(any_of(), over, {e}, where)[0]; }

Scalar all(const Over& over, const Scalar& e, Where where) { return fold(all_of(), over, {e}, where)[0]; }

namespace {
Tensor close_map(const std::vector<Axis>& points, const Scalar& body, Out out, const Coords* coords,
                 std::string name, Where where) {
  Builder& b = builder_of({body}, where);
  auto& s = b.state();
  Closer close{s, {}, {}, where, name};
  for (auto& a : points) {
    s.form(Index(a), where);
    close.points.push_back(int(a.id));
  }
  std::vector<Form> view;
  if (coords)
    for (auto& i : *coords) view.push_back(s.form(i, where));
  close.open();
  const Id surface = own(b, body);
  close.close({close.body(surface)});
  close.warn_hidden({surface});
  if (!coords)
    for (size_t k = 0; k < points.size(); ++k) out.axes.push_back(int(k));
  for (auto& f : view) out.view.push_back(close.moved(f));
  close.n.outs = {out};
  return {&b, {s.g.add({std::move(close.n), std::move(name), where}), 0}};
}
} // namespace

Tensor map(const std::vector<Axis>& points, const Scalar& body, std::string name, Where where) {
  return close_map(points, body, {}, nullptr, std::move(name), where);
}

Tensor map_at(const std::vector<Axis>& points, const Coords& coords, const std::vector<Extent>& shape,
              const Scalar& body, std::string name, Where where) {
  if (coords.size() != shape.size())
    throw Error(where,
                "an output view of " + std::to_string(coords.size()) + " coordinates for a shape of " +
                    std::to_string(shape.size()) + " dimensions",
                {}, "give one coordinate a dimension");
  Out out;
  for (size_t k = 0; k < points.size(); ++k) out.axes.push_back(int(k));
  out.shape = shape;
  return close_map(points, body, out, &coords, std::move(name), where);
}

} // namespace tang::ir
