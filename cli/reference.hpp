// What a library user would have: the program as written, its matrix products by the system's BLAS.
#pragma once
#include <optional>
#include <string>

#include "tang/cli/tool.hpp"

namespace tang::cli {

// A BLAS that was found at run time. Nothing is linked: without one there is no reference.
class Blas {
public:
  static std::optional<Blas> find(int threads);

  const std::string& name() const { return name_; }

  // c[m, n] += a[m, k] b[k, n], row-major f32: what one matrix product costs.
  void product(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) const;

private:
  std::shared_ptr<void> library_;
  void* sgemm_ = nullptr;
  std::string name_;
};

// Seconds of one run: each kernel of the as-written program by itself, and in place of a contraction the
// library's product of the same sizes, once for each of its batches. Nothing where the program has no
// contraction.
struct Reference {
  double seconds = 0;
  int products = 0; // library calls, batches counted
};

std::optional<Reference> reference(run::Program& written, const Blas& blas, const run::Options& o);

} // namespace tang::cli
