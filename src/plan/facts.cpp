#include "tang/plan/facts.hpp"

#include <algorithm>

#include "tang/base/number.hpp"

namespace tang::plan {

using ir::Comp;
using ir::Form;
using ir::Graph;
using ir::Op;

int64_t volume(const std::vector<ir::Extent>& shape) {
  int64_t v = 1;
  for (auto& e : shape) v = mul_saturated(v, e.value());
  return v;
}

int64_t count(const Comp& c, const std::vector<int>& axes) {
  int64_t v = 1;
  for (int a : axes) v = mul_saturated(v, c.extent(a).value());
  return v;
}

int64_t points(const Comp& c) { return volume(c.points); }

int64_t terms(const Comp& c) { return mul_saturated(volume(c.points), volume(c.folds)); }

std::string label(const Graph& g, NodeId id) {
  const std::string& n = g[id].name;
  return n.empty() ? "value " + std::to_string(id) : n;
}

bool is_sum(const Graph& g, const Comp& c) {
  if (!c.monoid || !c.monoid->commutative) return false;
  for (size_t k = 0; k < c.monoid->size(); ++k) {
    const expr::Value& zero = c.monoid->identity[k];
    const expr::Term& t = g.pool[c.monoid->combine[k]];
    if (t.op != Op::add || zero.r != 0 || zero.i != 0) return false;
    int64_t seen = 0;
    for (ir::Id x : {t.args[0], t.args[1]})
      if (g.pool[x].op == Op::var)
        seen |= g.pool[x].whole == int64_t(2 * k) ? 1 : g.pool[x].whole == int64_t(2 * k + 1) ? 2 : 4;
    if (seen != 3) return false;
  }
  return true;
}

std::vector<char> common_axes(const Comp& c) {
  std::vector<char> out(c.points.size(), 1);
  for (auto& o : c.outs)
    for (size_t a = 0; a < out.size(); ++a)
      out[a] &= char(std::find(o.axes.begin(), o.axes.end(), int(a)) != o.axes.end());
  return out;
}

std::vector<char> uniforms(const Comp& c) {
  std::vector<char> out(c.args.size(), 0);
  auto use = [&](const Form& f) {
    for (auto& t : f.args) out[size_t(t.first)] = 1;
  };
  auto use_domain = [&](const ir::Domain& d) {
    for (auto& piece : d)
      for (auto& f : piece) use(f);
  };
  for (auto& a : c.args)
    for (auto& f : a.view) use(f);
  for (auto& d : c.guards) use_domain(d);
  use_domain(c.domain);
  return out;
}

int64_t touched(const Graph& g, const Comp& c, const ir::Arg& a) {
  const auto shape = g.shape(a.from);
  auto positions = [&](const std::set<int>& axes) { return count(c, {axes.begin(), axes.end()}); };
  std::set<int> all;
  int64_t box = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::set<int> axes;
    moving(c, a.view[d], axes);
    all.insert(axes.begin(), axes.end());
    box = mul_saturated(box, std::min(shape[d].value(), positions(axes)));
  }
  return std::min(box, positions(all));
}

bool at_own_point(const Comp& c, const ir::Arg& a) {
  if (a.view.size() != c.points.size()) return false;
  for (size_t d = 0; d < a.view.size(); ++d)
    if (!a.view[d].is_pick() || a.view[d].picked() != int(d)) return false;
  return true;
}

} // namespace tang::plan
