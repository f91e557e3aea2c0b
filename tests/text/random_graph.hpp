// Random typed graphs, the same for a seed on every machine: all node kinds, monoids, domains, gathers, uniforms,
// output views, zero extents, awkward names and literals. A read that is not a plain pick is guarded, so that no
// live term reads out of range.
#pragma once
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tang/base/hash.hpp"
#include "tang/ir/monoids.hpp"

namespace tang::tests {

using namespace tang::ir;

struct RandomOptions {
  bool symbols = true;       // symbolic extents
  bool recurrences = true;
  bool wild = true;          // literals such as NaN, -0, 2^63 - 1; names that need quotes
  int nodes = 8;
};

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed, RandomOptions options = {}) : state_(mix(seed)), options_(options) {}

  Graph make() {
    Graph g;
    if (options_.symbols) {
      g.symbols["n"] = {0, 64, 1};
      g.symbols["m"] = {2, INT64_MAX, 2};
    }
    const int inputs = 2 + below(4);
    for (int k = 0; k < inputs; ++k) input(g, k);
    g.add({Input{Input::data, {}, Format::i32}, "u", {}});
    g.add({Input{Input::data, {Extent(4)}, Format::i32}, "ids", {}});
    g.add({Input{Input::state, {Extent(3), Extent(4)}, Format::f32}, "cache", {}});
    const int nodes = 1 + below(options_.nodes);
    for (int k = 0; k < nodes; ++k) {
      if (options_.recurrences && below(12) == 0) recur(g);
      else comp(g);
    }
    const int outputs = 1 + below(3);
    for (int k = 0; k < outputs; ++k) {
      const NodeId id = NodeId(g.nodes.size() - 1 - size_t(k ? below(int(g.nodes.size())) : 0));
      const Port p{id, uint32_t(below(int(g.ports(id))))};
      g.outputs.push_back({p, below(3) ? "out" + std::to_string(k) : "out " + std::to_string(k) + "\"\n", default_format(g.type(p))});
    }
    return g;
  }

 private:
  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  int below(int n) { return int(next() % uint64_t(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& of(const std::vector<T>& v) { return v[size_t(below(int(v.size())))]; }

  Extent extent() {
    const int k = below(14);
    if (options_.symbols && k < 4) {
      const Extent n = Extent::symbol("n"), m = Extent::symbol("m");
      switch (below(6)) {
        case 0: return n;
        case 1: return m;
        case 2: return n + Extent(1);
        case 3: return floor_div(n + Extent(3), 2) + m * n;
        case 4: return min(n, Extent(4));
        default: return max(m, n) + Extent(2) * n;
      }
    }
    static const std::vector<int> sizes{1, 2, 3, 4, 4, 3, 2, 0, 5, 4};
    return Extent(of(sizes));
  }
  std::vector<Extent> extents(int most) {
    std::vector<Extent> out;
    for (int k = below(most + 1); k > 0; --k) out.push_back(extent());
    return out;
  }
  std::string name(int k) {
    static const std::vector<std::string> wild{"x", "i0", "t1", "sum", "layers.0.w", "a b", "v3", "n", "\xc3\xa9", "", "a", "where", "exact", "out"};
    std::string s = options_.wild ? of(wild) : "x";
    return s + (k < 0 ? "" : std::to_string(k));
  }
  void input(Graph& g, int k) {
    static const std::vector<Format> formats{Format::f32, Format::f32, Format::f16, Format::f64, Format::i32, Format::u32, Format::boolean};
    g.add({Input{Input::Kind(below(3)), extents(3), of(formats)}, name(k), {}});
  }

  // ---- terms of one node
  struct Scope {
    Graph& g;
    Comp& c;
    std::vector<int> axes;  // that terms may use
  };
  Value literal(Type t) {
    if (t == Type::boolean) return expr::truth(chance(50));
    if (t == Type::real) {
      static const std::vector<double> plain{0, 1, -1, 0.5, 2, -3, 0.1, 1e-5, 30, 1e20};
      if (!options_.wild || chance(80)) return expr::real(of(plain));
      static const std::vector<uint64_t> odd{0x8000000000000000u, 0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff8000000000000u, 0x7ff8000000000123u, 1u, 0x7fefffffffffffffu};
      return expr::real(chance(50) ? double_of(of(odd)) : double_of(next() & 0x7fefffffffffffffu));
    }
    static const std::vector<int64_t> plain{0, 1, 2, 3, -1, 7}, odd{INT64_MAX, INT64_MIN, INT64_MAX - 1, int64_t(1) << 53, (int64_t(1) << 53) + 1, -(int64_t(1) << 60)};
    return {t, expr::State::present, 0, options_.wild && chance(15) ? of(odd) : of(plain)};
  }
  Form affine(Scope& s) {
    Form f = constant(chance(30) && options_.symbols ? Extent::symbol("n") - Extent(below(4)) : Extent(below(7) - 3));
    for (int k = below(3); k > 0 && !s.axes.empty(); --k) f = f + axis(of(s.axes), below(5) - 2);
    return f;
  }
  // An index value of another tensor: a uniform, or a gather.
  std::optional<int> index_read(Scope& s, int depth) {
    std::vector<Port> ports;
    for (NodeId id = 0; id < s.g.nodes.size(); ++id)
      for (uint32_t p = 0; p < s.g.ports(id); ++p)
        if (s.g.type({id, p}) == Type::index && s.g.shape({id, p}).size() <= 1) ports.push_back({id, p});
    if (ports.empty()) return {};
    const Port from = of(ports);
    Arg a{from, {}};
    for (auto& e : s.g.shape(from)) {
      std::vector<int> same;
      for (int x : s.axes)
        if (s.c.extent(x) == e) same.push_back(x);
      if (same.empty() || depth > 2) return {};
      a.view.push_back(axis(of(same)));
    }
    s.c.args.push_back(a);
    return int(s.c.args.size()) - 1;
  }
  Domain domain(Scope& s) {
    Domain d;
    for (int p = 1 + below(3); p > 0; --p) {
      Conj c;
      for (int k = 1 + below(2); k > 0; --k) {
        Form f = affine(s);
        if (chance(25))
          if (auto u = index_read(s, 0)) f = f + uniform(*u, below(2) ? 1 : -2);
        insert(c, f);
      }
      d.push_back(c);
    }
    return normal(d);
  }
  Id holds(Scope& s, const Domain& d) {
    s.c.guards.push_back(d);
    return s.g.pool.leaf(Op::holds, Type::boolean, int64_t(s.c.guards.size()) - 1);
  }
  std::optional<Id> read(Scope& s, Type type) {
    std::vector<Port> ports;
    for (NodeId id = 0; id < s.g.nodes.size(); ++id)
      for (uint32_t p = 0; p < s.g.ports(id); ++p)
        if (s.g.type({id, p}) == type) ports.push_back({id, p});
    if (ports.empty()) return {};
    Arg a{of(ports), {}};
    Conj inside;
    const auto shape = s.g.shape(a.from);
    for (auto& e : shape) {
      std::vector<int> same;
      for (int x : s.axes)
        if (s.c.extent(x) == e) same.push_back(x);
      if (!same.empty() && chance(70)) {
        a.view.push_back(axis(of(same)));
        continue;
      }
      Form f = affine(s);
      if (chance(20))
        if (auto u = index_read(s, 0)) f = chance(50) ? uniform(*u) : f + uniform(*u, 1 + below(3));
      a.view.push_back(f);
      insert(inside, f);
      insert(inside, constant(e - Extent(1)) - f);
    }
    s.c.args.push_back(a);
    Pool& p = s.g.pool;
    const Id leaf = p.leaf(Op::arg, type, int64_t(s.c.args.size()) - 1);
    if (inside.empty()) return leaf;
    const Id guarded = p.make(Op::only, {holds(s, normal({inside})), leaf});
    const Id pad = p.literal(literal(type));
    return p.make(Op::or_else, {guarded, pad});
  }
  Id term(Scope& s, Type type, int depth) {
    Pool& p = s.g.pool;
    if (depth == 0 || chance(15)) {
      if (chance(75))
        if (auto r = read(s, type)) return *r;
      if (type == Type::index && !s.axes.empty() && chance(70)) return p.leaf(Op::coord, Type::index, of(s.axes));
      if (type == Type::boolean && chance(60)) {
        const Domain d = domain(s);
        return holds(s, d);
      }
      return p.literal(literal(type));
    }
    auto make = [&](Op op, Type of_type) {
      std::vector<Id> a;
      for (int k = 0; k < expr::arity(op); ++k) a.push_back(term(s, of_type, depth - 1));
      return p.make(op, a);
    };
    if (chance(10)) {
      const Id c = term(s, Type::boolean, depth - 1), x = term(s, type, depth - 1), y = term(s, type, depth - 1);
      return p.make(Op::select, {c, x, y});
    }
    if (chance(6)) {
      const Id c = term(s, Type::boolean, depth - 1), x = term(s, type, depth - 1), y = term(s, type, depth - 1);
      const Id only = p.make(Op::only, {c, x});
      return p.make(Op::or_else, {only, y});
    }
    if (chance(8)) {  // shared
      const Id x = term(s, type, depth - 1);
      if (type == Type::real || type == Type::index) return p.make(Op::mul, {x, p.make(Op::add, {x, p.literal(literal(type))})});
      return x;
    }
    static const std::vector<Type> types{Type::real, Type::index, Type::bits, Type::boolean};
    switch (type) {
      case Type::real: {
        static const std::vector<Op> ops{Op::add, Op::mul, Op::neg, Op::recip, Op::sqrt, Op::sin, Op::atan2, Op::exp2, Op::log2, Op::floor, Op::max, Op::min, Op::ratio, Op::add, Op::mul, Op::to_real};
        const Op op = of(ops);
        return make(op, op == Op::to_real ? of(types) : Type::real);
      }
      case Type::index: {
        static const std::vector<Op> ops{Op::add, Op::mul, Op::neg, Op::max, Op::min, Op::div, Op::mod, Op::bit_and, Op::shift_right, Op::to_index};
        const Op op = of(ops);
        return make(op, op == Op::to_index ? of(types) : Type::index);
      }
      case Type::bits: {
        static const std::vector<Op> ops{Op::add, Op::bit_and, Op::bit_or, Op::bit_xor, Op::shift_left, Op::shift_right, Op::div, Op::mod, Op::to_bits};
        const Op op = of(ops);
        if (op == Op::shift_left && chance(50)) {
          const Id x = term(s, Type::bits, depth - 1), n = term(s, Type::index, depth - 1);
          return p.make(op, {x, n});
        }
        return make(op, op == Op::to_bits ? of(types) : Type::bits);
      }
      case Type::boolean: {
        static const std::vector<Op> ops{Op::less, Op::equal, Op::both, Op::either, Op::flip, Op::is_nan};
        const Op op = of(ops);
        if (op == Op::is_nan) return make(op, Type::real);
        if (op == Op::less) return make(op, types[size_t(below(3))]);
        return make(op, op == Op::equal ? of(types) : Type::boolean);
      }
    }
    return p.literal(literal(type));
  }

  // ---- nodes
  void comp(Graph& g) {
    static const std::vector<Type> types{Type::real, Type::real, Type::real, Type::index, Type::bits, Type::boolean};
    Comp c;
    c.points = extents(3);
    Scope s{g, c, {}};
    for (size_t k = 0; k < c.points.size(); ++k) s.axes.push_back(int(k));
    if (chance(45)) return map(g, c, s, of(types));
    for (int k = below(3); k > 0; --k) c.folds.push_back(extent());
    for (size_t k = 0; k < c.folds.size(); ++k) s.axes.push_back(int(c.points.size() + k));
    const MonoidSpec m = monoid();
    Monoid& mono = c.monoid.emplace();
    mono.name = m.name;
    mono.identity = m.identity;
    mono.commutative = m.commutative;
    std::vector<expr::E> left, right;
    for (size_t k = 0; k < m.identity.size(); ++k) {
      left.push_back({&g.pool, g.pool.leaf(Op::var, m.identity[k].type, int64_t(2 * k))});
      right.push_back({&g.pool, g.pool.leaf(Op::var, m.identity[k].type, int64_t(2 * k + 1))});
    }
    for (auto& e : m.combine(g.pool, left, right)) mono.combine.push_back(e.id);
    // Sums under a running maximum may have an axis more than it: what decides presence stays on the common axes.
    const bool narrow = m.name == "online_softmax" && !c.points.empty() && chance(50);
    Scope common{g, c, s.axes};
    if (narrow) common.axes.erase(common.axes.begin() + int(c.points.size()) - 1);
    if (chance(40)) c.domain = domain(common);
    for (size_t k = 0; k < mono.size(); ++k) {
      Scope& mine = narrow && k == 0 ? common : s;
      Id lift = term(mine, mono.identity[k].type, 1 + below(3));
      c.lift.push_back(lift);
      Out o;
      for (size_t a = 0; a + (narrow && k == 0 ? 1 : 0) < c.points.size(); ++a) o.axes.push_back(int(a));
      c.outs.push_back(o);
    }
    if (chance(15)) {
      const Id condition = term(common, Type::boolean, 1);
      for (Id& l : c.lift) l = g.pool.make(Op::only, {condition, l});
    }
    g.add({std::move(c), chance(50) ? m.name : name(-1), {}});
  }
  void map(Graph& g, Comp& c, Scope& s, Type type) {
    if (chance(40)) c.domain = domain(s);
    if (chance(5)) c.domain = {};
    c.lift = {term(s, type, 1 + below(4))};
    if (chance(10)) c.lift[0] = g.pool.make(Op::only, {term(s, Type::boolean, 1), c.lift[0]});
    Out o;
    for (size_t a = 0; a < c.points.size(); ++a) o.axes.push_back(int(a));
    const bool bound = c.points.size() >= 2 && c.points[0].is_constant() && c.points[1].is_constant();
    if (bound && chance(30)) {  // the first two axes share a coordinate
      const int64_t inner = c.points[1].value();
      const int64_t stride = inner + below(2);
      o.view.push_back(axis(0, stride ? stride : 1) + axis(1) + constant(below(2)));
      o.shape.push_back(c.points[0] * Extent(stride ? stride : 1) + Extent(inner + 2));
      for (size_t a = 2; a < c.points.size(); ++a) {
        o.view.push_back(axis(int(a)));
        o.shape.push_back(c.points[a]);
      }
    } else if (c.points.size() == 2 && chance(15)) {
      std::swap(o.axes[0], o.axes[1]);
    }
    c.outs = {o};
    g.add({std::move(c), chance(40) ? "" : name(-1), {}});
  }
  MonoidSpec monoid() {
    static const std::vector<MonoidSpec> table = all_monoids();
    const int k = below(int(table.size()) + 4);
    if (k < int(table.size())) return table[size_t(k)];
    using expr::E;
    using Es = std::vector<E>;
    if (k == int(table.size())) return {"affine", {expr::real(1), expr::real(0)}, [](Pool&, const Es& a, const Es& b) { return Es{a[0] * b[0], b[0] * a[1] + b[1]}; }, false};
    if (k == int(table.size()) + 1) return {"last", {expr::truth(false), expr::bits(0)}, [](Pool&, const Es& a, const Es& b) { return Es{a[0] || b[0], select(b[0], b[1], a[1])}; }, false};
    if (k == int(table.size()) + 2) return {"sum", {expr::real(-0.0)}, [](Pool&, const Es& a, const Es& b) { return Es{a[0] + b[0]}; }, true};
    return topk(3);
  }
  void recur(Graph& g) {
    Graph step;
    step.symbols = g.symbols;
    Recur r;
    r.steps = extent();
    r.reverse = chance(50);
    r.time = step.add({Input{Input::data, {}, Format::i32}, "t", {}});
    const int states = 1 + below(2);
    std::vector<std::vector<Extent>> shapes;
    for (int k = 0; k < states; ++k) {
      Recur::State x;
      std::vector<Port> inits;
      for (NodeId id = 0; id < g.nodes.size(); ++id)
        if (g.type({id, 0}) == Type::real && g.shape({id, 0}).size() < 3) inits.push_back({id, 0});
      if (!inits.empty() && chance(60)) x.init = of(inits);
      shapes.push_back(x.init ? g.shape(*x.init) : extents(2));
      x.in = step.add({Input{Input::state, shapes.back(), Format::f32}, "h" + std::to_string(k), {}});
      r.states.push_back(x);
    }
    for (int k = below(3); k > 0; --k) {
      const NodeId id = NodeId(below(int(g.nodes.size())));
      const auto shape = g.shape({id, 0});
      Recur::Read a{{id, 0}, {}, 0};
      std::vector<Extent> local;
      for (auto& e : shape) {
        if (e == r.steps && chance(60)) {
          a.view.push_back(axis(0, r.reverse && chance(50) ? 1 : 1));
        } else {
          a.view.push_back(axis(int(local.size()) + 1));
          local.push_back(e);
        }
      }
      static constexpr Format of_type[] = {Format::f32, Format::i32, Format::u32, Format::boolean};
      a.in = step.add({Input{Input::data, local, of_type[size_t(g.type({id, 0}))]}, "arg " + std::to_string(k), {}});
      r.args.push_back(a);
    }
    for (int k = below(3); k > 0; --k) comp(step);
    for (int k = 0; k < states; ++k) {
      Comp c;
      c.points = shapes[size_t(k)];
      Scope s{step, c, {}};
      for (size_t a = 0; a < c.points.size(); ++a) s.axes.push_back(int(a));
      c.lift = {term(s, Type::real, 2)};
      Out o;
      o.axes = s.axes;
      c.outs = {o};
      r.states[size_t(k)].out = {step.add({std::move(c), name(-1), {}}), 0};
      step.outputs.push_back({r.states[size_t(k)].out, "next " + std::to_string(k), Format::f32});
    }
    for (int k = below(2); k > 0; --k) {
      const Port p{NodeId(below(int(step.nodes.size()))), 0};
      Recur::Emit e{p, {axis(0)}, {r.steps}};
      const auto shape = step.shape(p);
      for (size_t d = 0; d < shape.size(); ++d) e.view.push_back(axis(int(d) + 1)), e.shape.push_back(shape[d]);
      r.emits.push_back(e);
      step.outputs.push_back({p, "emit " + std::to_string(k), default_format(step.type(p))});
    }
    if (chance(40)) r.live = normal({{axis(0) + constant(-1)}, {constant(Extent(2)) - axis(0)}});
    r.step = std::make_shared<const Graph>(std::move(step));
    g.add({std::move(r), chance(50) ? "recur" : "", {}});
  }

  uint64_t state_;
  RandomOptions options_;
};

inline Graph random_graph(uint64_t seed, RandomOptions options = {}) { return RandomGraph(seed, options).make(); }

}  // namespace tang::tests
