// A machine that runs a plan: group by group, workgroup by workgroup (last first), tile by tile, in scalar
// evaluation. It knows what is stored and nothing else: reading a value that no buffer holds, that nothing
// wrote, that lies outside the tile or belongs to another workgroup is a complaint, and so is a buffer that
// is not the oracle's value of its port.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tang/eval/oracle.hpp"
#include "tang/plan/plan.hpp"

namespace tang::test {

using At = std::vector<int64_t>;
using ir::NodeId;
using ir::Port;

struct Cells {
  At shape;
  std::vector<expr::Value> value;
  std::vector<char> written;
  std::vector<int> reader =
      {}; // of memory taken in this step: the workgroup that read the old value, -1: none, -2: several
};

class Machine {
public:
  // `fills`: a stored array does not know what is absent, it holds 0 there (supports were exposed before
  // planning).
  Machine(const plan::Plan& p, int64_t tile, bool fills = false)
      : p_(p), g_(*p.graph), tile_(tile), fills_(fills) {}

  void run(const eval::Inputs& inputs);
  eval::Array output(const std::string& name) const;
  eval::Array port(Port q) const; // after the last step

  const std::vector<std::string>& complaints() const { return complaints_; }

  const std::map<NodeId, int64_t>& evaluations() const { return evaluations_; } // of shared subterms, by node

  int64_t largest() const { return largest_; } // elements of the largest buffer that is no output

private:
  struct Accumulator { // the components that have these axes, with those that they need
    std::vector<int> axes, seen, ports;
    std::map<At, std::vector<expr::Value>> state;
  };

  void complain(const std::string& what);
  expr::Value read(Port q, const At& at);
  expr::Value cell(Cells& c, const At& at, const std::string& who);
  std::optional<int64_t> value(const ir::Comp& c, const ir::Form& f, const At& x,
                               std::optional<expr::Value>& bad);
  bool inside(const ir::Comp& c, const ir::Domain& d, const At& x);
  expr::Value arg(const ir::Comp& c, size_t k, const At& x);
  expr::Value evaluate(const ir::Comp& c, ir::Id term, const At& x);
  expr::Value shared_at(const plan::Shared& s, const At& at);
  void fold_term(const ir::Comp& c, Accumulator& a, const At& x);
  std::vector<Accumulator> accumulators(const ir::Comp& c) const;
  void update(const plan::Member& m, std::vector<Accumulator>& acc);
  void flush(const plan::Member& m, std::vector<Accumulator>& acc);
  void store(NodeId id, uint32_t port, const At& x, expr::Value v, plan::Flush how);
  void open(NodeId id, plan::Flush how);
  void run_group(const plan::Group& g);
  void run_recur(const plan::Step& s);
  void check_arena();
  void check_step(int step, eval::Oracle& truth);

  const plan::Plan& p_;
  const ir::Graph& g_;
  int64_t tile_;
  bool fills_;
  std::map<Port, Cells> memory_, local_;
  std::map<NodeId, NodeId> taken_; // a donated input: by whom
  std::set<Port> done_;            // buffers whose step is over
  int workgroup_ = 0;
  const plan::Group* group_ = nullptr;
  At lo_, hi_;
  std::map<std::pair<NodeId, At>, expr::Value> tile_values_;
  std::map<NodeId, int64_t> evaluations_;
  std::vector<std::string> complaints_;
  int64_t largest_ = 0;
};

// Every point of a box, last coordinate fastest.
void each(const At& lo, const At& hi, const std::function<void(const At&)>& f);

} // namespace tang::test
