// What the parts of the C printer share: the kernel being printed, its names and types, and what is known of
// ranges.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tang/emit/c.hpp"
#include "tang/emit/dialect.hpp"
#include "tang/kernel/ranges.hpp"

namespace tang::emit {

using kernel::Affine;
using kernel::Format;
using kernel::Id;
using kernel::Memory;
using kernel::Ref;
using kernel::TileAxis;
using kernel::Type;
using kernel::Value;
using kernel::Var;

using kernel::Range;

// A statement with arithmetic to spare fetches what the next round of its loop reads first.
struct Prefetch {
  const void* host; // an Apply or a Fold
  int memory;
  Affine at; // in the host's variables
};

class Unit {
public:
  Unit(const kernel::Kernel& k, const COptions& o, const Dialect& d = c_dialect());
  const kernel::Kernel& k;
  const COptions& o;
  const Dialect& d;
  const bool wide;                  // f64 compute
  const int lanes;                  // of a vector of reals
  std::vector<Range> ranges;        // of variables
  std::string out;                  // the function's body
  std::vector<std::string> helpers; // functions above it, without their names
  int indent = 1;
  bool streams = false;
  std::vector<Prefetch> prefetches;

  void line(const std::string& s);

  void open(const std::string& s) { line(s + " {"), ++indent; }

  void close(const std::string& s = "") { --indent, line("}" + s); }

  std::string helper(const std::string& parameters_and_body); // its name; equal text is printed once

  std::string fresh(const std::string& stem) { return stem + std::to_string(next_++); }

  Range range(const Affine& a) const { return kernel::range(a, ranges); }

  const Memory& memory(int m) const { return k.memories[size_t(m)]; }

  // One element of a memory as a value, and the statement that stores one, in the dialect.
  std::string load(int m, const std::string& at) const {
    return d.load(memory(m), "m" + std::to_string(m), at, wide);
  }

  std::string store(int m, const std::string& at, const std::string& value) const {
    return d.store(memory(m), "m" + std::to_string(m), at, value, wide);
  }

private:
  int next_ = 0;
};

std::string number(int64_t v);
std::string divisor(int64_t v); // the same, 1 for 0: what counts nothing never runs, but WGSL refuses `x % 0`
std::string name(Var v);
std::string text(const Affine& a);
std::string literal(const Value& v, bool wide); // one element
std::string value_type(Type t, bool wide, bool vector);
std::string fn(const Unit& u, const std::string& stem, bool vector); // tang_max1, tang_dmaxW, ..
// One element of memory as a value, and a value as an element: text of expressions over text.
std::string load_element(const Unit& u, Format f, const std::string& place);
std::string store_element(const Unit& u, Format f, const std::string& place, const std::string& value);
std::string load_vector(const Unit& u, Format f, const std::string& pointer);
std::string store_vector(const Unit& u, Format f, const std::string& pointer, const std::string& value);
bool has_vector_access(const Unit& u, Format f); // whether the two above exist for it

// The element that a ref names, as an affine offset (its gathered part left out).
Affine offset(const Unit& u, const Ref& r);
// Whether it names no element wherever it stands: some compilers refuse a constant place outside an array, though
// a test stands before the read.
bool never_inside(const Unit& u, const Ref& r);
Affine without(Affine a, Var v);
bool pure(const Ref& r); // no gathered coordinate, nothing checked
bool pure(const kernel::Bounds& b);

// Loop limits: bounds become [lo, hi) of the deepest loop that they name.
struct Level {
  TileAxis axis;
  std::vector<Affine> lower, upper; // v >= each, v < each: without v itself; already divided
  std::vector<std::string> lower_text, upper_text;
};

struct Limits {
  std::vector<Affine> outside; // tests that name no axis of the statement
  std::vector<Level> levels;
  std::vector<std::vector<Affine>>
      lanes; // a level: bounds whose deepest axis it is but that also name the vector axis
};

Limits limits(const std::vector<TileAxis>& axes, const std::vector<const kernel::Bounds*>& bounds,
              Var vector);
std::pair<std::string, std::string> interval(const Level& l); // text of lo and hi, clipped to the extent

// Plans the fetches of one loop body, `v` advancing by `step` a round.
void plan_prefetches(Unit& u, const kernel::Block& body, Var v, int64_t step);
void print_apply(Unit& u, const kernel::Apply& a);
void print_fold(Unit& u, const kernel::Fold& f);
// One point of a fold that halving finds, in any dialect; its kept variables are declared.
void print_search(Unit& u, const kernel::Fold& f);
void print_contract(Unit& u, const kernel::Contract& c);

} // namespace tang::emit
