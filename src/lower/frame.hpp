// The frame of one group's kernel: blocks of the core axes, local axes of statements, and where values live.
#pragma once
#include <map>
#include <set>

#include "tang/lower/body.hpp"
#include "tang/lower/choose.hpp"
#include "tang/lower/lower.hpp"

namespace tang::lower {

// A node's axes at a place of the kernel: some as axes of the statement, the rest fixed by the enclosing blocks.
struct Place {
  std::vector<Affine> at;                // global coordinate of each axis of the node
  std::vector<kernel::TileAxis> axes;    // of the statement
  std::vector<int> of;                   // the node's axis behind each
  kernel::Bounds tails;                  // points beyond the extent of a ragged axis
  int find(int node_axis) const;         // index into axes, or -1
};

// What a port's global memory is: for the body of a recurrence, a temporary or a window of an outer port.
struct Bound {
  std::variant<Port, int> what;
  kernel::Format format;
  std::vector<int64_t> shape;
  std::vector<ir::Form> view = {};  // over (time, the port's dimensions)
  bool inside = true;
};
using Binder = std::function<Bound(Port)>;
struct Surroundings {
  Binder bind;
  int time = -1;  // temporary that holds the step's number
};
Surroundings top_level(const ir::Graph& g, const plan::Plan& p);

class Frame {
 public:
  Frame(ir::Graph& g, const plan::Plan& p, const Surroundings& around, const plan::Group& group, const Choice& choice,
        const target::Target& target);
  kernel::Kernel k;
  std::vector<Argument> arguments;
  ir::Graph& g;
  const plan::Plan& plan;
  const Surroundings& around;
  const plan::Group& group;
  const Choice& choice;
  const target::Target& target;
  std::vector<kernel::Var> block;        // of each core axis: its first element
  kernel::Var part = -1;                 // of the workgroup, where walked blocks are shared by several
  kernel::Block head;                    // before the loops: Lets, tile fills, hoisted operands

  int64_t tile(int core) const { return choice.tile[size_t(core)]; }
  int64_t extent(const ir::Comp& n, const std::vector<int>& core, int axis) const;  // elements in a block
  // The axes in `which` (in that order) become axes of a statement; the others must be one element wide. `pads`: node axis
  // -> a multiple to round up to, for what fills a padded tile: points beyond the extent are tails.
  Place place(const ir::Comp& n, const std::vector<int>& core, const std::vector<int>& which, const std::string& stem = "",
              const std::map<int, int64_t>& pads = {});
  // Same order as `which` minus the axes that are one element wide in a block.
  std::vector<int> wide(const ir::Comp& n, const std::vector<int>& core, const std::vector<int>& which) const;

  // A tile for a port of a node in the group, over its output axes; `pads`: node axis -> a multiple to round up to;
  // the elements of axis `inner` lie next to each other (default: the last axis).
  int tile_for(Port p, const std::vector<int>& core, const std::string& name, const std::map<int, int64_t>& pads = {}, int inner = -1);
  int scratch(const std::string& name, std::vector<int64_t> shape, kernel::Format f = kernel::Format::f32, std::vector<int64_t> strides = {});
  Ref tile_ref(Port p, const Place& at) const;         // the tile of `p` at the points of a statement of its node
  bool has_tile(Port p) const { return tiles_.count(p) > 0; }
  int tile_memory(Port p) const { return has_tile(p) ? tiles_.at(p).memory : -1; }
  int global(Port p, bool written);
  kernel::Format format(Port p) { return global_of(p).bound.format; }
  int temporary(int id, kernel::Memory m, bool written);
  Ref global_ref(Port p, const ir::Comp& n, const Place& at, bool written);  // where a node stores a port
  // Where a workgroup's part of the result of a port goes: the port's own memory, or the array of partial results that was
  // set for it, [part, the port's dimensions].
  Ref result_ref(Port p, const ir::Comp& n, const Place& at);
  void partial(Port p, int memory);
  Homes homes();
  Body body(const ir::Comp& n, const Place& at, const std::vector<int>& core);
  kernel::Format tile_format(expr::Type t) const;
  // An integer that is the same for the whole workgroup: a uniform read at block coordinates; nothing when it is not.
  std::optional<Affine> uniform(const ir::Comp& n, const std::vector<int>& core, int arg);
  Affine clamped(const Affine& value, int64_t limit);

 private:
  std::map<Port, Home> tiles_;
  struct Global {
    int memory;
    Bound bound;
  };
  Global& global_of(Port p);
  void mark_written(int memory);
  Affine time();
  std::map<Port, Global> globals_;
  std::map<Port, int> partial_;
  std::map<int, int> temporaries_;       // id -> memory
  std::optional<Affine> time_;
  std::map<std::pair<Port, std::vector<int64_t>>, kernel::Var> uniforms_;
  std::map<std::pair<kernel::Var, int64_t>, Affine> clamped_;
};

int64_t round_up(int64_t v, int64_t to);
// Strides of an array in which dimension d has stride 1, the others keep their order.
std::vector<int64_t> innermost(const std::vector<int64_t>& shape, size_t d);
// Elements between neighbours along an axis of a node, in the array that stores this port of it.
int64_t stride_in_result(const ir::Graph& g, Port p, const ir::Comp& n, int axis);
void emit(kernel::Block& b, kernel::Apply a);
void emit(kernel::Block& b, kernel::Fold f);

}  // namespace tang::lower
