// Match{lambdas...}: the only visiting tool.
#pragma once
#include <variant>

namespace tang {

template <class... F> struct Match : F... { using F::operator()...; };
template <class... F> Match(F...) -> Match<F...>;

} // namespace tang
