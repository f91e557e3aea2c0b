// A Vulkan driver that is lavapipe and claims two features more: dynamic indexing of arrays of images, which Dawn wants to
// see and kernels never use. For tests on machines without a GPU; not for graphics.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*Any)(void);
typedef Any (*Lookup)(void*, const char*);
enum { features_2 = 1000059000, sampled = 34, stored = 36 };
struct Chain {
  int32_t type;
  struct Chain* next;
};
struct Features2 {
  struct Chain head;
  uint32_t bits[55];
};
struct DeviceInfo {
  struct Chain head;
  uint32_t flags, queues;
  const void* queue;
  uint32_t layers;
  const void* layer_names;
  uint32_t extensions;
  const void* extension_names;
  const uint32_t* features;
};

static void (*real_features)(void*, uint32_t*);
static void (*real_features_2)(void*, struct Features2*);
static int32_t (*real_create)(void*, const struct DeviceInfo*, const void*, void*);

static void claim(uint32_t* bits, uint32_t on) { bits[sampled] = bits[stored] = on; }
static void features(void* chip, uint32_t* bits) { real_features(chip, bits), claim(bits, 1); }
static void features2(void* chip, struct Features2* f) { real_features_2(chip, f), claim(f->bits, 1); }
static int32_t create(void* chip, const struct DeviceInfo* info, const void* allocator, void* device) {
  struct DeviceInfo honest = *info;
  uint32_t bits[55];
  if (honest.features) {
    memcpy(bits, honest.features, sizeof bits);
    claim(bits, 0);
    honest.features = bits;
  }
  for (struct Chain* c = honest.head.next; c; c = c->next)
    if (c->type == features_2) claim(((struct Features2*)c)->bits, 0);
  return real_create(chip, &honest, allocator, device);
}
static Any hooked(const char* name, Any real) {
  if (!real) return real;
  if (!strcmp(name, "vkGetPhysicalDeviceFeatures")) return real_features = (void*)real, (Any)features;
  if (!strcmp(name, "vkGetPhysicalDeviceFeatures2") || !strcmp(name, "vkGetPhysicalDeviceFeatures2KHR"))
    return real_features_2 = (void*)real, (Any)features2;
  if (!strcmp(name, "vkCreateDevice")) return real_create = (void*)real, (Any)create;
  return real;
}
static void* driver(void) {
  static void* handle;
  if (!handle) handle = dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_LOCAL);
  if (!handle) fprintf(stderr, "%s\n", dlerror());
  return handle;
}
#define SHOWN __attribute__((visibility("default")))
SHOWN Any vk_icdGetInstanceProcAddr(void* instance, const char* name) {
  return driver() ? hooked(name, ((Lookup)dlsym(driver(), "vk_icdGetInstanceProcAddr"))(instance, name)) : 0;
}
SHOWN Any vk_icdGetPhysicalDeviceProcAddr(void* instance, const char* name) {
  Lookup real = driver() ? (Lookup)dlsym(driver(), "vk_icdGetPhysicalDeviceProcAddr") : 0;
  return real ? hooked(name, real(instance, name)) : 0;
}
SHOWN int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t* version) {
  if (!driver()) return -9;  // incompatible
  return ((int32_t(*)(uint32_t*))dlsym(driver(), "vk_icdNegotiateLoaderICDInterfaceVersion"))(version);
}
