#include "tang/bound/program.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tang::bound {

long double Atoms::log_of(int64_t v) { return std::log2((long double)(v)); }

size_t Atoms::add(int64_t v) {
  for (size_t k = 0; k < values_.size(); ++k)
    if (values_[k] == v) return k;
  values_.push_back(v);
  logs_.push_back(log_of(v));
  return values_.size() - 1;
}

Form Atoms::log(int64_t v) {
  if (v == 1) return {};
  Form f(add(v) + 1, 0);
  f.back() = 1;
  return f;
}

double Atoms::value(const Form& f) const {
  long double v = 0;
  for (size_t k = 0; k < f.size(); ++k) v += (long double)(f[k].real()) * logs_[k];
  return double(v / logs_[0]);
}

int Atoms::sign(const Form& f) const {
  if (is_zero(f)) return 0;
  // Rounded logarithms decide unless the sum is within their error; 1e-12 is far above it.
  long double v = 0, size = 0;
  for (size_t k = 0; k < f.size(); ++k)
    if (f[k].sign()) {
      const long double term = (long double)(f[k].num()) / (long double)(f[k].den()) * logs_[k];
      v += term;
      size += std::fabs(term);
    }
  if (std::fabs(v) > 1e-12L * size) return v > 0 ? 1 : -1;
  int64_t common = 1;
  for (auto& c : f) {
    const int64_t by = c.den() / std::gcd(common, c.den());
    if (by > 64 || common > 4096) throw Overflow{};
    common *= by;
  }
  Natural up = 1, down = 1;
  for (size_t k = 0; k < f.size(); ++k) {
    const int64_t e = f[k].num() * (common / f[k].den());
    if (e > 100000 || e < -100000) throw Overflow{};
    Natural& side = e < 0 ? down : up;
    side = side * power(uint64_t(values_[k]), uint64_t(e < 0 ? -e : e));
  }
  return Natural::compare(up, down);
}

Form operator+(const Form& a, const Form& b) {
  const Form& longer = a.size() < b.size() ? b : a;
  const Form& shorter = a.size() < b.size() ? a : b;
  Form out = longer;
  for (size_t k = 0; k < shorter.size(); ++k) out[k] = out[k] + shorter[k];
  return out;
}

Form scaled(const Rational& k, const Form& f) {
  if (!k.sign()) return {};
  Form out = f;
  for (auto& c : out) c = c * k;
  return out;
}

bool is_zero(const Form& f) {
  return std::all_of(f.begin(), f.end(), [](const Rational& c) { return !c.sign(); });
}

namespace {
// What the cover has to pay for in one group of mixed loops.
Result<std::vector<Space>> subgroups_of(const Mixed& group) {
  const size_t w = group.loops.size();
  if (w == 1) return std::vector<Space>{{unit(0, 1)}};
  std::vector<Space> generators;
  auto add = [&](Space s) {
    if (std::find(generators.begin(), generators.end(), s) == generators.end())
      generators.push_back(std::move(s));
  };
  for (auto& m : group.parts) add(kernel(m, w));
  for (size_t k = 0; k < w; ++k) add(kernel({unit(k, w)}, w));
  try {
    return lattice(generators, w);
  } catch (const Overflow&) { return Refusal{"the subgroups of the views do not close within 64 bits"}; }
}

std::string shown(const Space& h, const Mixed& group, const Nest& n) {
  std::string out;
  for (auto& v : h) {
    out += out.empty() ? "<" : ", ";
    bool first = true;
    for (size_t k = 0; k < v.size(); ++k)
      if (v[k].sign()) {
        const std::string by = v[k] == Rational(1) ? "" : v[k] == Rational(-1) ? "-" : v[k].text() + "*";
        out += (first || by[0] == '-' ? "" : "+") + by + n.axes[size_t(group.loops[k])];
        first = false;
      }
  }
  return out + ">";
}
} // namespace

Result<std::vector<Condition>> conditions(const Nest& n) {
  const size_t d = size_t(n.loops());
  std::vector<Space> maps;
  for (auto& a : n.arrays) maps.push_back(space(a.rows));
  std::vector<Condition> out;
  for (auto& group : mixed(maps, d)) {
    auto subgroups = subgroups_of(group);
    if (!subgroups) return Refusal{subgroups.why()};
    for (auto& h : *subgroups) {
      if (h.empty()) continue;
      Condition c;
      c.rank = int(h.size());
      for (auto& m : group.parts) c.arrays.push_back(image_rank(m, h));
      c.loops.assign(d, 0);
      for (auto& v : h) {
        c.subgroup.emplace_back(d, 0);
        for (size_t k = 0; k < v.size(); ++k) {
          c.subgroup.back()[size_t(group.loops[k])] = v[k];
          if (v[k].sign()) c.loops[size_t(group.loops[k])] = 1;
        }
      }
      c.text = shown(h, group, n);
      if (h.size() == 1 && std::count(c.loops.begin(), c.loops.end(), 1) == 1)
        c.loop = int(std::find(c.loops.begin(), c.loops.end(), 1) - c.loops.begin());
      out.push_back(std::move(c));
    }
  }
  return out;
}

Form Certificate::value() const {
  Form f;
  for (size_t j = 0; j < s.size(); ++j) f = f + scaled(s[j], capacities[j]);
  for (size_t i = 0; i < t.size(); ++i) f = f + scaled(t[i], extents[i]);
  return f;
}

std::optional<Optimum> maximum(const std::vector<Vector>& rows, std::vector<Form> right, const Vector& gain,
                               const Atoms& atoms) {
  const size_t k = rows.size(), n = gain.size(), columns = n + k;
  std::vector<Vector> a;
  std::vector<size_t> basis;
  Vector objective(columns, 0);
  for (size_t r = 0; r < k; ++r) {
    a.push_back(rows[r]);
    a[r].resize(columns, 0);
    a[r][n + r] = 1;
    basis.push_back(n + r);
  }
  for (size_t h = 0; h < n; ++h) objective[h] = -gain[h];
  for (;;) {
    size_t in = 0;
    while (in < columns && objective[in].sign() >= 0) ++in;
    if (in == columns) break;
    size_t out = k;
    for (size_t r = 0; r < k; ++r) {
      if (a[r][in].sign() <= 0) continue;
      if (out == k) {
        out = r;
        continue;
      }
      const int less = atoms.sign(scaled(a[out][in], right[r]) + scaled(-a[r][in], right[out]));
      if (less < 0 || (less == 0 && basis[r] < basis[out])) out = r;
    }
    if (out == k) return {};
    const Rational by = a[out][in];
    if (by != Rational(1)) {
      for (auto& v : a[out]) v = v / by;
      right[out] = scaled(Rational(1) / by, right[out]);
    }
    auto eliminate = [&](Vector& row) {
      const Rational f = row[in];
      for (size_t q = 0; q < columns; ++q)
        if (a[out][q].sign()) row[q] = row[q] - f * a[out][q];
      return f;
    };
    for (size_t r = 0; r < k; ++r)
      if (r != out && a[r][in].sign()) {
        const Rational f = eliminate(a[r]);
        right[r] = right[r] + scaled(-f, right[out]);
      }
    eliminate(objective);
    basis[out] = in;
  }
  Optimum best{std::vector<Form>(n), std::move(objective)};
  for (size_t r = 0; r < k; ++r)
    if (basis[r] < n) best.z[basis[r]] = right[r];
  return best;
}

Result<Certificate> solve(const Nest& n, const std::vector<Condition>& rows, int64_t memory) {
  if (memory < 2) return Refusal{"fast memory of less than two units"};
  Certificate c;
  c.atoms = Atoms(memory);
  c.conditions = rows;
  c.loops = n.axes;
  for (auto& a : n.arrays) {
    if (a.weight > memory) return Refusal{"one element of " + a.name + " is larger than fast memory"};
    c.arrays.push_back(a.name);
    c.views.push_back(space(a.rows));
    c.capacities.push_back(Form{1} + scaled(-1, c.atoms.log(a.weight)));
  }
  for (int64_t e : n.extents) {
    if (e < 1) return Refusal{"an empty loop"};
    c.extents.push_back(c.atoms.log(e));
  }
  // Slacks start in the basis: capacities and extents are logarithms of numbers >= 1.
  std::vector<Vector> a;
  Vector gain;
  std::vector<Form> right = c.capacities;
  right.insert(right.end(), c.extents.begin(), c.extents.end());
  const size_t m = c.capacities.size();
  for (size_t r = 0; r < right.size(); ++r) {
    a.emplace_back();
    for (auto& h : rows) a.back().push_back(r < m ? h.arrays[r] : h.loops[r - m]);
  }
  for (auto& h : rows) gain.push_back(h.rank);
  try {
    auto best = maximum(a, std::move(right), gain, c.atoms);
    check(best.has_value(), "an unbounded tile program"); // every condition has a loop of positive rank
    c.x = std::move(best->z);
    for (size_t r = 0; r < a.size(); ++r) (r < m ? c.s : c.t).push_back(best->prices[rows.size() + r]);
  } catch (const Overflow&) { return Refusal{"the program's numbers leave 64 bits"}; }
  return c;
}

std::string failure(const Certificate& c) {
  try {
    if (c.atoms.values()[0] < 2) return "memory";
    for (int64_t v : c.atoms.values())
      if (v < 1) return "an atom below 1";
    for (auto& v : c.s)
      if (v.sign() < 0) return "a negative s";
    for (auto& v : c.t)
      if (v.sign() < 0) return "a negative t";
    Form tile;
    std::vector<Form> arrays(c.s.size()), loops(c.t.size());
    for (size_t h = 0; h < c.conditions.size(); ++h) {
      const Condition& row = c.conditions[h];
      Rational cover = 0;
      for (size_t j = 0; j < c.s.size(); ++j) cover = cover + c.s[j] * Rational(row.arrays[j]);
      for (size_t i = 0; i < c.t.size(); ++i) cover = cover + c.t[i] * Rational(row.loops[i]);
      if (cover < Rational(row.rank)) return "the cover of " + row.text;
      if (c.atoms.sign(c.x[h]) < 0) return "a negative tile exponent of " + row.text;
      for (size_t j = 0; j < c.s.size(); ++j) arrays[j] = arrays[j] + scaled(row.arrays[j], c.x[h]);
      for (size_t i = 0; i < c.t.size(); ++i) loops[i] = loops[i] + scaled(row.loops[i], c.x[h]);
      tile = tile + scaled(row.rank, c.x[h]);
    }
    for (size_t j = 0; j < arrays.size(); ++j)
      if (c.atoms.sign(c.capacities[j] + scaled(-1, arrays[j])) < 0)
        return "the tile does not fit " + c.arrays[j];
    for (size_t i = 0; i < loops.size(); ++i)
      if (c.atoms.sign(c.extents[i] + scaled(-1, loops[i])) < 0)
        return "the tile is longer than " + c.loops[i];
    if (!is_zero(tile + scaled(-1, c.value()))) return "the objectives differ";
  } catch (const Overflow&) { return "the check's numbers leave 64 bits"; }
  return "";
}

} // namespace tang::bound
