#include "tang/models/norms.hpp"

namespace tang::models {

Moments moments(const Over& over, const std::vector<Extent>& extents, const Scalar& x, Variance how,
                Where where) {
  if (how == Variance::welford) {
    const auto s = fold(welford(), over, {1.0, x, 0.0}, where);
    return {s[1], ratio(s[2], s[0])};
  }
  const Scalar n = count(over, extents);
  const Scalar mean = sum(over, x, where) / n;
  return {mean, sum(over, square(x - mean), where) / n};
}

namespace {
Scalar scaled(const Scalar& x, const Tensor& gain, const Tensor& bias, const Index& at, Where where) {
  Scalar y = x;
  if (given(gain)) y = y * gain.at({at}, where);
  if (given(bias)) y = y + bias.at({at}, where);
  return y;
}

// The last dimension of x is called `c`; gain and bias have it alone.
void check_last(const Tensor& x, const Tensor& gain, const Tensor& bias, Where where) {
  if (!given(x) || x.shape().empty())
    reject(where, "a normalisation of a tensor without dimensions", {}, "it works along the last dimension");
  Shapes s(where);
  std::string dims;
  for (size_t d = 1; d < x.shape().size(); ++d) dims += "_ ";
  s("x", x, dims + "c");
  if (given(gain)) s("gain", gain, "c");
  if (given(bias)) s("bias", bias, "c");
}

struct Image {
  std::vector<Axis> all; // n, c, spatial..
  std::vector<Axis> spatial;
  std::vector<Extent> extents; // of spatial
  Extent n = 0;
};

Image image(const Tensor& x, const Tensor& gain, const Tensor& bias, Where where) {
  if (!given(x) || x.shape().size() < 2)
    reject(where, "x is no batch of images", {{"it is [n, channel, spatial..]", {}}},
           "map it to that shape first");
  Shapes s(where);
  std::string dims = "n channel";
  for (size_t d = 2; d < x.shape().size(); ++d) dims += " _";
  s("x", x, dims);
  if (given(gain)) s("gain", gain, "channel");
  if (given(bias)) s("bias", bias, "channel");
  Image out;
  out.all = axes_of(x, "x");
  out.spatial.assign(out.all.begin() + 2, out.all.end());
  const auto shape = x.shape();
  out.extents.assign(shape.begin() + 2, shape.end());
  out.n = shape[0];
  return out;
}
} // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, LayerNorm options, Where where) {
  check_last(x, gain, bias, where);
  std::vector<Axis> all = axes_of(x, "i"), rows(all.begin(), all.end() - 1);
  const Axis c = all.back();
  const Scalar value = x.at(coords(all), where);
  Moments m = moments(c, {x.shape().back()}, value, options.variance, where);
  if (options.stored) {
    const Tensor mean = keep(rows, m.mean, "mean", where);
    m.mean = mean.at(coords(rows), where);
    if (options.variance == Variance::two_pass)
      m.variance = sum(c, square(value - m.mean), where) / count(c, {x.shape().back()});
    m.variance = keep(rows, m.variance, "variance", where).at(coords(rows), where);
  }
  const Scalar y = (value - m.mean) / sqrt(m.variance + options.eps);
  return map(all, scaled(y, gain, bias, c, where), "layer_norm", where);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps, Where where) {
  check_last(x, gain, {}, where);
  std::vector<Axis> all = axes_of(x, "i");
  const Axis c = all.back();
  const Scalar value = x.at(coords(all), where);
  const Scalar power = sum(c, square(value), where) / count(c, {x.shape().back()});
  return map(all, scaled(value / sqrt(power + eps), gain, {}, c, where), "rms_norm", where);
}

Normed batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps, Variance how,
                  Where where) {
  const Image im = image(x, gain, bias, where);
  std::vector<Axis> over{im.all[0]};
  over.insert(over.end(), im.spatial.begin(), im.spatial.end());
  std::vector<Extent> extents{im.n};
  extents.insert(extents.end(), im.extents.begin(), im.extents.end());
  const Scalar value = x.at(coords(im.all), where);
  const Moments m = moments(over, extents, value, how, where);
  const Axis c = im.all[1];
  Normed out;
  out.mean = keep({c}, m.mean, "batch_mean", where);
  out.variance = keep({c}, m.variance, "batch_variance", where);
  out.y = batch_norm_with(x, out.mean, out.variance, gain, bias, eps, where);
  return out;
}

Tensor batch_norm_with(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& gain,
                       const Tensor& bias, double eps, Where where) {
  const Image im = image(x, gain, bias, where);
  Shapes s(where);
  s("gain", given(gain) ? gain : mean, "channel")("mean", mean, "channel")("variance", variance, "channel");
  const Axis c = im.all[1];
  const Scalar y = (x.at(coords(im.all), where) - mean.at({c}, where)) / sqrt(variance.at({c}, where) + eps);
  return map(im.all, scaled(y, gain, bias, c, where), "batch_norm", where);
}

Tensor instance_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps, Variance how,
                     Where where) {
  const Image im = image(x, gain, bias, where);
  const Scalar value = x.at(coords(im.all), where);
  const Moments m = moments(im.spatial, im.extents, value, how, where);
  return map(im.all, scaled((value - m.mean) / sqrt(m.variance + eps), gain, bias, im.all[1], where),
             "instance_norm", where);
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& gain, const Tensor& bias, double eps,
                  Variance how, Where where) {
  const Image im = image(x, gain, bias, where);
  const Extent channels = x.shape()[1];
  if (groups < 1 || !channels.is_constant() || channels.value() % groups)
    reject(where, std::to_string(groups) + " groups of " + channels.text() + " channels",
           {{x.name() + " is " + text(x.shape()), x.where()}}, "the number of groups divides the channels");
  const int64_t each = channels.value() / groups;
  const Axis n = im.all[0], g = axis("g", Extent(groups)), k = axis("k", Extent(each));
  const Index channel = each * Index(g) + Index(k);
  const Coords at = Coords{n, channel} + coords(im.spatial);
  const Scalar value = x.at(at, where);
  std::vector<Axis> over{k}, points{n, g, k};
  over.insert(over.end(), im.spatial.begin(), im.spatial.end());
  points.insert(points.end(), im.spatial.begin(), im.spatial.end());
  std::vector<Extent> extents{Extent(each)};
  extents.insert(extents.end(), im.extents.begin(), im.extents.end());
  const Moments m = moments(over, extents, value, how, where);
  const Scalar y = scaled((value - m.mean) / sqrt(m.variance + eps), gain, bias, channel, where);
  return map_at(points, at, x.shape(), y, "group_norm", where);
}

} // namespace tang::models
