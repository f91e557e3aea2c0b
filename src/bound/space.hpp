// Subspaces of rational coordinates: ranks, sums, intersections, and the lattice that a family of kernels
// generates.
#pragma once
#include "tang/bound/nest.hpp"
#include "tang/bound/number.hpp"

namespace tang::bound {

using Vector = std::vector<Rational>;
using Space = std::vector<Vector>; // a basis in reduced echelon form: equal spaces are equal

Space reduced(std::vector<Vector> spanning);
Space space(const std::vector<Row>& rows);
int rank(const std::vector<Row>& rows);
Space kernel(const Space& rows, size_t dimension); // what every row sends to 0
Space sum(const Space& a, const Space& b);
Space intersection(const Space& a, const Space& b, size_t dimension);
int image_rank(const Space& rows, const Space& of);

// Every space that sums and intersections make of these; refused when there are more than `most`.
Result<std::vector<Space>> lattice(const std::vector<Space>& generators, size_t dimension, size_t most = 256);

// Loops joined into groups.
class Groups {
public:
  explicit Groups(size_t n) {
    for (size_t k = 0; k < n; ++k) of_.push_back(int(k));
  }

  void tie(int a, int b);
  void tie(const Row& r); // all that have a coefficient
  std::vector<std::vector<int>> all() const;

private:
  std::vector<int> of_;
};

// Loops that maps mix, and the part of each map on them: a map is the sum of its parts.
struct Mixed {
  std::vector<int> loops;
  std::vector<Space> parts; // one a map, over these loops
};

std::vector<Mixed> mixed(const std::vector<Space>& maps, size_t dimension);
Vector unit(size_t k, size_t dimension);

} // namespace tang::bound
