// Named tensors over one block of bytes: what every reader returns and every writer takes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tang/formats/dtype.hpp"

namespace tang::formats {

struct Entry {
  std::string name;
  std::vector<int64_t> shape; // outermost first; empty: a scalar
  uint64_t offset = 0;        // into the file's bytes
  uint64_t size = 0;          // bytes
  Dtype dtype = Dtype::f32;
  bool fortran_order = false; // the first axis varies fastest in the bytes
};

std::string text(const std::vector<int64_t>& shape); // "[2, 3]"

// Elements of a shape; none when a dimension is negative or the product of the dimensions other than 0 does
// not fit int64 (so that no product wraps to a small or zero size).
std::optional<uint64_t> count_elements(const std::vector<int64_t>& shape);
std::optional<uint64_t> count_bytes(const std::vector<int64_t>& shape, Dtype dtype);

class TensorFile {
public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  // `source` is the path that errors name.
  explicit TensorFile(std::string source = "(memory)") : source_(std::move(source)) {}

  // Throws Error for: two entries of one name, a name over 1 KiB, over 8 dimensions, over 1e6 tensors, a span
  // outside the bytes, a span of another size than shape and dtype say.
  TensorFile(std::string source, std::vector<uint8_t> bytes, std::vector<Entry> entries,
             Metadata metadata = {});

  // Appends a tensor and its bytes, row-major. Throws Error as above.
  void add(std::string name, Dtype dtype, std::vector<int64_t> shape, std::span<const uint8_t> data);
  void add(std::string name, std::vector<int64_t> shape, const std::vector<float>& values);

  const std::string& source() const { return source_; }

  const std::vector<Entry>& entries() const { return entries_; } // in the file's order

  const Metadata& metadata() const { return metadata_; }

  void set_metadata(Metadata metadata) { metadata_ = std::move(metadata); }

  const Entry* find(const std::string& name) const; // null: absent
  const Entry& at(const std::string& name) const;   // throws Error that lists names

  std::span<const uint8_t>
  data(const Entry& entry) const; // as the file has them: fortran_order is not undone
  // Values in row-major order of the shape, also where the bytes are in fortran order.
  std::vector<float> floats(const Entry& entry) const;
  std::vector<double> doubles(const Entry& entry) const;

private:
  template <class T> std::vector<T> values(const Entry& entry) const;
  void check_entry(const Entry& entry, const char* fix) const;
  void check_inside(const Entry& entry) const;
  uint32_t place(const std::string& name) const; // the first index in by_name_ whose name is not smaller

  std::string source_;
  std::vector<uint8_t> bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> by_name_; // entries sorted by name
  Metadata metadata_;
};

} // namespace tang::formats
