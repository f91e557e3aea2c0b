// Contract on a GPU: blocks are dealt to subgroups, each lane holds some columns of a block in registers.
#include "tang/emit/gpu_contract.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/number.hpp"

namespace tang::emit {

namespace {
constexpr int64_t at_once = 4; // terms
} // namespace

int64_t points(const std::vector<TileAxis>& axes) {
  int64_t n = 1;
  for (auto& a : axes) n *= a.extent;
  return n;
}

// Rows and columns that do not exist repeat the last one that does, and are not stored.
void print_gpu_contract(Unit& u, const GpuDialect& d, const kernel::Contract& c) {
  check(pure(c.dst) && pure(c.a) && pure(c.b) && !c.m.empty() && !c.n.empty() && !c.k.empty(),
        "a contraction is over affine operands and some axes");
  const Memory &ma = u.memory(c.a.memory), &mb = u.memory(c.b.memory);
  const TileAxis mi = c.m.back(), ni = c.n.back();
  const int64_t W = u.k.subgroup, R = std::min<int64_t>(std::max(1, c.rows), mi.extent),
                V = std::min<int64_t>(std::max(1, c.vectors), ceil_div(ni.extent, W));
  check(R == std::max(1, c.rows) || mi.extent < c.rows, "rows of a block");
  const Affine oa = offset(u, c.a), ob = offset(u, c.b), od = offset(u, c.dst);
  const std::string real = d.type(Type::real, u.wide), w = number(W);
  auto rounds = [&](const char* v, int64_t n) {
    if (!d.unroll.empty()) u.line(d.unroll);
    u.open(d.loop(d.counter, v, "0", std::string(v) + " < " + number(n), "1"));
  };
  u.open("");
  auto extent = [&](const char* as, const std::vector<TileAxis>& axes, const std::optional<Affine>& end) {
    const std::string n = number(points(axes));
    u.line(d.constant(d.integer, as, end ? "tang_lesser(" + n + ", " + text(*end) + ")" : n));
  };
  check(points(c.k) < INT32_MAX / 2, "terms of a block are counted in 32 bits");
  extent("M", c.m, c.m_end), extent("N", c.n, c.n_end);
  if (c.k_end) extent("K", c.k, c.k_end);
  auto blocks = [](const std::vector<TileAxis>& axes, int64_t size) {
    return points(axes) / axes.back().extent * ceil_div(axes.back().extent, size);
  };
  const int64_t all = blocks(c.m, R) * blocks(c.n, V * W);
  u.open(d.loop(d.counter, "block", "lane / " + w, "block < " + number(all), number(u.k.lanes / W)));
  u.line(d.variable(d.counter, "left", "block"));
  auto decode = [&](const std::vector<TileAxis>& axes, int64_t size) { // returns the flat coordinate
    Affine flat;
    int64_t below = 1;
    for (size_t a = axes.size(); a-- > 0;) {
      const bool inner = a + 1 == axes.size();
      const int64_t count = inner ? ceil_div(axes[a].extent, size) : axes[a].extent;
      u.line(d.constant(d.integer, name(axes[a].var),
                        "left % " + divisor(count) + (inner ? " * " + number(size) : "")));
      u.line("left = left / " + divisor(count) + ";");
      flat = flat + kernel::variable(axes[a].var, below);
      below *= axes[a].extent;
    }
    return flat;
  };
  const Affine fn = decode(c.n, V * W), fm = decode(c.m, R);
  auto count = [&](const char* as, const std::string& left, const TileAxis& x) {
    u.line(d.constant(d.counter, as, d.cast(d.counter, "tang_lesser(" + left + ", " + number(x.extent) + " - " + name(x.var) + ")")));
  };
  count("rows", "M - " + text(fm), mi), count("columns", "N - " + text(fn), ni);
  u.line("if (rows <= 0 || columns <= 0) { continue; }");
  auto index = [&](const Memory& m) { return m.size() < INT32_MAX ? d.counter : d.integer; };
  u.line(d.array(real, "acc", R, V));
  const std::string column = "lane % " + w + " + v * " + w;
  // Where every block is whole its places are known while compiling: neighbours can be read at once.
  const bool all_rows = !c.m_end && mi.extent % R == 0, all_columns = !c.n_end && ni.extent % (V * W) == 0;
  if (!all_rows) {
    u.line(d.array(index(ma), "ra", R));
    rounds("r", R);
    u.line("ra[r] = " + d.pick("r < rows", "r", "rows - 1") + " * " + number(coefficient(oa, mi.var)) + ";");
    u.close();
  }
  if (!all_columns) {
    u.line(d.array(index(mb), "cb", V));
    rounds("v", V);
    u.line(d.constant(d.counter, "x", column));
    u.line("cb[v] = " + d.pick("x < columns", "x", "columns - 1") + " * " + number(coefficient(ob, ni.var)) + ";");
    u.close();
  }
  const std::string row_place = all_rows ? "r * " + number(coefficient(oa, mi.var)) : "ra[r]";
  const std::string column_place =
      all_columns ? "(lane % " + w + ") * " + number(coefficient(ob, ni.var)) + " + v * " + number(W * coefficient(ob, ni.var)) : "cb[v]";
  auto clear = [&] {
    rounds("r", R), rounds("v", V);
    u.line("acc[r][v] = " + d.zero(Type::real, u.wide) + ";");
    u.close(), u.close();
  };
  clear();
  auto outside = [&](Affine a) {
    for (auto& x : c.k) a = without(a, x.var);
    return text(a);
  };
  u.line(d.constant(index(ma), "ia0", d.cast(index(ma), "(" + outside(oa) + ")")));
  u.line(d.constant(index(mb), "ib0", d.cast(index(mb), "(" + outside(ob) + ")")));
  if (c.k_end) u.line(d.constant(d.counter, "terms", d.cast(d.counter, "K")));
  // A few terms at once, so that neighbours are read together: where the dialect counts rounds, as it says; else as a loop
  // of its own, where they come out even.
  const bool counts = !d.unroll.empty() && d.unroll[0] == '#', spelled = !d.unroll.empty() && !counts && !c.k_end && c.k.back().extent % at_once == 0;
  auto multiply = [&](const std::string& live) { // where `live` holds of a term
    std::string at_a = "ia0", at_b = "ib0", flat;
    int64_t below = points(c.k);
    for (auto& x : c.k) {
      below /= x.extent;
      const std::string v = name(x.var), here = flat.empty() ? v + " * " + number(below)
                                                             : flat + " + " + v + " * " + number(below);
      const bool last = &x == &c.k.back();
      if (last && counts) u.line(d.unroll + " " + number(at_once));
      if (last && spelled) {
        u.open(d.loop(d.counter, "from", "0", "from < " + number(x.extent), number(at_once)));
        rounds("term", at_once);
        u.line(d.constant(d.counter, v, "from + term"));
      } else {
        u.open(d.loop(d.counter, v, "0", v + " < " + number(x.extent) + (c.k_end ? " && " + here + " < terms" : ""), "1"));
      }
      flat = here;
      at_a += " + " + v + " * " + number(coefficient(oa, x.var));
      at_b += " + " + v + " * " + number(coefficient(ob, x.var));
    }
    u.line(d.constant(index(ma), "ia", at_a));
    u.line(d.constant(index(mb), "ib", at_b));
    u.line(d.array(real, "b", V));
    rounds("v", V);
    u.line("b[v] = " + u.load(c.b.memory, "ib + " + column_place) + ";");
    u.close();
    rounds("r", R);
    u.line(d.constant(real, "a", u.load(c.a.memory, "ia + " + row_place)));
    rounds("v", V);
    u.line((live.empty() ? "" : "if (" + live + ") { ") + "acc[r][v] = " + (u.wide ? "tang_dfma1" : "tang_fma1") +
           "(a, b[v], acc[r][v]);" + (live.empty() ? "" : " }"));
    u.close(), u.close();
    for (size_t a = 0; a < c.k.size() + spelled; ++a) u.close();
  };
  multiply("");
  if (c.dead_a || c.dead_b) { // what is infinite or NaN may have met the 0 of a term that is not there: once more, without
    u.line(d.variable(real, "some", d.zero(Type::real, u.wide)));
    rounds("r", R), rounds("v", V);
    u.line("some = some + acc[r][v];");
    u.close(), u.close();
    u.open("if (" + d.is_nan("(some - some)") + ")");
    clear();
    const std::string zero = d.zero(Type::real, u.wide), a = "a != " + zero, b = "b[v] != " + zero;
    multiply(!c.dead_b ? a : !c.dead_a ? b : a + " && " + b);
    u.close();
  }
  rounds("r", R), rounds("v", V);
  u.line(d.constant(d.counter, "x", column));
  u.open(all_rows && all_columns ? "" : "if (r < rows && x < columns)");
  const std::string place = text(od) + " + r * " + number(coefficient(od, mi.var)) + " + x * " +
                            number(coefficient(od, ni.var));
  u.line(u.store(c.dst.memory, place,
                 c.accumulate ? "(" + u.load(c.dst.memory, place) + " + acc[r][v])" : "acc[r][v]"));
  u.close(), u.close(), u.close();
  u.close();
  u.close();
}

} // namespace tang::emit
