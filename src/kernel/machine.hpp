// The memories of a simulated device: contents, poison, who touched what, and what went wrong.
#pragma once
#include <functional>
#include <map>
#include <tuple>

#include "tang/kernel/lanes.hpp"
#include "tang/kernel/simulate.hpp"

namespace tang::kernel {

class Machine {
 public:
  Machine(const Kernel& k, std::vector<Buffer>& globals, const Options& options);

  void enter(int64_t workgroup);  // its tiles are poison
  struct Trouble {
    Mask unwritten = 0, race = 0, lane_race = 0, forbidden = 0;
    explicit operator bool() const { return unwritten | race | lane_race | forbidden; }
  };
  // The lanes of `mask` of one memory at addresses that lie inside it. `adds`: the statement adds to what
  // stands there (kernel/add_in_place.hpp): others that do so may meet it.
  Trouble load(int memory, const int64_t* at, Mask mask, int n, Reg& into, bool adds);
  Trouble store(int memory, const int64_t* at, Mask mask, int n, const Reg& from, bool adds);
  void count_loads(int memory, int64_t n) { counts_[size_t(memory)].loads += n; }

  // Which lane of the workgroup each lane of a mask is; `several`: more than one reads.
  static constexpr int several = -1;
  std::array<int, width> lane_of{};
  int holders = 1; // lanes from there on that do the same
  void deal(int64_t from, int n);  // flat points from, from + 1, ..
  void barrier(Team t) {
    ++epoch_;
    if (t == Team::cluster) ++far_epoch_;
  }

  void report(Fault::Kind kind, int statement, int memory, const std::function<std::string()>& text);
  Outcome outcome();

  const Kernel& kernel;
  const Options& options;
  const Format round;  // of operations
  int64_t steps = 0;

 private:
  struct Store {
    double* r = nullptr;
    int64_t* i = nullptr;
    std::vector<double> own_r;  // of a tile
    std::vector<int64_t> own_i;
    std::vector<uint8_t> written;
    std::vector<int64_t> writer, reader; // who touched an element of a global that is written
    std::vector<int> wrote, saw;               // the lane that did so last; kernels of many lanes only
    std::vector<int64_t> wrote_at, saw_at;     // epoch
    bool own = false; // registers of the lanes that wrote them
    bool far = false; // lanes of several workgroups share it: they meet at barriers of the cluster
    std::vector<int> held_by;
    int64_t copy = 0; // elements of one of `copies`
    int copies = 1;
    int64_t dealt = 0; // of a tile that lies partially in each workgroup: elements of a part
    bool tile = false, real = false, readable = true, writable = true;
    Format format = Format::f32;
  };
  std::vector<Store> stores_;
  std::vector<Counts> counts_;
  std::vector<Fault> faults_;
  std::map<std::tuple<Fault::Kind, int, int>, size_t> seen_;
  Mask read_by_lanes(Store& s, const int64_t* at, Mask mask, int n);
  Mask written_by_lanes(Store& s, const int64_t* at, Mask mask, int n);
  int64_t epoch(const Store& s) const { return s.far ? far_epoch_ : epoch_; }
  const int64_t* in_copies(const Store& s, const int64_t* at, Mask mask, int n); // each lane's in its workgroup's tile
  bool apart(const Store& s, size_t e, int lane) const;
  std::array<int64_t, width> place_{};
  int64_t workgroup_ = 0, epoch_ = 0, far_epoch_ = 0;
};

}  // namespace tang::kernel
