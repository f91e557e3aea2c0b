#include "tang/device/device.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace tang::device {

namespace {
constexpr size_t guard_band = 4096;
constexpr unsigned char mark_byte = 0xa5;
} // namespace

void* Region::data() const { bug(__FILE__, __LINE__, "the host does not see this device's memory"); }

Banded::Banded(size_t bytes, bool guards, size_t unit)
    : bytes_(bytes), band_(guards ? guard_band : 0),
      whole_(std::max(unit, (bytes + unit - 1) / unit * unit) + 2 * band_) {}

void Banded::mark() {
  raw_fill(0, 0, whole_);
  if (!band_) return;
  raw_fill(0, mark_byte, band_);
  raw_fill(band_ + bytes_, mark_byte, whole_ - band_ - bytes_);
}

void Banded::write(size_t to, const void* from, size_t bytes) {
  check(to + bytes <= bytes_, "a write outside a region");
  if (bytes) raw_write(band_ + to, from, bytes);
}

void Banded::read(void* to, size_t from, size_t bytes) const {
  check(from + bytes <= bytes_, "a read outside a region");
  if (bytes) raw_read(to, band_ + from, bytes);
}

void Banded::fill(size_t at, unsigned char byte, size_t bytes) {
  check(at + bytes <= bytes_, "a fill outside a region");
  if (bytes) raw_fill(band_ + at, byte, bytes);
}

void Banded::raw_fill(size_t at, unsigned char byte, size_t bytes) {
  const std::vector<unsigned char> v(bytes, byte);
  raw_write(at, v.data(), bytes);
}

std::optional<int64_t> Banded::trespass() const {
  if (!band_) return std::nullopt;
  std::vector<unsigned char> before(band_), after(whole_ - band_ - bytes_);
  raw_read(before.data(), 0, before.size());
  raw_read(after.data(), band_ + bytes_, after.size());
  for (size_t i = band_; i-- > 0;)
    if (before[i] != mark_byte) return int64_t(i) - int64_t(band_);
  for (size_t i = 0; i < after.size(); ++i)
    if (after[i] != mark_byte) return int64_t(bytes_ + i);
  return std::nullopt;
}

std::shared_ptr<void> open_library(const std::vector<std::string>& names, std::string& why) {
  for (auto& n : names) {
    if (void* h = dlopen(n.c_str(), RTLD_NOW | RTLD_LOCAL)) return {h, [](void* p) { dlclose(p); }};
    if (const char* e = dlerror(); why.empty() && e) why = e;
  }
  return nullptr;
}

void* find_symbol(const std::shared_ptr<void>& library, const char* name) { return dlsym(library.get(), name); }

} // namespace tang::device
