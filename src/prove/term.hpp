// Terms as Coq reads them (proofs/export/README.md): an arena of printed terms, and what is made of scalar
// graphs and forms.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/expr/pool.hpp"

namespace tang::prove {

using Ref = uint32_t;

// A constructor and its arguments. Leaves with a number (`ax`, `v`) and reads (`rd`) carry it.
struct Term {
  std::string head;
  int64_t number = -1;
  std::vector<Ref> parts;
};

class Terms {
public:
  const Term& operator[](Ref r) const { return terms_[r]; }

  Ref make(const std::string& head, const std::vector<Ref>& parts = {}, int64_t number = -1);
  Ref real(double v);
  Ref integer(int64_t v);

  Ref truth(bool b) { return make(b ? "yes" : "no"); }

  Ref axis(int64_t n) { return make("ax", {}, n); }

  Ref variable(int64_t n) { return make("v", {}, n); }

  Ref read(int64_t node, const std::vector<Ref>& coords) { return make("rd", coords, node); }

  // A scalar graph; `leaf` answers var, coord, arg and holds. Refused: bits, shifts, and index of a boolean
  // have no row.
  using Leaf = std::function<Ref(const expr::Term&)>;
  Result<Ref> of(const expr::Pool& p, expr::Id id, const Leaf& leaf);

  // Absent whenever this axis is absent? (`strict` of export/fusion.v)
  bool looks_at(Ref t, int64_t axis) const;
  bool reads(Ref t, int64_t node) const;
  // Fully parenthesized, shared subterms written out.
  std::string text(Ref t) const;

  // The same, with large subterms that occur more than once as definitions before it, named `prefix`_0, _1,
  // ..
  struct Text {
    std::string definitions;
    std::vector<std::string> terms;
  };

  Text text(const std::vector<Ref>& roots, const std::string& prefix, const std::string& type = "term") const;
  double tree_size(Ref t) const;                               // nodes when written out
  std::vector<Ref> below(const std::vector<Ref>& roots) const; // operands before users

private:
  std::string shown(Ref t, const std::map<Ref, std::string>& named) const;
  std::vector<Term> terms_;
  std::map<std::string, Ref> ids_;
};

std::string whole(int64_t v); // in parentheses when negative
std::string listed(const std::vector<std::string>& items, const char* between = "; ");
// Every NAME in a text replaced.
std::string named(std::string text, const std::string& name);

} // namespace tang::prove
