// bench_tune race | sound [--threads N] [--cache FOLDER] [--only NAME] [--pairs N] [--compile-only] [--seconds S] [--probe FILE] [--json FILE]
// bench_tune recount --timed RACE.json ..  the same race with today's counts of its schedules
// bench_tune predict ..  what changes of one term save, by the estimate; intervene --predicted FILE ..  what they do save
// bench_tune report PREFIX PART.json ..
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "bench.hpp"

int main(int argc, char** argv) {
  std::vector<std::string> words;
  std::string json, cache, probe, predicted, timed;
  bench::Setup s;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    auto value = [&] { return ++i < argc ? std::string(argv[i]) : std::string(); };
    if (a == "--threads") s.threads = std::stoi(value());
    else if (a == "--json") json = value();
    else if (a == "--cache") cache = value();
    else if (a == "--only") s.only = value();
    else if (a == "--pairs") s.pairs = std::stoll(value());
    else if (a == "--probe") probe = value();
    else if (a == "--predicted") predicted = value();
    else if (a == "--timed") timed = value();
    else if (a == "--sizes") {
      s.sizes.clear();
      std::istringstream all(value());
      for (std::string n; std::getline(all, n, ',');) s.sizes.push_back(std::stoll(n));
    }
    else if (a == "--seconds") s.seconds = std::stod(value());
    else if (a == "--compile-only") s.compile_only = true;
    else words.push_back(a);
  }
  if (words.empty()) return std::fprintf(stderr, "usage: bench_tune race | sound | report ..\n"), 2;
  try {
    if (words[0] == "report") return bench::report(words.at(1), {words.begin() + 2, words.end()});
    char own[] = "/tmp/tang-bench-XXXXXX";
    if (cache.empty()) cache = mkdtemp(own);
    tang::device::CompilerOptions o;
    o.search = {"/usr/local/bin", "/usr/bin", "/bin"};
    o.cache = cache;
    s.compiler = std::make_shared<tang::device::Compiler>(o);
    s.options.target = tang::target::c_target_of_host(s.threads);
    {
      std::ifstream in(probe);
      std::ostringstream text;
      text << in.rdbuf();
      tang::device::Cpu cpu(s.threads);
      auto m = tang::tune::machine_of(text.str());
      s.machine = m ? *m : tang::tune::probe(*s.compiler, cpu, s.options.target.lanes);
      if (!m && !probe.empty()) std::ofstream(probe) << tang::tune::as_json(s.machine);
    }
    bench::ordered_json doc = bench::ordered_json::array();
    if (words[0] == "race")
      for (auto& p : bench::race_problems())
        if (p.name.find(s.only) != std::string::npos) doc.push_back(bench::race(s, p));
    if (words[0] == "recount") {
      std::ifstream in(timed);
      const auto rows = bench::ordered_json::parse(in);
      for (auto& p : bench::race_problems()) doc.push_back(bench::recounted(s, p, rows));
    }
    if (words[0] == "predict") doc = bench::predict(s);
    if (words[0] == "intervene") {
      std::ifstream in(predicted);
      doc = bench::intervene(s, bench::ordered_json::parse(in));
    }
    if (words[0] == "sound") doc.push_back(bench::sound(s));
    if (!json.empty()) std::ofstream(json) << doc.dump(1) << "\n";
  } catch (const tang::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
