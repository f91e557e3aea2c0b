#include "tang/prove/monoid.hpp"

#include <cmath>

#include "tang/ir/absorb.hpp"
#include "tang/prove/term.hpp"

namespace tang::prove {

namespace {
using expr::Op;
using expr::Type;

// A component that folds as a plain sum and that another component divides by is a weight: its terms are >=
// 0, because a quotient by a sum of both signs has no law.
bool is_count(const expr::Pool& p, const ir::Monoid& m, size_t c) {
  const expr::Term& sum = p[m.combine[c]];
  auto operand = [&](expr::Id x, size_t side) {
    return p[x].op == Op::var && size_t(p[x].whole) == 2 * c + side;
  };
  if (sum.op != Op::add || sum.type != Type::real) return false;
  if (!(operand(sum.args[0], 0) && operand(sum.args[1], 1)) &&
      !(operand(sum.args[0], 1) && operand(sum.args[1], 0)))
    return false;
  for (expr::Id other : m.combine)
    for (expr::Id x : expr::subterms(p, other, Op::ratio))
      if (p[x].args[1] == m.combine[c]) return true;
  return false;
}

std::string kind(const expr::Pool& p, const ir::Monoid& m, size_t c) {
  const expr::Value& e = m.identity[c];
  if (e.type == Type::boolean) return "boolean";
  if (e.type != Type::real) return e.i == INT64_MAX ? "place" : "index";
  if (std::isinf(e.r)) return e.r < 0 ? "bottom" : "top";
  return is_count(p, m, c) ? "count" : "finite";
}

// k extremes, then k places: the network of export/topk.v, which is proved for every k. `row` compares term
// for term.
std::string network(const ir::Monoid& m) {
  const size_t k = m.size() / 2;
  if (m.size() % 2 || !k) return "";
  for (size_t c = 0; c < k; ++c) {
    const expr::Value &value = m.identity[c], &place = m.identity[k + c];
    if (value.type != Type::real || !std::isinf(value.r) || value.r != m.identity[0].r) return "";
    if (place.type != Type::index || place.i != INT64_MAX) return "";
  }
  return std::string("(best_row ") + (m.identity[0].r < 0 ? "true " : "false ") + std::to_string(k) + ")";
}
} // namespace

void Book::add(const std::string& text, const std::string& theorem) {
  constexpr int most = 40;
  if (!known_.insert(text).second) return;
  if (files_.empty() || files_.back().theorems == most)
    files_.push_back({name_ + "_" + std::to_string(files_.size()) + ".v", imports_, 0});
  files_.back().text += named(text, theorem);
  ++files_.back().theorems;
}

Result<File> monoid_file(const ir::MonoidSpec& spec, const std::string& name) {
  expr::Pool p;
  const ir::Monoid m = ir::traced(p, spec);

  Terms terms;
  std::vector<Ref> roots;
  std::vector<std::string> kinds, identity;
  const std::string special = network(m);
  for (size_t c = 0; c < m.size(); ++c) {
    auto leaf = [&](const expr::Term& t) { return terms.variable(t.whole); };
    const Result<Ref> combine = terms.of(p, m.combine[c], leaf);
    if (!combine) return Refusal{combine.why()};
    roots.push_back(*combine);
    kinds.push_back(special.empty() ? kind(p, m, c) : c < m.size() / 2 ? "real" : "place");
    const Result<Ref> unit = terms.of(p, p.literal(m.identity[c]), leaf);
    identity.push_back(terms.text(*unit));
  }
  const Terms::Text t = terms.text(roots, name);
  File f{"monoid_" + name + ".v", "", 1};
  f.text = std::string("From Tang Require Import export.") +
           (special.empty() ? "prove_monoid" : "prove_topk") + ".\n" + t.definitions;
  f.text += "Definition " + name + " : row := Row\n  " + listed(kinds) + " " + listed(identity) + "\n  " +
            listed(t.terms, ";\n   ") + (m.commutative ? " true.\n" : " false.\n");
  f.text += "Theorem " + name + "_ok : " + (special.empty() ? "monoid_ok " + name : name + " = " + special) +
            ".\nProof. " + (special.empty() ? "prove_monoid" : "prove_topk") + ". Qed.\n";
  return f;
}

} // namespace tang::prove
