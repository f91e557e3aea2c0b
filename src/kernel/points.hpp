// Compiled points of a tile statement: addresses, bounds and body for a block of lanes, and the loop over
// fold axes.
#pragma once
#include "tang/kernel/machine.hpp"
#include "tang/kernel/print.hpp"

namespace tang::kernel {

class Points {
public:
  // Lanes run over the flat points of `lane_axes`; `step_axes` are walked one step at a time.
  Points(const Kernel& k, int statement, const Stmt& s, const std::vector<TileAxis>& lane_axes,
         const std::vector<TileAxis>& step_axes, const Body* body);
  int add(const Ref& r);                 // a reference of the statement that is no operand of the body
  int bound(const Bounds& b);            // all of these
  int any(const std::vector<Bounds>& b); // any of these; -1: no test

  // Whose the points are: `lead` of the lane axes number rows; no step axes: the rest are the columns.
  void deal(const Deal& d, size_t lead) { deal_ = d, lead_ = lead; }

  int64_t lane_points() const { return lane_points_; }

  int64_t step_points() const { return step_points_; }

  void start(Machine& m, const int64_t* vars); // a new instance of the statement
  void block(int64_t from, int n);             // lanes from .. from + n
  void step(int64_t flat);                     // the flat fold step
  void finish();                               // after the steps: what is stored now is of the whole team

  int n() const { return n_; }

  Mask holds(int bounds, Mask mask);
  Mask holds_any(int any, Mask mask);
  // Evaluates `when`, then the values where it holds; returns that mask.
  Mask evaluate(Mask mask);

  const Reg& value(size_t k) const { return regs_[size_t(values_[k])]; }

  void load(int ref, Mask mask, Reg& into);
  void store(int ref, Mask mask, const Reg& from);
  void probe(int ref, Mask mask); // reports what a read would find outside, without reading

private:
  struct Linear {
    int64_t c = 0;
    std::vector<std::pair<Var, int64_t>> outer;
    std::vector<std::pair<int, int64_t>> lane, step; // axis, coefficient
    std::vector<std::pair<int, int64_t>> gathers;    // ref of the body, coefficient
    int64_t begin = 0, now = 0;                      // of this instance; of this fold step
    int64_t base[width];
  };

  struct Access {
    const Ref* ref = nullptr;
    int memory = 0, reg = -1, flat = -1; // flat: the whole address, when nothing is gathered
    std::vector<int> index;
    bool varies = false, safe = false, adds = false;
    Mask loaded = 0;
  };

  int linear(const Affine& a, const std::vector<std::pair<int, int64_t>>& gathers);
  int access(const Ref& r, bool operand);
  int64_t at(const Linear& x, int lane) const;
  void fetch(int operand, Mask want);
  Mask address(const Access& a, Mask mask, int64_t* at); // the lanes that lie inside
  void run(size_t from, size_t to, Mask mask);
  void assign(int64_t from, int n, int64_t column); // column -1: the point itself, or none
  void tell_outside(const Access& a, Mask beyond, const char* verb);
  void trouble(const Access& a, const Machine::Trouble& t);
  std::string place(const Access& a, int lane);

  const Kernel& kernel_;
  const int statement_;
  const Stmt& stmt_;
  const Body* body_;
  const int added_; // the operand that the statement adds to, or -1
  std::vector<TileAxis> lane_axes_, step_axes_;
  int64_t lane_points_ = 1, step_points_ = 1;
  std::vector<Linear> linears_;
  std::vector<Access> accesses_; // operands of the body first
  std::vector<std::vector<int>> bounds_;
  std::vector<std::vector<int>> anys_; // of bounds
  std::vector<int> guards_;            // of anys
  std::vector<Instr> code_;
  size_t when_end_ = 0;
  int when_ = -1;
  std::vector<int> values_;
  std::vector<Reg> regs_;
  std::vector<std::vector<int64_t>> coords_; // [lane axis][lane]
  std::vector<int64_t> step_at_;
  Deal deal_;
  size_t lead_ = 0;
  int64_t from_ = 0;
  Machine* machine_ = nullptr;
  const int64_t* vars_ = nullptr;
  int n_ = 0;
};

} // namespace tang::kernel
