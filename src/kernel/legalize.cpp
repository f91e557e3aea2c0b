#include "tang/kernel/legalize.hpp"

#include <algorithm>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/analyze.hpp"
#include "tang/kernel/barriers.hpp"
#include "tang/kernel/distribute.hpp"
#include "tang/kernel/ranges.hpp"

namespace tang::kernel {

void choose_block(Contract& c, const target::Target& t) {
  int64_t rows = 1;
  for (auto& a : c.m) rows *= a.extent;
  const int64_t run = c.n.empty() ? 1 : c.n.back().extent;
  double best = 0;
  Contract out = c;
  for (int vectors = 1; vectors <= std::max<int64_t>(1, run / std::max(1, t.lanes)); ++vectors)
    for (int height = 1; height <= rows; ++height) {
      Contract x = c;
      x.rows = height;
      x.vectors = vectors;
      if (registers(x) > t.vector_registers) break;
      const double gain =
          double(height) * vectors / (height + vectors) - (rows % height ? 0.25 : 0); // a ragged last block
      if (gain > best) {
        best = gain;
        out = x;
      }
    }
  c = out;
}
int choose_vector(const Kernel& k, const std::vector<TileAxis>& axes, const std::vector<const Ref*>& writes,
                  const std::vector<const Ref*>& reads) {
  auto moves_by = [&](const Ref& r, Var v) -> std::optional<int64_t> {
    const auto a = address(k, r);
    if (!a) return {};
    for (auto& [x, c] : a->terms)
      if (x == v) return c;
    return 0;
  };
  for (size_t x = axes.size(); x-- > 0;) {
    if (axes[x].extent < 2) continue;
    const bool stores =
        std::all_of(writes.begin(), writes.end(), [&](auto* r) { return moves_by(*r, axes[x].var) == 1; });
    const bool loads = std::all_of(reads.begin(), reads.end(), [&](auto* r) {
      const auto c = moves_by(*r, axes[x].var);
      return c && (*c == 0 || *c == 1);
    });
    if (stores && loads && !writes.empty()) return int(x);
  }
  return -1;
}

namespace {
constexpr int least_rows = 2; // of a register block: fewer read as much as they multiply

std::vector<const Ref*> pointers(const std::vector<Ref>& r) {
  std::vector<const Ref*> out;
  for (auto& x : r) out.push_back(&x);
  return out;
}
// Bounds that read an index after those that say where it may be read: they are tested in order.
void reads_last(Bounds& b) {
  std::stable_partition(b.begin(), b.end(), [](const Coordinate& x) { return x.refs.empty(); });
}
void reads_last(Block& b) {
  auto in = [](auto& x) {
    reads_last(x.bounds);
    for (Bounds& one : x.partial) reads_last(one);
    for (auto& any : x.body.guards)
      for (Bounds& one : any) reads_last(one);
  };
  for (auto& s : b)
    std::visit(Match{[&](Apply& x) { in(x); }, [&](Fold& x) { in(x), reads_last(x.limits); },
                     [](Loop& x) { reads_last(x.body); }, [](If& x) { reads_last(x.then); }, [](auto&) {}},
               s.node);
}
Kernel expanded(const Kernel& k) {
  Kernel out = expand_pipelines(k);
  reads_last(out.body);
  return out;
}
Block legal(const Kernel& k, const Block& b, const target::Target& t) {
  Block out;
  for (auto& s : b) {
    Stmt to = s;
    bool keep = true;
    std::visit(
        Match{[&](Apply& x) {
                if (x.vector < 0) x.vector = choose_vector(k, x.axes, pointers(x.dst), pointers(x.body.refs));
              },
              [&](Fold& x) { // kept axes only: lanes along a folded axis would change the order of the fold
                if (x.vector < 0 && !x.search) x.vector = choose_vector(k, x.kept, pointers(x.dst), pointers(x.body.refs));
              },
              [&](Contract& x) {
                if (x.rows == 1 && x.vectors == 1) choose_block(x, t);
              },
              [&](Barrier&) { keep = false; }, [](Let&) {}, [&](Loop& x) { x.body = legal(k, x.body, t); },
              [&](If& x) { x.then = legal(k, x.then, t); },
              [](Pipeline&) { bug(__FILE__, __LINE__, "a pipeline after expansion"); }},
        to.node);
    if (keep) out.push_back(std::move(to));
  }
  return out;
}
int64_t register_blocks(const Contract& c, int64_t lanes) {
  auto blocks = [](const std::vector<TileAxis>& axes, int64_t size) {
    int64_t n = ceil_div(axes.back().extent, size);
    for (size_t a = 0; a + 1 < axes.size(); ++a) n *= axes[a].extent;
    return n;
  };
  return blocks(c.m, c.rows) * blocks(c.n, c.vectors * lanes);
}
// Every subgroup has a register block, where smaller ones are enough for that.
void spread(Contract& c, const target::Target& t) {
  const int64_t subgroups = t.workgroup_limit / t.lanes;
  while (register_blocks(c, t.lanes) < subgroups) {
    Contract half = c;
    if (c.vectors > 1) half.vectors = (c.vectors + 1) / 2;
    else if (c.rows > least_rows && c.rows % 2 == 0) half.rows = c.rows / 2;
    if (register_blocks(half, t.lanes) == register_blocks(c, t.lanes)) return;
    c = half;
  }
}
void fix_blocks(Block& b, const target::Target& t) {
  for (auto& s : b)
    std::visit(Match{[&](Contract& x) {
                       if (x.rows == 1 && x.vectors == 1) choose_block(x, t);
                       spread(x, t);
                     },
                     [&](Loop& x) { fix_blocks(x.body, t); }, [&](If& x) { fix_blocks(x.then, t); }, [](auto&) {}},
               s.node);
}
Result<Kernel> shared_among_lanes(const Kernel& k, const target::Target& t) {
  const int lanes = k.lanes / k.cluster;
  const bool fits = k.cluster <= t.cluster && (lanes == t.workgroup_limit || (lanes > 1 && lanes <= t.long_row_lanes));
  if (fits && k.subgroup == t.lanes) return k;
  if (k.lanes > 1) return Refusal{"the kernel is for " + std::to_string(k.lanes) + " lanes, target " + t.name + " runs " + std::to_string(t.workgroup_limit)};
  if (t.lanes < 1 || t.workgroup_limit % t.lanes) return Refusal{"the workgroup of target " + t.name + " is no whole number of subgroups"};
  Kernel out = expanded(k);
  fix_blocks(out.body, t);
  out = place_barriers(distribute(out, t));
  if (const int64_t bytes = tile_bytes(out); t.fast_memory && bytes > t.fast_memory)
    return Refusal{"its tiles take " + std::to_string(bytes) + " bytes of a workgroup's " + std::to_string(t.fast_memory)};
  return out;
}
// What a target has not: a reason, or nothing.
std::optional<std::string> lacking(const Kernel& k, const target::Target& t) {
  int64_t globals = 0;
  if (k.compute == Format::f64 && !t.f64) return "target " + t.name + " has no arithmetic in f64";
  for (auto& m : k.memories) {
    if (m.format == Format::f64 && !t.f64) return "target " + t.name + " has no f64, and " + m.name + " holds it";
    if (m.home != Home::global) continue;
    ++globals;
    if (mul_saturated(m.size(), expr::row(m.format).bits) / 8 > t.binding_bytes)
      return m.name + " takes more than the " + std::to_string(t.binding_bytes) + " bytes that a kernel of target " + t.name + " can name at once";
  }
  if (!t.index64)
    if (auto why = beyond_32_bits(k)) return *why + ", and target " + t.name + " has no wider integers";
  if (globals > t.storage_bindings)
    return "it names " + std::to_string(globals) + " memories, target " + t.name + " binds " + std::to_string(t.storage_bindings);
  return {};
}

}  // namespace

Result<Kernel> try_legalize(const Kernel& k, const target::Target& t) {
  if (auto why = lacking(expand_pipelines(k), t)) return Refusal{*why};
  if (t.workgroup_limit > 1) return shared_among_lanes(k, t);
  if (k.lanes > 1) return Refusal{"target " + t.name + " runs one lane a workgroup, the kernel is for " + std::to_string(k.lanes)};
  Kernel out = expanded(k);
  out.body = legal(out, out.body, t);
  return out;
}
Kernel legalize(const Kernel& k, const target::Target& t) {
  const auto r = try_legalize(k, t);
  if (!r) throw Error({}, "the kernel cannot run on this target", {{r.why(), {}}}, "choose another target");
  return *r;
}

}  // namespace tang::kernel
