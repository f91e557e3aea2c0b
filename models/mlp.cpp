#include "tang/models/mlp.hpp"

namespace tang::models {

namespace {
struct Rows {
  std::vector<Axis> rows; // all dimensions but the last
  Axis last;
  std::string dims; // "_ _ "
};

Rows rows_of(const Tensor& x, const char* what, Where where) {
  if (!given(x) || x.shape().empty())
    reject(where, std::string(what) + " of a tensor without dimensions", {},
           "its last dimension holds the features");
  Rows out;
  out.rows = axes_of(x, "i");
  out.last = out.rows.back();
  out.rows.pop_back();
  for (size_t d = 0; d < out.rows.size(); ++d) out.dims += "_ ";
  return out;
}
} // namespace

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, const Activation& act, Layout layout,
              Where where) {
  const Rows r = rows_of(x, "a linear layer", where);
  const bool out_first = layout == Layout::out_in;
  Shapes s(where);
  s("x", x, r.dims + "in")("w", w, out_first ? "out in" : "in out");
  if (given(bias)) s("bias", bias, "out");
  const Axis o = axis("o", s["out"]);
  const Index in = r.last, out = o;
  const Scalar weight = out_first ? w.at({out, in}, where) : w.at({in, out}, where);
  Scalar y = sum(r.last, x.at(coords(plus(r.rows, r.last)), where) * weight, where);
  if (given(bias)) y = y + bias.at({o}, where);
  return map(plus(r.rows, o), act ? act(y) : y, "linear", where);
}

Tensor mlp(const Tensor& x, const std::vector<Layer>& layers, const Activation& act, Layout layout,
           Where where) {
  if (layers.empty()) reject(where, "an MLP without layers", {}, "give it at least one layer");
  Tensor h = x;
  for (size_t k = 0; k < layers.size(); ++k)
    h = linear(h, layers[k].w, layers[k].bias, k + 1 < layers.size() ? act : Activation{}, layout, where);
  return h;
}

Tensor swiglu(const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& down, bool stored,
              Where where) {
  const Rows r = rows_of(x, "swiglu", where);
  Shapes s(where);
  s("x", x, r.dims + "m")("gate", gate, "f m")("up", up, "f m")("down", down, "m f");
  const Axis f = axis("f", s["f"]), o = axis("o", s["m"]), m = r.last;
  const std::vector<Axis> hidden = plus(r.rows, f);
  const Scalar value = x.at(coords(plus(r.rows, m)), where);
  Scalar g = sum(m, value * gate.at({f, m}, where), where);
  Scalar u = sum(m, value * up.at({f, m}, where), where);
  if (stored) {
    g = keep(hidden, g, "gate", where).at(coords(hidden), where);
    u = keep(hidden, u, "up", where).at(coords(hidden), where);
  }
  const Tensor h = map(hidden, silu(g) * u, "hidden", where);
  return map(plus(r.rows, o), sum(f, h.at(coords(hidden), where) * down.at({o, f}, where), where), "swiglu",
             where);
}

Tensor embedding(const Tensor& table, const Tensor& ids, Where where) {
  Shapes s(where);
  s("table", table, "row d");
  if (!given(ids) || ids.type() != Type::index)
    reject(where, "ids hold no index values", {{"they number the rows of " + table.name(), table.where()}},
           "declare them with an integer format");
  const std::vector<Axis> points = axes_of(ids, "i");
  const Axis d = axis("d", s["d"]);
  return map(plus(points, d), table.at({ids.at(coords(points), where), d}, where), "embedding", where);
}

Tensor add(const Tensor& a, const Tensor& b, Where where) {
  Shapes s(where);
  if (a.shape().size() != b.shape().size())
    reject(
        where,
        "a sum of tensors of ranks " + std::to_string(a.shape().size()) + " and " +
            std::to_string(b.shape().size()),
        {{a.name() + " is " + text(a.shape()), a.where()}, {b.name() + " is " + text(b.shape()), b.where()}},
        "map one to the other's shape");
  std::string dims;
  for (size_t d = 0; d < a.shape().size(); ++d) dims += "dim" + std::to_string(d) + " ";
  s("a", a, dims)("b", b, dims);
  const std::vector<Axis> points = axes_of(a, "i");
  return map(points, a.at(coords(points), where) + b.at(coords(points), where), "sum", where);
}

} // namespace tang::models
