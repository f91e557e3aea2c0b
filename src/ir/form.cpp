#include "tang/ir/form.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"

namespace tang::ir {

namespace {
using Terms = std::vector<std::pair<int, int64_t>>;

[[noreturn]] void overflow() {
  throw Error({}, "a coordinate does not fit in 64 bits",
              {{"its factors multiply through the tensors that are read", {}}}, "use smaller factors");
}

Terms merged(const Terms& a, const Terms& b) {
  Terms out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].first < b[j].first)) {
      out.push_back(a[i++]);
    } else if (i == a.size() || b[j].first < a[i].first) {
      out.push_back(b[j++]);
    } else {
      auto k = add_checked(a[i].second, b[j].second);
      if (!k) overflow();
      if (*k) out.emplace_back(a[i].first, *k);
      ++i, ++j;
    }
  }
  return out;
}

int64_t find(const Terms& t, int a) {
  for (auto& [x, k] : t)
    if (x == a) return k;
  return 0;
}
} // namespace

int64_t Form::axis(int a) const { return find(axes, a); }

int64_t Form::arg(int a) const { return find(args, a); }

uint64_t Form::hash() const {
  uint64_t h = c.hash();
  for (auto& [a, k] : axes) h = combine(h, combine(uint64_t(a) + 1, uint64_t(k)));
  for (auto& [a, k] : args) h = combine(h, combine(uint64_t(a) + 0x10001, uint64_t(k)));
  return h;
}

int compare(const Form& a, const Form& b) {
  if (a.axes != b.axes) return a.axes < b.axes ? -1 : 1;
  if (a.args != b.args) return a.args < b.args ? -1 : 1;
  return Extent::compare(a.c, b.c);
}

Form constant(const Extent& c) { return {c, {}, {}}; }

Form axis(int a, int64_t k) { return k ? Form{0, {{a, k}}, {}} : Form{}; }

Form uniform(int arg, int64_t k) { return k ? Form{0, {}, {{arg, k}}} : Form{}; }

Form operator+(const Form& a, const Form& b) {
  return {a.c + b.c, merged(a.axes, b.axes), merged(a.args, b.args)};
}

Form operator*(int64_t k, const Form& a) {
  if (!k) return {};
  Form out = a;
  out.c = Extent(k) * a.c;
  for (auto* t : {&out.axes, &out.args})
    for (auto& x : *t) {
      auto p = mul_checked(x.second, k);
      if (!p) overflow();
      x.second = *p;
    }
  return out;
}

Form compose(const Form& f, const std::function<Form(int)>& axis_at, const std::function<Form(int)>& arg_at) {
  Form out = constant(f.c);
  for (auto& [a, k] : f.axes) out = out + k * axis_at(a);
  for (auto& [a, k] : f.args) out = out + k * arg_at(a);
  return out;
}

Form compose(const Form& f, const std::function<Form(int)>& axis_at) {
  return compose(f, axis_at, [](int a) { return uniform(a); });
}

int64_t value(const Form& f, const std::vector<int64_t>& axes) {
  int64_t v = f.c.value();
  for (auto& [a, k] : f.axes) v += k * axes[size_t(a)];
  return v;
}

std::string text(const Form& f, const std::function<std::string(int)>& axis_name,
                 const std::function<std::string(int)>& arg_name) {
  std::string out;
  auto put = [&](int64_t k, const std::string& what) {
    if (!out.empty())
      out += k < 0 ? " - " : " + ";
    else if (k < 0)
      out += "-";
    if (k != 1 && k != -1) out += std::to_string(k < 0 ? -k : k) + "*";
    out += what;
  };
  for (auto& [a, k] : f.axes) put(k, axis_name(a));
  for (auto& [a, k] : f.args) put(k, arg_name(a));
  if (out.empty()) return f.c.text();
  if (f.c == Extent(0)) return out;
  if (f.c.is_constant()) {
    const int64_t c = f.c.value();
    return out + (c < 0 ? " - " : " + ") + std::to_string(c < 0 ? -c : c);
  }
  return out + " + " + f.c.text();
}

const Domain& everywhere() {
  static const Domain all{Conj{}};
  return all;
}

void insert(Conj& c, const Form& f) {
  auto it = std::lower_bound(c.begin(), c.end(), f);
  if (it == c.end() || *it != f) c.insert(it, f);
}

Form negated(const Form& b) { return (-1) * b + constant(-1); }

bool contradictory(const Conj& c) {
  for (auto& a : c) {
    if (a.is_constant() && a.c.is_constant() && a.c.value() < 0) return true;
    for (auto& b : c) {
      const Form sum = a + b;
      if (sum.is_constant() && sum.c.is_constant() && sum.c.value() < 0) return true;
    }
  }
  return false;
}

namespace {
bool contains(const Conj& all, const Conj& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}
} // namespace

Domain normal(Domain d) {
  std::sort(d.begin(), d.end());
  d.erase(std::unique(d.begin(), d.end()), d.end());
  Domain out;
  for (auto& c : d) {
    if (contradictory(c)) continue;
    const bool covered = std::any_of(
        d.begin(), d.end(), [&](const Conj& w) { return &w != &c && contains(c, w) && !contradictory(w); });
    if (!covered) out.push_back(c);
  }
  return out;
}

Domain intersection(const Domain& a, const Domain& b) {
  Domain out;
  for (auto& x : a)
    for (auto& y : b) {
      Conj c = x;
      for (auto& f : y) insert(c, f);
      out.push_back(std::move(c));
    }
  return normal(std::move(out));
}

std::vector<Conj> disjoint(const Domain& d) {
  std::vector<Conj> out;
  for (auto& c : d) {
    std::vector<Conj> pieces{c};
    const size_t before = out.size();
    for (size_t e = 0; e < before; ++e) {
      std::vector<Conj> rest;
      for (auto& piece : pieces) {
        Conj inside = piece;
        for (auto& b : out[e]) { // piece and b1 .. b(k-1) and not bk
          Conj cut = inside;
          insert(cut, negated(b));
          if (!contradictory(cut)) rest.push_back(cut);
          insert(inside, b);
        }
      }
      pieces = rest;
    }
    out.insert(out.end(), pieces.begin(), pieces.end());
  }
  return out;
}

bool implies(const Domain& a, const Domain& b) {
  return std::all_of(a.begin(), a.end(), [&](const Conj& x) {
    return std::any_of(b.begin(), b.end(), [&](const Conj& y) { return contains(x, y); });
  });
}

std::pair<int64_t, int64_t> range(const Form& f, const std::vector<Extent>& extents, const Symbols& symbols) {
  if (!f.args.empty()) return {INT64_MIN, INT64_MAX};
  // Symbolic ends are substituted before intervals are taken, so that n - 1 - i with i < n is known to be >=
  // 0.
  Extent lo = f.c, hi = f.c;
  for (auto& [a, k] : f.axes) {
    const Extent last = extents[size_t(a)] - Extent(1);
    (k > 0 ? hi : lo) = (k > 0 ? hi : lo) + Extent(k) * last;
  }
  return {lo.range(symbols).first, hi.range(symbols).second};
}

Domain pruned(const Domain& d, const std::vector<Extent>& extents, const Symbols& symbols) {
  for (auto& e : extents)
    if (e == Extent(0)) return d; // no points: any bound would look both proved and impossible
  Domain out;
  for (auto& c : d) {
    Conj kept;
    bool possible = true;
    for (auto& f : c) {
      const auto [lo, hi] = range(f, extents, symbols);
      if (hi < 0) possible = false;
      if (lo < 0) insert(kept, f);
    }
    if (possible) out.push_back(std::move(kept));
  }
  return normal(std::move(out));
}

Domain moved(const Domain& d, const std::function<Form(const Form&)>& move) {
  Domain out;
  for (auto& c : d) {
    Conj k;
    for (auto& f : c) insert(k, move(f));
    out.push_back(std::move(k));
  }
  return normal(std::move(out));
}

} // namespace tang::ir
