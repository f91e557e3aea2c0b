#include "tang/bound/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tang/base/number.hpp"
#include "tang/bound/count.hpp"
#include "tang/bound/split.hpp"

namespace tang::bound {

namespace {
using Cover = std::pair<std::vector<Rational>, std::vector<Rational>>;

struct Part {
  int64_t points = 0;
  std::vector<int64_t> extents;
};

// Weight and exponent of each tensor: views of one tensor share its elements, so their exponents add.
std::vector<std::pair<int64_t, Rational>> exponents(const Nest& n, const std::vector<Rational>& s) {
  std::map<int, std::pair<int64_t, Rational>> by_tensor;
  for (size_t j = 0; j < s.size(); ++j) {
    if (!s[j].sign()) continue;
    auto& e =
        by_tensor.emplace(n.arrays[j].tensor, std::make_pair(n.arrays[j].weight, Rational(0))).first->second;
    e.second = e.second + s[j];
  }
  std::vector<std::pair<int64_t, Rational>> out;
  for (auto& e : by_tensor) out.push_back(e.second);
  return out;
}

// With segments of T units, X = K + T units are touched in each, at most c X^sigma points are evaluated on
// them, and Q >= T V / (c X^sigma) - T. T = K / (sigma - 1) is best. sigma = 1: the whole run is one segment,
// nothing to subtract.
class Evaluator {
public:
  Evaluator(const Nest& n, const Cover& c, int64_t memory, Model m) : cover_(c) {
    for (auto& x : c.first) term_.sigma = term_.sigma + x;
    term_.s = c.first, term_.t = c.second;
    if (term_.sigma < Rational(1)) return;
    powers_ = exponents(n, c.first);
    const int64_t k = m == Model::chain ? memory : 2 * memory;
    if (Rational(1) < term_.sigma) {
      segment_ = (Rational(k) / (term_.sigma - Rational(1))).floor();
      touched_ = k + segment_;
      if (segment_ < 1) return;
    }
    tells_ = true;
  }

  bool tells() const { return tells_; } // sigma < 1: the compulsory count says more

  Term& term() { return term_; }

  double estimate(const Part& p) const {
    double v = std::log2(double(p.points));
    for (size_t i = 0; i < cover_.second.size(); ++i)
      if (cover_.second[i].sign()) v -= cover_.second[i].real() * std::log2(double(p.extents[i]));
    const double sigma = term_.sigma.real();
    for (auto& [w, s] : powers_) v += s.real() * std::log2(double(w) / s.real());
    if (segment_) {
      v += std::log2(double(segment_));
      v += sigma * std::log2(sigma / double(touched_));
    }
    return p.points ? std::exp2(v) : 0;
  }

  int64_t leading(const Part& p) const {
    if (!p.points) return 0;
    int64_t root = 1;
    auto widen = [&](const Rational& q) {
      root *= q.den() / std::gcd(root, q.den());
      if (root > 5040) throw Overflow{};
    };
    for (auto& t : cover_.second) widen(t);
    for (auto& e : powers_) widen(e.second);
    auto times = [&](const Rational& q) { return q.num() * (root / q.den()); };
    Root r;
    r.root = root;
    r.multiply(uint64_t(p.points), root);
    for (size_t i = 0; i < cover_.second.size(); ++i)
      if (cover_.second[i].sign()) r.multiply(uint64_t(p.extents[i]), -times(cover_.second[i]));
    if (segment_) r.multiply(uint64_t(segment_), root);
    for (auto& [w, s] : powers_) {
      const Rational share = s / term_.sigma;
      const int64_t e = times(s);
      r.multiply(uint64_t(w), e);
      r.multiply(uint64_t(share.den()), e);
      r.multiply(uint64_t(share.num()), -e);
      if (segment_) r.multiply(uint64_t(touched_), -e);
    }
    return r.floor();
  }

  int64_t segment() const { return segment_; }

private:
  const Cover& cover_;
  Term term_;
  std::vector<std::pair<int64_t, Rational>> powers_;
  int64_t segment_ = 0, touched_ = 0; // 0: sigma = 1
  bool tells_ = false;
};

Term evaluated(Evaluator& e, const std::vector<Part>& parts, bool exact) {
  Term t = e.term();
  for (auto& p : parts) t.estimate += e.estimate(p);
  t.correction = e.segment();
  if (exact)
    for (auto& p : parts) t.leading = add_saturated(t.leading, e.leading(p));
  return t;
}

// Live points under a cover: those where every array that it uses is touched, by remainder class of the split
// loops.
class Parts {
public:
  explicit Parts(const Prepared& p) : p_(p) {}

  Result<std::vector<Part>> of(const Cover& c) {
    std::vector<char> key;
    for (size_t j = 0; j < c.first.size(); ++j)
      key.push_back(c.first[j].sign() && p_.nest.arrays[j].guard != ir::everywhere());
    for (auto& s : p_.splits) key.push_back(s.extent % s.by && !c.second[size_t(s.remainder)].sign());
    auto it = known_.find(key);
    if (it != known_.end()) return it->second;
    ir::Domain live = p_.nest.domain;
    for (size_t j = 0; j < c.first.size(); ++j)
      if (key[j]) live = ir::intersection(live, p_.nest.arrays[j].guard);
    std::vector<Part> out;
    std::string why;
    std::function<void(size_t, ir::Domain, std::vector<int64_t>)> go =
        [&](size_t k, const ir::Domain& d, const std::vector<int64_t>& extents) {
          if (k == p_.splits.size()) {
            auto n = count_points(p_.nest.extents, d);
            if (!n)
              why = n.why();
            else
              out.push_back({*n, extents});
            return;
          }
          const Split& s = p_.splits[k];
          if (!key[c.first.size() + k]) return go(k + 1, d, extents);
          for (int64_t r = 0; r < s.by; ++r) {
            std::vector<int64_t> e = extents;
            e[size_t(s.quotient)] = ceil_div(s.extent - r, s.by);
            if (e[size_t(s.quotient)] < 1) continue;
            go(k + 1,
               ir::intersection(
                   d, {{ir::axis(s.remainder) - ir::constant(r), ir::constant(r) - ir::axis(s.remainder)}}),
               e);
          }
        };
    go(0, live, p_.nest.extents);
    if (!why.empty()) return Refusal{why};
    known_[key] = out;
    return out;
  }

private:
  const Prepared& p_;
  std::map<std::vector<char>, std::vector<Part>> known_;
};

Result<std::vector<Compulsory>> compulsory(const Nest& n) {
  std::map<int, Compulsory> by_tensor;
  std::map<int, int> views;
  for (auto& a : n.arrays) {
    const auto touched = elements(n, a);
    if (!touched) return Refusal{touched.why()};
    Compulsory& k = by_tensor[a.tensor];
    if (k.name.empty()) k.name = a.name;
    k.units = std::max(k.units, mul_saturated(*touched, a.weight));
    k.exact = ++views[a.tensor] == 1 && !a.gathered;
  }
  std::vector<Compulsory> out;
  for (auto& k : by_tensor) out.push_back(k.second);
  return out;
}

bool better(const Term& a, const std::optional<Term>& b) {
  return !b || a.estimate - double(a.correction) > (b->estimate - double(b->correction)) * (1 + 1e-12);
}
} // namespace

Result<int64_t> elements(const Nest& n, const Array& a) {
  auto c = count_images(
      n.extents, a.guard == ir::everywhere() ? n.domain : ir::intersection(n.domain, a.guard), a.rows);
  if (!c && n.domain == ir::everywhere() && a.guard == ir::everywhere()) c = int64_t(1);
  if (!c) return Refusal{c.why()};
  if (!a.gathered || !*c) return *c;
  const bool apart = std::none_of(a.rows.begin(), a.rows.end(), [&](const Row& r) {
    return std::any_of(a.keyed_by.begin(), a.keyed_by.end(), [&](int k) { return r[size_t(k)] != 0; });
  });
  return apart ? mul_saturated(*c, a.keys) : std::max(*c, a.keys);
}

int64_t Bound::value(Model m) const {
  const auto& t = m == Model::chain ? chain : any;
  return std::max(compulsory, t ? t->value() : 0);
}

int64_t Bound::unsplit() const { return std::max(value(Model::any), chain ? chain->value() - outputs : 0); }

Result<Bound> bound(const Nest& original, int64_t memory) {
  if (memory < 2 || memory > (int64_t(1) << 60)) return Refusal{"fast memory must be 2 .. 2^60 units"};
  Bound b;
  b.memory = memory;
  auto points = count_points(original.extents, original.domain);
  if (!points) return Refusal{points.why()};
  b.points = *points;
  auto touched = compulsory(original);
  if (!touched) return Refusal{touched.why()};
  b.arrays = *touched;
  for (auto& a : b.arrays) b.compulsory = add_saturated(b.compulsory, a.units);
  for (auto& a : original.arrays)
    if (a.output) {
      auto n = count_images(original.extents, original.domain, a.rows);
      if (n) b.outputs = add_saturated(b.outputs, mul_saturated(*n, a.weight));
    }
  Prepared p = prepare(original);
  if (!b.points) {
    b.nest = p.nest;
    b.notes.push_back("no point is live");
    return b;
  }
  for (auto& s : p.splits)
    b.notes.push_back("loop of " + std::to_string(s.extent) + " split by the stride " + std::to_string(s.by) +
                      " it meets");
  try {
    auto rows = conditions(p.nest);
    if (!rows) {
      // Without all subgroups the inequality may be too strong, so the mixing views are left out.
      b.notes.push_back(rows.why() + ": multi-term views are left out of the inequality");
      std::vector<Array> kept;
      for (auto& a : p.nest.arrays)
        if (std::all_of(a.rows.begin(), a.rows.end(), [](const Row& r) {
              return std::count_if(r.begin(), r.end(), [](int64_t k) { return k != 0; }) <= 1;
            }))
          kept.push_back(a);
      p.nest.arrays = kept;
      rows = conditions(p.nest);
      if (!rows) return Refusal{rows.why()};
    }
    b.nest = p.nest;
    auto solved = solve(p.nest, *rows, memory);
    if (!solved) return Refusal{solved.why()};
    b.certificate = *solved;
    std::vector<Cover> covers = vertices(p.nest, *rows);
    if (covers.empty()) b.notes.push_back("too many vertices: only the best cover of the program is used");
    covers.emplace_back(solved->s, solved->t);
    Parts parts(p);
    std::optional<size_t> at[2];
    std::optional<Term> best[2];
    for (size_t k = 0; k < covers.size(); ++k) {
      if (k + 1 == covers.size() &&
          std::find(covers.begin(), covers.end() - 1, covers.back()) != covers.end() - 1)
        continue;
      for (Model m : {Model::chain, Model::any}) {
        Evaluator e(p.nest, covers[k], memory, m);
        if (!e.tells()) continue;
        auto pieces = parts.of(covers[k]);
        if (!pieces) return Refusal{pieces.why()};
        Term t = evaluated(e, *pieces, false);
        if (m == Model::chain) b.vertices.push_back(t);
        if (better(t, best[int(m)])) best[int(m)] = t, at[int(m)] = k;
      }
    }
    for (Model m : {Model::chain, Model::any}) {
      if (!at[int(m)]) continue;
      const Cover& c = covers[*at[int(m)]];
      Evaluator e(p.nest, c, memory, m);
      (m == Model::chain ? b.chain : b.any) = evaluated(e, *parts.of(c), true);
    }
  } catch (const Overflow&) { return Refusal{"the bound's numbers leave 64 bits"}; }
  return b;
}

Result<Term> by_part(const Nest& n, int axis, const std::vector<int64_t>& sizes, int64_t memory, Model m) {
  if (n.domain != ir::everywhere()) return Refusal{"a nest with parts must have all points live"};
  Prepared p = prepare(n);
  if (!p.splits.empty()) return Refusal{"a nest with parts and strided loops"};
  try {
    auto rows = conditions(p.nest);
    if (!rows) return Refusal{rows.why()};
    std::vector<Part> parts;
    for (int64_t size : sizes) {
      if (size < 0) return Refusal{"a part of negative size"};
      if (!size) continue;
      Part part{1, p.nest.extents};
      part.extents[size_t(axis)] = size;
      for (int64_t e : part.extents) {
        auto v = mul_checked(part.points, e);
        if (!v) throw Overflow{};
        part.points = *v;
      }
      parts.push_back(std::move(part));
    }
    std::optional<Term> best;
    for (auto& c : vertices(p.nest, *rows)) {
      Evaluator e(p.nest, c, memory, m);
      if (!e.tells()) continue;
      Term t = evaluated(e, parts, false);
      if (better(t, best)) best = evaluated(e, parts, true);
    }
    if (!best) return Refusal{"no vertex tells more than the compulsory count"};
    return *best;
  } catch (const Overflow&) { return Refusal{"the bound's numbers leave 64 bits"}; }
}

double expected_experts(int64_t experts, int64_t picked, int64_t tokens) {
  if (tokens < 1) return 0;
  return double(experts) * -std::expm1(double(tokens) * std::log1p(-double(picked) / double(experts)));
}

} // namespace tang::bound
