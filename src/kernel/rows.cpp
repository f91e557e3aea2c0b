#include "tang/kernel/rows.hpp"

#include <algorithm>
#include <numeric>

#include "tang/base/match.hpp"
#include "tang/base/number.hpp"
#include "tang/expr/effort.hpp"
#include "tang/kernel/analyze.hpp"
#include "tang/kernel/early.hpp"
#include "tang/kernel/ragged.hpp"

namespace tang::kernel {

namespace {
constexpr int64_t most_met = 32; // parts of a row that each lane joins at once

int64_t count(const std::vector<TileAxis>& axes, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t a = from; a < to; ++a) n *= axes[a].extent;
  return n;
}

bool fills(const Apply& a) {
  return std::any_of(a.fill.begin(), a.fill.end(), [](auto& f) { return f.has_value(); });
}

// A statement by rows and columns.
struct Line {
  std::vector<TileAxis> axes; // rows, then columns
  size_t lead = 0;
  const Body* body = nullptr;
  const std::vector<Ref>* dst = nullptr;
  bool folds = false;

  int64_t rows() const { return count(axes, 0, lead); }

  int64_t columns() const { return count(axes, lead, axes.size()); }
};

struct Given { // what was decided for the same rows
  Teams teams;
  int run;
};

class Rows {
public:
  Rows(const Kernel& k, const target::Target& t, bool maps, std::optional<Given> given = {}) : k_(k), t_(t), maps_(maps), given_(given) {}

  bool fits() {
    int64_t rows = 1;
    for (auto& g : k_.grid)
      if (g.step > 1) {
        if (rows > 1) return false;
        rows = g.step;
      }
    int64_t columns = 1, all = 1;
    for (auto& g : k_.grid) all = mul_saturated(all, g.extent);
    bool folds = false;
    int joining = 0;
    for (auto& s : k_.body) {
      Line l;
      if (std::holds_alternative<Let>(s.node)) { // an integer that is the same for all lanes
        lines_.push_back({});
        continue;
      }
      if (auto* a = std::get_if<Apply>(&s.node)) {
        l = {a->axes, 0, &a->body, &a->dst, false};
        if (rows > 1) {
          if (l.axes.empty() || l.axes[0].extent != rows) return false;
          l.lead = 1;
        }
      } else if (auto* f = std::get_if<Fold>(&s.node)) {
        l = {f->kept, f->kept.size(), &f->body, &f->dst, true};
        const bool any_order = f->vector >= int(f->kept.size());
        if (f->accumulate || f->held || !any_order || l.rows() != rows || f->kept.size() != (rows > 1) ||
            f->folded.empty())
          return false;
        for (auto& e : f->identity)
          if (e.type == Type::bits) return false;
        for (auto& d : f->dst)
          for (auto& c : d.index)
            if (!c.refs.empty()) return false;
        l.axes.insert(l.axes.end(), f->folded.begin(), f->folded.end());
        folds = true;
        int effort = 0;
        for (Id id : expr::schedule(*k_.pool, f->combine)) effort += expr::effort((*k_.pool)[id].op);
        joining = std::max(joining, effort);
      } else {
        return false;
      }
      columns = std::max(columns, l.columns());
      lines_.push_back(std::move(l));
    }
    if ((!folds && !maps_) || columns < most_at_once) return false;
    columns_ = columns;
    if (given_) {
      teams_ = given_->teams;
      return stays() || (folds && teams_.cluster == 1);
    }
    const bool stores = stores_rows();
    if (!folds) { // what a lane keeps of its row stays in registers
      teams_ = teams(columns, all, joining, alone(t_), stores), teams_.rows = rows;
      return stays() && (rows <= teams_.lanes / teams_.team || rows % (teams_.lanes / teams_.team) == 0);
    }
    teams_ = teams(columns, all, joining, t_, stores);
    teams_.rows = rows;
    if (teams_.cluster > 1 && !stays()) teams_ = teams(columns, all, joining, alone(t_), stores), teams_.rows = rows;
    for (auto& l : lines_) // the parts of a row are of one axis
      if (l.body && l.folds && teams_.team > width() && l.axes.size() != l.lead + 1) return false;
    const int64_t at_once = teams_.lanes / teams_.team;
    return rows <= at_once ? true : rows % at_once == 0;
  }

  Kernel run() {
    Kernel out = k_;
    out.pool = std::make_shared<Pool>(*k_.pool);
    out.lanes = teams_.lanes, out.cluster = teams_.cluster;
    out.subgroup = t_.lanes;
    place_tiles(out);
    const int run = common_run();
    Block body;
    for (size_t s = 0; s < out.body.size(); ++s) {
      if (auto* a = std::get_if<Apply>(&out.body[s].node)) {
        Apply x = *a;
        x.vector = -1;
        x.deal = {int(lines_[s].lead), teams_.team, run, lines_[s].columns() == 1};
        if (x.deal.each) x.deal.run = 1;
        body.push_back({std::move(x)});
      } else if (std::holds_alternative<Let>(out.body[s].node)) {
        body.push_back(out.body[s]);
      } else {
        fold(out, std::get<Fold>(out.body[s].node), run, body);
      }
    }
    out.body = std::move(body);
    read_early(out);
    return out;
  }

  // The same rows from aligned places on, where that moves more at once.
  std::optional<Kernel> aligned() const {
    const int run = widest_run();
    if (teams_.rows != 1 || t_.access_bytes == 1 || common_run() >= run) return {};
    const int64_t at_once = int64_t(teams_.team) * run, places = ceil_div(columns_ + run - 1, at_once) * at_once;
    if (places / teams_.team > most_held) return {};
    const auto k = aligned_columns(k_, columns_, run, places);
    if (!k) return {};
    Rows out(*k, t_, maps_, Given{teams_, run});
    return out.fits() ? std::optional(out.run()) : std::nullopt;
  }

private:
  static target::Target alone(target::Target t) {
    t.cluster = 1;
    return t;
  }

  // A statement writes along its columns to memory.
  bool stores_rows() const {
    return std::any_of(lines_.begin(), lines_.end(), [&](const Line& l) {
      return l.body && !l.folds && l.columns() > 1 && std::any_of(l.dst->begin(), l.dst->end(), [&](const Ref& r) {
               return k_.memories[size_t(r.memory)].home == Home::global;
             });
    });
  }

  // Every tile would lie in registers: shared memory of a workgroup is not that of its neighbour.
  bool stays() const {
    for (size_t m = 0; m < k_.memories.size(); ++m)
      if (k_.memories[m].home != Home::global && seat(m, teams_).home == Home::shared) return false;
    return true;
  }

  // Integers of addresses and bounds are read from memory: their text stands outside of the values'.
  bool is_index(size_t m) const {
    bool out = false;
    for (auto& s : k_.body) {
      auto of = [&](const Body& b, const std::vector<Coordinate>& at) {
        for (auto& c : at)
          for (auto& r : c.refs) out |= b.refs[size_t(r.first)].memory == int(m);
      };
      auto all = [&](const auto& x, const Bounds& more) {
        of(x.body, x.bounds), of(x.body, more);
        for (auto& b : x.partial) of(x.body, b);
        for (auto& g : x.body.guards)
          for (auto& b : g) of(x.body, b);
        for (auto& r : x.body.refs) of(x.body, r.index);
        for (auto& r : x.dst) of(x.body, r.index);
      };
      if (auto* a = std::get_if<Apply>(&s.node)) all(*a, {});
      if (auto* f = std::get_if<Fold>(&s.node)) all(*f, f->limits);
    }
    return out;
  }

  // A tile that each lane reads at its own points lies in registers; of one element a row, in those of the
  // team.
  struct Seat {
    Home home;
    Lanes lanes;
  };

  Seat seat(size_t m, const Teams& teams) const {
    const Memory& x = k_.memories[m];
    if (is_index(m)) return {Home::shared, Lanes::owned};
    bool own = true, row = true;
    for (auto& l : lines_) {
      if (!l.body) continue;
      const std::vector<TileAxis> lead(l.axes.begin(), l.axes.begin() + long(l.lead));
      auto look = [&](const Ref& r, bool written) {
        if (r.memory != int(m)) return;
        row &= is_flat(k_, r, lead) && (!written || l.folds || l.columns() == 1);
        own &= is_flat(k_, r, l.axes) && !(written && l.folds) && l.columns() > 1;
      };
      for (auto& r : l.body->refs) look(r, false);
      for (auto& r : *l.dst) look(r, true);
    }
    if (row && x.size() == teams.rows) return {Home::register_, Lanes::replicated};
    const bool few = own && ceil_div(x.size(), teams.lanes) <= most_held;
    return {few ? Home::register_ : Home::shared, Lanes::owned};
  }

  void place_tiles(Kernel& out) {
    for (size_t m = 0; m < out.memories.size(); ++m) {
      Memory& x = out.memories[m];
      if (x.home == Home::global) continue;
      const Seat s = seat(m, teams_);
      x.team = Team::workgroup;
      x.home = s.home, x.lanes = s.lanes;
      if (const auto f = copied(m); f && s.home == Home::register_ && s.lanes == Lanes::owned) x.format = *f;
    }
  }

  // The format of 16 bits whose elements a tile holds as they are: two of them fit a lane's register.
  std::optional<Format> copied(size_t m) const {
    if (t_.access_bytes == 1) return {};
    const Ref* from = nullptr;
    for (auto& s : k_.body) {
      auto* a = std::get_if<Apply>(&s.node);
      auto* f = std::get_if<Fold>(&s.node);
      if (!a && !f) continue;
      const std::vector<Ref>& dst = a ? a->dst : f->dst;
      for (size_t d = 0; d < dst.size(); ++d) {
        if (dst[d].memory != int(m)) continue;
        if (f || from || a->body.when || fills(*a)) return {};
        const expr::Term& t = (*k_.pool)[a->body.values[d]];
        if (t.op != expr::Op::arg) return {};
        from = &a->body.refs[size_t(t.whole)];
      }
    }
    if (!from || from->checked || !address(k_, *from)) return {};
    const Memory& x = k_.memories[size_t(from->memory)];
    const bool is_half = x.format == Format::bf16 || x.format == Format::f16;
    return x.home == Home::global && is_half ? std::optional(x.format) : std::nullopt;
  }

  // Neighbours that one access moves, of the narrowest array along columns.
  int widest_run() const {
    int64_t narrowest = 16;
    for (auto& l : lines_) {
      if (!l.body || l.columns() == 1 || l.axes.size() == l.lead) continue;
      auto look = [&](const Ref& r) {
        const Memory& m = k_.memories[size_t(r.memory)];
        const auto at = address(k_, r);
        if (m.home == Home::global && at && !r.checked && coefficient(*at, l.axes.back().var) == 1)
          narrowest = std::min<int64_t>(narrowest, std::max(1, expr::row(m.format).bits / 8));
      };
      for (auto& r : l.body->refs) look(r);
      if (!l.folds)
        for (auto& r : *l.dst) look(r);
    }
    return int(std::min(most_at_once, std::max<int64_t>(1, t_.access_bytes / narrowest)));
  }

  // Neighbours that every far reference along columns may move at once.
  int common_run() const {
    if (given_) return given_->run;
    int64_t run = most_at_once;
    for (auto& l : lines_) {
      if (!l.body || l.columns() == 1) continue;
      while (run > 1 && l.axes.back().extent % run) run /= 2;
      auto look = [&](const Ref& r) {
        const Memory& m = k_.memories[size_t(r.memory)];
        if (m.home != Home::global || l.axes.size() == l.lead) return;
        const auto at = address(k_, r);
        const Var v = l.axes.back().var;
        if (!at || r.checked || coefficient(*at, v) != 1) return; // element by element in any case
        for (auto& [x, c] : at->terms) {
          if (x == v) continue;
          int64_t step = c;
          for (auto& g : k_.grid)
            if (g.var == x) step *= g.step;
          while (run > 1 && step % run) run /= 2;
        }
        while (run > 1 && at->c % run) run /= 2;
      };
      for (auto& r : l.body->refs) look(r);
      if (!l.folds)
        for (auto& r : *l.dst) look(r);
    }
    return int(std::min<int64_t>(run, widest_run()));
  }

  // Lanes that exchange registers: of a subgroup, or none.
  int width() const { return t_.exchanges ? t_.lanes : 1; }

  // Within a subgroup lanes exchange; several subgroups of a row meet in shared memory, and every lane reads
  // the parts. Workgroups of a cluster then write what they have into each other's shared memory. Many parts meet twice.
  void fold(Kernel& k, const Fold& f, int run, Block& out) {
    Fold one = f;
    one.vector = int(f.kept.size());
    one.ways = 1;
    one.deal = {0, std::min(teams_.team, width()), run, false};
    if (teams_.team <= width()) {
      out.push_back({std::move(one)});
      return;
    }
    const int64_t parts = teams_.team / width(), columns = count(f.folded, 0, f.folded.size()),
                  share = int64_t(width()) * run;
    const Var w = k.fresh("w"), u = k.fresh("u"), v = k.fresh("v");
    const int64_t rounds = ceil_div(columns, parts * share);
    const Affine index = variable(u, parts * share) + variable(w, share) + variable(v);
    one.kept.push_back({w, parts});
    one.folded = {{u, rounds}, {v, share}};
    if (rounds * parts * share != columns)
      one.limits.insert(one.limits.begin(), Coordinate{constant(columns - 1) - index, {}});
    put(k, one, f.folded[0].var, index);
    one.dst = meeting(k, f, parts, variable(w), Team::workgroup);
    const std::vector<Ref> first = one.dst;
    out.push_back({std::move(one)});
    const bool shared = teams_.cluster > 1;
    const int64_t groups = shared ? teams_.cluster : parts > most_met ? power_above(int(ceil_div(parts, most_met))) : 1;
    if (groups == 1) {
      out.push_back({joined(k, f, first, {}, parts, teams_.team)});
      return;
    }
    const Var g = k.fresh("w");
    const std::vector<Ref> second = meeting(k, f, groups, variable(g), shared ? Team::cluster : Team::workgroup);
    const int64_t each = parts / groups;
    Fold near = joined(k, f, first, variable(g, each), each, int(teams_.team / groups));
    near.kept.push_back({g, groups});
    near.dst = second;
    out.push_back({std::move(near)});
    out.push_back({joined(k, f, second, {}, groups, teams_.team)});
  }

  // Tiles of [row, part] for the components of f, at `part` of this row.
  std::vector<Ref> meeting(Kernel& k, const Fold& f, int64_t parts, const Affine& part, Team team) const {
    std::vector<Ref> out;
    const Affine row = f.kept.empty() ? constant(0) : variable(f.kept[0].var);
    for (auto& e : f.identity) {
      Memory m;
      m.name = "part" + std::to_string(k.memories.size());
      m.home = Home::shared;
      m.format = e.type == Type::real ? k.compute : e.type == Type::index ? Format::i64 : Format::boolean;
      m.shape = {teams_.rows, parts};
      m.strides = row_major(m.shape);
      m.access = Access::read_write;
      m.team = team;
      out.push_back({k.add(std::move(m)), {{row, {}}, {part, {}}}, false});
    }
    return out;
  }

  // Parts from .. from + n of f's row, folded by every lane of a team.
  static Fold joined(Kernel& k, const Fold& f, const std::vector<Ref>& parts, const Affine& from, int64_t n,
                     int team) {
    Fold out;
    out.kept = f.kept;
    out.folded = {{k.fresh("w"), n}};
    out.bounds = f.bounds;
    out.dst = f.dst;
    out.identity = f.identity;
    out.combine = f.combine;
    out.deal = {0, team, 1, true};
    for (size_t d = 0; d < f.dst.size(); ++d) {
      Ref r = parts[d];
      r.index[1].affine = from + variable(out.folded[0].var);
      out.body.refs.push_back(std::move(r));
      out.body.values.push_back(k.pool->leaf(expr::Op::arg, f.identity[d].type, int64_t(d)));
    }
    return out;
  }

  static void put(Kernel& k, Fold& f, Var v, const Affine& by) {
    auto replace = [&](Affine& a) { a = replaced(a, v, by); };
    auto bounds = [&](Bounds& b) {
      for (auto& c : b) replace(c.affine);
    };
    bounds(f.limits);
    for (auto& b : f.partial) bounds(b);
    for (auto& r : f.body.refs)
      for (auto& c : r.index) replace(c.affine);
    for (auto& g : f.body.guards)
      for (auto& b : g) bounds(b);
    Pool& p = *k.pool;
    auto term = [&](Id id) {
      return expr::transplant(Pool(p), id, p, [&](const expr::Term& t) {
        if (t.op == expr::Op::literal) return p.literal(Value{t.type, expr::State::present, t.r, t.whole});
        if (t.op != expr::Op::coord || t.whole != v) return p.leaf(t.op, t.type, t.whole);
        std::optional<Id> sum;
        for (auto& [x, c] : by.terms) {
          const Id leaf = p.leaf(expr::Op::coord, Type::index, x);
          const Id one = c == 1 ? leaf : p.make(expr::Op::mul, {p.literal(expr::whole(c)), leaf});
          sum = sum ? p.make(expr::Op::add, {*sum, one}) : one;
        }
        return *sum;
      });
    };
    for (Id& id : f.body.values) id = term(id);
    if (f.body.when) f.body.when = term(*f.body.when);
  }

  const Kernel& k_;
  const target::Target& t_;
  const bool maps_;
  const std::optional<Given> given_;
  std::vector<Line> lines_;
  Teams teams_;
  int64_t columns_ = 1; // of a row
};
} // namespace

bool is_flat(const Kernel& k, const Ref& r, const std::vector<TileAxis>& axes) {
  const auto at = address(k, r);
  if (!at || at->c || r.checked) return false;
  Affine want;
  for (auto& a : axes) want = a.extent * want + (a.extent > 1 ? variable(a.var) : Affine{});
  return *at == want;
}

std::optional<Kernel> deal_rows(const Kernel& k, const target::Target& t, bool maps) {
  if (!has_teams(t)) return std::nullopt;
  Rows r(k, t, maps);
  if (!r.fits()) return std::nullopt;
  if (auto aligned = r.aligned()) return aligned;
  return r.run();
}

} // namespace tang::kernel
