// Norms and softmax over 256 MiB beside a copy of the same bytes by the same threads.
#include <cmath>
#include <cstring>

#include "bench.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/softmax.hpp"

namespace bench {

namespace {
constexpr int64_t rows = 8192, columns = 8192, block = 1 << 20;  // bytes that one workgroup copies
void copy(void* const* args, int64_t first, int64_t last, void*) {
  std::memcpy(static_cast<char*>(args[1]) + first * block, static_cast<const char*>(args[0]) + first * block, size_t((last - first) * block));
}
using Reference = std::function<void(const float* x, double* y)>;  // of one row
}  // namespace

void streams(Bench& b) {
  const size_t bytes = size_t(rows * columns * 4);
  auto x = std::make_shared<device::Buffer>(bytes), y = std::make_shared<device::Buffer>(bytes);
  fill(x->as<float>(), rows * columns, 1);
  auto measure = [&](const std::string& name, const ir::Graph& g, const Reference& reference) {
    auto p = b.program(g);
    p->bind("x", x), p->bind("y", y);
    for (auto param : {"gain", "bias"})
      for (auto& n : p->derivation().plan.graph->nodes)
        if (n.name == param) fill(p->data<float>(param), columns, 7);
    void* args[2] = {x->data(), y->data()};
    Row r;
    r.section = "streams", r.name = name, r.unit = "GB/s", r.peer = "copy";
    b.interleave(r, [&] { p->run(); }, [&] { b.cpu->launch(copy, args, int64_t(bytes) / block, 0); }, 9, 4);
    p->run();
    double worst = 0, most = 0;
    std::vector<double> want(static_cast<size_t>(columns));
    for (int64_t i = 0; i < rows; i += 511) {
      reference(x->as<float>() + i * columns, want.data());
      for (int64_t c = 0; c < columns; ++c) {
        most = std::max(most, std::fabs(want[size_t(c)]));
        worst = std::max(worst, std::fabs(want[size_t(c)] - y->as<float>()[i * columns + c]));
      }
    }
    r.max_error = worst / most;
    const double gb = 2 * double(bytes) / 1e9;
    r.rate = gb / r.ours.best(), r.peer_rate = gb / r.theirs.best();
    r.ratio = r.theirs.best() / r.ours.best(), r.ratio_median = r.theirs.median() / r.ours.median();
    r.least = 0.9;
    r.schedule = schedules(*p);
    b.add(std::move(r));
  };
  std::vector<float> affine(static_cast<size_t>(columns));
  fill(affine.data(), columns, 7);
  auto moments = [](const float* row, double& mean, double& square) {
    mean = square = 0;
    for (int64_t c = 0; c < columns; ++c) mean += row[c] / double(columns);
    for (int64_t c = 0; c < columns; ++c) square += double(row[c]) * row[c] / double(columns);
  };
  {
    ir::Builder g;
    g.output(models::rms_norm(g.input("x", {rows, columns}), g.param("gain", {columns})), "y");
    measure("rms norm 8192x8192", g.graph(), [&](const float* row, double* out) {
      double mean, square;
      moments(row, mean, square);
      for (int64_t c = 0; c < columns; ++c) out[c] = row[c] / std::sqrt(square + 1e-5) * affine[size_t(c)];
    });
  }
  {
    ir::Builder g;
    g.output(models::layer_norm(g.input("x", {rows, columns}), g.param("gain", {columns}), g.param("bias", {columns})), "y");
    measure("layer norm 8192x8192", g.graph(), [&](const float* row, double* out) {
      double mean, square;
      moments(row, mean, square);
      for (int64_t c = 0; c < columns; ++c)
        out[c] = (row[c] - mean) / std::sqrt(square - mean * mean + 1e-5) * affine[size_t(c)] + affine[size_t(c)];
    });
  }
  {
    ir::Builder g;
    g.output(models::softmax(g.input("x", {rows, columns})), "y");
    measure("softmax 8192x8192", g.graph(), [&](const float* row, double* out) {
      double top = -1e300, total = 0;
      for (int64_t c = 0; c < columns; ++c) top = std::max(top, double(row[c]));
      for (int64_t c = 0; c < columns; ++c) total += out[c] = std::exp(row[c] - top);
      for (int64_t c = 0; c < columns; ++c) out[c] /= total;
    });
  }
}

}  // namespace bench
