// The graph: inputs, comprehensions and recurrences in an append-only, hash-consed arena; operands before
// users. Definitions: docs/semantics.md.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/expr/pool.hpp"
#include "tang/ir/form.hpp"
#include "tang/ir/numerics.hpp"

namespace tang::ir {

using expr::Id;
using expr::Op;
using expr::Pool;
using expr::Value;
using NodeId = uint32_t;

struct Port {
  NodeId node = 0;
  uint32_t port = 0;

  bool operator==(const Port& o) const { return node == o.node && port == o.port; }

  bool operator!=(const Port& o) const { return !(*this == o); }

  bool operator<(const Port& o) const { return node != o.node ? node < o.node : port < o.port; }
};

// A read: `from` at the coordinates `view`. A form of the view may use earlier reads of the same node.
struct Arg {
  Port from;
  std::vector<Form> view;
};

// A state type with an associative combine: var 2c is the left component c, var 2c + 1 the right one.
struct Monoid {
  std::string name;
  std::vector<Value> identity; // one a component; its type is the component's type
  std::vector<Id> combine;
  bool commutative = true;

  size_t size() const { return identity.size(); }
};

// What a port stores: which point axes it has and where each point lands. No view: coordinate d is axes[d].
struct Out {
  std::vector<int> axes;  // its subset of the point axes, ascending unless a map chose another order
  std::vector<Form> view; // output view: injective, mixed radix; a coordinate that no point reaches is absent
  std::vector<Extent> shape; // of the view; empty when there is none
};

struct Input {
  enum Kind : uint8_t { data, param, state } kind = data; // state: donated, may be updated in place

  std::vector<Extent> shape;
  Format format = Format::f32;
  bool sorted = false; // indices that never decrease along the last dimension
};

// points x folds -> one monoid state a point (a map when there is no monoid: its single component is its
// value).
struct Comp {
  std::vector<Extent> points, folds; // axes: points 0 .., then folds
  std::vector<Arg> args;             // what Op::arg refers to
  std::vector<Domain> guards;        // what Op::holds refers to
  Domain domain = everywhere();
  std::optional<Monoid> monoid;
  std::vector<Id> lift;  // one a component: the state of one term
  std::vector<Out> outs; // one a component

  // Compiled once: each is more code than the functions that copy or drop a comprehension by the way.
  Comp();
  Comp(const Comp&);
  Comp(Comp&&) noexcept;
  Comp& operator=(const Comp&);
  Comp& operator=(Comp&&) noexcept;
  ~Comp();

  int axis_count() const { return int(points.size() + folds.size()); }

  const Extent& extent(int a) const {
    return size_t(a) < points.size() ? points[size_t(a)] : folds[size_t(a) - points.size()];
  }

  std::vector<Extent> extents() const;

  bool is_map() const { return !monoid; }
};
struct Graph;

// A state carried along one axis. `step` is a graph whose inputs are the time, the old states and the args.
// Views of args and emits are over (time, local axes): axis 0 is time, axis 1 + d is dimension d of the
// step's tensor.
struct Recur {
  struct State {
    std::optional<Port> init; // none: zeros
    NodeId in = 0;            // the step's input that holds the old value
    Port out;                 // the step's port with the new value
  };

  struct Read {
    Port from;
    std::vector<Form> view;
    NodeId in = 0;
  };

  struct Emit {
    Port out; // a port of the step; may be an old state
    std::vector<Form> view;
    std::vector<Extent> shape;
  };

  Extent steps = 0;
  bool reverse = false;
  Domain live = everywhere(); // over time; where false the state is kept and the emits are absent
  std::vector<State> states;
  std::vector<Read> args;
  std::vector<Emit> emits; // ports: final states, then emits
  NodeId time = 0;         // the step's rank-0 index input
  std::shared_ptr<const Graph> step;

  Recur();
  Recur(const Recur&);
  Recur(Recur&&) noexcept;
  Recur& operator=(const Recur&);
  Recur& operator=(Recur&&) noexcept;
  ~Recur();
};

struct Node {
  std::variant<Input, Comp, Recur> what;
  std::string name; // the user's, or the surface expression's kind; no meaning except for inputs
  Where where = {};
  uint64_t hash = 0; // structural, through operands down to declared names

  const Input* input() const { return std::get_if<Input>(&what); }

  const Comp* comp() const { return std::get_if<Comp>(&what); }

  const Recur* recur() const { return std::get_if<Recur>(&what); }
};

struct Output { // a named output of the graph
  Port port;
  std::string name;
  Format format = Format::f32;
};

struct Absorb;
struct Decided; // a monoid, and whether it absorbs

struct Graph {
  Pool pool;
  std::vector<Node> nodes;
  std::vector<Output> outputs;
  Symbols symbols;

  Graph();
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  const Node& operator[](NodeId id) const { return nodes[id]; }

  // Normalises the node (unused reads dropped, reads, guards and commutative operands in structural order)
  // and returns the id of an equal node when there is one. Inputs have identity: equal names in one graph are
  // an Error.
  NodeId add(Node n);
  // Declares the indices of an input sorted along its last dimension. Nothing may read it yet: the hashes of
  // its readers contain its own.
  void set_sorted(NodeId input);
  size_t ports(NodeId id) const;
  std::vector<Extent> shape(Port p) const;
  Type type(Port p) const;
  // Where the point axes of a port's node are read: for each point axis, the form of the view that picks it.
  std::string label(Port p) const; // for messages: the name, or "node 7"

private:
  friend const Result<Absorb>& absorbing(Graph& g, const Monoid& m);
  std::unordered_multimap<uint64_t, NodeId> find_;
  std::vector<std::shared_ptr<const Decided>> decided_; // a proof of many cases: once a monoid
};

// Is a value of `result` words, made of `read` words, better evaluated in each of three groups that want it
// than written once and read three times? 3 read <= read + (1 + 3) result. (Of attention: the forward, and
// two of the backward, where a result is to be complete in one place.)
inline bool is_cheaper_evaluated(double result, double read) { return read <= 2 * result; }

bool same(const Monoid& a, const Monoid& b);
// The reads that this node makes of other nodes, each once.
std::vector<Port> sources(const Graph& g, NodeId id);

// Everything the outputs need, in the order of the walk from them; ids follow the walk. The map is -1 for
// dropped nodes.
struct Rebuilt {
  Graph graph;
  std::vector<int64_t> map;
};

Rebuilt canonical(const Graph& g);
// Every read and output of a port in the map becomes one of another port. Operands may then stand after their
// users: `canonical` brings them in order.
void redirect(Graph& g, const std::map<Port, Port>& instead);
Rebuilt bind(const Graph& g, const Bindings& values);
// A hash of the whole graph: equal for graphs that print alike.
uint64_t hash(const Graph& g);
// Throws Bug when an invariant of the arena does not hold.
void validate(const Graph& g);

// Copies nodes from one graph into another, one by one, under a map of ports.
class Copier {
public:
  explicit Copier(const Graph& from) : from_(from), ports_(from.nodes.size()) { to.symbols = from.symbols; }

  Graph to;
  NodeId copy(NodeId id);       // the node with its reads mapped; also records its ports
  Node imported(NodeId id);     // the same node, not yet added
  void set(Port old, Port now); // readers of `old` will read `now`
  Port at(Port old) const;
  Id moved(Id term); // a term of from's pool, with its leaves as they are
  Rebuilt finish();  // maps the outputs
private:
  const Graph& from_;
  std::vector<std::vector<std::optional<Port>>> ports_;
};

} // namespace tang::ir
