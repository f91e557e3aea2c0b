// How many lanes share a row, and how many rows a workgroup has.
#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/kernel/rows.hpp"

namespace tang::kernel {

namespace {
constexpr int dear_join = 64;
constexpr int64_t held = 32; // columns a lane should have of a long row
constexpr int64_t held_of_shared = 40, most_of_shared = 50, // of a row that workgroups share: columns of a lane
                  few_of_shared = 8192; // .. and columns each of them has at least
constexpr int64_t held_of_short = 40; // columns of a lane of a short row, at most
constexpr int least_team = 8; // that was made smaller: together they move whole lines
constexpr int least_lanes = 64; // of a workgroup
constexpr int64_t few_rows = 16; // of a worker

// Workgroups that share a long row: where its elements would not stay in the registers of one, or where rows
// are so few that workers idle.
int sharing(int64_t columns, int64_t rows, int joining, const target::Target& t) {
  int ways = 1;
  if (t.cluster == 1 || joining > dear_join) return ways;
  const int64_t kept = int64_t(t.long_row_lanes) * most_held,
                wanted = int64_t(t.long_row_lanes) / 2 * held_of_shared;
  if (columns > kept && columns <= t.cluster * kept)
    while (ways < t.cluster && ways * wanted < columns) ways *= 2;
  while (ways < t.cluster && 2 * rows <= t.workers && 2 * ways * rows <= 2 * t.workers &&
         2 * ways * few_of_shared <= columns)
    ways *= 2;
  return ways;
}
// Lanes of a short row: one for every run of neighbours (262144 rows of 64, rms norm, H200, 2026-12-01: 18.8 us, 20.0 with
// two runs a lane), fewer where fewer of them then idle at the row's end (65536 rows of 576: 72 runs are 5 turns of 16 lanes,
// but 3 of 32). Rows that are not stored, two runs a lane: there are fewer partial results to join.
int short_team(int64_t columns, bool stores, const target::Target& t) {
  const int64_t runs = ceil_div(columns, most_at_once);
  const int most = std::min(t.lanes, power_above(runs));
  if (t.access_bytes == 1) return most;
  int best = most;
  for (int team = most; team >= least_team && ceil_div(runs, team) * most_at_once <= held_of_short; team /= 2)
    if (ceil_div(runs, team) * team < ceil_div(runs, best) * best) best = team;
  const bool one = best > 1 && ceil_div(runs, best) == 1 && ceil_div(runs, best / 2) * best / 2 <= best;
  return one && !stores ? best / 2 : best;
}
} // namespace

// Long rows have as many lanes as leave each a few dozen columns. Several rows a team in turn where they are short, so
// that enough bytes are on their way.
Teams teams(int64_t columns, int64_t rows, int joining, const target::Target& t, bool stores) {
  Teams out;
  const int most = std::max(t.workgroup_limit, t.long_row_lanes);
  out.cluster = sharing(columns, rows, joining, t);
  if (out.cluster > 1)
    out.team = out.cluster * std::clamp(power_above(ceil_div(columns, most_of_shared * out.cluster)),
                                        t.workgroup_limit, most);
  else if (columns <= held * t.lanes)
    out.team = short_team(columns, stores, t);
  else
    out.team = std::min(joining > dear_join ? t.lanes : most, power_above(ceil_div(columns, held)));
  out.lanes = std::max(t.workgroup_limit, out.team);
  // Few rows: smaller workgroups, where the worker with the most of them then has fewer rows.
  auto most_of_a_worker = [&](int lanes) {
    const int64_t each = lanes / out.team;
    return ceil_div(ceil_div(rows, each), int64_t(t.workers)) * each;
  };
  while (out.cluster == 1 && t.exchanges && out.lanes / 2 >= std::max(out.team, least_lanes) &&
         rows <= few_rows * int64_t(t.workers) && most_of_a_worker(out.lanes / 2) < most_of_a_worker(out.lanes))
    out.lanes /= 2;
  out.columns = ceil_div(columns, out.team);
  if (out.cluster > 1) return out;
  int64_t turns = std::max<int64_t>(1, std::min<int64_t>(4, held / std::max<int64_t>(most_at_once, out.columns)));
  const int64_t at_once = out.lanes / out.team;
  while (turns > 1 && rows < turns * at_once * 2 * t.workers) turns /= 2;
  out.rows = turns * at_once;
  return out;
}

} // namespace tang::kernel
