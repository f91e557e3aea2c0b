// Nodes, outputs and schedules of a case.

#include "tang/fuzz/generator.hpp"
#include "tang/fuzz/writer.hpp"
#include "tang/grad/gradient.hpp"
#include "tang/rewrite/measure.hpp"

namespace tang::fuzz {

using namespace ir;

namespace {
using Es = std::vector<E>;

// A monoid, and what its lifts must be for its values to stay small.
struct MonoidKind {
  MonoidSpec spec;

  enum Growth : uint8_t {
    none,
    sums,
    affine
  } growth = none; // of a component's size with the number of terms

  bool integer = true;      // closed on integers
  bool base_narrow = false; // the first component may have fewer axes
};

} // namespace

MonoidSpec largest_and_sum() {
  return {"sum_at_max",
          {expr::real(-inf), expr::real(0)},
          [](Pool& p, const Es& a, const Es& b) {
            const E top = expr::max(a[0], b[0]), one = expr::lit(p, 1), zero = expr::lit(p, 0);
            return Es{top, expr::select(a[0] < top, zero, one) * a[1] +
                               expr::select(b[0] < top, zero, one) * b[1]};
          },
          true};
}

Monoid monoid_in(Graph& g, const MonoidSpec& m) {
  Monoid out{m.name, m.identity, {}, m.commutative};
  Es left, right;
  for (size_t k = 0; k < m.identity.size(); ++k) {
    left.push_back({&g.pool, g.pool.leaf(Op::var, m.identity[k].type, int64_t(2 * k))});
    right.push_back({&g.pool, g.pool.leaf(Op::var, m.identity[k].type, int64_t(2 * k + 1))});
  }
  for (auto& e : m.combine(g.pool, left, right)) out.combine.push_back(e.id);
  return out;
}

namespace {
const std::vector<MonoidKind>& monoid_kinds() {
  static const std::vector<MonoidKind> kinds = {
      {sum_of_reals(), MonoidKind::sums},
      {max_of_reals()},
      {min_of_reals()},
      {sum_of_index(), MonoidKind::sums},
      {any_of()},
      {all_of()},
      {argmax()},
      {argmin()},
      {online_softmax(1), MonoidKind::sums, false, true},
      {online_softmax(2), MonoidKind::sums, false, true},
      {largest_and_sum(), MonoidKind::sums, true, true},
      {topk(2)},
      {topk(1)},
      {welford(), MonoidKind::sums, false},
      {{"affine",
        {expr::real(1), expr::real(0)},
        [](Pool&, const Es& a, const Es& b) {
          return Es{a[0] * b[0], b[0] * a[1] + b[1]};
        },
        false},
       MonoidKind::affine},
      {{"last",
        {expr::truth(false), expr::bits(0)},
        [](Pool&, const Es& a, const Es& b) {
          return Es{a[0] || b[0], select(b[0], b[1], a[1])};
        },
        false}},
      {{"parity",
        {expr::bits(0)},
        [](Pool&, const Es& a, const Es& b) { return Es{expr::apply(Op::bit_xor, a[0], b[0])}; },
        true}},
      {{"span",
        {expr::real(inf), expr::real(-inf)},
        [](Pool&, const Es& a, const Es& b) {
          return Es{expr::min(a[0], b[0]), expr::max(a[1], b[1])};
        },
        true}},
      {{"two_sums",
        {expr::real(0), expr::real(0)},
        [](Pool&, const Es& a, const Es& b) {
          return Es{a[0] + b[0], a[1] + b[1]};
        },
        true},
       MonoidKind::sums},
  };
  return kinds;
}

std::vector<int> counted(size_t n) {
  std::vector<int> out;
  for (size_t k = 0; k < n; ++k) out.push_back(int(k));
  return out;
}
} // namespace

std::map<Port, Range>& Generator::ranges(const Graph& g) {
  for (auto& k : known_)
    if (k.first == &g) return k.second;
  known_.push_back({&g, {}});
  return known_.back().second;
}

// A few lengths, so that axes of different tensors meet.
void Generator::sizes() {
  static const std::vector<int> lengths{4, 3, 5, 8, 2, 1, 7, 16, 17, 6, 9, 0, 33, 20};
  const uint32_t n = 2 + c_.below(2);
  for (uint32_t k = 0; k < n; ++k) palette_.push_back(Extent(c_.of(lengths)));
  if (!symbolic_) return;
  bindings_["n"] = 1 + int64_t(c_.below(9));
  const Extent s = Extent::symbol("n");
  palette_[0] = s;
  const std::vector<Extent> forms{s, s + Extent(1), Extent(2) * s, s + s + Extent(3)};
  palette_.push_back(c_.of(forms));
}

Extent Generator::extent() { return c_.of(palette_); }

std::vector<Extent> Generator::extents(int most) {
  std::vector<Extent> out;
  int64_t n = 1;
  for (uint32_t k = 1 + c_.below(uint32_t(most)); k > 0; --k) {
    out.push_back(extent());
    n *= std::max<int64_t>(1, size_of(out.back()));
    if (n > 1500) out.pop_back();
  }
  return out;
}

void Generator::inputs(Graph& g) {
  const uint32_t n = 2 + c_.below(3);
  for (uint32_t k = 0; k < n; ++k) {
    static const std::vector<Format> formats{Format::f32,     Format::f32,  Format::f32, Format::f16,
                                             Format::f32,     Format::bf16, Format::f32, Format::i32,
                                             Format::boolean, Format::u32,  Format::f64};
    static const std::vector<Format> narrow{Format::i8, Format::u8, Format::i16, Format::u16, Format::i64};
    Format f = c_.of(formats);
    if (f == Format::f64 && (!reach_.f64 || c_.below(4) < 3)) f = Format::f32;
    if (f == Format::i32 && reach_.narrow && c_.chance(4)) f = c_.of(narrow);
    static const std::vector<Input::Kind> kinds{Input::data, Input::param, Input::data, Input::state};
    const Input::Kind kind = c_.of(kinds);
    const NodeId id = g.add({Input{kind, extents(3), f}, "in" + std::to_string(k), {}});
    const Type t = type_of(f);
    ranges(g)[{id, 0}] = t == Type::real      ? Range{integer_ ? -3.0 : -2.0, integer_ ? 3.0 : 2.0}
                         : t == Type::boolean ? Range{0, 1}
                         : t == Type::bits    ? Range{0, 7}
                                              : Range{-3, 4};
  }
  // Tables: an index below some length, a bound of a loop.
  std::vector<Extent> own{extent()};
  const Extent below = extent();
  if (size_of(below) > 0) {
    const NodeId id =
        g.add({Input{Input::data, own, Format::i32}, "table" + std::to_string(size_of(below)), {}});
    ranges(g)[{id, 0}] = {0, double(size_of(below) - 1)};
  }
  const NodeId id = g.add({Input{Input::data, {}, Format::i32}, "table9 one", {}});
  ranges(g)[{id, 0}] = {0, 8};
}

Format Generator::format_for(Type type, const Range& r) {
  if (type != Type::real) return default_format(type);
  static const std::vector<Format> formats{Format::f32, Format::f32, Format::f32,
                                           Format::f16, Format::f32, Format::bf16};
  const Format f = c_.of(formats);
  if (f == Format::f32 || !integer_) return f;
  return r.size() <= double(int64_t(1) << (row(f).mantissa + 1))
             ? f
             : Format::f32; // integers that it holds exactly
}

Port Generator::add(Graph& g, Comp c, const std::vector<Range>& r) {
  const NodeId id = g.add({std::move(c), "n" + std::to_string(names_++), {}});
  for (size_t p = 0; p < r.size(); ++p) ranges(g)[{id, uint32_t(p)}] = r[p];
  return {id, 0};
}

void Generator::map(Graph& g, Comp& c, Scope& s, Type type) {
  if (c_.chance(3)) c.domain = domain(s);
  const Term t = finite(term(s, type, 1 + int(c_.below(4))));
  c.lift = {t.e.id};
  Out o;
  o.axes = s.axes;
  const bool bound = c.points.size() >= 2 && c.points[0].is_constant() && c.points[1].is_constant();
  if (bound && c_.chance(6)) { // the first two axes share a coordinate
    const int64_t inner = c.points[1].value(), stride = std::max<int64_t>(1, inner + c_.below(2));
    o.view.push_back(axis(0, stride) + axis(1) + constant(c_.below(2)));
    o.shape.push_back(c.points[0] * Extent(stride) + Extent(inner + 2));
    for (size_t a = 2; a < c.points.size(); ++a) {
      o.view.push_back(axis(int(a)));
      o.shape.push_back(c.points[a]);
    }
  } else if (c.points.size() == 2 && c_.chance(6)) {
    std::swap(o.axes[0], o.axes[1]);
  }
  c.outs = {o};
  add(g, std::move(c), {t.range});
}

void Generator::fold(Graph& g, Comp& c, Scope& s) {
  // The oracle evaluates every term, those of a step once a step.
  const int64_t most_terms = depth_ ? 5000 : 50000;
  int64_t terms = 1, points = 1;
  for (auto& e : c.points) points *= std::max<int64_t>(1, size_of(e));
  for (uint32_t k = 1 + c_.below(5) / 4; k > 0; --k) {
    const Extent e = extent();
    const int64_t n = std::max<int64_t>(1, size_of(e));
    if (!c.folds.empty() && points * terms * n > most_terms) break;
    c.folds.push_back(e);
    terms *= n;
  }
  for (size_t k = 0; k < c.folds.size(); ++k) s.axes.push_back(int(c.points.size() + k));
  const auto& kinds = monoid_kinds();
  const MonoidKind* kind = &kinds[c_.below(2) ? c_.below(uint32_t(kinds.size())) : c_.below(2)];
  if (integer_ && !kind->integer) kind = &kinds[0];
  const MonoidSpec& m = kind->spec;
  const Monoid& mono = c.monoid.emplace(monoid_in(g, m));
  // Sums under a running maximum may have an axis more than it: what decides presence stays on the common
  // axes.
  const bool narrow = kind->base_narrow && c.points.size() > 1 && c_.below(2);
  Scope common = {g, c, s.axes, s.absent};
  if (narrow) common.axes.erase(common.axes.begin() + int(c.points.size()) - 1);
  if (c_.chance(3)) c.domain = domain(common);
  if (narrow) s.absent = common.absent = false;
  std::vector<Range> out;
  for (size_t k = 0; k < mono.size(); ++k) {
    Scope& mine = narrow && k == 0 ? common : s;
    const Type type = mono.identity[k].type;
    Term t = term(mine, type, int(c_.below(4)));
    if (mono.name == "argmax" || mono.name == "argmin" || mono.name == "top2" || mono.name == "top1") {
      const size_t half = mono.size() / 2;
      const int last = s.axes.back();
      if (k >= half) { // where: the coordinate, of the first; the others are nowhere
        t = k == half ? Term{{&g.pool, g.pool.leaf(Op::coord, Type::index, last)},
                             {0, double(size_of(c.extent(last)))}}
                      : Term{{&g.pool, g.pool.literal(mono.identity[k])}, {0, 0, true}};
      } else if (k) { // the next best: one of the first's values, or none
        t = {{&g.pool, g.pool.literal(mono.identity[k])}, out[0]};
        t.range.infinite = true;
      } else {
        t = finite(t);
      }
    } else if (kind->growth == MonoidKind::sums && !(kind->base_narrow && k == 0)) {
      t = limited(finite(t), std::floor(most() / double(terms)));
      if (mono.name == "welford")
        t = k == 0 ? Term{expr::lit(g.pool, 1), {1, 1}} : k == 1 ? t : Term{expr::lit(g.pool, 0), {0, 0}};
      if (mono.name == "online_softmax" && k == 1 && c_.below(2) == 0) t = {expr::lit(g.pool, 1), {1, 1}};
    } else if (kind->growth == MonoidKind::affine) {
      t = limited(finite(t), k == 0 ? 1 : std::floor(most() / double(terms)));
    } else if (type == Type::real && !t.range.infinite) {
      t = finite(t);
    }
    c.lift.push_back(t.e.id);
    const double n = kind->growth == MonoidKind::none || (kind->base_narrow && k == 0) ? 1 : double(terms);
    const bool identity_infinite = (type == Type::real && std::isinf(mono.identity[k].r)) ||
                                   (type == Type::index && mono.identity[k].i == INT64_MAX);
    const double start = identity_infinite    ? t.range.lo
                         : type == Type::real ? mono.identity[k].r
                                              : double(mono.identity[k].i);
    Range r{std::min(start, t.range.lo * n), std::max(start, t.range.hi * n),
            t.range.infinite || identity_infinite, t.range.sharp && (integer_ || n == 1)};
    if (kind->growth == MonoidKind::affine && k == 0) r = {-1, 1, false, integer_};
    if (mono.name == "welford" && k == 2) r = {0, most() * most(), false, false};
    out.push_back(r);
    Out o;
    o.axes = counted(c.points.size() - (narrow && k == 0 ? 1 : 0));
    c.outs.push_back(o);
  }
  // A selection by a rounded value: which term wins may differ.
  if (!m.commutative || mono.size() > 1)
    for (auto& r : out) r.sharp = std::all_of(out.begin(), out.end(), [](const Range& x) { return x.sharp; });
  add(g, std::move(c), out);
}

Port Generator::tensor(Graph& g, Type type, const std::vector<Extent>& shape) {
  std::vector<Port> fit;
  for (auto& [p, r] : ranges(g))
    if (g.type(p) == type && g.shape(p) == shape && !r.infinite) fit.push_back(p);
  if (!fit.empty() && c_.below(4) < 3) return c_.of(fit);
  Comp c;
  c.points = shape;
  Scope s{g, c, counted(shape.size()), false};
  const Term t = finite(term(s, type, 1));
  c.lift = {t.e.id};
  c.outs = {Out{s.axes, {}, {}}};
  return add(g, std::move(c), {t.range});
}

void Generator::node(Graph& g) {
  if (depth_ == 0 && c_.chance(9)) return recur(g);
  if (c_.chance(4)) return reach_.templates && c_.below(2) ? rare(g) : pattern(g);
  Comp c;
  c.points = extents(3);
  Scope s{g, c, counted(c.points.size())};
  static const std::vector<Type> types{Type::real,  Type::real, Type::real,   Type::real,
                                       Type::index, Type::bits, Type::boolean};
  if (c_.below(5) < 2) return map(g, c, s, c_.of(types));
  fold(g, c, s);
}

void Generator::outputs(Graph& g) {
  const uint32_t n = 1 + c_.below(3);
  std::vector<Port> ports;
  for (auto& [p, r] : ranges(g))
    if (!g[p.node].input() && !(r.infinite && g.type(p) == Type::index)) ports.push_back(p);
  if (ports.empty()) return;
  for (uint32_t k = 0; k < n; ++k) {
    const Port p = ports[ports.size() - 1 - (k ? c_.below(uint32_t(ports.size())) : 0)];
    const Range r = ranges(g).at(p);
    g.outputs.push_back({p, "out" + std::to_string(k), format_for(g.type(p), r)});
    // A state's new value: in place where the plan can.
    if (c_.below(3) == 2)
      for (NodeId id = 0; id < g.nodes.size(); ++id) {
        auto* in = g[id].input();
        if (!in || in->kind != Input::state || in->shape != g.shape(p) ||
            in->format != g.outputs.back().format)
          continue;
        bool taken = false;
        for (auto& o : g.outputs) taken |= o.name == g[id].name;
        if (!taken) g.outputs.back().name = g[id].name;
      }
  }
  for (auto& p : kept_) {
    bool there = false;
    for (auto& o : g.outputs) there |= o.port == p;
    if (!there)
      g.outputs.push_back({p, "kept" + std::to_string(g.outputs.size()), default_format(g.type(p))});
  }
}

void Generator::schedule(Case& out) {
  out.optimize = c_.below(4) < 3;
  out.late = symbolic_ && out.optimize && c_.below(2);
  static const std::vector<int> lanes{16, 8, 4};
  out.lanes = c_.of(lanes);
  if (c_.chance(6)) out.fast_memory = int64_t(1) << (9 + c_.below(6));
  out.rule = int(c_.below(reach_.templates ? 36 : 32));
  out.every_rule = !kept_.empty(); // what a template made
  schedule::Schedule& s = out.schedule;
  if (c_.chance(6)) s = schedule::as_written();
  if (c_.chance(6)) s.short_contraction = c_.below(6);
  if (c_.chance(8)) s.epilogues = false;
  if (c_.below(2) == 0) return;
  for (int k = 0; k < names_; ++k) {
    if (c_.below(3) == 0) continue;
    schedule::GroupFields f;
    for (int a = 0; a < 3; ++a) {
      if (c_.chance(4)) f.role[a] = c_.below(2) ? schedule::Role::grid : schedule::Role::looped;
      static const std::vector<int64_t> tiles{4, 1, 2, 3, 5, 8, 16, 7};
      if (c_.chance(3)) f.tile[a] = c_.of(tiles);
    }
    if (c_.chance(8)) f.stored = true;
    if (c_.chance(5)) f.rows = 1 + int(c_.below(6));
    if (c_.chance(5)) f.vectors = 1 + int(c_.below(3));
    static const std::vector<schedule::Pack> packs{schedule::Pack::none, schedule::Pack::tile,
                                                   schedule::Pack::copy};
    if (c_.chance(5)) f.pack_a = c_.of(packs);
    if (c_.chance(5)) f.pack_b = c_.of(packs);
    if (c_.chance(4)) f.ways = 1 + int(c_.below(5));
    if (c_.chance(4)) f.split = 2 + int(c_.below(3));
    s.groups["n" + std::to_string(k)] = f;
  }
}

// Of an output, with respect to inputs: more outputs.
void Generator::gradient(Graph& g) {
  std::vector<Port> of, wrt;
  for (auto& o : g.outputs)
    if (g.type(o.port) == Type::real) of.push_back(o.port);
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* in = g[id].input(); in && type_of(in->format) == Type::real) wrt.push_back({id, 0});
  if (of.empty() || wrt.empty()) return;
  const Port seed = c_.of(of);
  const size_t first = c_.below(uint32_t(wrt.size()));
  wrt = {wrt[first], wrt[(first + 1) % wrt.size()]};
  if (wrt[0] == wrt[1]) wrt.pop_back();
  auto d = diff::gradient(g, {{seed, {}}}, wrt);
  if (!d) return;
  for (size_t k = 0; k < wrt.size(); ++k)
    d->graph.outputs.push_back({d->of[k], "d" + g[wrt[k].node].name, Format::f32});
  Graph both = canonical(d->graph).graph;
  // An adjoint may fold over every axis of what it pulls back.
  if (rewrite::terms_of(both) <= 4e5) g = std::move(both);
}

Case Generator::make() {
  Case out;
  integer_ = out.integer = c_.below(2) == 0;
  symbolic_ = c_.chance(8);
  sizes();
  Graph g;
  if (symbolic_) g.symbols["n"] = {1, 64, 1};
  inputs(g);
  for (uint32_t k = 1 + c_.below(uint32_t(reach_.nodes)); k > 0; --k) node(g);
  outputs(g);
  schedule(out);
  const bool differentiated = !integer_ && !symbolic_ && c_.chance(5);
  out.bindings = bindings_;
  out.graph = canonical(g).graph;
  if (differentiated) gradient(out.graph);
  out.input_seed = 1 + c_.below(1000);
  out.inputs = inputs_for(ir::bind(out.graph, bindings_).graph, integer_, out.input_seed);
  out.choices = c_.taken();
  return out;
}

Case generate(Choices& c, const Reach& reach) { return Generator(c, reach).make(); }

// Values by the ranges that `inputs` promised; an input called tableN is below N.
eval::Inputs inputs_for(const Graph& g, bool integer, uint64_t seed) {
  eval::Inputs out;
  for (auto& n : g.nodes) {
    auto* in = n.input();
    if (!in) continue;
    uint64_t state = mix(seed ^ hash_of(n.name));
    auto below = [&](uint64_t k) { return int64_t((mix(state += 0x9e3779b97f4a7c15u) >> 32) * k >> 32); };
    eval::Array a(eval::bound(in->shape), type_of(in->format));
    const bool table = !n.name.compare(0, 5, "table");
    const int64_t limit = table ? std::stoll(n.name.substr(5)) : 0;
    for (double& v : a.r)
      v = integer ? double(below(7) - 3) : rounded(double(below(4097) - 2048) / 1024, in->format);
    for (int64_t& v : a.i)
      v = table                     ? below(uint64_t(limit))
          : a.type == Type::boolean ? below(2)
          : a.type == Type::bits    ? below(8)
                                    : below(8) - 3;
    for (size_t row = 0; in->sorted && row < a.i.size(); row += size_t(a.shape.back()))
      std::sort(a.i.begin() + long(row), a.i.begin() + long(row) + a.shape.back());
    out[n.name] = std::move(a);
  }
  return out;
}

} // namespace tang::fuzz
