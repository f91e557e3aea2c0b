#include "tang/lower/group.hpp"

#include <algorithm>

#include "tang/base/number.hpp"
#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/kernel/distribute.hpp"
#include "tang/kernel/products.hpp"
#include "tang/kernel/rows.hpp"
#include "tang/kernel/windows.hpp"
#include "tang/lower/emitters.hpp"
#include "tang/lower/few_rows.hpp"
#include "tang/lower/fit.hpp"
#include "tang/lower/joint.hpp"
#include "tang/lower/reuse.hpp"
#include "tang/lower/segments.hpp"
#include "tang/lower/stagger.hpp"
#include "tang/lower/tensor.hpp"

namespace tang::lower {

using kernel::Apply;
using kernel::constant;
using kernel::Fold;
using kernel::variable;

namespace {

struct GroupLowerer {
  ir::Graph& g;
  const plan::Plan& p;
  const Surroundings& around;
  const plan::Group& group;
  const Choice choice;
  const target::Target& t;
  std::vector<int64_t>& temporaries;
  Frame f{g, p, around, group, choice, t};
  GroupKernels out = {};
  bool staggered = false;
  Emitters emitters{f, temporaries, out.before};
  const std::vector<int> loop = loop_axes(group, choice);
  const int axis = pipeline_axis(group, choice);
  const std::vector<std::optional<Key>> keys = keys_of_members();  // of a joint group

  const ir::Comp& comp(ir::NodeId id) const { return *g[id].comp(); }
  std::vector<std::optional<Key>> keys_of_members() const {
    std::vector<std::optional<Key>> out_;
    for (auto& m : group.members) out_.push_back(choice.walked.empty() ? std::nullopt : solved(g, m, comp(m.node)));
    return out_;
  }
  bool read_in_epilogues(ir::NodeId node) const {
    return std::any_of(group.epilogues.begin(), group.epilogues.end(), [&](const plan::Epilogue& e) {
      auto& args = comp(e.node).args;
      return std::any_of(args.begin(), args.end(), [&](const ir::Arg& a) { return a.from.node == node; });
    });
  }
  // Folds that finish in one statement write where they are stored; others keep their state in tiles.
  bool in_place(size_t m) const {
    return choice.members[m].kind == MemberForm::fold && !read_in_epilogues(group.members[m].node) && loop.empty();
  }
  bool is_map(size_t m) const { return choice.members[m].kind == MemberForm::map; }
  bool is_keyed(size_t m) const { return choice.members[m].kind == MemberForm::keyed; }
  size_t depth(size_t m) const { return depth_of(loop, group.members[m], comp(group.members[m].node)); }
  bool comes_back(size_t m) const { return returns(loop, group.members[m], comp(group.members[m].node)); }
  size_t depth(const plan::Epilogue& e) const {  // where what it reads is complete
    size_t d = 0;
    for (auto& a : comp(e.node).args)
      for (size_t m = 0; m < group.members.size(); ++m)
        if (group.members[m].node == a.from.node) d = std::max(d, depth(m));
    for (auto& a : comp(e.node).args)
      for (auto& other : group.epilogues)
        if (other.node == a.from.node) d = std::max(d, depth(other));
    return d;
  }
  void fix_whole_axes() {
    for (size_t a = 0; a < group.extent.size(); ++a)
      if (group.role[a] == plan::Role::looped && !is_loop(group, choice, a))
        f.head.push_back({kernel::Let{f.block[a], kernel::Let::affine, {constant(0)}, 1, {}}});
  }
  void state_tiles() {
    for (size_t m = 0; m < group.members.size(); ++m) {
      const plan::Member& member = group.members[m];
      const ir::Comp& n = comp(member.node);
      if (is_map(m) || is_keyed(m) || in_place(m)) continue;
      const bool apart = comes_back(m) && !emitters.adds_where_stored(member, choice.members[m]);
      if (apart || is_partial(choice, member, n)) emitters.partial_results(member, choice.members[m]);
      if (comes_back(m)) continue;
      for (uint32_t c = 0; c < n.lift.size(); ++c) emitters.state_tile(member, choice.members[m], c);
    }
    for (size_t x = 0; x < group.shared.size(); ++x) emitters.shared_tile(group.shared[x], choice.shared[x]);
  }
  // The body of one block of the pipeline, for one piece of the members' domain.
  void block(const ir::Domain* piece, kernel::Block& pre, kernel::Block& operands, kernel::Block& body) {
    emitters.begin_block();
    for (size_t x = 0; x < group.shared.size(); ++x) emitters.shared(group.shared[x], choice.shared[x], axis, pre, operands, body);
    std::vector<const ir::Domain*> domains;
    for (size_t m = 0; m < group.members.size(); ++m)
      domains.push_back(piece ? piece : keys[m] ? &keys[m]->domain : &comp(group.members[m].node).domain);
    if (!choice.walked.empty() || t.workgroup_limit > 1) emitters.values(group.members, choice.members, domains, body);
    for (size_t m = 0; m < group.members.size(); ++m) {
      const MemberForm& form = choice.members[m];
      if (form.kind == MemberForm::chunked) emitters.absorb(group.members[m], form, *domains[m], axis, pre, operands, body);
      if (is_keyed(m)) emitters.add_terms_by_key(group.members[m], *form.key, body);
      if (form.kind != MemberForm::fold) continue;
      if (keys[m] && emitters.has_value(group.members[m])) emitters.add_by_key(group.members[m], *keys[m], body);
      else if (emitters.has_value(group.members[m])) emitters.fold_value(group.members[m], !loop.empty(), body);
      else emitters.fold(group.members[m], form, keys[m] ? comp(group.members[m].node).domain : *domains[m], in_place(m), !loop.empty(), body);
    }
  }
  // What begins and ends inside the first `level` loops, and the loops between.
  void nest(size_t level, kernel::Block& to) {
    begin(level, to);
    if (level == loop.size()) {
      kernel::Block operands, body;
      block(nullptr, to, operands, body);
      to.insert(to.end(), operands.begin(), operands.end());
      to.insert(to.end(), body.begin(), body.end());
    } else if (loop[level] == axis) {
      pipelines(to);
    } else {
      kernel::Loop l = walk(loop[level]);
      nest(level + 1, l.body);
      to.push_back({std::move(l)});
    }
    end(level, to);
  }
  void begin(size_t level, kernel::Block& to) {
    for (size_t m = 0; m < group.members.size(); ++m) {
      // Terms go where their keys say, from any block: all of the result begins before the first.
      if (is_keyed(m) && level == 0) emitters.start_result(group.members[m], loop, to);
      if (is_map(m) || is_keyed(m) || in_place(m) || depth(m) != level) continue;
      if (comes_back(m)) emitters.start_result(group.members[m], {loop.begin() + int64_t(level), loop.end()}, to);
      else if (needs_start(m)) emitters.start(group.members[m], choice.members[m], to);
    }
  }
  void end(size_t level, kernel::Block& to) {
    for (size_t m = 0; m < group.members.size(); ++m) {
      if (is_map(m) && level == 0) emitters.map(group.members[m], read_in_epilogues(group.members[m].node), to);
      else if (!is_map(m) && !is_keyed(m) && !in_place(m) && !comes_back(m) && depth(m) == level) emitters.store(group.members[m], to);
    }
    for (auto& e : group.epilogues)
      if (depth(e) == level) epilogue(e, choice.epilogues[size_t(&e - group.epilogues.data())], to);
  }
  void epilogue(const plan::Epilogue& e, const MemberForm& form, kernel::Block& to) {
    const plan::Member m{e.node, e.axis, plan::Flush::store, false};
    const bool read = read_in_epilogues(e.node), kept = read || form.kind == MemberForm::chunked;
    if (form.kind == MemberForm::map) return emitters.map(m, read, to);
    for (uint32_t c = 0; kept && c < comp(e.node).lift.size(); ++c) emitters.state_tile(m, form, c);
    if (form.kind == MemberForm::chunked) emitters.absorb(m, form, comp(e.node).domain, -1, to, to, to);
    else emitters.fold(m, form, comp(e.node).domain, !kept, false, to);
    if (kept) emitters.store(m, to);
  }
  // A loop over all blocks of an axis, or over those that are the workgroup's part of it.
  kernel::Loop walk(int a) {
    const int64_t end = round_up(group.extent[size_t(a)], f.tile(a));
    kernel::Loop l{f.block[size_t(a)], constant(0), constant(choice.walks(a) ? end : group.extent[size_t(a)]), f.tile(a), {}};
    if (a != choice.split || choice.parts == 1) return l;
    l.begin = variable(f.part, choice.part);
    l.end = l.begin + constant(choice.part);
    if (choice.part * choice.parts == end) return l;
    const kernel::Var last = f.k.fresh("end");
    f.head.push_back({kernel::Let{last, kernel::Let::min, {l.end, constant(end)}, 1, {}}});
    l.end = variable(last);
    return l;
  }
  // Something beside the members tests a union of its own: not all of its points live where all of theirs do.
  bool others_ask() const {
    auto is_union = [&](auto& x) { return comp(x.node).domain.size() > 1; };
    return std::any_of(group.shared.begin(), group.shared.end(), is_union) || std::any_of(group.epilogues.begin(), group.epilogues.end(), is_union);
  }
  // The innermost loop, in segments: blocks of which all points live, and others.
  void pipelines(kernel::Block& to) {
    // Members of one group have one domain as a rule; with several, blocks are tested by each.
    const plan::Member& one = group.members[0];
    bool one_domain = choice.walked.empty() || emitters.one_domain(group.members, keys);
    // Of a sum by key what is left without the key: a block whose keys reach no point has terms of others.
    const ir::Domain& first = !choice.walked.empty() && keys[0] ? keys[0]->domain : comp(one.node).domain;
    if (choice.walked.empty())
      for (auto& m : group.members) one_domain &= comp(m.node).domain == first && m.axis == one.axis;
    // What is complete in a block of the loop is stored by it: a block without terms holds the identity, and none is left out.
    for (size_t m = 0; m < group.members.size(); ++m) one_domain &= is_map(m) || depth(m) < loop.size();
    std::vector<ir::Domain> pieces;
    if (one_domain)
      for (auto& c : ir::disjoint(first)) pieces.push_back({c});
    else pieces.push_back({});
    for (auto& piece : pieces) {
      kernel::Pipeline pipe;
      pipe.var = f.block[size_t(axis)];
      pipe.step = f.tile(axis);
      kernel::Block pre;
      if (one_domain) pipe.segments = segments(f, comp(one.node), one.axis, piece, axis, pre);
      else pipe.segments = {{constant(0), constant(group.extent[size_t(axis)]), true}};
      for (auto& s : pipe.segments) s.partial |= others_ask();
      // In a joint group each member says the piece in its own axes: its whole domain.
      begin(loop.size(), pipe.body);
      block(one_domain && choice.walked.empty() ? &piece : nullptr, pre, pipe.operands, pipe.body);
      end(loop.size(), pipe.body);
      to.insert(to.end(), pre.begin(), pre.end());
      to.push_back({std::move(pipe)});
    }
  }
  GroupKernels run() {
    fix_whole_axes();
    state_tiles();
    kernel::Block body;
    nest(0, body);
    f.k.body = std::move(f.head);
    f.k.body.insert(f.k.body.end(), body.begin(), body.end());
    out.main.kernel = std::move(f.k);
    out.main.arguments = std::move(f.arguments);
    out.main.schedule = choice.text;
    out.after = std::move(emitters.after);
    kernel::Kernel& k = out.main.kernel;
    if (kernel::has_teams(t) && group.shared.empty()) { // a row is read once, and kept by the lanes that share it
      settle_constants(k);
      k = kernel::hold_windows(k);
      const kernel::Teams x = kernel::teams(whole_columns(), all_rows(), 0, t);
      keep_dear_terms(k, x.lanes * kernel::most_held * 4, dear_effort);
    } else if (t.workgroup_limit > 1 || !stagger(k)) {
      const bool alone = t.workgroup_limit == 1;
      if (group.shared.empty()) keep_dear_terms(k, alone ? t.fast_memory : t.fast_memory / 4, 0, alone);
    }
    if (!staggered) divide_once(k);
    if (t.workgroup_limit == 1) bring_near(k);
    if (t.workgroup_limit == 1 && !staggered) row_by_row(k);
    globals_first(k, out.main.arguments);
    return std::move(out);
  }
  // Staggered rows keep one row of what is dear.
  bool stagger(kernel::Kernel& k) {
    kernel::Kernel alone = k;
    alone.pool = std::make_shared<kernel::Pool>(*k.pool);
    if (group.shared.empty()) keep_dear_terms(alone, mul_saturated(t.fast_memory, stagger_most) / 4, 0);
    divide_once(alone);
    staggered = stagger_rows(alone);
    if (staggered) k = std::move(alone);
    return staggered;
  }
  int64_t all_rows() const {
    int64_t n = 1;
    for (auto& e : comp(group.members[0].node).points) n = mul_saturated(n, e.value());
    return n;
  }
  int64_t whole_columns() const {
    int64_t n = 1;
    for (auto& f : comp(group.members[0].node).folds) n = mul_saturated(n, f.value());
    return n;
  }
  // A fold without a loop around it starts from its identity by itself.
  bool needs_start(size_t m) const { return !choice.members[m].contractions.empty() || !loop.empty(); }
};

}  // namespace

GroupKernels lower_group(ir::Graph& g, const plan::Plan& p, const Surroundings& around, const plan::Group& group, const schedule::Schedule& s,
                         const target::Target& t, std::vector<int64_t>& temporaries) {
  std::string refused;
  if (auto few = t.small_matrices ? few_rows(g, p, group, s, t) : std::nullopt) {
    std::vector<int64_t> more = temporaries;
    GroupKernels out = GroupLowerer{g, p, around, group, std::move(*few), t, more}.run();
    if (kernel::deal_products(out.main.kernel, t)) {
      temporaries = std::move(more);
      return out;
    }
  }
  if (t.blocks()) {
    auto k = lower_tensor(g, p, around, group, s, t, temporaries);
    if (k) return std::move(*k);
    refused = k.why();
  }
  for (auto& m : group.members)
    if (t.workgroup_limit > 1 && (m.flush != plan::Flush::store || m.each_tile))
      throw Error({}, "the schedule of '" + g.label({m.node, 0}) + "' adds to its result from several places",
                  {{"its result must be complete in one workgroup on this target", {}}}, "put its point axes on the grid");
  Choice c = choose(g, group, s, t);
  if (t.workgroup_limit > 1) { // tiles are shared by the lanes: there is so much and no more
    const auto bytes = [&](const Choice& tried) {
      std::vector<int64_t> none = temporaries;
      const kernel::Kernel k = GroupLowerer{g, p, around, group, tried, t, none}.run().main.kernel;
      return kernel::tile_bytes(kernel::distribute(kernel::expand_pipelines(k), t));
    };
    // Contractions wait for operands, so that several workgroups take turns.
    const int64_t most = c.panels.empty() ? t.fast_memory : std::min(t.fast_memory, t.near_memory);
    target::Target narrower = t;
    for (c = fit(std::move(c), group, most, bytes); c.vectors > 1 && bytes(c) > t.fast_memory;) {
      narrower.block_rows = c.rows, narrower.block_vectors = fewer_vectors(c.vectors);
      const schedule::Schedule less = with_vectors(s, g, group, narrower.block_vectors);
      Choice next = fit(choose(g, group, less, narrower), group, most, bytes);
      if (next.vectors >= c.vectors) break;
      c = std::move(next);
    }
  }
  if (t.workgroup_limit == 1) { // more rows to a workgroup, where they need no more memory
    Choice more = choose(g, group, s, t, false, stagger_most);
    std::vector<int64_t> with = temporaries;
    GroupLowerer rows{g, p, around, group, std::move(more), t, with};
    if (rows.choice.tile != c.tile)
      if (GroupKernels out = rows.run(); rows.staggered) {
        temporaries = with;
        out.main.refused = refused;
        return out;
      }
  }
  GroupKernels out = GroupLowerer{g, p, around, group, std::move(c), t, temporaries}.run();
  out.main.refused = refused;
  return out;
}

}  // namespace tang::lower
