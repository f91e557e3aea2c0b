#include "tang/models/shapes.hpp"

#include <sstream>

namespace tang::models {

namespace {
std::vector<std::string> words(const std::string& s) {
  std::istringstream in(s);
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out = "[";
  for (size_t k = 0; k < names.size(); ++k) out += (k ? ", " : "") + names[k];
  return out + "]";
}
} // namespace

std::string text(const std::vector<Extent>& shape) {
  std::vector<std::string> names;
  for (auto& e : shape) names.push_back(e.text());
  return listed(names);
}

void reject(Where where, std::string headline, std::vector<Note> facts, std::string fix) {
  throw Error(where, std::move(headline), std::move(facts), std::move(fix));
}

Shapes& Shapes::operator()(const std::string& role, const Tensor& t, const std::string& dims) {
  if (!given(t)) reject(where_, role + " is no tensor", {}, "pass an input, a param or a map of the builder");
  const auto names = words(dims);
  const auto shape = t.shape();
  if (shape.size() != names.size())
    reject(where_,
           role + " has " + std::to_string(shape.size()) + " dimensions, not " + std::to_string(names.size()),
           {{role + " is " + listed(names), {}}, {t.name() + " is " + text(shape), t.where()}},
           "map it to a tensor of that rank first");
  const std::string fact = role + " " + listed(names) + " is " + text(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (names[d] == "_") continue;
    const auto [it, fresh] = bound_.try_emplace(names[d], Bound{shape[d], fact, t.where()});
    if (fresh || it->second.extent == shape[d]) continue;
    reject(where_,
           "'" + names[d] + "' is " + shape[d].text() + " in " + role + " but was " +
               it->second.extent.text(),
           {{it->second.fact, it->second.where}, {fact, t.where()}}, "give both the same extent");
  }
  return *this;
}

Extent Shapes::operator[](const std::string& dim) const {
  auto it = bound_.find(dim);
  check(it != bound_.end(), "no dimension is called " + dim);
  return it->second.extent;
}

int64_t Shapes::whole(const std::string& dim) const {
  const Extent e = (*this)[dim];
  if (!e.is_constant())
    reject(where_, "'" + dim + "' is symbolic: " + e.text(), {{bound_.at(dim).fact, bound_.at(dim).where}},
           "give it a number before building");
  return e.value();
}

std::vector<Axis> axes_of(const Tensor& t, const std::string& letter) {
  std::vector<Axis> out;
  for (auto& e : t.shape()) out.push_back(axis(letter + std::to_string(out.size()), e));
  return out;
}

std::vector<Axis> plus(std::vector<Axis> a, const Axis& b) {
  a.push_back(b);
  return a;
}

Coords coords(const std::vector<Axis>& axes) { return Coords(axes.begin(), axes.end()); }

Coords operator+(Coords a, const Coords& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Extent product(const std::vector<Extent>& extents) {
  Extent n = 1;
  for (auto& e : extents) n = n * e;
  return n;
}

Scalar count(const Over& over, const std::vector<Extent>& extents) {
  const Extent n = product(extents);
  return n.is_constant() ? Scalar(double(n.value())) : sum(over, Scalar(1.0));
}

Tensor keep(const std::vector<Axis>& points, const Scalar& body, const char* name, Where where) {
  return map(points, body, name, where);
}

} // namespace tang::models
