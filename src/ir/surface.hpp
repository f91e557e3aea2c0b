// The surface language: named axes, pointful scalars, tensors that are called, guards, folds lifted to
// comprehensions.
//
//   Builder b;
//   Tensor q = b.input("q", {heads, n, d}), k = b.input("k", {heads, n, d});
//   auto [h, i, j, x] = axes<"h i j x">();
//   Scalar dot = sum(x, q(h, i, x) * k(h, j, x));            // an N x N fold, never stored unless a schedule
//   says so Tensor s = map({h, i, j}, masked(j <= i, dot / 8));
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tang/expr/build.hpp"
#include "tang/ir/graph.hpp"

namespace tang::ir {

class Builder;

// A named axis. It indexes tensors; `iota(axis)` is its value. Its extent comes from what it indexes, or is
// declared.
struct Axis {
  uint32_t id = 0;
  std::string name;
};

uint32_t fresh_axis();
Axis axis(std::string name);                // extent from its first use
Axis axis(std::string name, Extent extent); // declared

template <size_t N> struct Names {
  char chars[N];

  consteval Names(const char (&s)[N]) { std::copy_n(s, N, chars); }

  constexpr size_t words() const {
    size_t n = 0;
    for (size_t i = 0; i + 1 < N; ++i) n += chars[i] != ' ' && (i + 2 == N || chars[i + 1] == ' ');
    return n;
  }
};

// auto [i, j, k] = axes<"i j k">();
template <Names names> auto axes() {
  static constexpr Names kept = names;
  std::array<Axis, kept.words()> out;
  size_t at = 0;
  for (auto& a : out) {
    while (kept.chars[at] == ' ') ++at;
    size_t end = at;
    while (kept.chars[end] && kept.chars[end] != ' ') ++end;
    a = {fresh_axis(), std::string(kept.chars + at, end - at)};
    at = end;
  }
  return out;
}

// A scalar at the axes it mentions. A plain number has no builder until it meets one that has.
class Scalar {
public:
  Scalar(double v = 0) : constant_(v) {}

  Scalar(int v) : constant_(v) {}

  Scalar(Builder* b, Id id) : builder_(b), id_(id) {}

  Builder* builder() const { return builder_; }

  Id id() const { return id_; } // in the builder's pool

  double constant() const { return constant_; }

  Type type() const;

private:
  Builder* builder_ = nullptr;
  Id id_ = 0;
  double constant_ = 0;
};

// c + sum k * axis + sum k * index value: a coordinate, and either side of a comparison that can become a
// loop bound.
struct Index {
  Extent c = 0;
  std::vector<std::pair<Axis, int64_t>> axes;
  std::vector<std::pair<Scalar, int64_t>> values; // index-typed reads

  Index(const Axis& a) : axes{{a, 1}} {}

  Index(int c_) : c(c_) {}

  Index(int64_t c_) : c(c_) {}

  Index(Extent c_) : c(std::move(c_)) {}

  Index(const Scalar& s); // an index-typed value: a gather, or a run-time bound
  Index() = default;
};

Index operator+(Index a, const Index& b);
Index operator-(Index a, const Index& b);
Index operator*(int64_t k, Index a);

// A union of conjunctions of comparisons between Index values.
struct Guard {
  std::vector<std::vector<Index>> pieces; // each Index >= 0
  Where where = {};
};

Guard operator<=(const Index& a, const Index& b);
Guard operator<(const Index& a, const Index& b);
Guard operator>=(const Index& a, const Index& b);
Guard operator>(const Index& a, const Index& b);
Guard operator==(const Index& a, const Index& b);
Guard operator!=(const Index& a, const Index& b);
Guard operator&&(const Guard& a, const Guard& b);
Guard operator||(const Guard& a, const Guard& b);
Guard always();

using Coords = std::vector<Index>;

struct Tensor {
  Builder* builder = nullptr;
  Port port = {};

  // A read. It must be in range wherever it is used: out of range is a fault, not a value.
  // The first coordinate carries the caller's line: a default argument cannot follow a pack.
  struct First {
    Index index;
    Where where;

    template <class T> First(const T& t, Where w = Where::here()) : index(t), where(w) {}
  };

  template <class... A> Scalar operator()(const First& first, const A&... a) const {
    return at({first.index, Index(a)...}, first.where);
  }

  Scalar operator()(Where where = Where::here()) const { return at({}, where); } // rank 0

  Scalar at(const Coords& coords, Where where = Where::here()) const;
  // Absent where out of range; at_or gives a pad there instead.
  Scalar where_in_range(const Coords& coords, Where where = Where::here()) const;
  Scalar at_or(const Scalar& pad, const Coords& coords, Where where = Where::here()) const;
  std::vector<Extent> shape() const;
  Type type() const;
  const std::string& name() const;
  Where where() const; // the line that made it
};

// The same input, its indices declared to never decrease along the last dimension: the gradient of what is
// gathered by them then folds, for each place, its run of keys only. Verified where data is bound for the
// oracle; a device takes it as said. Throws Error: no input of indices with a dimension, or one that was read
// already.
Tensor set_sorted(const Tensor& keys, Where where = Where::here());

double size(const Tensor& t, int dim); // an Error when the dimension is symbolic

// Scalars.

Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator*(const Scalar& a, const Scalar& b);

template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
Scalar operator*(N a, const Scalar& b) { // else a number times an Index is as good a match
  return Scalar(double(a)) * b;
}

Scalar operator/(const Scalar& a, const Scalar& b); // index: rounds towards minus infinity
Scalar operator%(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a);
Scalar operator<(const Scalar& a, const Scalar& b);
Scalar operator>(const Scalar& a, const Scalar& b);
Scalar operator<=(const Scalar& a, const Scalar& b);
Scalar operator>=(const Scalar& a, const Scalar& b);
Scalar operator==(const Scalar& a, const Scalar& b);
Scalar operator&&(const Scalar& a, const Scalar& b);
Scalar operator||(const Scalar& a, const Scalar& b);
Scalar operator!(const Scalar& a);
Scalar apply(Op op, const std::vector<Scalar>& operands);
#define TANG_UNARY(F) Scalar F(const Scalar& a);
// clang-format off
TANG_UNARY(exp) TANG_UNARY(exp2) TANG_UNARY(log) TANG_UNARY(log2) TANG_UNARY(sqrt) TANG_UNARY(sin)
TANG_UNARY(cos) TANG_UNARY(tanh) TANG_UNARY(sigmoid) TANG_UNARY(silu) TANG_UNARY(softplus) TANG_UNARY(relu)
TANG_UNARY(square) TANG_UNARY(erf) TANG_UNARY(gelu) TANG_UNARY(gelu_tanh) TANG_UNARY(elu) TANG_UNARY(recip)
TANG_UNARY(abs) TANG_UNARY(floor) TANG_UNARY(is_nan) TANG_UNARY(to_real) TANG_UNARY(to_index)
TANG_UNARY(to_bits)
// clang-format on
#undef TANG_UNARY
                    Scalar max(const Scalar& a, const Scalar& b);
Scalar min(const Scalar& a, const Scalar& b);
Scalar atan2(const Scalar& y, const Scalar& x);
Scalar ratio(const Scalar& a, const Scalar& l); // 0 where l is 0: nothing was folded
Scalar select(const Scalar& condition, const Scalar& then, const Scalar& otherwise);
Scalar iota(const Index& i); // the coordinate as an index value
Scalar index_literal(Builder& b, int64_t v);

Scalar masked(const Guard& g, const Scalar& e);                 // exists where g holds
Scalar masked(const Scalar& condition, const Scalar& e);        // the same for a data predicate
Scalar where(const Guard& g, const Scalar& e, const Scalar& v); // e where g holds and e exists, else v
Scalar where(const Scalar& condition, const Scalar& e, const Scalar& v);
Scalar or_else(const Scalar& e, const Scalar& v);     // e where it exists, else v
Scalar as_scalar(const Guard& g, const Scalar& near); // the guard as a boolean value

// Folds.

struct Over : std::vector<Axis> {
  Over(const Axis& a) : vector{a} {}

  Over(std::initializer_list<Axis> a) : vector(a) {}

  Over(std::vector<Axis> a) : vector(std::move(a)) {}
};

// A monoid as a value of the surface language; `combine` is traced once per builder.
struct MonoidSpec {
  std::string name;
  std::vector<Value> identity;
  std::function<std::vector<expr::E>(Pool&, const std::vector<expr::E>& a, const std::vector<expr::E>& b)>
      combine;
  bool commutative = true;
  bool unproved = false; // the author answers for the laws: folds are split and reordered without a proof
};

std::vector<Scalar> fold(const MonoidSpec& m, const Over& over, const std::vector<Scalar>& lift,
                         Where where = Where::here());
Scalar sum(const Over& over, const Scalar& e, Where where = Where::here());
Scalar max(const Over& over, const Scalar& e, Where where = Where::here());
Scalar min(const Over& over, const Scalar& e, Where where = Where::here());
Scalar any(const Over& over, const Scalar& e, Where where = Where::here());
Scalar all(const Over& over, const Scalar& e, Where where = Where::here());

// A stored tensor with these dimensions. `name` labels it in plans and messages.
Tensor map(const std::vector<Axis>& points, const Scalar& body, std::string name = "",
           Where where = Where::here());
// Output view: coordinate d of the result is coords[d], an injective form of the points; shape is declared.
Tensor map_at(const std::vector<Axis>& points, const Coords& coords, const std::vector<Extent>& shape,
              const Scalar& body, std::string name = "", Where where = Where::here());

class Builder {
public:
  Builder();
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Extent symbol(const std::string& name, SymbolFacts facts = {});
  Tensor input(const std::string& name, const std::vector<Extent>& shape, Format format = Format::f32,
               Where where = Where::here());
  Tensor param(const std::string& name, const std::vector<Extent>& shape, Format format = Format::f32,
               Where where = Where::here());
  Tensor state(const std::string& name, const std::vector<Extent>& shape, Format format = Format::f32,
               Where where = Where::here());
  void output(const Tensor& t, const std::string& name, Format format = Format::count_,
              Where where = Where::here());
  // The finished graph in canonical form.
  Graph graph() const;
  // What looked suspicious while building (a fold that hides an absence, ...), each with a fix.
  const std::vector<std::string>& warnings() const;

  Pool& surface_pool();
  static Builder* current(); // the innermost builder alive on this thread: whose graph iota(axis) belongs to

  struct State; // builder.cpp

  State& state() { return *state_; }

private:
  std::unique_ptr<State> state_;
};

} // namespace tang::ir
