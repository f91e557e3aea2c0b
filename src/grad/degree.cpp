#include "tang/grad/degree.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tang/base/number.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::diff {

using ir::Comp;
using ir::Form;
using ir::Graph;
using ir::Id;
using ir::Op;
using ir::Pool;
using ir::Port;
using ir::Type;

namespace {
const Degree unknown{Degree::none, 0, {}};

Degree moved(Degree::Kind kind, double d, std::vector<Form> row) {
  if (std::fabs(d) < Proof::rounding) return {};
  return {kind, d, std::move(row)};
}

bool close(double a, double b) { return std::fabs(a - b) < Proof::rounding * (1 + std::fabs(a)); }

bool alike(const Degree& a, const Degree& b) { return a.kind == b.kind && close(a.d, b.d) && a.row == b.row; }

using Table = std::map<Port, Degree>;

// The degree of the terms of one comprehension. Rows are over its axes.
struct Body {
  const Pool& p;
  const Comp& n;
  const Table& table;
  std::unordered_map<Id, Degree> done = {};

  bool literal(Id id, double v) const {
    return p[id].op == Op::literal && p[id].type == Type::real && p[id].r == v;
  }

  bool infinite(Id id) const {
    return p[id].op == Op::literal && p[id].type == Type::real && std::isinf(p[id].r);
  }

  Degree read(int a) const {
    const ir::Arg& arg = n.args[size_t(a)];
    for (auto& f : arg.view)
      for (auto& [u, k] : f.args)
        if (read(u).kind != Degree::free) return unknown;
    auto it = table.find(arg.from);
    if (it == table.end()) return {};
    Degree d = it->second;
    for (Form& f : d.row) f = ir::compose(f, [&](int q) { return arg.view[size_t(q)]; });
    return d;
  }

  bool domain_is_free(const ir::Domain& d) const {
    for (auto& piece : d)
      for (auto& f : piece)
        for (auto& [u, k] : f.args)
          if (read(u).kind != Degree::free) return false;
    return true;
  }

  Degree operator()(Id id) {
    if (auto it = done.find(id); it != done.end()) return it->second;
    return done[id] = degree(id);
  }

  // 0 is of every scale.
  Degree same(Id a, Id b) {
    const Degree x = (*this)(a), y = (*this)(b);
    if (literal(a, 0) && y.kind == Degree::scale) return y;
    if (literal(b, 0) && x.kind == Degree::scale) return x;
    return alike(x, y) ? x : unknown;
  }

  Degree sum(Id a, Id b) {
    const Degree x = (*this)(a), y = (*this)(b);
    if (x.kind == Degree::shift && y.kind == Degree::free) return x;
    if (y.kind == Degree::shift && x.kind == Degree::free) return y;
    if (x.kind == Degree::shift && y.kind == Degree::shift)
      return x.row == y.row ? moved(Degree::shift, x.d + y.d, x.row) : unknown;
    return same(a, b);
  }

  Degree product(Id a, Id b, double sign) { // sign -1: a quotient
    const Degree x = (*this)(a), y = (*this)(b);
    if (x.kind == Degree::none || y.kind == Degree::none) return unknown;
    if (x.kind == Degree::shift || y.kind == Degree::shift) {
      const Degree& s = x.kind == Degree::shift ? x : y;
      const Id other = x.kind == Degree::shift ? b : a;
      if (p[other].op != Op::literal || sign < 0) return unknown;
      return moved(Degree::shift, s.d * p[other].r, s.row);
    }
    if (x.kind == Degree::free && y.kind == Degree::free) return {};
    if (x.kind == Degree::free) return moved(Degree::scale, sign * y.d, y.row);
    if (y.kind == Degree::free) return x;
    return x.row == y.row ? moved(Degree::scale, x.d + sign * y.d, x.row) : unknown;
  }

  // A comparison is decided by what a finite shift or a positive factor does not change.
  Degree comparison(Id a, Id b) {
    const Degree x = (*this)(a), y = (*this)(b);
    if (x.kind == Degree::none || y.kind == Degree::none) return unknown;
    if (x.kind == Degree::free && y.kind == Degree::free) return {};
    const bool endless = (infinite(a) && x.kind == Degree::free) || (infinite(b) && y.kind == Degree::free);
    const Degree both = same(a, b);
    return endless || both.kind == Degree::scale || both.kind == Degree::shift ? Degree{} : unknown;
  }

  // A comparison of what moves with an infinity, for values that are numbers (the law is about those).
  std::optional<bool> for_numbers(Id c) {
    const expr::Term& t = p[c];
    if (t.op != Op::less && t.op != Op::equal) return {};
    for (size_t k : {size_t(0), size_t(1)}) {
      const Id value = t.args[k], end = t.args[1 - k];
      if (!infinite(end)) continue;
      const Degree d = (*this)(value);
      if (d.kind != Degree::shift && d.kind != Degree::scale) continue;
      return t.op == Op::less && (k == 0) == (p[end].r > 0);
    }
    return {};
  }

  Degree degree(Id id) {
    const expr::Term t = p[id];
    const auto& a = t.args;
    if (t.op == Op::arg) return read(int(t.whole));
    if (t.op == Op::holds) return domain_is_free(n.guards[size_t(t.whole)]) ? Degree{} : unknown;
    bool free = true;
    for (int k = 0; k < t.arity(); ++k) free = free && (*this)(a[size_t(k)]).kind == Degree::free;
    if (free) return {};
    switch (t.op) {
    case Op::add: return sum(a[0], a[1]);
    case Op::mul: return product(a[0], a[1], 1);
    case Op::ratio: return product(a[0], a[1], -1);
    case Op::neg: {
      Degree x = (*this)(a[0]);
      if (x.kind == Degree::shift) x.d = -x.d;
      return x;
    }
    case Op::recip: {
      const Degree x = (*this)(a[0]);
      return x.kind == Degree::scale ? moved(Degree::scale, -x.d, x.row) : unknown;
    }
    case Op::sqrt: {
      const Degree x = (*this)(a[0]);
      return x.kind == Degree::scale ? moved(Degree::scale, x.d / 2, x.row) : unknown;
    }
    case Op::exp2: {
      const Degree x = (*this)(a[0]);
      return x.kind == Degree::shift ? moved(Degree::scale, x.d, x.row) : unknown;
    }
    case Op::log2: {
      const Degree x = (*this)(a[0]);
      return x.kind == Degree::scale ? moved(Degree::shift, x.d, x.row) : unknown;
    }
    case Op::max:
    case Op::min:
    case Op::or_else: return same(a[0], a[1]);
    case Op::select:
      if (const auto known = for_numbers(a[0])) return (*this)(a[*known ? 1 : 2]);
      return (*this)(a[0]).kind == Degree::free ? same(a[1], a[2]) : unknown;
    case Op::only: return (*this)(a[0]).kind == Degree::free ? (*this)(a[1]) : unknown;
    case Op::less:
    case Op::equal: return comparison(a[0], a[1]);
    case Op::is_nan: return (*this)(a[0]).kind == Degree::none ? unknown : Degree{};
    default: return unknown;
    }
  }
};

// The degree of a port from the degree of its term: rows over axes become rows over the port's coordinates.
Degree folded(const Pool& p, const Comp& n, size_t c, Degree d) {
  if (d.kind == Degree::free || d.kind == Degree::none) return d;
  if (n.monoid) {
    const bool sums = rewrite::is_plain_component(p, n, c, Op::add);
    const bool picks =
        rewrite::is_plain_component(p, n, c, Op::max) || rewrite::is_plain_component(p, n, c, Op::min);
    if (!picks && !(sums && d.kind == Degree::scale)) return unknown;
  }
  if (!n.outs[c].view.empty()) return unknown;
  std::map<int, int> coordinate;
  for (size_t q = 0; q < n.outs[c].axes.size(); ++q) coordinate[n.outs[c].axes[q]] = int(q);
  for (Form& f : d.row) {
    if (!f.args.empty()) return unknown;
    for (auto& t : f.axes)
      if (!coordinate.count(t.first)) return unknown; // it changes along a fold axis
    f = ir::compose(f, [&](int a) { return ir::axis(coordinate.at(a)); });
  }
  return d;
}
} // namespace

std::optional<Proof> stabilizing(const Graph& g, Port max, const std::vector<Port>& roots, ir::NodeId end) {
  Table table;
  Degree start{Degree::shift, 1, {}};
  for (size_t q = 0; q < g.shape(max).size(); ++q) start.row.push_back(ir::axis(int(q)));
  table[max] = start;
  Proof out{nullptr, max, {}, roots};
  for (ir::NodeId id = max.node + 1; id < end; ++id) {
    const auto read = ir::sources(g, id);
    if (std::none_of(read.begin(), read.end(), [&](Port s) { return table.count(s) > 0; })) continue;
    const Comp* n = g[id].comp();
    std::vector<Degree> lifts;
    Body body{g.pool, n ? *n : Comp{}, table};
    for (uint32_t c = 0; c < g.ports(id); ++c) lifts.push_back(n ? body(n->lift[c]) : unknown);
    const bool all_free =
        n && body.domain_is_free(n->domain) &&
        std::all_of(lifts.begin(), lifts.end(), [](const Degree& d) { return d.kind == Degree::free; });
    if (all_free) continue;
    for (uint32_t c = 0; c < g.ports(id); ++c) {
      // A component of a combine that sees others moves with all of them.
      const bool alone = n && body.domain_is_free(n->domain) &&
                         (n->is_map() || rewrite::is_plain_component(g.pool, *n, c, Op::add) ||
                          rewrite::is_plain_component(g.pool, *n, c, Op::max) ||
                          rewrite::is_plain_component(g.pool, *n, c, Op::min));
      const Degree d = alone ? folded(g.pool, *n, c, lifts[c]) : unknown;
      if (d.kind == Degree::free) continue;
      table[{id, c}] = d;
      out.degrees.push_back({{id, c}, d});
    }
  }
  for (Port r : roots)
    if (table.count(r)) return {};
  return out;
}

std::string print(const Proof& proof) {
  const Graph& g = *proof.graph;
  std::string out = "no gradient through " + g.label(proof.max) + ":";
  for (auto& [port, d] : proof.degrees)
    out += " " + g.label(port) + (d.kind == Degree::scale ? " ~ 2^(" : " + (") + shortest(d.d) + " m)";
  return out + "; every root is free of it";
}

} // namespace tang::diff
