// A batch runs in a process of its own and says what it found through a pipe: one line a fact. Private to the
// room.
#pragma once
#include "tang/fuzz/campaign.hpp"

namespace tang::fuzz {

class Sender {
public:
  explicit Sender(int pipe) : pipe_(pipe) {}

  void at(uint64_t seed); // the case that is being worked on: blamed for what ends the process
  void fault(uint64_t seed, const Fault& f, const Sequence& choices);
  void number(const std::string& what, int64_t n);

private:
  void line(const std::string& s);
  int pipe_;
};

struct Process {
  int id = 0, pipe = 0, limit = 0;
};

// A child process that works for at most `limit` seconds (0: as long as it takes); what it sent when it ends.
Process start(const std::function<void(Sender&)>& work, int limit);
std::vector<Finding> finish(const Process& p, Summary& sum, const std::string& target);
// Both: runs `work` in a child process; numbers go into `sum`.
std::vector<Finding> in_process(const std::function<void(Sender&)>& work, Summary& sum,
                                const std::string& target, int limit = 120);

} // namespace tang::fuzz
