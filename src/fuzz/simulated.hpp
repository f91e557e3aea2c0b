// A derivation in the kernel simulator: every access checked, no compiler and no device.
#pragma once
#include "tang/fuzz/judge.hpp"
#include "tang/kernel/simulate.hpp"

namespace tang::fuzz {

class Simulated {
public:
  // Inputs by name, rounded to their formats.
  Simulated(const run::Derivation& d, const eval::Inputs& inputs);

  // Before each launch, with what it works on: (kernel, globals).
  using Launch = std::function<void(size_t, std::vector<kernel::Buffer>&)>;
  void run(const Launch& launch);
  Outputs outputs() const;

private:
  struct Place {
    bool temporary = false;
    ir::Port port;
    int number = 0;

    bool operator<(const Place& o) const {
      return temporary != o.temporary ? temporary < o.temporary
             : temporary              ? number < o.number
                                      : port < o.port;
    }
  };

  Place place(const lower::Argument& a) const;
  void range(size_t first, size_t last, int depth, const Launch& launch);
  void one(size_t k, const Launch& launch);

  const run::Derivation& d_;
  std::map<Place, kernel::Buffer> held_;
};

kernel::Buffer poisoned(int64_t n);
// The outputs; what check() and the simulator found is added to `faults`.
Outputs simulate(const run::Derivation& d, const Case& c, kernel::Order order, std::vector<Fault>& faults);

} // namespace tang::fuzz
