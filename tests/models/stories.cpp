// A trained Llama-style model end to end: one graph a decode step, caches as donated states, greedy.
#include <chrono>

#include "models/weights.hpp"
#include "tang/formats/llama2c.hpp"
#include "tang/formats/tokenizer.hpp"
#include "tang/models/decoder.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
const std::vector<int64_t> golden_ids{403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395,
                                      317, 426, 338, 401, 396, 267, 337, 410, 408, 419, 292, 411, 322,
                                      265, 282, 295, 433, 426, 385, 328, 432, 358, 394, 261, 370, 432,
                                      352, 266, 268, 388, 426, 338, 391, 266, 267, 337, 335, 312, 432,
                                      398, 312, 286, 267, 414, 270, 333, 415, 426, 13,  438, 310};

DecoderSize size_of(const formats::LlamaConfig& c, int64_t context) {
  DecoderSize s;
  s.block.model = c.dim, s.block.heads = c.heads, s.block.kv_heads = c.kv_heads, s.block.head = c.head_dim(),
  s.block.hidden = c.hidden;
  s.block.rope.pairing = Pairing::interleaved;
  s.layers = c.layers, s.vocab = c.vocab, s.context = context, s.tied = c.tied;
  return s;
}

Inputs weights_of(const formats::LlamaCheckpoint& m) {
  Inputs in;
  auto layer = [&](const char* from, int64_t l) {
    Array a = array_of(m.tensors, from);
    const int64_t each = a.size() / a.shape[0];
    return eval::reals({a.shape.begin() + 1, a.shape.end()},
                       {a.r.begin() + l * each, a.r.begin() + (l + 1) * each});
  };
  const std::vector<std::pair<const char*, const char*>> names{
      {"attention_norm", "att_norm"}, {"q", "wq"},    {"k", "wk"},  {"v", "wv"},   {"o", "wo"},
      {"mlp_norm", "ffn_norm"},       {"gate", "w1"}, {"up", "w3"}, {"down", "w2"}};
  for (int64_t l = 0; l < m.config.layers; ++l)
    for (auto& [ours, theirs] : names) in["blocks." + std::to_string(l) + "." + ours] = layer(theirs, l);
  in["tokens"] = array_of(m.tensors, "tok_emb");
  in["norm"] = array_of(m.tensors, "final_norm");
  if (!m.config.tied) in["classifier"] = array_of(m.tensors, "wcls");
  return in;
}

// A decode graph with its oracle and its caches.
struct Decoder {
  Graph g;
  std::unique_ptr<eval::Oracle> oracle;

  Decoder(const DecoderSize& s, Inputs in) {
    Builder b;
    decode_step(b, decoder_weights(b, s), s);
    EXPECT_TRUE(b.warnings().empty());
    g = b.graph();
    ir::validate(g);
    for (int64_t l = 0; l < s.layers; ++l)
      for (const char* n : {"keys.", "values."})
        in[n + std::to_string(l)] = filled({s.context, s.block.kv_heads, s.block.head}, std::nan(""));
    in["token"] = in["pos"] = eval::indices({}, {0});
    eval::Options two;
    two.threads = 2;
    oracle = std::make_unique<eval::Oracle>(g, in, two);
  }

  Array step(int64_t token, int64_t pos) {
    oracle->rebind("token", eval::indices({}, {token}));
    oracle->rebind("pos", eval::indices({}, {pos}));
    std::map<std::string, Array> out;
    for (auto& o : g.outputs) out[o.name] = oracle->port(o.port);
    for (auto& [name, a] : out)
      if (name != "logits") oracle->rebind(name, a);
    return out.at("logits");
  }
};

int64_t best(const Array& logits) {
  return std::max_element(logits.r.begin(), logits.r.end()) - logits.r.begin();
}
} // namespace

TEST(stories, greedy_decoding_gives_the_golden_ids) {
  TANG_WEIGHTS(path, "stories260K.bin");
  const auto model = formats::read_llama2c(formats::read_file(path));
  Decoder d(size_of(model.config, 64), weights_of(model));
  int64_t token = 1;
  std::vector<int64_t> ids;
  const double tops[3] = {17.023516, 18.459986, 17.136963};
  const auto start = std::chrono::steady_clock::now();
  for (int64_t pos = 0; pos < 64; ++pos) {
    const Array logits = d.step(token, pos);
    token = best(logits);
    ids.push_back(token);
    if (pos < 3) { EXPECT_NEAR(logits.r[size_t(token)], tops[pos], 1e-4); }
    if (pos == 0) {
      EXPECT_NEAR(logits.r[0], -6.222911, 1e-4);
      EXPECT_NEAR(logits.r[1], 8.404342, 1e-4);
      EXPECT_NEAR(logits.r[2], -6.223737, 1e-4);
    }
  }
  RecordProperty(
      "seconds",
      std::to_string(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
  EXPECT_EQ(ids, golden_ids);
}

TEST(stories, prefill_at_an_offset_equals_decoding) {
  TANG_WEIGHTS(path, "stories260K.bin");
  const auto model = formats::read_llama2c(formats::read_file(path));
  const DecoderSize s = size_of(model.config, 12);
  const std::vector<int64_t> prompt{1, 403, 407, 261, 378, 432, 383, 286};
  Decoder d(s, weights_of(model));
  std::vector<Array> by_step;
  Inputs middle; // the caches after three tokens
  for (size_t pos = 0; pos < prompt.size(); ++pos) {
    if (pos == 3)
      for (auto& o : d.g.outputs)
        if (o.name != "logits") middle[o.name] = d.oracle->port(o.port);
    by_step.push_back(d.step(prompt[pos], int64_t(pos)));
  }
  for (auto [first, count] : {std::pair<size_t, size_t>{0, 8}, {3, 5}, {3, 1}}) {
    Builder b;
    prefill(b, decoder_weights(b, s), s, int64_t(count));
    Inputs in = weights_of(model);
    for (int64_t l = 0; l < s.layers; ++l)
      for (const char* n : {"keys.", "values."}) {
        const std::string name = n + std::to_string(l);
        in[name] = first ? middle.at(name) : filled({s.context, s.block.kv_heads, s.block.head}, 7);
      }
    in["ids"] = eval::indices({int64_t(count)},
                              {prompt.begin() + int64_t(first), prompt.begin() + int64_t(first + count)});
    in["pos"] = eval::indices({}, {int64_t(first)});
    eval::Options two;
    two.threads = 2;
    auto out = eval::run(b.graph(), in, two);
    for (size_t r = 0; r < count; ++r)
      for (size_t v = 0; v < 512; ++v)
        ASSERT_EQ(out["logits"].r[r * 512 + v], by_step[first + r].r[v])
            << "row " << r << " of prefill at " << first;
  }
}

TEST(stories, the_tokenizer_and_the_model_tell_the_story) {
  TANG_WEIGHTS(path, "tok512.bin");
  const auto tokenizer = formats::read_tokenizer(formats::read_file(path), 512);
  std::vector<int> ids{1};
  ids.insert(ids.end(), golden_ids.begin(), golden_ids.end());
  EXPECT_EQ(tokenizer.decode(ids).substr(0, 68),
            "Once upon a time, there was a little girl named Lily. She loved to p");
}
