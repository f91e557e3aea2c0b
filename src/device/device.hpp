// What a program needs of a device: bytes, compiled kernels, launches. One file a device implements it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tang/base/error.hpp"

namespace tang::device {

// Bytes on a device, zero when made. With guards, a band of known bytes lies on either side.
class Region {
public:
  Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  virtual ~Region() = default;
  virtual size_t size() const = 0;
  virtual void write(size_t to, const void* from, size_t bytes) = 0;
  virtual void read(void* to, size_t from, size_t bytes) const = 0; // waits for what runs
  virtual void fill(size_t at, unsigned char byte, size_t bytes) = 0;
  // Offset of the first byte outside that was written (negative: before the start), or nothing.
  virtual std::optional<int64_t> trespass() const = 0;
  virtual void* data() const; // as the host sees it; only on a device whose memory is the host's

  template <class T> T* as() const { return static_cast<T*>(data()); }

  void poison() { fill(0, 0xff, size()); } // NaN in every real format
};

// A part of a region, as a kernel's argument.
struct Slice {
  std::shared_ptr<Region> region;
  size_t offset = 0, bytes = 0;

  bool operator==(const Slice& o) const { return region == o.region && offset == o.offset; }
};

// A window of an argument that bulk copies move: elements and byte strides of its dimensions, the innermost first, and the
// elements of one copy.
struct BulkWindow {
  int argument = 0, element_bits = 16;
  std::vector<uint64_t> extent, stride; // of all dimensions; of all but the innermost
  std::vector<uint32_t> box, apart; // elements of the box, places from one to the next
  bool swizzled = true; // rows of 128 bytes; else a box lies as it is
};

// One kernel of a unit. Its text is in the unit's source, or its own where a device takes one text a kernel.
struct Entry {
  std::string name, source;
  int64_t workgroups = 0; // in all; a device that has fewer in a launch lets them take turns
  int lanes = 1;          // of a workgroup
  int64_t local_bytes = 0; // private to a workgroup, where the launch must say so
  int arguments = 0;
  std::vector<char> written = {}; // of each argument; empty: any may be
  // A kernel that keeps its workgroups and lets them take blocks of work: at most one workgroup a processor; its arguments
  // are the windows, then these of its memories, then zeroed integers of its own, then scratch bytes if it has some.
  bool resident = false;
  int cluster = 1; // so many workgroups begin at once, where it is resident
  bool early = false; // it waits by itself for what was started before it, and may begin while that ends
  std::vector<BulkWindow> windows = {};
  std::vector<int> pointers = {};
  int64_t counters = 2, scratch_bytes = 0;
};

struct Unit {
  std::string source;
  std::vector<Entry> entries;
};

class Launch { // a kernel and the memories it works on, ready to run many times without allocating
public:
  virtual ~Launch() = default;
  virtual void run() = 0; // after everything that was started before
};

class Code {
public:
  virtual ~Code() = default;
  virtual std::unique_ptr<Launch> bind(size_t entry, const std::vector<Slice>& arguments) = 0;
};

class Device {
public:
  virtual ~Device() = default;
  virtual std::shared_ptr<Region> allocate(size_t bytes, bool guards) = 0;
  virtual void copy(const Slice& to, const Slice& from) = 0; // from.bytes of them
  virtual std::shared_ptr<Code> compile(const Unit& unit) = 0;

  virtual void run(const std::vector<std::unique_ptr<Launch>>& all) { // to the same effect as one after another
    for (auto& one : all) one->run();
  }

  virtual void wait() = 0; // throws what a kernel did wrong
};

// The part of a region that every device with memory of its own shares: where the bands lie and what they hold.
class Banded : public Region {
public:
  Banded(size_t bytes, bool guards, size_t unit = 256);

  size_t size() const override { return bytes_; }

  size_t start() const { return band_; } // of the region within what was allocated

  size_t whole() const { return whole_; } // bytes to allocate, a multiple of `unit`

  void write(size_t to, const void* from, size_t bytes) override;
  void read(void* to, size_t from, size_t bytes) const override;
  void fill(size_t at, unsigned char byte, size_t bytes) override;
  std::optional<int64_t> trespass() const override;

protected:
  void mark(); // once the memory is there: bands written, the rest zero
  // At offsets from the start of the allocation.
  virtual void raw_write(size_t to, const void* from, size_t bytes) = 0;
  virtual void raw_read(void* to, size_t from, size_t bytes) const = 0;
  virtual void raw_fill(size_t at, unsigned char byte, size_t bytes); // by raw_write, unless the device can

private:
  size_t bytes_, band_, whole_;
};

// The first library of these names that opens; `why` says what the loader said of the first.
std::shared_ptr<void> open_library(const std::vector<std::string>& names, std::string& why);
void* find_symbol(const std::shared_ptr<void>& library, const char* name); // nullptr when it has none

} // namespace tang::device
