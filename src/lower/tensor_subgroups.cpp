#include "tang/lower/tensor_subgroups.hpp"

#include <algorithm>

#include "tang/base/number.hpp"

namespace tang::lower {

namespace {
constexpr int64_t box = 128, spare = 1024; // bytes: of a row of a slot; of shared memory beside the tiles
constexpr int processor_registers = 65536;

struct Shape {
  int down, across, tall; // subgroups, and 16 rows of each
  int64_t columns;        // of a block
  int stages;
  double reached; // of the rate of matrix instructions
};

// Each has the same number of columns as rows, or twice as many, so that a subgroup reads little for what it computes.
constexpr Shape shapes[] = {{2, 4, 4, 256, 3, 1.0}, {4, 2, 4, 128, 3, 0.98}, {2, 2, 4, 128, 3, 0.95}, {2, 2, 2, 128, 3, 0.75},
                            {2, 2, 4, 64, 4, 0.75}, {2, 2, 2, 64, 4, 0.6},   {2, 2, 1, 64, 4, 0.35}};

target::Roles roles_of(const Shape& s, int64_t sums) {
  target::Roles r;
  r.math = s.down * s.across, r.across = s.across, r.tall = s.tall;
  r.stages.assign(size_t(sums), s.stages);
  r.order = target::WorkOrder::grouped;
  r.producer_registers = 24;
  r.math_registers = std::min(248, processor_registers / r.threads() / 8 * 8);
  return r;
}
} // namespace

// Waves of workgroups, as many on a processor as its registers and shared memory hold; each as slow as its arithmetic or
// its bytes from the shared cache.
std::vector<SubgroupBlock> subgroup_products(const Product& p, const target::Target& t,
                                             const std::function<int64_t(int64_t)>& row_blocks) {
  constexpr double start_seconds = 1.5e-6, of_peak = 0.62; // of a block; that instructions of subgroups reach
  const int64_t terms = box * 8 / p.bits;
  std::vector<SubgroupBlock> out;
  for (const Shape& s : shapes) {
    SubgroupBlock b{roles_of(s, p.sums), s.columns, terms, 0};
    const int64_t rows = b.roles.rows(), slot = (rows + s.columns) * box * s.stages + b.roles.math * 16 * box + spare;
    if (slot * p.sums > t.shared_limit) continue;
    const int64_t together = std::clamp<int64_t>(t.shared_limit / (slot * p.sums), 1, 256 / b.roles.threads());
    const int64_t work = p.batch * row_blocks(rows) * ceil_div(p.n, s.columns), steps = ceil_div(p.k, terms);
    const double waves = double(ceil_div(work, t.workers * together));
    const double flops = 2 * double(rows * s.columns * terms * p.sums * together);
    const double reads = double((rows + s.columns * p.sums) * box * together);
    const double idle = double(t.workers * together) / double(std::min(work, t.workers * together));
    const double step = std::max(flops / (t.matrix_rate * of_peak * s.reached * 16 / double(p.bits)), reads / (t.near_rate * idle));
    b.seconds = waves * (double(steps) * step / std::min(idle, double(together)) + start_seconds);
    out.push_back(std::move(b));
  }
  std::stable_sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
  return out;
}

// Subgroups have whole rows; a lane's registers say how many workgroups share a processor.
std::vector<SubgroupBlock> subgroup_weighted(int64_t widest, const target::Roles& like) {
  struct Rows {
    int64_t widest; // that it is for, the first that suits
    int down, tall, stages;
    int64_t loop;
    int registers;
  };
  constexpr Rows all[] = {{64, 4, 2, 2, 64, 248},  {64, 4, 1, 2, 64, 168},  {64, 8, 1, 2, 64, 128},  {64, 4, 1, 2, 128, 168},
                          {64, 8, 1, 2, 128, 248}, {128, 8, 1, 2, 64, 248}, {128, 4, 2, 2, 64, 248}, {128, 4, 1, 1, 64, 168},
                          {128, 4, 1, 2, 64, 248}, {256, 4, 1, 2, 64, 248}, {256, 4, 1, 1, 64, 248}, {256, 4, 1, 1, 32, 248},
                          {256, 4, 1, 1, 16, 248}};
  std::vector<SubgroupBlock> out;
  for (const Rows& r : all) {
    if (widest > r.widest) continue;
    SubgroupBlock b{roles_of({r.down, 1, r.tall, 0, r.stages, 1}, 2), 0, r.loop, 0};
    b.roles.math_registers = r.registers, b.roles.order = like.order, b.roles.group = like.group;
    out.push_back(std::move(b));
  }
  return out;
}

std::string text_of(const target::Roles& r, bool on_grid, int64_t column_tile, int64_t loop) {
  const std::string down = r.tall ? "subgroups " + std::to_string(r.math / r.across) + "x" : "roles " + std::to_string(r.math) + "x";
  std::string text = down + std::to_string(r.team_rows()) + "x" + (r.across > 1 ? std::to_string(r.across) + "x" : "") + std::to_string(on_grid ? column_tile / r.across : loop) +
           (on_grid ? "x" + std::to_string(loop) : "") + " stages";
  for (int s : r.stages) text += " " + std::to_string(s);
  if (r.skew) text += " skew " + std::to_string(r.skew);
  if (r.turns) text += " turns";
  if (r.tall) text += " registers " + std::to_string(r.math_registers);
  if (r.late) text += " late";
  if (r.reuse) text += " reuse";
  if (r.hoisted > 1) text += " hoisted " + std::to_string(r.hoisted);
  if (r.split > 1) text += " split " + std::to_string(r.split);
  if (r.cluster > 1) text += " cluster " + std::to_string(r.cluster) + (r.beneath ? " beneath" : "");
  if (r.polynomial) text += " polynomial " + std::to_string(r.polynomial);
  if (r.persist == target::Persist::dynamic) text += " dynamic";
  constexpr const char* orders[] = {"", " grouped ", " longest first ", " first rows first "};
  if (r.order != target::WorkOrder::linear) text += orders[int(r.order)] + std::to_string(r.group);
  return text;
}

} // namespace tang::lower
