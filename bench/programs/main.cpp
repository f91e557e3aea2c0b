// bench_programs [matmul | attention | backward | training | sorted | streams | small | compile | figure | chunks ..] [--threads N] [--quick] [--cache FOLDER]
//                [--json FILE] [--kernels]
// --kernels: of training programs, each kernel's share of the time.
// bench_programs report PREFIX PART.json ..
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "bench.hpp"

int main(int argc, char** argv) {
  std::vector<std::string> words;
  std::string json, cache;
  int threads = 1;
  bool quick = false, kernels = false;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    auto value = [&] { return ++i < argc ? std::string(argv[i]) : std::string(); };
    if (a == "--threads") threads = std::stoi(value());
    else if (a == "--json") json = value();
    else if (a == "--cache") cache = value();
    else if (a == "--quick") quick = true;
    else if (a == "--kernels") kernels = true;
    else words.push_back(a);
  }
  try {
    if (!words.empty() && words[0] == "report") {
      if (words.size() < 3) return std::fprintf(stderr, "usage: bench_programs report PREFIX PART.json ..\n"), 2;
      const int missed = bench::report(words[1], {words.begin() + 2, words.end()});
      std::printf("%d rows miss what they need\n", missed);
      return 0;
    }
    char own[] = "/tmp/tang-bench-XXXXXX";
    if (cache.empty()) cache = mkdtemp(own);
    bench::Bench b(threads, quick, cache);
    b.kernels = kernels;
    std::printf("OpenBLAS core %s, %d thread%s, %s\n", openblas_get_corename(), threads, threads == 1 ? "" : "s", b.compiler->path().c_str());
    const std::pair<const char*, void (*)(bench::Bench&)> all[] = {{"matmul", bench::matmul},   {"attention", bench::attention},     {"backward", bench::backward}, {"training", bench::training}, {"sorted", bench::sorted}, {"streams", bench::streams},
                                                                   {"small", bench::small},     {"compile", bench::compile_time},    {"figure", bench::figure},         {"chunks", bench::chunks}};
    for (auto& w : words) {
      bool known = false;
      for (auto& [name, f] : all) known |= w == name;
      if (!known) return std::fprintf(stderr, "no section '%s'\n", w.c_str()), 2;
    }
    for (auto& [name, f] : all) {
      bool wanted = words.empty();
      for (auto& w : words) wanted |= w == name;
      if (wanted) f(b);
    }
    if (!json.empty()) {
      FILE* f = std::fopen(json.c_str(), "w");
      if (!f) return std::fprintf(stderr, "%s cannot be written\n", json.c_str()), 1;
      const std::string text = bench::to_json(b);
      std::fwrite(text.data(), 1, text.size(), f);
      std::fclose(f);
    }
  } catch (const tang::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
