#include "tang/prove/certificate.hpp"

#include "tang/bound/report.hpp"

namespace tang::prove {

Certificates certificates_of(const std::vector<Compile>& optimized, int64_t memory) {
  Certificates out;
  Book book("certificate", bound::coq_imports);
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
      book.add(*text, "c_" + c.name + "_" + std::to_string(here++));
    }
    out.graphs += here > 0;
    out.bounds += here;
  }
  out.files = book.files();
  return out;
}

} // namespace tang::prove
