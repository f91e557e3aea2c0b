#include "tang/tune/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tang::tune {

double estimated(const Judged& c, const std::vector<double>& weights) {
  return std::inner_product(weights.begin(), weights.end(), c.terms.begin(), 0.0);
}

namespace {
template <class F> const Judged& least(const JudgedGroup& g, F f) {
  return *std::min_element(g.all.begin(), g.all.end(), [&](auto& a, auto& b) { return f(a) < f(b); });
}

// Places in order, equal values share theirs.
std::vector<double> ranks(const std::vector<double>& v) {
  std::vector<double> out;
  for (double x : v) {
    double below = 0, equal = 0;
    for (double y : v) below += y < x, equal += y == x;
    out.push_back(below + (equal - 1) / 2);
  }
  return out;
}
} // namespace

const Judged& fastest(const JudgedGroup& g) {
  return least(g, [](const Judged& c) { return c.time.median; });
}

const Judged& lowest(const JudgedGroup& g, const std::vector<double>& weights) {
  return least(g, [&](const Judged& c) { return estimated(c, weights); });
}

const Judged& fastest_of(const JudgedGroup& g, const std::vector<double>& weights, size_t n) {
  std::vector<const Judged*> order;
  for (size_t k = 1; k < g.all.size(); ++k) order.push_back(&g.all[k]);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto* a, auto* b) { return estimated(*a, weights) < estimated(*b, weights); });
  order.resize(std::min(n - 1, order.size()));
  order.push_back(&g.all[0]);
  return **std::min_element(order.begin(), order.end(),
                            [](auto* a, auto* b) { return a->time.median < b->time.median; });
}

double regret(const JudgedGroup& g, const Judged& c) {
  const Judged& best = fastest(g);
  return c.time.low <= best.time.high ? 0 : c.time.median / best.time.median - 1;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto x = ranks(a), y = ranks(b);
  const double mean = (double(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t k = 0; k < x.size(); ++k)
    xy += (x[k] - mean) * (y[k] - mean), xx += (x[k] - mean) * (x[k] - mean),
        yy += (y[k] - mean) * (y[k] - mean);
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double rank_correlation(const JudgedGroup& g, const std::vector<double>& weights) {
  std::vector<double> said, took;
  for (auto& c : g.all) said.push_back(estimated(c, weights)), took.push_back(c.time.median);
  return rank_correlation(said, took);
}

Prior prior_of_cpu() {
  Machine any;
  any.levels = {{}};
  Prior p{weights(), {}};
  for (auto& t : unweighted({}, any)) p.fixed.push_back(!is_learned(t.name));
  return p;
}

std::vector<double> least_squares(const Groups& groups, const Prior& prior) {
  const size_t n = prior.weights.size();
  std::vector<double> a(n * n, 0), b(n, 0), x(n, 0);
  for (auto* g : groups)
    for (auto& c : g->all)
      for (size_t i = 0; i < n; ++i) {
        b[i] += c.terms[i] / c.time.median;
        for (size_t j = 0; j < n; ++j)
          a[i * n + j] += c.terms[i] * c.terms[j] / (c.time.median * c.time.median);
      }
  for (size_t i = 0; i < n; ++i)
    if (prior.fixed[i]) x[i] = prior.weights[i];
  // Coordinate by coordinate: the sum is convex and so are its bounds.
  for (int round = 0; round < 20000; ++round)
    for (size_t i = 0; i < n; ++i) {
      if (prior.fixed[i] || a[i * n + i] <= 0) continue;
      double r = b[i];
      for (size_t j = 0; j < n; ++j) r -= a[i * n + j] * x[j];
      x[i] = std::max(0.0, x[i] + r / a[i * n + i]);
    }
  return x;
}

namespace {
// One pair: the terms and the median of the slower less those of the faster, in units of the group's fastest
// median, and its share of the sum.
struct Pair {
  std::vector<double> more;
  double later = 0, share = 0;
};

std::vector<Pair> pairs_of(const Groups& groups, double sharpness) {
  std::vector<Pair> out;
  double voting = 0; // groups that have pairs: each counts the same
  for (auto* g : groups) {
    const double unit = sharpness * fastest(*g).time.median;
    const size_t first = out.size();
    for (auto& fast : g->all)
      for (auto& slow : g->all) {
        if (fast.time.high >= slow.time.low) continue;
        Pair p{slow.terms, (slow.time.median - fast.time.median) / unit, 0};
        for (size_t k = 0; k < p.more.size(); ++k) p.more[k] = (p.more[k] - fast.terms[k]) / unit;
        out.push_back(std::move(p));
      }
    for (size_t k = first; k < out.size(); ++k) out[k].share = 1 / double(out.size() - first);
    voting += out.size() > first;
  }
  for (auto& p : out) p.share /= voting;
  return out;
}

struct Logistic {
  std::vector<Pair> pairs;
  size_t n;

  double loss(const std::vector<double>& x) const {
    double sum = 0;
    for (auto& p : pairs) {
      const double z = std::inner_product(x.begin(), x.end(), p.more.begin(), 0.0);
      sum += p.share * (z > 0 ? std::log1p(std::exp(-z)) : std::log1p(std::exp(z)) - z);
    }
    return sum;
  }

  void derivatives(const std::vector<double>& x, std::vector<double>& slope,
                   std::vector<double>& bend) const {
    slope.assign(n, 0), bend.assign(n * n, 0);
    for (auto& p : pairs) {
      const double z = std::inner_product(x.begin(), x.end(), p.more.begin(), 0.0);
      const double doubt = 1 / (1 + std::exp(std::clamp(z, -500.0, 500.0)));
      for (size_t i = 0; i < n; ++i) {
        slope[i] -= p.share * doubt * p.more[i];
        for (size_t j = 0; j < n; ++j)
          bend[i * n + j] += p.share * doubt * (1 - doubt) * p.more[i] * p.more[j];
      }
    }
  }
};

// The step d that minimizes slope d + d bend d / 2 over the coordinates that may move; each diagonal element
// is a thousandth larger, so that terms which always move together have one answer.
std::vector<double> newton_step(const std::vector<double>& slope, const std::vector<double>& bend,
                                const std::vector<char>& moves) {
  const size_t n = slope.size();
  std::vector<double> d(n, 0);
  for (int round = 0; round < 2000; ++round)
    for (size_t i = 0; i < n; ++i) {
      const double own = bend[i * n + i] * 1.001;
      if (!moves[i] || own <= 0) continue;
      double r = -slope[i];
      for (size_t j = 0; j < n; ++j)
        if (j != i) r -= bend[i * n + j] * d[j];
      d[i] = r / own;
    }
  return d;
}

// One factor for all weights that were learned: of half of the pairs (by their shares) the estimates differ
// by more than the times do, of half by less. So savings are in seconds; what all of a group take alike is
// not in.
void into_seconds(std::vector<double>& x, const std::vector<Pair>& pairs, const Prior& prior) {
  std::vector<std::pair<double, double>> ratios; // and shares
  double all = 0;
  for (auto& p : pairs) {
    double learned = 0, rest = p.later;
    for (size_t k = 0; k < x.size(); ++k)
      if (prior.fixed[k])
        rest -= x[k] * p.more[k];
      else
        learned += x[k] * p.more[k];
    if (learned > 0 && rest > 0) ratios.emplace_back(rest / learned, p.share), all += p.share;
  }
  if (ratios.empty()) return;
  std::sort(ratios.begin(), ratios.end());
  size_t middle = 0;
  for (double below = ratios[0].second; below < all / 2 && middle + 1 < ratios.size();)
    below += ratios[++middle].second;
  for (size_t k = 0; k < x.size(); ++k)
    if (!prior.fixed[k]) x[k] *= ratios[middle].first;
}
} // namespace

int64_t pairs(const Groups& groups) { return int64_t(pairs_of(groups, 1).size()); }

std::vector<double> pairwise(const Groups& groups, const Prior& prior, double sharpness) {
  std::vector<double> x = prior.weights;
  const Logistic of{pairs_of(groups, sharpness), x.size()};
  if (of.pairs.empty()) return x;
  double loss = of.loss(x);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> slope, bend;
    of.derivatives(x, slope, bend);
    std::vector<char> moves(x.size());
    for (size_t k = 0; k < x.size(); ++k) moves[k] = !prior.fixed[k] && (x[k] > 0 || slope[k] < 0);
    const std::vector<double> d = newton_step(slope, bend, moves);
    double next = loss;
    std::vector<double> y;
    for (double part = 1; part > 1e-4 && !(next < loss - 1e-9); part /= 2) {
      y = x;
      for (size_t k = 0; k < x.size(); ++k) y[k] = std::max(0.0, x[k] + part * d[k]);
      next = of.loss(y);
    }
    if (!(next < loss - 1e-9)) break;
    x = y, loss = next;
  }
  into_seconds(x, of.pairs, prior);
  return x;
}

std::vector<std::vector<double>> held_out(const Groups& groups, const Prior& prior, const Trainer& train) {
  std::vector<std::vector<double>> out;
  for (auto* g : groups) {
    Groups others;
    for (auto* x : groups)
      if (x->graph != g->graph) others.push_back(x);
    out.push_back(train(others, prior));
  }
  return out;
}

} // namespace tang::tune
