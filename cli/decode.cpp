// `tang run --model`: a llama2.c checkpoint decodes as one graph a step; the text goes to stdout, figures to
// stderr.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "tang/cli/tool.hpp"
#include "tang/formats/llama2c.hpp"
#include "tang/formats/tokenizer.hpp"
#include "tang/models/decoder.hpp"

namespace tang::cli {

namespace {
models::DecoderSize size_of(const formats::LlamaConfig& c) {
  models::DecoderSize s;
  s.block.model = c.dim;
  s.block.heads = c.heads;
  s.block.kv_heads = c.kv_heads;
  s.block.head = c.head_dim();
  s.block.hidden = c.hidden;
  s.block.rope = {10000, models::Pairing::interleaved};
  s.layers = c.layers;
  s.vocab = c.vocab;
  s.context = c.seq_len;
  s.tied = c.tied;
  return s;
}

// Copies one layer's slice of a checkpoint tensor into a param.
void load(run::Program& p, const std::string& name, const std::vector<float>& all, int64_t layer = 0) {
  const int64_t n = p.elements(name);
  check(int64_t(all.size()) >= (layer + 1) * n, "a slice of the checkpoint for " + name);
  std::copy_n(all.begin() + layer * n, n, p.data<float>(name));
}

std::string beside(const std::string& model, const char* file) {
  const size_t slash = model.rfind('/');
  return (slash == std::string::npos ? "" : model.substr(0, slash + 1)) + file;
}
} // namespace

int sample(const float* logits, int64_t n, bool greedy, std::mt19937_64& rng) {
  int best = 0;
  for (int64_t k = 1; k < n; ++k)
    if (logits[k] > logits[best]) best = int(k);
  if (greedy) return best;
  double total = 0;
  for (int64_t k = 0; k < n; ++k) total += std::exp(double(logits[k]) - double(logits[best]));
  double at = double(rng() >> 11) * 0x1p-53 * total;
  for (int64_t k = 0; k < n; ++k)
    if ((at -= std::exp(double(logits[k]) - double(logits[best]))) <= 0) return int(k);
  return best;
}
int run_model(const Common& c, const std::string& model, const std::string& tokenizer,
              const std::string& prompt, int tokens, bool greedy) {
  const double start = device::Cpu::seconds();
  const formats::LlamaCheckpoint checkpoint = formats::read_llama2c(formats::read_file(model));
  std::string words = tokenizer;
  for (const char* name : {"tok512.bin", "tokenizer.bin"})
    if (words.empty() && exists(beside(model, name))) words = beside(model, name);
  if (words.empty())
    throw Error({}, "no tokenizer beside '" + model + "'", {{"looked for tok512.bin and tokenizer.bin", {}}},
                "name it: --tokenizer FILE");
  const formats::Tokenizer tok = formats::read_tokenizer(formats::read_file(words), checkpoint.config.vocab);
  const models::DecoderSize size = size_of(checkpoint.config);
  std::vector<int> ids = tok.encode(prompt);
  if (int64_t(ids.size()) + tokens > size.context + 1)
    throw Error({},
                "the prompt's " + std::to_string(ids.size()) + " tokens and " + std::to_string(tokens) +
                    " more do not fit",
                {{"the model's context is " + std::to_string(size.context), {}}}, "ask for fewer tokens");
  ir::Builder b;
  models::decode_step(b, models::decoder_weights(b, size), size);
  Host h = open_host(c);
  h.options.guards = false;
  run::Program p(b.graph(), h.compiler, h.cpu, h.options);
  const formats::TensorFile& f = checkpoint.tensors;
  auto values = [&](const char* name) { return f.floats(f.at(name)); };
  load(p, "tokens", values("tok_emb"));
  load(p, "norm", values("final_norm"));
  if (!size.tied) load(p, "classifier", values("wcls"));
  static constexpr const char* names[][2] = {
      {"attention_norm", "att_norm"}, {"q", "wq"},    {"k", "wk"},  {"v", "wv"},   {"o", "wo"},
      {"mlp_norm", "ffn_norm"},       {"gate", "w1"}, {"up", "w3"}, {"down", "w2"}};
  for (auto& [ours, theirs] : names) {
    const std::vector<float> all = values(theirs);
    for (int64_t l = 0; l < size.layers; ++l) load(p, "blocks." + std::to_string(l) + "." + ours, all, l);
  }
  int32_t* token = p.data<int32_t>("token");
  int32_t* pos = p.data<int32_t>("pos");
  const float* logits = p.data<float>("logits");
  const double ready = device::Cpu::seconds();
  std::mt19937_64 rng(1);
  int previous = ids[0];
  for (size_t k = 1; k < ids.size(); ++k) {
    std::fputs(tok.decode(previous, ids[k]).c_str(), stdout);
    previous = ids[k];
  }
  int made = 0;
  double first = 0;
  for (int64_t at = 0; made < tokens; ++at) {
    *token = at < int64_t(ids.size()) ? ids[size_t(at)] : previous;
    *pos = int32_t(at);
    p.run();
    if (at + 1 < int64_t(ids.size())) continue;
    const int next = sample(logits, size.vocab, greedy, rng);
    if (!made++) first = device::Cpu::seconds();
    if (next == formats::Tokenizer::bos || next == formats::Tokenizer::eos) break;
    std::fputs(tok.decode(previous, next).c_str(), stdout);
    std::fflush(stdout);
    previous = next;
  }
  const double end = device::Cpu::seconds();
  std::fputc('\n', stdout);
  std::fprintf(stderr,
               "%d tokens, %.0f tokens/s, ready in %.2f s, first token after %.1f ms, %zu kernels a step\n",
               made, made > 1 ? (made - 1) / (end - first) : 0.0, ready - start, 1e3 * (first - ready),
               p.derivation().kernels.kernels.size());
  return 0;
}

} // namespace tang::cli
