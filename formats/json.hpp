// JSON headers of two levels, {name: {key: value}}, streamed: no tree is built, so a hostile text costs no
// memory.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tang/formats/file.hpp"

namespace tang::formats {

// A value inside a record.
struct Field {
  enum class Kind { text, number, truth, nothing, list } kind;
  std::string text;             // a text, or a number, true, false or null as JSON text
  std::vector<uint64_t> wholes; // a list: at most max_dims whole numbers >= 0
};

// Called in the text's order: begin once with the number of objects in the text (the records and the header
// itself, when it is well formed), then for each record open, field for each key, close.
struct Records {
  std::function<void(uint64_t objects)> begin;
  std::function<void(const std::string& name)> open;
  std::function<void(const std::string& key, Field& value)> field;
  std::function<void()> close;
};

inline constexpr uint64_t max_json_text = 8 << 20, max_json_fields = 4096;

// Throws Error, after any number of calls, when the text is no JSON of this form (other types, deeper
// nesting, invalid UTF-8, numbers that are not finite), a key of a record occurs twice, a record has over
// 4096 keys, a text has over 8 MiB, a key over 1 KiB. Names that occur twice are the caller's to find.
void scan_records(const File& file, std::string_view json, const Records& records);

// A JSON text literal. Throws Error (about `path`) for invalid UTF-8.
std::string quote_json(const std::string& path, const std::string& text);

} // namespace tang::formats
