#include "tang/kernel/print.hpp"

#include <algorithm>

#include "tang/base/hash.hpp"
#include "tang/base/match.hpp"
#include "tang/base/number.hpp"

namespace tang::kernel {

namespace {
using expr::Op;

const char* word(Home h) {
  static constexpr const char* words[] = {"global", "shared", "fragment", "register"};
  return words[size_t(h)];
}
const char* word(Team t) {
  static constexpr const char* words[] = {"lane", "subgroup", "warpgroup", "workgroup", "cluster"};
  return words[size_t(t)];
}
const char* word(Lanes l) {
  static constexpr const char* words[] = {"owned", "replicated", "partial"};
  return words[size_t(l)];
}
const char* word(Access a) {
  static constexpr const char* words[] = {"in", "out", "inout"};
  return words[size_t(a)];
}
std::string list(const std::vector<int64_t>& v) {
  std::string out = "[";
  for (size_t k = 0; k < v.size(); ++k) out += (k ? ", " : "") + std::to_string(v[k]);
  return out + "]";
}
std::string literal(Type type, double r, int64_t i) {
  if (type == Type::boolean) return i ? "true" : "false";
  if (type != Type::real) return std::to_string(i) + (type == Type::bits ? "u" : "");
  std::string s = shortest(r);  // a real is told from an integer by its point
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}
std::string literal(const Value& v) { return literal(v.type, v.r, v.i); }
const char* infix(Op op) {
  switch (op) {
    case Op::add: return " + ";
    case Op::mul: return " * ";
    case Op::less: return " < ";
    case Op::equal: return " == ";
    case Op::both: return " and ";
    case Op::either: return " or ";
    case Op::div: return " / ";
    case Op::mod: return " % ";
    default: return nullptr;
  }
}
}  // namespace

std::string Text::var(Var v) {
  const int n = vars_.emplace(v, int(vars_.size())).first->second;
  return naming_ == Naming::own && size_t(v) < k_.vars.size() ? k_.vars[size_t(v)] : "i" + std::to_string(n);
}
std::string Text::memory(int m) {
  if (m < 0 || size_t(m) >= k_.memories.size()) return "no-memory";
  if (naming_ == Naming::own) return k_.memories[size_t(m)].name;
  if (k_.memories[size_t(m)].home == Home::global) return "a" + std::to_string(m);
  auto it = std::find(tiles_.begin(), tiles_.end(), m);
  if (it == tiles_.end()) it = tiles_.insert(tiles_.end(), m);
  return "t" + std::to_string(it - tiles_.begin());
}
std::string Text::affine(const Affine& a) {
  auto terms = a.terms;  // in order of first use, not of the variables' numbers
  for (auto& [v, k] : terms) var(v);
  std::sort(terms.begin(), terms.end(), [&](auto& x, auto& y) { return vars_[x.first] < vars_[y.first]; });
  std::string out;
  for (auto& [v, k] : terms) {
    const int64_t size = k < 0 ? -k : k;
    out += out.empty() ? (k < 0 ? "-" : "") : (k < 0 ? " - " : " + ");
    out += (size == 1 ? "" : std::to_string(size) + "*") + var(v);
  }
  if (out.empty()) return std::to_string(a.c);
  if (a.c) out += (a.c < 0 ? " - " : " + ") + std::to_string(a.c < 0 ? -a.c : a.c);
  return out;
}
std::string Text::coordinate(const Coordinate& c, const Body* body) {
  std::string out;
  for (auto& [r, k] : c.refs) {
    if (!out.empty()) out += " + ";
    if (k != 1) out += std::to_string(k) + "*";
    out += body && r >= 0 && size_t(r) < body->refs.size() ? ref(body->refs[size_t(r)], body)
                                                           : "ref" + std::to_string(r);
  }
  if (out.empty()) return affine(c.affine);
  return c.affine.c || !c.affine.terms.empty() ? out + " + " + affine(c.affine) : out;
}
std::string Text::ref(const Ref& r, const Body* body) {
  std::string out = memory(r.memory) + (r.checked ? "?[" : "[");
  for (size_t d = 0; d < r.index.size(); ++d) out += (d ? ", " : "") + coordinate(r.index[d], body);
  return out + "]";
}
std::string Text::all(const Bounds& b, const Body* body) {
  std::string out;
  for (auto& c : b) out += (out.empty() ? "" : " and ") + coordinate(c, body) + " >= 0";
  return out.empty() ? "true" : out;
}
std::string Text::any(const std::vector<Bounds>& b, const Body* body) {
  std::string out;
  for (auto& x : b) out += (out.empty() ? "" : " or ") + all(x, body);
  return out.empty() ? "false" : out;
}
std::string Text::axes(const std::vector<TileAxis>& a, int vector) {
  std::string out;
  for (size_t d = 0; d < a.size(); ++d)
    out += (d ? ", " : " ") + var(a[d].var) + " < " + std::to_string(a[d].extent) +
           (int(d) == vector ? " vector" : "");
  return out;
}
std::string Text::leaf(const expr::Term& t, const Body* body) {
  switch (t.op) {
    case Op::literal: return literal(t.type, t.r, t.whole);
    case Op::var: return (t.whole % 2 ? "r" : "l") + std::to_string(t.whole / 2);
    case Op::coord: return var(Var(t.whole));
    case Op::arg:
      if (body && t.whole >= 0 && size_t(t.whole) < body->refs.size())
        return ref(body->refs[size_t(t.whole)], body);
      break;
    case Op::holds:
      if (body && t.whole >= 0 && size_t(t.whole) < body->guards.size())
        return "(" + any(body->guards[size_t(t.whole)], body) + ")";
      break;
    default: break;
  }
  return row(t.op).name + std::to_string(t.whole);
}
std::string Text::term(Id id, const Body* body) {
  if (auto it = named_.find(id); it != named_.end()) return it->second;
  const expr::Term& t = (*k_.pool)[id];
  if (!t.arity()) return leaf(t, body);
  if (const char* op = infix(t.op)) {
    const std::string left = term(t.args[0], body), right = term(t.args[1], body);
    return "(" + left + op + right + ")";
  }
  std::string out = row(t.op).name;
  for (int k = 0; k < t.arity(); ++k) out += (k ? ", " : "(") + term(t.args[size_t(k)], body);
  return out + ")";
}
// Lines that name the terms with several uses: a shared graph printed as a tree would explode.
std::string Text::name_shared(const std::vector<Id>& roots, const Body* body, const std::string& pad) {
  named_.clear();
  std::map<Id, int> uses;
  const auto order = schedule(*k_.pool, roots);
  for (Id id : order)
    for (int k = 0; k < (*k_.pool)[id].arity(); ++k) ++uses[(*k_.pool)[id].args[size_t(k)]];
  for (Id id : roots) ++uses[id];
  std::string out;
  for (Id id : order) {
    if (!(*k_.pool)[id].arity() || uses[id] < 2) continue;
    const std::string name = "x" + std::to_string(named_.size()), value = term(id, body);
    out += pad + name + " = " + value + "\n";
    named_[id] = name;
  }
  return out;
}
std::string Text::body(const Body& b, const std::string& pad) {
  std::vector<Id> roots = b.values;
  if (b.when) roots.insert(roots.begin(), *b.when);
  std::string out = name_shared(roots, &b, pad);
  if (b.when) out += pad + "when " + term(*b.when, &b) + "\n";
  return out;
}
std::string Text::head(const Stmt& s) {
  std::string out;
  auto deal = [&](const Deal& d) {
    if (!d.team) return;
    out += " team " + std::to_string(d.team);
    if (d.run > 1) out += " run " + std::to_string(d.run);
    if (d.lead) out += " lead " + std::to_string(d.lead);
    if (d.each) out += " each";
    if (d.matrix) out += " matrix";
  };
  auto bounds = [&](const Bounds& b, const std::vector<Bounds>& partial, const Body& body) {
    if (!b.empty()) out += " if " + all(b, &body);
    if (!partial.empty()) out += " partial " + any(partial, &body);
  };
  std::visit(Match{[&](const Apply& x) {
                     out = "apply" + axes(x.axes, x.vector);
                     deal(x.deal);
                     bounds(x.bounds, x.partial, x.body);
                   },
                   [&](const Fold& x) {
                     const int kept = int(x.kept.size());
                     out = "fold" + axes(x.kept, x.vector);
                     out += " over" + axes(x.folded, x.vector < 0 ? -1 : x.vector - kept);
                     if (x.ways != 1) out += " ways " + std::to_string(x.ways);
                     if (x.search) out += " search";
                     deal(x.deal);
                     bounds(x.bounds, x.partial, x.body);
                     if (!x.limits.empty()) out += " limits " + all(x.limits, &x.body);
                   },
                   [&](const Contract& x) {
                     out = "contract m" + axes(x.m);
                     out += " n" + axes(x.n);
                     out += " k" + axes(x.k);
                     out += " block " + std::to_string(x.rows) + " x " + std::to_string(x.vectors);
                     if (x.m_end) out += " m_end " + affine(*x.m_end);
                     if (x.n_end) out += " n_end " + affine(*x.n_end);
                     if (x.k_end) out += " k_end " + affine(*x.k_end);
                     static constexpr const char* dead[] = {"", " dead", " dead always"};
                     if (x.dead_a) out += dead[x.dead_a] + std::string(" a");
                     if (x.dead_b) out += dead[x.dead_b] + std::string(" b");
                   },
                   [&](const Barrier& x) { out = x.team == Team::cluster ? "barrier cluster" : "barrier"; },
                   [&](const Let& x) {
                     static constexpr const char* kinds[] = {"", "floor ", "min ", "max ", "load "};
                     std::string value = kinds[x.kind];
                     if (x.kind == Let::load) value += ref(x.ref);
                     for (size_t k = 0; k < x.operands.size(); ++k)
                       value += (k ? ", " : "") + affine(x.operands[k]);
                     if (x.kind == Let::floor_div) value += " / " + std::to_string(x.divisor);
                     out = "let " + var(x.var) + " = " + value;
                   },
                   [&](const Loop& x) {
                     const std::string from = affine(x.begin), to = affine(x.end);
                     out = "for " + var(x.var) + " = " + from + " .. " + to;
                     if (x.step != 1) out += " by " + std::to_string(x.step);
                   },
                   [&](const If& x) {
                     out = "if";
                     for (size_t k = 0; k < x.all.size(); ++k)
                       out += (k ? " and " : " ") + affine(x.all[k]) + " >= 0";
                   },
                   [&](const Pipeline& x) {
                     out = "pipeline " + var(x.var) + " by " + std::to_string(x.step);
                     if (x.stages != 1) out += " stages " + std::to_string(x.stages);
                     if (x.skew) out += " skew " + std::to_string(x.skew);
                     if (x.reverse) out += " reverse";
                   }},
             s.node);
  return out;
}
std::string Text::inside(const Stmt& s, const std::string& pad) {
  std::string out;
  std::visit(Match{[&](const Apply& x) {
                     out = body(x.body, pad);
                     for (size_t k = 0; k < x.dst.size(); ++k) {
                       const std::string to = ref(x.dst[k], &x.body);
                       out += pad + to + " = " +
                              (k < x.body.values.size() ? term(x.body.values[k], &x.body) : "nothing");
                       if (k < x.fill.size() && x.fill[k]) out += " fill " + literal(*x.fill[k]);
                       out += "\n";
                     }
                   },
                   [&](const Fold& x) {
                     out = body(x.body, pad);
                     for (size_t k = 0; k < x.dst.size(); ++k) {
                       const std::string to = ref(x.dst[k], &x.body);
                       out += pad + to + (x.accumulate ? " <- " : " = ");
                       out += (k < x.body.values.size() ? term(x.body.values[k], &x.body) : "nothing");
                       if (k < x.identity.size()) out += " from " + literal(x.identity[k]);
                       out += "\n";
                     }
                     const std::string shared = name_shared(x.combine, nullptr, pad + "  ");
                     out += pad + "combine" + (x.held ? std::string(" held ") + expr::row(*x.held).name : "") + "\n" + shared;
                     for (Id id : x.combine) out += pad + "  " + term(id, nullptr) + "\n";
                   },
                   [&](const Contract& x) {
                     const std::string d = ref(x.dst), a = ref(x.a), b = ref(x.b);
                     out = pad + d + (x.accumulate ? " += " : " = ") + a + " * " + b + "\n";
                   },
                   [&](const Loop& x) { out = block(x.body, pad); },
                   [&](const If& x) { out = block(x.then, pad); },
                   [&](const Pipeline& x) {
                     for (auto& g : x.segments) {
                       const std::string from = affine(g.begin), to = affine(g.end);
                       out += pad + (g.partial ? "partial " : "full ") + from + " .. " + to + "\n";
                     }
                     out += pad + "operands\n" + block(x.operands, pad + "  ");
                     out += pad + "body\n" + block(x.body, pad + "  ");
                   },
                   [](const auto&) {}},
             s.node);
  named_.clear();
  return out;
}
std::string Text::block(const Block& b, const std::string& pad) {
  std::string out;
  for (auto& s : b) {
    out += pad + head(s) + "\n";
    out += inside(s, pad + "  ");
  }
  return out;
}
std::string Text::declare(int m) {
  const Memory& x = k_.memories[size_t(m)];
  std::string out = x.home == Home::global ? std::string(word(x.access)) : std::string(word(x.home));
  out += " " + memory(m) + " " + row(x.format).name + list(x.shape);
  if (x.pieces > 1) out += " in " + std::to_string(x.pieces) + " pieces";
  if (x.strides != row_major(x.shape)) out += " strides " + list(x.strides);
  if (x.home != Home::global) out += std::string(" ") + word(x.team) + " " + word(x.lanes);
  return out + "\n";
}
std::string Text::kernel() {
  std::string grid = "grid";
  for (auto& g : k_.grid) {
    grid += " " + var(g.var) + " < " + std::to_string(g.extent);
    if (g.step != 1) grid += " by " + std::to_string(g.step);
  }
  const std::string code = block(k_.body, "  ");  // first: it numbers the tiles
  std::string out = std::string("kernel ") + row(k_.compute).name;
  if (k_.lanes > 1) out += " lanes " + std::to_string(k_.lanes) + " by " + std::to_string(k_.subgroup);
  if (k_.cluster > 1) out += " cluster " + std::to_string(k_.cluster);
  out += "\n";
  for (size_t m = 0; m < k_.memories.size(); ++m)
    if (k_.memories[m].home == Home::global) out += declare(int(m));
    else memory(int(m));  // an unused tile comes last
  if (naming_ == Naming::own) {
    for (size_t m = 0; m < k_.memories.size(); ++m)
      if (k_.memories[m].home != Home::global) out += declare(int(m));
  } else {
    const std::vector<int> order = tiles_;
    for (int m : order) out += declare(m);
  }
  return out + grid + "\n" + code;
}

std::string print(const Kernel& k) { return Text(k, Naming::canonical).kernel(); }
uint64_t hash(const Kernel& k) { return hash_of(print(k)); }

}  // namespace tang::kernel
