#include "tang/bound/derivation.hpp"

#include <algorithm>

namespace tang::bound {

namespace {
constexpr size_t most_spaces = 64; // in one group of mixed loops: the search is quadratic in them

const Space nothing;

// The weighted steps inside one group, over its own loops, and what they leave of each space.
struct Local {
  struct Step {
    Rational weight;
    Space one, two, both, neither;
  };

  std::vector<Step> steps;
  std::vector<std::pair<Space, Rational>> left; // more than 0
};

// The spaces that the parts and the single loops make; the empty one last.
Result<std::vector<Space>> spaces_of(const Mixed& group) {
  const size_t w = group.loops.size();
  std::vector<Space> generators;
  auto add = [&](const Space& s) {
    if (!s.empty() && std::find(generators.begin(), generators.end(), s) == generators.end())
      generators.push_back(s);
  };
  Space full;
  for (size_t k = 0; k < w; ++k) full.push_back(unit(k, w));
  add(full);
  for (auto& m : group.parts) add(m);
  for (size_t k = 0; k < w; ++k) add({unit(k, w)});
  auto all = lattice(generators, w, most_spaces);
  if (!all) return all;
  all->erase(std::remove(all->begin(), all->end(), nothing), all->end());
  all->push_back(nothing);
  return all;
}

// h is least on these spaces where the paid sum minus h(all) is 0 exactly when the inequality follows from
// steps; their weights are the prices of the conditions.
Result<Local> within(const Mixed& group, const std::vector<Rational>& s, const std::vector<Rational>& t) {
  const auto found = spaces_of(group);
  if (!found) return Refusal{found.why()};
  const std::vector<Space>& spaces = *found;
  const size_t n = spaces.size() - 1, w = group.loops.size();
  auto place = [&](const Space& x) {
    return size_t(std::find(spaces.begin(), spaces.end(), x) - spaces.begin());
  };
  Vector gain(n, 0);
  auto paid = [&](const Space& x, const Rational& by) {
    if (!x.empty()) gain[place(x)] = gain[place(x)] - by;
  };
  for (size_t j = 0; j < s.size(); ++j) paid(group.parts[j], s[j]);
  for (size_t k = 0; k < w; ++k) paid({unit(k, w)}, t[size_t(group.loops[k])]);
  Space full;
  for (size_t k = 0; k < w; ++k) full.push_back(unit(k, w));
  paid(full, -1);
  std::vector<Vector> rows;
  std::vector<Local::Step> steps;
  auto step = [&](const Space& one, const Space& two, const Space& both, const Space& neither) {
    Vector row(n + 1, 0);
    for (const Space* x : {&both, &neither}) row[place(*x)] = row[place(*x)] + Rational(1);
    for (const Space* x : {&one, &two}) row[place(*x)] = row[place(*x)] - Rational(1);
    row.pop_back();
    rows.push_back(std::move(row));
    steps.push_back({0, one, two, both, neither});
  };
  for (size_t a = 0; a < n; ++a)
    for (size_t b = 0; b < a; ++b) {
      const Space join = sum(spaces[a], spaces[b]);
      if (join == spaces[a] || join == spaces[b]) { // the larger one tells more
        const Space& less = join == spaces[a] ? spaces[b] : spaces[a];
        step(join, nothing, less, nothing);
      } else {
        step(spaces[a], spaces[b], join, intersection(spaces[a], spaces[b], w));
      }
    }
  const auto best = maximum(rows, std::vector<Form>(rows.size()), gain, Atoms(2));
  if (!best) return Refusal{"no derivation of the cover's inequality"};
  Local out;
  for (size_t r = 0; r < rows.size(); ++r)
    if (best->prices[n + r].sign()) {
      out.steps.push_back(steps[r]);
      out.steps.back().weight = best->prices[n + r];
    }
  for (size_t k = 0; k < n; ++k)
    if (best->prices[k].sign()) out.left.push_back({spaces[k], best->prices[k]});
  return out;
}

class Builder {
public:
  explicit Builder(size_t dimension) : dimension_(dimension) {}

  Derivation out;

  size_t place(const Space& x) {
    if (x.empty()) return none;
    const auto it = std::find(out.matrices.begin(), out.matrices.end(), x);
    if (it != out.matrices.end()) return size_t(it - out.matrices.begin());
    out.matrices.push_back(x);
    return out.matrices.size() - 1;
  }

  void step(const Rational& weight, const Space& one, const Space& two, const Space& both,
            const Space& neither) {
    if (!weight.sign() || (one == both && two == neither)) return;
    out.steps.push_back({weight, place(one), place(two), place(both), place(neither)});
  }

  // A space over a group's loops as one over all.
  Space moved(const Space& x, const Mixed& group) const {
    Space y;
    for (auto& v : x) {
      y.emplace_back(dimension_, 0);
      for (size_t k = 0; k < v.size(); ++k) y.back()[size_t(group.loops[k])] = v[k];
    }
    return reduced(std::move(y));
  }

  Derivation done() {
    for (auto& s : out.steps)
      for (size_t* at : {&s.one, &s.two, &s.both, &s.neither}) *at = std::min(*at, out.matrices.size());
    for (auto* list : {&out.of_arrays, &out.of_loops})
      for (size_t& at : *list) at = std::min(at, out.matrices.size());
    return std::move(out);
  }

private:
  static constexpr size_t none = size_t(-1);
  size_t dimension_;
};
} // namespace

Result<Derivation> derivation(const std::vector<Space>& views, const std::vector<Rational>& s,
                              const std::vector<Rational>& t) {
  const size_t d = t.size();
  Builder b(d);
  const std::vector<Mixed> groups = mixed(views, d);
  // The loops of the groups before one are given: h(view) >= sum over groups of h(its part and these) -
  // h(these).
  std::vector<Space> given{nothing};
  for (auto& g : groups) {
    std::vector<Vector> rows = given.back();
    for (int a : g.loops) rows.push_back(unit(size_t(a), d));
    given.push_back(reduced(std::move(rows)));
  }
  for (auto& v : views) b.out.of_arrays.push_back(b.place(v));
  for (size_t i = 0; i < d; ++i) b.out.of_loops.push_back(b.place({unit(i, d)}));
  b.out.whole = b.place(given.back());
  for (size_t j = 0; j < views.size(); ++j) {
    Space before = views[j];
    for (size_t k = groups.size(); k-- > 0;) {
      const Space until = before, part = b.moved(groups[k].parts[j], groups[k]);
      if (part.empty()) continue;
      before = nothing;
      for (size_t l = 0; l < k; ++l) before = sum(before, b.moved(groups[l].parts[j], groups[l]));
      b.step(s[j], until, given[k], sum(part, given[k]), before);
    }
  }
  for (size_t k = 0; k < groups.size(); ++k) {
    auto with = [&](const Space& x) { return sum(b.moved(x, groups[k]), given[k]); };
    for (int a : groups[k].loops) {
      const Space loop{unit(size_t(a), d)};
      b.step(t[size_t(a)], loop, given[k], sum(loop, given[k]), nothing);
    }
    auto local = within(groups[k], s, t);
    if (!local) return Refusal{local.why()};
    for (auto& x : local->steps) b.step(x.weight, with(x.one), with(x.two), with(x.both), with(x.neither));
    for (auto& [x, by] : local->left) b.step(by, with(x), nothing, given[k], nothing);
  }
  return b.done();
}

} // namespace tang::bound
