// The folder of real weights, and their tensors as arrays of the oracle.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "models/data.hpp"
#include "tang/formats/tensor_file.hpp"

namespace tang::test {

// TANG_DATA, or shared/data beside the repository; the test is skipped when the file is not there.
inline std::string data_file(const std::string& name) {
  const char* set = std::getenv("TANG_DATA");
  const std::filesystem::path folder = set ? set : TANG_DATA_DEFAULT;
  return (folder / name).string();
}

#define TANG_WEIGHTS(path, name)                                                                             \
  const std::string path = ::tang::test::data_file(name);                                                    \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << name << " is not present (set TANG_DATA)"

inline Array array_of(const formats::TensorFile& f, const std::string& name, double scale = 1) {
  const formats::Entry& e = f.at(name);
  std::vector<double> v = f.doubles(e);
  for (double& x : v) x *= scale;
  return eval::reals(e.shape, std::move(v));
}

inline std::vector<Extent> extents(const Array& a) { return {a.shape.begin(), a.shape.end()}; }

// A param of the array's shape, bound to it.
inline Tensor param(Builder& b, Inputs& in, const std::string& name, Array a) {
  const Tensor t = b.param(name, extents(a));
  in[name] = std::move(a);
  return t;
}

} // namespace tang::test
