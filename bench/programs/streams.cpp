// Norms and softmax over 256 MiB beside a copy of the same bytes by the same threads.
#include <algorithm>
#include <atomic>
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
// What the elementary functions alone take: exp2 of as many values as an array has, in the nearest cache, on all threads.
double exponentials(Bench& b) {
  constexpr int64_t few = 2048;
  ir::Builder g;
  const ir::Axis i = ir::axis("i", few);
  g.output(ir::map({i}, ir::exp2(g.input("x", {few}).at({i}))), "y");
  auto p = b.program(g.graph());
  fill(p->data<float>("x"), few, 1);
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const double start = device::Cpu::seconds();
    for (int n = 0; n < 200; ++n) p->run();
    best = std::min(best, (device::Cpu::seconds() - start) / 200);
  }
  return best * double(rows * columns / few) / b.threads;
}
// What these threads read at most: a sum of the array, four rows at a time, since one stream does not keep a core's
// reads outstanding.
void total(void* const* args, int64_t first, int64_t last, void*) {
  using V = float __attribute__((vector_size(32), aligned(4)));
  constexpr int64_t four = 4 * columns;
  V s0{}, s1{}, s2{}, s3{};
  for (const float* x = static_cast<const float*>(args[0]) + first * four; first < last; ++first, x += four)
    for (int64_t c = 0; c < columns; c += 16) {  // whole lines
      auto at = [&](int64_t row) { return reinterpret_cast<const V*>(x + row * columns + c); };
      s0 += at(0)[0] + at(0)[1], s1 += at(1)[0] + at(1)[1], s2 += at(2)[0] + at(2)[1], s3 += at(3)[0] + at(3)[1];
    }
  s0 += s1 + s2 + s3;
  for (int64_t l = 0; l < 8; ++l) static_cast<std::atomic<float>*>(args[1])->fetch_add(s0[l]);
}
using Reference = std::function<void(const float* x, double* y)>;  // of one row
}  // namespace

void streams(Bench& b) {
  const size_t bytes = size_t(rows * columns * 4);
  auto x = std::make_shared<device::Buffer>(bytes), y = std::make_shared<device::Buffer>(bytes);
  fill(x->as<float>(), rows * columns, 1);
  std::vector<int32_t> classes(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) classes[size_t(i)] = int32_t(i * 7919 % columns);
  // `width`: columns of the result; one: a value a row, and only x is moved.
  const double exp2_seconds = exponentials(b);
  double read_seconds = 0;
  {
    std::atomic<float> sum{0};
    void *read[2] = {x->data(), &sum}, *args[2] = {x->data(), y->data()};
    Row r;
    r.section = "streams", r.name = "read only: a sum 8192x8192", r.unit = "GB/s", r.peer = "copy";
    r.schedule = "four rows at a time, not derived";
    b.interleave(r, [&] { b.cpu->launch(total, read, rows / 4, 0); }, [&] { b.cpu->launch(copy, args, int64_t(bytes) / block, 0); }, 9, 4);
    read_seconds = r.ours.best();
    r.rate = double(bytes) / 1e9 / read_seconds, r.peer_rate = 2 * double(bytes) / 1e9 / r.theirs.best();
    r.ratio = r.rate / r.peer_rate, r.ratio_median = 0.5 * r.theirs.median() / r.ours.median();
    b.add(std::move(r));
  }
  auto measure = [&](const std::string& name, const ir::Graph& g, const Reference& reference, int64_t width = columns, bool exponential = false) {
    auto p = b.program(g);
    p->bind("x", x);
    if (width == columns) p->bind("y", y);
    for (auto param : {"gain", "bias"})
      for (auto& n : p->derivation().plan.graph->nodes)
        if (n.name == param) fill(p->data<float>(param), columns, 7);
    for (auto& n : p->derivation().plan.graph->nodes)
      if (n.name == "target") std::copy(classes.begin(), classes.end(), p->data<int32_t>("target"));
    void* args[2] = {x->data(), y->data()};
    Row r;
    r.section = "streams", r.name = name, r.unit = "GB/s", r.peer = "copy";
    b.interleave(r, [&] { p->run(); }, [&] { b.cpu->launch(copy, args, int64_t(bytes) / block, 0); }, 9, 4);
    p->run();
    const float* result = p->data<float>("y");
    double worst = 0, most = 0;
    std::vector<double> want(static_cast<size_t>(columns));
    for (int64_t i = 0; i < rows; i += 511) {
      reference(x->as<float>() + i * columns, want.data());
      if (width == 1) want[0] -= double(x->as<float>()[i * columns + classes[size_t(i)]]);
      for (int64_t c = 0; c < width; ++c) {
        most = std::max(most, std::fabs(want[size_t(c)]));
        worst = std::max(worst, std::fabs(want[size_t(c)] - result[i * width + c]));
      }
    }
    r.max_error = worst / most;
    const double copied = 2 * double(bytes) / 1e9, gb = width == 1 ? copied / 2 : copied, share = gb / copied;
    r.rate = gb / r.ours.best(), r.peer_rate = copied / r.theirs.best();
    r.ratio = share * r.theirs.best() / r.ours.best(), r.ratio_median = share * r.theirs.median() / r.ours.median();
    r.least = 0.9;
    if (exponential) r.more["exp2_ms"] = exp2_seconds * 1e3;
    if (width == 1) r.more["of_reading"] = read_seconds / r.ours.best();  // what reading alone takes of its time
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
    }, columns, true);
  }
  auto log_sum = [](const float* row, double& top) {
    double total = 0;
    top = -1e300;
    for (int64_t c = 0; c < columns; ++c) top = std::max(top, double(row[c]));
    for (int64_t c = 0; c < columns; ++c) total += std::exp(row[c] - top);
    return top + std::log(total);
  };
  {
    ir::Builder g;
    g.output(models::log_softmax(g.input("x", {rows, columns})), "y");
    measure("log softmax 8192x8192", g.graph(), [&](const float* row, double* out) {
      double top;
      const double lse = log_sum(row, top);
      for (int64_t c = 0; c < columns; ++c) out[c] = row[c] - lse;
    }, columns, true);
  }
  {
    ir::Builder g;
    g.output(models::cross_entropy(g.input("x", {rows, columns}), g.input("target", {rows}, ir::Format::i32)), "y");
    measure("cross entropy 8192x8192", g.graph(), [&](const float* row, double* out) {
      double top;
      out[0] = log_sum(row, top);
    }, 1, true);
  }
}

}  // namespace bench
