// A Contract on the host: operands gathered once into dense arrays, then plain loops.
#pragma once
#include "tang/kernel/points.hpp"

namespace tang::kernel {

class Contraction {
 public:
  Contraction(const Kernel& k, int statement, const Stmt& s, const Contract& x, bool full);
  void run(Machine& m, const int64_t* vars);

 private:
  // The operand over two flat axes, `live` points only; others are 0, and must lie inside when it `probes`.
   void gather(Machine& m, Points& p, int ref, int memory, int64_t rows, int64_t columns, int64_t live_rows, int64_t live_columns,
               bool probes, std::vector<double>& out);
   void deal(Machine& m, int64_t from, int n) const;  // the lanes of points of dst
   int64_t limit(const std::optional<Affine>& end, int64_t all, const int64_t* vars) const;
   bool adds(double a, double b) const {  // a 0 for a term that is not there adds nothing
     return !(dead_a_ && a == 0) && !(dead_b_ && b == 0);
   }
   void check_tail(Machine& m, int64_t rows, int64_t terms, int64_t columns, int64_t from);

   const Kernel& kernel_;
   const int statement_;
   const Stmt& stmt_;
   const Contract& node_;
  const bool dead_a_, dead_b_;
   int64_t m_ = 1, n_ = 1, k_ = 1;
   Points a_, b_, d_;
   int ra_, rb_, rd_;
   std::vector<double> dense_a_, dense_b_, dense_d_; // [m, k], [k, n], [m, n]
};

}  // namespace tang::kernel
