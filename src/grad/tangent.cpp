#include "tang/grad/tangent.hpp"

#include "tang/expr/diff.hpp"
#include "tang/grad/adjoint.hpp"
#include "tang/grad/step.hpp"

namespace tang::diff {

using ir::Recur;

std::optional<Port> Tangents::of(Port p) const {
  auto it = tangents_.find(p);
  return it == tangents_.end() ? std::nullopt : std::optional(it->second);
}

void Tangents::comprehension(NodeId id, const std::set<Port>& varies) {
  const size_t components = g_[id].comp()->lift.size();
  for (uint32_t c = 0; c < components; ++c) {
    if (!varies.count({id, c}) || tangents_.count({id, c})) continue;
    Linear l = linearise(g_, id, c);
    std::map<Id, Id> along;
    for (int a = 0, n = int(l.at.args.size()); a < n; ++a) {
      const ir::Arg read = l.at.args[size_t(a)];
      auto it = tangents_.find(read.from);
      if (it == tangents_.end()) continue;
      along[rewrite::read_leaf(g_.pool, Type::real, a)] = read_at(g_, l.at, it->second, read.view);
    }
    std::optional<Id> sum;
    for (auto& part : l.parts) {
      const Id term = product(g_.pool, part.factor, expr::directional(g_.pool, part.value, along));
      sum = sum ? g_.pool.make(Op::add, {*sum, term}) : term;
    }
    const Id total = sum ? *sum : g_.pool.literal(0.0);
    l.at.lift = {l.when == expr::yes(g_.pool) ? total : g_.pool.make(Op::only, {l.when, total})};
    l.at.outs = {l.out};
    if (!l.map) l.at.monoid = sum_monoid(g_.pool);
    const std::string name = g_.label({id, c}) + " tangent";
    const Where where = g_[id].where;
    tangents_[{id, c}] = {g_.add({std::move(l.at), name, where}), 0};
  }
}

// The same recurrence with a tangent beside each state and emit that varies.
void Tangents::recurrence(NodeId id) {
  std::set<Port> given;
  for (auto& [p, t] : tangents_) given.insert(p);
  Recur r = *g_[id].recur();
  const Moving m = moving(g_, r, given);
  Graph step = *r.step;
  std::map<Port, Port> along;
  const size_t states = r.states.size(), emits = r.emits.size(), args = r.args.size();
  std::vector<size_t> moved_states, moved_emits;
  for (size_t s = 0; s < states; ++s) {
    if (!m.states[s]) continue;
    const Port old{r.states[s].in, 0};
    const NodeId in = add_input(step, step[old.node].name + " tangent", step.shape(old), ir::Input::state);
    along[old] = {in, 0};
    std::optional<Port> init;
    if (r.states[s].init) init = of(*r.states[s].init);
    moved_states.push_back(s);
    r.states.push_back({init, in, {}});
  }
  for (size_t a = 0; a < args; ++a) {
    if (!m.args[a]) continue;
    const Port local{r.args[a].in, 0};
    const NodeId in = add_input(step, step[local.node].name + " tangent", step.shape(local), ir::Input::data);
    along[local] = {in, 0};
    r.args.push_back({tangents_.at(r.args[a].from), r.args[a].view, in});
  }
  Tangents inner(step, along);
  inner.run();
  for (size_t k = 0; k < moved_states.size(); ++k) {
    const Port next = r.states[moved_states[k]].out;
    const auto moved = inner.of(next);
    r.states[states + k].out = moved ? *moved : zeros(step, step.shape(next));
  }
  for (size_t e = 0; e < emits; ++e)
    if (const auto moved = inner.of(r.emits[e].out)) {
      moved_emits.push_back(e);
      r.emits.push_back({*moved, r.emits[e].view, r.emits[e].shape});
    }
  settle(r, step);
  const size_t all = r.states.size();
  const std::string name = g_[id].name + " with tangents";
  const Where where = g_[id].where;
  const NodeId now = g_.add({std::move(r), name, where});
  for (size_t k = 0; k < moved_states.size(); ++k)
    tangents_[{id, uint32_t(moved_states[k])}] = {now, uint32_t(states + k)};
  for (size_t k = 0; k < moved_emits.size(); ++k)
    tangents_[{id, uint32_t(states + moved_emits[k])}] = {now, uint32_t(all + emits + k)};
}

void Tangents::run() {
  std::set<Port> start;
  for (auto& [p, t] : tangents_) start.insert(p);
  const std::set<Port> varies = dependents(g_, start);
  const NodeId end = NodeId(g_.nodes.size());
  for (NodeId id = 0; id < end; ++id) {
    bool any = false;
    for (uint32_t k = 0; k < g_.ports(id); ++k) any |= varies.count({id, k}) > 0;
    if (!any) continue;
    if (g_[id].comp()) comprehension(id, varies);
    if (g_[id].recur()) recurrence(id);
  }
}

} // namespace tang::diff
