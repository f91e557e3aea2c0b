// The gradient of 512 experts' weights, gathered by a key for each token: the gated sum over all tokens of each expert
// beside the same with sorted keys, which folds each expert's own run.
#include <algorithm>
#include <cmath>

#include "bench.hpp"

namespace bench {

namespace {
struct Size {
  int64_t experts, tokens, out, in;
};

ir::Graph gradient(const Size& z, bool sorted) {
  using namespace ir;
  Builder b;
  const Tensor w = b.param("w", {z.experts, z.out, z.in}), x = b.input("x", {z.tokens, z.in});
  Tensor key = b.input("key", {z.tokens}, Format::i32);
  if (sorted) key = set_sorted(key);
  auto [t, o, i] = axes<"t o i">();
  const Tensor y = map({t, o}, sum(i, w(Index(key(t)), o, i) * x(t, i)), "y");
  b.output(diff::vjp(y, b.input("dy", {z.tokens, z.out}), {w})[0], "dw");
  return b.graph();
}
} // namespace

void sorted(Bench& b) {
  for (const Size& z : {Size{512, 1024, 32, 32}, Size{512, 4096, 64, 64}}) {
    run::Options plain = b.options(); // each place tests every token
    plain.schedule.share_contractions = false;
    auto runs = b.program(gradient(z, true)), dense = b.program(gradient(z, false), plain);
    std::vector<int32_t> keys(static_cast<size_t>(z.tokens));
    uint32_t state = 1;
    for (auto& k : keys) k = int32_t((state = state * 1664525u + 1013904223u) >> 8) % int32_t(z.experts);
    std::sort(keys.begin(), keys.end());
    for (auto* p : {runs.get(), dense.get()}) {
      std::copy(keys.begin(), keys.end(), p->data<int32_t>("key"));
      fill(p->data<float>("x"), z.tokens * z.in, 1);
      fill(p->data<float>("dy"), z.tokens * z.out, 2);
    }
    Row r;
    r.section = "sorted";
    r.name = "experts " + std::to_string(z.experts) + " tokens " + std::to_string(z.tokens) + " " + std::to_string(z.out) + "x" + std::to_string(z.in);
    r.peer = "dense gated sum";
    b.interleave(r, [&] { runs->run(); }, [&] { dense->run(); }, 3, 1);
    const float *got = runs->data<float>("dw"), *want = dense->data<float>("dw");
    double most = 0, gap = 0;
    for (int64_t k = 0; k < z.experts * z.out * z.in; ++k) {
      most = std::max(most, std::fabs(double(want[k])));
      gap = std::max(gap, std::fabs(double(got[k]) - double(want[k])));
    }
    r.max_error = gap / most;
    r.ratio = r.theirs.best() / r.ours.best();
    r.ratio_median = r.theirs.median() / r.ours.median();
    r.least = 5;
    r.schedule = schedules(*runs);
    b.add(std::move(r));
    if (b.kernels) print_kernels(*runs, 20);
  }
}

} // namespace bench
