// The same model as text and in the surface language is the same graph; and what the surface writes prints and reads back.
#include <gtest/gtest.h>

#include "tang/ir/monoids.hpp"
#include "tang/ir/recurrence.hpp"
#include "tang/text/text.hpp"
#include "text/files.hpp"

namespace {
using namespace tang;
using namespace tang::ir;

void check_same(const Graph& g, const std::string& source) {
  const std::string printed = text::print(g);
  const text::Reading again = text::read(printed, "printed.tang");
  ASSERT_TRUE(again.graph.has_value()) << text::render(again.problems, printed, "printed.tang") << printed;
  EXPECT_EQ(hash(*again.graph), hash(g)) << printed;
  EXPECT_EQ(text::print(*again.graph), printed);
  const text::Reading r = text::read(source, "model.tang");
  ASSERT_TRUE(r.graph.has_value()) << text::render(r.problems, source, "model.tang");
  EXPECT_EQ(hash(*r.graph), hash(g)) << "as text:\n" << text::print(*r.graph) << "\nin C++:\n" << printed;
}

TEST(SameGraph, causal_attention_with_a_soft_cap_in_one_expression) {
  Builder b;
  Extent n = b.symbol("n");
  Tensor q = b.input("q", {4, n, 64}, Format::f16), k = b.input("k", {4, n, 64}, Format::f16), v = b.input("v", {4, n, 32}, Format::f16);
  auto [h, i, c, j, d] = axes<"h i c j d">();
  Scalar score = masked(j <= i, 30 * tanh(sum(d, q(h, i, d) * k(h, j, d)) / 8 / 30));
  Scalar weight = exp(score - max(j, score));
  b.output(map({h, i, c}, ratio(sum(j, weight * v(h, j, c)), sum(j, weight))), "out", Format::bf16);
  check_same(b.graph(), R"(
sym n
input q[h: 4, i: n, d: 64] : f16
input k[h, j: n, d] : f16
input v[h, j, c: 32] : f16
out[h,i,c] = ratio(sum[j] exp((30 * tanh((sum[d] q[h,i,d] * k[h,j,d]) / 8 / 30) if j <= i) - max[j] (30 * tanh((sum[d] q[h,i,d] * k[h,j,d]) / 8 / 30) if j <= i)) * v[h,j,c],
                   sum[j] exp((30 * tanh((sum[d] q[h,i,d] * k[h,j,d]) / 8 / 30) if j <= i) - max[j] (30 * tanh((sum[d] q[h,i,d] * k[h,j,d]) / 8 / 30) if j <= i)))
output out : bf16
)");
}
TEST(SameGraph, prefix_and_window_masks_are_unions) {
  Builder b;
  Extent n = b.symbol("n", {0, 4096, 1});
  Tensor s = b.input("s", {n, n}), prefix = b.input("prefix", {}, Format::i32);
  auto [i, j] = axes<"i j">();
  b.output(map({i, j}, masked(j <= i && (i - j < 16 || j < Index(prefix())), s(i, j))), "y");
  check_same(b.graph(), "sym n <= 4096\ninput s[i: n, j: n]\ninput prefix : i32\ny[i,j] = s[i,j] if j <= i and (i - j < 16 or j < prefix)\noutput y\n");
}
TEST(SameGraph, padded_convolution_and_guarded_pooling) {
  Builder b;
  Tensor x = b.input("x", {2, 3, 16}), f = b.param("f", {8, 3, 3});
  auto [n, o] = axes<"n o">();
  Axis a = axis("a", Extent(16)), p = axis("p", Extent(8)), ci = axis("ci"), r = axis("r", Extent(3));
  Tensor y = map({n, o, a}, sum({ci, r}, x.at_or(0, {n, ci, a + r - 1}) * f(o, ci, r)) + 1);
  b.output(map({n, o, p}, max(r, masked(2 * Index(p) + r - 1 >= 0 && 2 * Index(p) + r - 1 < 16, y(n, o, 2 * Index(p) + r - 1)))), "pool");
  check_same(b.graph(), R"(
input x[n: 2, 3, 16]
param f[8, 3, 3]
axis r: 3
y[n,o,a: 16] = (sum[ci,r] (x[n,ci,a+r-1] else 0) * f[o,ci,r]) + 1
top[n,o,p: 8] = max[r] (y[n,o,2*p+r-1] if 2*p+r-1 >= 0 and 2*p+r-1 < 16)
pool[n,o,p: 8] = top[n,o,p]
output pool
)");
}
TEST(SameGraph, gathers_and_data_predicates) {
  Builder b;
  Tensor table = b.param("table", {100, 16}, Format::bf16), ids = b.input("ids", {8}, Format::i32), keep = b.input("keep", {8}, Format::boolean);
  auto [t, d] = axes<"t d">();
  b.output(map({t, d}, masked(keep(t), table(ids(t), d) * to_real(ids(t)))), "e");
  check_same(b.graph(), "param table[100, 16] : bf16\ninput ids[8] : i32\ninput keep[8] : bool\ne[t,d] = table[ids[t], d] * real(ids[t]) if keep[t]\noutput e\n");
}
TEST(SameGraph, a_paged_cache_splits_its_axis) {
  Builder b;
  Tensor pool = b.input("pool", {40, 8}), page = b.input("page", {4}, Format::i32);
  Axis so = axis("so", Extent(4)), si = axis("si", Extent(16)), d = axis("d");
  b.output(map_at({so, si, d}, {16 * Index(so) + si, d}, {Extent(60), Extent(8)},
                  masked(16 * Index(so) + si <= 59, masked(Index(page(so)) >= 0, pool(16 * Index(page(so)) + si, d)))), "kk");
  check_same(b.graph(), "input pool[40, 8]\ninput page[4] : i32\nkk[s: 60, d] = pool[page[s/16]*16 + s%16, d] if page[s/16] >= 0\noutput kk\n");
}
TEST(SameGraph, argmax_topk_welford_and_users_monoids) {
  Builder b;
  Tensor x = b.input("x", {4, 9});
  auto [r, c] = axes<"r c">();
  auto best = fold(argmax(), c, {x(r, c), iota(c)});
  auto [values, indices] = top(2, c, x(r, c));
  auto w = fold(welford(), c, {Scalar(1.0), x(r, c), Scalar(0.0)});
  Tensor count = map({r}, w[0]);  // the count has no point axes
  MonoidSpec affine{"affine", {expr::real(1), expr::real(0)}, [](Pool&, const std::vector<expr::E>& p, const std::vector<expr::E>& q) {
    return std::vector<expr::E>{p[0] * q[0], q[0] * p[1] + q[1]};
  }, false};
  auto a = fold(affine, c, {x(r, c), x(r, c)});
  b.output(map({r}, select(best[1] == index_literal(b, INT64_MAX), index_literal(b, -1), best[1])), "at");
  b.output(map({r}, values[0] - values[1]), "gap");
  b.output(map({r}, to_real(indices[1])), "second");
  b.output(map({r}, ratio(w[2], count(r)) + a[1]), "var");
  check_same(b.graph(), R"(
input x[r: 4, c: 9]
(best, where_best)[r] = fold argmax[c] (x[r,c], iota c)
(v1, v2, i1, i2)[r] = fold top2[c] (x[r,c], -inf, iota c, MAX)
(count_, mean, m2)[r] = fold welford[c] (1, x[r,c], 0)
monoid affine(k: real, o: real) identity (1, 0) ordered
  combine (p, q) = (p.k * q.k, q.k * p.o + q.o)
(k, o)[r] = fold affine[c] (x[r,c], x[r,c])
at[r] = select(equal(where_best[r], MAX), -1i, where_best[r])
gap[r] = v1[r] - v2[r]
second[r] = real(select(i2[r] == MAX, -1i, i2[r]))
var[r] = ratio(m2[r], count_[r]) + o[r]
output at, gap, second, var
)");
}
TEST(SameGraph, output_views_are_mixed_radix_coordinates) {
  Builder b;
  Tensor z = b.input("z", {6, 4}), g = b.param("g", {2, 3, 4});
  Axis half = axis("half", Extent(4));
  auto [p, c, r] = axes<"p c r">();
  b.output(map_at({half, p, c}, {2 * Index(half) + p, c}, {Extent(8), Extent(4)}, sum(r, z(half + r, c) * g(p, r, c))), "up");
  check_same(b.graph(), "input z[6, 4]\nparam g[2, 3, 4]\naxis i: 4\nup[2*i + p, c] = sum[r] z[i + r, c] * g[p,r,c]\noutput up\n");
}
TEST(SameGraph, every_function_of_the_surface) {
  Builder b;
  Tensor x = b.input("x", {8}), n = b.input("n", {8}, Format::i32), w = b.input("w", {8}, Format::u32);
  auto [i] = axes<"i">();
  Scalar a = x(i), k = n(i), u = w(i);
  std::vector<Scalar> reals{exp(a), exp2(a), log(a), log2(a), sqrt(a), sin(a), cos(a), tanh(a), sigmoid(a), silu(a), softplus(a), relu(a), erf(a),
                            gelu(a), gelu_tanh(a), elu(a), abs(a), floor(a), recip(a), square(a), max(a, Scalar(1)), min(a, Scalar(2)), atan2(a, Scalar(3)), ratio(a, a),
                            select(is_nan(a) || !(a < 1) || a >= 3 || a == 2, 1, a), to_real(k / 3 + k % 4), to_real(iota(i)), to_real(u), a - 1, 1 - a, a / 3, 3 / a, -a};
  int at = 0;
  for (auto& s : reals) b.output(map({i}, s), "y" + std::to_string(at++));
  b.output(map({i}, apply(Op::bit_or, {apply(Op::bit_and, {u, Scalar(3)}), apply(Op::shift_right, {u, to_bits(k)})})), "z0");
  b.output(map({i}, apply(Op::bit_xor, {k, apply(Op::shift_left, {k, Scalar(2)})})), "z1");
  const std::vector<std::string> terms{"exp(x[i])", "exp2(x[i])", "log(x[i])", "log2(x[i])", "sqrt(x[i])", "sin(x[i])", "cos(x[i])", "tanh(x[i])", "sigmoid x[i]", "silu x[i]", "softplus(x[i])",
                                       "relu(x[i])", "erf(x[i])", "gelu(x[i])", "gelu_tanh(x[i])", "elu(x[i])", "abs x[i]", "floor(x[i])", "recip(x[i])", "square(x[i])", "max(x[i], 1)",
                                       "min(x[i], 2)", "atan2(x[i], 3)", "ratio(x[i], x[i])", "select(is_nan(x[i]) or not x[i] < 1 or x[i] >= 3 or x[i] == 2, 1, x[i])", "real(n[i] / 3 + n[i] % 4)",
                                       "real(i)", "real(w[i])", "x[i] - 1", "1 - x[i]", "x[i] / 3", "3 / x[i]", "-x[i]"};
  std::string s = "input x[i: 8]\ninput n[i] : i32\ninput w[i] : u32\n";
  for (size_t t = 0; t < terms.size(); ++t) s += "y" + std::to_string(t) + "[i] = " + terms[t] + "\noutput y" + std::to_string(t) + "\n";
  s += "z0[i] = w[i] & 3 | w[i] >> bits(n[i])\nz1[i] = n[i] ^ n[i] << 2\noutput z0, z1\n";
  check_same(b.graph(), s);
}
TEST(SameGraph, a_gated_recurrence) {
  Builder b;
  Extent n = b.symbol("n");
  Tensor x = b.input("x", {n, 8}), w = b.param("w", {8, 8}), h0 = b.input("h0", {8});
  Axis t = axis("t", n), u = axis("u", Extent(8)), k = axis("k", Extent(8));
  Recurring options;
  options.reverse = true;
  options.live = t >= 2;
  Recurred r = recur(t, {carried("h", h0), carried("c", {Extent(8)})}, [&](const std::vector<Tensor>& old) -> Step {
    Tensor gate = map({u}, sigmoid(x(t, u) + sum(k, w(u, k) * old[0](k))));
    Tensor next = map({u}, gate(u) * old[0](u) + (1 - gate(u)) * tanh(old[1](u)));
    Tensor cell = map({u}, old[1](u) + to_real(iota(t)));
    return {{next, cell}, {Emitted(old[0])}};
  }, options);
  b.output(r.emits[0], "y");
  b.output(r.states[1], "last");
  check_same(b.graph(), R"(
sym n
input x[n, u: 8]
param w[u, k: 8]
input h0[u]
recur r over t: n down if t >= 2
  state h[u: 8] = h0[u]
  state c[u: 8]
  gate[u] = sigmoid(x[t,u] + sum[k] w[u,k] * h[k])
  next h[u] = gate[u] * h[u] + (1 - gate[u]) * tanh(c[u])
  next c[u] = c[u] + real(iota t)
  emit y[t,u] = h[u]
output y
output last = c
)");
}
TEST(SameGraph, a_store_into_a_donated_state) {
  Builder b;
  Tensor cache = b.state("cache", {32, 8}, Format::f16), row = b.input("row", {8}), pos = b.input("pos", {}, Format::i32);
  auto [t, d] = axes<"t d">();
  Tensor now = map({t, d}, select(as_scalar(Index(pos()) == Index(t), cache(t, d)), row(d), cache(t, d)), "cache");
  b.output(map({t, d}, now(t, d) * 2), "twice");
  b.output(now, "cache", Format::f16);
  Graph g = b.graph();
  std::swap(g.outputs[0], g.outputs[1]);
  check_same(canonical(g).graph, "state cache[32, d: 8] : f16\ninput row[d]\ninput pos : index\ncache[pos, d] := row[d]\ntwice[t,d] = cache[t,d] * 2\noutput twice\n");
}
TEST(SameGraph, symbolic_extents_and_splits_into_blocks) {
  Builder b;
  Extent n = b.symbol("n", {1, 1000, 1}), m = b.symbol("m", {0, INT64_MAX, 4});
  Tensor x = b.input("x", {n * m, ceil_div(n, 4), min(n, m) + Extent(2) * m});
  auto [a, c, e] = axes<"a c e">();
  b.output(map({a, c}, sum(e, x(a, c, e))), "y");
  check_same(b.graph(), "sym n >= 1 <= 1000, m % 4\ninput x[n*m, ceildiv(n, 4), min(n, m) + 2*m]\ns[a,c] = sum[e] x[a,c,e]\ny[a,c] = s[a,c]\noutput y\n");
}
TEST(Lines, a_line_that_is_one_fold_is_that_fold) {
  const Graph g = text::parse("input x[r: 4, c: 9]\ny[r] = sum[c] x[r,c]\noutput y\n", "t");
  ASSERT_EQ(g.nodes.size(), 2u);
  EXPECT_TRUE(g.nodes[1].comp()->monoid.has_value());
  EXPECT_EQ(g.nodes[1].name, "y");
}
TEST(Lines, a_masked_store_of_rows_solves_for_its_axis) {
  const Graph g = text::parse("state cache[32, d: 8]\ninput rows[k: 4, d]\ninput pos : index\ncache[pos + k, d] := rows[k,d]\n", "t");
  ASSERT_EQ(g.outputs.size(), 1u);
  EXPECT_EQ(g.outputs[0].name, "cache");
  const std::string p = text::print(g);
  EXPECT_NE(p.find("rows[i0 - pos, i1]"), std::string::npos) << p;
}
TEST(SameGraph, grouped_attention_with_a_distance_bias_and_logsumexp) {
  Builder b;
  Extent n = b.symbol("n"), m = b.symbol("m");
  Tensor q = b.input("q", {2, 4, n, 8}), k = b.input("k", {2, m, 8}), slope = b.param("slope", {2, 4});
  auto [g, r, i] = axes<"g r i">();
  auto [j, d] = axes<"j d">();
  Scalar score = sum(d, q(g, r, i, d) * k(g, j, d)) + slope(g, r) * to_real(iota(j - i));
  b.output(map({g, r, i}, logsumexp(j, masked(j - m <= i - n, score))), "lse");
  check_same(b.graph(), R"(
sym n, m
input q[g: 2, r: 4, i: n, d: 8]
input k[g, j: m, d]
param slope[g, r]
lse[g,r,i] = logsumexp[j] ((sum[d] q[g,r,i,d] * k[g,j,d]) + slope[g,r] * real(j - i) if j - m <= i - n)
output lse
)");
}
TEST(Lines, written_forms_read_print_and_read_back) {
  for (const char* s : {R"(# Two nested recurrences: rows of a table, each scanned.
sym n
input x[n, r: 6, u: 4]
input w[u, k: 4]
recur outer over s: 6
  state a[u: 4]
  recur inner over t: n down
    state h[u: 4] = a[u]
    next h[u] = tanh(h[u] + x[t, s, u] + sum[k] w[u,k] * a[k])
    emit y[t, u] = h[u]
  m[u] = max[q: 4] (h[q] if q <= u)
  next a[u] = m[u] + real(iota s)
  emit z[2*s + 1, u] = a[u]
output a, z
)", R"(input x[i: 8, c: 4]
state cache[32, d: 4]
input pos : index
y[i] = let (v, at) = fold argmax[c] (x[i,c], iota c), w = v * 2 in select(at == MAX, 0, w)
z[i] = logsumexp[c] x[i,c]
n[i] = count[c] (x[i,c] > 0)
some[i] = any[c] (c <= i and x[i,c] == 0)
e[i] = x[(iota i) * 3 % 8, 0]
b[i,c] = x[i,c] if not (i <= c or i == 3) else -1
output y, z, n, some, e, b
)", R"(input x[5]
near[i: 4] = x[i - 9007199254740993i] else 1
far[i: 4] = x[9007199254740995i - i] else 0
output far, near
)"}) {
    const text::Reading r = text::read(s, "t");
    ASSERT_TRUE(r.graph.has_value()) << text::render(r.problems, s, "t");
    const std::string p = text::print(*r.graph);
    const Graph again = text::parse(p, "printed.tang");
    EXPECT_EQ(hash(again), hash(*r.graph)) << p;
    EXPECT_EQ(text::print(again), p);
  }
}
TEST(Examples, parse_without_a_word_and_say_what_they_are) {
  const auto files = tests::files_in("examples", ".tang");
  ASSERT_GE(files.size(), 5u);
  for (auto& f : files) {
    const std::string s = tests::slurp(f);
    EXPECT_EQ(s.substr(0, 2), "# ") << f;
    const text::Reading r = text::read(s, f.string());
    ASSERT_TRUE(r.graph.has_value()) << text::render(r.problems, s, f.string());
    EXPECT_TRUE(r.warnings.empty()) << text::render(r.warnings, s, f.string());
    EXPECT_FALSE(r.graph->outputs.empty());
    const std::string printed = text::print(*r.graph);
    EXPECT_EQ(text::print(text::parse(printed, "printed.tang")), printed);
  }
}
TEST(Names, that_need_quotes_come_back) {
  Builder b;
  Tensor x = b.input("blk.0.attn \"q\"\n\xc3\xa9", {Extent::symbol("batch size")}), y = b.input("i0", {}), z = b.input("sum", {});
  b.symbol("batch size", {0, 8, 1});
  auto [i] = axes<"i">();
  b.output(map({i}, x(i) + y() + z()), "out put");
  const Graph g = b.graph();
  const std::string p = text::print(g);
  const Graph again = text::parse(p, "t");
  EXPECT_EQ(hash(again), hash(g)) << p;
  EXPECT_EQ(text::print(again), p);
}
}  // namespace
