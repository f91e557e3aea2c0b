// Groups in tensor form: chosen by structure, equal to the oracle in the simulator, refused with a reason.
#include <algorithm>
#include <array>

#include "lower/role_programs.hpp"

using namespace tang;
using namespace tang::test;

namespace {
// Softmax attention written out: keys j of rows i, masked by `live`.
ir::Graph flash(int64_t heads, int64_t rows, int64_t keys, int64_t d, int mask) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {heads, rows, d}, bf16), k = b.input("k", {heads, keys, d}, bf16),
             v = b.input("v", {heads, keys, d}, bf16);
  auto [h, i, j, c, e] = ir::axes<"h i j c e">();
  ir::Scalar s = ir::sum(c, q(h, i, c) * k(h, j, c)) * 0.125;
  if (mask >= 1) s = ir::masked(j <= i, s);
  if (mask >= 2) s = ir::masked(ir::Index(i) < ir::Index(j) + 40, s);
  ir::Scalar w = ir::exp(s - ir::max(j, s)), l = ir::sum(j, w);
  b.output(ir::map({h, i, e}, ir::ratio(ir::sum(j, w * v(h, j, e)), l)), "out", bf16);
  return b.graph();
}

// Two sums over rows i whose weights are made of two contractions of a block and of numbers a row.
ir::Graph weighed(int64_t heads, int64_t rows, int64_t keys, int64_t d, bool causal) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {heads, rows, d}, bf16), k = b.input("k", {heads, keys, d}, bf16),
             v = b.input("v", {heads, keys, d}, bf16), o = b.input("o", {heads, rows, d}, bf16);
  ir::Tensor top = b.input("top", {heads, rows}), flow = b.input("flow", {heads, rows});
  auto [h, i, j, c, e] = ir::axes<"h i j c e">();
  const ir::Scalar s = ir::sum(c, q(h, i, c) * k(h, j, c)) * 0.125, t = ir::sum(e, o(h, i, e) * v(h, j, e));
  ir::Scalar w = ir::exp(s - top(h, i));
  if (causal) w = ir::masked(j <= i, w);
  b.output(ir::map({h, j, e}, ir::sum(i, w * o(h, i, e))), "dv", bf16);
  b.output(ir::map({h, j, c}, ir::sum(i, w * (t - flow(h, i)) * q(h, i, c))), "dk", bf16);
  return b.graph();
}

void expect_tensor(const ir::Graph& g, const std::string& schedule = "") {
  const Derived d = derive(g, {}, warpgroups_alone());
  ASSERT_EQ(d.program.kernels.size(), 1u);
  const lower::Lowered& l = d.program.kernels[0];
  ASSERT_TRUE(l.roles) << l.refused;
  EXPECT_NE(l.schedule.find(schedule), std::string::npos) << l.schedule;
  const eval::Inputs in = rounded_inputs(g);
  auto got = simulate(d, in);
  const auto want = eval::run(g, in);
  // bf16 results: one rounding of 2^-9, and the weights' own 2^-9 averaged over the keys.
  for (auto& [name, raw] : want) {
    const eval::Array a = filled(raw);
    double top = 0, off = 0;
    for (size_t x = 0; x < a.r.size(); ++x)
      top = std::max(top, std::abs(a.r[x])),
      off = std::max(off, std::isnan(got[name].r[x]) ? 1e9 : std::abs(got[name].r[x] - a.r[x]));
    EXPECT_LE(off, 8e-3 * top) << name << "\n" << kernel::print(l.kernel);
  }
}

std::string refusal(const ir::Graph& g) {
  const Derived d = derive(g, {}, warpgroups_alone());
  std::string why;
  for (auto& l : d.program.kernels) why += l.roles ? "tensor" : l.refused;
  return why;
}
} // namespace

TEST(tensor, matrix_products_in_every_transpose) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) expect_tensor(matmul(136, 200, 88, ta, tb), "roles");
}

// 8-bit operands are rows of terms, 32 of them an instruction; others are laid out so first.
TEST(tensor, products_of_8_bit_floats) {
  for (int64_t k : {208, 48})
    expect_tensor(matmul(136, 200, k, false, true, ir::Format::e4m3, bf16), "roles");
  const Roles r = roles(matmul(136, 72, 272, false, true, ir::Format::e5m2, bf16));
  EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
  const ir::Graph apart = matmul(64, 72, 144, false, false, ir::Format::e4m3, bf16);
  const Derived d = derive(apart, {}, warpgroups_alone());
  ASSERT_EQ(d.program.kernels.size(), 2u); // its columns lie apart
  const eval::Inputs in = rounded_inputs(apart);
  auto got = simulate(d, in);
  EXPECT_LT(eval::difference(got["out"], filled(eval::run(apart, in).at("out"))), 8e-3);
}

// Sums of 8-bit integers are exact; a scale is applied where they became real.
TEST(tensor, products_of_8_bit_integers) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {136, 160}, ir::Format::i8), y = b.input("y", {72, 160}, ir::Format::i8),
             s = b.input("s", {136});
  auto [i, j, k] = ir::axes<"i j k">();
  b.output(ir::map({i, j}, ir::sum(k, ir::to_real(x(i, k)) * ir::to_real(y(j, k))) * s(i)), "out", bf16);
  const ir::Graph g = b.graph();
  const Derived d = derive(g, {}, warpgroups_alone());
  ASSERT_EQ(d.program.kernels.size(), 1u);
  ASSERT_TRUE(d.program.kernels[0].roles) << d.program.kernels[0].refused;
  eval::Inputs in;
  std::mt19937_64 rng(3);
  for (auto [name, rows] : {std::pair("x", 136), {"y", 72}}) {
    std::vector<int64_t> v(size_t(rows * 160));
    for (int64_t& e : v) e = int64_t(rng() % 255) - 127;
    in[name] = eval::indices({rows, 160}, v);
  }
  in = random_inputs(g, in);
  auto got = simulate(d, in);
  EXPECT_LT(eval::difference(got["out"], filled(eval::run(g, in).at("out"))), 8e-3);
  auto p = kernel::expand_roles(d.program.kernels[0].kernel, *d.program.kernels[0].roles);
  ASSERT_TRUE(bool(p)) << p.why();
  Roles r{*p, buffers(d, d.program.kernels[0], in), {}};
  r.want = r.before;
  EXPECT_TRUE(kernel::simulate(d.program.kernels[0].kernel, r.want).clean());
  EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
  target::Roles other = *d.program.kernels[0].roles;
  other.lag = 0;
  const auto refused = kernel::expand_roles(d.program.kernels[0].kernel, other);
  EXPECT_EQ(refused ? "" : refused.why(), "integers are summed in the loop of one sum");
}

// Bias, activation and residual are read where the product's fragments are.
TEST(tensor, maps_of_a_product_run_on_its_fragments) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{136, 200}, {70, 45}}) {
    ir::Builder b;
    ir::Tensor x = b.input("x", {m, 64}, bf16), w = b.input("w", {n, 64}, bf16), c = b.input("c", {n}),
               r = b.input("r", {m, n}, bf16);
    auto [i, j, k] = ir::axes<"i j k">();
    b.output(ir::map({i, j}, ir::relu(ir::sum(k, x(i, k) * w(j, k)) + c(j)) + r(i, j)), "out", bf16);
    expect_tensor(b.graph());
    const Roles p = roles(b.graph());
    EXPECT_EQ(trouble(p.program, p.before, p.want, 2), "");
  }
}

// Images [n, y, x, c] with zeros around them, a filter [o, r, s, c]; bias, activation and residual where
// told.
ir::Graph conv(std::array<int64_t, 4> x, int64_t outs, int64_t taps, int64_t stride, bool mapped = false) {
  ir::Builder b;
  ir::Tensor image = b.input("x", {x[0], x[1], x[2], x[3]}, bf16),
             w = b.input("w", {outs, taps, taps, x[3]}, bf16);
  auto places = [&](int64_t in) { return (in + taps / 2 * 2 - taps) / stride + 1; };
  const ir::Axis n = ir::axis("n", ir::Extent(x[0])), u = ir::axis("u", ir::Extent(places(x[1]))),
                 v = ir::axis("v", ir::Extent(places(x[2]))), o = ir::axis("o", ir::Extent(outs)),
                 r = ir::axis("r", ir::Extent(taps)), s = ir::axis("s", ir::Extent(taps)),
                 c = ir::axis("c", ir::Extent(x[3]));
  auto at = [&](ir::Axis place, ir::Axis tap) {
    return stride * ir::Index(place) + ir::Index(tap) - taps / 2;
  };
  ir::Scalar y = ir::sum({c, r, s}, image.at_or(0.0, {n, at(u, r), at(v, s), c}) * w(o, r, s, c));
  if (mapped)
    y = ir::relu(y + b.input("bias", {outs})(o)) +
        b.input("old", {x[0], places(x[1]), places(x[2]), outs}, bf16)(n, u, v, o);
  b.output(ir::map({n, u, v, o}, y), "out", bf16);
  return b.graph();
}

// The rows' operand is the image itself, a box a tap; what a copy reads outside is the padding.
TEST(tensor, convolutions_copy_boxes_of_the_image) {
  const std::vector<ir::Graph> all{conv({2, 9, 10, 64}, 72, 3, 1), conv({4, 14, 14, 40}, 64, 3, 2),
                                   conv({3, 7, 7, 136}, 32, 1, 1), conv({1, 20, 6, 16}, 24, 5, 1, true),
                                   conv({8, 4, 4, 24}, 80, 1, 2, true)};
  for (auto& g : all) {
    expect_tensor(g, "roles");
    const Roles r = roles(g);
    size_t boxes = 0;
    for (auto& m : r.program.maps)
      boxes += m.box.size() == 4 && m.box[3] > 1 && m.box[0] * m.box[1] * m.box[2] > 1;
    EXPECT_GE(boxes, 2u);
    EXPECT_EQ(trouble(r.program, r.before, r.want, 3), "");
  }
}

// A batch of short products fills blocks of rows with several of its elements.
TEST(tensor, rows_of_a_batch_share_a_block) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {12, 20, 64}, bf16), w = b.input("w", {48, 64}, bf16);
  auto [n, i, j, k] = ir::axes<"n i j k">();
  b.output(ir::map({n, i, j}, ir::sum(k, x(n, i, k) * w(j, k))), "out", bf16);
  const ir::Graph g = b.graph();
  expect_tensor(g, "roles");
  const Roles r = roles(g);
  EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
  EXPECT_GT(r.program.maps[0].box[0], 1);
}

// Two sums of one block and what is made of both: each has a ring and fragments of its own.
TEST(tensor, several_sums_of_a_block) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{8, 64, 256}, {136, 200, 88}}) {
    ir::Builder b;
    ir::Tensor x = b.input("x", {m, k}, bf16), g = b.input("g", {n, k}, bf16), u = b.input("u", {n, k}, bf16);
    auto [i, j, l] = ir::axes<"i j l">();
    const ir::Scalar gate = ir::sum(l, x(i, l) * g(j, l)), up = ir::sum(l, x(i, l) * u(j, l));
    b.output(ir::map({i, j}, gate / (1.0 + ir::exp(-gate)) * up), "out", bf16);
    expect_tensor(b.graph(), "roles");
    const Roles p = roles(b.graph());
    EXPECT_EQ(trouble(p.program, p.before, p.want, 2), "");
  }
}

TEST(tensor, online_softmax_in_blocks) {
  for (int mask : {0, 1, 2}) expect_tensor(flash(1, 200, 200, 32, mask));
  expect_tensor(flash(1, 136, 72, 16, 1)); // rows beyond the keys
}

// Keys as rows: both sums in one kernel, each score once, what is made of it alone once, tails and masks.
TEST(tensor, sums_weighed_by_contractions_of_a_block) {
  for (bool causal : {false, true}) expect_tensor(weighed(2, 200, 136, 32, causal));
  const Derived d = derive(weighed(1, 256, 256, 64, false), {}, warpgroups_alone());
  ASSERT_EQ(d.program.kernels.size(), 1u);
  const std::string text = kernel::print(d.program.kernels[0].kernel);
  size_t exponentials = 0;
  for (size_t at = 0; (at = text.find("exp2(", at)) != std::string::npos; ++at) ++exponentials;
  EXPECT_EQ(exponentials, 1u) << text;
}

// Terms that are left out though they exist are no padding.
TEST(tensor, a_mask_inside_an_array_is_no_padding) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {64, 64}, bf16), w = b.input("w", {64, 64}, bf16);
  auto [i, j, k] = ir::axes<"i j k">();
  b.output(ir::map({i, j}, ir::sum(k, ir::masked(ir::Index(i) + ir::Index(k) < 70, x(i, k) * w(j, k)))),
           "out", bf16);
  EXPECT_EQ(refusal(b.graph()), "its domain masks single products");
}

TEST(tensor, what_does_not_suit_says_why) {
  EXPECT_EQ(refusal(matmul(64, 64, 64, false, false, ir::Format::f32)), "an operand is f32");
  ir::Builder b;
  ir::Tensor x = b.input("x", {64, 64}, bf16);
  auto [i, j] = ir::axes<"i j">();
  b.output(ir::map({i}, ir::sum(j, x(i, j))), "rows", bf16);
  EXPECT_EQ(refusal(b.graph()), "its result is no contraction");
}

// Rows of 60 and 90 bytes: no bulk copy can address them, so that they are laid out anew; few blocks split
// their loops.
TEST(tensor, operands_are_laid_out_and_loops_are_split_where_that_helps) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{40, 45, 30}, {64, 64, 1024}, {8, 128, 2000}}) {
    const ir::Graph g = matmul(m, n, k, false, m == 40);
    const Derived d = derive(g, {}, warpgroups_alone());
    EXPECT_EQ(d.program.kernels.size(), m == 40 ? 3u : 1u);
    const eval::Inputs in = rounded_inputs(g);
    auto got = simulate(d, in);
    const auto want = eval::run(g, in);
    EXPECT_LT(eval::difference(got["out"], filled(want.at("out"))), 8e-3);
  }
}

// Tiles of 32 columns beside each other: a bulk copy of 64 would overwrite the neighbour.
TEST(tensor, narrow_tiles_leave_their_neighbours_alone) {
  const Roles r = roles(matmul(64, 264, 136, false, true));
  EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
}

// Sums over parts of a row: terms beyond a part belong to the next one.
TEST(tensor, a_ragged_block_of_terms_does_not_reach_into_a_neighbour) {
  ir::Builder b;
  ir::Tensor x = b.input("a", {64, 80}, bf16), y = b.input("b", {64, 80}, bf16);
  auto [i, j] = ir::axes<"i j">();
  const ir::Axis part = ir::axis("p", ir::Extent(2)), term = ir::axis("l", ir::Extent(40));
  auto at = [&] { return 40 * ir::Index(part) + ir::Index(term); };
  b.output(ir::map({part, i, j}, ir::sum(term, x(i, at()) * y(j, at()))), "out", bf16);
  const ir::Graph g = b.graph();
  const Derived d = derive(g, {}, warpgroups_alone());
  const eval::Inputs in = rounded_inputs(g);
  auto got = simulate(d, in);
  EXPECT_LT(eval::difference(got["out"], filled(eval::run(g, in).at("out"))), 8e-3);
}

TEST(tensor, rows_that_do_not_exist_are_not_copied) {
  const Roles r = roles(matmul(4, 64, 256, false, true));
  bool short_box = false;
  for (auto& m : r.program.maps) short_box |= m.box.front() == 4;
  EXPECT_TRUE(short_box);
  for (auto& ring : r.program.rings) EXPECT_LT(ring.arrives, ring.bytes);
  EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
  // Rows of terms are 0 where there are none, and are copied whole.
  const Roles terms = roles(matmul(64, 64, 40, true, false));
  EXPECT_EQ(trouble(terms.program, terms.before, terms.want, 4), "");
}

TEST(tensor, three_teams_share_the_columns_of_a_block) {
  const ir::Graph g = matmul(200, 264, 136, false, true);
  const Derived d = derive(g, {}, warpgroups_alone());
  schedule::Schedule s;
  auto& f = s.groups[schedule::key(*d.plan.graph, d.plan.steps[0].group.members[0].node)];
  f.roles.emplace();
  f.roles->math = 3, f.roles->stages = {3}, f.roles->order = target::WorkOrder::grouped;
  f.roles->producer_registers = 32, f.roles->math_registers = 160;
  f.tile = {{0, 192}, {1, 256}, {2, 64}};
  const Roles r = roles(g, 1, s);
  EXPECT_EQ(r.program.fields.math, 3);
  EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
}

TEST(tensor, parts_of_a_loop_join_in_order) {
  const Roles r = roles(matmul(8, 64, 1024, false, true), 4);
  EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
}

TEST(tensor, role_programs_do_what_their_kernels_say) {
  for (auto& g : {matmul(136, 200, 200, false, true), matmul(136, 200, 200, true, false),
                  flash(1, 200, 200, 32, 0), flash(1, 200, 200, 32, 2), flash(1, 136, 72, 16, 1),
                  weighed(2, 200, 136, 32, true), weighed(3, 384, 128, 16, false)}) {
    const Roles r = roles(g);
    EXPECT_EQ(trouble(r.program, r.before, r.want, 4), "");
  }
}

// Each wait, release, advance, arming, finish and settling left out; each release one window early or late;
// each wait for a contraction one contraction short: some order of events must show it.
TEST(tensor, no_mutant_of_a_role_program_survives) {
  namespace role = kernel::role;
  for (auto& g : {matmul(128, 256, 648, false, true), flash(5, 128, 384, 16, 0)}) {
    const Roles r = roles(g);
    int mutants = 0;
    std::vector<std::string> left;
    for (int kind = 0; kind < 3; ++kind)
      each_mutant(
          r.program,
          [&](role::Stmt& at) -> std::string {
            auto& s = at.node;
            const bool drops = std::get_if<role::Await>(&s) || std::get_if<role::Release>(&s) ||
                               std::get_if<role::Advance>(&s) || std::get_if<role::Arm>(&s) ||
                               std::get_if<role::Finish>(&s) || std::get_if<role::Settle>(&s);
            const std::string dropped = "drop " + std::to_string(s.index());
            if (kind == 0 && drops) return s = role::Meet{}, dropped;
            if (auto* x = std::get_if<role::Release>(&s); x && kind == 1) return --x->back, "early release";
            if (auto* x = std::get_if<role::Finish>(&s); x && kind == 2) return ++x->left, "short finish";
            return "";
          },
          [&](const role::Program& p, const std::string& what) {
            ++mutants;
            if (trouble(p, r.before, r.want, 12).empty()) left.push_back(what);
          });
    EXPECT_GT(mutants, 8);
    // Skewed: the first block of scores and the rows' operand of the next block of work wait for slots that
    // the waits for the last weights' slot imply to be free.
    EXPECT_LE(left.size(), r.program.fields.skew ? 2u : 0u);
    for (auto& l : left) EXPECT_EQ(l.substr(0, 6), "drop 0") << l;
  }
}

TEST(tensor, rings_registers_and_memory_are_checked_before_anything_is_compiled) {
  const Derived d = derive(matmul(1024, 4096, 64, false, true), {}, warpgroups_alone());
  const lower::Lowered& l = d.program.kernels.at(0);
  ASSERT_TRUE(l.roles);
  auto why = [&](auto change) {
    target::Roles f = *l.roles;
    change(f);
    auto p = kernel::expand_roles(l.kernel, f);
    return p ? std::string() : p.why();
  };
  EXPECT_EQ(why([](auto&) {}), "");
  // 384 threads: floor(65536 / 384 / 8) * 8 = 168 registers a thread, 3 * 168 = 504 of a warpgroup's; 32 + 2
  // * 240 = 512.
  EXPECT_EQ(why([](auto& f) { f.producer_registers = 32; }),
            "the roles ask for more registers than the launch has");
  EXPECT_EQ(why([](auto& f) { f.math = 3; }), "blocks have 128 rows for 3 warpgroups of 64");
  EXPECT_EQ(why([](auto& f) { f.stages = {12}; }).substr(0, 8), "it needs");
  EXPECT_EQ(why([](auto& f) { f.stages = {}; }), "the schedule names no ring depth for contraction 0");
  EXPECT_EQ(why([](auto& f) { f.skew = 1; }), "skew is between two contractions with rings");
}
