// The f64 value of a training step after every pass: each rule that fires, closing, exposing supports, canonical form,
// definition form. A block of a decoder, cross entropy and AdamW, small.
#include "grad/check.hpp"
#include "tang/models/block.hpp"
#include "tang/models/optim.hpp"
#include "tang/models/softmax.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/driver.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
constexpr double room = 1e-12; // of the largest entry of each output

Graph training_step(bool naive) {
  Builder b;
  const BlockSize z{.model = 8, .heads = 4, .kv_heads = 2, .head = 2, .hidden = 12, .naive = naive};
  std::vector<Tensor> weights;
  auto weight = [&](const std::string& name, std::vector<Extent> shape) {
    weights.push_back(b.state(name, shape));
    return weights.back();
  };
  const Tensor tokens = b.input("tokens", {2, 7}, Format::i32), next = b.input("next", {14}, Format::i32);
  const Tensor table = weight("table", {11, 8});
  const BlockWeights w{weight("attention_norm", {8}), weight("q", {8, 8}),    weight("k", {4, 8}),
                       weight("v", {4, 8}),           weight("o", {8, 8}),    weight("mlp_norm", {8}),
                       weight("gate", {12, 8}),       weight("up", {12, 8}), weight("down", {8, 12})};
  const Tensor x = block(embedding(table, tokens), w, z), head = weight("head", {11, 8});
  const Tensor normed = rms_norm(x, weight("last_norm", {8}), 1e-5);
  auto [n, c, m] = axes<"n c m">();
  const Axis i = axis("i", Extent(7)), batch = axis("batch", Extent(2)), letter = axis("letter");
  const Scalar logit = sum(m, normed(batch, i, m) * head(letter, m));
  const Tensor logits = map_at({batch, i, letter}, {7 * Index(batch) + Index(i), letter}, {14, 11}, logit, "logits");
  const Tensor loss = mean(cross_entropy(logits, next, 0.1));
  const Tensor one = map(std::vector<Axis>{}, loss(index_literal(b, 0)), "loss");
  b.output(one, "loss");
  AdamW o;
  o.clip = 1;
  adamw(weights, grad(one, weights), o);
  return b.graph();
}

Inputs inputs_of(const Graph& g) {
  std::mt19937_64 rng(5);
  Inputs in;
  for (auto& n : g.nodes)
    if (auto* x = n.input()) {
      Array a(eval::bound(x->shape), type_of(x->format));
      for (double& v : a.r) v = double(rng() >> 11) * 0x1p-53 * 2 - 1;
      for (int64_t& v : a.i) v = int64_t(rng() % 11);
      if (n.name.size() > 2 && n.name.substr(n.name.size() - 2) == ".v")
        for (double& v : a.r) v = std::fabs(v); // a second moment
      in[n.name] = a;
    }
  return in;
}

// What the graph as written gives, and how far from it a later one may be.
struct Judge {
  Inputs in;
  std::map<std::string, Array> want;
  std::map<std::string, int> passes = {}; // how often each was judged
  double worst = 0;

  explicit Judge(const Graph& written) : in(inputs_of(written)), want(eval::run(written, in)) {}

  void operator()(const Graph& g, const std::string& pass) {
    ++passes[pass];
    const auto got = eval::run(g, in);
    ASSERT_EQ(got.size(), want.size()) << pass;
    for (auto& [name, a] : want) {
      const Array& x = got.at(name);
      ASSERT_EQ(x.shape, a.shape) << pass << ": " << name;
      double scale = 0, gap = 0;
      for (int64_t k = 0; k < a.size(); ++k) {
        ASSERT_EQ(x.at(k).state, a.at(k).state) << pass << ": " << name << " at " << k;
        if (a.at(k).state != expr::State::present) continue;
        if (a.type != Type::real) {
          ASSERT_EQ(x.at(k).i, a.at(k).i) << pass << ": " << name << " at " << k;
          continue;
        }
        ASSERT_TRUE(std::isfinite(x.at(k).r)) << pass << ": " << name << " at " << k;
        scale = std::max(scale, std::fabs(a.at(k).r));
        gap = std::max(gap, std::fabs(x.at(k).r - a.at(k).r));
      }
      ASSERT_LE(gap, room * scale) << pass << ": " << name;
      if (scale > 0) worst = std::max(worst, gap / scale);
    }
  }
};
} // namespace

TEST(grad_passes, each_leaves_the_value_of_a_training_step) {
  for (bool naive : {false, true}) {
    const Graph written = training_step(naive);
    Judge judge(written);
    for (double v : judge.want.at("loss").r) ASSERT_GT(v, 0.1);
    std::vector<rewrite::Rule> rules = rewrite::normal_rules();
    for (auto& r : rules) {
      const auto apply = r.apply;
      r.apply = [&judge, apply, name = r.name](const Graph& g) {
        auto out = apply(g);
        if (out) judge(out->graph, name);
        return out;
      };
    }
    judge(rewrite::closed(written), "closed");
    judge(rewrite::definition_form(written), "definition_form");
    const Graph best = rewrite::optimize(written, rules).graph;
    judge(best, "optimized");
    judge(rewrite::expose_support(best), "expose_support");
    judge(rewrite::for_planning(best, true), "for_planning");
    std::string all;
    for (auto& [name, n] : judge.passes) all += name + " " + std::to_string(n) + ", ";
    RecordProperty(naive ? "naive" : "plain", all + "worst " + std::to_string(judge.worst));
    std::printf("%sworst gap %.1e\n", all.c_str(), judge.worst);
    for (auto name : {"fuse", "factor", "one_term_splice", "hoist", "reshape", "stabilize_softmax"})
      EXPECT_GT(judge.passes[name], 0) << name << " never fired";
  }
}
