// A GPU as programs see it.
#include <set>

#include "tang/device/cuda.hpp"
#include "tang/device/order.hpp"

namespace tang::device {

namespace {
uint64_t address(const Slice& s) { return static_cast<const CudaBuffer&>(*s.region).address() + s.offset; }

class CudaLaunch : public Launch {
public:
  CudaLaunch(std::shared_ptr<Cuda> gpu, void* function, const Entry& e, const std::vector<Slice>& arguments)
      : gpu_(std::move(gpu)), function_(function),
        blocks_(std::min<int64_t>(
            e.workgroups, e.resident ? gpu_->resident(function, e.cluster, e.lanes, e.local_bytes) : INT32_MAX)),
        shared_(e.local_bytes), lanes_(e.lanes), early_(e.early && begins_early(e)) {
    for (size_t i = 0; i < arguments.size(); ++i)
      touches_.push_back({arguments[i].region.get(), arguments[i].offset, arguments[i].offset + arguments[i].bytes,
                          i >= e.written.size() || e.written[i]});
    for (auto& w : e.windows) maps_.push_back(gpu_->tensor_map(w, address(arguments[size_t(w.argument)])));
    if (e.resident) {
      for (int p : e.pointers) pointers_.push_back(address(arguments[size_t(p)]));
      counter_ = gpu_->allocate(size_t(e.counters) * sizeof(int32_t));
      pointers_.push_back(counter_->address());
      if (e.scratch_bytes)
        scratch_ = gpu_->allocate(size_t(e.scratch_bytes)), pointers_.push_back(scratch_->address());
    } else {
      for (auto& a : arguments) pointers_.push_back(address(a));
    }
    for (auto& m : maps_) values_.push_back(&m);
    for (auto& p : pointers_) values_.push_back(&p);
  }

  // Workgroups that begin while another kernel ends lie on the processors which that has left: many small ones
  // would crowd there while others stand idle.
  bool begins_early(const Entry& e) const {
    return gpu_->launches_early() && (e.resident || e.workgroups <= gpu_->processors());
  }

  void run() override {
    if (blocks_) gpu_->launch(function_, blocks_, lanes_, shared_, values_, early_);
  }

  const std::vector<Touch>& touches() const { return touches_; }

private:
  std::shared_ptr<Cuda> gpu_;
  void* function_;
  int64_t blocks_, shared_;
  int lanes_;
  bool early_;
  std::vector<Touch> touches_;
  std::vector<TensorMap> maps_;
  std::vector<uint64_t> pointers_;
  std::vector<void*> values_; // of the parameters
  std::shared_ptr<CudaBuffer> counter_, scratch_;
};

class CudaCode : public Code {
public:
  CudaCode(std::shared_ptr<Cuda> gpu, std::shared_ptr<CudaModule> module, std::vector<Entry> entries)
      : gpu_(std::move(gpu)), module_(std::move(module)), entries_(std::move(entries)) {}

  std::unique_ptr<Launch> bind(size_t entry, const std::vector<Slice>& arguments) override {
    const Entry& e = entries_[entry];
    return std::make_unique<CudaLaunch>(gpu_, module_->function(e.name, e.local_bytes), e, arguments);
  }

private:
  std::shared_ptr<Cuda> gpu_;
  std::shared_ptr<CudaModule> module_;
  std::vector<Entry> entries_;
};
} // namespace

void CudaDevice::copy(const Slice& to, const Slice& from) {
  gpu_->copy(address(to), address(from), from.bytes);
}

void CudaDevice::run(const std::vector<std::unique_ptr<Launch>>& all) {
  if (!gpu_->orders()) return Device::run(all);
  std::vector<std::vector<Touch>> touches;
  for (auto& l : all) touches.push_back(static_cast<const CudaLaunch&>(*l).touches());
  const std::vector<std::vector<size_t>> needs = waits(touches);
  const std::vector<void*> before = gpu_->front();
  std::vector<std::vector<void*>> ends(all.size()); // a start of no workgroups is what it waits for
  std::set<void*> last(before.begin(), before.end());
  for (size_t k = 0; k < all.size(); ++k) {
    std::set<void*> nodes;
    for (size_t j : needs[k]) nodes.insert(ends[j].begin(), ends[j].end());
    if (needs[k].empty()) nodes.insert(before.begin(), before.end());
    for (void* n : nodes) last.erase(n);
    gpu_->after({nodes.begin(), nodes.end()});
    all[k]->run();
    ends[k] = gpu_->front();
    last.insert(ends[k].begin(), ends[k].end());
  }
  gpu_->after({last.begin(), last.end()});
}

std::shared_ptr<Code> CudaDevice::compile(const Unit& unit) {
  return std::make_shared<CudaCode>(gpu_, gpu_->load(compiler_->compile(unit.source, architecture_)),
                                    unit.entries);
}

} // namespace tang::device
