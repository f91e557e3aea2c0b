#include "tang/tune/scaling.hpp"

#include <algorithm>
#include <cmath>

namespace tang::tune {

namespace {
constexpr double most_scale = 0x1p40;

// The largest finite value of a format with infinities.
double largest_of(ir::Format f) {
  const auto& r = ir::row(f);
  return std::ldexp(2 - std::ldexp(1.0, -r.mantissa), (1 << (r.exponent - 1)) - 1);
}

bool is_narrow(const plan::Buffer& b) {
  const auto& r = ir::row(b.format);
  return r.type == ir::Type::real && r.bits < 32;
}

StoredRange range_of(const eval::Array& a, const std::string& label, ir::Format f) {
  StoredRange out{label, f, 0, 0, 0, 0};
  for (int64_t k = 0; k < a.size(); ++k) {
    const expr::Value v = a.at(k);
    if (v.state != expr::State::present) continue;
    ++out.values;
    if (!std::isfinite(v.r)) {
      ++out.overflowed;
      continue;
    }
    out.largest = std::max(out.largest, std::fabs(v.r));
    const double stored = ir::rounded(v.r, f);
    out.overflowed += !std::isfinite(stored);
    out.vanished += v.r != 0 && stored == 0;
  }
  return out;
}

void set_scale(eval::Inputs& in, const std::string& state, double scale) {
  auto it = in.find(state);
  if (it == in.end())
    throw Error({}, "no input '" + state + "' to choose a scale for", {}, "make the loss with scaled(..)");
  it->second.r.assign(it->second.r.size(), scale);
}

int64_t overflowed(const std::vector<StoredRange>& all) {
  int64_t n = 0;
  for (auto& r : all) n += r.overflowed;
  return n;
}
} // namespace

std::vector<StoredRange> stored_ranges(const run::Derivation& d, const ir::Graph& written,
                                       const eval::Inputs& inputs, bool emulated, int threads) {
  eval::Options how;
  how.threads = threads;
  if (emulated) how = emulation(d.plan, threads);
  eval::Oracle o(*d.plan.graph, rounded_to_formats(written, inputs), how);
  std::vector<StoredRange> out;
  for (auto& b : d.plan.buffers)
    if (is_narrow(b)) out.push_back(range_of(o.port(b.of), d.plan.graph->label(b.of), b.format));
  return out;
}

ScaleChoice choose_scale(const run::Derivation& d, const ir::Graph& written, eval::Inputs inputs,
                         const std::string& state, double headroom, int threads) {
  auto at = [&](double scale, bool emulated) {
    set_scale(inputs, state, scale);
    return stored_ranges(d, written, inputs, emulated, threads);
  };
  const std::vector<StoredRange> one = at(1, false), two = at(2, false);
  ScaleChoice out;
  out.scale = one.empty() ? 1 : most_scale;
  std::vector<char> scaled; // what doubles with the scale: adjoints that are not yet divided by it
  for (size_t k = 0; k < one.size(); ++k) {
    scaled.push_back(two[k].largest > 1.5 * one[k].largest);
    if (!scaled.back()) continue;
    const double fits = largest_of(one[k].format) / headroom / one[k].largest;
    const double power = std::exp2(std::floor(std::log2(fits)));
    if (power < out.scale) out.scale = std::max(power, 1.0), out.binds = one[k].label;
  }
  auto share = [&](const std::vector<StoredRange>& all) {
    int64_t values = 0, gone = 0;
    for (size_t k = 0; k < all.size(); ++k)
      if (scaled[k]) values += all[k].values, gone += all[k].vanished;
    return values ? double(gone) / double(values) : 0;
  };
  out.vanished_unscaled = share(one);
  for (;;) {
    out.overflowed = overflowed(at(out.scale, true));
    if (!out.overflowed || out.scale <= 1) break;
    out.scale /= 2;
  }
  out.vanished = share(at(out.scale, false));
  return out;
}

} // namespace tang::tune
