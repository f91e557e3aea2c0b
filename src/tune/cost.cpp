#include "tang/tune/cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tang/base/match.hpp"
#include "tang/bound/count.hpp"
#include "tang/kernel/analyze.hpp"

namespace tang::tune {

using kernel::Block;
using kernel::Contract;

namespace {
double extent(const std::vector<kernel::TileAxis>& axes) {
  double n = 1;
  for (auto& a : axes) n *= double(a.extent);
  return n;
}

// Finds the contractions of a kernel, and whether its other statements are vector code.
struct Contractions {
  const kernel::Kernel& k;
  std::vector<const Contract*> all = {};
  bool vectors = false;

  void walk(const Block& b) {
    for (auto& s : b)
      std::visit(Match{[&](const Contract& c) { all.push_back(&c); },
                       [&](const kernel::Loop& x) { walk(x.body); },
                       [&](const kernel::If& x) { walk(x.then); },
                       [&](const kernel::Pipeline& x) { walk(x.operands), walk(x.body); },
                       [&](const kernel::Apply& x) { vectors |= x.vector >= 0; },
                       [&](const kernel::Fold& x) { vectors |= x.vector >= 0; }, [](const auto&) {}},
                 s.node);
  }
};

// What one execution of a contraction moves between levels: columns outermost in panels, rows inside, terms
// innermost (the order in which it is printed).
void contraction(const kernel::Kernel& k, const Contract& c, double times, const Machine& m, Work& w) {
  auto width = [&](const kernel::Ref& r) {
    return double(expr::row(k.memories[size_t(r.memory)].format).bits) / 8;
  };
  const double rows = extent(c.m), columns = extent(c.n), terms = extent(c.k),
               wide = double(c.vectors) * m.lanes;
  const double a = width(c.a) * terms, b = width(c.b) * terms; // bytes of a row, of a column
  const double panels = std::ceil(columns / wide), strips = std::ceil(rows / c.rows);
  const double near = double(m.levels.front().bytes) / m.workers;
  const bool panel_stays = b * wide + 2 * a * c.rows <= 0.9 * near,
             rows_stay = a * rows + b * wide <= 0.9 * near;
  const double outcome = width(c.dst) * rows * columns;
  w.near +=
      times * (b * columns * (panel_stays ? 1 : strips) + a * rows * (rows_stay ? 1 : panels) + 2 * outcome);
  w.loads += times * strips * panels * terms * (c.rows + c.vectors);
  w.blocks += times * strips * panels;
  // Beyond the second level: the columns' operand and the rows' once each, more often when they do not fit
  // together.
  if (m.levels.size() > 1) {
    const double middle = double(m.levels[1].bytes) / m.workers, held = a * rows + b * columns + outcome;
    w.far +=
        times * b * columns * (held > 0.9 * middle && a * rows + 2 * b * wide > 0.9 * middle ? strips : 1);
  }
}
} // namespace

Work work_of(const std::vector<const kernel::Kernel*>& kernels, const Machine& m, double read) {
  Work w;
  w.read = read;
  for (auto* k : kernels) {
    const kernel::Traffic t = kernel::traffic(*k, m.lanes);
    const int64_t groups = kernel::workgroups(*k);
    if (!groups) continue;
    ++w.launches;
    w.workgroups = groups;
    w.exact = w.exact && t.exact;
    w.contracted += double(t.contracted);
    w.padded += double(t.padded);
    w.plain += double(t.flops - t.contracted);
    w.special += double(t.special);
    double moved = 0;
    for (size_t h = 0; h < t.loaded.size(); ++h) moved += double(t.loaded[h] + t.stored[h]);
    Contractions found{*k};
    found.walk(k->body);
    double whole = 0; // multiply-adds of one execution each
    for (auto* c : found.all) whole += 2 * extent(c->m) * extent(c->n) * extent(c->k);
    for (auto* c : found.all) {
      // Executions: all of a kernel's contractions run equally often as a rule.
      const double times = double(t.padded) / whole;
      const double rows = extent(c->m), columns = extent(c->n), terms = extent(c->k);
      moved -=
          times * 4 * terms *
          (rows * std::ceil(columns / (double(c->vectors) * m.lanes)) + columns * std::ceil(rows / c->rows));
      contraction(*k, *c, times, m, w);
    }
    w.moved +=
        std::max(0.0, moved) * (found.vectors || !found.all.empty() ? 1 : m.lanes / 2.0); // scalar loads
  }
  return w;
}

double read_bytes(const plan::Plan& p, const plan::Step& s) {
  if (s.recur) return 0;
  const ir::Graph& g = *p.graph;
  std::map<std::string, double> bytes; // by name: of two operands with one name only the larger counts
  std::vector<ir::NodeId> inside;
  for (auto& m : s.group.members) inside.push_back(m.node);
  for (auto& x : s.group.shared) inside.push_back(x.node);
  for (auto& e : s.group.epilogues) inside.push_back(e.node);
  double narrow = 1;
  for (auto& b : p.buffers)
    if (b.format != ir::default_format(g.type(b.of)))
      narrow =
          std::min(narrow, double(ir::row(b.format).bits) / ir::row(ir::default_format(g.type(b.of))).bits);
  std::vector<std::string> own;
  for (ir::NodeId id : inside) own.push_back(g.label({id, 0}));
  for (ir::NodeId id : inside) {
    const auto n = bound::nest_of(g, id);
    if (!n) continue;
    for (auto& a : n->arrays) {
      if (a.output || a.gathered || std::find(own.begin(), own.end(), a.name) != own.end()) continue;
      const auto live = bound::count_images(n->extents, ir::intersection(n->domain, a.guard), a.rows);
      if (!live) continue;
      double& most = bytes[a.name];
      most = std::max(most, double(*live) * double(a.weight) * narrow);
    }
  }
  double sum = 0;
  for (auto& b : bytes) sum += b.second;
  return sum;
}

const Term& Time::binding() const {
  return *std::max_element(terms.begin(), terms.end(),
                           [](auto& a, auto& b) { return a.seconds < b.seconds; });
}

Time floor(const Work& w, const Machine& m) {
  Time t;
  t.terms.push_back({"arithmetic", w.contracted / (m.fma.best * margin)});
  double held = 0; // what nearer levels may hold from before
  for (auto& l : m.levels) {
    t.terms.push_back({"reads from " + l.name, std::max(0.0, w.read - held) / (l.read.best * margin)});
    held += double(l.bytes);
  }
  for (auto& x : t.terms) t.seconds = std::max(t.seconds, x.seconds);
  return t;
}

// What does not overlap, before weights: each is the time of one resource at its typical rate.
std::vector<Term> unweighted(const Work& w, const Machine& m) {
  const Level& near = m.levels.front();
  const Level& middle = m.levels[std::min<size_t>(1, m.levels.size() - 1)];
  // The last wave: workers idle while others finish.
  const double waves = std::ceil(double(w.workgroups) / m.workers);
  const double idle = w.workgroups ? waves * m.workers / double(w.workgroups) : 1;
  const double each = idle / m.workers, vector_fma = 2.0 * m.lanes * m.workers / m.fma.typical;
  const bool contracts = w.padded > 0;
  return {{"contractions", idle * w.padded / m.fma.typical},
          {"other arithmetic", contracts ? 0 : idle * w.plain / (m.fma.typical / 2)},
          {"exponentials", idle * w.special / m.exp.typical},
          {"statements' bytes", idle * w.moved / near.read.typical},
          {"second level", idle * w.near / middle.read.typical},
          {"register blocks", each * w.blocks * vector_fma},
          {"heads of workgroups", each * double(w.workgroups) * (contracts ? 1e-6 : m.workgroup)},
          {"further kernels", double(std::max<int64_t>(0, w.launches - 1)) * 1e-6},
          {"launches", double(w.launches) * (w.workgroups > 1 ? m.launch : m.call)}};
}

// Fitted to every candidate of the tile race on one thread, by relative error; two threads were predicted
// with them
// (`bench_tune report` prints the fit, each problem left out in turn, beside these: docs/results/tune.md).
const std::vector<double>& weights() {
  static const std::vector<double> all = {
      1.0,  // contractions run at the probe's rate
      1.0,  // other arithmetic, where there is no contraction to hide behind
      1.0,  // exponentials
      1.15, // loads and stores of statements do not overlap with arithmetic
      0.33, // the second level feeds contractions mostly ahead of time
      165,  // vector multiply-adds that starting and ending a register block costs
      0.7,  // us of a workgroup's head with contractions: its tiles are cold
      9.0,  // us of a further kernel: operands leave the near caches
      1.0}; // launches
  return all;
}

Time estimate(const Work& w, const Machine& m) {
  Time t;
  t.terms = unweighted(w, m);
  for (size_t k = 0; k < t.terms.size(); ++k) t.seconds += t.terms[k].seconds *= weights()[k];
  return t;
}

} // namespace tang::tune
