// The points of a statement over fragments, on the host: one team's rows at a time.
#pragma once
#include <functional>
#include <map>

#include "tang/kernel/roles_parts.hpp"
#include "tang/kernel/simulate.hpp"

namespace tang::kernel::role {

struct RowPoints {
  const Kernel& kernel;
  std::vector<Buffer>& globals;
  std::map<int, std::vector<double>>& fragments; // of the team: [its rows, columns]
  std::vector<int64_t>& vars;
  int64_t team_rows, first_row, first_column; // of the team, in its block
  int64_t from, to;  // of the team's rows: those that run
  std::function<void(const std::string&)> outside;
  std::function<double*(int memory, int64_t at)> near; // an element of a staged vector, or nothing

  void run(const Rows& x);
  void at_row(const RowAxes& axes, int64_t row); // of the block
  int64_t integer(const Ref& r);                 // an element of an integer memory

private:
  int64_t at(const Affine& a) const;
  int64_t at(const Coordinate& c, const Body& b);
  bool hold(const Bounds& all, const Body& b);
  expr::Value element(const Ref& r, const Body* b);
  double* place(const Ref& r, const Body& b);
  expr::Value evaluate(const Body& b, Id id);
  void write(const Ref& r, const Body& b, const expr::Value& v);
};

} // namespace tang::kernel::role
