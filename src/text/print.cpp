// Graphs as text: the exact form, one line a node, in the order of ids.
#include "tang/text/print.hpp"

#include <algorithm>
#include <limits>

#include "tang/base/match.hpp"
#include "tang/ir/monoids.hpp"
#include "tang/text/syntax.hpp"

namespace tang::text {

using namespace ir;
using expr::Term;

namespace {
constexpr uint64_t most_plain = uint64_t(1)
                                << 53; // a plain number is a real: beyond this only a suffix keeps it whole

std::string magnitude(int64_t k) {
  const uint64_t m = k < 0 ? uint64_t(0) - uint64_t(k) : uint64_t(k);
  return std::to_string(m) + (m > most_plain && m <= uint64_t(INT64_MAX) ? "i" : "");
}

std::string i(int n) { return "i" + std::to_string(n); }

std::string joined(const std::vector<std::string>& parts, const char* by = ", ") {
  std::string out;
  for (size_t k = 0; k < parts.size(); ++k) out += (k ? by : "") + parts[k];
  return out;
}

// The monoids that are printed, each under its own name.
struct Monoids {
  struct Row {
    const Pool* pool;
    const Monoid* monoid;
    std::string name;
  };

  std::vector<Row> rows = {};
  std::set<std::string> names = {};

  static bool same_in(const Pool& p, const Monoid& a, const Pool& q, const Monoid& b) {
    if (a.name != b.name || a.commutative != b.commutative || a.size() != b.size()) return false;
    for (size_t c = 0; c < a.size(); ++c)
      if (!identical(a.identity[c], b.identity[c]) || p[a.combine[c]].hash != q[b.combine[c]].hash)
        return false;
    return true;
  }

  // sum, max, ..: spelled without a declaration when both name and structure are the table's.
  static bool built_in(const Pool& p, const Monoid& m) {
    if (m.size() != 1 || !m.commutative) return false;
    const Term& t = p[m.combine[0]];
    auto is_var = [&](Id x, int64_t n) { return p[x].op == Op::var && p[x].whole == n; };
    if (t.arity() != 2) return false;
    if (!(is_var(t.args[0], 0) && is_var(t.args[1], 1)) && !(is_var(t.args[0], 1) && is_var(t.args[1], 0)))
      return false;
    auto row = [&](const char* name, Op op, const Value& identity) {
      return m.name == name && t.op == op && identical(m.identity[0], identity);
    };
    const double inf = std::numeric_limits<double>::infinity();
    return row("sum", Op::add, expr::real(0)) || row("count", Op::add, expr::whole(0)) ||
           row("max", Op::max, expr::real(-inf)) || row("min", Op::min, expr::real(inf)) ||
           row("any", Op::either, expr::truth(false)) || row("all", Op::both, expr::truth(true));
  }

  std::string of(const Pool& p, const Monoid& m) {
    if (built_in(p, m)) return m.name;
    for (auto& r : rows)
      if (same_in(p, m, *r.pool, *r.monoid)) return "fold " + spelled(r.name);
    const std::string base = m.name.empty() ? "monoid" : m.name;
    std::string name = base;
    for (int k = 2; !names.insert(name).second; ++k) name = base + "_" + std::to_string(k);
    rows.push_back({&p, &m, name});
    return "fold " + spelled(name);
  }

  static std::string spelled(const std::string& n) { return Spelling{}.name(n); }
};

struct GraphPrinter {
  const Graph& g;
  Spelling& spelling;
  Monoids& monoids;
  std::string indent = "";
  std::vector<std::string> names = {}; // of nodes, as spelled
  std::string out = "";

  std::string port(Port p) const {
    return names[p.node] + (g.ports(p.node) == 1 ? "" : "." + std::to_string(p.port));
  }

  std::string extents(const std::vector<Extent>& e) const {
    std::vector<std::string> parts;
    for (auto& x : e) parts.push_back(spelling.extent(x));
    return e.empty() ? "" : "[" + joined(parts) + "]";
  }

  using Spell = std::function<std::string(int)>;

  // `terms` with one sign, as a sum.
  std::string form(const Extent& c, const std::vector<std::pair<int, int64_t>>& axes,
                   const std::vector<std::pair<int, int64_t>>& args, const Spell& axis,
                   const Spell& arg) const {
    std::string s;
    auto put = [&](int64_t k, const std::string& what) {
      if (!s.empty())
        s += k < 0 ? " - " : " + ";
      else if (k < 0)
        s += "-";
      s += (k == 1 || k == -1 ? "" : magnitude(k) + "*") + what;
    };
    for (auto& [a, k] : axes) put(k, axis(a));
    for (auto& [a, k] : args) put(k, arg(a));
    const std::string text =
        c.is_constant() ? (c.value() < 0 ? "-" : "") + magnitude(c.value()) : spelling.extent(c);
    if (s.empty()) return text;
    if (c == Extent(0)) return s;
    return s + (text[0] == '-' ? " - " + text.substr(1) : " + " + text);
  }

  std::string form(const Form& f, const Spell& axis, const Spell& arg) const {
    return form(f.c, f.axes, f.args, axis, arg);
  }

  // f >= 0, with what is subtracted on the left.
  std::string bound(const Form& f, const Spell& axis, const Spell& arg) const {
    std::vector<std::pair<int, int64_t>> parts[2][2]; // [negative][axes, args]
    for (auto& t : f.axes) parts[t.second < 0 && t.second != INT64_MIN][0].push_back(t);
    for (auto& t : f.args) parts[t.second < 0 && t.second != INT64_MIN][1].push_back(t);
    for (auto& list : parts[1])
      for (auto& t : list) t.second = -t.second;
    const bool least = f.c.is_constant() && f.c.value() == INT64_MAX;
    const bool strict = !least && !(f.c == Extent(0)) &&
                        spelling.extent(f.c + Extent(1)).size() < spelling.extent(f.c).size();
    const bool bare =
        parts[1][0].empty() && parts[1][1].empty() && !(parts[0][0].empty() && parts[0][1].empty());
    if (bare && !strict && f.c.is_constant() && f.c.value() < 0 && f.c.value() != INT64_MIN) // 4 <= i
      return magnitude(f.c.value()) + " <= " + form(0, parts[0][0], parts[0][1], axis, arg);
    const std::string left = form(0, parts[1][0], parts[1][1], axis, arg);
    const std::string right = form(strict ? f.c + Extent(1) : f.c, parts[0][0], parts[0][1], axis, arg);
    return left + (strict ? " < " : " <= ") + right;
  }

  std::string domain(const Domain& d, const Spell& axis, const Spell& arg) const {
    if (d.empty()) return "never";
    std::vector<std::string> pieces;
    for (auto& piece : d) {
      std::vector<std::string> bounds;
      std::vector<char> done(piece.size(), 0);
      for (size_t k = 0; k < piece.size(); ++k) {
        if (done[k]) continue;
        size_t other = k + 1; // f >= 0 and -f >= 0 is an equality
        while (other < piece.size() && !(piece[k] + piece[other] == Form{})) ++other;
        std::string s = bound(piece[k], axis, arg);
        if (other < piece.size()) {
          const size_t at = s.find(" <= ");
          if (at != std::string::npos) s.replace(at, 4, " == "), done[other] = 1;
        }
        bounds.push_back(s);
      }
      if (bounds.empty()) return "always";
      pieces.push_back(joined(bounds, " and "));
    }
    return joined(pieces, " or ");
  }

  // ---- nodes
  void assign_names() {
    std::set<std::string> taken;
    std::vector<std::string> raw(g.nodes.size());
    for (NodeId id = 0; id < g.nodes.size(); ++id)
      if (g[id].input()) taken.insert(raw[id] = g[id].name);
    for (NodeId id = 0; id < g.nodes.size(); ++id) {
      if (g[id].input()) continue;
      const Comp* c = g[id].comp();
      const bool kind =
          c && c->monoid && g[id].name == c->monoid->name; // the surface names a fold by its monoid
      const std::string base =
          g[id].name.empty() || kind || is_reserved(g[id].name) ? "v" + std::to_string(id) : g[id].name;
      std::string name = base;
      for (int k = 2; !taken.insert(name).second; ++k) name = base + "_" + std::to_string(k);
      raw[id] = name;
    }
    for (auto& n : raw) names.push_back(spelling.name(n));
    raw_names = raw;
  }

  std::vector<std::string> raw_names = {};

  void line(const std::string& s) { out += indent + s + "\n"; }

  void print() {
    for (NodeId id = 0; id < g.nodes.size(); ++id)
      std::visit(Match{[&](const Input& n) { input(id, n); }, [&](const Comp& c) { comp(id, c); },
                       [&](const Recur& r) { recur(id, r); }},
                 g[id].what);
    for (auto& o : g.outputs) {
      const bool same = g.ports(o.port.node) == 1 && raw_names[o.port.node] == o.name;
      line("output " + output_name(o.name) + (same ? "" : " = " + port(o.port)) + " : " + row(o.format).name);
    }
  }

  std::string output_name(const std::string& n) const { return spelling.name(n); }

  void input(NodeId id, const Input& n) {
    static constexpr const char* kinds[] = {"input", "param", "state"};
    line(std::string(kinds[n.kind]) + " " + names[id] + extents(n.shape) + " : " + row(n.format).name +
         (n.sorted ? " sorted" : ""));
  }

  void comp(NodeId id, const Comp& c) {
    const Spell axis = i;
    std::vector<std::string> arg_names(c.args.size()); // a read with a name of its own
    Spell arg = [&](int a) -> std::string {
      if (!arg_names[size_t(a)].empty()) return arg_names[size_t(a)];
      const Arg& r = c.args[size_t(a)];
      std::vector<std::string> parts;
      for (auto& f : r.view) parts.push_back(form(f, axis, arg));
      return port(r.from) + (parts.empty() ? "" : "[" + joined(parts) + "]");
    };
    TermPrinter terms{g.pool, spelling, [&](const Term& t) -> std::string {
                        if (t.op == Op::coord) return "iota " + i(int(t.whole));
                        if (t.op == Op::holds)
                          return "{" + domain(c.guards[size_t(t.whole)], axis, arg) + "}";
                        return arg(int(t.whole));
                      }};
    // Reads that gather and are themselves used more than once get a name, so that text stays as small as the
    // graph.
    std::vector<int> uses(c.args.size());
    auto count = [&](const Form& f) {
      for (auto& t : f.args) ++uses[size_t(t.first)];
    };
    for (auto& a : c.args)
      for (auto& f : a.view) count(f);
    for (auto& d : c.guards)
      for (auto& p : d)
        for (auto& f : p) count(f);
    for (auto& p : c.domain)
      for (auto& f : p) count(f);
    std::set<Id> leaves;
    for (Id l : c.lift) expr::subterms(g.pool, l, Op::arg, leaves);
    for (Id l : leaves) ++uses[size_t(g.pool[l].whole)];
    for (size_t a = 0; a < c.args.size(); ++a) {
      const auto& view = c.args[a].view;
      const bool gathers =
          std::any_of(view.begin(), view.end(), [](const Form& f) { return !f.args.empty(); });
      if (!gathers || uses[a] < 2) continue;
      const std::string name = "t" + std::to_string(terms.lets.size());
      terms.lets.push_back(name + " = " + arg(int(a)));
      arg_names[a] = name;
    }
    terms.prepare(c.lift, [](const Term& t) { return t.op == Op::holds; });
    std::vector<std::string> parts;
    for (Id l : c.lift)
      parts.push_back(terms.term(l, c.lift.size() == 1 && c.monoid && terms.lets.empty() ? 10 : 0));
    std::string body = parts.size() == 1 ? parts[0] : "(" + joined(parts) + ")";
    if (!terms.lets.empty()) body = (c.monoid ? "(" : "") + terms.with_lets(body) + (c.monoid ? ")" : "");
    std::vector<std::string> points, folds;
    for (size_t k = 0; k < c.points.size(); ++k)
      points.push_back(i(int(k)) + ": " + spelling.extent(c.points[k]));
    for (size_t k = 0; k < c.folds.size(); ++k)
      folds.push_back(i(int(c.points.size() + k)) + ": " + spelling.extent(c.folds[k]));
    std::string s = names[id] + (points.empty() ? "" : "[" + joined(points) + "]") + " = ";
    if (c.monoid) s += monoids.of(g.pool, *c.monoid) + "[" + joined(folds) + "] ";
    s += body;
    if (c.domain != everywhere())
      s += " where " + (c.domain.empty() ? "{never}" : domain(c.domain, axis, arg));
    line(s + stores(c));
  }

  std::string stores(const Comp& c) const {
    bool plain = true;
    std::vector<std::string> outs;
    for (auto& o : c.outs) {
      bool all = o.view.empty() && o.axes.size() == c.points.size();
      for (size_t k = 0; all && k < o.axes.size(); ++k) all = o.axes[k] == int(k);
      plain = plain && all;
      std::vector<std::string> axes, view;
      for (int a : o.axes) axes.push_back(i(a));
      for (size_t d = 0; d < o.view.size(); ++d)
        view.push_back(form(o.view[d], i, i) + " : " + spelling.extent(o.shape[d]));
      outs.push_back("[" + joined(axes) + "]" + (view.empty() ? "" : " as [" + joined(view) + "]"));
    }
    if (plain) return "";
    return " to " + (outs.size() == 1 ? outs[0] : "(" + joined(outs) + ")");
  }

  void recur(NodeId id, const Recur& r) {
    std::string head =
        names[id] + " = recur[i0: " + spelling.extent(r.steps) + "]" + (r.reverse ? " down" : "");
    if (r.live != everywhere()) head += " where " + (r.live.empty() ? "{never}" : domain(r.live, i, i));
    line(head);
    GraphPrinter step{*r.step, spelling, monoids, indent + "  "};
    step.assign_names();
    step.print();
    out += step.out;
    auto locals = [](size_t rank) {
      std::vector<std::string> axes;
      for (size_t d = 0; d < rank; ++d) axes.push_back(i(int(d + 1)));
      return rank ? "[" + joined(axes) + "]" : "";
    };
    step.out.clear();
    step.line("time " + step.names[r.time]);
    for (auto& s : r.states)
      step.line("carry " + step.names[s.in] + (s.init ? " from " + port(*s.init) : "") + " next " +
                step.port(s.out));
    for (auto& a : r.args) {
      std::vector<std::string> view;
      for (auto& f : a.view) view.push_back(form(f, i, i));
      step.line("arg " + step.names[a.in] + locals(r.step->shape({a.in, 0}).size()) + " from " +
                port(a.from) + (view.empty() ? "" : "[" + joined(view) + "]"));
    }
    for (auto& e : r.emits) {
      std::vector<std::string> view;
      for (size_t d = 0; d < e.view.size(); ++d)
        view.push_back(form(e.view[d], i, i) + " : " + spelling.extent(e.shape[d]));
      step.line("emit " + step.port(e.out) + locals(r.step->shape(e.out).size()) + " as [" + joined(view) +
                "]");
    }
    out += step.out;
  }
};

void all_names(const Graph& g, Spelling& s, std::map<std::string, SymbolFacts>& symbols) {
  std::map<std::string, bool> found;
  auto extents = [&](const std::vector<Extent>& e) {
    for (auto& x : e) x.symbols(found);
  };
  auto forms = [&](const std::vector<Form>& v) {
    for (auto& f : v) f.c.symbols(found);
  };
  auto domain = [&](const Domain& d) {
    for (auto& p : d) forms(p);
  };
  for (auto& [n, f] : g.symbols) symbols.emplace(n, f);
  for (auto& n : g.nodes)
    std::visit(Match{[&](const Input& x) { extents(x.shape); },
                     [&](const Comp& c) {
                       extents(c.points), extents(c.folds), domain(c.domain);
                       for (auto& a : c.args) forms(a.view);
                       for (auto& d : c.guards) domain(d);
                       for (auto& o : c.outs) forms(o.view), extents(o.shape);
                     },
                     [&](const Recur& r) {
                       r.steps.symbols(found), domain(r.live);
                       for (auto& a : r.args) forms(a.view);
                       for (auto& e : r.emits) forms(e.view), extents(e.shape);
                       all_names(*r.step, s, symbols);
                     }},
               n.what);
  for (auto& [n, used] : found) symbols.emplace(n, SymbolFacts{});
}

void collect_names(const Graph& g, Spelling& s, Monoids& m) {
  GraphPrinter p{g, s, m};
  p.assign_names();
  s.tensors.insert(p.raw_names.begin(), p.raw_names.end());
  for (auto& n : g.nodes)
    if (auto* r = n.recur()) collect_names(*r->step, s, m);
}

std::string declaration(const Monoids::Row& r) {
  std::vector<std::string> components, identity;
  const Spelling spelling;
  TermPrinter terms{*r.pool, spelling, [](const Term& t) {
                      return std::string(t.whole % 2 ? "b" : "a") + ".c" + std::to_string(t.whole / 2);
                    }};
  for (size_t c = 0; c < r.monoid->size(); ++c) {
    const Value& v = r.monoid->identity[c];
    components.push_back("c" + std::to_string(c) + ": " + expr::name(v.type));
    Pool p;
    TermPrinter one{p, spelling, terms.leaf};
    identity.push_back(one.term(p.literal(v), 0));
  }
  terms.prepare(r.monoid->combine, [](const Term&) { return false; });
  std::vector<std::string> parts;
  for (Id e : r.monoid->combine) parts.push_back(terms.term(e, 0));
  const std::string body = parts.size() == 1 ? parts[0] : "(" + joined(parts) + ")";
  return "monoid " + Monoids::spelled(r.name) + "(" + joined(components) + ") identity (" + joined(identity) +
         ")" + (r.monoid->commutative ? "" : " ordered") +
         (is_proved(*r.pool, *r.monoid) ? "" : " unproved") + " combine (a, b) = " + terms.with_lets(body) +
         "\n";
}
} // namespace

std::string print(const Graph& given) {
  const Graph g = canonical(given).graph;
  Spelling spelling;
  Monoids monoids;
  std::map<std::string, SymbolFacts> symbols;
  all_names(g, spelling, symbols);
  collect_names(g, spelling, monoids);
  GraphPrinter printer{g, spelling, monoids};
  printer.assign_names();
  printer.print();
  std::string out = "exact\n";
  for (auto& [n, f] : symbols) {
    std::string s = spelling.symbol(n);
    if (s[0] == '$') s = s.substr(1)[0] == '"' ? s.substr(1) : quoted(n);
    out += "sym " + s;
    if (f.lower != 0) out += " >= " + std::to_string(f.lower);
    if (f.upper != INT64_MAX) out += " <= " + std::to_string(f.upper);
    if (f.divisor != 1) out += " % " + std::to_string(f.divisor);
    out += "\n";
  }
  for (auto& r : monoids.rows) out += declaration(r);
  return out + printer.out;
}

} // namespace tang::text
