// Extents: polynomials in named symbols, closed under floordiv / ceildiv by a positive constant, min and max.
// Equal extents have the same normal form.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tang::ir {

// What is declared of a symbol: lower <= value <= upper, and divisor | value.
struct SymbolFacts {
  int64_t lower = 0, upper = INT64_MAX, divisor = 1;
};

using Symbols = std::map<std::string, SymbolFacts>;
using Bindings = std::map<std::string, int64_t>;

class Extent {
public:
  Extent(int64_t value = 0) : constant_(value) {}

  static Extent symbol(const std::string& name);

  bool is_constant() const { return !terms_; }

  int64_t value() const; // checked: constant
  std::string text() const;
  std::string text(const std::function<std::string(const std::string&)>& spelling) const; // of each symbol
  void symbols(std::map<std::string, bool>& out) const;

  // Every symbol replaced; an unbound symbol stays.
  Extent bind(const Bindings& values) const;
  // Interval of possible values under what the symbols declare; saturates.
  std::pair<int64_t, int64_t> range(const Symbols& symbols) const;

  friend Extent operator+(const Extent& a, const Extent& b);
  friend Extent operator*(const Extent& a, const Extent& b);

  friend Extent operator-(const Extent& a, const Extent& b) { return a + Extent(-1) * b; }

  friend Extent floor_div(const Extent& a, int64_t b);
  friend Extent ceil_div(const Extent& a, int64_t b);
  friend Extent min(const Extent& a, const Extent& b);
  friend Extent max(const Extent& a, const Extent& b);

  friend bool operator==(const Extent& a, const Extent& b) { return compare(a, b) == 0; }

  friend bool operator<(const Extent& a, const Extent& b) { return compare(a, b) < 0; }

  static int compare(const Extent& a, const Extent& b);
  uint64_t hash() const;

private:
  enum class Kind : uint8_t { symbol, floor_div, ceil_div, min, max };
  struct Atom;
  using AtomPtr = std::shared_ptr<const Atom>;

  struct Atom {
    Kind kind;
    std::string name;             // symbol
    int64_t divisor = 1;          // floor_div, ceil_div
    std::vector<Extent> operands; // the rest
  };

  using Monomial = std::vector<AtomPtr>; // sorted; repeated for powers

  struct Term {
    Monomial product;
    int64_t coefficient;
  };

  static int compare(const Atom& a, const Atom& b);
  static int compare(const Monomial& a, const Monomial& b);
  static Extent of(Atom atom);
  static Extent normal(std::vector<Term> terms, int64_t constant);

  int64_t constant_;
  std::shared_ptr<const std::vector<Term>> terms_; // null: just the constant
};

} // namespace tang::ir
