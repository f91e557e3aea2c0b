// What is known of a kernel of rows from all of its statements.
#include <algorithm>

#include "tang/emit/gpu_walk.hpp"

namespace tang::emit {

namespace {
using kernel::Kernel;
using kernel::Stmt;

// The references of a statement of rows; nothing of any other.
const std::vector<Ref>* reads(const Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) return &a->body.refs;
  auto* f = std::get_if<kernel::Fold>(&s.node);
  return f ? &f->body.refs : nullptr;
}

const std::vector<Ref>* writes(const Stmt& s) {
  if (auto* a = std::get_if<kernel::Apply>(&s.node)) return &a->dst;
  auto* f = std::get_if<kernel::Fold>(&s.node);
  return f ? &f->dst : nullptr;
}

// Reads and writes no array that lanes move.
bool is_aside(const Stmt& s) {
  return std::holds_alternative<kernel::Let>(s.node) || std::holds_alternative<kernel::Barrier>(s.node);
}

bool is_of(const Ref& r, int memory) { return r.memory == memory; }
} // namespace

const Deal& deal_of(const Stmt& s) {
  auto* a = std::get_if<kernel::Apply>(&s.node);
  return a ? a->deal : std::get<kernel::Fold>(s.node).deal;
}

bool is_read_once(const Kernel& k, const Ref& r, const std::vector<TileAxis>& rows) {
  if (k.memories[size_t(r.memory)].access != kernel::Access::read || !pure(r)) return false;
  int64_t reads_of = 0;
  for (auto& s : k.body) {
    const auto* in = reads(s);
    if (!in && !is_aside(s)) return false;
    if (in) reads_of += std::count_if(in->begin(), in->end(), [&](auto& x) { return is_of(x, r.memory); });
  }
  auto moves = [&](Var v) {
    return std::any_of(r.index.begin(), r.index.end(), [&](auto& c) { return coefficient(c.affine, v) != 0; });
  };
  for (auto& g : k.grid)
    if (g.extent > g.step && !moves(g.var)) return false;
  return reads_of == 1 && std::all_of(rows.begin(), rows.end(), [&](auto& a) { return a.extent == 1 || moves(a.var); });
}

bool stores_rows(const Kernel& k) {
  return std::any_of(k.body.begin(), k.body.end(), [&](auto& s) {
    auto* a = std::get_if<kernel::Apply>(&s.node);
    return a && a->deal.team && !a->deal.each && std::any_of(a->dst.begin(), a->dst.end(), [&](auto& r) {
             return k.memories[size_t(r.memory)].home == Home::global;
           });
  });
}

bool is_for_first_lane(const Kernel& k, const Stmt& s) {
  if (!writes(s) || !deal_of(s).each || deal_of(s).team <= k.subgroup) return false;
  const auto at = std::find_if(k.body.begin(), k.body.end(), [&](auto& x) { return &x == &s; });
  if (at == k.body.end()) return false;
  return std::all_of(writes(s)->begin(), writes(s)->end(), [&](const Ref& to) {
    const Memory& m = k.memories[size_t(to.memory)];
    if (m.home == Home::global) return true;
    return m.home == Home::register_ && std::all_of(k.body.begin(), k.body.end(), [&](const Stmt& x) {
      const auto* in = reads(x);
      if (!in) return is_aside(x);
      const bool any = std::any_of(in->begin(), in->end(), [&](auto& r) { return is_of(r, to.memory); });
      return !any || (&x > &*at && is_for_first_lane(k, x));
    });
  });
}

} // namespace tang::emit
