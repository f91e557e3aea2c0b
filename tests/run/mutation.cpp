// Mutants of derived kernels, made as data: ten operators, up to twenty sites each, over the kernels of the builders as a GPU runs
// them. One run of the checker and the simulator on one set of inputs must find what any of many runs can find.
#include <cmath>
#include <random>

#include "run/harness.hpp"
#include "tang/base/match.hpp"
#include "tang/kernel/check.hpp"
#include "tang/kernel/simulate.hpp"
#include "tang/models/cases.hpp"
#include "tang/run/targets.hpp"

using namespace tang;
using namespace tang::kernel;

namespace {
enum Operator {
  guard_off_by_one, wrong_stride, missing_barrier, wrong_identity, dropped_epilogue, swapped_operands, stale_tile, lost_block,
  short_loop, unguarded_tail, operators
};
const char* const words[] = {"guard off by one", "wrong stride", "missing barrier", "wrong identity", "dropped epilogue",
                             "swapped operands", "stale tile", "lost block", "short loop", "unguarded tail"};

// Changes the site numbered `target`; counts all.
class Mutator {
public:
  Mutator(Operator op, int target, Kernel& k) : op_(op), target_(target), k_(k) { block(k.body, true); }

  int sites = 0;

private:
  bool here() { return sites++ == target_; }

  void bounds(Bounds& b) {
    if (op_ == guard_off_by_one)
      for (auto& c : b)
        if (here()) c.affine.c += 1;
    if (op_ == unguarded_tail && !b.empty() && here()) b.clear();
  }

  void ref(Ref& r) {
    if (op_ != wrong_stride) return;
    for (auto& c : r.index)
      for (auto& t : c.affine.terms)
        if (here()) t.second += 1;
  }

  void body(Body& b) {
    for (auto& r : b.refs) ref(r);
    if (op_ == swapped_operands && b.refs.size() >= 2 &&
        k_.memories[size_t(b.refs[0].memory)].format == k_.memories[size_t(b.refs[1].memory)].format && here())
      std::swap(b.refs[0], b.refs[1]);
  }

  bool writes_global(const Stmt& s) const {
    auto* a = std::get_if<Apply>(&s.node);
    return a && k_.memories[size_t(a->dst[0].memory)].home == Home::global;
  }

  bool fills_tile(const Stmt& s) const {
    auto* a = std::get_if<Apply>(&s.node);
    return a && k_.memories[size_t(a->dst[0].memory)].home != Home::global;
  }

  void block(Block& b, bool outermost) {
    for (size_t n = 0; n < b.size(); ++n) {
      Stmt& s = b[n];
      const bool drop = (op_ == missing_barrier && std::holds_alternative<Barrier>(s.node) && here()) ||
                        (op_ == dropped_epilogue && outermost && writes_global(s) && here()) ||
                        (op_ == stale_tile && fills_tile(s) && here()) ||
                        (op_ == lost_block && std::holds_alternative<Loop>(s.node) && here());
      if (drop) {
        b.erase(b.begin() + long(n));
        return;
      }
      std::visit(Match{[&](Apply& x) {
                         bounds(x.bounds), body(x.body);
                         for (auto& p : x.partial) bounds(p);
                         for (auto& r : x.dst) ref(r);
                       },
                       [&](Fold& x) {
                         bounds(x.bounds), bounds(x.limits), body(x.body);
                         for (auto& p : x.partial) bounds(p);
                         for (auto& r : x.dst) ref(r);
                         if (op_ == wrong_identity)
                           for (auto& v : x.identity)
                             if (here()) v.r = std::isfinite(v.r) ? v.r + 1 : 0.5, v.i ^= 1;
                       },
                       [&](Contract& x) {
                         ref(x.dst), ref(x.a), ref(x.b);
                         if (op_ == swapped_operands && here()) std::swap(x.a, x.b);
                         if (op_ == wrong_identity && here()) x.accumulate = !x.accumulate;
                         if (op_ == guard_off_by_one && x.k_end && here()) x.k_end->c -= 1;
                       },
                       [&](Loop& x) {
                         if (op_ == short_loop && here()) x.end.c -= x.step;
                         block(x.body, false);
                       },
                       [&](If& x) { block(x.then, false); }, [](auto&) {}},
                 s.node);
    }
  }

  const Operator op_;
  const int target_;
  Kernel& k_;
};

std::vector<kernel::Buffer> inputs(const Kernel& k, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<kernel::Buffer> out;
  for (auto& m : k.memories) {
    if (m.home != Home::global) continue;
    kernel::Buffer b;
    const bool real = expr::type_of(m.format) == expr::Type::real, poison = m.access == Access::write;
    for (int64_t n = 0; n < m.size(); ++n) {
      const double u = double(rng() >> 11) * 0x1p-52 - 1;
      if (real) b.r.push_back(poison ? std::nan("") : u);
      else b.i.push_back(poison ? -77 : int64_t(rng() % 2));
    }
    out.push_back(std::move(b));
  }
  return out;
}

bool same(const std::vector<kernel::Buffer>& a, const std::vector<kernel::Buffer>& b) {
  for (size_t m = 0; m < a.size(); ++m) {
    if (a[m].i != b[m].i) return false;
    for (size_t n = 0; n < a[m].r.size(); ++n) {
      const double x = a[m].r[n], y = b[m].r[n];
      if (std::isnan(x) != std::isnan(y) || (!std::isnan(x) && x != y && !(std::fabs(x - y) <= 1e-6 * (1 + std::fabs(y)))))
        return false;
    }
  }
  return true;
}

bool found(const Kernel& k, const Kernel& original, uint64_t seed, Order order) {
  std::vector<kernel::Buffer> got = inputs(original, seed), want = got;
  kernel::Options o;
  o.order = order, o.seed = seed, o.step_limit = 4000000;
  simulate(original, want, o);
  return !simulate(k, got, o).clean() || !same(got, want);
}
} // namespace

TEST(mutation, one_run_finds_what_many_runs_find) {
  std::vector<Kernel> kernels;
  for (int64_t shared : {32 << 10, 5 << 10}) { // little shared memory: tiles are small, kernels loop
    target::Facts f;
    f.workgroup = 64, f.shared_bytes = shared;
    for (auto& c : cases::builders) {
      int graphs = 0;
      c.run({[&](const ir::Graph& g, eval::Inputs, double) {
        if (graphs++) return;
        try {
          for (auto& l : run::derive(g, run::options_for(target::gpu_target("gpu", f))).kernels.kernels) {
            std::vector<kernel::Buffer> b = inputs(l.kernel, 1);
            kernel::Options o;
            o.step_limit = 400000; // small ones: many mutants
            if (workgroups(l.kernel) && simulate(l.kernel, b, o).clean()) kernels.push_back(l.kernel);
          }
        } catch (const Error&) {} // its tiles do not fit
      }});
    }
  }
  ASSERT_GE(kernels.size(), 40u);
  std::mt19937_64 rng(7);
  int killed = 0, different = 0, made = 0;
  for (int op = 0; op < operators; ++op) {
    std::vector<std::pair<size_t, int>> all;
    for (size_t k = 0; k < kernels.size(); ++k) {
      Kernel copy = kernels[k];
      const int n = Mutator(Operator(op), -1, copy).sites;
      for (int s = 0; s < n; ++s) all.emplace_back(k, s);
    }
    ASSERT_GE(all.size(), 8u) << words[op];
    std::shuffle(all.begin(), all.end(), rng);
    int here_killed = 0, here_different = 0;
    const size_t tried = std::min<size_t>(20, all.size());
    for (size_t n = 0; n < tried; ++n) {
      const Kernel& original = kernels[all[n].first];
      Kernel mutant = original;
      Mutator(Operator(op), all[n].second, mutant);
      const bool one = !problems(mutant).empty() || found(mutant, original, 1, Order::random);
      bool any = one;
      for (uint64_t seed = 2; seed < 8 && !any; ++seed)
        for (Order order : {Order::forward, Order::reverse, Order::random}) any |= found(mutant, original, seed, order);
      ++made, here_killed += one, here_different += any;
      if (any && !one) std::printf("  survived: %s, site %d of\n%s\n", words[op], all[n].second, print(original).c_str());
    }
    std::printf("  %-18s %2d of %2d found, %2d sites of %zu change nothing\n", words[op], here_killed, here_different,
                int(tried) - here_different, tried);
    killed += here_killed, different += here_different;
  }
  std::printf("%d mutants, %d differ, %d found: %.1f%%\n", made, different, killed, 100.0 * killed / different);
  EXPECT_GE(double(killed), 0.98 * double(different));
  EXPECT_GE(different, 100);
}
