#include "tang/tune/step_floor.hpp"

#include <algorithm>
#include <map>

#include "tang/bound/count.hpp"
#include "tang/bound/traffic.hpp"
#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"

namespace tang::tune {

namespace {
double size_of(const ir::Graph& g, ir::Port p) {
  double n = 1;
  for (auto& e : g.shape(p)) n *= double(e.value());
  return n;
}

// When points of a node are known at the earliest, in exchanges: some point to anyone, all to one worker.
struct Known {
  int64_t some = 0, all = 0;
};

class StepWalk {
public:
  StepWalk(const ir::Graph& g, const Machine& m, const bound::Keys& keys) : g_(g), m_(m), keys_(keys) {
    exchange_ = m.levels.size() > 1 ? m.levels[1].latency / m.margin : 0;
  }

  void run() {
    const std::vector<char> needed = needed_nodes();
    known_.resize(g_.nodes.size());
    for (ir::NodeId id = 0; id < g_.nodes.size(); ++id)
      if (needed[id]) visit(id);
    for (auto& x : touched_) bytes += x.second;
  }

  double exchange() const { return exchange_; }

  double bytes = 0, flops = 0;
  int64_t exchanges = 0;

private:
  std::vector<char> needed_nodes() const {
    std::vector<char> needed(g_.nodes.size(), 0);
    for (auto& o : g_.outputs) needed[o.port.node] = 1;
    for (ir::NodeId id = ir::NodeId(g_.nodes.size()); id-- > 0;)
      if (needed[id])
        for (ir::Port p : ir::sources(g_, id)) needed[p.node] = 1;
    return needed;
  }

  void visit(ir::NodeId id) {
    Known& k = known_[id];
    if (!g_[id].comp()) {
      after(id, k);
      return;
    }
    const auto n = bound::nest_of(g_, id, bound::Unit::bytes, keys_);
    if (!n) return after(id, k);
    const double mine = arithmetic(id, *n);
    flops += mine;
    std::map<ir::NodeId, double> weights; // bytes of inputs that this node touches
    int64_t onto = 0;
    for (auto& a : n->arrays) {
      if (a.output) continue;
      const auto named = source(id, a);
      if (!named) continue;
      const ir::Port from = *named;
      const Known& of = known_[from.node];
      if (g_[from.node].input()) {
        if (const auto live = bound::elements(*n, a))
          weights[from.node] = std::max(weights[from.node], double(*live) * double(a.weight));
        continue;
      }
      k.some = std::max(k.some, every_point_needs_all(id, *n, a, from) ? of.all : of.some);
      if (needs_all(*n, a, from)) onto = std::max(onto, of.all);
    }
    double read = 0;
    for (auto& [input, b] : weights) {
      read += b;
      double& most = touched_[input];
      most = std::max(most, b);
    }
    k.all = std::max(onto, k.some + is_long(read, mine));
    exchanges = std::max(exchanges, k.some);
  }

  // Of a recurrence, or where it is not understood what a node reads: no sooner than what it needs.
  void after(ir::NodeId id, Known& k) {
    for (ir::Port p : ir::sources(g_, id)) k.some = std::max(k.some, known_[p.node].some);
    k.all = k.some;
    exchanges = std::max(exchanges, k.some);
  }

  // What an array is read from; nothing where two sources have one name.
  std::optional<ir::Port> source(ir::NodeId id, const bound::Array& a) const {
    std::optional<ir::Port> out;
    for (ir::Port p : ir::sources(g_, id)) {
      if (g_.label(p) != a.name) continue;
      if (out) return {};
      out = p;
    }
    return out;
  }

  static bool is_whole(const bound::Nest& n, const bound::Array& a) {
    return !a.gathered && n.domain == ir::everywhere() && a.guard == ir::everywhere();
  }

  bool needs_all(const bound::Nest& n, const bound::Array& a, ir::Port from) const {
    if (!is_whole(n, a)) return false;
    const auto live = bound::elements(n, a);
    return live && double(*live) >= size_of(g_, from);
  }

  bool every_point_needs_all(ir::NodeId id, const bound::Nest& n, const bound::Array& a,
                             ir::Port from) const {
    const size_t points = g_[id].comp()->points.size();
    for (auto& r : a.rows)
      for (size_t x = 0; x < points; ++x)
        if (r[x] != 0 && n.extents[x] > 1) return false;
    return needs_all(n, a, from);
  }

  // A multiply-add a live point of a sum of products.
  double arithmetic(ir::NodeId id, const bound::Nest& n) const {
    const ir::Comp& c = *g_[id].comp();
    if (!c.monoid || c.monoid->size() != 1 || g_.pool[c.monoid->combine[0]].op != expr::Op::add) return 0;
    ir::Pool pool = g_.pool;
    int read = 0;
    for (ir::Id f : expr::factors(pool, expr::present(pool, c.lift[0]).value))
      read += !expr::subterms(pool, f, expr::Op::arg).empty();
    const auto live = bound::count_points(n.extents, n.domain);
    return read >= 2 && live ? 2 * double(*live) : 0;
  }

  // Whether one worker alone takes an exchange's time at least for what it does after all else is there: what
  // it holds, its first level and as much again in registers, may have been read before.
  bool is_long(double read, double mine) const {
    if (exchange_ <= 0 || m_.workers < 2) return false;
    const double holds = 2 * double(m_.levels[0].bytes) / m_.workers,
                 rate = std::max(m_.fma.best, m_.matrix.best) * m_.margin / m_.workers;
    const double reads = m_.ingress > 0 ? std::max(0.0, read - holds) / (m_.ingress * m_.margin) : 0;
    return std::max(reads, mine / rate) >= exchange_;
  }

  const ir::Graph& g_;
  const Machine& m_;
  const bound::Keys& keys_;
  double exchange_ = 0;
  std::vector<Known> known_;
  std::map<ir::NodeId, double> touched_; // bytes of each input, by the reader that touches most
};
} // namespace

StepFloor step_floor(const ir::Graph& g, const Machine& m, const bound::Keys& keys, bool cold) {
  StepWalk walk(g, m, keys);
  walk.run();
  double held = 0;
  for (auto& l : m.levels)
    if (!cold && l.kept) held += double(l.bytes);
  StepFloor out;
  out.exchanges = walk.exchanges;
  const double rate = std::max(m.fma.best, m.matrix.best) * m.margin,
               memory = m.levels.empty() ? 0 : m.levels.back().read.best * m.margin;
  out.time.terms = {{"bytes from memory", memory > 0 ? std::max(0.0, walk.bytes - held) / memory : 0},
                    {"arithmetic", rate > 0 ? walk.flops / rate : 0},
                    {"exchanges", double(walk.exchanges) * walk.exchange()}};
  for (auto& t : out.time.terms) out.time.seconds = std::max(out.time.seconds, t.seconds);
  return out;
}

} // namespace tang::tune
