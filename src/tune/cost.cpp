#include "tang/tune/cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tang/base/match.hpp"
#include "tang/bound/traffic.hpp"
#include "tang/device/cuda_code.hpp"
#include "tang/emit/cuda.hpp"
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

// Bits of the operands of a kernel in tensor form, whose results are fragments; 0: there is none.
double matrix_bits(const kernel::Kernel& k) {
  Contractions found{k};
  found.walk(k.body);
  double bits = 0;
  for (auto* c : found.all)
    if (k.memories[size_t(c->dst.memory)].home == kernel::Home::fragment)
      bits = std::max(bits, double(expr::row(k.memories[size_t(c->b.memory)].format).bits));
  return bits;
}

// Neighbours that a statement reads of a memory by one index: the extent of the axis that moves its innermost
// coordinate by one.
int64_t neighbours(const kernel::Stmt& s, const kernel::Ref& r, const kernel::Memory& from) {
  std::vector<kernel::TileAxis> all;
  auto add = [&](const std::vector<kernel::TileAxis>& axes) {
    all.insert(all.end(), axes.begin(), axes.end());
  };
  std::visit(Match{[&](const Contract& c) { add(c.m), add(c.n), add(c.k); },
                   [&](const kernel::Apply& a) { add(a.axes); },
                   [&](const kernel::Fold& f) { add(f.kept), add(f.folded); }, [](const auto&) {}},
             s.node);
  for (size_t d = 0; d < r.index.size(); ++d)
    for (auto& a : all)
      if (from.strides[d] == 1 && r.index[d].refs.empty() &&
          kernel::coefficient(r.index[d].affine, a.var) == 1)
        return a.extent;
  return 1;
}

// Reads by index: whole lines come, however few of their bytes are wanted.
void gathers(const kernel::Kernel& k, const kernel::Traffic& t, const Machine& m, Work& w) {
  constexpr double line = 64;
  std::map<int, double> wanted; // memory -> bytes wanted of a run of neighbours, the fewest
  for (auto& u : kernel::uses(k)) {
    const bool by_index =
        std::any_of(u.ref->index.begin(), u.ref->index.end(), [](auto& c) { return !c.refs.empty(); });
    const kernel::Memory& from = k.memories[size_t(u.ref->memory)];
    if (u.writes || !by_index || from.home != kernel::Home::global) continue;
    const double run =
        double(neighbours(*u.statement, *u.ref, from)) * double(expr::row(from.format).bits) / 8;
    auto [it, first] = wanted.emplace(u.ref->memory, run);
    if (!first) it->second = std::min(it->second, run);
  }
  for (auto& [memory, run] : wanted) {
    const kernel::Memory& from = k.memories[size_t(memory)];
    const double lines = double(t.loaded_of[size_t(memory)]) / run * std::ceil(run / line) * line;
    const double table = double(from.size()) * double(expr::row(from.format).bits) / 8;
    auto holds = [&](size_t level) {
      return level + 1 < m.levels.size() && table <= double(m.levels[level].bytes);
    };
    (holds(1) || holds(0) ? w.gathered : holds(2) ? w.gathered_far : w.scattered) += lines;
  }
}

// Loads of the columns' vectors for one term of a register block: gcc 12 keeps a vector in a register where
// more than four rows use it, and reads it again for each row where fewer do.
double loads_of_columns(const Contract& c) { return c.rows <= 4 ? double(c.rows) * c.vectors : c.vectors; }

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
  w.loads += times * strips * panels * terms * (c.rows + loads_of_columns(c));
  w.blocks += times * strips * panels;
  w.chained += times * strips * panels * terms;
  // Beyond the second level: the columns' operand and the rows' once each, more often when they do not fit
  // together.
  if (m.levels.size() > 1) {
    const double middle = double(m.levels[1].bytes) / m.workers, held = a * rows + b * columns + outcome;
    w.far +=
        times * b * columns * (held > 0.9 * middle && a * rows + 2 * b * wide > 0.9 * middle ? strips : 1);
  }
}

// Workgroups, or blocks of work of those that stay: parts of a loop are blocks of their own.
int64_t groups_of(const lower::Lowered& l) {
  return kernel::workgroups(l.kernel) * (l.roles ? l.roles->split : l.kernel.cluster);
}
} // namespace

Work work_of(const std::vector<const lower::Lowered*>& kernels, const Machine& m, double read) {
  Work w;
  w.read = read;
  for (auto* l : kernels) {
    const kernel::Kernel* k = &l->kernel;
    const kernel::Traffic t = kernel::traffic(*k, m.lanes);
    const int64_t groups = groups_of(*l);
    if (!groups) continue;
    ++w.launches;
    w.workgroups = groups, w.planned = true;
    w.exact = w.exact && t.exact;
    w.contracted += double(t.contracted);
    if (const double bits = matrix_bits(*k); bits > 0) {
      w.resident = true;
      w.matrix += double(t.contracted) * bits / 16;
      w.workgroups = std::min<int64_t>(groups, m.workers); // they stay, and take blocks of work
    }
    w.padded += double(t.padded);
    w.plain += double(t.flops - t.contracted);
    w.special += double(t.special);
    gathers(*k, t, m, w);
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

void count_issued(Work& w, const std::vector<const lower::Lowered*>& kernels, const Machine& m,
                  const std::string& cubin) {
  const auto code = device::machine_code(cubin);
  if (!code) return;
  for (auto* l : kernels) {
    const int64_t launched = l->roles ? std::min<int64_t>(groups_of(*l), m.workers) : groups_of(*l);
    const int lanes = l->roles ? l->roles->threads() : emit::cuda_lanes(l->kernel);
    const int64_t subgroups = (lanes + m.lanes - 1) / m.lanes;
    for (auto& k : *code)
      if (k.name == l->kernel.name && launched > 0) {
        const device::Issued i = device::issued(k);
        w.issued += double(launched) * double(subgroups) * double(i.all);
        w.after += double(i.after);
      }
  }
}

double read_bytes(const plan::Plan& p, const plan::Step& s, const bound::Keys& keys) {
  if (s.recur) return 0;
  const ir::Graph& g = *p.graph;
  std::map<std::string, double> bytes; // by name: of two operands with one name only the larger counts
  std::vector<ir::NodeId> inside;
  for (auto& m : s.group.members) inside.push_back(m.node);
  for (auto& x : s.group.shared) inside.push_back(x.node);
  for (auto& e : s.group.epilogues) inside.push_back(e.node);
  std::map<std::string, double> narrow; // of stored values: the share of their default format's bits
  for (auto& b : p.buffers) {
    const double share = double(ir::row(b.format).bits) / ir::row(ir::default_format(g.type(b.of))).bits;
    const auto [it, first] = narrow.emplace(g.label(b.of), share);
    if (!first) it->second = std::min(it->second, share);
  }
  std::vector<std::string> own;
  for (ir::NodeId id : inside) own.push_back(g.label({id, 0}));
  for (ir::NodeId id : inside) {
    const auto n = bound::nest_of(g, id, bound::Unit::bytes, keys);
    if (!n) continue;
    for (auto& a : n->arrays) {
      if (a.output || std::find(own.begin(), own.end(), a.name) != own.end()) continue;
      const auto live = bound::elements(*n, a);
      if (!live) continue;
      double& most = bytes[a.name];
      most = std::max(most, double(*live) * double(a.weight) * (narrow.count(a.name) ? narrow[a.name] : 1));
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

namespace {
// What one launch of a chain takes at least that loads something and stores what it made of it, and what of
// it is the wait for the first load. The first launch's bytes come from memory where all else was touched; a
// later one may find what the one before it left. More workgroups are not sooner over: of the launches with
// at most as many the last. Below one a worker only what launching more of them and the slowest first load
// add: the probe's stores meet in one line.
struct Begin {
  double first = 0, later = 0, wait = 0;
};

Begin begin_of(const Work& w, const Machine& m, bool cold) {
  Start s = m.one;
  for (auto& [n, x] : m.some) {
    if (!w.planned || w.workgroups < n) break;
    s.empty = x.empty, s.near = x.empty + m.one.near - m.one.empty, s.cold = s.near + x.cold - x.near;
  }
  if (w.planned && w.workgroups >= m.workers) s = w.resident ? m.full : m.every;
  const double first = w.read <= 0 ? s.empty : cold ? s.cold : s.near;
  return {first, s.near, first - s.empty + double(w.launches - 1) * (s.near - s.empty)};
}
} // namespace

Time floor(const Work& w, const Machine& m, bool cold) {
  Time t;
  auto largest = [&](const std::string& name, double seconds) {
    t.terms.push_back({name, seconds});
    t.seconds = std::max(t.seconds, seconds);
  };
  // Of several kernels others than the main one may have more workgroups.
  const double busy =
      double(w.planned && w.launches > 1 ? m.workers : std::min<int64_t>(w.workgroups, m.workers));
  largest("arithmetic", (w.contracted - w.matrix) / (m.fma.best * m.margin));
  if (m.matrix.best > 0) largest("matrix instructions", w.matrix / (m.matrix.best * m.margin));
  // A lane that has what arrives last has instructions left, which start one after the other.
  const double after = m.clock > 0 ? w.after / m.clock : 0;
  double held = 0;
  for (auto& l : m.levels) {
    largest("reads from " + l.name, std::max(0.0, w.read - held) / (l.read.best * m.margin) + after);
    if (!cold && l.kept) held += double(l.bytes);
  }
  if (m.ingress > 0 && busy > 0)
    largest("reads of the busy workers", w.read / (busy * m.ingress * m.margin) + after);
  if (m.one.empty > 0) {
    largest("workgroups", double(w.workgroups) * m.workgroup / m.margin);
    const Begin b = begin_of(w, m, cold);
    // Some instructions start while the first loads are on their way.
    if (m.clock > 0 && m.schedulers > 0 && busy > 0)
      largest("instructions", std::max(0.0, w.issued / (m.schedulers * busy * m.clock) - b.wait / m.margin));
    const double starts = (b.first + double(w.launches - 1) * b.later) / m.margin;
    if (w.launches) t.terms.push_back({"launches and first loads", starts}), t.seconds += starts;
  }
  return t;
}

} // namespace tang::tune
