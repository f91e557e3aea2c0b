// The linear program of a nest's views, solved exactly: rows are rational, costs are logarithms kept as
// symbols.
//   cover:  min sum s_j mu_j + sum t_i beta_i   with  rank H <= sum s_j rank phi_j(H) + sum t_i rank pi_i(H)
//   for every H tile:   max sum_H rank H x_H                 with  sum_H rank phi_j(H) x_H <= mu_j,  sum_H
//   rank pi_i(H) x_H <= beta_i
#pragma once
#include "tang/bound/number.hpp"
#include "tang/bound/space.hpp"

namespace tang::bound {

// sum_k c_k log_M(atom_k), with atom 0 = M: the coefficients. [1] is the constant 1.
using Form = std::vector<Rational>;

// The integers whose logarithms occur; signs of forms are decided by comparing integer powers.
class Atoms {
public:
  explicit Atoms(int64_t memory) : values_{memory} { logs_.push_back(log_of(memory)); }

  const std::vector<int64_t>& values() const { return values_; }

  size_t add(int64_t v);         // its place; >= 1
  Form log(int64_t v);           // log_M v; v >= 1
  int sign(const Form& f) const; // exact
  double value(const Form& f) const;

private:
  static long double log_of(int64_t v);
  std::vector<int64_t> values_;
  std::vector<long double> logs_;
};

Form operator+(const Form& a, const Form& b);
Form scaled(const Rational& k, const Form& f);
bool is_zero(const Form& f);

// One condition of the cover: a subgroup of the loops' lattice and the ranks of its images.
struct Condition {
  std::string text; // of the subgroup
  int rank = 1;
  std::vector<int> arrays, loops; // rank phi_j(H), rank pi_i(H)
  Space subgroup;                 // a basis of H
  int loop = -1;                  // it is the single loop <e_i>
};

// Loops that multi-term views do not mix need only <e_i>: the inequality is a product over groups of mixed
// loops.
Result<std::vector<Condition>> conditions(const Nest& n);

// What a solution claims, checkable without the solver.
struct Certificate {
  Atoms atoms{2};
  std::vector<Form> extents;    // beta_i
  std::vector<Form> capacities; // mu_j
  std::vector<Space> views;     // the arrays' maps
  std::vector<Condition> conditions;
  std::vector<Rational> s, t; // the cover
  std::vector<Form> x;        // the tile exponents, one a condition
  std::vector<std::string> loops, arrays;
  Form value() const; // sum s mu + sum t beta
};

// max sum gain_k z_k with rows z <= right, z >= 0, by Bland's rule; right sides are forms >= 0. `prices` are
// the reduced costs of the variables and then of the rows' slacks. Nothing when there is no largest value.
struct Optimum {
  std::vector<Form> z;
  Vector prices;
};

std::optional<Optimum> maximum(const std::vector<Vector>& rows, std::vector<Form> right, const Vector& gain,
                               const Atoms& atoms);

// Bland's rule on the tile program, whose right sides are logarithms. Refused when an element is larger than
// memory.
Result<Certificate> solve(const Nest& n, const std::vector<Condition>& conditions, int64_t memory);
// Primal rows, dual rows as integer powers, equal objectives coefficient by coefficient. Empty: it holds;
// else what fails.
std::string failure(const Certificate& c);
// A theorem that coqc proves after `coq_imports`, with a derivation of the cover's inequality; refused when
// none is found.
Result<std::string> as_coq(const Certificate& c, const std::string& name);
inline constexpr const char* coq_imports =
    "From Coq Require Import List ZArith QArith.\n"
    "From Tang Require Import export.lp.\nImport ListNotations.\nOpen Scope Q_scope.\n";

} // namespace tang::bound
