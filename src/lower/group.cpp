#include "tang/lower/group.hpp"

#include <algorithm>

#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/kernel/distribute.hpp"
#include "tang/lower/emitters.hpp"
#include "tang/lower/fit.hpp"
#include "tang/lower/segments.hpp"

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
  Emitters emitters{f, temporaries, out.before};
  const int axis = pipeline_axis(group, choice);

  const ir::Comp& comp(ir::NodeId id) const { return *g[id].comp(); }
  bool read_in_epilogues(ir::NodeId node) const {
    return std::any_of(group.epilogues.begin(), group.epilogues.end(), [&](const plan::Epilogue& e) {
      auto& args = comp(e.node).args;
      return std::any_of(args.begin(), args.end(), [&](const ir::Arg& a) { return a.from.node == node; });
    });
  }
  // Folds that finish in one statement write where they are stored; others keep their state in tiles.
  bool in_place(size_t m) const {
    return choice.members[m].kind == MemberForm::fold && !read_in_epilogues(group.members[m].node) && looped_axes().empty();
  }
  std::vector<int> looped_axes() const {
    std::vector<int> out_;
    for (size_t a = 0; a < group.extent.size(); ++a)
      if (group.role[a] == plan::Role::looped && choice.tile[a] < group.extent[a]) out_.push_back(int(a));
    return out_;
  }
  void fix_whole_axes() {
    for (size_t a = 0; a < group.extent.size(); ++a)
      if (group.role[a] == plan::Role::looped && choice.tile[a] >= group.extent[a])
        f.head.push_back({kernel::Let{f.block[a], kernel::Let::affine, {constant(0)}, 1, {}}});
  }
  void state_tiles() {
    for (size_t m = 0; m < group.members.size(); ++m) {
      const plan::Member& member = group.members[m];
      const ir::Comp& n = comp(member.node);
      if (choice.members[m].kind == MemberForm::map || in_place(m)) continue;
      for (uint32_t c = 0; c < n.lift.size(); ++c) emitters.state_tile(member, choice.members[m], c);
    }
    for (size_t x = 0; x < group.shared.size(); ++x) emitters.shared_tile(group.shared[x], choice.shared[x]);
  }
  // The body of one block of the pipeline, for one piece of the members' domain.
  void block(const ir::Domain* piece, kernel::Block& pre, kernel::Block& operands, kernel::Block& body) {
    emitters.begin_block();
    for (size_t x = 0; x < group.shared.size(); ++x) emitters.shared(group.shared[x], choice.shared[x], axis, pre, operands, body);
    for (size_t m = 0; m < group.members.size(); ++m) {
      const MemberForm& form = choice.members[m];
      const ir::Domain& d = piece ? *piece : comp(group.members[m].node).domain;
      if (form.kind == MemberForm::chunked) emitters.absorb(group.members[m], form, d, axis, pre, operands, body);
      if (form.kind == MemberForm::fold) emitters.fold(group.members[m], d, in_place(m), !looped_axes().empty(), body);
    }
  }
  void loops(kernel::Block& to) {
    const std::vector<int> looped = looped_axes();
    if (looped.empty()) {
      kernel::Block operands, body;
      block(nullptr, to, operands, body);
      to.insert(to.end(), operands.begin(), operands.end());
      to.insert(to.end(), body.begin(), body.end());
      return;
    }
    // Members of one group have one domain as a rule; with several, blocks are tested by each.
    bool one_domain = true;
    const ir::Domain& first = comp(group.members[0].node).domain;
    for (auto& m : group.members) one_domain &= comp(m.node).domain == first && m.axis == group.members[0].axis;
    std::vector<ir::Domain> pieces;
    if (one_domain)
      for (auto& c : ir::disjoint(first)) pieces.push_back({c});
    else pieces.push_back({});
    kernel::Block* at = &to;
    for (size_t k = 0; k + 1 < looped.size(); ++k) {  // outer loops cover their whole axes
      at->push_back({kernel::Loop{f.block[size_t(looped[k])], constant(0), constant(group.extent[size_t(looped[k])]), f.tile(looped[k]), {}}});
      at = &std::get<kernel::Loop>(at->back().node).body;
    }
    for (auto& piece : pieces) {
      kernel::Pipeline pipe;
      pipe.var = f.block[size_t(axis)];
      pipe.step = f.tile(axis);
      kernel::Block pre;
      if (one_domain) pipe.segments = segments(f, comp(group.members[0].node), group.members[0].axis, piece[0], axis, pre);
      else pipe.segments = {{constant(0), constant(group.extent[size_t(axis)]), true}};
      block(one_domain ? &piece : nullptr, pre, pipe.operands, pipe.body);
      at->insert(at->end(), pre.begin(), pre.end());
      at->push_back({std::move(pipe)});
    }
  }
  void epilogues(kernel::Block& to) {
    for (auto& e : group.epilogues) {
      plan::Member m{e.node, e.axis, plan::Flush::store, false};
      emitters.map(m, read_in_epilogues(e.node), to);
    }
  }
  GroupKernels run() {
    fix_whole_axes();
    state_tiles();
    kernel::Block body;
    for (size_t m = 0; m < group.members.size(); ++m)
      if (choice.members[m].kind != MemberForm::map && !in_place(m) && needs_start(m)) emitters.start(group.members[m], body);
    loops(body);
    for (size_t m = 0; m < group.members.size(); ++m) {
      if (choice.members[m].kind == MemberForm::map) emitters.map(group.members[m], read_in_epilogues(group.members[m].node), body);
      else if (!in_place(m)) emitters.store(group.members[m], body);
    }
    epilogues(body);
    f.k.body = std::move(f.head);
    f.k.body.insert(f.k.body.end(), body.begin(), body.end());
    out.main.kernel = std::move(f.k);
    out.main.arguments = std::move(f.arguments);
    out.main.schedule = choice.text;
    globals_first(out.main.kernel);
    return std::move(out);
  }
  // A fold without a loop around it starts from its identity by itself.
  bool needs_start(size_t m) const { return choice.members[m].kind == MemberForm::chunked || !looped_axes().empty(); }
};

}  // namespace

GroupKernels lower_group(ir::Graph& g, const plan::Plan& p, const Surroundings& around, const plan::Group& group, const schedule::Schedule& s,
                         const target::Target& t, std::vector<int64_t>& temporaries) {
  for (auto& m : group.members)
    if (m.flush != plan::Flush::store || m.each_tile)
      throw Error({}, "the schedule of '" + g.label({m.node, 0}) + "' adds to its result from several places",
                  {{"its result must be complete in one workgroup on this target", {}}}, "put its point axes on the grid");
  Choice c = choose(g, group, s, t);
  if (t.workgroup_limit > 1)  // tiles are shared by the lanes: there is so much and no more
    c = fit(std::move(c), group, t.fast_memory, [&](const Choice& tried) {
      std::vector<int64_t> none = temporaries;
      const kernel::Kernel k = GroupLowerer{g, p, around, group, tried, t, none}.run().main.kernel;
      return kernel::tile_bytes(kernel::distribute(kernel::expand_pipelines(k), t));
    });
  return GroupLowerer{g, p, around, group, std::move(c), t, temporaries}.run();
}

}  // namespace tang::lower
