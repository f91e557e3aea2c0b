// A GPU through libvulkan, opened at run time, its kernels compiled from GLSL by glslang.
#pragma once
#include "tang/device/device.hpp"
#include "tang/device/tool.hpp"
#include "tang/target/target.hpp"

namespace tang::device {

struct VulkanContext;

struct VulkanOptions {
  std::vector<std::string> search; // folders of glslangValidator and spirv-val
  std::string cache;               // folder of compiled shaders; empty: none
  bool validate = false;           // every shader through spirv-val, where that is found
};

class Vulkan : public Device {
public:
  // Device `ordinal` of the loader; or why there is none, what it lacks, or that there is no glslang.
  static Result<std::shared_ptr<Vulkan>> find(const VulkanOptions& o, int ordinal = 0);
  ~Vulkan() override;

  const std::string& name() const { return name_; } // of the device and its driver

  const target::Target& target() const { return target_; } // its limits

  std::shared_ptr<Region> allocate(size_t bytes, bool guards) override;
  void copy(const Slice& to, const Slice& from) override;
  std::shared_ptr<Code> compile(const Unit& unit) override;
  void wait() override;

private:
  Vulkan() = default;
  std::shared_ptr<VulkanContext> context_;
  std::shared_ptr<Tool> glslang_, validator_;
  std::string name_;
  target::Target target_;
};

} // namespace tang::device
