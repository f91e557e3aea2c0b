#include "tang/prove/rule.hpp"

#include "tang/expr/facts.hpp"
#include "tang/prove/term.hpp"

namespace tang::prove {

namespace {
constexpr int most_theorems = 24; // of a file

std::string rule_text(Terms& t, const expr::Pool& p, const expr::Fact& f) {
  auto term = [&](expr::Id id) {
    const Result<Ref> r = t.of(p, id, [&](const expr::Term& leaf) { return t.variable(leaf.whole); });
    check(bool(r), f.name + " has no printed form: " + r.why());
    return t.text(*r);
  };
  auto list = [](const std::vector<std::string>& items) {
    std::string out = "[";
    for (size_t k = 0; k < items.size(); ++k) out += (k ? "; " : "") + items[k];
    return out + "]";
  };
  std::vector<std::string> kinds, premises;
  for (expr::Kind k : f.kinds) kinds.push_back(expr::name(k));
  for (expr::Id x : f.premises) premises.push_back(term(x));
  const std::string left = term(f.left), right = term(f.right);
  const std::string name = "fact_" + f.name;
  return "Definition " + name + " : rule := Rule " +
         (f.strength == expr::Fact::exact ? "exact " : "algebraic ") + list(kinds) + " " + list(premises) +
         "\n  " + left + "\n  " + right + ".\nTheorem " + name + "_ok : rule_ok " + name +
         ". Proof. prove_rule. Qed.\n";
}
} // namespace

std::vector<File> rule_files() {
  expr::Pool p;
  Terms terms;
  std::vector<File> out;
  for (auto& f : expr::facts(p)) {
    if (out.empty() || out.back().theorems == most_theorems)
      out.push_back(
          {"rules_" + std::to_string(out.size()) + ".v", "From Tang Require Import export.prove_rule.\n", 0});
    out.back().text += rule_text(terms, p, f);
    ++out.back().theorems;
  }
  return out;
}

} // namespace tang::prove
