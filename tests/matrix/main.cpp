// tang verify --all with the targets that only tests have: Metal emulated, software drivers.
// usage: tang_matrix [--sample] [--json] [--target NAME] [--builder NAME]
#include <cstdio>

#include "run/opened.hpp"
#include "tang/cli/tool.hpp"

using namespace tang;

int main(int argc, char** argv) {
  cli::Common c;
  c.threads = 1;
  cli::MatrixArguments a;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--sample") a.sample = true;
    else if (word == "--json") c.json = true;
    else if (word == "--target" && k + 1 < argc) a.target = argv[++k];
    else if (word == "--builder" && k + 1 < argc) a.builder = argv[++k];
    else return std::fprintf(stderr, "usage: tang_matrix [--sample] [--json] [--target NAME] [--builder NAME]\n"), 2;
  }
  try {
    return cli::verify_all(c, a, [](const std::string& name) { return test::opened(name); });
  } catch (const Error& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
}
