// Chunk: a recurrence whose step is affine in its state runs in chunks of C steps. Inside a chunk nothing
// waits for the state that it starts from: S_i = D(i, start) S_start + sum_(j <= i) D(i, j) c_j, where D(i,
// j) is the product of the factors after j up to i. Between chunks a recurrence of n steps carries the
// states. Decays are products, never ratios of products or of exponentials of sums: what underflows is 0.
#include <algorithm>

#include "tang/expr/build.hpp"
#include "tang/ir/recurrence.hpp"
#include "tang/ir/surface.hpp"
#include "tang/rewrite/affine_step.hpp"
#include "tang/rewrite/always_there.hpp"
#include "tang/rewrite/directed.hpp"
#include "tang/rewrite/import.hpp"
#include "tang/rewrite/loop.hpp"
#include "tang/rewrite/measure.hpp"
#include "tang/rewrite/over_time.hpp"
#include "tang/rewrite/terms.hpp"
#include "tang/rewrite/times.hpp"

namespace tang::rewrite {

using ir::Extent;
using ir::Recur;
using Shape = std::vector<Extent>;

namespace {
double words(const Shape& shape, const ir::Symbols& symbols) { return nominal_size(shape, symbols); }

Shape joined(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Form> joined(std::vector<Form> a, const std::vector<Form>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A state whose values at every time are known: in the chunk n, S = decay(n, i) start(n) + local(n, i).
struct Known {
  AffineStep a;
  bool sums = false;   // `local` is a sum over the steps of the chunk
  Port factor;         // g [n, i, axes of g]
  Port decay[2];       // [n, i, axes of g], before and after step i
  Port local[2];       // [n, i, dims]
  Port decays[2];      // D [n, i, j, axes of g], where `sums`
  Port end_decay, end; // of the whole chunk: [n, axes of g], [n, dims]
  Port start;          // [n, dims]

  std::vector<Form> along(const std::vector<Form>& dims) const { // the axes of g of a place in the state
    std::vector<Form> out;
    for (int d : a.axes) out.push_back(dims[size_t(d)]);
    return out;
  }

  Shape along(const Shape& dims) const {
    Shape out;
    for (int d : a.axes) out.push_back(dims[size_t(d)]);
    return out;
  }
};

class Chunker {
public:
  // `there`: of each argument, whether all of its source exists.
  Chunker(Graph& to, const Recur& r, int64_t block, const Node& like, const std::vector<char>& there)
      : to_(to), r_(r), block_(block), like_(like), there_(there), chunks_(r.steps.value() / block),
        step_(*r.step), over_(to, step_, r, block) {
    over_.other = [this](Port p) { return sum_of_parts(p); };
  }

  Result<std::vector<Port>> run() {
    if (const std::string why = unfit(); !why.empty()) return Refusal{why};
    std::vector<Port> out(r_.states.size());
    for (size_t left = r_.states.size(); left;) {
      std::string why;
      const std::optional<size_t> k = next_to_solve(why);
      if (!k) return Refusal{why};
      out[*k] = solve(*k);
      --left;
    }
    for (auto& e : r_.emits) out.push_back(emitted(e));
    return out;
  }

private:
  int64_t first() const { return r_.reverse ? block_ - 1 : 0; }

  int64_t last() const { return r_.reverse ? 0 : block_ - 1; }

  ir::Format clock() const { return (*r_.step)[r_.time].input()->format; }

  Port old(size_t k) const { return {r_.states[k].in, 0}; }

  std::string unfit() const {
    for (auto& s : r_.states) {
      const ir::Input& in = *step_[s.in].input();
      if (ir::type_of(in.format) != Type::real) return step_.label({s.in, 0}) + " is no real state";
      if (in.format != ir::default_format(Type::real) && in.format != ir::Format::f64)
        return step_.label({s.in, 0}) + " is rounded at every step";
    }
    for (NodeId id = 0; id < step_.nodes.size(); ++id)
      if (step_[id].recur()) return "its step has a recurrence of its own";
    return "";
  }

  // A state that no unsolved one moves, solved symbolically; or why there is none.
  std::optional<size_t> next_to_solve(std::string& why) {
    for (size_t k = 0; k < r_.states.size(); ++k) {
      if (known_.count(k)) continue;
      std::set<Port> others;
      for (size_t x = 0; x < r_.states.size(); ++x)
        if (x != k && !known_.count(x)) others.insert(old(x));
      if (depending(step_, others).count(r_.states[k].out)) {
        if (why.empty()) why = "other states move " + step_.label(old(k));
        continue;
      }
      auto a = affine_step(step_, r_, k);
      if (a && a->correction) a = Refusal{step_.label(a->correction->port) + " is fed back"};
      if (a && !finds_all(a->next))
        a = Refusal{"the next " + step_.label(old(k)) + " reads what may be missing"};
      if (!a) {
        why = a.why();
        return {};
      }
      known_[k].a = std::move(*a);
      return k;
    }
    return {};
  }

  // Every read of the step's node finds something, whatever the time.
  bool finds_all(const Comp& n) {
    return std::all_of(n.args.begin(), n.args.end(), [&](const Arg& a) {
      if (!lies_inside(a.view, n.extents(), step_.shape(a.from), step_.symbols)) return false;
      for (size_t k = 0; k < r_.args.size(); ++k) {
        const Recur::Read& x = r_.args[k];
        if (!(a.from == Port{x.in, 0})) continue;
        const Shape extents = joined(Shape{r_.steps}, step_.shape(a.from));
        return there_[k] && lies_inside(x.view, extents, to_.shape(x.from), to_.symbols);
      }
      return always_there(step_, a.from);
    });
  }

  Port solve(size_t k) {
    Known& s = known_.at(k);
    const Shape& dims = s.a.next.points;
    s.sums = double(block_) * words(s.along(dims), to_.symbols) <= words(dims, to_.symbols);
    s.factor = over_chunks(s, s.a.factor, s.a.axes, "factor");
    s.sums ? sums(s) : scans(s);
    const Port end = ends(s, r_.states[k].init);
    over_.set(old(k), whole(s, 0));
    over_.set(r_.states[k].out, whole(s, 1));
    return end;
  }

  // A term of the next state at every time: [n, i, those dimensions of the state].
  Port over_chunks(const Known& s, Id term, const std::vector<int>& dims, const char* name) {
    Shape local;
    for (int d : dims) local.push_back(s.a.next.points[size_t(d)]);
    MapOf m(to_, over_.shape(local));
    OverTime::Moved moved(over_, s.a.next, m.n, {ir::axis(0), ir::axis(1)}, [&](int d) {
      return ir::axis(2 + int(std::find(dims.begin(), dims.end(), d) - dims.begin()));
    });
    return m.add(moved.body(term), name);
  }

  Shape in_chunks(Shape local) const { return joined(Shape{Extent(chunks_)}, local); }

  // An array [n, i, ..] as an argument of a recurrence over i with the chunks side by side; and an emit.
  std::vector<Form> beside(size_t local) const { return joined({ir::axis(1), ir::axis(0)}, every(local, 2)); }

  // Decays of each step by the later ones of its chunk, one product a step.
  void sums(Known& s) {
    const Shape along = s.along(s.a.next.points), lines = in_chunks(joined(Shape{Extent(block_)}, along));
    Loop loop(Extent(block_), r_.reverse, clock(), to_.symbols);
    const Port old = loop.state("decays", lines);
    const Port g = loop.arg("factor", in_chunks(along), s.factor, beside(along.size()));
    MapOf m(loop.step, lines);
    Pool& p = loop.step.pool;
    const Id now = p.make(Op::equal, {m.coordinate(1), m.at(loop.time(), {})});
    const Id later = p.make(
        Op::mul, {m.at(g, joined({ir::axis(0)}, every(along.size(), 2))), m.at(old, every(lines.size()))});
    const Port next = m.add(p.make(Op::select, {now, p.literal(1.0), later}), "decays");
    loop.next(next);
    for (Port x : {old, next})
      loop.emit(x, joined({ir::axis(1), ir::axis(0)}, every(lines.size() - 1, 2)),
                over_.shape(joined(Shape{Extent(block_)}, along)));
    const NodeId id = loop.add_to(to_, like_);
    s.decays[0] = {id, 1}, s.decays[1] = {id, 2};
    from_start(s);
    for (int after : {0, 1}) s.local[after] = summed(s, after, false);
    s.end = summed(s, 1, true);
  }

  // What is left of a chunk's start: its decay by all steps up to i.
  void from_start(Known& s) {
    const Shape along = s.along(s.a.next.points);
    const auto decayed = [&](MapOf& m, int after, const Form& i, size_t lead) {
      const auto local = every(along.size(), int(lead));
      const Form n = ir::axis(0), start = ir::constant(first());
      return to_.pool.make(Op::mul, {m.at(s.decays[after], joined({n, i, start}, local)),
                                     m.at(s.factor, joined({n, start}, local))});
    };
    MapOf before(to_, over_.shape(along)), after = before, end(to_, in_chunks(along));
    const Id at_start =
        to_.pool.make(Op::equal, {before.coordinate(1), to_.pool.literal(expr::whole(first()))});
    s.decay[0] = before.add(
        to_.pool.make(Op::select, {at_start, to_.pool.literal(1.0), decayed(before, 0, ir::axis(1), 2)}),
        "decay");
    s.decay[1] = after.add(decayed(after, 1, ir::axis(1), 2), "decay");
    s.end_decay = end.add(decayed(end, 1, ir::constant(last()), 1), "decay");
  }

  // What the chunk's own steps made of the state: up to step i, or at the end of the chunk.
  Port summed(const Known& s, int after, bool at_end) {
    const Shape& dims = s.a.next.points;
    const int lead = at_end ? 1 : 2, j = lead + int(dims.size());
    Comp n;
    n.points = at_end ? in_chunks(dims) : over_.shape(dims);
    n.folds = {Extent(block_)};
    n.outs = {{}};
    for (int d = 0; d < j; ++d) n.outs[0].axes.push_back(d);
    const Form i = at_end ? ir::constant(last()) : ir::axis(1), gap = i - ir::axis(j);
    if (!at_end) n.domain = {{(r_.reverse ? -1 : 1) * gap + ir::constant(after ? 0 : -1)}};
    OverTime::Moved m(over_, s.a.next, n, {ir::axis(0), ir::axis(j)},
                      [lead](int d) { return ir::axis(lead + d); });
    const auto local = s.along(every(dims.size(), lead));
    const Id decay = read_leaf(to_.pool, Type::real,
                               add_read(n, {s.decays[after], joined({ir::axis(0), i, ir::axis(j)}, local)}));
    n.lift = {to_.pool.make(Op::mul, {decay, m.body(s.a.rest)})};
    const expr::E x{&to_.pool, to_.pool.leaf(Op::var, Type::real, 0)},
        y{&to_.pool, to_.pool.leaf(Op::var, Type::real, 1)};
    n.monoid = ir::Monoid{"sum", {expr::real(0)}, {(x + y).id}, true};
    return {to_.add({std::move(n), like_.name + " in a chunk", like_.where}), 0};
  }

  // The recurrence itself from nothing, and the decay of what it started from, all chunks side by side.
  void scans(Known& s) {
    const Shape& dims = s.a.next.points;
    const Shape along = s.along(dims);
    std::vector<int> all;
    for (size_t d = 0; d < dims.size(); ++d) all.push_back(int(d));
    const Port added = over_chunks(s, s.a.rest, all, "added");
    MapOf one(to_, in_chunks(along));
    const Port ones = one.add(to_.pool.literal(1.0), "one");
    Loop loop(Extent(block_), r_.reverse, clock(), to_.symbols);
    const Port decay = loop.state("decay", in_chunks(along), ones),
               local = loop.state("local", in_chunks(dims));
    const Port g = loop.arg("factor", in_chunks(along), s.factor, beside(along.size()));
    const Port c = loop.arg("added", in_chunks(dims), added, beside(dims.size()));
    MapOf e(loop.step, in_chunks(along)), l(loop.step, in_chunks(dims));
    Pool& p = loop.step.pool;
    const auto here = every(dims.size() + 1), at = every(along.size() + 1);
    const Port decays = e.add(p.make(Op::mul, {e.at(g, at), e.at(decay, at)}), "decay");
    const Id kept =
        p.make(Op::mul, {l.at(g, joined({ir::axis(0)}, s.along(every(dims.size(), 1)))), l.at(local, here)});
    const Port locals = l.add(p.make(Op::add, {kept, l.at(c, here)}), "local");
    loop.next(decays), loop.next(locals);
    for (Port x : {decay, decays}) loop.emit(x, beside(along.size()), over_.shape(along));
    for (Port x : {local, locals}) loop.emit(x, beside(dims.size()), over_.shape(dims));
    const NodeId id = loop.add_to(to_, like_);
    s.end_decay = {id, 0}, s.end = {id, 1};
    s.decay[0] = {id, 2}, s.decay[1] = {id, 3}, s.local[0] = {id, 4}, s.local[1] = {id, 5};
  }

  // From chunk to chunk; leaves what each starts from. The state after the last one.
  Port ends(Known& s, std::optional<Port> init) {
    const Shape& dims = s.a.next.points;
    const Shape along = s.along(dims);
    Loop loop(Extent(chunks_), r_.reverse, clock(), to_.symbols);
    const Port state = loop.state("start", dims, init);
    const Port e = loop.arg("decay", along, s.end_decay, every(along.size() + 1));
    const Port l = loop.arg("local", dims, s.end, every(dims.size() + 1));
    MapOf m(loop.step, dims);
    const auto here = every(dims.size());
    const Id kept = loop.step.pool.make(Op::mul, {m.at(e, s.along(here)), m.at(state, here)});
    loop.next(m.add(loop.step.pool.make(Op::add, {kept, m.at(l, here)}), "next"));
    loop.emit(state, every(dims.size() + 1), in_chunks(dims));
    const NodeId id = loop.add_to(to_, like_);
    s.start = {id, 1};
    return {id, 0};
  }

  // decay(n, i) start(n, ..) at a place of the state.
  Id carried(const Known& s, int after, MapOf& m, const std::vector<Form>& at) {
    const Form n = ir::axis(0), i = ir::axis(1);
    return to_.pool.make(Op::mul,
                         {m.at(s.decay[after], joined({n, i}, s.along(at))), m.at(s.start, joined({n}, at))});
  }

  Port whole(const Known& s, int after) {
    const Shape& dims = s.a.next.points;
    MapOf m(to_, over_.shape(dims));
    const Id start = carried(s, after, m, every(dims.size(), 2));
    return m.add(to_.pool.make(Op::add, {start, m.at(s.local[after], every(dims.size() + 2))}), like_.name);
  }

  // Which state a port of the step is, before or after the step.
  struct Is {
    const Known* state;
    int after;
  };

  std::map<Port, Is> states_known() const {
    std::map<Port, Is> out;
    for (auto& [k, s] : known_) {
      if (!s.sums) continue;
      out[r_.states[k].out] = {&s, 1};
      out[old(k)] = {&s, 0};
    }
    return out;
  }

  // A sum that is linear in states: of what they started from, of what the chunk added, and of the rest.
  std::optional<Port> sum_of_parts(Port port) {
    const Comp* c = step_[port.node].comp();
    if (!c || !is_plain_fold(step_.pool, *c, Op::add) || !c->outs[0].view.empty()) return {};
    const auto states = states_known();
    std::set<Port> leaves;
    for (auto& [p, is] : states) leaves.insert(p);
    if (leaves.count(port)) return {};
    const auto n = written_out(step_, *c, depending(step_, leaves), leaves);
    if (!n) return {};
    const std::set<int> reads = reads_of(step_.pool, *n, n->lift[0], leaves);
    const auto linear = linear_in(step_.pool, n->lift[0], reads);
    if (reads.empty() || !linear) return {};
    std::vector<Port> parts;
    if (!is_zero(step_.pool, linear->rest)) parts.push_back(part(*n, linear->rest, {}, port));
    for (int a : reads)
      for (bool start : {true, false})
        parts.push_back(part(
            *n, linear->factor.at(a),
            [&](MapOf& m, OverTime::Moved& moved) {
              const Arg& read = n->args[size_t(a)];
              std::vector<Form> at;
              for (auto& f : read.view) at.push_back(moved.form(f));
              const Is is = states.at(read.from);
              if (start) return carried(*is.state, is.after, m, at);
              return m.at(is.state->local[is.after], joined({ir::axis(0), ir::axis(1)}, at));
            },
            port));
    return added(parts, step_.label(port));
  }

  // The sum `n` of the step over factor * what `of` makes, at every time.
  Port part(const Comp& n, Id factor, const std::function<Id(MapOf&, OverTime::Moved&)>& of, Port port) {
    MapOf m(to_, over_.shape(n.points));
    m.n.folds = n.folds;
    OverTime::Moved moved(over_, n, m.n, {ir::axis(0), ir::axis(1)}, [](int a) { return ir::axis(a + 2); });
    m.n.domain = moved.domain(n.domain);
    m.n.outs[0].axes = {0, 1};
    for (int a : n.outs[0].axes) m.n.outs[0].axes.push_back(a + 2);
    Id value = moved.body(factor);
    if (of) value = to_.pool.make(Op::mul, {value, of(m, moved)});
    const expr::E x{&to_.pool, to_.pool.leaf(Op::var, Type::real, 0)},
        y{&to_.pool, to_.pool.leaf(Op::var, Type::real, 1)};
    m.n.monoid = ir::Monoid{"sum", {expr::real(0)}, {(x + y).id}, true};
    return m.add(value, step_.label(port));
  }

  Port added(const std::vector<Port>& parts, const std::string& name) {
    MapOf m(to_, to_.shape(parts[0]));
    Id total = m.at(parts[0], every(m.n.points.size()));
    for (size_t k = 1; k < parts.size(); ++k)
      total = to_.pool.make(Op::add, {total, m.at(parts[k], every(m.n.points.size()))});
    return m.add(total, name);
  }

  Port emitted(const Recur::Emit& e) {
    const Port from = over_.array(e.out);
    const Shape local = step_.shape(e.out);
    MapOf m(to_, over_.shape(local));
    const Id value = m.at(from, over_.varies(e.out) ? every(local.size() + 2) : every(local.size(), 2));
    for (auto& f : e.view)
      m.n.outs[0].view.push_back(ir::compose(f, [&](int a) {
        return a ? ir::axis(a + 1) : over_.time({ir::axis(0), ir::axis(1)});
      }));
    m.n.outs[0].shape = e.shape;
    return m.add(value, like_.name);
  }

  Graph& to_;
  const Recur& r_;
  const int64_t block_;
  const Node& like_;
  const std::vector<char>& there_;
  const int64_t chunks_;
  Graph step_; // its pool grows
  OverTime over_;
  std::map<size_t, Known> known_;
};
} // namespace

namespace {
// The recurrences that `wanted` names in chunks. One that cannot be leaves the reason in `why`.
Rewritten chunked(const Graph& g, const std::set<NodeId>& wanted, int64_t block, std::string& why) {
  Edit e(g);
  Graph before = g; // its pool may grow
  std::vector<std::string> what;
  for (NodeId k = 0; k < g.nodes.size(); ++k) {
    if (!e.live[k]) continue;
    Node n = e.node(k);
    if (!wanted.count(k)) {
      e.put(k, std::move(n));
      continue;
    }
    std::vector<char> there;
    for (auto& a : g[k].recur()->args) there.push_back(always_there(before, a.from));
    const auto chunks = [&](const Recur& r) { return Chunker(e.to, r, block, n, there).run(); };
    const auto ports = in_segments(e.to, *n.recur(), block, n, chunks);
    if (!ports) {
      why = g.label({k, 0}) + ": " + ports.why();
      e.put(k, std::move(n));
      continue;
    }
    for (uint32_t p = 0; p < ports->size(); ++p) e.set({k, p}, (*ports)[p]);
    what.push_back(g.label({k, 0}) + " in chunks of " + std::to_string(block));
  }
  return {e.finish(), std::move(what)};
}

std::string why_no_chunks(const Graph& g, NodeId id, int64_t block) {
  const std::string why = why_no_segments(g, id, block);
  if (!why.empty()) return why;
  return block < 2 || g[id].recur()->steps.value() < 2 * block ? g.label({id, 0}) + " is one chunk" : "";
}
} // namespace

Result<Rewritten> chunk(const Graph& g, NodeId id, int64_t block) {
  std::string why = why_no_chunks(g, id, block);
  if (!why.empty()) return Refusal{why};
  Rewritten out = chunked(g, {id}, block, why);
  if (out.what.empty()) return Refusal{why};
  return out;
}

Result<Rewritten> chunk_all(const Graph& g, int64_t block) {
  std::string why = "no recurrence";
  std::set<NodeId> wanted;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!g[id].recur()) continue;
    const std::string not_this = why_no_chunks(g, id, block);
    if (not_this.empty())
      wanted.insert(id);
    else
      why = not_this;
  }
  Rewritten out = chunked(g, wanted, block, why);
  if (out.what.empty()) return Refusal{why};
  return out;
}

namespace {
// Linear attention with a decay, and a running mean of its outputs: one sum in chunks, and one scan.
Graph chunk_witness() {
  ir::Builder b;
  auto q = b.input("q", {14, 4}), k = b.input("k", {14, 4}), v = b.input("v", {14, 3}),
       gate = b.input("gate", {14});
  auto rate = b.input("rate", {14, 3}), start = b.input("start", {4, 3});
  const ir::Axis t = ir::axis("t", Extent(14)), x = ir::axis("x", Extent(4)), c = ir::axis("c", Extent(3));
  const auto r =
      ir::recur(t, {ir::carried("S", start), ir::carried("mean", {Extent(3)})},
                [&](const std::vector<ir::Tensor>& old) -> ir::Step {
                  auto next = ir::map({x, c}, sigmoid(gate(t)) * old[0](x, c) + k(t, x) * v(t, c), "S");
                  auto out = ir::map({c}, sum(x, q(t, x) * next(x, c)), "out");
                  auto mean = ir::map({c}, rate(t, c) * old[1](c) + out(c), "mean");
                  return {{next, mean}, {out, ir::map({c}, tanh(old[1](c)))}};
                });
  b.output(r.states[0], "last");
  b.output(r.states[1], "last mean");
  b.output(r.emits[0], "out");
  b.output(r.emits[1], "means");
  return b.graph();
}
} // namespace

Rule chunk_rule() {
  auto apply = [](const Graph& g) -> Result<Rewritten> {
    std::string why;
    for (int64_t block : {4, 2}) {
      auto done = chunk_all(g, block);
      if (done) return done;
      why = done.why();
    }
    return Refusal{why};
  };
  return {"chunk",
          {"a recurrence S' = g S + c is, chunk by chunk, the product of the g times what the chunk starts "
           "from and the sum of each c times the product of the later g",
           "delta_unrolled", Law::algebraic},
          apply,
          chunk_witness,
          true};
}

} // namespace tang::rewrite
