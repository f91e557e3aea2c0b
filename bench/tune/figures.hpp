// Figures of the reports: means of regrets, numbers as text.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace bench {

struct Mean {  // geometric, of 1 + regret
  double logs = 0, worst = 0;
  int n = 0;
  void add(double r) { logs += std::log1p(r), worst = std::max(worst, r), ++n; }
  double value() const { return n ? std::expm1(logs / n) : 0; }
};
inline std::string percent(double r) {
  char s[32];
  std::snprintf(s, sizeof s, "%.1f%%", 100 * r);
  return s;
}
inline std::string number(const char* f, double v) {
  char s[64];
  std::snprintf(s, sizeof s, f, v);
  return s;
}

} // namespace bench
