#include "tang/fuzz/batch.hpp"

#include <cstring>

#include "tang/emit/c.hpp"
#include "tang/fuzz/simulated.hpp"

namespace tang::fuzz {

target::Target row_of(const Case& c) {
  target::Target t = target::c_target(c.lanes, 1);
  if (c.fast_memory)
    t.fast_memory = c.fast_memory, t.near_memory = std::min(t.near_memory, c.fast_memory / 2);
  return t;
}

void derive(Job& j, const target::Target& t) {
  j.options.schedule = j.c->schedule;
  j.options.optimize = j.c->optimize && !j.c->late;
  j.options.guards = true;
  j.options.target = t;
  try {
    j.derivation = run::derive(given_graph(*j.c), j.options);
  } catch (const Error& e) { // a drawn schedule may ask for what cannot be; a graph may not be refused
    if (!e.headline().compare(0, 13, "the schedule "))
      j.refused = true;
    else
      j.faults.push_back({"error", e.what()});
  } catch (const std::exception& e) { j.faults.push_back({"bug", e.what()}); }
}

namespace {
// A device whose kernels are compiled already.
class Compiled : public device::Device {
public:
  Compiled(std::shared_ptr<device::Compiler> compiler, std::shared_ptr<device::Library> library, int workers)
      : cpu_(compiler, std::make_shared<device::Cpu>(workers)), library_(std::move(library)) {}

  std::shared_ptr<device::Region> allocate(size_t bytes, bool guards) override {
    return cpu_.allocate(bytes, guards);
  }

  void copy(const device::Slice& to, const device::Slice& from) override { cpu_.copy(to, from); }

  std::shared_ptr<device::Code> compile(const device::Unit& u) override {
    return cpu_.load(library_, u.entries);
  }

  void wait() override {}

private:
  device::CpuDevice cpu_;
  std::shared_ptr<device::Library> library_;
};

run::Backend compiled(const std::shared_ptr<device::Compiler>& compiler,
                      std::shared_ptr<device::Library> library, int workers) {
  return {std::make_shared<Compiled>(compiler, std::move(library), workers),
          [](const run::Derivation& d, const run::Options&) {
            device::Unit u;
            for (auto& l : d.kernels.kernels)
              u.entries.push_back({l.kernel.name, "", kernel::workgroups(l.kernel), 1,
                                   emit::scratch_bytes(l.kernel), int(l.arguments.size())});
            return u;
          }};
}

bool identical(const Outputs& a, const Outputs& b) {
  for (auto& [name, x] : a) {
    const eval::Array& y = b.at(name);
    if (x.i != y.i || x.r.size() != y.r.size() ||
        (!x.r.empty() && std::memcmp(x.r.data(), y.r.data(), x.r.size() * 8)))
      return false;
  }
  return true;
}

void run_compiled(Job& j, const std::shared_ptr<device::Compiler>& compiler,
                  const std::shared_ptr<device::Library>& library) {
  try {
    run::Program p(*j.derivation, compiled(compiler, library, 1), j.options);
    const Outputs got = execute(p, *j.c, j.want.graph, j.faults);
    for (auto& f : judge(*j.c, j.want, *j.derivation, got, j.count)) j.faults.push_back(f);
    if (j.c->choices.size() % 4 || !j.faults.empty()) return;
    run::Program q(*j.derivation, compiled(compiler, library, 2), j.options);
    if (!identical(got, execute(q, *j.c, j.want.graph, j.faults)))
      j.faults.push_back({"threads", "two threads give other bits than one"});
  } catch (const std::exception& e) { j.faults.push_back({"bug", e.what()}); }
}
} // namespace

void run_on_c(std::vector<Job>& jobs, device::CompilerOptions options,
              const std::function<void(size_t)>& now) {
  options.flags.push_back("-O1");
  auto compiler = std::make_shared<device::Compiler>(options);
  std::map<int, std::map<std::string, const kernel::Kernel*>> kernels; // of each width, by name
  for (auto& j : jobs)
    if (j.derivation)
      for (auto& l : j.derivation->kernels.kernels) kernels[j.c->lanes][l.kernel.name] = &l.kernel;
  auto unit = [](int lanes, const std::map<std::string, const kernel::Kernel*>& all) {
    std::vector<const kernel::Kernel*> list;
    for (auto& [name, k] : all) list.push_back(k);
    emit::COptions o;
    o.lanes = lanes;
    return emit::c_unit(list, o);
  };
  std::map<int, std::shared_ptr<device::Library>> libraries;
  for (auto& [lanes, all] : kernels) {
    try {
      libraries[lanes] = compiler->compile(unit(lanes, all));
    } catch (const Error&) {} // found again below, by the one that causes it
  }
  for (size_t k = 0; k < jobs.size(); ++k) {
    Job& j = jobs[k];
    if (!j.derivation) continue;
    now(k);
    std::shared_ptr<device::Library> library = libraries[j.c->lanes];
    if (!library) {
      std::map<std::string, const kernel::Kernel*> own;
      for (auto& l : j.derivation->kernels.kernels) own[l.kernel.name] = &l.kernel;
      try {
        library = compiler->compile(unit(j.c->lanes, own));
      } catch (const Error& e) {
        j.faults.push_back({"compiler", e.what()});
        continue;
      }
    }
    run_compiled(j, compiler, library);
  }
}

void run_on(Job& j, const run::Backend& b) {
  try {
    run::Program p(*j.derivation, b, j.options);
    const Outputs got = execute(p, *j.c, j.want.graph, j.faults);
    for (auto& f : judge(*j.c, j.want, *j.derivation, got, j.count)) j.faults.push_back(f);
  } catch (const Error& e) { j.faults.push_back({"compiler", e.what()}); } catch (const std::exception& e) {
    j.faults.push_back({"bug", e.what()});
  }
}

target::Target simulated_row(const Case& c) {
  if (c.lanes == 16) return row_of(c);
  target::Facts f; // a GPU of the least kind
  f.workgroup = 64;
  f.f64 = true;
  return target::gpu_target("opencl", f);
}

void run_simulated(Job& j) {
  try {
    const Outputs got =
        simulate(*j.derivation, *j.c,
                 j.c->choices.size() % 2 ? kernel::Order::reverse : kernel::Order::random, j.faults);
    for (auto& f : judge(*j.c, j.want, *j.derivation, got, j.count)) j.faults.push_back(f);
  } catch (const std::exception& e) { j.faults.push_back({"bug", e.what()}); }
}

} // namespace tang::fuzz
