// Never run by this project: written against Metal's documentation, without an Apple machine. Needs ARC.
#include "tang/device/metal.hpp"

#import <Metal/Metal.h>

#include <algorithm>
#include <cstring>

namespace tang::device {

struct MetalContext {
  id<MTLDevice> gpu;
  id<MTLCommandQueue> queue;
  id<MTLCommandBuffer> open; // of what was started and not yet waited for

  id<MTLCommandBuffer> commands() {
    if (!open) open = [queue commandBuffer];
    return open;
  }

  void finish() {
    if (!open) return;
    id<MTLCommandBuffer> done = open;
    open = nil;
    [done commit];
    [done waitUntilCompleted];
    if (done.error)
      throw Error({}, "running kernels failed", {{done.error.localizedDescription.UTF8String, {}}}, "see Metal's message");
  }
};

namespace {
class MetalRegion : public Banded {
public:
  MetalRegion(std::shared_ptr<MetalContext> c, size_t bytes, bool guards) : Banded(bytes, guards), c_(std::move(c)) {
    buffer_ = [c_->gpu newBufferWithLength:whole() options:MTLResourceStorageModeShared];
    if (!buffer_)
      throw Error({}, "a buffer of " + std::to_string(whole()) + " bytes cannot be made", {}, "use smaller tensors, or free buffers");
    mark();
  }

  id<MTLBuffer> buffer() const { return buffer_; }

private:
  char* bytes() const { return static_cast<char*>(buffer_.contents); }

  void raw_write(size_t to, const void* from, size_t n) override { c_->finish(), std::memcpy(bytes() + to, from, n); }

  void raw_read(void* to, size_t from, size_t n) const override { c_->finish(), std::memcpy(to, bytes() + from, n); }

  void raw_fill(size_t at, unsigned char byte, size_t n) override { c_->finish(), std::memset(bytes() + at, byte, n); }

  std::shared_ptr<MetalContext> c_;
  id<MTLBuffer> buffer_;
};

class MetalLaunch : public Launch {
public:
  MetalLaunch(std::shared_ptr<MetalContext> c, id<MTLComputePipelineState> p, const Entry& e, const std::vector<Slice>& arguments)
      : c_(std::move(c)), pipeline_(p), entry_(e), arguments_(arguments) {}

  void run() override {
    if (!entry_.workgroups) return;
    id<MTLComputeCommandEncoder> pass = [c_->commands() computeCommandEncoder];
    [pass setComputePipelineState:pipeline_];
    for (size_t k = 0; k < arguments_.size(); ++k) {
      const auto& r = static_cast<const MetalRegion&>(*arguments_[k].region);
      [pass setBuffer:r.buffer() offset:r.start() + arguments_[k].offset atIndex:k];
    }
    [pass setThreadgroupMemoryLength:NSUInteger(std::max<int64_t>(16, entry_.local_bytes)) atIndex:0];
    [pass dispatchThreadgroups:MTLSizeMake(NSUInteger(entry_.workgroups), 1, 1)
         threadsPerThreadgroup:MTLSizeMake(NSUInteger(entry_.lanes), 1, 1)];
    [pass endEncoding];
  }

private:
  std::shared_ptr<MetalContext> c_;
  id<MTLComputePipelineState> pipeline_;
  Entry entry_;
  std::vector<Slice> arguments_;
};

class MetalCode : public Code {
public:
  MetalCode(std::shared_ptr<MetalContext> c, id<MTLLibrary> library, std::vector<Entry> entries)
      : c_(std::move(c)), library_(library), entries_(std::move(entries)) {}

  std::unique_ptr<Launch> bind(size_t entry, const std::vector<Slice>& arguments) override {
    const Entry& e = entries_[entry];
    id<MTLFunction> f = [library_ newFunctionWithName:[NSString stringWithUTF8String:e.name.c_str()]];
    check(f != nil, "the compiled library lacks " + e.name);
    NSError* error = nil;
    id<MTLComputePipelineState> p = [c_->gpu newComputePipelineStateWithFunction:f error:&error];
    if (!p) throw Error({}, "Metal makes no pipeline of " + e.name, {{error.localizedDescription.UTF8String, {}}}, "report this");
    if (p.maxTotalThreadsPerThreadgroup < NSUInteger(e.lanes))
      throw Error({}, e.name + " is for " + std::to_string(e.lanes) + " lanes",
                  {{"its registers leave room for " + std::to_string(p.maxTotalThreadsPerThreadgroup), {}}}, "choose smaller blocks");
    return std::make_unique<MetalLaunch>(c_, p, e, arguments);
  }

private:
  std::shared_ptr<MetalContext> c_;
  id<MTLLibrary> library_;
  std::vector<Entry> entries_;
};
} // namespace

Result<std::shared_ptr<Metal>> Metal::find() {
  auto c = std::make_shared<MetalContext>();
  c->gpu = MTLCreateSystemDefaultDevice();
  if (!c->gpu) return Refusal{"Metal has no device"};
  c->queue = [c->gpu newCommandQueue];
  std::shared_ptr<Metal> out(new Metal);
  target::Facts f;
  f.workgroup = 256;
  f.shared_bytes = int64_t(c->gpu.maxThreadgroupMemoryLength);
  f.bindings = 31;
  f.binding_bytes = int64_t(c->gpu.maxBufferLength);
  f.alignment = 256;
  f.workers = 32;
  f.values = target::Class::finite;
  out->target_ = target::gpu_target("metal", f);
  out->name_ = std::string(c->gpu.name.UTF8String) + " (Metal, never run by this project)";
  out->context_ = std::move(c);
  return out;
}

Metal::~Metal() = default;

std::shared_ptr<Region> Metal::allocate(size_t bytes, bool guards) {
  return std::make_shared<MetalRegion>(context_, bytes, guards);
}

void Metal::copy(const Slice& to, const Slice& from) {
  const auto &a = static_cast<const MetalRegion&>(*to.region), &b = static_cast<const MetalRegion&>(*from.region);
  if (!from.bytes) return;
  id<MTLBlitCommandEncoder> pass = [context_->commands() blitCommandEncoder];
  [pass copyFromBuffer:b.buffer() sourceOffset:b.start() + from.offset toBuffer:a.buffer() destinationOffset:a.start() + to.offset size:from.bytes];
  [pass endEncoding];
}

std::shared_ptr<Code> Metal::compile(const Unit& unit) {
  MTLCompileOptions* options = [MTLCompileOptions new];
  options.fastMathEnabled = NO;
  NSError* error = nil;
  id<MTLLibrary> library = [context_->gpu newLibraryWithSource:[NSString stringWithUTF8String:unit.source.c_str()] options:options error:&error];
  if (!library)
    throw Error({}, "Metal's compiler rejected generated code", {{error.localizedDescription.UTF8String, {}}}, "report this");
  return std::make_shared<MetalCode>(context_, library, unit.entries);
}

void Metal::wait() { context_->finish(); }

} // namespace tang::device
