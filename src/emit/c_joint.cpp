#include "tang/emit/c_joint.hpp"

#include <algorithm>

#include "tang/kernel/passes.hpp"

namespace tang::emit {

using kernel::joined_chains;
using kernel::wide_row;

namespace {
// Elements that a pass over far memory asks ahead: alone, and beside dear arithmetic, with more rounds in flight.
constexpr int64_t near_ahead = 128, far_ahead = 512;

// What a statement touches: an element that moves with the lanes, or what is read or written outside the loop.
struct Touch {
  int memory;
  Affine at; // the lane's variable taken out
  int64_t extent; // of the lane's variable
  bool lanes, write, end; // end: written after the loop
};

// The columns that a statement goes along in lanes; none where it does something else.
const TileAxis* row_of(const kernel::Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node))
    return a->axes.size() == 1 && a->vector == 0 ? &a->axes[0] : nullptr;
  if (auto* f = std::get_if<kernel::Fold>(&s.node))
    return f->kept.empty() && f->folded.size() == 1 && f->vector == 0 ? &f->folded[0] : nullptr;
  return nullptr;
}

Var axis_of(const kernel::Stmt& s) { return row_of(s) ? row_of(s)->var : -1; }

void touches(const Unit& u, const kernel::Stmt& s, Var axis, std::vector<Touch>& out) {
  auto add = [&](const Ref& r, bool write, bool end) {
    const Affine at = offset(u, r);
    const int64_t k = coefficient(at, axis);
    bool scattered = !pure(r);
    out.push_back({r.memory, without(at, axis), row_of(s)->extent, k == 1 && !scattered, write, end});
    if ((k && k != 1) || scattered) out.back().memory = -1 - r.memory; // anywhere
  };
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) {
    for (auto& r : a->body.refs) add(r, false, false);
    for (auto& r : a->dst) add(r, true, false);
  } else if (auto* f = std::get_if<kernel::Fold>(&s.node)) {
    for (auto& r : f->body.refs) add(r, false, false);
    for (auto& r : f->dst) add(r, true, true);
  }
}

// May the later statement's touch share a loop with the earlier one's?
bool agree(const Touch& a, const Touch& b) {
  const int ma = a.memory < 0 ? -1 - a.memory : a.memory, mb = b.memory < 0 ? -1 - b.memory : b.memory;
  if (ma != mb || (!a.write && !b.write)) return true;
  const Affine apart = a.at - b.at;
  if (a.memory < 0 || b.memory < 0) return false;
  const int64_t elements = std::max(a.lanes ? a.extent : 1, b.lanes ? b.extent : 1);
  if (apart.terms.empty() && std::abs(apart.c) >= elements) return true; // two rows
  if (!a.write) return b.end || (a.lanes == b.lanes && a.at == b.at); // read before it is overwritten
  if (a.end || b.end) return a.end && b.end;
  return a.lanes && b.lanes && a.at == b.at;
}

const void* node_of(const kernel::Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) return a;
  return std::get_if<kernel::Fold>(&s.node);
}

// Ref `ref` of pass `to` reads what pass `from` has for its destination `k`.
struct Handed {
  size_t from, k, to;
  int ref;
};

struct Run {
  std::vector<std::vector<std::unique_ptr<RowPass>>> passes; // of each statement, a vector of the round
  std::vector<std::unique_ptr<kernel::Stmt>> moved;          // their copies
  std::vector<const kernel::Stmt*> statements;
  std::vector<Touch> touched;
  std::vector<Handed> handed;
};

const kernel::Body& body_of(const kernel::Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) return a->body;
  return std::get<kernel::Fold>(s.node).body;
}

const std::vector<Ref>& reads(const kernel::Stmt& s) { return body_of(s).refs; }

bool is_same_row(const Unit& u, const Ref& a, Var along_a, const Ref& b, Var along_b) {
  return without(offset(u, a), along_a) == without(offset(u, b), along_b);
}

// Elements that an earlier pass of the run writes where this one reads them. False: they are not kept as they are
// computed.
bool hand_over(const Unit& u, Run& run, const kernel::Stmt& s) {
  for (size_t r = 0; r < reads(s).size(); ++r)
    for (size_t from = run.statements.size(); from-- > 0;) {
      const auto* a = std::get_if<kernel::Apply>(&run.statements[from]->node);
      bool found = false;
      for (size_t k = 0; a && k < a->dst.size(); ++k) {
        if (a->dst[k].memory != reads(s)[r].memory) continue;
        if (!is_same_row(u, a->dst[k], axis_of(*run.statements[from]), reads(s)[r], axis_of(s))) continue;
        if (u.memory(a->dst[k].memory).format != (u.wide ? Format::f64 : Format::f32)) return false;
        run.handed.push_back({from, k, run.statements.size(), int(r)});
        found = true;
      }
      if (found) break;
    }
  return true;
}

std::unique_ptr<RowPass> pass_of(Unit& u, const kernel::Stmt& s, const std::string& prefix) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) return row_pass(u, *a, prefix);
  return row_pass(u, std::get<kernel::Fold>(s.node), prefix);
}

// Nothing but its reads and writes says where on the row it is.
bool is_movable(const Unit& u, const kernel::Stmt& s, Var axis) {
  const kernel::Body& b = body_of(s);
  if (!b.guards.empty()) return false;
  for (Id id : expr::schedule(*u.k.pool, b.values))
    if ((*u.k.pool)[id].op == expr::Op::coord && (*u.k.pool)[id].whole == axis) return false;
  return true;
}

kernel::Stmt moved(const kernel::Stmt& s, Var axis, int64_t by) {
  kernel::Stmt out = s;
  auto move = [&](std::vector<Ref>& refs) {
    for (auto& r : refs)
      for (auto& c : r.index) c.affine = c.affine + kernel::constant(coefficient(c.affine, axis) * by);
  };
  if (auto* a = std::get_if<kernel::Apply>(&out.node)) move(a->body.refs), move(a->dst);
  if (auto* f = std::get_if<kernel::Fold>(&out.node)) move(f->body.refs);
  return out;
}

Run run_at(Unit& u, const kernel::Block& b, size_t at) {
  Run run;
  for (size_t i = at; i < b.size(); ++i) {
    const Var axis = axis_of(b[i]);
    if (axis < 0) break;
    std::vector<Touch> here;
    touches(u, b[i], axis, here);
    bool fits = true;
    for (auto& x : run.touched)
      for (auto& y : here) fits &= agree(x, y);
    if (!fits) break;
    const std::string prefix = "p" + std::to_string(i - at);
    std::vector<std::unique_ptr<RowPass>> passes;
    for (int w = 0; w < joined_chains; ++w) {
      run.moved.push_back(std::make_unique<kernel::Stmt>(moved(b[i], axis, w * u.lanes)));
      passes.push_back(pass_of(u, *run.moved.back(), prefix));
      if (!passes.back()) return run;
      passes.back()->terms().prefix(prefix + "w" + std::to_string(w));
    }
    const TileAxis row = passes[0]->axis();
    if (!is_movable(u, b[i], axis) || passes[0]->ways() > joined_chains || row.extent < wide_row ||
        row.extent % (joined_chains * u.lanes) ||
        (!run.passes.empty() && run.passes[0][0]->axis().extent != row.extent) || !hand_over(u, run, b[i]))
      break;
    run.passes.push_back(std::move(passes)), run.statements.push_back(&b[i]);
    run.touched.insert(run.touched.end(), here.begin(), here.end());
  }
  return run;
}

bool is_far(const Unit& u, const Touch& t) {
  if (t.memory < 0 || t.write || !t.lanes) return false;
  const Memory& m = u.memory(t.memory);
  return m.home == kernel::Home::global && m.format == Format::f32 && m.size() * 4 >= u.o.stream_bytes;
}

// Each line of a round.
void ask(Unit& u, int memory, const std::string& at, int near) {
  for (int e = 0; e < joined_chains * u.lanes; e += 16)
    u.line("__builtin_prefetch(m" + std::to_string(memory) + " + " + at + (e ? " + " + number(e) : "") + ", 0, " +
           number(near) + ");");
}

// What was planned for one of the statements; else the last pass that reads far memory, which brings in what the
// others read later, asks a little ahead, and so do its copies for the rows beside.
void fetch(Unit& u, const Run& run, const std::string& at) {
  bool planned = false;
  for (size_t s = 0; s < run.statements.size(); ++s)
    for (auto& p : u.prefetches)
      if (p.host == node_of(*run.statements[s])) {
        const Var axis = axis_of(*run.statements[s]);
        ask(u, p.memory, text(without(p.at, axis)) + " + " + at, 2);
        planned = true;
      }
  if (planned) return;
  int effort = 0;
  for (auto* s : run.statements)
    effort = std::max(effort, kernel::effort_along(*u.k.pool, body_of(*s), axis_of(*s)));
  const int64_t ahead = effort >= kernel::dear_pass ? far_ahead : near_ahead;
  const std::vector<Id>* bringing = nullptr;
  for (size_t s = run.statements.size(); s-- > 0;) {
    const std::vector<Id>& values = body_of(*run.statements[s]).values;
    if (bringing && values != *bringing) continue;
    std::vector<Touch> here;
    touches(u, *run.statements[s], axis_of(*run.statements[s]), here);
    const auto far = std::find_if(here.rbegin(), here.rend(), [&](const Touch& t) { return is_far(u, t); });
    if (far == here.rend()) continue;
    ask(u, far->memory, text(far->at + kernel::constant(ahead)) + " + " + at, 3);
    bringing = &values;
  }
}

// All passes, two vectors of each a round.
void loop(Unit& u, const Run& run) {
  const std::string i = u.fresh("i"), step = number(joined_chains * u.lanes);
  const std::string end = number(run.passes[0][0]->axis().extent);
  u.open("for (int64_t " + i + " = 0; " + i + " < " + end + "; " + i + " += " + step + ")");
  fetch(u, run, i);
  std::set<Var> named; // rows beside each other share a variable
  for (size_t s = 0; s < run.passes.size(); ++s) {
    auto& p = run.passes[s];
    const Var along = p[0]->axis().var;
    if (named.insert(along).second) u.line("const int64_t " + name(along) + " = " + i + ";");
    for (auto& h : run.handed)
      for (size_t w = 0; h.to == s && w < p.size(); ++w)
        p[w]->terms().name_ref(h.ref, run.passes[h.from][w]->value(h.k));
    std::vector<BodyText*> texts;
    for (auto& way : p) texts.push_back(&way->terms());
    BodyText::declare_together(texts, 1);
    for (size_t w = 0; w < p.size(); ++w) p[w]->combine(int(w), w ? p[w - 1].get() : nullptr);
  }
  // All reads first: one of the same place of another page waits for a write. Then whole lines, row by row.
  for (auto& p : run.passes)
    for (auto& way : p) way->store();
  u.close();
}
} // namespace

size_t print_joint(Unit& u, const kernel::Block& b, size_t at) {
  if (u.lanes == 1 || axis_of(b[at]) < 0) return 0;
  const Run run = run_at(u, b, at);
  if (run.passes.size() < 2) return 0;
  u.open("");
  std::string usual;
  for (auto& p : run.passes) {
    for (auto& way : p) way->terms().declare(0);
    p[0]->start();
    const std::string also = p[0]->terms().usual();
    usual += (usual.empty() || also.empty() ? "" : " & ") + also;
  }
  auto settle = [&](bool on) {
    for (auto& p : run.passes)
      for (auto& way : p) way->terms().settle(on);
  };
  if (!usual.empty()) {
    u.open("if (__builtin_expect(" + usual + ", 1))");
    settle(true), loop(u, run), settle(false);
    u.close(), u.open("else");
  }
  loop(u, run);
  if (!usual.empty()) u.close();
  for (auto& p : run.passes) u.open(""), p[0]->after(), u.close();
  u.close();
  return run.passes.size();
}

} // namespace tang::emit
