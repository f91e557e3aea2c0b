// Statements dealt by rows: loops over a lane's rows and runs of columns, unrolled where registers are
// indexed. In CUDA runs move as one access of up to 16 bytes, and teams join partial folds by exchanging registers;
// elsewhere a run is one element and a team one lane, and teams meet in shared memory as the kernel says.
#include "tang/emit/gpu_teams.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/cuda_products.hpp"
#include "tang/emit/gpu_walk.hpp"
#include "tang/kernel/analyze.hpp"

namespace tang::emit {

namespace {
constexpr int64_t cached_bytes = 32 << 20;

class RowApply {
public:
  RowApply(Unit& u, const GpuDialect& d, const kernel::Apply& a)
      : u_(u), d_(d), a_(a), w_{u, d,
                         a.deal,
                         a.body,
                         {a.axes.begin(), a.axes.begin() + a.deal.lead},
                         {a.axes.begin() + a.deal.lead, a.axes.end()}} {
    for (auto& f : a.fill) fills_ |= f.has_value();
    bool element = fills_ || a.body.when || !a.partial.empty(); // a guard is a value: what it chooses is inside anyway
    ends_ = !element && !a.deal.each && w_.has_ends(a.bounds);
    for (auto& c : a.bounds) element |= !ends_ && w_.level(c) == Walk::element;
    at_once_ = !element;
    if (fills_ && !a.deal.each) all_at_element_ = true;
  }

  void print() {
    u_.open("");
    w_.open_row();
    u_.open(w_.row_exists().empty() ? "" : "if (" + w_.row_exists() + ")");
    if (a_.deal.each) {
      check(count(w_.columns) == 1, "every lane of a team evaluates one column");
      for (auto& x : w_.columns) u_.line(d_.constant(d_.integer, name(x.var), "0"));
      BodyText t(u_, &a_.body, roots_of(a_.body), w_.levels(), -1);
      u_.open(conjunctions().empty() ? "" : "if (" + conjunctions() + ")");
      w_.declare_rows(t);
      point(t, any_partial());
      u_.close();
      if (!conjunctions().empty()) fill();
    } else {
      columns();
    }
    u_.close();
    u_.close();
    u_.close();
  }

private:
  std::string conjunctions() const { return a_.bounds.empty() ? "" : conjunction(u_, a_.body, a_.bounds); }

  std::string any_partial() const { return a_.partial.empty() ? "" : "(" + w_.any(a_.partial) + ")"; }

  void columns() {
    const std::string row = w_.tests(a_.bounds, Walk::row, all_at_element_);
    u_.open(row.empty() ? "" : "if (" + row + ")");
    BodyText t(u_, &a_.body, roots_of(a_.body), w_.levels(), -1);
    w_.declare_rows(t);
    const bool touches = w_.touches_registers(a_.body.refs) || w_.touches_registers(a_.dst);
    if (ends_) w_.load_ends(t, a_.bounds, touches);
    w_.open_run(touches);
    const std::string run = w_.tests(a_.bounds, Walk::run, all_at_element_);
    u_.open(run.empty() ? "" : "if (" + run + ")");
    if (ends_) w_.begin_ends(a_.bounds);
    else if (at_once_) w_.load_runs(t);
    for (size_t d = 0; d < a_.dst.size(); ++d)
      if (stores_run(d)) u_.line(w_.run_type(u_.memory(a_.dst[d].memory)) + " w" + std::to_string(d) + ";");
    w_.open_element();
    const std::string one = w_.tests(a_.bounds, Walk::element, all_at_element_);
    point(t, joined(ends_ ? "(whole || (" + one + "))" : one, any_partial()));
    u_.close();
    for (size_t d = 0; d < a_.dst.size(); ++d)
      if (stores_run(d)) put_run(d, one);
    for (int k = 0; k < 4; ++k) u_.close(); // run's test, run exists, run, row's test
  }

  // `one`: the test of an element, where a run may lie over the row's ends.
  void put_run(size_t d, const std::string& one) {
    const std::string m = "m" + std::to_string(a_.dst[d].memory), w = "w" + std::to_string(d);
    u_.line((ends_ ? "if (whole) " : "") + std::string(passes_caches(d) ? "tang_put_past" : "tang_put") + "(" + m + " + " +
            w_.at_first(a_.dst[d]) + ", " + w + ");");
    if (!ends_) return;
    u_.open("else");
    w_.open_element();
    u_.line("if (" + one + ") " + m + "[" + text(offset(u_, a_.dst[d])) + "] = " + w + ".v[e];");
    u_.close();
    u_.close();
  }

  bool stores_run(size_t d) const { return at_once_ && w_.moves_at_once(a_.dst[d]); }

  // What no later statement reads and no cache would hold leaves the caches to what is read again.
  bool passes_caches(size_t d) const {
    const Memory& m = u_.memory(a_.dst[d].memory);
    return m.access == kernel::Access::write && m.size() * expr::row(m.format).bits / 8 >= cached_bytes;
  }

  void put(size_t d, const std::string& value) {
    const Ref& r = a_.dst[d];
    const Memory& m = u_.memory(r.memory);
    if (w_.in_registers(r.memory)) return w_.put_in_registers(r.memory, value);
    if (stores_run(d)) return u_.line(store_element(u_, m.format, "w" + std::to_string(d) + ".v[e]", value));
    if (a_.deal.each && w_.team() > 1) u_.line("if (lane % " + number(w_.team()) + " == 0)");
    print_store(u_, r, value, (*u_.k.pool)[a_.body.values[d]].type, false, -1, "", false, false,
                gathered_offset(u_, a_.body, r));
  }

  // A tile of 16 bits that holds what an array of its format holds takes the bits as they are.
  bool copies_half(size_t d) const {
    const expr::Term& t = (*u_.k.pool)[a_.body.values[d]];
    const int to = a_.dst[d].memory;
    if (!w_.packed(to) || t.op != Op::arg) return false;
    const Ref& from = a_.body.refs[size_t(t.whole)];
    const Memory& m = u_.memory(from.memory);
    return m.home == Home::global && m.format == u_.memory(to).format && !from.checked && kernel::address(u_.k, from);
  }

  void copy_half(size_t d) {
    const int64_t from = (*u_.k.pool)[a_.body.values[d]].whole;
    const Ref& r = a_.body.refs[size_t(from)];
    const bool loaded = at_once_ && (w_.moves_at_once(r) || (ends_ && w_.moves_beside(r)));
    w_.keep_half(a_.dst[d].memory,
                 loaded ? w_.run_of(from) + ".v[e]" : "m" + std::to_string(r.memory) + "[" + text(offset(u_, r)) + "]");
  }

  void fill() {
    if (!fills_) return;
    u_.open("else");
    for (size_t d = 0; d < a_.dst.size(); ++d)
      if (d < a_.fill.size() && a_.fill[d]) put(d, u_.d.literal(*a_.fill[d], u_.wide));
    u_.close();
  }

  void point(BodyText& t, const std::string& test) {
    const bool conditional = w_.open_terms(t, test);
    for (size_t d = 0; d < a_.dst.size(); ++d)
      u_.line(d_.constant(type_of(u_, (*u_.k.pool)[a_.body.values[d]].type), "v" + std::to_string(d),
                          t.value(a_.body.values[d], false)));
    for (size_t d = 0; d < a_.dst.size(); ++d) copies_half(d) ? copy_half(d) : put(d, "v" + std::to_string(d));
    if (conditional) u_.close(), fill();
    u_.close();
    if (!test.empty()) fill();
  }

  Unit& u_;
  const GpuDialect& d_;
  const kernel::Apply& a_;
  Walk w_;
  bool fills_ = false, at_once_ = false, all_at_element_ = false;
  bool ends_ = false; // runs may lie over the row's ends
};

} // namespace

void print_rows(Unit& u, const GpuDialect& d, const kernel::Stmt& s) {
  const bool first = is_for_first_lane(u.k, s);
  if (first) u.open("if (lane % " + number(deal_of(s).team) + " < " + number(u.k.subgroup) + ")");
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) RowApply(u, d, *a).print();
  if (auto* f = std::get_if<kernel::Fold>(&s.node)) f->deal.matrix ? print_product(u, d, *f) : print_row_fold(u, d, *f);
  if (first) u.close();
}

std::string row_registers(const kernel::Kernel& k, const GpuDialect& d) {
  std::map<int, int64_t> size;
  for (auto& s : k.body) {
    auto look = [&](const Deal& deal, size_t lead, const std::vector<TileAxis>& axes,
                    const std::vector<Ref>& refs) {
      if (!deal.team) return;
      const int64_t turns = ceil_div(count({axes.begin(), axes.begin() + long(lead)}), k.lanes / deal.team);
      const int64_t runs = ceil_div(count({axes.begin() + long(lead), axes.end()}), int64_t(deal.team) * deal.run);
      for (auto& r : refs) {
        if (k.memories[size_t(r.memory)].home != Home::register_) continue;
        const bool row = k.memories[size_t(r.memory)].lanes == kernel::Lanes::replicated;
        size[r.memory] = std::max(size[r.memory], row ? turns : turns * runs * deal.run);
      }
    };
    std::visit(Match{[&](const kernel::Apply& x) {
                       look(x.deal, size_t(x.deal.lead), x.axes, x.body.refs),
                           look(x.deal, size_t(x.deal.lead), x.axes, x.dst);
                     },
                     [&](const kernel::Fold& x) {
                       std::vector<TileAxis> axes = x.kept;
                       axes.insert(axes.end(), x.folded.begin(), x.folded.end());
                       look(x.deal, x.kept.size(), axes, x.body.refs),
                           look(x.deal, x.kept.size(), axes, x.dst);
                     },
                     [](const auto&) {}},
               s.node);
  }
  std::string out;
  for (auto& [m, n] : size) {
    const Memory& x = k.memories[size_t(m)];
    out += "  " + std::string(packs(d, x) ? "uint32_t" : element_type(x.format)) + " r" + std::to_string(m) + "[" +
           number(packs(d, x) ? ceil_div(n, 2) : n) + "];\n";
  }
  return out;
}

} // namespace tang::emit
