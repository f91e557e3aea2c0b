// What a builder asks of its arguments: ranks and extents under names, said with the caller's line.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tang.hpp"

namespace tang::models {

inline constexpr double infinity = __builtin_huge_val();

// shapes("q", q, "batch head row d") binds each name to an extent at its first use and compares it at the
// next.
class Shapes {
public:
  explicit Shapes(Where where) : where_(where) {}

  // Throws Error: another rank, or an extent that differs from the one the name is bound to.
  Shapes& operator()(const std::string& role, const Tensor& t, const std::string& dims);
  Extent operator[](const std::string& dim) const;
  // The extent as a number; throws Error when it is symbolic.
  int64_t whole(const std::string& dim) const;

  Where where() const { return where_; }

private:
  struct Bound {
    Extent extent;
    std::string fact; // "k [batch, kv, key, d] is [1, 2, 5, 4]"
    Where where;
  };

  Where where_;
  std::map<std::string, Bound> bound_;
};

std::string text(const std::vector<Extent>& shape); // "[2, 3]"
[[noreturn]] void reject(Where where, std::string headline, std::vector<Note> facts, std::string fix);

// An axis for each dimension of t, with its extent: `letter` and the dimension's number.
std::vector<Axis> axes_of(const Tensor& t, const std::string& letter);
std::vector<Axis> plus(std::vector<Axis> a, const Axis& b); // one more axis, the last
Coords coords(const std::vector<Axis>& axes);
Coords operator+(Coords a, const Coords& b);
// How many terms the axes count, as a value: a constant when it is known, else a fold of ones.
Scalar count(const Over& over, const std::vector<Extent>& extents);
Extent product(const std::vector<Extent>& extents);

inline bool given(const Tensor& t) { return t.builder != nullptr; }

// The tensor stored under a name, point by point: an intermediate that a textbook would write down.
Tensor keep(const std::vector<Axis>& points, const Scalar& body, const char* name, Where where);

} // namespace tang::models
