// A body as straight-line code over lanes: one register a term, evaluated for a block of points at a time.
#pragma once
#include <memory>
#include <vector>

#include "tang/eval/array.hpp"

namespace tang::eval {

inline constexpr int lanes = 64;

struct Reg {
  double r[lanes];
  int64_t i[lanes];
  uint8_t s[lanes]; // State; meaningful only when the tape says that the register may be partial
};

template <class R, class I> struct LanesOf {
  R* r;
  I* i;
};

using LaneValues = LanesOf<double, int64_t>;
using LaneOperands = LanesOf<const double, const int64_t>;

// d = op(a, b) lane by lane; operands of the type `type`, all present. Not for leaves, select, only, or_else.
void compute_lanes(expr::Op op, Type type, LaneOperands a, LaneOperands b, LaneValues d, int n);

// Where a node's reads come from, bound to the arrays of this run.
struct Source {
  const Array* array = nullptr;
  std::vector<int64_t> strides;
};

class Tape {
public:
  // Registers for the terms of `roots` in `comp`; reads and guards are part of the tape.
  Tape(const ir::Graph& g, const ir::Comp& comp, const std::vector<ir::Id>& roots, bool with_domain);

  // A run over blocks: set the point coordinates of `count` lanes, then evaluate at fold coordinates.
  struct Run {
    const Tape& tape;
    std::vector<Source> sources; // one an arg
    std::vector<Reg> regs;
    std::vector<std::vector<int64_t>> coords; // [axis][lane]; fold axes hold one value
    std::vector<int64_t> fold_at;             // by fold axis
    std::vector<std::vector<int64_t>> base;   // [form][lane]: the part of each form that the points fix
    std::vector<std::vector<int64_t>>
        flat; // [arg][lane]: the same of the address, for reads that are in range
    int count = 0;

    // How the addresses of a block's lanes lie, for a read that is in range: one element, neighbours, or
    // neither.
    enum class Lie : uint8_t { same, neighbours, scattered };

    std::vector<char> in_range;
    std::vector<Lie> lie; // by arg
    // By register, for a block: one value for all lanes, which is computed once; and such a value that
    // something reads lane by lane.
    std::vector<char> uniform, spread;
    Run(const Tape& t, std::vector<Source> sources);
    void set_points(); // after `coords` and `count` changed; evaluates what no fold coordinate changes
    // At fold_at: first whether the points live, then the bodies.
    bool evaluate_domain(); // any lane alive?
    void evaluate();        // the rest

    // sums[lane] += the first root, for every fold coordinate in order; false, with nothing done: it is no
    // product of reads that exist in every term.
    bool add_products(double* sums, const std::vector<int64_t>& folds);

    int width(int reg) const { return uniform[size_t(reg)] ? 1 : count; }

    const Reg& root(size_t k) const { return regs[size_t(tape.roots_[k])]; }

    bool partial(size_t root) const { return may_be_partial[size_t(tape.roots_[root])]; }

    bool one_for_all(size_t root) const { return uniform[size_t(tape.roots_[root])]; }

    const Reg& live() const { return regs[size_t(tape.domain_)]; } // boolean: the node's domain holds

    bool live_varies() const { return tape.varies_[size_t(tape.domain_)]; } // between terms of one point

    bool live_for_all() const { return uniform[size_t(tape.domain_)]; }

    std::vector<char> may_be_partial;

  private:
    struct Operand;
    bool find_operands(std::vector<Operand>& out) const;
    void add_terms(std::vector<Operand>& operands, double* sums, int64_t first, int64_t terms, int width);
    void find_uniform();
    bool alive() const; // any lane, by the register of the domain
    bool alive_ = true; // the same where no fold coordinate changes it
  };

private:
  struct FormCode {
    int64_t c = 0;
    std::vector<std::pair<int, int64_t>> points, folds; // (axis, k); folds relative to the first fold axis
    std::vector<std::pair<int, int64_t>> regs;          // (register of an index read, k)
  };

  struct Instr {
    expr::Op op;
    Type in, out;
    int dst, a = -1, b = -1, c = -1;
    double r = 0;
    int64_t whole = 0;
    std::vector<int> forms;               // arg: one a dimension
    std::vector<std::vector<int>> pieces; // holds: forms of each conjunction
  };

  void emit(Instr in);
  int form(const ir::Form& f);
  int read(int arg);
  int guard(const ir::Domain& d);

  int reg() { return registers_++; }

  void evaluate(Run& run, const Instr& in) const;
  void evaluate_read(Run& run, const Instr& in) const;
  void evaluate_far_read(Run& run, const Instr& in) const;
  void evaluate_choice(Run& run, const Instr& in) const;
  void evaluate_op(Run& run, const Instr& in) const;
  void evaluate_holds(Run& run, const Instr& in) const;
  int64_t form_at(const Run& run, int form, int lane, uint8_t& state) const;

  const ir::Graph& g_;
  const ir::Comp& comp_;
  std::vector<Instr> code_;
  std::vector<FormCode> forms_;
  std::vector<int> read_reg_;
  std::vector<int> roots_;
  std::vector<char> varies_; // by register: it depends on a fold coordinate
  int domain_ = -1;
  size_t domain_end_ = 0; // instructions that the domain needs
  int registers_ = 0;
  friend struct Run;
};

} // namespace tang::eval
