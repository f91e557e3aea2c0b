#include "tang/prove/rule.hpp"

#include "tang/expr/facts.hpp"
#include "tang/prove/term.hpp"

namespace tang::prove {

namespace {
std::string rule_text(Terms& t, const expr::Pool& p, const expr::Fact& f) {
  auto term = [&](expr::Id id) {
    const Result<Ref> r = t.of(p, id, [&](const expr::Term& leaf) { return t.variable(leaf.whole); });
    check(bool(r), f.name + " has no printed form: " + r.why());
    return t.text(*r);
  };
  std::vector<std::string> kinds, premises;
  for (expr::Kind k : f.kinds) kinds.push_back(expr::name(k));
  for (expr::Id x : f.premises) premises.push_back(term(x));
  const std::string left = term(f.left), right = term(f.right);
  return std::string("Definition NAME : rule := Rule ") +
         (f.strength == expr::Fact::exact ? "exact " : "algebraic ") + listed(kinds) + " " +
         listed(premises) + "\n  " + left + "\n  " + right +
         ".\nTheorem NAME_ok : rule_ok NAME. Proof. prove_rule. Qed.\n";
}
} // namespace

std::vector<File> rule_files() {
  expr::Pool p;
  Terms terms;
  Book out("rules", "From Tang Require Import export.prove_rule.\n");
  for (auto& f : expr::facts(p)) out.add(rule_text(terms, p, f), "fact_" + f.name);
  return out.files();
}

} // namespace tang::prove
