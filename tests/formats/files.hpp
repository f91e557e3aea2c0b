// Files for the tests: real ones from the data folder, and hostile ones made byte by byte.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/formats/file.hpp"
#include "tang/formats/tensor_file.hpp"

namespace tang::formats {

// The folder of real weights: TANG_DATA, or shared/data beside the source tree.
inline std::string data_path(const std::string& name) {
  const char* folder = std::getenv("TANG_DATA");
  return std::string(folder ? folder : TANG_DATA_DEFAULT) + "/" + name;
}
inline bool is_present(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}
#define NEED_DATA(path, name)                                \
  const std::string path = ::tang::formats::data_path(name); \
  if (!::tang::formats::is_present(path)) GTEST_SKIP() << path << " not present"

// Builds a file in memory; numbers are little endian.
class Bytes {
 public:
  Bytes& text(std::string_view s) {
    bytes_.insert(bytes_.end(), s.begin(), s.end());
    return *this;
  }
  template <class T>
  Bytes& put(T v) {
    const auto* p = reinterpret_cast<const uint8_t*>(&v);
    bytes_.insert(bytes_.end(), p, p + sizeof v);
    return *this;
  }
  Bytes& zeros(size_t n) {
    bytes_.resize(bytes_.size() + n);
    return *this;
  }
  size_t size() const { return bytes_.size(); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  File file(const std::string& name = "hostile") const { return {name, bytes_}; }

 private:
  std::vector<uint8_t> bytes_;
};

inline File safetensors_of(const std::string& header, size_t data,
                           const std::string& name = "hostile.safetensors") {
  return Bytes().put(uint64_t(header.size())).text(header).zeros(data).file(name);
}
inline File npy_of(const std::string& dict, size_t data, int version = 1) {
  Bytes b;
  b.text("\x93NUMPY").put(uint8_t(version)).put(uint8_t(0));
  if (version == 1)
    b.put(uint16_t(dict.size()));
  else
    b.put(uint32_t(dict.size()));
  return b.text(dict).zeros(data).file("hostile.npy");
}

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "tang-formats-XXXXXX";
    path_ = ::mkdtemp(name.data()) ? name : "";
  }
  ~Folder() {
    for (auto& f : files_) ::unlink(f.c_str());
    ::rmdir(path_.c_str());
  }
  std::string operator/(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

// Runs `read` and gives the Error's text; a test failure if it does not throw one.
template <class F>
std::string error_of(F read) {
  try {
    read();
  } catch (const Error& e) {
    EXPECT_FALSE(e.facts().empty()) << e.what();
    EXPECT_FALSE(e.fix().empty()) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no Error";
  return "";
}
inline void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (auto& w : words) EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' is missing in: " << text;
}

// Most bytes on the heap above what there was when it was made (heap.cpp counts).
class HeapPeak {
 public:
  HeapPeak();
  uint64_t bytes() const;

 private:
  uint64_t before_;
};

}  // namespace tang::formats
