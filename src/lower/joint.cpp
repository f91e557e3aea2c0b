#include "tang/lower/joint.hpp"

#include <numeric>

#include "tang/plan/plan.hpp"

namespace tang::lower {

using ir::Comp;
using plan::Group;
using plan::Member;
using plan::Role;

namespace {
constexpr int64_t nominal_block = 128;  // elements of a blocked axis: two score tiles and the packed operands stay in the second level
constexpr int64_t join_words = 1;       // a partial result's word, in units of ..
constexpr int64_t term_words = 64;      // .. words that adding one term to a contraction is worth

bool is_point(const Comp& n, const Member& m, int core) {
  const auto at = std::find(m.axis.begin(), m.axis.end(), core);
  return at != m.axis.end() && size_t(at - m.axis.begin()) < n.points.size();
}
bool is_fold(const Comp& n, const Member& m, int core) {
  return std::find(m.axis.begin() + int64_t(n.points.size()), m.axis.end(), core) != m.axis.end();
}
int64_t round_to(int64_t v, int64_t to) { return (v + to - 1) / to * to; }
int64_t blocks(const Group& group, const Choice& c, size_t a) { return (group.extent[a] + c.tile[a] - 1) / c.tile[a]; }
}  // namespace

std::vector<int> walked_axes(const ir::Graph& g, const Group& group) {
  std::vector<int> out;
  for (size_t a = 0; a < group.extent.size(); ++a)
    if (group.role[a] == Role::grid &&
        std::any_of(group.members.begin(), group.members.end(), [&](auto& m) { return is_fold(*g[m.node].comp(), m, int(a)); }))
      out.push_back(int(a));
  std::stable_sort(out.begin(), out.end(), [&](int a, int b) { return group.extent[size_t(a)] < group.extent[size_t(b)]; });
  return out;
}

int columns_of_joint(const Comp& n, const std::set<int>& points, const std::vector<int>& core, const std::vector<int>& walked,
                     int otherwise) {
  const bool member = std::any_of(core.begin(), core.begin() + int64_t(n.points.size()), [](int c) { return c < 0; });
  int best = -1;
  for (int a : points) {
    const int c = core[size_t(a)];
    const bool fits = member ? c < 0 : std::find(walked.begin(), walked.end(), c) != walked.end();
    if (fits && (best < 0 || n.extent(a).value() > n.extent(best).value())) best = a;
  }
  return best < 0 ? otherwise : best;
}

void joint_tiles(const ir::Graph& g, const Group& group, const target::Target& t, const std::vector<char>& is_m,
                 const std::vector<char>& is_n, Choice& c) {
  c.rows = t.vector_registers >= 32 ? 12 : 6;
  c.vectors = 2;
  c.tile.assign(group.extent.size(), 1);
  for (size_t a = 0; a < group.extent.size(); ++a) {
    if (!is_m[a] && !is_n[a]) continue;
    // Even blocks; whole panels where the axis lies along vectors.
    const int64_t e = std::max<int64_t>(1, group.extent[a]), n = (e + nominal_block - 1) / nominal_block;
    c.tile[a] = round_to((e + n - 1) / n, is_n[a] ? c.columns() : 4);
  }
  split_joint(g, group, t, {}, c);
}

void need_whole_blocks(const ir::Graph& g, const Group& group, const std::vector<char>& is_m,
                       const std::vector<char>& is_n, const Choice& c) {
  for (size_t k = 0; k < group.members.size() && c.walked.empty(); ++k) {
    const plan::Member& m = group.members[k];
    if (m.flush == plan::Flush::store || c.members[k].contractions.empty()) continue;
    for (size_t a = 0; a < g[m.node].comp()->points.size(); ++a) {
      const int core = m.axis[a];
      const size_t x = size_t(core);
      if (core < 0 || group.role[x] != Role::looped || !(is_m[x] || is_n[x])) continue;
      const int64_t unit = is_m[x] ? c.rows : c.columns();
      if (c.tile[x] % unit == 0 && group.extent[x] % c.tile[x] == 0) continue;
      const std::string name = g.label({m.node, 0}), whole = std::to_string(group.extent[x]);
      throw Error(
          {},
          "the schedule loops over axis " + std::to_string(x) + " of '" + name + "' in blocks of " +
              std::to_string(c.tile[x]),
          {{"a register block takes " + std::to_string(unit) + " of its " + whole, {}}},
          "put the axis on the grid, or give it blocks that both fit");
    }
  }
}

namespace {
// The longest time that one of `workers` computes, of `sets` x `parts` workgroups that are taken in order: part p of a tied axis
// has the more work the earlier or the later it is.
double span(int64_t sets, int64_t parts, int64_t workers, bool tied) {
  std::vector<double> busy(size_t(std::max<int64_t>(1, workers)), 0);
  for (int64_t s = 0; s < std::min<int64_t>(sets, 4 * workers); ++s)
    for (int64_t p = 0; p < parts; ++p)
      *std::min_element(busy.begin(), busy.end()) += tied ? double(2 * (parts - p) - 1) / double(parts * parts) : 1 / double(parts);
  return *std::max_element(busy.begin(), busy.end()) * double(sets) / double(std::min<int64_t>(sets, 4 * workers));
}
bool is_tied(const ir::Graph& g, const Group& group, int core) {
  for (auto& m : group.members)
    for (auto& piece : g[m.node].comp()->domain)
      for (auto& bound : piece) {
        bool it = false, other = false;
        for (auto& term : bound.axes) (m.axis[size_t(term.first)] == core ? it : other) = true;
        if (it && other) return true;
      }
  return false;
}
}  // namespace

void split_joint(const ir::Graph& g, const Group& group, const target::Target& t, std::optional<int> told, Choice& c) {
  int64_t sets = 1, terms = 1;
  for (size_t a = 0; a < group.extent.size(); ++a) {
    if (group.role[a] == Role::grid && !c.walks(int(a))) sets *= blocks(group, c, a);
    terms *= std::max<int64_t>(1, group.extent[a]);
  }
  if (sets == 0) return;
  c.split = -1;
  c.parts = 1;
  double least = 0;
  for (int a : c.walked)
    for (int64_t parts = 1; parts <= std::min<int64_t>(blocks(group, c, size_t(a)), 4 * t.workers); ++parts) {
      const int64_t whole = blocks(group, c, size_t(a)), each = (whole + parts - 1) / parts;
      if ((whole + each - 1) / each != parts || (told && parts != std::min<int64_t>(*told, whole))) continue;
      double words = 0;
      bool possible = true;
      for (auto& m : group.members) {
        const Comp& n = *g[m.node].comp();
        if (!is_fold(n, m, a)) continue;
        for (auto& o : n.outs) {
          double v = 1;
          for (int x : o.axes) v *= double(n.extent(x).value());
          words += v;
          possible &= o.view.empty() || parts == 1;
        }
      }
      if (!possible) continue;
      const double work = double(terms) / double(sets) * double(term_words);
      const double cost = work * span(sets, parts, t.workers, is_tied(g, group, a)) +
                          (parts > 1 ? double(join_words) * words * double(2 * parts + 1) / double(t.workers) : 0);
      if (c.split >= 0 && cost >= least) continue;
      least = cost;
      c.split = a;
      c.parts = parts;
      c.part = each * c.tile[size_t(a)];
    }
}

std::vector<int> loop_axes(const Group& group, const Choice& c) {
  std::vector<int> out = c.walked;
  for (size_t a = 0; a < group.extent.size(); ++a)
    if (is_loop(group, c, a)) out.push_back(int(a));
  return out;
}
size_t depth_of(const std::vector<int>& loops, const Member& m, const Comp& n) {
  size_t d = 0;
  while (d < loops.size() && is_point(n, m, loops[d])) ++d;
  return d;
}
bool returns(const std::vector<int>& loops, const Member& m, const Comp& n) {
  for (size_t d = depth_of(loops, m, n); d < loops.size(); ++d)
    if (is_point(n, m, loops[d])) return true;
  return false;
}
bool is_partial(const Choice& c, const Member& m, const Comp& n) { return c.parts > 1 && is_fold(n, m, c.split); }

}  // namespace tang::lower
