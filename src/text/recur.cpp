// recur name over t: steps, as people write it: the step's reads of outer tensors become slices and windows.
#include <algorithm>
#include <functional>

#include "tang/ir/recurrence.hpp"
#include "tang/text/evaluator.hpp"

namespace tang::text {

using namespace ir;

void Model::recur(Statement& s) {
  const Extent steps = extent_of(*s.extent);
  const Axis t{fresh_axis(), s.over.text};
  state().declare(t, steps, "its declaration", s.over.where, true);
  Recurring options;
  options.reverse = s.down;
  if (s.domain) {
    Evaluator v(*this);
    Meaning x;
    x.form = Index(t);
    v.bind(s.over.text, x);
    options.live = v.guard(*s.domain);
  }
  std::vector<const Statement*> states, nexts;
  std::vector<Carried> carried_states;
  for (auto& b : s.block) {
    if (b.kind != Statement::input) continue;
    const Token& name = b.names[0];
    if (b.head.text != "state")
      throw problem("T0501", name.where, "`" + b.head.text + "` does not belong into a recurrence",
                    {{"here", name.where}}, "declare inputs above; the step reads them");
    std::vector<Extent> shape;
    for (auto& d : b.dims) shape.push_back(extent_of(d.extent ? *d.extent : *d.at));
    states.push_back(&b);
    const bool zero =
        !b.value || (b.value->kind == Expr::number && b.value->name.real == 0 && !b.value->name.suffix);
    if (zero) {
      carried_states.push_back(carried(name.text, shape, format_of(b.format, Format::f32)));
      continue;
    }
    const Port init = text::define(*this, {name}, b.dims, *b.value, true)[0];
    if (!(state().g.shape(init) == shape))
      throw problem("T0501", name.where, "the first value of `" + shown(name.text) + "` has another shape",
                    {{"here", name.where}}, "declare the state's extents as the first value's");
    if (b.format.kind == Token::name && type_of(format_of(b.format, Format::f32)) != state().g.type(init))
      throw problem("T0403", b.format.where,
                    "the first value of `" + shown(name.text) + "` is " + expr::name(state().g.type(init)),
                    {{"the format of another type", b.format.where}}, "convert it, or change the format");
    carried_states.push_back(carried(name.text, Tensor{&builder, init}));
  }
  if (states.empty())
    throw problem("T0501", s.where, "a recurrence without a state", {{"this one", s.where}},
                  "add: state name[..] = first value; without one, a map over the axis is enough");
  nexts.resize(states.size());
  std::vector<Token> emit_names;

  auto body = [&](const std::vector<Tensor>& old) -> Step {
    Model step(file, false, this, monoids, problems, Builder::current());
    step.axes.emplace(s.over.text, FileAxis{t, s.over.where});
    step.time = s.over.text;
    for (size_t k = 0; k < states.size(); ++k) {
      const Token& name = states[k]->names[0];
      step.define(name, {old[k].port});
      const auto shape = old[k].shape();
      for (size_t d = 0; d < shape.size(); ++d) {
        const Dim& x = states[k]->dims[d];
        if (!x.extent || x.at->kind != Expr::word || x.at->name.quoted || step.axes.count(x.at->name.text))
          continue;
        const Axis a{fresh_axis(), x.at->name.text};
        step.state().declare(a, shape[d], name.text + ", dimension " + std::to_string(d), x.where, false);
        step.axes.emplace(x.at->name.text, FileAxis{a, x.where});
      }
    }
    for (auto& [n, a] : axes) { // axes of the file are axes of the step
      if (!step.axes.emplace(n, a).second) continue;
      if (auto it = state().axes.find(int(a.axis.id)); it != state().axes.end())
        step.state().declare(a.axis, it->second.extent, it->second.who, it->second.where,
                             it->second.declared);
    }
    const size_t before = problems.size();
    Step out;
    out.next.resize(states.size());
    for (auto& b : s.block) {
      try {
        if (b.kind == Statement::next)
          step.next(b, states, nexts, old, out.next);
        else if (b.kind == Statement::emit)
          step.emit(b, t, steps, emit_names, out.emits);
        else if (b.kind == Statement::output)
          throw problem("T0501", b.where, "`output` does not belong into a recurrence", {{"here", b.where}},
                        "emit the value, and output it below the block");
        else if (b.kind != Statement::input)
          step.one(b);
      } catch (Diagnostic& d) { problems.push_back(std::move(d)); } catch (Silent&) {
        if (problems.size() == before) throw;
      }
    }
    for (size_t k = 0; k < states.size(); ++k)
      if (!nexts[k] && problems.size() == before)
        problems.push_back(problem("T0502", states[k]->names[0].where,
                                   "state `" + shown(states[k]->names[0].text) + "` has no next value",
                                   {{"declared here", states[k]->names[0].where}},
                                   "add: next " + shown(states[k]->names[0].text) + "[..] = .."));
    if (problems.size() != before) throw Silent{};
    return out;
  };
  const Recurred made =
      within("T0501", s.where, [&] { return ir::recur(t, carried_states, body, options, s.where); });
  state().g.nodes[made.states[0].port.node].name = s.names[0].text;
  for (size_t k = 0; k < states.size(); ++k) define(states[k]->names[0], {made.states[k].port});
  for (size_t k = 0; k < emit_names.size(); ++k) define(emit_names[k], {made.emits[k].port});
}

void Model::next(const Statement& b, const std::vector<const Statement*>& states,
                 std::vector<const Statement*>& nexts, const std::vector<Tensor>& old,
                 std::vector<Tensor>& out) {
  const Token& name = b.names[0];
  const auto it =
      std::find_if(states.begin(), states.end(), [&](auto* c) { return c->names[0].text == name.text; });
  if (it == states.end())
    throw problem("T0502", name.where, "`next` of `" + shown(name.text) + "`, which is no state",
                  {{"here", name.where}}, "declare it: state " + shown(name.text) + "[..] = ..");
  const size_t k = size_t(it - states.begin());
  if (nexts[k])
    throw problem("T0502", name.where, "`next` of `" + shown(name.text) + "` twice",
                  {{"again here", name.where}, {"first here", nexts[k]->where}},
                  "give each state one next value");
  nexts[k] = &b;
  out[k] = {&builder, text::define(*this, {name}, b.dims, *b.value, true)[0]};
  if (!(out[k].shape() == old[k].shape()) || out[k].type() != old[k].type())
    throw problem(
        "T0501", name.where, "the next value of `" + shown(name.text) + "` has another shape or type",
        {{"here", name.where}, {"the state", states[k]->names[0].where}}, "a state keeps its shape and type");
}

// emit y[t, u] = e: coordinates over the time and the axes of e.
void Model::emit(const Statement& b, const Axis& t, const Extent& steps, std::vector<Token>& names_out,
                 std::vector<Emitted>& out) {
  std::vector<Dim> points;
  std::vector<std::string> names;
  std::function<void(const Expr&)> walk = [&](const Expr& e) {
    const bool point = e.kind == Expr::word && !e.name.quoted && !e.name.symbol && e.name.text != t.name &&
                       !is_reserved(e.name.text) && !state().g.symbols.count(e.name.text);
    if (point && std::find(names.begin(), names.end(), e.name.text) == names.end()) {
      names.push_back(e.name.text);
      Dim d;
      d.at = std::make_unique<Expr>();
      d.at->kind = Expr::word;
      d.at->name = e.name;
      d.at->where = d.where = e.where;
      points.push_back(std::move(d));
    }
    for (auto& a : e.args) walk(*a);
  };
  for (auto& d : b.dims) walk(*d.at);
  const Tensor value{&builder, text::define(*this, {b.names[0]}, points, *b.value, true)[0]};
  const auto shape = value.shape();
  Evaluator v(*this);
  std::vector<Axis> dims;
  for (size_t d = 0; d < names.size(); ++d) {
    dims.push_back(v.fresh(names[d], &shape[d], b.names[0].text, points[d].where));
    Meaning x;
    x.form = Index(dims.back());
    v.bind(names[d], x);
  }
  Coords at;
  std::vector<Extent> extents;
  for (auto& d : b.dims) {
    const Index i = v.index(*d.at);
    if (!i.values.empty())
      throw problem("T0503", d.where, "an emitted coordinate depends on the time and axes only",
                    {{"this one reads a tensor", d.where}}, "use the time and axes");
    Extent last = i.c;
    for (auto& [a, k] : i.axes) {
      Extent n = steps;
      for (size_t x = 0; x < dims.size(); ++x)
        if (dims[x].id == a.id) n = shape[x];
      const int64_t factor = k;
      last = within("T0210", d.where, [&] { return last + Extent(factor) * (n - Extent(1)); });
    }
    at.push_back(i);
    extents.push_back(d.extent ? extent_of(*d.extent) : last + Extent(1));
  }
  out.push_back(Emitted(value, dims, at, extents));
  names_out.push_back(b.names[0]);
}

} // namespace tang::text
