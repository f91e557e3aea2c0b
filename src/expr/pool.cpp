#include "tang/expr/pool.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"
#include "tang/expr/term_table.hpp"

namespace tang::expr {

Id Pool::intern(Term t) {
  uint64_t h = combine(uint64_t(t.op) * 8 + uint64_t(t.type), combine(bits_of(t.r), uint64_t(t.whole)));
  for (int k = 0; k < t.arity(); ++k) h = combine(h, terms_[t.args[size_t(k)]].hash);
  t.hash = h;
  if (2 * (terms_.size() + 1) > slots_.size()) spread();
  size_t at = size_t(h) & (slots_.size() - 1);
  for (; slots_[at]; at = (at + 1) & (slots_.size() - 1)) {
    const Term& o = terms_[slots_[at] - 1];
    if (o.hash == h && o.op == t.op && o.type == t.type && o.args == t.args && bits_of(o.r) == bits_of(t.r) &&
        o.whole == t.whole)
      return slots_[at] - 1;
  }
  terms_.push_back(t);
  slots_[at] = Id(terms_.size());
  return slots_[at] - 1;
}

void Pool::spread() {
  slots_.assign(std::max<size_t>(64, 2 * slots_.size()), 0);
  for (Id id = 0; id < terms_.size(); ++id) {
    size_t at = size_t(terms_[id].hash) & (slots_.size() - 1);
    while (slots_[at]) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = id + 1;
  }
}

Id Pool::literal(const Value& v) {
  return intern(
      {Op::literal, v.type, {}, v.type == Type::real ? v.r : 0.0, v.type == Type::real ? 0 : v.i, 0});
}

Id Pool::number(double v, Type type) {
  return literal(type == Type::real ? real(v) : Value{type, State::present, 0, int64_t(v)});
}

Id Pool::leaf(Op op, Type type, int64_t number) { return intern({op, type, {}, 0, number, 0}); }

namespace {
void check_operands(const Pool& p, Op op, const Id* a, size_t count) {
  const OpRow& r = row(op);
  if (int(count) != r.arity) check(false, std::string("arity of ") + r.name);
  auto type = [&](size_t k) { return p[a[k]].type; };
  auto fail = [&](const std::string& why) {
    std::vector<Note> facts;
    for (size_t k = 0; k < count; ++k)
      facts.push_back({std::string(name(p[a[k]].type)) + "  " + p.print(a[k]), {}});
    throw Error({}, std::string("`") + r.name + "` " + why, facts,
                "convert one operand: real(..), index(..) or bits(..)");
  };
  const bool integer = type(0) == Type::index || type(0) == Type::bits;
  if (r.takes == Takes::real && type(0) != Type::real) fail("takes reals");
  if (r.takes == Takes::number && !(type(0) == Type::real || integer)) fail("takes numbers");
  if (r.takes == Takes::whole && !integer) fail("takes index or bits values");
  if (r.takes == Takes::boolean && type(0) != Type::boolean) fail("takes booleans");
  if (r.takes == Takes::guarded && type(0) != Type::boolean) fail("takes a condition first");
  const size_t from = r.takes == Takes::guarded ? 1 : 0;
  const bool shift = op == Op::shift_left || op == Op::shift_right;
  for (size_t k = from + 1; k < count; ++k)
    if (type(k) != type(from) && !(shift && (type(k) == Type::index || type(k) == Type::bits)))
      fail("mixes types");
}
} // namespace

Id Pool::make(Op op, const Id* a, size_t count) {
  check_operands(*this, op, a, count);
  Type type = terms_[a[0]].type;
  switch (row(op).gives) {
  case Gives::real: type = Type::real; break;
  case Gives::index: type = Type::index; break;
  case Gives::bits: type = Type::bits; break;
  case Gives::boolean: type = Type::boolean; break;
  case Gives::second: type = terms_[a[1]].type; break;
  default: break;
  }
  Term t{op, type, {}, 0, 0, 0};
  std::copy(a, a + count, t.args.begin());
  return intern(t);
}

Id Pool::over(Id id, const std::array<Id, 3>& operands) {
  const Term& t = terms_[id];
  const size_t count = size_t(t.arity());
  if (std::equal(operands.begin(), operands.begin() + long(count), t.args.begin())) return id;
  return make(t.op, operands.data(), count);
}

bool Pool::before(Id a, Id b) const {
  if (a == b) return false;
  const Term &x = terms_[a], &y = terms_[b];
  if (x.hash != y.hash) return x.hash < y.hash;
  return a < b;
}

namespace {
constexpr size_t longest = 2000; // of a printed term: what is shared is written once a use, up to 2^n times

void write(const Pool& p, Id id, std::string& out) {
  const Term& t = p[id];
  if (out.size() > longest) {
    if (out.compare(out.size() - 2, 2, "..")) out += "..";
  } else if (t.op == Op::literal) {
    out += t.type == Type::real      ? shortest(t.r)
           : t.type == Type::boolean ? (t.whole ? "true" : "false")
                                     : std::to_string(t.whole);
  } else if (!t.arity()) {
    out += row(t.op).name + std::to_string(t.whole);
  } else {
    out += row(t.op).name;
    for (int k = 0; k < t.arity() && out.size() <= longest; ++k) {
      out += k ? ", " : "(";
      write(p, t.args[size_t(k)], out);
    }
    out += out.size() > longest ? "" : ")";
  }
}
} // namespace

std::string Pool::print(Id id) const {
  std::string out;
  write(*this, id, out);
  return out;
}

// Rows of tables that are not in use.
struct TermTable::Spare {
  std::vector<Row> rows;
  uint32_t user;
  std::vector<std::pair<Id, int>> open;
};

std::vector<TermTable::Spare>& TermTable::spare() {
  thread_local std::vector<Spare> all;
  return all;
}

TermTable::TermTable() {
  auto& all = spare();
  if (all.empty()) return;
  rows_ = std::move(all.back().rows), user_ = all.back().user, open = std::move(all.back().open);
  all.pop_back();
}

TermTable::~TermTable() {
  if (!++user_) rows_.clear(), user_ = 1; // rows of the last 2^32 tables are of none
  open.clear();
  spare().push_back({std::move(rows_), user_, std::move(open)});
}

Id substitute(Pool& p, Id root, const std::map<Id, Id>& to) {
  if (to.empty()) return root;
  TermTable now;
  walk(
      p, root, now, [&](Id id) { return to.count(id) > 0; },
      [&](Id id) {
        const auto it = to.find(id);
        now.set(id, it != to.end() ? it->second : p.over(id, now.of(p[id])));
      });
  return now[root];
}

Id transplant(const Pool& from, Id root, Pool& to, const std::function<Id(const Term&)>& leaf) {
  TermTable now;
  walk(
      from, root, now, [](Id) { return false; },
      [&](Id id) {
        const Term t = from[id];
        const auto args = now.of(t);
        now.set(id, t.op == Op::literal ? to.literal(Value{t.type, State::present, t.r, t.whole})
                    : !t.arity()        ? leaf(t)
                                        : to.make(t.op, args.data(), size_t(t.arity())));
      });
  return now[root];
}

std::vector<Id> schedule(const Pool& p, const std::vector<Id>& roots) {
  TermTable seen;
  std::vector<Id> out;
  for (Id r : roots)
    walk(p, r, seen, [](Id) { return false; }, [&](Id id) { out.push_back(id); });
  return out;
}

std::vector<Id> schedule(const Pool& p, Id root) {
  std::vector<Id> out;
  walk(p, root, [&](Id id) { out.push_back(id); });
  return out;
}

void subterms(const Pool& p, Id id, Op op, std::set<Id>& out) {
  walk(p, id, [&](Id x) {
    if (p[x].op == op) out.insert(x);
  });
}

std::set<Id> subterms(const Pool& p, Id id, Op op) {
  std::set<Id> out;
  subterms(p, id, op, out);
  return out;
}

Value evaluate(const Pool& p, Id id, const Leaf& leaf) {
  const Term& t = p[id];
  auto at = [&](size_t k) { return evaluate(p, t.args[k], leaf); };
  auto as = [&](State s) { return Value{t.type, s, 0, 0}; };
  if (t.op == Op::literal) return {t.type, State::present, t.r, t.whole};
  if (!t.arity()) return leaf(t);
  const Value a = at(0);
  if (t.op == Op::or_else) return a.state == State::absent ? at(1) : a;
  if (t.op == Op::select) return a.state != State::present ? as(a.state) : at(a.i ? 1 : 2);
  if (t.op == Op::only) {
    if (a.state == State::absent || (a.state == State::present && !a.i)) return as(State::absent);
    Value b = at(1);
    return a.state == State::fault && b.state == State::present ? as(State::fault) : b;
  }
  const Value b = t.arity() > 1 ? at(1) : a;
  const State worst =
      a.state == State::absent || b.state == State::absent ? State::absent : std::max(a.state, b.state);
  if (worst == State::fault &&
      (t.op == Op::both || t.op == Op::either)) // a decided side beats a fault: guards commute
    for (const Value& v : {a, b})
      if (v.state == State::present && bool(v.i) == (t.op == Op::either)) return truth(v.i);
  return worst != State::present ? as(worst) : compute(t.op, a, b);
}

} // namespace tang::expr
