// Draws a graph: nodes (nodes.cpp), the terms and reads inside them (terms.cpp). Private to the room.
#pragma once
#include <optional>

#include "tang/expr/build.hpp"
#include "tang/fuzz/case.hpp"
#include "tang/fuzz/range.hpp"
#include "tang/ir/monoids.hpp"

namespace tang::fuzz {

using expr::E;
using ir::Comp;
using ir::Extent;
using ir::Form;
using ir::Graph;
using ir::Id;
using ir::NodeId;
using ir::Op;
using ir::Port;
using ir::Type;

struct Term {
  E e;
  Range range;
};

// The node being drawn: which axes its terms may use, and whether they may be absent.
struct Scope {
  Graph& g;
  Comp& c;
  std::vector<int> axes;
  bool absent = true;
};

// The sum of what stands beside the largest: absorbing, with acts 0 and 1.
ir::MonoidSpec largest_and_sum();

class Generator {
public:
  Generator(Choices& c, const Reach& reach) : c_(c), reach_(reach) {}

  Case make();

private:
  // nodes.cpp
  void sizes();
  Extent extent();
  std::vector<Extent> extents(int most);
  void inputs(Graph& g);
  void node(Graph& g);
  void map(Graph& g, Comp& c, Scope& s, Type type);
  void fold(Graph& g, Comp& c, Scope& s);
  void pattern(Graph& g); // patterns.cpp: what rules are for, with the variations that may stop them
  void rare(Graph& g);    // templates.cpp: one of these
  void guarded_twice(Graph& g);
  void reshaped(Graph& g);
  void computed_again(Graph& g);
  void absorbed(Graph& g);
  void short_inside(Graph& g);
  void copied(Graph& g);
  void columns_of_softmax(Graph& g);
  void across(Graph& g);
  void angles(Graph& g);
  void runs(Graph& g);
  void recur(Graph& g); // recurrences.cpp
  void outputs(Graph& g);
  Port add(Graph& g, Comp c, const std::vector<Range>& ranges);
  Port tensor(Graph& g, Type type, const std::vector<Extent>& shape); // of this shape: there, or a new map
  ir::Format format_for(Type type, const Range& r);
  void gradient(Graph& g);
  void schedule(Case& out);

  // terms.cpp
  Term term(Scope& s, Type type, int depth);
  Term real_term(Scope& s, int depth);
  Term whole_term(Scope& s, Type type, int depth);
  Term bool_term(Scope& s, int depth);
  Term literal(Scope& s, Type type);
  std::optional<Term> read(Scope& s, Type type);
  std::optional<int> index_read(Scope& s, const Extent* below, Range& range);
  Form view_form(Scope& s, const Extent& size, bool& inside);
  ir::Domain domain(Scope& s);
  E holds(Scope& s, const ir::Domain& d);
  Term limited(const Term& t, double most); // clamped where it could be larger
  Term finite(const Term& t);               // without infinities
  Term exact(const Term& t); // a condition that no rounding decides: true where it is not sharp

  int64_t size_of(const Extent& e) const { return e.bind(bindings_).value(); }

  // The most that a value may be: integers of 2^22 leave room for a few sums in f32's 2^24.
  double most() const { return integer_ ? 1 << 20 : 1000; }

  Choices& c_;
  Reach reach_;
  bool integer_ = false, symbolic_ = false;
  ir::Bindings bindings_;
  std::vector<Extent> palette_;
  std::vector<std::pair<const Graph*, std::map<Port, Range>>> known_; // one a graph: recurrences nest
  std::map<Port, Range>& ranges(const Graph& g);
  std::vector<Port> kept_; // outputs besides those that are drawn
  int names_ = 0, depth_ = 0;
};

} // namespace tang::fuzz
