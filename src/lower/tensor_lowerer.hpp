// One group in tensor form: its tiles, contractions, weights and results, and the kernels that go before it.
#pragma once
#include "tang/kernel/roles.hpp"
#include "tang/lower/emitters.hpp"
#include "tang/lower/segments.hpp"
#include "tang/lower/tensor.hpp"
#include "tang/lower/tensor_choice.hpp"

namespace tang::lower {

using No = std::optional<std::string>; // a refusal's reason, or nothing

// A member whose result lies along the loop: blocks of rows add to it.
struct Added {
  plan::Member member;
  Contraction form;    // over the rows
  ir::NodeId with = 0; // the member that weighs with the same values
  std::vector<int> order = {};     // of the result's axes in the sums
  kernel::Memory sums = {};
  int temporary = -1, part = -1;   // that holds them; the block's fragment
};

// The member alone, with the subterms that it reads and the maps of its result. Nothing where a map reads
// others, too.
std::optional<plan::Group> alone(const ir::Graph& g, const plan::Group& group, const plan::Member& m);

// Members whose results lie along the loop apart from the others, as groups of their own.
struct Parted {
  plan::Group stays;
  std::vector<plan::Group> added;
};

Parted part(const ir::Graph& g, const plan::Group& group);
std::optional<Added> added_to(ir::Graph& g, const plan::Group& own, const schedule::Schedule& s,
                              const target::Target& t);

class TensorLowerer {
public:
  TensorLowerer(ir::Graph& g, const plan::Plan& p, const Surroundings& around, const plan::Group& group,
                const Choice& choice, const TensorChoice& tensor, const target::Target& t,
                std::vector<int64_t>& temporaries)
      : g_(g), plan_(p), around_(around), group_(group), choice_(choice), tensor_(tensor), target_(t),
        temporaries_(temporaries), f_(g, p, around, group, choice, t) {}

  Result<GroupKernels> run();

  void add(const Added& x) { added_.push_back(x); }

private:
  const ir::Comp& comp(ir::NodeId id) const { return *g_[id].comp(); }

  int fragment(const std::string& name, std::vector<int64_t> shape, kernel::Format f = kernel::Format::f32);
  void state(Port port, const std::vector<int>& core, const std::string& name, int columns = -1);
  using Axes =
      std::vector<std::pair<int, kernel::Var>>; // of a node, the slowest first, and a contraction's variables

  No operand(const ir::Comp& n, const std::vector<int>& core, const Contraction& c,
             const std::vector<int>& factors, const Axes& side, kernel::Var k_var, int piece, Ref& out);
  // `weight`: the tiles of the rows' operand, one a piece; none: it is staged. `scale`: a number a row that what the
  // result held before is multiplied by; only with pieces.
  No contract(const ir::Comp& n, const std::vector<int>& core, const Contraction& c, Port dst,
              const std::vector<int>& weight, bool accumulate, const Ref* scale = nullptr);
  No multiply(const ir::Comp& n, const std::vector<int>& core, const Contraction& c, Port dst,
              std::optional<int> into, const std::vector<int>& weight, bool accumulate, int a_piece, int b_piece);
  std::vector<int> as_operand(const Ref& value, const std::vector<kernel::TileAxis>& axes, bool bounded);
  Result<int> piece(Port port, int which);
  Lowered cut(Port port, const Bound& whole, const kernel::Memory& piece, const std::vector<int>& ids);
  Lowered cut(Port port, const Bound& whole, const kernel::Memory& piece, const std::vector<int>& ids, int64_t rows,
              int64_t columns);
  No absorb(const plan::Member& m, const MemberForm& form);
  No add_block(const plan::Member& m);
  No weigh();
  int axis_along(const Added& x) const;
  No place_sums(Added& x);
  No start_adding(Added& x, int weights);
  void finish_adding(const Added& x);
  Lowered cleared(const Added& x) const;
  Lowered rounded(const Added& x) const;
  No weigh_by_key(const plan::Member& m, const Key& key);
  No store_keys(const plan::Member& m, const Key& key, const std::vector<int>& states);
  kernel::Body trimmed(const kernel::Body& all, const std::vector<expr::Id>& values,
                       std::optional<expr::Id> when, std::vector<kernel::Bounds>& partial) const;
  std::optional<expr::Id> common_term(const std::vector<expr::Id>& roots, expr::Id leaf,
                                      const std::set<expr::Id>& others) const;
  expr::Id ordered(expr::Id root);
  void bring_near(Ref& r, kernel::Var x, kernel::Var y);
  ir::Domain ragged(const ir::Comp& n, const ir::Domain& domain, const std::vector<int>& core) const;
  int64_t block_of_terms(int64_t extent) const;
  int term_axis(const std::vector<int>& core, const Contraction& c) const;
  std::optional<int> staged(const kernel::Apply& copy, bool in_loop) const;
  No masks(const ir::Comp& n, const ir::Domain& domain, const std::vector<int>& core);
  struct Ahead;
  bool begin(Ahead& a, const ir::Comp& n, const std::vector<int>& core, const std::set<int>& used, int row,
             kernel::TileAxis along);
  std::vector<Affine> end(Ahead& a, const std::string& what);
  std::optional<std::pair<Affine, Affine>> extrema(const ir::Comp& n, const std::vector<int>& core, int arg);
  std::vector<int> read_alike(const ir::Comp& n, int arg) const;
  std::optional<Run> runs(const ir::Comp& n, const std::vector<int>& core,
                          const std::vector<const ir::Form*>& bounds);
  Result<Ref> copied(const ir::Comp& n, const Contraction& c, int factor, int side, int k, const Place& at);
  void turned(Frame& frame, kernel::Apply& a) const;
  void start(const plan::Member& m);
  bool read_by_a_map(Port port) const;
  No output(const ir::Comp& n, const std::vector<int>& core, Port port, bool is_state);

  Place place(const ir::Comp& n, const std::vector<int>& core, const std::vector<int>& axes) {
    return f_.place(n, core, axes);
  }

  Ref whole(int memory, const std::vector<kernel::TileAxis>& axes) const;
  bool reads_loop(const Ref& r) const;

  // One sum of products and nothing else.
  bool product() const { return choice_.members[0].absorb.base.empty() && group_.shared.empty(); }

  bool addressable(const ir::Comp& n, const ir::Arg& a, int k, const Axes& side, int64_t terms,
                   kernel::Format f, bool padded = false) const;
  No absent_outside(const ir::Comp& n, const MemberForm& form) const;

  ir::Graph& g_;
  const plan::Plan& plan_;
  const Surroundings& around_;
  const plan::Group& group_;
  const Choice& choice_;
  const TensorChoice& tensor_;
  const target::Target& target_;
  std::vector<int64_t>& temporaries_;
  Frame f_;
  std::vector<Lowered> before_, after_;
  std::vector<Added> added_;
  kernel::Block starts_, copies_, finish_, lets_;
  kernel::Pipeline pipe_;
  ir::Domain domain_; // of the loop's terms, with its ragged end
  Ref score_;         // the tile of a term's value, and the axes it is written over
  std::vector<kernel::TileAxis> score_axes_;
  std::map<int, std::pair<Affine, Affine>> extrema_;
  std::map<Port, std::vector<int>> pieces_; // of an array: temporaries
};

} // namespace tang::lower
