// What the planner knows while it works (private to the room). Nodes are visited by depth, then by structural
// hash, so that neither the order of the outputs nor that of the arena decides a group.
#pragma once
#include <map>

#include "tang/plan/facts.hpp"

namespace tang::plan {

// A port that is stored, by the groups that make and read it.
struct Value {
  Port of;
  ir::Format format = ir::Format::f32;
  int64_t bytes = 0; // as much of the arena
  int home = -1;
  std::vector<int> readers; // groups, each once
  bool held = true;         // in the arena: no output, and in no state's memory
};

// An order of groups, some of which run twice.
struct Order {
  struct Entry {
    int group;
    bool again;
  };

  std::vector<Entry> entries;

  struct At {
    std::vector<int> first, again; // of each group; -1: it does not
  };

  At at(size_t groups) const;
};

// When a value is held: from `first` to `last`, not after `away` and before `again` if those are not -1.
struct Span {
  int first, last, away = -1, again = -1;

  bool holds(int step) const {
    return step >= first && step <= last && (away < 0 || step <= away || step >= again);
  }
};

Span span(const Value& v, const Order::At& at);
// Bytes at each step.
std::vector<int64_t> held(const std::vector<Value>& values, const Order& o, size_t groups);

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

  struct Words {
    int64_t all = 0, largest = 0; // of one array
  };

  Words words_read(NodeId id) const;

  // group.cpp: members, alignment
  bool group_folds(); // false: a subterm could not be aligned and is stored now
  std::vector<int> reads_of_shared(NodeId id) const; // args, the first fixes the core axes
  bool align(NodeId id, Group& g,
             Member& m) const; // the member's core axes through its reads of shared subterms
  std::optional<int> adds_by_key(NodeId id) const; // the point axis
  void alone(NodeId id);
  int add_group(Group g, NodeId first);

  // roles.cpp
  struct Wish { // what the schedule says of a group
    std::map<int, Role> role;
    std::set<NodeId> stored;
  };

  Wish wish(const Group& g) const;
  bool adds_in_memory(NodeId id) const;
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
  std::vector<std::set<int>> predecessors() const; // of each group
  void make_steps(const Order& o);
  std::vector<NodeId>
  evaluators(NodeId id) const; // nodes of groups that evaluate `id`: itself, or a subterm's readers

  // memory.cpp
  std::vector<Value> values() const;
  ir::Format own_format(Port q) const; // in which it is stored, if it is no output and in no state's memory
  std::vector<int> sequence(const std::vector<std::set<int>>& before,
                            const std::vector<Value>* sparing) const;
  Order within_memory(Order o, const std::vector<Value>& all);

  // buffers.cpp
  void place_buffers();
  void place_arena();
  void place_arena(int steps);

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
  std::vector<Value> values_;
  Order::At step_of_; // of a group
};

Plan make_body(const ir::Recur& r, const schedule::Schedule& s, const target::Target& t);

} // namespace tang::plan
