#include "tang/prove/term.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace tang::prove {

namespace {
using expr::Op;
constexpr size_t longest_shared = 48; // characters: a shorter subterm is repeated rather than named

const char* head(Op op) {
  switch (op) {
  case Op::add: return "add";
  case Op::mul: return "mul";
  case Op::neg: return "neg";
  case Op::recip: return "recip";
  case Op::sqrt: return "sqrt_";
  case Op::sin: return "sin_";
  case Op::atan2: return "atan2_";
  case Op::exp2: return "exp2_";
  case Op::log2: return "log2_";
  case Op::floor: return "floor_";
  case Op::max: return "max_";
  case Op::min: return "min_";
  case Op::is_nan: return "is_nan";
  case Op::ratio: return "ratio_";
  case Op::less: return "less_";
  case Op::equal: return "equal_";
  case Op::both: return "and_";
  case Op::either: return "or_";
  case Op::flip: return "not_";
  case Op::div: return "div_";
  case Op::mod: return "mod_";
  case Op::to_real: return "real_";
  case Op::to_index: return "index_";
  case Op::select: return "select";
  case Op::only: return "only_";
  case Op::or_else: return "or_else_";
  default: return nullptr;
  }
}
} // namespace

std::string whole(int64_t v) { return v < 0 ? "(" + std::to_string(v) + ")" : std::to_string(v); }

Ref Terms::make(const std::string& head, const std::vector<Ref>& parts, int64_t number) {
  std::string key = head + " " + std::to_string(number);
  for (Ref r : parts) key += " " + std::to_string(r);
  auto [it, fresh] = ids_.try_emplace(key, Ref(terms_.size()));
  if (fresh) terms_.push_back({head, number, parts});
  return it->second;
}

Ref Terms::integer(int64_t v) { return make("(lit " + whole(v) + " 0)"); }

Ref Terms::real(double v) {
  if (std::isnan(v)) return make("nan");
  if (std::isinf(v)) return make(v > 0 ? "inf" : "ninf");
  if (v == 0) return integer(0);
  int exponent = 0;
  int64_t mantissa = int64_t(std::ldexp(std::frexp(v, &exponent), 53));
  exponent -= 53;
  while (mantissa % 2 == 0) mantissa /= 2, ++exponent;
  for (; exponent > 0 && std::llabs(mantissa) < (int64_t(1) << 52); --exponent) mantissa *= 2;
  return make("(lit " + whole(mantissa) + " " + whole(exponent) + ")");
}

Result<Ref> Terms::of(const expr::Pool& p, expr::Id id, const Leaf& leaf) {
  std::unordered_map<expr::Id, Ref> done;
  for (expr::Id x : expr::schedule(p, {id})) {
    const expr::Term& t = p[x];
    if (t.type == expr::Type::bits) return Refusal{"bits are not modelled"};
    if (t.op == Op::literal) {
      done[x] = t.type == expr::Type::real      ? real(t.r)
                : t.type == expr::Type::boolean ? truth(t.whole)
                                                : integer(t.whole);
    } else if (!t.arity()) {
      done[x] = leaf(t);
    } else {
      const char* h = head(t.op);
      if (!h || (t.op == Op::to_index && p[t.args[0]].type == expr::Type::boolean))
        return Refusal{std::string(expr::row(t.op).name) + " has no row"};
      std::vector<Ref> parts;
      for (int k = 0; k < t.arity(); ++k) parts.push_back(done.at(t.args[size_t(k)]));
      done[x] = make(h, parts);
    }
  }
  return done.at(id);
}

std::vector<Ref> Terms::below(const std::vector<Ref>& roots) const {
  std::set<Ref> seen;
  std::vector<Ref> out;
  std::function<void(Ref)> walk = [&](Ref r) {
    if (!seen.insert(r).second) return;
    for (Ref c : terms_[r].parts) walk(c);
    out.push_back(r);
  };
  for (Ref r : roots) walk(r);
  return out;
}

bool Terms::looks_at(Ref root, int64_t axis) const {
  std::map<Ref, bool> is;
  for (Ref r : below({root})) {
    const Term& t = terms_[r];
    auto at = [&](size_t k) { return is.at(t.parts[k]); };
    if (t.head == "ax")
      is[r] = t.number == axis;
    else if (t.head == "select")
      is[r] = at(0) || (at(1) && at(2));
    else if (t.head == "or_else_")
      is[r] = at(0) && at(1);
    else
      is[r] = std::any_of(t.parts.begin(), t.parts.end(), [&](Ref c) { return is.at(c); });
  }
  return is.at(root);
}

bool Terms::reads(Ref root, int64_t node) const {
  for (Ref r : below({root}))
    if (terms_[r].head == "rd" && terms_[r].number == node) return true;
  return false;
}

double Terms::tree_size(Ref root) const {
  std::map<Ref, double> size;
  for (Ref r : below({root})) {
    double n = 1;
    for (Ref c : terms_[r].parts) n += size.at(c);
    size[r] = n;
  }
  return size.at(root);
}

std::string Terms::shown(Ref r, const std::map<Ref, std::string>& named) const {
  const Term& t = terms_[r];
  if (t.number < 0 && t.parts.empty()) return t.head;
  std::string out = "(" + t.head;
  if (t.number >= 0) out += " " + std::to_string(t.number);
  const bool list = t.head == "rd";
  if (list) out += " [";
  for (size_t k = 0; k < t.parts.size(); ++k) out += (list ? (k ? "; " : "") : " ") + named.at(t.parts[k]);
  return out + (list ? "])" : ")");
}

std::string Terms::text(Ref root) const {
  std::map<Ref, std::string> named;
  for (Ref r : below({root})) named[r] = shown(r, named);
  return named.at(root);
}

Terms::Text Terms::text(const std::vector<Ref>& roots, const std::string& prefix,
                        const std::string& type) const {
  std::map<Ref, int> uses;
  const std::vector<Ref> all = below(roots);
  for (Ref r : all)
    for (Ref c : terms_[r].parts) ++uses[c];
  for (Ref r : roots) ++uses[r];
  Text out;
  std::map<Ref, std::string> named;
  int number = 0;
  for (Ref r : all) {
    std::string s = shown(r, named);
    if (uses[r] > 1 && s.size() > longest_shared) {
      const std::string name = prefix + "_" + std::to_string(number++);
      out.definitions += "Definition " + name + " : " + type + " := " + s + ".\n";
      s = name;
    }
    named[r] = std::move(s);
  }
  for (Ref r : roots) out.terms.push_back(named.at(r));
  return out;
}

std::string listed(const std::vector<std::string>& items, const char* between) {
  std::string out = "[";
  for (size_t k = 0; k < items.size(); ++k) out += (k ? between : "") + items[k];
  return out + "]";
}

std::string named(std::string text, const std::string& name) {
  for (size_t at = 0; (at = text.find("NAME", at)) != std::string::npos; at += name.size())
    text.replace(at, 4, name);
  return text;
}

} // namespace tang::prove
