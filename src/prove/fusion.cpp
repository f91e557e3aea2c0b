#include "tang/prove/fusion.hpp"

#include <algorithm>

#include "tang/prove/term.hpp"
#include "tang/rewrite/driver.hpp"
#include "tang/rewrite/import.hpp"

namespace tang::prove {

namespace {
using expr::Op;
using expr::Type;
using ir::Comp;
using ir::Domain;
using ir::Form;
using ir::Port;

constexpr double most_nodes = 40000; // of a term written out: Coq computes on it

// The producer is node 0 of a step; other ports are numbered as they come up. A second read of the producer
// is another node: nothing is known of it in this step.
class Nodes {
public:
  int64_t number(const Port& p) {
    auto [it, fresh] = numbers_.try_emplace(p, int64_t(numbers_.size()) + 1);
    return it->second;
  }

  void indexed(int64_t n) { index_.insert(n); }

  const std::set<int64_t>& index() const { return index_; }

private:
  std::map<Port, int64_t> numbers_;
  std::set<int64_t> index_; // read as coordinates or in bounds
};

// Prints the terms of one comprehension. `spliced`: its read that is the producer, -1 if none.
class Printer {
public:
  Printer(Terms& t, Nodes& nodes, const expr::Pool& p, const Comp& n, int spliced,
          std::function<Ref(int)> axis)
      : t_(t), nodes_(nodes), p_(p), n_(n), spliced_(spliced), axis_(std::move(axis)) {}

  std::map<int, Domain> order; // guard -> the same bounds in the order in which the producer has them
  std::string why;

  Result<Ref> term(ir::Id id) {
    auto out = t_.of(p_, id, [&](const expr::Term& t) {
      if (t.op == Op::coord) return axis_(int(t.whole));
      if (t.op == Op::arg) return read(int(t.whole));
      if (t.op == Op::holds) {
        auto it = order.find(int(t.whole));
        return domain(it == order.end() ? n_.guards[size_t(t.whole)] : it->second);
      }
      why = "a variable";
      return t_.truth(false);
    });
    if (out && !why.empty()) return Refusal{why};
    return out;
  }

  Ref domain(const Domain& d) {
    std::vector<Ref> pieces;
    for (auto& c : d) {
      std::vector<Ref> bounds;
      for (auto& f : c) {
        const Ref value = form(f);
        bounds.push_back(t_.make("not_", {t_.make("less_", {value, t_.integer(0)})}));
      }
      pieces.push_back(joined("and_", bounds, true));
    }
    return joined("or_", pieces, false);
  }

private:
  Ref joined(const char* op, const std::vector<Ref>& parts, bool none) {
    if (parts.empty()) return t_.truth(none);
    Ref out = parts[0];
    for (size_t k = 1; k < parts.size(); ++k) out = t_.make(op, {out, parts[k]});
    return out;
  }

  Ref form(const Form& f) {
    if (!f.c.is_constant()) {
      why = "a symbolic extent";
      return t_.integer(0);
    }
    std::vector<Ref> terms;
    auto scaled = [&](int64_t k, Ref x) { terms.push_back(k == 1 ? x : t_.make("mul", {t_.integer(k), x})); };
    for (auto& [a, k] : f.axes) scaled(k, axis_(a));
    for (auto& [u, k] : f.args) {
      const Ref x = read(u);
      nodes_.indexed(t_[x].number);
      scaled(k, x);
    }
    if (f.c.value() || terms.empty()) terms.push_back(t_.integer(f.c.value()));
    Ref out = terms[0];
    for (size_t k = 1; k < terms.size(); ++k) out = t_.make("add", {out, terms[k]});
    return out;
  }

  Ref read(int arg) {
    const ir::Arg& a = n_.args[size_t(arg)];
    std::vector<Ref> coords;
    for (auto& f : a.view) coords.push_back(form(f));
    const int64_t node = arg == spliced_ ? 0 : nodes_.number(a.from);
    return t_.read(node, coords);
  }

  Terms& t_;
  Nodes& nodes_;
  const expr::Pool& p_;
  const Comp& n_;
  int spliced_;
  std::function<Ref(int)> axis_;
};

struct Step {
  expr::Pool pool;
  Comp producer, after;
  std::map<int, Domain> order; // of guards of `after`
  std::optional<Domain> guard; // of the producer's domain: the bounds that the splice kept
};

// Follows the bounds of the producer into the reader, so that both print them in one order.
Step followed(const rewrite::FusionStep& s) {
  Step out{*s.pool, s.producer, s.after, {}, {}};
  const auto at = rewrite::picked_axes(out.producer, s.before.args[size_t(s.arg)]);
  rewrite::Import in(out.pool, out.producer, out.after, [&](int x) { return at.at(x); });
  // A domain with its pieces and bounds in the producer's order, those not in `kept` left out of both.
  auto aligned = [&](const Domain& from, const Domain& kept) -> std::optional<std::pair<Domain, Domain>> {
    Domain here, there;
    for (auto& c : from) {
      ir::Conj mine, moved;
      for (auto& f : c) {
        const Form g = in.form(f);
        const bool some = std::any_of(kept.begin(), kept.end(), [&](const ir::Conj& k) {
          return std::find(k.begin(), k.end(), g) != k.end();
        });
        if (!some) continue;
        mine.push_back(f);
        moved.push_back(g);
      }
      here.push_back(mine);
      there.push_back(moved);
    }
    if (ir::normal(there) != kept) return {};
    return std::pair(here, there);
  };
  for (auto& d : out.producer.guards) {
    const Domain now = in.domain(d);
    auto it = std::find(out.after.guards.begin(), out.after.guards.end(), now);
    if (it == out.after.guards.end()) continue;
    if (auto both = aligned(d, now)) out.order[int(it - out.after.guards.begin())] = both->second;
  }
  const ir::Id inner = in.body(out.producer.lift[0]);
  if (inner != s.body) {
    const expr::Term& only = out.pool[s.body];
    check(only.op == Op::only && only.args[1] == inner && out.pool[only.args[0]].op == Op::holds,
          "a splice is a body under a guard");
    const int g = int(out.pool[only.args[0]].whole);
    out.guard = out.producer.domain;
    if (auto both = aligned(out.producer.domain, out.after.guards[size_t(g)])) {
      out.guard = both->first;
      out.order[g] = both->second;
    }
  }
  return out;
}

// The text of one step for one component of the reader, with NAME for its name; empty when the component does
// not change.
Result<std::string> step_text(const rewrite::FusionStep& s, size_t component) {
  const Step step = followed(s);
  Terms t;
  Nodes nodes;
  const auto& axes = step.producer.outs[0].axes;
  auto plain = [&](int a) { return t.axis(a); };
  auto of_producer = [&](int a) { return t.axis(std::find(axes.begin(), axes.end(), a) - axes.begin()); };
  Printer reader(t, nodes, step.pool, s.before, s.arg, plain),
      map(t, nodes, step.pool, step.producer, -1, of_producer),
      fused(t, nodes, step.pool, step.after, s.arg, plain);
  fused.order = step.order;
  const auto before = reader.term(s.before.lift[component]);
  if (!before) return Refusal{before.why()};
  if (!t.reads(*before, 0)) return std::string();
  auto body = map.term(step.producer.lift[0]);
  if (!body) return Refusal{body.why()};
  if (step.guard) body = t.make("only_", {map.domain(*step.guard), *body});
  for (size_t a = axes.size();
       a-- > 0;) // a read with an absent coordinate is absent: the body looks at every axis
    if (!t.looks_at(*body, int64_t(a)))
      body = t.make("only_", {t.make("equal_", {t.axis(int64_t(a)), t.axis(int64_t(a))}), *body});
  const auto after = fused.term(step.after.lift[component]);
  if (!after) return Refusal{after.why()};
  if (!map.why.empty()) return Refusal{map.why};
  const double size = t.tree_size(*before) + t.tree_size(*body) + t.tree_size(*after);
  if (size > most_nodes) return Refusal{"too large"};
  const Terms::Text text = t.text({*body, *before, *after}, "NAME");
  std::string out = text.definitions + "Definition NAME : fusion := Fusion 0 " + std::to_string(axes.size());
  for (auto& term : text.terms) out += "\n  " + term;
  out += ".\nTheorem NAME_ok : fused [";
  for (int64_t n : nodes.index()) out += (n == *nodes.index().begin() ? "" : "; ") + std::to_string(n);
  return out + "] NAME. Proof. prove_fused. Qed.\n";
}

std::string named(std::string text, const std::string& name) {
  for (size_t at = 0; (at = text.find("NAME", at)) != std::string::npos; at += name.size())
    text.replace(at, 4, name);
  return text;
}
} // namespace

Fusions fusions_of(const std::vector<Compile>& compiles) {
  Fusions out;
  std::set<std::string> known;
  for (auto& c : compiles) {
    rewrite::FusionSteps steps;
    std::vector<rewrite::Rule> rules = rewrite::normal_rules();
    const rewrite::Rule recording = rewrite::fuse(&steps);
    for (auto& r : rules)
      if (r.name == recording.name) r = recording;
    rewrite::optimize(ir::canonical(c.graph).graph, rules);
    out.compiles += !steps.empty();
    out.steps += int(steps.size());
    File file{"fusion_" + c.name + ".v",
              "From Tang Require Import export.fusion export.coordinates.\nImport Coq.ZArith.ZArith.\n", 0};
    for (auto& s : steps)
      for (size_t k = 0; k < s.before.lift.size(); ++k) {
        const Result<std::string> text = step_text(s, k);
        if (!text)
          out.refused.push_back(c.name + ": " + s.what + ": " + text.why());
        else if (!text->empty() && known.insert(*text).second)
          file.text += named(*text, c.name + "_" + std::to_string(file.theorems++));
      }
    if (file.theorems) out.files.push_back(std::move(file));
  }
  return out;
}

} // namespace tang::prove
