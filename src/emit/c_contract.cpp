// Contract as a register-blocked kernel of its own: rows x vectors accumulators, a broadcast, b in vectors,
// fused multiply-add along k; the loops over blocks stand where the statement stood.
#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/c_kernel.hpp"

namespace tang::emit {

namespace {
using kernel::Contract;

// One register block. `edge`: fewer columns than rows x vectors hold may be valid, and b must not be read
// beyond them.
struct Block {
  int rows, vectors;
  bool edge;
};

class ContractText {
public:
  ContractText(Unit& u, const Contract& c) : u_(u), c_(c) {
    check(pure(c.dst) && pure(c.a) && pure(c.b), "a contraction's operands are affine and unchecked");
    check(!c.m.empty() && !c.n.empty() && !c.k.empty(), "a contraction's axes");
    a_ = offset(u, c.a), b_ = offset(u, c.b), d_ = offset(u, c.dst);
    mi_ = c.m.back(), ni_ = c.n.back();
    check(coefficient(d_, ni_.var) == 1 && coefficient(b_, ni_.var) == 1,
          "n's innermost axis is contiguous in dst and b");
    rows_ = int(std::min<int64_t>(std::max(1, c.rows), mi_.extent));
    vectors_ = int(std::min<int64_t>(std::max(1, c.vectors), ceil_div(ni_.extent, u.lanes)));
    a_global_ = u.memory(c.a.memory).home == kernel::Home::global;
    b_global_ = u.memory(c.b.memory).home == kernel::Home::global;
  }

  void print() {
    u_.open("");
    extent("M", c_.m, c_.m_end), extent("N", c_.n, c_.n_end), extent("K", c_.k, c_.k_end);
    Affine n_flat = loops("N", c_.n), m_flat;
    const int64_t wide = int64_t(vectors_) * u_.lanes, whole = ni_.extent / wide * wide;
    const std::string n = name(ni_.var);
    if (whole) {
      u_.open("for (int64_t " + n + " = 0; " + n + " < " + number(whole) + " && " + text(n_flat) + " < N; " +
              n + " += " + number(wide) + ")");
      rows(n_flat, vectors_, false);
      u_.close();
    }
    if (whole < ni_.extent) {
      u_.line("const int64_t " + n + " = " + number(whole) + ";");
      u_.open("if (" + text(n_flat) + " < N)");
      rows(n_flat, int(ceil_div(ni_.extent - whole, u_.lanes)), (ni_.extent - whole) % u_.lanes != 0);
      u_.close();
    }
    for (size_t i = 0; i + 1 < c_.n.size(); ++i) u_.close();
    u_.close();
  }

private:
  static int64_t points(const std::vector<TileAxis>& axes) {
    int64_t n = 1;
    for (auto& a : axes) n *= a.extent;
    return n;
  }

  void extent(const char* as, const std::vector<TileAxis>& axes, const std::optional<Affine>& end) {
    const std::string n = number(points(axes));
    u_.line(std::string("const int64_t ") + as + " = " +
            (end ? "tang_lesser(" + n + ", " + text(*end) + ")" : n) + ";");
  }

  // Opens loops over all but the innermost axis; returns the flat coordinate.
  Affine loops(const std::string& limit, const std::vector<TileAxis>& axes) {
    Affine flat;
    int64_t below = points(axes);
    for (size_t i = 0; i < axes.size(); ++i) {
      below /= axes[i].extent;
      flat = flat + kernel::variable(axes[i].var, below);
      const std::string v = name(axes[i].var);
      if (i + 1 < axes.size())
        u_.open("for (int64_t " + v + " = 0; " + v + " < " + number(axes[i].extent) + " && " + text(flat) +
                " < " + limit + "; ++" + v + ")");
    }
    return flat;
  }

  void rows(const Affine& n_flat, int vectors, bool ragged) {
    const std::string m = name(mi_.var);
    u_.line("const int64_t cols = N - " + text(n_flat) + ";");
    Affine flat = loops("M", c_.m);
    // Blocks of nearly one height: of 32 rows in blocks of at most 6, two of 6 and four of 5.
    const int64_t blocks = ceil_div(mi_.extent, rows_), low = mi_.extent / blocks, high = mi_.extent % blocks;
    span(m, flat, 0, high * (low + 1), int(low) + 1, vectors, ragged);
    span(m, flat, high * (low + 1), mi_.extent, int(low), vectors, ragged);
    for (size_t i = 0; i + 1 < c_.m.size(); ++i) u_.close();
  }

  void span(const std::string& m, const Affine& flat, int64_t from, int64_t to, int high, int vectors, bool ragged) {
    if (from == to) return;
    u_.open("for (int64_t " + m + " = " + number(from) + "; " + m + " < " + number(to) + " && " + text(flat) + " < M; " +
            m + " += " + number(high) + ")");
    u_.line("const int64_t rows = M - " + text(flat) + ";");
    block(high, vectors, ragged);
    u_.close();
  }

  void block(int rows, int vectors, bool ragged) {
    const int64_t wide = int64_t(vectors) * u_.lanes;
    // The last columns of the innermost axis end before the vectors do.
    const std::string cols =
        ragged ? "tang_lesser(cols, " + number(ni_.extent % u_.lanes + (vectors - 1) * u_.lanes) + ")"
               : "cols";
    const std::string args = "(m" + std::to_string(c_.a.memory) + " + " + text(zero(a_, c_.k)) + ", m" +
                             std::to_string(c_.b.memory) + " + " + text(zero(b_, c_.k)) + ", m" +
                             std::to_string(c_.dst.memory) + " + " + text(d_) + ", K, ";
    const bool edges = b_global_ && (ragged || c_.n_end);
    const bool few = a_global_ && c_.m_end && rows > 1;
    auto call = [&](int r, bool edge, const std::string& valid) {
      return helper({r, vectors, edge}) + args + valid + ", " + cols + ");";
    };
    auto by_edge = [&](int r, const std::string& valid) {
      if (!edges) return u_.line(call(r, false, valid));
      if (ragged) return u_.line(call(r, true, valid));
      u_.line("if (cols >= " + number(wide) + ") " + call(r, false, valid));
      u_.line("else " + call(r, true, valid));
    };
    if (!few) return by_edge(rows, "rows");
    // Rows of a global a that do not exist are not read: the last rows go one by one.
    u_.open("if (rows >= " + number(rows) + ")");
    by_edge(rows, "rows");
    u_.close();
    u_.open("else");
    const std::string m = name(mi_.var), end = u_.fresh("end");
    u_.line("const int64_t first = " + m + ", " + end + " = " + m + " + rows;");
    u_.open("for (int64_t " + m + " = first; " + m + " < " + end + "; ++" + m + ")");
    by_edge(1, "1");
    u_.close();
    u_.close();
  }

  static Affine zero(Affine a, const std::vector<TileAxis>& axes) {
    for (auto& x : axes) a = without(a, x.var);
    return a;
  }

  std::string splat(const std::string& x) const {
    return (u_.wide ? "tang_dsplatW(" : "tang_splatW(") + x + ")";
  }

  // Opens the loops over terms: outer axes by index, the innermost by moving pointers p and q.
  void terms(std::string& s, std::string& pad) const {
    const Memory &ma = u_.memory(c_.a.memory), &mb = u_.memory(c_.b.memory);
    auto line = [&](const std::string& t) { s += pad + t + "\n"; };
    std::string flat, off_a, off_b;
    int64_t below = points(c_.k);
    for (size_t i = 0; i < c_.k.size(); ++i) {
      const int64_t e = c_.k[i].extent, ka = coefficient(a_, c_.k[i].var), kb = coefficient(b_, c_.k[i].var);
      below /= e;
      const std::string k = "k" + std::to_string(i);
      if (i + 1 < c_.k.size()) {
        const std::string here = (flat.empty() ? "" : flat + " + ") + k + " * " + number(below);
        line("for (int64_t " + k + " = 0; " + k + " < " + number(e) + " && " + here + " < K; ++" + k + ") {");
        pad += "  ";
        flat = here;
        off_a += " + " + k + " * " + number(ka), off_b += " + " + k + " * " + number(kb);
        continue;
      }
      line(std::string("const ") + element_type(ma.format) + "* p = a" + off_a + ";");
      line(std::string("const ") + element_type(mb.format) + "* q = b" + off_b + ";");
      line("for (int64_t k = " + (flat.empty() ? "K" : "tang_lesser(" + number(e) + ", K - (" + flat + "))") +
           "; k > 0; --k, p += " + number(ka) + ", q += " + number(kb) + ") {");
      pad += "  ";
    }
  }

  void end_terms(std::string& s, std::string& pad) const {
    for (size_t i = 0; i < c_.k.size(); ++i) {
      pad.resize(pad.size() - 2);
      s += pad + "}\n";
    }
  }

  // The block again where it is not finite: what is infinite or NaN may have met the 0 of a term that is not there,
  // which adds nothing.
  std::string one_by_one() {
    const Memory &ma = u_.memory(c_.a.memory), &mb = u_.memory(c_.b.memory);
    const std::string V = u_.wide ? "D" : "F", w = number(u_.lanes), real = value_type(Type::real, u_.wide, false);
    std::string s = std::string("(const ") + element_type(ma.format) + "* a, const " + element_type(mb.format) + "* b, " + V +
                    "* all, int64_t K, int rows, int vectors, int64_t cols) {\n",
                pad = "  ";
    auto line = [&](const std::string& t) { s += pad + t + "\n"; };
    line("for (int r = 0; r < rows; ++r) for (int c = 0; c < vectors * " + w + " && c < cols; ++c) {");
    line(real + " sum = 0;");
    terms(s, pad);
    line("const " + real + " x = " + load_element(u_, ma.format, "p[r * " + number(coefficient(a_, mi_.var)) + "]") + ", y = " +
         load_element(u_, mb.format, "q[c]") + ";");
    line(std::string("if (") + (c_.dead_a ? "x != 0" : "") + (c_.dead_a && c_.dead_b ? " && " : "") + (c_.dead_b ? "y != 0" : "") +
         ") sum = " + (u_.wide ? "tang_dfma1" : "tang_fma1") + "(x, y, sum);");
    end_terms(s, pad);
    line("tang_lane(all[r * vectors + c / " + w + "], c % " + w + ") = sum;");
    return u_.helper(s + "  }\n}\n");
  }

  std::string helper(const Block& b) {
    const Memory &ma = u_.memory(c_.a.memory), &mb = u_.memory(c_.b.memory), &md = u_.memory(c_.dst.memory);
    const std::string V = u_.wide ? "D" : "F", w = number(u_.lanes);
    const int64_t am = coefficient(a_, mi_.var), dm = coefficient(d_, mi_.var);
    std::string s, pad = "  ";
    auto line = [&](const std::string& t) { s += pad + t + "\n"; };
    auto each = [&](const char* separator, auto f) {
      std::string t;
      for (int r = 0; r < b.rows; ++r)
        for (int v = 0; v < b.vectors; ++v) t += (t.empty() ? "" : separator) + f(r, v);
      return t;
    };
    auto acc = [](int r, int v) { return "c" + std::to_string(r) + "_" + std::to_string(v); };
    s = std::string("(const ") + element_type(ma.format) + "* a, const " + element_type(mb.format) + "* b, " +
        element_type(md.format) + "* d, int64_t K, int64_t rows, int64_t cols) {\n";
    line(V + " " + each(", ", [&](int r, int v) { return acc(r, v) + " = {0}"; }) + ";");
    if (b.edge)
      for (int v = 0; v < b.vectors; ++v)
        line("const " + value_type(Type::boolean, u_.wide, true) + " live" + std::to_string(v) + " = " +
             fn(u_, "live", true) + "(cols - " + number(v * u_.lanes) + ");");
    terms(s, pad);
    for (int v = 0; v < b.vectors; ++v) {
      const std::string at = "q + " + std::to_string(v * u_.lanes), as = "b" + std::to_string(v);
      if (!b.edge && has_vector_access(u_, mb.format)) {
        line("const " + V + " " + as + " = " + load_vector(u_, mb.format, at) + ";");
      } else if (b.edge && (u_.wide || mb.format == Format::f32) && has_vector_access(u_, mb.format)) {
        line("const " + V + " " + as + " = " + fn(u_, "load_masked", true) + "(" + at + ", live" +
             std::to_string(v) + ");");
      } else {
        line(V + " " + as + ";");
        line("for (int l = 0; l < " + w + "; ++l) tang_lane(" + as + ", l) = " +
             (b.edge ? (u_.wide ? "tang_dat(live" : "tang_at(live") + std::to_string(v) + ", l) ? " : "") +
             load_element(u_, mb.format, "(" + at + ")[l]") + (b.edge ? " : 0" : "") + ";");
      }
    }
    for (int r = 0; r < b.rows; ++r) {
      std::string t =
          "{ const " + V + " x = " + splat(load_element(u_, ma.format, "p[" + number(r * am) + "]")) + ";";
      for (int v = 0; v < b.vectors; ++v)
        t += " " + acc(r, v) + " = " + (u_.wide ? "tang_dfmaW" : "tang_fmaW") + "(x, b" +
             std::to_string(v) + ", " + acc(r, v) + ");";
      line(t + " }");
    }
    end_terms(s, pad);
    if (c_.dead_a || c_.dead_b) {
      const std::string real = value_type(Type::real, u_.wide, false);
      line("const " + V + " some = " + each(" + ", acc) + ";");
      line(real + " any = 0; for (int l = 0; l < " + w + "; ++l) any += tang_lane(some, l);");
      line("if (any - any != 0) {");
      line("  " + V + " all[" + number(b.rows * b.vectors) + "] = {" + each(", ", acc) + "};");
      line("  " + one_by_one() + "(a, b, all, K, " + number(b.rows) + ", " + number(b.vectors) + ", cols);");
      line("  " + each(" ", [&](int r, int v) { return acc(r, v) + " = all[" + number(r * b.vectors + v) + "];"; }));
      line("}");
    }
    const bool vectors = has_vector_access(u_, md.format);
    auto place = [&](int r, int v) { return "d + " + number(r * dm + int64_t(v) * u_.lanes); };
    if (vectors) {
      line("if (rows >= " + number(b.rows) + " && cols >= " + number(int64_t(b.vectors) * u_.lanes) + ") {");
      pad += "  ";
      for (int r = 0; r < b.rows; ++r) {
        std::string t;
        for (int v = 0; v < b.vectors; ++v)
          t += store_vector(u_, md.format, place(r, v),
                            c_.accumulate ? load_vector(u_, md.format, place(r, v)) + " + " + acc(r, v)
                                          : acc(r, v)) +
               " ";
        line(t);
      }
      line("return;");
      pad.resize(pad.size() - 2);
      line("}");
    }
    line(V + " all[" + number(b.rows * b.vectors) + "] = {" + each(", ", acc) + "};");
    line("for (int r = 0; r < " + number(b.rows) + " && r < rows; ++r)");
    line("  for (int v = 0; v < " + number(b.vectors) + "; ++v)");
    line("    for (int l = 0; l < " + w + " && v * " + w + " + l < cols; ++l) {");
    const std::string at = "d[r * " + number(dm) + " + v * " + w + " + l]",
                      one = "tang_lane(all[r * " + number(b.vectors) + " + v], l)";
    line("      " +
         store_element(u_, md.format, at,
                       c_.accumulate ? "(" + load_element(u_, md.format, at) + " + " + one + ")" : one));
    line("    }");
    s += "}\n";
    return u_.helper(s);
  }

  Unit& u_;
  const Contract& c_;
  Affine a_, b_, d_;
  TileAxis mi_, ni_;
  int rows_, vectors_;
  bool a_global_, b_global_;
};
} // namespace

void print_contract(Unit& u, const Contract& c) { ContractText(u, c).print(); }

} // namespace tang::emit
