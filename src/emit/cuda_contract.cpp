// Contract in CUDA: blocks are dealt to subgroups, each lane holds some columns of a block in registers.
#include "tang/emit/cuda_contract.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/number.hpp"

namespace tang::emit {

int64_t points(const std::vector<TileAxis>& axes) {
  int64_t n = 1;
  for (auto& a : axes) n *= a.extent;
  return n;
}

// Rows and columns that do not exist repeat the last one that does, and are not stored.
void print_cuda_contract(Unit& u, const kernel::Contract& c) {
  check(pure(c.dst) && pure(c.a) && pure(c.b) && !c.m.empty() && !c.n.empty() && !c.k.empty(),
        "a contraction is over affine operands and some axes");
  const Memory &ma = u.memory(c.a.memory), &mb = u.memory(c.b.memory), &md = u.memory(c.dst.memory);
  const TileAxis mi = c.m.back(), ni = c.n.back();
  const int64_t W = u.k.subgroup, R = std::min<int64_t>(std::max(1, c.rows), mi.extent),
                V = std::min<int64_t>(std::max(1, c.vectors), ceil_div(ni.extent, W));
  check(R == std::max(1, c.rows) || mi.extent < c.rows, "rows of a block");
  const Affine oa = offset(u, c.a), ob = offset(u, c.b), od = offset(u, c.dst);
  const std::string real = u.wide ? "double" : "float", rows = number(R), vectors = number(V), w = number(W);
  u.open("");
  auto extent = [&](const char* as, const std::vector<TileAxis>& axes, const std::optional<Affine>& end) {
    const std::string n = number(points(axes));
    u.line(std::string("const int64_t ") + as + " = " +
           (end ? "tang_lesser(" + n + ", " + text(*end) + ")" : n) + ";");
  };
  extent("M", c.m, c.m_end), extent("N", c.n, c.n_end), extent("K", c.k, c.k_end);
  auto blocks = [](const std::vector<TileAxis>& axes, int64_t size) {
    return points(axes) / axes.back().extent * ceil_div(axes.back().extent, size);
  };
  const int64_t all = blocks(c.m, R) * blocks(c.n, V * W);
  u.open("for (int block = lane / " + w + "; block < " + number(all) + "; block += " + number(u.k.lanes / W) +
         ")");
  u.line("int left = block;");
  auto decode = [&](const std::vector<TileAxis>& axes, int64_t size) { // returns the flat coordinate
    Affine flat;
    int64_t below = 1;
    for (size_t a = axes.size(); a-- > 0;) {
      const bool inner = a + 1 == axes.size();
      const int64_t count = inner ? ceil_div(axes[a].extent, size) : axes[a].extent;
      u.line("const int64_t " + name(axes[a].var) + " = left % " + number(count) +
             (inner ? " * " + number(size) : "") + "; left /= " + number(count) + ";");
      flat = flat + kernel::variable(axes[a].var, below);
      below *= axes[a].extent;
    }
    return flat;
  };
  const Affine fn = decode(c.n, V * W), fm = decode(c.m, R);
  u.line("const int rows = (int)tang_lesser(M - " + text(fm) + ", " + number(mi.extent) + " - " +
         name(mi.var) + ");");
  u.line("const int columns = (int)tang_lesser(N - " + text(fn) + ", " + number(ni.extent) + " - " +
         name(ni.var) + ");");
  u.line("if (rows <= 0 || columns <= 0) continue;");
  auto zero = [&](Affine a) {
    for (auto& x : c.k) a = without(a, x.var);
    return text(a);
  };
  const std::string l = "lane % " + w;
  auto index = [](const Memory& m) { return std::string(m.size() < INT32_MAX ? "int " : "int64_t "); };
  u.line(index(ma) + "ra[" + rows + "]; " + index(mb) + "cb[" + vectors + "]; " + real + " acc[" + rows +
         "][" + vectors + "];");
  u.line("#pragma unroll");
  u.line("for (int r = 0; r < " + rows + "; ++r) ra[r] = (r < rows ? r : rows - 1) * " +
         number(coefficient(oa, mi.var)) + ";");
  u.line("#pragma unroll");
  u.line("for (int v = 0; v < " + vectors + "; ++v) { const int x = " + l + " + v * " + w +
         "; cb[v] = (x < columns ? x : columns - 1) * " + number(coefficient(ob, ni.var)) + "; }");
  u.line("#pragma unroll");
  u.line("for (int r = 0; r < " + rows + "; ++r)");
  u.line("  for (int v = 0; v < " + vectors + "; ++v) acc[r][v] = 0;");
  std::string off_a, off_b, flat;
  int64_t below = points(c.k);
  for (auto& x : c.k) {
    below /= x.extent;
    const std::string v = name(x.var), here = flat.empty() ? v + " * " + number(below)
                                                           : flat + " + " + v + " * " + number(below);
    u.open("for (int64_t " + v + " = 0; " + v + " < " + number(x.extent) + " && " + here + " < K; ++" + v +
           ")");
    flat = here;
    off_a += " + " + v + " * " + number(coefficient(oa, x.var));
    off_b += " + " + v + " * " + number(coefficient(ob, x.var));
  }
  u.line("const " + std::string(element_type(ma.format)) + "* const pa = m" + std::to_string(c.a.memory) +
         " + " + zero(oa) + off_a + ";");
  u.line("const " + std::string(element_type(mb.format)) + "* const pb = m" + std::to_string(c.b.memory) +
         " + " + zero(ob) + off_b + ";");
  u.line(real + " b[" + vectors + "];");
  u.line("#pragma unroll");
  u.line("for (int v = 0; v < " + vectors + "; ++v) b[v] = " + load_element(u, mb.format, "pb[cb[v]]") + ";");
  u.line("#pragma unroll");
  u.line("for (int r = 0; r < " + rows + "; ++r) {");
  u.line("  const " + real + " a = " + load_element(u, ma.format, "pa[ra[r]]") + ";");
  u.line("  for (int v = 0; v < " + vectors + "; ++v) acc[r][v] = " + (u.wide ? "tang_dfma1" : "tang_fma1") +
         "(a, b[v], acc[r][v]);");
  u.line("}");
  for (size_t a = 0; a < c.k.size(); ++a) u.close();
  u.line("#pragma unroll");
  u.line("for (int r = 0; r < " + rows + "; ++r)");
  u.line("  for (int v = 0; v < " + vectors + "; ++v) if (r < rows && " + l + " + v * " + w +
         " < columns) {");
  const std::string place = "m" + std::to_string(c.dst.memory) + "[" + text(od) + " + r * " +
                            number(coefficient(od, mi.var)) + " + (" + l + " + v * " + w + ") * " +
                            number(coefficient(od, ni.var)) + "]";
  u.line("    " + store_element(u, md.format, place,
                                c.accumulate ? "(" + load_element(u, md.format, place) + " + acc[r][v])"
                                             : "acc[r][v]"));
  u.line("  }");
  u.close();
  u.close();
}

} // namespace tang::emit
