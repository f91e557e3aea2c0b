// Small programs to tune, and what every test of the room needs.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "tang.hpp"
#include "tang/base/hash.hpp"
#include "tang/tune/search.hpp"
#include "tang/verify/samples.hpp"

namespace tang::tests {

struct Folder {  // removed with what is in it
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tang-tune-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};
inline std::shared_ptr<device::Compiler> compiler_in(const std::string& cache) {
  device::CompilerOptions o;
  const char* path = std::getenv("PATH");
  o.search = device::split_path(path ? path : "/usr/bin:/bin");
  o.cache = cache;
  return std::make_shared<device::Compiler>(o);
}
inline ir::Graph product(int64_t m, int64_t n, int64_t d) {
  ir::Builder g;
  Tensor x = g.input("x", {m, d}), w = g.input("w", {d, n});
  auto [i, j, k] = axes<"i j k">();
  g.output(map({i, j}, sum(k, x(i, k) * w(k, j))), "y");
  return g.graph();
}
inline ir::Graph two_layers(int64_t m, int64_t n, int64_t d) {
  ir::Builder g;
  Tensor x = g.input("x", {m, d}), w = g.input("w", {d, n}), u = g.input("u", {n, d});
  auto [i, j, k] = axes<"i j k">();
  Tensor h = map({i, j}, relu(sum(k, x(i, k) * w(k, j))));
  auto [a, b, c] = axes<"a b c">();
  g.output(map({a, b}, sum(c, h(a, c) * u(c, b))), "y");
  return g.graph();
}
inline eval::Inputs inputs_of(const ir::Graph& g) { return verify::random_inputs(g, 1); }
// Round numbers of a made-up machine: 100 GB/s and 50 GB/s, 100 Gflop/s, one worker.
inline tune::Machine made_up() {
  tune::Machine m;
  m.device = "made up";
  m.workers = 1, m.lanes = 16;
  m.fma = {100e9, 90e9};
  m.exp = {1e9, 1e9};
  m.write = {10e9, 10e9};
  m.call = m.launch = 1e-6;
  m.levels = {{"L1", 32 << 10, {100e9, 100e9}}, {"L2", 1 << 20, {50e9, 50e9}}, {"memory", 0, {10e9, 10e9}}};
  return m;
}

}  // namespace tang::tests
