#include "tang/fuzz/batch.hpp"

#include <cstring>

#include "tang/device/memory_compiler.hpp"
#include "tang/emit/c.hpp"
#include "tang/fuzz/simulated.hpp"

namespace tang::fuzz {

target::Target row_of(const Case& c) {
  target::Target t = target::c_target(c.lanes, 1);
  if (c.fast_memory)
    t.fast_memory = c.fast_memory, t.near_memory = std::min(t.near_memory, c.fast_memory / 2);
  return t;
}

namespace {
run::Options options_of(const Case& c, const target::Target& t) {
  run::Options o;
  o.schedule = c.schedule;
  o.optimize = c.optimize && !c.late;
  o.guards = true;
  o.target = t;
  return o;
}

// Does the target say of a kernel that its integers are too narrow for it? Only then may it refuse a graph.
bool is_too_wide(const Error& e, const target::Target& t) {
  return !t.index64 && (e.headline() == "the kernel cannot run on this target" ||
                        e.headline().find(" holds 64-bit integers") != std::string::npos);
}

// Nothing: a fault was added, or the drawn schedule asks for what cannot be.
std::optional<run::Derivation> derived(const Case& c, const run::Options& o, std::vector<Fault>& faults) {
  try {
    return run::derive(given_graph(c), o);
  } catch (const Error& e) {
    const bool schedule = !e.headline().compare(0, 13, "the schedule ");
    if (!schedule && !is_too_wide(e, o.target)) faults.push_back({"error", e.what()});
  } catch (const std::exception& e) { faults.push_back({"bug", e.what()}); }
  return {};
}
} // namespace

void derive(Job& j, const target::Target& t) {
  j.options = options_of(*j.c, t);
  j.derivation = derived(*j.c, j.options, j.faults);
  j.refused = !j.derivation && j.faults.empty();
}

void derive_twin(Job& j) {
  const size_t kind = j.c->choices.size() % 10;
  if (!j.derivation || !j.faults.empty() || kind > size_t(Variant::batched)) return;
  // A batch of reals is not planned as its parts are: docs/fuzzing.md lists where the bits differ.
  if (Variant(kind) == Variant::batched && !j.c->integer) return;
  auto other = varied(*j.c, Variant(kind));
  if (!other) return;
  Twin t{Variant(kind), std::move(*other), {}, {}};
  t.options = options_of(t.c, row_of(t.c));
  t.derivation = derived(t.c, t.options, j.faults);
  if (t.derivation) j.twin = std::move(t);
}

namespace {
// A device whose kernels are compiled already.
class Compiled : public device::Device {
public:
  Compiled(std::shared_ptr<device::Library> library, int workers)
      : cpu_(nullptr, std::make_shared<device::Cpu>(workers)), library_(std::move(library)) {}

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

run::Backend compiled(std::shared_ptr<device::Library> library, int workers) {
  return {std::make_shared<Compiled>(std::move(library), workers),
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

void run_twin(Job& j, run::Program& first, const std::shared_ptr<device::Library>& library) {
  const Twin& t = *j.twin;
  run::Program p(*t.derivation, compiled(library, 1), t.options);
  const Outputs got = execute(p, t.c, t.c.graph, j.faults);
  std::vector<Outputs> parts;
  for (int64_t b = 0; t.kind == Variant::batched && b < batch_of_many; ++b) {
    Case one = *j.c;
    one.inputs = part_of_batch(one, b);
    parts.push_back(execute(first, one, j.want.graph, j.faults));
  }
  for (auto& f : disagreement(t.kind, j.want, t.c, *t.derivation, got, parts, j.count)) j.faults.push_back(f);
}

void run_compiled(Job& j, const std::shared_ptr<device::Library>& library) {
  try {
    run::Program p(*j.derivation, compiled(library, 1), j.options);
    const Outputs got = execute(p, *j.c, j.want.graph, j.faults);
    for (auto& f : judge(*j.c, j.want, *j.derivation, got, j.count)) j.faults.push_back(f);
    if (!j.faults.empty()) return;
    if (j.twin) run_twin(j, p, library);
    if (j.c->choices.size() % 4) return;
    run::Program q(*j.derivation, compiled(library, 2), j.options);
    if (!identical(got, execute(q, *j.c, j.want.graph, j.faults)))
      j.faults.push_back({"threads", "two threads give other bits than one"});
  } catch (const std::exception& e) { j.faults.push_back({"bug", e.what()}); }
}
} // namespace

namespace {
using Compile = std::function<std::shared_ptr<device::Library>(const std::string&)>;

Compile compile_by(const Toolchain& tools) {
  if (tools.in_memory) {
    const auto found = device::MemoryCompiler::find();
    if (!found) throw Error({}, "no C compiler in this process", {{found.why(), {}}}, "leave --compiler out");
    return [compiler = *found](const std::string& unit) { return compiler->compile(unit); };
  }
  device::CompilerOptions options = tools.system;
  options.flags.push_back("-O1");
  const auto compiler = std::make_shared<device::Compiler>(options);
  return [compiler](const std::string& unit) { return compiler->compile(unit); };
}
} // namespace

void run_on_c(std::vector<Job>& jobs, const Toolchain& tools, const std::function<void(size_t)>& now) {
  const Compile compile = compile_by(tools);
  auto printed = [&](const Job& j) { return tools.in_memory ? 1 : j.c->lanes; };
  std::map<int, std::map<std::string, const kernel::Kernel*>> kernels; // of each width, by name
  for (auto& j : jobs) {
    if (!j.derivation) continue;
    for (auto& l : j.derivation->kernels.kernels) kernels[printed(j)][l.kernel.name] = &l.kernel;
    if (j.twin)
      for (auto& l : j.twin->derivation->kernels.kernels) kernels[printed(j)][l.kernel.name] = &l.kernel;
  }
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
      libraries[lanes] = compile(unit(lanes, all));
    } catch (const std::exception&) {} // found again below, by the one that causes it
  }
  for (size_t k = 0; k < jobs.size(); ++k) {
    Job& j = jobs[k];
    if (!j.derivation) continue;
    now(k);
    std::shared_ptr<device::Library> library = libraries[printed(j)];
    if (!library) {
      std::map<std::string, const kernel::Kernel*> own;
      for (auto& l : j.derivation->kernels.kernels) own[l.kernel.name] = &l.kernel;
      if (j.twin)
        for (auto& l : j.twin->derivation->kernels.kernels) own[l.kernel.name] = &l.kernel;
      try {
        library = compile(unit(printed(j), own));
      } catch (const Error& e) {
        j.faults.push_back({"compiler", e.what()});
        continue;
      } catch (const std::exception& e) {
        j.faults.push_back({"bug", e.what()});
        continue;
      }
    }
    run_compiled(j, library);
  }
}

void run_on(Job& j, const run::Backend& b) {
  try {
    run::Program p(*j.derivation, b, j.options);
    const Outputs got = execute(p, *j.c, j.want.graph, j.faults);
    for (auto& f : judge(*j.c, j.want, *j.derivation, got, j.count, p.target().values)) j.faults.push_back(f);
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
