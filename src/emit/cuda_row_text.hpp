// The terms of a statement over fragments as CUDA text.
#pragma once
#include "tang/emit/cuda_rows.hpp"

namespace tang::emit::rows_text {

using expr::Op;
using kernel::Body;
using kernel::Coordinate;

// The terms of one statement: those that are the same along a row are named once a row.
class RowText {
public:
  RowText(Unit& u, const Body& b, kernel::role::RowAxes row, Var column, int polynomial = 0)
      : u_(u), b_(b), p_(*u.k.pool), row_(std::move(row)), column_(column), polynomial_(polynomial) {}

  // Prints what the roots need once a row; after this, value() is for the loop over e (or r, without
  // columns).
  void prepare(const std::vector<Id>& roots);

  std::string value(Id id) { return text(id); }

  // `and_`: what stands between two tests.
  std::string bounds(const kernel::Bounds& all, const std::string& and_);
  bool gathers(const kernel::Bounds& all) const; // along the columns
  std::string element(const Ref& r, bool in_row_loop);
  void name_coordinates(bool in_row_loop); // declares the axes' variables

  bool varies(Id id) const { return varies_.at(id); }

  // Opens the loop over `n` pairs of a lane's columns, and loads what is read at neighbours: two at a pair, or
  // eight that the lanes of a row share out. The loops that were opened.
  int open_pairs(int64_t n, const std::vector<Id>& roots, int64_t from = 0);

  // In that loop: names what the roots read at several places, until it is forgotten.
  void name_repeated(const std::vector<Id>& roots);
  void forget_repeated();

private:
  std::pair<std::string, std::string> address(const Ref& r, bool in_row_loop);
  bool moves(const std::vector<Coordinate>& at) const;
  std::string text(Id id);
  std::string coordinate(const Coordinate& c, bool in_row_loop);
  void load_quads(const std::vector<Id>& roots);
  void load_pairs(const std::vector<Id>& roots);
  std::vector<const Ref*> read_in(const std::vector<Id>& roots, bool (*how)(const Unit&, const Ref&, Var)) const;

  Unit& u_;
  const Body& b_;
  const kernel::Pool& p_;
  kernel::role::RowAxes row_;
  Var column_;
  int polynomial_;
  bool row_loop_ = false;
  std::map<Id, bool> varies_;
  std::map<Id, std::string> names_;
  std::vector<Id> repeated_; // of them, those of the loop over elements
  std::string pair_; // the lane's part of a column, as a real

  struct Step { // factor * column + rest; `start` holds its value at the lane's first column, by row
    Id factor, rest;
    std::string start;
  };

  std::map<Id, Step> steps_;
  std::map<const Ref*, std::string> pairs_; // reads whose pair of columns was loaded
  std::map<const Ref*, std::string> quads_; // .. whose pairs of four groups of columns were
};

// A statement's values at columns from .. from + n, in the destinations' format: of each destination the name of
// uint32_t NAME[n / 4], pairs, or float NAME[n / 2].
std::vector<std::string> print_values(Unit& u, RowText& t, const kernel::role::Flush& x, int64_t from, int64_t n);

} // namespace tang::emit::rows_text
