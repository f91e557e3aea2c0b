// Seeded faults: each is found by the checker (C), the simulator's own tests (S) or the values it computes
// (V).
#include <gtest/gtest.h>

#include "kernel/samples.hpp"
#include "tang/kernel/check.hpp"

using namespace samples;

namespace {
struct Mutant {
  std::string name, found_by;  // exactly these
  Sample sample;
  std::function<void(Sample&)> change;
};
std::string found(const Sample& s) {
  std::string out;
  if (!problems(s.kernel).empty()) out += "C";
  std::vector<Buffer> b = s.buffers;
  Options o;
  o.order = Order::random;
  if (!simulate(s.kernel, b, o).clean()) out += "S";
  if (!differences(s, b).empty()) out += "V";
  return out;
}
template <class T>
T& at_(Block& b, size_t n) {
  return std::get<T>(b[n].node);
}
Kernel& kernel(Sample& s) { return s.kernel; }
Apply& apply_of(Sample& s, size_t n = 0) { return at_<Apply>(s.kernel.body, n); }
Fold& fold_of(Sample& s) { return at_<Fold>(s.kernel.body, 0); }
Pipeline& pipe_of(Sample& s) {
  for (auto& x : s.kernel.body)
    if (auto* p = std::get_if<Pipeline>(&x.node)) return *p;
  throw std::logic_error("no pipeline");
}
Var var_of(const Sample& s, const std::string& name) {
  for (size_t v = 0; v < s.kernel.vars.size(); ++v)
    if (s.kernel.vars[v] == name) return Var(v);
  throw std::logic_error("no variable " + name);
}
E component(Kernel& k, int n, Type t = Type::real) { return {k.pool.get(), k.pool->leaf(Op::var, t, n)}; }

std::vector<Mutant> mutants() {
  const auto m = monoids();
  return {
      {"bound off by one", "CS", map(), [](Sample& s) { apply_of(s).bounds[0].affine.c += 1; }},
      {"bound missing", "CS", map(), [](Sample& s) { apply_of(s).bounds.clear(); }},
      {"bound one too tight", "V", map(), [](Sample& s) { apply_of(s).bounds[0].affine.c -= 1; }},
      {"grid blocks overlap", "CS", map(), [](Sample& s) { kernel(s).grid[0].step = 32; }},
      {"grid too short", "V", map(), [](Sample& s) { kernel(s).grid[0].extent = 960; }},
      {"every workgroup writes one block", "CSV", map(),
       [](Sample& s) { apply_of(s).dst[0].index[0].affine = v(var_of(s, "i")); }},
      {"read shifted by one", "CSV", map(),
       [](Sample& s) { apply_of(s).body.refs[0].index[0].affine.c = 1; }},
      {"read backwards by one", "CSV", map(),
       [](Sample& s) { apply_of(s).body.refs[0].index[0].affine.c = -1; }},
      {"wrong coefficient", "CSV", map(),
       [](Sample& s) {
         apply_of(s).body.refs[0].index[0].affine = v(var_of(s, "i0")) + v(var_of(s, "i"), 2);
       }},
      {"destination read-only", "CSV", map(), [](Sample& s) { kernel(s).memories[1].access = Access::read; }},
      {"undefined variable", "CV", map(),
       [](Sample& s) {
         apply_of(s).body.refs[0].index[0].affine = v(kernel(s).fresh("z")) + v(var_of(s, "i"));
       }},
      {"a sum that starts at 1", "V", row_fold(m[0]),
       [](Sample& s) { fold_of(s).identity = {expr::real(1)}; }},
      {"a max that starts at 2", "V", row_fold(m[1]),
       [](Sample& s) { fold_of(s).identity = {expr::real(2)}; }},
      {"a column left out", "V", row_fold(m[0]), [](Sample& s) { fold_of(s).folded[0].extent -= 1; }},
      {"a column too many", "CS", row_fold(m[0]), [](Sample& s) { fold_of(s).folded[0].extent += 1; }},
      {"swapped coordinates", "CSV", row_fold(m[0]),
       [](Sample& s) { std::swap(fold_of(s).body.refs[0].index[0], fold_of(s).body.refs[0].index[1]); }},
      {"wrong stride", "V", row_fold(m[0]), [](Sample& s) { kernel(s).memories[0].strides[0] = 36; }},
      {"ties to the larger index", "V", row_fold(m[3]),
       [](Sample& s) {
         Kernel& k = kernel(s);
         const E first = component(k, 1) < component(k, 0);
         fold_of(s).combine[1] =
             expr::select(first, component(k, 2, Type::index), component(k, 3, Type::index)).id;
         std::fill(s.buffers[0].r.begin(), s.buffers[0].r.end(), 1.0);
         s.want[1].r.assign(21, 1.0);
         s.want[2].i.assign(21, 0);
       }},
      {"combine forgets to rescale", "V", row_fold(m[4]),
       [](Sample& s) { fold_of(s).combine[1] = (component(kernel(s), 2) + component(kernel(s), 3)).id; }},
      {"combine drops the left side", "V", row_fold(m[0]),
       [](Sample& s) { fold_of(s).combine[0] = component(kernel(s), 1).id; }},
      {"accumulates onto an output never written", "CSV", row_fold(m[0]),
       [](Sample& s) { fold_of(s).accumulate = true; }},
      {"fold rows unbounded", "CS", row_fold(m[5]), [](Sample& s) { fold_of(s).bounds.clear(); }},
      {"missing copy", "CSV", matmul(),
       [](Sample& s) { pipe_of(s).operands.erase(pipe_of(s).operands.begin()); }},
      {"accumulator not cleared", "CSV", matmul(),
       [](Sample& s) { kernel(s).body.erase(kernel(s).body.begin()); }},
      {"missing accumulate", "V", matmul(),
       [](Sample& s) { at_<Contract>(pipe_of(s).body, 0).accumulate = false; }},
      {"no zero fill beyond k", "S", matmul(),
       [](Sample& s) {
         for (size_t n : {0, 1}) at_<Apply>(pipe_of(s).operands, n).fill.clear();
       }},
      {"no zero fill beyond k, which is folded", "V", matmul(),
       [](Sample& s) {
         for (size_t n : {0, 1}) at_<Apply>(pipe_of(s).operands, n).fill.clear();
         at_<Contract>(pipe_of(s).body, 0).k_end.reset();
       }},
      {"k_end one too small", "SV", matmul(),
       [](Sample& s) { at_<Contract>(pipe_of(s).body, 0).k_end->c -= 1; }},
      {"tile filled transposed", "CSV", matmul(),
       [](Sample& s) {
         std::swap(at_<Apply>(pipe_of(s).operands, 0).dst[0].index[0],
                   at_<Apply>(pipe_of(s).operands, 0).dst[0].index[1]);
       }},
      {"accumulator rows overlap", "CV", matmul(), [](Sample& s) { kernel(s).memories[5].strides[0] = 15; }},
      {"panel walked across", "CV", matmul(),
       [](Sample& s) {
         at_<Contract>(pipe_of(s).body, 0).dst.index[1].affine = v(var_of(s, "q1")) + v(var_of(s, "j2"), 4);
       }},
      {"the tail block taken for full", "CS", matmul(),
       [](Sample& s) {
         pipe_of(s).segments[0].end = constant(32);
         pipe_of(s).segments[1].begin = constant(32);
       }},
      {"a segment ends inside a block", "CV", matmul(),
       [](Sample& s) {
         pipe_of(s).segments[0].end = constant(20);
         pipe_of(s).segments[1].begin = constant(20);
       }},
      {"first block skipped", "V", matmul(), [](Sample& s) { pipe_of(s).segments[0].begin = constant(8); }},
      {"a block folded twice", "V", matmul(), [](Sample& s) { pipe_of(s).segments[1].begin = constant(16); }},
      {"output column off by one block", "CS", matmul(), [](Sample& s) { kernel(s).grid[1].step = 8; }},
      {"accumulates in f16", "V", matmul(), [](Sample& s) { kernel(s).memories[5].format = Format::f16; }},
      {"stores rows beyond m", "CS", matmul(),
       [](Sample& s) { apply_of(s, 2).bounds.erase(apply_of(s, 2).bounds.begin()); }},
      {"diagonal block taken for full", "CSV", flash(),
       [](Sample& s) { pipe_of(s).segments[1].partial = false; }},
      {"mask off by one", "V", flash(),
       [](Sample& s) {
         for (size_t n : {1, 2, 3}) {
           if (auto* f = std::get_if<Fold>(&pipe_of(s).body[n].node); f && !f->partial.empty())
             f->partial[0][0].affine.c -= 1;
           if (auto* a = std::get_if<Apply>(&pipe_of(s).body[n].node); a && !a->partial.empty())
             a->partial[0][0].affine.c -= 1;
         }
       }},
      {"accumulator not rescaled", "V", flash(),
       [](Sample& s) { pipe_of(s).body.erase(pipe_of(s).body.begin() + 6); }},
      {"row sum not accumulated", "V", flash(),
       [](Sample& s) { at_<Fold>(pipe_of(s).body, 8).accumulate = false; }},
      {"no zero weight for hidden keys", "SV", flash(),
       [](Sample& s) { at_<Apply>(pipe_of(s).body, 3).fill.clear(); }},
      {"keys beyond the end copied", "CS", flash(),
       [](Sample& s) { at_<Apply>(pipe_of(s).operands, 0).partial.clear(); }},
      {"values copied from keys", "V", flash(),
       [](Sample& s) { at_<Apply>(pipe_of(s).operands, 1).body.refs[0].memory = 1; }},
      {"full blocks reach one too far", "V", flash(),
       [](Sample& s) { at_<Let>(kernel(s).body, 4).operands[0].c += 8; }},
      {"gather unchecked", "CS", gather(), [](Sample& s) { apply_of(s).body.refs[1].checked = false; }},
      {"gather off by one", "V", gather(),
       [](Sample& s) { apply_of(s).body.refs[1].index[0].affine.c += 1; }},
      {"scatter unbounded", "C", scatter(), [](Sample& s) { apply_of(s).bounds.resize(1); }},
      {"scatter to one place twice", "SV", scatter(),
       [](Sample& s) { s.buffers[0].i[31] = s.buffers[0].i[0]; }},
      {"limit off by one", "V", ragged(), [](Sample& s) { fold_of(s).limits[0].affine.c += 1; }},
      {"presence ignored", "V", ragged(), [](Sample& s) { apply_of(s, 2).body.when.reset(); }},
      {"a tile shifted in place", "CSV", matmul(),
       [](Sample& s) {
         Apply& a = apply_of(s, 2);
         Apply shift = a;
         shift.dst = {ref(5, {v(a.axes[0].var), v(a.axes[1].var)})};
         shift.body.refs = {ref(5, {v(a.axes[0].var), v(a.axes[1].var) + 1})};
         s.kernel.body.insert(s.kernel.body.begin() + 2, {shift});
       }},
      {"a destination without an axis", "CV", matmul(),
       [](Sample& s) { apply_of(s, 2).dst[0].index[1].affine = v(var_of(s, "j0")); }},
  };
}
}  // namespace

TEST(mutants, each_seeded_fault_is_found) {
  for (auto& m : mutants()) {
    ASSERT_EQ(found(m.sample), "") << m.name << ": the kernel before the change";
    Sample s = m.sample;
    s.kernel.pool = std::make_shared<Pool>(*s.kernel.pool);
    m.change(s);
    EXPECT_EQ(found(s), m.found_by) << m.name;
  }
}
