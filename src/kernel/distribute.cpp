#include "tang/kernel/distribute.hpp"

#include <algorithm>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/products.hpp"
#include "tang/kernel/rows.hpp"

namespace tang::kernel {

bool gathers(const Bounds& b) {
  return std::any_of(b.begin(), b.end(), [](const Coordinate& c) { return !c.refs.empty(); });
}

namespace {
constexpr int64_t long_fold = 32, terms_a_lane = 4; // shorter folds stay with one lane

int64_t flat_points(const std::vector<TileAxis>& axes) {
  int64_t n = 1;
  for (auto& a : axes) n *= a.extent;
  return n;
}

int64_t power_below(int64_t n) {
  int64_t p = 1;
  while (2 * p <= n) p *= 2;
  return p;
}

void replace(Bounds& b, Var v, const Affine& by) {
  for (auto& c : b) c.affine = replaced(c.affine, v, by);
}

class Distributor {
public:
  Distributor(Kernel& k, const target::Target& t) : k_(k), t_(t) {}

  Block block(const Block& b) {
    Block out;
    for (auto& s : b)
      std::visit(Match{[&](const Apply& x) {
                         Apply a = x;
                         a.vector = -1;
                         out.push_back({std::move(a)});
                       },
                       [&](const Fold& x) { fold(x, 0, out); },
                       [&](const Loop& x) {
                         Loop l = x;
                         l.body = block(x.body);
                         out.push_back({std::move(l)});
                       },
                       [&](const If& x) {
                         out.push_back({If{x.all, block(x.then)}});
                       },
                       [](const Pipeline&) { bug(__FILE__, __LINE__, "a pipeline after expansion"); },
                       [&](const auto& x) { out.push_back({x}); }},
                 s.node);
    return out;
  }

private:
  // One element a lane, used by every shared fold of this depth, component and format.
  int partial(int depth, size_t component, Format f) {
    const std::string name =
        "part" + std::to_string(depth) + "_" + std::to_string(component) + "_" + expr::row(f).name;
    for (size_t m = 0; m < k_.memories.size(); ++m)
      if (k_.memories[m].name == name) return int(m);
    Memory m;
    m.name = name;
    m.home = Home::shared;
    m.format = f;
    m.shape = {t_.workgroup_limit};
    m.access = Access::read_write;
    m.team = Team::workgroup;
    return k_.add(std::move(m));
  }

  Format format_of(Type t) const {
    return t == Type::real    ? k_.compute
           : t == Type::index ? Format::i64
           : t == Type::bits  ? Format::i64
                              : Format::boolean;
  }

  static bool may_share(const Fold& f) {
    if (f.search) return false;
    if (f.held || gathers(f.bounds)) return false; // a narrow state adds in the order that the schedule says
    for (auto& d : f.dst)
      for (auto& c : d.index)
        if (!c.refs.empty()) return false;
    for (auto& e : f.identity)
      if (e.type == Type::bits) return false; // no format holds every value
    return true;
  }

  void fold(const Fold& x, int depth, Block& out) {
    Fold f = x;
    const bool any_order = f.vector >= int(f.kept.size());
    const int64_t many = flat_points(f.kept), terms = flat_points(f.folded);
    size_t axis = 0; // whose terms are dealt: the longest, or the outermost where the order counts
    for (size_t a = 0; a < f.folded.size(); ++a)
      if (any_order ? f.folded[a].extent > f.folded[axis].extent : f.folded[axis].extent == 1) axis = a;
    int64_t shares = 1;
    if (terms >= long_fold && many > 0 && many < t_.workgroup_limit && may_share(f))
      shares = power_below(
          std::min({int64_t(t_.workgroup_limit) / many, terms / terms_a_lane, f.folded[axis].extent}));
    const bool across = f.vector >= 0 && !any_order; // results lie side by side, and so do what they read
    const int vector = f.vector;
    f.vector = -1;
    f.ways = 1;
    if (shares < 2) {
      out.push_back({std::move(f)});
      return;
    }
    // Terms of each share, then the shares.
    const TileAxis dealt = f.folded[axis];
    const int64_t each = ceil_div(dealt.extent, shares);
    const Var s = k_.fresh("s"), c = k_.fresh("c");
    const Affine index = any_order ? shares * variable(c) + variable(s) : each * variable(s) + variable(c);
    Fold one = f;
    one.accumulate = false;
    one.kept.insert(across ? one.kept.begin() : one.kept.end(), {s, shares}); // the last goes along the lanes
    one.folded[axis] = {c, each};
    if (shares * each != dealt.extent)
      one.limits.insert(one.limits.begin(), Coordinate{constant(dealt.extent - 1) - index, {}});
    put(one, dealt.var, index);
    Fold rest;
    rest.kept = f.kept;
    rest.folded = {{k_.fresh("s"), shares}};
    rest.bounds = f.bounds;
    rest.dst = f.dst;
    rest.identity = f.identity;
    rest.combine = f.combine;
    rest.accumulate = f.accumulate;
    rest.vector = any_order ? int(rest.kept.size()) : across ? vector : -1;
    for (size_t d = 0; d < f.dst.size(); ++d) {
      const Type type = f.identity[d].type;
      Ref r{partial(depth, d, format_of(type)), {{Affine{}, {}}}, false};
      Affine flat;
      for (auto& a : f.kept) flat = a.extent * flat + variable(a.var);
      auto place = [&](Var share) { return across ? flat + many * variable(share) : shares * flat + variable(share); };
      r.index[0].affine = place(s);
      one.dst[d] = r;
      r.index[0].affine = place(rest.folded[0].var);
      rest.body.refs.push_back(r);
      rest.body.values.push_back(k_.pool->leaf(expr::Op::arg, type, int64_t(d)));
    }
    out.push_back({std::move(one)});
    fold(rest, depth + 1, out);
  }

  void put(Fold& f, Var v, const Affine& by) {
    replace(f.limits, v, by);
    for (auto& b : f.partial) replace(b, v, by);
    for (auto& r : f.body.refs)
      for (auto& c : r.index) c.affine = replaced(c.affine, v, by);
    for (auto& g : f.body.guards)
      for (auto& b : g) replace(b, v, by);
    expr::Pool& p = *k_.pool;
    auto term = [&](Id id) {
      return expr::transplant(Pool(p), id, p, [&](const expr::Term& t) {
        if (t.op != expr::Op::coord || t.whole != v)
          return t.op == expr::Op::literal ? p.literal(Value{t.type, expr::State::present, t.r, t.whole})
                                           : p.leaf(t.op, t.type, t.whole);
        std::optional<Id> sum;
        for (auto& [x, k] : by.terms) {
          const Id leaf = p.leaf(expr::Op::coord, Type::index, x);
          const Id one = k == 1 ? leaf : p.make(expr::Op::mul, {p.literal(expr::whole(k)), leaf});
          sum = sum ? p.make(expr::Op::add, {*sum, one}) : one;
        }
        return *sum;
      });
    };
    for (Id& id : f.body.values) id = term(id);
    if (f.body.when) f.body.when = term(*f.body.when);
  }

  Kernel& k_;
  const target::Target& t_;
};
} // namespace

Kernel distribute(const Kernel& k, const target::Target& t) {
  if (auto products = deal_products(k, t)) return *products;
  if (auto rows = deal_rows(k, t)) return *rows;
  Kernel out = k;
  out.pool = std::make_shared<Pool>(*k.pool); // it grows
  out.lanes = t.workgroup_limit;
  out.subgroup = t.lanes;
  for (auto& m : out.memories)
    if (m.home != Home::global) {
      m.home = Home::shared;
      m.team = Team::workgroup;
    }
  out.body = Distributor(out, t).block(k.body);
  return out;
}

int64_t tile_bytes(const Kernel& k, int64_t unit) {
  int64_t n = 0;
  for (auto& m : k.memories)
    if (m.home != Home::global && m.home != Home::register_) n += ceil_div(m.size() * expr::row(m.format).bits / 8, unit) * unit;
  return n;
}

} // namespace tang::kernel
