#include "tang/lower/reuse.hpp"

#include <algorithm>
#include <bit>

#include "tang/expr/effort.hpp"
#include "tang/lower/emitters.hpp"
#include "tang/lower/sites.hpp"

namespace tang::lower {

namespace {
constexpr uint64_t every_axis = ~uint64_t(0);
constexpr int64_t least_repeats = 8; // of a term, before a tile for it is worth its statement

class Keeper {
public:
  Keeper(Kernel& k, int64_t most, int far, bool in_turn) : k_(k), most_(most), far_(far), in_turn_(in_turn) {}

  void block(kernel::Block& b, std::map<Var, Affine> known) {
    for (auto& s : b) {
      if (auto* l = std::get_if<kernel::Let>(&s.node); l && l->kind == kernel::Let::affine)
        known[l->var] = l->operands[0];
      if (auto* x = std::get_if<kernel::Loop>(&s.node)) block(x->body, known);
      if (auto* x = std::get_if<kernel::If>(&s.node)) block(x->then, known);
      if (auto* x = std::get_if<kernel::Pipeline>(&s.node)) block(x->body, known);
    }
    while (keep_one(b, known)) {}
    while (in_turn_ && keep_repeated(b, known)) {}
  }

private:
  struct Use {
    size_t site;
    Id term;
  };

  bool keep_one(kernel::Block& b, const std::map<Var, Affine>& known) {
    std::vector<Site> sites;
    std::vector<Names> names;
    for (size_t s = 0; s < b.size(); ++s)
      if (auto x = site(b[s], s)) sites.push_back(*x);
    std::map<std::string, std::vector<Use>> uses;
    for (size_t s = 0; s < sites.size(); ++s) {
      names.emplace_back(k_, sites[s], known);
      const Site& x = sites[s];
      int64_t bytes = 4;
      std::string like;
      for (auto& a : x.axes) {
        bytes = mul_saturated(bytes, a.extent);
        like += std::to_string(a.extent) + "x";
      }
      if (!x.always || x.axes.empty() || bytes > most_) continue;
      like += " where " + names.back().conditions() + ": ";
      for (Id id : expr::schedule(*k_.pool, x.body->values))
        if ((*k_.pool)[id].type == expr::Type::real && effort(x, id) >= dear_effort &&
            moves_everywhere(names.back(), x, id))
          uses[like + names.back().term(id)].push_back({s, id});
    }
    const std::vector<Use>* best = nullptr;
    int most = 0;
    for (auto& [name, u] : uses) {
      if (u.size() < 2 || overwritten(b, sites, names, u)) continue;
      const int e = effort(sites[u[0].site], u[0].term);
      if (e > most) most = e, best = &u;
    }
    if (!best) return false;
    keep(b, sites, *best, every_axis);
    return true;
  }

  // A term that the loops around its own axes repeat: evaluated before the statement, once a point of those.
  bool keep_repeated(kernel::Block& b, const std::map<Var, Affine>& known) {
    for (size_t at = 0; at < b.size(); ++at) {
      const auto x = site(b[at], at);
      if (!x || !x->always) continue;
      Names names(k_, *x, known);
      std::optional<Id> best;
      for (Id id : expr::schedule(*k_.pool, x->body->values))
        if ((*k_.pool)[id].type == expr::Type::real && effort(*x, id) >= dear_effort && repeated(names, *x, id) &&
            (!best || effort(*x, id) > effort(*x, *best)))
          best = id;
      if (!best) continue;
      std::vector<Site> sites{*x};
      keep(b, sites, {{0, *best}}, names.moves_with(*best));
      return true;
    }
    return false;
  }

  bool repeated(Names& n, const Site& s, Id id) const {
    const uint64_t moves = n.moves_with(id);
    int64_t bytes = 4, times = 1, outside = 1;
    for (size_t a = 0; a < s.axes.size(); ++a) {
      if (moves >> a & 1)
        bytes = mul_saturated(bytes, s.axes[a].extent), times = s.axes[a].extent > 1 ? outside : times;
      else
        outside = mul_saturated(outside, s.axes[a].extent);
    }
    if (times < least_repeats || bytes > most_) return false;
    // Read before the statement: what its points wait for must be known there, and its results may not be read.
    for (auto* all : s.conditions)
      for (auto& c : *all) {
        const uint64_t named = axes_named(s, c);
        if ((named & ~moves) && ((named & moves) || !c.refs.empty() || names_other(s, c))) return false;
      }
    const std::set<int> read = n.reads(id);
    return std::none_of(s.dst->begin(), s.dst->end(), [&](const Ref& d) { return read.count(d.memory) > 0; });
  }

  // Which of a statement's axes a condition names, as places, the indices that it reads included; whether it
  // names anything else.
  static uint64_t axes_named(const Site& s, const Coordinate& c) {
    uint64_t out = axes_of(s, c.affine);
    for (auto& r : c.refs)
      for (auto& x : s.body->refs[size_t(r.first)].index) out |= axes_named(s, x);
    return out;
  }

  static uint64_t axes_of(const Site& s, const Affine& f) {
    uint64_t out = 0;
    for (size_t a = 0; a < s.axes.size(); ++a)
      if (kernel::coefficient(f, s.axes[a].var)) out |= uint64_t(1) << a;
    return out;
  }

  static bool names_other(const Site& s, const Coordinate& c) {
    return size_t(std::popcount(axes_of(s, c.affine))) < c.affine.terms.size();
  }

  static std::vector<TileAxis> chosen(const Site& s, uint64_t places) {
    std::vector<TileAxis> out;
    for (size_t a = 0; a < s.axes.size(); ++a)
      if (places >> a & 1) out.push_back(s.axes[a]);
    return out;
  }

  int effort(const Site& s, Id id) const {
    int out = expr::effort(*k_.pool, id);
    for (Id x : expr::schedule(*k_.pool, {id}))
      if (const Term& t = (*k_.pool)[x]; t.op == Op::arg)
        out +=
            k_.memories[size_t(s.body->refs[size_t(t.whole)].memory)].home == kernel::Home::global ? far_ : 0;
    return out;
  }

  bool moves_everywhere(Names& n, const Site& s, Id id) const {
    uint64_t wide = 0;
    for (size_t a = 0; a < s.axes.size(); ++a)
      if (s.axes[a].extent > 1) wide |= uint64_t(1) << a;
    return wide && (n.moves_with(id) & wide) == wide;
  }

  static bool overwritten(const kernel::Block& b, const std::vector<Site>& sites, std::vector<Names>& names,
                          const std::vector<Use>& u) {
    const kernel::Block between(b.begin() + long(sites[u.front().site].at),
                                b.begin() + long(sites[u.back().site].at));
    std::set<int> written;
    written_by(between, written);
    const std::set<int> read = names[u.front().site].reads(u.front().term);
    return std::any_of(read.begin(), read.end(), [&](int m) { return written.count(m) > 0; });
  }

  // A tile over some axes of the statements, written before the first.
  void keep(kernel::Block& b, std::vector<Site>& sites, const std::vector<Use>& uses, uint64_t places) {
    kernel::Pool& p = *k_.pool;
    const Site& first = sites[uses[0].site];
    const std::vector<TileAxis> axes = chosen(first, places);
    kernel::Memory m;
    m.name = "k" + std::to_string(k_.memories.size());
    m.home = kernel::Home::register_;
    m.format = k_.compute;
    m.access = kernel::Access::read_write;
    m.team = kernel::Team::workgroup;
    for (auto& a : axes) m.shape.push_back(a.extent);
    m.strides = kernel::row_major(m.shape);
    const int tile = k_.add(std::move(m));
    auto here = [&](const std::vector<TileAxis>& over) {
      Ref r{tile, {}, false};
      for (auto& a : over)
        r.index.push_back({a.extent > 1 ? kernel::variable(a.var) : kernel::constant(0), {}});
      return r;
    };
    Apply once;
    std::map<Var, Var> to;
    for (auto& a : axes) {
      to[a.var] = k_.fresh("k");
      once.axes.push_back({to[a.var], a.extent});
    }
    once.body.refs = first.body->refs;
    once.body.guards = first.body->guards;
    rename(once.body, to);
    for (auto* c : first.conditions)
      for (Coordinate x : *c) {
        if (axes_named(first, x) & ~places) continue;
        rename(x.affine, to);
        once.bounds.push_back(std::move(x));
      }
    once.body.values = {copied(p, uses[0].term, [&](const Term& t) -> std::optional<Id> {
      if (t.op != Op::coord || !to.count(Var(t.whole))) return std::nullopt;
      return p.leaf(Op::coord, t.type, to.at(Var(t.whole)));
    })};
    once.dst = {here(once.axes)};
    once.fill = {std::nullopt};
    for (auto& u : uses) {
      const Site& s = sites[u.site];
      s.body->refs.push_back(here(chosen(s, places)));
      const Id leaf = p.leaf(Op::arg, expr::Type::real, int64_t(s.body->refs.size()) - 1);
      for (Id& v : s.body->values) v = expr::substitute(p, v, {{u.term, leaf}});
      compact(p, s);
    }
    Stmt made{std::move(once)};
    compact(p, *site(made, 0));
    vectorize(k_, std::get<Apply>(made.node), int(axes.size()) - 1);
    b.insert(b.begin() + long(first.at), std::move(made));
  }

  Kernel& k_;
  const int64_t most_;
  const int far_;
  const bool in_turn_;
};

} // namespace

void keep_dear_terms(Kernel& k, int64_t most, int far, bool in_turn) {
  Keeper(k, most, far, in_turn).block(k.body, {});
}

} // namespace tang::lower
