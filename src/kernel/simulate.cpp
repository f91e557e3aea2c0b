#include "tang/kernel/simulate.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>

#include "tang/base/hash.hpp"
#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/contraction.hpp"
#include "tang/kernel/points.hpp"

namespace tang::kernel {

namespace {
// ---- compiled statements ----
struct Code;
using CodeBlock = std::vector<Code>;
struct ApplyCode {
  const Apply* node;
  std::shared_ptr<Points> points;
  int bounds, partial;
  std::vector<int> dst;
};
struct FoldCode {
  const Fold* node;
  std::shared_ptr<Points> points;
  int bounds, limits, partial;
  std::vector<int> dst;
  std::vector<Instr> combine;
  std::vector<Reg> regs;         // of the combine: left and right of each component first
  std::vector<int> result;
  std::vector<int> chain;        // of each fold step: which accumulator
  int chains = 1;
};
struct ContractCode {
  std::shared_ptr<Contraction> contraction;
};
struct LetCode {
  const Let* node;
  std::shared_ptr<Points> points;  // of a load
  int ref = -1;
};
struct LoopCode {
  Var var;
  Affine begin, end;
  int64_t step;
  std::shared_ptr<CodeBlock> body;
};
struct IfCode {
  const If* node;
  std::shared_ptr<CodeBlock> then;
};
struct BarrierCode {
  Team team;
};
struct Code {
  std::variant<ApplyCode, FoldCode, ContractCode, LetCode, LoopCode, IfCode, BarrierCode> node;
};

class Compiler {
 public:
  Compiler(const Kernel& k, const Options& o) : k_(k), options_(o) {}
  CodeBlock block(const Block& b, bool full) {
    CodeBlock out;
    for (auto& s : b) statement(s, full, out);
    return out;
  }

 private:
  void statement(const Stmt& s, bool full, CodeBlock& out) {
    const int id = number(s);
    std::visit(Match{[&](const Apply& x) { out.push_back({apply(x, s, id, full)}); },
                     [&](const Fold& x) { out.push_back({fold(x, s, id, full)}); },
                     [&](const Contract& x) {
                       out.push_back({ContractCode{std::make_shared<Contraction>(k_, id, s, x, full)}});
                     },
                     [&](const Barrier& x) { out.push_back({BarrierCode{x.team}}); },
                     [&](const Let& x) {
                       LetCode c{&x, nullptr};
                       if (x.kind == Let::load) {
                         c.points = std::make_shared<Points>(k_, id, s, std::vector<TileAxis>{},
                                                             std::vector<TileAxis>{}, nullptr);
                         c.ref = c.points->add(x.ref);
                       }
                       out.push_back({c});
                     },
                     [&](const Loop& x) {
                       check(x.step > 0, "a loop with a positive step");
                       out.push_back({LoopCode{x.var, x.begin, x.end, x.step, share(x.body, full)}});
                     },
                     [&](const If& x) {
                       out.push_back({IfCode{&x, share(x.then, full)}});
                     },
                     [&](const Pipeline& x) { pipeline(x, out); }},
               s.node);
  }
  // One loop a segment; in a full one the statements' `partial` bounds are not tested.
  void pipeline(const Pipeline& x, CodeBlock& out) {
    std::vector<Segment> order = x.segments;
    if (x.reverse) std::reverse(order.begin(), order.end());
    for (auto& g : order) {
      auto body = share(x.operands, !g.partial);
      const CodeBlock rest = block(x.body, !g.partial);
      body->insert(body->end(), rest.begin(), rest.end());
      out.push_back({LoopCode{x.var, g.begin, g.end, x.step, body}});
    }
  }

  std::shared_ptr<CodeBlock> share(const Block& b, bool full) {
    return std::make_shared<CodeBlock>(block(b, full));
  }
  // The same statement compiled for two segments is one statement in the report.
  int number(const Stmt& s) { return numbers_.emplace(&s, int(numbers_.size())).first->second; }

  ApplyCode apply(const Apply& x, const Stmt& s, int id, bool full) {
    ApplyCode c{&x, std::make_shared<Points>(k_, id, s, x.axes, std::vector<TileAxis>{}, &x.body), 0, -1, {}};
    check(x.body.values.size() == x.dst.size(), "an apply with a value for every destination");
    c.points->deal(x.deal, size_t(x.deal.lead));
    for (auto& r : x.dst) c.dst.push_back(c.points->add(r));
    c.bounds = c.points->bound(x.bounds);
    if (!full && !x.partial.empty()) c.partial = c.points->any(x.partial);
    return c;
  }
  FoldCode fold(const Fold& x, const Stmt& s, int id, bool full) {
    FoldCode c{&x, std::make_shared<Points>(k_, id, s, x.kept, x.folded, &x.body), 0, 0, -1, {}, {}, {}, {},
               {}};
    const size_t n = x.dst.size();
    check(x.body.values.size() == n && x.identity.size() == n && x.combine.size() == n,
          "a fold with a value, an identity and a combine for every destination");
    for (auto& r : x.dst) c.dst.push_back(c.points->add(r));
    c.bounds = c.points->bound(x.bounds);
    c.limits = c.points->bound(x.limits);
    if (!full && !x.partial.empty()) c.partial = c.points->any(x.partial);
    compile_combine(x, c);
    c.points->deal(x.deal, x.kept.size());
    if (x.deal.team) {
      c.chains = x.deal.each ? 1 : x.deal.team;
      for (int64_t t = 0; t < c.points->step_points(); ++t) c.chain.push_back(int(t / x.deal.run % c.chains));
      return c;
    }
    const int along = x.vector - int(x.kept.size()), lanes = along >= 0 ? options_.lanes : 1;
    c.chains = lanes * std::max(1, x.ways);
    for (int64_t flat = 0; flat < c.points->step_points(); ++flat) {
      const int64_t inner = x.folded.empty() ? 0 : flat % x.folded.back().extent;
      int64_t lane = inner, way = inner / lanes;
      if (along >= 0 && size_t(along) + 1 != x.folded.size()) {  // the vector is not the innermost axis
        int64_t run = 1;
        for (size_t d = size_t(along) + 1; d < x.folded.size(); ++d) run *= x.folded[d].extent;
        lane = flat / run % x.folded[size_t(along)].extent;
        way = inner;
      }
      c.chain.push_back(int(lane % lanes + lanes * (way % std::max(1, x.ways))));
    }
    return c;
  }
  void compile_combine(const Fold& x, FoldCode& c) {
    c.regs.resize(2 * x.dst.size());
    std::map<Id, int> reg_of;
    for (Id id : schedule(*k_.pool, x.combine)) {
      const expr::Term& t = (*k_.pool)[id];
      if (t.op == expr::Op::var) {
        check(t.whole >= 0 && size_t(t.whole) < 2 * x.dst.size(), "a combine reads its own components");
        reg_of[id] = int(t.whole);
        continue;
      }
      check(t.arity() || t.op == expr::Op::literal, "a combine reads variables and literals only");
      Instr in{t.op, t.arity() ? (*k_.pool)[t.args[0]].type : t.type, t.type, int(c.regs.size()), -1, -1, -1,
               0};
      int* operand[] = {&in.a, &in.b, &in.c};
      for (int a = 0; a < t.arity(); ++a) *operand[a] = reg_of.at(t.args[size_t(a)]);
      reg_of[id] = in.dst;
      c.regs.emplace_back();
      std::fill(c.regs.back().r, c.regs.back().r + width, t.r);
      std::fill(c.regs.back().i, c.regs.back().i + width, t.whole);
      if (t.arity()) c.combine.push_back(in);
    }
    for (Id id : x.combine) c.result.push_back(reg_of.at(id));
  }

  const Kernel& k_;
  const Options& options_;
  std::map<const Stmt*, int> numbers_;
};

void fill(Reg& r, const Value& v) {
  std::fill(r.r, r.r + width, v.r);
  std::fill(r.i, r.i + width, v.i);
}
void blend(Reg& to, const Reg& from, Mask m, int n) {
  each(m, n, [&](int l) {
    to.r[l] = from.r[l];
    to.i[l] = from.i[l];
  });
}

// ---- one thread of control of a workgroup ----
// Its program counter is a stack of positions; `step` runs one statement, so that several roles can be
// interleaved.
class Worker {
 public:
  Worker(const Kernel& k, Machine& m) : m_(m), vars_(k.vars.size(), 0) {}
  void start(const CodeBlock& body, const std::vector<int64_t>& grid, const Kernel& k) {
    for (size_t g = 0; g < grid.size(); ++g) vars_[size_t(k.grid[g].var)] = grid[g];
    stack_.assign(1, {&body, 0, -1, 0, 0, 0});
  }
  bool step() {  // false: this worker has ended
    while (!stack_.empty()) {
      Frame& f = stack_.back();
      if (f.at < f.block->size()) break;
      if (f.var >= 0 && f.end - f.value > f.step) {
        vars_[size_t(f.var)] = f.value += f.step;
        f.at = 0;
        continue;
      }
      stack_.pop_back();
    }
    if (stack_.empty()) return false;
    Frame& f = stack_.back();
    ++m_.steps;
    std::visit(Match{[&](const ApplyCode& c) { run(c); }, [&](FoldCode& c) { run(c); },
                     [&](const ContractCode& c) { c.contraction->run(m_, vars_.data()); },
                     [&](const LetCode& c) { run(c); }, [&](const LoopCode& c) { run(c); },
                     [&](const IfCode& c) { run(c); }, [&](const BarrierCode& c) { m_.barrier(c.team); }},
               const_cast<Code&>((*f.block)[f.at++]).node);  // the scratch registers lie beside the code
    return true;
  }

 private:
  struct Frame {
    const CodeBlock* block;
    size_t at;
    Var var;  // of a loop; -1: none
    int64_t value, end, step;
  };
  int64_t value(const Affine& a) const {
    int64_t v = a.c;
    for (auto& [x, k] : a.terms) v = add_saturated(v, mul_saturated(k, vars_[size_t(x)]));
    return v;
  }
  void run(const ApplyCode& c) {
    Points& p = *c.points;
    p.start(m_, vars_.data());
    const int64_t total = p.lane_points();
    m_.steps += total;
    for (int64_t from = 0; from < total; from += width) {
      const int n = int(std::min<int64_t>(width, total - from));
      p.block(from, n);
      const Mask live = p.holds_any(c.partial, p.holds(c.bounds, first(n))), there = p.evaluate(live);
      for (size_t d = 0; d < c.dst.size(); ++d) {
        p.store(c.dst[d], there, p.value(d));
        if (d >= c.node->fill.size() || !c.node->fill[d]) continue;
        fill(constant_, *c.node->fill[d]);
        p.store(c.dst[d], first(n) & ~there, constant_);
      }
    }
  }
  // left = combine(left, right) for the lanes of the mask.
  void combine(FoldCode& c, Mask mask, int n, std::vector<Reg>& left,
               const std::function<const Reg&(size_t)>& right) {
    const size_t k = left.size();
    for (size_t d = 0; d < k; ++d) {
      blend(c.regs[2 * d], left[d], first(n), n);
      blend(c.regs[2 * d + 1], right(d), first(n), n);
    }
    for (auto& in : c.combine) compute(in, c.regs, n, m_.round);
    for (size_t d = 0; d < k; ++d) {
      Reg& v = c.regs[size_t(c.result[d])];
      for (int l = 0; l < n && c.node->held; ++l) v.r[l] = expr::rounded(v.r[l], *c.node->held);
      blend(left[d], v, mask, n);
    }
  }
  // Each lane halves a range of its own.
  void search(Points& p, Mask kept, int n) {
    each(kept, n, [&](int l) {
      int64_t from = 0, to = p.step_points();
      while (from < to) {
        const int64_t at = from + (to - from) / 2;
        p.step(at);
        const bool below = p.evaluate(Mask(1) << l) && p.value(0).i[l] != 0;
        (below ? from : to) = at + int(below);
      }
      chains_[0][0].i[l] = from;
    });
  }
  void run(FoldCode& c) {
    Points& p = *c.points;
    const size_t k = c.dst.size();
    p.start(m_, vars_.data());
    const int64_t total = p.lane_points(), steps = p.step_points();
    m_.steps += total * (c.node->search ? std::bit_width(uint64_t(steps)) : steps);
    chains_.resize(size_t(c.chains));
    for (int64_t from = 0; from < total; from += width) {
      const int n = int(std::min<int64_t>(width, total - from));
      p.block(from, n);
      const Mask kept = p.holds(c.bounds, first(n));
      if (!kept) continue;
      for (auto& chain : chains_) {
        chain.resize(k);
        for (size_t d = 0; d < k; ++d) fill(chain[d], c.node->identity[d]);
      }
      if (c.node->accumulate)
        for (size_t d = 0; d < k; ++d) p.load(c.dst[d], kept, chains_[0][d]);
      if (c.node->search) search(p, kept, n);
      for (int64_t s = 0; s < steps && !c.node->search; ++s) {
        p.step(s);
        const Mask there = p.evaluate(p.holds_any(c.partial, p.holds(c.limits, kept)));
        if (there)
          combine(c, there, n, chains_[size_t(c.chain[size_t(s)])],
                  [&](size_t d) -> const Reg& { return p.value(d); });
      }
      p.finish();
      if (c.node->deal.team) // lane l with l + half, then a quarter, ..
        for (size_t half = chains_.size() / 2; half; half /= 2)
          for (size_t w = 0; w < half; ++w)
            combine(c, kept, n, chains_[w], [&](size_t d) -> const Reg& { return chains_[w + half][d]; });
      for (size_t w = 1; w < chains_.size() && !c.node->deal.team; ++w)
        combine(c, kept, n, chains_[0], [&](size_t d) -> const Reg& { return chains_[w][d]; });
      for (size_t d = 0; d < k; ++d) p.store(c.dst[d], kept, chains_[0][d]);
    }
  }
  void run(const LetCode& c) {
    const Let& x = *c.node;
    int64_t& v = vars_[size_t(x.var)];
    if (x.kind == Let::load) {
      c.points->start(m_, vars_.data());
      c.points->block(0, 1);
      m_.lane_of[0] = Machine::several;
      c.points->load(c.ref, 1, constant_);
      v = constant_.i[0];
      return;
    }
    int64_t out = value(x.operands[0]);
    for (auto& o : x.operands)
      out = x.kind == Let::max ? std::max(out, value(o)) : x.kind == Let::min ? std::min(out, value(o)) : out;
    v = x.kind == Let::floor_div ? floor_div(out, x.divisor) : out;
  }
  void run(const LoopCode& c) {
    const int64_t begin = value(c.begin), end = value(c.end);
    if (begin >= end) return;
    vars_[size_t(c.var)] = begin;
    stack_.push_back({c.body.get(), 0, c.var, begin, end, c.step});
  }
  void run(const IfCode& c) {
    for (auto& a : c.node->all)
      if (value(a) < 0) return;
    stack_.push_back({c.then.get(), 0, -1, 0, 0, 0});
  }

  Machine& m_;
  std::vector<int64_t> vars_;
  std::vector<Frame> stack_;
  std::vector<std::vector<Reg>> chains_;  // [chain][component]
  Reg constant_;
};

std::vector<int64_t> order_of(int64_t n, const Options& o) {
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), int64_t(0));
  if (o.order == Order::reverse) std::reverse(out.begin(), out.end());
  if (o.order == Order::random)
    for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[size_t(mix(o.seed + i) % i)]);
  return out;
}
}  // namespace

Outcome simulate(const Kernel& k, std::vector<Buffer>& globals, const Options& options) {
  Machine machine(k, globals, options);
  const CodeBlock body = Compiler(k, options).block(k.body, false);
  Worker worker(k, machine);
  std::vector<int64_t> at(k.grid.size());
  for (int64_t flat : order_of(workgroups(k), options)) {
    machine.enter(flat);
    int64_t rest = flat;
    for (size_t g = k.grid.size(); g-- > 0;) {
      const int64_t blocks = ceil_div(k.grid[g].extent, k.grid[g].step);
      at[g] = rest % blocks * k.grid[g].step;
      rest /= blocks;
    }
    worker.start(body, at, k);
    while (worker.step())
      if (machine.steps > options.step_limit) {
        machine.report(Fault::endless, 0, 0, [] { return std::string("the step limit is reached"); });
        return machine.outcome();
      }
  }
  return machine.outcome();
}

}  // namespace tang::kernel
