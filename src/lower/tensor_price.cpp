#include "tang/lower/tensor_price.hpp"

#include <algorithm>

namespace tang::lower {

namespace {
// Fitted to 130 timed candidates of nine products on an H200 (2026-11-30; `choices` in bench/h200/tensor.cpp
// times them).
constexpr double block_seconds = 0.3e-6; // of a block of rows and columns: its first bytes and its last
constexpr double join_seconds = 0.6e-6;  // of a tile's parts: stored, counted, read again (two products more)
constexpr double step_seconds = 0.15e-6; // of 128 terms of a sum at least, however few rows and columns there are
constexpr double lane_seconds = 0.8e-9;  // of a value that lanes store where no bulk copy can
// A worker alone, and its share where all are busy: of the mean arithmetic rate, of the mean rate of the near
// cache.
constexpr double one_computes = 1.11, all_compute = 0.88, one_reads = 2.95, all_read = 2.1;
// Rows of terms that begin in the middle of a sector of 32 bytes: as they are read, as a cluster receives them.
constexpr double crooked = 2.2, crooked_here = 1.2;
constexpr double from_near = 1.3; // operands that a cache keeps from one use to the next
// Of a cluster: that its workgroups begin and end together; that parts meet, and no copy is on its way then; what a worker
// reads of others' shared memory (of the mean rate of the near cache). Fitted to 60 more candidates of 16 products.
constexpr double cluster_seconds = 0.7e-6, meet_seconds = 1.5e-6, peer_reads = 0.7;
constexpr double unsure = 1.04; // what the fit misses: a cluster has to be worth more

// Workers that workgroups in clusters of such a size reach at once.
int64_t reached(const target::Target& t, int cluster) {
  return size_t(cluster) <= t.clustered.size() ? t.clustered[size_t(cluster) - 1] : t.workers / cluster * cluster;
}

// What the parts of a tile take to become one: a part is stored by each team, and of a tile's parts one block reads all,
// a team its rows alone; or each workgroup of a cluster reads its share of the others'.
double join(const ProductBlock& s, const Apart& x, double& each_wave, const target::Target& t) {
  if (x.split == 1) return 0;
  const double team = double(team_rows * s.columns) * 4;
  if (x.cluster == 1) {
    each_wave += double(s.math + 1) * team / t.near_rate;
    return join_seconds + double(x.split) * team / t.near_rate;
  }
  each_wave += meet_seconds + double(s.math) * team * double(x.split - 1) / double(x.split) / (peer_reads * t.near_rate);
  return 0;
}
} // namespace

int slots(const ProductBlock& s, int bits, const target::Target& t) {
  constexpr int64_t barriers = 4096, staged = 2 * 8192; // bytes; the second for each team's results
  const int64_t slot = (team_rows * s.math + s.columns) * s.loop * bits / 8;
  return int(std::max<int64_t>(2, (t.shared_limit - barriers - s.math * staged) / slot));
}

// Waves of workgroups, each as slow as its arithmetic or its bytes from the shared cache; everything at least as slow as
// memory; parts of a loop are joined.
ProductPrice product_price(const Product& p, const ProductBlock& s, const Apart& x, int64_t below, int64_t beside, const target::Target& t) {
  const double narrower = double(p.bits) / 16;
  // Loops around one read the rows' operand at overlapping places.
  const double all = double(p.batch) * double(p.m * p.k + p.around * p.sums * p.k * p.n + p.m * p.n) * 2 * narrower;
  const int64_t rows = team_rows * s.math, steps = p.around * ((p.k + s.loop - 1) / s.loop),
                part = (steps + x.split - 1) / x.split, work = p.batch * below * beside * x.split,
                workers = reached(t, x.cluster);
  const double depth = double(s.loop), waves = double((work + workers - 1) / workers);
  const double idle = double(t.workers) / double(std::min<int64_t>(work, t.workers));
  const double computes = std::min(one_computes, all_compute * idle) * t.matrix_rate / narrower;
  const double arithmetic = 2 * double(p.sums * rows * s.columns) * depth / (computes * s.reached);
  // A copy that a cluster shares is read once; all of them receive it, at a worker's share of the rate.
  const bool shares = x.split == 1 && x.cluster > 1;
  const double above = double(std::min(rows, p.m)), left = double(p.sums * std::min(s.columns, p.n));
  const double read = above / (shares && !x.beneath ? x.cluster : 1) + left / (shares && x.beneath ? x.cluster : 1);
  const bool odd = (p.k * p.bits / 8 + 15) / 16 % 2;
  const double bytes = 2 * narrower * depth / t.near_rate *
                       std::max(read * (odd ? crooked : 1) / std::min(one_reads, all_read * idle),
                                shares ? (above + left) * (odd ? crooked_here : 1) / all_read : 0);
  const double step = std::max({arithmetic, bytes, double(p.sums) * step_seconds * depth * narrower / 128});
  double store = 0;
  const double joined = join(s, x, store, t) + (x.cluster > 1 ? cluster_seconds : 0);
  if (s.columns % 64) store += lane_seconds * double(std::min(team_rows, p.m) * std::min(s.columns, p.n));
  const double blocks = waves * (double(part) * step + block_seconds + store);
  const double seconds = std::max(blocks, all / (t.memory_rate * from_near)) + joined;
  return {seconds * (x.cluster > 1 ? unsure : 1), waves, bytes > arithmetic};
}

} // namespace tang::lower
