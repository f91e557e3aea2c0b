// Bodies, views and guards of one comprehension, translated to a place in a kernel.
#pragma once
#include <functional>
#include <map>
#include <unordered_map>

#include "tang/plan/keyed.hpp"
#include "tang/ir/condition.hpp"
#include "tang/kernel/kernel.hpp"

namespace tang::lower {

using ir::Port;
using kernel::Affine;
using kernel::Coordinate;
using kernel::Ref;

// Where the values of a port are inside a kernel. Index of dimension d: coordinate d - base[d].
struct Home {
  int memory = -1;
  std::vector<Affine> base;  // empty: zero
  bool is_tile = false;
  // The port is a window of the memory: dimension d of it is view[d] over (time, the port's dimensions). Empty: itself.
  std::vector<ir::Form> view = {};
  Affine time = {};
  bool inside = true;        // every point of the window lies in the memory
};
// The element of the home's memory at these coordinates of the port.
Ref element(const Home& h, std::vector<Coordinate> at);
// Answers where a port lives; adds a global memory the first time one is asked for.
using Homes = std::function<Home(Port)>;
// An index read that is the same for the whole workgroup, loaded once: its value, and the value clamped to [0, limit).
struct Uniform {
  Affine value;
  std::function<Affine(int64_t limit)> clamped;
};
using Uniforms = std::function<std::optional<Uniform>(int arg)>;

class Body {
 public:
  // `axis[a]` is the global coordinate of the node's axis a.
  Body(kernel::Kernel& k, ir::Graph& g, const ir::Comp& node, std::vector<Affine> axis, Homes homes, Uniforms uniforms);
  kernel::Body out;  // values, refs and guards collected so far; may start as another body's: what both read is read once

  expr::Id value(ir::Id e);               // total: absence became select, see present_value
  // The body's value and, if it can be absent for a reason that is no bound, the condition.
  void add(const std::vector<ir::Id>& lifts);
  Coordinate coordinate(const ir::Form& f);
  kernel::Bounds bounds(const ir::Conj& c);
  std::vector<kernel::Bounds> pieces(const ir::Domain& d);
  // The statement's bounds hold this conjunction: a read whose coordinates it keeps in range needs no check.
  void assume(const ir::Conj& c) { assumed_ = c; }
  int ref(int arg);                       // index into out.refs
  // A reference that is not a read of the node (a state tile); returns the leaf.
  expr::Id leaf(const Ref& r, expr::Type type);

 private:
  kernel::Kernel& k_;
  ir::Graph& g_;  // its pool grows by terms that split absence from value
  const ir::Comp& node_;
  std::vector<Affine> axis_;
  Homes homes_;
  Uniforms uniforms_;
  std::map<int, int> valid_;  // read -> the guard under which its uniform coordinates are in range
  bool assumed(const ir::Form& f) const;
  bool never_inside(int arg) const; // every coordinate it could take lies beyond its source
  int add_ref(Ref r);  // equal references are one: values of several nodes at one place share what they read
  ir::Conj assumed_;
  std::map<int, int> refs_;
  std::map<int, int> guards_;
  std::unordered_map<ir::Id, expr::Id> memo_;
};
using ir::as_bounds;
// The axes (of the node) that a term depends on.
using plan::axes_of;
// The same conjunctions of the same bounds.
bool same_pieces(const std::vector<kernel::Bounds>& x, const std::vector<kernel::Bounds>& y);
expr::Id index_value(kernel::Pool& p, const Affine& a);

}  // namespace tang::lower
