#include "tang/device/cpu.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

namespace tang::device {

namespace {
constexpr size_t band = 4096;
constexpr unsigned char mark = 0xa5;
constexpr size_t huge = size_t(2) << 20;

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }
} // namespace

Buffer::Buffer(size_t bytes, bool guards) : bytes_(bytes), guards_(guards) {
  const size_t around = guards ? band : 0, all = padded(bytes) + 2 * around;
  const size_t align = all >= huge ? huge : 4096;
  auto* p = static_cast<unsigned char*>(::operator new(all ? all : 64, std::align_val_t(align)));
  if (all >= huge) madvise(p, all, MADV_HUGEPAGE); // a hint: fewer misses of the page table cache
  std::memset(p, mark, around);
  std::memset(p + around, 0, bytes);
  std::memset(p + around + bytes, mark, all - around - bytes);
  data_ = p + around;
}

Buffer::~Buffer() {
  if (!data_) return;
  const size_t around = guards_ ? band : 0, all = padded(bytes_) + 2 * around;
  ::operator delete(static_cast<char*>(data_) - around, std::align_val_t(all >= huge ? huge : 4096));
}

Buffer::Buffer(Buffer&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), bytes_(o.bytes_), guards_(o.guards_) {}

Buffer& Buffer::operator=(Buffer&& o) noexcept {
  std::swap(data_, o.data_), std::swap(bytes_, o.bytes_), std::swap(guards_, o.guards_);
  return *this;
}

void Buffer::write(size_t to, const void* from, size_t bytes) {
  check(to + bytes <= bytes_, "a write outside a buffer");
  if (bytes) std::memcpy(as<char>() + to, from, bytes);
}

void Buffer::read(void* to, size_t from, size_t bytes) const {
  check(from + bytes <= bytes_, "a read outside a buffer");
  if (bytes) std::memcpy(to, as<char>() + from, bytes);
}

void Buffer::fill(size_t at, unsigned char byte, size_t bytes) {
  check(at + bytes <= bytes_, "a fill outside a buffer");
  if (bytes) std::memset(as<char>() + at, byte, bytes);
}

std::optional<int64_t> Buffer::trespass() const {
  if (!guards_) return std::nullopt;
  const auto* p = static_cast<const unsigned char*>(data_);
  for (size_t i = 1; i <= band; ++i)
    if (p[-int64_t(i)] != mark) return -int64_t(i);
  for (size_t i = bytes_; i < padded(bytes_) + band; ++i)
    if (p[i] != mark) return int64_t(i);
  return std::nullopt;
}

double Cpu::seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {
class CpuLaunch : public Launch {
public:
  CpuLaunch(Cpu& cpu, std::shared_ptr<Library> library, KernelFunction f, const Entry& e,
            const std::vector<Slice>& arguments)
      : cpu_(cpu), library_(std::move(library)), function_(f), workgroups_(e.workgroups),
        scratch_(e.local_bytes) {
    for (auto& a : arguments) pointers_.push_back(a.region->as<char>() + a.offset);
  }

  void run() override {
    if (workgroups_) cpu_.launch(function_, pointers_.data(), workgroups_, scratch_);
  }

private:
  Cpu& cpu_;
  std::shared_ptr<Library> library_;
  KernelFunction function_;
  int64_t workgroups_, scratch_;
  std::vector<void*> pointers_;
};

class CpuCode : public Code {
public:
  CpuCode(std::shared_ptr<Cpu> cpu, std::shared_ptr<Library> library, std::vector<Entry> entries)
      : cpu_(std::move(cpu)), library_(std::move(library)), entries_(std::move(entries)) {
    int64_t most = 0;
    for (auto& e : entries_) most = std::max(most, e.local_bytes);
    cpu_->reserve(most);
  }

  std::unique_ptr<Launch> bind(size_t entry, const std::vector<Slice>& arguments) override {
    const Entry& e = entries_[entry];
    auto f = library_->function<KernelFunction>(e.name);
    check(f, "the compiled library lacks " + e.name);
    return std::make_unique<CpuLaunch>(*cpu_, library_, f, e, arguments);
  }

private:
  std::shared_ptr<Cpu> cpu_;
  std::shared_ptr<Library> library_;
  std::vector<Entry> entries_;
};
} // namespace

std::shared_ptr<Region> CpuDevice::allocate(size_t bytes, bool guards) {
  return std::make_shared<Buffer>(cpu_->allocate(bytes, guards));
}

void CpuDevice::copy(const Slice& to, const Slice& from) {
  std::memcpy(to.region->as<char>() + to.offset, from.region->as<char>() + from.offset, from.bytes);
}

std::shared_ptr<Code> CpuDevice::compile(const Unit& unit) {
  return load(compiler_->compile(unit.source), unit.entries);
}

std::shared_ptr<Code> CpuDevice::load(std::shared_ptr<Library> library, const std::vector<Entry>& entries) {
  return std::make_shared<CpuCode>(cpu_, std::move(library), entries);
}

} // namespace tang::device
