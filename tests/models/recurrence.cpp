// Recurrences: the surface of ir::Recur and the cells written with it, against plain loops.
#include "models/data.hpp"
#include "tang/models/recurrent.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
const ir::Recur* recurrence(const Graph& g) {
  for (auto& n : g.nodes)
    if (auto* r = n.recur()) return r;
  return nullptr;
}
} // namespace

TEST(recurrence, running_sum_with_final_state_and_emits) {
  for (bool reverse : {false, true}) {
    Builder b;
    Tensor x = b.input("x", {4, 2});
    auto [t, u] = axes<"t u">();
    const Recurred r = recur(t, {carried("s", {2})},
                             [&, t = t, u = u](const std::vector<Tensor>& old) -> Step {
                               const Tensor next = map({u}, old[0](u) + x(t, u));
                               return {{next}, {next, old[0]}};
                             },
                             {reverse, {}});
    b.output(r.states[0], "last");
    b.output(r.emits[0], "all");
    b.output(r.emits[1], "before");
    const Graph g = b.graph();
    ir::validate(g);
    auto out = eval::run(g, {{"x", eval::reals({4, 2}, {1, 10, 2, 20, 3, 30, 4, 40})}});
    EXPECT_EQ(out["last"].r, (std::vector<double>{10, 100}));
    EXPECT_EQ(out["all"].r, reverse ? (std::vector<double>{10, 100, 9, 90, 7, 70, 4, 40})
                                    : (std::vector<double>{1, 10, 3, 30, 6, 60, 10, 100}));
    EXPECT_EQ(out["before"].r[0], reverse ? 9 : 0);
    EXPECT_EQ(recurrence(g)->steps.value(), 4); // inferred from x(t, u)
    EXPECT_EQ(recurrence(g)->args.size(), 1u);
  }
}

TEST(recurrence, reads_are_cut_to_what_a_time_needs) {
  Builder b;
  Tensor x = b.input("x", {6, 3}), y = b.input("y", {12}), w = b.input("w", {3, 3});
  const Axis t = axis("t", Extent(6)), u = axis("u", Extent(3)), k = axis("k", Extent(3)),
             i = axis("i", Extent(2));
  const Recurred r = recur(t, {carried("s", {3})}, [&](const std::vector<Tensor>& old) -> Step {
    const Scalar mirrored = x(Index(5) - t, u), chunk = sum(i, y(2 * Index(t) + i)),
                 moved = sum(k, w(u, k) * old[0](k));
    return {{map({u}, mirrored + chunk + 0.5 * moved + to_real(iota(t)))}, {}};
  });
  b.output(r.states[0], "last");
  const Graph g = b.graph();
  const ir::Recur& n = *recurrence(g);
  ASSERT_EQ(n.args.size(), 3u);
  std::map<std::string, std::string> shapes;
  for (auto& a : n.args) shapes[(*n.step)[a.in].name] = models::text(n.step->shape({a.in, 0}));
  EXPECT_EQ(shapes["x"], "[3]");    // one row, counted backwards
  EXPECT_EQ(shapes["y"], "[2]");    // a window of two
  EXPECT_EQ(shapes["w"], "[3, 3]"); // the same at every time
  const Array xs = test::u(1, {6, 3}), ys = test::u(2, {12}), ws = test::u(3, {3, 3});
  std::vector<double> s(3, 0);
  for (int at = 0; at < 6; ++at) {
    std::vector<double> next(3);
    for (size_t o = 0; o < 3; ++o) {
      double m = 0;
      for (size_t c = 0; c < 3; ++c) m += ws.r[o * 3 + c] * s[c];
      next[o] = xs.r[size_t(5 - at) * 3 + o] + ys.r[size_t(2 * at)] + ys.r[size_t(2 * at + 1)] + 0.5 * m + at;
    }
    s = next;
  }
  expect_near(value(g, {{"x", xs}, {"y", ys}, {"w", ws}}, "last"), s, 1e-12);
}

TEST(recurrence, a_guard_on_time_reads_the_row_before) {
  Builder b;
  Tensor x = b.input("x", {4});
  const Axis t = axis("t");
  const Recurred r =
      recur(t, {carried("s", std::vector<Extent>{})}, [&](const std::vector<Tensor>& old) -> Step {
        return {{map({}, old[0]() + x(t) * x.at_or(100.0, {Index(t) - Index(1)}))}, {}};
      });
  b.output(r.states[0], "last");
  EXPECT_EQ(value(b.graph(), {{"x", eval::reals({4}, {1, 2, 3, 4})}}, "last").r[0], 100 + 2 + 6 + 12);
}

TEST(recurrence, reading_outside_in_a_step_is_a_fault) {
  Builder b;
  Tensor x = b.input("x", {4});
  const Axis t = axis("t", Extent(4));
  const Recurred r =
      recur(t, {carried("s", std::vector<Extent>{})}, [&](const std::vector<Tensor>& old) -> Step {
        return {{map({}, old[0]() + x(Index(t) + Index(1)))}, {}};
      });
  b.output(r.states[0], "last");
  EXPECT_THROW(value(b.graph(), {{"x", filled({4}, 1)}}, "last"), Error);
}

TEST(recurrence, live_keeps_the_state_and_emits_nothing) {
  Builder b;
  Tensor x = b.input("x", {5});
  const Axis t = axis("t");
  const Recurred r = recur(t, {carried("s", std::vector<Extent>{})},
                           [&](const std::vector<Tensor>& old) -> Step {
                             const Tensor next = map({}, old[0]() + x(t));
                             return {{next}, {next}};
                           },
                           {false, t >= Index(1) && t < Index(4)});
  b.output(r.states[0], "last");
  b.output(r.emits[0], "all");
  auto out = eval::run(b.graph(), {{"x", eval::reals({5}, {1, 2, 3, 4, 5})}});
  EXPECT_EQ(out["last"].r[0], 9);
  EXPECT_EQ(out["all"].at(0).state, expr::State::absent);
  EXPECT_EQ(out["all"].at(3).r, 9);
}

TEST(recurrence, emits_at_a_view_of_time_and_dimensions) {
  Builder b;
  Tensor x = b.input("x", {3, 2});
  const Axis t = axis("t"), i = axis("i", Extent(2));
  const Recurred r = recur(t, {carried("s", {2})}, [&](const std::vector<Tensor>& old) -> Step {
    const Tensor next = map({i}, old[0](i) + x(t, i));
    return {{next}, {{next, {i}, {2 * Index(t) + i}, {6}}}};
  });
  b.output(r.emits[0], "flat");
  EXPECT_EQ(value(b.graph(), {{"x", filled({3, 2}, 1)}}, "flat").r, (std::vector<double>{1, 1, 2, 2, 3, 3}));
}

TEST(recurrence, recurrences_nest_and_read_through_both_borders) {
  Builder b;
  Tensor x = b.input("x", {3, 4}), w = b.input("w", {2});
  const Axis t = axis("t"), n = axis("n"), u = axis("u", Extent(2));
  const Recurred outer = recur(t, {carried("s", {2})}, [&](const std::vector<Tensor>& s) -> Step {
    const Recurred inner = recur(n, {carried("r", s[0])}, [&](const std::vector<Tensor>& r) -> Step {
      return {{map({u}, r[0](u) + x(t, n) * w(u) + to_real(iota(t)))}, {}};
    });
    return {{inner.states[0]}, {}};
  });
  b.output(outer.states[0], "last");
  const Array out = value(
      b.graph(),
      {{"x", eval::reals({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})}, {"w", eval::reals({2}, {1, 2})}},
      "last");
  EXPECT_EQ(out.r, (std::vector<double>{78 + 12, 156 + 12}));
}

TEST(recurrence, a_step_may_gather_by_its_state) {
  Builder b;
  Tensor next_of = b.input("next_of", {5}, Format::i32), start = b.input("start", {}, Format::i32);
  const Axis t = axis("t", Extent(4));
  const Recurred r = recur(t, {carried("at", start)}, [&](const std::vector<Tensor>& old) -> Step {
    const Tensor next = map({}, next_of(old[0]()));
    return {{next}, {next}};
  });
  b.output(r.emits[0], "path");
  EXPECT_EQ(value(b.graph(),
                  {{"next_of", eval::indices({5}, {3, 0, 1, 4, 2})}, {"start", eval::indices({}, {0})}},
                  "path")
                .i,
            (std::vector<int64_t>{3, 4, 2, 1}));
}

TEST(recurrence, zero_steps_leave_the_initial_state) {
  Builder b;
  Tensor x = b.input("x", {0}), h0 = b.input("h0", {});
  const Axis t = axis("t");
  const Recurred r = recur(t, {carried("s", h0)}, [&](const std::vector<Tensor>& old) -> Step {
    return {{map({}, old[0]() + x(t))}, {}};
  });
  b.output(r.states[0], "last");
  EXPECT_EQ(value(b.graph(), {{"x", filled({0}, 1)}, {"h0", eval::reals({}, {7})}}, "last").r[0], 7);
}

TEST(recurrence, the_step_does_not_depend_on_the_order_in_which_reads_were_written) {
  auto made = [](bool swapped) {
    Builder b;
    Tensor x = b.input("x", {3}), y = b.input("y", {3});
    const Axis t = axis("t");
    const Recurred r =
        recur(t, {carried("s", std::vector<Extent>{})}, [&](const std::vector<Tensor>& old) -> Step {
          Scalar first = swapped ? y(t) : x(t), second = swapped ? x(t) : y(t);
          return {{map({}, old[0]() + first * second)}, {}};
        });
    b.output(r.states[0], "last");
    return ir::hash(b.graph());
  };
  EXPECT_EQ(made(false), made(true));
}

TEST(recurrence, symbolic_lengths_are_bound_later) {
  Builder b;
  const Extent n = b.symbol("n");
  Tensor x = b.input("x", {n});
  const Axis t = axis("t");
  const Recurred r =
      recur(t, {carried("s", std::vector<Extent>{})}, [&](const std::vector<Tensor>& old) -> Step {
        return {{map({}, old[0]() + x(t))}, {}};
      });
  b.output(r.states[0], "last");
  const Graph g = ir::bind(b.graph(), {{"n", 3}}).graph;
  EXPECT_EQ(value(g, {{"x", filled({3}, 2)}}, "last").r[0], 6);
}

// ---- cells
// --------------------------------------------------------------------------------------------------------
namespace {
double sigma(double x) { return 1 / (1 + std::exp(-x)); }
} // namespace

TEST(cells, gru_over_time_equals_cell_by_cell_and_a_loop) {
  constexpr int64_t T = 5, B = 2, I = 3, H = 4;
  for (bool after : {false, true})
    for (auto layout : {Layout::out_in, Layout::in_out}) {
      const bool oi = layout == Layout::out_in;
      const Array x = u(1, {T, B, I}), h0 = u(2, {B, H}),
                  w = u(3, oi ? std::vector<int64_t>{3 * H, I} : std::vector<int64_t>{I, 3 * H}),
                  v = u(4, oi ? std::vector<int64_t>{3 * H, H} : std::vector<int64_t>{H, 3 * H}),
                  c = u(5, {3 * H}), d = u(6, {3 * H});
      Builder b;
      Gru p;
      p.reset_after = after;
      p.cell = {b.param("w", oi ? std::vector<Extent>{3 * H, I} : std::vector<Extent>{I, 3 * H}),
                b.param("u", oi ? std::vector<Extent>{3 * H, H} : std::vector<Extent>{H, 3 * H}),
                b.param("c", {3 * H}), b.param("d", {3 * H}), layout};
      const Sequence s = gru(b.input("x", {T, B, I}), b.input("h0", {B, H}), p);
      b.output(s.all, "all");
      b.output(s.last, "last");
      auto out = eval::run(b.graph(), {{"x", x}, {"h0", h0}, {"w", w}, {"u", v}, {"c", c}, {"d", d}});
      std::vector<double> h = h0.r;
      for (int64_t t = 0; t < T; ++t) {
        std::vector<double> next(size_t(B * H));
        for (int64_t n = 0; n < B; ++n) {
          auto wx = [&](int64_t row) {
            double a = c.r[size_t(row)];
            for (int64_t k = 0; k < I; ++k)
              a += w.r[size_t(oi ? row * I + k : k * 3 * H + row)] * x.r[size_t((t * B + n) * I + k)];
            return a;
          };
          auto uh = [&](int64_t row, const std::vector<double>& s_) {
            double a = d.r[size_t(row)];
            for (int64_t k = 0; k < H; ++k)
              a += v.r[size_t(oi ? row * H + k : k * 3 * H + row)] * s_[size_t(k)];
            return a;
          };
          std::vector<double> old(h.begin() + n * H, h.begin() + (n + 1) * H), reset = old;
          for (int64_t o = 0; o < H; ++o) reset[size_t(o)] *= sigma(wx(H + o) + uh(H + o, old));
          for (int64_t o = 0; o < H; ++o) {
            const double z = sigma(wx(o) + uh(o, old)), r = sigma(wx(H + o) + uh(H + o, old));
            const double cand =
                std::tanh(wx(2 * H + o) + (after ? r * uh(2 * H + o, old) : uh(2 * H + o, reset)));
            next[size_t(n * H + o)] = z * old[size_t(o)] + (1 - z) * cand;
          }
        }
        h = next;
        for (size_t e = 0; e < h.size(); ++e) ASSERT_NEAR(out["all"].r[size_t(t * B * H) + e], h[e], 1e-12);
      }
      expect_near(out["last"], h, 1e-12);
    }
}

TEST(cells, lstm_over_time_equals_cell_by_cell) {
  constexpr int64_t T = 4, B = 2, I = 3, H = 2;
  for (bool reverse : {false, true}) {
    Builder b;
    Tensor x = b.input("x", {T, B, I});
    Cell p{b.param("w", {4 * H, I}), b.param("u", {4 * H, H}), b.param("bias", {4 * H}), {}};
    const LstmState start{b.input("h0", {B, H}), b.input("c0", {B, H})};
    const LstmSequence s = lstm(x, start, p, reverse);
    b.output(s.all, "all");
    b.output(s.last.c, "c");
    LstmState at = start;
    for (int64_t k = 0; k < T; ++k) {
      const int64_t t = reverse ? T - 1 - k : k;
      auto [n, i] = axes<"n i">();
      at = lstm_cell(map({n, i}, x(t, n, i)), at, p);
      b.output(at.h, "step" + std::to_string(t));
    }
    b.output(at.c, "c_by_cell");
    auto out = eval::run(b.graph(), {{"x", u(1, {T, B, I})},
                                     {"w", u(2, {4 * H, I})},
                                     {"u", u(3, {4 * H, H})},
                                     {"bias", u(4, {4 * H})},
                                     {"h0", u(5, {B, H})},
                                     {"c0", u(6, {B, H})}});
    for (int64_t t = 0; t < T; ++t)
      for (size_t e = 0; e < size_t(B * H); ++e)
        EXPECT_NEAR(out["all"].r[size_t(t * B * H) + e], out["step" + std::to_string(t)].r[e], 1e-14);
    EXPECT_LT(eval::difference(out["c"], out["c_by_cell"]), 1e-14);
  }
}
