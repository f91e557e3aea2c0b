#include "tang/run/cuda.hpp"

#include <algorithm>

#include "tang/emit/cuda.hpp"

namespace tang::run {

Options cuda_options() {
  Options o;
  o.target = target::cuda_target();
  return o;
}

std::string cuda_source(const Derivation& d) {
  std::vector<const kernel::Kernel*> all;
  for (auto& l : d.kernels.kernels) all.push_back(&l.kernel);
  return emit::cuda_unit(all);
}

namespace {
int64_t elements_in(const std::vector<ir::Extent>& shape) {
  int64_t n = 1;
  for (auto& e : shape) n *= e.value();
  return n;
}
} // namespace

CudaProgram::CudaProgram(const ir::Graph& g, device::CudaCompiler& compiler,
                         std::shared_ptr<device::Cuda> gpu, Options o, const std::string& architecture)
    : options_(std::move(o)), derivation_(derive(g, options_)), gpu_(std::move(gpu)) {
  module_ = gpu_->load(compiler.compile(cuda_source(derivation_), architecture));
  for (auto& l : derivation_.kernels.kernels) {
    const int64_t shared = emit::cuda_shared_bytes(l.kernel);
    launches_.push_back(
        {module_->function(l.kernel.name, shared), emit::cuda_blocks(l.kernel), shared, l.kernel.lanes, {}});
  }
  arena_ = gpu_->allocate(size_t(std::max<int64_t>(64, derivation_.plan.arena_bytes)), options_.guards);
  for (int64_t bytes : derivation_.kernels.temporaries)
    temporaries_.push_back(gpu_->allocate(size_t(bytes), options_.guards));
  const ir::Graph& graph = *derivation_.plan.graph;
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id)
    if (auto* in = graph[id].input()) named_[graph[id].name] = {{id, 0}, in->format, elements_in(in->shape)};
  for (auto& out : graph.outputs) // a state and its new value share a name: the state's memory
    named_.try_emplace(out.name, Named{out.port, lower::format_of(derivation_.plan, out.port),
                                       elements_in(graph.shape(out.port))});
  bind_all();
}

const CudaProgram::Named& CudaProgram::named(const std::string& name) const {
  auto it = named_.find(name);
  if (it == named_.end())
    throw Error({}, "the program has no input or output '" + name + "'", {}, "use a name of the graph");
  return it->second;
}

void CudaProgram::bind_all() {
  const plan::Plan& p = derivation_.plan;
  auto bind = [&](ir::Port port_, size_t bytes) {
    Memory& m = bound_[port_];
    if (!m) m = gpu_->allocate(bytes, options_.guards);
  };
  for (auto& [name, n] : named_) bind(n.port, n.bytes());
  for (auto& b : p.buffers)
    if (b.offset < 0 && !b.overwrites) {
      int64_t n = 1;
      for (int64_t e : b.shape) n *= e;
      bind(b.of, size_t(n * bytes_of(b.format)));
    }
  for (size_t k = 0; k < launches_.size(); ++k) {
    const lower::Lowered& l = derivation_.kernels.kernels[k];
    for (auto& a : l.arguments) {
      const int* temporary = std::get_if<int>(&a.what);
      const auto at = temporary ? std::optional(temporaries_[size_t(*temporary)]->address())
                                : port(std::get<ir::Port>(a.what));
      check(at.has_value(), "a kernel argument without memory in " + l.label);
      launches_[k].pointers.push_back(*at);
    }
  }
  for (auto& o : p.graph->outputs) {
    const Named& n = named_.at(o.name);
    const auto from = port(o.port), to = port(n.port);
    if (from && to && *from != *to) carries_.push_back({*from, *to, n.bytes()});
  }
}

std::optional<uint64_t> CudaProgram::port(ir::Port p) {
  if (auto it = bound_.find(p); it != bound_.end()) return it->second->address();
  const plan::Buffer* b = derivation_.plan.buffer(p);
  if (!b) return {};
  if (b->overwrites) return port({*b->overwrites, 0});
  return b->offset >= 0 ? std::optional(arena_->address() + uint64_t(b->offset)) : std::nullopt;
}

void CudaProgram::write(const std::string& name, const void* bytes) {
  const Named& n = named(name);
  gpu_->write(bound_.at(n.port)->address(), bytes, n.bytes());
}

void CudaProgram::read(const std::string& name, void* bytes) {
  const Named& n = named(name);
  gpu_->read(bytes, bound_.at(n.port)->address(), n.bytes());
}

void CudaProgram::poison_scratch() {
  arena_->poison();
  for (auto& t : temporaries_) t->poison();
}

std::vector<std::string> CudaProgram::trespass() const {
  std::vector<std::string> out;
  auto guard = [&](const std::string& what, const device::CudaBuffer& b) {
    if (auto at = b.trespass()) out.push_back(what + ": byte " + std::to_string(*at));
  };
  guard("arena", *arena_);
  for (size_t t = 0; t < temporaries_.size(); ++t)
    guard("operand copy " + std::to_string(t), *temporaries_[t]);
  for (auto& [p, m] : bound_) guard(derivation_.plan.graph->label(p), *m);
  return out;
}

void CudaProgram::launch(size_t k) {
  const Launch& l = launches_[k];
  if (l.blocks) gpu_->launch(l.function, l.blocks, l.lanes, l.shared, l.pointers);
}

void CudaProgram::range(size_t first, size_t last, int depth, const Hook& before, const Hook& after) {
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
      const int64_t t = int64_t(loop->reverse ? steps - 1 - n : n);
      if (!loop->live[size_t(t)]) continue;
      gpu_->write(temporaries_[size_t(loop->time)]->address(), &t, sizeof t);
      range(k, end, depth + 1, {}, {});
    }
    if (after) after(end - 1);
    k = end;
  }
}

void CudaProgram::run(const Hook& before, const Hook& after) {
  range(0, launches_.size(), 0, before, after);
  for (auto& c : carries_) gpu_->copy(c.to, c.from, c.bytes);
}

void CudaProgram::run_kernel(size_t k) { launch(k); }

} // namespace tang::run
