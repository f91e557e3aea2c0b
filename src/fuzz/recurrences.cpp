// Recurrences: a step graph of a few nodes, states that stay small, args and emits through views over time.
#include "tang/fuzz/generator.hpp"

namespace tang::fuzz {

using namespace ir;

namespace {
bool total(const Graph& g, Port p) { // without a look at bodies
  if (const Recur* r = g[p.node].recur()) return p.port < r->states.size();
  return g[p.node].input() || g[p.node].comp()->monoid;
}
} // namespace

void Generator::recur(Graph& g) {
  auto owned = std::make_shared<Graph>();
  Graph& step = *owned;
  step.symbols = g.symbols;
  Recur r;
  r.steps = extent();
  if (size_of(r.steps) > 9) r.steps = Extent(4);
  r.reverse = c_.below(2);
  r.time = step.add({Input{Input::data, {}, Format::i32}, "t", {}});
  ranges(step)[{r.time, 0}] = {0, double(std::max<int64_t>(0, size_of(r.steps) - 1))};
  ++depth_;
  const double bound = integer_ ? 8 : 2;
  const uint32_t states = 1 + c_.below(2);
  for (uint32_t k = 0; k < states; ++k) {
    Recur::State x;
    std::vector<Port> starts;
    for (auto& [p, q] : ranges(g))
      if (g.type(p) == Type::real && !q.infinite && q.size() <= bound && g.shape(p).size() < 3 && total(g, p))
        starts.push_back(p);
    if (!starts.empty() && c_.below(3)) x.init = c_.of(starts);
    x.in = step.add({Input{Input::state, x.init ? g.shape(*x.init) : extents(2), Format::f32},
                     "h" + std::to_string(k),
                     {}});
    ranges(step)[{x.in, 0}] = {-bound, bound, false, integer_};
    r.states.push_back(x);
  }
  for (uint32_t k = 1 + c_.below(2); k > 0; --k) {
    std::vector<Port> sources;
    for (auto& [p, q] : ranges(g))
      if (!q.infinite && total(g, p)) sources.push_back(p); // what a step is given exists everywhere
    const Port from = c_.of(sources);
    Recur::Read a{from, {}, 0};
    std::vector<Extent> local;
    for (auto& e : g.shape(from)) {
      if (e == r.steps && c_.below(3) < 2) {
        a.view.push_back(c_.below(3) == 2 ? constant(e - Extent(1)) - axis(0) : axis(0));
      } else if (e == Extent(2) * r.steps && c_.below(2)) { // two a step
        a.view.push_back(2 * axis(0) + axis(int(local.size()) + 1));
        local.push_back(Extent(2));
      } else {
        a.view.push_back(axis(int(local.size()) + 1));
        local.push_back(e);
      }
    }
    static constexpr Format of_type[] = {Format::f32, Format::i32, Format::u32, Format::boolean};
    Range range = ranges(g).at(from);
    if (g.type(from) == Type::real && !range.sharp && integer_) range.sharp = false;
    a.in =
        step.add({Input{Input::data, local, of_type[size_t(g.type(from))]}, "arg " + std::to_string(k), {}});
    ranges(step)[{a.in, 0}] = range;
    r.args.push_back(a);
  }
  for (uint32_t k = c_.below(3); k > 0; --k) node(step);
  for (uint32_t k = 0; k < states; ++k) {
    Comp c;
    c.points = step.shape({r.states[k].in, 0});
    Scope s{step, c, {}, false};
    for (size_t a = 0; a < c.points.size(); ++a) s.axes.push_back(int(a));
    const Term t = limited(finite(term(s, Type::real, 2)), bound);
    c.lift = {t.e.id};
    c.outs = {Out{s.axes, {}, {}}};
    r.states[k].out = add(step, std::move(c), {t.range});
    step.outputs.push_back({r.states[k].out, "next " + std::to_string(k), Format::f32});
  }
  std::vector<Range> out;
  for (uint32_t k = 0; k < states; ++k) out.push_back({-bound, bound, false, integer_});
  for (uint32_t k = c_.below(3); k > 0; --k) {
    std::vector<Port> ports;
    for (auto& [p, q] : ranges(step))
      if (!q.infinite && p.node != r.time) ports.push_back(p);
    const Port p = ports[ports.size() - 1 - c_.below(uint32_t(ports.size()))];
    Recur::Emit e{p, {axis(0)}, {r.steps}};
    const auto shape = step.shape(p);
    for (size_t d = 0; d < shape.size(); ++d) e.view.push_back(axis(int(d) + 1)), e.shape.push_back(shape[d]);
    r.emits.push_back(e);
    step.outputs.push_back({p, "emit " + std::to_string(k), default_format(step.type(p))});
    out.push_back(ranges(step).at(p));
  }
  if (c_.chance(4)) r.live = normal({{axis(0) + constant(-1)}});
  --depth_;
  known_.pop_back();
  r.step = owned;
  const NodeId id = g.add({std::move(r), "n" + std::to_string(names_++), {}});
  for (size_t p = 0; p < out.size(); ++p) ranges(g)[{id, uint32_t(p)}] = out[p];
}

} // namespace tang::fuzz
