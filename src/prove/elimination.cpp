#include "tang/prove/elimination.hpp"

#include <algorithm>
#include <cmath>

#include "tang/prove/term.hpp"
#include "tang/rewrite/terms.hpp"

namespace tang::prove {

namespace {
using expr::Op;
using expr::Type;
using ir::Comp;
using ir::Domain;
using ir::Form;
using ir::Graph;
using ir::Id;
using ir::NodeId;
using ir::Port;

constexpr double largest_body = 40000; // nodes when written out: Coq computes on it

struct Double { // mantissa * 2^exponent, the mantissa odd or 0
  int64_t mantissa = 0;
  int exponent = 0;

  explicit Double(double v) {
    if (v == 0) return;
    mantissa = int64_t(std::ldexp(std::frexp(v, &exponent), 53));
    for (exponent -= 53; mantissa % 2 == 0; ++exponent) mantissa /= 2;
  }

  bool is_power() const { return mantissa == 1 || mantissa == -1; }

  std::string rational() const {
    if (exponent == 0) return whole(mantissa);
    if (exponent < 0) return whole(mantissa) + " # 2 ^ " + std::to_string(-exponent);
    return "(" + whole(mantissa) + " * 2 ^ " + std::to_string(exponent) + ") # 1";
  }

  std::string reciprocal() const {
    const std::string size = std::to_string(std::llabs(mantissa));
    if (exponent > 0)
      return (mantissa < 0 ? "(-1) # (" : "1 # (") + size + " * 2 ^ " + std::to_string(exponent) + ")";
    return (mantissa < 0 ? "(- 2 ^ " : "(2 ^ ") + std::to_string(-exponent) + ") # " + size;
  }
};

// Doubles as the rationals that a proof is about. A double that is another's reciprocal up to rounding stands
// for that reciprocal (ln 2 and log2 e): what cancels in the reals cancels.
class Numbers {
public:
  std::string of(double v) {
    if (auto it = known_.find(v); it != known_.end()) return it->second;
    for (double w : exact_)
      if (std::fabs(v * w - 1) < 0x1p-51 && !Double(w).is_power()) return near(v, Double(w).reciprocal());
    exact_.push_back(v);
    return known_[v] = Double(v).rational();
  }

  const std::vector<std::string>& rounded() const { return rounded_; }

private:
  std::string near(double v, const std::string& rational) {
    const Double d(v);
    rounded_.push_back("((" + rational + ")%Q, (" + whole(d.mantissa) + ", " + whole(d.exponent) + ")%Z)");
    return known_[v] = rational;
  }

  std::map<double, std::string> known_;
  std::vector<double> exact_;
  std::vector<std::string> rounded_;
};

const char* body_head(Op op) {
  switch (op) {
  case Op::add: return "Add";
  case Op::mul: return "Mul";
  case Op::neg: return "Neg";
  case Op::recip: return "Recip";
  case Op::ratio: return "Ratio";
  case Op::exp2: return "Exp2";
  case Op::log2: return "Log2";
  case Op::sqrt: return "Sqrt";
  case Op::max: return "Max";
  case Op::min: return "Min";
  case Op::less: return "Less";
  case Op::equal: return "Equal";
  case Op::flip: return "Not";
  case Op::select: return "Select";
  case Op::only: return "Only";
  case Op::or_else: return "Or_else";
  default: return nullptr;
  }
}

// Prints one elimination. Ports downstream of the max are numbered in the order of the graph; node 0 is the
// max itself.
class Elimination {
public:
  explicit Elimination(const diff::Proof& proof) : proof_(proof), g_(*proof.graph) {
    numbers_[proof.max] = 0;
    for (auto& [port, d] : proof.degrees) moving_.insert(port);
    moving_.insert(proof.max);
  }

  Result<std::string> print() {
    const std::vector<char> needed = needed_by_roots();
    for (NodeId id = proof_.max.node + 1; id < g_.nodes.size(); ++id) {
      if (!needed[id]) continue;
      const auto read = ir::sources(g_, id);
      if (std::none_of(read.begin(), read.end(), [&](Port p) { return numbers_.count(p) > 0; })) continue;
      const Comp* n = g_[id].comp();
      if (!n) return Refusal{"a recurrence"};
      std::vector<std::pair<Port, std::string>> done;
      for (uint32_t c = 0; c < g_.ports(id); ++c) {
        auto text = component(*n, c);
        if (!text) return Refusal{text.why()};
        done.push_back({{id, c}, *text});
      }
      for (auto& [port, text] : done) {
        const int64_t number = int64_t(numbers_.size());
        numbers_[port] = number;
        nodes_.push_back(text);
      }
    }
    std::string out = definitions_ + "Definition NAME : list node := [";
    for (size_t k = 0; k < nodes_.size(); ++k) out += (k ? ";\n  " : "\n  ") + nodes_[k];
    out += " ].\nTheorem NAME_ok : elimination " + std::to_string(g_.shape(proof_.max).size()) + " NAME [";
    int roots = 0;
    for (Port r : proof_.roots)
      if (auto it = numbers_.find(r); it != numbers_.end())
        out += (roots++ ? "; " : "") + std::to_string(it->second) + "%nat";
    check(roots > 0, "an elimination without a root");
    out += "]. Proof. prove_degree. Qed.\n";
    for (size_t k = 0; k < doubles_.rounded().size(); ++k)
      out += (k ? "; " : "Lemma NAME_rounded : rounded [") + doubles_.rounded()[k];
    return out + (doubles_.rounded().empty() ? "" : "]. Proof. prove_degree. Qed.\n");
  }

private:
  std::vector<char> needed_by_roots() const {
    std::vector<char> needed(g_.nodes.size(), 0);
    for (Port r : proof_.roots) needed[r.node] = 1;
    for (NodeId id = NodeId(g_.nodes.size()); id-- > 0;)
      if (needed[id])
        for (Port p : ir::sources(g_, id)) needed[p.node] = 1;
    return needed;
  }

  // Axes in the order of the port's coordinates, then the others: folds.
  Result<std::string> component(const Comp& n, uint32_t c) {
    // Through an output view a coordinate holds whatever terms land there: a fold of any kind over all axes.
    const ir::Out& to = n.outs[c];
    const bool lands = !to.view.empty();
    n_ = &n;
    place_.assign(lands ? to.shape.size() : 0, -1);
    for (int a : to.axes) place_.push_back(a);
    for (int a = int(n.points.size()); a < n.axis_count(); ++a) place_.push_back(a);
    why_.clear();
    reads_.clear();
    const Op plain[] = {Op::add, Op::max, Op::min};
    const char* words[] = {"Sum", "Maximum", "Minimum"};
    std::string how = n.is_map() && !lands ? "Map" : "";
    for (size_t k = 0; k < 3 && how.empty() && !lands; ++k)
      if (rewrite::is_plain_component(g_.pool, n, c, plain[k])) how = words[k];
    std::optional<Ref> body;
    for (uint32_t other = 0; other < n.lift.size(); ++other) {
      if (how.empty() ? !within(n.outs[other].axes, n.outs[c].axes) : other != c) continue;
      const Ref lift = term(n.lift[other]);
      body = body ? t_.make("Op", {*body, lift}, int64_t(Op::both)) : lift; // together: any function of both
    }
    if (how.empty()) how = "(Other " + std::to_string(others_++) + ")";
    Ref whole_body = *body;
    if (n.domain != ir::everywhere()) whole_body = t_.make("Only", {guard(n.domain), whole_body});
    for (auto& f : to.view)
      if (tracked(f)) why_ = "a place that moves";
    if (!why_.empty()) return Refusal{why_};
    if (t_.tree_size(whole_body) > largest_body) return Refusal{"too large"};
    const auto text = t_.text({whole_body}, "NAME_" + std::to_string(nodes_.size() + c), "body");
    definitions_ += text.definitions;
    return "Node " + std::to_string(lands ? to.shape.size() : to.axes.size()) + " " + how + " " +
           text.terms[0];
  }

  static bool within(const std::vector<int>& some, const std::vector<int>& all) {
    return std::all_of(some.begin(), some.end(),
                       [&](int a) { return std::find(all.begin(), all.end(), a) != all.end(); });
  }

  bool tracked(Port p) const { return numbers_.count(p) > 0; }

  bool tracked(const Form& f) {
    return std::any_of(f.args.begin(), f.args.end(), [&](auto& u) { return tracked_read(u.first); });
  }

  bool tracked_read(int arg) {
    const ir::Arg& a = n_->args[size_t(arg)];
    return tracked(a.from) || std::any_of(a.view.begin(), a.view.end(), [&](auto& f) { return tracked(f); });
  }

  bool tracked(const Domain& d) {
    for (auto& piece : d)
      for (auto& f : piece)
        if (tracked(f)) return true;
    return false;
  }

  Ref datum() { return t_.make("Free", {}, data_++); }

  Ref any_of(int64_t op, const std::vector<Ref>& parts) {
    Ref out = parts[0];
    for (size_t k = 1; k < parts.size(); ++k) out = t_.make("Op", {out, parts[k]}, op);
    return parts.size() == 1 ? t_.make("Op", {out, out}, op) : out;
  }

  Ref guard(const Domain& d) {
    std::vector<Ref> reads;
    for (auto& piece : d)
      for (auto& f : piece)
        for (auto& [u, k] : f.args)
          if (tracked_read(u)) reads.push_back(read(u));
    return reads.empty() ? datum() : any_of(1000 + others_++, reads);
  }

  std::string form(const Form& f) {
    if (!f.c.is_constant()) why_ = "a symbolic extent";
    if (!f.args.empty()) why_ = "a gather of what moves";
    if (!why_.empty()) return "";
    std::string out = "Form [";
    for (auto& [a, k] : f.axes) {
      const auto at = std::find(place_.begin(), place_.end(), a) - place_.begin();
      if (size_t(at) == place_.size()) why_ = "an axis that the port has not";
      if (f.is_pick()) return "axis " + std::to_string(at);
      out += (out.back() == '[' ? "(" : "; (") + std::to_string(at) + "%nat, " + whole(k) + "%Z)";
    }
    return out + "] " + whole(f.c.value());
  }

  Ref read(int arg) {
    if (auto it = reads_.find(arg); it != reads_.end()) return it->second;
    const ir::Arg& a = n_->args[size_t(arg)];
    if (!tracked(a.from)) { // a gather: a function of its coordinates
      std::vector<Ref> at;
      for (auto& f : a.view)
        for (auto& [u, k] : f.args)
          if (tracked_read(u)) at.push_back(read(u));
      return reads_[arg] = any_of(1000 + others_++, at);
    }
    std::string text = "(Read " + std::to_string(numbers_.at(a.from)) + " [";
    for (size_t d = 0; d < a.view.size(); ++d) text += (d ? "; " : "") + form(a.view[d]);
    return reads_[arg] = t_.make(text + "])");
  }

  bool infinite(Id id) const {
    const expr::Term& t = g_.pool[id];
    return t.op == Op::literal && t.type == Type::real && std::isinf(t.r);
  }

  bool moves(Id id) {
    for (Id leaf : expr::subterms(g_.pool, id, Op::arg))
      if (moving_.count(n_->args[size_t(g_.pool[leaf].whole)].from)) return true;
    return false;
  }

  // A comparison of what moves with an infinity: decided, because values are numbers.
  std::optional<Ref> decided(const expr::Term& t, const std::map<Id, Ref>& done) {
    for (size_t k : {size_t(0), size_t(1)}) {
      const Id value = t.args[k], end = t.args[1 - k];
      if (!infinite(end) || !moves(value)) continue;
      const Ref number = t_.make("Finite", {done.at(value)});
      const bool holds = t.op == Op::less && (k == 0) == (g_.pool[end].r > 0);
      return holds ? number : t_.make("Not", {number});
    }
    return {};
  }

  Ref term(Id root) {
    std::map<Id, Ref> done;
    std::set<Id> free;
    for (Id x : expr::schedule(g_.pool, {root})) {
      const expr::Term t = g_.pool[x];
      std::vector<Ref> parts;
      bool is_free = true;
      for (int k = 0; k < t.arity(); ++k) {
        is_free = is_free && free.count(t.args[size_t(k)]);
        parts.push_back(done.at(t.args[size_t(k)]));
      }
      if (t.op == Op::arg) is_free = !tracked_read(int(t.whole));
      if (t.op == Op::holds) is_free = !tracked(n_->guards[size_t(t.whole)]);
      if (is_free) free.insert(x);
      done[x] = is_free ? value_of(x, t) : made(t, parts, done);
    }
    return done.at(root);
  }

  Ref value_of(Id x, const expr::Term& t) {
    if (t.op == Op::literal && t.type == Type::real && std::isfinite(t.r))
      return t_.make("(Num (" + doubles_.of(t.r) + "))");
    auto [it, fresh] = free_.try_emplace({n_, x}, 0);
    if (fresh) it->second = datum();
    return it->second;
  }

  Ref made(const expr::Term& t, const std::vector<Ref>& parts, const std::map<Id, Ref>& done) {
    if (t.op == Op::arg) return read(int(t.whole));
    if (t.op == Op::holds) return guard(n_->guards[size_t(t.whole)]);
    if (t.op == Op::is_nan) return t_.make("Not", {t_.make("Finite", parts)});
    if (t.op == Op::less || t.op == Op::equal)
      if (const auto known = decided(t, done)) return *known;
    if (const char* h = body_head(t.op)) return t_.make(h, parts);
    return any_of(int64_t(t.op), parts);
  }

  const diff::Proof& proof_;
  const Graph& g_;
  std::map<Port, int64_t> numbers_;
  std::set<Port> moving_; // not free of the max
  std::vector<std::string> nodes_;
  std::string definitions_, why_;
  Terms t_;
  Numbers doubles_;
  int64_t data_ = 0, others_ = 0;
  std::map<std::pair<const Comp*, Id>, Ref> free_;
  const Comp* n_ = nullptr; // the node being printed, and where its axes go
  std::vector<int> place_;
  std::map<int, Ref> reads_;
};
} // namespace

Result<Gradient> gradient_of(const Compile& c) {
  Graph g = c.graph;
  std::vector<Port> wrt;
  std::vector<std::string> names;
  for (NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].input() && g.type({id, 0}) == Type::real) {
      wrt.push_back({id, 0});
      names.push_back("gradient of " + g[id].name);
    }
  std::vector<diff::Seed> seeds;
  const std::vector<ir::Output> outputs = g.outputs;
  for (auto& o : outputs)
    if (g.type(o.port) == Type::real) {
      const ir::Input weight{ir::Input::data, g.shape(o.port), ir::Format::f32};
      seeds.push_back({o.port, Port{g.add({weight, "weight of " + o.name, {}}), 0}});
    }
  if (seeds.empty() || wrt.empty()) return Refusal{"nothing real to differentiate"};
  auto d = diff::gradient(g, seeds, wrt);
  if (!d) return Refusal{d.why()};
  for (size_t k = 0; k < wrt.size(); ++k) d->graph.outputs.push_back({d->of[k], names[k], ir::Format::f32});
  return Gradient{{c.name + "_grad", std::move(d->graph)}, std::move(d->proofs)};
}

Eliminations eliminations_of(const std::vector<Gradient>& gradients) {
  Eliminations out;
  Book book("elimination", "From Tang Require Import export.prove_degree.\n");
  for (auto& g : gradients) {
    out.graphs += !g.proofs.empty();
    int number = 0;
    for (auto& proof : g.proofs) {
      ++out.proofs;
      const Result<std::string> text = Elimination(proof).print();
      if (!text)
        out.refused.push_back(g.compile.name + ": " + proof.graph->label(proof.max) + ": " + text.why());
      else
        book.add(*text, g.compile.name + "_" + std::to_string(number++));
    }
  }
  out.files = book.files();
  return out;
}

} // namespace tang::prove
