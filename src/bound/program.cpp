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

Result<std::vector<Condition>> conditions(const Nest& n) {
  const size_t d = size_t(n.loops());
  std::vector<Space> maps;
  Groups groups(d);
  for (auto& a : n.arrays) {
    maps.push_back(space(a.rows));
    for (auto& v : maps.back()) {
      int first = -1;
      for (size_t k = 0; k < d; ++k)
        if (v[k].sign()) {
          if (first < 0) first = int(k);
          groups.tie(first, int(k));
        }
    }
  }
  std::vector<Condition> out;
  for (auto& group : groups.all()) {
    const size_t w = group.size();
    auto unit = [&](size_t k) {
      Vector v(w, 0);
      v[k] = 1;
      return v;
    };
    std::vector<Space> within; // each map's part on these loops
    for (auto& m : maps) {
      std::vector<Vector> part;
      for (auto& v : m) {
        Vector p;
        for (int a : group) p.push_back(v[size_t(a)]);
        if (std::any_of(p.begin(), p.end(), [](const Rational& x) { return x.sign() != 0; }))
          part.push_back(std::move(p));
      }
      within.push_back(reduced(std::move(part)));
    }
    std::vector<Space> subgroups;
    if (w == 1) {
      subgroups = {{unit(0)}};
    } else {
      std::vector<Space> generators;
      auto add = [&](Space s) {
        if (std::find(generators.begin(), generators.end(), s) == generators.end())
          generators.push_back(std::move(s));
      };
      for (auto& m : within) add(kernel(m, w));
      for (size_t k = 0; k < w; ++k) add(kernel({unit(k)}, w));
      try {
        auto closed = lattice(generators, w);
        if (!closed) return Refusal{closed.why()};
        subgroups = std::move(*closed);
      } catch (const Overflow&) { return Refusal{"the subgroups of the views do not close within 64 bits"}; }
    }
    for (auto& h : subgroups) {
      if (h.empty()) continue;
      Condition c;
      c.rank = int(h.size());
      for (auto& m : within) c.arrays.push_back(image_rank(m, h));
      c.loops.assign(d, 0);
      for (size_t k = 0; k < w; ++k)
        c.loops[size_t(group[k])] =
            std::any_of(h.begin(), h.end(), [&](const Vector& v) { return v[k].sign() != 0; });
      for (auto& v : h) {
        c.text += c.text.empty() ? "<" : ", ";
        bool first = true;
        for (size_t k = 0; k < w; ++k)
          if (v[k].sign()) {
            const std::string by = v[k] == Rational(1) ? "" : v[k] == Rational(-1) ? "-" : v[k].text() + "*";
            c.text += (first || by[0] == '-' ? "" : "+") + by + n.axes[size_t(group[k])];
            first = false;
          }
      }
      c.text += ">";
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

Result<Certificate> solve(const Nest& n, const std::vector<Condition>& rows, int64_t memory) {
  if (memory < 2) return Refusal{"fast memory of less than two units"};
  Certificate c;
  c.atoms = Atoms(memory);
  c.conditions = rows;
  c.loops = n.axes;
  for (auto& a : n.arrays) {
    if (a.weight > memory) return Refusal{"one element of " + a.name + " is larger than fast memory"};
    c.arrays.push_back(a.name);
    c.capacities.push_back(Form{1} + scaled(-1, c.atoms.log(a.weight)));
  }
  for (int64_t e : n.extents) {
    if (e < 1) return Refusal{"an empty loop"};
    c.extents.push_back(c.atoms.log(e));
  }
  const size_t m = c.capacities.size(), k = m + c.extents.size(), columns = rows.size() + k;
  try {
    // Slack variables start in the basis: capacities and extents are logarithms of numbers >= 1.
    std::vector<Vector> a(k, Vector(columns, 0));
    std::vector<Form> right = c.capacities;
    right.insert(right.end(), c.extents.begin(), c.extents.end());
    Vector objective(columns, 0);
    std::vector<size_t> basis(k);
    for (size_t r = 0; r < k; ++r) {
      for (size_t h = 0; h < rows.size(); ++h) a[r][h] = r < m ? rows[h].arrays[r] : rows[h].loops[r - m];
      a[r][rows.size() + r] = 1;
      basis[r] = rows.size() + r;
    }
    for (size_t h = 0; h < rows.size(); ++h) objective[h] = -rows[h].rank;
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
        const int less = c.atoms.sign(scaled(a[out][in], right[r]) + scaled(-a[r][in], right[out]));
        if (less < 0 || (less == 0 && basis[r] < basis[out])) out = r;
      }
      check(out < k, "an unbounded tile program"); // every condition has a loop of positive rank
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
    for (size_t r = 0; r < k; ++r) (r < m ? c.s : c.t).push_back(objective[rows.size() + r]);
    c.x.assign(rows.size(), {});
    for (size_t r = 0; r < k; ++r)
      if (basis[r] < rows.size()) c.x[basis[r]] = right[r];
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

namespace {
template <class T, class F> std::string listed(const std::vector<T>& items, F text) {
  std::string out = "[";
  for (size_t k = 0; k < items.size(); ++k) out += (k ? "; " : "") + text(items[k]);
  return out + "]";
}

std::string coq(const Rational& q) {
  const std::string n = q.num() < 0 ? "(" + std::to_string(q.num()) + ")" : std::to_string(q.num());
  return q.den() == 1 ? n : n + " # " + std::to_string(q.den());
}

std::string coq(const Form& f) {
  return listed(f, [](const Rational& q) { return coq(q); });
}
} // namespace

Result<std::string> as_coq(const Certificate& c, const std::string& name) {
  for (auto& row : c.conditions)
    if (row.loop < 0) return Refusal{"the printed form has rows of single loops only, not " + row.text};
  std::vector<Form> tile(c.loops.size());
  for (size_t h = 0; h < c.conditions.size(); ++h) tile[size_t(c.conditions[h].loop)] = c.x[h];
  std::string arrays = "[";
  for (size_t j = 0; j < c.arrays.size(); ++j) {
    std::vector<int> loops;
    for (size_t i = 0; i < c.loops.size(); ++i)
      for (auto& row : c.conditions)
        if (row.loop == int(i) && row.arrays[j]) loops.push_back(int(i));
    arrays += (j ? "; (" : "(") + listed(loops, [](int i) { return std::to_string(i); }) + "%nat, " +
              coq(c.capacities[j]) + ")";
  }
  std::string out = "Definition " + name + " : certificate := Certificate\n  " +
         listed(c.atoms.values(), [](int64_t v) { return std::to_string(v); }) + "%Z\n  " +
         listed(c.extents, [](const Form& f) { return coq(f); }) + "\n  " + arrays + "]\n  " +
         listed(c.s, [](const Rational& q) { return coq(q); }) + "\n  " +
         listed(c.t, [](const Rational& q) { return coq(q); }) + "\n  " +
         listed(tile, [](const Form& f) { return coq(f); }) + ".\n";
  return out + "Theorem " + name + "_ok : check " + name + " = true.\nProof. prove_certificate. Qed.\n";
}

} // namespace tang::bound
