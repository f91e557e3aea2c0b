#include "tang/models/conv.hpp"

namespace tang::models {

namespace {
int64_t pick(const std::vector<int64_t>& v, size_t d, int64_t otherwise) {
  return v.empty() ? otherwise : v.size() == 1 ? v[0] : v[d];
}

void check_list(const std::vector<int64_t>& v, size_t spatial, int64_t least, const char* what, Where where) {
  if (v.size() > 1 && v.size() != spatial)
    reject(where, std::string(what) + " has " + std::to_string(v.size()) + " entries",
           {{"x has " + std::to_string(spatial) + " spatial dimensions", {}}},
           "give one entry, or one a spatial dimension");
  for (int64_t k : v)
    if (k < least)
      reject(where, std::string(what) + " of " + std::to_string(k), {},
             "it is at least " + std::to_string(least));
}

// Where channels and spatial dimensions sit.
struct Shape {
  std::vector<Extent> x;
  size_t spatial;
  bool last;

  size_t channel() const { return last ? spatial + 1 : 1; }

  size_t at(size_t d) const { return last ? 1 + d : 2 + d; }

  Coords order(const Index& n, const Index& c, const Coords& s) const {
    Coords out{n};
    if (!last) out.push_back(c);
    out.insert(out.end(), s.begin(), s.end());
    if (last) out.push_back(c);
    return out;
  }

  std::vector<Extent> order(const Extent& n, const Extent& c, const std::vector<Extent>& s) const {
    std::vector<Extent> out{n};
    if (!last) out.push_back(c);
    out.insert(out.end(), s.begin(), s.end());
    if (last) out.push_back(c);
    return out;
  }
};

Shape shape_of(const Tensor& x, bool last, const char* what, Where where) {
  if (!given(x) || x.shape().size() < 3)
    reject(
        where, std::string(what) + " of a tensor that is no batch of images",
        {{last ? "x is [n, spatial.., channel]" : "x is [n, channel, spatial..]", {}},
         {given(x) ? x.name() + " is " + text(x.shape()) : "x is no tensor", given(x) ? x.where() : Where{}}},
        "map it to that shape first");
  return {x.shape(), x.shape().size() - 2, last};
}
} // namespace

Tensor conv(const Tensor& x, const Tensor& w, const Tensor& bias, Conv o, const Activation& act,
            Where where) {
  const Shape s = shape_of(x, o.channels_last, "a convolution", where);
  check_list(o.stride, s.spatial, 1, "stride", where);
  check_list(o.dilation, s.spatial, 1, "dilation", where);
  check_list(o.pad, s.spatial, 0, "pad", where);
  check_list(o.pad_end, s.spatial, 0, "pad_end", where);
  std::string kernel_names, window;
  for (size_t d = 0; d < s.spatial; ++d) kernel_names += " k" + std::to_string(d), window += " _";
  Shapes shapes(where);
  shapes("x", x, s.last ? "n" + window + " channel" : "n channel" + window);
  shapes("w", w, s.last ? "out" + kernel_names + " in" : "out in" + kernel_names);
  if (given(bias)) shapes("bias", bias, "out");
  const int64_t channels = shapes.whole("channel"), each_in = shapes.whole("in"), outs = shapes.whole("out");
  if (o.groups < 1 || channels % o.groups || outs % o.groups || each_in != channels / o.groups)
    reject(where,
           "w takes " + std::to_string(each_in) + " channels a group, x has " + std::to_string(channels) +
               " in " + std::to_string(o.groups) + " groups",
           {{x.name() + " is " + text(s.x), x.where()}, {w.name() + " is " + text(w.shape()), w.where()}},
           "w's channels are x's divided by groups, and groups divides the outputs");
  std::vector<Axis> out_axes, kernel;
  std::vector<Extent> out_extents;
  Coords at;
  for (size_t d = 0; d < s.spatial; ++d) {
    const Extent k = shapes["k" + std::to_string(d)], in = s.x[s.at(d)];
    const int64_t stride = pick(o.stride, d, 1), dilation = pick(o.dilation, d, 1), pad = pick(o.pad, d, 0);
    const Extent slack =
        in + Extent(pad + pick(o.pad_end, d, pad)) - Extent(dilation) * (k - Extent(1)) - Extent(1);
    if (slack.is_constant() && slack.value() < 0)
      reject(where, "the kernel is larger than the padded input in spatial dimension " + std::to_string(d),
             {{"input " + in.text() + ", pad " + std::to_string(pad) + ", kernel " + k.text() +
                   ", dilation " + std::to_string(dilation),
               x.where()}},
             "pad more, or use a smaller kernel or dilation");
    out_extents.push_back(floor_div(slack, stride) + Extent(1));
    out_axes.push_back(axis("y" + std::to_string(d), out_extents.back()));
    kernel.push_back(axis("k" + std::to_string(d), k));
    at.push_back(stride * Index(out_axes.back()) + dilation * Index(kernel.back()) - Index(pad));
  }
  const int64_t each_out = outs / o.groups;
  const Axis n = axis("n", s.x[0]), g = axis("g", Extent(o.groups)), f = axis("o", Extent(each_out)),
             c = axis("c", Extent(each_in));
  // Depthwise and ungrouped convolutions have no axis of extent 1 for what they lack.
  const bool grouped = o.groups > 1, deep = each_in != 1 || !grouped;
  Index in = deep ? Index(c) : Index(0), out = f, within = in;
  if (grouped) in = each_in * Index(g) + in;
  if (grouped) out = each_out == 1 ? Index(g) : each_out * Index(g) + Index(f);
  const Scalar pixel = x.at_or(0.0, s.order(n, in, at), where);
  Coords weight_at = s.last ? Coords{out} + coords(kernel) : Coords{out, within} + coords(kernel);
  if (s.last) weight_at.push_back(within);
  std::vector<Axis> over = kernel;
  if (deep) over.insert(over.begin(), c);
  Scalar y = sum(over, pixel * w.at(weight_at, where), where);
  if (given(bias)) y = y + bias.at({out}, where);
  if (act) y = act(y);
  std::vector<Axis> points{n};
  auto put_channels = [&] {
    if (grouped) points.push_back(g);
    if (!grouped || each_out != 1) points.push_back(f);
  };
  if (!s.last) put_channels();
  points.insert(points.end(), out_axes.begin(), out_axes.end());
  if (s.last) put_channels();
  if (!grouped || each_out == 1) return map(points, y, "conv", where);
  return map_at(points, s.order(n, out, coords(out_axes)), s.order(s.x[0], Extent(outs), out_extents), y,
                "conv", where);
}

namespace {
void check_spatial(const Tensor& x, size_t n, const char* what, Where where) {
  if (given(x) && x.shape().size() != n + 2)
    reject(where, std::string(what) + " of a tensor of rank " + std::to_string(x.shape().size()),
           {{x.name() + " is " + text(x.shape()), x.where()}}, "it takes rank " + std::to_string(n + 2));
}
} // namespace

Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, Conv options, const Activation& act,
              Where where) {
  check_spatial(x, 1, "conv1d", where);
  return conv(x, w, bias, std::move(options), act, where);
}

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Conv options, const Activation& act,
              Where where) {
  check_spatial(x, 2, "conv2d", where);
  return conv(x, w, bias, std::move(options), act, where);
}

Tensor conv_transpose(const Tensor& x, const Tensor& w, const Tensor& bias, ConvTranspose o, Where where) {
  const Shape s = shape_of(x, false, "a transposed convolution", where);
  check_list(o.stride, s.spatial, 1, "stride", where);
  check_list(o.dilation, s.spatial, 1, "dilation", where);
  check_list(o.pad, s.spatial, 0, "pad", where);
  check_list(o.output_pad, s.spatial, 0, "output_pad", where);
  std::string kernel_names, window;
  for (size_t d = 0; d < s.spatial; ++d) kernel_names += " k" + std::to_string(d), window += " _";
  Shapes shapes(where);
  shapes("x", x, "n channel" + window)("w", w, "channel each" + kernel_names);
  const int64_t channels = shapes.whole("channel"), each_out = shapes.whole("each"),
                outs = each_out * o.groups;
  if (o.groups < 1 || channels % o.groups)
    reject(where, std::to_string(o.groups) + " groups of " + std::to_string(channels) + " channels",
           {{x.name() + " is " + text(s.x), x.where()}}, "the number of groups divides the channels");
  if (given(bias)) {
    Shapes b(where);
    b("bias", bias, "out");
    if (!(b["out"] == Extent(outs)))
      reject(where,
             "bias has " + b["out"].text() + " entries for " + std::to_string(outs) +
                 " channels of the result",
             {{w.name() + " is " + text(w.shape()), w.where()}}, "give one a channel");
  }
  std::vector<Axis> out_axes, kernel, inside;
  std::vector<Extent> out_extents;
  Guard meets = always();
  for (size_t d = 0; d < s.spatial; ++d) {
    const Extent k = shapes["k" + std::to_string(d)], in = s.x[s.at(d)];
    const int64_t stride = pick(o.stride, d, 1), dilation = pick(o.dilation, d, 1), pad = pick(o.pad, d, 0),
                  more = pick(o.output_pad, d, 0);
    if (more >= stride && more >= dilation)
      reject(where, "output_pad of " + std::to_string(more) + " with stride " + std::to_string(stride), {},
             "it is smaller than the stride or the dilation");
    const Extent length =
        (in - Extent(1)) * Extent(stride) + Extent(dilation) * (k - Extent(1)) + Extent(1 + more - 2 * pad);
    if (length.is_constant() && length.value() < 0)
      reject(where, "spatial dimension " + std::to_string(d) + " of the result would be " + length.text(),
             {{x.name() + " is " + text(s.x), x.where()}}, "pad less");
    out_extents.push_back(length);
    out_axes.push_back(axis("y" + std::to_string(d), length));
    kernel.push_back(axis("k" + std::to_string(d), k));
    inside.push_back(axis("x" + std::to_string(d), in));
    meets = meets && stride * Index(inside.back()) + dilation * Index(kernel.back()) - Index(pad) ==
                         Index(out_axes.back());
  }
  const int64_t each_in = channels / o.groups;
  const Axis n = axis("n", s.x[0]), g = axis("g", Extent(o.groups)), f = axis("o", Extent(each_out)),
             c = axis("c", Extent(each_in));
  const bool grouped = o.groups > 1;
  const Index in = grouped ? each_in * Index(g) + Index(c) : Index(c),
              out = grouped ? each_out * Index(g) + Index(f) : Index(f);
  std::vector<Axis> over{c};
  over.insert(over.end(), inside.begin(), inside.end());
  over.insert(over.end(), kernel.begin(), kernel.end());
  const Scalar term =
      x.at(Coords{n, in} + coords(inside), where) * w.at(Coords{in, f} + coords(kernel), where);
  Scalar y = sum(over, masked(meets, term), where);
  if (given(bias)) y = y + bias.at({out}, where);
  std::vector<Axis> points{n};
  if (grouped) points.push_back(g);
  points.push_back(f);
  points.insert(points.end(), out_axes.begin(), out_axes.end());
  if (!grouped) return map(points, y, "conv_transpose", where);
  return map_at(points, Coords{n, out} + coords(out_axes), s.order(s.x[0], Extent(outs), out_extents), y,
                "conv_transpose", where);
}

namespace {
struct Windows {
  std::vector<Axis> points, window;
  Coords at;
  Guard inside = always(); // the place of x exists
  int64_t size = 1;        // of a window
};

Windows windows(const Tensor& x, const Pool& o, const char* what, Where where) {
  const Shape s = shape_of(x, o.channels_last, what, where);
  check_list(o.window, s.spatial, 1, "window", where);
  check_list(o.stride, s.spatial, 1, "stride", where);
  check_list(o.pad, s.spatial, 0, "pad", where);
  Windows out;
  std::vector<Axis> places;
  Coords at;
  for (size_t d = 0; d < s.spatial; ++d) {
    const int64_t w = pick(o.window, d, 1), stride = pick(o.stride, d, w), pad = pick(o.pad, d, 0);
    if (2 * pad > w)
      reject(where, "pad of " + std::to_string(pad) + " for a window of " + std::to_string(w), {},
             "pad at most half the window, or a place would see padding only");
    const Extent slack = s.x[s.at(d)] + Extent(2 * pad - w);
    if (slack.is_constant() && slack.value() < 0)
      reject(where, "the window is larger than the padded input in spatial dimension " + std::to_string(d),
             {{x.name() + " is " + text(s.x), x.where()}}, "pad more, or use a smaller window");
    places.push_back(axis("y" + std::to_string(d), floor_div(slack, stride) + Extent(1)));
    out.window.push_back(axis("r" + std::to_string(d), Extent(w)));
    at.push_back(stride * Index(places.back()) + Index(out.window.back()) - Index(pad));
    out.inside = out.inside && at.back() >= Index(0) && at.back() < Index(s.x[s.at(d)]);
    out.size *= w;
  }
  const Axis n = axis("n", s.x[0]), c = axis("c", s.x[s.channel()]);
  out.points = {n};
  if (!s.last) out.points.push_back(c);
  out.points.insert(out.points.end(), places.begin(), places.end());
  if (s.last) out.points.push_back(c);
  out.at = s.order(n, c, at);
  return out;
}
} // namespace

Tensor max_pool(const Tensor& x, Pool options, Where where) {
  const Windows w = windows(x, options, "max pooling", where);
  return map(w.points, max(w.window, x.where_in_range(w.at, where), where), "max_pool", where);
}

Tensor avg_pool(const Tensor& x, Pool options, Where where) {
  const Windows w = windows(x, options, "average pooling", where);
  const Scalar covered = x.where_in_range(w.at, where);
  const Scalar total = sum(w.window, covered, where);
  if (options.count_padding) return map(w.points, total / double(w.size), "avg_pool", where);
  return map(w.points, total / sum(w.window, masked(as_scalar(w.inside, covered), 1.0), where), "avg_pool",
             where);
}

} // namespace tang::models
