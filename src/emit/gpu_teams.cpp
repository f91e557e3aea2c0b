// Statements dealt by rows: loops over a lane's rows and runs of columns, unrolled where registers are
// indexed. In CUDA runs move as one access of up to 16 bytes, and teams join partial folds by exchanging registers;
// elsewhere a run is one element and a team one lane, and teams meet in shared memory as the kernel says.
#include "tang/emit/gpu_teams.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/cuda_keys.hpp"
#include "tang/emit/cuda_products.hpp"
#include "tang/emit/gpu_walk.hpp"
#include "tang/expr/branches.hpp"
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

class RowFold {
public:
  RowFold(Unit& u, const GpuDialect& d, const kernel::Fold& f)
      : u_(u), d_(d), f_(f), w_{u, d, f.deal, f.body, f.kept, f.folded}, n_(f.combine.size()) {
    bool element = f.body.when || !f.partial.empty();
    ends_ = !element && !f.deal.each && w_.has_ends(f.limits);
    for (auto& c : f.limits) element |= !ends_ && w_.level(c) == Walk::element;
    at_once_ = !element && !f.deal.each;
    for (auto* axes : {&f_.kept, &f_.folded})
      for (auto& a : *axes) u_.ranges[size_t(a.var)] = {0, std::max<int64_t>(0, a.extent - 1)};
    BodyText probe(u_, &f_.body, roots_of(f_.body), {}, -1);
    probe.refuses_lanes();
    if (!f_.deal.each && d.exchanges) keys_ = FoldKeys::of(u_, f_, probe);
    narrow_ = !keys_ && fits_narrow(probe);
  }

  void print() {
    u_.open("");
    w_.open_row();
    if (keys_) keys_->start();
    for (size_t c = 0; c < n_ && !keys_; ++c) {
      check(!f_.accumulate || f_.deal.each, "lanes that join partial results start from the identity");
      u_.line(type(c) + " " + acc(c) + " = " +
              (narrow_ && f_.identity[c].type == Type::index && f_.identity[c].i == INT64_MAX
                   ? "INT32_MAX"
                   : u_.d.literal(f_.identity[c], u_.wide)) +
              ";");
    }
    const std::string live =
        joined(w_.row_exists(), f_.bounds.empty() ? "" : conjunction(u_, f_.body, f_.bounds));
    const std::string row = joined(live, w_.tests(f_.limits, Walk::row, false));
    u_.open(row.empty() ? "" : "if (" + row + ")");
    BodyText t(u_, &f_.body, roots_of(f_.body), w_.levels(), -1);
    w_.declare_rows(t);
    if (f_.deal.each) {
      for (auto& a : f_.folded) {
        w_.unroll();
        u_.open(d_.loop(d_.integer, name(a.var), "0", name(a.var) + " < " + number(a.extent), "1"));
      }
      std::string test = f_.limits.empty() ? "" : conjunction(u_, f_.body, f_.limits);
      term(t, joined(test, any_partial()));
      for (size_t a = 0; a < f_.folded.size(); ++a) u_.close();
    } else {
      runs(t);
    }
    u_.close();
    if (!f_.deal.each) keys_ ? keys_->settle(w_.team()) : settle();
    store(live);
    u_.close();
    u_.close();
  }

private:
  std::string acc(size_t c) const { return "a" + std::to_string(c); }

  std::string type(size_t c) const {
    return narrow_ && f_.identity[c].type == Type::index ? "int" : type_of(u_, f_.identity[c].type);
  }

  // Places that fit 32 bits are carried so; INT32_MAX stands for the identity INT64_MAX.
  bool fits_narrow(const BodyText& probe) {
    bool any = false;
    for (size_t c = 0; c < n_; ++c) {
      if (f_.identity[c].type != Type::index) continue;
      any = true;
      const expr::Term& t = (*u_.k.pool)[f_.body.values[c]];
      const Range r = probe.term_range(f_.body.values[c]);
      if (f_.identity[c].i != INT64_MAX && std::abs(f_.identity[c].i) >= INT32_MAX) return false;
      if (!(t.op == Op::literal && t.whole == INT64_MAX) &&
          !(r.known() && r.lo > INT32_MIN && r.hi < INT32_MAX))
        return false;
    }
    for (Id id : expr::schedule(*u_.k.pool, f_.combine)) { // they are compared and chosen, nothing else
      const expr::Term& t = (*u_.k.pool)[id];
      if (t.type == Type::index && t.op != Op::var && t.op != Op::select && t.op != Op::max &&
          t.op != Op::min)
        return false;
    }
    return any;
  }

  std::string carried(size_t c, Id value, const std::string& text) const {
    if (!narrow_ || f_.identity[c].type != Type::index) return text;
    const expr::Term& t = (*u_.k.pool)[value];
    return t.op == Op::literal && t.whole == INT64_MAX ? "INT32_MAX" : d_.cast("int", text);
  }

  std::string stored(size_t c) const {
    if (keys_) return keys_->stored(c);
    if (!narrow_ || f_.identity[c].type != Type::index) return acc(c);
    return "(" + acc(c) + " == INT32_MAX ? INT64_MAX : " + d_.cast(d_.integer, acc(c)) + ")";
  }

  std::string any_partial() const { return f_.partial.empty() ? "" : "(" + w_.any(f_.partial) + ")"; }

  void runs(BodyText& t) {
    if (ends_) w_.load_ends(t, f_.limits, w_.touches_registers(f_.body.refs));
    w_.open_run(w_.touches_registers(f_.body.refs));
    const std::string run = w_.tests(f_.limits, Walk::run, false);
    u_.open(run.empty() ? "" : "if (" + run + ")");
    if (ends_) w_.begin_ends(f_.limits);
    else if (at_once_) w_.load_runs(t);
    w_.open_element();
    const std::string one = w_.tests(f_.limits, Walk::element, false);
    term(t, joined(ends_ ? "(whole || (" + one + "))" : one, any_partial()));
    for (int k = 0; k < 4; ++k) u_.close(); // element, run's test, run exists, run
  }

  void term(BodyText& t, const std::string& test) {
    const bool conditional = w_.open_terms(t, test);
    if (keys_) keys_->term(t);
    std::vector<std::string> left, right;
    for (size_t c = 0; c < n_ && !keys_; ++c) {
      left.push_back(acc(c)), right.push_back("l" + std::to_string(c));
      u_.line(d_.constant(type(c), right[c], carried(c, f_.body.values[c], t.value(f_.body.values[c], false))));
    }
    if (!keys_) join(left, right, with_term());
    if (conditional) u_.close();
    u_.close();
  }

  // The combine of a state with a term, whose literal components decide some of its branches.
  std::vector<Id> with_term() const {
    kernel::Pool& p = *u_.k.pool;
    std::map<Id, Id> to;
    for (size_t c = 0; c < n_; ++c)
      if (p[f_.body.values[c]].op == Op::literal)
        to[p.leaf(Op::var, f_.identity[c].type, int64_t(2 * c + 1))] = f_.body.values[c];
    if (to.empty()) return f_.combine;
    std::vector<Id> out;
    for (Id id : f_.combine) out.push_back(expr::settle_branches(p, expr::substitute(p, id, to)));
    if (narrow_)
      for (Id id : expr::schedule(p, out))
        if (p[id].op == Op::literal && p[id].type == Type::index)
          return f_.combine; // it is carried in 32 bits
    return out;
  }

  void join(const std::vector<std::string>& left, const std::vector<std::string>& right,
            const std::vector<Id>& combine) {
    BodyText t(u_, nullptr, combine, {}, -1);
    for (size_t c = 0; c < n_; ++c) {
      t.name_var(int64_t(2 * c), left[c], false);
      t.name_var(int64_t(2 * c + 1), right[c], false);
    }
    t.declare(0);
    for (size_t c = 0; c < n_; ++c) {
      const bool cut = narrow_ && f_.identity[c].type == Type::index && !d_.exchanges; // no dialect but CUDA does it unasked
      const std::string v = t.value(combine[c], false);
      u_.line(d_.constant(type(c), "n" + std::to_string(c), cut ? d_.cast("int", v) : v));
    }
    for (size_t c = 0; c < n_; ++c) u_.line(acc(c) + " = n" + std::to_string(c) + ";");
  }

  // Either order of the two sides gives the same bits.
  bool symmetric() const {
    const Op op = (*u_.k.pool)[f_.combine[0]].op;
    return n_ == 1 && (op == Op::add || op == Op::max || op == Op::min || op == Op::both || op == Op::either);
  }

  // Lane l with l + d: what belongs to the lower lane stands left, so that both have the same result.
  void settle() {
    check(w_.team() == 1 || d_.exchanges, "lanes that join by exchanging registers");
    for (int64_t d = w_.team() / 2; d; d /= 2) {
      u_.open("");
      std::vector<std::string> left, right;
      if (!symmetric()) u_.line("const bool low = !(lane & " + number(d) + ");");
      for (size_t c = 0; c < n_; ++c) {
        const std::string o = "o" + std::to_string(c);
        u_.line("const " + type(c) + " " + o + " = __shfl_xor_sync(0xffffffffu, " + acc(c) + ", " +
                number(d) + ");");
        if (symmetric()) {
          left.push_back(acc(c)), right.push_back(o);
          continue;
        }
        left.push_back("p" + std::to_string(c)), right.push_back("s" + std::to_string(c));
        u_.line("const " + type(c) + " " + left[c] + " = low ? " + acc(c) + " : " + o + ", " + right[c] +
                " = low ? " + o + " : " + acc(c) + ";");
      }
      join(left, right, f_.combine);
      u_.close();
    }
  }

  void store(const std::string& live) {
    u_.open(live.empty() ? "" : "if (" + live + ")");
    for (size_t c = 0; c < n_; ++c) {
      const Ref& r = f_.dst[c];
      if (w_.in_registers(r.memory)) {
        w_.put_in_registers(r.memory, stored(c));
        continue;
      }
      if (u_.memory(r.memory).team == kernel::Team::cluster) { // a lane for each copy
        if (u_.memory(r.memory).lanes == kernel::Lanes::partial) { // it lies in one of them
          check(w_.team() == 1, "a lane a result");
          kernel::Ref in_part = r;
          in_part.index[0] = {};
          const std::string owner = "(" + text(offset(u_, in_part)) + ") % " + number(u_.k.lanes) + " / " +
                                    number(u_.k.lanes / u_.k.cluster);
          u_.line(store_element(u_, u_.memory(r.memory).format,
                                "tang_peer(m" + std::to_string(r.memory) + " + " + text(offset(u_, r)) + ", " +
                                    owner + ")[0]",
                                stored(c)));
          continue;
        }
        const std::string of = "lane % " + number(w_.team());
        check(f_.deal.each && w_.team() >= u_.k.cluster, "a lane for every workgroup of a cluster");
        u_.line("if (" + of + " < " + number(u_.k.cluster) + ") " +
                store_element(u_, u_.memory(r.memory).format,
                              "tang_peer(m" + std::to_string(r.memory) + " + " + text(offset(u_, r)) + ", " +
                                  of + ")[0]",
                              stored(c)));
        continue;
      }
      if (w_.team() > 1) u_.line("if (lane % " + number(w_.team()) + " == 0)");
      print_store(u_, r, stored(c), f_.identity[c].type, false, -1, "", false, false,
                  gathered_offset(u_, f_.body, r));
    }
    u_.close();
  }

  Unit& u_;
  const GpuDialect& d_;
  const kernel::Fold& f_;
  Walk w_;
  const size_t n_;
  bool at_once_ = false, ends_ = false, narrow_ = false;
  std::unique_ptr<FoldKeys> keys_;
};
} // namespace

void print_rows(Unit& u, const GpuDialect& d, const kernel::Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) RowApply(u, d, *a).print();
  if (auto* f = std::get_if<kernel::Fold>(&s.node)) f->deal.matrix ? print_product(u, d, *f) : RowFold(u, d, *f).print();
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
