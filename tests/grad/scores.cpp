// No array of scores in any backward of attention: every mask and change of the score, gradients into q, k, v and into
// what changes the scores, from short sequences to long; kernels and bytes in fixed numbers.
#include <gtest/gtest.h>

#include "tang/grad/surface.hpp"
#include "tang/models/attention.hpp"
#include "tang/plan/plan.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/driver.hpp"

using namespace tang;
using namespace tang::models;

namespace {
struct Variant {
  const char* name;
  size_t steps, naive_steps; // of the plan, of the model as an online softmax and with stored probabilities
  int64_t bytes, naive_bytes; // moved at 512 rows
};

const Variant variants[] = {
    {"full", 3, 2, 4218880, 3180544},
    {"causal", 3, 2, 4218880, 3180544},
    {"bottom_right", 3, 2, 5005312, 3966976},
    {"window", 3, 2, 4218880, 3180544},
    {"window_and_sink", 3, 2, 4218880, 3180544},
    {"prefix", 3, 2, 4218880, 3180544},
    {"prefix_of_each_batch", 3, 2, 4218888, 3180552},
    {"documents", 3, 2, 4222976, 3184640},
    {"key_range", 3, 2, 4227072, 3188736},
    {"alibi", 3, 3, 4218904, 3188792},
    {"soft_cap", 3, 2, 4218880, 3180544},
    {"t5_bias", 4, 4, 4244200, 3215080},
    {"bias", 3, 3, 7364608, 10528768},
    {"learned_scale", 3, 3, 4218892, 3180572},
    {"grouped_queries", 3, 2, 9510912, 6395904},
    {"sigmoid", 1, 1, 2097152, 2097152},
    {"keep", 3, 2, 4743168, 3704832},
    {"distance_bias", 3, 3, 4231180, 3209244},
};

struct Built {
  Graph graph;
  int64_t scores; // elements of an array of them
};

// `trace`: what the gradient of the loss sum(out dout) proves; none: its adjoint is pulled back as it is.
Built backward(const std::string& name, int64_t n, int64_t d, bool naive, rewrite::Trace* trace = nullptr) {
  Builder b;
  const int64_t keys = name == "bottom_right" ? n * 3 / 2 : n;
  const bool grouped = name == "grouped_queries";
  const std::vector<Extent> wide = grouped ? std::vector<Extent>{1, 2, 3, n, d} : std::vector<Extent>{1, 2, n, d};
  Tensor q = b.input("q", wide), k = b.input("k", {1, 2, keys, d}), v = b.input("v", {1, 2, keys, d}), dout = b.input("dout", wide);
  std::vector<Tensor> by{q, k, v};
  auto learned = [&](std::vector<Extent> shape) { return by.emplace_back(b.input("learned", shape)); };
  AttentionOptions o;
  o.naive = naive;
  o.mask = causal();
  if (name == "full" || name == "key_range") o.mask.reset();
  if (name == "window") o.mask = causal() && window(100);
  if (name == "window_and_sink") o.mask = (causal() && window(60)) || (causal() && sink(4));
  if (name == "prefix") o.mask = causal() || prefix(50);
  if (name == "prefix_of_each_batch") o.mask = prefix(b.input("length", {1}, Format::i32));
  if (name == "documents") {
    const Tensor ids = b.input("ids", {1, n}, Format::i32);
    o.mask = causal() && same_document(ids, ids);
  }
  if (name == "key_range") o.mask = key_range(b.input("from", {1, n}, Format::i32), b.input("to", {1, n}, Format::i32));
  if (name == "alibi") o.changes = {alibi(learned({2}))};
  if (name == "soft_cap") o.changes = {soft_cap(20)};
  if (name == "t5_bias") o.changes = {relative_bias(learned({32, 2}), {128, false})};
  if (name == "distance_bias") o.changes = {distance_bias(learned({2 * n + 1}), n)};
  if (name == "bias") o.changes = {add_bias(learned({n, keys}))};
  if (name == "learned_scale") o.changes = {scale_by(learned({}))};
  if (name == "sigmoid") o.sigmoid = true;
  if (name == "keep") o.keep = b.input("keep", {n, keys}, Format::boolean);
  const Tensor out = attention(q, k, v, o).out;
  b.output(out, "out");
  std::vector<Tensor> g;
  if (trace) {
    const auto all = axes_of(out, "a");
    g = diff::grad(map(std::vector<Axis>{}, sum(Over(all), out.at(coords(all)) * dout.at(coords(all)))), by, Where::here(), trace);
  } else {
    g = diff::vjp(out, dout, by);
  }
  for (size_t x = 0; x < g.size(); ++x) b.output(g[x], "d" + by[x].name());
  return {b.graph(), (grouped ? 6 : 2) * n * keys};
}

plan::Plan planned(const Graph& g, const target::Target& t) {
  return plan::make_plan(rewrite::for_planning(rewrite::optimize(g).graph, t.sum_cost > 0), {}, t);
}

// The largest array between kernels; a gradient that is as large is asked for.
int64_t largest(const plan::Plan& p) {
  int64_t most = 0;
  for (auto& b : p.buffers) {
    int64_t n = 1;
    for (int64_t e : b.shape) n *= e;
    if (!b.output) most = std::max(most, n);
  }
  return most;
}

class grad_scores : public testing::TestWithParam<Variant> {};
} // namespace

TEST_P(grad_scores, are_never_stored) {
  const Variant& x = GetParam();
  for (bool naive : {false, true})
    for (int64_t n : {128, 256, 512, 2048}) {
      const Built b = backward(x.name, n, 64, naive);
      const plan::Plan p = planned(b.graph, target::c_target(16, 1)), apart = planned(b.graph, target::cuda_target());
      EXPECT_LT(largest(p), b.scores) << n << " rows\n" << plan::print(p);
      EXPECT_LT(largest(apart), b.scores) << n << " rows\n" << plan::print(apart);
      EXPECT_EQ(p.steps.size(), naive ? x.naive_steps : x.steps) << n << " rows\n" << plan::print(p);
      if (n == 512) {
        EXPECT_EQ(p.bytes_moved(), naive ? x.naive_bytes : x.bytes) << plan::print(p);
      }
    }
}
INSTANTIATE_TEST_SUITE_P(grad, grad_scores, testing::ValuesIn(variants), [](const auto& i) { return std::string(i.param.name); });

// Of each variant that has one, by the degree calculus; and no other max or min is in what it derives.
TEST(grad_score_plans, no_stabilizing_maximum_is_differentiated) {
  for (auto& x : variants)
    for (bool naive : {false, true}) {
      rewrite::Trace trace;
      const Built b = backward(x.name, 64, 8, naive, &trace);
      const int there = std::string(x.name) == "sigmoid" ? 0 : 1;
      int proved = 0, maxima = 0;
      for (auto& s : trace.steps) proved += s.law.theorem == "zero_gradient_of_max";
      for (auto& n : b.graph.nodes)
        if (auto* c = n.comp(); c && c->monoid) maxima += c->monoid->name == "max" || c->monoid->name == "min";
      EXPECT_EQ(proved, there) << x.name << (naive ? ", stored" : "");
      EXPECT_EQ(maxima, there) << x.name << (naive ? ", stored" : "");
    }
}

// As written: 14 kernels and 29 MB with an online softmax, 23 and 63 MB with stored scores and probabilities.
TEST(grad_score_plans, before_and_after) {
  for (bool naive : {false, true}) {
    const Built b = backward("causal", 512, 64, naive);
    const plan::Plan before = plan::make_plan(rewrite::expose_support(b.graph), schedule::as_written());
    EXPECT_EQ(before.steps.size(), naive ? 23u : 14u);
    EXPECT_EQ(before.bytes_moved(), naive ? 63007744 : 29425664);
  }
}

// A slope, a scale: one sum over pairs, whose term reads the product over features that every gradient reads.
TEST(grad_score_plans, what_is_learned_takes_one_term_a_pair) {
  for (auto name : {"alibi", "learned_scale"}) {
    const Built b = backward(name, 256, 64, false);
    const Graph g = rewrite::optimize(b.graph).graph;
    for (auto& o : g.outputs) {
      if (o.name != "dlearned") continue;
      const ir::Comp* c = g[o.port.node].comp();
      ASSERT_TRUE(c && c->monoid) << name;
      int64_t terms = 1;
      for (auto& e : c->extents()) terms *= e.value();
      EXPECT_EQ(terms, b.scores) << name;
    }
  }
}

// The demo's second program: one head of 256 rows, its output not asked for.
TEST(grad_score_plans, of_the_demo) {
  Builder b;
  const std::vector<Extent> shape{1, 1, 256, 64};
  Tensor q = b.input("q", shape), k = b.input("k", shape), v = b.input("v", shape);
  AttentionOptions o;
  o.mask = causal();
  o.naive = true;
  const auto g = diff::vjp(attention(q, k, v, o).out, b.input("dout", shape), {q, k, v});
  for (size_t x = 0; x < g.size(); ++x) b.output(g[x], "d" + std::to_string(x));
  const plan::Plan p = planned(b.graph(), target::c_target(16, 1));
  EXPECT_LT(largest(p), 256 * 256) << plan::print(p);
  EXPECT_EQ(p.steps.size(), 2u) << plan::print(p);
}
