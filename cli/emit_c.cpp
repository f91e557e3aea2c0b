// tang emit c FILE.tang -o path/NAME
#include <cstdio>

#include "tang/cli/tool.hpp"
#include "tang/verify/samples.hpp"

namespace tang::cli {

namespace {
std::string last_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }
} // namespace

int emit_c(const Common& c, const std::string& file, const std::string& name, int lanes,
           const std::vector<std::string>& sizes) {
  run::Standalone s;
  s.name = last_part(name);
  s.file = last_part(file);
  if (!run::is_identifier(s.name))
    throw Error({}, "'" + run::in_comment(s.name) + "' cannot begin the names of C functions", {},
                "use letters, digits and '_', a letter first");
  ir::Bindings given;
  for (auto& size : sizes) {
    const size_t equals = size.find('=');
    const std::string digits = equals == std::string::npos ? "" : size.substr(equals + 1);
    const bool whole = equals && !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
    if (!whole) throw Error({}, "'" + run::in_comment(size) + "' sets no size", {}, "write a symbol and its value: --set seq=32");
    if (digits.size() > 12)
      throw Error({}, "'" + run::in_comment(size) + "' is too large", {{"a size has 12 digits at most", {}}}, "set a smaller one");
    given[size.substr(0, equals)] = std::stoll(digits);
    s.file += " --set " + size;
  }
  const ir::Graph g = read_graph(file, given);
  refuse_too_large(g);
  run::Options o;
  o.target = target::c_target(lanes, 1);
  const run::Derivation d = run::derive(g, o);
  s.fillings = run::fillings(g, 1);
  s.expected = verify::samples(g, d, s.fillings, thread_count(c));
  const run::Files f = run::standalone(g, d, o, s);
  write_text(name + ".h", f.header);
  write_text(name + ".c", f.source);
  std::fprintf(stderr,
               "%s.c, %s.h: %zu kernels; compile with cc -std=gnu11 -O2, link with -lm, "
               "%s_selftest(workspace) checks itself\n",
               name.c_str(), name.c_str(), d.kernels.kernels.size(), s.name.c_str());
  return 0;
}

} // namespace tang::cli
