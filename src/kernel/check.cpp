#include "tang/kernel/check.hpp"

#include <algorithm>

#include "tang/base/match.hpp"
#include "tang/kernel/add_in_place.hpp"
#include "tang/kernel/accesses.hpp"

namespace tang::kernel {

namespace {
using expr::Op;
using expr::Term;

class Checker : Accesses {
public:
  using Accesses::Accesses;

  std::vector<std::string> run() {
    memories();
    Facts f;
    for (auto& g : k_.grid) {
      if (g.step < 1 || g.extent < 0)
        return say("a grid axis with a step below 1 or a negative extent"), out_;
      if (!define(f, g.var)) continue;
      f.define(g.var, 0, std::max<int64_t>(0, (g.extent - 1) / g.step * g.step), {g.step, 0});
      if (g.extent == 0) f.assume(constant(-1)); // no workgroup
    }
    std::set<int> written;
    block(k_.body, f, written, false);
    if (workgroups(k_) > 1) races();
    return out_;
  }

private:
  void axes(const std::vector<TileAxis>& a, Facts& f) {
    for (auto& x : a) {
      if (x.extent < 0) say("axis " + text_.var(x.var) + " has extent " + std::to_string(x.extent));
      if (define(f, x.var)) f.define(x.var, 0, std::max<int64_t>(0, x.extent - 1));
      if (x.extent == 0) f.assume(constant(-1)); // no point: nothing is touched
    }
  }

  void operands(const Body& b, Facts& f) {
    for (size_t n = 0; n < b.refs.size(); ++n) {
      std::optional<int64_t> low, high;
      if (valid(b.refs[n].memory)) {
        const auto& row_of = expr::row(memory(b.refs[n].memory).format);
        if (row_of.type != Type::real && row_of.bits < 64) {
          const bool no_sign = row_of.type == Type::bits;
          high = (int64_t(1) << (no_sign ? row_of.bits : row_of.bits - 1)) - 1;
          low = no_sign ? 0 : -*high - 1;
        }
      }
      f.define(operand(int(n)), low, high);
    }
  }

  void body(const Body& b, const Facts& f) {
    for (size_t n = 0; n < b.refs.size(); ++n) form(b.refs[n], f, &b, n);
    for (auto& g : b.guards) bounds(g, f, &b);
    std::vector<Id> roots = b.values;
    if (b.when) roots.push_back(*b.when);
    if (b.when && (*k_.pool)[*b.when].type != Type::boolean) say("`when` is not boolean");
    for (Id id : schedule(*k_.pool, roots)) {
      const Term& t = (*k_.pool)[id];
      if (t.op == Op::var || t.op == Op::only || t.op == Op::or_else)
        say(std::string("a body holds `") + row(t.op).name + "`");
      if (t.op == Op::arg) {
        if (t.whole < 0 || size_t(t.whole) >= b.refs.size())
          say("a body reads operand " + std::to_string(t.whole) + ", which it does not have");
        else if (valid(b.refs[size_t(t.whole)].memory) &&
                 type_of(memory(b.refs[size_t(t.whole)].memory).format) != t.type)
          say("a body takes " + text_.ref(b.refs[size_t(t.whole)], &b) + " for a value of type " +
              name(t.type));
      }
      if (t.op == Op::coord && (t.type != Type::index || !f.defined(Var(t.whole))))
        say("a body reads a coordinate that has no value");
      if (t.op == Op::holds && (t.type != Type::boolean || t.whole < 0 || size_t(t.whole) >= b.guards.size()))
        say("a body reads a guard that it does not have");
    }
  }

  void bounds(const std::vector<Bounds>& b, const Facts& f, const Body* body_of) {
    for (auto& x : b)
      for (auto& c : x) coordinate(c, f, body_of, body_of ? body_of->refs.size() : 0);
  }

  void typed(const std::vector<Ref>& dst, const std::vector<Id>& values, const Body* b) {
    for (size_t d = 0; d < dst.size() && d < values.size(); ++d)
      if (valid(dst[d].memory) && type_of(memory(dst[d].memory).format) != (*k_.pool)[values[d]].type)
        say("stores a value of type " + std::string(name((*k_.pool)[values[d]].type)) + " in " +
            text_.ref(dst[d], b));
  }

  // What is known at a live point: all of the bounds, and one of `any`.
  std::vector<Facts> live(const Facts& f, const Bounds& all, const std::vector<Bounds>& any) const {
    Facts base = f;
    for (auto& c : all) base.assume(with_operands(c));
    if (any.empty()) return {base};
    std::vector<Facts> out;
    for (auto& b : any) {
      out.push_back(base);
      for (auto& c : b) out.back().assume(with_operands(c));
    }
    return out;
  }

  // An operand that is also a destination must be read at the point that is written.
  void in_place(const std::vector<Ref>& dst, const Body& b, const std::vector<TileAxis>& axes) {
    auto own = [&](const Affine& a) {
      for (auto& t : a.terms)
        for (auto& x : axes)
          if (x.var == t.first) return true;
      return false;
    };
    for (auto& d : dst)
      for (auto& r : b.refs) {
        if (r.memory != d.memory || r.index.size() != d.index.size()) continue;
        bool same = true, apart = false;
        for (size_t x = 0; x < d.index.size(); ++x) {
          same = same && d.index[x].affine == r.index[x].affine && d.index[x].refs == r.index[x].refs;
          const Affine delta = d.index[x].affine - r.index[x].affine;
          apart = apart || (d.index[x].refs.empty() && r.index[x].refs.empty() && delta.terms.empty() &&
                            delta.c != 0 && !own(d.index[x].affine));
        }
        if (!same && !apart)
          say("reads " + text_.ref(r, &b) + " while writing " + text_.ref(d, &b) +
              ": the order of points would show");
      }
  }

  void check_deal(const Deal& d, int lead) {
    if (d.team < 0 || d.run < 1 || d.lead < 0 || d.lead > lead) return say("a deal with a negative size");
    if (!d.team) return;
    if ((d.team & (d.team - 1)) || k_.lanes % d.team) say("a team is a power of two that divides the lanes");
  }

  void check_apply(const Apply& x, const Facts& outer, std::set<int>& written, bool full) {
    Facts f = outer;
    axes(x.axes, f);
    operands(x.body, f);
    body(x.body, f);
    bounds({x.bounds}, f, &x.body);
    bounds(x.partial, f, &x.body);
    if (x.body.values.size() != x.dst.size()) say("an apply needs one value a destination");
    if (!x.fill.empty() && x.fill.size() != x.dst.size())
      say("an apply needs one fill a destination, or none");
    if (x.vector < -1 || x.vector >= int(x.axes.size())) say("the vector axis does not exist");
    check_deal(x.deal, int(x.axes.size()));
    for (auto& d : x.dst) form(d, f, &x.body, x.body.refs.size());
    typed(x.dst, x.body.values, &x.body);
    const auto known = live(f, x.bounds, full ? std::vector<Bounds>{} : x.partial);
    adding_ = added_to(k_, x) < 0 ? -1 : x.dst[0].memory;
    for (auto& r : x.body.refs) reads(r, known, &x.body, written);
    for (size_t d = 0; d < x.dst.size(); ++d) {
      const bool filled = d < x.fill.size() && x.fill[d];
      if (filled && valid(x.dst[d].memory) && x.fill[d]->type != type_of(memory(x.dst[d].memory).format))
        say("a fill of another type");
      const auto& where = filled ? std::vector<Facts>{f} : known;
      writes(x.dst[d], where, &x.body, written);
      one_point_each(x.dst[d], x.axes, outer, where, &x.body);
    }
    adding_ = -1;
    in_place(x.dst, x.body, x.axes);
  }

  void check_fold(const Fold& x, const Facts& outer, std::set<int>& written, bool full) {
    Facts kept = outer;
    axes(x.kept, kept);
    Facts f = kept;
    axes(x.folded, f);
    operands(x.body, f);
    operands(x.body, kept);
    body(x.body, f);
    bounds({x.bounds}, kept, &x.body);
    bounds({x.limits}, f, &x.body);
    bounds(x.partial, f, &x.body);
    const size_t n = x.dst.size();
    if (x.body.values.size() != n || x.identity.size() != n || x.combine.size() != n)
      say("a fold needs one value, identity and combine a destination");
    if (x.vector < -1 || x.vector >= int(x.kept.size() + x.folded.size()))
      say("the vector axis does not exist");
    if (x.ways < 1) say("a fold needs at least one accumulator");
    if (x.search) check_search(x);
    check_deal(x.deal, 0);
    if (x.deal.team > k_.subgroup && !x.deal.each) say("a team that joins partial results is one subgroup at most");
    if (x.deal.team > 1 && !x.deal.each && x.accumulate) say("lanes that join partial results start from the identity");
    for (auto& d : x.dst) form(d, kept, &x.body, x.body.refs.size());
    typed(x.dst, x.body.values, &x.body);
    typed(x.dst, x.combine, &x.body);
    for (size_t d = 0; d < n && d < x.identity.size(); ++d)
      if (valid(x.dst[d].memory) && x.identity[d].type != type_of(memory(x.dst[d].memory).format))
        say("an identity of another type");
    for (Id id : schedule(*k_.pool, x.combine)) {
      const Term& t = (*k_.pool)[id];
      if (t.op == Op::var &&
          (t.whole < 0 || size_t(t.whole) >= 2 * n || size_t(t.whole / 2) >= x.combine.size() ||
           t.type != (*k_.pool)[x.combine[size_t(t.whole / 2)]].type))
        say("a combine reads a component that it does not have");
      else if (t.op != Op::var && t.op != Op::literal && !t.arity())
        say("a combine reads more than its components");
    }
    Bounds all = x.bounds;
    all.insert(all.end(), x.limits.begin(), x.limits.end());
    const auto known = live(f, all, full ? std::vector<Bounds>{} : x.partial),
               points = live(kept, x.bounds, {});
    for (auto& r : x.body.refs) reads(r, known, &x.body, written);
    for (auto& d : x.dst) {
      if (x.accumulate) reads(d, points, &x.body, written);
      writes(d, points, &x.body, written);
      one_point_each(d, of_a_workgroup(x, d), outer, points, &x.body);
    }
    std::vector<TileAxis> every = x.kept;
    every.insert(every.end(), x.folded.begin(), x.folded.end());
    for (auto& d : x.dst)
      for (auto& r : x.body.refs)
        if (r.memory == d.memory) in_place({d}, x.body, every);
  }

  // What halving finds is a number of terms of one axis, counted from nothing.
  void check_search(const Fold& x) {
    const Term* sum = x.combine.size() == 1 ? &(*k_.pool)[x.combine[0]] : nullptr;
    const bool counts = sum && sum->op == Op::add && sum->type == Type::index && x.identity.size() == 1 &&
                        x.identity[0].i == 0 && !x.accumulate;
    if (x.folded.size() != 1 || !counts) say("a search counts terms of one axis, from 0");
    if (!x.limits.empty() || !x.partial.empty()) say("terms of a search have no limits");
    if (x.vector >= 0 || x.ways != 1 || x.deal.team) say("lanes of a search are points");
  }

  // A workgroup's tile is one in each of a cluster: without the axis that numbers the workgroups, if the deal makes one do so
  // (the teams of the axes inside it are the lanes of a workgroup).
  std::vector<TileAxis> of_a_workgroup(const Fold& x, const Ref& dst) const {
    std::vector<TileAxis> out = x.kept;
    if (k_.cluster == 1 || !x.deal.team || !valid(dst.memory) || memory(dst.memory).home != Home::shared ||
        memory(dst.memory).team == Team::cluster)
      return out;
    int64_t lanes = x.deal.team;
    for (size_t a = out.size(); a-- > 0; lanes *= out[a].extent)
      if (lanes == k_.lanes / k_.cluster && out[a].extent == k_.cluster) {
        out.erase(out.begin() + long(a));
        break;
      }
    return out;
  }

  Affine flat(const std::vector<TileAxis>& a) const {
    Affine out;
    for (auto& x : a) out = x.extent * out + variable(x.var);
    return out;
  }

  void check_contract(const Contract& x, const Facts& outer, std::set<int>& written) {
    Facts stored = outer; // also where there are no terms
    axes(x.m, stored);
    axes(x.n, stored);
    Facts f = stored;
    axes(x.k, f);
    auto operand_of = [&](const Ref& r, const std::vector<TileAxis>& none) {
      form(r, f, nullptr, 0);
      if (valid(r.memory) && type_of(memory(r.memory).format) != Type::real &&
          (memory(r.memory).format != Format::i8 || &r == &x.dst))
        say("contracts " + text_.ref(r) + ", which is not real");
      for (auto& c : r.index)
        for (auto& t : c.affine.terms)
          for (auto& a : none)
            if (a.var == t.first) say(text_.ref(r) + " depends on " + text_.var(a.var));
    };
    operand_of(x.dst, x.k);
    operand_of(x.a, x.n);
    operand_of(x.b, x.m);
    if (x.rows < 1 || x.vectors < 1) say("a register block needs rows and vectors");
    const bool on_fragments = valid(x.dst.memory) && memory(x.dst.memory).home == Home::fragment; // any layout of operands
    if (!x.n.empty() && x.n.back().extent > 1 && !on_fragments)
      for (const Ref* r : {&x.dst, &x.b}) {
        if (!valid(r->memory) || r->index.size() != memory(r->memory).shape.size()) continue;
        Affine at;
        for (size_t d = 0; d < r->index.size(); ++d)
          at = at + memory(r->memory).strides[d] * r->index[d].affine;
        const auto it = std::find_if(at.terms.begin(), at.terms.end(),
                                     [&](auto& t) { return t.first == x.n.back().var; });
        if (it == at.terms.end() || it->second != 1)
          say(text_.ref(*r) + " is not contiguous in " + text_.var(x.n.back().var));
      }
    for (auto* e : {&x.m_end, &x.n_end, &x.k_end})
      if (*e) uses(**e, outer);
    auto ends = [&](Facts& g, const std::optional<Affine>& e, const std::vector<TileAxis>& over) {
      if (e) g.assume(*e - flat(over) - constant(1));
    };
    auto operand_reads = [&](const Ref& r, const std::optional<Affine>& end,
                             const std::vector<TileAxis>& over) {
      Facts g = f;
      if (valid(r.memory) && memory(r.memory).home == Home::global) ends(g, end, over), ends(g, x.k_end, x.k);
      reads(r, {g}, nullptr, written);
    };
    operand_reads(x.a, x.m_end, x.m);
    operand_reads(x.b, x.n_end, x.n);
    ends(stored, x.m_end, x.m);
    ends(stored, x.n_end, x.n);
    if (x.accumulate) reads(x.dst, {stored}, nullptr, written);
    writes(x.dst, {stored}, nullptr, written);
    std::vector<TileAxis> points = x.m;
    points.insert(points.end(), x.n.begin(), x.n.end());
    one_point_each(x.dst, points, outer, {stored}, nullptr);
    if (x.dst.memory == x.a.memory || x.dst.memory == x.b.memory)
      say("contracts " + text_.ref(x.dst) + " into itself");
  }

  void check_let(const Let& x, Facts& f, const std::set<int>& written) {
    for (auto& o : x.operands) uses(o, f);
    if (x.kind == Let::load) {
      form(x.ref, f, nullptr, 0);
      reads(x.ref, {f}, nullptr, written);
      if (valid(x.ref.memory) && type_of(memory(x.ref.memory).format) == Type::real)
        say("a Let loads a real");
    } else if (x.operands.empty() ||
               ((x.kind == Let::affine || x.kind == Let::floor_div) && x.operands.size() != 1)) {
      return say("a Let with the wrong number of operands");
    }
    if (x.kind == Let::floor_div && x.divisor < 1) return say("a Let divides by less than 1");
    if (define(f, x.var)) define_let(f, x, k_);
  }

  // The body once; what it writes stays written where the loop is known to run.
  void loop(Var v, const Affine& begin, const Affine& end, int64_t step,
            const std::vector<const Block*>& bodies, const Facts& outer, std::set<int>& written, bool full,
            bool runs) {
    Facts f = outer;
    if (!define(f, v)) return;
    if (begin.terms.empty() && end.terms.empty() && end.c <= begin.c) return; // never runs
    define_loop(f, v, begin, end, step);
    std::set<int> inside_it = written;
    for (auto* b : bodies) block(*b, f, inside_it, full);
    if (runs) written = inside_it;
  }

  bool later(const Pipeline& x, size_t s, const Facts& f) const {
    for (size_t t = s + 1; t < x.segments.size(); ++t)
      if (f.proves(x.segments[t].end - x.segments[t].begin - constant(1))) return true;
    return false;
  }

  void check_pipeline(const Pipeline& x, const Facts& f, std::set<int>& written) {
    if (x.step < 1 || x.stages < 1) return say("a pipeline with a step or stages below 1");
    bool joined = !x.segments.empty(), runs = false;
    for (size_t s = 0; s < x.segments.size(); ++s) {
      const Segment& g = x.segments[s];
      uses(g.begin, f);
      uses(g.end, f);
      const Residue length = f.residue(g.end - g.begin);
      if (length.by % x.step == 0 && length.rest % x.step != 0 && later(x, s, f))
        say("segment " + std::to_string(s) + " is not a whole number of blocks and another follows");
      joined = joined && (s == 0 || x.segments[s - 1].end == g.begin);
    }
    if (joined) runs = f.proves(x.segments.back().end - x.segments.front().begin - constant(1));
    const std::set<int> before = written;
    std::set<int> after = written;
    for (auto& g : x.segments) {
      std::set<int> w = before;
      const Stmt* here = where_;
      loop(x.var, g.begin, g.end, x.step, {&x.operands, &x.body}, f, w, !g.partial, true);
      where_ = here;
      if (runs || f.proves(g.end - g.begin - constant(1))) after.insert(w.begin(), w.end());
    }
    written = after;
  }

  bool has_pipeline(const Block& b) const {
    for (auto& s : b) {
      if (std::holds_alternative<Pipeline>(s.node)) return true;
      if (auto* l = std::get_if<Loop>(&s.node); l && has_pipeline(l->body)) return true;
      if (auto* i = std::get_if<If>(&s.node); i && has_pipeline(i->then)) return true;
    }
    return false;
  }

  // `f` grows by the Lets of the block; they end with it.
  void block(const Block& b, Facts f, std::set<int>& written, bool full) {
    const Stmt* outer = where_;
    for (auto& s : b) {
      where_ = &s;
      std::visit(Match{[&](const Apply& x) { check_apply(x, f, written, full); },
                       [&](const Fold& x) { check_fold(x, f, written, full); },
                       [&](const Contract& x) { check_contract(x, f, written); }, [](const Barrier&) {},
                       [&](const Let& x) { check_let(x, f, written); },
                       [&](const Loop& x) {
                         if (x.step < 1) return say("a loop with a step below 1");
                         uses(x.begin, f);
                         uses(x.end, f);
                         loop(x.var, x.begin, x.end, x.step, {&x.body}, f, written, full,
                              f.proves(x.end - x.begin - constant(1)));
                       },
                       [&](const If& x) {
                         Facts inside_it = f;
                         for (auto& a : x.all) {
                           uses(a, f);
                           inside_it.assume(a);
                         }
                         std::set<int> w = written;
                         block(x.then, inside_it, w, full);
                       },
                       [&](const Pipeline& x) {
                         if (full || has_pipeline(x.operands) || has_pipeline(x.body))
                           say("a pipeline inside a pipeline");
                         else
                           check_pipeline(x, f, written);
                       }},
                 s.node);
    }
    where_ = outer;
  }
};
} // namespace

std::vector<std::string> problems(const Kernel& k) { return Checker(k).run(); }

} // namespace tang::kernel
