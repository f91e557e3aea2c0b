// What misuse of the builders says: the whole message, with the caller's line.
#include <regex>

#include "models/data.hpp"
#include "tang/models/block.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/moe.hpp"
#include "tang/models/recurrent.hpp"

using namespace tang;
using namespace tang::models;

namespace {
// clang-format off: a use and its line stay together.
// The message of the Error that `use` throws on `line` of this file; HERE is that line, THERE any other one.
template <class F>
std::string said(int line, F use) {
  try {
    use();
  } catch (const Error& e) {
    const std::string here = "errors.cpp:" + std::to_string(line);
    EXPECT_EQ(tang::place(e.where()), here) << e.what();
    const std::string out = std::regex_replace(std::string(e.what()), std::regex(here + "\\b"), "HERE");
    return std::regex_replace(out, std::regex("errors\\.cpp:[0-9]+"), "THERE");
  }
  return "nothing was thrown";
}
}  // namespace
TEST(errors, layers) {
  Builder b;
  Tensor x = b.input("x", {2, 3}), w = b.param("w", {4, 5}), s = b.input("s", {}), bias = b.param("bias", {3}), w3 = b.param("w3", {4, 3});
  EXPECT_EQ(said(__LINE__, [&] { linear(x, w); }),
            "HERE: 'in' is 5 in w but was 3\n"
            "    x [_, in] is [2, 3]  at THERE\n"
            "    w [out, in] is [4, 5]  at THERE\n"
            "  fix: give both the same extent");
  EXPECT_EQ(said(__LINE__, [&] { linear(s, w); }),
            "HERE: a linear layer of a tensor without dimensions\n"
            "  fix: its last dimension holds the features");
  EXPECT_EQ(said(__LINE__, [&] { linear(x, w3, bias); }),
            "HERE: 'out' is 3 in bias but was 4\n"
            "    w [out, in] is [4, 3]  at THERE\n"
            "    bias [out] is [3]  at THERE\n"
            "  fix: give both the same extent");
  EXPECT_EQ(said(__LINE__, [&] { linear(x, Tensor{}); }),
            "HERE: w is no tensor\n"
            "  fix: pass an input, a param or a map of the builder");
  EXPECT_EQ(said(__LINE__, [&] { mlp(x, {}, relu); }),
            "HERE: an MLP without layers\n"
            "  fix: give it at least one layer");
  EXPECT_EQ(said(__LINE__, [&] { swiglu(x, w3, w3, w3); }),
            "HERE: 'm' is 4 in down but was 3\n"
            "    x [_, m] is [2, 3]  at THERE\n"
            "    down [m, f] is [4, 3]  at THERE\n"
            "  fix: give both the same extent");
  EXPECT_EQ(said(__LINE__, [&] { add(x, w); }),
            "HERE: 'dim0' is 4 in b but was 2\n"
            "    a [dim0, dim1] is [2, 3]  at THERE\n"
            "    b [dim0, dim1] is [4, 5]  at THERE\n"
            "  fix: give both the same extent");
}
TEST(errors, attention) {
  Builder b;
  Tensor q = b.input("q", {1, 2, 5, 4}), k = b.input("k", {1, 2, 6, 4}), v = b.input("v", {1, 2, 7, 4}), k3 = b.input("k3", {1, 2, 6, 3}), q3 = b.input("q3", {2, 5, 4}), real = b.input("real", {5, 6});
  auto with = [](Mask m) { AttentionOptions o; o.mask = m; return o; };
  auto changed = [](Change c) { AttentionOptions o; o.changes = {c}; return o; };
  AttentionOptions kept;
  kept.keep = real;
  EXPECT_EQ(said(__LINE__, [&] { attention(q3, k, k); }),
            "HERE: q is neither [batch, head, row, d] nor [batch, kv, group, row, d]\n"
            "    q3 is [2, 5, 4]  at THERE\n"
            "  fix: map it to one of those shapes first");
  EXPECT_EQ(said(__LINE__, [&] { attention(q, k, v); }),
            "HERE: 'key' is 7 in v but was 6\n"
            "    k [batch, head, key, d] is [1, 2, 6, 4]  at THERE\n"
            "    v [batch, head, key, c] is [1, 2, 7, 4]  at THERE\n"
            "  fix: give both the same extent");
  EXPECT_EQ(said(__LINE__, [&] { attention(q, k3, k3); }),
            "HERE: 'd' is 3 in k but was 4\n"
            "    q [batch, head, row, d] is [1, 2, 5, 4]  at THERE\n"
            "    k [batch, head, key, d] is [1, 2, 6, 3]  at THERE\n"
            "  fix: give both the same extent");
  EXPECT_EQ(said(__LINE__, [&] { attention(q, k, k, with(window(0))); }),
            "HERE: a window of 0 keys\n"
            "    the window counts the row itself\n"
            "  fix: give it at least one");
  EXPECT_EQ(said(__LINE__, [&] { attention(q, k, k, changed(soft_cap(0))); }),
            "HERE: a soft cap of 0\n"
            "  fix: it is positive");
  EXPECT_EQ(said(__LINE__, [&] { attention(q, k, k, kept); }),
            "HERE: keep holds real values\n"
            "    real is declared here  at THERE\n"
            "  fix: declare it with Format::boolean");
  EXPECT_EQ(said(__LINE__, [&] { attention(q, k, k, changed(alibi(real))); }),
            "HERE: slopes has 2 dimensions, not 1\n"
            "    slopes is [head]\n"
            "    real is [5, 6]  at THERE\n"
            "  fix: map it to a tensor of that rank first");
  EXPECT_EQ(said(__LINE__, [&] { attention(q, k, k, changed(relative_bias(b.param("table", {2, 2})))); }),
            "HERE: 2 buckets up to distance 128\n"
            "    table is [2, 2]  at HERE\n"
            "  fix: use at least 4 buckets, fewer than twice the distance");
  EXPECT_EQ(said(__LINE__, [&] { rope(b.input("odd", {3, 5})); }),
            "HERE: rope turns 5 of 5 features\n"
            "    odd is [3, 5]  at HERE\n"
            "  fix: features turn in pairs: an even number, at most d");
}
TEST(errors, convolution) {
  Builder b;
  Tensor x = b.input("x", {1, 4, 8, 8}), w = b.param("w", {6, 3, 3, 3}), w4 = b.param("w4", {6, 4, 9, 3}), w1 = b.param("w1", {6, 4, 3});
  EXPECT_EQ(said(__LINE__, [&] { conv2d(x, w); }),
            "HERE: w takes 3 channels a group, x has 4 in 1 groups\n"
            "    x is [1, 4, 8, 8]  at THERE\n"
            "    w is [6, 3, 3, 3]  at THERE\n"
            "  fix: w's channels are x's divided by groups, and groups divides the outputs");
  EXPECT_EQ(said(__LINE__, [&] { conv2d(x, w4); }),
            "HERE: the kernel is larger than the padded input in spatial dimension 0\n"
            "    input 8, pad 0, kernel 9, dilation 1  at THERE\n"
            "  fix: pad more, or use a smaller kernel or dilation");
  EXPECT_EQ(said(__LINE__, [&] { conv1d(x, w1); }),
            "HERE: conv1d of a tensor of rank 4\n"
            "    x is [1, 4, 8, 8]  at THERE\n"
            "  fix: it takes rank 3");
  EXPECT_EQ(said(__LINE__, [&] { conv2d(x, w, {}, {{0}}); }),
            "HERE: stride of 0\n"
            "  fix: it is at least 1");
  EXPECT_EQ(said(__LINE__, [&] { conv2d(x, w, {}, {{1, 1, 1}}); }),
            "HERE: stride has 3 entries\n"
            "    x has 2 spatial dimensions\n"
            "  fix: give one entry, or one a spatial dimension");
  EXPECT_EQ(said(__LINE__, [&] { max_pool(x, {{2}, {}, {2}}); }),
            "HERE: pad of 2 for a window of 2\n"
            "  fix: pad at most half the window, or a place would see padding only");
  EXPECT_EQ(said(__LINE__, [&] { group_norm(x, 3, {}, {}); }),
            "HERE: 3 groups of 4 channels\n"
            "    x is [1, 4, 8, 8]  at THERE\n"
            "  fix: the number of groups divides the channels");
  EXPECT_EQ(said(__LINE__, [&] { conv_transpose(x, b.param("wt", {4, 2, 3, 3}), {}, {{2}, {0}, {1}, {2}}); }),
            "HERE: output_pad of 2 with stride 2\n"
            "  fix: it is smaller than the stride or the dilation");
}
TEST(errors, indices) {
  Builder b;
  Tensor table = b.param("table", {10, 4}), ids = b.input("ids", {3}), logits = b.input("logits", {3, 10}), pos = b.input("pos", {});
  EXPECT_EQ(said(__LINE__, [&] { embedding(table, ids); }),
            "HERE: ids hold no index values\n"
            "    they number the rows of table  at THERE\n"
            "  fix: declare them with an integer format");
  EXPECT_EQ(said(__LINE__, [&] { cross_entropy(logits, ids); }),
            "HERE: target holds real values\n"
            "    ids is declared here  at THERE\n"
            "  fix: declare it with an integer format: class numbers");
  EXPECT_EQ(said(__LINE__, [&] { route(logits, 11); }),
            "HERE: the top 11 of 10 experts\n"
            "    logits is [3, 10]  at THERE\n"
            "  fix: route to at least one expert and at most all of them");
  EXPECT_EQ(said(__LINE__, [&] { append(b.state("cache", {8, 2, 4}), b.input("fresh", {2, 4}), pos); }),
            "HERE: pos holds real values\n"
            "    pos is declared here  at THERE\n"
            "  fix: declare it with an integer format");
}
TEST(errors, recurrent) {
  Builder b;
  Tensor x = b.input("x", {5, 1, 3}), h = b.input("h", {1, 4});
  Gru p;
  p.cell = {b.param("w", {8, 3}), b.param("u", {8, 4}), {}, {}};
  const Axis t = axis("t", Extent(5)), n = axis("n");
  EXPECT_EQ(said(__LINE__, [&] { gru(x, h, p); }),
            "HERE: a cell with 8 rows for 3 gates of 4\n"
            "    u is [8, 4]  at THERE\n"
            "  fix: its weights hold one block of rows a gate");
  EXPECT_EQ(said(__LINE__, [&] { recur(t, {carried("h", h)}, [&](const std::vector<Tensor>& old) -> Step { return {{map({n}, old[0](0, n))}, {}}; }); }),
            "HERE: the next state 'h' has shape [4] of real\n"
            "    the state has [1, 4] of real  at HERE\n"
            "    the next one  at HERE\n"
            "  fix: give the step's result the state's shape");
  EXPECT_EQ(said(__LINE__, [&] { recur(t, {carried("h", h)}, [&](const std::vector<Tensor>&) -> Step { return {{}, {}}; }); }),
            "HERE: the step gives 0 next states for 1 states\n"
            "  fix: give one a state, in their order");
  EXPECT_EQ(said(__LINE__, [&] { recur(axis("late"), {carried("h", h)}, [&](const std::vector<Tensor>& old) -> Step { return {{old[0]}, {}}; }); }),
            "HERE: axis 'late' indexes no tensor, so it has no extent\n"
            "  fix: declare it: axis(\"late\", extent)");
}
TEST(errors, blocks) {
  Builder b;
  Tensor x = b.input("x", {1, 5, 12});
  BlockSize z;
  z.model = 12, z.heads = 4, z.kv_heads = 3, z.head = 3, z.hidden = 8;
  EXPECT_EQ(said(__LINE__, [&] { block(x, block_weights(b, "w", z), z); }),
            "HERE: 4 heads over 3 key heads\n"
            "  fix: the key heads divide the heads");
  EXPECT_EQ(said(__LINE__, [&] { gpt_block(x, {}, {12, 5}); }),
            "HERE: 5 heads in a model of 12\n"
            "  fix: the heads divide the model's width");
}
TEST(errors, surface) {
  Builder b;
  Tensor x = b.input("x", {2, 3, 4}), y = b.input("y", {5});
  const Axis i = axis("i"), j = axis("j"), k = axis("k");
  EXPECT_EQ(said(__LINE__, [&] { x(i, j); }),
            "HERE: x is read with 2 coordinates\n"
            "    x has 3 dimensions: [2, 3, 4]  at THERE\n"
            "  fix: give one coordinate a dimension");
  EXPECT_EQ(said(__LINE__, [&] { map({i, j}, x(i, j, k)); }),
            "HERE: axis 'k' is free here\n"
            "    the result has only the axes it names\n"
            "  fix: add it to the result's axes, or fold over it");
  EXPECT_EQ(said(__LINE__, [&] { const Scalar first = x(i, j, k); sum(i, first * y(i)); }),
            "HERE: axis 'i' has two extents\n"
            "    2  from x, dimension 0  at THERE\n"
            "    5  from y, dimension 0  at HERE\n"
            "  fix: slice the longer one, or use two axes");
  EXPECT_EQ(said(__LINE__, [&] { map({axis("alone")}, x(0, 0, 0)); }),
            "HERE: axis 'alone' indexes no tensor, so it has no extent\n"
            "  fix: declare it: axis(\"alone\", extent)");
  EXPECT_EQ(said(__LINE__, [&] { b.input("x", {2, 3, 4}); }),
            "HERE: two inputs are called 'x'\n"
            "    the first one  at THERE\n"
            "  fix: give each input its own name");
  EXPECT_EQ(said(__LINE__, [&] { b.output(x, "o"), b.output(x, "o"); }),
            "HERE: two outputs are called 'o'\n"
            "  fix: give each output its own name");
}
