#include "works.hpp"

#include <algorithm>
#include <cmath>

#include "../programs/attention_error.hpp"
#include "backward/attention.hpp"
#include "tang.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/norms.hpp"

namespace tang::bench {

namespace {
// Keeps the largest difference beside the largest value.
struct Judge {
  double gap = 0, most = 0;

  void operator()(double got, double want) {
    gap = std::max(gap, std::isfinite(got) ? std::fabs(got - want) : HUGE_VAL);
    most = std::max(most, std::fabs(want));
  }

  double error() const { return gap / most; }
};

Work matmul(int64_t n) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {n, n}), w = b.input("w", {n, n});
  auto [i, j, k] = ir::axes<"i j k">();
  b.output(ir::map({i, j}, ir::sum(k, x(i, k) * w(k, j))), "y");
  Work out{"matmul " + std::to_string(n), b.graph(), {}, 2.0 * double(n) * double(n) * double(n), 12.0 * double(n) * double(n), {}};
  out.error = [n](const Arrays& in, const Arrays& got) {
    Judge judge;
    for (int64_t r = 0; r < n; r += n / 7)
      for (int64_t c = 3; c < n; c += n / 61) {
        double s = 0;
        for (int64_t l = 0; l < n; ++l) s += double(in.at("x")[size_t(r * n + l)]) * double(in.at("w")[size_t(l * n + c)]);
        judge(got.at("y")[size_t(r * n + c)], s);
      }
    return judge.error();
  };
  out.row = n, out.step = n / 7;
  return out;
}

Work rms_norm(int64_t rows, int64_t columns) {
  ir::Builder b;
  b.output(models::rms_norm(b.input("x", {rows, columns}), b.param("gain", {columns})), "y");
  Work out{"rms norm " + std::to_string(rows) + " x " + std::to_string(columns), b.graph(), {}, 0, 8.0 * double(rows) * double(columns), {}};
  out.error = [rows, columns](const Arrays& in, const Arrays& got) {
    Judge j;
    for (int64_t r = 0; r < rows; r += rows / 37) {
      double s = 0;
      for (int64_t c = 0; c < columns; ++c) s += std::pow(double(in.at("x")[size_t(r * columns + c)]), 2);
      for (int64_t c = 0; c < columns; ++c)
        j(got.at("y")[size_t(r * columns + c)],
          double(in.at("x")[size_t(r * columns + c)]) * double(in.at("gain")[size_t(c)]) / std::sqrt(s / double(columns) + 1e-5));
    }
    return j.error();
  };
  out.row = columns, out.step = rows / 37;
  return out;
}

Work top(int64_t rows, int64_t columns) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {rows, columns});
  auto [i, j] = ir::axes<"i j">();
  const auto s = ir::top(8, j, x(i, j));
  for (size_t r = 0; r < 8; ++r) b.output(ir::map({i}, s.first[r]), "value" + std::to_string(r));
  Work out{"top 8 of " + std::to_string(rows) + " x " + std::to_string(columns), b.graph(), {}, 0, 4.0 * double(rows) * double(columns), {}, 0};
  out.error = [rows, columns](const Arrays& in, const Arrays& got) {
    Judge judge;
    for (int64_t r = 0; r < rows; r += rows / 37) {
      auto* from = in.at("x").data() + r * columns;
      std::vector<float> row(from, from + columns);
      std::partial_sort(row.begin(), row.begin() + 8, row.end(), std::greater<>());
      for (size_t k = 0; k < 8; ++k) judge(got.at("value" + std::to_string(k))[size_t(r)], row[k]);
    }
    return judge.error();
  };
  return out;
}

Work conv2d(int64_t n, int64_t channels, int64_t side) {
  ir::Builder b;
  b.output(models::conv2d(b.input("x", {n, channels, side, side}), b.param("w", {channels, channels, 3, 3}), {}, {{1}, {1}}), "y");
  const double pixels = double(n * side * side), c = double(channels);
  Work out{"conv2d 3x3 " + std::to_string(n) + " x " + std::to_string(channels) + " x " + std::to_string(side) + "^2", b.graph(), {},
           18 * pixels * c * c, 8 * pixels * c + 36 * c * c, {}};
  out.error = [=](const Arrays& in, const Arrays& got) {
    Judge j;
    for (int64_t at = 0; at < n * channels * side * side; at += 9973) {
      const int64_t x = at % side, y = at / side % side, o = at / side / side % channels, s = at / side / side / channels;
      double sum = 0;
      for (int64_t q = 0; q < channels; ++q)
        for (int64_t dy = 0; dy < 3; ++dy)
          for (int64_t dx = 0; dx < 3; ++dx) {
            const int64_t yy = y + dy - 1, xx = x + dx - 1;
            if (yy < 0 || yy >= side || xx < 0 || xx >= side) continue;
            sum += double(in.at("x")[size_t(((s * channels + q) * side + yy) * side + xx)]) *
                   double(in.at("w")[size_t(((o * channels + q) * 3 + dy) * 3 + dx)]);
          }
      j(got.at("y")[size_t(at)], sum);
    }
    return j.error();
  };
  return out;
}

double pairs(int64_t n, int64_t window) {
  return window ? double(window) * double(n) - 0.5 * double(window) * double(window - 1) : 0.5 * double(n) * double(n + 1);
}

std::function<double(const Arrays&, const Arrays&)> attention_check(int64_t h, int64_t n, int64_t d, int64_t window, bool gradient) {
  return [=](const Arrays& in, const Arrays& out) {
    auto at = [&](const char* name) { return (in.count(name) ? in : out).at(name).data(); };
    return ::bench::attention_error({at("q"), at("k"), at("v"), gradient ? at("do") : nullptr, at("o"), at("lse"), gradient ? at("dq") : nullptr,
                                     gradient ? at("dk") : nullptr, gradient ? at("dv") : nullptr, h, n, d, true, window});
  };
}

// Causal attention, head size 64; window 0: all earlier keys.
Work forward(const std::string& name, int64_t h, int64_t n, int64_t window) {
  constexpr int64_t d = 64;
  ir::Builder b;
  models::AttentionOptions o;
  o.mask = models::causal();
  if (window) o.mask = *o.mask && models::window(window);
  const auto a = models::attention(b.input("q", {1, h, n, d}), b.input("k", {1, h, n, d}), b.input("v", {1, h, n, d}), o);
  b.output(a.out, "o"), b.output(a.lse, "lse");
  Work out{name, b.graph(), {}, 4 * double(h * d) * pairs(n, window), 16.0 * double(h * n * d), attention_check(h, n, d, window, false)};
  return out;
}

Work gradient(int64_t h, int64_t n, const std::string& how) {
  constexpr int64_t d = 64;
  Work out{"gradient " + std::to_string(n) + (how.empty() ? "" : " " + how),
           test::attention_with_backward({.heads = h, .rows = n, .keys = n, .d = d, .c = d, .causal = true, .row_sums = true}), {},
           14 * double(h * d) * pairs(n, 0), 0, attention_check(h, n, d, 0, true)};
  // Scores, probabilities and their gradients as arrays of rows x keys: derived, or nothing fused at all.
  if (how == "materialized") out.how = [](run::Options& o) { o.schedule.share_contractions = false; };
  if (how == "as written") out.how = [](run::Options& o) { o.schedule = schedule::as_written(), o.optimize = false; };
  return out;
}
} // namespace

std::vector<Work> works(const std::vector<std::string>& wanted, int64_t heads) {
  std::vector<std::pair<std::string, std::function<Work()>>> all;
  auto add = [&](std::function<Work()> make, const std::string& name) { all.emplace_back(name, std::move(make)); };
  for (int64_t n : {1024, 2048, 4096}) add([n] { return matmul(n); }, "matmul " + std::to_string(n));
  add([=] { return forward("attention 2048", heads, 2048, 0); }, "attention 2048");
  add([] { return rms_norm(4096, 8192); }, "rms norm 4096 x 8192");
  add([] { return conv2d(8, 64, 56); }, "conv2d 3x3");
  add([] { return top(4096, 8192); }, "top 8");
  for (int64_t n : {512, 2048})
    for (const char* how : {"", "materialized", "as written"})
      add([=] { return gradient(heads, n, how); }, "gradient " + std::to_string(n) + (*how ? " " + std::string(how) : ""));
  add([=] { return forward("causal 8192", std::min<int64_t>(heads, 4), 8192, 0); }, "causal 8192");
  add([=] { return forward("window 8192", std::min<int64_t>(heads, 4), 8192, 128); }, "window 8192");
  std::vector<Work> out;
  for (auto& [name, make] : all)
    if (wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&, &n = name](auto& w) { return n.rfind(w, 0) == 0; })) out.push_back(make());
  return out;
}

} // namespace tang::bench
