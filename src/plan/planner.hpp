// What the planner knows while it works (private to the room). Nodes are visited by depth, then by structural
// hash, so that neither the order of the outputs nor that of the arena decides a group.
#pragma once
#include <map>

#include "tang/plan/facts.hpp"

namespace tang::plan {

class Planner {
public:
  // `heir`: in the body of a Recur, the only node that may take a state input's memory. Empty: any may.
  Planner(Plan& p, ir::Pool& pool, const schedule::Schedule& s, const target::Target& t,
          std::map<NodeId, NodeId> heir, bool body);
  void run();

private:
  const ir::Comp& comp(NodeId id) const { return *g_[id].comp(); }

  void note(const std::string& text);

  // share.cpp: short contractions that are never stored
  void choose_shared();
  bool may_share(NodeId id, bool expanding) const;
  int64_t words_read(NodeId id) const;

  // group.cpp: members, alignment
  bool group_folds(); // false: a subterm could not be aligned and is stored now
  std::vector<int> reads_of_shared(NodeId id) const; // args, the first fixes the core axes
  bool align(NodeId id, Group& g,
             Member& m) const; // the member's core axes through its reads of shared subterms
  void alone(NodeId id);
  int add_group(Group g, NodeId first);

  // roles.cpp
  struct Wish { // what the schedule says of a group
    std::map<int, Role> role;
    std::set<NodeId> stored;
  };

  Wish wish(const Group& g) const;
  std::optional<double> words_accumulated(Group& g,
                                          const std::set<NodeId>& stored) const; // sets each member's flush
  bool choose_roles(Group& g, const Wish& w, bool lone) const;
  bool pays(const Group& now, const Member& m, Group joined); // to join, rather than evaluate again

  // attach.cpp: epilogues, and whether the graph of groups stays acyclic
  void place_maps();
  bool attach(NodeId id, int group);
  bool attach_to_best(NodeId id);
  bool attach_fold(NodeId id);
  bool shares_rows(const Epilogue& e, int group) const;
  std::optional<Epilogue> at_same_grid(NodeId id, int group) const;
  std::vector<NodeId> nodes_of(int group) const;   // members and epilogues
  std::vector<NodeId> companions(NodeId id) const; // its group's nodes, or itself
  bool path(const std::vector<NodeId>& from, const std::vector<NodeId>& to, bool through_others) const;
  int latest(int group) const;

  // steps.cpp
  void donate();
  bool may_take(NodeId id, NodeId input) const; // by shapes and reads
  bool before_in_place(NodeId r, NodeId id, NodeId input) const;
  std::string why_not_take(NodeId id, NodeId input) const;
  void order_steps();
  std::vector<NodeId>
  evaluators(NodeId id) const; // nodes of groups that evaluate `id`: itself, or a subterm's readers

  // buffers.cpp
  void place_buffers();
  void place_arena();

  Plan& p_;
  ir::Pool& pool_; // of the plan's graph: donation adds the conditions of masked stores
  const ir::Graph& g_;
  const schedule::Schedule& s_;
  const target::Target& t_;
  std::map<NodeId, NodeId> heir_;
  bool body_;
  std::vector<NodeId> order_;                  // needed nodes that are no inputs
  std::vector<int> rank_;                      // place in order_, or -1
  std::vector<std::vector<NodeId>> readers_;   // needed ones, by rank
  std::vector<char> output_, shared_, stored_; // stored_: may not be shared
  std::vector<Group> groups_;
  std::vector<int> home_;                  // group of a node, or -1
  std::vector<std::pair<int, int>> after_; // groups that must run in this order for the sake of a donation

  struct Donated {
    NodeId input;
    std::optional<ir::Id> when;
  };

  std::map<NodeId, Donated> donated_; // by the node that takes the memory
  std::vector<int> step_of_;          // of a group
};

Plan make_body(const ir::Recur& r, const schedule::Schedule& s, const target::Target& t);

} // namespace tang::plan
