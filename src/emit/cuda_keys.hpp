// Folds that only select pairs (value, place), with each pair carried as one integer: the rank of the value
// above the complement of the place. The larger integer comes first.
#pragma once
#include <memory>

#include "tang/emit/c_body.hpp"
#include "tang/kernel/selection.hpp"

namespace tang::emit {

class FoldKeys {
public:
  // Nothing where the fold is no selection or a place does not fit. `probe`: after refuses_lanes.
  static std::unique_ptr<FoldKeys> of(Unit& u, const kernel::Fold& f, const BodyText& probe);

  void start();               // declares the state: the identity
  void term(BodyText& t);     // joins one term, whose values `t` names
  void settle(int64_t lanes); // joins the states of lanes l and l + lanes / 2, then l + lanes / 4, ..
  std::string stored(size_t component) const;

private:
  FoldKeys(Unit& u, const kernel::Fold& f, kernel::Selection s) : u_(u), f_(f), s_(std::move(s)) {}

  bool is_identity(size_t pair) const; // what the lift has there
  bool fits(const BodyText& probe);
  void join(const std::string& right);

  const char* type() const { return short_ ? "int" : "int64_t"; }

  Unit& u_;
  const kernel::Fold& f_;
  kernel::Selection s_;
  bool short_ = true; // 16 bits of a value, 16 of a place
};

} // namespace tang::emit
