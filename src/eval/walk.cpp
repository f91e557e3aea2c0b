#include "tang/eval/walk.hpp"

#include <algorithm>
#include <unordered_map>

#include "tang/eval/tape.hpp"

namespace tang::eval {

using expr::Op;
using ir::Comp;
using ir::Id;

namespace {
// What it costs that lanes differ along an axis: operations, and reads that are not of neighbours.
class Cost {
public:
  Cost(const ir::Graph& g, const Comp& n, int axis) : g_(g), n_(n), axis_(axis) {}

  double of(const std::vector<Id>& roots) {
    double cost = depends(n_.domain) ? 2 : 0;
    std::unordered_map<Id, bool> differs;
    for (Id id : expr::schedule(g_.pool, roots)) {
      const expr::Term& t = g_.pool[id];
      bool d = t.op == Op::coord && int(t.whole) == axis_;
      if (t.op == Op::arg) {
        d = depends(int(t.whole));
        if (d) cost += is_neighbour(n_.args[size_t(t.whole)]) ? 1 : 4;
      } else if (t.op == Op::holds) {
        d = depends(n_.guards[size_t(t.whole)]);
        if (d) cost += 2;
      } else {
        for (int k = 0; k < t.arity(); ++k) d = d || differs.at(t.args[size_t(k)]);
        if (d) cost += is_slow(t.op) ? 16 : 1;
      }
      differs[id] = d;
    }
    return cost;
  }

private:
  static bool is_slow(Op op) {
    return op == Op::exp2 || op == Op::log2 || op == Op::sin || op == Op::atan2 || op == Op::sqrt;
  }

  bool depends(const ir::Form& f) const {
    return f.axis(axis_) != 0 ||
           std::any_of(f.args.begin(), f.args.end(), [&](auto& u) { return depends(int(u.first)); });
  }

  bool depends(int arg) const {
    const auto& view = n_.args[size_t(arg)].view;
    return std::any_of(view.begin(), view.end(), [&](const ir::Form& f) { return depends(f); });
  }

  bool depends(const ir::Domain& d) const {
    for (auto& piece : d)
      for (auto& f : piece)
        if (depends(f)) return true;
    return false;
  }

  bool is_neighbour(const ir::Arg& a) const {
    for (size_t d = 0; d + 1 < a.view.size(); ++d)
      if (depends(a.view[d])) return false;
    const ir::Form& last = a.view.back();
    return last.args.empty() && last.axis(axis_) == 1;
  }

  const ir::Graph& g_;
  const Comp& n_;
  int axis_;
};

constexpr int64_t long_row = lanes / 2; // a row of at least so many has blocks of its own
} // namespace

int64_t Walk::count(int64_t block) const { return std::min(size, inner - block % pieces * size); }

Walk walk(const ir::Graph& g, const Comp& n, const std::vector<Id>& roots, const std::vector<int>& axes) {
  struct Axis {
    double cost;
    int axis;
    int64_t extent, stride;
  };

  std::vector<Axis> order;
  int64_t stride = 1;
  for (size_t k = axes.size(); k-- > 0;) {
    const int64_t e = n.points[size_t(axes[k])].value();
    order.push_back({Cost(g, n, axes[k]).of(roots), axes[k], e, stride});
    stride *= e;
  }
  std::reverse(order.begin(), order.end());
  std::stable_sort(order.begin(), order.end(), [](const Axis& a, const Axis& b) { return a.cost > b.cost; });
  Walk w;
  int64_t points = 1;
  for (auto& a : order) {
    w.axes.push_back(a.axis);
    w.extents.push_back(a.extent);
    w.strides.push_back(a.stride);
    points *= a.extent;
  }
  w.inner = points;
  if (!order.empty() && order.back().extent >= long_row) {
    w.inner = order.back().extent;
    w.rows = points / w.inner;
  }
  w.pieces = std::max<int64_t>(1, (w.inner + lanes - 1) / lanes);
  w.size = (w.inner + w.pieces - 1) / w.pieces;
  if (!points) w.rows = 0;
  return w;
}

} // namespace tang::eval
