// The printer that every GPU dialect shares: statements dealt to the lanes of a workgroup.
#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/c_body.hpp"
#include "tang/emit/gpu_contract.hpp"
#include "tang/kernel/distribute.hpp"

namespace tang::emit {

namespace {
constexpr int64_t tile_unit = 16;

class Printer {
public:
  Printer(const kernel::Kernel& k, const GpuDialect& dialect) : u(k, options_, dialect), d(dialect), k_(k) {}

  std::string run();

private:
  void block(const kernel::Block& b) {
    for (auto& s : b) {
      if (!started_ && writes_elsewhere(s)) u.line(d.cluster_started), started_ = true;
      statement(s);
    }
  }

  // Other workgroups must be there before their tiles are written.
  bool writes_elsewhere(const kernel::Stmt& s) const {
    auto any = [&](const std::vector<Ref>& dst) {
      return std::any_of(dst.begin(), dst.end(),
                         [&](const Ref& r) { return u.memory(r.memory).team == kernel::Team::cluster; });
    };
    if (auto* a = std::get_if<kernel::Apply>(&s.node)) return any(a->dst);
    auto* f = std::get_if<kernel::Fold>(&s.node);
    return f && any(f->dst);
  }

  void statement(const kernel::Stmt& s) {
    std::visit(
        Match{[&](const kernel::Apply& x) { x.deal.team ? d.rows(u, s) : apply(x); },
              [&](const kernel::Fold& x) { x.deal.team ? d.rows(u, s) : fold(x); },
              [&](const kernel::Contract& x) { print_gpu_contract(u, d, x); },
              [&](const kernel::Barrier& x) {
                const bool far = x.team == kernel::Team::cluster;
                if (far && !started_) u.line(d.cluster_started), started_ = true;
                u.line(far ? d.barrier_of_cluster : d.barrier);
              },
              [&](const kernel::Let& x) { let(x); },
              [&](const kernel::Loop& x) {
                const std::string v = name(x.var), end = u.fresh("end");
                u.line(d.constant(d.integer, end, text(x.end)));
                u.open(d.loop(d.integer, v, text(x.begin), v + " < " + end, number(x.step)));
                block(x.body);
                u.close();
              },
              [&](const kernel::If& x) {
                std::string all;
                for (auto& a : x.all) all += (all.empty() ? "" : " && ") + text(a) + " >= 0";
                u.open("if (" + (all.empty() ? d.yes : all) + ")");
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
      for (size_t x = 0; l.ref.checked && x < l.ref.index.size(); ++x)
        e += (x ? " && " : "") + d.inside(text(l.ref.index[x].affine), u.memory(l.ref.memory).shape[x]);
      const std::string zero = d.zero(Type::index, u.wide);
      const std::string value = never_inside(u, l.ref) ? zero : u.load(l.ref.memory, text(offset(u, l.ref)));
      e = e.empty() ? value : d.pick(e, value, zero);
      for (auto& line : d.uniform(name(l.var), e)) u.line(line);
      return;
    }
    set_range(l);
    if (l.kind == Let::floor_div) {
      e = "tang_floor_div(" + text(l.operands[0]) + ", " + number(l.divisor) + ")";
    } else {
      e = text(l.operands[0]);
      for (size_t i = 1; i < l.operands.size(); ++i)
        e = (l.kind == Let::min ? "tang_lesser(" : "tang_greater(") + e + ", " + text(l.operands[i]) + ")";
    }
    u.line(d.constant(d.integer, name(l.var), e));
  }

  // A remainder x - n * (x / n) is known to be below n.
  void set_range(const kernel::Let& l) {
    using kernel::Let;
    if (l.kind == Let::floor_div) quotients_[l.var] = &l;
    if (l.kind != Let::affine) return;
    const kernel::Affine& x = l.operands[0];
    u.ranges[size_t(l.var)] = u.range(x);
    for (auto& [v, q] : quotients_)
      if (x + q->divisor * kernel::variable(v) == q->operands[0]) u.ranges[size_t(l.var)] = {0, q->divisor - 1};
  }

  // Opens the loop over a lane's flat points and names their axes.
  void deal(const std::vector<TileAxis>& axes) {
    const int64_t all = points(axes);
    const bool wide = all >= INT32_MAX / 2;
    const std::string type = wide ? d.integer : d.counter, p = u.fresh("p");
    u.open(d.loop(type, p, d.cast(type, "lane"), p + " < " + number(all), number(k_.lanes)));
    int64_t below = all;
    for (size_t a = 0; a < axes.size(); ++a) {
      below /= std::max<int64_t>(1, axes[a].extent);
      u.line(d.constant(d.integer, name(axes[a].var), d.digit(p, below, axes[a].extent, !a, wide)));
      u.ranges[size_t(axes[a].var)] = {0, std::max<int64_t>(0, axes[a].extent - 1)};
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
    auto store = [&](size_t c, const std::string& value) {
      print_store(u, a.dst[c], value, (*u.k.pool)[a.body.values[c]].type, false, -1, "", false, false,
                  gathered_offset(u, a.body, a.dst[c]));
    };
    bool fills = false;
    for (auto& f : a.fill) fills |= f.has_value();
    auto fill = [&] {
      if (!fills) return;
      u.open("else");
      for (size_t c = 0; c < a.dst.size(); ++c)
        if (c < a.fill.size() && a.fill[c]) store(c, d.literal(*a.fill[c], u.wide));
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
    for (size_t c = 0; c < a.dst.size(); ++c) // every value before any store: a destination may be an operand
      u.line(d.constant(d.type((*u.k.pool)[a.body.values[c]].type, u.wide), "v" + std::to_string(c),
                        t.value(a.body.values[c], false)));
    for (size_t c = 0; c < a.dst.size(); ++c) store(c, "v" + std::to_string(c));
    if (a.body.when) u.close(), fill();
    u.close();
    if (!test.empty()) fill();
    u.close();
  }

  void fold(const kernel::Fold& f) {
    const size_t n = f.combine.size();
    std::vector<std::string> acc, lift;
    auto type = [&](size_t c) { return d.type(f.identity[c].type, u.wide); };
    deal(f.kept);
    if (f.search) return print_search(u, f), u.close();
    const std::string test = live(f.body, f.bounds, {});
    if (!test.empty()) u.open("if (" + test + ")");
    for (size_t c = 0; c < n; ++c) {
      acc.push_back("a" + std::to_string(c));
      check(!f.accumulate || pure(f.dst[c]), "a fold that accumulates onto a gathered place");
      u.line(d.variable(type(c), acc[c],
                        f.accumulate ? u.load(f.dst[c].memory, text(offset(u, f.dst[c])))
                                     : d.literal(f.identity[c], u.wide)));
    }
    for (auto& a : f.folded) {
      const std::string v = name(a.var);
      u.ranges[size_t(a.var)] = {0, std::max<int64_t>(0, a.extent - 1)};
      u.open(d.loop(d.integer, v, "0", v + " < " + number(a.extent), "1"));
    }
    const std::string term = live(f.body, f.limits, f.partial);
    if (!term.empty()) u.open("if (" + term + ")");
    std::vector<Id> roots = f.body.values;
    if (f.body.when) roots.push_back(*f.body.when);
    BodyText t(u, &f.body, roots, {}, -1);
    const bool sums = std::all_of(f.combine.begin(), f.combine.end(),
                                  [&](Id c) { return (*k_.pool)[c].op == expr::Op::add; });
    if (n > 1 && sums) t.fuse(); // a run of results: sums of products written out
    t.declare(0, "", f.body.when ? BodyText::condition : BodyText::both);
    if (f.body.when) {
      u.open("if (" + t.value(*f.body.when, false) + ")");
      t.declare(0, "", BodyText::rest);
    }
    BodyText join(u, nullptr, f.combine, {}, -1);
    for (size_t c = 0; c < n; ++c) {
      lift.push_back("l" + std::to_string(c));
      u.line(d.constant(type(c), lift[c], t.value(f.body.values[c], false)));
      join.name_var(int64_t(2 * c), acc[c], false);
      join.name_var(int64_t(2 * c + 1), lift[c], false);
    }
    join.declare(0);
    for (size_t c = 0; c < n; ++c) {
      const std::string v = join.value(f.combine[c], false);
      const bool held = f.held && f.identity[c].type == Type::real;
      u.line(d.constant(type(c), "n" + std::to_string(c), held ? d.rounded(*f.held, v, u.wide) : v));
    }
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
  const GpuDialect& d;
  const kernel::Kernel& k_;
  std::map<kernel::Var, const kernel::Let*> quotients_;
  bool started_ = k_.cluster == 1;
};

std::string Printer::run() {
  check(k_.lanes > 1 && k_.lanes % k_.subgroup == 0, "a GPU prints kernels for many lanes");
  const int64_t all = kernel::workgroups(k_);
  const bool turns = all > d.most_groups, padded = !turns && all > d.row_of_groups;
  u.indent = 1;
  const std::string each = number(k_.lanes / k_.cluster), ways = number(k_.cluster);
  check(k_.cluster == 1 || (!turns && !padded), "workgroups of a cluster take no turns");
  // Counted in 32 bits where that is enough: division of 64 bits is slow, and NVIDIA's Vulkan (580.159) gets it wrong.
  const bool wide = all >= INT32_MAX / 2;
  const std::string number_type = wide ? d.integer : d.counter;
  if (k_.cluster > 1) {
    u.line(d.cluster_arrives);
    u.line(d.constant(d.counter, "lane",
                      d.cast(d.counter, d.group + " % " + ways + " * " + each + " + " + d.lane)));
    u.line(d.constant(number_type, "wg", d.cast(number_type, d.group + " / " + ways)));
  } else {
    u.line(d.constant(d.counter, "lane", d.cast(d.counter, d.lane)));
  }
  if (turns)
    u.open(d.loop(number_type, "wg", d.cast(number_type, d.group), "wg < " + number(all),
                  d.cast(number_type, d.launched)));
  else if (k_.cluster == 1)
    u.line(d.constant(number_type, "wg", d.cast(number_type, d.group)));
  if (padded) u.open("if (wg < " + number(all) + ")");
  int64_t below = 1;
  for (size_t g = k_.grid.size(); g-- > 0;) {
    auto& x = k_.grid[g];
    const int64_t blocks = ceil_div(x.extent, x.step);
    u.line(d.constant(d.integer, name(x.var), d.digit("wg", below, blocks, !g, wide) + (x.step == 1 ? "" : " * " + number(x.step))));
    below *= std::max<int64_t>(1, blocks);
  }
  block(k_.body);
  if (padded) u.close();
  if (turns) u.line(d.barrier), u.close();
  return d.above(k_) + d.head(k_) + " {\n" + d.tiles(k_) + u.out + "}\n";
}
} // namespace

void GpuDialect::rows(Unit&, const kernel::Stmt&) const { bug(__FILE__, __LINE__, "rows of teams in a dialect without them"); }

std::string GpuDialect::above(const kernel::Kernel&) const { return ""; }

std::string GpuDialect::arguments(const kernel::Kernel& k, const std::string& space, const std::string& stem) const {
  // Only a state and its new value share a place: arrays of one shape and format. It pays where lanes store a
  // row while they read what goes with it.
  const bool dealt = std::any_of(k.body.begin(), k.body.end(), [](auto& s) {
    auto* a = std::get_if<kernel::Apply>(&s.node);
    return a && a->deal.team;
  });
  auto alone = [&](const Memory& x) {
    return dealt && x.access == kernel::Access::read &&
           std::none_of(k.memories.begin(), k.memories.end(), [&](const Memory& y) {
             return y.home == kernel::Home::global && y.access != kernel::Access::read &&
                    y.format == x.format && y.shape == x.shape;
           });
  };
  std::string out;
  for (size_t m = 0; m < k.memories.size(); ++m) {
    const Memory& x = k.memories[m];
    if (x.home != kernel::Home::global) continue;
    out += (out.empty() ? "" : ", ") + space + (x.access == kernel::Access::read ? "const " : "") +
           element_type(x.format) + "* const " + (alone(x) ? unaliased : "") + stem + std::to_string(m);
  }
  return out;
}

std::string GpuDialect::tile_pointers(const kernel::Kernel& k, const std::string& space) const {
  std::string out;
  int64_t at = 0;
  for (size_t m = 0; m < k.memories.size(); ++m) {
    const Memory& x = k.memories[m];
    if (x.home == kernel::Home::global || x.home == kernel::Home::register_) continue;
    const std::string type = space + element_type(x.format);
    out +=
        "  " + type + "* const m" + std::to_string(m) + " = (" + type + "*)(shared + " + number(at) + ");\n";
    at += ceil_div(x.size() * expr::row(x.format).bits / 8, tile_unit) * tile_unit;
  }
  return out;
}

std::string GpuDialect::loop(const std::string& type, const std::string& v, const std::string& begin,
                             const std::string& condition, const std::string& step) const {
  return "for (" + type + " " + v + " = " + begin + "; " + condition + "; " + v + " += " + step + ")";
}

std::string GpuDialect::digit(const std::string& flat, int64_t below, int64_t extent, bool highest, bool wide) const {
  if (extent <= 1) return "0";
  if (highest && below <= 1) return cast(integer, flat);
  std::string x = cast(wide ? natural : plain_counter, flat);
  if (below > 1) x += " / " + number(below);
  if (!highest) x += " % " + number(extent);
  return cast(integer, "(" + x + ")");
}

std::string GpuDialect::array(const std::string& type, const std::string& name, int64_t n, int64_t m) const {
  return type + " " + name + "[" + number(n) + "]" + (m ? "[" + number(m) + "]" : "") + ";";
}

std::vector<std::string> GpuDialect::uniform(const std::string& name, const std::string& value) const {
  return {constant(integer, name, value)};
}

int64_t shared_bytes(const kernel::Kernel& k) { return kernel::tile_bytes(k, tile_unit); }

int64_t launched_groups(const kernel::Kernel& k, const GpuDialect& d) {
  return std::min(kernel::workgroups(k), d.most_groups) * k.cluster;
}

std::string gpu(const kernel::Kernel& k, const GpuDialect& d) { return Printer(k, d).run(); }

std::string gpu_unit(const std::vector<const kernel::Kernel*>& kernels, const GpuDialect& d) {
  std::string out = d.prelude();
  std::vector<std::pair<std::string, std::string>> known;
  for (auto* k : kernels) {
    const std::string text = gpu(*k, d);
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
