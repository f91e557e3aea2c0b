// Statements for each form: contractions with staged operands, absorbing folds by chunks, plain folds, maps.
#pragma once
#include "tang/lower/frame.hpp"
#include "tang/lower/keyed.hpp"

namespace tang::lower {

class Emitters {
 public:
  Emitters(Frame& f, std::vector<int64_t>& temporaries, std::vector<Lowered>& before)
      : f_(f), temporaries_(temporaries), before_(before) {}

  void state_tile(const plan::Member& m, const MemberForm& form, uint32_t component);
  void shared_tile(const plan::Shared& s, const std::optional<Contraction>& c);
  void start(const plan::Member& m, const MemberForm& form, kernel::Block& to);  // what blocks add to := identity
  void store(const plan::Member& m, kernel::Block& to);  // state tiles -> buffers
  void begin_block() { staged_.clear(), values_.clear(); }
  // `pre`: before the pipeline over core axis `axis`; `operands`, `body`: of each block.
  void shared(const plan::Shared& s, const std::optional<Contraction>& c, int axis, kernel::Block& pre, kernel::Block& operands,
              kernel::Block& body);
  void absorb(const plan::Member& m, const MemberForm& form, const ir::Domain& domain, int axis, kernel::Block& pre,
              kernel::Block& operands, kernel::Block& body);
  void fold(const plan::Member& m, const MemberForm& form, const ir::Domain& domain, bool in_place, bool accumulate, kernel::Block& to);
  void map(const plan::Member& m, bool keep_tile, kernel::Block& to);
  // values.cpp: what several members of a joint group read of one block
  void values(const std::vector<plan::Member>& members, const std::vector<MemberForm>& forms, const std::vector<const ir::Domain*>& domains,
              kernel::Block& body);
  bool fills_block(const plan::Member& m, const MemberForm& form) const;
  size_t components(const std::vector<plan::Member>& members) const;
  struct Tile {
    Ref ref;                 // at a statement's variables
    std::vector<int> cores;  // of each dimension
  };
  Tile value_tile(const std::string& name, const std::vector<int>& cores, const std::map<int, kernel::Var>& var);
  std::vector<Tile> spent_tiles(const kernel::Body& body, const std::map<int, kernel::Var>& var, size_t most) const;
  bool one_domain(const std::vector<plan::Member>& members, const std::vector<std::optional<Key>>& keys);
  bool has_value(const plan::Member& m) const { return values_.count({m.node, 0}) > 0; }
  void fold_value(const plan::Member& m, bool accumulate, kernel::Block& to);
  void add_by_key(const plan::Member& m, const Key& key, kernel::Block& to);  // keyed.cpp
  void add_terms_by_key(const plan::Member& m, const Key& key, kernel::Block& to);  // of a group of its own
  void start_result(const plan::Member& m, const std::vector<int>& inside, kernel::Block& to);  // 0 where the member will be added to
  // Their array, with the columns of a contraction next to each other, and the kernel that joins them.
  void partial_results(const plan::Member& m, const MemberForm& form);
  bool adds_where_stored(const plan::Member& m, const MemberForm& form) const;
  std::vector<Lowered> after;                       // kernels that join partial results

 private:
  // A contraction at work: where it is and where its operands go.
  struct Site {
    ir::NodeId node;
    const std::vector<int>& core;
    const Contraction& c;
    const ir::Domain& domain;  // masks that operands carry (no base); everywhere when a weight carries them
    int axis;                  // the pipeline's core axis
    kernel::Block &pre, &operands, &body;
  };
  const ir::Comp& comp(ir::NodeId id) const { return *f_.g[id].comp(); }
  struct Weight {  // a tile over these axes of the node: the rows' operand
    int memory;
    std::vector<int> axes;
  };
  Lowered join(Port port, int temporary, const kernel::Memory& parts);
  Place place(const plan::Member& m, const std::map<int, kernel::Var>& along) const;
  Ref result(Port p, const ir::Comp& n, const Place& at);  // its tile, or where it is added to
  std::vector<int> seen_by(const ir::Comp& n, const std::vector<int>& axes) const;
  int copy_of(const plan::Member& m, int component, const std::vector<int>& axes);
  // One plain read, rows not too far apart, contiguous along the columns: a contraction may read it where it lies.
  bool lies(const Site& s, const std::vector<int>& factors, int side_axis, int64_t far);
  Ref read_at(const Site& s, const std::vector<int>& factors, const Place& at);
  void contract(const Site& s, Port dst, const std::optional<Weight>& weight, bool accumulate);
  void mark_dead(const Site& s, bool weighted, kernel::Contract& c) const;
  Affine base(const std::vector<int>& core, int axis) const;
  Ref staged(const Site& s, const std::vector<int>& factors, int side_axis, int64_t width, const Place& at);
  std::optional<Ref> read_in_place(const Site& s, const Place& at);
  bool rows_in_place(const Site& s);
  struct Box { // of an array: from low on, so many elements of each dimension
    std::vector<Affine> low;
    std::vector<int64_t> extent;
  };
  std::optional<Box> box(const Site& s, const ir::Arg& a) const; // slab.cpp
  std::optional<Ref> slab(const Site& s, const Place& at);
  std::optional<Ref> copied(const Site& s, const Place& at);
  ir::Conj assumed_of(const Site& s, int side_axis) const;
  kernel::Bounds masks(const Site& s, Body& b, int side_axis) const;
  std::vector<int> folds_of(const ir::Comp& n) const;

  Frame& f_;
  std::vector<int64_t>& temporaries_;
  std::vector<Lowered>& before_;
  std::map<std::pair<ir::NodeId, int>, Weight> values_;  // of this block: a component's factors over core axes, or a lift
  std::map<std::string, int> value_tiles_;              // reused by every block of the kernel
  // Of a component that ports of other axes see: a tile over theirs, kept from block to block.
  std::map<std::tuple<ir::NodeId, int, std::vector<int>>, int> copies_;
  std::map<std::string, int> staged_;  // tiles of operands staged for this block, by what they hold
};

int64_t stride_along(const kernel::Kernel& k, const Ref& r, kernel::Var v);  // elements per step of v
// Chooses the axis whose elements lie next to each other in most references, and moves it innermost.
void vectorize(const kernel::Kernel& k, kernel::Apply& a, int prefer = -1);
// Globals first, in argument order: memories are renumbered in every reference. What is written and never read says so; what
// nothing names goes, with its argument.
void globals_first(kernel::Kernel& k, std::vector<Argument>& arguments);
// The kernel of a frame that is complete: one that prepares for another, or ends it.
Lowered finished(Frame& frame, const std::string& schedule);

}  // namespace tang::lower
