// What terms of a comprehension depend on, and the shapes that rules look for.
#pragma once
#include "tang/expr/absence.hpp"
#include "tang/expr/simplify.hpp"
#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

// Sets of axes of one node as bits (a node with more than 64 axes is refused by `axes_fit`).
using Axes = uint64_t;

inline Axes bit(int axis) { return Axes(1) << axis; }

inline bool axes_fit(const Comp& n) { return n.axis_count() <= 64; }

Axes point_axes(const Comp& n);
Axes fold_axes(const Comp& n);
Axes own_axes(const Comp& n, size_t component); // its points
Axes common_axes(const Comp& n);                // points that every component has

class Dependence {
public:
  Dependence(const Pool& p, const Comp& n) : p_(p), n_(n) {}

  Axes of(Id term);
  Axes of_arg(int arg);
  Axes of(const Form& f);
  Axes of(const Domain& d);

private:
  const Pool& p_;
  const Comp& n_;
  std::unordered_map<Id, Axes> terms_;
  std::map<int, Axes> args_;
};

bool uses_arg(const Pool& p, Id term, int arg);
bool has_reads(const Pool& p, Id term);
// The reads whose values are coordinates or bounds (gathers and uniforms).
std::set<int> index_reads(const Comp& n);

// Commutative operands in structural order: equal for terms whose reads were numbered in another order.
Id ordered(Pool& p, Id term);
Id in_one_order(Pool& p, Id term); // sums of sums and products of products, too
std::vector<int> axes_as_read(const Pool& p, const Comp& n, Axes axes, Id value);
// combine[c] is op(left c, right c), whatever the other components do.
bool is_plain_component(const Pool& p, const Comp& n, size_t c, Op op);
bool is_plain_fold(const Pool& p, const Comp& n, Op op); // one component and a plain combine

// The product of a term as written: factors, and divisors of `ratio` (0 where the divisor is 0).
struct Product {
  std::vector<Id> factors, divisors;
};

Product product_of(Pool& p, Id term);
Id term_of(Pool& p, const Product& f);
// Ops that cost many instructions: recomputing one a term of a fold is not free.
bool is_expensive(Op op);

// Does `from` read `target`, directly or through others? Operands come before users.
bool reaches(const Graph& g, NodeId from, NodeId target);
// Every coordinate provably inside the source, and the source total: the read always has a value.
bool is_total(Graph& g, const Comp& n, int arg);
// Does the node's domain say of every term that this read lies inside the array of that shape?
bool reads_inside(const Comp& n, const Arg& read, const std::vector<ir::Extent>& shape);
bool never_empty(const Comp& n, const ir::Symbols& symbols); // every point has a live term
// Moves the bounds in the bodies to the domain; what does not fit stays. True when the domain changed.
bool tighten(Graph& g, Comp& n);

} // namespace tang::rewrite
