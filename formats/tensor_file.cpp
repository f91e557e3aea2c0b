#include "tang/formats/tensor_file.hpp"

#include <algorithm>

#include "tang/base/error.hpp"
#include "tang/formats/file.hpp"

namespace tang::formats {

std::string text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); i++) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::optional<uint64_t> count_elements(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  bool is_empty = false;
  for (int64_t d : shape) {
    if (d < 0) return std::nullopt;
    if (d == 0)
      is_empty = true;
    else if (__builtin_mul_overflow(product, d, &product))
      return std::nullopt;
  }
  return is_empty ? 0 : uint64_t(product);
}

std::optional<uint64_t> count_bytes(const std::vector<int64_t>& shape, Dtype dtype) {
  const auto elements = count_elements(shape);
  uint64_t bytes;
  if (!elements || __builtin_mul_overflow(*elements, uint64_t(row(dtype).bytes), &bytes)) return std::nullopt;
  return bytes;
}

namespace {
[[noreturn]] void reject_twice(const std::string& source, const std::string& name) {
  reject(source, "tensor '" + shown(name) + "' occurs twice", {"a name stands for one tensor"},
         "rename one of the two");
}
} // namespace

TensorFile::TensorFile(std::string source, std::vector<uint8_t> bytes, std::vector<Entry> entries,
                       Metadata metadata)
    : source_(std::move(source)), bytes_(std::move(bytes)), entries_(std::move(entries)),
      metadata_(std::move(metadata)) {
  if (entries_.size() > max_tensors) {
    reject(source_, "holds " + std::to_string(entries_.size()) + " tensors",
           {"at most " + std::to_string(max_tensors) + " are read"}, "split the file");
  }
  for (auto& e : entries_) {
    check_entry(e, damaged);
    check_inside(e);
  }
  by_name_.resize(entries_.size());
  for (uint32_t i = 0; i < by_name_.size(); i++) by_name_[i] = i;
  auto name_of = [&](uint32_t i) -> const std::string& { return entries_[i].name; };
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return name_of(a) < name_of(b); });
  for (size_t i = 1; i < by_name_.size(); i++)
    if (name_of(by_name_[i - 1]) == name_of(by_name_[i])) reject_twice(source_, name_of(by_name_[i]));
}

void TensorFile::check_entry(const Entry& e, const char* fix) const {
  const std::string tensor = "tensor '" + shown(e.name) + "'";
  if (e.name.size() > max_name) {
    reject(source_, tensor + " has too long a name",
           {"it has " + std::to_string(e.name.size()) + " bytes",
            "at most " + std::to_string(max_name) + " are read"},
           "rename the tensor");
  }
  if (e.shape.size() > max_dims) {
    reject(source_, tensor + " has " + std::to_string(e.shape.size()) + " dimensions",
           {"at most " + std::to_string(max_dims) + " are read"}, "reshape the tensor");
  }
  const auto need = count_bytes(e.shape, e.dtype);
  if (!need || *need != e.size) {
    reject(source_, tensor + " does not match its bytes",
           {"shape " + text(e.shape) + " of " + row(e.dtype).name +
                (need ? " takes " + std::to_string(*need) + " bytes"
                      : " takes more bytes than 64 bits can count"),
            "it is given " + std::to_string(e.size)},
           fix);
  }
}

void TensorFile::check_inside(const Entry& e) const {
  uint64_t end;
  if (__builtin_add_overflow(e.offset, e.size, &end) || end > bytes_.size()) {
    reject(source_, "tensor '" + shown(e.name) + "' lies outside the file",
           {"it takes " + std::to_string(e.size) + " bytes from byte " + std::to_string(e.offset),
            "the data has " + std::to_string(bytes_.size()) + " bytes"},
           damaged);
  }
}

void TensorFile::add(std::string name, Dtype dtype, std::vector<int64_t> shape,
                     std::span<const uint8_t> data) {
  const uint32_t at = place(name);
  if (at < by_name_.size() && entries_[by_name_[at]].name == name) reject_twice(source_, name);
  Entry entry{std::move(name), std::move(shape), bytes_.size(), data.size(), dtype, false};
  check_entry(entry, "pass as many values as the shape has");
  bytes_.insert(bytes_.end(), data.begin(), data.end());
  by_name_.insert(by_name_.begin() + at, uint32_t(entries_.size()));
  entries_.push_back(std::move(entry));
}

void TensorFile::add(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
  add(std::move(name), Dtype::f32, std::move(shape),
      {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)});
}

uint32_t TensorFile::place(const std::string& name) const {
  auto less = [&](uint32_t i, const std::string& n) { return entries_[i].name < n; };
  return uint32_t(std::lower_bound(by_name_.begin(), by_name_.end(), name, less) - by_name_.begin());
}

const Entry* TensorFile::find(const std::string& name) const {
  const uint32_t at = place(name);
  return at < by_name_.size() && entries_[by_name_[at]].name == name ? &entries_[by_name_[at]] : nullptr;
}

const Entry& TensorFile::at(const std::string& name) const {
  if (auto* e = find(name)) return *e;
  std::string names;
  const size_t most = 12;
  for (size_t i = 0; i < std::min(entries_.size(), most); i++)
    names += (i ? ", " : "") + shown(entries_[i].name);
  if (entries_.size() > most) names += ", .. (" + std::to_string(entries_.size()) + " in all)";
  reject(source_, "there is no tensor '" + shown(name) + "'",
         {names.empty() ? "it holds none" : "it holds " + names}, "use a name that the file has");
}

std::span<const uint8_t> TensorFile::data(const Entry& e) const {
  check(e.offset <= bytes_.size() && e.size <= bytes_.size() - e.offset, "an entry of another file");
  return {bytes_.data() + e.offset, size_t(e.size)};
}

template <class T> std::vector<T> TensorFile::values(const Entry& e) const {
  const auto bytes = data(e);
  const size_t width = row(e.dtype).bytes, count = bytes.size() / width, rank = e.shape.size();
  std::vector<T> out(count);
  if (!e.fortran_order || rank < 2 || count == 0) {
    convert(e.dtype, bytes.data(), count, out.data());
    return out;
  }
  // Counts row-major; `from` is the same point in the file, where axis a moves by the product of the axes
  // before it.
  std::vector<size_t> stride(rank, 1), at(rank, 0);
  for (size_t a = 1; a < rank; a++) stride[a] = stride[a - 1] * size_t(e.shape[a - 1]);
  size_t from = 0;
  for (size_t i = 0; i < count; i++) {
    convert(e.dtype, bytes.data() + from * width, 1, &out[i]);
    for (size_t a = rank; a-- > 0;) {
      from += stride[a];
      if (++at[a] < size_t(e.shape[a])) break;
      from -= stride[a] * size_t(e.shape[a]);
      at[a] = 0;
    }
  }
  return out;
}

std::vector<float> TensorFile::floats(const Entry& e) const { return values<float>(e); }

std::vector<double> TensorFile::doubles(const Entry& e) const { return values<double>(e); }

} // namespace tang::formats
