// tang tune, tang probe, tang cache: measured schedules, the machine's constants, and what is kept of them.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tang/cli/measured.hpp"
#include "tang/cli/programs.hpp"
#include "tang/kernel/analyze.hpp"
#include "tang/text/schedule.hpp"
#include "tang/tune/picture.hpp"
#include "tang/tune/precision.hpp"
#include "tang/tune/ranking.hpp"

namespace tang::cli {

using nlohmann::ordered_json;

std::unique_ptr<tune::Store> open_store(const Host& h) {
  if (h.cache.empty()) return nullptr;
  try {
    return std::make_unique<tune::Store>(h.cache);
  } catch (const Error& e) {
    std::fprintf(stderr, "no tuning cache: %s\n", e.what());
    return nullptr;
  }
}

namespace {
// Weights that were learned on this machine, where the cache has some (`tang cache train`).
tune::Machine with_weights(tune::Machine m, tune::Store& store) {
  if (auto text = store.find("ranking", m.device))
    if (auto r = tune::ranking_of(*text)) m.weights = r->weights;
  return m;
}

// Learns the estimate's weights from what the cache holds of this machine; they are kept, and written to a
// file, where the pick of graphs that they never saw is better by them.
void train(const Host& h, tune::Store& store, const std::string& file) {
  const tune::Machine m = machine_of(h, &store, false);
  const auto r = tune::trained(tune::judged_of(store.rows("candidate"), m.device), m.device);
  if (!r)
    throw Error({}, "too little to learn from", {{r.why(), {}}}, "tune some programs first: tang tune FILE");
  const bool better = r->regret < r->regret_before;
  std::printf("%lld groups, %lld pairs; the lowest estimate of a graph left out is %.1f%% behind the best, with "
              "the weights before %.1f%%: %s\n",
              static_cast<long long>(r->groups), static_cast<long long>(r->pairs), 100 * r->regret,
              100 * r->regret_before, better ? "kept" : "not kept");
  if (better) store.put("ranking", m.device, tune::as_json(*r));
  if (!file.empty()) write_text(file, tune::as_json(*r) + "\n");
}
} // namespace

tune::Machine machine_of(const Host& h, tune::Store* store, bool again) {
  const std::string key = h.compiler->identity() + std::to_string(h.cpu->workers());
  if (store && !again)
    if (auto text = store->find("machine", key))
      if (auto m = tune::machine_of(*text); m && m->chain > 0) return with_weights(std::move(*m), *store);
  tune::Machine m = tune::probe(*h.compiler, *h.cpu, h.options.target.lanes);
  if (!store) return m;
  store->put("machine", key, tune::as_json(m));
  return with_weights(std::move(m), *store);
}

namespace {
std::atomic<bool> interrupted{false};

// Ctrl-C ends the search with the best so far; a second one ends the program.
struct OnInterrupt {
  struct sigaction before = {};

  OnInterrupt() {
    struct sigaction mine = {};
    mine.sa_handler = [](int) { interrupted.store(true); };
    mine.sa_flags = int(SA_RESETHAND);
    sigaction(SIGINT, &mine, &before);
  }

  ~OnInterrupt() { sigaction(SIGINT, &before, nullptr); }
};

void show(const tune::Progress& p, std::string& last) {
  const bool screen = isatty(2);
  if (!screen && p.what == last) return; // a file gets one line a phase
  last = p.what;
  std::fprintf(stderr, "%s  tune %d/%d  %s  first %s  best %s  %.0f s, eta %.0f s%s",
               screen ? "\r\x1b[K" : "", p.done, p.of, p.what.c_str(), time_text(p.first).c_str(),
               time_text(p.best).c_str(), p.seconds, p.eta, screen ? "" : "\n");
}

ordered_json as_json(const tune::Sample& s) {
  return {
      {"median_ns", s.median * 1e9}, {"low_ns", s.low * 1e9}, {"high_ns", s.high * 1e9}, {"runs", s.runs}};
}

const char* word(tune::Trial::Kind k) {
  static constexpr const char* all[] = {"pending", "ok", "refused", "wrong", "crashed", "hung", "stopped"};
  return all[k];
}

ordered_json as_json(const std::string& name, const tune::Tuned& t) {
  ordered_json row{{"program", name},
                   {"from_cache", t.from_store},
                   {"stopped", t.stopped},
                   {"seconds", t.seconds},
                   {"reference", t.reference},
                   {"max_error", t.error},
                   {"before", as_json(t.before)},
                   {"after", as_json(t.after)},
                   {"schedule", text::print(t.record)}};
  row["candidates"] = ordered_json::array();
  for (auto& c : t.timed)
    row["candidates"].push_back({{"group", c.group},
                                 {"fields", c.fields},
                                 {"schedule", c.shown},
                                 {"result", word(c.kind)},
                                 {"why", c.why},
                                 {"estimated_ns", c.estimated * 1e9},
                                 {"time", as_json(c.time)}});
  return row;
}

void pictures(const std::string& folder, const std::string& name, const tune::Tuned& t, const run::Options& o,
              const ir::Graph& g, const tune::Machine& m) {
  std::vector<tune::Mark> scatter;
  for (auto& c : t.timed)
    if (c.estimated > 0 && c.time.runs)
      scatter.push_back({c.group + ": " + c.fields, c.estimated, c.time.median, false});
  write_text(folder + "/" + name + "-scatter.svg",
             tune::scatter_svg(name + ": estimated and measured", scatter));
  run::Options chosen = o;
  chosen.schedule = t.record.schedule;
  const run::Derivation d = run::derive(g, chosen);
  std::vector<tune::Mark> roof;
  double flops = 0;
  for (auto& l : d.kernels.kernels) flops += double(kernel::traffic(l.kernel, o.target.lanes).flops);
  if (t.after.runs)
    roof.push_back({name, flops / double(d.plan.bytes_moved()), flops / t.after.median, true});
  write_text(folder + "/" + name + "-roofline.svg", tune::roofline_svg(name, roof, m));
}

// Formats of buffers and parts of folds, one move at a time from the tuned schedule; the record becomes what
// was kept.
void narrow(const Naive& p, const Host& h, const TuneFlags& flags, tune::Tuned& t) {
  run::Options o = h.options;
  o.schedule = t.record.schedule;
  const eval::Inputs inputs = random_inputs(p.graph, flags.seed);
  tune::Bench bench{p.graph, inputs, o, h.compiler, tune::reference_of(p.graph, inputs, o, h.compiler)};
  bench.stop = &interrupted;
  tune::ErrorBudget budget;
  budget.all = flags.budget;
  const tune::Precision found = tune::tune_precision(bench, budget);
  for (auto& m : found.moves)
    std::fprintf(stderr, "  %-24s %-40s predicted %.1e  %s -> %s  %s\n", m.group.c_str(), m.fields.c_str(),
                 m.predicted, time_text(m.before.median).c_str(), time_text(m.after.median).c_str(),
                 m.result.c_str());
  o.schedule = found.schedule;
  t.record = tune::record_of(p.graph, run::derive(p.graph, o), o);
}

std::string file_stem(const std::string& s) {
  std::string out = s.substr(s.rfind('/') + 1);
  out = out.substr(0, out.rfind(".tang"));
  for (char& c : out)
    if (!isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  return out;
}

std::vector<Naive> named_programs(const std::string& name) {
  if (exists(name)) return {{name, "", read_graph(name), 0}};
  std::vector<Naive> out;
  std::string all;
  for (auto& p : demo_programs(1)) {
    all += (all.empty() ? "'" : ", '") + p.name + "'";
    if (name == "demo" || p.name == name) out.push_back(p);
  }
  if (out.empty())
    throw Error({}, "nothing to tune: '" + name + "'", {{"the demonstration's programs are " + all, {}}},
                "name a .tang file, demo, or one of them");
  return out;
}
} // namespace

int tune_program(const Common& c, const std::string& name, const TuneFlags& flags) {
  const double start = device::Cpu::seconds();
  const std::vector<Naive> programs = named_programs(name);
  Host h = open_host(c);
  const std::string own = h.cache.empty() ? private_cache() : "";
  if (!own.empty()) h = open_host_in(c, own);
  h.options.guards = false;
  const auto store = open_store(h);
  const tune::Machine machine = machine_of(h, store.get(), false);
  OnInterrupt guard;
  ordered_json doc{
      {"schema", "tang.tune/1"}, {"device", machine.device}, {"programs", ordered_json::array()}};
  for (auto& p : programs) {
    if (interrupted.load()) break;
    tune::Options how;
    how.seconds = flags.seconds;
    how.most = flags.most;
    how.error_budget = flags.budget;
    how.again = flags.again;
    how.store = store.get();
    how.stop = &interrupted;
    std::string last;
    how.progress = [&](const tune::Progress& x) { show(x, last); };
    tune::Tuned t;
    if (flags.untimed) {
      run::Options o = h.options;
      o.schedule = tune::untimed(p.graph, o, machine);
      t.record = tune::record_of(p.graph, run::derive(p.graph, o), o);
    } else {
      refuse_too_large(p.graph);
      t = tune::tune(p.graph, random_inputs(p.graph, flags.seed), h.options, h.compiler, machine, how);
    }
    if (flags.precision && !interrupted.load()) narrow(p, h, flags, t);
    if (isatty(2)) std::fprintf(stderr, "\r\x1b[K");
    doc["programs"].push_back(as_json(p.name, t));
    size_t ok = 0, bad = 0;
    for (auto& x : t.timed) x.kind == tune::Trial::ok ? ++ok : ++bad;
    if (!c.json) {
      if (t.from_store || flags.untimed)
        std::printf("%-32s %s: %d kernels\n", p.name.c_str(), flags.untimed ? "not measured" : "known",
                    t.record.kernels);
      else
        std::printf(
            "%-32s %10s -> %10s  x %.2f   %zu timed, %zu not ok, %d kernels, %.1f s%s   checked against %s\n",
            p.name.c_str(), time_text(t.before.median).c_str(), time_text(t.after.median).c_str(),
            t.before.median / t.after.median, ok, bad, t.record.kernels, t.seconds,
            t.stopped ? ", stopped" : "", t.reference.c_str());
    }
    if (!flags.out.empty())
      write_text(programs.size() == 1 ? flags.out : flags.out + "/" + file_stem(p.name) + ".tangsched",
                 text::print(t.record));
    if (!flags.report.empty()) pictures(flags.report, file_stem(p.name), t, h.options, p.graph, machine);
  }
  doc["seconds"] = device::Cpu::seconds() - start;
  if (c.json)
    std::printf("%s\n", doc.dump(1).c_str());
  else
    std::printf("%.1f s\n", device::Cpu::seconds() - start);
  if (store && !store->trouble().empty()) std::fprintf(stderr, "%s\n", store->trouble().c_str());
  if (!own.empty()) std::filesystem::remove_all(own);
  return interrupted.load() ? 130 : 0;
}

int probe(const Common& c, const std::string& out, const std::string& target) {
  Host h = open_host(c);
  std::string text;
  if (target == "cuda") {
    device::CudaCompilerOptions how;
    how.cache = h.cache;
    const auto compiler = device::CudaCompiler::open(how);
    text = tune::as_json(tune::probe(device::Cuda::open(), *compiler)) + "\n";
  } else if (target.empty() || target == "c") {
    const auto store = open_store(h);
    text = tune::as_json(machine_of(h, store.get(), true)) + "\n";
  } else {
    throw Error({}, "no probes for the target '" + text::shown(target) + "'",
                {{"there are probes for c and cuda", {}}}, "choose one of them");
  }
  if (out.empty())
    std::fputs(text.c_str(), stdout);
  else
    write_text(out, text);
  return 0;
}

int cache(const Common& c, const std::string& what, const std::string& file, int64_t days, int64_t most) {
  Host h = open_host(c);
  if (h.cache.empty()) throw Error({}, "there is no cache", {}, "name a folder: --cache FOLDER");
  tune::Store store(h.cache);
  if (what == "ls") {
    const auto rows = store.rows();
    if (c.json) {
      ordered_json doc{{"schema", "tang.cache/1"}, {"path", store.path()}, {"rows", ordered_json::array()}};
      for (auto& r : rows)
        doc["rows"].push_back({{"kind", r.kind}, {"key", r.key}, {"at", r.at}, {"value", r.value}});
      std::printf("%s\n", doc.dump(1, ' ', false, ordered_json::error_handler_t::replace).c_str());
      return 0;
    }
    for (auto& r : rows) {
      char when[32];
      const std::time_t t = r.at;
      std::strftime(when, sizeof when, "%Y-%m-%d %H:%M", std::localtime(&t));
      std::string shown = r.kind == "candidate" ? "" : std::to_string(r.value.size()) + " bytes";
      if (const auto j = ordered_json::parse(r.value, nullptr, false); r.kind == "candidate" && j.is_object())
        shown =
            time_text(j.value("median", 0.0)) + "  " + j.value("label", "") + "  " + j.value("schedule", "");
      std::printf("%s  %-9s  %.40s  %s\n", when, r.kind.c_str(), text::shown(r.key, 40).c_str(),
                  text::shown(shown, 100).c_str());
    }
    std::printf("%zu rows in %s\n", rows.size(), store.path().c_str());
  } else if (what == "export") {
    write_text(file, tune::exported(store.rows()));
  } else if (what == "import") {
    int64_t damaged = 0, put = 0;
    for (auto& r : tune::imported(read_text(file), damaged)) put += store.put(r.kind, r.key, r.value);
    std::printf("%lld rows, %lld damaged lines left out\n", static_cast<long long>(put),
                static_cast<long long>(damaged));
  } else if (what == "train") {
    train(h, store, file);
  } else {
    const int64_t gone = store.gc(std::time(nullptr) - days * 86400, most);
    std::printf("%lld rows removed\n", static_cast<long long>(gone));
  }
  if (!store.trouble().empty()) std::fprintf(stderr, "%s\n", store.trouble().c_str());
  return store.trouble().empty() ? 0 : 1;
}

} // namespace tang::cli
