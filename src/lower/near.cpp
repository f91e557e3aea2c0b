// What vectors read across a stride, again and again, is laid out along them first.
#include <algorithm>

#include "tang/lower/emitters.hpp"
#include "tang/lower/reuse.hpp"
#include "tang/lower/sites.hpp"

namespace tang::lower {

namespace {
constexpr int64_t most_near = 1024; // elements of a copy: 4 KB
constexpr int64_t least_reads = 4;  // of each of them

class Bringer {
public:
  explicit Bringer(Kernel& k) : k_(k) {}

  void block(kernel::Block& b) {
    kernel::Block out;
    for (auto& s : b) {
      if (auto* x = std::get_if<kernel::Loop>(&s.node)) block(x->body);
      if (auto* x = std::get_if<kernel::If>(&s.node)) block(x->then);
      if (auto* x = std::get_if<kernel::Pipeline>(&s.node)) block(x->body);
      if (auto* a = std::get_if<Apply>(&s.node)) bring(*a, out);
      out.push_back(std::move(s));
    }
    b = std::move(out);
  }

private:
  static bool moves(const Ref& r, Var v) {
    return std::any_of(r.index.begin(), r.index.end(),
                       [&](auto& c) { return kernel::coefficient(c.affine, v) != 0; });
  }

  static bool is_pure(const Ref& r) {
    return std::all_of(r.index.begin(), r.index.end(), [](auto& c) { return c.refs.empty(); });
  }

  void bring(Apply& a, kernel::Block& before) {
    if (a.vector < 0) return;
    const TileAxis lane = a.axes[size_t(a.vector)];
    for (auto& r : a.body.refs) {
      if (!is_pure(r) || k_.memories[size_t(r.memory)].format != k_.compute) continue;
      const int64_t stride = stride_along(k_, r, lane.var);
      if (stride == 0 || stride == 1) continue;
      const bool written = std::any_of(a.dst.begin(), a.dst.end(), [&](auto& d) { return d.memory == r.memory; });
      int64_t elements = 1, reads = 1;
      for (auto& x : a.axes) (moves(r, x.var) ? elements : reads) *= x.extent;
      if (!written && elements <= most_near && reads >= least_reads) before.push_back({copy(a, r)});
    }
  }

  // The copy; the read becomes one of it.
  Apply copy(const Apply& a, Ref& r) {
    Apply out;
    kernel::Memory m;
    Ref near{-1, {}, false};
    std::map<Var, Var> to;
    auto add = [&](const TileAxis& x) {
      to[x.var] = k_.fresh("n");
      out.axes.push_back({to[x.var], x.extent});
      m.shape.push_back(x.extent);
      near.index.push_back({kernel::variable(x.var), {}});
    };
    for (size_t x = 0; x < a.axes.size(); ++x)
      if (int(x) != a.vector && moves(r, a.axes[x].var)) add(a.axes[x]);
    add(a.axes[size_t(a.vector)]);
    m.name = "n" + std::to_string(k_.memories.size());
    m.home = kernel::Home::register_;
    m.format = k_.compute;
    m.access = kernel::Access::read_write;
    m.team = kernel::Team::workgroup;
    m.strides = kernel::row_major(m.shape);
    near.memory = k_.add(std::move(m));
    Ref from = r, into = near;
    auto renamed = [&](Coordinate c) {
      rename(c.affine, to);
      return c;
    };
    // Bounds that name other axes may be what keeps it in range: beyond, it is 0.
    bool all = a.partial.empty();
    for (auto& c : a.bounds) {
      const bool own = c.refs.empty() && std::none_of(a.axes.begin(), a.axes.end(), [&](auto& x) {
        return kernel::coefficient(c.affine, x.var) && !to.count(x.var);
      });
      if (own) out.bounds.push_back(renamed(c));
      all &= own;
    }
    for (auto& c : from.index) c = renamed(c);
    for (auto& c : into.index) c = renamed(c);
    from.checked |= !all;
    out.body.refs = {from};
    out.body.values = {k_.pool->leaf(Op::arg, expr::type_of(k_.compute), 0)};
    out.dst = {into};
    out.fill = {out.bounds.empty() ? std::optional<expr::Value>() : expr::real(0)};
    out.vector = int(out.axes.size()) - 1;
    r = near;
    return out;
  }

  Kernel& k_;
};
} // namespace

void bring_near(Kernel& k) { Bringer(k).block(k.body); }

} // namespace tang::lower
