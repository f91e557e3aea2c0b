// Expressions to values, in one statement's scope.
#pragma once
#include "tang/text/model.hpp"

namespace tang::text {

// Index arithmetic that reports overflow instead of wrapping.
ir::Index plus(const ir::Index& a, const ir::Index& b, Where where);
ir::Index times(const ir::Index& a, int64_t k, Where where);

inline ir::Index minus(const ir::Index& a, const ir::Index& b, Where where) {
  return plus(a, times(b, -1, where), where);
}

class Evaluator;
// The ports that `names[dims] = body` defines, one a name: a fold over just those axes is itself, anything
// else a map. `alias`: a read of another tensor at just those axes is that tensor.
std::vector<ir::Port> define(Model& m, const std::vector<Token>& names, const std::vector<Dim>& dims,
                             const Expr& body, bool alias = false);

class Evaluator {
public:
  explicit Evaluator(Model& m) : m_(m) {}

  void bind(const std::string& name, Meaning v) { scope_[name].push_back(std::move(v)); }

  void unbind(const std::string& name) { scope_[name].pop_back(); }

  const Meaning* bound(const std::string& name) const;
  // An axis that a left side or a fold names: the one in view, or a new one.
  ir::Axis open_axis(const Dim& d);
  ir::Axis local(const std::string& name, Where where);
  ir::Axis fresh(const std::string& name, const ir::Extent* extent, const std::string& who, Where where);

  Meaning value(const Expr& e);
  ir::Scalar scalar(const Meaning& v, const Expr& e); // an Error when it has none
  ir::Scalar scalar(const Expr& e);
  ir::Scalar condition(const Expr& e);
  ir::Index index(const Expr& e);
  ir::Index index(const Meaning& v, const Expr& e);
  ir::Guard guard(const Expr& e);
  ir::Domain domain(const ir::Guard& g);
  std::vector<ir::Scalar> fold(const Expr& e);  // one a component
  std::vector<ir::Scalar> terms(const Expr& e); // of a tuple, or the one
  [[noreturn]] void no_extent(const std::string& axis, Where where);
  void require_extents(const ir::Scalar& s, Where where);
  ir::MonoidSpec monoid(const Token& name, size_t terms, bool whole);
  // Each value takes the type of its component, or is an Error.
  void fit(const ir::MonoidSpec& spec, std::vector<ir::Scalar>& lift, const std::vector<const Expr*>& from,
           const Expr& body, const std::string& name);
  void let(const Expr& e); // binds; unlet unbinds
  void unlet(const Expr& e);
  ir::Scalar literal(const ir::Scalar& s, ir::Type type, const Expr& e); // a plain number in this type
  ir::Scalar typed(const ir::Scalar& s); // a plain number as a real literal of the builder
  // Splits the axes among `names` that `body` uses as s / c or s % c: binds them, and says what keeps them in
  // range.
  std::map<std::string, std::shared_ptr<Split>> split(const std::vector<std::string>& names, const Expr& body,
                                                      ir::Guard& inside);
  std::map<std::string, ir::Extent> split_extent; // of each split axis
  std::optional<ir::Port> same_port(const ir::Scalar& s, const std::vector<ir::Axis>& axes) const;
  void limit(const ir::Scalar& s, Where where); // how deep a term may be

private:
  Meaning name(const Expr& e);
  Meaning read(const Expr& e);
  Meaning read(const Expr& e, const std::vector<ir::Index>& coords, bool in_range);
  Meaning call(const Expr& e);
  Meaning chain(const Expr& e);
  Meaning arithmetic(const std::string& op, const Meaning& a, const Expr& ea, const Meaning& b,
                     const Expr& eb, Where where);
  Meaning compare(const Expr& e);
  Meaning compare(const std::string& op, const Meaning& a, const Expr& ea, const Meaning& b, const Expr& eb,
                  Where where);
  Meaning logic(const std::string& op, const Meaning& a, const Expr& ea, const Meaning& b, const Expr& eb,
                Where where);
  Meaning mask(const Expr& e);
  Meaning unary(const Expr& e);
  ir::Scalar condition(const Meaning& v, const Expr& e);
  ir::Scalar apply(ir::Op op, std::vector<ir::Scalar> operands, const std::vector<const Expr*>& from,
                   Where where);
  Meaning wrap(const ir::Scalar& s);
  void check_lengths(const Expr& e, const std::vector<ir::Index>& coords,
                     const std::vector<ir::Extent>& shape, const std::string& tensor);
  [[noreturn]] void unknown(const Token& t, const char* what);
  std::vector<std::string> names_in_view() const;

  Model& m_;
  std::map<std::string, std::vector<Meaning>> scope_;
};

} // namespace tang::text
