// A file's bytes in memory of our own, a cursor that cannot leave them, and the errors about them.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tang::formats {

inline constexpr uint64_t max_dims = 8, max_tensors = 1'000'000, max_name = 1024;

// Read with pread and never mapped: a mapped file that somebody truncates kills its reader.
struct File {
  std::string path;
  std::vector<uint8_t> bytes;

  uint64_t size() const { return bytes.size(); }

  // The caller has checked that the span is inside.
  std::string_view text(uint64_t at, uint64_t count) const {
    return {reinterpret_cast<const char*>(bytes.data()) + at, size_t(count)};
  }
};

// Throws Error: no such file, not a regular file, unreadable, changed while it was read, larger than memory.
File read_file(const std::string& path);

// The pieces one after the other. The file appears whole or not at all. Throws Error when it cannot be
// written.
void write_file(const std::string& path, const std::vector<std::span<const uint8_t>>& pieces);

// Text from a file made fit to print: one line, escaped, at most `most` bytes of it.
std::string shown(std::string_view text, size_t most = 64);

// Throws Error "PATH: WHAT" with the facts and the fix.
[[noreturn]] void reject(const std::string& path, const std::string& what, std::vector<std::string> facts,
                         const std::string& fix);

inline constexpr const char* damaged =
    "the file is cut short, damaged or of another format: get or write it again";

// Walks over part of a file; every step is checked before it is taken.
class Cursor {
public:
  explicit Cursor(const File& file, uint64_t at = 0) : Cursor(file, at, file.size()) {}

  Cursor(const File& file, uint64_t at, uint64_t end); // checked: at <= end <= size

  uint64_t at() const { return at_; }

  uint64_t left() const { return end_ - at_; }

  std::string_view take(uint64_t count, const char* what); // throws Error: the file ends inside `what`

  template <class T> T number(const char* what) {
    T v;
    std::memcpy(&v, take(sizeof v, what).data(), sizeof v);
    return v;
  }

private:
  const File& file_;
  uint64_t at_, end_;
};

} // namespace tang::formats
