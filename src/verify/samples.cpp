#include "tang/verify/samples.hpp"

#include <algorithm>
#include <cmath>

#include "tang/eval/oracle.hpp"

namespace tang::verify {

namespace {
constexpr int64_t most_samples = 12;
// An f32 program's distance from the reference, relative to the largest value: a wrong kernel is off by
// about 1.
constexpr double relative = 1e-3;
} // namespace

std::vector<run::Expected> samples(const ir::Graph& written, const run::Derivation& d,
                                   const std::map<std::string, run::Filling>& fillings, int threads) {
  eval::Inputs inputs;
  for (auto& n : written.nodes) {
    auto* in = n.input();
    if (!in) continue;
    eval::Array a(eval::bound(in->shape), ir::type_of(in->format));
    if (a.type == expr::Type::real)
      a.r = run::reals(fillings.at(n.name), in->format, a.size());
    else
      a.i = run::integers(fillings.at(n.name), a.size());
    inputs[n.name] = std::move(a);
  }
  eval::Options options;
  options.threads = threads;
  eval::Oracle oracle(written, inputs, options);
  std::vector<run::Expected> out;
  for (auto& o : written.outputs) {
    const eval::Array& a = oracle.port(o.port);
    run::Expected e;
    e.output = o.name;
    const bool real = a.type == expr::Type::real;
    double scale = 0;
    bool finite = true;
    auto value = [&](int64_t k) {
      const expr::Value v = a.at(k);
      return v.state != expr::State::present ? 0 : real ? v.r : double(v.i); // an absent point holds 0
    };
    for (int64_t k = 0; k < a.size(); ++k) {
      const double v = value(k);
      finite &= std::isfinite(v);
      e.sum += v;
      if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
    }
    if (real) {
      const ir::FormatRow* format = &ir::row(o.format);
      for (auto& p : d.plan.graph->outputs)
        if (p.name == o.name) format = &ir::row(lower::format_of(d.plan, p.port));
      e.tolerance = scale * (relative + std::ldexp(1.0, -format->mantissa));
    }
    // Errors of many elements partly cancel.
    e.sum_tolerance = finite ? e.tolerance * 4 * std::sqrt(double(a.size())) : -1;
    if (!finite) e.sum = 0;
    const int64_t n = std::min(a.size(), most_samples);
    for (int64_t k = 0; k < n; ++k) { // first, last, and spread by a stride that no tile has
      const int64_t at = k + 1 == n ? a.size() - 1
                         : a.size() <= most_samples
                             ? k
                             : int64_t(double(a.size() - 1) * std::fmod(double(k) * 0.6180339887498949, 1.0));
      e.at.push_back(at);
      e.values.push_back(value(at));
    }
    out.push_back(std::move(e));
  }
  return out;
}

} // namespace tang::verify
