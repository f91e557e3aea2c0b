#include "tang/device/order.hpp"

#include <algorithm>

namespace tang::device {

namespace {
bool conflict(const Touch& a, const Touch& b) {
  return (a.written || b.written) && a.region == b.region && std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

bool conflict(const std::vector<Touch>& a, const std::vector<Touch>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Touch& x) {
    return std::any_of(b.begin(), b.end(), [&](const Touch& y) { return conflict(x, y); });
  });
}
} // namespace

std::vector<std::vector<size_t>> waits(const std::vector<std::vector<Touch>>& kernels) {
  const size_t n = kernels.size();
  std::vector<std::vector<size_t>> out(n);
  std::vector<std::vector<char>> ended(n, std::vector<char>(n)); // when the first begins, the second has ended
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = k; j-- > 0;) { // the latest first: it has waited for most
      if (ended[k][j] || !conflict(kernels[j], kernels[k])) continue;
      out[k].push_back(j);
      ended[k][j] = 1;
      for (size_t i = 0; i < j; ++i) ended[k][i] |= ended[j][i];
    }
    std::reverse(out[k].begin(), out[k].end());
  }
  return out;
}

} // namespace tang::device
