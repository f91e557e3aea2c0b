// A 64-bit structural hash: the same on every compiler and run, never of an address or an arena id.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tang {

inline constexpr uint64_t mix(uint64_t x) { // splitmix64's finisher
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline constexpr uint64_t combine(uint64_t seed, uint64_t value) { return mix(seed ^ mix(value)); }

inline uint64_t hash_of(std::string_view s) {
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : s) h = (h ^ c) * 0x100000001b3u;
  return mix(h ^ s.size());
}

inline uint64_t bits_of(double v) {
  uint64_t b;
  std::memcpy(&b, &v, sizeof b);
  return b;
}

inline double double_of(uint64_t b) {
  double v;
  std::memcpy(&v, &b, sizeof v);
  return v;
}

} // namespace tang
