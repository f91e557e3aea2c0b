// bench_tune_cuda compile | run | report, on a machine with an NVIDIA GPU (compile and report need none):
//   text PART                     the kernels that compilation makes of the problems whose name has PART
//   compile CACHE [NAME]          every candidate of every problem, into a folder of compiled kernels
//   run CACHE FOLDER [SECONDS NAME ..]  probes, then checks and times; FOLDER/probe.json, FOLDER/cuda.json
//   count FILE.json [NAME]           what every candidate's kernels start at least, as compiled here
//   report FILE.md PART.json ..   docs/results/tune-h200.md; cuda_peers.py gives one part more
// The same launch mode everywhere: a graph of launches, each after the end of the one before it. Warm: on the same memory
// again and again. Cold: on copies in turn that are together larger than twice the second level.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include "cuda.hpp"
#include "tang/tune/measured.hpp"
#include "tang/text/schedule.hpp"

namespace bench {

namespace {
struct Plan { // of one problem: what may run, and what it counts
  std::vector<schedule::Schedule> all;
  std::vector<std::vector<tune::Work>> works; // of each schedule, of each step
  std::vector<std::string> shown;
  std::vector<double> estimated;
  std::vector<double> read; // of each step
  std::vector<std::string> refused;
};

run::Options options(const CudaProblem& p) { return p.matrix ? run::hopper_options() : run::cuda_options(); }

tune::Machine nominal() { // counts need a machine's sizes, not its speeds
  tune::Machine m;
  m.workers = 132, m.lanes = 32;
  m.fma = m.exp = m.write = m.matrix = {1e12, 1e12};
  m.one = m.every = m.full = {1e-6, 1e-6, 1e-6};
  m.levels = {{"L1", 132 << 18, {1e12, 1e12}}, {"L2", 60 << 20, {1e12, 1e12}}, {"memory", 0, {1e12, 1e12}}};
  return m;
}

Plan plan_of(const CudaProblem& p, const tune::Machine& m = nominal()) {
  const run::Options o = options(p);
  const run::Derivation d = run::derive(p.graph, o);
  Plan out;
  std::vector<std::vector<tune::Candidate>> steps;
  size_t main = 0;
  std::string key;
  for (size_t s = 0; s < d.plan.steps.size(); ++s) {
    const double read = tune::read_bytes(d.plan, d.plan.steps[s], p.keys);
    out.read.push_back(read);
    std::vector<const lower::Lowered*> kernels;
    for (auto& l : d.kernels.kernels)
      if (size_t(l.step) == s) kernels.push_back(&l);
    tune::Candidate c;
    c.work = tune::work_of(kernels, m, read);
    steps.push_back({c});
    if (c.work.contracted >= steps[main][0].work.contracted) main = s;
  }
  const tune::Space space = p.most > 1 ? tune::space_of(d, o, main, m) : tune::Space{};
  out.refused = space.refused;
  for (size_t k = 0; k < std::max<size_t>(1, space.candidates.size()) && out.all.size() < p.most; ++k) {
    schedule::Schedule s = o.schedule;
    std::vector<tune::Work> works;
    for (auto& x : steps) works.push_back(x[0].work);
    if (!space.candidates.empty()) {
      s.groups[space.key] = space.candidates[k].fields;
      works[main] = space.candidates[k].work, works[main].read = out.read[main];
    }
    out.all.push_back(s), out.works.push_back(works);
    out.shown.push_back(space.candidates.empty() ? d.kernels.kernels.back().schedule : space.candidates[k].shown);
    out.estimated.push_back(space.candidates.empty() ? 0 : space.candidates[k].estimated);
  }
  return out;
}

std::vector<CudaProblem> problems() {
  std::vector<CudaProblem> all = class_problems();
  for (auto& more : {cuda_race_problems(), cuda_sound_problems()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

run::Options as_written() {
  run::Options o = run::cuda_options();
  o.optimize = false, o.schedule = schedule::as_written();
  return o;
}

std::string text_of(const CudaProblem& p, const schedule::Schedule& s) {
  run::Options o = options(p);
  o.schedule = s;
  return run::cuda_source(run::derive(p.graph, o), o.target);
}

int compile(const std::string& cache, const std::string& only) {
  device::CudaCompilerOptions how;
  how.cache = cache;
  const auto compiler = device::CudaCompiler::open(how);
  compiler->compile(tune::cuda_probes(), "sm_90a");
  for (auto& p : problems()) {
    if ((p.group + " " + p.name).find(only) == std::string::npos) continue;
    const Plan plan = plan_of(p);
    const double from = device::Cpu::seconds();
    try {
      compiler->compile(run::cuda_source(run::derive(p.graph, as_written())), "sm_90a");
      for (auto& s : plan.all) compiler->compile(text_of(p, s), "sm_90a");
    } catch (const Error& e) { std::printf("FAILED %s\n", e.what()); }
    std::printf("%-8s %-40s %3zu candidates %6.1f s  %zu steps, %.2f MB read: %s\n", p.group.c_str(), p.name.c_str(),
                plan.all.size(), device::Cpu::seconds() - from, plan.read.size(), plan.read.back() * 1e-6, plan.shown[0].c_str());
    for (size_t k = 0; k < plan.refused.size() && k < 3; ++k) std::printf("         refused: %s\n", plan.refused[k].c_str());
    if (p.matrix)
      for (auto& l : run::derive(p.graph, options(p)).kernels.kernels)
        if (!l.refused.empty()) std::printf("         plain: %s\n", l.refused.c_str());
    std::fflush(stdout);
  }
  return 0;
}

// What the kernels of a candidate start at least, as they are compiled here, and their workgroups.
ordered_json counted(const CudaProblem& p, const Plan& plan, size_t k, device::CudaCompiler& compiler) {
  run::Options o = options(p);
  o.schedule = plan.all[k];
  const run::Derivation d = run::derive(p.graph, o);
  const std::string code = compiler.compile(run::cuda_source(d, o.target), "sm_90a");
  ordered_json works = ordered_json::array();
  for (size_t s = 0; s < d.plan.steps.size(); ++s) {
    std::vector<const lower::Lowered*> kernels;
    for (auto& l : d.kernels.kernels)
      if (size_t(l.step) == s) kernels.push_back(&l);
    tune::Work w = tune::work_of(kernels, nominal());
    tune::count_issued(w, kernels, nominal(), code);
    works.push_back({{"workgroups", w.workgroups}, {"issued", w.issued}, {"after", w.after}});
  }
  return works;
}

int count(const std::string& file, const std::string& only) {
  const auto compiler = device::CudaCompiler::open({});
  std::string rows;
  for (auto& p : problems()) {
    if ((p.group + " " + p.name).find(only) == std::string::npos) continue;
    const Plan plan = plan_of(p);
    for (size_t k = 0; k < plan.all.size(); ++k) {
      const ordered_json row{{"group", p.group}, {"problem", p.name}, {"schedule", plan.shown[k]},
                             {"works", counted(p, plan, k, *compiler)}};
      rows += (rows.empty() ? "" : ",\n") + row.dump(); // a line each, so that files can be compared
    }
  }
  std::ofstream(file) << "{\"schema\": \"tang.tune-counts/1\", \"compiler\": " << ordered_json(compiler->identity())
                      << ", \"counts\": [\n" << rows << "\n]}\n";
  std::printf("%lld candidates counted: %s\n", static_cast<long long>(std::count(rows.begin(), rows.end(), '\n') + 1), file.c_str());
  return 0;
}

int show(const std::string& only) {
  for (auto& p : problems())
    if ((p.group + " " + p.name).find(only) != std::string::npos)
      std::printf("// %s\n%s\n", p.name.c_str(), text_of(p, options(p).schedule).c_str());
  return 0;
}

class Runner {
public:
  Runner(const std::string& cache, std::string folder, double seconds, std::vector<std::string> only)
      : folder_(std::move(folder)), only_(std::move(only)), end_(device::Cpu::seconds() + seconds), gpu_(device::Cuda::open()) {
    device::CudaCompilerOptions how;
    how.cache = cache;
    compiler_ = device::CudaCompiler::open(how);
  }

  int run() {
    const tune::Machine m = tune::probe(gpu_, *compiler_);
    std::ofstream(folder_ + "/probe.json") << tune::as_json(m) << "\n";
    std::printf("%s\n", tune::as_json(m).c_str());
    doc_ = {{"schema", "tang.tune-cuda/1"}, {"device", m.device}, {"driver", m.driver}, {"date", m.date}};
    doc_["rows"] = ordered_json::array();
    for (auto& p : problems()) {
      if (device::Cpu::seconds() > end_) break;
      const bool wanted = std::any_of(only_.begin(), only_.end(), [&](auto& part) {
        return (p.group + " " + p.name).find(part) != std::string::npos;
      });
      if (!wanted && !only_.empty()) continue;
      try {
        problem(p);
      } catch (const std::exception& e) {
        std::printf("FAILED %s: %s\n", p.name.c_str(), e.what());
        if (auto* x = dynamic_cast<const device::CudaError*>(&e); x && x->kind() == device::CudaError::lost) break;
      }
      std::fflush(stdout);
      std::ofstream(folder_ + "/cuda.json") << doc_.dump(1) << "\n";
    }
    return 0;
  }

private:
  std::unique_ptr<run::CudaProgram> program(const CudaProblem& p, const run::Options& o) {
    return std::make_unique<run::CudaProgram>(p.graph, *compiler_, gpu_, o);
  }

  // Of a run from poisoned memory, twice in a row: the largest difference over the largest value, and what is wrong.
  std::pair<double, std::string> checked(run::Program& x, const CudaProblem& p,
                                         const std::map<std::string, eval::Array>& want) {
    x.poison_scratch();
    for (auto& o : p.graph.outputs) x.memory(o.name)->poison();
    x.run(), x.run();
    double worst = 0;
    for (auto& o : p.graph.outputs) {
      std::vector<uint8_t> held(size_t(x.elements(o.name) * run::bytes_of(x.format(o.name))));
      x.read(o.name, held.data());
      worst = std::max(worst, off(held, x.format(o.name), want.at(o.name)));
    }
    for (auto& t : x.trespass()) return {worst, "wrote outside its memory: " + t};
    return {worst, worst <= p.budget ? "" : "off by " + std::to_string(worst) + " of the largest value"};
  }

  static double off(const std::vector<uint8_t>& held, ir::Format f, const eval::Array& want) {
    const bool narrow = f == ir::Format::bf16;
    if (!narrow) return verify::compared(held.data(), f, want, 1).error;
    double top = 0, most = 0;
    for (size_t k = 0; k < want.r.size(); ++k) {
      const uint32_t bits = uint32_t(held[2 * k] | held[2 * k + 1] << 8) << 16;
      float got = 0;
      std::memcpy(&got, &bits, 4);
      const double d = std::fabs(double(got) - want.r[k]);
      top = std::max(top, std::fabs(want.r[k])), most = d <= most ? most : d == d ? d : 1e300; // NaN: unwritten
    }
    return most / std::max(top, 1e-30);
  }

  tune::Sample timed(const std::function<void(int)>& launch, int runs, int replays) {
    const auto g = gpu_->capture([&] {
      for (int r = 0; r < runs; ++r) launch(r);
    });
    std::vector<double> all;
    for (int k = -2; k < replays; ++k) {
      void* from = gpu_->mark();
      g->run();
      const double t = gpu_->seconds(from, gpu_->mark()) / runs;
      if (k >= 0) all.push_back(t);
    }
    return tune::sample_of(all);
  }

  void row(const CudaProblem& p, const Plan& plan, size_t k, const char* mode, const tune::Sample& t, double error) {
    ordered_json works = ordered_json::array();
    for (auto& w : plan.works[k]) works.push_back(ordered_json::parse(tune::as_json(w)));
    doc_["rows"].push_back({{"group", p.group}, {"problem", p.name}, {"candidate", k}, {"schedule", plan.shown[k]},
                            {"mode", mode}, {"median", t.median}, {"low", t.low}, {"high", t.high}, {"best", t.best},
                            {"runs", t.runs}, {"error", error}, {"estimated", plan.estimated[k]}, {"works", works}});
  }

  // Copies of a checked program with memories of their own.
  void cold(const CudaProblem& p, const Plan& plan, size_t k, run::CudaProgram& first, double error) {
    double bytes = 0;
    for (double r : plan.read) bytes += r;
    const int copies = int(std::clamp(150e6 / bytes, 2.0, 300.0));
    run::Options o = options(p);
    o.schedule = plan.all[k];
    std::vector<std::unique_ptr<run::Program>> all;
    const run::Backend backend = run::on_cuda({compiler_.get(), [](auto*) {}}, gpu_);
    for (int c = 1; c < copies; ++c) {
      all.push_back(std::make_unique<run::Program>(first.derivation(), backend, o));
      for (auto& n : p.graph.nodes)
        if (n.input()) {
          const auto from = first.memory(n.name), to = all.back()->memory(n.name);
          first.device().copy({to, 0, to->size()}, {from, 0, from->size()});
        }
      all.back()->run();
    }
    const auto t = timed([&](int r) { r ? all[size_t(r) - 1]->run() : first.run(); }, copies, 15);
    row(p, plan, k, "cold", t, error);
    std::printf("  cold %8.2f us, %d copies, %s\n", t.median * 1e6, copies, plan.shown[k].c_str());
  }

  void problem(const CudaProblem& p) {
    const Plan plan = plan_of(p);
    auto written = program(p, as_written()); // the reference, in f32; its inputs are everybody's
    verify::feed(*written, p.graph, inputs_of(p.graph));
    written->run();
    const auto want = tune::results(*written, p.graph);
    double best = 0;
    std::vector<std::pair<double, size_t>> order; // of those that passed
    std::vector<std::unique_ptr<run::CudaProgram>> made(plan.all.size());
    std::vector<double> errors(plan.all.size());
    for (size_t k = 0; k < plan.all.size(); ++k) {
      run::Options o = options(p);
      o.schedule = plan.all[k], o.guards = true;
      auto x = program(p, o);
      for (auto& n : p.graph.nodes)
        if (n.input()) x->bind(n.name, written->memory(n.name));
      const auto [error, why] = checked(*x, p, want);
      if (!why.empty()) {
        std::printf("WRONG %s, %s: %s\n", p.name.c_str(), plan.shown[k].c_str(), why.c_str());
        continue;
      }
      // One that is far from the best so far needs no more than to be seen so.
      const double once = timed([&](int) { x->run(); }, 2, 1).median;
      const bool far = k && once > 3 * best;
      const auto t = timed([&](int) { x->run(); }, far ? 2 : p.group == "race" ? 10 : 20, far ? 5 : p.group == "race" ? 21 : 15);
      best = k ? std::min(best, t.median) : t.median;
      row(p, plan, k, "warm", t, error);
      if (k == 0 || p.group == "race")
        std::printf("%-40s %8.2f us  error %.1e", p.name.c_str(), t.median * 1e6, error);
      if (k == 0 || p.group == "race") std::printf("  %s\n", plan.shown[k].c_str());
      order.emplace_back(t.median, k), made[k] = std::move(x), errors[k] = error;
    }
    if (p.group != "class") return;
    // Cold: what compilation takes, and the two fastest.
    std::sort(order.begin(), order.end());
    std::set<size_t> some = {0};
    for (size_t n = 0; n < std::min<size_t>(2, order.size()); ++n) some.insert(order[n].second);
    for (size_t k : some)
      if (made[k]) cold(p, plan, k, *made[k], errors[k]);
  }

  std::string folder_;
  std::vector<std::string> only_;
  double end_;
  std::shared_ptr<device::Cuda> gpu_;
  std::shared_ptr<device::CudaCompiler> compiler_;
  ordered_json doc_;
};
} // namespace

std::map<std::string, double> estimates(const CudaProblem& p, const tune::Machine& m) {
  const Plan plan = plan_of(p, m);
  std::map<std::string, double> out;
  for (size_t k = 0; k < plan.all.size(); ++k) out.emplace(plan.shown[k], plan.estimated[k]);
  return out;
}
} // namespace bench

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[1] : "";
  try {
    if (verb == "text") return bench::show(argv[2]);
    if (verb == "count") return bench::count(argv[2], argc > 3 ? argv[3] : "");
    if (verb == "compile") return bench::compile(argv[2], argc > 3 ? argv[3] : "");
    if (verb == "run" && argc > 3) return bench::Runner(argv[2], argv[3], argc > 4 ? std::stod(argv[4]) : 100, {argv + std::min(argc, 5), argv + argc}).run();
    if (verb == "report") return bench::cuda_report(argv[2], {argv + 3, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return std::fprintf(stderr, "usage: bench_tune_cuda text PART | compile CACHE | count FILE.json | run CACHE FOLDER | report FILE.md PART.json ..\n"), 2;
}
