// Statements over the same row of columns that stand side by side, as one loop: some of it waits for memory while
// the rest computes.
#pragma once
#include <memory>

#include "tang/emit/c_body.hpp"

namespace tang::emit {

// One statement over one row of whole vectors, in pieces that a shared loop prints in turn. The loop has several
// vectors a round, each with a copy of the statement that is moved along the row.
class RowPass {
public:
  virtual ~RowPass() = default;
  virtual const TileAxis& axis() const = 0;
  virtual int ways() const = 0;    // independent chains along the row
  virtual BodyText& terms() = 0;   // level 0 is known outside the loop, level 1 along the row
  virtual void start() = 0;        // before the loop, once
  virtual void combine(int way, RowPass* before) = 0; // with what chain `way` has; `before`: of the vector before
  virtual void store() = 0;        // what an Apply writes
  virtual void after() = 0;
  virtual std::string value(size_t k) = 0; // of an Apply's destination k, a Fold's component k, when computed
};

// The pass of a statement, whose accumulators' names begin with `prefix`; none where it is not over one axis in
// whole vectors without a test.
std::unique_ptr<RowPass> row_pass(Unit& u, const kernel::Apply& a, const std::string& prefix);
std::unique_ptr<RowPass> row_pass(Unit& u, const kernel::Fold& f, const std::string& prefix);

// Prints a run of statements that begins at `b[at]` as one loop and returns how many there are; 0: no run.
size_t print_joint(Unit& u, const kernel::Block& b, size_t at);

} // namespace tang::emit
