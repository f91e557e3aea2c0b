// The law of the notation on random graphs, and what a reader makes of damaged text.
#include <gtest/gtest.h>

#include <chrono>

#include "tang/text/text.hpp"
#include "text/random_graph.hpp"

namespace {
using namespace tang;
using namespace tang::tests;

std::string check_round_trip(const Graph& g) {
  const std::string printed = text::print(g);
  text::Reading r = text::read(printed, "printed.tang");
  if (!r.graph) return "does not read back:\n" + text::render(r.problems, printed, "printed.tang") + "\n" + printed;
  validate(*r.graph);
  if (hash(*r.graph) != hash(g)) return "another hash:\n" + printed + "\n" + text::print(*r.graph);
  if (text::print(*r.graph) != printed) return "prints otherwise:\n" + printed + "\n" + text::print(*r.graph);
  return "";
}

TEST(RandomGraphs, print_and_read_back_with_the_same_hash_and_the_same_text) {
  int comps = 0, folds = 0, recurs = 0, views = 0, unions = 0, gathers = 0, narrow = 0, empty = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const Graph g = random_graph(seed);
    const std::string wrong = check_round_trip(g);
    ASSERT_EQ(wrong, "") << "seed " << seed;
    for (auto& n : g.nodes) {
      recurs += n.recur() != nullptr;
      auto* c = n.comp();
      if (!c) continue;
      ++comps;
      folds += c->monoid.has_value();
      views += !c->outs[0].view.empty();
      unions += c->domain.size() > 1;
      narrow += c->outs.size() > 1 && c->outs[0].axes.size() < c->outs[1].axes.size();
      for (auto& e : c->extents()) empty += e == Extent(0);
      for (auto& a : c->args)
        for (auto& f : a.view) gathers += !f.args.empty();
    }
  }
  // The generator reaches every kind of node.
  EXPECT_GT(comps, 4000);
  for (int n : {folds, recurs, views, unions, gathers, narrow, empty}) EXPECT_GT(n, 100);
}

TEST(RandomGraphs, without_symbols_or_odd_names_too) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    RandomOptions plain;
    plain.symbols = plain.wild = false;
    plain.nodes = 20;
    const std::string wrong = check_round_trip(random_graph(seed + 100000, plain));
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}
}  // namespace
