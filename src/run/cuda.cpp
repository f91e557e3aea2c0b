#include "tang/run/cuda.hpp"

#include <set>

#include "tang/emit/cuda.hpp"
#include "tang/emit/cuda_roles.hpp"

namespace tang::run {

Options cuda_options() {
  Options o;
  o.target = target::cuda_target();
  return o;
}

Options ampere_options() {
  Options o;
  o.target = target::ampere_target();
  return o;
}

Options hopper_options() {
  Options o;
  o.target = target::hopper_target();
  return o;
}

namespace {
kernel::role::Program roles_of(const lower::Lowered& l, const target::Target& t) {
  auto p = kernel::expand_roles(l.kernel, *l.roles, t.shared_limit);
  check(bool(p), "roles that lowering chose: " + p.why());
  return std::move(*p);
}

device::BulkWindow window_of(const kernel::role::Map& m, const kernel::Kernel& k) {
  const kernel::Memory& x = k.memories[size_t(m.memory)];
  device::BulkWindow w;
  w.argument = m.memory; // globals come first
  w.element_bits = expr::row(x.format).bits;
  w.swizzled = !m.vector;
  for (size_t d = x.shape.size(); d-- > 0;) {
    w.extent.push_back(uint64_t(x.shape[d]));
    w.box.push_back(uint32_t(m.box[d]));
    w.apart.push_back(uint32_t(m.apart[d]));
    if (d + 1 < x.shape.size()) w.stride.push_back(uint64_t(x.strides[d] * w.element_bits / 8));
  }
  return w;
}
} // namespace

std::string cuda_source(const Derivation& d, const target::Target& t) {
  std::vector<const kernel::Kernel*> plain;
  std::string out;
  std::set<std::string> known;
  for (auto& l : d.kernels.kernels)
    if (!l.roles)
      plain.push_back(&l.kernel);
    else if (known.insert(l.kernel.name).second)
      out += "\n" + emit::cuda_roles(roles_of(l, t), l.kernel.name);
  return emit::cuda_unit(plain) + out;
}

Backend on_cuda(std::shared_ptr<device::CudaCompiler> compiler, std::shared_ptr<device::Cuda> gpu,
                const std::string& architecture, bool early) {
  auto print = [early](const Derivation& d, const Options& o) {
    device::Unit u{cuda_source(d, o.target), {}};
    for (auto& l : d.kernels.kernels) {
      device::Entry e{l.kernel.name,          "", emit::cuda_blocks(l.kernel), emit::cuda_lanes(l.kernel), 0,
                      int(l.arguments.size())};
      e.early = early;
      for (auto& a : l.arguments) e.written.push_back(a.written);
      if (l.roles) {
        const kernel::role::Program p = roles_of(l, o.target);
        e.workgroups = p.work, e.lanes = p.fields.threads(), e.local_bytes = p.shared_bytes;
        e.resident = !p.fields.tall, e.cluster = p.fields.cluster;
        for (auto& m : p.fields.tall ? std::vector<kernel::role::Map>() : p.maps) e.windows.push_back(window_of(m, p.kernel));
        e.pointers = p.plain;
        e.counters = 2 + p.tiles * p.fields.math;
        e.scratch_bytes = p.tiles * p.fields.split * p.fields.math * p.part_values * 4;
      } else {
        e.local_bytes = emit::cuda_shared_bytes(l.kernel);
      }
      u.entries.push_back(std::move(e));
    }
    return u;
  };
  return {std::make_shared<device::CudaDevice>(std::move(gpu), std::move(compiler), architecture), print};
}

CudaProgram::CudaProgram(const ir::Graph& g, device::CudaCompiler& compiler,
                         std::shared_ptr<device::Cuda> gpu, Options o, const std::string& architecture,
                         bool early)
    : Program(g, on_cuda({&compiler, [](auto*) {}}, std::move(gpu), architecture, early), std::move(o)) {}

} // namespace tang::run
