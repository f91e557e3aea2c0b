#include "tang/fuzz/mutate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tang/base/match.hpp"
#include "tang/fuzz/batch.hpp"
#include "tang/fuzz/simulated.hpp"
#include "tang/kernel/check.hpp"

namespace tang::fuzz {

using namespace kernel;

namespace {
// Walks a kernel and counts sites; the wanted one is changed where it is met.
struct Walk {
  Kernel& k;
  int64_t left;
  bool done = false;

  bool here() {
    if (!done && left-- == 0) return done = true;
    return false;
  }

  template <class F> void each(Block& b, const F& f) { // f(block, position)
    for (size_t n = 0; n < b.size() && !done; ++n) {
      f(b, n);
      if (done) return;
      std::visit(Match{[&](Loop& l) { each(l.body, f); }, [&](If& i) { each(i.then, f); },
                       [&](Pipeline& p) {
                         each(p.operands, f);
                         if (!done) each(p.body, f);
                       },
                       [](auto&) {}},
                 b[n].node);
    }
  }

  template <class F> void statements(const F& f) {
    each(k.body, [&](Block& b, size_t n) { std::visit(f, b[n].node); });
  }

  template <class F> void bounds(const F& f) { // every list of bounds
    statements(Match{[&](Apply& a) {
                       f(a.bounds);
                       for (auto& p : a.partial) f(p);
                       for (auto& g : a.body.guards)
                         for (auto& p : g) f(p);
                     },
                     [&](Fold& a) {
                       f(a.bounds);
                       f(a.limits);
                       for (auto& p : a.partial) f(p);
                       for (auto& g : a.body.guards)
                         for (auto& p : g) f(p);
                     },
                     [](auto&) {}});
  }

  template <class F> void refs(const F& f) { // reads and writes
    statements(Match{[&](Apply& a) {
                       for (auto& r : a.dst) f(r);
                       for (auto& r : a.body.refs) f(r);
                     },
                     [&](Fold& a) {
                       for (auto& r : a.dst) f(r);
                       for (auto& r : a.body.refs) f(r);
                     },
                     [&](Contract& c) { f(c.dst), f(c.a), f(c.b); },
                     [&](Let& l) {
                       if (l.kind == Let::load) f(l.ref);
                     },
                     [](auto&) {}});
  }
};

template <class F> std::function<bool(Kernel&, int64_t)> by(F f) {
  return [f](Kernel& k, int64_t n) {
    k.pool = std::make_shared<Pool>(*k.pool);
    Walk w{k, n};
    f(w);
    return w.done;
  };
}

void shift(Value& v) {
  if (v.type == Type::real)
    v.r = std::isinf(v.r) ? 1 : v.r + 1;
  else if (v.type == Type::boolean)
    v.i = !v.i;
  else
    v.i = v.i == INT64_MAX ? 0 : v.i + 1;
}

void guard_off_by_one(Walk& w) {
  for (int64_t by_ : {1, -1})
    w.bounds([&](Bounds& b) {
      for (auto& c : b)
        if (w.here()) c.affine.c += by_;
    });
}

void wrong_stride(Walk& w) {
  for (auto& m : w.k.memories)
    for (size_t d = 0; d < m.strides.size(); ++d)
      if (m.shape[d] > 1 && w.here()) m.strides[d] += d + 1 == m.strides.size() ? 1 : -1;
  w.refs([&](Ref& r) {
    for (auto& c : r.index)
      for (auto& t : c.affine.terms)
        if (w.here()) t.second += 1;
  });
}

void missing_barrier(Walk& w) {
  w.each(w.k.body, [&](Block& b, size_t n) {
    if (std::holds_alternative<Barrier>(b[n].node) && w.here()) b.erase(b.begin() + long(n));
  });
}

void wrong_identity(Walk& w) {
  w.statements(Match{[&](Fold& f) {
                       for (auto& v : f.identity)
                         if (!f.accumulate && w.here()) shift(v);
                     },
                     [&](Apply& a) {
                       for (auto& v : a.fill)
                         if (v && w.here()) shift(*v);
                     },
                     [](auto&) {}});
}

void dropped_statement(Walk& w) {
  w.each(w.k.body, [&](Block& b, size_t n) {
    const bool work = std::visit(Match{[](Apply&) { return true; }, [](Fold&) { return true; },
                                       [](Contract&) { return true; }, [](auto&) { return false; }},
                                 b[n].node);
    if (work && w.here()) b.erase(b.begin() + long(n));
  });
}

// Operands of an operation whose order matters, and reads of one statement.
void swapped_operands(Walk& w) {
  auto body = [&](Body& b) {
    for (size_t x = 0; x + 1 < b.refs.size(); ++x)
      if (b.refs[x].index.size() == b.refs[x + 1].index.size() && w.here())
        std::swap(b.refs[x], b.refs[x + 1]);
    for (Id& value : b.values)
      for (Id id : expr::schedule(*w.k.pool, {value})) {
        const expr::Term t = (*w.k.pool)[id];
        if (t.arity() < 2 || expr::row(t.op).commutative || t.op == expr::Op::only) continue;
        if ((*w.k.pool)[t.args[size_t(t.arity() - 1)]].type !=
                (*w.k.pool)[t.args[size_t(t.arity() - 2)]].type ||
            !w.here())
          continue;
        std::vector<Id> a(t.args.begin(), t.args.begin() + t.arity());
        std::swap(a[a.size() - 1], a[a.size() - 2]);
        value = expr::substitute(*w.k.pool, value, {{id, w.k.pool->make(t.op, a)}});
        return;
      }
  };
  w.statements(Match{[&](Apply& a) { body(a.body); }, [&](Fold& f) { body(f.body); },
                     [&](Contract& c) {
                       if (w.here()) std::swap(c.a, c.b);
                     },
                     [](auto&) {}});
}

void unguarded_tail(Walk& w) {
  w.bounds([&](Bounds& b) {
    if (!b.empty() && w.here()) b.clear();
  });
  w.statements(Match{[&](Contract& c) {
                       for (auto* e : {&c.m_end, &c.n_end, &c.k_end})
                         if (*e && w.here()) e->reset();
                     },
                     [](auto&) {}});
  w.refs([&](Ref& r) {
    if (r.checked && w.here()) r.checked = false;
  });
}

void lost_segment(Walk& w) {
  w.statements(Match{[&](Pipeline& p) {
                       for (size_t s = 0; s < p.segments.size(); ++s)
                         if (w.here()) {
                           p.segments.erase(p.segments.begin() + long(s));
                           return;
                         }
                       for (auto& s : p.segments)
                         if (s.partial && w.here()) s.partial = false;
                     },
                     [&](Loop& l) {
                       if (w.here()) l.begin.c += l.step;
                       if (w.here()) l.end.c -= l.step;
                     },
                     [](auto&) {}});
  for (auto& g : w.k.grid)
    if (w.here()) g.extent -= std::min(g.extent, g.step);
}

void wrong_start(Walk& w) {
  w.statements(Match{[&](Fold& f) {
                       if (w.here()) f.accumulate = !f.accumulate;
                     },
                     [&](Contract& c) {
                       if (w.here()) c.accumulate = !c.accumulate;
                     },
                     [](auto&) {}});
}

void wrong_memory(Walk& w) { // another of the same rank and format: a stale copy
  w.refs([&](Ref& r) {
    const Memory& m = w.k.memories[size_t(r.memory)];
    for (size_t o = 0; o < w.k.memories.size(); ++o) {
      const Memory& x = w.k.memories[o];
      if (int(o) == r.memory || x.format != m.format || x.shape.size() != m.shape.size()) continue;
      if (!w.here()) break;
      r.memory = int(o);
      return;
    }
  });
}

bool same_bits(const Buffer& a, const Buffer& b) {
  auto equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.i == b.i && a.r.size() == b.r.size() && std::equal(a.r.begin(), a.r.end(), b.r.begin(), equal);
}

bool within(const Buffer& got, const Buffer& want, double budget) {
  if (got.i != want.i) return false;
  double scale = 0, worst = 0;
  for (size_t k = 0; k < want.r.size(); ++k) {
    const double x = got.r[k], y = want.r[k];
    if (std::isfinite(y)) scale = std::max(scale, std::fabs(y));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double gap = std::fabs(x - y);
    worst = std::max(worst, gap < HUGE_VAL ? gap : HUGE_VAL);
  }
  return worst <= budget * scale;
}

struct Launched { // one launch of the unchanged program
  size_t subject, kernel;
  std::vector<Buffer> before, after;
};

std::vector<Launched> launches(const std::vector<Subject>& subjects) {
  std::vector<Launched> out;
  for (size_t s = 0; s < subjects.size(); ++s) {
    const auto& kernels = subjects[s].derivation.kernels.kernels;
    std::vector<bool> seen(kernels.size());
    Simulated run(subjects[s].derivation, subjects[s].inputs);
    run.run([&](size_t k, std::vector<Buffer>& globals) {
      Launched l{s, k, globals, {}};
      const auto o = kernel::simulate(kernels[k].kernel, globals, {});
      if (seen[k] || !o.clean() || !problems(kernels[k].kernel).empty()) return;
      seen[k] = true;
      l.after = globals;
      out.push_back(std::move(l));
    });
  }
  return out;
}

Kernel widened(Kernel k) { // every real in f64
  k.compute = expr::Format::f64;
  for (auto& m : k.memories)
    if (expr::type_of(m.format) == expr::Type::real) m.format = expr::Format::f64;
  return k;
}

// Do they compute the same reals? A fold's base may be any number near its largest term, say: results then
// differ by f32's roundings, and in f64 by as little.
bool same_reals(const Launched& l, const Kernel& original, const Kernel& changed) {
  constexpr double few_roundings = 1e-11;
  std::vector<Buffer> want = l.before, got = l.before;
  bool clean = kernel::simulate(widened(original), want, {}).clean();
  try {
    clean = clean && kernel::simulate(widened(changed), got, {}).clean();
  } catch (const Bug&) { return false; }
  for (size_t g = 0; clean && g < want.size(); ++g) clean = within(got[g], want[g], few_roundings);
  return clean;
}

void judge_mutant(const Launched& l, const Kernel& original, const Kernel& k, double budget,
                  const std::string& what, Mutation& m) {
  ++m.sites;
  if (!problems(k).empty()) {
    ++m.check;
    return;
  }
  bool same = true;
  for (Order order : {Order::forward, Order::random}) {
    std::vector<Buffer> globals = l.before;
    kernel::Options o;
    o.order = order;
    o.step_limit = 1 << 26;
    bool clean = false;
    try {
      clean = kernel::simulate(k, globals, o).clean();
    } catch (const Bug&) {} // not a kernel any more
    if (!clean) {
      ++m.simulator;
      return;
    }
    for (size_t g = 0; g < globals.size(); ++g) {
      if (!within(globals[g], l.after[g], budget)) {
        ++m.value;
        return;
      }
      same &= same_bits(globals[g], l.after[g]);
    }
  }
  if (same || same_reals(l, original, k)) {
    ++m.equivalent;
  } else {
    ++m.hidden;
    m.missed.push_back(what);
  }
}
} // namespace

const std::vector<Operator>& operators() {
  static const std::vector<Operator> all = {{"guard off by one", by(guard_off_by_one)},
                                            {"wrong stride", by(wrong_stride)},
                                            {"missing barrier", by(missing_barrier)},
                                            {"wrong identity", by(wrong_identity)},
                                            {"dropped statement", by(dropped_statement)},
                                            {"swapped operands", by(swapped_operands)},
                                            {"unguarded tail", by(unguarded_tail)},
                                            {"lost segment", by(lost_segment)},
                                            {"wrong start", by(wrong_start)},
                                            {"wrong memory", by(wrong_memory)}};
  return all;
}

std::optional<Subject> subject_of(uint64_t seed) {
  Choices choices(seed);
  const Case c = generate(choices);
  Job j;
  j.c = &c;
  derive(j, seed % 2 ? row_of(c) : simulated_row(c));
  if (!j.derivation) return {};
  return Subject{"case " + std::to_string(seed), std::move(*j.derivation), c.inputs};
}

std::map<std::string, Mutation> mutate(const std::vector<Subject>& subjects, int64_t sites, double budget) {
  std::map<std::string, Mutation> out;
  const std::vector<Launched> all = launches(subjects);
  for (auto& op : operators()) {
    Mutation& m = out[op.name];
    std::vector<std::pair<size_t, int64_t>> places; // (launch, site)
    for (size_t l = 0; l < all.size(); ++l) {
      const Kernel& k = subjects[all[l].subject].derivation.kernels.kernels[all[l].kernel].kernel;
      for (int64_t n = 0; n < 200; ++n) {
        Kernel copy = k;
        if (!op.change(copy, n)) break;
        places.push_back({l, n});
      }
    }
    const int64_t count = std::min<int64_t>(sites, int64_t(places.size()));
    for (int64_t n = 0; n < count; ++n) {
      const auto [l, site] = places[size_t(n) * places.size() / size_t(count)];
      const Subject& s = subjects[all[l].subject];
      const Kernel& original = s.derivation.kernels.kernels[all[l].kernel].kernel;
      Kernel copy = original;
      op.change(copy, site);
      judge_mutant(all[l], original, copy, budget,
                   s.name + ", kernel " + std::to_string(all[l].kernel) + ", site " + std::to_string(site),
                   m);
    }
  }
  return out;
}

double killed(const std::map<std::string, Mutation>& all) {
  int64_t found = 0, real = 0;
  for (auto& [name, m] : all) found += m.check + m.simulator + m.value, real += m.sites - m.equivalent;
  return real ? double(found) / double(real) : 1;
}

std::string text(const std::map<std::string, Mutation>& all) {
  std::string out;
  char line[200];
  for (auto& [name, m] : all) {
    std::snprintf(line, sizeof line,
                  "%-18s %4lld sites: check %lld, simulator %lld, value %lld, equivalent %lld, missed %lld\n",
                  name.c_str(), static_cast<long long>(m.sites), static_cast<long long>(m.check),
                  static_cast<long long>(m.simulator), static_cast<long long>(m.value),
                  static_cast<long long>(m.equivalent), static_cast<long long>(m.hidden));
    out += line;
    for (auto& w : m.missed) out += "  missed: " + w + "\n";
  }
  std::snprintf(line, sizeof line, "%.2f%% of the mutants that are not equivalent are found\n",
                100 * killed(all));
  return out + line;
}

} // namespace tang::fuzz
