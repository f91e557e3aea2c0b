#include "tang/formats/json_tensors.hpp"

#include <array>

#include "tang/formats/json.hpp"

namespace tang::formats {

namespace {
constexpr std::array<int8_t, 256> sextets() {
  std::array<int8_t, 256> out{};
  for (auto& v : out) v = -1;
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int i = 0; i < 64; i++) out[static_cast<unsigned char>(digits[i])] = int8_t(i);
  return out;
}

// Appends the bytes; false for text that is no canonical base64: length, alphabet, padding, unused bits.
bool decode_base64(std::string_view text, std::vector<uint8_t>& out) {
  static constexpr auto value = sextets();
  if (text.size() % 4) return false;
  size_t pads = 0;
  while (pads < 2 && pads < text.size() && text[text.size() - 1 - pads] == '=') pads++;
  uint32_t bits = 0, held = 0;
  for (unsigned char c : text.substr(0, text.size() - pads)) {
    if (value[c] < 0) return false;
    bits = bits << 6 | uint32_t(value[c]);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(uint8_t(bits >> held));
  }
  return (bits & ((1u << held) - 1)) == 0;
}
} // namespace

TensorFile read_json_tensors(File file) {
  std::vector<uint8_t> bytes;
  std::vector<Entry> entries;
  TensorFile::Metadata metadata;
  bool in_config = false, had_config = false, has_shape = false, has_dtype = false, has_data = false;
  constexpr uint64_t max_table = 20 << 20; // of memory for names and shapes
  uint64_t table = 0;

  auto wrong = [&](const std::string& what, std::vector<std::string> facts) {
    reject(file.path, "tensor '" + shown(entries.back().name) + "' " + what, std::move(facts), damaged);
  };
  auto grow = [&](uint64_t by) {
    table += by;
    if (table <= max_table) return;
    reject(file.path, "has too many tensors",
           {"their names and shapes take over " + std::to_string(max_table) + " bytes"}, "split the file");
  };
  auto begin = [&](uint64_t objects) {
    grow(objects * (sizeof(Entry) + sizeof(uint32_t)));
    entries.reserve(size_t(objects));
    bytes.reserve(size_t(file.size() / 4 * 3)); // no base64 of this file decodes to more
  };
  auto open = [&](const std::string& name) {
    in_config = name == "config";
    if (in_config && had_config) reject(file.path, "has config twice", {"it may occur once"}, damaged);
    had_config |= in_config;
    if (in_config) return;
    grow(name.size() + 32);
    entries.push_back({name, {}, bytes.size(), 0, Dtype::f32, false});
    has_shape = has_dtype = has_data = false;
  };
  auto field = [&](const std::string& key, Field& value) {
    if (in_config) {
      grow(128 + key.size() + value.text.size());
      metadata.push_back({key, std::string(value.text)});
    } else if (key == "shape" && value.kind == Field::Kind::list) {
      grow(value.wholes.size() * 8 + 16);
      for (uint64_t d : value.wholes) {
        if (d > INT64_MAX) wrong("has a dimension over 2^63 - 1", {"it says " + std::to_string(d)});
        entries.back().shape.push_back(int64_t(d));
      }
      has_shape = true;
    } else if (key == "dtype" && value.kind == Field::Kind::text) {
      if (value.text != "torch.float32")
        wrong("has an element type that is not read",
              {"it says '" + shown(value.text) + "'", "torch.float32 is read"});
      has_dtype = true;
    } else if (key == "data" && value.kind == Field::Kind::text) {
      if (!decode_base64(value.text, bytes))
        wrong("has data that is not base64", {"it begins '" + shown(value.text, 16) + "'"});
      entries.back().size = bytes.size() - entries.back().offset;
      has_data = true;
    } else {
      wrong("has a wrong '" + shown(key) + "'",
            {"a tensor has a list shape, a text dtype and a text data, nothing else"});
    }
  };
  auto close = [&] {
    if (in_config || (has_shape && has_dtype && has_data)) return;
    wrong(std::string("has no ") + (!has_shape   ? "shape"
                                    : !has_dtype ? "dtype"
                                                 : "data"),
          {"a tensor needs shape, dtype and data"});
  };
  scan_records(file, file.text(0, file.size()), {begin, open, field, close});
  return TensorFile(file.path, std::move(bytes), std::move(entries), std::move(metadata));
}

} // namespace tang::formats
