// A device through libOpenCL, opened at run time: bytes, compilation by its driver, launches in order.
#pragma once
#include "tang/device/device.hpp"
#include "tang/target/target.hpp"

namespace tang::device {

struct OpenclDriver; // libOpenCL's entry points
struct OpenclContext;

class Opencl : public Device {
public:
  // The first device of the first platform that has one (`ordinal` counts over all); or why there is none.
  static Result<std::shared_ptr<Opencl>> find(int ordinal = 0);
  ~Opencl() override;

  const std::string& name() const { return name_; } // of the device and its platform

  const target::Target& target() const { return target_; } // its limits

  bool f64() const { return target_.f64; }

  std::shared_ptr<Region> allocate(size_t bytes, bool guards) override;
  void copy(const Slice& to, const Slice& from) override;
  std::shared_ptr<Code> compile(const Unit& unit) override;
  void wait() override;

private:
  Opencl() = default;
  std::shared_ptr<OpenclContext> context_;
  std::string name_;
  target::Target target_;
};

} // namespace tang::device
