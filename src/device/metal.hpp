// A GPU through Apple's Metal. Built on Apple's systems only; this project has never run it.
#pragma once
#include "tang/device/device.hpp"
#include "tang/target/target.hpp"

namespace tang::device {

struct MetalContext;

class Metal : public Device {
public:
  static Result<std::shared_ptr<Metal>> find(); // the system's default GPU
  ~Metal() override;

  const std::string& name() const { return name_; }

  const target::Target& target() const { return target_; }

  std::shared_ptr<Region> allocate(size_t bytes, bool guards) override;
  void copy(const Slice& to, const Slice& from) override;
  std::shared_ptr<Code> compile(const Unit& unit) override;
  void wait() override;

private:
  Metal() = default;
  std::shared_ptr<MetalContext> context_;
  std::string name_;
  target::Target target_;
};

} // namespace tang::device
