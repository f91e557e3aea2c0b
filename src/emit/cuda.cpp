#include "tang/emit/cuda.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/c_body.hpp"
#include "tang/emit/cuda_contract.hpp"

namespace tang::emit {

namespace {
constexpr int64_t most_blocks = INT32_MAX, tile_unit = 16;

std::string at(const Unit& u, const Ref& r) {
  return "m" + std::to_string(r.memory) + "[" + text(offset(u, r)) + "]";
}

class Printer {
public:
  explicit Printer(const kernel::Kernel& k) : u(k, options_), k_(k) {}

  std::string run();

private:
  void block(const kernel::Block& b) {
    for (auto& s : b) statement(s);
  }

  void statement(const kernel::Stmt& s) {
    std::visit(
        Match{[&](const kernel::Apply& x) { apply(x); }, [&](const kernel::Fold& x) { fold(x); },
              [&](const kernel::Contract& x) { print_cuda_contract(u, x); },
              [&](const kernel::Barrier&) { u.line("__syncthreads();"); },
              [&](const kernel::Let& x) { let(x); },
              [&](const kernel::Loop& x) {
                const std::string v = name(x.var);
                u.open("for (int64_t " + v + " = " + text(x.begin) + ", end = " + text(x.end) + "; " + v +
                       " < end; " + v + " += " + number(x.step) + ")");
                block(x.body);
                u.close();
              },
              [&](const kernel::If& x) {
                std::string all;
                for (auto& a : x.all) all += (all.empty() ? "" : " && ") + text(a) + " >= 0";
                u.open("if (" + (all.empty() ? "1" : all) + ")");
                block(x.then);
                u.close();
              },
              [](const kernel::Pipeline&) { bug(__FILE__, __LINE__, "a pipeline that was not expanded"); }},
        s.node);
  }

  void let(const kernel::Let& l) {
    using kernel::Let;
    std::string e;
    if (l.kind == Let::load) {
      check(pure(l.ref) || l.ref.checked, "a loaded integer's address is affine");
      for (size_t d = 0; l.ref.checked && d < l.ref.index.size(); ++d)
        e += (d ? " && " : "") +
             ("(uint64_t)(" + text(l.ref.index[d].affine) + ") < " + number(u.memory(l.ref.memory).shape[d]));
      const std::string value = load_element(u, u.memory(l.ref.memory).format, at(u, l.ref));
      e = e.empty() ? value : "(" + e + " ? " + value + " : 0)";
    } else if (l.kind == Let::floor_div) {
      e = "tang_floor_div(" + text(l.operands[0]) + ", " + number(l.divisor) + ")";
    } else {
      e = text(l.operands[0]);
      for (size_t i = 1; i < l.operands.size(); ++i)
        e = (l.kind == Let::min ? "tang_lesser(" : "tang_greater(") + e + ", " + text(l.operands[i]) + ")";
    }
    u.line("const int64_t " + name(l.var) + " = " + e + ";");
  }

  // Opens the loop over a lane's flat points and names their axes.
  void deal(const std::vector<TileAxis>& axes) {
    const int64_t all = points(axes);
    const std::string type = all < INT32_MAX / 2 ? "uint32_t" : "int64_t", p = u.fresh("p");
    u.open("for (" + type + " " + p + " = lane; " + p + " < " + number(all) + "; " + p +
           " += " + number(k_.lanes) + ")");
    int64_t below = all;
    for (size_t a = 0; a < axes.size(); ++a) {
      below /= std::max<int64_t>(1, axes[a].extent);
      std::string x = below > 1 ? p + " / " + number(below) : p;
      if (a) x = "(" + x + ") % " + number(axes[a].extent);
      u.line("const int64_t " + name(axes[a].var) + " = " + x + ";");
    }
  }

  // Any of `partial` when there are some, and all of `bounds`; empty: no test.
  std::string live(const kernel::Body& b, const kernel::Bounds& all,
                   const std::vector<kernel::Bounds>& partial) {
    std::string any, out = all.empty() ? "" : conjunction(u, b, all);
    for (auto& p : partial) any += (any.empty() ? "" : " || ") + ("(" + conjunction(u, b, p) + ")");
    if (any.empty()) return out;
    return out.empty() ? any : out + " && (" + any + ")";
  }

  void apply(const kernel::Apply& a) {
    deal(a.axes);
    std::vector<Id> roots = a.body.values;
    if (a.body.when) roots.push_back(*a.body.when);
    BodyText t(u, &a.body, roots, {}, -1);
    auto store = [&](size_t d, const std::string& value) {
      print_store(u, a.dst[d], value, (*u.k.pool)[a.body.values[d]].type, false, -1, "", false, false,
                  gathered_offset(u, a.body, a.dst[d]));
    };
    bool fills = false;
    for (auto& f : a.fill) fills |= f.has_value();
    auto fill = [&] {
      if (!fills) return;
      u.open("else");
      for (size_t d = 0; d < a.dst.size(); ++d)
        if (d < a.fill.size() && a.fill[d]) store(d, literal(*a.fill[d], u.wide));
      u.close();
    };
    const std::string test = live(a.body, a.bounds, a.partial);
    if (!test.empty())
      u.open("if (" + test + ")");
    else
      u.open("");
    t.declare(0, "", a.body.when ? BodyText::condition : BodyText::both);
    if (a.body.when) {
      u.open("if (" + t.value(*a.body.when, false) + ")");
      t.declare(0, "", BodyText::rest);
    }
    for (size_t d = 0; d < a.dst.size();
         ++d) { // every value before any store: a destination may be an operand
      u.line("const " + value_type((*u.k.pool)[a.body.values[d]].type, u.wide, false) + " v" +
             std::to_string(d) + " = " + t.value(a.body.values[d], false) + ";");
    }
    for (size_t d = 0; d < a.dst.size(); ++d) store(d, "v" + std::to_string(d));
    if (a.body.when) u.close(), fill();
    u.close();
    if (!test.empty()) fill();
    u.close();
  }

  void fold(const kernel::Fold& f) {
    const size_t n = f.combine.size();
    std::vector<std::string> acc, lift;
    auto type = [&](size_t c) { return value_type(f.identity[c].type, u.wide, false); };
    deal(f.kept);
    const std::string test = live(f.body, f.bounds, {});
    if (!test.empty()) u.open("if (" + test + ")");
    for (size_t c = 0; c < n; ++c) {
      acc.push_back("a" + std::to_string(c));
      check(!f.accumulate || pure(f.dst[c]), "a fold that accumulates onto a gathered place");
      u.line(type(c) + " " + acc[c] + " = " +
             (f.accumulate ? load_element(u, u.memory(f.dst[c].memory).format, at(u, f.dst[c]))
                           : literal(f.identity[c], u.wide)) +
             ";");
    }
    for (auto& a : f.folded) {
      const std::string v = name(a.var);
      u.open("for (int64_t " + v + " = 0; " + v + " < " + number(a.extent) + "; ++" + v + ")");
    }
    const std::string term = live(f.body, f.limits, f.partial);
    if (!term.empty()) u.open("if (" + term + ")");
    std::vector<Id> roots = f.body.values;
    if (f.body.when) roots.push_back(*f.body.when);
    BodyText t(u, &f.body, roots, {}, -1);
    t.declare(0, "", f.body.when ? BodyText::condition : BodyText::both);
    if (f.body.when) {
      u.open("if (" + t.value(*f.body.when, false) + ")");
      t.declare(0, "", BodyText::rest);
    }
    BodyText join(u, nullptr, f.combine, {}, -1);
    for (size_t c = 0; c < n; ++c) {
      lift.push_back("l" + std::to_string(c));
      u.line("const " + type(c) + " " + lift[c] + " = " + t.value(f.body.values[c], false) + ";");
      join.name_var(int64_t(2 * c), acc[c], false);
      join.name_var(int64_t(2 * c + 1), lift[c], false);
    }
    join.declare(0);
    for (size_t c = 0; c < n; ++c)
      u.line("const " + type(c) + " n" + std::to_string(c) + " = " + join.value(f.combine[c], false) + ";");
    for (size_t c = 0; c < n; ++c) u.line(acc[c] + " = n" + std::to_string(c) + ";");
    if (f.body.when) u.close();
    if (!term.empty()) u.close();
    for (size_t a = 0; a < f.folded.size(); ++a) u.close();
    for (size_t c = 0; c < n; ++c)
      print_store(u, f.dst[c], acc[c], f.identity[c].type, false, -1, "", false, false,
                  gathered_offset(u, f.body, f.dst[c]));
    if (!test.empty()) u.close();
    u.close();
  }

  const COptions options_;
  Unit u;
  const kernel::Kernel& k_;
};

std::string Printer::run() {
  check(k_.lanes > 1 && k_.lanes % k_.subgroup == 0, "the CUDA target prints kernels for many lanes");
  std::string out =
                  "extern \"C\" __global__ void __launch_bounds__(" + number(k_.lanes) + ") " + k_.name + "(",
              tiles;
  int64_t from = 0, argument = 0;
  for (size_t m = 0; m < k_.memories.size(); ++m) {
    const Memory& x = k_.memories[m];
    const std::string type = element_type(x.format), as = "m" + std::to_string(m);
    if (x.home == kernel::Home::global) {
      out += (argument++ ? ", " : "") + std::string(x.access == kernel::Access::read ? "const " : "") + type +
             "* const " + as;
      continue;
    }
    tiles += "  " + type + "* const " + as + " = (" + type + "*)(shared + " + number(from) + ");\n";
    from += ceil_div(x.size() * expr::row(x.format).bits / 8, tile_unit) * tile_unit;
  }
  out += ") {\n";
  if (from) out += "  extern __shared__ __align__(16) unsigned char shared[];\n" + tiles;
  out += "  const int lane = (int)threadIdx.x;\n";
  const int64_t all = kernel::workgroups(k_);
  const bool turns = all > most_blocks;
  u.indent = 1;
  if (turns)
    u.open("for (int64_t wg = blockIdx.x; wg < " + number(all) + "; wg += gridDim.x)");
  else
    u.line("const int64_t wg = blockIdx.x;");
  std::string left = "wg";
  for (size_t g = k_.grid.size(); g-- > 0;) {
    auto& x = k_.grid[g];
    const std::string blocks = number(ceil_div(x.extent, x.step));
    u.line("const int64_t " + name(x.var) + " = " + (g ? left + " % " + blocks : left) +
           (x.step == 1 ? "" : " * " + number(x.step)) + ";");
    left = "(" + left + " / " + blocks + ")";
  }
  block(k_.body);
  if (turns) u.line("__syncthreads();"), u.close();
  return out + u.out + "}\n";
}
} // namespace

int64_t cuda_shared_bytes(const kernel::Kernel& k) {
  int64_t n = 0;
  for (auto& m : k.memories)
    if (m.home != kernel::Home::global)
      n += ceil_div(m.size() * expr::row(m.format).bits / 8, tile_unit) * tile_unit;
  return n;
}

int64_t cuda_blocks(const kernel::Kernel& k) { return std::min(kernel::workgroups(k), most_blocks); }

std::string cuda(const kernel::Kernel& k) { return Printer(k).run(); }

std::string cuda_unit(const std::vector<const kernel::Kernel*>& kernels) {
  std::string out = cuda_prelude();
  std::vector<std::pair<std::string, std::string>> known;
  for (auto* k : kernels) {
    const std::string text = cuda(*k);
    const auto it = std::find_if(known.begin(), known.end(), [&](auto& x) { return x.first == k->name; });
    if (it != known.end()) {
      check(it->second == text, "two kernels named " + k->name);
      continue;
    }
    known.emplace_back(k->name, text);
    out += "\n" + text;
  }
  return out;
}

} // namespace tang::emit
