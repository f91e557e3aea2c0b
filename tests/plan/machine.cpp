#include "plan/machine.hpp"

#include <algorithm>
#include <cmath>

namespace tang::test {

using expr::Op;
using expr::State;
using expr::Value;
using ir::Comp;
using plan::Flush;
using plan::Role;

void each(const At& lo, const At& hi, const std::function<void(const At&)>& f) {
  for (size_t d = 0; d < lo.size(); ++d)
    if (lo[d] >= hi[d]) return;
  At x = lo;
  for (;;) {
    f(x);
    size_t d = x.size();
    while (d > 0 && ++x[d - 1] == hi[d - 1]) {
      x[d - 1] = lo[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

namespace {
std::optional<size_t> flat(const At& shape, const At& at) {
  size_t k = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (at[d] < 0 || at[d] >= shape[d]) return std::nullopt;
    k = k * size_t(shape[d]) + size_t(at[d]);
  }
  return k;
}

Cells cells(const eval::Array& a) {
  Cells c{a.shape, {}, {}};
  for (int64_t k = 0; k < a.size(); ++k) c.value.push_back(a.at(k));
  c.written.assign(c.value.size(), 1);
  return c;
}

eval::Array array(const Cells& c, expr::Type type) {
  eval::Array a(c.shape, type);
  for (size_t k = 0; k < c.value.size(); ++k) a.set(int64_t(k), c.value[k]);
  if (a.all_present()) a.state.clear();
  return a;
}

Value add(const Value& a, const Value& b) { return expr::compute(Op::add, a, b); }

int64_t tiles(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }
} // namespace

void Machine::complain(const std::string& what) {
  if (complaints_.size() < 10 && std::find(complaints_.begin(), complaints_.end(), what) == complaints_.end())
    complaints_.push_back(what);
}

Value Machine::cell(Cells& c, const At& at, const std::string& who) {
  const auto k = flat(c.shape, at);
  check(k.has_value(), "range was tested");
  if (!c.written[*k]) complain("a read of what nothing wrote: " + who);
  const Value& v = c.value[*k];
  return fills_ && v.state == State::absent ? Value{v.type, State::present, 0, 0} : v;
}

Value Machine::read(Port q, const At& at) {
  const expr::Type type = g_.type(q);
  At shape = eval::bound(g_.shape(q));
  if (!flat(shape, at)) return {type, State::fault, 0, 0};
  if (auto it = local_.find(q); it != local_.end())
    return cell(it->second, at, g_.label(q) + " on another workgroup");
  if (group_)
    for (auto& s : group_->shared)
      if (s.node == q.node) return shared_at(s, at);
  if (auto it = taken_.find(q.node); it != taken_.end()) {
    const Port now{it->second, 0};
    if (done_.count(now)) complain("a read of " + g_.label(q) + " after its memory was taken");
    Cells& c = memory_.at(now);
    const size_t k = *flat(c.shape, at);
    if (c.written[k]) complain("a read of " + g_.label(q) + " where it was overwritten");
    c.reader[k] = c.reader[k] == -1 || c.reader[k] == workgroup_ ? workgroup_ : -2;
    return c.value[k];
  }
  if (auto it = memory_.find(q); it != memory_.end()) return cell(it->second, at, g_.label(q));
  complain("a read of " + g_.label(q) + ", which is stored nowhere now");
  return {type, State::fault, 0, 0};
}

Value Machine::shared_at(const plan::Shared& s, const At& at) {
  const Comp& c = *g_[s.node].comp();
  const std::vector<int>& axes = c.outs[0].axes;
  At x(size_t(c.axis_count()), 0);
  for (size_t d = 0; d < at.size(); ++d) {
    const int core = s.axis[size_t(axes[d])];
    if (at[d] < lo_[size_t(core)] || at[d] >= hi_[size_t(core)])
      complain("a read of " + g_.label({s.node, 0}) + " outside the tile");
    x[size_t(axes[d])] = at[d];
  }
  const auto key = std::make_pair(s.node, at);
  if (auto it = tile_values_.find(key); it != tile_values_.end()) return it->second;
  ++evaluations_[s.node];
  Accumulator a{{}, {0}, {0}, {}};
  a.axes = axes;
  At lo = x, hi = x;
  for (size_t k = 0; k < lo.size(); ++k) hi[k] = k < c.points.size() ? lo[k] + 1 : c.extent(int(k)).value();
  each(lo, hi, [&](const At& y) { fold_term(c, a, y); });
  const Value v = a.state.empty() ? c.monoid->identity[0] : a.state.begin()->second[0];
  tile_values_[key] = v;
  return v;
}

// ---- terms
// --------------------------------------------------------------------------------------------------------
std::optional<int64_t> Machine::value(const Comp& c, const ir::Form& f, const At& x,
                                      std::optional<Value>& bad) {
  int64_t v = f.c.value();
  for (auto& [a, k] : f.axes) v += k * x[size_t(a)];
  for (auto& [u, k] : f.args) {
    const Value y = arg(c, size_t(u), x);
    if (y.state != State::present) {
      if (!bad || y.state == State::absent) bad = y;
      continue;
    }
    v += k * y.i;
  }
  return bad ? std::nullopt : std::optional(v);
}

bool Machine::inside(const Comp& c, const ir::Domain& d, const At& x) {
  return std::any_of(d.begin(), d.end(), [&](const ir::Conj& piece) {
    return std::all_of(piece.begin(), piece.end(), [&](const ir::Form& f) {
      std::optional<Value> bad;
      const auto v = value(c, f, x, bad);
      return v && *v >= 0;
    });
  });
}

Value Machine::arg(const Comp& c, size_t k, const At& x) {
  At at;
  std::optional<Value> bad;
  for (auto& f : c.args[k].view) at.push_back(value(c, f, x, bad).value_or(0));
  if (bad) return {g_.type(c.args[k].from), bad->state, 0, 0};
  return read(c.args[k].from, at);
}

Value Machine::evaluate(const Comp& c, ir::Id term, const At& x) {
  return expr::evaluate(g_.pool, term, [&](const expr::Term& t) -> Value {
    if (t.op == Op::coord) return expr::whole(x[size_t(t.whole)]);
    if (t.op == Op::holds) return expr::truth(inside(c, c.guards[size_t(t.whole)], x));
    return arg(c, size_t(t.whole), x);
  });
}

void Machine::fold_term(const Comp& c, Accumulator& a, const At& x) {
  if (!inside(c, c.domain, x)) return;
  std::vector<Value> lift;
  bool fault = false;
  for (int k : a.seen) {
    lift.push_back(evaluate(c, c.lift[size_t(k)], x));
    if (lift.back().state == State::absent) return;
    fault |= lift.back().state == State::fault;
  }
  if (fault) complain("a live term faults");
  At own;
  for (int k : a.axes) own.push_back(x[size_t(k)]);
  if (!c.monoid) {
    a.state[own] = lift;
    return;
  }
  auto place = [&](int64_t component) {
    return size_t(std::find(a.seen.begin(), a.seen.end(), int(component)) - a.seen.begin());
  };
  auto combined = [&](const std::vector<Value>& l, const std::vector<Value>& r) {
    std::vector<Value> out;
    for (int k : a.seen)
      out.push_back(expr::evaluate(g_.pool, c.monoid->combine[size_t(k)], [&](const expr::Term& t) {
        return (t.whole % 2 ? r : l)[place(t.whole / 2)];
      }));
    return out;
  };
  std::vector<Value> unit;
  for (int k : a.seen) unit.push_back(c.monoid->identity[size_t(k)]);
  auto& s = a.state.try_emplace(own, unit).first->second;
  s = combined(s, combined(unit, lift));
}

// ---- members
// ------------------------------------------------------------------------------------------------------
std::vector<Machine::Accumulator> Machine::accumulators(const Comp& c) const {
  std::vector<Accumulator> out;
  for (size_t k = 0; k < c.outs.size(); ++k) {
    auto it = std::find_if(out.begin(), out.end(), [&](auto& a) { return a.axes == c.outs[k].axes; });
    if (it == out.end()) {
      it = out.insert(out.end(), {c.outs[k].axes, {}, {}, {}});
      for (size_t s = 0; s < c.outs.size(); ++s)
        if (std::all_of(c.outs[s].axes.begin(), c.outs[s].axes.end(), [&](int a) {
              return std::find(it->axes.begin(), it->axes.end(), a) != it->axes.end();
            }))
          it->seen.push_back(int(s));
    }
    it->ports.push_back(int(k));
  }
  return out;
}

void Machine::update(const plan::Member& m, std::vector<Accumulator>& acc) {
  const Comp& c = *g_[m.node].comp();
  for (auto& a : acc) {
    At lo, hi;
    for (int k = 0; k < c.axis_count(); ++k) {
      const bool missing =
          size_t(k) < c.points.size() && std::find(a.axes.begin(), a.axes.end(), k) == a.axes.end();
      const int core = m.axis[size_t(k)];
      if (missing && core >= 0) complain("a core axis that a component lacks: " + g_.label({m.node, 0}));
      lo.push_back(missing || core < 0 ? 0 : lo_[size_t(core)]);
      hi.push_back(missing ? 1 : core < 0 ? c.extent(k).value() : hi_[size_t(core)]);
    }
    each(lo, hi, [&](const At& x) { fold_term(c, a, x); });
  }
}

void Machine::flush(const plan::Member& m, std::vector<Accumulator>& acc) {
  const Comp& c = *g_[m.node].comp();
  for (auto& a : acc)
    for (int port : a.ports) {
      At lo, hi;
      for (int k : a.axes) {
        const int core = m.axis[size_t(k)];
        const bool part = core >= 0 && (group_->role[size_t(core)] == Role::grid || m.each_tile);
        lo.push_back(part ? lo_[size_t(core)] : 0);
        hi.push_back(part ? hi_[size_t(core)] : c.points[size_t(k)].value());
      }
      const size_t s = size_t(std::find(a.seen.begin(), a.seen.end(), port) - a.seen.begin());
      each(lo, hi, [&](const At& own) {
        auto it = a.state.find(own);
        const Value none = c.monoid ? c.monoid->identity[size_t(port)]
                                    : Value{g_.type({m.node, uint32_t(port)}), State::absent, 0, 0};
        At x(size_t(c.axis_count()), 0);
        for (size_t d = 0; d < own.size(); ++d) x[size_t(a.axes[d])] = own[d];
        store(m.node, uint32_t(port), x, it == a.state.end() ? none : it->second[s], m.flush);
      });
    }
  for (auto& a : acc) a.state.clear();
}

void Machine::store(NodeId id, uint32_t port, const At& x, Value v, Flush how) {
  const Comp& c = *g_[id].comp();
  const ir::Out& o = c.outs[port];
  const Port q{id, port};
  const plan::Buffer* b = p_.buffer(q);
  if (v.state == State::fault) complain("a fault is stored: " + g_.label(q));
  At at;
  if (o.view.empty()) {
    for (int a : o.axes) at.push_back(x[size_t(a)]);
  } else {
    if (v.state != State::present) return;
    for (auto& f : o.view) at.push_back(ir::value(f, x));
  }
  auto put = [&](Cells& cells) {
    const auto k = flat(cells.shape, at);
    if (!k) return complain("a store outside " + g_.label(q));
    if (!cells.reader.empty() && cells.reader[*k] != -1 && cells.reader[*k] != workgroup_)
      complain("another workgroup reads what " + g_.label(q) + " overwrites");
    if (how == Flush::store) {
      if (cells.written[*k] && o.view.empty()) complain("stored twice: " + g_.label(q));
      cells.value[*k] = v;
    } else {
      cells.value[*k] = add(cells.value[*k], v);
    }
    cells.written[*k] = 1;
  };
  if (auto it = local_.find(q); it != local_.end() && how == Flush::store) put(it->second);
  if (!b) return;
  if (b->masked) {
    const Value w = evaluate(c, b->when, x);
    if (w.state != State::present || !w.i) return;
  }
  put(memory_.at(q));
}

// ---- steps
// --------------------------------------------------------------------------------------------------------
void Machine::open(NodeId id, Flush how) {
  for (uint32_t port = 0; port < g_.ports(id); ++port) {
    const Port q{id, port};
    const plan::Buffer* b = p_.buffer(q);
    if (!b) continue;
    if (b->overwrites) {
      auto it = memory_.find({*b->overwrites, 0});
      if (it == memory_.end()) return complain("donated twice: " + g_.label({*b->overwrites, 0}));
      Cells taken = std::move(it->second);
      memory_.erase(it);
      taken.written.assign(taken.written.size(), 0); // in this step: what is overwritten
      taken.reader.assign(taken.written.size(), -1);
      memory_[q] = std::move(taken);
      taken_[*b->overwrites] = id;
      continue;
    }
    Cells c{eval::bound(g_.shape(q)), {}, {}};
    const size_t n = size_t(eval::volume(c.shape));
    if (c.shape != b->shape) complain("shape of the buffer of " + g_.label(q));
    if (!b->output) largest_ = std::max(largest_, int64_t(n));
    const bool view = g_[id].comp() && !g_[id].comp()->outs[port].view.empty();
    const expr::Type type = g_.type(q);
    const State state = view ? State::absent : State::present;
    c.value.assign(n, how == Flush::store ? Value{type, state, std::nan(""), INT64_MIN}
                                          : Value{type, State::present, 0, 0});
    c.written.assign(n, how != Flush::store || view);
    memory_[q] = std::move(c);
  }
}

void Machine::run_group(const plan::Group& g) {
  group_ = &g;
  for (auto& m : g.members) open(m.node, m.flush);
  for (auto& e : g.epilogues) open(e.node, Flush::store);
  const size_t axes = g.extent.size();
  At grid(axes, 1), loop(axes, 1), zero(axes, 0);
  lo_.assign(axes, 0);
  hi_.assign(axes, 0);
  for (size_t k = 0; k < axes; ++k) (g.role[k] == Role::grid ? grid : loop)[k] = tiles(g.extent[k], tile_);
  std::vector<At> workgroups;
  each(zero, grid, [&](const At& w) { workgroups.push_back(w); });
  std::reverse(workgroups.begin(), workgroups.end());
  for (auto& w : workgroups) {
    ++workgroup_;
    local_.clear();
    auto own = [&](NodeId id) {
      for (uint32_t port = 0; port < g_.ports(id); ++port) {
        Cells c{eval::bound(g_.shape({id, port})), {}, {}};
        c.value.assign(size_t(eval::volume(c.shape)),
                       {g_.type({id, port}), State::present, std::nan(""), INT64_MIN});
        c.written.assign(c.value.size(), 0);
        local_[{id, port}] = std::move(c);
      }
    };
    for (auto& m : g.members) own(m.node);
    for (auto& e : g.epilogues) own(e.node);
    auto at_tile = [&](size_t k, int64_t t) {
      lo_[k] = t * tile_;
      hi_[k] = std::min(g.extent[k], lo_[k] + tile_);
    };
    std::vector<std::vector<Accumulator>> acc;
    for (auto& m : g.members) acc.push_back(accumulators(*g_[m.node].comp()));
    for (size_t k = 0; k < axes; ++k) at_tile(k, g.role[k] == Role::grid ? w[k] : 0);
    each(zero, loop, [&](const At& l) {
      for (size_t k = 0; k < axes; ++k)
        if (g.role[k] == Role::looped) at_tile(k, l[k]);
      tile_values_.clear();
      for (size_t m = 0; m < acc.size(); ++m) {
        update(g.members[m], acc[m]);
        if (g.members[m].each_tile) flush(g.members[m], acc[m]);
      }
    });
    tile_values_.clear();
    for (size_t m = 0; m < acc.size(); ++m)
      if (!g.members[m].each_tile) flush(g.members[m], acc[m]);
    for (auto& e : g.epilogues) {
      const Comp& c = *g_[e.node].comp();
      if (c.monoid) { // its folds are private: whole here
        const plan::Member m{e.node, e.axis, Flush::store, false};
        auto whole = accumulators(c);
        update(m, whole);
        flush(m, whole);
        continue;
      }
      At lo, hi;
      for (size_t a = 0; a < e.axis.size(); ++a) {
        const int core = e.axis[a];
        if (core >= 0 && g.role[size_t(core)] != Role::grid) complain("an epilogue on a looped axis");
        lo.push_back(core < 0 ? 0 : lo_[size_t(core)]);
        hi.push_back(core < 0 ? c.points[a].value() : hi_[size_t(core)]);
      }
      each(lo, hi, [&](const At& x) {
        const Value none{g_.type({e.node, 0}), State::absent, 0, 0};
        store(e.node, 0, x, inside(c, c.domain, x) ? evaluate(c, c.lift[0], x) : none, Flush::store);
      });
    }
  }
  local_.clear();
  group_ = nullptr;
  for (auto& b : p_.buffers)
    if (b.overwrites && !done_.count(b.of))
      if (auto it = memory_.find(b.of); it != memory_.end()) {
        Cells& c = it->second;
        if (b.masked) c.written.assign(c.written.size(), 1); // the rest keeps the old value
        c.reader.clear();
        done_.insert(b.of);
      }
}

void Machine::run_recur(const plan::Step& s) {
  const ir::Recur& r = *g_[*s.recur].recur();
  const ir::Graph& step = *r.step;
  auto like = [&](NodeId in) { return eval::Array(eval::bound(step.shape({in, 0})), step.type({in, 0})); };
  std::vector<eval::Array> state;
  std::vector<Cells> emits;
  for (auto& x : r.states)
    state.push_back(x.init ? array(memory_.at(*x.init), g_.type(*x.init)) : like(x.in));
  for (auto& e : r.emits) {
    Cells c{eval::bound(e.shape), {}, {}};
    c.value.assign(size_t(eval::volume(c.shape)), {step.type(e.out), State::absent, 0, 0});
    c.written.assign(c.value.size(), 1);
    emits.push_back(std::move(c));
  }
  auto points = [](const At& shape, const std::function<void(const At&, const At&)>& f) {
    each(At(shape.size(), 0), shape, [&](const At& x) { f(x, x); });
  };
  const int64_t steps = r.steps.value();
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = r.reverse ? steps - 1 - k : k;
    const bool live = std::any_of(r.live.begin(), r.live.end(), [&](const ir::Conj& c) {
      return std::all_of(c.begin(), c.end(), [&](const ir::Form& f) { return ir::value(f, {t}) >= 0; });
    });
    if (!live) continue;
    auto over = [&](const std::vector<ir::Form>& view, const At& x) {
      At local{t}, at;
      local.insert(local.end(), x.begin(), x.end());
      for (auto& f : view) at.push_back(ir::value(f, local));
      return at;
    };
    eval::Inputs in{{step[r.time].name, eval::indices({}, {t})}};
    for (size_t q = 0; q < state.size(); ++q) in[step[r.states[q].in].name] = state[q];
    for (auto& a : r.args) {
      eval::Array window = like(a.in);
      int64_t n = 0;
      points(window.shape, [&](const At& x, const At&) { window.set(n++, read(a.from, over(a.view, x))); });
      in[step[a.in].name] = window;
    }
    Machine body(*s.body, tile_, fills_);
    body.run(in);
    for (auto& c : body.complaints()) complain("in the body: " + c);
    auto got = [&](Port q) { return step[q.node].input() ? in.at(step[q.node].name) : body.port(q); };
    for (size_t e = 0; e < emits.size(); ++e) {
      const eval::Array a = got(r.emits[e].out);
      int64_t n = 0;
      points(a.shape, [&](const At& x, const At&) {
        const auto to = flat(emits[e].shape, over(r.emits[e].view, x));
        if (to && a.at(n).state == State::present) emits[e].value[*to] = a.at(n);
        ++n;
      });
    }
    std::vector<eval::Array> next;
    for (auto& x : r.states) next.push_back(got(x.out));
    state = std::move(next);
  }
  for (size_t q = 0; q < state.size(); ++q) memory_[{*s.recur, uint32_t(q)}] = cells(state[q]);
  for (size_t e = 0; e < emits.size(); ++e)
    if (p_.buffer({*s.recur, uint32_t(state.size() + e)}))
      memory_[{*s.recur, uint32_t(state.size() + e)}] = std::move(emits[e]);
}

void Machine::check_arena() {
  auto bytes = [](const plan::Buffer& b) { return (eval::volume(b.shape) * ir::row(b.format).bits + 7) / 8; };
  for (auto& a : p_.buffers) {
    if (a.offset < 0) {
      if (!a.output && !a.overwrites) complain("no place for " + g_.label(a.of));
      continue;
    }
    if (a.offset % 64 || a.offset + bytes(a) > p_.arena_bytes) complain("place of " + g_.label(a.of));
    for (auto& b : p_.buffers)
      if (&a < &b && b.offset >= 0 && plan::together(a, b) &&
          a.offset < b.offset + bytes(b) && b.offset < a.offset + bytes(a))
        complain(g_.label(a.of) + " and " + g_.label(b.of) + " live in the same place");
  }
}

// Each buffer that this step completed is the oracle's value of its port.
void Machine::check_step(int step, eval::Oracle& truth) {
  for (auto& b : p_.buffers) {
    if (b.first != step && b.again != step) continue;
    auto it = memory_.find(b.of);
    if (it == memory_.end()) {
      complain("a buffer that its step does not write: " + g_.label(b.of));
      continue;
    }
    if (std::find(it->second.written.begin(), it->second.written.end(), 0) != it->second.written.end())
      complain("not written whole: " + g_.label(b.of));
    const double off = eval::difference(array(it->second, g_.type(b.of)), truth.port(b.of));
    if (!(off < 1e-10)) complain(g_.label(b.of) + " differs from the oracle by " + std::to_string(off));
  }
}

void Machine::run(const eval::Inputs& inputs) {
  check_arena();
  eval::Oracle truth(g_, inputs);
  for (NodeId id = 0; id < g_.nodes.size(); ++id)
    if (g_[id].input()) memory_[{id, 0}] = cells(inputs.at(g_[id].name));
  for (size_t s = 0; s < p_.steps.size(); ++s) {
    p_.steps[s].recur ? run_recur(p_.steps[s]) : run_group(p_.steps[s].group);
    check_step(int(s), truth);
    for (auto& b : p_.buffers)
      if (b.last == int(s) || b.away == int(s)) memory_.erase(b.of);
  }
}

eval::Array Machine::port(Port q) const {
  auto it = memory_.find(q);
  check(it != memory_.end(), "an output that is stored nowhere: " + g_.label(q));
  return array(it->second, g_.type(q));
}

eval::Array Machine::output(const std::string& name) const {
  for (auto& o : g_.outputs)
    if (o.name == name) return port(o.port);
  check(false, "no output " + name);
  return {};
}

} // namespace tang::test
