// Statements with points, looked at alike: their axes, what they evaluate and under which names (private to
// the passes over kernels).
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"
#include "tang/kernel/kernel.hpp"

namespace tang::lower {

using expr::Op;
using expr::Term;
using kernel::Affine;
using kernel::Apply;
using kernel::Bounds;
using kernel::Coordinate;
using kernel::Fold;
using kernel::Id;
using kernel::Kernel;
using kernel::Ref;
using kernel::Stmt;
using kernel::TileAxis;
using kernel::Var;

// A statement with points: its axes (kept, then folded), its body, and what else refers to its axes.
struct Site {
  size_t at; // in its block
  kernel::Body* body;
  std::vector<TileAxis> axes;
  std::vector<Bounds*> conditions; // all hold for every point that is evaluated
  std::vector<Ref>* dst;
  bool always; // no other condition
};

std::optional<Site> site(Stmt& s, size_t at);
void written_by(const kernel::Block& b, std::set<int>& out);
void rename(Affine& a, const std::map<Var, Var>& to);
void rename(kernel::Body& b, const std::map<Var, Var>& to);
// A term with some of its leaves replaced.
Id copied(kernel::Pool& p, Id id, const std::function<std::optional<Id>(const Term&)>& leaf);
// Drops references and guards that nothing names any more.
void compact(kernel::Pool& p, const Site& s);

// Names of what a body evaluates that do not depend on the names of its axes: two statements over like axes
// that name a term alike evaluate the same value at the same point.
class Names {
public:
  Names(const Kernel& k, const Site& s, const std::map<Var, Affine>& known)
      : p_(*k.pool), s_(s), known_(known) {
    for (size_t a = 0; a < s.axes.size(); ++a) place_[s.axes[a].var] = int(a);
  }

  std::string affine(const Affine& a) const {
    std::map<std::string, int64_t> terms;
    int64_t c = 0;
    add(a, 1, terms, c);
    std::string out = std::to_string(c);
    for (auto& [v, k] : terms)
      if (k) out += "+" + std::to_string(k) + v;
    return out;
  }

  std::string coordinate(const Coordinate& c) {
    std::string out = affine(c.affine);
    for (auto& [r, k] : c.refs) out += "+" + std::to_string(k) + ref(r);
    return out;
  }

  std::string bounds(const Bounds& b) {
    std::vector<std::string> all;
    for (auto& c : b) all.push_back(coordinate(c));
    return joined(std::move(all), " and ");
  }

  std::string conditions() {
    std::vector<std::string> all;
    for (auto* b : s_.conditions)
      for (auto& c : *b) all.push_back(coordinate(c));
    return joined(std::move(all), " and ");
  }

  std::string ref(int r) {
    const Ref& x = s_.body->refs[size_t(r)];
    std::string out = (x.checked ? "?m" : "m") + std::to_string(x.memory);
    for (auto& c : x.index) out += "[" + coordinate(c) + "]";
    return out;
  }

  const std::string& term(Id id) {
    if (auto it = names_.find(id); it != names_.end()) return it->second;
    const Term& t = p_[id];
    std::string out;
    if (t.op == Op::arg) {
      out = ref(int(t.whole));
    } else if (t.op == Op::coord) {
      out = "i" + affine(kernel::variable(Var(t.whole)));
    } else if (t.op == Op::holds) {
      std::vector<std::string> any;
      for (auto& b : s_.body->guards[size_t(t.whole)]) any.push_back(bounds(b));
      out = "{" + joined(std::move(any), " or ") + "}";
    } else if (t.op == Op::literal) {
      out = std::string(expr::name(t.type)) + shortest(t.r) + ":" + std::to_string(t.whole);
    } else {
      std::vector<std::string> args;
      for (int k = 0; k < t.arity(); ++k) args.push_back(term(t.args[size_t(k)]));
      if (row(t.op).commutative) std::sort(args.begin(), args.end());
      out = row(t.op).name + std::string("(");
      for (auto& a : args) out += a + ",";
      out += ")";
    }
    // A long one by its digest (128 bits): a term used twice at each of n levels would have a name of 2^n.
    if (out.size() > 256) out = "#" + std::to_string(hash_of(out)) + "." + std::to_string(hash_of(out + "#"));
    return names_[id] = out;
  }

  // The axes (as a set of places) and the memories that a term moves with and reads.
  uint64_t moves_with(Id id) {
    uint64_t out = 0;
    each_affine(id, [&](const Affine& a) {
      for (auto& [v, k] : a.terms)
        if (auto it = place_.find(v); it != place_.end()) out |= uint64_t(1) << it->second;
    });
    return out;
  }

  std::set<int> reads(Id id) {
    std::set<int> out;
    memories_ = &out;
    each_affine(id, [](const Affine&) {});
    memories_ = nullptr;
    return out;
  }

private:
  static std::string joined(std::vector<std::string> all, const char* by) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::string out;
    for (auto& x : all) out += (out.empty() ? "" : by) + x;
    return out;
  }

  void add(const Affine& a, int64_t times, std::map<std::string, int64_t>& terms, int64_t& c) const {
    c += times * a.c;
    for (auto& [v, k] : a.terms) {
      if (auto it = place_.find(v); it != place_.end())
        terms["#" + std::to_string(it->second)] += times * k;
      else if (auto x = known_.find(v); x != known_.end())
        add(x->second, times * k, terms, c);
      else
        terms["v" + std::to_string(v)] += times * k;
    }
  }

  using Visit = std::function<void(const Affine&)>;

  void visit(const Coordinate& c, const Visit& f) {
    f(c.affine);
    for (auto& x : c.refs) visit(x.first, f);
  }

  void visit(int r, const Visit& f) {
    const Ref& x = s_.body->refs[size_t(r)];
    if (memories_) memories_->insert(x.memory);
    for (auto& c : x.index) visit(c, f);
  }

  void each_affine(Id id, const Visit& f) {
    for (Id x : expr::schedule(p_, {id})) {
      const Term& t = p_[x];
      if (t.op == Op::coord) f(kernel::variable(Var(t.whole)));
      if (t.op == Op::arg) visit(int(t.whole), f);
      if (t.op == Op::holds)
        for (auto& b : s_.body->guards[size_t(t.whole)])
          for (auto& c : b) visit(c, f);
    }
  }

  const kernel::Pool& p_;
  const Site& s_;
  const std::map<Var, Affine>& known_;
  std::map<Var, int> place_;
  std::map<Id, std::string> names_;
  std::set<int>* memories_ = nullptr;
};

} // namespace tang::lower
