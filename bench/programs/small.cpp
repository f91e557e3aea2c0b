// Batch one on one thread: latency of each run beside the time to read the weights from the second-level cache.
#include "bench.hpp"
#include "tang/models/recurrent.hpp"
#include "tang/verify/verify.hpp"

namespace bench {

namespace {
// The yardstick: bytes read by independent vector accumulators.
const char* reader = R"(#include <stdint.h>
typedef float V __attribute__((vector_size(64), aligned(4)));
void tang_bench_read(void* const* args, int64_t first, int64_t last, void* scratch) {
  const float* p = (const float*)args[0];
  const int64_t n = *(const int64_t*)args[1];
  V a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0}, g = {0}, h = {0};
  int64_t i = 0;
  for (; i + 128 <= n; i += 128) {
    a += *(const V*)(p + i), b += *(const V*)(p + i + 16), c += *(const V*)(p + i + 32), d += *(const V*)(p + i + 48);
    e += *(const V*)(p + i + 64), f += *(const V*)(p + i + 80), g += *(const V*)(p + i + 96), h += *(const V*)(p + i + 112);
  }
  *(V*)args[2] = ((a + b) + (c + d)) + ((e + f) + (g + h));
}
)";
}  // namespace

void small(Bench& b) {
  auto measure = [&](const std::string& name, const ir::Graph& written) {
    auto p = b.program(written);
    eval::Inputs inputs;
    int64_t bytes = 0;
    uint32_t seed = 11;
    for (auto& n : written.nodes)
      if (auto* in = n.input()) {
        const auto shape = eval::bound(in->shape);
        std::vector<float> f(static_cast<size_t>(eval::volume(shape)));
        fill(f.data(), int64_t(f.size()), ++seed);
        inputs[n.name] = eval::reals(shape, std::vector<double>(f.begin(), f.end()));
        if (in->kind == ir::Input::param) bytes += int64_t(f.size()) * 4;
      }
    verify::feed(*p, written, inputs);
    const verify::Report checked = verify::verify(*p, written, inputs, 1e-4);
    Row r;
    r.section = "small", r.name = name;
    r.max_error = checked.worst();
    // The weights' bytes, read in a loop: they stay in the second-level cache.
    auto library = b.compiler->compile(std::string(reader));
    auto read = library->function<device::KernelFunction>("tang_bench_read");
    device::Buffer words(static_cast<size_t>(bytes)), out(64);
    int64_t count = bytes / 4;
    void* args[3] = {words.data(), &count, out.data()};
    const int runs = b.quick ? 2000 : 30000;
    r.ours.t.reserve(size_t(runs)), r.theirs.t.reserve(size_t(runs));
    uint64_t allocated = 0;
    for (int round = 0; round < 10; ++round) {
      for (int n = 0; n < 200; ++n) p->run();
      const uint64_t before = allocations();
      for (int n = 0; n < runs / 10; ++n) {
        const double t = device::Cpu::seconds();
        p->run();
        r.ours.t.push_back(device::Cpu::seconds() - t);
      }
      allocated += allocations() - before;
      for (int n = 0; n < runs / 10; ++n) {
        const double t = device::Cpu::seconds();
        read(args, 0, 1, nullptr);
        r.theirs.t.push_back(device::Cpu::seconds() - t);
      }
    }
    r.peer = "L2 read of the weights", r.unit = "GB/s";
    r.rate = double(bytes) / 1e9 / r.ours.median(), r.peer_rate = double(bytes) / 1e9 / r.theirs.median();
    r.ratio = r.theirs.best() / r.ours.best(), r.ratio_median = r.theirs.median() / r.ours.median();
    r.most_seconds = 1.3 * r.theirs.median() + 1e-6;
    r.more["p99_us"] = r.ours.at(0.99) * 1e6;
    r.more["allocations"] = double(allocated);
    r.more["weight_bytes"] = double(bytes);
    r.more["runs"] = double(r.ours.t.size());
    r.more["kernels"] = double(p->derivation().kernels.kernels.size());
    r.schedule = schedules(*p);
    if (!checked.ok()) r.name += " (WRONG)";
    b.add(std::move(r));
  };
  {
    ir::Builder g;
    Tensor x = g.input("x", {1, 114}), h = g.state("h", {1, 96});
    models::Gru p;
    p.cell = {g.param("w", {288, 114}), g.param("u", {288, 96}), g.param("bias", {288}), {}};
    g.output(models::gru_cell(x, h, p), "h");
    measure("gru step 114->96", g.graph());
  }
  for (auto layout : {models::Layout::out_in, models::Layout::in_out}) {
    ir::Builder g;
    const int64_t widths[] = {47, 256, 128, 128, 12};
    std::vector<models::Layer> layers;
    const bool rows = layout == models::Layout::out_in;
    for (int l = 0; l < 4; ++l)
      layers.push_back({g.param("w" + std::to_string(l), rows ? std::vector<Extent>{widths[l + 1], widths[l]} : std::vector<Extent>{widths[l], widths[l + 1]}),
                        g.param("b" + std::to_string(l), {widths[l + 1]})});
    g.output(models::mlp(g.input("x", {1, 47}), layers, [](const Scalar& s) { return elu(s); }, layout), "y");
    measure(std::string("mlp 47-256-128-128-12 ") + (rows ? "[out, in]" : "[in, out]"), g.graph());
  }
}

}  // namespace bench
