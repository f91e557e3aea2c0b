#include "tang/tune/space.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tang/device/cache.hpp"
#include "tang/kernel/legalize.hpp"
#include "tang/lower/few_rows.hpp"
#include "tang/lower/group.hpp"
#include "tang/lower/tensor_choice.hpp"
#include "tang/text/schedule.hpp"

namespace tang::tune {

using schedule::GroupFields;
using schedule::Pack;
using schedule::Role;

namespace {
struct Change {
  std::string name; // changes of one field have one name: they exclude each other
  GroupFields fields;
  double price = 0; // s that the rule which made it says; 0: it says none
};

GroupFields merged(GroupFields a, const GroupFields& b) {
  for (auto& [k, v] : b.tile) a.tile[k] = v;
  for (auto& [k, v] : b.role) a.role[k] = v;
  if (b.rows) a.rows = b.rows;
  if (b.vectors) a.vectors = b.vectors;
  if (b.pack_a) a.pack_a = b.pack_a;
  if (b.pack_b) a.pack_b = b.pack_b;
  if (b.ways) a.ways = b.ways;
  if (b.parts) a.parts = b.parts;
  if (b.roles) a.roles = b.roles;
  return a;
}

struct Maker {
  const run::Derivation& d;
  const run::Options& o;
  const plan::Plan& plan; // the program's, or that of a recurrence's body
  const plan::Group& group;
  size_t step; // of the program
  const Machine& m;
  ir::Graph g = *plan.graph; // lowering adds terms to its pool
  lower::Choice now = lower::choose(g, group, o.schedule, o.target);
  std::vector<char> rows = std::vector<char>(group.extent.size(), 0), columns = rows, terms = rows;

  const ir::Comp& comp(ir::NodeId id) const { return *g[id].comp(); }

  bool contracts() {
    bool any = false;
    auto mark = [&](const lower::Contraction& c, const std::vector<int>& core) {
      any = true;
      auto put = [&](std::vector<char>& to, const std::vector<int>& axes) {
        for (int a : axes)
          if (size_t(a) < core.size() && core[size_t(a)] >= 0) to[size_t(core[size_t(a)])] = 1;
      };
      put(rows, c.sides.m), put(columns, c.sides.n), put(terms, c.sides.k);
    };
    for (size_t k = 0; k < group.shared.size(); ++k)
      if (now.shared[k]) mark(*now.shared[k], group.shared[k].axis);
    for (size_t k = 0; k < group.members.size(); ++k)
      for (auto& c : now.members[k].contractions) mark(c.second, group.members[k].axis);
    return any;
  }

  int64_t unit(size_t a, int64_t r, int64_t c) const {
    return rows[a] && columns[a] ? std::lcm(r, c) : rows[a] ? r : columns[a] ? c : 1;
  }

  void tiles(std::vector<Change>& out, size_t a, int64_t step, const std::vector<int64_t>& wanted) const {
    std::set<int64_t> seen = {now.tile[a]};
    for (int64_t t : wanted) {
      const int64_t whole = (group.extent[a] + step - 1) / step * step;
      const int64_t tile = std::clamp((t + step / 2) / step * step, step, std::max(step, whole));
      if (!seen.insert(tile).second) continue;
      GroupFields f;
      f.tile[int(a)] = tile;
      out.push_back({"tile " + std::to_string(a), f});
    }
  }

  std::vector<Change> changes() {
    std::vector<Change> out;
    const bool with_blocks = contracts();
    if (with_blocks) {
      static constexpr std::pair<int, int> shapes[] = {{14, 2}, {10, 2}, {8, 2}, {9, 3},  {8, 3},
                                                       {6, 4},  {5, 2},  {4, 3}, {24, 1}, {12, 1},
                                                       {6, 2},  {3, 4},  {4, 2}};
      for (auto [r, v] : shapes) {
        if (r * v + v + 1 > o.target.vector_registers || 3 * r * v < o.target.vector_registers) continue;
        if (r == now.rows && v == now.vectors) continue;
        GroupFields f;
        f.rows = r, f.vectors = v;
        // Rows and columns of a block are whole register blocks.
        for (size_t a = 0; a < group.extent.size(); ++a)
          if (rows[a] || columns[a]) {
            const int64_t u = unit(a, r, int64_t(v) * o.target.lanes);
            f.tile[int(a)] = std::max(u, (now.tile[a] + u / 2) / u * u);
          }
        out.push_back({"block", f});
      }
      for (Pack p : {Pack::tile, Pack::copy}) {
        GroupFields f;
        f.pack_b = p;
        out.push_back({"pack", f});
      }
    }
    for (size_t a = 0; a < group.extent.size(); ++a) {
      const int64_t t = now.tile[a];
      tiles(out, a, with_blocks ? unit(a, now.rows, now.columns()) : 1,
            {t / 4, t / 2, 3 * t / 4, 3 * t / 2, 2 * t, 4 * t});
    }
    if (now.split >= 0) // blocks of an axis that several workgroups share
      for (int p : {1, 2, 4, 8, 16})
        if (p != now.parts) {
          GroupFields f;
          f.parts = p;
          out.push_back({"parts", f});
        }
    for (int w : {1, 2, 8})
      if (w != now.ways && !with_blocks) {
        GroupFields f;
        f.ways = w;
        out.push_back({"ways", f});
      }
    return out;
  }

  // Of products with few rows, the columns of a workgroup.
  std::optional<lower::PricedChoice> few_rows() {
    return lower::few_rows(g, plan, group, o.schedule, o.target);
  }

  // The same with columns told: there may be such a form where the rule takes another.
  std::optional<lower::PricedChoice> few_rows_of(const GroupFields& f, int axis) {
    schedule::Schedule s = o.schedule;
    s.groups[schedule::key(g, group.members[0].node)] = f;
    auto few = lower::few_rows(g, plan, group, s, o.target);
    const int64_t n = f.tile.at(axis);
    if (few && few->tile[size_t(axis)] == n && n < group.extent[size_t(axis)]) return few;
    return {};
  }

  // Blocks and roles of a kernel of matrix instructions, in the order of the rule: its best first.
  std::vector<Change> role_changes() {
    std::vector<Change> out;
    for (int a = 0; a < int(group.extent.size()); ++a)
      for (int64_t n : {8, 16, 32, 64}) {
        GroupFields f;
        f.tile[a] = n;
        if (group.role[size_t(a)] != plan::Role::grid) continue;
        if (const auto few = few_rows_of(f, a)) out.push_back({"roles", f, few->seconds});
      }
    const auto all = lower::tensor_choices(g, plan, group,
                                           lower::choose(g, group, o.schedule, o.target, true), {}, o.target);
    if (!all) return out;
    for (auto& c : *all) {
      GroupFields f;
      f.roles = c.roles, f.vectors = 1;
      for (size_t a = 0; a < c.tile.size(); ++a) f.tile[int(a)] = c.tile[a];
      out.push_back({"roles", f, c.seconds});
    }
    return out;
  }

  bool inside() const { return &plan != &d.plan; } // a recurrence

  double times() const { // the group's kernels run once, or once a step of the recurrence
    if (!inside()) return 1;
    return double((*d.plan.graph)[*d.plan.steps[step].recur].recur()->steps.value());
  }

  // Of the group; of a recurrence everything that it runs.
  std::vector<lower::Lowered> kernels(const schedule::Schedule& s) const {
    std::vector<lower::Lowered> out;
    if (inside()) {
      lower::Program all = lower::lower(d.plan, s, o.target);
      for (auto& l : all.kernels)
        if (size_t(l.step) == step) out.push_back(std::move(l));
      return out;
    }
    ir::Graph graph = *plan.graph;
    std::vector<int64_t> temporaries;
    auto made =
        lower::lower_group(graph, plan, lower::top_level(graph, plan), group, s, o.target, temporaries);
    out = std::move(made.before);
    out.push_back(std::move(made.main));
    return out;
  }

  Result<Candidate> lowered(const GroupFields& fields, const std::string& key, double read,
                            double price = 0) {
    schedule::Schedule s = o.schedule;
    s.groups[key] = fields;
    try {
      std::vector<lower::Lowered> made = kernels(s);
      Candidate c;
      std::vector<const lower::Lowered*> all;
      std::string text;
      for (auto& l : made) {
        if (!l.roles) { // a kernel in tensor form is as it shall be
          auto k = kernel::try_legalize(l.kernel, o.target);
          if (!k) return Refusal{k.why()};
          l.kernel = std::move(*k);
        }
        text += kernel::print(l.kernel);
        if (l.roles) text += l.schedule;
        all.push_back(&l);
      }
      c.roles = made.back().roles.has_value();
      if (fields.roles && !c.roles) return Refusal{made.back().refused};
      c.fields = fields;
      c.text = device::digest(text);
      c.shown = made.size() > 1 ? made[0].schedule + "; " + made.back().schedule : made.back().schedule;
      c.work = work_of(all, m, read);
      c.estimated = (price > 0 ? price : estimate(c.work, m).seconds) * times();
      return c;
    } catch (const Error& e) { return Refusal{e.headline()}; }
  }
};
} // namespace

namespace {
// The group of a recurrence's body with the most terms: of those that one step runs, the one to choose for.
const plan::Group* largest(const plan::Plan& body) {
  const plan::Group* out = nullptr;
  double most = 0;
  for (auto& s : body.steps) {
    if (s.recur) continue;
    double terms = 0;
    for (auto& m : s.group.members) {
      double n = 1;
      for (auto& e : (*body.graph)[m.node].comp()->extents()) n *= double(e.value());
      terms += n;
    }
    if (terms > most) most = terms, out = &s.group;
  }
  return out;
}
} // namespace

Space space_of(const run::Derivation& d, const run::Options& o, size_t step, const Machine& m) {
  Space out;
  const plan::Step& s = d.plan.steps[step];
  const plan::Plan& plan = s.recur ? *s.body : d.plan;
  const plan::Group* const group = s.recur ? largest(plan) : &s.group;
  if (!group || group->members.empty()) return out;
  const ir::NodeId first = group->members[0].node;
  out.step = step;
  out.key = schedule::key(*plan.graph, first);
  out.label = plan.graph->label({first, 0});
  Maker maker{d, o, plan, *group, step, m};
  const auto* given = schedule::fields_of(o.schedule, *plan.graph, first);
  const GroupFields base = given ? *given : GroupFields{};
  const double read = read_bytes(d.plan, s);
  const auto automatic = maker.lowered(base, out.key, read);
  const auto few = maker.few_rows();
  out.ruled = automatic && !base.roles && (automatic->roles || few);
  const std::vector<Change> changes = out.ruled ? maker.role_changes() : maker.changes();
  std::vector<Change> all = {{"", base}};
  for (size_t a = 0; a < changes.size(); ++a) {
    all.push_back({"", merged(base, changes[a].fields), changes[a].price});
    for (size_t b = 0; b < a; ++b)
      if (changes[a].name != changes[b].name)
        all.push_back({"", merged(merged(base, changes[a].fields), changes[b].fields)});
  }
  all[0].price = out.ruled && few ? few->seconds : 0;
  struct Known {
    size_t at;
    bool priced;
  };
  std::map<std::string, Known> seen; // kernels
  for (auto& x : all) {
    auto c = maker.lowered(x.fields, out.key, read, x.price);
    if (!c) {
      out.refused.push_back(text::fields(x.fields) + ": " + c.why());
      continue;
    }
    const auto [known, is_new] = seen.emplace(c->text, Known{out.candidates.size(), x.price > 0});
    Known& k = known->second;
    if (is_new) {
      out.candidates.push_back(std::move(*c));
    } else if (x.price > 0 && !k.priced) { // the automatic one: the rule's own list has it with its price
      out.candidates[k.at].estimated = c->estimated, k.priced = true;
    }
  }
  if (out.candidates.size() > 1 && !out.ruled)
    std::stable_sort(out.candidates.begin() + 1, out.candidates.end(),
                     [](auto& a, auto& b) { return a.estimated < b.estimated; });
  return out;
}

schedule::Schedule untimed(const ir::Graph& written, const run::Options& o, const Machine& m) {
  const run::Derivation d = run::derive(written, o);
  schedule::Schedule out = o.schedule;
  for (size_t s = 0; s < d.plan.steps.size(); ++s) {
    const Space space = space_of(d, o, s, m);
    if (space.candidates.size() > 1 && !space.ruled &&
        space.candidates[1].estimated < space.candidates[0].estimated)
      out.groups[space.key] = space.candidates[1].fields;
  }
  return out;
}

GroupFields resolved(const run::Derivation& d, const run::Options& o, size_t step) {
  const plan::Group& group = d.plan.steps[step].group;
  ir::Graph g = *d.plan.graph;
  const auto few = lower::few_rows(g, d.plan, group, o.schedule, o.target);
  const lower::Choice c = few ? lower::Choice(*few) : lower::choose(g, group, o.schedule, o.target);
  GroupFields f;
  if (const auto* given = schedule::fields_of(o.schedule, g, group.members[0].node)) f = *given;
  for (size_t a = 0; a < c.tile.size(); ++a) {
    f.tile[int(a)] = c.tile[a];
    f.role[int(a)] = group.role[a];
  }
  f.rows = c.rows, f.vectors = c.vectors, f.ways = c.ways, f.pack_b = c.pack_b;
  if (c.split >= 0) f.parts = int(c.parts);
  for (auto& l : d.kernels.kernels)
    if (size_t(l.step) == step && l.roles && !f.roles) { // the first of the rule's that gave these roles
      Maker maker{d, o, d.plan, group, step, {}};
      for (auto& x : maker.role_changes())
        if (x.fields.roles == l.roles && !f.roles) f = merged(f, x.fields);
    }
  return f;
}

} // namespace tang::tune
