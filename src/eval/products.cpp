// Sums of products of reads: most of what the oracle does. The same additions in the same order as the walk
// of terms, 16 lanes at a time with their sums in registers; operands that do not lie so are copied into
// panels first.
#include <algorithm>

#include "tang/eval/tape.hpp"

// Wider instructions where the processor has them. They do not fuse a product with a sum, so the bits are the
// same.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TANG_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define TANG_WIDE
#endif

namespace tang::eval {

using expr::Op;

namespace {
constexpr int wide = 16, deep = 64; // lanes and terms of a panel

// An operand's element of term j and lane l is at[j * step + l].
struct Rows {
  const double* at = nullptr;
  int64_t step = 0;
};

TANG_WIDE void add_one(double* sum, Rows a, int64_t terms) {
  double s[wide];
  std::copy_n(sum, wide, s);
  for (int64_t j = 0; j < terms; ++j, a.at += a.step)
    for (int l = 0; l < wide; ++l) s[l] += a.at[l];
  std::copy_n(s, wide, sum);
}

TANG_WIDE void add_two(double* sum, Rows a, Rows b, int64_t terms) {
  double s[wide];
  std::copy_n(sum, wide, s);
  for (int64_t j = 0; j < terms; ++j, a.at += a.step, b.at += b.step)
    for (int l = 0; l < wide; ++l) s[l] += a.at[l] * b.at[l];
  std::copy_n(s, wide, sum);
}

TANG_WIDE void add_three(double* sum, Rows a, Rows b, Rows c, int64_t terms) { // a * (b * c)
  double s[wide];
  std::copy_n(sum, wide, s);
  for (int64_t j = 0; j < terms; ++j, a.at += a.step, b.at += b.step, c.at += c.step)
    for (int l = 0; l < wide; ++l) s[l] += a.at[l] * (b.at[l] * c.at[l]);
  std::copy_n(s, wide, sum);
}
} // namespace

struct Tape::Run::Operand {
  const Instr* read = nullptr; // nothing: a register that no fold coordinate changes
  int reg = -1;
  int64_t offset = 0, step = 0; // of the read: at the outer coordinates; a term
  double panel[deep * wide];
};

// The factors of the root in the order a * (b * c), or nothing.
bool Tape::Run::find_operands(std::vector<Operand>& out) const {
  const int root = tape.roots_[0];
  auto maker = [&](int reg) {
    return std::find_if(tape.code_.begin(), tape.code_.end(), [&](const Instr& in) { return in.dst == reg; });
  };
  auto add = [&](int reg) {
    Operand o;
    o.reg = reg;
    if (tape.varies_[size_t(reg)]) {
      const Instr& in = *maker(reg);
      if (in.op != Op::arg || in.out != Type::real) return false;
      if (!in_range[size_t(in.whole)] || may_be_partial[size_t(reg)]) return false;
      o.read = &in;
    }
    out.push_back(o);
    return true;
  };
  auto is_product = [&](int reg) {
    return tape.varies_[size_t(reg)] && maker(reg)->op == Op::mul && maker(reg)->in == Type::real;
  };
  if (!is_product(root)) return add(root);
  int a = maker(root)->a, b = maker(root)->b;
  if (is_product(a)) std::swap(a, b);
  if (!is_product(b)) return add(a) && add(b);
  return !is_product(a) && add(a) && add(maker(b)->a) && add(maker(b)->b);
}

// Terms `first` .. of the lanes from `lane` on; whole panels are filled, what lies beyond is not used.
static void fill_panel(double* panel, const double* base, const int64_t* at, int64_t step, int64_t terms,
                       int lanes_here, Tape::Run::Lie lie) {
  if (lie == Tape::Run::Lie::same) {
    for (int64_t j = 0; j < terms; ++j) std::fill_n(panel + j * wide, wide, base[at[0] + j * step]);
    return;
  }
  for (int l = 0; l < lanes_here; ++l) {
    const double* from = base + at[l];
    for (int64_t j = 0; j < terms; ++j) panel[j * wide + l] = from[j * step];
  }
}

bool Tape::Run::add_products(double* sums, const std::vector<int64_t>& folds) {
  std::vector<Operand> operands;
  if (folds.empty() || !find_operands(operands)) return false;
  const int width = one_for_all(0) ? 1 : count;
  const size_t inner = folds.size() - 1;
  int64_t outer = 1;
  for (size_t f = 0; f < inner; ++f) outer *= folds[f];
  auto coefficient = [&](const Instr& in, size_t fold) {
    int64_t c = 0;
    for (size_t d = 0; d < in.forms.size(); ++d)
      for (auto& [a, k] : tape.forms_[size_t(in.forms[d])].folds)
        if (size_t(a) == fold) c += sources[size_t(in.whole)].strides[d] * k;
    return c;
  };
  for (auto& o : operands)
    if (o.read) o.step = coefficient(*o.read, inner);
  std::vector<int64_t> at(inner, 0);
  for (int64_t turn = 0; turn < outer; ++turn) {
    for (auto& o : operands) {
      o.offset = 0;
      for (size_t f = 0; f < inner && o.read; ++f) o.offset += coefficient(*o.read, f) * at[f];
    }
    for (int64_t first = 0; first < folds[inner]; first += deep)
      add_terms(operands, sums, first, std::min<int64_t>(deep, folds[inner] - first), width);
    for (size_t f = inner; f-- > 0;) {
      if (++at[f] < folds[f]) break;
      at[f] = 0;
    }
  }
  if (width < count) std::fill(sums + 1, sums + count, sums[0]);
  return true;
}

// Panels that hold one value a term serve every group of lanes.
void Tape::Run::add_terms(std::vector<Operand>& operands, double* sums, int64_t first, int64_t terms,
                          int width) {
  for (int lane = 0; lane < width; lane += wide) {
    Rows rows[3];
    for (size_t k = 0; k < operands.size(); ++k) {
      Operand& o = operands[k];
      if (!o.read) {
        const double* held = regs[size_t(o.reg)].r;
        if (uniform[size_t(o.reg)] && !lane) std::fill_n(o.panel, wide, held[0]);
        rows[k] = {uniform[size_t(o.reg)] ? o.panel : held + lane, 0};
        continue;
      }
      const size_t arg = size_t(o.read->whole);
      const double* base = sources[arg].array->r.data() + o.offset + first * o.step;
      const int64_t* where = flat[arg].data() + lane;
      const int here = std::min(wide, width - lane);
      if (lie[arg] == Lie::neighbours && here == wide) {
        rows[k] = {base + where[0], o.step};
        continue;
      }
      const bool again = lie[arg] == Lie::same && lane > 0;
      if (!again) fill_panel(o.panel, base, where, o.step, terms, here, lie[arg]);
      rows[k] = {o.panel, wide};
    }
    if (operands.size() == 1)
      add_one(sums + lane, rows[0], terms);
    else if (operands.size() == 2)
      add_two(sums + lane, rows[0], rows[1], terms);
    else
      add_three(sums + lane, rows[0], rows[1], rows[2], terms);
  }
}

} // namespace tang::eval
