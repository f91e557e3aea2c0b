// What the estimate's weights are learned from, and how: candidates that were timed, in groups; of a group
// only who is faster counts, and only where the intervals of two medians are disjoint.
#pragma once
#include "tang/tune/cost.hpp"
#include "tang/tune/store.hpp"
#include "tang/tune/trial.hpp"

namespace tang::tune {

// A candidate that was timed.
struct Judged {
  std::vector<double> terms; // before their weights, s (`unweighted`)
  Sample time;
};

// Candidates of one group of a program on one device, the automatic one first.
struct JudgedGroup {
  std::string graph; // groups of one graph are left out together
  std::vector<Judged> all;
};

double estimated(const Judged& c, const std::vector<double>& weights);
const Judged& fastest(const JudgedGroup& g);                                    // the lowest median
const Judged& lowest(const JudgedGroup& g, const std::vector<double>& weights); // by estimate, nothing timed
// Of the automatic one and the `n - 1` lowest estimates of the others the fastest.
const Judged& fastest_of(const JudgedGroup& g, const std::vector<double>& weights, size_t n = 8);
// How much slower than the fastest; 0 where the intervals overlap: then nobody knows which is faster.
double regret(const JudgedGroup& g, const Judged& c);
// Spearman's rank correlation of two lists of one length; 0 where one of them is constant.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);
double rank_correlation(const JudgedGroup& g, const std::vector<double>& weights);

// Where the weights come from that are not learned, and what the others start with.
struct Prior {
  std::vector<double> weights;
  std::vector<char> fixed;
};

Prior prior_of_cpu(); // of the source; those that the race cannot weigh stay (`is_learned`)

using Groups = std::vector<const JudgedGroup*>;
// Weights >= 0 whose estimates have the least squares of relative errors over all candidates.
std::vector<double> least_squares(const Groups& groups, const Prior& prior);
// Weights >= 0 by pairwise logistic regression: with z = (estimate of the slower - estimate of the faster) /
// (sharpness * the group's fastest median), the mean over groups of the mean over pairs of log(1 + exp(-z)).
// They are scaled as a whole so that what estimates of a pair differ by is in seconds. No pairs: the prior's.
std::vector<double> pairwise(const Groups& groups, const Prior& prior, double sharpness = 0.05);
int64_t pairs(const Groups& groups); // whose intervals are disjoint

using Trainer = std::function<std::vector<double>(const Groups&, const Prior&)>;
// Of each group the weights that a trainer gives when the group's graph is left out.
std::vector<std::vector<double>> held_out(const Groups& groups, const Prior& prior, const Trainer& train);

// Weights as an artefact, by the names of their terms (schema tang.ranking/1), and back: names that this
// version does not have, or that the artefact lacks, are a Refusal.
struct Ranking {
  std::string device, date;
  std::vector<double> weights;
  int64_t groups = 0, pairs = 0;
  double regret = 0, regret_before = 0; // geometric means, each graph left out: of these, of the source's
};

std::string as_json(const Ranking& r);
Result<Ranking> ranking_of(const std::string& json);

// Candidates that the cache holds of a device (rows of `Store::rows("candidate")`), by group; rows of older
// versions, which have no terms, are left out.
std::vector<JudgedGroup> judged_of(const std::vector<Row>& rows, const std::string& device);
std::string judged_terms(const Work& w, const Machine& m); // JSON: by name, as a row holds them
// Trains on what the cache holds and says how it does beside the source's weights. Refusal: fewer than three
// graphs or no pair.
Result<Ranking> trained(const std::vector<JudgedGroup>& all, const std::string& device);

} // namespace tang::tune
