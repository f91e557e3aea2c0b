// Certificates as text for Coq (proofs/export/README.md).
#include <numeric>

#include "tang/bound/derivation.hpp"

namespace tang::bound {

namespace {
template <class T, class F> std::string listed(const std::vector<T>& items, F text) {
  std::string out = "[";
  for (size_t k = 0; k < items.size(); ++k) out += (k ? "; " : "") + text(items[k]);
  return out + "]";
}

std::string coq(int64_t v) { return v < 0 ? "(" + std::to_string(v) + ")" : std::to_string(v); }

std::string coq(const Rational& q) {
  return coq(q.num()) + (q.den() == 1 ? "" : " # " + std::to_string(q.den()));
}

std::string coq(const Form& f) {
  return listed(f, [](const Rational& q) { return coq(q); });
}

// A row times the common denominator of its entries: it spans the same.
std::string coq_row(const Vector& v) {
  int64_t by = 1;
  for (auto& q : v) by *= q.den() / std::gcd(by, q.den());
  return listed(v, [&](const Rational& q) { return coq(q.num() * (by / q.den())); });
}

std::string coq_matrix(const Space& s) { return listed(s, coq_row); }

std::string coq(const std::vector<size_t>& places) {
  return listed(places, [](size_t k) { return std::to_string(k); }) + "%nat";
}

std::string coq(const Submodular& s) {
  return "Step (" + coq(s.weight) + ") " + std::to_string(s.one) + " " + std::to_string(s.two) + " " +
         std::to_string(s.both) + " " + std::to_string(s.neither);
}

std::string coq(const Derivation& d) {
  return "(Derivation\n    " + listed(d.matrices, coq_matrix) + "%Z\n    " + coq(d.of_arrays) + " " +
         coq(d.of_loops) + " " + std::to_string(d.whole) + "\n    " +
         listed(d.steps, [](const Submodular& s) { return coq(s); }) + ")";
}
} // namespace

Result<std::string> as_coq(const Bound& b, const Term& t, const std::string& name) {
  std::vector<Space> views;
  for (auto& a : b.nest.arrays) views.push_back(space(a.rows));
  const auto proof = derivation(views, t.s, t.t);
  if (!proof) return Refusal{proof.why()};
  return "Definition " + name + " : derivation := " + coq(*proof) + ".\nTheorem " + name + "_ok : derives " +
         std::to_string(b.nest.loops()) + "%nat " + listed(views, coq_matrix) + "%Z " + coq(t.s) + " " +
         coq(t.t) + " " + name + " = true.\nProof. prove_certificate. Qed.\n";
}

Result<std::string> as_coq(const Certificate& c, const std::string& name) {
  const auto proof = derivation(c.views, c.s, c.t);
  if (!proof) return Refusal{proof.why()};
  std::string arrays = "[";
  for (size_t j = 0; j < c.views.size(); ++j)
    arrays += (j ? "; (" : "(") + coq_matrix(c.views[j]) + "%Z, " + coq(c.capacities[j]) + ")";
  auto forms = [](const std::vector<Form>& v) { return listed(v, [](const Form& f) { return coq(f); }); };
  return "Definition " + name + " : certificate := Certificate\n  " +
         listed(c.atoms.values(), [](int64_t v) { return coq(v); }) + "%Z\n  " + forms(c.extents) + "\n  " +
         arrays + "]\n  " + listed(c.conditions, [](const Condition& h) { return coq_matrix(h.subgroup); }) +
         "%Z\n  " + coq(c.s) + "\n  " + coq(c.t) + "\n  " + forms(c.x) + "\n  " + coq(*proof) +
         ".\nTheorem " + name + "_ok : check " + name + " = true.\nProof. prove_certificate. Qed.\n";
}

} // namespace tang::bound
