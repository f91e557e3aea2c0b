#include <algorithm>
#include <functional>

#include "tang/kernel/expander.hpp"

// Without roles: all lanes copy operands into the rings, so many slots ahead of what they contract, and meet once for
// each slot. A meeting says two things: the copies for the next slot, which every lane waited for, are there; and all
// are done with the slot before it, which is filled again at once.
namespace tang::kernel::role {

namespace {
constexpr int64_t fragment_rows = 16;   // of an instruction's rows' operand, or two instructions' columns
constexpr int64_t operand_registers = 4; // of such an operand
constexpr int64_t chunk = 16;            // bytes that a lane copies at once

void each_statement(kernel::Block& b, const std::function<void(kernel::Stmt&)>& f) {
  for (auto& s : b) {
    if (auto* p = std::get_if<Pipeline>(&s.node)) each_statement(p->body, f);
    if (auto* l = std::get_if<kernel::Loop>(&s.node)) each_statement(l->body, f);
    f(s);
  }
}

std::vector<Ref> refs_of(const kernel::Stmt& s) {
  std::vector<Ref> out;
  auto all = [&](const Body& b, const std::vector<Ref>& dst) {
    out = b.refs;
    out.insert(out.end(), dst.begin(), dst.end());
  };
  if (auto* a = std::get_if<Apply>(&s.node)) all(a->body, a->dst);
  if (auto* f = std::get_if<Fold>(&s.node)) all(f->body, f->dst);
  if (auto* c = std::get_if<Contract>(&s.node)) out = {c->dst, c->a};
  return out;
}
} // namespace

Result<Kernel> shared_columns(const Kernel& k, int across) {
  Kernel out = k;
  std::set<Var> columns;
  std::string why;
  each_statement(out.body, [&](kernel::Stmt& s) {
    for (auto& r : refs_of(s)) {
      const Memory& m = k.memories[size_t(r.memory)];
      const FragmentShape shape = m.home == Home::fragment ? fragment_shape(m) : FragmentShape{};
      if (shape.column_dim < 0) continue;
      if (shape.columns % (across * fragment_rows)) why = "columns are no multiple of what subgroups share";
      const Affine& at = r.index[size_t(shape.column_dim)].affine;
      if (at.c || at.terms.size() != 1) why = "a statement reads columns of another subgroup";
      for (auto& t : at.terms) columns.insert(t.first);
    }
  });
  auto narrow = [&](std::vector<TileAxis>& axes) {
    for (auto& x : axes)
      if (columns.count(x.var)) x.extent /= across;
  };
  each_statement(out.body, [&](kernel::Stmt& s) {
    if (auto* a = std::get_if<Apply>(&s.node)) narrow(a->axes);
    if (auto* c = std::get_if<Contract>(&s.node)) {
      narrow(c->n);
      for (auto& x : c->k)
        if (columns.count(x.var)) why = "a contraction needs the columns of other subgroups";
    }
    if (auto* f = std::get_if<Fold>(&s.node))
      for (auto& x : f->folded)
        if (columns.count(x.var)) why = "a fold needs the columns of other subgroups";
  });
  for (Memory& m : out.memories) {
    const FragmentShape shape = m.home == Home::fragment ? fragment_shape(m) : FragmentShape{};
    if (shape.column_dim >= 0) m.shape[size_t(shape.column_dim)] /= across;
  }
  return why.empty() ? Result<Kernel>(std::move(out)) : Refusal{why};
}

std::string Expander::subgroups_refuse() const {
  if (f_.math % f_.across || parts_.rows != f_.rows())
    return "blocks have " + std::to_string(parts_.rows) + " rows for " + std::to_string(f_.math) + " subgroups of " +
           std::to_string(f_.team_rows()) + ", " + std::to_string(f_.across) + " of them beside each other";
  if (f_.skew || f_.turns || f_.reuse || f_.split > 1 || f_.cluster > 1 || f_.persist == target::Persist::dynamic)
    return "skew, turns, reuse, parts, clusters and a counter of work are of warpgroups";
  if (!parts_.outer.empty()) return "subgroups copy ahead in one loop";
  if (sums_integers()) return "subgroups sum no integers";
  for (auto& t : parts_.tiles) {
    if (t.vector || t.made) return "a tile of shared memory is no operand that was stored";
    const int64_t each = chunk * 8 / expr::row(k_.memories[size_t(t.memory)].format).bits;
    const Affine& at = t.source.index.back().affine;
    bool whole = at.c % each == 0;
    for (auto& [v, c] : at.terms) {
      const auto g = std::find_if(k_.grid.begin(), k_.grid.end(), [v = v](auto& x) { return x.var == v; });
      const int64_t by = v == parts_.pipe->var ? step() : g != k_.grid.end() ? g->step : v == t.column ? each : 1;
      whole &= c * by % each == 0;
    }
    if (!whole) return "columns of an operand do not begin at multiples of 16 bytes";
  }
  auto shares = [](int64_t n) { return n % 64 == 0 || 64 % n == 0; }; // of a box of columns
  for (auto& c : parts_.contracts) {
    const Format f = k_.memories[size_t(c.node->b.memory)].format;
    if (f != Format::bf16 && f != Format::f16 && f != Format::tf32) return "subgroups multiply no such operands";
    if (c.columns % fragment_rows) return "columns are no multiple of 16";
    if ((c.a >= 0 && !c.a_k_major && !shares(f_.team_rows())) || (!c.b_k_major && f_.across > 1 && !shares(c.columns)))
      return "subgroups share no box of columns";
  }
  return "";
}

// Rings are read one after the other in each block, and a slot is free when the next one is read.
std::string Expander::slots_refuse() const {
  const int64_t taken = held({}) * f_.tall + operand_registers * (f_.tall + 1) + spare_registers;
  if (taken > f_.math_registers) return "fragments take " + std::to_string(taken) + " registers of a lane";
  size_t events = 0;
  int before = -1, depth = 0;
  for (size_t c = 0; c < contract_ring_.size(); ++c) {
    const int r = contract_ring_[c];
    if (r < 0) continue;
    const int slots = p_.rings[size_t(r)].depth;
    if (before >= 0) {
      bool closed = false;
      for (size_t x = 0; x < c; ++x) closed |= std::count(closes_[x].begin(), closes_[x].end(), before) > 0;
      if (!closed) return "an operand is read after the next one has come";
      if (slots != depth) return "rings of subgroups have one depth";
    }
    before = r, depth = slots, ++events;
  }
  return events * size_t(depth) < 2 ? "no slot is free while one is read" : "";
}

// The first blocks' copies, in the order in which they are read: one less than there are slots. What stays for the whole
// loop comes with the first.
void Expander::copies_ahead(Block& to) {
  for (size_t r = 0; r < p_.rings.size(); ++r)
    if (!ring_tiles_[r].empty() && parts_.tiles[size_t(ring_tiles_[r][0])].hoisted) copies(int(r), constant(0), 0, to);
  const int64_t each = parts_.pipe->reverse ? -step() : step();
  const Affine begin = parts_.pipe->reverse ? last() - constant(step()) : first();
  const int64_t all = int64_t(events_.size()) * p_.rings[size_t(events_[0])].depth - 1;
  for (int64_t n = 0; n < all; ++n) {
    const int64_t block = n / int64_t(events_.size());
    When some{last() - first() - constant(block * step() + 1), {}, {}};
    copies(events_[size_t(n % int64_t(events_.size()))], begin + constant(block * each), int(block), some.then);
    put(to, std::move(some));
    put(to, Commit{});
  }
}

// After the event's slot was read, the one that was read before it is filled again: between the two, all lanes met. Beyond
// the loop's last block there is something or nothing to copy, and nobody reads it: a test would part the copies from the
// products that hide them.
void Expander::refill(size_t event, int contract, Block& to) {
  const int ring = events_[event ? event - 1 : events_.size() - 1], depth = p_.rings[size_t(ring)].depth;
  const int64_t on = event ? depth : depth - 1, each = parts_.pipe->reverse ? -step() : step();
  const bool advanced = ring == events_[event] && std::count(closes_[size_t(contract)].begin(), closes_[size_t(contract)].end(), ring);
  copies(ring, variable(parts_.pipe->var) + constant(on * each), depth - 1 - advanced, to);
  put(to, Commit{});
}

void Expander::subgroups_body(Block& to) {
  for (int r : contract_ring_)
    if (r >= 0) events_.push_back(r);
  if (f_.across > 1) p_.beside = parts_.contracts[0].columns;
  copies_ahead(to);
  for (auto& s : parts_.starts) put(to, by_row(s));
  std::vector<Flying> none;
  blocks(to, [&](bool partial, Block& b) {
    size_t event = 0;
    for (auto& own : parts_.pipe->body) {
      const kernel::Stmt* s = in_block(own, partial);
      if (!s) continue;
      const int c = contract_of(s);
      const bool reads = c >= 0 && contract_ring_[size_t(c)] >= 0;
      if (reads) {
        put(b, Arrived{int(int64_t(events_.size()) * p_.rings[size_t(events_[0])].depth - 2)});
        put(b, Meet{true});
      }
      walk({s}, none, b);
      if (reads) refill(event++, c, b);
      if (whole_at_) untested(own, b);
    }
  });
  put(to, Arrived{0}); // what nobody reads comes to slots that the next block of work fills
  ending(to);
  // The last slot that is read is none of those that are filled first; what stayed for the loop was read before the last
  // meeting, unless there is one a block.
  bool stays = false;
  for (auto& t : parts_.tiles) stays |= t.hoisted;
  if (stays && events_.size() == 1) put(to, Meet{true});
  advance_hoisted(to);
}

} // namespace tang::kernel::role
