#include "tang/models/recurrent.hpp"

namespace tang::models {

namespace {
// The products of a cell as scalars over (batch row n, hidden unit o), gate by gate.
struct Products {
  const Cell& p;
  Extent in, hidden;
  Axis n, o;
  Where where;

  Index row(int64_t gate) const { return Index(Extent(gate) * hidden) + Index(o); }

  // w x of a gate; `x` reads the input at (n, feature). Each product has its own fold axis.
  template <class F> Scalar of(const Tensor& w, const Extent& extent, int64_t gate, const F& x) const {
    const Axis k = axis("k", extent);
    const Scalar weight =
        p.layout == Layout::out_in ? w.at({row(gate), k}, where) : w.at({k, row(gate)}, where);
    return sum(k, weight * x(k), where);
  }

  Scalar bias(const Tensor& b, int64_t gate) const {
    return given(b) ? b.at({row(gate)}, where) : Scalar(0.0);
  }
};

Extent times(int64_t k, const Extent& e) { return Extent(k) * e; }

// Checks a cell's weights; `x` and `h` are [.., in] and [.., hidden] with these names of dimensions.
Products products(const Cell& p, int64_t gates, const Tensor& x, const char* x_dims, const Tensor& h,
                  Where where) {
  Shapes s(where);
  const bool out_first = p.layout == Layout::out_in;
  s("x", x, x_dims)("h", h, "batch hidden");
  s("w", p.w, out_first ? "rows in" : "in rows")("u", p.u, out_first ? "rows hidden" : "hidden rows");
  if (given(p.bias)) s("bias", p.bias, "rows");
  if (given(p.u_bias)) s("u_bias", p.u_bias, "rows");
  if (!(s["rows"] == times(gates, s["hidden"])))
    reject(where,
           "a cell with " + s["rows"].text() + " rows for " + std::to_string(gates) + " gates of " +
               s["hidden"].text(),
           {{p.u.name() + " is " + text(p.u.shape()), p.u.where()}},
           "its weights hold one block of rows a gate");
  return {p, s["in"], s["hidden"], axis("n", s["batch"]), axis("o", s["hidden"]), where};
}

template <class X>
Tensor gru_step(const Gru& g, const Products& w, const X& x, const Tensor& h, Where where) {
  auto old = [&](const Index& k) { return h.at({w.n, k}, where); };
  auto gate = [&](int64_t k) {
    const Scalar from_x = w.of(g.cell.w, w.in, k, x), from_h = w.of(g.cell.u, w.hidden, k, old);
    return from_x + from_h + w.bias(g.cell.bias, k) + w.bias(g.cell.u_bias, k);
  };
  const Scalar z = sigmoid(gate(0));
  const Scalar from_x = w.of(g.cell.w, w.in, 2, x) + w.bias(g.cell.bias, 2);
  Scalar candidate;
  if (g.reset_after) {
    const Scalar r = sigmoid(gate(1));
    candidate = from_x + r * (w.of(g.cell.u, w.hidden, 2, old) + w.bias(g.cell.u_bias, 2));
  } else {
    const Axis n = w.n, o = w.o;
    const Tensor reset = map({n, o}, sigmoid(gate(1)) * h.at({n, o}, where), "reset", where);
    candidate = from_x + w.of(g.cell.u, w.hidden, 2, [&](const Index& k) {
      return reset.at({w.n, k}, where);
    }) + w.bias(g.cell.u_bias, 2);
  }
  return map({w.n, w.o}, z * old(w.o) + (1 - z) * g.act(candidate), "gru", where);
}

template <class X>
LstmState lstm_step(const Cell& p, const Products& w, const X& x, const LstmState& s, Where where) {
  auto old = [&](const Index& k) { return s.h.at({w.n, k}, where); };
  auto gate = [&](int64_t k) {
    const Scalar from_x = w.of(p.w, w.in, k, x), from_h = w.of(p.u, w.hidden, k, old);
    return from_x + from_h + w.bias(p.bias, k) + w.bias(p.u_bias, k);
  };
  const Scalar i = sigmoid(gate(0)), f = sigmoid(gate(1)), g = tanh(gate(2)), o = sigmoid(gate(3));
  const Tensor c = map({w.n, w.o}, f * s.c.at({w.n, w.o}, where) + i * g, "cell", where);
  const Tensor h = map({w.n, w.o}, o * tanh(c.at({w.n, w.o}, where)), "lstm", where);
  return {h, c};
}
} // namespace

Tensor gru_cell(const Tensor& x, const Tensor& h, const Gru& p, Where where) {
  const Products w = products(p.cell, 3, x, "batch in", h, where);
  return gru_step(
      p, w,
      [&](const Index& k) {
        return x.at({w.n, k}, where);
      },
      h, where);
}

Sequence gru(const Tensor& x, const Tensor& h0, const Gru& p, bool reverse, Where where) {
  const Products w = products(p.cell, 3, x, "time batch in", h0, where);
  const Axis t = axis("t", x.shape()[0]);
  Recurring how;
  how.reverse = reverse;
  const Recurred r = recur(
      t, {carried("h", h0)},
      [&](const std::vector<Tensor>& old) -> Step {
        const Tensor next = gru_step(
            p, w,
            [&](const Index& k) {
              return x.at({t, w.n, k}, where);
            },
            old[0], where);
        return {{next}, {next}};
      },
      how, where);
  return {r.emits[0], r.states[0]};
}

LstmState lstm_cell(const Tensor& x, const LstmState& s, const Cell& p, Where where) {
  const Products w = products(p, 4, x, "batch in", s.h, where);
  Shapes shapes(where);
  shapes("h", s.h, "batch hidden")("c", s.c, "batch hidden");
  return lstm_step(
      p, w,
      [&](const Index& k) {
        return x.at({w.n, k}, where);
      },
      s, where);
}

LstmSequence lstm(const Tensor& x, const LstmState& start, const Cell& p, bool reverse, Where where) {
  const Products w = products(p, 4, x, "time batch in", start.h, where);
  Shapes shapes(where);
  shapes("h", start.h, "batch hidden")("c", start.c, "batch hidden");
  const Axis t = axis("t", x.shape()[0]);
  Recurring how;
  how.reverse = reverse;
  const Recurred r = recur(
      t, {carried("h", start.h), carried("c", start.c)},
      [&](const std::vector<Tensor>& old) -> Step {
        const LstmState next = lstm_step(
            p, w,
            [&](const Index& k) {
              return x.at({t, w.n, k}, where);
            },
            {old[0], old[1]}, where);
        return {{next.h, next.c}, {next.h}};
      },
      how, where);
  return {r.emits[0], {r.states[0], r.states[1]}};
}

} // namespace tang::models
