// A trained language model through the C target: one graph a step, caches updated in place, the golden story.
#include "models/weights.hpp"
#include "run/harness.hpp"
#include "tang/formats/llama2c.hpp"
#include "tang/models/decoder.hpp"

using namespace tang;
using namespace tang::models;

TEST(stories, the_c_target_decodes_the_golden_ids) {
  TANG_WEIGHTS(path, "stories260K.bin");
  const std::vector<int> golden{403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338, 401, 396, 267, 337, 410, 408,
                                419, 292, 411, 322, 265, 282, 295, 433, 426, 385, 328, 432, 358, 394, 261, 370, 432, 352, 266, 268, 388, 426,
                                338, 391, 266, 267, 337, 335, 312, 432, 398, 312, 286, 267, 414, 270, 333, 415, 426, 13,  438, 310};
  const auto model = formats::read_llama2c(formats::read_file(path));
  const auto& c = model.config;
  DecoderSize s;
  s.block = {c.dim, c.heads, c.kv_heads, c.head_dim(), c.hidden, 1e-5, {10000, Pairing::interleaved}};
  s.layers = c.layers;
  s.vocab = c.vocab;
  s.context = 64;
  s.tied = c.tied;
  ir::Builder b;
  decode_step(b, decoder_weights(b, s), s);
  run::Program p(b.graph(), test::shared_compiler(), std::make_shared<device::Cpu>(2));
  auto load = [&](const std::string& name, const char* tensor, int64_t layer) {
    const std::vector<float> all = model.tensors.floats(model.tensors.at(tensor));
    std::copy_n(all.begin() + layer * p.elements(name), p.elements(name), p.data<float>(name));
  };
  load("tokens", "tok_emb", 0);
  load("norm", "final_norm", 0);
  const std::vector<std::pair<const char*, const char*>> names{{"attention_norm", "att_norm"}, {"q", "wq"}, {"k", "wk"}, {"v", "wv"}, {"o", "wo"},
                                                               {"mlp_norm", "ffn_norm"}, {"gate", "w1"}, {"up", "w3"}, {"down", "w2"}};
  for (int64_t l = 0; l < s.layers; ++l)
    for (auto& [ours, theirs] : names) load("blocks." + std::to_string(l) + "." + ours, theirs, l);
  for (int64_t l = 0; l < s.layers; ++l)  // rows that no step has written are never read
    for (const char* n : {"keys.", "values."}) p.memory(n + std::to_string(l))->poison();
  int token = 1;
  std::vector<int> ids;
  const float* logits = p.data<float>("logits");
  for (int pos = 0; pos < 64; ++pos) {
    *p.data<int32_t>("token") = token;
    *p.data<int32_t>("pos") = pos;
    p.run();
    if (pos == 0) {
      EXPECT_NEAR(logits[0], -6.222911, 1e-4);
      EXPECT_NEAR(logits[1], 8.404342, 1e-4);
    }
    token = int(std::max_element(logits, logits + s.vocab) - logits);
    ids.push_back(token);
  }
  EXPECT_EQ(ids, golden);
}
