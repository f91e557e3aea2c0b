#include "tang/kernel/roles.hpp"

#include <algorithm>

#include "tang/kernel/expander.hpp"

namespace tang::kernel {

namespace role {
namespace {
// The memories that lanes read or write by address.
void globals_named(const Block& b, std::set<int>& out) {
  auto refs = [&](const Body& x) {
    for (auto& r : x.refs) out.insert(r.memory);
  };
  for (auto& s : b)
    std::visit(Match{[&](const Rows& x) {
                       const Touched t = touched(x.what);
                       out.insert(t.reads.begin(), t.reads.end()),
                           out.insert(t.writes.begin(), t.writes.end());
                     },
                     [&](const Flush& x) { refs(x.what.body); },
                     [&](const Add& x) { refs(x.what.body), out.insert(x.what.dst[0].memory); },
                     [&](const role::Let& x) { out.insert(x.what.ref.memory); },
                     [&](const Loop& x) { globals_named(x.body, out); },
                     [&](const When& x) { globals_named(x.then, out), globals_named(x.otherwise, out); },
                     [&](const Teams& x) { globals_named(x.body, out); },
                     [&](const Works& x) { globals_named(x.body, out); },
                     [&](const Join& x) { globals_named(x.then, out); }, [](const auto&) {}},
               s.node);
}
} // namespace

// ---- the producer
// ---------------------------------------------------------------------------------------------------
void Expander::fill(int ring, const Affine& at, Block& to) {
  put(to, Await{ring, false});
  put(to, Arm{ring});
  copies(ring, at, 0, to);
  if (!p_.rings[size_t(ring)].own) put(to, Advance{ring});
}

void Expander::copies(int ring, const Affine& at, int ahead, Block& to) {
  for (int t : ring_tiles_[size_t(ring)]) {
    const StagedTile& x = parts_.tiles[size_t(t)];
    for (int64_t b = 0; b < (x.vector ? 1 : boxes(x)); ++b) {
      std::vector<Affine> from;
      for (auto& c : x.source.index) {
        Affine a = replaced(replaced(c.affine, parts_.pipe->var, at), x.column, constant(b * box_columns(x)));
        for (auto& row : x.row) {
          a = replaced(a, row.var, t == shared_ ? variable(p_.rank, x.rows / f_.cluster) : constant(0));
          if (p_.rings[size_t(ring)].own && coefficient(c.affine, row.var)) a = a + variable(p_.team, atom);
        }
        from.push_back(a);
      }
      put(to, Load{ring, map_of_[size_t(t)], offset_[size_t(t)] + b * slot_rows(t) * line, from,
                   t == shared_ ? x.rows / f_.cluster * line : 0, ahead});
    }
  }
}

void Expander::fill_hoisted(Block& to) {
  for (size_t r = 0; r < p_.rings.size(); ++r) {
    if (ring_tiles_[r].empty() || !parts_.tiles[size_t(ring_tiles_[r][0])].hoisted) continue;
    if (!p_.rings[r].own) {
      fill(int(r), constant(0), to);
      continue;
    }
    Teams t;
    fill(int(r), constant(0), t.body);
    put(to, std::move(t));
    put(to, Advance{int(r)});
  }
}

void Expander::producer_body(Block& to) {
  const Affine hi = last(), lo = first(), t = variable(parts_.pipe->var);
  if (f_.skew) {
    const int r0 = contract_ring_[0], r1 = contract_ring_[1];
    When begin{hi - lo - constant(1), {}, {}}, rest = begin;
    fill(r0, hi - constant(step()), begin.then);
    put(to, std::move(begin));
    fill_hoisted(to);
    Loop l{parts_.pipe->var, hi - constant(2 * step()), lo, -step(), {}};
    fill(r0, t, l.body);
    fill(r1, t + constant(step()), l.body);
    put(rest.then, std::move(l));
    fill(r1, lo, rest.then);
    put(to, std::move(rest));
    return;
  }
  fill_hoisted(to);
  Block inner;
  Loop l = parts_.pipe->reverse ? Loop{parts_.pipe->var, hi - constant(step()), lo, -step(), {}}
                                : Loop{parts_.pipe->var, lo, hi, step(), {}};
  for (int r : contract_ring_)
    if (r >= 0 && !p_.rings[size_t(r)].made) fill(r, t, l.body);
  put(inner, std::move(l));
  around(std::move(inner), to);
}

// The outer loops, with `inner` in the innermost.
void Expander::around(Block inner, Block& to) const {
  for (size_t o = parts_.outer.size(); o-- > 0;) {
    const kernel::Loop& x = *parts_.outer[o];
    Loop l{x.var, x.begin, x.end, x.step, std::move(inner)};
    inner = {};
    put(inner, std::move(l));
  }
  to.insert(to.end(), inner.begin(), inner.end());
}

// ---- the math teams
// -------------------------------------------------------------------------------------------------
Window Expander::window(int tile, bool is_a, bool k_major) {
  const StagedTile& t = parts_.tiles[size_t(tile)];
  Window w;
  w.ring = rings_of_[size_t(tile)];
  w.at = offset_[size_t(tile)];
  w.k_major = k_major;
  const int64_t rows = slot_rows(tile), box = rows * line;
  const bool own = p_.rings[size_t(w.ring)].own;
  if (is_a && !own && !f_.tall) w.team = k_major ? atom * line : box; // 64 rows on, or the next box of 64 columns
  w.lead = k_major ? 1 : int(box / 16);
  const int64_t n =
      (k_major ? t.columns : t.rows) * expr::row(k_.memories[size_t(t.memory)].format).bits / 256;
  for (int64_t s = 0; s < n; ++s)
    w.steps.push_back(k_major ? s / 4 * (box / 16) + s % 4 * 2 : s * (2 * box_alignment / 16));
  return w;
}

int Expander::contract_of(const kernel::Stmt* s) const {
  auto* c = std::get_if<Contract>(&s->node);
  for (size_t i = 0; c && i < parts_.contracts.size(); ++i)
    if (parts_.contracts[i].node == c) return int(i);
  return -1;
}

void Expander::issue(size_t i, Block& to) {
  const ContractParts& c = parts_.contracts[i];
  Issue x;
  x.dst = c.node->dst.memory;
  x.a_tile = c.a < 0 ? c.node->a.memory : -1;
  if (c.a >= 0) x.a = window(c.a, true, c.a_k_major);
  x.b = window(c.b, false, c.b_k_major);
  x.n = int(c.columns);
  x.format = k_.memories[size_t(c.node->b.memory)].format;
  x.fresh = !c.node->accumulate;
  x.what = *c.node;
  x.b.steps.resize(size_t(c.terms * expr::row(x.format).bits / 256));
  put(to, std::move(x));
  for (int r : closes_[i]) put(to, Advance{r});
}

// The `n` oldest of what flies are complete: their tiles may be used, their slots overwritten.
void Expander::finish_first(size_t n, std::vector<Flying>& flying, Block& to) {
  Finish x{int(flying.size() - n), {}};
  Block kept, released;
  for (size_t i = 0; i < n; ++i) {
    const ContractParts& c = parts_.contracts[flying[i].contract];
    x.tiles.push_back(c.node->dst.memory);
    if (c.a < 0) x.tiles.push_back(c.node->a.memory);
    for (int r : closes_[flying[i].contract]) {
      // Of the block before, unless this block's last reader was issued since.
      const auto again = std::find_if(flying.begin(), flying.end(), [&](const Flying& y) {
        return !y.before && y.contract == flying[i].contract;
      });
      const int back = flying[i].before && again != flying.end() ? 2 : 1;
      put(flying[i].before ? kept : released, Release{r, back});
    }
  }
  put(to, std::move(x));
  if (!kept.empty()) put(to, When{beyond(1), std::move(kept), {}});
  to.insert(to.end(), released.begin(), released.end());
  flying.erase(flying.begin(), flying.begin() + int64_t(n));
}

// >= 0 in every block but the first `n` of a block of work; n is 1 where other loops go around.
Affine Expander::beyond(int64_t n) const {
  const Affine at = variable(parts_.pipe->var);
  Affine out =
      parts_.pipe->reverse ? last() - at - constant((1 + n) * step()) : at - first() - constant(n * step());
  for (auto* o : parts_.outer) out = out + variable(o->var, step());
  return out;
}

// Statements in order; a wait lands just before the first statement that touches what a contraction in flight
// writes, or overwrites the fragment that it reads.
void Expander::walk(const What& what, std::vector<Flying>& flying, Block& to) {
  for (auto* s : what) {
    if (const int c = contract_of(s); c >= 0) {
      issue(size_t(c), to);
      if (!f_.tall) flying.push_back({size_t(c)}); // a subgroup's are complete at once
      continue;
    }
    const Touched t = touched(*s);
    auto has = [](const std::vector<int>& v, int m) { return std::find(v.begin(), v.end(), m) != v.end(); };
    for (size_t j = flying.size(); j-- > 0;) {
      const ContractParts& c = parts_.contracts[flying[j].contract];
      if (has(t.reads, c.node->dst.memory) || has(t.writes, c.node->dst.memory) ||
          (c.a < 0 && has(t.writes, c.node->a.memory))) {
        finish_first(j + 1, flying, to);
        break;
      }
    }
    auto* a = std::get_if<Apply>(&s->node);
    const Home home = a ? k_.memories[size_t(a->dst[0].memory)].home : Home::fragment;
    if (home == Home::global) {
      store(*a, to);
      continue;
    }
    if (home == Home::shared) {
      make(*a, to);
      continue;
    }
    put(to, by_row(*s));
  }
}

// A statement as a block of the loop has it: in a full block partial bounds go, and then what copies a tile
// onto itself.
const kernel::Stmt* Expander::in_block(const kernel::Stmt& s, bool partial) {
  auto* a = std::get_if<Apply>(&s.node);
  if (partial || !a) return &s;
  if (a->body.values.size() == 1 && !a->body.when && a->bounds.empty()) {
    const expr::Term& v = (*k_.pool)[a->body.values[0]];
    if (v.op == expr::Op::arg && same_place(a->body.refs[size_t(v.whole)], a->dst[0])) return nullptr;
  }
  if (a->partial.empty()) return &s;
  Apply full = *a;
  full.partial.clear();
  whole_.push_back({std::move(full)});
  return &whole_.back();
}

// The body of a block without its contractions.
Expander::What Expander::stage(bool partial, bool touching_last, bool others) {
  What out;
  const int last_dst = parts_.contracts.back().node->dst.memory;
  for (auto& s : parts_.pipe->body) {
    const kernel::Stmt* kept = std::get_if<Contract>(&s.node) ? nullptr : in_block(s, partial);
    if (!kept) continue;
    const Touched t = touched(s);
    const bool touches = std::find(t.writes.begin(), t.writes.end(), last_dst) != t.writes.end();
    if (touches ? touching_last : others) out.push_back(kept);
  }
  return out;
}

void Expander::advance_hoisted(Block& to) {
  for (size_t r = 0; r < p_.rings.size(); ++r)
    if (!ring_tiles_[r].empty() && parts_.tiles[size_t(ring_tiles_[r][0])].hoisted) put(to, Advance{int(r)});
}

void Expander::release_hoisted(Block& to) {
  for (size_t r = 0; r < p_.rings.size(); ++r)
    if (!ring_tiles_[r].empty() && parts_.tiles[size_t(ring_tiles_[r][0])].hoisted)
      put(to, Release{int(r), 0});
}

void Expander::loops(int peeled, Block& to, const std::function<void(bool, Block&)>& body) {
  const Pipeline& p = *parts_.pipe;
  std::vector<const Segment*> order;
  for (auto& s : segments_)
    if (!(s.begin == s.end)) order.push_back(&s);
  if (!p.reverse) {
    for (auto* s : order) {
      Loop l{p.var, s->begin, s->end, step(), {}};
      body(s->partial, l.body);
      put(to, std::move(l));
    }
    return;
  }
  std::reverse(order.begin(), order.end());
  for (auto* s : order) {
    Affine from = s->end;
    if (peeled) {
      const Affine most = last() - constant(peeled * step());
      if (const Affine d = s->end - most; d.terms.empty()) {
        from = d.c > 0 ? most : s->end;
      } else {
        const Var v = fresh("from");
        put(to, role::Let{kernel::Let{v, kernel::Let::min, {s->end, most}, 1, {}}});
        from = variable(v);
      }
      if (const Affine d = from - s->begin; d.terms.empty() && d.c <= 0) continue;
    }
    Loop l{p.var, from - constant(step()), s->begin, -step(), {}};
    body(s->partial, l.body);
    put(to, std::move(l));
  }
}

void Expander::skewed(Block& to) {
  const kernel::Stmt *c0 = nullptr, *c1 = nullptr;
  for (auto& s : parts_.pipe->body)
    if (std::get_if<Contract>(&s.node)) (c0 ? c1 : c0) = &s;
  const int r0 = contract_ring_[0], r1 = contract_ring_[1];
  bool any_partial = false;
  for (auto& s : segments_) any_partial |= s.partial && !(s.begin == s.end);
  When some{last() - first() - constant(1), {}, {}};
  Block& in = some.then;
  std::vector<Flying> flying;
  put(in, Await{r0, true});
  put(in, role::Let{kernel::Let{parts_.pipe->var, kernel::Let::affine, {last() - constant(step())}, 1, {}}});
  What head = stage(any_partial, false, true);
  head.insert(head.begin(), c0);
  walk(head, flying, in);
  const What late = f_.late ? stage(false, true, false) : What{};
  loops(1, in, [&](bool partial, Block& b) {
    std::vector<Flying> up;
    put(b, Await{r0, true});
    if (f_.turns) put(b, Turn{Turn::take});
    What first_ = {c0};
    first_.insert(first_.end(), late.begin(), late.end());
    walk(first_, up, b);
    put(b, Await{r1, true});
    walk({c1}, up, b);
    if (f_.turns) put(b, Turn{Turn::give});
    walk(stage(partial, !f_.late, true), up, b);
    if (!up.empty()) finish_first(up.size(), up, b);
  });
  put(in, Await{r1, true});
  What tail = late;
  tail.push_back(c1);
  walk(tail, flying, in);
  finish_first(flying.size(), flying, in);
  put(to, std::move(some));
}

// The statements of one block as they stand; contractions stay in their places among the others.
void Expander::body_in_order(bool partial, std::vector<Flying>& flying, Block& to) {
  for (auto& own : parts_.pipe->body) {
    const kernel::Stmt* s = in_block(own, partial);
    if (!s) continue;
    const int c = contract_of(s), r = c >= 0 ? contract_ring_[size_t(c)] : -1;
    const bool turn = r >= 0 && f_.turns && parts_.contracts.size() == 1;
    if (r >= 0) {
      put(to, Await{r, true});
      if (turn) put(to, Turn{Turn::take});
      for (int t : ring_tiles_[size_t(r)])
        if (parts_.tiles[size_t(t)].vector)
          put(to, Locate{parts_.tiles[size_t(t)].memory, r, offset_[size_t(t)]});
    }
    walk({s}, flying, to);
    if (turn) put(to, Turn{Turn::give});
    if (whole_at_) untested(own, to);
  }
}

// What a block issues last runs on while the next one begins, as far as registers and slots allow.
std::vector<Expander::Flying> Expander::over_the_edge() {
  std::vector<Flying> left;
  Block unused;
  body_in_order(true, left, unused);
  for (auto& x : left) x.before = true;
  auto slots = [&] {
    for (auto& x : left)
      for (int r : closes_[x.contract])
        if (p_.rings[size_t(r)].depth < 2) return false;
    return f_.lag > 0;
  };
  while (!left.empty() && (!slots() || held(left) + spare() > f_.math_registers))
    left.erase(left.begin());
  return left;
}

void Expander::in_order(Block& to) {
  if (is_one_sum()) return one_sum(to);
  const std::vector<Flying> over = over_the_edge();
  Block inner;
  blocks(inner, [&](bool partial, Block& b) {
    std::vector<Flying> flying = over;
    body_in_order(partial, flying, b);
    if (flying.size() > over.size()) finish_first(flying.size() - over.size(), flying, b);
  });
  around(std::move(inner), to);
  if (over.empty()) return;
  Finish x{0, {}};
  When ran{last() - first() - constant(1), {}, {}};
  for (auto& o : over) {
    const ContractParts& c = parts_.contracts[o.contract];
    x.tiles.push_back(c.node->dst.memory);
    for (int r : closes_[o.contract]) put(ran.then, Release{r, 1});
  }
  put(to, std::move(x));
  if (!ran.then.empty()) put(to, std::move(ran));
}

void Expander::ending(Block& to) {
  std::vector<Flying> flying;
  for (int m : late_)
    for (auto& s : parts_.pipe->body)
      if (auto* f = std::get_if<Fold>(&s.node); f && f->dst[0].memory == m) put(to, Settle{m, f->combine[0]});
  What all;
  for (auto& s : parts_.finish) all.push_back(&s);
  if (f_.reuse) put(to, Meet{}); // every warp's reads of the slot are over
  if (f_.split == 1) return walk(all, flying, to);
  Join j{parts_.contracts[0].node->dst.memory, variable(tile_), {}, parts_ring_};
  walk(all, flying, j.then);
  if (joins_in_cluster()) {
    put(to, Meet{true}); // parts lie over the slots that other teams read
    put(to, Offer{j.dst, parts_ring_});
    put(to, Await{parts_ring_, true});
  }
  put(to, std::move(j));
  if (!joins_in_cluster()) return;
  put(to, Release{parts_ring_, 0});
  put(to, Advance{parts_ring_});
}

void Expander::math_body(Block& to) {
  for (auto& s : parts_.starts) put(to, by_row(s));
  Hold first;
  for (auto& c : parts_.contracts)
    if (c.node->accumulate) first.tiles.push_back(c.node->dst.memory);
  put(to, std::move(first));
  for (size_t r = 0; r < p_.rings.size(); ++r)
    if (!ring_tiles_[r].empty() && parts_.tiles[size_t(ring_tiles_[r][0])].hoisted)
      put(to, Await{int(r), true});
  (f_.skew ? skewed(to) : in_order(to));
  if (!f_.reuse) release_hoisted(to);
  ending(to);
  if (f_.reuse) {
    put(to, Flushed{false});
    release_hoisted(to);
  }
  advance_hoisted(to);
}

Result<Program> Expander::run() {
  auto parts = tensor_parts(k_);
  if (!parts) return Refusal{parts.why()};
  parts_ = std::move(*parts);
  segments_ = parts_.pipe->segments;
  p_.kernel = k_, p_.fields = f_;
  p_.team = fresh("team");
  if (parts_.contracts[0].node->m.size() > 1) row_ = fresh("row");
  if (const std::string why = roles_refuse(); !why.empty()) return Refusal{why};
  if (const std::string why = share(); !why.empty()) return Refusal{why};
  if (const auto why = place()) return Refusal{*why};
  if (const std::string why = fields_refuse(); !why.empty()) return Refusal{why};
  for (const kernel::Block* block : std::initializer_list<const kernel::Block*>{
           &parts_.starts, &parts_.pipe->body, &parts_.finish})
    for (auto& s : *block)
      if (const std::string why = adds(s) ? adds_refuse(s) : elsewhere(s); !why.empty()) return Refusal{why};
  for (auto& c : parts_.contracts)
    if (c.a < 0)
      for (int64_t s = 0; s < c.terms; s += 16) // 16-bit fragments only: see contract_parts
        if (!is_cast(wgmma_d(int(c.terms)), int(s), wgmma_a()).holds)
          return Refusal{"a fragment is not the next operand as it lies"};
  for (auto& s : parts_.pipe->body)
    if (auto* f = std::get_if<Fold>(&s.node);
        f && f->accumulate && f->dst.size() == 1 && (*k_.pool)[f->combine[0]].op == expr::Op::add) {
      bool scaled_only = true;
      for (auto& other : parts_.pipe->body) {
        const Touched t = touched(other);
        auto* a = std::get_if<Apply>(&other.node);
        const bool reads = std::count(t.reads.begin(), t.reads.end(), f->dst[0].memory);
        if (&other == &s || !reads) continue;
        const bool own = a && a->dst[0].memory == f->dst[0].memory &&
                         std::count(t.reads.begin(), t.reads.end(), f->dst[0].memory) == 1;
        scaled_only &= own && (*k_.pool)[a->body.values[0]].op == expr::Op::mul;
      }
      if (scaled_only) late_.push_back(f->dst[0].memory);
    }
  if (const std::string why = f_.split > 1 ? split() : ""; !why.empty()) return Refusal{why};
  p_.work = workgroups(k_) * f_.split;
  for (bool producer : f_.tall ? std::vector<bool>{false} : std::vector<bool>{true, false}) {
    Works w{producer, work_ring_, fresh("w"), {}, {}};
    decode(w);
    for (auto& s : parts_.lets) put(w.body, role::Let{std::get<kernel::Let>(s.node)});
    w.body.insert(w.body.end(), part_.begin(), part_.end());
    Block& to = producer ? p_.producer : p_.math;
    if (!producer && f_.turns) put(to, Turn{Turn::open});
    if (producer && parts_ring_ >= 0) { // the parts of the block before are read
      put(w.body, Await{parts_ring_, false});
      put(w.body, Advance{parts_ring_});
    }
    (producer ? producer_body(w.body) : f_.tall ? subgroups_body(w.body) : math_body(w.body));
    put(to, std::move(w));
    if (!producer && !f_.tall) put(to, Flushed{true});
  }
  std::set<int> named;
  globals_named(p_.math, named), globals_named(p_.producer, named);
  for (size_t m = 0; f_.tall && m < k_.memories.size(); ++m) named.insert(int(m)); // a kernel like any other
  for (int m : named)
    if (m >= 0 && k_.memories[size_t(m)].home == Home::global) p_.plain.push_back(m);
  return std::move(p_);
}
} // namespace role

Result<role::Program> expand_roles(const Kernel& k, const target::Roles& f, int64_t shared_limit) {
  if (!f.tall || f.across == 1) return role::Expander(k, f, shared_limit).run();
  const auto shared = role::shared_columns(k, f.across);
  return shared ? role::Expander(*shared, f, shared_limit).run() : Refusal{shared.why()};
}

} // namespace tang::kernel
