#include "tang/formats/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace tang::formats {

namespace {
using Json = nlohmann::json;

constexpr const char* shape_of_json =
    "the header must be {\"name\": {\"key\": text, number or list of whole numbers}}";

// Bounds what one token makes the lexer copy, before it runs. Gives the number of objects.
uint64_t check_tokens(const File& file, std::string_view json) {
  constexpr uint64_t max_number = 64;
  bool in_text = false;
  uint64_t objects = 0, from = 0; // where the current text, or run of other bytes, began
  for (uint64_t i = 0; i < json.size(); i++) {
    const char c = json[i];
    // The lexer takes a zero byte for the end, so what follows one would go unseen.
    if (c == '\0')
      reject(file.path, "has a zero byte in its JSON", {"at byte " + std::to_string(i)}, damaged);
    if (in_text && c == '\\') {
      i++;
    } else if (c == '"') {
      in_text = !in_text;
      from = i + 1;
    } else if (!in_text && std::string_view("{}[],: \t\r\n").find(c) != std::string_view::npos) {
      from = i + 1;
      objects += c == '{';
    }
    const uint64_t limit = in_text ? max_json_text : max_number;
    if (i + 1 > from && i + 1 - from > limit) {
      reject(file.path, std::string("has a JSON ") + (in_text ? "text" : "number") + " that is too long",
             {"it is longer than " + std::to_string(limit) + " bytes"}, damaged);
    }
  }
  return objects;
}

class Reader : public nlohmann::json_sax<Json> {
public:
  Reader(const File& file, const Records& records) : file_(file), records_(records) {}

  bool null() override { return value(Field::Kind::nothing, "null"); }

  bool boolean(bool v) override { return value(Field::Kind::truth, v ? "true" : "false"); }

  bool number_integer(number_integer_t v) override { return value(Field::Kind::number, std::to_string(v)); }

  bool number_float(number_float_t, const string_t& written) override {
    return value(Field::Kind::number, written);
  }

  bool number_unsigned(number_unsigned_t v) override {
    if (depth_ != 3) return value(Field::Kind::number, std::to_string(v));
    if (list_.wholes.size() == max_dims) {
      wrong("a list of over " + std::to_string(max_dims) + " numbers",
            "at most that many dimensions are read");
    }
    list_.wholes.push_back(v);
    return true;
  }

  bool string(string_t& v) override { return value(Field::Kind::text, std::move(v)); }

  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    if (depth_ >= 2) wrong("an object inside a record");
    if (++depth_ == 2) {
      keys_.clear();
      records_.open(name_);
    }
    return true;
  }

  bool end_object() override {
    if (depth_-- == 2) records_.close();
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2) wrong(depth_ == 3 ? "a list inside a list" : "a list outside a record");
    depth_ = 3;
    list_.wholes.clear();
    return true;
  }

  bool end_array() override {
    depth_ = 2;
    records_.field(key_, list_);
    return true;
  }

  bool key(string_t& v) override {
    if (v.size() > max_name)
      wrong("a key of " + std::to_string(v.size()) + " bytes", "at most 1024 are read");
    if (depth_ == 1) {
      name_ = v;
      return true;
    }
    key_ = v;
    if (keys_.size() == max_json_fields)
      wrong("over " + std::to_string(max_json_fields) + " keys in a record");
    if (!keys_.insert(v).second) wrong("key '" + shown(v) + "' twice", "a key stands for one value");
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& e) override {
    // The library's message repeats the token: only its kind is kept.
    const char* kind = e.id == 113 ? "the end of a list or object" : "a value, key or mark";
    const char* what = e.id == 406 ? "a number that is out of range" : "no valid JSON (or invalid UTF-8)";
    reject(file_.path, "the JSON header cannot be read",
           {std::string("it has ") + what + " at byte " + std::to_string(position) + " of the header",
            "the text there is '" + shown(token, 32) + "'", std::string("expected ") + kind},
           damaged);
  }

private:
  bool value(Field::Kind kind, std::string text) {
    if (depth_ == 3) wrong("'" + shown(text, 32) + "' in a list", "lists hold whole numbers >= 0 below 2^64");
    if (depth_ != 2) wrong("the plain value '" + shown(text, 32) + "' for '" + shown(name_) + "'");
    Field field{kind, std::move(text), {}};
    records_.field(key_, field);
    return true;
  }

  [[noreturn]] void wrong(const std::string& what, const std::string& fact = shape_of_json) {
    std::string where = depth_ >= 2 ? "'" + shown(name_) + "'" : "the header";
    reject(file_.path, where + " has " + what, {fact}, damaged);
  }

  const File& file_;
  const Records& records_;
  int depth_ = 0; // 1: among names, 2: in a record, 3: in a list
  std::string name_, key_;
  Field list_{Field::Kind::list, "", {}};
  std::set<std::string> keys_;
};
} // namespace

void scan_records(const File& file, std::string_view json, const Records& records) {
  records.begin(check_tokens(file, json));
  Reader reader(file, records);
  Json::sax_parse(json.begin(), json.end(), &reader);
}

std::string quote_json(const std::string& path, const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    reject(path, "'" + shown(text) + "' cannot be written", {"it is not valid UTF-8"}, "rename it");
  }
}

} // namespace tang::formats
