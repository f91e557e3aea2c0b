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

constexpr double most_nodes = 4e6; // of a term written out: Coq computes on it, some 2 us a node

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

private:
  Ref joined(const char* op, const std::vector<Ref>& parts, bool none) {
    if (parts.empty()) return t_.truth(none);
    Ref out = parts[0];
    for (size_t k = 1; k < parts.size(); ++k) out = t_.make(op, {out, parts[k]});
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
  std::vector<Form>
      dropped; // bounds of the producer's domain, over the reader's axes, that the splice left out
};

// Follows the bounds of the producer into the reader, so that both print them in one order.
Step followed(const rewrite::FusionStep& s) {
  Step out{*s.pool, s.producer, s.after, {}, {}};
  const auto at = rewrite::picked_axes(out.producer, s.before.args[size_t(s.arg)]);
  rewrite::Import in(out.pool, out.producer, out.after, [&](int x) { return at.at(x); });
  auto keeps = [](const Domain& d, const Form& f) {
    return std::any_of(d.begin(), d.end(),
                       [&](const ir::Conj& k) { return std::find(k.begin(), k.end(), f) != k.end(); });
  };
  // `kept` with its pieces and bounds in the order of the producer's domain `from`.
  auto order = [&](int guard, const Domain& from, const Domain& kept) {
    Domain there;
    for (auto& c : from) {
      ir::Conj moved;
      for (auto& f : c)
        if (const Form g = in.form(f); keeps(kept, g)) moved.push_back(g);
      there.push_back(moved);
    }
    // Bounds over tensors are normal in more than one order.
    auto alike = [](const ir::Conj& x, const ir::Conj& y) {
      return std::is_permutation(x.begin(), x.end(), y.begin(), y.end());
    };
    const bool same = std::is_permutation(there.begin(), there.end(), kept.begin(), kept.end(), alike);
    if (same || ir::normal(there) == kept) out.order[guard] = there;
  };
  for (auto& d : out.producer.guards) {
    const Domain now = in.domain(d);
    for (size_t g = 0; g < out.after.guards.size(); ++g) // a reader may have the same domain more than once
      if (out.after.guards[g] == now) order(int(g), d, now);
  }
  Domain kept;
  const ir::Id inner = in.body(out.producer.lift[0]);
  if (inner != s.body) {
    const expr::Term& only = out.pool[s.body];
    check(only.op == Op::only && only.args[1] == inner && out.pool[only.args[0]].op == Op::holds,
          "a splice is a body under a guard");
    const int g = int(out.pool[only.args[0]].whole);
    kept = out.after.guards[size_t(g)];
    order(g, out.producer.domain, kept);
  }
  for (auto& c : out.producer.domain)
    for (auto& f : c)
      if (const Form g = in.form(f); !keeps(kept, g)) out.dropped.push_back(g);
  return out;
}

// Why dropped bounds always hold, or never do: combinations of facts (each >= 0) with coefficients >= 0.
struct Reasons {
  struct Drop {
    Form bound;
    bool holds = true;
    std::vector<std::pair<size_t, int64_t>> multipliers; // number of a fact, coefficient
  };

  std::vector<Form> facts;
  std::vector<Drop> drops;

  size_t fact(const Form& f) {
    const auto it = std::find(facts.begin(), facts.end(), f);
    if (it == facts.end()) return facts.push_back(f), facts.size() - 1;
    return size_t(it - facts.begin());
  }

  // By the ranges of the axes: each at the end that makes the form smallest.
  bool by_ranges(const Form& bound, const Comp& n, bool holds) {
    const Form f = holds ? bound : ir::negated(bound);
    if (!f.args.empty() || !f.c.is_constant()) return false;
    int64_t least = f.c.value();
    for (auto& [a, k] : f.axes) {
      if (!n.extent(a).is_constant()) return false;
      if (k < 0) least += k * (n.extent(a).value() - 1);
    }
    if (least < 0) return false;
    Drop d{bound, holds, {}};
    for (auto& [a, k] : f.axes)
      d.multipliers.push_back(
          {fact(k > 0 ? ir::axis(a) : ir::constant(n.extent(a) - 1) - ir::axis(a)), std::abs(k)});
    drops.push_back(std::move(d));
    return true;
  }

  bool by_reader(const Form& bound, const ir::Conj& reader) {
    if (std::find(reader.begin(), reader.end(), bound) == reader.end()) return false;
    drops.push_back({bound, true, {{fact(bound), 1}}});
    return true;
  }
};

// One argument for all points of the reader, or one for each piece of its domain.
std::vector<Reasons> reasons(const Step& s) {
  Reasons ranges;
  std::vector<Form> left;
  for (auto& f : s.dropped)
    if (!ranges.by_ranges(f, s.after, true) && !ranges.by_ranges(f, s.after, false)) left.push_back(f);
  if (left.empty()) return {ranges};
  std::vector<Reasons> out;
  for (auto& piece : s.after.domain) {
    out.push_back(ranges);
    for (auto& f : left) out.back().by_reader(f, piece);
  }
  return out;
}

const Refusal too_large{"too large"};

// The text of one step for one component of the reader, with NAME for its name; empty when the component does
// not change.
Result<std::string> step_text(const rewrite::FusionStep& s, const Step& step, const Reasons& why,
                              size_t component) {
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
  if (step.producer.domain != ir::everywhere())
    body = t.make("only_", {map.domain(step.producer.domain), *body});
  for (size_t a = axes.size();
       a-- > 0;) // a read with an absent coordinate is absent: the body looks at every axis
    if (!t.looks_at(*body, int64_t(a)))
      body = t.make("only_", {t.make("equal_", {t.axis(int64_t(a)), t.axis(int64_t(a))}), *body});
  const auto after = fused.term(step.after.lift[component]);
  if (!after) return Refusal{after.why()};
  if (!map.why.empty()) return Refusal{map.why};
  const double size = t.tree_size(*before) + t.tree_size(*body) + t.tree_size(*after);
  if (size > most_nodes) return too_large;
  const Terms::Text text = t.text({*body, *before, *after}, "NAME");
  std::string out = text.definitions + "Definition NAME : fusion := Fusion 0 " + std::to_string(axes.size());
  for (auto& term : text.terms) out += "\n  " + term;
  std::vector<std::string> whole, facts, drops;
  for (auto& f : why.facts) facts.push_back(t.text(fused.form(f)));
  for (auto& d : why.drops) {
    std::vector<std::string> multipliers;
    for (auto& [k, by] : d.multipliers)
      multipliers.push_back("(" + std::to_string(k) + "%nat, " + std::to_string(by) + "%Z)");
    drops.push_back("Drop " + t.text(fused.form(d.bound)) + (d.holds ? " true " : " false ") +
                    listed(multipliers));
  }
  for (int64_t n : nodes.index()) whole.push_back(std::to_string(n));
  out += ".\nTheorem NAME_ok : fused " + listed(whole) + " " + listed(facts) + " " + listed(drops) + " NAME.";
  return out + " Proof. prove_fused. Qed.\n";
}
} // namespace

Fusions fusions_of(const std::vector<Compile>& compiles) {
  Fusions out;
  Book book("fusion", "From Tang Require Import export.bounds.\nImport Coq.ZArith.ZArith.\n");
  for (auto& c : compiles) {
    rewrite::FusionSteps steps;
    std::vector<rewrite::Rule> rules = rewrite::normal_rules();
    const rewrite::Rule recording = rewrite::fuse(&steps);
    for (auto& r : rules)
      if (r.name == recording.name) r = recording;
    out.optimized.push_back({c.name, rewrite::optimize(ir::canonical(c.graph).graph, rules).graph});
    out.compiles += !steps.empty();
    out.steps += int(steps.size());
    int number = 0;
    for (auto& s : steps) {
      const Step step = followed(s);
      const std::vector<Reasons> arguments = reasons(step);
      out.dropped += int(step.dropped.size());
      for (auto& why : arguments)
        for (size_t k = 0; k < s.before.lift.size(); ++k) {
          const Result<std::string> text = step_text(s, step, why, k);
          if (!text && text.why() == too_large.why)
            out.too_large.push_back(c.name + ": " + s.what);
          else if (!text)
            out.refused.push_back(c.name + ": " + s.what + ": " + text.why());
          else if (!text->empty())
            book.add(*text, c.name + "_" + std::to_string(number++));
        }
    }
  }
  out.files = book.files();
  return out;
}

} // namespace tang::prove
