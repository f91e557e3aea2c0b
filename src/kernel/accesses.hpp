// What a kernel's references may touch: variables, memories, bounds and the grid's races; collects what is
// wrong.
#pragma once
#include "tang/kernel/disjoint.hpp"
#include "tang/kernel/print.hpp"

namespace tang::kernel {

class Accesses {
public:
  explicit Accesses(const Kernel& k) : k_(k), text_(k, Naming::own) {}

  void say(const std::string& what);

  bool valid(int m) const { return m >= 0 && size_t(m) < k_.memories.size(); }

  const Memory& memory(int m) const { return k_.memories[size_t(m)]; }

  void memories();
  static bool injective(const Memory& m);
  bool define(const Facts& f, Var v);
  void uses(const Affine& a, const Facts& f);

  // The value of operand n is a variable of its own, so that bounds on it can be used.
  Var operand(int n) const { return Var(k_.vars.size()) + n; }

  Affine with_operands(const Coordinate& c) const;
  void coordinate(const Coordinate& c, const Facts& f, const Body* body, size_t earlier);
  void form(const Ref& r, const Facts& f, const Body* body, size_t earlier);
  void inside(const Ref& r, const std::vector<Facts>& known, const Body* body, const char* verb);
  void reads(const Ref& r, const std::vector<Facts>& known, const Body* body, const std::set<int>& written);
  void writes(const Ref& r, const std::vector<Facts>& known, const Body* body, std::set<int>& written);
  void touch(const Ref& r, bool write, const std::vector<Facts>& known, const Body* body);
  // What tells elements apart: coordinates, or the address where several coordinates share one. Nothing for a
  // gather, which is left to the simulator.
  std::optional<std::vector<Affine>> place(const Ref& r) const;
  // Two points of one statement write different elements.
  void one_point_each(const Ref& r, const std::vector<TileAxis>& axes, const Facts& outer,
                      const std::vector<Facts>& known, const Body* body);

  int copy() const { return int(2 * k_.vars.size()) + 4096; }

  void races();

protected:
  struct Touch { // of a global that is written
    int memory;
    bool writes;
    Place place;
    std::string text;
    bool adds; // to what stands there: others that do so may meet it
  };

  const Kernel& k_;
  Text text_;
  const Stmt* where_ = nullptr; // the statement at hand
  int adding_ = -1; // the global that it adds to
  std::vector<Touch> touches_;
  std::vector<std::string> out_;
};

} // namespace tang::kernel
