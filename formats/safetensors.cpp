#include "tang/formats/safetensors.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/formats/json.hpp"

namespace tang::formats {

namespace {
constexpr uint64_t header_limit = 100'000'000;
constexpr const char* metadata_name = "__metadata__";

std::string range(uint64_t begin, uint64_t end) { return std::to_string(begin) + ".." + std::to_string(end); }

// The header's records as they are read.
class Table {
public:
  Table(const File& file, uint64_t data_at)
      : file_(file), data_at_(data_at), data_size_(file.size() - data_at) {}

  void begin(uint64_t objects) {
    if (objects > max_tensors) {
      reject(file_.path, "has too many tensors",
             {"its header has " + std::to_string(objects) + " records",
              "at most " + std::to_string(max_tensors) + " are read"},
             "split the file");
    }
    charge(objects * (sizeof(Entry) + 2 * sizeof(uint32_t))); // the table and its two orders
    entries_.reserve(size_t(objects));
  }

  void open(const std::string& name) {
    in_metadata_ = name == metadata_name;
    if (in_metadata_ && had_metadata_)
      reject(file_.path, "has __metadata__ twice", {"it may occur once"}, damaged);
    had_metadata_ |= in_metadata_;
    if (in_metadata_) return;
    entries_.push_back({name, {}, 0, 0, Dtype::f32, false});
    has_dtype_ = has_shape_ = has_span_ = false;
    charge(name.size() > 15 ? name.size() + 17 : 0);
  }

  void field(const std::string& key, Field& value) {
    if (in_metadata_) return keep_metadata(key, value);
    if (key == "dtype" && value.kind == Field::Kind::text) {
      const auto dtype = dtype_of_name(value.text);
      if (!dtype) {
        wrong("has an unknown dtype", {"it says '" + shown(value.text) + "'", "known are " + list_dtypes()},
              "convert the tensor to a known dtype");
      }
      entries_.back().dtype = *dtype;
      has_dtype_ = true;
    } else if (key == "shape" && value.kind == Field::Kind::list) {
      charge(value.wholes.size() * 8 + 16);
      entries_.back().shape.reserve(value.wholes.size());
      for (uint64_t d : value.wholes) {
        if (d > INT64_MAX) wrong("has a dimension over 2^63 - 1", {"it says " + std::to_string(d)}, damaged);
        entries_.back().shape.push_back(int64_t(d));
      }
      has_shape_ = true;
    } else if (key == "data_offsets" && value.kind == Field::Kind::list && value.wholes.size() == 2) {
      place(value.wholes[0], value.wholes[1]);
      has_span_ = true;
    } else {
      wrong("has a wrong '" + shown(key) + "'",
            {"a tensor has a text dtype, a list shape and data_offsets [begin, end], nothing else"}, damaged);
    }
  }

  void close() {
    if (in_metadata_) return;
    if (!has_dtype_ || !has_shape_ || !has_span_) {
      wrong(std::string("has no ") + (!has_dtype_   ? "dtype"
                                      : !has_shape_ ? "shape"
                                                    : "data_offsets"),
            {"a tensor needs dtype, shape and data_offsets"}, damaged);
    }
    auto& e = entries_.back();
    const auto need = count_bytes(e.shape, e.dtype);
    if (need && *need == e.size) return;
    wrong("does not match its bytes",
          {"shape " + text(e.shape) + " of " + row(e.dtype).name + " takes " +
               (need ? std::to_string(*need) + " bytes" : "more bytes than 64 bits can count"),
           "data_offsets span " + std::to_string(e.size) + " bytes"},
          damaged);
  }

  // The spans in order must begin where the one before ends, from 0 to the end of the data.
  void check_cover() const {
    std::vector<uint32_t> order(entries_.size());
    for (uint32_t i = 0; i < order.size(); i++) order[i] = i;
    auto end = [&](uint32_t i) { return entries_[i].offset + entries_[i].size; };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(entries_[a].offset, end(a)) < std::pair(entries_[b].offset, end(b));
    });
    uint64_t covered = data_at_;
    std::string before = "the data begins at 0";
    for (uint32_t i : order) {
      auto& e = entries_[i];
      const std::string here =
          "'" + shown(e.name) + "' takes " + range(e.offset - data_at_, end(i) - data_at_);
      if (e.offset != covered) {
        reject(file_.path,
               "tensor '" + shown(e.name) + "' " +
                   (e.offset < covered ? "overlaps another" : "follows a hole"),
               {before, here}, damaged);
      }
      covered = end(i);
      before = here;
    }
    if (covered == file_.size()) return;
    reject(file_.path, "has bytes that belong to no tensor",
           {"the tensors end at byte " + std::to_string(covered),
            "the file has " + std::to_string(file_.size())},
           "remove what follows the tensors, or write the file again");
  }

  std::vector<Entry> take_entries() { return std::move(entries_); }

  TensorFile::Metadata take_metadata() { return std::move(metadata_); }

private:
  void keep_metadata(const std::string& key, Field& value) {
    if (value.kind != Field::Kind::text) {
      reject(file_.path, "__metadata__ '" + shown(key) + "' is not a text", {"it is " + shown(value.text)},
             damaged);
    }
    charge(128 + key.size() + value.text.size());
    metadata_.push_back(
        {key, std::string(value.text)}); // a copy: the lexer's text has twice the room it needs
  }

  void place(uint64_t begin, uint64_t end) {
    if (begin > end || end > data_size_) {
      wrong(begin > end ? "ends before it begins" : "lies outside the file",
            {"data_offsets are [" + std::to_string(begin) + ", " + std::to_string(end) + "]",
             "the data after the header has " + std::to_string(data_size_) + " bytes"},
            damaged);
    }
    entries_.back().offset = data_at_ + begin;
    entries_.back().size = end - begin;
  }

  // What the table takes may be as much as the header takes and 20 MiB: a small header stays cheap to hold.
  void charge(uint64_t bytes) {
    charged_ += bytes;
    if (charged_ <= data_at_ + (20 << 20)) return;
    reject(file_.path, "has a header that would take too much memory",
           {"its names, shapes and metadata take over " + std::to_string(charged_) + " bytes",
            "the header has " + std::to_string(data_at_)},
           "split the file");
  }

  [[noreturn]] void wrong(const std::string& what, std::vector<std::string> facts,
                          const std::string& fix) const {
    reject(file_.path, "tensor '" + shown(entries_.back().name) + "' " + what, std::move(facts), fix);
  }

  const File& file_;
  uint64_t data_at_, data_size_, charged_ = 0;
  std::vector<Entry> entries_;
  TensorFile::Metadata metadata_;
  bool in_metadata_ = false, had_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_span_ = false;
};
} // namespace

TensorFile read_safetensors(File file) {
  Cursor cursor(file);
  const uint64_t length = cursor.number<uint64_t>("the header's length");
  if (length > header_limit) {
    reject(file.path, "has too long a header",
           {"it says " + std::to_string(length) + " bytes",
            "at most " + std::to_string(header_limit) + " are read"},
           damaged);
  }
  const auto json = cursor.take(length, "the JSON header");
  if (json.empty() || json[0] != '{') {
    reject(file.path, "is no safetensors file",
           {"the header must begin with {", "it is '" + shown(json, 16) + "'"}, damaged);
  }
  Table table(file, 8 + length);
  scan_records(
      file, json,
      {[&](uint64_t objects) { table.begin(objects); }, [&](const std::string& name) { table.open(name); },
       [&](const std::string& key, Field& value) { table.field(key, value); }, [&] { table.close(); }});
  table.check_cover();
  auto entries = table.take_entries();
  auto metadata = table.take_metadata();
  return TensorFile(file.path, std::move(file.bytes), std::move(entries), std::move(metadata));
}

void write_safetensors(const std::string& path, const TensorFile& tensors) {
  std::vector<const Entry*> order;
  for (auto& e : tensors.entries()) {
    if (e.fortran_order && e.shape.size() > 1) {
      reject(path, "tensor '" + shown(e.name) + "' is in fortran order",
             {"safetensors holds row-major tensors"}, "add it again from its values in row-major order");
    }
    if (e.name == metadata_name) {
      reject(path, "a tensor is named __metadata__", {"the format keeps that name for itself"},
             "rename the tensor");
    }
    order.push_back(&e);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return row(a->dtype).bytes > row(b->dtype).bytes; });

  std::string header = "{";
  auto separate = [&] { header += header.size() > 1 ? "," : ""; };
  if (!tensors.metadata().empty()) {
    header += quote_json(path, metadata_name) + ":{";
    for (auto& [key, value] : tensors.metadata()) {
      header += (header.back() == '{' ? "" : ",") + quote_json(path, key) + ":";
      header += quote_json(path, value);
    }
    header += "}";
  }
  uint64_t at = 0;
  for (auto* e : order) {
    separate();
    std::string shape;
    for (int64_t d : e->shape) shape += (shape.empty() ? "" : ",") + std::to_string(d);
    header += quote_json(path, e->name) + ":{\"dtype\":\"" + row(e->dtype).name + "\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + e->size) + "]}";
    at += e->size;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');

  const uint64_t length = header.size();
  std::vector<std::span<const uint8_t>> pieces = {
      {reinterpret_cast<const uint8_t*>(&length), sizeof length},
      {reinterpret_cast<const uint8_t*>(header.data()), header.size()}};
  for (auto* e : order) pieces.push_back(tensors.data(*e));
  write_file(path, pieces);
}

} // namespace tang::formats
