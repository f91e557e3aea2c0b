// How a target writes what every printer says: types, declarations, literals, element access. The defaults are C; a GPU
// dialect adds how lanes, tiles and barriers are spelled.
#pragma once
#include <string>
#include <vector>

#include "tang/kernel/kernel.hpp"

namespace tang::emit {

class Dialect {
public:
  virtual ~Dialect() = default;
  std::string integer = "int64_t", natural = "uint64_t", real = "float", wide_real = "double";
  std::string truth = "int", yes = "1", no = "0", both = " & ", either = " | ";

  std::string type(kernel::Type t, bool wide) const;
  // Text of expressions over text.
  virtual std::string cast(const std::string& type, const std::string& x) const { return "(" + type + ")" + x; }

  virtual std::string pick(const std::string& c, const std::string& a, const std::string& b) const {
    return "(" + c + " ? " + a + " : " + b + ")";
  }

  virtual std::string literal(const kernel::Value& v, bool wide) const;

  virtual std::string is_nan(const std::string& x) const { return "(" + x + " != " + x + ")"; }

  virtual std::string inside(const std::string& x, int64_t extent) const; // 0 <= x < extent
  virtual std::string wrapped(const std::string& a, const char* op, const std::string& b) const;
  std::string zero(kernel::Type t, bool wide) const;
  virtual std::string place(const std::string& as, const std::string& at) const { return as + "[" + at + "]"; }

  // Element `at` of memory `as` as a value, and the statement that stores a value there.
  virtual std::string load(const kernel::Memory& m, const std::string& as, const std::string& at, bool wide) const;
  virtual std::string store(const kernel::Memory& m, const std::string& as, const std::string& at,
                            const std::string& value, bool wide) const;
  // A real value as this format holds it.
  std::string rounded(kernel::Format f, const std::string& value, bool wide) const;
  // Statements.
  virtual std::string constant(const std::string& type, const std::string& name, const std::string& value) const {
    return "const " + type + " " + name + " = " + value + ";";
  }

  virtual std::string variable(const std::string& type, const std::string& name, const std::string& value) const {
    return type + " " + name + " = " + value + ";";
  }
};

const Dialect& c_dialect();

class Unit;

class GpuDialect : public Dialect {
public:
  GpuDialect() { truth = "bool", yes = "true", no = "false", both = " && ", either = " || "; }

  std::string counter = "int";       // of lanes, blocks and other small numbers
  std::string plain_counter = "unsigned"; // of the same size without a sign
  std::string barrier;               // a statement: every lane's writes before it are seen after it
  // The same for all workgroups of a cluster; that this one runs; until all of them do.
  std::string barrier_of_cluster, cluster_arrives, cluster_started;
  std::string unroll;                // before a loop of few rounds; may be empty
  std::string lane, group, launched; // expressions: the lane's number, the flat workgroup's, how many are launched
  std::string unaliased;             // before the name of an argument that no store of the kernel reaches; may be empty
  std::string prefix, suffix_;       // before a kernel's name; after its arguments
  int64_t most_groups = INT32_MAX;   // of one launch, flat; more take turns
  int64_t row_of_groups = INT64_MAX; // a launch with more is padded to whole rows

  // Text above the function (bindings, tiles that live outside), its head up to the opening brace, tiles inside.
  virtual std::string above(const kernel::Kernel& k) const;
  virtual std::string head(const kernel::Kernel& k) const = 0;
  virtual std::string tiles(const kernel::Kernel& k) const = 0;
  virtual std::string prelude() const = 0;
  bool halves = false;               // a register holds two elements of 16 bits
  bool passes_near_cache = false;    // tang_get_once leaves no copy in the nearest cache
  bool powers_of_halves = false;     // tang_exp2_of_half(x / 2), whose square is 2^x, is one instruction
  bool exchanges = false;            // lanes of a subgroup read each other's registers; pairs are kept as one integer
  // A statement dealt by rows; where the dialect has none it is a bug that one was made.
  virtual void rows(Unit& u, const kernel::Stmt& s) const;
  // Where globals are arguments and tiles lie in one array `shared`: both lists, each with its address space.
  std::string arguments(const kernel::Kernel& k, const std::string& space, const std::string& stem = "m") const;
  std::string tile_pointers(const kernel::Kernel& k, const std::string& space) const;
  virtual std::string loop(const std::string& type, const std::string& v, const std::string& begin,
                           const std::string& condition, const std::string& step) const;
  virtual std::string array(const std::string& type, const std::string& name, int64_t n, int64_t m = 0) const;
  // One axis of a number that counts the points of several and is not negative: (flat / below) % extent; the highest
  // axis needs no remainder. Divided without a sign: NVIDIA's compiler (NVRTC 13.0) ends the process on the signed form
  // in some loops. `wide`: the number has the size of `integer`.
  std::string digit(const std::string& flat, int64_t below, int64_t extent, bool highest, bool wide = false) const;
  // An integer that every lane reads alike, as one that the dialect's rules see as equal in all lanes.
  virtual std::vector<std::string> uniform(const std::string& name, const std::string& value) const;
};

std::string decimal_float(double v); // nine digits: exact to the last bit of f32

// One kernel, legalized for a workgroup of many lanes.
std::string gpu(const kernel::Kernel& k, const GpuDialect& d);
// The prelude, then every kernel once (kernels of one name must be equal).
std::string gpu_unit(const std::vector<const kernel::Kernel*>& kernels, const GpuDialect& d);
int64_t shared_bytes(const kernel::Kernel& k); // of tiles, each rounded up to 16
int64_t launched_groups(const kernel::Kernel& k, const GpuDialect& d);

} // namespace tang::emit
