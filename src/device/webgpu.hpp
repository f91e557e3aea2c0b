// A GPU through a library with WebGPU's C API, opened at run time; kernels in WGSL, compiled by the library.
#pragma once
#include "tang/device/device.hpp"
#include "tang/target/target.hpp"

namespace tang::device {

struct WebgpuContext;

struct WebgpuOptions {
  std::vector<std::string> libraries; // paths to try before the loader's own names
};

class Webgpu : public Device {
public:
  // The API of April 2025 (webgpu-headers 09d296a), which Dawn had then; or why there is none.
  static Result<std::shared_ptr<Webgpu>> find(const WebgpuOptions& o);
  ~Webgpu() override;

  const std::string& name() const { return name_; } // of the adapter

  const target::Target& target() const { return target_; } // its limits

  std::shared_ptr<Region> allocate(size_t bytes, bool guards) override;
  void copy(const Slice& to, const Slice& from) override;
  std::shared_ptr<Code> compile(const Unit& unit) override;
  void wait() override;

private:
  Webgpu() = default;
  std::shared_ptr<WebgpuContext> context_;
  std::string name_;
  target::Target target_;
};

} // namespace tang::device
