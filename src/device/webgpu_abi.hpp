// The part of WebGPU's C API that the device uses, as of April 2025 (webgpu-headers 09d296a).
#pragma once
#include <cstddef>
#include <cstdint>

namespace tang::device::wgpu {

using Handle = void*;

struct Text {
  const char* data = nullptr;
  size_t length = 0;
};

struct Chain {
  const Chain* next = nullptr;
  uint32_t type = 0;
};

template <class F> struct Callback {
  const Chain* next = nullptr;
  uint32_t mode = 2; // when events are processed
  F* call = nullptr;
  void *first = nullptr, *second = nullptr;
};

using AdapterFound = void(uint32_t status, Handle adapter, Text message, void*, void*);
using DeviceFound = AdapterFound;
using Mapped = void(uint32_t status, Text message, void*, void*);
using Done = void(uint32_t status, void*, void*);
using Lost = void(const Handle* device, uint32_t reason, Text message, void*, void*);
using Wrong = void(const Handle* device, uint32_t kind, Text message, void*, void*);

struct ErrorCallback {
  const Chain* next = nullptr;
  Wrong* call = nullptr;
  void *first = nullptr, *second = nullptr;
};

struct InstanceInfo {
  const Chain* next = nullptr;
  const Chain* capabilities_next = nullptr;
  uint32_t timed_wait = 0;
  size_t timed_wait_count = 0;
};

struct AdapterWish {
  const Chain* next = nullptr;
  uint32_t level = 2, power = 0, fallback = 0, backend = 0; // level 2: core
  Handle surface = nullptr;
};

constexpr uint32_t null_backend = 1; // accepts every command and runs none: what is left where no driver serves

struct AdapterInfo {
  const Chain* next = nullptr;
  Text vendor, architecture, device, description;
  uint32_t backend = 0, kind = 0, vendor_id = 0, device_id = 0, subgroup_min = 0, subgroup_max = 0;
  char more[64] = {};
};

struct Limits {
  const Chain* next = nullptr;
  uint32_t before[11];
  uint32_t storage_buffers; // a stage
  uint32_t textures, uniform_buffers;
  uint64_t uniform_bytes, storage_bytes; // of one binding
  uint32_t uniform_alignment, storage_alignment, vertex_buffers;
  uint64_t buffer_bytes;
  uint32_t between[5];
  uint32_t shared_bytes, invocations, group_size[3], groups;
  char more[256]; // later members
};

struct QueueInfo {
  const Chain* next = nullptr;
  Text label;
};

struct DeviceInfo {
  const Chain* next = nullptr;
  Text label;
  size_t features = 0;
  const uint32_t* feature = nullptr;
  const Limits* limits = nullptr;
  QueueInfo queue;
  Callback<Lost> lost;
  ErrorCallback wrong;
};

struct BufferInfo {
  const Chain* next = nullptr;
  Text label;
  uint64_t usage = 0, size = 0;
  uint32_t mapped = 0;
};

struct WgslSource {
  Chain chain{nullptr, 2};
  Text code;
};

struct ModuleInfo {
  const Chain* next = nullptr;
  Text label;
};

struct PipelineInfo {
  const Chain* next = nullptr;
  Text label;
  Handle layout = nullptr;
  const Chain* stage_next = nullptr;
  Handle module = nullptr;
  Text entry;
  size_t constants = 0;
  const void* constant = nullptr;
};

struct Binding {
  const Chain* next = nullptr;
  uint32_t binding = 0;
  Handle buffer = nullptr;
  uint64_t offset = 0, size = 0;
  Handle sampler = nullptr, texture = nullptr;
};

struct GroupInfo {
  const Chain* next = nullptr;
  Text label;
  Handle layout = nullptr;
  size_t count = 0;
  const Binding* bindings = nullptr;
};

struct Future {
  uint64_t id;
};

// Field, symbol, result, arguments.
#define TANG_WEBGPU_ENTRIES(X)                                                                                 \
  X(marker, wgpuGetInstanceCapabilities, uint32_t, void*)                                                      \
  X(create_instance, wgpuCreateInstance, Handle, const InstanceInfo*)                                          \
  X(adapter, wgpuInstanceRequestAdapter, Future, Handle, const AdapterWish*, Callback<AdapterFound>)           \
  X(events, wgpuInstanceProcessEvents, void, Handle)                                                           \
  X(info, wgpuAdapterGetInfo, uint32_t, Handle, AdapterInfo*)                                                  \
  X(limits, wgpuAdapterGetLimits, uint32_t, Handle, Limits*)                                                   \
  X(device, wgpuAdapterRequestDevice, Future, Handle, const DeviceInfo*, Callback<DeviceFound>)                \
  X(queue, wgpuDeviceGetQueue, Handle, Handle)                                                                 \
  X(buffer, wgpuDeviceCreateBuffer, Handle, Handle, const BufferInfo*)                                         \
  X(module, wgpuDeviceCreateShaderModule, Handle, Handle, const ModuleInfo*)                                   \
  X(pipeline, wgpuDeviceCreateComputePipeline, Handle, Handle, const PipelineInfo*)                            \
  X(layout, wgpuComputePipelineGetBindGroupLayout, Handle, Handle, uint32_t)                                   \
  X(group, wgpuDeviceCreateBindGroup, Handle, Handle, const GroupInfo*)                                        \
  X(encoder, wgpuDeviceCreateCommandEncoder, Handle, Handle, const void*)                                      \
  X(begin, wgpuCommandEncoderBeginComputePass, Handle, Handle, const void*)                                    \
  X(set_pipeline, wgpuComputePassEncoderSetPipeline, void, Handle, Handle)                                     \
  X(set_group, wgpuComputePassEncoderSetBindGroup, void, Handle, uint32_t, Handle, size_t, const uint32_t*)    \
  X(dispatch, wgpuComputePassEncoderDispatchWorkgroups, void, Handle, uint32_t, uint32_t, uint32_t)            \
  X(end, wgpuComputePassEncoderEnd, void, Handle)                                                              \
  X(copy, wgpuCommandEncoderCopyBufferToBuffer, void, Handle, Handle, uint64_t, Handle, uint64_t, uint64_t)    \
  X(clear, wgpuCommandEncoderClearBuffer, void, Handle, Handle, uint64_t, uint64_t)                            \
  X(finish_encoder, wgpuCommandEncoderFinish, Handle, Handle, const void*)                                     \
  X(submit, wgpuQueueSubmit, void, Handle, size_t, const Handle*)                                              \
  X(write, wgpuQueueWriteBuffer, void, Handle, Handle, uint64_t, const void*, size_t)                          \
  X(work_done, wgpuQueueOnSubmittedWorkDone, Future, Handle, Callback<Done>)                                   \
  X(map, wgpuBufferMapAsync, Future, Handle, uint64_t, size_t, size_t, Callback<Mapped>)                       \
  X(mapped, wgpuBufferGetConstMappedRange, const void*, Handle, size_t, size_t)                                \
  X(unmap, wgpuBufferUnmap, void, Handle)                                                                      \
  X(drop_buffer, wgpuBufferRelease, void, Handle)                                                              \
  X(drop_module, wgpuShaderModuleRelease, void, Handle)                                                        \
  X(drop_pipeline, wgpuComputePipelineRelease, void, Handle)                                                   \
  X(drop_layout, wgpuBindGroupLayoutRelease, void, Handle)                                                     \
  X(drop_group, wgpuBindGroupRelease, void, Handle)                                                            \
  X(drop_encoder, wgpuCommandEncoderRelease, void, Handle)                                                     \
  X(drop_pass, wgpuComputePassEncoderRelease, void, Handle)                                                    \
  X(drop_commands, wgpuCommandBufferRelease, void, Handle)                                                     \
  X(drop_queue, wgpuQueueRelease, void, Handle)                                                                \
  X(drop_device, wgpuDeviceRelease, void, Handle)                                                              \
  X(drop_adapter, wgpuAdapterRelease, void, Handle)                                                            \
  X(drop_instance, wgpuInstanceRelease, void, Handle)

} // namespace tang::device::wgpu
