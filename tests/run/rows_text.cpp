// What is printed for rows that workgroups share, for folds that only select, and for powers as polynomials.
#include <gtest/gtest.h>

#include "tang/models/attention.hpp"
#include "tang/models/softmax.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

namespace {
constexpr auto bf16 = ir::Format::bf16;

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string kernels(const std::string& unit) { return unit.substr(unit.find("extern \"C\"")); }

ir::Graph softmax(int64_t rows, int64_t columns) {
  ir::Builder b;
  b.output(models::softmax(b.input("x", {rows, columns}, bf16)), "y", bf16);
  return b.graph();
}

ir::Graph places(int64_t rows, int64_t columns, ir::Format f) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {rows, columns}, f);
  auto [i, j] = ir::axes<"i j">();
  b.output(ir::map({i}, ir::fold(ir::argmax(), j, {x(i, j), ir::iota(j)})[1]), "y");
  return b.graph();
}

ir::Graph first_eight(int64_t rows, int64_t columns) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {rows, columns}, bf16);
  auto [i, j] = ir::axes<"i j">();
  b.output(ir::map({i}, ir::top(8, j, x(i, j)).second[0]), "y");
  return b.graph();
}
} // namespace

TEST(rows_text, a_cluster_meets_once_a_fold_and_waits_before_it_writes_elsewhere) {
  const run::Derivation d = run::derive(softmax(33, 100003), run::cuda_options());
  ASSERT_EQ(d.kernels.kernels.size(), 1u);
  const std::string text = kernels(run::cuda_source(d));
  EXPECT_EQ(count(text, "__cluster_dims__(8, 1, 1)"), 1);
  EXPECT_EQ(count(text, "tang_meet_cluster();"), 2);
  EXPECT_EQ(count(text, "tang_cluster_arrives();"), 1);
  EXPECT_EQ(count(text, "tang_cluster_waits();"), 1);
  EXPECT_LT(text.find("tang_cluster_waits();"), text.find("tang_peer("));
  EXPECT_EQ(
      count(kernels(run::cuda_source(run::derive(softmax(4096, 4096), run::cuda_options()))), "cluster"), 0);
}

TEST(rows_text, pairs_that_are_selected_are_one_integer) {
  auto of = [](const ir::Graph& g) { return kernels(run::cuda_source(run::derive(g, run::cuda_options()))); };
  EXPECT_GT(count(of(first_eight(4096, 4096)), "tang_short_key("), 0);
  EXPECT_GT(count(of(places(4096, 4096, ir::Format::f32)), "= tang_key("), 0); // 32 bits of a value
  EXPECT_GT(count(of(first_eight(300, 70000)), "= tang_key("), 0); // more places than 16 bits have
}

TEST(rows_text, only_what_no_store_reaches_is_unaliased) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {64, 64}), gain = b.param("gain", {64});
  auto [i, j] = ir::axes<"i j">();
  b.output(ir::map({i, j}, x(i, j) * gain(j) * ir::recip(ir::sum(j, x(i, j)))), "y");
  const std::string text = kernels(run::cuda_source(run::derive(b.graph(), run::cuda_options())));
  EXPECT_EQ(count(text, "__restrict__"), 1); // y may lie where x was
}

TEST(rows_text, some_powers_are_polynomials_where_the_schedule_says_so) {
  ir::Builder b;
  ir::Tensor q = b.input("q", {1, 1, 128, 64}, bf16), k = b.input("k", {1, 1, 256, 64}, bf16),
             v = b.input("v", {1, 1, 256, 64}, bf16);
  b.output(models::attention(q, k, v, {}).out, "out", bf16);
  const run::Options o = run::hopper_options();
  run::Derivation d = run::derive(b.graph(), o);
  for (auto& l : d.kernels.kernels)
    if (l.roles) {
      EXPECT_EQ(count(kernels(run::cuda_source(d, o.target)), "tang_some_exp2<"), 0);
      l.roles->polynomial = 3;
      EXPECT_GT(count(kernels(run::cuda_source(d, o.target)), "tang_some_exp2<3>(e, "), 0);
      return;
    }
  FAIL() << "no kernel of roles";
}

TEST(rows_text, a_packed_tile_holds_values_of_its_format) {
  ir::Builder b; // operands in pieces: tiles of 16 bits that are made of 32
  const ir::Tensor q = b.input("q", {1, 2, 128, 64}), k = b.input("k", {1, 2, 128, 64}), v = b.input("v", {1, 2, 128, 64});
  b.output(models::attention(q, k, v, {}).out, "out");
  run::Options o = run::hopper_options();
  o.schedule.pieces = 2;
  const std::string text = kernels(run::cuda_source(run::derive(b.graph(), o), o.target));
  ASSERT_GT(count(text, "tang_keep_half("), 0);
  EXPECT_EQ(count(text, "tang_keep_half("), count(text, ", h);"));
  EXPECT_EQ(count(text, ", h);"), count(text, "h = tang_to_bf16("));
}
