#include "tang/lower/frame.hpp"

#include <algorithm>

namespace tang::lower {

using kernel::Bounds;
using kernel::constant;
using kernel::Format;
using kernel::variable;

int64_t round_up(int64_t v, int64_t to) { return (v + to - 1) / to * to; }
void emit(kernel::Block& b, kernel::Apply a) { b.push_back({std::move(a)}); }
void emit(kernel::Block& b, kernel::Fold f) { b.push_back({std::move(f)}); }

int Place::find(int node_axis) const {
  for (size_t k = 0; k < of.size(); ++k)
    if (of[k] == node_axis) return int(k);
  return -1;
}

kernel::Format format_of(const plan::Plan& p, Port port) {
  if (auto* in = (*p.graph)[port.node].input()) return in->format;
  const plan::Buffer* b = p.buffer(port);
  check(b, "a port that is neither an input nor a buffer is stored: " + p.graph->label(port));
  return b->format;
}

Surroundings top_level(const ir::Graph& g, const plan::Plan& p) {
  return {[&g, &p](Port port) {
            Bound b{port, format_of(p, port), {}};
            for (auto& e : g.shape(port)) b.shape.push_back(e.value());
            return b;
          },
          -1};
}

Frame::Frame(ir::Graph& g_, const plan::Plan& p, const Surroundings& around_, const plan::Group& group_, const Choice& c,
             const target::Target& t)
    : g(g_), plan(p), around(around_), group(group_), choice(c), target(t) {
  for (size_t a = 0; a < group.extent.size(); ++a) block.push_back(k.fresh("b" + std::to_string(a)));
  auto spread = [&](size_t a) {
    if (group.role[a] == plan::Role::grid && !choice.walks(int(a))) k.grid.push_back({block[a], group.extent[a], tile(int(a))});
  };
  if (choice.outer >= 0) spread(size_t(choice.outer));
  for (size_t a = 0; a < group.extent.size(); ++a)
    if (int(a) != choice.outer) spread(a);
  if (choice.parts > 1) k.grid.push_back({part = k.fresh("part"), choice.parts, 1});
}
int64_t Frame::extent(const ir::Comp& n, const std::vector<int>& core, int axis) const {
  const int c = core[size_t(axis)];
  return c < 0 ? n.extent(axis).value() : tile(c);
}
std::vector<int> Frame::wide(const ir::Comp& n, const std::vector<int>& core, const std::vector<int>& which) const {
  std::vector<int> out;
  for (int a : which)
    if (extent(n, core, a) != 1) out.push_back(a);
  return out;
}
Place Frame::place(const ir::Comp& n, const std::vector<int>& core, const std::vector<int>& which, const std::string& stem,
                   const std::map<int, int64_t>& pads) {
  Place out;
  out.at.resize(size_t(n.axis_count()));
  for (int a = 0; a < n.axis_count(); ++a)
    if (core[size_t(a)] >= 0) out.at[size_t(a)] = variable(block[size_t(core[size_t(a)])]);
  for (int a : which) {
    const auto pad = pads.find(a);
    const int64_t e = extent(n, core, a), padded = pad == pads.end() ? e : round_up(e, pad->second);
    if (padded == 1) continue;
    const kernel::Var v = k.fresh(stem.empty() ? "x" : stem);
    out.axes.push_back({v, padded});
    if (padded != e) out.tails.push_back({constant(e - 1) - variable(v), {}});
    out.of.push_back(a);
    out.at[size_t(a)] = out.at[size_t(a)] + variable(v);
    const int64_t whole = n.extent(a).value();
    if (core[size_t(a)] >= 0 && e && whole % e) out.tails.push_back({constant(whole - 1) - out.at[size_t(a)], {}});
  }
  return out;
}
int Frame::scratch(const std::string& name, std::vector<int64_t> shape, Format f, std::vector<int64_t> strides) {
  check(name != "g" && name != "t", "g and t are the program's arrays: a tile's name is another");
  kernel::Memory m;
  m.name = name + std::to_string(k.memories.size());
  m.home = kernel::Home::register_;
  m.format = f;
  m.shape = std::move(shape);
  m.strides = std::move(strides);
  m.access = kernel::Access::read_write;
  m.team = kernel::Team::workgroup;
  return k.add(std::move(m));
}
Format Frame::tile_format(expr::Type t) const {
  return t == expr::Type::real ? k.compute : t == expr::Type::boolean ? Format::boolean : t == expr::Type::index ? Format::i64 : Format::u32;
}
int Frame::tile_for(Port p, const std::vector<int>& core, const std::string& name, const std::map<int, int64_t>& pads,
                    int inner) {
  const ir::Comp& n = *g[p.node].comp();
  const ir::Out& out = n.outs[p.port];
  Home h;
  h.is_tile = true;
  std::vector<int64_t> shape;
  for (int a : out.axes) {
    auto pad = pads.find(a);
    shape.push_back(round_up(extent(n, core, a), pad == pads.end() ? 1 : pad->second));
    const int c = core[size_t(a)];
    h.base.push_back(c < 0 ? constant(0) : variable(block[size_t(c)]));
  }
  std::vector<int64_t> strides = kernel::row_major(shape);
  for (size_t d = 0; d + 1 < shape.size(); ++d)
    if (out.axes[d] == inner) strides = innermost(shape, d);
  h.memory = scratch(name, shape, tile_format(g.type(p)), strides);
  tiles_[p] = h;
  return h.memory;
}
std::vector<int64_t> innermost(const std::vector<int64_t>& shape, size_t d) {
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t stride = shape[d];
  for (size_t e = shape.size(); e-- > 0;) {
    if (e == d) continue;
    strides[e] = stride;
    stride *= shape[e];
  }
  return strides;
}
int64_t stride_in_result(const ir::Graph& g, Port p, const ir::Comp& n, int axis) {
  const ir::Out& out = n.outs[p.port];
  const auto shape = g.shape(p);
  int64_t below = 1, stride = 0;
  for (size_t d = shape.size(); d-- > 0; below *= std::max<int64_t>(1, shape[d].value())) {
    if (out.view.empty()) {
      stride += out.axes[d] == axis ? below : 0;
      continue;
    }
    for (auto& [a, c] : out.view[d].axes) stride += a == axis ? c * below : 0;
  }
  return stride;
}
Ref Frame::tile_ref(Port p, const Place& at) const {
  const Home& h = tiles_.at(p);
  const ir::Out& out = g[p.node].comp()->outs[p.port];
  Ref r{h.memory, {}, false};
  for (size_t d = 0; d < out.axes.size(); ++d) r.index.push_back({at.at[size_t(out.axes[d])] - h.base[d], {}});
  return r;
}
Frame::Global& Frame::global_of(Port p) {
  auto it = globals_.find(p);
  if (it != globals_.end()) return it->second;
  Bound b = around.bind(p);
  int memory = -1;
  if (const int* id = std::get_if<int>(&b.what)) {
    if (auto known = temporaries_.find(*id); known != temporaries_.end()) memory = known->second;
  } else {  // two windows of one outer port share its memory
    for (auto& [other, g_] : globals_)
      if (g_.bound.what == b.what) memory = g_.memory;
  }
  if (memory < 0) {
    kernel::Memory m;
    m.name = "g" + std::to_string(k.memories.size());
    m.format = b.format;
    m.shape = b.shape;
    memory = k.add(std::move(m));
    arguments.push_back({b.what, false});
    if (const int* id = std::get_if<int>(&b.what)) temporaries_[*id] = memory;
  }
  return globals_.emplace(p, Global{memory, std::move(b)}).first->second;
}
int Frame::global(Port p, bool written) {
  const int memory = global_of(p).memory;
  if (written) mark_written(memory);
  return memory;
}
void Frame::mark_written(int memory) {
  k.memories[size_t(memory)].access = kernel::Access::read_write;
  size_t argument = 0;
  for (int x = 0; x < memory; ++x) argument += k.memories[size_t(x)].home == kernel::Home::global;
  arguments[argument].written = true;
}
int Frame::temporary(int id, kernel::Memory m, bool written) {
  auto it = temporaries_.find(id);
  if (it == temporaries_.end()) {
    m.name = "t" + std::to_string(id);
    m.home = kernel::Home::global;
    m.access = kernel::Access::read;
    arguments.push_back({id, false});
    it = temporaries_.emplace(id, k.add(std::move(m))).first;
  }
  if (written) mark_written(it->second);
  return it->second;
}
Affine Frame::time() {
  if (!time_) {
    check(around.time >= 0, "a window over time outside a recurrence");
    kernel::Memory m;
    m.format = Format::i64; // of rank 0, as the step's own input that reads the same clock
    const kernel::Var v = k.fresh("time");
    head.push_back({kernel::Let{v, kernel::Let::load, {}, 1, Ref{temporary(around.time, m, false), {}, false}}});
    time_ = variable(v);
  }
  return *time_;
}
void Frame::partial(Port p, int memory) { partial_[p] = memory; }
Ref Frame::result_ref(Port p, const ir::Comp& n, const Place& at) {
  const auto it = partial_.find(p);
  if (it == partial_.end()) return global_ref(p, n, at, true);
  Ref r{it->second, {}, false};
  r.index.push_back({part >= 0 ? variable(part) : constant(0), {}});
  for (int a : n.outs[p.port].axes) r.index.push_back({at.at[size_t(a)], {}});
  return r;
}
Ref Frame::global_ref(Port p, const ir::Comp& n, const Place& at, bool written) {
  Ref r{global(p, written), {}, false};
  const ir::Out& out = n.outs[p.port];
  if (out.view.empty()) {
    for (int a : out.axes) r.index.push_back({at.at[size_t(a)], {}});
    return r;
  }
  for (auto& f : out.view) {
    Affine x = constant(f.c.value());
    for (auto& [a, c] : f.axes) x = x + c * at.at[size_t(a)];
    r.index.push_back({x, {}});
  }
  return r;
}
Homes Frame::homes() {
  return [this](Port p) {
    if (auto it = tiles_.find(p); it != tiles_.end()) return it->second;
    const Global& x = global_of(p);
    Home h{x.memory, {}, false, x.bound.view, {}, x.bound.inside};
    if (!h.view.empty()) h.time = time();
    return h;
  };
}
Affine Frame::clamped(const Affine& value, int64_t limit) {
  auto it = clamped_.find({value.terms[0].first, limit});
  if (it != clamped_.end()) return it->second;
  const kernel::Var low = k.fresh("u"), v = k.fresh("u");
  head.push_back({kernel::Let{low, kernel::Let::max, {value, constant(0)}, 1, {}}});
  head.push_back({kernel::Let{v, kernel::Let::min, {variable(low), constant(limit - 1)}, 1, {}}});
  return clamped_[{value.terms[0].first, limit}] = variable(v);
}
Body Frame::body(const ir::Comp& n, const Place& at, const std::vector<int>& core) {
  return Body(k, g, n, at.at, homes(), [this, &n, &core](int arg) -> std::optional<Uniform> {
    const auto v = uniform(n, core, arg);
    if (!v) return {};
    return Uniform{*v, [this, value = *v](int64_t limit) { return clamped(value, limit); }};
  });
}
std::optional<Affine> Frame::uniform(const ir::Comp& n, const std::vector<int>& core, int arg) {
  const ir::Arg& a = n.args[size_t(arg)];
  std::vector<Coordinate> at;
  std::vector<int64_t> key{arg};
  for (auto& f : a.view) {
    if (!f.args.empty()) return {};
    Affine x = constant(f.c.value());
    for (auto& [axis, c] : f.axes) {
      if (extent(n, core, axis) != 1 || core[size_t(axis)] < 0) return {};
      if (group.role[size_t(core[size_t(axis)])] != plan::Role::grid || choice.walks(core[size_t(axis)])) return {};
      x = x + c * variable(block[size_t(core[size_t(axis)])]);
    }
    at.push_back({x, {}});
    key.push_back(x.c);
    for (auto& t : x.terms) key.insert(key.end(), {t.first, t.second});
  }
  if (has_tile(a.from)) return {};
  auto it = uniforms_.find({a.from, key});
  if (it == uniforms_.end()) {
    Ref r = element(homes()(a.from), std::move(at));
    for (size_t d = 0; d < a.view.size(); ++d) { // it is loaded before the guard that it may stand under
      const auto [lo, hi] = ir::range(a.view[d], n.extents(), {});
      r.checked |= lo < 0 || hi >= g.shape(a.from)[d].value();
    }
    const kernel::Var v = k.fresh("u");
    head.push_back({kernel::Let{v, kernel::Let::load, {}, 1, r}});
    it = uniforms_.emplace(std::pair(a.from, key), v).first;
  }
  return variable(it->second);
}

}  // namespace tang::lower
