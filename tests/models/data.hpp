// Fillings and small references that the tests of this room share.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tang.hpp"

namespace tang::test {

using eval::Array;
using Inputs = eval::Inputs;
inline constexpr double inf = std::numeric_limits<double>::infinity();

// u(s, shape): sin(s + 0.7 i) row-major, the filling of the golden cases.
inline Array u(double s, std::vector<int64_t> shape) {
  std::vector<double> v(size_t(eval::volume(shape)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(s + 0.7 * double(i));
  return eval::reals(std::move(shape), std::move(v));
}

inline Array filled(std::vector<int64_t> shape, double v) {
  const size_t n = size_t(eval::volume(shape));
  return eval::reals(std::move(shape), std::vector<double>(n, v));
}

inline Array booleans(std::vector<int64_t> shape, std::vector<int64_t> v) {
  Array a = eval::indices(std::move(shape), std::move(v));
  a.type = Type::boolean;
  return a;
}

inline double total(const Array& a) {
  double s = 0;
  for (double v : a.r) s += v;
  return s;
}

inline void expect_near(const Array& a, const std::vector<double>& want, double tol) {
  ASSERT_EQ(a.r.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(a.r[k], want[k], tol) << "element " << k;
}

// One output of the graph.
inline Array value(const Graph& g, const Inputs& in, const std::string& name, eval::Options o = {}) {
  return eval::run(g, in, o).at(name);
}

} // namespace tang::test
