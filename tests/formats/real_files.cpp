// The files of the data folder: headers, shapes and values that are known from elsewhere.
#include <cmath>

#include "formats/files.hpp"
#include "tang/formats/json_tensors.hpp"
#include "tang/formats/llama2c.hpp"
#include "tang/formats/safetensors.hpp"
#include "tang/formats/tokenizer.hpp"
#include "tang/formats/torchscript.hpp"

namespace tang::formats {
namespace {

using Shape = std::vector<int64_t>;

TEST(RealFiles, Stories260kHasItsHeaderAndTensors) {
  NEED_DATA(path, "stories260K.bin");
  const auto model = read_llama2c(read_file(path));
  const auto& c = model.config;
  EXPECT_EQ((Shape{c.dim, c.hidden, c.layers, c.heads, c.kv_heads, c.vocab, c.seq_len}),
            (Shape{64, 172, 5, 8, 4, 512, 512}));
  EXPECT_TRUE(c.tied);
  EXPECT_EQ(c.head_dim(), 8);
  const auto& t = model.tensors;
  EXPECT_EQ(t.at("tok_emb").shape, (Shape{512, 64}));
  EXPECT_EQ(t.at("tok_emb").offset, 28u);
  EXPECT_EQ(t.at("wq").shape, (Shape{5, 64, 64}));
  EXPECT_EQ(t.at("wk").shape, (Shape{5, 32, 64}));
  EXPECT_EQ(t.at("w1").shape, (Shape{5, 172, 64}));
  EXPECT_EQ(t.at("w2").shape, (Shape{5, 64, 172}));
  EXPECT_EQ(t.find("wcls"), nullptr);
  // final_norm is followed by the rotation tables only: 512 * 8 floats to the end of the file.
  const auto& last = t.at("final_norm");
  EXPECT_EQ(last.offset + last.size + 512 * 8 * 4, 1056540u);
  for (auto& e : t.entries())
    for (float v : t.floats(e)) ASSERT_TRUE(std::isfinite(v)) << e.name;
}

// The forward pass of the model at position 0, written here independently: logits whose values are known.
TEST(RealFiles, Stories260kGivesTheKnownFirstLogits) {
  NEED_DATA(path, "stories260K.bin");
  const auto model = read_llama2c(read_file(path));
  const auto& t = model.tensors;
  const int d = 64, h = 172;
  auto values = [&](const char* name) { return t.doubles(t.at(name)); };
  const auto emb = values("tok_emb"), an = values("att_norm"), wv = values("wv"), wo = values("wo"),
             fn = values("ffn_norm"), w1 = values("w1"), w2 = values("w2"), w3 = values("w3"),
             last = values("final_norm");
  auto norm = [&](const std::vector<double>& x, const double* w) {
    double s = 0;
    for (double v : x) s += v * v;
    std::vector<double> y(x.size());
    for (size_t i = 0; i < x.size(); i++) y[i] = x[i] / std::sqrt(s / d + 1e-5) * w[i];
    return y;
  };
  auto times = [](const double* w, const std::vector<double>& x, int rows) {
    std::vector<double> y(static_cast<size_t>(rows));
    for (size_t r = 0; r < y.size(); r++)
      for (size_t i = 0; i < x.size(); i++) y[r] += w[r * x.size() + i] * x[i];
    return y;
  };
  std::vector<double> x(emb.begin() + d, emb.begin() + 2 * d);  // token 1
  for (int l = 0; l < 5; l++) {
    // One position: attention is the value, each of 4 heads read by two query heads of 8.
    const auto v = times(&wv[size_t(l * 32 * d)], norm(x, &an[size_t(l * d)]), 32);
    std::vector<double> spread(d);
    for (int i = 0; i < d; i++) spread[size_t(i)] = v[size_t(i / 16 * 8 + i % 8)];
    const auto o = times(&wo[size_t(l * d * d)], spread, d);
    for (size_t i = 0; i < x.size(); i++) x[i] += o[i];
    const auto n = norm(x, &fn[size_t(l * d)]);
    auto a = times(&w1[size_t(l * h * d)], n, h);
    const auto b = times(&w3[size_t(l * h * d)], n, h);
    for (size_t i = 0; i < a.size(); i++) a[i] = a[i] / (1 + std::exp(-a[i])) * b[i];
    const auto f = times(&w2[size_t(l * d * h)], a, d);
    for (size_t i = 0; i < x.size(); i++) x[i] += f[i];
  }
  const auto logits = times(emb.data(), norm(x, last.data()), 512);
  EXPECT_NEAR(logits[0], -6.222911, 1e-4);
  EXPECT_NEAR(logits[1], 8.404342, 1e-4);
  EXPECT_NEAR(logits[2], -6.223737, 1e-4);
  EXPECT_NEAR(*std::max_element(logits.begin(), logits.end()), 17.023516, 1e-4);
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), 403);
}

TEST(RealFiles, Tok512EncodesAndDecodesTheKnownText) {
  NEED_DATA(path, "tok512.bin");
  const auto t = read_tokenizer(read_file(path), 512);
  EXPECT_EQ(t.encode("Lily went to the park."),
            (std::vector<int>{1, 317, 263, 377, 267, 265, 282, 295, 433, 426}));
  EXPECT_EQ(t.decode({1, 317, 263, 377, 267, 265, 282, 295, 433, 426}), "Lily went to the park.");
  const std::vector<int> story = {1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317,
                                  426, 338, 401, 396, 267, 337, 410, 408, 419, 292, 411, 322, 265, 282, 295,
                                  433, 426, 385, 328, 432, 358, 394, 261, 370, 432, 352, 266, 268, 388, 426};
  EXPECT_EQ(t.decode(story),
            "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
            "One day, she saw a big, red ball.");
  EXPECT_EQ(t.encode(t.decode(story)), story);
  EXPECT_EQ(t.piece(1), "\n<s>\n");
  EXPECT_EQ(t.score(260), -1);
  EXPECT_EQ(t.find("he"), 260);
  EXPECT_EQ(t.find("no such piece"), std::nullopt);
}

TEST(RealFiles, SileroHasItsShapes) {
  NEED_DATA(path, "silero16k.safetensors");
  const auto t = read_safetensors(read_file(path));
  const std::vector<std::pair<const char*, Shape>> known = {{"stft_conv.weight", {258, 1, 256}},
                                                            {"conv1.weight", {128, 129, 3}},
                                                            {"conv1.bias", {128}},
                                                            {"conv2.weight", {64, 128, 3}},
                                                            {"conv2.bias", {64}},
                                                            {"conv3.weight", {64, 64, 3}},
                                                            {"conv3.bias", {64}},
                                                            {"conv4.weight", {128, 64, 3}},
                                                            {"conv4.bias", {128}},
                                                            {"lstm_cell.weight_ih", {512, 128}},
                                                            {"lstm_cell.weight_hh", {512, 128}},
                                                            {"lstm_cell.bias_ih", {512}},
                                                            {"lstm_cell.bias_hh", {512}},
                                                            {"final_conv.weight", {1, 128, 1}},
                                                            {"final_conv.bias", {1}}};
  ASSERT_EQ(t.entries().size(), known.size());
  uint64_t values = 0;
  for (auto& [name, shape] : known) {
    EXPECT_EQ(t.at(name).shape, shape) << name;
    EXPECT_EQ(t.at(name).dtype, Dtype::f32);
    values += t.floats(t.at(name)).size();
  }
  EXPECT_EQ(values, 309633u);
}

TEST(RealFiles, RnnoiseHasItsGruWeightsAndMetadata) {
  NEED_DATA(path, "rnnoise-v0.1.safetensors");
  const auto t = read_safetensors(read_file(path));
  EXPECT_EQ(t.entries().size(), 15u);
  EXPECT_EQ(t.at("denoise_gru.weights").shape, (Shape{114, 3 * 96}));
  EXPECT_EQ(t.at("noise_gru.recurrent_weights").shape, (Shape{48, 3 * 48}));
  EXPECT_EQ(t.at("vad_output.bias").dtype, Dtype::i8);
  const TensorFile::Metadata known = {{"source", "xiph/rnnoise tag v0.1"},
                                      {"licence", "BSD-3-Clause"},
                                      {"scale", "1/256"},
                                      {"gates", "z,r,h"}};
  EXPECT_EQ(t.metadata(), known);
  // The dense layer and the first step of the vad GRU (features x_i = (i % 5 - 2) / 4, zero state) give
  // 0.173137.
  auto value = [&](const char* name) {
    auto v = t.doubles(t.at(name));
    for (auto& x : v) x /= 256;
    return v;
  };
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto dw = value("input_dense.weights"), db = value("input_dense.bias"), gw = value("vad_gru.weights"),
             gb = value("vad_gru.bias"), ow = value("vad_output.weights"), ob = value("vad_output.bias");
  double out = ob[0], dense[24];
  for (size_t o = 0; o < 24; o++) {
    double s = db[o];
    for (size_t i = 0; i < 42; i++) s += (double(i % 5) - 2) / 4 * dw[i * 24 + o];
    dense[o] = std::tanh(s);
  }
  for (size_t o = 0; o < 24; o++) {
    double z = gb[o], h = gb[48 + o];
    for (size_t i = 0; i < 24; i++) z += dense[i] * gw[i * 72 + o], h += dense[i] * gw[i * 72 + 48 + o];
    out += ow[o] * (1 - sigmoid(z)) * std::max(h, 0.0);
  }
  EXPECT_NEAR(sigmoid(out), 0.173137, 2e-6);
}

TEST(RealFiles, GptNanoSortHasItsTensorsAndPartials) {
  NEED_DATA(path, "gpt-nano-sort-model.json");
  NEED_DATA(partials, "gpt-nano-sort-t0-partials.json");
  const auto model = read_json_tensors(read_file(path)), p = read_json_tensors(read_file(partials));
  EXPECT_EQ(model.entries().size(), 44u);
  EXPECT_EQ(p.entries().size(), 25u);
  EXPECT_EQ(model.metadata()[0], (std::pair<std::string, std::string>{"model_type", "gpt-nano"}));
  EXPECT_EQ(model.metadata()[3], (std::pair<std::string, std::string>{"n_embd", "48"}));
  EXPECT_EQ(model.at("transformer.h.2.mlp.c_fc.weight").shape, (Shape{192, 48}));
  EXPECT_EQ(p.at("att").shape, (Shape{3, 3, 11, 11}));
  // tok_emb is wte picked by idx, x = tok_emb + pos_emb, attSm rows sum to 1.
  const auto wte = model.floats(model.at("transformer.wte.weight")),
             wpe = model.floats(model.at("transformer.wpe.weight"));
  const auto idx = p.floats(p.at("idx")), tok = p.floats(p.at("tok_emb")), x = p.floats(p.at("x"));
  for (size_t r = 0; r < 33; r++) {
    for (size_t c = 0; c < 48; c++) {
      ASSERT_EQ(tok[r * 48 + c], wte[size_t(idx[r]) * 48 + c]);
      ASSERT_EQ(x[r * 48 + c], tok[r * 48 + c] + wpe[r % 11 * 48 + c]);
    }
  }
  const auto att = p.doubles(p.at("att")), soft = p.doubles(p.at("attSm"));
  EXPECT_TRUE(std::isinf(att[1]));
  for (size_t r = 0; r < 99; r++) {
    double sum = 0;
    for (size_t c = 0; c < 11; c++) sum += soft[r * 11 + c];
    ASSERT_NEAR(sum, 1, 1e-6);
  }
}

// x -> y = elu(W x + b), the last layer plain; input x_i = (i % 7 - 3) / 4.
TEST(RealFiles, T1PolicyGivesItsKnownActions) {
  NEED_DATA(path, "T1.pt");
  const auto t = read_torchscript(read_file(path));
  ASSERT_EQ(t.entries().size(), 8u);
  std::vector<double> x(47);
  for (size_t i = 0; i < x.size(); i++) x[i] = (double(i % 7) - 3) / 4;
  for (int layer = 0; layer < 4; layer++) {
    const auto w = t.doubles(t.at("data/" + std::to_string(2 * layer)));
    auto y = t.doubles(t.at("data/" + std::to_string(2 * layer + 1)));
    ASSERT_EQ(w.size(), x.size() * y.size());
    for (size_t o = 0; o < y.size(); o++) {
      for (size_t i = 0; i < x.size(); i++) y[o] += w[o * x.size() + i] * x[i];
      if (layer < 3 && y[o] < 0) y[o] = std::expm1(y[o]);
    }
    x = y;
  }
  const double known[] = {-.070026, .563209,  .390513, .511849, .481234,   -.162935,
                          -.458413, -.021397, .365091, .082812, -1.436241, -.195529};
  ASSERT_EQ(x.size(), 12u);
  for (size_t i = 0; i < 12; i++) EXPECT_NEAR(x[i], known[i], 2e-6) << i;
}

TEST(RealFiles, G1PolicyGivesItsKnownActions) {
  NEED_DATA(path, "g1motion.pt");
  const auto t = read_torchscript(read_file(path));
  ASSERT_EQ(t.entries().size(), 10u);
  auto blob = [&](int i) { return t.doubles(t.at("data/" + std::to_string(i))); };
  const auto w1 = blob(2), b1 = blob(3), w2 = blob(4), b2 = blob(5), wi = blob(6), wh = blob(7), bi = blob(8),
             bh = blob(9);
  auto h = blob(0), c = blob(1);
  ASSERT_EQ(h.size(), 64u);
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double known[3][3] = {
      {-1.292478, .272257, .736914}, {-.903512, -.385242, .605617}, {-.650110, .764675, 1.395931}};
  std::fill(h.begin(), h.end(), 0.0);
  std::fill(c.begin(), c.end(), 0.0);
  for (auto& step : known) {
    std::vector<double> g(256);
    for (size_t r = 0; r < 256; r++) {
      g[r] = bi[r] + bh[r];
      for (size_t i = 0; i < 47; i++) g[r] += wi[r * 47 + i] * (double(i % 7) - 3) / 4;
      for (size_t i = 0; i < 64; i++) g[r] += wh[r * 64 + i] * h[i];
    }
    for (size_t i = 0; i < 64; i++) {
      c[i] = sigmoid(g[64 + i]) * c[i] + sigmoid(g[i]) * std::tanh(g[128 + i]);
      h[i] = sigmoid(g[192 + i]) * std::tanh(c[i]);
    }
    auto a = b1, y = b2;
    for (size_t o = 0; o < 32; o++) {
      for (size_t i = 0; i < 64; i++) a[o] += w1[o * 64 + i] * h[i];
      if (a[o] < 0) a[o] = std::expm1(a[o]);
    }
    for (size_t o = 0; o < 12; o++)
      for (size_t i = 0; i < 32; i++) y[o] += w2[o * 32 + i] * a[i];
    for (size_t i = 0; i < 3; i++) EXPECT_NEAR(y[i], step[i], 2e-6);
  }
}

// Every byte offset of a real file's header and a spread over the rest: no cut file is accepted.
TEST(RealFiles, CutFilesAreRefused) {
  struct Case {
    const char* name;
    std::function<void(File)> read;
  };
  const Case cases[] = {{"stories260K.bin", [](File f) { read_llama2c(std::move(f)); }},
                        {"tok512.bin", [](File f) { read_tokenizer(std::move(f), 512); }},
                        {"rnnoise-v0.1.safetensors", [](File f) { read_safetensors(std::move(f)); }},
                        {"T1.pt", [](File f) { read_torchscript(std::move(f)); }},
                        {"gpt-nano-sort-t0-partials.json", [](File f) { read_json_tensors(std::move(f)); }}};
  for (auto& c : cases) {
    NEED_DATA(path, c.name);
    const File whole = read_file(path);
    for (size_t cut = 0; cut < whole.size(); cut += cut < 300 ? 1 : whole.size() / 101) {
      File f{whole.path, {whole.bytes.begin(), whole.bytes.begin() + std::ptrdiff_t(cut)}};
      error_of([&] { c.read(std::move(f)); });
    }
  }
}

}  // namespace
}  // namespace tang::formats
