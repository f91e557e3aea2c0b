// A kernel as one C function: the grid, memories, integers and control; statements have files of their own.
#include "tang/emit/c.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/c_joint.hpp"

namespace tang::emit {

namespace {
constexpr int64_t line_bytes = 64, local_bytes = 1024, slack = 64;

int64_t bytes(const Memory& m) { return m.size() * expr::row(m.format).bits / 8; }

bool is_local(const Memory& m) { return bytes(m) <= local_bytes; }

// Contractions may load a whole vector at a tile's last row: every tile has a vector of slack behind it.
int64_t tile_bytes(const Memory& m) { return ceil_div(bytes(m) + slack, line_bytes) * line_bytes; }

void print_block(Unit& u, const kernel::Block& b);

void set_range(Unit& u, Var v, Range r) { u.ranges[size_t(v)] = r; }

void axes_ranges(Unit& u, const std::vector<TileAxis>& axes) {
  for (auto& a : axes) set_range(u, a.var, {0, std::max<int64_t>(0, a.extent - 1)});
}

void declare_axes(Unit& u, const kernel::Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) axes_ranges(u, a->axes);
  if (auto* f = std::get_if<kernel::Fold>(&s.node)) axes_ranges(u, f->kept), axes_ranges(u, f->folded);
}

std::string conjunction(const std::vector<Affine>& all) {
  std::string s;
  for (auto& b : all) s += (s.empty() ? "" : " && ") + text(b) + " >= 0";
  return s.empty() ? "1" : s;
}

void print_let(Unit& u, const kernel::Let& l) {
  using kernel::Let;
  std::string e;
  Range r;
  if (l.kind == Let::load) {
    check(pure(l.ref) || l.ref.checked, "a loaded integer's address is affine");
    std::string inside;
    for (size_t d = 0; l.ref.checked && d < l.ref.index.size(); ++d)
      inside += (d ? " && " : "") + ("(uint64_t)(" + text(l.ref.index[d].affine) + ") < " +
                                     number(u.memory(l.ref.memory).shape[d]));
    e = load_element(u, u.memory(l.ref.memory).format,
                     "m" + std::to_string(l.ref.memory) + "[" + text(offset(u, l.ref)) + "]");
    if (!inside.empty()) e = "(" + inside + " ? " + e + " : 0)";
  } else if (l.kind == Let::floor_div) {
    e = "tang_floor_div(" + text(l.operands[0]) + ", " + number(l.divisor) + ")";
    r = u.range(l.operands[0]);
    if (r.known()) r = {floor_div(r.lo, l.divisor), floor_div(r.hi, l.divisor)};
  } else {
    e = text(l.operands[0]);
    r = u.range(l.operands[0]);
    for (size_t i = 1; i < l.operands.size(); ++i) {
      const Range x = u.range(l.operands[i]);
      const bool min = l.kind == Let::min;
      e = (min ? "tang_lesser(" : "tang_greater(") + e + ", " + text(l.operands[i]) + ")";
      r = min ? Range{std::min(r.lo, x.lo), std::min(r.hi, x.hi)}
              : Range{std::max(r.lo, x.lo), std::max(r.hi, x.hi)};
    }
  }
  set_range(u, l.var, r);
  u.line("const int64_t " + name(l.var) + " = " + e + ";");
}

void print_any_fold(Unit& u, const kernel::Fold& f) {
  if (!f.search) return print_fold(u, f);
  for (auto& a : f.kept) {
    const std::string v = name(a.var);
    u.open("for (int64_t " + v + " = 0; " + v + " < " + number(a.extent) + "; ++" + v + ")");
  }
  print_search(u, f);
  for (size_t a = 0; a < f.kept.size(); ++a) u.close();
}

void print_stmt(Unit& u, const kernel::Stmt& s) {
  std::visit(
      Match{
          [&](const kernel::Apply& x) { axes_ranges(u, x.axes), print_apply(u, x); },
          [&](const kernel::Fold& x) { axes_ranges(u, x.kept), axes_ranges(u, x.folded), print_any_fold(u, x); },
          [&](const kernel::Contract& x) {
            axes_ranges(u, x.m), axes_ranges(u, x.n), axes_ranges(u, x.k);
            print_contract(u, x);
          },
          [&](const kernel::Barrier&) {}, [&](const kernel::Let& x) { print_let(u, x); },
          [&](const kernel::Loop& x) {
            const Range lo = u.range(x.begin), hi = u.range(x.end);
            set_range(u, x.var, {lo.lo, std::max(lo.lo, hi.hi - 1)});
            const std::string v = name(x.var);
            for (auto& inner : x.body) declare_axes(u, inner);
            plan_prefetches(u, x.body, x.var, x.step);
            u.open("for (int64_t " + v + " = " + text(x.begin) + ", end = " + text(x.end) + "; " + v +
                   " < end; " + v + " += " + number(x.step) + ")");
            print_block(u, x.body);
            u.close();
          },
          [&](const kernel::If& x) {
            u.open("if (" + conjunction(x.all) + ")"), print_block(u, x.then), u.close();
          },
          [&](const kernel::Pipeline&) { bug(__FILE__, __LINE__, "a pipeline that was not expanded"); }},
      s.node);
}

void print_block(Unit& u, const kernel::Block& b) {
  for (auto& s : b) declare_axes(u, s);
  for (size_t i = 0; i < b.size();) {
    if (const size_t joined = print_joint(u, b, i))
      i += joined;
    else
      print_stmt(u, b[i++]);
  }
}
} // namespace

Unit::Unit(const kernel::Kernel& kernel, const COptions& options, const Dialect& dialect)
    : k(kernel), o(options), d(dialect), wide(kernel.compute == Format::f64),
      lanes(wide ? std::max(1, options.lanes / 2) : options.lanes), ranges(kernel.vars.size()) {
  check(kernel.compute == Format::f32 || kernel.compute == Format::f64,
        "a kernel computes in f32 or f64");
  for (auto& g : kernel.grid) ranges[size_t(g.var)] = kernel::grid_range(g);
}

int64_t scratch_bytes(const kernel::Kernel& k) {
  int64_t n = 0;
  for (auto& m : k.memories)
    if (m.home != kernel::Home::global && !is_local(m)) n += tile_bytes(m);
  return n;
}

std::string c(const kernel::Kernel& source, const COptions& o) {
  const kernel::Kernel k = kernel::expand_pipelines(source);
  Unit u(k, o);
  u.indent = 2;
  int64_t at = 0;
  for (size_t i = 0; i < k.memories.size(); ++i) {
    const Memory& m = k.memories[i];
    const std::string type = element_type(m.format), as = "m" + std::to_string(i);
    if (m.home == kernel::Home::global) continue;
    if (is_local(m)) {
      u.line(type + " " + as + "[" + number(tile_bytes(m) / (expr::row(m.format).bits / 8)) +
             "] __attribute__((aligned(64)));");
    } else {
      u.line(type + "* const " + as + " = (" + type + "*)((char*)scratch + " + number(at) + ");");
      at += tile_bytes(m);
    }
  }
  std::string left = "wg";
  for (size_t g = k.grid.size(); g-- > 0;) {
    auto& x = k.grid[g];
    const std::string blocks = number(ceil_div(x.extent, x.step));
    u.line("const int64_t " + name(x.var) + " = " + (g ? left + " % " + blocks : left) +
           (x.step == 1 ? "" : " * " + number(x.step)) + ";");
    left = "(" + left + " / " + blocks + ")";
  }
  if (!k.grid.empty()) {
    for (auto& s : k.body) declare_axes(u, s);
    plan_prefetches(u, k.body, k.grid.back().var, k.grid.back().step);
  }
  print_block(u, k.body);

  std::string out;
  for (size_t h = 0; h < u.helpers.size(); ++h)
    out += "static __attribute__((noinline)) void " + k.name + "_part" + std::to_string(h) + u.helpers[h];
  out += "void " + k.name +
         "(void* const* args, int64_t first, int64_t last, void* scratch) {\n  (void)scratch;\n";
  int argument = 0;
  for (size_t i = 0; i < k.memories.size(); ++i) {
    const Memory& m = k.memories[i];
    if (m.home != kernel::Home::global) continue;
    const std::string type =
        std::string(m.access == kernel::Access::read ? "const " : "") + element_type(m.format) + "*";
    out += "  " + type + " const m" + std::to_string(i) + " = (" + type + ")args[" +
           std::to_string(argument++) + "];  // " + m.name + "\n";
  }
  out += "  for (int64_t wg = first; wg < last; ++wg) {\n" + u.out + "  }\n";
  if (u.streams) out += "  tang_stream_fence();\n";
  return out + "}\n";
}

std::vector<std::string> c_units(const std::vector<const kernel::Kernel*>& kernels, int parts,
                                 const COptions& o) {
  std::vector<std::string> texts, names;
  size_t all = 0;
  for (auto* k : kernels) {
    std::string text = c(*k, o);
    const size_t at = size_t(std::find(names.begin(), names.end(), k->name) - names.begin());
    if (at < names.size()) {
      check(texts[at] == text, "two kernels named " + k->name);
      continue;
    }
    all += text.size();
    names.push_back(k->name), texts.push_back(std::move(text));
  }
  std::vector<std::string> out;
  size_t done = 0;
  for (auto& t : texts) {
    if (out.empty() || (int(out.size()) < parts && done * size_t(parts) >= all * out.size()))
      out.push_back(c_prelude(o));
    out.back() += "\n" + t;
    done += t.size();
  }
  if (out.empty()) out.push_back(c_prelude(o));
  return out;
}

std::string c_unit(const std::vector<const kernel::Kernel*>& kernels, const COptions& o) {
  return c_units(kernels, 1, o)[0];
}

} // namespace tang::emit
