// One work of tensor.cpp: its graph, which pairs of rows and keys it has, and the random data it reads.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

#include "tang/grad/surface.hpp"
#include "tang/models/attention.hpp"
#include "tang/models/conv.hpp"
#include "tang/models/block.hpp"
#include "tang/models/scaled.hpp"
#include "tang/run/cuda.hpp"

namespace tang::bench {

struct Work {
  std::string kind, transposes, format, mask;
  ir::Format element = ir::Format::bf16;
  // Loop blocks of kernels, by a part of their labels; a digit before three: whether
  // contractions stay in flight; one before that: 3 for three warpgroups.
  std::vector<std::pair<std::string, int64_t>> told;
  int64_t m = 0, n = 0, k = 0, batch = 0, heads = 0, kv = 0, rows = 0, keys = 0, d = 0;
  int64_t height = 0, width = 0, channels = 0, outs = 0, taps = 0, stride = 1, groups = 1;

  bool gemm() const { return kind == "gemm"; }

  bool conv() const { return kind == "conv"; }

  int64_t places(int64_t in) const { return (in + 2 * (taps / 2) - taps) / stride + 1; } // results along it

  bool backward() const { return kind == "backward"; }

  bool attends() const { return kind == "attention" || backward(); }

  bool block() const { return kind == "block"; }

  bool trains() const { return transposes == "both"; } // of a block: its gradients, too

  bool whole() const { return expr::type_of(element) == expr::Type::index; }

  bool scaled() const { return run::bytes_of(element) == 1 && !whole(); } // one scale an operand

  ir::Format result() const { return whole() ? ir::Format::f32 : scaled() || blocks() ? ir::Format::bf16 : element; }

  std::vector<std::string> operands() const {
    if (block()) return {}; // see fill_block
    if (gemm()) return {"a", "b"};
    if (conv()) return {"x", "w"};
    return backward() ? std::vector<std::string>{"q", "k", "v", "dout"}
                      : std::vector<std::string>{"q", "k", "v"};
  }

  bool subgroups() const { // told `sm80=1`: by mma.sync and cp.async
    return std::any_of(told.begin(), told.end(), [](auto& t) { return t.first == "sm80"; });
  }

  // The chip's warpgroups, or the instructions of sm_80 on as many processors, as fast as those reach there.
  run::Options options() const {
    if (!subgroups()) return run::hopper_options();
    run::Options o = run::ampere_options();
    const target::Target chip = target::hopper_target();
    o.target.workers = chip.workers, o.target.matrix_rate = chip.matrix_rate, o.target.near_rate = chip.near_rate;
    o.target.memory_rate = chip.memory_rate;
    return o;
  }

  int64_t result_rows() const {
    return gemm() ? m : conv() ? batch * places(height) * places(width) : batch * heads * rows;
  }

  bool at(char side) const { return transposes[side == 'a' ? 0 : 1] == 't'; }

  int64_t group() const { return heads / kv; }

  // f32 is judged by the largest error over the largest value, other formats by the error's length over the values'.
  bool fine() const { return element == ir::Format::f32; }

  // Terms of a row, and of as many columns, that share a scale (`blocks=128`); 0: one scale an operand.
  int64_t blocks() const {
    for (auto& [what, n] : told)
      if (what == "blocks") return n;
    return 0;
  }

  // A block's scale, a power of two or between two: of `which` block of terms, of this row or panel of columns.
  static float scale(char side, int64_t which, int64_t line) {
    return std::exp2(float((which * 7 + line * 3 + (side == 'a')) % 8 - 4)) * (1 + float(line % 5) / 16);
  }

  // Products of f32 are made of so many 16-bit pieces of each operand: two, or as told.
  int pieces() const {
    for (auto& [what, n] : told)
      if (what == "pieces") return int(n);
    return fine() ? 2 : 0;
  }

  double allowed() const { return fine() ? 1e-5 : 6e-3; }

  void join(double& to, double squared) const { to = fine() ? std::max(to, squared) : to + squared; }

  void judge(double error, double want, double& num, double& den) const {
    join(num, error == error ? error * error : 1e18), join(den, want * want);
  }

  void take_format(std::istream& in) { // after attention's mask, where it is not bf16
    if (in.eof()) return;
    const auto at = in.tellg();
    if (std::string word; in >> word && (word == "f32" || word == "f16"))
      format = word;
    else
      in.clear(), in.seekg(at);
  }

  static Work parse(std::istream& in) {
    Work w;
    in >> w.kind;
    w.format = "bf16";
    if (w.kind == "gemm")
      in >> w.m >> w.n >> w.k >> w.transposes >> w.format;
    else if (w.conv())
      in >> w.batch >> w.height >> w.width >> w.channels >> w.outs >> w.taps >> w.stride >> w.groups >>
          w.format;
    else if (w.attends()) {
      in >> w.batch >> w.heads >> w.kv >> w.rows >> w.keys >> w.d >> w.mask;
      w.take_format(in);
    }
    if (w.block()) in >> w.rows >> w.format >> w.transposes;
    std::string word;
    for (auto at = in.tellg(); in && in >> word; at = in.tellg()) {
      const size_t mark = word.find('=');
      if (mark == std::string::npos) {
        in.clear(), in.seekg(at);
        break;
      }
      w.told.emplace_back(word.substr(0, mark), std::stoll(word.substr(mark + 1)));
    }
    if (in.eof()) in.clear(), in.seekg(0, std::ios::end);
    w.element = ir::format_named(w.format);
    if (!in || (!w.gemm() && !w.conv() && !w.attends() && !w.block()))
      throw Error({}, "no such work: " + w.kind, {}, "see the first lines of tensor.cpp");
    return w;
  }

  ir::Graph graph() const {
    ir::Builder b;
    const auto f = element;
    if (block()) return transformer_block(b);
    if (gemm()) {
      ir::Tensor x = b.input("a", at('a') ? std::vector<ir::Extent>{k, m} : std::vector<ir::Extent>{m, k}, f);
      ir::Tensor y = b.input("b", at('b') ? std::vector<ir::Extent>{n, k} : std::vector<ir::Extent>{k, n}, f);
      auto [i, j, l] = ir::axes<"i j l">();
      if (blocks()) {
        const ir::Tensor sa = b.input("sa", {k / blocks(), m}), sb = b.input("sb", {n / blocks(), k / blocks()});
        b.output(models::scaled_product(x, sa, y, sb), "out", ir::Format::bf16);
        return b.graph();
      }
      ir::Scalar left = at('a') ? x(l, i) : x(i, l), right = at('b') ? y(j, l) : y(l, j);
      if (whole()) left = ir::to_real(left), right = ir::to_real(right);
      ir::Scalar sum = ir::sum(l, left * right);
      if (scaled()) sum = sum * b.input("sa", {1}).at({ir::Index(0)}) * b.input("sb", {1}).at({ir::Index(0)});
      b.output(ir::map({i, j}, sum), "out", result());
      return b.graph();
    }
    if (conv()) {
      const ir::Tensor x = b.input("x", {batch, height, width, channels}, f),
                       y = b.input("w", {outs, taps, taps, channels / groups}, f);
      models::Conv o;
      o.stride = {stride}, o.pad = {taps / 2}, o.groups = groups, o.channels_last = true;
      b.output(models::conv2d(x, y, {}, o), "out", f);
      return b.graph();
    }
    ir::Tensor q = group() > 1 ? b.input("q", {batch, kv, group(), rows, d}, f)
                               : b.input("q", {batch, heads, rows, d}, f);
    ir::Tensor x = b.input("k", {batch, kv, keys, d}, f), y = b.input("v", {batch, kv, keys, d}, f);
    models::AttentionOptions o;
    if (mask == "causal") o.mask = models::causal();
    if (mask == "window") o.mask = models::causal() && models::window(window);
    if (mask == "prefix") o.mask = models::causal() || models::prefix(prefix);
    if (mask == "softcap") o.changes.push_back(models::soft_cap(cap));
    if (mask == "alibi") {
      const std::vector<ir::Extent> of =
          group() > 1 ? std::vector<ir::Extent>{kv, group()} : std::vector<ir::Extent>{heads};
      o.changes.push_back(models::alibi(b.input("slopes", of)));
    }
    ir::Tensor table;
    if (mask == "t5") o.changes.push_back(bucket_bias(table = b.input("table", {buckets, heads})));
    if (mask == "document") {
      ir::Tensor start = b.input("start", {batch, rows}, ir::Format::i32),
                 end = b.input("end", {batch, rows}, ir::Format::i32);
      o.mask = models::causal() && models::key_range(start, end);
    }
    const auto a = models::attention(q, x, y, o);
    b.output(a.out, "out", f);
    b.output(a.lse, "lse");
    if (backward()) {
      const ir::Tensor dout = b.input("dout", a.out.shape(), f);
      std::vector<ir::Tensor> of{q, x, y};
      if (mask == "t5") of.push_back(table);
      const auto d = diff::vjp(a.out, dout, of);
      b.output(d[0], "dq", f), b.output(d[1], "dk", f), b.output(d[2], "dv", f);
      if (mask == "t5") b.output(d[3], "dtable");
    }
    return b.graph();
  }

  ir::Graph transformer_block(ir::Builder& b) const {
    models::BlockSize size;
    for (auto& [what, n] : told)
      (what == "model"    ? size.model
       : what == "heads"  ? size.heads
       : what == "kv"     ? size.kv_heads
       : what == "head"   ? size.head
       : what == "hidden" ? size.hidden
                          : throw Error({}, "a block has no size " + what, {}, "model, heads, kv, head, hidden")) = n;
    for (auto [name, table] : {std::pair("cos", &size.rope.cos), std::pair("sin", &size.rope.sin)})
      *table = b.input(name, {rows, size.head / 2}, element); // as the peer has them
    const models::BlockWeights w = models::block_weights(b, "w", size, element);
    const ir::Tensor x = b.input("x", {1, rows, size.model}, element), y = models::block(x, w, size);
    b.output(y, "y", element);
    if (!trains()) return b.graph();
    const std::vector<ir::Tensor> of{x, w.attention_norm, w.q, w.k, w.v, w.o, w.mlp_norm, w.gate, w.up, w.down};
    const auto d = diff::vjp(y, b.input("dy", y.shape(), element), of);
    for (size_t i = 0; i < of.size(); ++i) b.output(d[i], "d" + of[i].name(), element);
    return b.graph();
  }

  // A learned bias of the distance row - key, 64 distances a bucket: table [buckets, heads].
  static models::Change bucket_bias(const ir::Tensor& table) {
    return [table](const ir::Scalar& score, const models::Spot& s) {
      const ir::Axis e = ir::axis("e", s.rows + s.keys - ir::Extent(1));
      const ir::Index back = ir::Index(s.rows) - ir::Index(1) - ir::Index(e);
      const ir::Tensor of = ir::map({e}, bucket(ir::iota(back + s.first)), "buckets");
      const ir::Index at = of.at({ir::Index(s.key) - ir::Index(s.row) + ir::Index(s.rows) - ir::Index(1)});
      return score + table.at({at, s.heads[0]});
    };
  }

  static constexpr int64_t buckets = 32, bucket_width = 64;

  static ir::Scalar bucket(const ir::Scalar& distance) {
    return ir::min(ir::max(distance / int(bucket_width) + int(buckets / 2), 0), int(buckets - 1));
  }

  static int64_t bucket(int64_t distance) {
    return std::clamp<int64_t>(int64_t(std::floor(double(distance) / bucket_width)) + buckets / 2, 0, buckets - 1);
  }

  static float bias(int64_t bucket, int64_t head) { return float(std::cos(double(32 * head + bucket))); }

  static constexpr int64_t window = 128, prefix = 256, document = 700;
  static constexpr double cap = 20, scale_a = 0.5, scale_b = 0.25;

  double slope(int64_t head) const { return std::exp2(-8.0 * double(head + 1) / double(heads)); }

  int64_t position(int64_t i) const { return i + keys - rows; }

  int64_t first(int64_t i) const { // visible keys of row i
    if (mask == "window") return std::clamp<int64_t>(position(i) - window + 1, 0, keys);
    return mask == "document" ? std::clamp<int64_t>(i / document * document, 0, keys) : 0;
  }

  int64_t last(int64_t i) const {
    if (mask == "full" || mask == "softcap" || mask == "alibi" || mask == "t5") return keys;
    const int64_t causal = std::clamp<int64_t>(position(i) + 1, 0, keys);
    return mask == "prefix" ? std::max(causal, std::min(prefix, keys)) : causal;
  }

  double changed(double score, int64_t head, int64_t i, int64_t j) const {
    if (mask == "softcap") return cap * std::tanh(score / cap);
    if (mask == "t5") return score + double(bias(bucket(position(i) - j), head));
    return mask == "alibi" ? score - slope(head) * double(position(i) - j) : score;
  }

  double flops() const {
    if (block()) { // of the paper's sizes
      const double n = double(rows), products = 576.0 * (960 + 576 + 3 * 1536), pairs = n * (n + 1) / 2;
      return (trains() ? 3 : 1) * 2 * n * products + (trains() ? 14 : 4) * pairs * 64 * 9;
    }
    if (gemm()) return 2.0 * double(m) * double(n) * double(k);
    if (conv())
      return 2.0 * double(batch * places(height) * places(width) * outs) *
             double(taps * taps * channels / groups);
    double pairs = 0;
    for (int64_t i = 0; i < rows; ++i) pairs += double(std::max<int64_t>(0, last(i) - first(i)));
    return (backward() ? 10.0 : 4.0) * pairs * double(d) * double(heads) * double(batch);
  }
};

// Normal values; long buffers repeat a block of a prime number of them.
inline std::vector<uint8_t> normals(size_t n, ir::Format f, uint64_t seed) {
  constexpr size_t block = 200003;
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(std::min(n, block));
  const bool whole = expr::type_of(f) == expr::Type::index; // then from -127 to 127
  for (double& v : values) v = whole ? double(int64_t(rng() % 255) - 127) : ir::rounded(normal(rng), f);
  const size_t bytes = size_t(run::bytes_of(f)), some = values.size() * bytes;
  std::vector<uint8_t> small(some), out(n * bytes);
  if (whole)
    run::write(small.data(), f, std::vector<int64_t>(values.begin(), values.end()));
  else
    run::write(small.data(), f, values);
  for (size_t i = 0; i < out.size(); i += some)
    std::memcpy(&out[i], small.data(), std::min(some, out.size() - i));
  return out;
}

inline double real(const std::vector<uint8_t>& data, int64_t i, ir::Format f) {
  if (f == ir::Format::i8) return double(int8_t(data[size_t(i)]));
  if (run::bytes_of(f) == 1) return run::read_reals(&data[size_t(i)], f, 1)[0];
  if (run::bytes_of(f) == 4 || f == ir::Format::bf16) {
    uint32_t u = 0;
    if (f == ir::Format::bf16)
      std::memcpy(reinterpret_cast<uint8_t*>(&u) + 2, &data[size_t(2 * i)], 2);
    else
      std::memcpy(&u, &data[size_t(4 * i)], 4);
    float x;
    std::memcpy(&x, &u, 4);
    return double(x);
  }
  return run::read_reals(&data[size_t(2 * i)], f, 1)[0];
}

} // namespace tang::bench
