#include "tang/fuzz/together.hpp"

#include <map>

namespace tang::fuzz {

namespace {
// Some of the entries of code that holds more.
struct Part : device::Code {
  std::shared_ptr<device::Code> whole;
  std::vector<size_t> entries;

  std::unique_ptr<device::Launch> bind(size_t k, const std::vector<device::Slice>& arguments) override {
    return whole->bind(entries[k], arguments);
  }
};

class Together : public device::Device {
public:
  Together(std::shared_ptr<device::Device> device, const device::Unit& unit)
      : device_(std::move(device)), code_(device_->compile(unit)) {
    for (size_t k = 0; k < unit.entries.size(); ++k) entry_.emplace(unit.entries[k].name, k);
  }

  std::shared_ptr<device::Region> allocate(size_t bytes, bool guards) override {
    return device_->allocate(bytes, guards);
  }

  void copy(const device::Slice& to, const device::Slice& from) override { device_->copy(to, from); }

  // A kernel's name is a digest of its text.
  std::shared_ptr<device::Code> compile(const device::Unit& unit) override {
    auto part = std::make_shared<Part>();
    part->whole = code_;
    for (auto& e : unit.entries) {
      const auto it = entry_.find(e.name);
      if (it == entry_.end()) return device_->compile(unit);
      part->entries.push_back(it->second);
    }
    return part;
  }

  void run(const std::vector<std::unique_ptr<device::Launch>>& all) override { device_->run(all); }

  void wait() override { device_->wait(); }

private:
  std::shared_ptr<device::Device> device_;
  std::shared_ptr<device::Code> code_;
  std::map<std::string, size_t> entry_;
};
} // namespace

run::Backend together(const run::Backend& b, const std::vector<const run::Derivation*>& all) {
  run::Derivation sum;
  for (auto* d : all)
    for (auto& l : d->kernels.kernels) sum.kernels.kernels.push_back(l);
  try {
    const device::Unit unit = b.print(sum, {});
    if (unit.source.empty()) return b;
    return {std::make_shared<Together>(b.device, unit), b.print};
  } catch (const std::exception&) { return b; } // each program says what is wrong with it
}

} // namespace tang::fuzz
