#include <algorithm>
#include <bit>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/analyze.hpp"

namespace tang::kernel {

namespace {
using expr::Op;

// Variables that decide what runs: those of bounds, loop ends, Lets and tests. Other loops run alike in every
// iteration.
void deciding(const Block& b, std::set<Var>& out) {
  auto add = [&](const Affine& a) {
    for (auto& t : a.terms) out.insert(t.first);
  };
  auto bounds = [&](const Bounds& x) {
    for (auto& c : x) add(c.affine);
  };
  for (auto& s : b)
    std::visit(Match{[&](const Apply& x) {
                       bounds(x.bounds);
                       for (auto& p : x.partial) bounds(p);
                     },
                     [&](const Fold& x) {
                       bounds(x.bounds);
                       bounds(x.limits);
                       for (auto& p : x.partial) bounds(p);
                     },
                     [&](const Contract& x) {
                       for (auto* e : {&x.m_end, &x.n_end, &x.k_end})
                         if (*e) add(**e);
                     },
                     [](const Barrier&) {},
                     [&](const Let& x) {
                       for (auto& o : x.operands) add(o);
                     },
                     [&](const Loop& x) { add(x.begin), add(x.end), deciding(x.body, out); },
                     [&](const If& x) {
                       for (auto& a : x.all) add(a);
                       deciding(x.then, out);
                     },
                     [&](const Pipeline& x) {
                       for (auto& g : x.segments) add(g.begin), add(g.end);
                       deciding(x.operands, out), deciding(x.body, out);
                     }},
               s.node);
}

class Counter {
public:
  Counter(const Kernel& k, int lanes) : k_(k), lanes_(std::max(1, lanes)), at_(k.vars.size(), 0) {
    out_.loaded_of.resize(k.memories.size());
    out_.stored_of.resize(k.memories.size());
    deciding(k.body, deciding_);
  }

  Traffic run() {
    grid(0, 1);
    for (size_t m = 0; m < k_.memories.size(); ++m) {
      out_.loaded[size_t(k_.memories[m].home)] += out_.loaded_of[m];
      out_.stored[size_t(k_.memories[m].home)] += out_.stored_of[m];
    }
    return out_;
  }

private:
  using Extents = std::vector<std::pair<Var, int64_t>>;

  int64_t value(const Affine& a) const {
    int64_t v = a.c;
    for (auto& [x, k] : a.terms) v = add_saturated(v, mul_saturated(k, at_[size_t(x)]));
    return v;
  }

  // Runs `body` for each value, or once for all where the variable decides nothing.
  template <class F> void repeat(Var v, int64_t begin, int64_t end, int64_t step, int64_t times, F body) {
    if (begin >= end) return;
    const int64_t trips = ceil_div(end - begin, step);
    if (deciding_.count(v) && visits_ + trips > limit) out_.exact = false;
    if (!deciding_.count(v) || visits_ + trips > limit) {
      at_[size_t(v)] = begin;
      return body(times * trips);
    }
    for (int64_t x = begin; x < end; x += step) {
      at_[size_t(v)] = x;
      body(times);
    }
  }

  void grid(size_t g, int64_t times) {
    if (g == k_.grid.size()) return block(k_.body, times, false);
    repeat(k_.grid[g].var, 0, k_.grid[g].extent, k_.grid[g].step, times, [&](int64_t t) { grid(g + 1, t); });
  }

  // The range of each axis that the bounds leave for some values of the others.
  void clip(const std::vector<TileAxis>& axes, const std::vector<const Bounds*>& all, Extents& out) {
    for (auto& a : axes) {
      int64_t lo = 0, hi = a.extent - 1;
      for (auto* b : all)
        for (auto& c : *b) {
          if (!c.refs.empty()) {
            out_.exact = false;
            continue;
          }
          int64_t k = 0, rest = c.affine.c; // the other axes as favourable as they can be
          for (auto& [v, x] : c.affine.terms) {
            const Var var = v;
            auto other = std::find_if(axes.begin(), axes.end(), [&](auto& o) { return o.var == var; });
            if (v == a.var)
              k = x;
            else if (other != axes.end())
              rest += x > 0 ? x * (other->extent - 1) : 0;
            else
              rest += x * at_[size_t(v)];
          }
          if (k == 0 && rest < 0) hi = -1;
          if (k > 0) lo = std::max(lo, ceil_div(-rest, k));
          if (k < 0) hi = std::min(hi, floor_div(rest, -k));
        }
      out.emplace_back(a.var, std::max<int64_t>(0, hi - lo + 1));
    }
  }

  static int64_t points(const Extents& e) {
    int64_t n = 1;
    for (auto& x : e) n *= x.second;
    return n;
  }

  void axes_in(const Ref& r, const Body* body, std::set<Var>& out) const {
    for (auto& c : r.index) {
      for (auto& t : c.affine.terms) out.insert(t.first);
      for (auto& [g, k] : c.refs)
        if (body && size_t(g) < body->refs.size()) axes_in(body->refs[size_t(g)], body, out);
    }
  }

  int64_t distinct(const Ref& r, const Body* body, const Extents& e) const {
    if (points(e) == 0) return 0;
    std::set<Var> own;
    axes_in(r, body, own);
    int64_t n = 1;
    for (auto& [v, extent] : e)
      if (own.count(v)) n *= extent;
    return n;
  }

  int64_t bytes(int m) const { return row(k_.memories[size_t(m)].format).bits / 8; }

  void load(const Ref& r, int64_t elements) {
    out_.loaded_of[size_t(r.memory)] += elements * bytes(r.memory);
  }

  void store(const Ref& r, int64_t elements) {
    out_.stored_of[size_t(r.memory)] += elements * bytes(r.memory);
  }

  void operations(const std::vector<Id>& roots, int64_t times) {
    for (Id id : schedule(*k_.pool, roots)) {
      const expr::Term& t = (*k_.pool)[id];
      if (!t.arity() || (*k_.pool)[t.args[t.op == Op::select ? 1 : 0]].type != Type::real) continue;
      switch (t.op) {
      case Op::add:
      case Op::mul:
      case Op::max:
      case Op::min:
      case Op::less:
      case Op::equal:
      case Op::floor: out_.flops += times; break;
      case Op::recip:
      case Op::sqrt:
      case Op::sin:
      case Op::atan2:
      case Op::exp2:
      case Op::log2:
      case Op::ratio: out_.special += times; break;
      default: break;
      }
    }
  }

  void count(const Apply& x, int64_t times, bool full) {
    std::vector<const Bounds*> all = {&x.bounds};
    if (!full && x.partial.size() == 1) all.push_back(&x.partial[0]);
    Extents live, box;
    clip(x.axes, all, live);
    for (auto& a : x.axes) box.emplace_back(a.var, a.extent);
    for (auto& r : x.body.refs) load(r, times * distinct(r, &x.body, live));
    for (size_t d = 0; d < x.dst.size(); ++d)
      store(x.dst[d], times * distinct(x.dst[d], &x.body, d < x.fill.size() && x.fill[d] ? box : live));
    std::vector<Id> roots = x.body.values;
    if (x.body.when) roots.push_back(*x.body.when);
    operations(roots, times * points(live));
  }

  void count(const Fold& x, int64_t times, bool full) {
    std::vector<const Bounds*> all = {&x.bounds, &x.limits};
    if (!full && x.partial.size() == 1) all.push_back(&x.partial[0]);
    Extents kept, live;
    clip(x.kept, {&x.bounds}, kept);
    std::vector<TileAxis> axes = x.kept;
    axes.insert(axes.end(), x.folded.begin(), x.folded.end());
    clip(axes, all, live);
    if (x.search) return search(x, times * points(kept));
    for (auto& r : x.body.refs) load(r, times * distinct(r, &x.body, live));
    for (auto& r : x.dst) {
      if (x.accumulate) load(r, times * points(kept));
      store(r, times * points(kept));
    }
    operations(x.body.values, times * points(live));
    operations(x.combine, times * points(live));
  }

  // Each point reads the terms at which its range is halved.
  void search(const Fold& x, int64_t points) {
    const int64_t read = points * std::bit_width(uint64_t(x.folded[0].extent));
    for (auto& r : x.body.refs) load(r, read);
    store(x.dst[0], points);
    operations(x.body.values, read);
  }

  void count(const Contract& x, int64_t times) {
    auto extent = [](const std::vector<TileAxis>& a) {
      int64_t n = 1;
      for (auto& t : a) n *= t.extent;
      return n;
    };
    auto ends = [&](const std::optional<Affine>& e, int64_t n) {
      return e ? std::clamp<int64_t>(value(*e), 0, n) : n;
    };
    const int64_t m = ends(x.m_end, extent(x.m)), n = ends(x.n_end, extent(x.n)), k = extent(x.k);
    if (m == 0 || n == 0) return;
    load(x.a, times * m * k * ceil_div(n, int64_t(x.vectors) * lanes_));
    load(x.b, times * n * k * ceil_div(m, x.rows));
    if (x.accumulate) load(x.dst, times * m * n);
    store(x.dst, times * m * n);
    const int64_t terms = times * 2 * ends(x.k_end, k), columns = int64_t(x.vectors) * lanes_;
    out_.flops += terms * m * n;
    out_.contracted += terms * m * n;
    out_.padded += terms * ceil_div(m, x.rows) * x.rows * ceil_div(n, columns) * columns;
  }

  void block(const Block& b, int64_t times, bool full) {
    for (auto& s : b) {
      ++visits_;
      std::visit(Match{[&](const Apply& x) { count(x, times, full); },
                       [&](const Fold& x) { count(x, times, full); },
                       [&](const Contract& x) { count(x, times); }, [](const Barrier&) {},
                       [&](const Let& x) { let(x, times); },
                       [&](const Loop& x) {
                         const int64_t from = value(x.begin), to = value(x.end);
                         repeat(x.var, from, to, x.step, times, [&](int64_t t) { block(x.body, t, full); });
                       },
                       [&](const If& x) {
                         for (auto& a : x.all)
                           if (value(a) < 0) return;
                         block(x.then, times, full);
                       },
                       [&](const Pipeline& x) {
                         for (auto& g : x.segments) {
                           const int64_t from = value(g.begin), to = value(g.end);
                           repeat(x.var, from, to, x.step, times, [&](int64_t t) {
                             block(x.operands, t, !g.partial);
                             block(x.body, t, !g.partial);
                           });
                         }
                       }},
                 s.node);
    }
  }

  void let(const Let& x, int64_t times) {
    int64_t& v = at_[size_t(x.var)];
    if (x.kind == Let::load) {
      load(x.ref, times);
      out_.exact = out_.exact && !deciding_.count(x.var);
      v = 0;
      return;
    }
    int64_t out = value(x.operands[0]);
    for (auto& o : x.operands)
      out = x.kind == Let::max ? std::max(out, value(o)) : x.kind == Let::min ? std::min(out, value(o)) : out;
    v = x.kind == Let::floor_div ? floor_div(out, x.divisor) : out;
  }

  static constexpr int64_t limit = 2000000; // statements walked
  const Kernel& k_;
  const int64_t lanes_;
  std::vector<int64_t> at_;
  std::set<Var> deciding_;
  int64_t visits_ = 0;
  Traffic out_;
};
} // namespace

Traffic traffic(const Kernel& k, int lanes) { return Counter(k, lanes).run(); }

} // namespace tang::kernel
