// The choices that make a case: small integers, drawn one after another. A case is a pure function of them,
// so that repeating it needs no seed and making it smaller needs no knowledge of graphs. Zero is always the
// simplest choice.
#pragma once
#include <cstdint>
#include <vector>

#include "tang/base/hash.hpp"

namespace tang::fuzz {

using Sequence = std::vector<uint32_t>;

class Choices {
public:
  explicit Choices(uint64_t seed) : state_(mix(seed)), random_(true) {}

  explicit Choices(Sequence given) : given_(std::move(given)) {} // zeros after it

  uint32_t below(uint32_t n) {
    uint32_t v = 0;
    if (random_)
      v = uint32_t((mix(state_ += 0x9e3779b97f4a7c15u) >> 32) * uint64_t(n) >> 32);
    else if (taken_.size() < given_.size())
      v = given_[taken_.size()] < n ? given_[taken_.size()] : n - 1;
    taken_.push_back(v);
    return v;
  }

  bool chance(uint32_t one_in) { return below(one_in) == one_in - 1; } // zero: no

  template <class T> const T& of(const std::vector<T>& v) { return v[below(uint32_t(v.size()))]; }

  const Sequence& taken() const { return taken_; }

private:
  Sequence given_, taken_;
  uint64_t state_ = 0;
  bool random_ = false;
};

} // namespace tang::fuzz
