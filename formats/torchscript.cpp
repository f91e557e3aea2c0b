#include "tang/formats/torchscript.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tang::formats {

namespace {
constexpr uint32_t local_mark = 0x04034b50, central_mark = 0x02014b50, end_mark = 0x06054b50;
constexpr uint64_t end_size = 22, local_size = 30;

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> out{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    out[i] = c;
  }
  return out;
}

uint32_t crc32(std::string_view bytes) {
  static constexpr auto table = crc_table();
  uint32_t c = ~0u;
  for (unsigned char b : bytes) c = table[(c ^ b) & 255] ^ (c >> 8);
  return ~c;
}

// One line of the zip's directory.
struct Item {
  std::string_view name;
  uint16_t flags, method;
  uint32_t crc, packed, size, local_at;
};

struct Directory {
  uint64_t at, size;
  uint32_t items;
};

Directory find_directory(const File& file) {
  // The end record is the last thing in the file but for a comment, whose length it gives.
  const uint64_t least = file.size() < end_size + 65535 ? 0 : file.size() - end_size - 65535;
  for (uint64_t at = file.size(); at >= least + end_size;) {
    Cursor end(file, at-- - end_size);
    if (end.number<uint32_t>("the end record") != end_mark) continue;
    const auto disk = end.number<uint16_t>("the end record"), start = end.number<uint16_t>("the end record");
    const auto here = end.number<uint16_t>("the end record"), items = end.number<uint16_t>("the end record");
    const auto size = end.number<uint32_t>("the end record"), offset = end.number<uint32_t>("the end record");
    const auto comment = end.number<uint16_t>("the end record");
    if (comment != end.left()) continue;
    if (items == 0xffff || size == UINT32_MAX || offset == UINT32_MAX)
      reject(file.path, "is a zip64 file", {"files below 4 GiB with below 65535 items are read"},
             "save a smaller file");
    const uint64_t end_at = at + 1 - end_size;
    if (disk || start || here != items || uint64_t(offset) + size > end_at) {
      reject(file.path, "has a wrong zip directory",
             {"it takes " + std::to_string(size) + " bytes from byte " + std::to_string(offset),
              "the end record is at byte " + std::to_string(end_at)},
             damaged);
    }
    return {offset, size, items};
  }
  reject(file.path, "is no zip file", {"it has no end record"}, damaged);
}

Item read_item(Cursor& c) {
  constexpr const char* what = "the zip directory";
  Item item;
  const auto mark = c.number<uint32_t>(what);
  c.take(4, what); // versions
  item.flags = c.number<uint16_t>(what);
  item.method = c.number<uint16_t>(what);
  c.take(4, what); // date
  item.crc = c.number<uint32_t>(what);
  item.packed = c.number<uint32_t>(what);
  item.size = c.number<uint32_t>(what);
  const auto name = c.number<uint16_t>(what), extra = c.number<uint16_t>(what),
             comment = c.number<uint16_t>(what);
  c.take(8, what); // disk, attributes
  item.local_at = c.number<uint32_t>(what);
  item.name = c.take(name, what);
  c.take(uint64_t(extra) + comment, what);
  if (mark != central_mark) item.name = {};
  return item;
}

// N of "<root>/data/N"; the root may be anything without a slash.
std::optional<uint32_t> blob_number(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos || name.substr(slash, 6) != "/data/") return std::nullopt;
  const auto digits = name.substr(slash + 6);
  if (digits.empty() || digits.size() > 6 || (digits[0] == '0' && digits.size() > 1)) return std::nullopt;
  uint32_t v = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    v = v * 10 + uint32_t(c - '0');
  }
  return v;
}

// Where the item's bytes begin. The local header must agree with the directory.
uint64_t check_item(const File& file, const Directory& directory, const Item& item) {
  const std::string name = "'" + shown(item.name) + "'";
  if (item.flags & 1)
    reject(file.path, name + " is encrypted", {"plain items are read"}, "save the model without a password");
  if (item.method != 0) {
    reject(file.path, name + " is compressed",
           {"its zip method is " + std::to_string(item.method), "stored items (method 0) are read"},
           "save the model again, or repack it with `zip -0`");
  }
  if (item.packed != item.size || item.size == UINT32_MAX || item.local_at == UINT32_MAX) {
    reject(
        file.path, name + " has a wrong size",
        {"stored are " + std::to_string(item.packed) + " bytes", "unpacked are " + std::to_string(item.size)},
        damaged);
  }
  if (uint64_t(item.local_at) + local_size > directory.at)
    reject(file.path, name + " lies outside the file",
           {"its header is at byte " + std::to_string(item.local_at)}, damaged);
  Cursor local(file, item.local_at, directory.at);
  const auto mark = local.number<uint32_t>("a local header");
  local.take(4, "a local header"); // version, flags
  const auto method = local.number<uint16_t>("a local header");
  local.take(16, "a local header"); // date, checksum and sizes: zero when they follow the data
  const auto name_size = local.number<uint16_t>("a local header"),
             extra = local.number<uint16_t>("a local header");
  const auto local_name = local.take(name_size, "a local header");
  local.take(extra, "a local header");
  if (mark != local_mark || method != item.method || local_name != item.name) {
    reject(file.path, name + " has a local header that disagrees with the directory",
           {"at byte " + std::to_string(item.local_at) + " it says '" + shown(local_name) + "', method " +
            std::to_string(method)},
           damaged);
  }
  const uint64_t at = local.at();
  local.take(item.size, name.c_str());
  return at;
}

void check_crc(const File& file, const Item& item, uint64_t at) {
  const uint32_t crc = crc32(file.text(at, item.size));
  if (crc == item.crc) return;
  reject(file.path, "'" + shown(item.name) + "' is damaged",
         {"its checksum is " + std::to_string(crc), "the directory says " + std::to_string(item.crc)},
         damaged);
}

void check_overlaps(const File& file, const std::vector<Entry>& entries) {
  std::vector<const Entry*> order;
  for (auto& e : entries) order.push_back(&e);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); i++) {
    const auto &a = *order[i - 1], &b = *order[i];
    if (a.offset + a.size <= b.offset) continue;
    reject(file.path, "'" + b.name + "' overlaps '" + a.name + "'",
           {"one ends at byte " + std::to_string(a.offset + a.size),
            "the other begins at byte " + std::to_string(b.offset)},
           damaged);
  }
}
} // namespace

TensorFile read_torchscript(File file) {
  const Directory directory = find_directory(file);
  Cursor lines(file, directory.at, directory.at + directory.size);
  std::vector<std::pair<uint32_t, Item>> blobs;
  std::string_view root;
  for (uint32_t i = 0; i < directory.items; i++) {
    const Item item = read_item(lines);
    if (item.name.empty())
      reject(file.path, "has a wrong zip directory", {"line " + std::to_string(i) + " has no name or mark"},
             damaged);
    const std::string_view here = item.name.substr(0, item.name.find('/'));
    if (item.name.substr(here.size()) == "/byteorder") {
      const auto order = file.text(check_item(file, directory, item), item.size);
      if (order != "little") {
        reject(file.path, "is not little endian", {"its byteorder is '" + shown(order) + "'"},
               "save the model on a little-endian machine");
      }
    }
    const auto number = blob_number(item.name);
    if (!number) continue;
    if (!blobs.empty() && here != root)
      reject(file.path, "holds two archives", {"'" + shown(root) + "' and '" + shown(here) + "'"},
             "save each into its own file");
    root = here;
    blobs.push_back({*number, item});
  }
  if (lines.left()) {
    reject(file.path, "has a wrong zip directory",
           {std::to_string(lines.left()) + " bytes follow its last line"}, damaged);
  }
  if (blobs.empty())
    reject(file.path, "holds no tensors", {"it has no item <root>/data/0"},
           "save the model with torch.jit.save");
  std::stable_sort(blobs.begin(), blobs.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<Entry> entries;
  for (size_t i = 0; i < blobs.size(); i++) {
    const auto& [number, item] = blobs[i];
    const std::string name = "data/" + std::to_string(number);
    if (i && blobs[i - 1].first == number)
      reject(file.path, "holds '" + name + "' twice", {"a name stands for one blob"}, damaged);
    const uint64_t at = check_item(file, directory, item);
    if (item.size % 4)
      reject(file.path, "'" + name + "' is no f32 blob",
             {"it has " + std::to_string(item.size) + " bytes, no multiple of 4"}, damaged);
    entries.push_back({name, {int64_t(item.size / 4)}, at, item.size, Dtype::f32, false});
  }
  check_overlaps(file, entries);
  // Only now, so that no byte is read twice: items that overlap could make this quadratic.
  for (size_t i = 0; i < blobs.size(); i++) check_crc(file, blobs[i].second, entries[i].offset);
  return TensorFile(file.path, std::move(file.bytes), std::move(entries));
}

} // namespace tang::formats
