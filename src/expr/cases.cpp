#include "tang/expr/cases.hpp"

#include <algorithm>

namespace tang::expr {

std::vector<Case> orders(const std::vector<Id>& terms, const std::vector<Id>& landmarks, bool bottom,
                         bool top) {
  std::vector<Case> out;
  const int n = int(terms.size()), m = int(landmarks.size()),
            step = n + 1; // landmark k has rank (k + 1) * step
  std::vector<int> rank(terms.size(), 0);
  auto add = [&] {
    Case c;
    std::map<int, Id> first;
    for (int l = 0; l < m; ++l) {
      c.facts.rank[landmarks[size_t(l)]] = (l + 1) * step;
      first[(l + 1) * step] = landmarks[size_t(l)];
    }
    for (size_t i = 0; i < terms.size(); ++i) {
      const Id representative = first.try_emplace(rank[i], terms[i]).first->second;
      if (representative != terms[i])
        c.replace[terms[i]] = representative;
      else
        c.facts.rank[terms[i]] = rank[i];
    }
    out.push_back(c);
  };
  std::function<void(size_t)> go = [&](size_t k) {
    if (k == terms.size()) return add();
    const int last = top ? m * step : m * step + n;
    for (rank[k] = bottom ? step : 1; rank[k] <= last; ++rank[k]) go(k + 1);
  };
  go(0);
  return out;
}

std::vector<Case> joined(const std::vector<Case>& a, const std::vector<Case>& b) {
  std::vector<Case> out;
  for (auto& x : a)
    for (auto& y : b) {
      Case c = x;
      c.replace.insert(y.replace.begin(), y.replace.end());
      c.facts.rank.insert(y.facts.rank.begin(), y.facts.rank.end());
      c.facts.truth.insert(y.facts.truth.begin(), y.facts.truth.end());
      out.push_back(std::move(c));
    }
  return out;
}

namespace {
std::optional<Id> undecided(const Pool& p, Id id) {
  for (Id x : schedule(p, {id}))
    if (p[x].op == Op::select) return p[x].args[0];
  return {};
}
} // namespace

bool equal_in(Pool& p, Id a, Id b, const Case& c, int depth) {
  const Id x = simplify(p, substitute(p, a, c.replace), c.facts);
  const Id y = simplify(p, substitute(p, b, c.replace), c.facts);
  if (x == y) return true;
  auto condition = undecided(p, x);
  if (!condition) condition = undecided(p, y);
  if (!condition || !depth) return false;
  for (bool holds : {false, true}) {
    Case next = c;
    next.facts.truth[*condition] = holds;
    if (!equal_in(p, x, y, next, depth - 1)) return false;
  }
  return true;
}

bool equal_in(Pool& p, Id a, Id b, const std::vector<Case>& cases) {
  return std::all_of(cases.begin(), cases.end(), [&](const Case& c) { return equal_in(p, a, b, c); });
}

} // namespace tang::expr
