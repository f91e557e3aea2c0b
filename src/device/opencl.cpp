#include "tang/device/opencl.hpp"

#include <algorithm>

namespace tang::device {

// The part of the OpenCL 1.2 ABI that is used: handles are pointers, results 32-bit integers.
using Handle = void*;
#define TANG_OPENCL_ENTRIES(X)                                                                                 \
  X(platforms, clGetPlatformIDs, int32_t, uint32_t, Handle*, uint32_t*)                                        \
  X(platform_info, clGetPlatformInfo, int32_t, Handle, uint32_t, size_t, void*, size_t*)                       \
  X(devices, clGetDeviceIDs, int32_t, Handle, uint64_t, uint32_t, Handle*, uint32_t*)                          \
  X(device_info, clGetDeviceInfo, int32_t, Handle, uint32_t, size_t, void*, size_t*)                           \
  X(context, clCreateContext, Handle, const intptr_t*, uint32_t, const Handle*, void*, void*, int32_t*)        \
  X(drop_context, clReleaseContext, int32_t, Handle)                                                           \
  X(queue, clCreateCommandQueue, Handle, Handle, Handle, uint64_t, int32_t*)                                   \
  X(drop_queue, clReleaseCommandQueue, int32_t, Handle)                                                        \
  X(buffer, clCreateBuffer, Handle, Handle, uint64_t, size_t, void*, int32_t*)                                 \
  X(drop_buffer, clReleaseMemObject, int32_t, Handle)                                                          \
  X(write, clEnqueueWriteBuffer, int32_t, Handle, Handle, uint32_t, size_t, size_t, const void*, uint32_t,     \
    const Handle*, Handle*)                                                                                    \
  X(read, clEnqueueReadBuffer, int32_t, Handle, Handle, uint32_t, size_t, size_t, void*, uint32_t,             \
    const Handle*, Handle*)                                                                                    \
  X(copy, clEnqueueCopyBuffer, int32_t, Handle, Handle, Handle, size_t, size_t, size_t, uint32_t,              \
    const Handle*, Handle*)                                                                                    \
  X(fill, clEnqueueFillBuffer, int32_t, Handle, Handle, const void*, size_t, size_t, size_t, uint32_t,         \
    const Handle*, Handle*)                                                                                    \
  X(program, clCreateProgramWithSource, Handle, Handle, uint32_t, const char**, const size_t*, int32_t*)       \
  X(build, clBuildProgram, int32_t, Handle, uint32_t, const Handle*, const char*, void*, void*)                \
  X(build_info, clGetProgramBuildInfo, int32_t, Handle, Handle, uint32_t, size_t, void*, size_t*)              \
  X(drop_program, clReleaseProgram, int32_t, Handle)                                                           \
  X(kernel, clCreateKernel, Handle, Handle, const char*, int32_t*)                                             \
  X(argument, clSetKernelArg, int32_t, Handle, uint32_t, size_t, const void*)                                  \
  X(drop_kernel, clReleaseKernel, int32_t, Handle)                                                             \
  X(launch, clEnqueueNDRangeKernel, int32_t, Handle, Handle, uint32_t, const size_t*, const size_t*,           \
    const size_t*, uint32_t, const Handle*, Handle*)                                                           \
  X(finish, clFinish, int32_t, Handle)

struct OpenclDriver {
  std::shared_ptr<void> library;
#define TANG_FIELD(field, entry, result, ...) result (*field)(__VA_ARGS__) = nullptr;
  TANG_OPENCL_ENTRIES(TANG_FIELD)
#undef TANG_FIELD
};

struct OpenclContext {
  OpenclDriver cl;
  Handle device = nullptr, context = nullptr, queue = nullptr;
  std::string name;

  void must(int32_t code, const std::string& doing) const {
    if (code)
      throw Error({}, doing + " failed on " + name, {{"OpenCL error " + std::to_string(code), {}}},
                  code == -4 || code == -5 || code == -6 || code == -61 ? "use smaller tensors, or free buffers" : "see the driver's message");
  }

  ~OpenclContext() {
    if (queue) cl.finish(queue), cl.drop_queue(queue);
    if (context) cl.drop_context(context);
  }
};

namespace {
enum Info : uint32_t {
  platform_name = 0x0902, device_name = 0x102b, compute_units = 0x1002, workgroup_size = 0x1004, extensions = 0x1030,
  local_bytes = 0x1023, largest_buffer = 0x1010, align_bits = 0x1019, build_log = 0x1183
};

class OpenclRegion : public Banded {
public:
  OpenclRegion(std::shared_ptr<OpenclContext> c, size_t bytes, bool guards) : Banded(bytes, guards), c_(std::move(c)) {
    int32_t code = 0;
    buffer_ = c_->cl.buffer(c_->context, 1, whole(), nullptr, &code); // 1: read and write
    c_->must(code, "making a buffer of " + std::to_string(whole()) + " bytes");
    mark();
  }

  ~OpenclRegion() override {
    c_->cl.finish(c_->queue);
    c_->cl.drop_buffer(buffer_);
  }

  Handle buffer() const { return buffer_; }

private:
  void raw_write(size_t to, const void* from, size_t bytes) override {
    c_->must(c_->cl.write(c_->queue, buffer_, 1, to, bytes, from, 0, nullptr, nullptr), "writing a buffer");
  }

  void raw_read(void* to, size_t from, size_t bytes) const override {
    c_->must(c_->cl.read(c_->queue, buffer_, 1, from, bytes, to, 0, nullptr, nullptr), "reading a buffer");
  }

  void raw_fill(size_t at, unsigned char byte, size_t bytes) override {
    if (bytes) c_->must(c_->cl.fill(c_->queue, buffer_, &byte, 1, at, bytes, 0, nullptr, nullptr), "filling a buffer");
  }

  std::shared_ptr<OpenclContext> c_;
  Handle buffer_ = nullptr;
};

class OpenclLaunch : public Launch {
public:
  OpenclLaunch(std::shared_ptr<OpenclContext> c, Handle program, const Entry& e, const std::vector<Slice>& arguments)
      : c_(std::move(c)), global_(size_t(e.workgroups) * size_t(e.lanes)), local_(size_t(e.lanes)) {
    int32_t code = 0;
    kernel_ = c_->cl.kernel(program, e.name.c_str(), &code);
    c_->must(code, "finding kernel " + e.name);
    const auto argument = [&](size_t k, const auto& x) {
      c_->must(c_->cl.argument(kernel_, uint32_t(k), sizeof x, &x), "binding an argument");
    };
    for (size_t k = 0; k < arguments.size(); ++k) { // all buffers, then where in each its memory begins
      const auto& r = static_cast<const OpenclRegion&>(*arguments[k].region);
      argument(k, r.buffer());
      argument(arguments.size() + k, uint64_t(r.start() + arguments[k].offset));
      regions_.push_back(arguments[k].region);
    }
  }

  ~OpenclLaunch() override {
    c_->cl.finish(c_->queue);
    c_->cl.drop_kernel(kernel_);
  }

  void run() override {
    if (global_)
      c_->must(c_->cl.launch(c_->queue, kernel_, 1, nullptr, &global_, &local_, 0, nullptr, nullptr), "launching a kernel");
  }

private:
  std::shared_ptr<OpenclContext> c_;
  Handle kernel_ = nullptr;
  size_t global_, local_;
  std::vector<std::shared_ptr<Region>> regions_;
};

class OpenclCode : public Code {
public:
  OpenclCode(std::shared_ptr<OpenclContext> c, const Unit& unit) : c_(std::move(c)), entries_(unit.entries) {
    const char* text = unit.source.c_str();
    const size_t length = unit.source.size();
    int32_t code = 0;
    program_ = c_->cl.program(c_->context, 1, &text, &length, &code);
    c_->must(code, "taking a program");
    code = c_->cl.build(program_, 1, &c_->device, "-cl-std=CL1.2", nullptr, nullptr);
    if (!code) return;
    size_t n = 0;
    c_->cl.build_info(program_, c_->device, build_log, 0, nullptr, &n);
    std::string log(n, '\0');
    c_->cl.build_info(program_, c_->device, build_log, n, log.data(), nullptr);
    throw Error({}, "the OpenCL driver rejected generated code", {{log.substr(0, 4000), {}}}, "report this");
  }

  ~OpenclCode() override { c_->cl.drop_program(program_); }

  std::unique_ptr<Launch> bind(size_t entry, const std::vector<Slice>& arguments) override {
    return std::make_unique<OpenclLaunch>(c_, program_, entries_[entry], arguments);
  }

private:
  std::shared_ptr<OpenclContext> c_;
  std::vector<Entry> entries_;
  Handle program_ = nullptr;
};

std::string words(const OpenclDriver& cl, Handle device, uint32_t what) {
  size_t n = 0;
  cl.device_info(device, what, 0, nullptr, &n);
  std::string s(n, '\0');
  cl.device_info(device, what, n, s.data(), nullptr);
  while (!s.empty() && !s.back()) s.pop_back();
  return s;
}

template <class T> T value(const OpenclDriver& cl, Handle device, uint32_t what) {
  T v{};
  cl.device_info(device, what, sizeof v, &v, nullptr);
  return v;
}
} // namespace

Result<std::shared_ptr<Opencl>> Opencl::find(int ordinal) {
  auto c = std::make_shared<OpenclContext>();
  std::string why, missing;
  OpenclDriver& cl = c->cl;
  cl.library = open_library({"libOpenCL.so.1", "libOpenCL.so"}, why);
  if (!cl.library) return Refusal{"no OpenCL loader: " + why};
#define TANG_FIND(field, entry, result, ...)                                                                   \
  cl.field = reinterpret_cast<result (*)(__VA_ARGS__)>(find_symbol(cl.library, #entry));                      \
  if (!cl.field) missing = #entry;
  TANG_OPENCL_ENTRIES(TANG_FIND)
#undef TANG_FIND
  if (!missing.empty()) return Refusal{"the OpenCL loader has no " + missing};
  uint32_t n = 0;
  std::vector<Handle> platforms(16), devices;
  if (cl.platforms(16, platforms.data(), &n) || !n) return Refusal{"OpenCL has no platform: no driver is installed"};
  for (uint64_t kind : {uint64_t(4), uint64_t(2 | 8 | 16)}) // GPUs first
    for (uint32_t p = 0; p < std::min<uint32_t>(n, 16); ++p) {
      std::vector<Handle> found(16);
      uint32_t count = 0;
      if (cl.devices(platforms[p], kind, 16, found.data(), &count)) continue;
      for (uint32_t d = 0; d < std::min<uint32_t>(count, 16); ++d) {
        devices.push_back(found[d]);
        if (int(devices.size()) - 1 != ordinal) continue;
        char platform[128] = {};
        cl.platform_info(platforms[p], platform_name, sizeof platform - 1, platform, nullptr);
        c->device = found[d];
        c->name = words(cl, found[d], device_name) + " (" + platform + ")";
      }
    }
  if (!c->device)
    return Refusal{"OpenCL has " + std::to_string(devices.size()) + " devices, none has number " + std::to_string(ordinal)};
  int32_t code = 0;
  c->context = cl.context(nullptr, 1, &c->device, nullptr, nullptr, &code);
  if (code) return Refusal{"no OpenCL context on " + c->name + ": error " + std::to_string(code)};
  c->queue = cl.queue(c->context, c->device, 0, &code);
  if (code) return Refusal{"no OpenCL queue on " + c->name + ": error " + std::to_string(code)};
  std::shared_ptr<Opencl> out(new Opencl);
  target::Facts f;
  f.workgroup = int(value<size_t>(cl, c->device, workgroup_size));
  f.shared_bytes = int64_t(value<uint64_t>(cl, c->device, local_bytes));
  f.workers = int(value<uint32_t>(cl, c->device, compute_units));
  f.binding_bytes = int64_t(value<uint64_t>(cl, c->device, largest_buffer));
  f.alignment = value<uint32_t>(cl, c->device, align_bits) / 8;
  f.meets = true;
  f.f64 = (" " + words(cl, c->device, extensions) + " ").find(" cl_khr_fp64 ") != std::string::npos;
  out->target_ = target::gpu_target("opencl", f);
  out->name_ = c->name;
  out->context_ = std::move(c);
  return out;
}

Opencl::~Opencl() = default;

std::shared_ptr<Region> Opencl::allocate(size_t bytes, bool guards) {
  return std::make_shared<OpenclRegion>(context_, bytes, guards);
}

void Opencl::copy(const Slice& to, const Slice& from) {
  const auto &a = static_cast<const OpenclRegion&>(*to.region), &b = static_cast<const OpenclRegion&>(*from.region);
  if (from.bytes)
    context_->must(context_->cl.copy(context_->queue, b.buffer(), a.buffer(), b.start() + from.offset,
                                     a.start() + to.offset, from.bytes, 0, nullptr, nullptr),
                   "copying a buffer");
}

std::shared_ptr<Code> Opencl::compile(const Unit& unit) { return std::make_shared<OpenclCode>(context_, unit); }

void Opencl::wait() { context_->must(context_->cl.finish(context_->queue), "running kernels"); }

} // namespace tang::device
