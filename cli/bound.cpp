// tang bound: the least traffic of each kernel of a file, and the certificate of each answer.
#include <cctype>
#include <cstdio>

#include "tang/bound/derivation.hpp"
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
  if (!coq.empty()) {
    std::string text;
    int written = 0;
    for (auto& l : lines) {
      if (!l.bound || l.bound->certificate.x.empty()) continue;
      // Kernels' names as Coq names: letters, digits, and the place among the lines.
      std::string name = "b" + std::to_string(memory) + "_";
      for (char x : l.kernel) name += std::isalnum(static_cast<unsigned char>(x)) ? x : '_';
      name += (l.kind == "chained" ? "_chained_" : "_") + std::to_string(&l - lines.data());
      auto theorem = bound::as_coq(l.bound->certificate, name);
      if (!theorem) {
        std::fprintf(stderr, "%s: no Coq certificate: %s\n", l.kernel.c_str(), theorem.why().c_str());
        return 1;
      }
      text += *theorem;
      for (auto* term : {&l.bound->chain, &l.bound->any})
        if (*term)
          if (auto cover = bound::as_coq(*l.bound, **term, name + (term == &l.bound->chain ? "_chain" : "_any")))
            text += *cover;
      ++written;
    }
    const std::string to = coq + "/certificate_bound_" + std::to_string(memory) + ".v";
    write_text(to, bound::coq_imports + text);
    std::fprintf(stderr, "%d certificates in %s\n", written, to.c_str());
  }
  for (auto& l : lines)
    if (l.bound && !l.bound->certificate.x.empty() && !bound::failure(l.bound->certificate).empty()) return 1;
  return 0;
}

}  // namespace tang::cli
