// The nodes of a recurrence's step as arrays over (segment, step inside it): what does not depend on a state,
// and what does once the states' values at every time are known.
#pragma once
#include <functional>

#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

class OverTime {
public:
  // `step`: r's step; its pool may have grown. Arrays become nodes of `to`.
  OverTime(Graph& to, const Graph& step, const ir::Recur& r, int64_t block);

  // The time that a node's forms of segment and step inside it mean.
  struct Place {
    Form segment, inside;
  };

  // A term, form or domain of a comprehension of the step, moved into one of `to` at a place in time.
  class Moved {
  public:
    Moved(OverTime& t, const Comp& from, Comp& into, Place at, std::function<Form(int)> axes)
        : t_(t), from_(from), into_(into), place_(std::move(at)), axes_(std::move(axes)) {}

    Id body(Id term);
    Id read(int arg, Type type); // its value: a read, or the time
    Form form(const Form& f);
    Domain domain(const Domain& d);

  private:
    int take(int arg);
    Id index(const Form& f);

    bool is_time(int arg) const { return from_.args[size_t(arg)].from == Port{t_.r_.time, 0}; }

    OverTime& t_;
    const Comp& from_;
    Comp& into_;
    const Place place_;
    const std::function<Form(int)> axes_;
    std::map<int, int> taken_;
  };

  // The values of a port of the step, [segment, step inside, its dimensions..]; without the first two where
  // they are the same at every time.
  Port array(Port p);

  bool varies(Port p) const { return varies_[p.node] != 0; }

  void set(Port p, Port array) { arrays_[p] = array; } // [segment, step inside, its dimensions..]

  // Makes a port in another way than node by node, or leaves it.
  std::function<std::optional<Port>(Port)> other;
  std::vector<ir::Extent> shape(std::vector<ir::Extent> local) const; // with the two times in front

  Graph& to() { return to_; }

  const Graph& step() const { return step_; }

  Form time(const Place& at) const { return block_ * at.segment + at.inside; }

private:
  Comp copied(const Comp& c, bool varies);
  Graph& to_;
  const Graph& step_;
  const ir::Recur& r_;
  const int64_t block_;
  std::vector<char> varies_; // node of the step
  std::map<Port, Port> arrays_;
};

} // namespace tang::rewrite
