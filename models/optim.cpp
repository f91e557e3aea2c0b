#include "tang/models/optim.hpp"

#include <cmath>

namespace tang::models {

Scalar rate_at(const Rate& r, const Scalar& step) {
  Scalar rate = 0.0 * step + r.peak;
  if (r.total > r.warmup) {
    const Scalar done = min(max((step - double(r.warmup)) * (1 / double(r.total - r.warmup)), 0.0), 1.0);
    rate = r.floor + (0.5 * (r.peak - r.floor)) * (1 + cos(done * 3.14159265358979323846));
  }
  if (r.warmup > 0) rate = select(step < double(r.warmup), (step + 1) * (r.peak / double(r.warmup)), rate);
  return rate;
}

namespace {
Tensor number(const Scalar& s, const char* name, Where where) {
  return map(std::vector<Axis>{}, s, name, where);
}

constexpr double largest = 3.4028234663852886e38; // of f32: beyond it, and NaN, is not finite

struct Update {
  const std::vector<Tensor>& weights;
  const std::vector<Tensor>& gradients;
  Where where;
  Builder& b;
  Tensor done = b.state("step", {}, Format::i32, where), rate = {}, factor = {}, finite = {};

  Update(const std::vector<Tensor>& w, const std::vector<Tensor>& g, const Rate& r, double clip,
         const Scaled& scaled, Where at)
      : weights(w), gradients(g), where(at), b(checked(w, g, at)) {
    rate = number(rate_at(r, to_real(done({}))), "rate", where);
    if (clip > 0 || given(scaled.scale)) measure(clip, scaled);
    const Scalar next = kept(to_index(to_real(done({})) + 1), done({}));
    b.output(number(next, "next step", where), "step");
  }

  // The norm of all gradients, and what each is multiplied by.
  void measure(double clip, const Scaled& scaled) {
    Scalar square_norm = 0.0;
    for (auto& t : gradients) {
      const std::vector<Axis> all = axes_of(t, "i");
      square_norm = square_norm + sum(Over(all), square(t.at(coords(all), where)), where);
    }
    Scalar norm = number(sqrt(square_norm), "norm", where).at({}, where), by = 1.0;
    if (given(scaled.scale)) {
      finite = number(norm <= largest, "finite", where);
      by = recip(scaled.scale.at({}, where));
      norm = norm * by;
      rescale(scaled);
    }
    if (clip > 0) by = select(norm < clip, by, by * (clip / norm));
    factor = number(by, "factor", where);
  }

  void rescale(const Scaled& s) {
    const Scalar scale = s.scale.at({}, where), good = to_real(s.good.at({}, where)) + 1;
    const Scalar grows = good >= double(s.grow);
    const Scalar up = select(grows, min(2 * scale, s.most), scale), held = select(grows, 0.0, good);
    const Scalar ok = finite.at({}, where);
    b.output(number(select(ok, up, max(0.5 * scale, 1.0)), "next scale", where), "loss.scale");
    b.output(number(to_index(select(ok, held, 0.0)), "next good", where), "loss.good");
  }

  // `value` if the gradients are finite.
  Scalar kept(const Scalar& value, const Scalar& old) const {
    return given(finite) ? select(finite.at({}, where), value, old) : value;
  }

  static Builder& checked(const std::vector<Tensor>& w, const std::vector<Tensor>& g, Where where) {
    if (w.empty() || w.size() != g.size())
      reject(where, std::to_string(w.size()) + " weights and " + std::to_string(g.size()) + " gradients", {},
             "give each weight its gradient");
    for (size_t k = 0; k < w.size(); ++k)
      if (w[k].shape() != g[k].shape())
        reject(where, "a gradient of another shape than its weight",
               {{w[k].name() + " is " + text(w[k].shape()), w[k].where()},
                {g[k].name() + " is " + text(g[k].shape()), g[k].where()}},
               "take the gradient by that weight");
    return *w[0].builder;
  }

  Scalar gradient(size_t k, const Coords& at) const {
    const Scalar g = gradients[k].at(at, where);
    return given(factor) ? g * factor.at({}, where) : g;
  }

  Tensor moment(size_t k, const char* suffix) {
    return b.state(weights[k].name() + suffix, weights[k].shape(), Format::f32, where);
  }

  // The new value under the state's name.
  Scalar replace(const Tensor& state, const std::vector<Axis>& all, const Scalar& value) {
    const Tensor next = map(all, kept(value, state.at(coords(all), where)), state.name(), where);
    b.output(next, state.name(), Format::count_, where);
    return next.at(coords(all), where);
  }
};
} // namespace

Scaled scaled(const Tensor& loss, int64_t grow, double most, Where where) {
  Builder& b = *loss.builder;
  Scaled s;
  s.scale = b.state("loss.scale", {}, Format::f32, where);
  s.good = b.state("loss.good", {}, Format::i32, where);
  s.grow = grow, s.most = most;
  const Coords first(loss.shape().size(), Index(0));
  s.loss = number(loss.at(first, where) * s.scale.at({}, where), "scaled loss", where);
  return s;
}

Tensor sgd(const std::vector<Tensor>& weights, const std::vector<Tensor>& gradients, const Sgd& o,
           Where where) {
  Update u(weights, gradients, o.rate, o.clip, o.scaled, where);
  for (size_t k = 0; k < weights.size(); ++k) {
    const std::vector<Axis> all = axes_of(weights[k], "i");
    const Coords at = coords(all);
    const Scalar w = weights[k].at(at, where);
    Scalar move = u.gradient(k, at);
    if (o.decay != 0) move = move + o.decay * w;
    if (o.momentum != 0) {
      const Tensor old = u.moment(k, ".u");
      move = u.replace(old, all, o.momentum * old.at(at, where) + move);
    }
    u.replace(weights[k], all, w - u.rate.at({}, where) * move);
  }
  return u.rate;
}

Tensor adamw(const std::vector<Tensor>& weights, const std::vector<Tensor>& gradients, const AdamW& o,
             Where where) {
  Update u(weights, gradients, o.rate, o.clip, o.scaled, where);
  const Scalar t = to_real(u.done({})) + 1;
  auto unbiased = [&](double beta, const char* name) { // 1 / (1 - beta^t)
    return number(recip(1 - ir::exp2(t * std::log2(beta))), name, where);
  };
  const Tensor first = unbiased(o.beta1, "unbiased.1"), second = unbiased(o.beta2, "unbiased.2");
  for (size_t k = 0; k < weights.size(); ++k) {
    const std::vector<Axis> all = axes_of(weights[k], "i");
    const Coords at = coords(all);
    const Scalar w = weights[k].at(at, where), g = u.gradient(k, at);
    const Tensor old_m = u.moment(k, ".m"), old_v = u.moment(k, ".v");
    const Scalar m = u.replace(old_m, all, o.beta1 * old_m.at(at, where) + (1 - o.beta1) * g);
    const Scalar v = u.replace(old_v, all, o.beta2 * old_v.at(at, where) + (1 - o.beta2) * square(g));
    const Scalar size = sqrt(v * second.at({}, where)) + o.eps;
    u.replace(weights[k], all, w - u.rate.at({}, where) * (m * first.at({}, where) / size + o.decay * w));
  }
  return u.rate;
}

} // namespace tang::models
