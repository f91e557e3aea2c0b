#include "tang/emit/c_joint.hpp"

#include "tang/base/error.hpp"

namespace tang::emit {

namespace {
constexpr int most_chains = 2;      // more of them in several statements do not stay in registers
constexpr int64_t wide_row = 1024;  // columns
constexpr int64_t ahead = 128;      // elements: what a pass over far memory asks for before it gets there

// What a statement touches: an element that moves with the lanes, or what is read or written outside the loop.
struct Touch {
  int memory;
  Affine at; // the lane's variable taken out
  bool lanes, write, end; // end: written after the loop
};

Var axis_of(const kernel::Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node))
    return a->axes.size() == 1 && a->vector == 0 ? a->axes[0].var : -1;
  if (auto* f = std::get_if<kernel::Fold>(&s.node))
    return f->kept.empty() && f->folded.size() == 1 && f->vector == 0 ? f->folded[0].var : -1;
  return -1;
}

void touches(const Unit& u, const kernel::Stmt& s, Var axis, std::vector<Touch>& out) {
  auto add = [&](const Ref& r, bool write, bool end) {
    const Affine at = offset(u, r);
    const int64_t k = coefficient(at, axis);
    bool scattered = !pure(r);
    out.push_back({r.memory, without(at, axis), k == 1 && !scattered, write, end});
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
  if (a.memory >= 0 && b.memory >= 0 && !a.lanes && !b.lanes && apart.terms.empty() && apart.c) return true; // two elements
  if (a.memory < 0 || b.memory < 0) return false;
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
  std::vector<std::unique_ptr<RowPass>> passes;
  std::vector<const kernel::Stmt*> statements;
  std::vector<Touch> touched;
  std::vector<Handed> handed;
};

const std::vector<Ref>& reads(const kernel::Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) return a->body.refs;
  return std::get<kernel::Fold>(s.node).body.refs;
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
    auto pass = pass_of(u, b[i], "p" + std::to_string(i - at));
    if (!pass || pass->ways() > most_chains || pass->axis().extent < wide_row ||
        pass->axis().extent % (most_chains * u.lanes) ||
        (!run.passes.empty() && run.passes[0]->axis().extent != pass->axis().extent))
      break;
    if (!hand_over(u, run, b[i])) break;
    run.passes.push_back(std::move(pass)), run.statements.push_back(&b[i]);
    run.touched.insert(run.touched.end(), here.begin(), here.end());
  }
  return run;
}

bool is_far(const Unit& u, const Touch& t) {
  if (t.memory < 0 || t.write || !t.lanes) return false;
  const Memory& m = u.memory(t.memory);
  return m.home == kernel::Home::global && m.format == Format::f32 && m.size() * 4 >= u.o.stream_bytes;
}

// What was planned for one of the statements; else the last pass that reads far memory, which brings in what the
// others read later, asks a little ahead.
void fetch(Unit& u, const Run& run, const std::string& at) {
  std::string last;
  for (size_t s = 0; s < run.statements.size(); ++s)
    for (auto& p : u.prefetches)
      if (p.host == node_of(*run.statements[s])) {
        const Var axis = axis_of(*run.statements[s]);
        u.line("__builtin_prefetch(m" + std::to_string(p.memory) + " + " + text(without(p.at, axis)) + " + " + at +
               ", 0, 2);");
        last = "none";
      }
  if (!last.empty()) return;
  for (size_t s = 0; s < run.statements.size(); ++s) {
    std::vector<Touch> here;
    touches(u, *run.statements[s], axis_of(*run.statements[s]), here);
    for (auto& t : here)
      if (is_far(u, t))
        last = "__builtin_prefetch(m" + std::to_string(t.memory) + " + " +
               text(t.at + kernel::constant(ahead)) + " + " + at + ", 0, 3);";
  }
  if (!last.empty()) u.line(last);
}
} // namespace

size_t print_joint(Unit& u, const kernel::Block& b, size_t at) {
  if (u.lanes == 1 || axis_of(b[at]) < 0) return 0;
  const Run run = run_at(u, b, at);
  if (run.passes.size() < 2) return 0;
  u.open("");
  for (auto& p : run.passes) p->before();
  const std::string i = u.fresh("i"), step = number(most_chains * u.lanes);
  u.open("for (int64_t " + i + " = 0; " + i + " < " + number(run.passes[0]->axis().extent) + "; " + i + " += " + step +
         ")");
  for (int w = 0; w < most_chains; ++w) {
    const std::string here = w ? i + " + " + number(w * u.lanes) : i;
    u.open("");
    if (w * u.lanes % 16 == 0) fetch(u, run, here); // once a line
    for (size_t s = 0; s < run.passes.size(); ++s) {
      for (auto& h : run.handed)
        if (h.to == s) run.passes[s]->at_hand(h.ref, run.passes[h.from]->value(h.k));
      run.passes[s]->compute(run.passes[s]->ways() > 1 ? w : 0, here);
    }
    // All reads before all writes: a read of the same place of another page waits for a write, as if it were one.
    for (auto& p : run.passes) p->store();
    u.close();
  }
  u.close();
  for (auto& p : run.passes) u.open(""), p->after(), u.close();
  u.close();
  return run.passes.size();
}

} // namespace tang::emit
