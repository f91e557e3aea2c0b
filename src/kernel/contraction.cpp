#include "tang/kernel/contraction.hpp"

#include <algorithm>

#include "tang/base/number.hpp"

namespace tang::kernel {

namespace {
std::vector<TileAxis> joined(std::vector<TileAxis> a, const std::vector<TileAxis>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
int64_t points(const std::vector<TileAxis>& a) {
  int64_t n = 1;
  for (auto& x : a) n *= x.extent;
  return n;
}
}  // namespace

Contraction::Contraction(const Kernel& k, int statement, const Stmt& s, const Contract& x, bool full)
    : kernel_(k), statement_(statement), stmt_(s), node_(x), dead_a_(x.dead_a > (full ? Contract::partial : Contract::none)),
      dead_b_(x.dead_b > (full ? Contract::partial : Contract::none)), m_(points(x.m)), n_(points(x.n)),
      k_(points(x.k)), a_(k, statement, s, joined(x.m, x.k), {}, nullptr),
      b_(k, statement, s, joined(x.k, x.n), {}, nullptr), d_(k, statement, s, joined(x.m, x.n), {}, nullptr),
      ra_(a_.add(x.a)), rb_(b_.add(x.b)), rd_(d_.add(x.dst)) {}

int64_t Contraction::limit(const std::optional<Affine>& end, int64_t all, const int64_t* vars) const {
  if (!end) return all;
  int64_t v = end->c;
  for (auto& [x, k] : end->terms) v += k * vars[x];
  return std::clamp<int64_t>(v, 0, all);
}

void Contraction::deal(Machine& m, int64_t from, int n) const {
  if (kernel_.lanes <= 1) return;
  const int64_t tall = std::max(1, node_.rows), sub = kernel_.subgroup, wide = std::max(1, node_.vectors) * sub;
  const int64_t mi = node_.m.back().extent, ni = node_.n.back().extent;
  for (int l = 0; l < n; ++l) {
    const int64_t i = (from + l) / n_, j = (from + l) % n_;
    const int64_t block_m = i / mi * ceil_div(mi, tall) + i % mi / tall, block_n = j / ni * ceil_div(ni, wide) + j % ni / wide;
    const int64_t block = block_m * (n_ / ni * ceil_div(ni, wide)) + block_n;
    m.lane_of[size_t(l)] = int(block % (kernel_.lanes / sub) * sub + j % ni % sub);
  }
}
void Contraction::gather(Machine& m, Points& p, int ref, int memory, int64_t rows, int64_t columns, int64_t live_rows,
                         int64_t live_columns, bool probes, std::vector<double>& out) {
  out.assign(size_t(rows * columns), 0.0);
  Reg r;
  for (int64_t from = 0; from < rows * columns; from += width) {
    const int n = int(std::min<int64_t>(width, rows * columns - from));
    Mask live = 0;
    for (int l = 0; l < n; ++l)
      live |= Mask((from + l) / columns < live_rows && (from + l) % columns < live_columns) << l;
    p.block(from, n);
    if (&p == &d_) deal(m, from, n);
    else m.lane_of.fill(Machine::several);
    if (probes) p.probe(ref, first(n) & ~live);
    if (!live) continue;
    p.load(ref, live, r);
    const bool real = expr::type_of(kernel_.memories[size_t(memory)].format) == Type::real;
    each(live, n, [&](int l) { out[size_t(from + l)] = real ? r.r[l] : double(r.i[l]); });
  }
}
// A term beyond k_end may be computed or left out: it must not matter.
void Contraction::check_tail(Machine& m, int64_t rows, int64_t terms, int64_t columns, int64_t from) {
  for (int64_t t = from; t < terms; ++t)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (const double a = dense_a_[size_t(i * k_ + t)], b = dense_b_[size_t(t * n_ + j)]; adds(a, b) && a * b != 0) {
          m.report(Fault::tail, statement_, node_.dst.memory, [&] {
            return "term " + std::to_string(t) + " of row " + std::to_string(i) + ", column " +
                   std::to_string(j) + " is not 0, in: " + Text(kernel_, Naming::own).head(stmt_);
          });
          return;
        }
}
void Contraction::run(Machine& m, const int64_t* vars) {
  const int64_t rows = limit(node_.m_end, m_, vars), columns = limit(node_.n_end, n_, vars),
                terms = limit(node_.k_end, k_, vars);
  m.steps += m_ * n_ * k_;
  for (Points* p : {&a_, &b_, &d_}) p->start(m, vars);
  if (rows == 0 || columns == 0) return;
  // Dead rows and columns of tiles are computed, so their operands are read; a global is not read there.
  auto in_place = [&](const Ref& r) { return kernel_.memories[size_t(r.memory)].home == Home::global; };
  const bool a_global = in_place(node_.a), b_global = in_place(node_.b);
  gather(m, a_, ra_, node_.a.memory, m_, k_, rows, a_global ? terms : k_, !a_global, dense_a_);
  gather(m, b_, rb_, node_.b.memory, k_, n_, b_global ? terms : k_, columns, !b_global, dense_b_);
  if (node_.accumulate) gather(m, d_, rd_, node_.dst.memory, m_, n_, rows, columns, false, dense_d_);
  else dense_d_.assign(size_t(m_ * n_), 0.0);
  if (!a_global && !b_global) check_tail(m, rows, k_, columns, terms);
  // Registers hold a block of the accumulator: an operand is read again for every block of the other side.
  const int64_t wide = std::max<int64_t>(1, int64_t(node_.vectors) * m.options.lanes),
                tall = std::max(1, node_.rows);
  m.count_loads(node_.a.memory, rows * k_ * (ceil_div(columns, wide) - 1));
  m.count_loads(node_.b.memory, columns * k_ * (ceil_div(rows, tall) - 1));
  const Format round = m.round;
  for (int64_t i = 0; i < rows; ++i) {
    double* d = &dense_d_[size_t(i * n_)];
    for (int64_t t = 0; t < terms; ++t) {
      const double a = dense_a_[size_t(i * k_ + t)];
      const double* b = &dense_b_[size_t(t * n_)];
      if (dead_a_ || dead_b_)
        for (int64_t j = 0; j < columns; ++j) d[j] = adds(a, b[j]) ? expr::rounded(a * b[j] + d[j], round) : d[j];
      else if (round == Format::f64)
        for (int64_t j = 0; j < columns; ++j) d[j] += a * b[j];
      else if (round == Format::f32)
        for (int64_t j = 0; j < columns; ++j) d[j] = double(float(a * b[j] + d[j]));
      else
        for (int64_t j = 0; j < columns; ++j) d[j] = expr::rounded(a * b[j] + d[j], round);
    }
  }
  Reg r;
  for (int64_t from = 0; from < m_ * n_; from += width) {
    const int n = int(std::min<int64_t>(width, m_ * n_ - from));
    Mask live = 0;
    for (int l = 0; l < n; ++l) live |= Mask((from + l) / n_ < rows && (from + l) % n_ < columns) << l;
    if (!live) continue;
    std::copy_n(&dense_d_[size_t(from)], n, r.r);
    d_.block(from, n);
    deal(m, from, n);
    d_.store(rd_, live, r);
  }
}

}  // namespace tang::kernel
