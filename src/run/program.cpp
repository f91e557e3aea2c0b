#include "tang/run/program.hpp"

#include <algorithm>

#include "tang/emit/c.hpp"

namespace tang::run {

int64_t bytes_of(ir::Format f) { return ir::row(f).bits / 8; }

namespace {
int64_t volume(const std::vector<ir::Extent>& shape) {
  int64_t n = 1;
  for (auto& e : shape) n *= e.value();
  return n;
}

size_t plan_bytes(const plan::Buffer& b) {
  int64_t n = bytes_of(b.format);
  for (int64_t e : b.shape) n *= e;
  return size_t(n);
}

size_t distance(const std::string& a, const std::string& b) { // edits from one name to the other
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = up;
    }
  }
  return row[b.size()];
}

device::Unit c_unit_of(const Derivation& d, const Options& o) {
  device::Unit u;
  u.source = source(d, o);
  for (auto& l : d.kernels.kernels)
    u.entries.push_back({l.kernel.name, "", kernel::workgroups(l.kernel), 1, emit::scratch_bytes(l.kernel),
                         int(l.arguments.size())});
  return u;
}
} // namespace

Backend on_cpu(std::shared_ptr<device::Compiler> compiler, std::shared_ptr<device::Cpu> cpu) {
  return {std::make_shared<device::CpuDevice>(std::move(compiler), std::move(cpu)), c_unit_of};
}

Program::Program(const ir::Graph& g, std::shared_ptr<device::Compiler> compiler,
                 std::shared_ptr<device::Cpu> cpu, Options o)
    : Program(g, on_cpu(std::move(compiler), std::move(cpu)), std::move(o)) {}

size_t Program::Named::bytes() const { return size_t(elements * bytes_of(format)); }

Program::Program(const ir::Graph& g, Backend backend, Options o) : Program(derive(g, o), std::move(backend), o) {}

Program::Program(Derivation d, Backend backend, Options o)
    : options_(std::move(o)), backend_(std::move(backend)), derivation_(std::move(d)) {
  device::Device& device = *backend_.device;
  code_ = device.compile(backend_.print(derivation_, options_));
  arena_ = device.allocate(size_t(std::max<int64_t>(64, derivation_.plan.arena_bytes)), options_.guards);
  for (int64_t bytes : derivation_.kernels.temporaries)
    temporaries_.push_back(device.allocate(size_t(bytes), options_.guards));
  const ir::Graph& graph = *derivation_.plan.graph;
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id)
    if (auto* in = graph[id].input()) named_[graph[id].name] = {{id, 0}, in->format, volume(in->shape)};
  for (auto& out : graph.outputs) // a state and its new value share a name: the state's memory
    named_.try_emplace(out.name, Named{out.port, lower::format_of(derivation_.plan, out.port),
                                       volume(graph.shape(out.port))});
}

const Program::Named& Program::named(const std::string& name) const {
  auto it = named_.find(name);
  if (it != named_.end()) return it->second;
  std::string nearest;
  for (auto& [n, x] : named_)
    if (nearest.empty() || distance(name, n) < distance(name, nearest)) nearest = n;
  throw Error({}, "the program has no input or output '" + name + "'", {},
              nearest.empty() ? "it has none at all" : "did you mean '" + nearest + "'?");
}

void Program::bind(const std::string& name, Memory memory) {
  const Named& n = named(name);
  if (memory->size() < n.bytes())
    throw Error({}, "'" + name + "' is bound to " + std::to_string(memory->size()) + " bytes",
                {{"it needs " + std::to_string(n.bytes()) + ": " + std::to_string(n.elements) +
                      " values of " + ir::row(n.format).name,
                  {}}},
                "bind a larger buffer");
  bound_[n.port] = std::move(memory);
  prepared_ = false;
}

Memory Program::memory(const std::string& name) {
  const Named& n = named(name);
  Memory& m = bound_[n.port];
  if (!m) {
    m = backend_.device->allocate(n.bytes(), options_.guards);
    prepared_ = false;
  }
  return m;
}

void Program::write(const std::string& name, const void* bytes) {
  memory(name)->write(0, bytes, named(name).bytes());
}

void Program::read(const std::string& name, void* bytes) {
  memory(name)->read(bytes, 0, named(name).bytes());
}

std::optional<device::Slice> Program::port(ir::Port p) {
  if (!prepared_) prepare();
  if (auto it = bound_.find(p); it != bound_.end())
    return device::Slice{it->second, 0, it->second->size()};
  const plan::Buffer* b = derivation_.plan.buffer(p);
  if (!b) return {};
  if (b->overwrites) return port({*b->overwrites, 0});
  if (b->offset < 0) return {};
  return device::Slice{arena_, size_t(b->offset), plan_bytes(*b)};
}

void Program::prepare() {
  const plan::Plan& p = derivation_.plan;
  for (auto& [name, n] : named_) memory(name);
  // Outputs and inputs that no name binds: a buffer that is an output under another name shares its memory.
  for (auto& b : p.buffers)
    if (b.offset < 0 && !b.overwrites && !bound_.count(b.of))
      bound_[b.of] = backend_.device->allocate(plan_bytes(b), options_.guards);
  prepared_ = true;
  launches_.clear();
  for (size_t k = 0; k < derivation_.kernels.kernels.size(); ++k) {
    const lower::Lowered& l = derivation_.kernels.kernels[k];
    std::vector<device::Slice> arguments;
    for (auto& a : l.arguments) {
      const int* temporary = std::get_if<int>(&a.what);
      const auto at =
          temporary ? std::optional(device::Slice{temporaries_[size_t(*temporary)], 0,
                                                  temporaries_[size_t(*temporary)]->size()})
                    : port(std::get<ir::Port>(a.what));
      check(at.has_value(), "a kernel argument without memory in " + l.label);
      arguments.push_back(*at);
    }
    launches_.push_back(code_->bind(k, arguments));
  }
  carries_.clear();
  for (auto& o : p.graph->outputs) {
    const Named& n = named_.at(o.name);
    auto from = port(o.port), to = port(n.port);
    if (!from || !to || *from == *to) continue;
    from->bytes = to->bytes = n.bytes();
    carries_.push_back({*to, *from});
  }
}

void Program::poison_scratch() {
  arena_->poison();
  for (auto& t : temporaries_) t->poison();
}

std::vector<std::string> Program::trespass() const {
  std::vector<std::string> out;
  auto guard = [&](const std::string& what, const device::Region& r) {
    if (auto at = r.trespass()) out.push_back(what + ": byte " + std::to_string(*at));
  };
  guard("arena", *arena_);
  for (size_t t = 0; t < temporaries_.size(); ++t)
    guard("operand copy " + std::to_string(t), *temporaries_[t]);
  for (auto& [p, m] : bound_) guard(derivation_.plan.graph->label(p), *m);
  return out;
}

void Program::range(size_t first, size_t last, int depth, const Hook& before, const Hook& after) {
  for (size_t k = first; k < last;) {
    const lower::Loop* loop = nullptr;
    for (auto& l : derivation_.kernels.loops)
      if (size_t(l.first) == k && l.depth == depth) loop = &l;
    if (before) before(k);
    if (!loop || !loop->count) {
      launches_[k++]->run();
      if (after) after(k - 1);
      continue;
    }
    const size_t end = k + size_t(loop->count), steps = loop->live.size();
    for (size_t n = 0; n < steps; ++n) {
      const int64_t t = int64_t(loop->reverse ? steps - 1 - n : n);
      if (!loop->live[size_t(t)]) continue;
      temporaries_[size_t(loop->time)]->write(0, &t, sizeof t);
      range(k, end, depth + 1, {}, {});
    }
    if (after) after(end - 1);
    k = end;
  }
}

void Program::run(const Hook& before, const Hook& after) {
  if (!prepared_) prepare();
  if (derivation_.kernels.loops.empty() && !before && !after)
    backend_.device->run(launches_);
  else
    range(0, launches_.size(), 0, before, after);
  for (auto& c : carries_) backend_.device->copy(c.to, c.from);
}

void Program::run_kernel(size_t k) {
  if (!prepared_) prepare();
  launches_[k]->run();
}

} // namespace tang::run
