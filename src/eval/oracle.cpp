#include "tang/eval/oracle.hpp"

#include <cmath>
#include <limits>

#include "tang/base/match.hpp"
#include "tang/eval/fold.hpp"

namespace tang::eval {

using ir::NodeId;
using ir::Port;

struct Oracle::State {
  const ir::Graph& g;
  Inputs inputs;
  Options options;
  std::vector<std::vector<Array>> values; // [node][port]; empty: not computed
  int64_t terms = 0;
  std::map<std::string, NodeId> named = {};
  std::map<NodeId, std::unique_ptr<Oracle>> steps = {};

  std::map<Port, Array> placed = {};

  const Array& at(Port p) {
    if (auto it = placed.find(p); it != placed.end()) return it->second;
    if (values[p.node].empty()) compute_node(p.node);
    return values[p.node][p.port];
  }

  Source source(Port p) {
    Source s{&at(p), {}};
    s.strides.assign(s.array->shape.size(), 1);
    for (size_t d = s.strides.size(); d-- > 1;) s.strides[d - 1] = s.strides[d] * s.array->shape[d];
    return s;
  }

  void compute_node(NodeId id) {
    const ir::Node& n = g[id];
    std::visit(Match{[&](const ir::Input& in) { bind(id, n, in); },
                     [&](const ir::Comp& c) {
                       std::vector<Source> sources;
                       for (auto& a : c.args) sources.push_back(source(a.from));
                       auto it = options.numerics.find(id);
                       const Numeric numeric =
                           it != options.numerics.end() ? it->second : Numeric{{}, {}, options.order};
                       terms += compute(g, id, sources, numeric, options, values[id]);
                     },
                     [&](const ir::Recur& r) { recur(id, r); }},
               n.what);
  }

  void bind(NodeId id, const ir::Node& n, const ir::Input& in) {
    auto it = inputs.find(n.name);
    if (it == inputs.end())
      throw Error(n.where, "input '" + n.name + "' has no data", {}, "bind an array to it");
    const auto shape = bound(in.shape);
    auto dims = [](const std::vector<int64_t>& s) {
      std::string out = "[";
      for (size_t k = 0; k < s.size(); ++k) out += (k ? ", " : "") + std::to_string(s[k]);
      return out + "]";
    };
    if (it->second.shape != shape)
      throw Error(n.where, "input '" + n.name + "' is bound to an array of shape " + dims(it->second.shape),
                  {{"declared " + dims(shape), n.where}}, "bind an array of the declared shape");
    if (it->second.type != ir::type_of(in.format))
      throw Error(n.where, "input '" + n.name + "' is bound to " + expr::name(it->second.type) + " values",
                  {{std::string("declared ") + row(in.format).name, n.where}}, "convert the array");
    if (in.sorted) check_sorted(n, it->second);
    values[id] = {it->second};
  }

  static void check_sorted(const ir::Node& n, const Array& a) {
    const int64_t row = a.shape.back();
    for (int64_t k = 1; k < a.size(); ++k)
      if (k % row && a.i[size_t(k)] < a.i[size_t(k - 1)])
        throw Error(n.where, "input '" + n.name + "' is declared sorted and is not",
                    {{"entry " + std::to_string(k) + " is " + std::to_string(a.i[size_t(k)]) + " after " +
                          std::to_string(a.i[size_t(k - 1)]),
                      n.where}},
                    "sort the keys, and what lies beside them, or drop set_sorted");
  }

  static Array zeros(const ir::Graph& step, NodeId in) {
    return Array(bound(step.shape({in, 0})), step.type({in, 0}));
  }

  // Reads a source through a view over (time, local axes) into the step's input; out of range is a fault
  // where it is used.
  static Array window(const Source& src, const std::vector<ir::Form>& view, Array like, int64_t t) {
    std::vector<int64_t> at(like.shape.size() + 1, 0);
    at[0] = t;
    for (int64_t flat = 0; flat < like.size(); ++flat) {
      int64_t rest = flat;
      for (size_t d = like.shape.size(); d-- > 0;) {
        at[d + 1] = rest % like.shape[d];
        rest /= like.shape[d];
      }
      int64_t from = 0;
      bool inside = true;
      for (size_t d = 0; d < view.size(); ++d) {
        const int64_t x = ir::value(view[d], at);
        inside &= x >= 0 && x < src.array->shape[d];
        from += x * src.strides[d];
      }
      like.set(flat, inside ? src.array->at(from) : Value{like.type, expr::State::fault, 0, 0});
    }
    return like;
  }

  static void emit(const Array& value, const std::vector<ir::Form>& view, int64_t t, Array& out) {
    std::vector<int64_t> at(value.shape.size() + 1, 0);
    at[0] = t;
    for (int64_t flat = 0; flat < value.size(); ++flat) {
      int64_t rest = flat;
      for (size_t d = value.shape.size(); d-- > 0;) {
        at[d + 1] = rest % value.shape[d];
        rest /= value.shape[d];
      }
      int64_t to = 0;
      bool inside = true;
      for (size_t d = 0; d < view.size(); ++d) {
        const int64_t x = ir::value(view[d], at);
        inside &= x >= 0 && x < out.shape[d];
        to = to * out.shape[d] + x;
      }
      if (inside && value.at(flat).state == expr::State::present) out.set(to, value.at(flat));
    }
  }

  void recur(NodeId id, const ir::Recur& r) {
    const ir::Graph& step = *r.step;
    std::vector<Array> state, out;
    for (auto& s : r.states) state.push_back(s.init ? at(*s.init) : zeros(step, s.in));
    for (auto& e : r.emits) {
      out.emplace_back(bound(e.shape), step.type(e.out));
      out.back().state.assign(size_t(out.back().size()), uint8_t(expr::State::absent));
    }
    std::vector<Source> sources;
    for (auto& a : r.args) sources.push_back(source(a.from));
    Inputs feed;
    for (auto& s : r.states) feed.emplace(step[s.in].name, Array());
    for (auto& a : r.args) feed.emplace(step[a.in].name, Array());
    feed.emplace(step[r.time].name, Array());
    Options within = options;
    within.numerics.clear(); // they name nodes of this graph, not of the step
    Oracle inner(step, feed, within);
    auto moves = [](const std::vector<ir::Form>& view) {
      return std::any_of(view.begin(), view.end(), [](const ir::Form& f) { return f.axis(0) != 0; });
    };
    auto cut = [&](size_t a, int64_t t) {
      inner.rebind(step[r.args[a].in].name, window(sources[a], r.args[a].view, zeros(step, r.args[a].in), t));
    };
    const int64_t steps = r.steps.value();
    for (size_t a = 0; a < r.args.size(); ++a)
      if (!moves(r.args[a].view)) cut(a, 0);
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t t = r.reverse ? steps - 1 - k : k;
      const bool live = std::any_of(r.live.begin(), r.live.end(), [&](const ir::Conj& c) {
        return std::all_of(c.begin(), c.end(), [&](const ir::Form& f) { return ir::value(f, {t}) >= 0; });
      });
      if (!live) continue;
      inner.rebind(step[r.time].name, indices({}, {t}));
      for (size_t s = 0; s < r.states.size(); ++s) inner.rebind(step[r.states[s].in].name, state[s]);
      for (size_t a = 0; a < r.args.size(); ++a)
        if (moves(r.args[a].view)) cut(a, t);
      for (size_t e = 0; e < r.emits.size(); ++e)
        emit(inner.port(r.emits[e].out), r.emits[e].view, t, out[e]);
      std::vector<Array> next;
      for (auto& s : r.states) next.push_back(inner.port(s.out));
      state = std::move(next);
    }
    terms += inner.terms();
    for (auto& a : out)
      if (a.all_present()) a.state.clear();
    state.insert(state.end(), out.begin(), out.end());
    values[id] = std::move(state);
  }
};

Oracle::Oracle(const ir::Graph& g, Inputs inputs, Options options)
    : state_(new State{g, std::move(inputs), std::move(options),
                       std::vector<std::vector<Array>>(g.nodes.size())}) {
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].input()) state_->named[g[id].name] = id;
}

Oracle::~Oracle() = default;

const Array& Oracle::port(Port p) { return state_->at(p); }

void Oracle::place(Port p, Array value) { state_->placed[p] = std::move(value); }

int64_t Oracle::terms() const { return state_->terms; }

void Oracle::rebind(const std::string& input, Array value) {
  auto it = state_->named.find(input);
  check(it != state_->named.end(), "rebind of an input that does not exist: " + input);
  state_->inputs[input] = std::move(value);
  std::vector<char> stale(state_->g.nodes.size(), 0);
  stale[it->second] = 1;
  for (NodeId id = 0; id < stale.size(); ++id) {
    for (Port p : ir::sources(state_->g, id)) stale[id] |= stale[p.node];
    if (stale[id]) state_->values[id].clear();
  }
}

std::map<std::string, Array> run(const ir::Graph& g, const Inputs& inputs, const Options& options) {
  Oracle o(g, inputs, options);
  std::map<std::string, Array> out;
  for (auto& x : g.outputs) out[x.name] = o.port(x.port);
  return out;
}

double difference(const Array& a, const Array& b) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (a.shape != b.shape || a.type != b.type) return inf;
  double worst = 0, scale = 1;
  for (int64_t k = 0; k < a.size(); ++k) {
    const Value x = a.at(k), y = b.at(k);
    if (x.state != y.state) return inf;
    if (x.state != expr::State::present) continue;
    if (a.type != Type::real) {
      if (x.i != y.i) return inf;
      continue;
    }
    if (x.r == y.r || (std::isnan(x.r) && std::isnan(y.r))) continue;
    const double gap = std::fabs(x.r - y.r);
    if (!(gap < inf)) return inf;
    worst = std::max(worst, gap);
    if (std::isfinite(y.r)) scale = std::max(scale, std::fabs(y.r));
  }
  return worst / scale;
}

} // namespace tang::eval
