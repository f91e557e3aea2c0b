// Conditions that a loop asks again at every point though they are known before it: whether a row is empty, a sum zero,
// a scale needed. They hold rarely, so the loop is printed for that case alone, and once more for the others.
#include <cmath>
#include <optional>

#include "tang/emit/c_body.hpp"

namespace tang::emit {

using expr::Op;
using expr::Term;

namespace {
bool is_infinite(const Term& t) { return t.op == Op::literal && t.type == Type::real && std::isinf(t.r); }

// Two numbers are rarely equal, numbers are between the infinities, and another comparison of what is known for a
// whole row looks for the rare one.
std::optional<bool> guess(const kernel::Pool& p, Id id) {
  const Term& t = p[id];
  if (t.op == Op::less && (is_infinite(p[t.args[0]]) || is_infinite(p[t.args[1]])))
    return is_infinite(p[t.args[0]]) ? p[t.args[0]].r < 0 : p[t.args[1]].r > 0;
  if (t.op == Op::equal || t.op == Op::less || t.op == Op::is_nan) return false;
  if (t.op != Op::flip && t.op != Op::both && t.op != Op::either) return std::nullopt;
  const std::optional<bool> a = guess(p, t.args[0]);
  if (!a || t.op == Op::flip) return a ? std::optional<bool>(!*a) : a;
  const std::optional<bool> b = guess(p, t.args[1]);
  return !b ? b : t.op == Op::both ? *a && *b : *a || *b;
}

} // namespace

void BodyText::find_usual() {
  for (Id id : order_) {
    const Term& t = p_[id];
    if (t.op != Op::select || level_.at(t.args[0]) || p_[t.args[0]].op == Op::literal) continue;
    if (const std::optional<bool> g = guess(p_, t.args[0])) usual_[t.args[0]] = *g;
  }
  settles_ = true;
  bool matters = false;
  for (Id id : order_) matters |= level_.at(id) > 0 && settled(id) != id;
  settles_ = false;
  if (!matters) usual_.clear();
}

Id BodyText::settled(Id id) const {
  if (!settles_) return id;
  const Term& t = p_[id];
  if (t.op == Op::select)
    if (const auto u = usual_.find(t.args[0]); u != usual_.end()) return settled(t.args[u->second ? 1 : 2]);
  for (size_t k = 0; k < 2 && t.op == Op::mul && t.type == Type::real; ++k)
    if (const Term& x = p_[settled(t.args[k])]; x.op == Op::literal && x.r == 1) return settled(t.args[1 - k]);
  return id;
}

std::string BodyText::usual() const {
  std::string all;
  for (auto& [id, holds] : usual_) all += (all.empty() ? "" : " & ") + (holds ? "" : std::string("!")) + names_.at(id);
  return all;
}

void BodyText::settle(bool on) {
  settles_ = on && !usual_.empty();
  idle_.clear();
  if (!settles_) return;
  std::set<Id> read;
  for (Id id : roots_) read.insert(settled(id));
  for (size_t n = order_.size(); n-- > 0;) { // users first
    if (!read.count(order_[n])) idle_.insert(order_[n]);
    else
      for (int k = 0; k < p_[order_[n]].arity(); ++k) read.insert(settled(p_[order_[n]].args[size_t(k)]));
  }
}

} // namespace tang::emit
