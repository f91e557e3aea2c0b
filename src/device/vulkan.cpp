#include "tang/device/vulkan.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "tang/device/vulkan_abi.hpp"

namespace tang::device {

using namespace vk;

struct VulkanContext {
  std::shared_ptr<void> library;
#define TANG_FIELD(field, entry, result, ...) result (*field)(__VA_ARGS__) = nullptr;
  TANG_VULKAN_ENTRIES(TANG_FIELD)
#undef TANG_FIELD
  Handle instance = nullptr, device = nullptr, line = nullptr;
  Object pool = 0;
  std::vector<uint32_t> memory_types; // those that the host sees, the device's own first
  MemoryProperties memory{};
  std::vector<Handle> pending; // recorded, not yet submitted
  std::vector<Handle> once;    // to free when all is done
  std::string name;

  void must(int32_t code, const std::string& doing) const {
    if (code < 0)
      throw Error({}, doing + " failed on " + name, {{"Vulkan error " + std::to_string(code), {}}},
                  code == -1 || code == -2 ? "use smaller tensors, or free buffers" : "see the driver's message");
  }

  Handle record(const std::function<void(Handle)>& what, bool again) {
    CommandsInfo ci;
    ci.type = 40, ci.pool = pool, ci.count = 1;
    Handle c = nullptr;
    must(commands(device, &ci, &c), "taking a command buffer");
    BeginInfo bi;
    bi.type = 42, bi.flags = again ? 4 : 1; // 4: may be pending several times; 1: submitted once
    must(begin(c, &bi), "recording");
    what(c);
    Barrier b; // everything before is seen by kernels, copies and the host after
    b.type = 46, b.before = 0x40 | 0x1000, b.after = 0x20 | 0x40 | 0x800 | 0x1000 | 0x2000;
    barrier(c, 0x800 | 0x1000, 0x800 | 0x1000 | 0x4000, 0, 1, &b, 0, nullptr, 0, nullptr);
    must(end(c), "recording");
    return c;
  }

  void flush() {
    if (pending.empty()) return;
    SubmitInfo s;
    s.type = 4, s.commands = uint32_t(pending.size()), s.command = pending.data();
    must(submit(line, 1, &s, 0), "submitting kernels");
    pending.clear();
  }

  void enqueue(Handle c) {
    pending.push_back(c);
    if (pending.size() >= 32) flush();
  }

  void finish() {
    flush();
    must(idle(line), "running kernels");
    for (Handle c : once) free_commands(device, pool, 1, &c);
    once.clear();
  }

  ~VulkanContext() {
    if (line) idle(line);
    if (pool) destroy_commands(device, pool, nullptr);
    if (device) destroy_device(device, nullptr);
    if (instance) destroy_instance(instance, nullptr);
  }
};

namespace {
constexpr uint32_t storage_buffer = 7, compute_stage = 0x20, row_of_groups = 65535;

class VulkanRegion : public Banded {
public:
  VulkanRegion(std::shared_ptr<VulkanContext> c, size_t bytes, bool guards) : Banded(bytes, guards), c_(std::move(c)) {
    BufferInfo bi;
    bi.type = 12, bi.size = whole(), bi.usage = 0x20 | 1 | 2; // storage, source and destination of copies
    c_->must(c_->create_buffer(c_->device, &bi, nullptr, &buffer_), "making a buffer");
    Requirements r{};
    c_->requirements(c_->device, buffer_, &r);
    AllocateInfo ai;
    ai.type = 5, ai.size = r.size;
    int32_t code = -2;
    for (uint32_t t : c_->memory_types) {
      if (!(r.types >> t & 1)) continue;
      ai.type_index = t;
      if ((code = c_->allocate(c_->device, &ai, nullptr, &memory_)) >= 0) break;
    }
    c_->must(code, "allocating " + std::to_string(r.size) + " bytes");
    c_->must(c_->bind_memory(c_->device, buffer_, memory_, 0), "binding memory");
    void* p = nullptr;
    c_->must(c_->map(c_->device, memory_, 0, ~Size(0), 0, &p), "mapping memory");
    mapped_ = static_cast<char*>(p);
    mark();
  }

  ~VulkanRegion() override {
    c_->idle(c_->line);
    c_->destroy_buffer(c_->device, buffer_, nullptr);
    c_->free(c_->device, memory_, nullptr);
  }

  Object buffer() const { return buffer_; }

private:
  void raw_write(size_t to, const void* from, size_t bytes) override {
    c_->finish();
    std::memcpy(mapped_ + to, from, bytes);
  }

  void raw_read(void* to, size_t from, size_t bytes) const override {
    c_->finish();
    std::memcpy(to, mapped_ + from, bytes);
  }

  void raw_fill(size_t at, unsigned char byte, size_t bytes) override {
    c_->finish();
    std::memset(mapped_ + at, byte, bytes);
  }

  std::shared_ptr<VulkanContext> c_;
  Object buffer_ = 0, memory_ = 0;
  char* mapped_ = nullptr;
};

struct Pipeline {
  std::shared_ptr<VulkanContext> c;
  Object module = 0, set_layout = 0, layout = 0, pipeline = 0;

  Pipeline(std::shared_ptr<VulkanContext> context, const std::string& code, int arguments) : c(std::move(context)) {
    std::vector<uint32_t> words(code.size() / 4);
    std::memcpy(words.data(), code.data(), words.size() * 4);
    ModuleInfo mi;
    mi.type = 16, mi.bytes = words.size() * 4, mi.code = words.data();
    c->must(c->create_module(c->device, &mi, nullptr, &module), "loading a shader");
    std::vector<LayoutBinding> bindings;
    for (int k = 0; k < arguments; ++k) bindings.push_back({uint32_t(k), storage_buffer, 1, compute_stage, nullptr});
    SetLayoutInfo si;
    si.type = 32, si.bindings = uint32_t(bindings.size()), si.binding = bindings.data();
    c->must(c->create_set_layout(c->device, &si, nullptr, &set_layout), "making a binding layout");
    PipelineLayoutInfo li;
    li.type = 30, li.sets = 1, li.set = &set_layout;
    c->must(c->create_layout(c->device, &li, nullptr, &layout), "making a pipeline layout");
    ComputeInfo pi;
    pi.type = 29, pi.stage.type = 18, pi.stage.stage = compute_stage, pi.stage.module = module, pi.stage.entry = "main";
    pi.layout = layout, pi.base_index = -1;
    c->must(c->create_pipelines(c->device, 0, 1, &pi, nullptr, &pipeline), "making a pipeline");
  }

  Pipeline(const Pipeline&) = delete;

  ~Pipeline() {
    c->idle(c->line);
    c->destroy_pipeline(c->device, pipeline, nullptr);
    c->destroy_layout(c->device, layout, nullptr);
    c->destroy_set_layout(c->device, set_layout, nullptr);
    c->destroy_module(c->device, module, nullptr);
  }
};

class VulkanLaunch : public Launch {
public:
  VulkanLaunch(std::shared_ptr<Pipeline> p, const Entry& e, const std::vector<Slice>& arguments)
      : pipeline_(std::move(p)), c_(pipeline_->c) {
    if (!e.workgroups) return;
    const PoolSize size{storage_buffer, std::max<uint32_t>(1, uint32_t(arguments.size()))};
    PoolInfo pi;
    pi.type = 33, pi.sets = 1, pi.sizes = 1, pi.size = &size;
    c_->must(c_->create_pool(c_->device, &pi, nullptr, &pool_), "making a descriptor pool");
    SetInfo si;
    si.type = 34, si.pool = pool_, si.count = 1, si.layouts = &pipeline_->set_layout;
    Object set = 0;
    c_->must(c_->sets(c_->device, &si, &set), "making a descriptor set");
    std::vector<BufferPart> parts(arguments.size());
    std::vector<WriteInfo> writes(arguments.size());
    for (size_t k = 0; k < arguments.size(); ++k) {
      const auto& r = static_cast<const VulkanRegion&>(*arguments[k].region);
      parts[k] = {r.buffer(), r.start() + arguments[k].offset, std::max<size_t>(4, (arguments[k].bytes + 3) / 4 * 4)};
      writes[k].type = 35, writes[k].set = set, writes[k].binding = uint32_t(k), writes[k].count = 1;
      writes[k].kind = storage_buffer, writes[k].buffer = &parts[k];
      regions_.push_back(arguments[k].region);
    }
    c_->update(c_->device, uint32_t(writes.size()), writes.data(), 0, nullptr);
    const uint32_t x = uint32_t(std::min<int64_t>(e.workgroups, row_of_groups)), y = uint32_t((e.workgroups + x - 1) / x);
    commands_ = c_->record(
        [&](Handle c) {
          c_->bind_pipeline(c, 1, pipeline_->pipeline);
          c_->bind_sets(c, 1, pipeline_->layout, 0, 1, &set, 0, nullptr);
          c_->dispatch(c, x, y, 1);
        },
        true);
  }

  ~VulkanLaunch() override {
    if (!pool_) return;
    try {
      c_->finish();
    } catch (const Error&) {} // told where it happened
    c_->free_commands(c_->device, c_->pool, 1, &commands_);
    c_->destroy_pool(c_->device, pool_, nullptr);
  }

  void run() override {
    if (commands_) c_->enqueue(commands_);
  }

private:
  std::shared_ptr<Pipeline> pipeline_;
  std::shared_ptr<VulkanContext> c_;
  Object pool_ = 0;
  Handle commands_ = nullptr;
  std::vector<std::shared_ptr<Region>> regions_;
};

class VulkanCode : public Code {
public:
  VulkanCode(std::vector<std::shared_ptr<Pipeline>> p, std::vector<Entry> e)
      : pipelines_(std::move(p)), entries_(std::move(e)) {}

  std::unique_ptr<Launch> bind(size_t entry, const std::vector<Slice>& arguments) override {
    return std::make_unique<VulkanLaunch>(pipelines_[entry], entries_[entry], arguments);
  }

private:
  std::vector<std::shared_ptr<Pipeline>> pipelines_;
  std::vector<Entry> entries_;
};

// What the kernels need; the names of what is missing.
std::string lacks(const Features2& f, const Features11& f11, const Features12& f12) {
  std::string out;
  auto need = [&](bool has, const char* what) {
    if (!has) out += (out.empty() ? "" : ", ") + std::string(what);
  };
  need(f.bits[Features2::int64], "64-bit integers"), need(f.bits[Features2::int16], "16-bit integers");
  need(f11.bits[Features11::storage16], "16-bit storage"), need(f12.bits[Features12::storage8], "8-bit storage");
  need(f12.bits[Features12::int8], "8-bit integers");
  return out;
}
} // namespace

Result<std::shared_ptr<Vulkan>> Vulkan::find(const VulkanOptions& o, int ordinal) {
  auto c = std::make_shared<VulkanContext>();
  std::string why, missing;
  c->library = open_library({"libvulkan.so.1", "libvulkan.so"}, why);
  if (!c->library) return Refusal{"no Vulkan loader: " + why};
#define TANG_FIND(field, entry, result, ...)                                                                          \
  c->field = reinterpret_cast<result (*)(__VA_ARGS__)>(find_symbol(c->library, #entry));                              \
  if (!c->field) missing = #entry;
  TANG_VULKAN_ENTRIES(TANG_FIND)
#undef TANG_FIND
  if (!missing.empty()) return Refusal{"the Vulkan loader has no " + missing};
  ApplicationInfo app;
  app.type = 0, app.api = (1u << 22) | (2u << 12); // Vulkan 1.2
  InstanceInfo ii;
  ii.type = 1, ii.application = &app;
  if (int32_t code = c->create_instance(&ii, nullptr, &c->instance); code < 0)
    return Refusal{"Vulkan has no driver here (error " + std::to_string(code) + ")"};
  uint32_t n = 16;
  std::vector<Handle> all(n);
  c->devices(c->instance, &n, all.data());
  if (uint32_t(ordinal) >= n) return Refusal{"Vulkan has " + std::to_string(n) + " devices, none has number " + std::to_string(ordinal)};
  all.resize(n);
  auto on_cpu = [&](Handle h) { // last, whatever the loader's order
    Properties2 p{};
    p.type = 1000059001;
    c->properties(h, &p);
    return p.properties.kind == 4;
  };
  std::stable_partition(all.begin(), all.end(), [&](Handle h) { return !on_cpu(h); });
  const Handle chip = all[size_t(ordinal)];
  Properties12 p12{};
  p12.type = 52;
  Properties2 p{};
  p.type = 1000059001, p.next = &p12;
  c->properties(chip, &p);
  c->name = std::string(p.properties.name) + " (" + p12.driver_name + " " + p12.driver_info + ")";
  Features12 has12;
  has12.type = 51;
  Features11 has11;
  has11.type = 49, has11.next = &has12;
  Features2 has;
  has.type = 1000059000, has.next = &has11;
  c->features(chip, &has);
  if (std::string l = lacks(has, has11, has12); !l.empty()) return Refusal{c->name + " has no " + l};
  Features12 want12;
  want12.type = 51, want12.bits[Features12::storage8] = want12.bits[Features12::int8] = 1;
  Features11 want11;
  want11.type = 49, want11.next = &want12, want11.bits[Features11::storage16] = 1;
  Features2 want;
  want.type = 1000059000, want.next = &want11, want.bits[Features2::int64] = want.bits[Features2::int16] = 1;
  std::vector<QueueFamily> families(16);
  n = 16;
  c->families(chip, &n, families.data());
  uint32_t family = 0;
  while (family < n && !(families[family].flags & 2)) ++family; // 2: compute
  if (family == n) return Refusal{c->name + " has no queue for kernels"};
  const float priority = 1;
  QueueInfo qi;
  qi.type = 2, qi.family = family, qi.priorities = &priority;
  DeviceInfo di;
  di.type = 3, di.next = &want, di.queues = 1, di.queue = &qi;
  if (int32_t code = c->create_device(chip, &di, nullptr, &c->device); code < 0)
    return Refusal{c->name + " could not be opened (error " + std::to_string(code) + ")"};
  c->queue(c->device, family, 0, &c->line);
  c->memories(chip, &c->memory);
  for (uint32_t wanted : {7u, 6u}) // seen by the host without flushes; the device's own (1) first
    for (uint32_t t = 0; t < c->memory.types; ++t)
      if ((c->memory.type[t].flags & wanted) == wanted &&
          std::find(c->memory_types.begin(), c->memory_types.end(), t) == c->memory_types.end())
        c->memory_types.push_back(t);
  CommandPoolInfo ci;
  ci.type = 39, ci.flags = 2, ci.family = family;
  if (c->create_commands(c->device, &ci, nullptr, &c->pool) < 0) return Refusal{c->name + " has no command pool"};
  ToolOptions t;
  t.search = o.search, t.names = {"glslangValidator"}, t.cache = o.cache, t.in = ".comp", t.out = ".spv";
  t.arguments = {"-V", "--target-env", "vulkan1.2", "-o", "@out", "@in"};
  auto glslang = Tool::find(t);
  if (!glslang) return Refusal{glslang.why() + " (compiles GLSL for " + c->name + ")"};
  std::shared_ptr<Vulkan> out(new Vulkan);
  out->glslang_ = *glslang;
  if (o.validate) {
    t.names = {"spirv-val"}, t.in = ".spv", t.out = ".none", t.arguments = {"--target-env", "vulkan1.2", "@in"};
    if (auto v = Tool::find(t)) out->validator_ = *v;
  }
  const Limits& l = p.properties.limits;
  target::Facts f;
  f.workgroup = int(std::min(l.invocations, l.group_size[0]));
  f.shared_bytes = l.shared_bytes;
  f.bindings = int(std::min<uint32_t>(l.stage_storage_buffers, 1 << 20));
  f.binding_bytes = l.storage_range;
  f.alignment = int64_t(std::max<Size>(l.alignment, 64));
  f.workers = 64;
  f.meets = true;
  f.values = p12.keeps_nan_32 ? target::Class::exact : target::Class::finite;
  if (l.groups[0] < row_of_groups || l.groups[1] < row_of_groups) return Refusal{c->name + " launches too few workgroups"};
  out->target_ = target::gpu_target("vulkan", f);
  out->name_ = c->name;
  out->context_ = std::move(c);
  return out;
}

Vulkan::~Vulkan() = default;

std::shared_ptr<Region> Vulkan::allocate(size_t bytes, bool guards) {
  return std::make_shared<VulkanRegion>(context_, bytes, guards);
}

void Vulkan::copy(const Slice& to, const Slice& from) {
  if (!from.bytes) return;
  const auto &a = static_cast<const VulkanRegion&>(*to.region), &b = static_cast<const VulkanRegion&>(*from.region);
  const Copy part{b.start() + from.offset, a.start() + to.offset, from.bytes};
  const Handle h = context_->record([&](Handle c) { context_->copy(c, b.buffer(), a.buffer(), 1, &part); }, false);
  context_->once.push_back(h);
  context_->enqueue(h);
}

std::shared_ptr<Code> Vulkan::compile(const Unit& unit) {
  std::vector<std::string> texts;
  std::vector<size_t> which;
  for (auto& e : unit.entries) {
    const auto it = std::find(texts.begin(), texts.end(), e.source);
    which.push_back(size_t(it - texts.begin()));
    if (it == texts.end()) texts.push_back(e.source);
  }
  const std::vector<std::string> code = glslang_->run(texts);
  if (validator_) validator_->run(code);
  std::vector<std::shared_ptr<Pipeline>> made(texts.size()), pipelines;
  for (size_t k = 0; k < unit.entries.size(); ++k) {
    auto& p = made[which[k]];
    if (!p) p = std::make_shared<Pipeline>(context_, code[which[k]], unit.entries[k].arguments);
    pipelines.push_back(p);
  }
  return std::make_shared<VulkanCode>(std::move(pipelines), unit.entries);
}

void Vulkan::wait() { context_->finish(); }

} // namespace tang::device
