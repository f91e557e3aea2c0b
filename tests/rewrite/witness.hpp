// Witnesses: the naive graph against the rewritten one, in every fold order and with every map stored.
#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "tang/eval/oracle.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/driver.hpp"
#include "tang/rewrite/edit.hpp"

namespace tang::test {

using namespace tang::ir;
using eval::Array;
using Feed = eval::Inputs;
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline const double nan_ = std::nan("");

inline Array u(double s, std::vector<int64_t> shape) {  // sin(s + 0.7 k), the filling of the golden cases
  std::vector<double> v(size_t(eval::volume(shape)));
  for (size_t k = 0; k < v.size(); ++k) v[k] = std::sin(s + 0.7 * double(k));
  return eval::reals(shape, v);
}
inline Array filled(std::vector<int64_t> shape, const std::function<double(int64_t)>& f) {
  std::vector<double> v(size_t(eval::volume(shape)));
  for (size_t k = 0; k < v.size(); ++k) v[k] = f(int64_t(k));
  return eval::reals(shape, v);
}
inline Array with(Array a, std::vector<int64_t> places, double v) {
  for (auto k : places) a.r[size_t(k)] = v;
  return a;
}
inline Array ids(std::vector<int64_t> v) { return eval::indices({int64_t(v.size())}, v); }
inline Array number(int64_t v) { return eval::indices({}, {v}); }

// Equal wherever the naive value is not NaN; presence always.
inline std::string unequal(const Array& naive, const Array& got, bool bitwise = false) {
  if (naive.shape != got.shape || naive.type != got.type) return "another shape or type";
  for (int64_t k = 0; k < naive.size(); ++k) {
    const Value a = naive.at(k), b = got.at(k);
    const std::string at = " at " + std::to_string(k) + ": " + std::to_string(a.r) + " became " + std::to_string(b.r);
    if (a.state != b.state) return "another presence" + at;
    if (a.state != expr::State::present) continue;
    if (a.type != Type::real) {
      if (a.i != b.i) return "another index" + at;
      continue;
    }
    if (std::isnan(a.r) || a.r == b.r) continue;
    if (bitwise || std::isinf(a.r) || std::isinf(b.r) || !(std::fabs(a.r - b.r) <= 1e-12 * (1 + std::fabs(a.r)))) return "another value" + at;
  }
  return "";
}
inline const std::vector<FoldOrder>& orders() {
  static const std::vector<FoldOrder> all{{}, {FoldOrder::tree, 3}, {FoldOrder::split, 3}};
  return all;
}
inline void expect_refines(const Graph& naive, const Graph& rewritten, const Feed& feed, const std::string& name) {
  validate(rewritten);
  const auto want = eval::run(naive, feed);
  for (auto& o : orders()) {
    eval::Options options;
    options.order = o;
    const auto got = eval::run(rewritten, feed, options);
    for (auto& [out, a] : want) EXPECT_EQ(unequal(a, got.at(out)), "") << name << ", output " << out << ", order " << int(o.kind);
  }
}
// Every map stored, with fill 0 where it does not exist, and the fill believed by all readers.
inline Graph stored(const Graph& g, Feed& feed) {
  rewrite::Edit e(g);
  std::set<NodeId> outputs;
  for (auto& o : g.outputs) outputs.insert(o.port.node);
  std::map<NodeId, Port> output_at;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!e.live[id]) continue;
    e.copy(id);
    const Comp* c = g[id].comp();
    if (!c || !c->is_map() || !c->outs[0].view.empty()) continue;
    Array a = eval::Oracle(e.to, feed).port(e.at({id, 0}));
    for (int64_t k = 0; k < a.size(); ++k)
      if (a.at(k).state != expr::State::present) a.set(k, Value{a.type, expr::State::present, 0, 0});
    a.state.clear();
    const std::string name = "stored " + std::to_string(id);
    Input in{Input::data, g.shape({id, 0}), default_format(g.type({id, 0}))};
    feed[name] = a;
    if (outputs.count(id)) output_at[id] = e.at({id, 0});  // the output itself keeps its absence
    e.set({id, 0}, {e.to.add({in, name, {}}), 0});
  }
  for (auto& [id, port] : output_at) e.set({id, 0}, port);
  return e.finish();
}
inline bool fired(const rewrite::Optimized& o, const std::string& rule) {
  for (auto& s : o.trace.steps)
    if (s.rule == rule) return true;
  return false;
}
// optimize() fires `must`, not `must_not`, ends at a fixed point, and refines; and so do stored maps with exposed supports.
inline rewrite::Optimized witness(const std::string& name, const Graph& g, const Feed& feed, std::vector<std::string> must = {},
                                  std::vector<std::string> must_not = {}) {
  const auto o = rewrite::optimize(g);
  for (auto& r : must) EXPECT_TRUE(fired(o, r)) << name << ": " << r << " did not fire: " << (o.trace.refused.count(r) ? o.trace.refused.at(r) : "") << "\n" << rewrite::explain(o.trace);
  for (auto& r : must_not) EXPECT_FALSE(fired(o, r)) << name << ": " << r << " fired\n" << rewrite::explain(o.trace);
  expect_refines(g, o.graph, feed, name);
  EXPECT_TRUE(rewrite::optimize(o.graph).trace.steps.empty()) << name << ": a second run changed it\n" << rewrite::explain(rewrite::optimize(o.graph).trace);
  Feed all = feed;
  const Graph cut = stored(rewrite::expose_support(g), all);
  expect_refines(g, cut, all, name + ", maps stored");
  Feed more = feed;
  const Graph late = stored(rewrite::expose_support(o.graph), more);
  expect_refines(g, late, more, name + ", maps stored after rewriting");
  return o;
}
inline int kernels(const Graph& g) { return rewrite::cost_of(g).kernels; }
inline bool stores(const Graph& g, const std::vector<Extent>& shape) {
  for (auto& a : rewrite::cost_of(g).stored)
    if (a.shape == shape) return true;
  return false;
}
inline const Comp* fold_with(const Graph& g, size_t components) {
  for (auto& n : g.nodes)
    if (auto* c = n.comp(); c && c->monoid && c->lift.size() == components) return c;
  return nullptr;
}

// One head of attention; its mask and its score change are arguments.
struct Head {
  Builder b;
  Axis i = axis("i"), j = axis("j"), d = axis("d"), c = axis("c");
  int64_t n, m;
  Tensor q, k, v;
  Feed feed;
  Head(int64_t n_, int64_t m_, int64_t dim, int64_t cols = 4) : n(n_), m(m_) {
    q = b.input("q", {n, dim});
    k = b.input("k", {m, dim});
    v = b.input("v", {m, cols});
    feed = {{"q", u(1, {n, dim})}, {"k", u(2, {m, dim})}, {"v", u(3, {m, cols})}};
  }
  Scalar dot() { return sum(d, q(i, d) * k(j, d)) * 0.5; }
  Graph softmax(const Scalar& score) {
    const Scalar top = max(j, score), weight = exp(score - top), total = sum(j, weight);
    b.output(map({i, c}, ratio(sum(j, weight * v(j, c)), total)), "out");
    return b.graph();
  }
  // The same with scores and probabilities stored, as a framework would.
  Graph stored_softmax(const Scalar& score) {
    Tensor s = map({i, j}, score, "S");
    const Scalar top = max(j, s(i, j)), weight = exp(s(i, j) - top);
    Tensor p = map({i, j}, weight / sum(j, weight), "P");
    b.output(map({i, c}, sum(j, p(i, j) * v(j, c))), "out");
    return b.graph();
  }
};

}  // namespace tang::test
