#include "tang/prove/certificate.hpp"

#include "tang/bound/derivation.hpp"
#include "tang/bound/report.hpp"

namespace tang::prove {

Certificates certificates_of(const std::vector<Compile>& optimized, int64_t memory) {
  Certificates out;
  Book book("certificate", bound::coq_imports), covers("cover", bound::coq_imports);
  for (auto& c : optimized) {
    int here = 0;
    for (auto& line : bound::bounds_of(c.graph, memory, bound::Unit::bytes)) {
      if (!line.bound || line.bound->certificate.x.empty())
        continue; // no loops, or no program: `tang bound` says why
      const Result<std::string> text = bound::as_coq(line.bound->certificate, "NAME");
      if (!text) {
        ++out.unprinted[text.why().substr(0, text.why().find(", not "))];
        continue;
      }
      const std::string name = c.name + "_" + std::to_string(here++);
      book.add(*text, "c_" + name);
      for (auto* term : {&line.bound->chain, &line.bound->any}) {
        if (!*term) continue;
        const auto cover = bound::as_coq(*line.bound, **term, "NAME");
        if (!cover)
          ++out.unprinted[cover.why()];
        else
          covers.add(*cover, (term == &line.bound->chain ? "chain_" : "any_") + name);
      }
    }
    out.graphs += here > 0;
    out.bounds += here;
  }
  out.files = book.files();
  out.covers = covers.files();
  return out;
}

} // namespace tang::prove
