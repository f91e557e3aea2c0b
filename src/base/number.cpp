#include "tang/base/number.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tang {

std::string shortest(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char s[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(s, sizeof s, "%.*g", digits, v);
    if (std::strtod(s, nullptr) == v) break;
  }
  return s;
}

} // namespace tang
