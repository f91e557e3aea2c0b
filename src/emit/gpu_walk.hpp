// The rows and columns of a statement for one lane: loops, places in registers, accesses of whole runs
// (private to the row printer).
#pragma once
#include <algorithm>
#include <set>

#include "tang/base/number.hpp"
#include "tang/emit/c_body.hpp"
#include "tang/emit/dialect.hpp"

namespace tang::emit {

using expr::Op;
using kernel::Deal;
using kernel::Home;

constexpr int64_t shared_cache_bytes = 48 << 20; // what it may hold of one array, beside others
constexpr int64_t most_unrolled = 16; // runs of a row, where no register tile asks for more

// A lane keeps two elements of 16 bits in a register.
inline bool packs(const GpuDialect& d, const Memory& m) {
  return d.halves && m.home == Home::register_ && expr::row(m.format).bits == 16;
}

inline int64_t count(const std::vector<TileAxis>& axes) {
  int64_t n = 1;
  for (auto& a : axes) n *= a.extent;
  return n;
}

const Deal& deal_of(const kernel::Stmt& s); // of an Apply or a Fold
// The one read of this memory in the kernel, of other elements in each row.
bool is_read_once(const kernel::Kernel& k, const Ref& r, const std::vector<TileAxis>& rows);
bool stores_rows(const kernel::Kernel& k); // a statement writes along its columns to memory
// Every lane of a team evaluates statement s, and only the team's first lane stores what comes of it: one subgroup does.
bool is_for_first_lane(const kernel::Kernel& k, const kernel::Stmt& s);

// The rows and columns of a statement for one lane.
struct Walk {
  Unit& u;
  const GpuDialect& d;
  const Deal& deal;
  const kernel::Body& body;
  std::vector<TileAxis> rows, columns;
  std::string turn = ""; // of runs that were loaded for several turns: which one

  int64_t team() const { return deal.team; }

  int64_t at_once() const { return u.k.lanes / team(); }

  int64_t turns() const { return ceil_div(count(rows), at_once()); }

  int64_t runs() const { return ceil_div(count(columns), team() * deal.run); } // of a row, of a lane

  bool in_registers(int m) const { return u.memory(m).home == Home::register_; }

  bool replicated(int m) const { return in_registers(m) && u.memory(m).lanes == kernel::Lanes::replicated; }

  std::string registers(int m) const { return "r" + std::to_string(m); }

  bool packed(int m) const { return packs(d, u.memory(m)); }

  std::string place(int m) const { // of this point in a register tile
    return replicated(m) ? "rr" : "(rr * " + number(runs()) + " + c) * " + number(deal.run) + " + e";
  }

  // A value to this point of a register tile.
  void put_in_registers(int m, const std::string& value) const {
    if (!packed(m)) return u.line(d.store(u.memory(m), registers(m), place(m), value, u.wide));
    u.open("");
    u.line("uint16_t h;");
    u.line(store_element(u, u.memory(m).format, "h", value));
    keep_half(m, "h");
    u.close();
  }

  void keep_half(int m, const std::string& bits) const {
    u.line("tang_keep_half(" + registers(m) + ", " + place(m) + ", " + bits + ");");
  }

  void unroll(const std::string& most = "") const {
    if (!d.unroll.empty()) u.line(d.unroll + (d.unroll[0] == '#' && !most.empty() ? " " + most : ""));
  }

  void counted(const std::string& v, int64_t n) const { u.open(d.loop(d.counter, v, "0", v + " < " + number(n), "1")); }

  std::vector<Var> levels() const {
    std::vector<Var> out;
    for (auto& a : rows) out.push_back(a.var);
    for (auto& a : columns) out.push_back(a.var);
    return out;
  }

  // What only rows move is evaluated once a row.
  void declare_rows(BodyText& t) const {
    name_registers(t);
    for (size_t l = 0; l <= rows.size() && l < levels().size(); ++l) t.declare(int(l));
  }

  void declare_element(BodyText& t, BodyText::Part part) const {
    const size_t from = std::min(rows.size() + 1, levels().size());
    for (size_t l = from; l <= levels().size(); ++l)
      t.declare(int(l), "", l == levels().size() ? part : BodyText::both);
  }

  // An element's terms under a test and the body's condition; true: a block of the condition is open, too.
  bool open_terms(BodyText& t, const std::string& test) const {
    u.open(test.empty() ? "" : "if (" + test + ")");
    declare_element(t, body.when ? BodyText::condition : BodyText::both);
    if (!body.when) return false;
    u.open("if (" + t.value(*body.when, false) + ")");
    t.declare(int(levels().size()), "", BodyText::rest);
    return true;
  }

  bool touches_registers(const std::vector<Ref>& refs) const {
    return std::any_of(refs.begin(), refs.end(),
                       [&](const Ref& r) { return in_registers(r.memory) && !replicated(r.memory); });
  }

  bool names(const Affine& a, const std::vector<TileAxis>& axes) const {
    return std::any_of(axes.begin(), axes.end(), [&](auto& x) { return coefficient(a, x.var) != 0; });
  }

  Var inner() const { return columns.empty() ? -1 : columns.back().var; }

  // a mod run is known and the same for every run.
  bool steps_by_runs(const Affine& a, int64_t rest) const {
    for (auto& [v, k] : a.terms) {
      if (v == inner()) continue;
      int64_t step = k;
      for (auto& g : u.k.grid)
        if (g.var == v) step *= g.step;
      if (step % deal.run) return false;
    }
    return ((a.c - rest) % deal.run) == 0;
  }

  // A whole run in one access.
  bool moves_at_once(const Ref& r) const {
    if (deal.run == 1 || deal.each || columns.empty() || !pure(r) || in_registers(r.memory)) return false;
    if (u.memory(r.memory).home != Home::global) return false;
    const Affine at = offset(u, r);
    return coefficient(at, inner()) == 1 && steps_by_runs(at, 0) && columns.back().extent % deal.run == 0;
  }

  enum Level : uint8_t { row, run, element };

  Level level(const kernel::Coordinate& c) const {
    if (!c.refs.empty()) return element;
    if (!names(c.affine, columns)) return row;
    const int64_t k = coefficient(c.affine, inner());
    if (k == 0 || (k == -1 && columns.back().extent % deal.run == 0 && steps_by_runs(c.affine, deal.run - 1)))
      return run;
    return element;
  }

  void decode(const std::vector<TileAxis>& axes, const std::string& flat, const std::string& last) const {
    int64_t below = count(axes);
    for (size_t a = 0; a < axes.size(); ++a) {
      below /= std::max<int64_t>(1, axes[a].extent);
      u.line(d.constant(d.integer, name(axes[a].var) + (a + 1 == axes.size() ? last : ""),
                        d.digit(flat, below, axes[a].extent, !a)));
    }
  }

  void open_row() const {
    unroll();
    counted("rr", turns());
    std::string flat = at_once() == 1 ? "0" : team() == 1 ? "lane" : "lane / " + number(team());
    if (turns() > 1) flat = "rr * " + number(at_once()) + " + " + flat;
    u.line(d.constant(d.counter, "row", flat));
    decode(rows, "row", "");
  }

  std::string row_exists() const { return count(rows) % at_once() ? "row < " + number(count(rows)) : ""; }

  void open_run(bool touches) const {
    if (touches || runs() <= most_unrolled) unroll();
    else if (d.unroll[0] == '#') unroll(number(std::max(4, 16 / deal.run)));
    counted("c", runs());
    const std::string within = team() == 1 ? "0" : "lane % " + number(team());
    u.line(d.constant(d.counter, "first", "(c * " + number(team()) + " + " + within + ") * " + number(deal.run)));
    if (const int64_t whole = count(columns) / (team() * deal.run); count(columns) % (team() * deal.run))
      u.open("if (" + (whole ? "c < " + number(whole) + " || " : std::string()) + "first < " +
             number(count(columns)) + ")");
    else
      u.open("");
    decode(columns, "first", "_0");
  }

  // A run that was loaded, and the turn's of several.
  std::string run_of(int64_t ref) const { return "q" + std::to_string(ref) + turn; }

  std::string run_type(const Memory& m) const {
    return "TangRun<" + std::string(element_type(m.format)) + ", " + number(deal.run) + ">";
  }

  // A run in one access. An array that the shared cache may hold, read once, leaves the nearest cache to what is read again
  // where rows are stored (H200, 2026-12-01: softmax of 262144 rows of 64 19.3 and 18.2 us, rms norm of 4096 x 4096 20.4 and
  // 18.7; of 8192 x 8192, which lies in memory, 68.8 and 70.4; rows that are not stored are slower so).
  std::string run_at(const Ref& x) const {
    const Memory& m = u.memory(x.memory);
    const std::string at = "m" + std::to_string(x.memory) + " + " + at_first(x), type = run_type(m);
    const bool near = m.size() * expr::row(m.format).bits / 8 <= shared_cache_bytes;
    if (near && d.passes_near_cache && is_read_once(u.k, x, rows) && stores_rows(u.k))
      return "tang_get_once<" + std::string(element_type(m.format)) + ", " + number(deal.run) + ">(" + at + ")";
    return "*(const " + type + "*)(" + at + ")";
  }

  // Loads of whole runs; in the text of a body their elements are called by name.
  // `declared`: as arrays over the turns.
  void load_runs(BodyText& t, bool declared = false) const {
    for (size_t r = 0; r < body.refs.size(); ++r) {
      const Ref& x = body.refs[r];
      if (moves_at_once(x)) {
        const Memory& m = u.memory(x.memory);
        const std::string type = run_type(m), q = run_of(int64_t(r));
        u.line((declared ? "" : "const " + type + " ") + q + " = " + run_at(x) + ";");
        t.name_ref(int(r), load_element(u, m.format, q + ".v[e]"));
      }
    }
  }

  // What an earlier statement made of packed registers is made again: kept, it would take twice the registers.
  void name_registers(BodyText& t) const {
    std::set<int> again;
    for (size_t r = 0; r < body.refs.size(); ++r)
      if (in_registers(body.refs[r].memory)) {
        const int m = body.refs[r].memory;
        if (packed(m) && again.insert(m).second) u.line("tang_again(" + registers(m) + ");");
        const std::string half = "tang_half_of(" + registers(m) + ", " + place(m) + ")";
        t.name_ref(int(r), packed(m) ? load_element(u, u.memory(m).format, half)
                                     : d.load(u.memory(m), registers(m), place(m), u.wide));
      }
  }

  std::string at_first(const Ref& r) const {
    return text(without(offset(u, r), inner())) + " + " + name(inner()) + "_0";
  }

  void open_element() const {
    unroll();
    counted("e", deal.run);
    u.line(d.constant(d.integer, name(inner()), name(inner()) + "_0 + e"));
  }

  // Tests of bounds at one level, joined by "and".
  std::string tests(const kernel::Bounds& b, Level at, bool all_at_element) const {
    std::string out;
    for (auto& c : b) {
      const Level l = all_at_element ? element : level(c);
      if (l != at) continue;
      std::string one = bound(u, body, c);
      if (at == run) { // the first of the run speaks for all
        const Affine a = without(c.affine, inner());
        const int64_t k = coefficient(c.affine, inner());
        one = text(a) + (k ? " - " + name(inner()) + "_0" : "");
      }
      out += (out.empty() ? "" : " && ") + one + " >= 0";
    }
    return out;
  }

  // Bounds of single elements that name columns alone: what holds at both ends of a run holds for all of it.
  bool has_ends(const kernel::Bounds& b) const {
    bool any = false;
    for (auto& c : b) {
      if (level(c) != element) continue;
      if (!c.refs.empty()) return false;
      any = true;
    }
    return any && deal.run > 1;
  }

  // Whether a coordinate is at least 0 for all places of a turn.
  bool holds_in_turn(const Affine& a, int64_t c) const {
    std::vector<kernel::Range> vars = u.ranges;
    const int64_t all = team() * deal.run;
    for (auto* axes : {&rows, &columns})
      for (auto& x : *axes) vars[size_t(x.var)] = {0, x.extent - 1};
    if (columns.size() == 1) vars[size_t(inner())] = {c * all, c * all + all - 1};
    if (columns.size() == 2 && columns[1].extent == all) vars[size_t(columns[0].var)] = {c, c};
    return kernel::range(a, vars).lo >= 0;
  }

  // Turns in which a coordinate is at least 0 without a test.
  std::string without_test(const Affine& a) const {
    std::string out;
    for (int64_t c = 0; c < runs(); ++c)
      if (holds_in_turn(a, c)) out += "c == " + number(c) + " || ";
    return out;
  }

  // Whether a whole run lies inside of such bounds.
  std::string whole_run(const kernel::Bounds& b) const {
    std::string out;
    for (auto& c : b) {
      if (level(c) != element) continue;
      const int64_t k = coefficient(c.affine, inner());
      const Affine rest = without(c.affine, inner()) + kernel::constant(k < 0 ? k * (deal.run - 1) : 0);
      out += (out.empty() ? "(" : " && (") + without_test(c.affine) + text(rest) + " + " + number(k) + " * " + name(inner()) + "_0 >= 0)";
    }
    return out;
  }

  // A run that begins between two that could move at once: both are read.
  bool moves_beside(const Ref& r) const {
    if (deal.run == 1 || deal.each || columns.empty() || !pure(r) || r.checked || moves_at_once(r)) return false;
    const Memory& m = u.memory(r.memory);
    return m.home == Home::global && m.access == kernel::Access::read && coefficient(offset(u, r), inner()) == 1 &&
           deal.run * expr::row(m.format).bits % 128 == 0 && columns.back().extent % deal.run == 0;
  }

  // Loads of runs of which the row's ends are read element by element, named in the text of the body. Ahead: of all turns,
  // before any is used, where registers hold nothing else of the row.
  void load_ends(BodyText& t, const kernel::Bounds& b, bool touches) {
    const bool ahead = !touches_registers(body.refs) && (touches || runs() <= most_unrolled);
    turn = "";
    std::vector<size_t> all;
    for (size_t r = 0; r < body.refs.size(); ++r)
      if (moves_at_once(body.refs[r]) || moves_beside(body.refs[r])) all.push_back(r);
    for (size_t r : all)
      u.line(run_type(u.memory(body.refs[r].memory)) + " " + run_of(int64_t(r)) + (ahead ? "[" + number(runs()) + "];" : "[1];"));
    turn = ahead ? "[c]" : "[0]";
    for (size_t r : all)
      t.name_ref(int(r), load_element(u, u.memory(body.refs[r].memory).format, run_of(int64_t(r)) + ".v[e]"));
    if (all.empty() || !ahead) return;
    open_run(touches);
    const std::string test = tests(b, run, false);
    u.open(test.empty() ? "" : "if (" + test + ")");
    load_turn(b);
    for (int k = 0; k < 3; ++k) u.close();
  }

  void load_turn(const kernel::Bounds& b) const {
    u.line("const bool whole = " + whole_run(b) + ";");
    for (size_t r = 0; r < body.refs.size(); ++r) {
      const Ref& x = body.refs[r];
      const bool beside = moves_beside(x);
      if (!beside && !moves_at_once(x)) continue;
      const std::string m = "m" + std::to_string(x.memory), type = run_type(u.memory(x.memory)), first = at_first(x);
      const std::string inside = beside ? " && " + first + " <= " + number(u.memory(x.memory).size() - (2 * deal.run - 1)) : "";
      u.open("if (whole" + inside + ")");
      u.line(run_of(int64_t(r)) + " = " + (beside ? "tang_get_beside<" + number(deal.run) + ">(" + m + " + " + first + ");"
                                                  : "*(const " + type + "*)(" + m + " + " + first + ");"));
      u.close();
      u.open("else");
      open_element();
      u.line("if (" + tests(b, element, false) + ") " + run_of(int64_t(r)) + ".v[e] = " + m + "[" + text(offset(u, x)) + "];");
      u.close();
      u.close();
    }
  }

  // In the loop over runs: what was not loaded ahead, and `whole`.
  void begin_ends(const kernel::Bounds& b) const {
    if (turn == "[0]") load_turn(b);
    else u.line("const bool whole = " + whole_run(b) + ";");
  }

  bool any_at(const kernel::Bounds& b, Level at) const {
    return std::any_of(b.begin(), b.end(), [&](auto& c) { return level(c) == at; });
  }

  std::string any(const std::vector<kernel::Bounds>& partial) const {
    std::string out;
    for (auto& p : partial) out += (out.empty() ? "(" : " || (") + conjunction(u, body, p) + ")";
    return out;
  }
};

inline std::string joined(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + " && " + b;
}

inline std::vector<Id> roots_of(const kernel::Body& b) {
  std::vector<Id> out = b.values;
  if (b.when) out.push_back(*b.when);
  return out;
}

inline std::string type_of(const Unit& u, Type t) { return u.d.type(t, u.wide); }

} // namespace tang::emit
