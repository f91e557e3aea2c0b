// Gradients of attention's variants in tensor form: equal to the oracle, role programs equal to their kernels,
// and no block of the loop visited in which nothing lives.
#include "backward/tensor_roles.hpp"
#include "tang/grad/surface.hpp"
#include "tang/models/attention.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;
using namespace tang::test;

namespace {
constexpr auto bf16 = ir::Format::bf16;
constexpr int64_t rows = 456, heads = 2, d = 16, prefix = 130, documents[] = {0, 20, 30, rows};

struct Case {
  ir::Graph graph;
  eval::Inputs inputs;
  std::function<bool(int64_t, int64_t)> live; // of a row and a key
};

int64_t document(int64_t i) {
  return std::upper_bound(std::begin(documents), std::end(documents), i) - std::begin(documents);
}

Case variant(const std::string& what) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {1, heads, rows, d}, bf16), k = b.input("k", {1, heads, rows, d}, bf16),
             v = b.input("v", {1, heads, rows, d}, bf16), bias;
  models::AttentionOptions o;
  Case c;
  c.live = [](int64_t, int64_t) { return true; };
  std::vector<ir::Tensor> of{q, k, v};
  if (what == "prefix") {
    o.mask = models::causal() || models::prefix(prefix);
    c.live = [](int64_t i, int64_t j) { return j <= i || j < prefix; };
  }
  if (what == "document") {
    ir::Tensor start = b.input("start", {1, rows}, ir::Format::i32),
               end = b.input("end", {1, rows}, ir::Format::i32);
    o.mask = models::causal() && models::key_range(start, end);
    c.live = [](int64_t i, int64_t j) { return j <= i && document(i) == document(j); };
    std::vector<int64_t> first, last;
    for (int64_t i = 0; i < rows; ++i)
      first.push_back(documents[document(i) - 1]), last.push_back(documents[document(i)]);
    c.inputs = {{"start", eval::indices({1, rows}, first)}, {"end", eval::indices({1, rows}, last)}};
  }
  if (what == "softcap") o.changes.push_back(models::soft_cap(2));
  if (what == "bias") {
    bias = b.input("bias", {8, heads});
    o.changes.push_back(models::relative_bias(bias, {64, true}));
    of.push_back(bias);
  }
  const auto a = models::attention(q, k, v, o);
  const ir::Tensor dout = b.input("dout", a.out.shape(), bf16);
  const auto g = diff::vjp(a.out, dout, of);
  b.output(a.out, "out", bf16);
  b.output(g[0], "dq", bf16), b.output(g[1], "dk", bf16), b.output(g[2], "dv", bf16);
  if (what == "bias") b.output(g[3], "dbias");
  c.graph = b.graph();
  c.inputs = random_inputs(c.graph, c.inputs);
  for (auto& n : c.graph.nodes)
    if (auto* x = n.input(); x && expr::type_of(x->format) == expr::Type::real)
      for (double& r : c.inputs[n.name].r) r = ir::rounded(2 * r, x->format);
  return c;
}

// The values of a kernel's Lets in the workgroup whose grid variables are given.
std::map<kernel::Var, int64_t> lets(const kernel::Kernel& k, std::map<kernel::Var, int64_t> at,
                                    const std::vector<kernel::Buffer>& globals) {
  auto value = [&](const kernel::Affine& a) {
    int64_t out = a.c;
    for (auto& [v, c] : a.terms) out += c * at.at(v);
    return out;
  };
  for (auto& s : k.body)
    if (auto* l = std::get_if<kernel::Let>(&s.node)) {
      std::vector<int64_t> x;
      for (auto& o : l->operands) x.push_back(value(o));
      if (l->kind == kernel::Let::load) {
        int64_t place = 0;
        const kernel::Memory& m = k.memories[size_t(l->ref.memory)];
        for (size_t i = 0; i < m.strides.size(); ++i) place += m.strides[i] * value(l->ref.index[i].affine);
        at[l->var] = globals[size_t(l->ref.memory)].i[size_t(place)];
      } else if (l->kind == kernel::Let::floor_div) {
        at[l->var] = int64_t(std::floor(double(x[0]) / double(l->divisor)));
      } else {
        at[l->var] = l->kind == kernel::Let::max ? *std::max_element(x.begin(), x.end())
                                                 : *std::min_element(x.begin(), x.end());
      }
    }
  return at;
}

// Each block of rows visits the blocks from the first with a live pair to the last, and tests no pair in the
// blocks of the full segment, where all live.
void expect_trips(const lower::Lowered& l, const std::vector<kernel::Buffer>& globals,
                  const std::function<bool(int64_t row, int64_t term)>& live) {
  const kernel::Pipeline* pipe = nullptr;
  for (auto& s : l.kernel.body)
    if (auto* p = std::get_if<kernel::Pipeline>(&s.node)) pipe = p;
  ASSERT_TRUE(pipe);
  const auto grid = std::find_if(l.kernel.grid.begin(), l.kernel.grid.end(), [](auto& g) { return g.extent == rows; });
  ASSERT_NE(grid, l.kernel.grid.end());
  int full = 0;
  for (int64_t row = 0; row < rows; row += grid->step) {
    std::map<kernel::Var, int64_t> at;
    for (auto& g : l.kernel.grid) at[g.var] = 0;
    at[grid->var] = row;
    at = lets(l.kernel, at, globals);
    auto value = [&](const kernel::Affine& a) {
      int64_t out = a.c;
      for (auto& [v, c] : a.terms) out += c * at.at(v);
      return out;
    };
    int64_t first = rows, last = -1;
    for (int64_t i = row; i < std::min(rows, row + grid->step); ++i)
      for (int64_t j = 0; j < rows; ++j)
        if (live(i, j)) first = std::min(first, j), last = std::max(last, j);
    EXPECT_EQ(value(pipe->segments.front().begin), first / pipe->step * pipe->step) << l.label << " at " << row;
    EXPECT_EQ(value(pipe->segments.back().end), (last / pipe->step + 1) * pipe->step) << l.label << " at " << row;
    for (auto& s : pipe->segments)
      for (int64_t b = value(s.begin); b < value(s.end) && !s.partial; b += pipe->step, ++full)
        for (int64_t i = row; i < std::min(rows, row + grid->step); ++i)
          for (int64_t j = b; j < b + pipe->step; ++j)
            ASSERT_TRUE(j < rows && live(i, j)) << l.label << " at " << row << ": " << i << ", " << j;
  }
  EXPECT_GT(full, 0) << l.label << " visits blocks in which all pairs live";
}
} // namespace

TEST(tensor_masks, gradients_of_variants_equal_the_oracle_and_visit_what_lives) {
  for (const std::string what : {"prefix", "document", "softcap", "bias"}) {
    const Case c = variant(what);
    const auto program = run::derive(c.graph, run::hopper_options());
    int kernels = 0;
    auto got = simulate(
        {program.plan, program.kernels}, c.inputs, kernel::Order::reverse,
        [&](const lower::Lowered& l, const std::vector<kernel::Buffer>& globals) {
          if (!l.roles) return;
          ++kernels;
          const bool across = l.label.find("dk") != std::string::npos || l.label.find("dv") != std::string::npos;
          if (what == "prefix" || what == "document")
            expect_trips(l, globals, [&](int64_t i, int64_t j) { return across ? c.live(j, i) : c.live(i, j); });
          if ((across && what != "prefix") || l.label.find("dbias") != std::string::npos) expect_roles(l, *l.roles, globals);
        });
    // Forward, dq, dk with dv, and the sums of a bias's rows.
    EXPECT_EQ(kernels, what == "bias" ? 4 : 3) << what << "\n" << plan::print(program.plan);
    for (auto& [name, raw] : eval::run(c.graph, c.inputs)) {
      const eval::Array a = filled(raw);
      double top = 0, off = 0;
      for (size_t x = 0; x < a.r.size(); ++x)
        top = std::max(top, std::abs(a.r[x])),
        off = std::max(off, std::isnan(got[name].r[x]) ? 1e9 : std::abs(got[name].r[x] - a.r[x]));
      EXPECT_LE(off, 1.2e-2 * top) << what << " " << name;
    }
  }
}

// What is dear in the weights of two sums is evaluated by one statement.
TEST(tensor_masks, weights_that_share_functions_are_made_together) {
  const auto program = run::derive(variant("softcap").graph, run::hopper_options());
  for (auto& l : program.kernels.kernels) {
    if (l.label.find("dk") == std::string::npos) continue;
    const std::string text = kernel::print(l.kernel);
    size_t recips = 0;
    for (size_t at = text.find("recip("); at != std::string::npos; at = text.find("recip(", at + 1)) ++recips;
    EXPECT_EQ(recips, 1u) << text;
  }
}
