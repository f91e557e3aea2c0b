#include "tang/kernel/selection.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "tang/expr/op.hpp"

namespace tang::kernel {

namespace {
using expr::Op;
using expr::Term;
using expr::Type;

struct Pair {
  Id value, place;

  bool operator<(const Pair& o) const { return value != o.value ? value < o.value : place < o.place; }
};

// A condition that compares two values and two places and does nothing else is decided by how they compare:
// three ways for each, and which values are NaN.
class Condition {
public:
  Condition(const Pool& p, Id condition, const Pair& x, const Pair& y)
      : p_(p), root_(condition), x_(x), y_(y) {}

  // x comes first where it holds, or y does (`swapped`); equal pairs may be told apart in any way.
  bool orders(bool largest, bool swapped) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::array<std::array<double, 2>, 6> values = {
        {{0, 0}, {0, 1}, {1, 0}, {nan, 0}, {0, nan}, {nan, nan}}};
    const std::array<std::array<int64_t, 2>, 3> places = {{{0, 0}, {0, 1}, {1, 0}}};
    for (auto& v : values)
      for (auto& i : places) {
        const bool left = std::isnan(v[0]), right = std::isnan(v[1]), same = left ? right : v[0] == v[1];
        if (same && i[0] == i[1]) continue;
        const bool x_first = same ? i[0] < i[1] : left || right ? left : (v[0] > v[1]) == largest;
        const auto holds = decide({{x_.value, expr::real(v[0])},
                                   {y_.value, expr::real(v[1])},
                                   {x_.place, expr::whole(i[0])},
                                   {y_.place, expr::whole(i[1])}});
        if (!holds || *holds != (x_first != swapped)) return false;
      }
    return true;
  }

private:
  std::optional<bool> decide(std::map<Id, Value> known) const {
    const auto v = value(root_, known);
    return v ? std::optional(v->i != 0) : std::nullopt;
  }

  std::optional<Value> value(Id id, std::map<Id, Value>& known) const {
    if (auto it = known.find(id); it != known.end()) return it->second;
    const Term& t = p_[id];
    std::optional<Value> out;
    if (t.op == Op::literal) {
      if (t.type != Type::boolean) return std::nullopt; // a landmark of its own
      out = Value{t.type, expr::State::present, t.r, t.whole};
    } else {
      bool compares = t.op == Op::less || t.op == Op::equal || t.op == Op::is_nan;
      for (Op op : {Op::both, Op::either, Op::flip, Op::select})
        compares |= t.op == op && t.type == Type::boolean;
      if (!compares) return std::nullopt;
      std::array<Value, 3> x;
      for (int k = 0; k < t.arity(); ++k) {
        const auto v = value(t.args[size_t(k)], known);
        if (!v) return std::nullopt;
        x[size_t(k)] = *v;
      }
      out = t.op == Op::select ? (x[0].i ? x[1] : x[2]) : expr::compute(t.op, x[0], x[1]);
    }
    known.emplace(id, *out);
    return out;
  }

  const Pool& p_;
  const Id root_;
  const Pair x_, y_;
};

class Reader {
public:
  Reader(const Pool& p, const std::vector<Value>& identity) : p_(p) {
    for (size_t c = 0; c < identity.size(); ++c) {
      if (identity[c].type == Type::real) out_.value.push_back(int(c));
      if (identity[c].type == Type::index) out_.place.push_back(int(c));
    }
  }

  std::optional<Selection> read(const std::vector<Id>& combine, const std::vector<Value>& identity,
                                bool largest) {
    out_.largest = largest;
    if (out_.value.empty() || out_.value.size() != out_.place.size() ||
        2 * out_.value.size() != identity.size())
      return std::nullopt;
    for (size_t k = 0; k < out_.value.size(); ++k) {
      const Value &v = identity[size_t(out_.value[k])], &i = identity[size_t(out_.place[k])];
      if (!std::isinf(v.r) || (v.r < 0) != largest || i.i != INT64_MAX) return std::nullopt;
    }
    for (size_t k = 0; k < out_.value.size(); ++k) {
      const auto n = node({combine[size_t(out_.value[k])], combine[size_t(out_.place[k])]});
      if (!n) return std::nullopt;
      out_.out.push_back(*n);
    }
    return out_;
  }

private:
  int add(Selection::Node n) {
    out_.nodes.push_back(n);
    return int(out_.nodes.size()) - 1;
  }

  std::optional<int> node(const Pair& x) {
    if (auto it = known_.find(x); it != known_.end()) return it->second;
    const Term v = p_[x.value], i = p_[x.place];
    std::optional<int> n;
    if (v.op == Op::var && i.op == Op::var) {
      for (size_t k = 0; k < out_.value.size(); ++k)
        for (int side : {0, 1})
          if (v.whole == 2 * out_.value[k] + side && i.whole == 2 * out_.place[k] + side)
            n = add({side ? Selection::of_right : Selection::of_left, int(k)});
    } else if (v.op == Op::select && i.op == Op::select && v.args[0] == i.args[0]) {
      const Pair held{v.args[1], i.args[1]}, else_{v.args[2], i.args[2]};
      Condition c(p_, v.args[0], held, else_);
      const bool first = c.orders(out_.largest, false);
      if (!first && !c.orders(out_.largest, true)) return std::nullopt;
      const auto a = node(held), b = node(else_);
      if (!a || !b) return std::nullopt;
      n = add({first ? Selection::first : Selection::last, *a, *b});
    }
    if (n) known_[x] = *n;
    return n;
  }

  const Pool& p_;
  Selection out_;
  std::map<Pair, int> known_;
};
} // namespace

std::optional<Selection> selection(const Pool& p, const std::vector<Id>& combine,
                                   const std::vector<Value>& identity) {
  for (bool largest : {true, false})
    if (auto s = Reader(p, identity).read(combine, identity, largest)) return s;
  return std::nullopt;
}

} // namespace tang::kernel
