// Host arrays of the oracle: f64 or int64 values with absence.
#pragma once
#include <cstdint>
#include <vector>

#include "tang/ir/graph.hpp"

namespace tang::eval {

using expr::State;
using expr::Type;
using expr::Value;

// Row-major. `state` is empty when every value is present.
struct Array {
  std::vector<int64_t> shape;
  Type type = Type::real;
  std::vector<double> r;  // type real
  std::vector<int64_t> i; // other types
  std::vector<uint8_t> state;

  Array() = default;
  Array(std::vector<int64_t> shape_, Type type_);
  int64_t size() const;
  Value at(int64_t flat) const;
  void set(int64_t flat, const Value& v);
  bool all_present() const;
};

Array reals(std::vector<int64_t> shape, std::vector<double> values);
Array indices(std::vector<int64_t> shape, std::vector<int64_t> values);
int64_t volume(const std::vector<int64_t>& shape);
std::vector<int64_t> bound(const std::vector<ir::Extent>& shape);

} // namespace tang::eval
