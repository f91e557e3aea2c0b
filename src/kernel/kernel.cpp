#include "tang/kernel/kernel.hpp"

#include <algorithm>

#include "tang/base/match.hpp"

namespace tang::kernel {

Affine constant(int64_t c) { return {c, {}}; }

Affine variable(Var v, int64_t k) { return k ? Affine{0, {{v, k}}} : Affine{}; }

int64_t coefficient(const Affine& a, Var v) {
  for (auto& [x, k] : a.terms)
    if (x == v) return k;
  return 0;
}

Affine replaced(const Affine& a, Var v, const Affine& by) {
  const int64_t k = coefficient(a, v);
  return k ? a + (-k) * variable(v) + k * by : a;
}

Affine operator+(const Affine& a, const Affine& b) {
  Affine out{a.c + b.c, a.terms};
  for (auto& [v, k] : b.terms) {
    auto it =
        std::lower_bound(out.terms.begin(), out.terms.end(), v, [](auto& t, Var x) { return t.first < x; });
    if (it == out.terms.end() || it->first != v)
      out.terms.insert(it, {v, k});
    else if ((it->second += k) == 0)
      out.terms.erase(it);
  }
  return out;
}

Affine operator*(int64_t k, const Affine& a) {
  if (!k) return {};
  Affine out = a;
  out.c *= k;
  for (auto& t : out.terms) t.second *= k;
  return out;
}

bool operator==(const Affine& a, const Affine& b) { return a.c == b.c && a.terms == b.terms; }

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> s(shape.size(), 1);
  for (size_t d = s.size(); d-- > 1;) s[d - 1] = s[d] * shape[d];
  return s;
}

int64_t Memory::size() const {
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last += (shape[d] - 1) * strides[d];
  }
  return last + 1;
}

Var Kernel::fresh(const std::string& stem) {
  std::string name = stem;
  for (int n = 1; std::find(vars.begin(), vars.end(), name) != vars.end(); ++n)
    name = stem + std::to_string(n);
  vars.push_back(name);
  return Var(vars.size()) - 1;
}

int Kernel::add(Memory m) {
  if (m.strides.empty()) m.strides = row_major(m.shape);
  memories.push_back(std::move(m));
  return int(memories.size()) - 1;
}

int64_t workgroups(const Kernel& k) {
  int64_t n = 1;
  for (auto& g : k.grid) n *= (g.extent + g.step - 1) / g.step;
  return n;
}

namespace {
Contract::Dead in_full(Contract::Dead x) { return x == Contract::partial ? Contract::none : x; }

// In a full segment every point lives: the tests go.
Block full(Block b) {
  for (auto& s : b)
    std::visit(
        Match{[](Apply& x) { x.partial.clear(); }, [](Fold& x) { x.partial.clear(); },
              [](Contract& x) { x.dead_a = in_full(x.dead_a), x.dead_b = in_full(x.dead_b); },
              [](Loop& x) { x.body = full(std::move(x.body)); },
              [](If& x) { x.then = full(std::move(x.then)); },
              [](Pipeline&) { bug(__FILE__, __LINE__, "a pipeline inside a pipeline's full segment"); },
              [](auto&) {}},
        s.node);
  return b;
}

Block expand(Kernel& k, const Block& b) {
  Block out;
  for (auto& s : b)
    std::visit(Match{[&](const Loop& x) {
                       Loop l = x;
                       l.body = expand(k, x.body);
                       out.push_back({l});
                     },
                     [&](const If& x) {
                       out.push_back({If{x.all, expand(k, x.then)}});
                     },
                     [&](const Pipeline& p) {
                       std::vector<Segment> order = p.segments;
                       if (p.reverse) std::reverse(order.begin(), order.end());
                       for (auto& g : order) {
                         Block body = expand(k, p.operands), rest = expand(k, p.body);
                         body.insert(body.end(), rest.begin(), rest.end());
                         if (!g.partial) body = full(std::move(body));
                         out.push_back({Loop{p.var, g.begin, g.end, p.step, std::move(body)}});
                       }
                     },
                     [&](const auto& x) { out.push_back({x}); }},
               s.node);
  return out;
}
} // namespace

Kernel expand_pipelines(const Kernel& k) {
  Kernel out = k;
  out.body = expand(out, k.body);
  return out;
}

} // namespace tang::kernel
