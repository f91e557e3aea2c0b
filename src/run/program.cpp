#include "tang/run/program.hpp"

#include <algorithm>
#include <cstring>

#include "tang/emit/c.hpp"

namespace tang::run {

int64_t bytes_of(ir::Format f) { return ir::row(f).bits / 8; }

namespace {
int64_t volume(const std::vector<ir::Extent>& shape) {
  int64_t n = 1;
  for (auto& e : shape) n *= e.value();
  return n;
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
} // namespace

Program::Program(const ir::Graph& g, std::shared_ptr<device::Compiler> compiler,
                 std::shared_ptr<device::Cpu> cpu, Options o)
    : options_(std::move(o)), derivation_(derive(g, options_)), cpu_(std::move(cpu)) {
  library_ = compiler->compile(source(derivation_, options_));
  int64_t most = 0;
  for (auto& l : derivation_.kernels.kernels) {
    auto f = library_->function<device::KernelFunction>(l.kernel.name);
    check(f, "the compiled library lacks " + l.kernel.name);
    functions_.push_back(f);
    workgroups_.push_back(kernel::workgroups(l.kernel));
    scratch_.push_back(emit::scratch_bytes(l.kernel));
    most = std::max(most, scratch_.back());
  }
  cpu_->reserve(most);
  arena_ = std::make_unique<device::Buffer>(
      cpu_->allocate(size_t(std::max<int64_t>(64, derivation_.plan.arena_bytes)), options_.guards));
  for (int64_t bytes : derivation_.kernels.temporaries)
    temporaries_.push_back(std::make_unique<device::Buffer>(cpu_->allocate(size_t(bytes), options_.guards)));
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

int64_t Program::elements(const std::string& name) const { return named(name).elements; }

ir::Format Program::format(const std::string& name) const { return named(name).format; }

void Program::bind(const std::string& name, Memory memory) {
  const Named& n = named(name);
  const size_t need = size_t(n.elements * bytes_of(n.format));
  if (memory->size() < need)
    throw Error({}, "'" + name + "' is bound to " + std::to_string(memory->size()) + " bytes",
                {{"it needs " + std::to_string(need) + ": " + std::to_string(n.elements) + " values of " +
                      ir::row(n.format).name,
                  {}}},
                "bind a larger buffer");
  bound_[n.port] = std::move(memory);
  prepared_ = false;
}

Memory Program::memory(const std::string& name) {
  const Named& n = named(name);
  Memory& m = bound_[n.port];
  if (!m) {
    m = std::make_shared<device::Buffer>(
        cpu_->allocate(size_t(n.elements * bytes_of(n.format)), options_.guards));
    prepared_ = false;
  }
  return m;
}

void* Program::port(ir::Port p) {
  if (!prepared_) prepare();
  if (auto it = bound_.find(p); it != bound_.end()) return it->second->data();
  const plan::Buffer* b = derivation_.plan.buffer(p);
  if (!b) return nullptr;
  if (b->overwrites) return port({*b->overwrites, 0});
  return b->offset >= 0 ? arena_->as<char>() + b->offset : nullptr;
}

void Program::prepare() {
  const plan::Plan& p = derivation_.plan;
  const ir::Graph& g = *p.graph;
  for (auto& [name, n] : named_) memory(name);
  // Outputs and inputs that no name binds: a buffer that is an output under another name shares its memory.
  for (auto& b : p.buffers)
    if (b.offset < 0 && !b.overwrites && !bound_.count(b.of)) {
      int64_t n = 1;
      for (int64_t e : b.shape) n *= e;
      bound_[b.of] =
          std::make_shared<device::Buffer>(cpu_->allocate(size_t(n * bytes_of(b.format)), options_.guards));
    }
  prepared_ = true;
  arguments_.clear();
  for (auto& l : derivation_.kernels.kernels) {
    arguments_.emplace_back();
    for (auto& a : l.arguments) {
      void* at = std::holds_alternative<int>(a.what) ? temporaries_[size_t(std::get<int>(a.what))]->data()
                                                     : port(std::get<ir::Port>(a.what));
      check(at, "a kernel argument without memory in " + l.label);
      arguments_.back().push_back(at);
    }
  }
  carries_.clear();
  for (auto& o : g.outputs) {
    const Named& n = named_.at(o.name);
    void *from = port(o.port), *to = port(n.port);
    if (from && to && from != to) carries_.push_back({from, to, size_t(n.elements * bytes_of(n.format))});
  }
}

void Program::launch(size_t k) {
  if (workgroups_[k]) cpu_->launch(functions_[k], arguments_[k].data(), workgroups_[k], scratch_[k]);
}

void Program::range(size_t first, size_t last, int depth, const Hook& before, const Hook& after) {
  for (size_t k = first; k < last;) {
    const lower::Loop* loop = nullptr;
    for (auto& l : derivation_.kernels.loops)
      if (size_t(l.first) == k && l.depth == depth) loop = &l;
    if (before) before(k);
    if (!loop || !loop->count) {
      launch(k++);
      if (after) after(k - 1);
      continue;
    }
    const size_t end = k + size_t(loop->count), steps = loop->live.size();
    for (size_t n = 0; n < steps; ++n) {
      const size_t t = loop->reverse ? steps - 1 - n : n;
      if (!loop->live[t]) continue;
      *temporaries_[size_t(loop->time)]->as<int64_t>() = int64_t(t);
      range(k, end, depth + 1, {}, {});
    }
    if (after) after(end - 1);
    k = end;
  }
}

void Program::run() { run({}, {}); }

void Program::run(const Hook& before, const Hook& after) {
  if (!prepared_) prepare();
  if (derivation_.kernels.loops.empty() && !before && !after)
    for (size_t k = 0; k < functions_.size(); ++k) launch(k);
  else
    range(0, functions_.size(), 0, before, after);
  for (auto& c : carries_) std::memcpy(c.to, c.from, c.bytes);
}

void Program::run_kernel(size_t k) {
  if (!prepared_) prepare();
  launch(k);
}

} // namespace tang::run
