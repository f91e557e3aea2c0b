// The demonstration as a program of its own: `make demo` builds the rooms that it needs and no others. `tang demo` is the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tang/cli/tool.hpp"

using namespace tang;

int main(int argc, char** argv) {
  cli::Common c;
  c.out = "build/demo";
  for (int k = 1; k < argc; ++k) {
    const bool more = k + 1 < argc;
    if (!std::strcmp(argv[k], "--json")) c.json = true;
    else if (more && !std::strcmp(argv[k], "--threads")) c.threads = std::atoi(argv[++k]);
    else if (more && !std::strcmp(argv[k], "--cache")) c.cache = argv[++k];
    else if (more && !std::strcmp(argv[k], "--out")) c.out = argv[++k];
    else {
      std::fprintf(stderr, "usage: tang_demo [--json] [--threads N] [--cache FOLDER] [--out FOLDER]\n");
      return 2;
    }
  }
  try {
    return cli::demo(c, 1);
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
