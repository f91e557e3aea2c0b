#include "tang/kernel/layout.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace tang::kernel {

int64_t Layout::size() const {
  int64_t n = 1;
  for (auto& m : modes) n *= m.extent;
  return n;
}

int64_t Layout::span() const {
  int64_t last = 0;
  for (auto& m : modes) last += (m.extent - 1) * m.stride;
  return last + 1;
}

int64_t Layout::operator()(int64_t flat) const {
  int64_t sum = 0;
  for (size_t d = modes.size(); d-- > 0; flat /= modes[d].extent)
    sum += flat % modes[d].extent * modes[d].stride;
  return swizzle(sum);
}

int64_t Layout::at(const std::vector<int64_t>& coordinate) const {
  int64_t sum = 0;
  for (size_t d = 0; d < modes.size(); ++d) sum += coordinate[d] * modes[d].stride;
  return swizzle(sum);
}

std::string text(const Layout& l) {
  std::string out = "(";
  for (size_t d = 0; d < l.modes.size(); ++d)
    out += (d ? ", " : "") + std::to_string(l.modes[d].extent) + ":" + std::to_string(l.modes[d].stride);
  out += ")";
  if (l.swizzle.bits)
    out += " xor " + std::to_string(l.swizzle.bits) + " bits at " + std::to_string(l.swizzle.from) +
           " with " + std::to_string(l.swizzle.with);
  return out;
}

Layout layout_of(const Memory& m) {
  Layout l;
  for (size_t d = 0; d < m.shape.size(); ++d) l.modes.push_back({m.shape[d], m.strides[d]});
  return l;
}

Layout joined(const Layout& outer, const Layout& inner) {
  Layout l = outer;
  l.modes.insert(l.modes.end(), inner.modes.begin(), inner.modes.end());
  if (!l.swizzle.bits) l.swizzle = inner.swizzle;
  return l;
}

Layout coalesced(const Layout& l) {
  Layout out;
  out.swizzle = l.swizzle;
  for (auto& m : l.modes) {
    if (m.extent == 1) continue;
    if (!out.modes.empty() && out.modes.back().stride == m.extent * m.stride) {
      out.modes.back() = {out.modes.back().extent * m.extent, m.stride};
    } else {
      out.modes.push_back(m);
    }
  }
  return out;
}

// Each mode of b walks a run of a's digits. The sum of all its modes must never carry from one of a's digits
// to the next.
Result<Layout> compose(const Layout& a, const Layout& b) {
  if (b.swizzle.bits) return Refusal{"the inner layout " + text(b) + " has a swizzle"};
  const Layout digits = coalesced(a);
  std::vector<int64_t> reached(digits.modes.size(), 0);
  Layout out;
  out.swizzle = a.swizzle;
  for (auto& m : b.modes) {
    std::vector<Mode> steps; // innermost first
    int64_t left = m.extent, stride = m.stride;
    if (left == 1 || stride == 0) {
      out.modes.push_back({left, 0});
      continue;
    }
    for (size_t d = digits.modes.size(); d-- > 0 && left > 1;) {
      const int64_t extent = digits.modes[d].extent;
      if (stride % extent == 0) {
        stride /= extent;
        continue;
      }
      if (extent % stride != 0)
        return Refusal{"stride " + std::to_string(m.stride) + " does not fit the digits of " + text(digits)};
      const int64_t room = extent / stride, take = std::min(left, room);
      if (left % take != 0)
        return Refusal{"extent " + std::to_string(m.extent) + " does not split over " + text(digits)};
      steps.push_back({take, stride * digits.modes[d].stride});
      reached[d] += (take - 1) * stride;
      left /= take;
      stride = 1;
    }
    if (left > 1) return Refusal{text(b) + " reaches beyond " + text(a)};
    out.modes.insert(out.modes.end(), steps.rbegin(), steps.rend());
  }
  for (size_t d = 0; d < reached.size(); ++d)
    if (reached[d] >= digits.modes[d].extent)
      return Refusal{"modes of " + text(b) + " carry over a digit of " + text(digits)};
  return out;
}

namespace {
std::vector<Mode> by_stride(const Layout& l) {
  std::vector<Mode> m;
  for (auto& x : l.modes)
    if (x.extent > 1) m.push_back(x);
  std::sort(m.begin(), m.end(), [](const Mode& x, const Mode& y) { return x.stride < y.stride; });
  return m;
}

// The least n whose multiples complement() accepts.
int64_t place(const Layout& l) {
  const auto m = by_stride(l);
  return m.empty() ? 1 : m.back().extent * m.back().stride;
}
} // namespace

Result<Layout> complement(const Layout& b, int64_t n) {
  if (b.swizzle.bits) return Refusal{text(b) + " has a swizzle"};
  std::vector<Mode> gaps; // innermost first
  int64_t filled = 1;
  for (auto& m : by_stride(b)) {
    if (m.stride < filled || m.stride % filled != 0) return Refusal{"modes of " + text(b) + " overlap"};
    if (m.stride > filled) gaps.push_back({m.stride / filled, filled});
    filled = m.stride * m.extent;
  }
  if (n % filled != 0) return Refusal{std::to_string(n) + " is no multiple of " + std::to_string(filled)};
  if (n > filled) gaps.push_back({n / filled, filled});
  Layout out;
  out.modes.assign(gaps.rbegin(), gaps.rend());
  return out;
}

Result<Layout> inverse(const Layout& l) {
  if (l.swizzle.bits) return Refusal{text(l) + " has a swizzle"};

  struct Weighted {
    Mode mode;
    int64_t weight; // of the mode in the flat coordinate
  };

  std::vector<Weighted> m;
  for (size_t d = l.modes.size(), inner = 1; d-- > 0; inner *= size_t(l.modes[d].extent))
    if (l.modes[d].extent > 1) m.push_back({l.modes[d], int64_t(inner)});
  std::sort(m.begin(), m.end(), [](auto& x, auto& y) { return x.mode.stride > y.mode.stride; });
  Layout out;
  int64_t below = l.size();
  for (auto& x : m) {
    below /= x.mode.extent;
    if (x.mode.stride != below) return Refusal{text(l) + " is no bijection onto a range"};
    out.modes.push_back({x.mode.extent, x.weight});
  }
  return out;
}

Result<Parts> divide(const Layout& a, const Layout& b) {
  const auto rest = complement(b, a.size());
  if (!rest) return Refusal{rest.why()};
  Layout plain = a;
  plain.swizzle = {};
  const auto whole = compose(plain, joined(*rest, b)); // together, so that carries between the parts are seen
  if (!whole) return Refusal{whole.why()};
  const auto inner = compose(plain, b), outer = compose(plain, *rest);
  check(bool(inner) && bool(outer), "a part of a composition is a composition");
  return Parts{*outer, *inner};
}

Result<Parts> product(const Layout& a, const Layout& b) {
  const auto room = complement(a, place(a) * b.span());
  if (!room) return Refusal{room.why()};
  const auto outer = compose(*room, b);
  if (!outer) return Refusal{outer.why()};
  return Parts{*outer, a};
}

int bank_rounds(const std::vector<int64_t>& bytes) {
  std::map<int64_t, std::set<int64_t>> words; // of each bank
  size_t worst = 0;
  for (int64_t b : bytes) {
    auto& w = words[b / 4 % 32];
    w.insert(b / 4);
    worst = std::max(worst, w.size());
  }
  return int(worst);
}

} // namespace tang::kernel
