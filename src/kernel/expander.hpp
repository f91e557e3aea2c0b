// The parts of expand_roles: places of rings and maps, the roles' statements, statements by rows, the order
// of work.
#pragma once
#include <deque>
#include <functional>
#include <set>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/add_in_place.hpp"
#include "tang/kernel/fragment.hpp"
#include "tang/kernel/roles_parts.hpp"
#include "tang/kernel/row_terms.hpp"

namespace tang::kernel::role {

inline constexpr int64_t atom = 64;            // rows of a warpgroup's matrix instruction
inline constexpr int64_t line = 128;           // bytes of a row of a box: the span of the swizzle
inline constexpr int64_t box_alignment = 1024; // of the swizzle's pattern
inline constexpr int64_t warp_rows = 16;
inline constexpr int64_t spare_registers = 24; // of a lane, beside its fragments

// The kernel as each of `across` subgroups sees it that lie beside each other: fragments hold its share of their
// columns. Refused where a statement needs another's columns.
Result<Kernel> shared_columns(const Kernel& k, int across);

template <class T> void put(Block& b, T x) { b.push_back({std::move(x)}); }

class Expander {
public:
  Expander(const Kernel& k, const target::Roles& f, int64_t limit) : k_(k), f_(f), limit_(limit) {}

  Result<Program> run();

private:
  using What = std::vector<const kernel::Stmt*>;

  struct Flying { // a contraction that was issued; `before`: for the block before this one
    size_t contract;
    bool before = false;
  };

  // Places: rings, barriers, maps.
  std::optional<std::string> place();

  int64_t box_columns(const StagedTile& t) const {
    return line * 8 / expr::row(k_.memories[size_t(t.memory)].format).bits;
  }

  int64_t boxes(const StagedTile& t) const { return ceil_div(t.columns, box_columns(t)); }

  int64_t slot_rows(int tile) const {
    return rings_of_[size_t(tile)] >= 0 && p_.rings[size_t(rings_of_[size_t(tile)])].own
               ? atom
               : parts_.tiles[size_t(tile)].rows;
  }

  // In a slot: an operand's boxes of 128-byte rows, a vector's values.
  int64_t bytes(int tile) const {
    const StagedTile& t = parts_.tiles[size_t(tile)];
    if (t.vector) return t.columns * 4;
    return ceil_div(slot_rows(tile) * boxes(parts_.tiles[size_t(tile)]) * line, box_alignment) *
           box_alignment;
  }

  int64_t box_rows(int tile) const;
  int map_for(Map m);
  int add_ring(const std::string& name, std::vector<int> tiles, int depth, bool own);
  std::optional<std::string> rings();
  std::optional<int> ring_of_vector(int memory, std::map<int, size_t>& last) const;
  int64_t held(const std::vector<Flying>& over) const;
  int64_t spare() const;
  std::string roles_refuse() const;
  std::string split();
  std::string join_in_cluster();
  std::string share();
  std::vector<size_t> grid_axes_of(int tile) const;
  bool joins_in_cluster() const { return f_.split > 1 && f_.cluster > 1; }
  std::string fields_refuse() const;

  // Statements.
  void fill(int ring, const Affine& at, Block& to);
  void copies(int ring, const Affine& at, int ahead, Block& to);
  std::string subgroups_refuse() const;
  std::string slots_refuse() const;
  void copies_ahead(Block& to);
  void refill(size_t event, int contract, Block& to);
  void subgroups_body(Block& to);
  void fill_hoisted(Block& to);
  void advance_hoisted(Block& to);
  void release_hoisted(Block& to);
  Window window(int tile, bool is_a, bool k_major);
  void issue(size_t c, Block& to);
  void finish_first(size_t n, std::vector<Flying>& flying, Block& to);
  void walk(const What& what, std::vector<Flying>& flying, Block& to);
  const kernel::Stmt* in_block(const kernel::Stmt& s, bool partial);
  What stage(bool partial, bool touching_last, bool others);
  std::optional<Flush> flushed(const Apply& a);
  void store(const Apply& a, Block& to);
  bool joined(Flush& x, const Flush& next) const;
  void make(const Apply& a, Block& to);
  bool adds(const kernel::Stmt& s) const;
  std::optional<Add> added(const Apply& a);
  std::string adds_refuse(const kernel::Stmt& s);
  void ending(Block& to);
  void loops(int peeled, Block& to, const std::function<void(bool partial, Block&)>& body);
  void blocks(Block& to, const std::function<void(bool partial, Block&)>& body);
  void untested(const kernel::Stmt& own, Block& to);
  void decode(Works& w);

  Affine first() const { return segments_.front().begin; }

  Affine last() const { return segments_.back().end; }

  int64_t step() const { return parts_.pipe->step; }

  void producer_body(Block& to);
  void math_body(Block& to);
  void skewed(Block& to);
  void one_sum(Block& to);
  void in_order(Block& to);
  void body_in_order(bool partial, std::vector<Flying>& flying, Block& to);
  std::vector<Flying> over_the_edge();
  Affine beyond(int64_t n) const;
  std::optional<int64_t> trips() const;
  bool is_one_sum() const;
  bool sums_integers() const;
  void around(Block inner, Block& to) const;
  int contract_of(const kernel::Stmt* s) const;
  bool is_late(const Fold& f) const;
  Varies varies(const Body& b, Var column) const;
  Rows by_row(const kernel::Stmt& s) const;
  RowAxes row_axes(std::vector<TileAxis> axes) const;
  std::optional<std::vector<int64_t>> warp_box(const RowAxes& row, const Ref& dst) const;
  std::string elsewhere(const kernel::Stmt& s) const;

  Var fresh(const std::string& stem) { return p_.kernel.fresh(stem); }

  const Kernel& k_;
  const target::Roles& f_;
  const int64_t limit_;
  TensorParts parts_;
  Program p_;
  std::vector<int> rings_of_;            // of each tile
  std::vector<int64_t> offset_;          // of each tile in its slot
  std::vector<int> contract_ring_;       // that it is the first to read; -1: none
  std::vector<std::vector<int>> closes_; // the rings that no contraction after this one reads
  std::deque<kernel::Stmt> whole_;       // statements of full blocks: without their partial bounds
  std::vector<std::vector<int>> ring_tiles_;
  std::vector<int> late_;   // memories that lanes hold in parts
  std::vector<int> map_of_; // of each tile
  std::vector<int> events_; // without roles: rings in the order in which a block of the loop reads them
  int work_ring_ = -1;
  Var row_ = -1;                  // a row's number, where rows have several axes
  std::vector<Segment> segments_; // of the loop, or of this part of it
  int shared_ = -1, shared_axis_ = -1; // tile that a cluster copies once; grid axis along which its blocks lie
  int parts_ring_ = -1;                // where parts of a loop join
  std::optional<Affine> whole_at_; // of a loop over all segments: at least 0 in the full ones
  Var tile_ = -1;                 // the block of work without its part
  Block part_;                    // integers that they name
};

} // namespace tang::kernel::role
