// The small verbs: explain, run, verify, devices.
#include <cstdio>

#include "tang/cli/measured.hpp"
#include "tang/cli/programs.hpp"
#include "tang/cli/tool.hpp"
#include "tang/text/schedule.hpp"
#include "tang/text/text.hpp"
#include "tang/verify/record.hpp"
#include "tang/verify/verify.hpp"

namespace tang::cli {

void need_output(const ir::Graph& g, const std::string& file) {
  if (g.outputs.empty())
    throw Error({}, "'" + file + "' has no output", {{"what no output reads is not computed", {}}}, "add a line `output NAME` for each result");
}

ir::Graph read_graph(const std::string& file, const ir::Bindings& given) {
  const std::string source = read_text(file);
  text::Reading r = text::read(source, file);
  for (auto& w : r.warnings) std::fprintf(stderr, "%s\n", text::render(w, source, file).c_str());
  if (!r.graph) throw text::Problems(r.problems, text::render(r.problems, source, file));
  need_output(*r.graph, file);
  std::map<std::string, bool> symbols;
  for (auto& n : r.graph->nodes)
    if (auto* in = n.input())
      for (auto& e : in->shape) e.symbols(symbols);
  for (auto& [name, v] : given)
    if (!symbols.count(name))
      throw Error({}, "the graph has no symbol '" + text::shown(name) + "'", {{"it was given the value " + std::to_string(v), {}}}, "set only what a `sym` line declares");
  if (symbols.empty()) return *r.graph;
  // Unbound symbols take the smallest round value that their declaration allows.
  ir::Bindings values;
  for (auto& [name, unused] : symbols) {
    const ir::SymbolFacts f = r.graph->symbols.count(name) ? r.graph->symbols.at(name) : ir::SymbolFacts{};
    if (auto it = given.find(name); it != given.end()) {
      values[name] = it->second;
      continue;
    }
    int64_t v = std::max<int64_t>(f.lower, 64);
    v = std::min(f.upper, (v + f.divisor - 1) / f.divisor * f.divisor);
    values[name] = v;
    std::fprintf(stderr, "symbol %s = %lld\n", name.c_str(), static_cast<long long>(v));
  }
  return ir::bind(*r.graph, values).graph;
}

void refuse_too_large(const ir::Graph& g) {
  double bytes = 0, largest = 0;
  std::string name;
  auto add = [&](ir::Port p, const std::string& of, double element) {
    double n = element;
    for (auto& e : g.shape(p)) n *= double(e.value());
    bytes += n;
    if (n > largest) largest = n, name = of;
  };
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* in = g[id].input()) add({id, 0}, g[id].name, 8 + expr::row(in->format).bits / 8.0); // random numbers are made in f64
  for (auto& o : g.outputs) add(o.port, o.name, 4);
  const double here = memory_bytes();
  if (here <= 0 || bytes <= here) return;
  auto text = [](double b) {
    char out[32];
    std::snprintf(out, sizeof out, "%.3g GiB", b / 0x1p30);
    return std::string(out);
  };
  throw Error({}, "inputs and outputs do not fit this machine",
              {{"they take " + text(bytes) + ", '" + text::shown(name) + "' alone " + text(largest), {}}, {"there are " + text(here), {}}},
              "smaller sizes");
}

int explain(const Common&, const std::string& file) {
  const ir::Graph g = read_graph(file);
  const rewrite::Optimized best = rewrite::optimize(g);
  const plan::Plan before = plan::make_plan(g, schedule::as_written()),
                   after = plan::make_plan(best.graph, {});
  std::printf("%s", rewrite::explain(best.trace).c_str());
  std::printf("\n%zu kernels as written, %zu derived; %.3f MB moved as written, %.3f MB derived\n\n%s",
              before.steps.size(), after.steps.size(), double(before.bytes_moved()) / 1e6,
              double(after.bytes_moved()) / 1e6, plan::print(after).c_str());
  return 0;
}

namespace {
void print_outputs(run::Program& p, const ir::Graph& g) {
  for (auto& o : g.outputs) {
    const int64_t n = p.elements(o.name), few = std::min<int64_t>(n, 8);
    const ir::Format f = p.format(o.name);
    std::vector<char> held(size_t(n * run::bytes_of(f)));
    p.read(o.name, held.data());
    std::printf("%s [%lld]:", o.name.c_str(), static_cast<long long>(n));
    if (ir::type_of(f) == expr::Type::real)
      for (double v : run::read_reals(held.data(), f, few)) std::printf(" %.6g", v);
    else
      for (int64_t v : run::read_integers(held.data(), f, few)) std::printf(" %lld", static_cast<long long>(v));
    std::puts(n > few ? " .." : "");
  }
}

void limit_error(run::Options& o, double most, const eval::Inputs& inputs) {
  if (most > 0) o.budget = run::ErrorBudget{most, {}, inputs};
}

int run_elsewhere(const Common& c, const ir::Graph& g, const RunArguments& a) {
  const run::Opened to = open_or_throw(c, a.target);
  const eval::Inputs inputs = random_inputs(g, a.seed);
  run::Options o = run::options_for(to.target);
  limit_error(o, a.budget, inputs);
  run::Program p(g, to.backend, o);
  verify::feed(p, g, inputs);
  p.run();
  print_outputs(p, g);
  return 0;
}
} // namespace

int run_file(const Common& c, const std::string& file, const RunArguments& a) {
  const double start = device::Cpu::seconds();
  if (file.empty()) throw Error({}, "nothing to run", {}, "name a .tang file, or --model FILE");
  const ir::Graph g = read_graph(file);
  refuse_too_large(g);
  if (!a.target.empty() && a.target != "c") {
    if (!a.schedule.empty()) throw Error({}, "a schedule file is for the C target", {{"the target is " + a.target, {}}}, "leave out one of the two");
    return run_elsewhere(c, g, a);
  }
  Host h = open_host(c);
  h.options = scheduled(c, h, g, a.schedule, a.locked);
  const eval::Inputs inputs = random_inputs(g, a.seed);
  limit_error(h.options, a.budget, inputs);
  run::Program p(g, h.compiler, h.cpu, h.options);
  if (!a.schedule.empty()) { // restored: verified once
    const tune::Reference r = tune::reference_of(g, inputs, h.options, h.compiler);
    const auto t = tune::checked(p, g, inputs, r, 1e-4);
    if (!t.second.empty())
      throw Error({}, "the restored schedule gives other results", {{t.second, {}}, {"compared with " + r.from, {}}}, "tune again, and report the schedule");
    std::fprintf(stderr, "restored schedule: largest error %.1e against %s\n", t.first, r.from.c_str());
  }
  verify::feed(p, g, inputs);
  std::fprintf(stderr, "first kernel after %.1f ms, %d compiler runs\n", 1e3 * (device::Cpu::seconds() - start), h.compiler->runs());
  p.run();
  print_outputs(p, g);
  return 0;
}

int verify_file(const Common& c, const std::string& file, const VerifyArguments& a) {
  const ir::Graph g = read_graph(file);
  refuse_too_large(g);
  verify::Recording kept{verify::name_of(g, a.seed), "", {}};
  const run::Opened to = open_or_throw(c, a.target);
  run::Options options = run::options_for(to.target);
  if (!a.schedule.empty())
    options = tune::restored(text::parse_schedule(read_text(a.schedule), a.schedule), g, options, false);
  options.guards = true;
  run::Program p(g, to.backend, options);
  kept.target = to.target.name + ", " + to.description;
  const verify::Report r = verify::verify(p, g, random_inputs(g, a.seed), a.budget, thread_count(c),
                                          a.record.empty() ? verify::Seen() : verify::recorder(kept));
  if (!a.record.empty()) write_text(a.record, verify::print(kept));
  auto line = [](const char* kind, const verify::Check& k) {
    std::printf("%-7s %-24s error %.1e  %lld/%lld written  %s %s\n", kind, k.what.c_str(), k.error,
                static_cast<long long>(k.values - k.unwritten), static_cast<long long>(k.values),
                k.ok ? "ok" : "FAILED", k.why.c_str());
  };
  for (auto& k : r.kernels) line("kernel", k);
  for (auto& k : r.outputs) line("output", k);
  for (auto& t : r.trespass) std::printf("guard band written: %s\n", t.c_str());
  std::printf("%d passed, %d failed\n", r.verified(), r.failed() + int(r.trespass.size()));
  return r.ok() ? 0 : 1;
}

int diff_runs(const Common&, const std::string& a, const std::string& b, double budget) {
  const verify::Recording x = verify::recording(read_text(a), a), y = verify::recording(read_text(b), b);
  const verify::Comparison c = verify::compare(x, y, budget);
  std::printf("%s", verify::text(c, x, y, budget).c_str());
  return c.beyond ? 1 : 0;
}

} // namespace tang::cli
