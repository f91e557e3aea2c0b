#include "tang/device/cuda.hpp"

#include <algorithm>
#include <cstring>

#include "tang/device/apart.hpp"

namespace tang::device {

namespace {
// The driver's ABI, as far as it is used: handles are pointers, device addresses 64-bit integers, results
// ints.
using Handle = void*;
using Address = uint64_t;

enum Attribute {
  shared_a_block_optin = 97, multiprocessors = 16, clock_rate = 13, major_version = 75, minor_version = 76
};

constexpr int function_dynamic_shared = 8;

} // namespace

#define TANG_CUDA_ENTRIES(X)                                                                                 \
  X(init, cuInit, unsigned)                                                                                  \
  X(version, cuDriverGetVersion, int*)                                                                       \
  X(count, cuDeviceGetCount, int*)                                                                           \
  X(device, cuDeviceGet, int*, int)                                                                          \
  X(name, cuDeviceGetName, char*, int, int)                                                                  \
  X(attribute, cuDeviceGetAttribute, int*, int, int)                                                         \
  X(total, cuDeviceTotalMem_v2, size_t*, int)                                                                \
  X(retain, cuDevicePrimaryCtxRetain, Handle*, int)                                                          \
  X(release, cuDevicePrimaryCtxRelease_v2, int)                                                              \
  X(current, cuCtxSetCurrent, Handle)                                                                        \
  X(allocate, cuMemAlloc_v2, Address*, size_t)                                                               \
  X(free, cuMemFree_v2, Address)                                                                             \
  X(to_device, cuMemcpyHtoDAsync_v2, Address, const void*, size_t, Handle)                                   \
  X(to_host, cuMemcpyDtoHAsync_v2, void*, Address, size_t, Handle)                                           \
  X(between, cuMemcpyDtoDAsync_v2, Address, Address, size_t, Handle)                                         \
  X(set, cuMemsetD8Async, Address, unsigned char, size_t, Handle)                                            \
  X(load, cuModuleLoadData, Handle*, const void*)                                                            \
  X(unload, cuModuleUnload, Handle)                                                                          \
  X(function, cuModuleGetFunction, Handle*, Handle, const char*)                                             \
  X(configure, cuFuncSetAttribute, Handle, int, int)                                                         \
  X(launch, cuLaunchKernel, Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,    \
    Handle, void**, void**)                                                                                  \
  X(stream, cuStreamCreate, Handle*, unsigned)                                                               \
  X(wait, cuStreamSynchronize, Handle)                                                                       \
  X(drop_stream, cuStreamDestroy_v2, Handle)                                                                 \
  X(event, cuEventCreate, Handle*, unsigned)                                                                 \
  X(record, cuEventRecord, Handle, Handle)                                                                   \
  X(reached, cuEventSynchronize, Handle)                                                                     \
  X(elapsed, cuEventElapsedTime, float*, Handle, Handle)                                                     \
  X(drop_event, cuEventDestroy_v2, Handle)                                                                   \
  X(begin_capture, cuStreamBeginCapture_v2, Handle, int)                                                     \
  X(end_capture, cuStreamEndCapture, Handle, Handle*)                                                        \
  X(instantiate, cuGraphInstantiateWithFlags, Handle*, Handle, unsigned long long)                           \
  X(launch_graph, cuGraphLaunch, Handle, Handle)                                                             \
  X(drop_ready, cuGraphExecDestroy, Handle)                                                                  \
  X(drop_graph, cuGraphDestroy, Handle)                                                                      \
  X(error_name, cuGetErrorName, int, const char**)                                                           \
  X(error_text, cuGetErrorString, int, const char**)

struct LaunchAttribute { // CUlaunchAttribute: an id and 64 bytes that it says the meaning of
  int id, unused = 0;
  int value[16] = {};
};

struct LaunchSettings { // CUlaunchConfig
  unsigned grid[3], block[3], shared;
  Handle stream;
  LaunchAttribute* attributes;
  unsigned count;
};

constexpr int cluster_size = 4, early_launch = 6; // and programmatic stream serialization

struct CudaDriver {
#define TANG_FIELD(field, symbol, ...) int (*field)(__VA_ARGS__) = nullptr;
  TANG_CUDA_ENTRIES(TANG_FIELD)
#undef TANG_FIELD
  // Of drivers that know bulk copies.
  int (*tensor_map)(TensorMap*, int type, unsigned rank, Address, const uint64_t* extent,
                    const uint64_t* stride, const uint32_t* box, const uint32_t* step, int interleave,
                    int swizzle, int promotion, int outside) = nullptr;
  // Of drivers that know launches with attributes.
  int (*launch_with)(const LaunchSettings*, Handle, void**, void**) = nullptr;
  // Of drivers that say, and are told, what the next start of a graph waits for.
  int (*capture_front)(Handle, int* state, uint64_t* id, Handle* graph, const Handle** nodes, size_t* count) = nullptr;
  int (*capture_after)(Handle, Handle* nodes, size_t count, unsigned flags) = nullptr;
  int (*clusters)(int*, Handle, const LaunchSettings*) = nullptr; // that run at once
};

void Cuda::check(int code, const char* doing) const {
  if (!code) return;
  const char *word = nullptr, *text = nullptr;
  driver_->error_name(code, &word), driver_->error_text(code, &text);
  const std::string said =
      std::string(word ? word : "error") + " (" + std::to_string(code) + "): " + (text ? text : "unknown");
  if (code == 2)
    throw CudaError(CudaError::out_of_memory, name_ + " has too little memory for " + doing, {{said, {}}},
                    "use smaller tensors, or free buffers");
  const bool gone =
      code == 700 || (code >= 714 && code <= 719) || code == 4 || code == 201; // nothing works after these
  throw CudaError(gone ? CudaError::lost : CudaError::failed,
                  std::string(doing) + " failed on " + (name_.empty() ? "the GPU" : name_), {{said, {}}},
                  gone ? "the GPU's context is lost: start the program again" : "see the driver's message");
}

Result<std::shared_ptr<Cuda>> Cuda::find(int ordinal) {
  std::string why;
  std::shared_ptr<Cuda> out(new Cuda);
  out->library_ = open_library({"libcuda.so.1", "libcuda.so"}, why);
  if (!out->library_) return Refusal{"no NVIDIA driver: " + why};
  out->table_ = std::make_shared<CudaDriver>();
  CudaDriver& d = *out->table_;
  std::string missing;
#define TANG_FIND(field, symbol, ...)                                                                        \
  d.field = reinterpret_cast<int (*)(__VA_ARGS__)>(find_symbol(out->library_, #symbol));                     \
  if (!d.field) missing = #symbol;
  TANG_CUDA_ENTRIES(TANG_FIND)
#undef TANG_FIND
  d.tensor_map =
      reinterpret_cast<decltype(d.tensor_map)>(find_symbol(out->library_, "cuTensorMapEncodeTiled"));
  d.launch_with = reinterpret_cast<decltype(d.launch_with)>(find_symbol(out->library_, "cuLaunchKernelEx"));
  d.capture_front = reinterpret_cast<decltype(d.capture_front)>(find_symbol(out->library_, "cuStreamGetCaptureInfo_v2"));
  d.capture_after =
      reinterpret_cast<decltype(d.capture_after)>(find_symbol(out->library_, "cuStreamUpdateCaptureDependencies"));
  d.clusters =
      reinterpret_cast<decltype(d.clusters)>(find_symbol(out->library_, "cuOccupancyMaxActiveClusters"));
  if (!missing.empty()) return Refusal{"the NVIDIA driver is too old: it has no " + missing};
  out->driver_ = &d;
  try {
    out->check(d.init(0), "starting the driver");
    int count = 0, major = 0, minor = 0, shared = 0, kilohertz = 0;
    out->check(d.version(&out->driver_version_), "asking for the driver's version");
    out->check(d.count(&count), "counting GPUs");
    if (ordinal < 0 || ordinal >= count)
      return Refusal{"the driver shows " + std::to_string(count) + " GPUs, none has number " +
                     std::to_string(ordinal)};
    out->check(d.device(&out->device_, ordinal), "choosing a GPU");
    char name[128] = {};
    out->check(d.name(name, sizeof name - 1, out->device_), "asking for its name");
    out->name_ = name;
    auto ask = [&](int* to, int what) {
      out->check(d.attribute(to, what, out->device_), "asking for a limit");
    };
    ask(&major, major_version), ask(&minor, minor_version), ask(&shared, shared_a_block_optin),
        ask(&out->processors_, multiprocessors), ask(&kilohertz, clock_rate);
    out->clock_ = 1e3 * kilohertz;
    out->capability_ = 10 * major + minor;
    out->shared_limit_ = shared;
    size_t total = 0;
    out->check(d.total(&total, out->device_), "asking for its memory");
    out->memory_ = int64_t(total);
    out->check(d.retain(&out->context_, out->device_), "opening a context");
    out->check(d.current(out->context_), "entering the context");
    out->check(d.stream(&out->stream_, 1), "opening a stream"); // 1: does not wait for the default stream
  } catch (const CudaError& e) {
    return Refusal{e.headline() + (e.facts().empty() ? "" : ": " + e.facts()[0].text)};
  }
  return out;
}

std::shared_ptr<Cuda> Cuda::open(int ordinal) {
  auto r = find(ordinal);
  if (!r)
    throw CudaError(CudaError::no_device, "no NVIDIA GPU to run on", {{r.why(), {}}},
                    "choose another device");
  return *r;
}

Cuda::~Cuda() {
  if (!driver_ || !context_) return;
  if (stream_) driver_->drop_stream(stream_);
  driver_->release(device_);
}

std::shared_ptr<CudaBuffer> Cuda::allocate(size_t bytes, bool guards) {
  return std::shared_ptr<CudaBuffer>(new CudaBuffer(shared_from_this(), bytes, guards));
}

void Cuda::write(uint64_t to, const void* from, size_t bytes) {
  if (!bytes) return;
  check(driver_->to_device(to, from, bytes, stream_), "copying to the GPU");
  wait(); // the caller's memory is free again
}

void Cuda::read(void* to, uint64_t from, size_t bytes) {
  if (bytes) check(driver_->to_host(to, from, bytes, stream_), "copying from the GPU");
  wait();
}

void Cuda::copy(uint64_t to, uint64_t from, size_t bytes) {
  if (bytes) check(driver_->between(to, from, bytes, stream_), "copying on the GPU");
}

void Cuda::fill(uint64_t to, unsigned char byte, size_t bytes) {
  if (bytes) check(driver_->set(to, byte, bytes, stream_), "filling memory");
}

std::shared_ptr<CudaModule> Cuda::load(const std::string& cubin) {
  void* m = nullptr;
  check(driver_->load(&m, cubin.data()), "loading compiled kernels");
  return std::shared_ptr<CudaModule>(new CudaModule(shared_from_this(), m));
}

void Cuda::launch(void* function, int64_t blocks, int lanes, int64_t shared_bytes,
                  const std::vector<void*>& arguments, bool early) {
  std::vector<void*> args = arguments;
  if (early) {
    if (!driver_->launch_with)
      throw CudaError(CudaError::failed, "the NVIDIA driver is too old for early launches", {},
                      "use a driver of CUDA 12 or later");
    LaunchAttribute may{early_launch};
    may.value[0] = 1;
    const LaunchSettings how{
        {unsigned(blocks), 1, 1}, {unsigned(lanes), 1, 1}, unsigned(shared_bytes), stream_, &may, 1};
    return check(driver_->launch_with(&how, function, args.data(), nullptr), "launching a kernel early");
  }
  check(driver_->launch(function, unsigned(blocks), 1, 1, unsigned(lanes), 1, 1, unsigned(shared_bytes),
                        stream_, args.data(), nullptr),
        "launching a kernel");
}

// A processor has one workgroup, those of a cluster are neighbours: some processors stay idle.
int64_t Cuda::resident(void* function, int cluster, int lanes, int64_t shared_bytes) const {
  const int64_t each = processors() / cluster;
  int n = 0;
  LaunchAttribute size{cluster_size};
  size.value[0] = cluster, size.value[1] = size.value[2] = 1;
  const LaunchSettings how{
      {unsigned(each * cluster), 1, 1}, {unsigned(lanes), 1, 1}, unsigned(shared_bytes), stream_, &size, 1};
  if (cluster == 1 || !driver_->clusters || driver_->clusters(&n, function, &how) || n < 1) return each * cluster;
  return std::min<int64_t>(n, each) * cluster;
}

bool Cuda::launches_early() const { return driver_->launch_with && capability_ >= 90; }

TensorMap Cuda::tensor_map(const BulkWindow& w, uint64_t address) const {
  // Elements are moved, never read: one type a width.
  constexpr int u8 = 0, f16 = 6, f32 = 7, swizzle_128 = 3, promote_256 = 3;
  if (!driver_->tensor_map)
    throw CudaError(CudaError::failed, "the NVIDIA driver is too old for bulk copies", {},
                    "use a driver of CUDA 12 or later");
  TensorMap out;
  std::vector<uint32_t> span = w.box;
  for (size_t d = 0; d < span.size(); ++d) span[d] *= w.apart[d];
  const int type = w.element_bits == 8 ? u8 : w.element_bits == 16 ? f16 : f32;
  check(driver_->tensor_map(&out, type, unsigned(w.extent.size()), address, w.extent.data(), w.stride.data(),
                            span.data(), w.apart.data(), 0, w.swizzled ? swizzle_128 : 0, promote_256, 0),
        "describing a window");
  return out;
}

std::shared_ptr<CudaGraph> Cuda::capture(const std::function<void()>& work) {
  std::shared_ptr<CudaGraph> g(new CudaGraph(shared_from_this()));
  check(driver_->begin_capture(stream_, 0), "capturing a graph");
  capturing_ = true;
  try {
    work();
  } catch (...) { // the stream works again
    capturing_ = false;
    driver_->end_capture(stream_, &g->graph_);
    throw;
  }
  capturing_ = false;
  check(driver_->end_capture(stream_, &g->graph_), "capturing a graph");
  check(driver_->instantiate(&g->ready_, g->graph_, 0), "making a graph ready");
  return g;
}

bool Cuda::orders() const { return capturing_ && driver_->capture_front && driver_->capture_after; }

std::vector<void*> Cuda::front() const {
  int state = 0;
  uint64_t id = 0;
  Handle graph = nullptr;
  const Handle* nodes = nullptr;
  size_t n = 0;
  check(driver_->capture_front(stream_, &state, &id, &graph, &nodes, &n), "asking what a start waits for");
  return {nodes, nodes + n};
}

void Cuda::after(std::vector<void*> nodes) {
  constexpr unsigned instead = 1; // of what it would wait for
  check(driver_->capture_after(stream_, nodes.data(), nodes.size(), instead), "saying what a start waits for");
}

CudaGraph::~CudaGraph() {
  if (ready_) gpu_->driver_->drop_ready(ready_);
  if (graph_) gpu_->driver_->drop_graph(graph_);
}

void CudaGraph::run() { gpu_->check(gpu_->driver_->launch_graph(ready_, gpu_->stream_), "starting a graph"); }

void Cuda::wait() { check(driver_->wait(stream_), "running kernels"); }

void* Cuda::mark() {
  void* e = nullptr;
  check(driver_->event(&e, 0), "making a clock mark");
  check(driver_->record(e, stream_), "setting a clock mark");
  return e;
}

double Cuda::seconds(void* from, void* to) {
  float ms = 0;
  check(driver_->reached(to), "waiting for a clock mark");
  check(driver_->elapsed(&ms, from, to), "reading the clock");
  driver_->drop_event(from), driver_->drop_event(to);
  return double(ms) * 1e-3;
}

CudaBuffer::CudaBuffer(std::shared_ptr<Cuda> gpu, size_t bytes, bool guards)
    : Banded(bytes, guards), gpu_(std::move(gpu)) {
  gpu_->check(gpu_->driver_->allocate(&base_, whole()), "a buffer");
  mark();
}

CudaBuffer::~CudaBuffer() {
  gpu_->driver_->wait(gpu_->stream_);
  gpu_->driver_->free(base_);
}

void CudaBuffer::raw_write(size_t to, const void* from, size_t bytes) {
  gpu_->write(base_ + to, from, bytes);
}

void CudaBuffer::raw_read(void* to, size_t from, size_t bytes) const { gpu_->read(to, base_ + from, bytes); }

void CudaBuffer::raw_fill(size_t at, unsigned char byte, size_t bytes) {
  gpu_->fill(base_ + at, byte, bytes);
}

CudaModule::~CudaModule() { gpu_->driver_->unload(module_); }

void* CudaModule::function(const std::string& name, int64_t shared_bytes) {
  void* f = nullptr;
  gpu_->check(gpu_->driver_->function(&f, module_, name.c_str()), "finding a kernel");
  if (shared_bytes > gpu_->shared_limit())
    throw CudaError(CudaError::failed,
                    "a kernel needs " + std::to_string(shared_bytes) + " bytes of shared memory",
                    {{"a workgroup of " + gpu_->name() + " has " + std::to_string(gpu_->shared_limit()), {}}},
                    "choose smaller blocks");
  if (shared_bytes > 48 << 10)
    gpu_->check(gpu_->driver_->configure(f, function_dynamic_shared, int(shared_bytes)),
                "asking for shared memory");
  return f;
}

// ---- NVRTC
// --------------------------------------------------------------------------------------------------------
struct CudaCompiler::Library {
  std::shared_ptr<void> handle;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Handle*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*compile)(Handle, int, const char* const*) = nullptr;
  int (*log_size)(Handle, size_t*) = nullptr;
  int (*log)(Handle, char*) = nullptr;
  int (*code_size)(Handle, size_t*) = nullptr;
  int (*code)(Handle, char*) = nullptr;
};

namespace {
const std::vector<const char*> flags = {"--std=c++17",      "--fmad=false", "--prec-div=true",
                                        "--prec-sqrt=true", "--ftz=false",  "--ptxas-options=-v"};
} // namespace

Result<std::shared_ptr<CudaCompiler>> CudaCompiler::find(const CudaCompilerOptions& o) {
  const std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::vector<std::string> paths = names;
  for (auto& folder : o.search)
    for (auto& n : names) paths.push_back(folder + "/" + n);
  std::string why;
  std::shared_ptr<CudaCompiler> out(new CudaCompiler);
  out->library_ = std::make_shared<Library>();
  Library& l = *out->library_;
  l.handle = open_library(paths, why);
  if (!l.handle) return Refusal{"no NVRTC: " + why};
  bool whole = true;
  auto get = [&](auto& f, const char* symbol) {
    f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(find_symbol(l.handle, symbol));
    whole &= f != nullptr;
  };
  get(l.version, "nvrtcVersion"), get(l.create, "nvrtcCreateProgram"), get(l.destroy, "nvrtcDestroyProgram"),
      get(l.compile, "nvrtcCompileProgram");
  get(l.log_size, "nvrtcGetProgramLogSize"), get(l.log, "nvrtcGetProgramLog"),
      get(l.code_size, "nvrtcGetCUBINSize"), get(l.code, "nvrtcGetCUBIN");
  if (!whole) return Refusal{"this NVRTC is too old"};
  int major = 0, minor = 0;
  l.version(&major, &minor);
  out->identity_ = "nvrtc " + std::to_string(major) + "." + std::to_string(minor);
  for (auto* f : flags) out->identity_ += std::string(" ") + f;
  if (!o.cache.empty()) out->cache_ = std::make_unique<Cache>(o.cache);
  return out;
}

std::shared_ptr<CudaCompiler> CudaCompiler::open(const CudaCompilerOptions& o) {
  auto r = find(o);
  if (!r)
    throw CudaError(CudaError::no_compiler, "no compiler for NVIDIA GPUs", {{r.why(), {}}},
                    "install the CUDA toolkit's NVRTC");
  return *r;
}

CudaCompiler::~CudaCompiler() = default;

// 'c' where it compiles, else 'r'; then how long the log is, the log, and the code. Empty where the library fails.
std::string CudaCompiler::compiled(const Library& l, const std::string& source, const std::string& architecture) {
  Handle p = nullptr;
  if (l.create(&p, source.c_str(), "tang.cu", 0, nullptr, nullptr)) return "";
  const std::string arch = "--gpu-architecture=" + architecture;
  std::vector<const char*> options = flags;
  options.push_back(arch.c_str());
  const bool failed = l.compile(p, int(options.size()), options.data());
  size_t n = 0, size = 0;
  if (l.log_size(p, &n) || (!failed && l.code_size(p, &size))) return "";
  std::string log(n, '\0'), code(size, '\0');
  if (l.log(p, log.data()) || (!failed && l.code(p, code.data()))) return "";
  const auto said = uint64_t(n);
  return (failed ? "r" : "c") + std::string(reinterpret_cast<const char*>(&said), sizeof said) + log + code;
}

std::string CudaCompiler::compile(const std::string& source, const std::string& architecture) {
  log_.clear();
  const std::string key = digest(identity_ + "\n" + architecture + "\n" + source);
  if (cache_)
    if (auto known = cache_->find(key)) return *known;
  ++runs_;
  ProcessLimits limits;
  limits.wall_seconds = 1200;
  const Apart r = run_apart([&] { return compiled(*library_, source, architecture); }, limits);
  const std::string how = r.end.kind == ProcessResult::signalled   ? "signal " + std::to_string(r.end.code)
                          : r.end.kind == ProcessResult::timed_out ? "no end after " + std::to_string(limits.wall_seconds) + " s"
                                                                   : "code " + std::to_string(r.end.code);
  if (r.value.size() < 9)
    throw CudaError(CudaError::failed, "NVRTC failed on generated code",
                    {{how + " on a text of " + std::to_string(source.size()) + " bytes, " + identity_.substr(0, identity_.find(" --")), {}}},
                    "try another CUDA toolkit, and report this");
  uint64_t said = 0;
  std::memcpy(&said, r.value.data() + 1, sizeof said);
  log_ = r.value.substr(9, said);
  if (r.value[0] != 'c') throw CudaError(CudaError::rejected, "NVRTC rejected generated code", {{log_, {}}}, "report this");
  const std::string code = r.value.substr(9 + said);
  if (cache_) cache_->store(key, code);
  return code;
}

} // namespace tang::device
