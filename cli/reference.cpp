#include "tang/cli/reference.hpp"

#include "tang/lower/choose.hpp"

namespace tang::cli {

namespace {
constexpr int row_major = 101, no_transpose = 111; // of the C interface of BLAS

using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                       float*, int);

struct Product {
  int64_t m = 1, n = 1, k = 1, batch = 1;
};

// The only member of the group is a plain sum of products that splits in two sides.
std::optional<Product> as_product(const plan::Plan& p, const plan::Group& group, const run::Options& o) {
  if (group.members.size() != 1 || !group.shared.empty()) return std::nullopt;
  ir::Graph g = *p.graph;
  const lower::Choice c = lower::choose(g, group, o.schedule, o.target);
  const auto& form = c.members[0];
  if (form.contractions.size() != 1 || form.contractions.begin()->first != 0) return std::nullopt;
  const ir::Comp& node = *g[group.members[0].node].comp();
  if (node.lift.size() != 1) return std::nullopt;
  const lower::Contraction& x = form.contractions.begin()->second;
  auto size = [&](const std::vector<int>& axes) {
    int64_t all = 1;
    for (int a : axes) all *= node.extent(a).value();
    return all;
  };
  return Product{size(x.sides.m) * size(x.outer_m), size(x.sides.n) * size(x.outer_n), size(x.sides.k),
                 size(x.batch)};
}
} // namespace

std::optional<Blas> Blas::find(int threads) {
  Blas out;
  std::string why;
  out.library_ = device::open_library({"libopenblas.so.0", "libopenblas.so"}, why);
  if (!out.library_) return std::nullopt;
  out.sgemm_ = device::find_symbol(out.library_, "cblas_sgemm");
  if (!out.sgemm_) return std::nullopt;
  if (void* set = device::find_symbol(out.library_, "openblas_set_num_threads"))
    reinterpret_cast<void (*)(int)>(set)(threads);
  out.name_ = "OpenBLAS";
  return out;
}

void Blas::product(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) const {
  reinterpret_cast<Sgemm>(sgemm_)(row_major, no_transpose, no_transpose, int(m), int(n), int(k), 1, a, int(k),
                                  b, int(n), 1, c, int(n));
}

std::optional<Reference> reference(run::Program& written, const Blas& blas, const run::Options& o) {
  const plan::Plan& plan = written.derivation().plan;
  const auto& kernels = written.derivation().kernels.kernels;
  Reference out;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const plan::Step& step = plan.steps[size_t(kernels[k].step)];
    const auto product = step.recur ? std::nullopt : as_product(plan, step.group, o);
    if (!product) {
      out.seconds += measure([&] { written.run_kernel(k); }, 0.003).median;
      continue;
    }
    const auto& [m, n, depth, batch] = *product;
    if (k && kernels[k - 1].step == kernels[k].step)
      continue; // the copies of its operands are the library's own
    const std::vector<float> a(size_t(m * depth), 0.5f), b(size_t(depth * n), 0.25f);
    std::vector<float> c(size_t(m * n));
    out.seconds += double(batch) *
                   measure([&, m = m, n = n, depth = depth] { blas.product(m, n, depth, a.data(), b.data(), c.data()); },
                           0.003).median;
    out.products += int(batch);
  }
  if (!out.products) return std::nullopt;
  return out;
}

} // namespace tang::cli
