// An NVIDIA GPU through libcuda, and its compiler NVRTC, both opened at run time: bytes, launches, clocks.
#pragma once
#include <functional>

#include "tang/device/cache.hpp"
#include "tang/device/device.hpp"

namespace tang::device {

class CudaError : public Error {
public:
  enum Kind : uint8_t { no_driver, no_device, no_compiler, rejected, out_of_memory, lost, failed };

  CudaError(Kind kind, const std::string& headline, std::vector<Note> facts, const std::string& fix)
      : Error({}, headline, std::move(facts), fix), kind_(kind) {}

  Kind kind() const { return kind_; }

private:
  Kind kind_;
};

struct CudaDriver; // libcuda's entry points
class Cuda;

struct alignas(64) TensorMap { // opaque; a kernel takes it by value
  uint64_t words[16];
};

class CudaGraph {
public:
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  void run();

private:
  friend class Cuda;

  explicit CudaGraph(std::shared_ptr<Cuda> gpu) : gpu_(std::move(gpu)) {}

  std::shared_ptr<Cuda> gpu_;
  void *graph_ = nullptr, *ready_ = nullptr;
};

class CudaBuffer : public Banded {
public:
  ~CudaBuffer() override;

  uint64_t address() const { return base_ + start(); }

private:
  friend class Cuda;
  CudaBuffer(std::shared_ptr<Cuda> gpu, size_t bytes, bool guards);
  void raw_write(size_t to, const void* from, size_t bytes) override;
  void raw_read(void* to, size_t from, size_t bytes) const override;
  void raw_fill(size_t at, unsigned char byte, size_t bytes) override;
  std::shared_ptr<Cuda> gpu_;
  uint64_t base_ = 0;
};

class CudaModule {
public:
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  void* function(const std::string& name,
                 int64_t shared_bytes); // ready to launch with that much shared memory

private:
  friend class Cuda;

  CudaModule(std::shared_ptr<Cuda> gpu, void* module) : gpu_(std::move(gpu)), module_(module) {}

  std::shared_ptr<Cuda> gpu_;
  void* module_;
};

// One GPU, its primary context and one stream, in which everything runs in order. For one thread at a time.
class Cuda : public std::enable_shared_from_this<Cuda> {
public:
  // Why there is none, or the GPU: no driver, no device, or what the driver said.
  static Result<std::shared_ptr<Cuda>> find(int ordinal = 0);
  static std::shared_ptr<Cuda> open(int ordinal = 0); // throws CudaError
  ~Cuda();
  Cuda(const Cuda&) = delete;

  const std::string& name() const { return name_; }

  int capability() const { return capability_; } // 90: 9.0

  int processors() const { return processors_; }

  double clock() const { return clock_; } // Hz, the highest

  int64_t shared_limit() const { return shared_limit_; } // bytes a workgroup may ask for

  int64_t memory() const { return memory_; }

  int driver_version() const { return driver_version_; } // 13000: CUDA 13.0

  std::shared_ptr<CudaBuffer> allocate(size_t bytes, bool guards = false);
  void write(uint64_t to, const void* from, size_t bytes);
  void read(void* to, uint64_t from, size_t bytes); // waits for everything before
  void copy(uint64_t to, uint64_t from, size_t bytes);
  void fill(uint64_t to, unsigned char byte, size_t bytes);
  std::shared_ptr<CudaModule> load(const std::string& cubin);
  // `arguments`: where the value of each parameter lies. `early`: it may begin before what was started last has
  // ended; its own text waits where it must. Throws CudaError: a driver that cannot.
  void launch(void* function, int64_t blocks, int lanes, int64_t shared_bytes,
              const std::vector<void*>& arguments, bool early = false);
  // Workgroups of a kernel that keeps them which run at once, a multiple of its clusters'.
  int64_t resident(void* function, int cluster, int lanes, int64_t shared_bytes) const;

  bool launches_early() const; // since compute capability 9.0
  TensorMap tensor_map(const BulkWindow& w, uint64_t address) const;
  // What `work` starts, as a graph that starts it at once.
  std::shared_ptr<CudaGraph> capture(const std::function<void()>& work);
  // While capturing, with a driver that can: what the next start waits for, as the graph's nodes (at first what was
  // started last), may be told.
  bool orders() const;
  std::vector<void*> front() const;
  void after(std::vector<void*> nodes);
  void wait(); // throws what a kernel did wrong
  // Device time between two marks, in seconds.
  void* mark();
  double seconds(void* from, void* to); // waits, and gives both marks back

private:
  friend class CudaBuffer;
  friend class CudaModule;
  friend class CudaGraph;
  Cuda() = default;
  void check(int code, const char* doing) const;
  const CudaDriver* driver_ = nullptr;
  std::shared_ptr<void> library_;
  std::shared_ptr<CudaDriver> table_;
  int device_ = 0, capability_ = 0, processors_ = 0, driver_version_ = 0;
  int64_t shared_limit_ = 0, memory_ = 0;
  double clock_ = 0;
  std::string name_;
  void *context_ = nullptr, *stream_ = nullptr;
  bool capturing_ = false;
};

struct CudaCompilerOptions {
  std::vector<std::string> search = {"/usr/local/cuda/lib64"}; // folders of libnvrtc beside the loader's own
  std::string cache;                                           // folder of compiled units; empty: none
};

// NVRTC: CUDA C++ in, machine code of one architecture out. Needs no GPU.
class CudaCompiler {
public:
  static Result<std::shared_ptr<CudaCompiler>> find(const CudaCompilerOptions& o = {});
  static std::shared_ptr<CudaCompiler> open(const CudaCompilerOptions& o = {}); // throws CudaError
  ~CudaCompiler();
  // `architecture`: "sm_90", "sm_90a", ..; throws CudaError::rejected with the compiler's log, and `failed` where the
  // compiler crashes: it runs in a process of its own.
  std::string compile(const std::string& source, const std::string& architecture);

  const std::string& identity() const { return identity_; } // its version and our flags

  int runs() const { return runs_; }

  // What the last compilation said: registers and spills of each kernel, warnings. Empty when the cache
  // answered.
  const std::string& log() const { return log_; }

private:
  struct Library;
  CudaCompiler() = default;
  static std::string compiled(const Library& l, const std::string& source, const std::string& architecture);
  std::shared_ptr<Library> library_;
  std::unique_ptr<Cache> cache_;
  std::string identity_, log_;
  int runs_ = 0;
};

// A GPU and its compiler as programs see them.
class CudaDevice : public Device {
public:
  // `architecture`: of NVRTC, "sm_90a".
  CudaDevice(std::shared_ptr<Cuda> gpu, std::shared_ptr<CudaCompiler> compiler, std::string architecture)
      : gpu_(std::move(gpu)), compiler_(std::move(compiler)), architecture_(std::move(architecture)) {}

  std::shared_ptr<Region> allocate(size_t bytes, bool guards) override {
    return gpu_->allocate(bytes, guards);
  }

  void copy(const Slice& to, const Slice& from) override;
  std::shared_ptr<Code> compile(const Unit& unit) override;
  // While a graph is captured, each kernel waits for those alone whose results or memory it needs (`waits`).
  void run(const std::vector<std::unique_ptr<Launch>>& all) override;

  void wait() override { gpu_->wait(); }

private:
  std::shared_ptr<Cuda> gpu_;
  std::shared_ptr<CudaCompiler> compiler_;
  std::string architecture_;
};

} // namespace tang::device
