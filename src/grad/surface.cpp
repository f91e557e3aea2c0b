#include "tang/grad/surface.hpp"

#include <algorithm>

#include "tang/ir/builder_state.hpp"

namespace tang::diff {

using ir::Builder;
using ir::Copier;
using ir::Graph;
using ir::NodeId;
using ir::Port;

namespace {
std::string text(const std::vector<ir::Extent>& shape) {
  std::string out;
  for (auto& e : shape) out += (out.empty() ? "" : ", ") + e.text();
  return "[" + out + "]";
}

Builder& builder_of(const std::vector<Tensor>& all, Where where) {
  Builder* b = nullptr;
  for (auto& t : all) {
    if (!t.builder) throw Error(where, "a gradient of a tensor that was never made", {}, "build it first");
    if (b && t.builder != b)
      throw Error(where, "a gradient across two graphs",
                  {{t.name() + " belongs to another graph", t.where()}}, "build both in one graph");
    b = t.builder;
  }
  if (!b) throw Error(where, "a gradient with respect to nothing", {}, "name the tensors");
  if (b->state().around)
    throw Error(where, "a gradient inside the step of a recurrence", {},
                "take it of the whole recurrence, outside");
  return *b;
}

void check_real(const Tensor& t, Where where) {
  if (t.type() == ir::Type::real) return;
  throw Error(where, t.name() + " holds " + std::string(expr::name(t.type())) + " values",
              {{"only real values have gradients", t.where()}}, "convert it: to_real(..)");
}

// What the builder's ports are in a canonical graph of their own, and back.
struct Crossing {
  Builder& b;
  ir::Rebuilt start = {};

  Crossing(Builder& builder, const std::vector<Tensor>& roots) : b(builder) {
    Graph g = b.state().g;
    g.outputs.clear();
    for (auto& t : roots)
      g.outputs.push_back({t.port, "\1 " + std::to_string(g.outputs.size()), ir::default_format(t.type())});
    ir::redirect(g, b.state().instead);
    start = ir::canonical(g);
    for (auto& o : start.graph.outputs) ports.push_back(o.port);
    start.graph.outputs.clear();
  }

  std::vector<Port> ports; // of the roots

  // Adds what `d` added; nodes that it replaced are redirected.
  std::vector<Tensor> bring(const Derivative& d) {
    auto& s = b.state();
    std::map<std::string, NodeId> inputs;
    std::map<NodeId, NodeId> same; // node of d -> the builder's own, unchanged
    for (NodeId id = 0; id < s.g.nodes.size(); ++id) {
      if (s.g[id].input()) inputs[s.g[id].name] = id;
      const NodeId old = start.map[id] < 0 ? 0 : NodeId(start.map[id]);
      if (start.map[id] < 0 || d.now[old].empty() || !s.g[id].recur()) continue;
      const NodeId now = d.now[old][0].node;
      if (d.graph[now].hash == start.graph[old].hash) same[now] = id;
    }
    Copier copier(d.graph);
    copier.to = std::move(s.g);
    for (NodeId id = 0; id < d.graph.nodes.size(); ++id) {
      auto keep = [&](NodeId here) {
        for (uint32_t k = 0; k < d.graph.ports(id); ++k) copier.set({id, k}, {here, k});
      };
      if (d.graph[id].input())
        keep(inputs.at(d.graph[id].name));
      else if (auto it = same.find(id); it != same.end())
        keep(it->second);
      else
        copier.copy(id);
    }
    s.g = std::move(copier.to);
    for (NodeId id = 0; id < start.map.size(); ++id) {
      if (start.map[id] < 0) continue;
      const auto& now = d.now[size_t(start.map[id])];
      for (uint32_t k = 0; k < now.size(); ++k)
        if (const Port here = copier.at(now[k]); here != Port{id, k}) s.instead[{id, k}] = here;
    }
    std::vector<Tensor> out;
    for (Port p : d.of) out.push_back({&b, copier.at(p)});
    return out;
  }
};

Derivative taken(Result<Derivative> r, Where where) {
  if (!r) throw Error(where, "no gradient: " + r.why(), {}, "leave it out of the loss");
  return std::move(*r);
}

std::vector<Tensor> reverse(const Tensor& y, const Tensor* dy, const std::vector<Tensor>& wrt, Where where,
                            rewrite::Trace* trace, const Options& options = {}) {
  std::vector<Tensor> roots{y};
  if (dy) roots.push_back(*dy);
  roots.insert(roots.end(), wrt.begin(), wrt.end());
  Builder& b = builder_of(roots, where);
  for (auto& t : roots) check_real(t, where);
  Crossing c(b, roots);
  const std::vector<Port> of(c.ports.begin() + (dy ? 2 : 1), c.ports.end());
  const Seed seed{c.ports[0], dy ? std::optional(c.ports[1]) : std::nullopt};
  const Derivative d = taken(gradient(c.start.graph, {seed}, of, options), where);
  if (trace) *trace = d.trace;
  return c.bring(d);
}
} // namespace

std::vector<Tensor> grad(const Tensor& loss, const std::vector<Tensor>& wrt, Where where,
                         rewrite::Trace* trace, const Options& options) {
  if (!loss.builder) builder_of({loss}, where);
  for (auto& e : loss.shape())
    if (!(e == ir::Extent(1)))
      throw Error(where, "the gradient of " + loss.name() + ", which is " + text(loss.shape()),
                  {{"a loss is one number", loss.where()}},
                  "sum it first, or give its adjoint: vjp(y, dy, {..})");
  return reverse(loss, nullptr, wrt, where, trace, options);
}

std::vector<Tensor> vjp(const Tensor& y, const Tensor& dy, const std::vector<Tensor>& wrt, Where where,
                        const Options& options) {
  builder_of({y, dy}, where);
  if (y.shape() != dy.shape())
    throw Error(where, "an adjoint of another shape",
                {{y.name() + " is " + text(y.shape()), y.where()},
                 {dy.name() + " is " + text(dy.shape()), dy.where()}},
                "give the adjoint the shape of the value");
  return reverse(y, &dy, wrt, where, nullptr, options);
}

std::vector<Tensor> jvp(const std::vector<Tensor>& of, const std::vector<Moved>& along, Where where) {
  std::vector<Tensor> roots = of;
  for (auto& a : along) roots.insert(roots.end(), {a.tensor, a.tangent});
  Builder& b = builder_of(roots, where);
  for (auto& t : roots) check_real(t, where);
  for (auto& a : along)
    if (a.tensor.shape() != a.tangent.shape())
      throw Error(where, "a tangent of another shape",
                  {{a.tensor.name() + " is " + text(a.tensor.shape()), a.tensor.where()},
                   {a.tangent.name() + " is " + text(a.tangent.shape()), a.tangent.where()}},
                  "give the tangent the shape of what moves");
  Crossing c(b, roots);
  std::vector<Along> moved;
  for (size_t k = 0; k < along.size(); ++k)
    moved.push_back({c.ports[of.size() + 2 * k], c.ports[of.size() + 2 * k + 1]});
  return c.bring(
      taken(jvp(c.start.graph, moved, {c.ports.begin(), c.ports.begin() + long(of.size())}), where));
}

} // namespace tang::diff
