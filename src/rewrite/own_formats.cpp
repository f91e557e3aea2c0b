// Outputs of one value in several formats: an array has one.
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// One read of a whole array, as a map.
Comp copy_of(Graph& g, Port from) {
  Comp c;
  c.points = g.shape(from);
  Arg whole{from, {}};
  ir::Out out;
  for (size_t a = 0; a < c.points.size(); ++a) {
    whole.view.push_back(ir::axis(int(a)));
    out.axes.push_back(int(a));
  }
  c.args = {whole};
  c.lift = {read_leaf(g.pool, g.type(from), 0)};
  c.outs = {out};
  return c;
}
} // namespace

Graph own_formats(const Graph& g) {
  Graph out = g;
  std::map<Port, ir::Format> stored;
  for (auto& o : out.outputs) {
    const Node& n = out[o.port.node];
    if (n.input()) continue;
    const ir::Recur* r = n.recur();
    const bool state = r && o.port.port < r->states.size(); // carried in the format that its step declares
    const ir::Format own = state ? (*r->step)[r->states[o.port.port].in].input()->format : o.format;
    if (stored.try_emplace(o.port, own).first->second == o.format) continue;
    o.port = {out.add({copy_of(out, o.port), o.name, {}}), 0};
  }
  return out;
}

} // namespace tang::rewrite
