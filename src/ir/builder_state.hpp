// What a Builder knows while a graph is being written (private to the room's surface files).
#pragma once
#include <map>

#include "tang/ir/surface.hpp"

namespace tang::ir {

struct Builder::State {
  Graph g;
  Pool pool; // surface scalars: coord = axis id, arg = index into reads, holds = index into guards

  struct Read {
    Port from;
    std::vector<Form> view; // over axis ids and reads
    Where where;
  };

  struct AxisFacts {
    Extent extent;
    std::string who; // what gave it its extent
    Where where;
    bool declared = false;
  };

  std::vector<Read> reads;
  std::vector<Domain> guards; // over axis ids and reads
  std::map<int, AxisFacts> axes;
  std::map<int, std::string> axis_names;
  std::map<Port, std::pair<std::string, Where>> hiding; // folds whose own guard hides an absence
  std::vector<std::string> warnings;

  // Of the step of a recurrence: what surrounds it, and what was read from there (recurrence.cpp).
  struct Enclosing {
    Builder* outer;
    Axis time;
    Tensor clock;                   // the step's rank-0 input
    std::vector<Recur::Read> reads; // `in`: the step's input
  };

  // Ports that something added later computes otherwise: a recurrence that also emits its history, an
  // absorbing fold in definition form (src/grad).
  std::map<Port, Port> instead;

  Builder* self = nullptr;
  std::optional<Enclosing> around;

  std::string axis_name(int a) const;
  void declare(const Axis& a, const Extent& e, const std::string& who, Where where, bool declared);
  const Extent& extent(int a, Where where) const;
  Form form(const Index& i, Where where); // registers its axes, materializes computed indices
  Scalar read(Builder* b, Port from, const std::vector<Form>& view, Where where);
  Id guard(const Domain& d);
  std::set<int> free_axes(Id e) const;
  void free_axes_of_read(int read, std::set<int>& out) const;
};

// A declared axis waits here until a builder sees it (the surface language's axis counter is the only
// global).
std::optional<Extent> declared_extent(const Axis& a);

// The builder of the step that is being written, when `t` belongs to a graph around it; else null.
Builder* step_around(const Tensor& t);
// The same read, as a read of an input of the step; the Index is what remains of each coordinate.
std::pair<Tensor, Coords> brought(Builder& step, const Tensor& t, const Coords& coords, Where where);
// The time that an axis stands for inside a step, if it is one.
std::optional<Scalar> clock_of(Builder::State& s, const Axis& a);

Id own(Builder& b, const Scalar& s);                 // the scalar's term in the builder's pool
Id own_like(Builder& b, const Scalar& s, Type type); // the same; a plain number takes this type

} // namespace tang::ir
