// The memory plan as offsets into one workspace, the kernels' launches as loops, and a self-test: C text.
#include "tang/run/standalone.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"
#include "tang/emit/c.hpp"

namespace tang::run {

using ir::Format;
using ir::NodeId;
using ir::Port;

namespace {

constexpr int abi = 1;

std::string num(int64_t v) { return std::to_string(v); }

int64_t rounded_up(int64_t n) { return ceil_div(n, 64) * 64; }

std::string hex(uint64_t v) {
  char s[20];
  std::snprintf(s, sizeof s, "%016llx", static_cast<unsigned long long>(v));
  return s;
}

std::string exact(double v) {
  if (std::isnan(v)) return "NAN";
  if (std::isinf(v)) return v < 0 ? "-INFINITY" : "INFINITY";
  char s[48];
  std::snprintf(s, sizeof s, "%a", v);
  return s;
}

const char* kind_name(ir::Input::Kind k) {
  return k == ir::Input::data ? "input" : k == ir::Input::param ? "param" : "state";
}

struct Tensor {              // an argument of the function
  std::string name, c, kind; // the user's, C's
  Format format = Format::f32;
  std::vector<int64_t> shape;
  int64_t elements = 1;
  Port port; // of the derived graph
  bool written = false, read = true;
  int64_t offset = 0; // in the self-test's memory

  int64_t bytes() const { return elements * bytes_of(format); }
};

class Writer {
public:
  Writer(const ir::Graph& written, const Derivation& d, const Options& o, const Standalone& s)
      : written_(written), d_(d), p_(d.plan), g_(*d.plan.graph), o_(o), s_(s), N_(s.name), names_(s.name) {
    if (!is_identifier(N_))
      throw Error({}, "'" + in_comment(N_) + "' cannot begin the names of C functions", {},
                  "use letters, digits and '_', a letter first");
    name_tensors();
    place();
  }

  Files files() {
    const std::string source = this->source(); // knows what the header says of memory
    Files f{header(), source, {}};
    for (auto& t : tensors_) f.arguments.push_back(t.name);
    return f;
  }

private:
  // ---- arguments and memory
  void add(Tensor t) {
    for (auto& e : t.shape) t.elements = mul_saturated(t.elements, e);
    t.c = names_.take(t.name);
    tensors_.push_back(std::move(t));
  }

  void name_tensors() {
    std::map<std::string, NodeId> inputs; // of the derived graph
    for (NodeId id = 0; id < g_.nodes.size(); ++id)
      if (g_[id].input()) inputs[g_[id].name] = id;
    // As declared: by line where lines are known, else in the graph's order.
    std::vector<const ir::Node*> declared;
    for (auto& n : written_.nodes)
      if (n.input() && inputs.count(n.name)) declared.push_back(&n);
    std::stable_sort(declared.begin(), declared.end(), [](const ir::Node* a, const ir::Node* b) {
      return a->where.line != b->where.line ? a->where.line < b->where.line
                                            : a->where.column < b->where.column;
    });
    for (auto kind : {ir::Input::data, ir::Input::param, ir::Input::state})
      for (auto* n : declared) {
        const ir::Input& in = *n->input();
        if (in.kind != kind) continue;
        Tensor t;
        t.name = n->name, t.kind = kind_name(kind), t.format = in.format, t.port = {inputs.at(n->name), 0},
        t.written = kind == ir::Input::state;
        for (auto& e : in.shape) t.shape.push_back(e.value());
        add(std::move(t));
      }
    for (auto& out : g_.outputs) {
      if (std::any_of(tensors_.begin(), tensors_.end(),
                      [&](const Tensor& t) { return t.name == out.name && t.written; }))
        continue;
      Tensor t;
      t.name = out.name, t.kind = "output", t.format = lower::format_of(p_, out.port), t.port = out.port,
      t.written = true, t.read = false;
      for (auto& e : g_.shape(out.port)) t.shape.push_back(e.value());
      add(std::move(t));
    }
  }

  int64_t take(int64_t bytes) {
    const int64_t at = workspace_;
    workspace_ += rounded_up(std::max<int64_t>(bytes, 1));
    return at;
  }

  void place() {
    for (auto& t : tensors_)
      if (!homes_.count(t.port)) homes_[t.port] = t.c;
    arena_ = take(p_.arena_bytes);
    for (auto& b : p_.buffers) {
      if (homes_.count(b.of) || b.overwrites) continue;
      int64_t n = bytes_of(b.format);
      for (int64_t e : b.shape) n *= e;
      homes_[b.of] = "tang_w + " + num(b.offset >= 0 ? arena_ + b.offset : take(n));
    }
    for (int64_t bytes : d_.kernels.temporaries) temporaries_.push_back(take(bytes));
    int64_t most = 0;
    for (auto& l : d_.kernels.kernels) most = std::max(most, emit::scratch_bytes(l.kernel));
    scratch_ = take(most);
    int64_t at = workspace_;
    for (auto& t : tensors_) t.offset = at, at += rounded_up(std::max<int64_t>(t.bytes(), 1));
    selftest_ = at;
  }

  std::string home(Port p) const {
    if (auto it = homes_.find(p); it != homes_.end()) return it->second;
    const plan::Buffer* b = p_.buffer(p);
    check(b && b->overwrites, "an argument of a kernel without memory: " + g_.label(p));
    return home({*b->overwrites, 0});
  }

  std::string home(const lower::Argument& a) const {
    if (auto* t = std::get_if<int>(&a.what)) return "tang_w + " + num(temporaries_[size_t(*t)]);
    return home(std::get<Port>(a.what));
  }

  // ---- text
  std::string provenance() const {
    std::string s = "// Generated from " + in_comment(s_.file) + ": graph " + hex(ir::hash(written_)) + ", " +
                    num(int64_t(d_.kernels.kernels.size())) + " kernels, " + num(o_.target.lanes) +
                    " lanes. Do not edit.\n";
    return s + "// Regenerate: tang emit c " + in_comment(s_.file) + " -o " + N_ + " --lanes " +
           num(o_.target.lanes) + "\n";
  }

  std::string signature() const {
    std::string s = "int " + N_ + "_run(";
    for (auto& t : tensors_)
      s += std::string(t.written ? "" : "const ") + emit::element_type(t.format) + "* " + N_ + "_RESTRICT " + t.c + ", ";
    return s + "void* " + N_ + "_RESTRICT workspace)";
  }

  std::string header() const {
    std::string s = provenance();
    s += "#ifndef " + N_ + "_H\n#define " + N_ + "_H\n#include <stdint.h>\n\n";
    s += "#ifdef __cplusplus\n#define " + N_ + "_RESTRICT __restrict__\nextern \"C\" {\n#else\n#define " +
         N_ + "_RESTRICT restrict\n#endif\n\n";
    s += "#define " + N_ + "_ABI " + num(abi) + "  // changes when the meaning of an argument does\n";
    s += "#define " + N_ + "_OK 0\n#define " + N_ + "_BAD_WORKSPACE 1  // NULL, or not at a multiple of " +
         N_ + "_ALIGNMENT\n#define " + N_ +
         "_BAD_ARGUMENT 2   // NULL, or not aligned to its elements\n#define " + N_ +
         "_WRONG 16         // the self-test: WRONG + k, output k differs\n";
    s += "#define " + N_ + "_ALIGNMENT 64\n#define " + N_ + "_WORKSPACE_BYTES INT64_C(" + num(workspace_) +
         ")\n\n";
    s += "// Arguments, in order; every tensor is row-major and dense, none may overlap another. f16 and "
         "bf16 are passed as their bits.\n";
    for (auto& t : tensors_) {
      const std::string m = "#define " + N_ + "_" + t.c + "_";
      s += "// " + t.kind + " " + in_comment(t.name) +
           (t.kind == "state" ? ": read, and holds the new value afterwards" : "") + "\n";
      s += m + "FORMAT \"" + ir::row(t.format).name + "\"\n" + m + "RANK " + num(int64_t(t.shape.size())) +
           "\n";
      for (size_t k = 0; k < t.shape.size(); ++k)
        s += m + "DIM" + num(int64_t(k)) + " " + num(t.shape[k]) + "\n";
      s += m + "ELEMENTS INT64_C(" + num(t.elements) + ")\n";
    }
    s += "\n// Runs once, on the calling thread; touches nothing but its arguments. Calls with workspaces of "
         "their own may overlap.\n" +
         signature() + ";\n";
    s += "int64_t " + N_ + "_workspace_bytes(void);  // its contents need not be kept between calls\n";
    s += "int " + N_ + "_abi(void);                   // " + N_ + "_ABI of the source file\n";
    s += "// Runs on inputs of its own and compares with stored values of the f64 reference; needs "
         "selftest_bytes of workspace.\n";
    s += "int " + N_ + "_selftest(void* workspace);\nint64_t " + N_ + "_selftest_bytes(void);\n\n";
    return s + "#ifdef __cplusplus\n}\n#endif\n#endif\n";
  }

  void launch(size_t k, const std::string& pad) {
    const lower::Lowered& l = d_.kernels.kernels[k];
    const int64_t groups = kernel::workgroups(l.kernel);
    if (!groups) return;
    out_ += pad + "{  // " + in_comment(l.label) + (l.schedule.empty() ? "" : ": " + in_comment(l.schedule)) +
            "\n" + pad + "  void* const tang_a[] = {";
    for (size_t i = 0; i < l.arguments.size(); ++i)
      out_ += (i ? ", (void*)(" : "(void*)(") + home(l.arguments[i]) + ")";
    out_ += std::string(l.arguments.empty() ? "0" : "") + "};\n" + pad + "  " + l.kernel.name +
            "(tang_a, 0, " + num(groups) + ", tang_w + " + num(scratch_) + ");\n" + pad + "}\n";
  }

  void range(size_t first, size_t last, int depth) { // Program::range, as text
    const std::string pad(size_t(2 * (depth + 1)), ' ');
    for (size_t k = first; k < last;) {
      const lower::Loop* loop = nullptr;
      for (auto& l : d_.kernels.loops)
        if (size_t(l.first) == k && l.depth == depth) loop = &l;
      if (!loop || !loop->count) {
        launch(k++, pad);
        continue;
      }
      const size_t end = k + size_t(loop->count);
      std::vector<std::pair<size_t, size_t>> live; // runs of steps [from, to)
      for (size_t t = 0; t < loop->live.size(); ++t)
        if (loop->live[t]) {
          if (live.empty() || live.back().second != t) live.emplace_back(t, t);
          live.back().second = t + 1;
        }
      if (loop->reverse) std::reverse(live.begin(), live.end());
      const std::string t = "tang_t" + num(depth), r = "tang_r" + num(depth),
                        table = "tang_live" + num(int64_t(k)) + "_" + num(depth);
      if (live.size() > 1) {
        out_ += pad + "static const int64_t " + table + "[][2] = {";
        for (size_t i = 0; i < live.size(); ++i)
          out_ += (i ? ", {" : "{") + num(int64_t(live[i].first)) + ", " + num(int64_t(live[i].second)) + "}";
        out_ += "};\n";
      }
      if (!live.empty()) {
        if (live.size() > 1)
          out_ +=
              pad + "for (int " + r + " = 0; " + r + " < " + num(int64_t(live.size())) + "; ++" + r + ")\n";
        const std::string lo = live.size() > 1 ? table + "[" + r + "][0]" : num(int64_t(live[0].first));
        const std::string hi = live.size() > 1 ? table + "[" + r + "][1]" : num(int64_t(live[0].second));
        out_ +=
            pad + (loop->reverse
                       ? "for (int64_t " + t + " = " + hi + " - 1; " + t + " >= " + lo + "; --" + t + ") {\n"
                       : "for (int64_t " + t + " = " + lo + "; " + t + " < " + hi + "; ++" + t + ") {\n");
        out_ += pad + "  memcpy(tang_w + " + num(temporaries_[size_t(loop->time)]) + ", &" + t + ", sizeof " +
                t + ");\n";
        range(k, end, depth + 1);
        out_ += pad + "}\n";
      }
      k = end;
    }
  }

  void run_function() {
    out_ += "\n" + signature() + " {\n";
    out_ += "  if (!workspace || ((uintptr_t)workspace & 63)) return " + N_ + "_BAD_WORKSPACE;\n";
    for (auto& t : tensors_)
      if (t.elements)
        out_ += "  if (!" + t.c + " || (uintptr_t)" + t.c + " % sizeof *" + t.c + ") return " + N_ +
                "_BAD_ARGUMENT;\n";
    out_ += "  char* const tang_w = (char*)workspace;\n  (void)tang_w;\n";
    for (auto& t : tensors_)
      if (t.read) out_ += "  (void)" + t.c + ";\n";
    range(0, d_.kernels.kernels.size(), 0);
    for (auto& o : g_.outputs) // a new state that could not be written in place, an output that repeats
                               // another or an input
      for (auto& t : tensors_)
        if (t.name == o.name && t.written && home(o.port) != t.c && t.elements)
          out_ += "  memcpy(" + t.c + ", " + home(o.port) + ", " + num(t.bytes()) + ");\n";
    out_ += "  return " + N_ + "_OK;\n}\n";
    out_ += "int64_t " + N_ + "_workspace_bytes(void) { return " + N_ + "_WORKSPACE_BYTES; }\nint " + N_ +
            "_abi(void) { return " + num(abi) + "; }\n";
  }

  // ---- the self-test
  void test_helpers() {
    std::map<Format, bool> read, made;
    for (auto& t : tensors_) (t.read ? made : read)[t.format] = true;
    for (auto& e : s_.expected) read[tensor(e.output).format] = true;
    out_ += "\n// The self-test: inputs from a hash of their place, outputs against samples of the f64 "
            "reference.\n";
    out_ += "TANG uint64_t tang_hash(uint64_t x) {\n  x += 0x9e3779b97f4a7c15u;\n  x = (x ^ x >> 30) * "
            "0xbf58476d1ce4e5b9u;\n  x = (x ^ x >> 27) * 0x94d049bb133111ebu;\n"
            "  return x ^ x >> 31;\n}\n";
    out_ += "typedef struct { int64_t at; double value; } tang_sample;\n";
    for (auto& [f, unused] : made) {
      const auto& row = ir::row(f);
      const bool real = row.type == expr::Type::real, plain = f == Format::f32 || f == Format::f64;
      out_ += std::string("TANG void tang_fill_") + row.name + "(" + emit::element_type(f) +
              "* p, int64_t n, uint64_t seed, " + (real ? "double unit" : "int64_t below") + ") {\n";
      out_ += "  for (int64_t k = 0; k < n; ++k) {\n    const int64_t m = (int64_t)(tang_hash(seed + "
              "(uint64_t)k) >> 40);\n";
      const int bits = std::min(row.mantissa, 10);
      const std::string value =
          "(double)(m % " + num(int64_t(2) << bits) + " - " + num(int64_t(1) << bits) + ") * unit";
      if (!real)
        out_ += std::string("    p[k] = (") + emit::element_type(f) + ")(m % below);\n";
      else if (plain)
        out_ += std::string("    p[k] = (") + emit::element_type(f) + ")(" + value + ");\n";
      else
        out_ += std::string("    p[k] = tang_to_") + row.name + "((float)(" + value + "));\n";
      out_ += "  }\n}\n";
    }
    for (auto& [f, unused] : read) {
      const auto& row = ir::row(f);
      const bool convert = row.type == expr::Type::real && f != Format::f32 && f != Format::f64;
      const std::string at =
          convert ? std::string("(double)tang_from_") + row.name + "(p[k])" : "(double)p[k]";
      out_ += std::string("TANG int tang_wrong_") + row.name + "(const " + emit::element_type(f) +
              "* p, int64_t n, const tang_sample* s, int count, double tolerance, double sum, double "
              "sum_tolerance) {\n"
              "  double all = 0;\n  for (int64_t k = 0; k < n; ++k) all += " +
              at +
              ";\n"
              "  if (sum_tolerance >= 0 && !(fabs(all - sum) <= sum_tolerance)) return 1;\n"
              "  for (int i = 0; i < count; ++i) {\n    const int64_t k = s[i].at;\n    const double x = " +
              at +
              ", y = s[i].value;\n"
              "    if (x != y && !(fabs(x - y) <= tolerance) && !(x != x && y != y)) return 1;\n  }\n  "
              "return 0;\n}\n";
    }
  }

  const Tensor& tensor(const std::string& output) const {
    for (auto& t : tensors_)
      if (t.name == output && t.written) return t;
    bug(__FILE__, __LINE__, "an expectation of no output");
  }

  void test_function() {
    test_helpers();
    out_ += "int64_t " + N_ + "_selftest_bytes(void) { return INT64_C(" + num(selftest_) + "); }\n";
    out_ += "int " + N_ +
            "_selftest(void* workspace) {\n  if (!workspace || ((uintptr_t)workspace & 63)) return " + N_ +
            "_BAD_WORKSPACE;\n  char* const tang_w = (char*)workspace;\n";
    for (auto& t : tensors_) {
      const std::string type = emit::element_type(t.format);
      out_ += "  " + type + "* const " + t.c + " = (" + type + "*)(tang_w + " + num(t.offset) + ");\n";
      if (!t.read) {
        if (t.elements) out_ += "  memset(" + t.c + ", 0xff, " + num(t.bytes()) + ");\n";
        continue;
      }
      const Filling& f = s_.fillings.at(t.name);
      const auto& row = ir::row(t.format);
      if (f.row) {
        out_ += "  for (int64_t k = 0; k < " + num(t.elements) + "; ++k) " + t.c + "[k] = (" + type + ")(k % " +
                num(f.row) + " * " + num(f.below) + " / " + num(f.row) + ");\n";
        continue;
      }
      out_ += std::string("  tang_fill_") + row.name + "(" + t.c + ", " + num(t.elements) + ", 0x" +
              hex(f.seed) + "u, " +
              (row.type == expr::Type::real ? exact(std::ldexp(1.0, -std::min(row.mantissa, 10) - f.halvings))
                                            : num(f.below)) +
              ");\n";
    }
    out_ += "  const int tang_status = " + N_ + "_run(";
    for (auto& t : tensors_) out_ += t.c + ", ";
    out_ += "workspace);\n  if (tang_status) return tang_status;\n";
    for (size_t k = 0; k < s_.expected.size(); ++k) {
      const Expected& e = s_.expected[k];
      const Tensor& t = tensor(e.output);
      const std::string table = e.at.empty() ? "0" : "tang_e" + num(int64_t(k));
      if (!e.at.empty()) {
        out_ += "  static const tang_sample " + table + "[] = {";
        for (size_t i = 0; i < e.at.size(); ++i)
          out_ += std::string(i ? "," : "") + (i % 4 ? " " : "\n      ") + "{" + num(e.at[i]) + ", " +
                  exact(e.values[i]) + "}";
        out_ += "};\n";
      }
      out_ += std::string("  if (tang_wrong_") + ir::row(t.format).name + "(" + t.c + ", " + num(t.elements) +
              ", " + table + ", " + num(int64_t(e.at.size())) + ", " + exact(e.tolerance) + ", " +
              exact(e.sum) + ", " + exact(e.sum_tolerance) + ")) return " + N_ + "_WRONG + " +
              num(int64_t(k)) + ";\n";
    }
    out_ += "  return " + N_ + "_OK;\n}\n";
  }

  std::string source() {
    std::vector<const kernel::Kernel*> once;
    std::map<std::string, bool> seen;
    for (auto& l : d_.kernels.kernels)
      if (seen.emplace(l.kernel.name, true).second) once.push_back(&l.kernel);
    emit::COptions c;
    c.lanes = o_.target.lanes;
    out_ = provenance();
    out_ += "// C11 with the vector extensions of gcc and clang: cc -std=gnu11 -O2 -c " + N_ +
            ".c; link with -lm. Faster where the compiler may use\n"
            "// fused multiply-add and wide registers (-march=native); the results are the same bits.\n";
    out_ += "#include \"" + N_ + ".h\"\n\n";
    // A product and a sum stay two roundings unless the kernel says fma. Memory of the workspace changes its
    // type.
    out_ += "#if defined __clang__\n#pragma STDC FP_CONTRACT OFF\n#elif defined __GNUC__\n#pragma GCC "
            "optimize(\"fp-contract=off\", \"no-strict-aliasing\")\n#endif\n";
    out_ += "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n\n";
    for (auto* k : once)
      out_ += "static __attribute__((noinline, unused)) void " + k->name +
              "(void* const* args, int64_t first, int64_t last, void* scratch);\n";
    out_ += emit::c_unit(once, c);
    run_function();
    test_function();
    return std::move(out_);
  }

  const ir::Graph& written_;
  const Derivation& d_;
  const plan::Plan& p_;
  const ir::Graph& g_;
  const Options& o_;
  const Standalone& s_;
  const std::string N_;
  CNames names_;
  std::vector<Tensor> tensors_;
  std::map<Port, std::string> homes_; // expressions over the parameters and w
  std::vector<int64_t> temporaries_;
  int64_t arena_ = 0, scratch_ = 0, workspace_ = 0, selftest_ = 0;
  std::string out_;
};

} // namespace

Files standalone(const ir::Graph& written, const Derivation& d, const Options& o, const Standalone& s) {
  return Writer(written, d, o, s).files();
}

} // namespace tang::run
