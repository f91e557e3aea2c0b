// Folds over elements of 16 bits as they lie in registers, two in each, in CUDA. The largest of such numbers, made wider, is
// the largest of the wider ones, so that it is found before anything is converted.
#pragma once
#include <memory>

#include "tang/emit/gpu_walk.hpp"
#include "tang/kernel/selection.hpp"

namespace tang::emit {

// A lane's elements of one read of a body: two to a word, run by run.
class Halves {
public:
  // Nothing where they are no runs of 16 bits. Of a run that was loaded, or of a register tile.
  static std::optional<Halves> of(const Walk& w, int64_t ref);

  std::string words() const;                    // of the run at hand
  std::string type() const;                     // bf16 or f16
  std::string float_of(const std::string& h) const; // an element's value
  // h, and the largest (or the least) of a run, two results side by side.
  std::string extreme(bool largest, const std::string& h) const;
  std::string infinity(bool largest) const;     // the identity of that, twice
  std::string joined(bool largest, const std::string& h) const; // the two results as one value

private:
  Halves(const Walk& w, int64_t ref) : w_(&w), ref_(ref) {}

  const Memory& memory() const { return w_->u.memory(w_->body.refs[size_t(ref_)].memory); }

  const Walk* w_;
  int64_t ref_;
};

// A maximum or minimum of what lies so.
class FoldHalves {
public:
  static std::optional<FoldHalves> of(const Walk& w, const kernel::Fold& f);

  void start() const;                      // declares the state
  void run() const;                        // joins the run at hand
  void finish(const std::string& acc) const; // joins the state to `acc`

private:
  FoldHalves(const Walk& w, Halves h, bool largest) : w_(&w), h_(h), largest_(largest) {}

  const Walk* w_;
  Halves h_;
  bool largest_;
};

// The first of the pairs (value, place) in the order of kernel::Selection, for one pair: the extreme value of the team's
// row, then the least place that has it, looked for only in runs that hold it.
class FoldPlaces {
public:
  // `probe`: after refuses_lanes.
  static std::unique_ptr<FoldPlaces> of(Walk& w, const kernel::Fold& f, const BodyText& probe);

  void print(const std::string& row); // `row`: a test of the row, or empty
  std::string stored(size_t component) const;

private:
  FoldPlaces(Walk& w, const kernel::Fold& f, kernel::Selection s, Halves h, int64_t ref)
      : w_(w), f_(f), s_(std::move(s)), h_(h), ref_(ref) {}

  bool is_loaded() const { return !w_.in_registers(f_.body.refs[size_t(ref_)].memory); }

  int open_runs(const std::string& row, BodyText& t, bool load); // how many blocks
  void values(const std::string& row);
  void places(const std::string& row);
  void settle(const std::string& name, const std::string& of);

  Walk& w_;
  const kernel::Fold& f_;
  kernel::Selection s_;
  Halves h_;
  int64_t ref_;
};

} // namespace tang::emit
