#include "tang/kernel/early.hpp"

#include <algorithm>

#include "tang/kernel/distribute.hpp"

namespace tang::kernel {

namespace {
// References that reference r is made of, itself among them.
void needs(const Body& b, int r, std::vector<int>& out) {
  for (auto& c : b.refs[size_t(r)].index)
    for (auto& x : c.refs) needs(b, x.first, out);
  out.push_back(r);
}

bool is_argument(const Kernel& k, const Ref& r) {
  const Memory& m = k.memories[size_t(r.memory)];
  return m.home == Home::global && m.access == Access::read;
}

// A real value that needs only arguments.
bool can_wait_less(const Kernel& k, const Body& b, int r) {
  std::vector<int> all;
  needs(b, r, all);
  return expr::type_of(k.memories[size_t(b.refs[size_t(r)].memory)].format) == Type::real &&
         std::all_of(all.begin(), all.end(), [&](int x) { return is_argument(k, b.refs[size_t(x)]); });
}

// Who reads r for nothing but a value of its terms.
bool is_value_alone(const Body& b, int r) {
  auto names = [&](const std::vector<Coordinate>& at) {
    return std::any_of(at.begin(), at.end(), [&](auto& c) {
      return std::any_of(c.refs.begin(), c.refs.end(), [&](auto& x) { return x.first == r; });
    });
  };
  for (auto& x : b.refs)
    if (names(x.index)) return false;
  for (auto& g : b.guards)
    for (auto& piece : g)
      if (names(piece)) return false;
  return true;
}

// The copy of a's reference r to a new tile, over the same rows, which `a` reads instead.
Apply copy(Kernel& k, Apply& a, int r) {
  Memory tile;
  tile.name = "early" + std::to_string(k.memories.size());
  tile.home = Home::register_;
  tile.format = k.compute;
  for (auto& x : a.axes) tile.shape.push_back(x.extent);
  if (tile.shape.empty()) tile.shape = {1};
  tile.strides = row_major(tile.shape);
  tile.access = Access::read_write;
  tile.team = Team::workgroup;
  tile.lanes = Lanes::replicated;
  Ref to;
  to.memory = k.add(std::move(tile));
  if (a.axes.empty()) to.index.push_back({constant(0), {}});
  for (auto& x : a.axes) to.index.push_back({variable(x.var), {}});
  Apply out = a;
  out.dst = {to};
  std::vector<int> all; // what it is made of, and nothing else of the statement
  needs(a.body, r, all);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  auto place = [&](int x) { return int(std::find(all.begin(), all.end(), x) - all.begin()); };
  out.body = {};
  for (int x : all) {
    out.body.refs.push_back(a.body.refs[size_t(x)]);
    for (auto& c : out.body.refs.back().index)
      for (auto& from : c.refs) from.first = place(from.first);
  }
  out.body.values = {k.pool->leaf(expr::Op::arg, Type::real, place(r))};
  out.fill = {};
  for (auto& x : out.axes) {
    const Var old = x.var;
    x.var = k.fresh("row");
    auto rename = [&](Ref& ref) {
      for (auto& c : ref.index) c.affine = replaced(c.affine, old, variable(x.var));
    };
    for (auto& c : out.bounds) c.affine = replaced(c.affine, old, variable(x.var));
    rename(out.dst[0]);
    for (auto& ref : out.body.refs) rename(ref);
  }
  a.body.refs[size_t(r)] = to;
  return out;
}
} // namespace

void read_early(Kernel& k) {
  const auto first = std::find_if(k.body.begin(), k.body.end(), [](auto& s) { return std::holds_alternative<Fold>(s.node); });
  const size_t at = size_t(first - k.body.begin());
  Block early;
  for (size_t s = at; s < k.body.size(); ++s) {
    if (std::holds_alternative<Let>(k.body[s].node)) return; // what follows may be read at it
    auto* a = std::get_if<Apply>(&k.body[s].node);
    if (!a || !a->deal.each || a->body.when || !a->partial.empty() || gathers(a->bounds)) continue;
    for (int r = 0; r < int(a->body.refs.size()); ++r)
      if (can_wait_less(k, a->body, r) && is_value_alone(a->body, r)) early.push_back({copy(k, *a, r)});
  }
  k.body.insert(k.body.begin() + long(at), early.begin(), early.end());
}

} // namespace tang::kernel
