// Weights that are learned from who was faster.
#include <cmath>

#include "tang/tune/ranking.hpp"
#include "tune/graphs.hpp"

namespace {
using namespace tang;

// Candidates of a made-up group whose time is `truth` of two terms, the third counts nothing; +- 1%.
tune::JudgedGroup group(const std::string& graph, std::mt19937_64& rng, const std::vector<double>& truth) {
  tune::JudgedGroup g{graph, {}};
  for (int k = 0; k < 30; ++k) {
    tune::Judged c;
    double t = 0;
    for (double w : truth) {
      c.terms.push_back(1e-3 * (1 + double(rng() % 1000) / 1000));
      t += w * c.terms.back();
    }
    c.time = {t, 0.99 * t, 1.01 * t, 0.99 * t, 9};
    g.all.push_back(std::move(c));
  }
  return g;
}

std::vector<tune::JudgedGroup> some(const std::vector<double>& truth) {
  std::mt19937_64 rng(3);
  return {group("a", rng, truth), group("b", rng, truth), group("c", rng, truth), group("c", rng, truth)};
}

tune::Groups all(const std::vector<tune::JudgedGroup>& groups) {
  tune::Groups out;
  for (auto& g : groups) out.push_back(&g);
  return out;
}

const tune::Prior two_free{{1, 1, 1}, {0, 0, 0}};

TEST(tune_ranking, both_ways_find_the_weights_that_made_the_times) {
  const std::vector<double> truth = {2, 0.5, 0};
  const auto groups = some(truth);
  const auto squares = tune::least_squares(all(groups), two_free), pairs = tune::pairwise(all(groups), two_free);
  for (size_t k = 0; k < truth.size(); ++k) {
    EXPECT_NEAR(squares[k], truth[k], 1e-6) << k;
    EXPECT_NEAR(pairs[k], truth[k], 0.15) << k;
    EXPECT_GE(pairs[k], 0) << k;
  }
  for (auto& g : groups) EXPECT_GT(tune::rank_correlation(g, pairs), 0.99);
}
// What all candidates of a group share has no say in pairs, and it ruins least squares.
TEST(tune_ranking, pairs_do_not_mind_what_a_group_shares) {
  auto groups = some({1, 0.3, 0.1});
  for (size_t n = 0; n < groups.size(); ++n)
    for (auto& c : groups[n].all) {
      const double more = double(n) * 5e-3;
      for (double* t : {&c.time.median, &c.time.low, &c.time.high, &c.time.best}) *t += more;
    }
  const auto pairs = tune::pairwise(all(groups), two_free), squares = tune::least_squares(all(groups), two_free);
  double by_pairs = 0, by_squares = 0;
  for (auto& g : groups)
    by_pairs += tune::rank_correlation(g, pairs), by_squares += tune::rank_correlation(g, squares);
  EXPECT_GT(by_pairs / 4, 0.98);
  EXPECT_GT(by_pairs, by_squares);
}
TEST(tune_ranking, only_disjoint_intervals_count) {
  tune::JudgedGroup g{"g", {{{1, 0}, {1.00, 0.9, 1.1, 0.9, 5}}, {{2, 0}, {1.05, 1.0, 1.2, 1.0, 5}}, {{3, 0}, {2, 1.9, 2.1, 1.9, 5}}}};
  EXPECT_EQ(tune::pairs({&g}), 2);  // the last against the two others
  EXPECT_EQ(tune::regret(g, g.all[1]), 0);
  EXPECT_NEAR(tune::regret(g, g.all[2]), 1, 1e-12);
  g.all.pop_back();
  EXPECT_EQ(tune::pairwise({&g}, {{7, 7}, {0, 0}}), (std::vector<double>{7, 7}));  // nothing to learn from
}
TEST(tune_ranking, what_was_probed_stays) {
  const auto groups = some({2, 0.5, 0});
  const tune::Prior prior{{1, 0.25, 1}, {0, 1, 0}};
  EXPECT_EQ(tune::pairwise(all(groups), prior)[1], 0.25);
  EXPECT_EQ(tune::least_squares(all(groups), prior)[1], 0.25);
}
TEST(tune_ranking, a_graph_is_left_out_as_a_whole) {
  const auto groups = some({2, 0.5, 0});
  std::vector<std::vector<std::string>> seen;
  tune::held_out(all(groups), two_free, [&](const tune::Groups& g, const tune::Prior& p) {
    seen.emplace_back();
    for (auto* x : g) seen.back().push_back(x->graph);
    return p.weights;
  });
  EXPECT_EQ(seen, (std::vector<std::vector<std::string>>{{"b", "c", "c"}, {"a", "c", "c"}, {"a", "b"}, {"a", "b"}}));
}
TEST(tune_ranking, eight_timed_hold_the_automatic_one) {
  std::mt19937_64 rng(5);
  tune::JudgedGroup g = group("g", rng, {1, 1, 1});
  g.all[0].time.median = 1e-9;  // the estimate does not know that the automatic one is fast
  EXPECT_EQ(&tune::fastest_of(g, {1, 1, 1}), &g.all[0]);
  EXPECT_EQ(&tune::fastest_of(g, {1, 1, 1}, 1), &g.all[0]);
  EXPECT_NE(&tune::lowest(g, {1, 1, 1}), &g.all[0]);
}
TEST(tune_ranking, correlation_of_ranks) {
  EXPECT_NEAR(tune::rank_correlation({1, 2, 3, 4}, {10, 20, 30, 1000}), 1, 1e-12);
  EXPECT_NEAR(tune::rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}), -1, 1e-12);
  EXPECT_NEAR(tune::rank_correlation({1, 2, 3}, {1, 3, 2}), 0.5, 1e-12);
  EXPECT_EQ(tune::rank_correlation({1, 1, 1}, {1, 2, 3}), 0);
}

// Too few accumulators wait for each other; few rows of one vector need more operands than the unit takes.
TEST(tune_ranking, blocks_that_wait_cost_more) {
  tune::Machine m = tests::made_up();
  m.lanes = 8, m.fma = {100e9, 100e9}, m.levels[0].read = {200e9, 200e9}, m.chain = 1.6e-9;
  tune::Work w;
  w.launches = w.workgroups = 1, w.padded = 1e9;
  auto term = [&](const std::string& name) {
    for (auto& t : tune::unweighted(w, m))
      if (t.name == name) return t.seconds;
    return -1.0;
  };
  w.loads = 1e9 / 16 * 2 / 3, w.chained = 1e9 / 16 / 12;  // 6 x 2 vectors
  EXPECT_EQ(term("operands of register blocks"), 0);
  EXPECT_EQ(term("chains of register blocks"), 0);
  w.loads = 1e9 / 16 * 13 / 12;  // 12 x 1: 13 loads for 12 multiply-adds; 8 bytes a flop and 200 GB/s
  EXPECT_NEAR(term("operands of register blocks"), 1e9 / 16 * 13 / 12 * 32 / 200e9 - 0.01, 1e-9);
  w.chained = 1e9 / 16 / 4;  // 4 accumulators of 1.6 ns each, where 10 are needed
  EXPECT_NEAR(term("chains of register blocks"), 1e9 / 16 / 4 * 1.6e-9 - 1e9 / 16 * 13 / 12 * 32 / 200e9, 1e-9);
  m.chain = 0;  // not probed
  EXPECT_EQ(term("chains of register blocks"), 0);
}
// A vector of columns that at most four rows use is read again for each of them.
TEST(tune_ranking, blocks_of_few_rows_read_their_columns_again) {
  run::Options o;
  o.target = target::c_target(8, 1);
  auto loads = [&](int rows, int vectors) {
    const ir::Graph g = tests::product(48, 96, 40);
    const run::Derivation d = run::derive(g, o);
    run::Options with = o;
    schedule::GroupFields f;
    f.rows = rows, f.vectors = vectors, f.tile = {{0, 48}, {1, 96}, {2, 40}};
    with.schedule.groups[schedule::key(*d.plan.graph, d.plan.steps[0].group.members[0].node)] = f;
    const tune::Work w = tune::space_of(run::derive(g, with), with, 0, tests::made_up()).candidates.at(0).work;
    return w.loads / w.chained; // of a block's term
  };
  EXPECT_EQ(loads(6, 2), 6 + 2);
  EXPECT_EQ(loads(4, 2), 4 + 4 * 2);
  EXPECT_EQ(loads(3, 3), 3 + 3 * 3);
  EXPECT_EQ(loads(12, 1), 12 + 1);
}
// Of two threads one waits at the end for a part of the other's last workgroup: fewer where there are more.
TEST(tune_ranking, workgroups_of_threads_do_not_end_together) {
  tune::Machine m = tests::made_up();
  m.workers = 2;
  tune::Work w;
  w.padded = 90e9, w.launches = 1;
  auto seconds = [&](int64_t n) {
    w.workgroups = n;
    return tune::unweighted(w, m)[0].seconds;
  };
  EXPECT_NEAR(seconds(2), 1.05, 1e-9);
  EXPECT_NEAR(seconds(20), 1.005, 1e-9);
  EXPECT_NEAR(seconds(3), 4 / 3.0 + 0.1 / 3, 1e-9);
  m.workers = 1;
  EXPECT_NEAR(seconds(3), 1, 1e-9);
}
TEST(tune_ranking, terms_of_a_block_follow_one_another) {
  run::Options o;
  o.target = target::c_target(16, 1);
  const auto s = tune::space_of(run::derive(tests::product(48, 64, 40), o), o, 0, tests::made_up());
  const tune::Work& w = s.candidates[0].work;
  EXPECT_EQ(w.chained, w.blocks * 40);
}

TEST(tune_ranking, an_artefact_survives_and_names_its_terms) {
  tune::Ranking r;
  r.device = "a machine", r.date = "today", r.weights = tune::weights(), r.groups = 3, r.pairs = 77, r.regret = 0.01;
  const auto back = tune::ranking_of(tune::as_json(r));
  ASSERT_TRUE(bool(back)) << back.why();
  EXPECT_EQ(back->weights, r.weights);
  EXPECT_EQ(tune::as_json(*back), tune::as_json(r));
  std::string other = tune::as_json(r);
  other.replace(other.find("\"exponentials\""), 14, "\"sines\"");
  EXPECT_FALSE(bool(tune::ranking_of(other)));
  for (const char* bad : {"", "[]", "{\"schema\": \"tang.ranking/1\"}", "{\"schema\": 1}", "{\"schema\": \"tang.ranking/1\", \"weights\": 3}"}) EXPECT_FALSE(bool(tune::ranking_of(bad))) << bad;
}
// Weights of a machine take the place of the source's.
TEST(tune_ranking, a_machine_is_estimated_with_its_weights) {
  tune::Machine m = tests::made_up();
  tune::Work w;
  w.launches = w.workgroups = 1, w.padded = 90e9, w.special = 5e9;
  m.weights.assign(tune::weights().size(), 0);
  m.weights[0] = 2;
  EXPECT_NEAR(tune::estimate(w, m).seconds, 2, 1e-9);
  m.weights.clear();
  EXPECT_GT(tune::estimate(w, m).seconds, 2);
}
// Rows of the cache as the search writes them: three programs are learned from, other devices' rows are not.
TEST(tune_ranking, the_cache_is_what_is_learned_from) {
  const tune::Machine m = tests::made_up();
  std::vector<tune::Row> rows;
  for (int graph = 0; graph < 3; ++graph)
    for (int k = 0; k < 6; ++k) {
      tune::Work w;
      w.launches = w.workgroups = 1, w.padded = 1e9 * (1 + graph);
      w.loads = (w.padded / 90e9 + 1e-3 * k) * 100e9 / 64; // k ms beyond arithmetic
      const double t = 0.02 * (1 + graph) + 1e-3 * k;
      rows.push_back({"candidate", "made up " + std::to_string(10 * graph + k),
                      "{\"median\":" + std::to_string(t) + ",\"low\":" + std::to_string(t - 1e-4) + ",\"high\":" + std::to_string(t + 1e-4) +
                          ",\"best\":" + std::to_string(t) + ",\"runs\":5,\"graph\":\"" + std::to_string(graph) + "\",\"group\":\"g\",\"automatic\":" +
                          (k == 3 ? "true" : "false") + ",\"terms\":" + tune::judged_terms(w, m) + "}", 0});
    }
  rows.push_back({"candidate", "another 1", rows[0].value, 0});
  rows.push_back({"candidate", "made up 99", "{\"median\":1,\"low\":1,\"high\":1,\"best\":1,\"runs\":5}", 0});  // an older version's
  const auto groups = tune::judged_of(rows, "made up");
  ASSERT_EQ(groups.size(), 3u);
  for (auto& g : groups) ASSERT_EQ(g.all.size(), 6u);
  EXPECT_NEAR(groups[0].all[0].time.median, 0.023, 1e-9);  // the automatic one is first
  const auto r = tune::trained(groups, "made up");
  ASSERT_TRUE(bool(r)) << r.why();
  EXPECT_EQ(r->pairs, 3 * 15);
  EXPECT_EQ(r->regret, 0);
  EXPECT_EQ(r->device, "made up");
  EXPECT_FALSE(bool(tune::trained({groups[0], groups[1]}, "made up")));  // two graphs
}
}  // namespace
