// tang bound: the least traffic of each kernel of a file, and the certificate of each answer.
#include <cstdio>

#include "tang/bound/report.hpp"
#include "tang/cli/tool.hpp"
#include "tang/rewrite/driver.hpp"

namespace tang::cli {

int bound_file(const Common& c, const std::string& file, int64_t memory, bool in_words, bool as_written, const std::string& coq) {
  ir::Graph g = read_graph(file);
  if (!as_written) g = rewrite::optimize(g).graph;
  const bound::Unit unit = in_words ? bound::Unit::words : bound::Unit::bytes;
  const auto lines = bound::bounds_of(g, memory, unit);
  std::fputs((c.json ? bound::as_json(lines, memory, unit) : bound::as_text(lines, memory, unit)).c_str(), stdout);
  int written = 0;
  if (!coq.empty())
    for (size_t k = 0; k < lines.size(); ++k) {
      if (!lines[k].bound || lines[k].bound->certificate.x.empty()) continue;
      const std::string name = "bound_" + std::to_string(k);
      auto text = bound::as_coq(lines[k].bound->certificate, name);
      if (!text) {
        std::fprintf(stderr, "%s: no Coq certificate: %s\n", lines[k].kernel.c_str(), text.why().c_str());
        continue;
      }
      write_text(coq + "/" + name + ".v", bound::coq_imports + *text);
      ++written;
    }
  if (!coq.empty()) std::fprintf(stderr, "%d certificates in %s\n", written, coq.c_str());
  for (auto& l : lines)
    if (l.bound && !l.bound->certificate.x.empty() && !bound::failure(l.bound->certificate).empty()) return 1;
  return 0;
}

}  // namespace tang::cli
