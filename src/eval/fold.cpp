#include "tang/eval/fold.hpp"

#include <algorithm>
#include <thread>

namespace tang::eval {

using expr::Op;
using expr::Term;
using ir::Comp;
using ir::FoldOrder;
using ir::Format;
using ir::Id;

namespace {

// Components that a port sees: those whose axes lie within its own.
std::vector<int> visible(const Comp& n, const std::vector<int>& axes) {
  std::vector<int> out;
  for (size_t c = 0; c < n.outs.size(); ++c)
    if (std::all_of(n.outs[c].axes.begin(), n.outs[c].axes.end(),
                    [&](int a) { return std::find(axes.begin(), axes.end(), a) != axes.end(); }))
      out.push_back(int(c));
  return out;
}

// A monoid's combine over lanes, for the visible components.
struct Combiner {
  struct Instr {
    Op op;
    Type in;
    int dst, a = -1, b = -1, c = -1;
    double r = 0;
    int64_t whole = 0;
  };

  std::vector<Instr> code;
  std::vector<int> left, right, result; // registers, by position in `seen`
  int registers = 0;

  Combiner(const ir::Pool& p, const ir::Monoid& m, const std::vector<int>& seen) {
    left.assign(m.size(), -1);
    right.assign(m.size(), -1);
    std::vector<Id> roots;
    for (int c : seen) roots.push_back(m.combine[size_t(c)]);
    std::unordered_map<Id, int> at;
    for (Id id : expr::schedule(p, roots)) {
      const Term& t = p[id];
      at[id] = registers++;
      if (t.op == Op::var) {
        (t.whole % 2 ? right : left)[size_t(t.whole / 2)] = at[id];
        continue;
      }
      Instr in{t.op, t.arity() ? p[t.args[0]].type : t.type, at[id], -1, -1, -1, t.r, t.whole};
      int* operand[] = {&in.a, &in.b, &in.c};
      for (int k = 0; k < t.arity(); ++k) *operand[k] = at.at(t.args[size_t(k)]);
      code.push_back(in);
    }
    for (Id id : roots) result.push_back(at.at(id));
  }
};

struct Lane {
  double r[lanes];
  int64_t i[lanes];
};

using Tuple = std::vector<Lane>; // one a visible component

// a := combine(a, b) where mask holds; no mask: everywhere.
void combine(const Combiner& k, const std::vector<int>& seen, std::vector<Lane>& regs, Tuple& a,
             const Tuple& b, const uint8_t* mask, int n, const Numeric& numeric,
             const std::vector<Type>& types) {
  for (size_t s = 0; s < seen.size(); ++s) {
    if (k.left[size_t(seen[s])] >= 0) regs[size_t(k.left[size_t(seen[s])])] = a[s];
    if (k.right[size_t(seen[s])] >= 0) regs[size_t(k.right[size_t(seen[s])])] = b[s];
  }
  for (auto& in : k.code) {
    Lane& d = regs[size_t(in.dst)];
    if (in.op == Op::literal) {
      std::fill(d.r, d.r + n, in.r);
      std::fill(d.i, d.i + n, in.whole);
      continue;
    }
    Lane& x = regs[size_t(in.a)];
    if (in.op == Op::select) {
      const Lane &y = regs[size_t(in.b)], &z = regs[size_t(in.c)];
      for (int l = 0; l < n; ++l) {
        d.r[l] = x.i[l] ? y.r[l] : z.r[l];
        d.i[l] = x.i[l] ? y.i[l] : z.i[l];
      }
      continue;
    }
    Lane& y = in.b >= 0 ? regs[size_t(in.b)] : x;
    compute_lanes(in.op, in.in, {x.r, x.i}, {y.r, y.i}, {d.r, d.i}, n);
  }
  for (size_t s = 0; s < seen.size(); ++s) {
    const Lane& v = regs[size_t(k.result[s])];
    const bool round = numeric.accumulate != Format::f64 && types[s] == Type::real;
    if (!mask && !round) {
      if (types[s] == Type::real)
        std::copy_n(v.r, n, a[s].r);
      else
        std::copy_n(v.i, n, a[s].i);
      continue;
    }
    for (int l = 0; l < n; ++l) {
      if (mask && !mask[l]) continue;
      a[s].r[l] = round ? ir::rounded(v.r[l], numeric.accumulate) : v.r[l];
      a[s].i[l] = v.i[l];
    }
  }
}

struct Job {
  const ir::Graph& g;
  const Comp& n;
  const std::string& name;
  const std::vector<Source>& sources;
  const Numeric& numeric;
  std::vector<int> axes;  // the points of this set of ports
  std::vector<int> seen;  // visible components
  std::vector<int> ports; // those that are written
  std::vector<Array>& out;
  int64_t begin = 0, end = 0; // flat points
  int64_t terms = 0;
  std::string fault = {};

  std::vector<int64_t> shape() const {
    std::vector<int64_t> s;
    for (int a : axes) s.push_back(n.points[size_t(a)].value());
    return s;
  }

  Tuple identity() const {
    Tuple t(seen.size());
    for (size_t s = 0; s < seen.size(); ++s) {
      const Value& v = n.monoid->identity[size_t(seen[s])];
      std::fill(t[s].r, t[s].r + lanes, v.r);
      std::fill(t[s].i, t[s].i + lanes, v.i);
    }
    return t;
  }

  void operator()() {
    std::vector<Id> roots;
    for (int c : seen) roots.push_back(n.lift[size_t(c)]);
    Tape tape(g, n, roots, true);
    Tape::Run run(tape, sources);
    const std::vector<int64_t> extents = shape();
    for (int64_t at = begin; at < end; at += lanes) {
      run.count = int(std::min<int64_t>(lanes, end - at));
      for (int l = 0; l < run.count; ++l) {
        int64_t rest = at + l;
        for (size_t k = extents.size(); k-- > 0;) {
          run.coords[size_t(axes[k])][size_t(l)] = rest % extents[k];
          rest /= extents[k];
        }
      }
      run.set_points();
      if (n.monoid)
        fold(run, at);
      else
        map(run, at);
    }
  }

  void faulted() {
    if (fault.empty()) fault = name.empty() ? "a computed value" : "'" + name + "'";
  }

  void map(Tape::Run& run, int64_t at) {
    run.evaluate_domain();
    run.evaluate();
    const Reg &live = run.live(), &v = run.root(0);
    Array& a = out[size_t(ports[0])];
    for (int l = 0; l < run.count; ++l) {
      State s = live.i[l] ? run.partial(0) ? State(v.s[l]) : State::present : State::absent;
      if (s == State::fault) faulted();
      ++terms;
      write(a, ports[0], run, l, at + l, {a.type, s, v.r[l], v.i[l]});
    }
  }

  void write(Array& a, int port, const Tape::Run& run, int lane, int64_t flat, Value v) {
    if (numeric.store != Format::f64 && v.type == Type::real) v.r = ir::rounded(v.r, numeric.store);
    const ir::Out& o = n.outs[size_t(port)];
    if (o.view.empty()) {
      // With several axes orders a map's flat point is its flat coordinate: axes are in output order.
      if (v.type == Type::real)
        a.r[size_t(flat)] = v.r;
      else
        a.i[size_t(flat)] = v.i;
      if (!a.state.empty()) a.state[size_t(flat)] = uint8_t(v.state);
      return;
    }
    if (v.state != State::present) return;
    int64_t to = 0;
    for (size_t d = 0; d < o.view.size(); ++d) {
      int64_t x = o.view[d].c.value();
      for (auto& [p, k] : o.view[d].axes) x += k * run.coords[size_t(p)][size_t(lane)];
      if (x < 0 || x >= a.shape[d]) {
        faulted();
        return;
      }
      to = to * a.shape[d] + x;
    }
    if (v.type == Type::real)
      a.r[size_t(to)] = v.r;
    else
      a.i[size_t(to)] = v.i;
    a.state[size_t(to)] = uint8_t(State::present);
  }

  void fold(Tape::Run& run, int64_t at) {
    const Combiner k(g.pool, *n.monoid, seen);
    std::vector<Lane> regs(size_t(k.registers));
    std::vector<Type> types;
    for (int c : seen) types.push_back(n.monoid->identity[size_t(c)].type);
    std::vector<int64_t> folds;
    for (auto& e : n.folds) folds.push_back(e.value());
    const int64_t total = volume(folds);
    const FoldOrder order = numeric.order;
    const int64_t parts = order.kind == FoldOrder::sequential || total == 0 ? 1
                          : order.kind == FoldOrder::chunked
                              ? std::max<int64_t>(1, (total + order.n - 1) / std::max<int64_t>(1, order.n))
                              : std::max<int64_t>(1, std::min(order.n, total));
    const Tuple unit = identity();
    const bool plain = seen.size() == 1 && n.monoid->size() == 1 &&
                       (ir::is_plain(g.pool, *n.monoid, Op::add) ||
                        ir::is_plain(g.pool, *n.monoid, Op::max) || ir::is_plain(g.pool, *n.monoid, Op::min));
    const bool plain_sum = plain && types[0] == Type::real && ir::is_plain(g.pool, *n.monoid, Op::add) &&
                           numeric.accumulate == Format::f64;
    std::vector<Tuple> acc(size_t(parts), unit);
    Tuple item = unit;
    uint8_t mask[lanes];
    // Which points a term has is the same for every term, and all lanes have it: nothing to test.
    bool steady = !run.live_varies() &&
                  std::all_of(run.live().i, run.live().i + run.count, [](int64_t x) { return x != 0; });
    for (size_t s = 0; s < seen.size(); ++s) steady &= !run.partial(s);
    for (int64_t t = 0; t < total; ++t) {
      int64_t rest = t;
      for (size_t f = folds.size(); f-- > 0;) {
        run.fold_at[f] = rest % folds[f];
        rest /= folds[f];
      }
      if (!run.evaluate_domain()) continue;
      run.evaluate();
      bool any = steady;
      if (steady) terms += run.count;
      for (int l = 0; l < run.count && !steady; ++l) {
        uint8_t state = run.live().i[l] ? 0 : uint8_t(State::absent);
        bool faults = false;
        for (size_t s = 0; s < seen.size() && !state; ++s)
          if (run.partial(s)) {
            if (run.root(s).s[l] == uint8_t(State::absent))
              state = uint8_t(State::absent);
            else
              faults |= run.root(s).s[l] == uint8_t(State::fault);
          }
        mask[l] = !state;
        if (!state && faults) faulted();
        any |= !state;
        terms += !state;
      }
      if (!any) continue;
      if (plain_sum && parts == 1) { // the common case, without the copies
        const double* x = run.root(0).r;
        double* a = acc[0][0].r;
        if (steady)
          for (int l = 0; l < run.count; ++l) a[l] += x[l];
        else
          for (int l = 0; l < run.count; ++l) a[l] += mask[l] ? x[l] : 0.0;
        continue;
      }
      // A term is injected by combine(identity, term): laws are about injected elements.
      Tuple lifted(seen.size());
      for (size_t s = 0; s < seen.size(); ++s) {
        std::copy_n(run.root(s).r, run.count, lifted[s].r);
        std::copy_n(run.root(s).i, run.count, lifted[s].i);
      }
      if (plain)
        item = std::move(lifted); // 0 + x, max(-inf, x), ..: the term itself
      else {
        item = unit;
        combine(k, seen, regs, item, lifted, steady ? nullptr : mask, run.count, {}, types);
      }
      const int64_t part = order.kind == FoldOrder::tree         ? t % parts
                           : order.kind == FoldOrder::sequential ? 0
                                                                 : t * parts / total;
      combine(k, seen, regs, acc[size_t(part)], item, steady ? nullptr : mask, run.count, numeric, types);
    }
    if (order.kind == FoldOrder::tree)
      for (int64_t width = parts; width > 1; width = (width + 1) / 2)
        for (int64_t w = 0; w < width / 2; ++w) {
          if (w > 0) acc[size_t(w)] = acc[size_t(2 * w)];
          combine(k, seen, regs, acc[size_t(w)], acc[size_t(2 * w + 1)], nullptr, run.count, numeric, types);
          if (2 * w + 3 == width) acc[size_t(w + 1)] = acc[size_t(width - 1)];
        }
    else
      for (int64_t w = 1; w < parts; ++w)
        combine(k, seen, regs, acc[0], acc[size_t(w)], nullptr, run.count, numeric, types);
    for (int p : ports) {
      const size_t s = size_t(std::find(seen.begin(), seen.end(), p) - seen.begin());
      for (int l = 0; l < run.count; ++l)
        write(out[size_t(p)], p, run, l, at + l, {types[s], State::present, acc[0][s].r[l], acc[0][s].i[l]});
    }
  }
};

} // namespace

int64_t compute(const ir::Graph& g, ir::NodeId id, const std::vector<Source>& sources, const Numeric& numeric,
                int threads, std::vector<Array>& out) {
  const Comp& n = *g[id].comp();
  out.clear();
  for (uint32_t p = 0; p < n.lift.size(); ++p) {
    out.emplace_back(bound(g.shape({id, p})), g.type({id, p}));
    const bool may_be_absent = !n.monoid || !n.outs[p].view.empty();
    const uint8_t start = uint8_t(n.outs[p].view.empty() ? State::present : State::absent);
    if (may_be_absent) out.back().state.assign(size_t(out.back().size()), start);
  }
  std::vector<char> done(n.lift.size(), 0);
  int64_t terms = 0;
  for (size_t p = 0; p < n.lift.size(); ++p) {
    if (done[p]) continue;
    std::vector<int> ports;
    for (size_t q = p; q < n.lift.size(); ++q)
      if (!done[q] && n.outs[q].axes == n.outs[p].axes) {
        ports.push_back(int(q));
        done[q] = 1;
      }
    int64_t points = 1;
    for (int a : n.outs[p].axes) points *= n.points[size_t(a)].value();
    std::vector<Job> jobs;
    const int64_t blocks = (points + lanes - 1) / lanes,
                  workers = std::max<int64_t>(1, std::min<int64_t>(threads, blocks));
    for (int64_t w = 0; w < workers; ++w)
      jobs.push_back({g, n, g[id].name, sources, numeric, n.outs[p].axes, visible(n, n.outs[p].axes), ports,
                      out, blocks * w / workers * lanes,
                      std::min(points, blocks * (w + 1) / workers * lanes)});
#ifndef __EMSCRIPTEN__
    std::vector<std::thread> running;
    for (size_t w = 1; w < jobs.size(); ++w) running.emplace_back(std::ref(jobs[w]));
    jobs[0]();
    for (auto& t : running) t.join();
#else
    for (auto& j : jobs) j();
#endif
    for (auto& j : jobs) {
      terms += j.terms;
      if (!j.fault.empty())
        throw Error(g[id].where, "a read outside its array in a live term of " + j.fault, {},
                    "mask the term with masked(guard, ..), or pad the read with at_or(pad, ..)");
    }
  }
  for (auto& a : out)
    if (a.all_present()) a.state.clear();
  return terms;
}

} // namespace tang::eval
