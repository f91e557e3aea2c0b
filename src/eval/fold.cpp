#include "tang/eval/fold.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>
#include <unordered_map>

#include "tang/eval/walk.hpp"

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

struct Lane {
  double r[lanes];
  int64_t i[lanes];
};

using Tuple = std::vector<Lane>; // one a visible component

// A monoid's combine over lanes, for the visible components.
class Combiner {
public:
  Combiner(const ir::Pool& p, const ir::Monoid& m, const std::vector<int>& seen)
      : left_(seen.size(), -1), right_(left_) {
    std::vector<Id> roots;
    for (int c : seen) roots.push_back(m.combine[size_t(c)]);
    for (int c : seen) types_.push_back(m.identity[size_t(c)].type);
    std::unordered_map<Id, int> at;
    int registers = 0;
    for (Id id : expr::schedule(p, roots)) {
      const Term& t = p[id];
      at[id] = registers++;
      if (t.op == Op::var) {
        const auto s = size_t(std::find(seen.begin(), seen.end(), int(t.whole / 2)) - seen.begin());
        if (s < seen.size()) (t.whole % 2 ? right_ : left_)[s] = at[id];
        continue;
      }
      Instr in{t.op, t.arity() ? p[t.args[0]].type : t.type, t.type, at[id], -1, -1, -1, t.r, t.whole};
      int* operand[] = {&in.a, &in.b, &in.c};
      for (int k = 0; k < t.arity(); ++k) *operand[k] = at.at(t.args[size_t(k)]);
      code_.push_back(in);
    }
    for (Id id : roots) result_.push_back(at.at(id));
    registers_.resize(size_t(registers));
    values_.resize(size_t(registers));
    uniform_.assign(size_t(registers), 0);
    spread_.assign(size_t(registers), 0);
    for (size_t s = 0; s < seen.size(); ++s) // a component that becomes another's old value
      for (size_t o = 0; o < seen.size(); ++o) keeps_ |= o != s && result_[s] == left_[o];
  }

  // Which components hold one value for all lanes, given which terms do: those that read no other kind.
  std::vector<char> find_uniform(std::vector<char> component) {
    for (bool again = true; again;) {
      mark(component);
      again = false;
      for (size_t s = 0; s < component.size(); ++s)
        if (component[s] && !uniform_[size_t(result_[s])]) component[s] = 0, again = true;
    }
    std::fill(spread_.begin(), spread_.end(), 0);
    for (auto& in : code_)
      for (int x : {in.a, in.b, in.c})
        if (x >= 0 && !uniform_[size_t(in.dst)]) spread_[size_t(x)] = 1;
    uniform_component_ = component;
    return component;
  }

  // out := combine(a, b); lanes where the mask fails keep a. No mask: every lane.
  void operator()(const Tuple& a, const Tuple& b, Tuple& out, const uint8_t* mask, int n, Format accumulate) {
    for (size_t s = 0; s < left_.size(); ++s) {
      if (left_[s] >= 0) {
        if (keeps_) registers_[size_t(left_[s])] = a[s];
        values_[size_t(left_[s])] = keeps_ ? &registers_[size_t(left_[s])] : &a[s];
      }
      if (right_[s] >= 0) values_[size_t(right_[s])] = &b[s];
    }
    for (auto& in : code_) {
      const int w = uniform_[size_t(in.dst)] ? 1 : n;
      compute(in, w);
      if (w < n && spread_[size_t(in.dst)]) spread(registers_[size_t(in.dst)], in.out, n);
    }
    for (size_t s = 0; s < left_.size(); ++s) {
      const bool one = uniform_component_[s];
      store(*values_[size_t(result_[s])], a[s], out[s], types_[s], mask, one ? 1 : n, accumulate);
      if (one && n > 1 && needs_lanes(s)) spread(out[s], types_[s], n);
    }
  }

  static void spread(Lane& v, Type type, int n) {
    if (type == Type::real)
      std::fill(v.r + 1, v.r + n, v.r[0]);
    else
      std::fill(v.i + 1, v.i + n, v.i[0]);
  }

private:
  struct Instr {
    Op op;
    Type in, out;
    int dst, a = -1, b = -1, c = -1;
    double r = 0;
    int64_t whole = 0;
  };

  bool needs_lanes(size_t s) const {
    return (left_[s] >= 0 && spread_[size_t(left_[s])]) || (right_[s] >= 0 && spread_[size_t(right_[s])]);
  }

  void mark(const std::vector<char>& component) {
    std::fill(uniform_.begin(), uniform_.end(), 0);
    for (size_t s = 0; s < component.size(); ++s)
      for (int leaf : {left_[s], right_[s]})
        if (leaf >= 0) uniform_[size_t(leaf)] = component[s];
    for (auto& in : code_) {
      bool u = true;
      for (int x : {in.a, in.b, in.c}) u = u && (x < 0 || uniform_[size_t(x)]);
      uniform_[size_t(in.dst)] = u;
    }
  }

  void compute(const Instr& in, int n) {
    Lane& d = registers_[size_t(in.dst)];
    values_[size_t(in.dst)] = &d;
    if (in.op == Op::literal) {
      std::fill(d.r, d.r + n, in.r);
      std::fill(d.i, d.i + n, in.whole);
      return;
    }
    const Lane& x = *values_[size_t(in.a)];
    const Lane& y = in.b >= 0 ? *values_[size_t(in.b)] : x;
    if (in.op == Op::select) {
      const Lane& z = *values_[size_t(in.c)];
      if (in.out == Type::real)
        for (int l = 0; l < n; ++l) d.r[l] = x.i[l] ? y.r[l] : z.r[l];
      else
        for (int l = 0; l < n; ++l) d.i[l] = x.i[l] ? y.i[l] : z.i[l];
      return;
    }
    compute_lanes(in.op, in.in, {x.r, x.i}, {y.r, y.i}, {d.r, d.i}, n);
  }

  static void store(const Lane& v, const Lane& old, Lane& out, Type type, const uint8_t* mask, int n,
                    Format accumulate) {
    if (type != Type::real) {
      for (int l = 0; l < n; ++l) out.i[l] = !mask || mask[l] ? v.i[l] : old.i[l];
    } else if (accumulate != Format::f64) {
      for (int l = 0; l < n; ++l)
        out.r[l] = !mask || mask[l] ? ir::rounded(v.r[l], accumulate) : old.r[l];
    } else if (mask) {
      for (int l = 0; l < n; ++l) out.r[l] = mask[l] ? v.r[l] : old.r[l];
    } else {
      std::copy_n(v.r, n, out.r);
    }
  }

  std::vector<Instr> code_;
  std::vector<int> left_, right_, result_; // registers, by position among the visible components
  std::vector<Type> types_;
  std::vector<Lane> registers_;
  std::vector<const Lane*> values_; // where each register's value lies
  std::vector<char> uniform_, spread_, uniform_component_;
  bool keeps_ = false;
};

struct Job {
  const ir::Graph& g;
  const Comp& n;
  const std::string& name;
  const std::vector<Source>& sources;
  const Numeric& numeric;
  const Walk& walk;       // the points of this set of ports
  bool tolerant;          // a fault is an infinite term
  std::vector<int> seen;  // visible components
  std::vector<int> ports; // those that are written
  std::vector<Array>& out;
  int64_t begin = 0, end = 0; // blocks
  int64_t terms = 0;
  bool faulty = false; // the term at hand, in some lane
  std::string fault = {};
  std::optional<Combiner> combiner = {};
  int64_t flat[lanes] = {}; // of the ports, by lane

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
    if (n.monoid) combiner.emplace(g.pool, *n.monoid, seen);
    for (int64_t block = begin; block < end; ++block) {
      run.count = int(walk.count(block));
      for (int l = 0; l < run.count; ++l) {
        int64_t rest = walk.begin(block) + l;
        flat[l] = 0;
        for (size_t k = walk.axes.size(); k-- > 0;) {
          const int64_t x = rest % walk.extents[k];
          run.coords[size_t(walk.axes[k])][size_t(l)] = x;
          flat[l] += x * walk.strides[k];
          rest /= walk.extents[k];
        }
      }
      run.set_points();
      if (n.monoid)
        fold(run);
      else
        map(run);
    }
  }

  void faulted() {
    if (fault.empty()) fault = name.empty() ? "a computed value" : "'" + name + "'";
  }

  void map(Tape::Run& run) {
    run.evaluate_domain();
    run.evaluate();
    const Reg &live = run.live(), &v = run.root(0);
    Array& a = out[size_t(ports[0])];
    for (int l = 0; l < run.count; ++l) {
      const State s = live.i[l] ? run.partial(0) ? State(v.s[l]) : State::present : State::absent;
      ++terms;
      if (s == State::fault && tolerant) {
        write(a, ports[0], run, l, {a.type, State::present, HUGE_VAL, v.i[l]});
        continue;
      }
      if (s == State::fault) faulted();
      write(a, ports[0], run, l, {a.type, s, v.r[l], v.i[l]});
    }
  }

  void write(Array& a, int port, const Tape::Run& run, int lane, Value v) {
    if (numeric.store != Format::f64 && v.type == Type::real) v.r = ir::rounded(v.r, numeric.store);
    const ir::Out& o = n.outs[size_t(port)];
    if (o.view.empty()) {
      if (v.type == Type::real)
        a.r[size_t(flat[lane])] = v.r;
      else
        a.i[size_t(flat[lane])] = v.i;
      if (!a.state.empty()) a.state[size_t(flat[lane])] = uint8_t(v.state);
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

  // Which lanes have this term. A fault in one that counts is remembered.
  bool present(const Tape::Run& run, uint8_t* mask) {
    const int n = run.count;
    const int64_t* live = run.live().i;
    uint8_t faults[lanes];
    std::fill(faults, faults + n, 0);
    for (int l = 0; l < n; ++l) mask[l] = live[l] != 0;
    for (size_t s = 0; s < seen.size(); ++s) {
      if (!run.partial(s)) continue;
      const uint8_t* state = run.root(s).s;
      for (int l = 0; l < n; ++l) {
        mask[l] &= state[l] != uint8_t(State::absent);
        faults[l] |= state[l] == uint8_t(State::fault);
      }
    }
    int64_t present = 0;
    faulty = false;
    for (int l = 0; l < n; ++l) {
      present += mask[l];
      faulty |= mask[l] & faults[l];
    }
    if (faulty && !tolerant) faulted();
    terms += present;
    return present > 0;
  }

  void fold(Tape::Run& run) {
    Combiner& combine = *combiner;
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
    const bool plain_sum = plain && n.monoid->identity[size_t(seen[0])].type == Type::real &&
                           ir::is_plain(g.pool, *n.monoid, Op::add) && numeric.accumulate == Format::f64;
    std::vector<Tuple> acc(size_t(parts), unit);
    Tuple item = unit, lifted = unit;
    uint8_t mask[lanes];
    // Which points a term has is the same for every term, and all lanes have it: nothing to test.
    bool steady = !run.live_varies() &&
                  std::all_of(run.live().i, run.live().i + run.count, [](int64_t x) { return x != 0; });
    bool one_mask = run.live_for_all(); // a term is in all lanes or in none
    for (size_t s = 0; s < seen.size(); ++s) {
      steady &= !run.partial(s);
      one_mask &= !run.partial(s) || run.one_for_all(s);
    }
    std::vector<char> uniform(seen.size(), 0);
    for (size_t s = 0; s < seen.size(); ++s)
      uniform[s] = parts == 1 && (steady || one_mask) && run.one_for_all(s);
    uniform = combine.find_uniform(uniform);
    std::fill(run.fold_at.begin(), run.fold_at.end(), 0);
    const bool done = plain_sum && parts == 1 && steady && run.add_products(acc[0][0].r, folds);
    if (done) terms += total * run.count;
    for (int64_t t = 0; t < total && !done; ++t, next(run.fold_at, folds)) {
      if (!run.evaluate_domain()) continue;
      run.evaluate();
      if (steady)
        terms += run.count;
      else if (!present(run, mask))
        continue;
      if (plain_sum && parts == 1 && !(faulty && tolerant)) { // the common case, without the copies
        const double* x = run.root(0).r;
        double* a = acc[0][0].r;
        if (steady)
          for (int l = 0; l < run.count; ++l) a[l] += x[l];
        else
          for (int l = 0; l < run.count; ++l) a[l] += mask[l] ? x[l] : 0.0;
        continue;
      }
      for (size_t s = 0; s < seen.size(); ++s) {
        std::copy_n(run.root(s).r, run.count, lifted[s].r);
        std::copy_n(run.root(s).i, run.count, lifted[s].i);
        for (int l = 0; l < run.count && faulty && run.partial(s); ++l)
          if (run.root(s).s[l] == uint8_t(State::fault)) lifted[s].r[l] = HUGE_VAL;
      }
      // A term is injected by combine(identity, term): laws are about injected elements. 0 + x, max(-inf, x),
      // .. is the term itself.
      if (!plain) combine(unit, lifted, item, nullptr, run.count, Format::f64);
      const int64_t part = order.kind == FoldOrder::tree         ? t % parts
                           : order.kind == FoldOrder::sequential ? 0
                                                                 : t * parts / total;
      Tuple& to = acc[size_t(part)];
      combine(to, plain ? lifted : item, to, steady ? nullptr : mask, run.count, numeric.accumulate);
    }
    join(combine, acc, run.count);
    for (int p : ports) {
      const size_t s = size_t(std::find(seen.begin(), seen.end(), p) - seen.begin());
      const Type type = n.monoid->identity[size_t(p)].type;
      if (uniform[s] && !(plain_sum && parts == 1)) Combiner::spread(acc[0][s], type, run.count);
      for (int l = 0; l < run.count; ++l)
        write(out[size_t(p)], p, run, l, {type, State::present, acc[0][s].r[l], acc[0][s].i[l]});
    }
  }

  static void next(std::vector<int64_t>& at, const std::vector<int64_t>& folds) {
    for (size_t f = folds.size(); f-- > 0;) {
      if (++at[f] < folds[f]) return;
      at[f] = 0;
    }
  }

  // The parts' values as one, in acc[0].
  void join(Combiner& combine, std::vector<Tuple>& acc, int count) {
    const auto parts = int64_t(acc.size());
    auto into = [&](Tuple& a, const Tuple& b) { combine(a, b, a, nullptr, count, numeric.accumulate); };
    if (numeric.order.kind == FoldOrder::tree)
      for (int64_t width = parts; width > 1; width = (width + 1) / 2)
        for (int64_t w = 0; w < width / 2; ++w) {
          if (w > 0) acc[size_t(w)] = acc[size_t(2 * w)];
          into(acc[size_t(w)], acc[size_t(2 * w + 1)]);
          if (2 * w + 3 == width) acc[size_t(w + 1)] = acc[size_t(width - 1)];
        }
    else
      for (int64_t w = 1; w < parts; ++w) into(acc[0], acc[size_t(w)]);
  }
};

} // namespace

int64_t compute(const ir::Graph& g, ir::NodeId id, const std::vector<Source>& sources, const Numeric& numeric,
                const Options& options, std::vector<Array>& out) {
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
    const std::vector<int> seen = visible(n, n.outs[p].axes);
    std::vector<Id> roots;
    for (int c : seen) roots.push_back(n.lift[size_t(c)]);
    const Walk order = walk(g, n, roots, n.outs[p].axes);
    std::vector<Job> jobs;
    const int64_t blocks = order.blocks(), threads = options.threads;
    const int64_t workers = std::max<int64_t>(1, std::min<int64_t>(threads, blocks));
    for (int64_t w = 0; w < workers; ++w)
      jobs.push_back({g, n, g[id].name, sources, numeric, order, options.faults_are_infinite, seen, ports,
                      out, blocks * w / workers, blocks * (w + 1) / workers});
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
