#include "tang/formats/llama2c.hpp"

namespace tang::formats {

namespace {
constexpr int32_t magic_later = 0x616b3432; // "ak42": versions 1 and 2

LlamaConfig read_config(const File& file, Cursor& cursor) {
  struct Slot {
    const char* name;
    int64_t LlamaConfig::*value;
  };

  constexpr Slot slots[] = {{"dim", &LlamaConfig::dim},
                            {"hidden_dim", &LlamaConfig::hidden},
                            {"n_layers", &LlamaConfig::layers},
                            {"n_heads", &LlamaConfig::heads},
                            {"n_kv_heads", &LlamaConfig::kv_heads},
                            {"vocab_size", &LlamaConfig::vocab},
                            {"seq_len", &LlamaConfig::seq_len}};
  LlamaConfig c;
  for (auto& slot : slots) c.*slot.value = cursor.number<int32_t>("the header");
  if (c.dim == magic_later) {
    reject(file.path, "is a llama2.c checkpoint of a later version",
           {"it begins with the mark ak42", "version 0 is read"}, "export the model with version 0");
  }
  c.tied = c.vocab > 0;
  if (!c.tied) c.vocab = -c.vocab;
  for (auto& slot : slots) {
    if (c.*slot.value > 0) continue;
    reject(file.path, "is no llama2.c checkpoint",
           {std::string(slot.name) + " is " + std::to_string(c.*slot.value),
            "every number of the header is positive"},
           damaged);
  }
  auto divides = [&](int64_t part, const char* part_name, int64_t whole, const char* whole_name) {
    if (whole % part == 0) return;
    reject(file.path, "is no llama2.c checkpoint",
           {std::string(part_name) + " is " + std::to_string(part),
            std::string(whole_name) + " is " + std::to_string(whole) + ", no multiple of it"},
           damaged);
  };
  divides(c.heads, "n_heads", c.dim, "dim");
  divides(c.kv_heads, "n_kv_heads", c.heads, "n_heads");
  divides(2, "the width of a rotated pair", c.head_dim(), "dim / n_heads");
  return c;
}
} // namespace

LlamaCheckpoint read_llama2c(File file) {
  Cursor cursor(file);
  const LlamaConfig c = read_config(file, cursor);
  const int64_t l = c.layers, d = c.dim, k = c.kv_dim(), h = c.hidden;

  struct Part {
    const char* name; // "": not a tensor of the model
    std::vector<int64_t> shape;
  };

  std::vector<Part> parts = {
      {"tok_emb", {c.vocab, d}}, {"att_norm", {l, d}}, {"wq", {l, d, d}},    {"wk", {l, k, d}},
      {"wv", {l, k, d}},         {"wo", {l, d, d}},    {"ffn_norm", {l, d}}, {"w1", {l, h, d}},
      {"w2", {l, d, h}},         {"w3", {l, h, d}},    {"final_norm", {d}},  {"", {c.seq_len, c.head_dim()}}};
  if (!c.tied) parts.push_back({"wcls", {c.vocab, d}});

  std::vector<Entry> entries;
  for (auto& part : parts) {
    const std::string name = *part.name ? part.name : "the rotation tables";
    const auto need = count_bytes(part.shape, Dtype::f32);
    if (!need || *need > cursor.left()) {
      reject(file.path, "the file is shorter than its header says",
             {name + " " + text(part.shape) + " takes " +
                  (need ? std::to_string(*need) + " bytes" : "more bytes than 64 bits can count"),
              std::to_string(cursor.left()) + " of " + std::to_string(file.size()) + " bytes are left"},
             damaged);
    }
    if (*part.name) entries.push_back({part.name, part.shape, cursor.at(), *need, Dtype::f32, false});
    cursor.take(*need, "a tensor");
  }
  if (cursor.left()) {
    reject(file.path, "the file is longer than its header says",
           {"the tensors end at byte " + std::to_string(cursor.at()),
            "the file has " + std::to_string(file.size()) + " bytes"},
           damaged);
  }
  return {c, TensorFile(file.path, std::move(file.bytes), std::move(entries))};
}

} // namespace tang::formats
