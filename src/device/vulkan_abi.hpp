// The part of Vulkan's ABI that the device uses: structures with the fields in their places, and the entry points.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tang::device::vk {

using Handle = void*;    // dispatchable objects
using Object = uint64_t; // the others
using Size = uint64_t;

struct Head {
  uint32_t type = 0;
  const void* next = nullptr;
};

struct ApplicationInfo : Head {
  const char* application = nullptr;
  uint32_t application_version = 0;
  const char* engine = nullptr;
  uint32_t engine_version = 0, api = 0;
};

struct InstanceInfo : Head {
  uint32_t flags = 0;
  const ApplicationInfo* application = nullptr;
  uint32_t layers = 0;
  const char* const* layer_names = nullptr;
  uint32_t extensions = 0;
  const char* const* extension_names = nullptr;
};

struct Limits { // VkPhysicalDeviceLimits, 504 bytes
  uint32_t before[7];
  uint32_t storage_range; // 28
  uint32_t more[11];
  uint32_t stage_storage_buffers; // 76
  uint32_t others[34];
  uint32_t shared_bytes;      // 216
  uint32_t groups[3];         // 220
  uint32_t invocations;       // 232
  uint32_t group_size[3];     // 236
  uint32_t rest[20];          // 248
  Size alignment;             // 328: of the offset of a storage buffer
  char tail[504 - 336];
};
static_assert(offsetof(Limits, stage_storage_buffers) == 76 && offsetof(Limits, shared_bytes) == 216 &&
              offsetof(Limits, alignment) == 328 && sizeof(Limits) == 504);

struct Properties {
  uint32_t api, driver, vendor, device, kind;
  char name[256];
  uint8_t uuid[16];
  Limits limits;
  uint32_t sparse[5];
};
static_assert(offsetof(Properties, limits) == 296);

struct Properties2 : Head {
  Properties properties;
};

struct Properties12 : Head {
  uint32_t driver_id;
  char driver_name[256], driver_info[256];
  uint8_t conformance[4];
  uint32_t denorm_independence, rounding_independence, keeps_nan_16, keeps_nan_32, rest[60];
};

struct Features2 : Head {
  uint32_t bits[55] = {};

  enum : int { float64 = 39, int64 = 40, int16 = 41 };
};

struct Features11 : Head {
  uint32_t bits[12] = {};

  enum : int { storage16 = 0 };
};

struct Features12 : Head {
  uint32_t bits[47] = {};

  enum : int { storage8 = 2, int8 = 8 };
};

struct QueueFamily {
  uint32_t flags, count, timestamp_bits, granularity[3];
};

struct MemoryProperties {
  uint32_t types;
  struct {
    uint32_t flags, heap;
  } type[32];
  uint32_t heaps;
  struct {
    Size size;
    uint32_t flags;
  } heap[16];
};

struct QueueInfo : Head {
  uint32_t flags = 0, family = 0, count = 1;
  const float* priorities = nullptr;
};

struct DeviceInfo : Head {
  uint32_t flags = 0, queues = 0;
  const QueueInfo* queue = nullptr;
  uint32_t layers = 0;
  const char* const* layer_names = nullptr;
  uint32_t extensions = 0;
  const char* const* extension_names = nullptr;
  const void* features = nullptr;
};

struct BufferInfo : Head {
  uint32_t flags = 0;
  Size size = 0;
  uint32_t usage = 0, sharing = 0, families = 0;
  const uint32_t* family = nullptr;
};

struct Requirements {
  Size size, alignment;
  uint32_t types;
};

struct AllocateInfo : Head {
  Size size = 0;
  uint32_t type_index = 0;
};

struct ModuleInfo : Head {
  uint32_t flags = 0;
  size_t bytes = 0;
  const uint32_t* code = nullptr;
};

struct LayoutBinding {
  uint32_t binding, kind, count, stages;
  const void* samplers;
};

struct SetLayoutInfo : Head {
  uint32_t flags = 0, bindings = 0;
  const LayoutBinding* binding = nullptr;
};

struct PipelineLayoutInfo : Head {
  uint32_t flags = 0, sets = 0;
  const Object* set = nullptr;
  uint32_t ranges = 0;
  const void* range = nullptr;
};

struct StageInfo : Head {
  uint32_t flags = 0, stage = 0;
  Object module = 0;
  const char* entry = nullptr;
  const void* specialization = nullptr;
};

struct ComputeInfo : Head {
  uint32_t flags = 0;
  StageInfo stage;
  Object layout = 0, base = 0;
  int32_t base_index = 0;
};

struct PoolSize {
  uint32_t kind, count;
};

struct PoolInfo : Head {
  uint32_t flags = 0, sets = 0, sizes = 0;
  const PoolSize* size = nullptr;
};

struct SetInfo : Head {
  Object pool = 0;
  uint32_t count = 0;
  const Object* layouts = nullptr;
};

struct BufferPart {
  Object buffer;
  Size offset, range;
};

struct WriteInfo : Head {
  Object set = 0;
  uint32_t binding = 0, element = 0, count = 0, kind = 0;
  const void* image = nullptr;
  const BufferPart* buffer = nullptr;
  const void* texel = nullptr;
};

struct CommandPoolInfo : Head {
  uint32_t flags = 0, family = 0;
};

struct CommandsInfo : Head {
  Object pool = 0;
  uint32_t level = 0, count = 0;
};

struct BeginInfo : Head {
  uint32_t flags = 0;
  const void* inheritance = nullptr;
};

struct Barrier : Head {
  uint32_t before = 0, after = 0;
};

struct Copy {
  Size from, to, bytes;
};

struct SubmitInfo : Head {
  uint32_t waits = 0;
  const Object* wait = nullptr;
  const uint32_t* stages = nullptr;
  uint32_t commands = 0;
  const Handle* command = nullptr;
  uint32_t signals = 0;
  const Object* signal = nullptr;
};

// Field, symbol, result, arguments.
#define TANG_VULKAN_ENTRIES(X)                                                                                        \
  X(create_instance, vkCreateInstance, int32_t, const InstanceInfo*, const void*, Handle*)                            \
  X(destroy_instance, vkDestroyInstance, void, Handle, const void*)                                                   \
  X(devices, vkEnumeratePhysicalDevices, int32_t, Handle, uint32_t*, Handle*)                                         \
  X(properties, vkGetPhysicalDeviceProperties2, void, Handle, Properties2*)                                           \
  X(features, vkGetPhysicalDeviceFeatures2, void, Handle, Features2*)                                                 \
  X(families, vkGetPhysicalDeviceQueueFamilyProperties, void, Handle, uint32_t*, QueueFamily*)                        \
  X(memories, vkGetPhysicalDeviceMemoryProperties, void, Handle, MemoryProperties*)                                   \
  X(create_device, vkCreateDevice, int32_t, Handle, const DeviceInfo*, const void*, Handle*)                          \
  X(destroy_device, vkDestroyDevice, void, Handle, const void*)                                                       \
  X(queue, vkGetDeviceQueue, void, Handle, uint32_t, uint32_t, Handle*)                                               \
  X(create_buffer, vkCreateBuffer, int32_t, Handle, const BufferInfo*, const void*, Object*)                          \
  X(destroy_buffer, vkDestroyBuffer, void, Handle, Object, const void*)                                               \
  X(requirements, vkGetBufferMemoryRequirements, void, Handle, Object, Requirements*)                                 \
  X(allocate, vkAllocateMemory, int32_t, Handle, const AllocateInfo*, const void*, Object*)                           \
  X(free, vkFreeMemory, void, Handle, Object, const void*)                                                            \
  X(bind_memory, vkBindBufferMemory, int32_t, Handle, Object, Object, Size)                                           \
  X(map, vkMapMemory, int32_t, Handle, Object, Size, Size, uint32_t, void**)                                          \
  X(create_module, vkCreateShaderModule, int32_t, Handle, const ModuleInfo*, const void*, Object*)                    \
  X(destroy_module, vkDestroyShaderModule, void, Handle, Object, const void*)                                         \
  X(create_set_layout, vkCreateDescriptorSetLayout, int32_t, Handle, const SetLayoutInfo*, const void*, Object*)      \
  X(destroy_set_layout, vkDestroyDescriptorSetLayout, void, Handle, Object, const void*)                              \
  X(create_layout, vkCreatePipelineLayout, int32_t, Handle, const PipelineLayoutInfo*, const void*, Object*)          \
  X(destroy_layout, vkDestroyPipelineLayout, void, Handle, Object, const void*)                                       \
  X(create_pipelines, vkCreateComputePipelines, int32_t, Handle, Object, uint32_t, const ComputeInfo*, const void*,   \
    Object*)                                                                                                          \
  X(destroy_pipeline, vkDestroyPipeline, void, Handle, Object, const void*)                                           \
  X(create_pool, vkCreateDescriptorPool, int32_t, Handle, const PoolInfo*, const void*, Object*)                      \
  X(destroy_pool, vkDestroyDescriptorPool, void, Handle, Object, const void*)                                         \
  X(sets, vkAllocateDescriptorSets, int32_t, Handle, const SetInfo*, Object*)                                         \
  X(update, vkUpdateDescriptorSets, void, Handle, uint32_t, const WriteInfo*, uint32_t, const void*)                  \
  X(create_commands, vkCreateCommandPool, int32_t, Handle, const CommandPoolInfo*, const void*, Object*)              \
  X(destroy_commands, vkDestroyCommandPool, void, Handle, Object, const void*)                                        \
  X(commands, vkAllocateCommandBuffers, int32_t, Handle, const CommandsInfo*, Handle*)                                \
  X(free_commands, vkFreeCommandBuffers, void, Handle, Object, uint32_t, const Handle*)                               \
  X(begin, vkBeginCommandBuffer, int32_t, Handle, const BeginInfo*)                                                   \
  X(end, vkEndCommandBuffer, int32_t, Handle)                                                                         \
  X(bind_pipeline, vkCmdBindPipeline, void, Handle, uint32_t, Object)                                                 \
  X(bind_sets, vkCmdBindDescriptorSets, void, Handle, uint32_t, Object, uint32_t, uint32_t, const Object*, uint32_t,  \
    const uint32_t*)                                                                                                  \
  X(dispatch, vkCmdDispatch, void, Handle, uint32_t, uint32_t, uint32_t)                                              \
  X(copy, vkCmdCopyBuffer, void, Handle, Object, Object, uint32_t, const Copy*)                                       \
  X(barrier, vkCmdPipelineBarrier, void, Handle, uint32_t, uint32_t, uint32_t, uint32_t, const Barrier*, uint32_t,    \
    const void*, uint32_t, const void*)                                                                               \
  X(submit, vkQueueSubmit, int32_t, Handle, uint32_t, const SubmitInfo*, Object)                                      \
  X(idle, vkQueueWaitIdle, int32_t, Handle)

} // namespace tang::device::vk
