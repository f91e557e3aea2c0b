// Integer forms over a node's axes and index reads; views and domains are made of them.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "tang/ir/extent.hpp"

namespace tang::ir {

// c + sum k * axis + sum k * (index value of read `arg`): a view coordinate, or the left side of a bound form
// >= 0. An axis is its position in the node (points, then folds); an arg is its position in the node's list
// of reads.
struct Form {
  Extent c = 0;
  std::vector<std::pair<int, int64_t>> axes; // sorted by axis, no zero coefficient
  std::vector<std::pair<int, int64_t>> args; // the same: uniforms and gathers

  int64_t axis(int a) const; // its coefficient, 0 if none
  int64_t arg(int a) const;

  bool is_constant() const { return axes.empty() && args.empty(); }

  bool is_affine() const { return args.empty(); }

  bool is_pick() const { return args.empty() && axes.size() == 1 && axes[0].second == 1 && c == Extent(0); }

  int picked() const { return axes[0].first; } // of a pick

  uint64_t hash() const;
};

int compare(const Form& a, const Form& b);

inline bool operator==(const Form& a, const Form& b) { return compare(a, b) == 0; }

inline bool operator!=(const Form& a, const Form& b) { return compare(a, b) != 0; }

inline bool operator<(const Form& a, const Form& b) { return compare(a, b) < 0; }

Form constant(const Extent& c);
Form axis(int a, int64_t k = 1);
Form uniform(int arg, int64_t k = 1);
Form operator+(const Form& a, const Form& b);
Form operator*(int64_t k, const Form& a);

inline Form operator-(const Form& a, const Form& b) { return a + (-1) * b; }

// Each axis and each read replaced by a form.
Form compose(const Form& f, const std::function<Form(int)>& axis_at, const std::function<Form(int)>& arg_at);
// Only the axes replaced.
Form compose(const Form& f, const std::function<Form(int)>& axis_at);
int64_t value(const Form& f, const std::vector<int64_t>& axes); // affine, bound
std::string text(const Form& f, const std::function<std::string(int)>& axis_name,
                 const std::function<std::string(int)>& arg_name);

// A conjunction of bounds form >= 0, sorted; a domain is a union of a few of them.
using Conj = std::vector<Form>;
using Domain = std::vector<Conj>; // {{}} is everything, {} nothing
const Domain& everywhere();
inline constexpr size_t most_pieces = 4; // what does not fit stays as a predicate in the body

void insert(Conj& c, const Form& f);
Form negated(const Form& bound); // not (f >= 0)  is  -f - 1 >= 0
bool contradictory(const Conj& c);
Domain normal(Domain d); // sorted, no covered and no empty conjunction
Domain intersection(const Domain& a, const Domain& b);
std::vector<Conj> disjoint(const Domain& d);    // pieces that count no point twice
bool implies(const Domain& a, const Domain& b); // syntactic: every piece of a contains some piece of b
// Bounds that interval analysis proves from the extents are dropped; an impossible one empties its piece.
Domain pruned(const Domain& d, const std::vector<Extent>& extents, const Symbols& symbols);
std::pair<int64_t, int64_t> range(const Form& f, const std::vector<Extent>& extents, const Symbols& symbols);
Domain moved(const Domain& d, const std::function<Form(const Form&)>& move);

} // namespace tang::ir
