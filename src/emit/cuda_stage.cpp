#include "tang/emit/cuda_stage.hpp"

#include "tang/base/number.hpp"

namespace tang::emit {

void stage_halves(Unit& u, const std::string& values, const std::string& to, int64_t q, int64_t columns) {
  std::string args;
  if (q * 4 >= columns / 4) return;
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t e = q * 4 + i;
    args += ", " + (e < columns / 4 ? values + "[" + number(e) + "]" : std::string("0u"));
  }
  u.line("tang_store_matrix(" + to + " + st_row + ((" + number(2 * q) + " + (lane >> 4)) ^ (lane & 7)) * 16" +
         args + ");");
}

// In whole boxes lanes of odd rows store another eight columns at the time: 16 lanes then reach all banks.
void stage_words(Unit& u, const std::string& values, const std::string& to, int64_t q, int64_t columns) {
  const bool turns = columns == 32;
  for (int64_t r = 0; r < 2; ++r) {
    const int64_t e = q * 4 + 2 * r, other = (q ^ 2) * 4 + 2 * r;
    if (e >= columns / 2) continue;
    auto value = [&](int64_t i) {
      return (turns ? "lane & 4 ? " + values + "[" + number(other + i) + "] : " : "") + values + "[" +
             number(e + i) + "]";
    };
    u.line("tang_store_pair(" + to + " + ((lane >> 2) + " + number(8 * r) + ") * 128 + ((" + number(2 * q) +
           " + (pair >> 2)) ^ (lane >> 2)" + (turns ? " ^ (lane & 4)" : "") + ") * 16 + (pair & 3) * 4, " +
           value(0) + ", " + value(1) + ");");
  }
}

} // namespace tang::emit
