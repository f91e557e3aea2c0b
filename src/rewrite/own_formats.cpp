// Outputs of one value in several formats: an array has one.
#include <algorithm>
#include <cmath>

#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
// One read of a whole array: a map, or a fold over `terms` axes of one term each, so that several copies of
// one value are several nodes.
Comp copy_of(Graph& g, Port from, int terms) {
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
  if (!terms) return c;
  const Type t = g.type(from);
  const Id x = g.pool.leaf(Op::var, t, 0), y = g.pool.leaf(Op::var, t, 1);
  const Op either = t == Type::real ? Op::max : t == Type::boolean ? Op::either : Op::bit_or;
  expr::Value none{t, expr::State::present, 0, 0};
  if (t == Type::real) none = expr::real(-INFINITY);
  c.folds.assign(size_t(terms), ir::Extent(1));
  c.monoid = ir::Monoid{"the one", {none}, {g.pool.make(either, {x, y})}};
  return c;
}
} // namespace

Graph own_formats(const Graph& g) {
  Graph out = g;
  std::map<Port, ir::Format> stored;
  std::map<Port, std::vector<ir::Format>> copies; // formats of the copies that a port has
  for (auto& o : out.outputs) {
    const Node& n = out[o.port.node];
    if (n.input()) continue;
    const ir::Recur* r = n.recur();
    const bool state = r && o.port.port < r->states.size(); // carried in the format that its step declares
    const ir::Format own = state ? (*r->step)[r->states[o.port.port].in].input()->format : o.format;
    if (stored.try_emplace(o.port, own).first->second == o.format) continue;
    std::vector<ir::Format>& have = copies[o.port];
    const auto it = std::find(have.begin(), have.end(), o.format);
    const int nth = int(it - have.begin());
    if (it == have.end()) have.push_back(o.format);
    o.port = {out.add({copy_of(out, o.port, nth), o.name, {}}), 0};
  }
  return out;
}

} // namespace tang::rewrite
