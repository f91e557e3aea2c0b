#include "tang/device/webgpu.hpp"

#include <algorithm>
#include <cstring>

#include "tang/device/webgpu_abi.hpp"

namespace tang::device {

using namespace wgpu;

struct WebgpuContext {
  std::shared_ptr<void> library;
#define TANG_FIELD(field, entry, result, ...) result (*field)(__VA_ARGS__) = nullptr;
  TANG_WEBGPU_ENTRIES(TANG_FIELD)
#undef TANG_FIELD
  Handle instance = nullptr, chip = nullptr, gpu = nullptr, line = nullptr;
  Handle open_encoder = nullptr, open_pass = nullptr; // of launches that were not submitted yet
  std::string name, said;                             // what an error callback said

  void must(const std::string& doing) {
    events(instance);
    if (said.empty()) return;
    const std::string text = std::move(said);
    said.clear();
    throw Error({}, doing + " failed on " + name, {{text.substr(0, 3000), {}}}, "see the library's message");
  }

  void wait_for(const bool& flag) const {
    while (!flag) events(instance);
  }

  Handle pass() {
    if (!open_encoder) open_encoder = encoder(gpu, nullptr);
    if (!open_pass) open_pass = begin(open_encoder, nullptr);
    return open_pass;
  }

  // The encoder outside any pass.
  Handle commands() {
    if (!open_encoder) open_encoder = encoder(gpu, nullptr);
    if (open_pass) end(open_pass), drop_pass(open_pass), open_pass = nullptr;
    return open_encoder;
  }

  void flush() {
    if (!open_encoder) return;
    Handle c = finish_encoder(commands(), nullptr);
    drop_encoder(open_encoder), open_encoder = nullptr;
    submit(line, 1, &c);
    drop_commands(c);
  }

  void finish() {
    flush();
    bool done = false;
    Callback<Done> cb;
    cb.call = [](uint32_t, void* flag, void*) { *static_cast<bool*>(flag) = true; };
    cb.first = &done;
    work_done(line, cb);
    wait_for(done);
    must("running kernels");
  }

  Handle make(uint64_t size, uint64_t usage) const {
    BufferInfo bi;
    bi.usage = usage, bi.size = size;
    return buffer(gpu, &bi);
  }

  ~WebgpuContext() {
    if (gpu) flush();
    if (line) drop_queue(line);
    if (gpu) drop_device(gpu);
    if (chip) drop_adapter(chip);
    if (instance) drop_instance(instance);
  }
};

namespace {
enum Usage : uint64_t { map_read = 1, copy_from = 4, copy_to = 8, storage = 0x80 };

constexpr int64_t row_of_groups = 65535;
constexpr size_t least_binding = 8; // bytes

std::string text_of(const Text& t) { return t.data ? std::string(t.data, t.length == SIZE_MAX ? std::strlen(t.data) : t.length) : ""; }

class WebgpuRegion : public Banded {
public:
  WebgpuRegion(std::shared_ptr<WebgpuContext> c, size_t bytes, bool guards) : Banded(bytes, guards), c_(std::move(c)) {
    buffer_ = c_->make(whole(), storage | copy_from | copy_to);
    c_->must("making a buffer of " + std::to_string(whole()) + " bytes");
    check(buffer_, "a buffer or an error");
    mark();
  }

  ~WebgpuRegion() override {
    c_->flush();
    c_->drop_buffer(buffer_);
  }

  Handle buffer() const { return buffer_; }

private:
  // The API moves whole words: what shares the first and last one is read before.
  void raw_write(size_t to, const void* from, size_t bytes) override {
    const size_t first = to / 4 * 4, last = (to + bytes + 3) / 4 * 4;
    std::vector<char> words;
    if (first != to || last != to + bytes) {
      words.resize(last - first);
      raw_read(words.data(), first, words.size());
      std::memcpy(words.data() + (to - first), from, bytes);
      from = words.data();
    }
    c_->flush();
    c_->write(c_->line, buffer_, first, from, last - first);
  }

  void raw_read(void* to, size_t from, size_t bytes) const override {
    const size_t first = from / 4 * 4, last = (from + bytes + 3) / 4 * 4;
    Handle copy = c_->make(last - first, map_read | copy_to);
    c_->copy(c_->commands(), buffer_, first, copy, 0, last - first);
    c_->flush();
    bool done = false;
    Callback<Mapped> cb;
    cb.call = [](uint32_t, Text, void* flag, void*) { *static_cast<bool*>(flag) = true; };
    cb.first = &done;
    c_->map(copy, 1, 0, last - first, cb);
    c_->wait_for(done);
    c_->must("reading a buffer");
    const void* p = c_->mapped(copy, 0, last - first);
    check(p, "a mapped buffer or an error");
    std::memcpy(to, static_cast<const char*>(p) + (from - first), bytes);
    c_->unmap(copy);
    c_->drop_buffer(copy);
  }

  void raw_fill(size_t at, unsigned char byte, size_t bytes) override {
    if (byte || at % 4 || bytes % 4) return Banded::raw_fill(at, byte, bytes);
    if (bytes) c_->clear(c_->commands(), buffer_, at, bytes);
  }

  std::shared_ptr<WebgpuContext> c_;
  Handle buffer_ = nullptr;
};

struct WebgpuPipeline {
  std::shared_ptr<WebgpuContext> c;
  Handle pipeline = nullptr, layout = nullptr;

  WebgpuPipeline(std::shared_ptr<WebgpuContext> context, const Entry& e) : c(std::move(context)) {
    WgslSource source;
    source.code = {e.source.data(), e.source.size()};
    ModuleInfo mi;
    mi.next = &source.chain;
    Handle module = c->module(c->gpu, &mi);
    c->must("compiling a kernel");
    PipelineInfo pi;
    pi.module = module, pi.entry = {"main", 4};
    pipeline = c->pipeline(c->gpu, &pi);
    c->drop_module(module);
    c->must("making a pipeline");
    layout = c->layout(pipeline, 0);
  }

  WebgpuPipeline(const WebgpuPipeline&) = delete;

  ~WebgpuPipeline() {
    if (layout) c->drop_layout(layout);
    if (pipeline) c->drop_pipeline(pipeline);
  }
};

class WebgpuLaunch : public Launch {
public:
  WebgpuLaunch(std::shared_ptr<WebgpuPipeline> p, const Entry& e, const std::vector<Slice>& arguments)
      : pipeline_(std::move(p)), c_(pipeline_->c) {
    if (!e.workgroups) return;
    std::vector<Binding> bindings(arguments.size());
    for (size_t k = 0; k < arguments.size(); ++k) {
      // What is empty lies where others begin, and two bindings may not overlap: a place of its own.
      const bool empty = !arguments[k].bytes;
      regions_.push_back(empty ? std::make_shared<WebgpuRegion>(c_, least_binding, false) : arguments[k].region);
      const auto& r = static_cast<const WebgpuRegion&>(*regions_[k]);
      bindings[k].binding = uint32_t(k), bindings[k].buffer = r.buffer();
      bindings[k].offset = r.start() + (empty ? 0 : arguments[k].offset);
      bindings[k].size = std::max<size_t>(least_binding, (arguments[k].bytes + 3) / 4 * 4);
    }
    GroupInfo gi;
    gi.layout = pipeline_->layout, gi.count = bindings.size(), gi.bindings = bindings.data();
    group_ = c_->group(c_->gpu, &gi);
    c_->must("binding memories");
    x_ = uint32_t(std::min(e.workgroups, row_of_groups)), y_ = uint32_t((e.workgroups + x_ - 1) / x_);
  }

  ~WebgpuLaunch() override {
    c_->flush();
    if (group_) c_->drop_group(group_);
  }

  void run() override {
    if (!group_) return;
    Handle pass = c_->pass();
    c_->set_pipeline(pass, pipeline_->pipeline);
    c_->set_group(pass, 0, group_, 0, nullptr);
    c_->dispatch(pass, x_, y_, 1);
  }

private:
  std::shared_ptr<WebgpuPipeline> pipeline_;
  std::shared_ptr<WebgpuContext> c_;
  Handle group_ = nullptr;
  uint32_t x_ = 1, y_ = 1;
  std::vector<std::shared_ptr<Region>> regions_;
};

class WebgpuCode : public Code {
public:
  WebgpuCode(std::vector<std::shared_ptr<WebgpuPipeline>> p, std::vector<Entry> e)
      : pipelines_(std::move(p)), entries_(std::move(e)) {}

  std::unique_ptr<Launch> bind(size_t entry, const std::vector<Slice>& arguments) override {
    return std::make_unique<WebgpuLaunch>(pipelines_[entry], entries_[entry], arguments);
  }

private:
  std::vector<std::shared_ptr<WebgpuPipeline>> pipelines_;
  std::vector<Entry> entries_;
};
} // namespace

Result<std::shared_ptr<Webgpu>> Webgpu::find(const WebgpuOptions& o) {
  auto c = std::make_shared<WebgpuContext>();
  std::string why, missing;
  std::vector<std::string> names = o.libraries;
  for (const char* n : {"libwebgpu_dawn.so", "libwebgpu_wrapper.so", "libwebgpu.so"}) names.push_back(n);
  c->library = open_library(names, why);
  if (!c->library) return Refusal{"no WebGPU library: " + why};
#define TANG_FIND(field, entry, result, ...)                                                                   \
  c->field = reinterpret_cast<result (*)(__VA_ARGS__)>(find_symbol(c->library, #entry));                      \
  if (!c->field) missing = #entry;
  TANG_WEBGPU_ENTRIES(TANG_FIND)
#undef TANG_FIND
  if (!missing.empty()) return Refusal{"the WebGPU library has another version of the API: no " + missing};
  struct Answer {
    bool done = false;
    Handle handle = nullptr;
    std::string text;
  };
  const auto answered = [](uint32_t, Handle h, Text message, void* to, void*) {
    auto* a = static_cast<Answer*>(to);
    a->handle = h, a->text = text_of(message), a->done = true;
  };
  InstanceInfo ii;
  c->instance = c->create_instance(&ii);
  if (!c->instance) return Refusal{"the WebGPU library does not start"};
  Answer adapter, device;
  Callback<AdapterFound> found;
  found.call = answered, found.first = &adapter;
  AdapterWish wish;
  c->adapter(c->instance, &wish, found);
  c->wait_for(adapter.done);
  if (!adapter.handle) return Refusal{"WebGPU has no adapter: " + adapter.text};
  c->chip = adapter.handle;
  AdapterInfo info;
  c->info(c->chip, &info);
  if (info.backend == null_backend) return Refusal{"WebGPU finds no driver: the library's own null one computes nothing"};
  c->name = text_of(info.device) + " (WebGPU, " + text_of(info.description) + ")";
  Limits limits{};
  c->limits(c->chip, &limits);
  DeviceInfo di;
  di.limits = &limits; // all that the adapter has
  di.lost.call = [](const Handle*, uint32_t, Text, void*, void*) {};
  di.wrong.call = [](const Handle*, uint32_t, Text message, void* to, void*) {
    auto* context = static_cast<WebgpuContext*>(to);
    if (context->said.empty()) context->said = text_of(message);
  };
  di.wrong.first = c.get();
  found.first = &device;
  c->device(c->chip, &di, found);
  c->wait_for(device.done);
  if (!device.handle) return Refusal{c->name + " gives no device: " + device.text};
  c->gpu = device.handle;
  c->line = c->queue(c->gpu);
  if (limits.groups < row_of_groups) return Refusal{c->name + " launches too few workgroups"};
  target::Facts f;
  f.workgroup = int(std::min(limits.invocations, limits.group_size[0]));
  f.shared_bytes = limits.shared_bytes;
  f.bindings = int(limits.storage_buffers);
  f.binding_bytes = int64_t(std::min<uint64_t>(limits.storage_bytes, INT64_MAX));
  f.alignment = limits.storage_alignment;
  f.workers = 64;
  f.index64 = f.aliases = false;
  f.values = target::Class::finite;
  std::shared_ptr<Webgpu> out(new Webgpu);
  out->target_ = target::gpu_target("webgpu", f);
  out->name_ = c->name;
  out->context_ = std::move(c);
  return out;
}

Webgpu::~Webgpu() = default;

std::shared_ptr<Region> Webgpu::allocate(size_t bytes, bool guards) {
  return std::make_shared<WebgpuRegion>(context_, bytes, guards);
}

void Webgpu::copy(const Slice& to, const Slice& from) {
  const auto &a = static_cast<const WebgpuRegion&>(*to.region), &b = static_cast<const WebgpuRegion&>(*from.region);
  check((to.offset | from.offset) % 4 == 0, "parts of buffers begin at whole words");
  if (from.bytes % 4 == 0) {
    if (from.bytes)
      context_->copy(context_->commands(), b.buffer(), b.start() + from.offset, a.buffer(), a.start() + to.offset, from.bytes);
    return;
  }
  std::vector<char> bytes(from.bytes);
  from.region->read(bytes.data(), from.offset, from.bytes);
  to.region->write(to.offset, bytes.data(), from.bytes);
}

std::shared_ptr<Code> Webgpu::compile(const Unit& unit) {
  std::vector<std::shared_ptr<WebgpuPipeline>> pipelines;
  for (size_t k = 0; k < unit.entries.size(); ++k) {
    size_t same = 0;
    while (same < k && unit.entries[same].source != unit.entries[k].source) ++same;
    pipelines.push_back(same < k ? pipelines[same] : std::make_shared<WebgpuPipeline>(context_, unit.entries[k]));
  }
  return std::make_shared<WebgpuCode>(std::move(pipelines), unit.entries);
}

void Webgpu::wait() { context_->finish(); }

} // namespace tang::device
