// Row weights: what a weight exp2(A + row) of a sum has of its row becomes stored numbers of that row: one
// that the exponent adds, scale and existence in it, and one for every other term of the row.
#include <algorithm>
#include <cmath>

#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::rewrite {

namespace {
class Weight {
public:
  Weight(Graph& g, Comp& n) : g_(g), n_(n), p_(g.pool), depends_(p_, n) {}

  bool run() {
    const expr::Present lift = expr::present(p_, n_.lift[0]);
    const Product all = product_of(p_, lift.value);
    std::optional<Id> exponent;
    for (Id f : all.factors)
      if (p_[f].op == Op::exp2) {
        if (exponent) return false;
        exponent = p_[f].args[0];
      } else {
        factors_.push_back(f);
      }
    if (!exponent || !finds_row(*exponent)) return false;
    for (Id d : all.divisors) (of_row(d) ? inverse_ : divisors_).push_back(d);
    take_inverses();
    std::optional<Id> exists, other;
    conditions(lift.when, exists, other);
    Id row = *row_;
    for (Id d : inverse_) row = p_.make(Op::add, {row, p_.make(Op::neg, {p_.make(Op::log2, {d})})});
    if (exists) row = p_.make(Op::select, {*exists, row, p_.literal(-INFINITY)});
    Product out;
    out.factors.push_back(p_.make(Op::exp2, {p_.make(Op::add, {*rest_, stored(row)})}));
    for (Id f : factors_) out.factors.push_back(with_stored_rows(f));
    out.divisors = divisors_;
    if (!why_.empty()) return false;
    const Id value = term_of(p_, out);
    n_.lift[0] = other ? p_.make(Op::only, {*other, value}) : value;
    return true;
  }

private:
  bool of_row(Id x) {
    const Axes a = depends_.of(x);
    if (!a || (a & ~axes_)) return false;
    for (Id y : expr::schedule(p_, {x})) {
      const expr::Term t = p_[y];
      if (t.op == Op::coord || t.op == Op::holds || t.op == Op::only || t.op == Op::or_else) return false;
      if (t.op == Op::arg && !is_total(g_, n_, int(t.whole))) return false;
    }
    return true;
  }

  // The exponent as a sum: what only some of its axes have is the row's, the rest is a contraction's. A row
  // lacks one axis that is longer than 1, the longest that some term lacks: a bias of distances lacks others.
  bool finds_row(Id exponent) {
    const Axes all = depends_.of(exponent);
    std::vector<std::pair<double, Id>> atoms;
    flatten(exponent, 1, atoms);
    std::pair<bool, double> best{};
    for (auto& [k, x] : atoms) {
      const Axes a = depends_.of(x);
      if (!a || a == all) continue;
      int lacks = 0;
      double longest = 1;
      for (int y = 0; y < n_.axis_count(); ++y)
        if (all & ~a & bit(y)) lacks += nominal(y) != 1, longest = std::max(longest, nominal(y));
      const std::pair<bool, double> now{lacks == 1, longest};
      if (!axes_ || now > best) axes_ = a, best = now;
    }
    if (!axes_) return false;
    for (auto& [k, x] : atoms) {
      std::optional<Id>& to = of_row(x) ? row_ : rest_;
      const Id term = k == 1 ? x : p_.make(Op::mul, {x, p_.literal(k)});
      to = to ? p_.make(Op::add, {*to, term}) : term;
    }
    return row_ && rest_;
  }

  void flatten(Id id, double k, std::vector<std::pair<double, Id>>& out) const {
    const expr::Term& t = p_[id];
    auto number = [&](int i) { return p_[t.args[size_t(i)]].op == Op::literal; };
    if (t.op == Op::add) {
      flatten(t.args[0], k, out), flatten(t.args[1], k, out);
    } else if (t.op == Op::neg) {
      flatten(t.args[0], -k, out);
    } else if (t.op == Op::mul && (number(0) || number(1))) {
      const int n = number(0) ? 0 : 1;
      flatten(t.args[size_t(1 - n)], k * p_[t.args[size_t(n)]].r, out);
    } else {
      out.push_back({k, id});
    }
  }

  // 1 / d common to a sum: x / d + y = (x + y d) / d, where y is the row's.
  void take_inverses() {
    for (Id& f : factors_) {
      if (p_[f].op != Op::add || !inverse_.empty()) continue;
      std::optional<Id> d;
      std::vector<Product> terms;
      for (Id a : expr::addends(p_, f)) {
        terms.push_back(product_of(p_, a));
        for (Id x : terms.back().divisors)
          if (of_row(x) && !d) d = x;
      }
      if (!d) continue;
      std::optional<Id> sum;
      bool fits = true;
      for (Product& t : terms) {
        const auto it = std::find(t.divisors.begin(), t.divisors.end(), *d);
        if (it != t.divisors.end())
          t.divisors.erase(it);
        else if (of_row(term_of(p_, t)))
          t.factors.push_back(*d);
        else
          fits = false;
        const Id x = term_of(p_, t);
        sum = sum ? p_.make(Op::add, {*sum, x}) : x;
      }
      if (fits) f = *sum, inverse_.push_back(*d);
    }
  }

  void conditions(Id when, std::optional<Id>& exists, std::optional<Id>& other) {
    if (when == expr::yes(p_)) return;
    if (p_[when].op == Op::both) {
      const expr::Term t = p_[when];
      conditions(t.args[0], exists, other), conditions(t.args[1], exists, other);
      return;
    }
    std::optional<Id>& to = of_row(when) ? exists : other;
    to = to ? expr::both(p_, *to, when) : when;
  }

  Id with_stored_rows(Id x) {
    const expr::Term t = p_[x];
    if (!t.arity() || t.type != Type::real) return x;
    if (of_row(x)) return stored(x);
    std::vector<Id> args;
    for (int i = 0; i < t.arity(); ++i) args.push_back(with_stored_rows(t.args[size_t(i)]));
    return p_.make(t.op, args);
  }

  // A map of the row's term, its longest axis last, and its read.
  Id stored(Id term) {
    std::vector<int> order;
    for (int a = 0; a < n_.axis_count(); ++a)
      if (axes_ & bit(a)) order.push_back(a);
    auto place = [&](int a) { // in the first array that the term reads
      for (Id x : expr::schedule(p_, {term}))
        if (p_[x].op == Op::arg) {
          auto& view = n_.args[size_t(p_[x].whole)].view;
          for (size_t d = 0; d < view.size(); ++d)
            if (view[d].axis(a)) return int(d);
        }
      return a;
    };
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const double x = nominal(a), y = nominal(b);
      return x != y ? x < y : place(a) < place(b);
    });
    Comp row;
    std::map<int, int> at;
    ir::Out out;
    Arg read{{0, 0}, {}};
    for (int a : order) {
      at[a] = int(row.points.size());
      out.axes.push_back(int(row.points.size()));
      row.points.push_back(n_.extent(a));
      read.view.push_back(ir::axis(a));
    }
    Import in(p_, n_, row, [&](int a) { return ir::axis(at.at(a)); });
    row.lift = {ordered(p_, in.body(ordered(p_, term)))};
    row.outs = {out};
    if (!in.why().empty()) why_ = in.why();
    if (!why_.empty()) return term;
    read.from = {g_.add({std::move(row), "row", {}}), 0};
    return read_leaf(p_, Type::real, add_read(n_, read));
  }

  double nominal(int a) const { return n_.extent(a).is_constant() ? double(n_.extent(a).value()) : 4096; }

  Graph& g_;
  Comp& n_;
  Pool& p_;
  Dependence depends_;
  Axes axes_ = 0; // of a row
  std::optional<Id> row_, rest_;
  std::vector<Id> factors_, divisors_, inverse_;
  std::string why_;
};

// Does a point-for-point read of some contraction stand in the lift?
bool reads_contraction(const Graph& g, const Comp& n) {
  return std::any_of(n.args.begin(), n.args.end(), [&](auto& a) {
    const Comp* c = g[a.from.node].comp();
    return c && is_plain_fold(g.pool, *c, Op::add) && !c->folds.empty() && a.view.size() >= 2;
  });
}
} // namespace

Graph row_weights(const Graph& g) {
  Changed c = change_each(g, [&](Edit& e, NodeId id, Comp& n) -> std::optional<std::string> {
    if (!axes_fit(n) || !is_plain_fold(e.to.pool, n, Op::add) || n.folds.empty()) return {};
    if (!reads_contraction(e.to, n)) return {};
    Comp trial = n;
    if (!Weight(e.to, trial).run()) return {};
    n = std::move(trial);
    return e.from.label({id, 0});
  });
  return c.what.empty() ? g : ir::canonical(c.graph).graph;
}

} // namespace tang::rewrite
