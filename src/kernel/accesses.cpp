#include "tang/kernel/accesses.hpp"

#include <algorithm>

namespace tang::kernel {

void Accesses::say(const std::string& what) {
  const std::string line = where_ ? what + ", in: " + text_.head(*where_) : what;
  if (std::find(out_.begin(), out_.end(), line) == out_.end()) out_.push_back(line);
}

void Accesses::memories() {
  std::set<std::string> names;
  bool tiles = false;
  for (auto& m : k_.memories) {
    if (!names.insert(m.name).second) say("two memories are called " + m.name);
    if (m.home != Home::global)
      tiles = true;
    else if (tiles)
      say("the global " + m.name + " comes after a tile");
    if (m.strides.size() != m.shape.size())
      say(m.name + " has " + std::to_string(m.strides.size()) + " strides for its rank");
  }
  std::set<std::string> vars;
  for (auto& v : k_.vars)
    if (!vars.insert(v).second) say("two variables are called " + v);
}

bool Accesses::injective(const Memory& m) {
  std::vector<std::pair<int64_t, int64_t>> modes; // stride, extent
  for (size_t d = 0; d < m.shape.size(); ++d)
    if (m.shape[d] > 1) modes.emplace_back(m.strides[d], m.shape[d]);
  std::sort(modes.begin(), modes.end());
  int64_t span = 0;
  for (auto& [stride, extent] : modes) {
    if (stride <= span) return false;
    span += stride * (extent - 1);
  }
  return true;
}

bool Accesses::define(const Facts& f, Var v) {
  if (v < 0 || size_t(v) >= k_.vars.size()) return say("a variable that the kernel does not have"), false;
  if (f.defined(v)) return say(text_.var(v) + " is defined twice"), false;
  return true;
}

void Accesses::uses(const Affine& a, const Facts& f) {
  for (auto& t : a.terms)
    if (!f.defined(t.first)) say(text_.var(t.first) + " is used where it has no value");
}

Affine Accesses::with_operands(const Coordinate& c) const {
  Affine a = c.affine;
  for (auto& [r, k] : c.refs) a = a + variable(operand(r), k);
  return a;
}

void Accesses::coordinate(const Coordinate& c, const Facts& f, const Body* body, size_t earlier) {
  uses(c.affine, f);
  for (auto& [r, k] : c.refs) {
    if (!body || r < 0 || size_t(r) >= earlier)
      say("a coordinate reads operand " + std::to_string(r) + ", which is not an earlier one");
    else if (valid(body->refs[size_t(r)].memory) &&
             type_of(memory(body->refs[size_t(r)].memory).format) == Type::real)
      say("a coordinate reads the real " + text_.ref(body->refs[size_t(r)], body));
  }
}

void Accesses::form(const Ref& r, const Facts& f, const Body* body, size_t earlier) {
  if (!valid(r.memory)) return say("a reference to a memory that the kernel does not have");
  if (r.index.size() != memory(r.memory).shape.size())
    say(text_.ref(r, body) + " has " + std::to_string(r.index.size()) + " coordinates for rank " +
        std::to_string(memory(r.memory).shape.size()));
  for (auto& c : r.index) coordinate(c, f, body, earlier);
}

void Accesses::inside(const Ref& r, const std::vector<Facts>& known, const Body* body, const char* verb) {
  if (!valid(r.memory) || r.index.size() != memory(r.memory).shape.size()) return;
  for (size_t d = 0; d < r.index.size(); ++d) {
    const Affine x = with_operands(r.index[d]);
    const int64_t extent = memory(r.memory).shape[d];
    bool low = true, high = true;
    for (auto& f : known) {
      low = low && (f.proves(x) || f.impossible());
      high = high && (f.proves(constant(extent - 1) - x) || f.impossible());
    }
    if (!low)
      say(verb + text_.ref(r, body) + ": coordinate " + std::to_string(d) + " is not provably at least 0");
    if (!high)
      say(verb + text_.ref(r, body) + ": coordinate " + std::to_string(d) + " is not provably below " +
          std::to_string(extent));
  }
}

void Accesses::reads(const Ref& r, const std::vector<Facts>& known, const Body* body,
                     const std::set<int>& written) {
  if (!valid(r.memory)) return;
  const Memory& m = memory(r.memory);
  if (m.home == Home::global && m.access == Access::write)
    say("reads " + text_.ref(r, body) + ", which is write-only");
  if (m.home != Home::global && !written.count(r.memory))
    say("reads " + text_.ref(r, body) + ", which may not have been written");
  if (!r.checked) inside(r, known, body, "reads ");
  touch(r, false, known, body);
}

void Accesses::writes(const Ref& r, const std::vector<Facts>& known, const Body* body,
                      std::set<int>& written) {
  if (!valid(r.memory)) return;
  const Memory& m = memory(r.memory);
  if (m.home == Home::global && m.access == Access::read)
    say("writes " + text_.ref(r, body) + ", which is read-only");
  inside(r, known, body, "writes ");
  written.insert(r.memory);
  touch(r, true, known, body);
}

void Accesses::touch(const Ref& r, bool write, const std::vector<Facts>& known, const Body* body) {
  const Memory& m = memory(r.memory);
  if (m.home != Home::global || m.access == Access::read || r.index.size() != m.shape.size()) return;
  const auto index = place(r);
  if (index)
    touches_.push_back(
        {r.memory, write, {*index, known}, (write ? "writes " : "reads ") + text_.ref(r, body),
         r.memory == adding_});
}

std::optional<std::vector<Affine>> Accesses::place(const Ref& r) const {
  std::vector<Affine> index;
  Affine address;
  for (size_t d = 0; d < r.index.size(); ++d) {
    if (!r.index[d].refs.empty()) return {};
    index.push_back(r.index[d].affine);
    address = address + memory(r.memory).strides[d] * r.index[d].affine;
  }
  return injective(memory(r.memory)) ? index : std::vector<Affine>{address};
}

void Accesses::one_point_each(const Ref& r, const std::vector<TileAxis>& axes, const Facts& outer,
                              const std::vector<Facts>& known, const Body* body) {
  if (!valid(r.memory) || r.index.size() != memory(r.memory).shape.size()) return;
  const auto index = place(r);
  if (!index) return;
  const Place p{*index, known};
  std::vector<Separator> by;
  std::set<Var> shared;
  for (auto& a : axes)
    if (a.extent > 1) by.push_back({a.var, 1});
  for (Var v = 0; v < Var(k_.vars.size()); ++v)
    if (outer.defined(v)) shared.insert(v);
  for (Var v : unseparated(p, p, by, shared, copy()))
    say("writes " + text_.ref(r, body) + " at several values of " + text_.var(v));
}

void Accesses::races() {
  where_ = nullptr;
  std::vector<Separator> by;
  for (auto& g : k_.grid)
    if (g.extent > g.step) by.push_back({g.var, g.step});
  for (size_t a = 0; a < touches_.size(); ++a)
    for (size_t b = a; b < touches_.size(); ++b) {
      const Touch &x = touches_[a], &y = touches_[b];
      if (x.memory != y.memory || (!x.writes && !y.writes) || (x.adds && y.adds)) continue;
      for (Var v : unseparated(x.place, y.place, by, {}, copy()))
        say("two workgroups that differ in " + text_.var(v) + " may touch one element: one " + x.text +
            ", one " + y.text);
    }
}

} // namespace tang::kernel
