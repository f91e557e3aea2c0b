// Attention forward and its derived gradient beside sgemm's rate at 2048: 3.5 times the forward's matmul flops, of live
// pairs.
#include "backward/attention.hpp"

#include "attention_error.hpp"
#include "bench.hpp"

namespace bench {

void backward(Bench& b) {
  const int64_t g = 2048;
  std::vector<float> x(size_t(g * g)), y(size_t(g * g)), z(size_t(g * g));
  fill(x.data(), g * g, 1), fill(y.data(), g * g, 2);
  for (int64_t d : {64, 128})
    for (int64_t n : {512, 2048, 8192})
      for (bool causal : {false, true}) {
        const int64_t h = n <= 512 ? 8 : n <= 2048 ? 2 : 1;
        const ir::Graph graph = test::attention_with_backward({.heads = h, .rows = n, .keys = n, .d = d, .c = d, .causal = causal, .row_sums = true});
        run::Options o = b.options();
        auto p = b.program(graph, o);
        uint32_t seed = 3;
        for (auto name : {"q", "k", "v", "do"}) fill(p->data<float>(name), h * n * d, ++seed);
        Row r;
        r.section = "backward";
        r.name = std::string(causal ? "causal" : "full") + " h" + std::to_string(h) + " n" + std::to_string(n) + " d" + std::to_string(d);
        r.unit = "GFLOP/s", r.peer = "sgemm 2048";
        b.interleave(r, [&] { p->run(); }, [&] { sgemm(g, x.data(), y.data(), z.data()); }, 5, 2);
        auto f = [&](const char* name) { return p->data<float>(name); };
        r.max_error = attention_error({f("q"), f("k"), f("v"), f("do"), f("o"), f("lse"), f("dq"), f("dk"), f("dv"), h, n, d, causal});
        const double pairs = causal ? 0.5 * double(n) * double(n + 1) : double(n) * double(n);
        const double flops = 14e-9 * double(h) * pairs * double(d), peer = 2e-9 * double(g) * double(g) * double(g);
        r.rate = flops / r.ours.best(), r.peer_rate = peer / r.theirs.best();
        r.ratio = r.rate / r.peer_rate;
        r.ratio_median = flops / r.ours.median() / (peer / r.theirs.median());
        r.least = 0.4;
        r.more["kernels"] = double(p->derivation().kernels.kernels.size());
        r.schedule = schedules(*p);
        b.add(std::move(r));
      }
}

}  // namespace bench
