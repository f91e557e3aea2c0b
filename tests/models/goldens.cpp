// Real weights: what the builders compute against values that other implementations gave.
#include <chrono>

#include "models/weights.hpp"
#include "tang/formats/json_tensors.hpp"
#include "tang/formats/llama2c.hpp"
#include "tang/formats/safetensors.hpp"
#include "tang/formats/tokenizer.hpp"
#include "tang/formats/torchscript.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/recurrent.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
Array blob(const formats::TensorFile& f, int n, std::vector<int64_t> shape) {
  Array a = array_of(f, "data/" + std::to_string(n));
  a.shape = std::move(shape);
  return a;
}

Array observation(int64_t n) {
  std::vector<double> x;
  for (int64_t i = 0; i < n; ++i) x.push_back((double(i % 7) - 3) / 4);
  return eval::reals({1, n}, x);
}
} // namespace

TEST(goldens, t1_walking_policy) {
  TANG_WEIGHTS(path, "T1.pt");
  const auto f = formats::read_torchscript(formats::read_file(path));
  Builder b;
  Inputs in{{"x", observation(47)}};
  const std::vector<int64_t> width{47, 256, 128, 128, 12};
  std::vector<Layer> layers;
  for (int k = 0; k < 4; ++k) {
    const std::string n = std::to_string(k);
    const Tensor w = param(b, in, "w" + n, blob(f, 2 * k, {width[size_t(k) + 1], width[size_t(k)]}));
    layers.push_back({w, param(b, in, "b" + n, blob(f, 2 * k + 1, {width[size_t(k) + 1]}))});
  }
  b.output(mlp(b.input("x", {1, 47}), layers, elu), "actions");
  expect_near(value(b.graph(), in, "actions"),
              {-.070026, .563209, .390513, .511849, .481234, -.162935, -.458413, -.021397, .365091, .082812,
               -1.436241, -.195529},
              1e-6);
}

TEST(goldens, g1_recurrent_policy) {
  TANG_WEIGHTS(path, "g1motion.pt");
  const auto f = formats::read_torchscript(formats::read_file(path));
  Builder b;
  Inputs in;
  Cell cell;
  cell.w = param(b, in, "w", blob(f, 6, {256, 47}));
  cell.u = param(b, in, "u", blob(f, 7, {256, 64}));
  cell.bias = param(b, in, "bias", blob(f, 8, {256}));
  cell.u_bias = param(b, in, "u_bias", blob(f, 9, {256}));
  const Tensor x = b.input("x", {3, 1, 47});
  const LstmSequence s = lstm(x, {b.input("h0", {1, 64}), b.input("c0", {1, 64})}, cell);
  const Tensor w0 = param(b, in, "w0", blob(f, 2, {32, 64})), b0 = param(b, in, "b0", blob(f, 3, {32}));
  const Tensor w1 = param(b, in, "w1", blob(f, 4, {12, 32})), b1 = param(b, in, "b1", blob(f, 5, {12}));
  b.output(mlp(s.all, {{w0, b0}, {w1, b1}}, elu), "actions");
  Array steps = filled({3, 1, 47}, 0);
  for (size_t k = 0; k < steps.r.size(); ++k) steps.r[k] = observation(47).r[k % 47];
  in["x"] = steps;
  in["h0"] = in["c0"] = filled({1, 64}, 0);
  const Array out = value(b.graph(), in, "actions"); // [3, 1, 12]
  const double want[3][3] = {
      {-1.292478, .272257, .736914}, {-.903512, -.385242, .605617}, {-.650110, .764675, 1.395931}};
  for (size_t t = 0; t < 3; ++t)
    for (size_t a = 0; a < 3; ++a) EXPECT_NEAR(out.r[t * 12 + a], want[t][a], 1e-6) << t << " " << a;
}

TEST(goldens, rnnoise_gains) {
  TANG_WEIGHTS(path, "rnnoise-v0.1.safetensors");
  const auto f = formats::read_safetensors(formats::read_file(path));
  Builder b;
  Inputs in;
  auto weight = [&](const std::string& name) { return param(b, in, name, array_of(f, name, 1.0 / 256)); };
  auto dense = [&](const Tensor& x, const std::string& name, const Activation& act) {
    const Tensor w = weight(name + ".weights"), bias = weight(name + ".bias");
    return linear(x, w, bias, act, Layout::in_out);
  };
  auto run_gru = [&](const Tensor& x, const std::string& name, int64_t units) {
    Gru p;
    p.act = relu;
    p.cell = {weight(name + ".weights"),
              weight(name + ".recurrent_weights"),
              weight(name + ".bias"),
              {},
              Layout::in_out};
    in["h0." + name] = filled({1, units}, 0);
    return gru(x, b.input("h0." + name, {1, units}), p).all;
  };
  // Concatenated along the features.
  auto joined = [&](const std::vector<Tensor>& parts) {
    Extent width = 0;
    std::vector<Extent> from;
    for (auto& p : parts) from.push_back(width), width = width + p.shape()[2];
    const Axis t = axis("t", parts[0].shape()[0]), n = axis("n", Extent(1)), c = axis("c", width);
    Scalar out = parts.back().where_in_range({t, n, Index(c) - Index(from.back())});
    for (size_t k = parts.size() - 1; k-- > 0;)
      out = or_else(parts[k].where_in_range({t, n, Index(c) - Index(from[k])}), out);
    return map({t, n, c}, out, "joined");
  };
  const Tensor x = b.input("x", {3, 1, 42});
  const Tensor first = dense(x, "input_dense", tang::tanh);
  const Tensor vad = run_gru(first, "vad_gru", 24);
  const Tensor noise = run_gru(joined({first, vad, x}), "noise_gru", 48);
  const Tensor denoise = run_gru(joined({vad, noise, x}), "denoise_gru", 96);
  b.output(dense(vad, "vad_output", sigmoid), "vad");
  b.output(dense(denoise, "denoise_output", sigmoid), "gains");
  Array features = filled({3, 1, 42}, 0);
  for (size_t k = 0; k < features.r.size(); ++k) features.r[k] = (double(k % 42 % 5) - 2) / 4;
  in["x"] = features;
  auto out = eval::run(b.graph(), in);
  expect_near(out["vad"], {.173137, .124614, .138426}, 1e-6);
  const double want[3][4] = {{.151825, .181455, .125239, .111360},
                             {.101210, .111103, .060651, .048097},
                             {.072681, .075981, .038173, .028796}};
  for (size_t t = 0; t < 3; ++t)
    for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(out["gains"].r[t * 22 + k], want[t][k], 1e-6) << t << " " << k;
}

TEST(goldens, gpt_nano_sort_gives_every_shipped_intermediate) {
  TANG_WEIGHTS(model_path, "gpt-nano-sort-model.json");
  TANG_WEIGHTS(partials_path, "gpt-nano-sort-t0-partials.json");
  const auto model = formats::read_json_tensors(formats::read_file(model_path));
  const auto partials = formats::read_json_tensors(formats::read_file(partials_path));
  Builder b;
  Inputs in;
  auto weight = [&](const std::string& name) { return param(b, in, name, array_of(model, name)); };
  GptSize z;
  z.model = 48;
  z.heads = 3;
  z.naive = true;
  const Tensor idx = b.input("idx", {3, 11}, Format::i32);
  const Array ids = array_of(partials, "idx");
  in["idx"] = eval::indices({3, 11}, {ids.r.begin(), ids.r.end()});
  const Tensor wte = weight("transformer.wte.weight"), wpe = weight("transformer.wpe.weight");
  auto [n, i, c] = axes<"n i c">();
  std::map<std::string, Tensor> made;
  made["tok_emb"] = embedding(wte, idx);
  made["x"] = map({n, i, c}, made["tok_emb"](n, i, c) + wpe(i, c));
  Tensor x = made["x"];
  for (int layer = 0; layer < 3; ++layer) {
    const std::string h = "transformer.h." + std::to_string(layer) + ".";
    GptWeights w;
    w.norm1 = weight(h + "ln_1.weight"), w.norm1_bias = weight(h + "ln_1.bias");
    w.qkv = weight(h + "attn.c_attn.weight"), w.qkv_bias = weight(h + "attn.c_attn.bias");
    w.proj = weight(h + "attn.c_proj.weight"), w.proj_bias = weight(h + "attn.c_proj.bias");
    w.norm2 = weight(h + "ln_2.weight"), w.norm2_bias = weight(h + "ln_2.bias");
    w.fc = weight(h + "mlp.c_fc.weight"), w.fc_bias = weight(h + "mlp.c_fc.bias");
    w.out = weight(h + "mlp.c_proj.weight"), w.out_bias = weight(h + "mlp.c_proj.bias");
    const GptBlock y = gpt_block(x, w, z);
    x = y.y;
    made["block" + std::to_string(layer)] = x;
    if (layer) continue;
    made["ln1"] = y.norm1, made["qkv"] = y.qkv, made["q"] = y.q, made["k"] = y.k, made["v"] = y.v;
    made["att"] = y.scores, made["attSm"] = y.probabilities, made["yProj"] = y.proj,
    made["attnResid"] = y.residual1;
    made["ln2"] = y.norm2, made["fc"] = y.hidden, made["gelu"] = y.active, made["mlp"] = y.mlp,
    made["mlpResid"] = y.y;
    const Axis head = axis("h", Extent(3)), row = axis("i", Extent(11)), d = axis("d", Extent(16)),
               batch = axis("b", Extent(3));
    made["y"] = map_at({batch, row, head, d}, {batch, row, 16 * Index(head) + d}, {3, 11, 48},
                       y.mixed(batch, head, row, d));
  }
  made["ln_f"] = layer_norm(x, weight("transformer.ln_f.weight"), weight("transformer.ln_f.bias"));
  made["lm_head"] = linear(made["ln_f"], weight("lm_head.weight"));
  made["probs"] = softmax(made["lm_head"]);
  for (auto& [name, t] : made) b.output(t, name);
  eval::Options two;
  two.threads = 2;
  auto out = eval::run(b.graph(), in, two);
  int compared = 0;
  for (auto& e : partials.entries()) {
    if (e.name == "idx" || e.name == "pos_emb") continue; // an input, and a weight
    ASSERT_TRUE(made.count(e.name)) << e.name << " is not compared";
    const Array want = array_of(partials, e.name);
    const Array& got = out[e.name];
    ASSERT_EQ(got.shape, want.shape) << e.name;
    double worst = 0;
    for (int64_t k = 0; k < got.size(); ++k) {
      const double w = want.r[size_t(k)];
      const expr::Value g = got.at(k);
      if (w == -inf) { // the reference writes its mask into the scores; ours masks when they are read
        EXPECT_EQ(e.name, "att");
        continue;
      }
      worst = std::max(worst, std::fabs((g.state == expr::State::present ? g.r : 0) - w));
    }
    EXPECT_LT(worst, 1e-5) << e.name;
    ++compared;
  }
  EXPECT_EQ(compared, 23);
}
