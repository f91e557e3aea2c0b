// Self-contained C: compiled by gcc and clang, checked by itself, the same bits as the program that runs here.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "run/harness.hpp"
#include "tang/models/recurrent.hpp"
#include "tang/text/text.hpp"
#include "tang/verify/samples.hpp"

using namespace tang;

namespace {

constexpr int lanes = 4;
const char* const compilers[] = {"gcc", "clang"};

struct Folder {
  std::string path;
  Folder() {
    std::string p = "/tmp/tang-standalone-XXXXXX";
    EXPECT_TRUE(mkdtemp(p.data()));
    path = p;
  }
  ~Folder() { run("rm -rf " + path); }
  int run(const std::string& command) const { return std::system(("cd " + path + " && " + command + " >> log 2>&1").c_str()); }
  std::string output(const std::string& command) const {
    EXPECT_GE(std::system(("cd " + path + " && (" + command + ") > out 2>> log").c_str()), 0);
    return read("out");
  }
  std::string read(const std::string& file) const {
    std::ifstream in(path + "/" + file, std::ios::binary);
    std::ostringstream s;
    s << in.rdbuf();
    return s.str();
  }
  void write(const std::string& file, const std::string& text) const { std::ofstream(path + "/" + file, std::ios::binary) << text; }
};
bool present(const char* program) { return !std::system((std::string("command -v ") + program + " > /dev/null 2>&1").c_str()); }

run::Options options() {
  run::Options o;
  o.target = target::c_target(lanes, 1);
  return o;
}
run::Files emitted(const ir::Graph& g, const std::string& name) {
  run::Standalone s;
  s.name = name, s.file = name + ".tang";
  const run::Derivation d = run::derive(g, options());
  s.fillings = run::fillings(g, 1);
  s.expected = verify::samples(g, d, s.fillings, 2);
  return run::standalone(g, d, options(), s);
}
ir::Graph example(const std::string& name) {
  std::ifstream in(std::string(TANG_SOURCE) + "/examples/" + name + ".tang");
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream s;
  s << in.rdbuf();
  return ir::bind(text::parse(s.str(), name + ".tang"), {{"q_len", 33}, {"k_len", 40}, {"seq", 5}, {"batch", 1}, {"tokens", 6}}).graph;
}
std::string main_of(const std::string& n, size_t arguments) {
  std::string call;
  for (size_t k = 0; k < arguments; ++k) call += "p[" + std::to_string(k) + "], ";
  return "#include <stdlib.h>\n#include \"" + n + ".h\"\nint call(void* const* p, void* w) { return " + n + "_run(" + call +
         "w); }\nint main(void) {\n  char* w = aligned_alloc(64, (size_t)" + n + "_selftest_bytes());\n  if (" + n + "_abi() != " + n + "_ABI || " + n +
         "_workspace_bytes() != " + n + "_WORKSPACE_BYTES || " + n + "_selftest(w + 4) != " + n + "_BAD_WORKSPACE) return 99;\n  return " + n + "_selftest(w);\n}\n";
}
const std::string flags = " -std=gnu11 -O2 -fPIC -Wall -Werror=implicit -Werror ";

// Both compilers: symbols, the self-test, and every output bit for bit against the program.
void expect_standalone(const ir::Graph& g, const std::string& n) {
  const run::Files f = emitted(g, n);
  Folder at;
  at.write(n + ".c", f.source), at.write(n + ".h", f.header), at.write("main.c", main_of(n, f.arguments.size()));
  run::Program p(g, test::shared_compiler(), std::make_shared<device::Cpu>(1), options());
  auto fill = [&] {
    for (auto& [name, filling] : run::fillings(g, 2)) {
      const ir::Format format = p.format(name);
      if (ir::type_of(format) == expr::Type::real) run::write(p.memory(name)->data(), format, run::reals(filling, format, p.elements(name)));
      else run::write(p.memory(name)->data(), format, run::integers(filling, p.elements(name)));
    }
  };
  fill();
  std::map<std::string, std::vector<char>> before, after;  // the program's memory
  auto bytes = [&](const std::string& name) {
    const char* data = p.memory(name)->as<char>();
    return std::vector<char>(data, data + p.elements(name) * run::bytes_of(p.format(name)));
  };
  for (auto& a : f.arguments) before[a] = bytes(a);
  p.run();
  for (auto& a : f.arguments) after[a] = bytes(a);
  for (const char* cc : compilers) {
    ASSERT_EQ(at.run(cc + flags + "-c " + n + ".c -o " + n + ".o"), 0) << cc << "\n" << at.read("log");
    std::istringstream symbols(at.output("nm -g --defined-only " + n + ".o"));
    int defined = 0;
    for (std::string address, kind, symbol; symbols >> address >> kind >> symbol; ++defined) EXPECT_EQ(symbol.compare(0, n.size() + 1, n + "_"), 0) << symbol;
    EXPECT_EQ(defined, 5);
    const std::string undefined = at.output("nm -u " + n + ".o");
    for (const char* banned : {"malloc", "calloc", "realloc", "free", "pthread", "printf", "exit", "abort"}) EXPECT_EQ(undefined.find(banned), std::string::npos) << undefined;
    EXPECT_EQ(at.output("nm " + n + ".o | grep -E ' [bBdDC] '"), "") << "no writable globals";
    ASSERT_EQ(at.run(std::string(cc) + " -std=gnu11 main.c " + n + ".o -lm -o main"), 0) << at.read("log");
    EXPECT_EQ(at.run("./main"), 0) << cc << " " << n;
    ASSERT_EQ(at.run(std::string(cc) + " -std=gnu11 -shared -fPIC main.c " + n + ".o -lm -o " + cc + ".so"), 0) << at.read("log");
    void* library = dlopen((at.path + "/" + cc + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    const auto call = reinterpret_cast<int (*)(void* const*, void*)>(dlsym(library, "call"));
    const auto need = reinterpret_cast<int64_t (*)()>(dlsym(library, (n + "_workspace_bytes").c_str()));
    device::Buffer w(size_t(need()), true);  // guard bands: the workspace is as large as it says
    w.poison();
    std::vector<std::unique_ptr<device::Buffer>> memory;
    std::vector<void*> pointers;
    for (auto& a : f.arguments) {
      memory.push_back(std::make_unique<device::Buffer>(before[a].size(), true));
      std::memcpy(memory.back()->data(), before[a].data(), before[a].size());
      pointers.push_back(memory.back()->data());
    }
    EXPECT_EQ(call(pointers.data(), w.data()), 0);
    EXPECT_FALSE(w.trespass());
    for (size_t k = 0; k < f.arguments.size(); ++k) {
      const std::string& a = f.arguments[k];
      EXPECT_EQ(std::memcmp(pointers[k], after[a].data(), after[a].size()), 0) << cc << ": " << a << " differs in its bits";
      EXPECT_FALSE(memory[k]->trespass()) << a;
    }
    std::vector<void*> missing = pointers;
    missing[0] = nullptr;
    EXPECT_EQ(call(missing.data(), w.data()), 2);
    EXPECT_EQ(call(pointers.data(), w.as<char>() + 1), 1);
    dlclose(library);
  }
}

class Examples : public testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(Examples, pass_their_own_test_and_give_the_programs_bits) { expect_standalone(example(GetParam()), GetParam()); }
TEST_P(Examples, are_emitted_byte_for_byte_again) {
  const std::string n = GetParam();
  const run::Files a = emitted(example(n), n), b = emitted(example(n), n);
  EXPECT_EQ(a.header, b.header);
  EXPECT_EQ(a.source, b.source);
}
INSTANTIATE_TEST_SUITE_P(standalone, Examples, testing::Values("attention", "block", "conv_norm", "moe", "gru"), [](const auto& i) { return std::string(i.param); });

TEST(standalone, a_donated_state_is_one_pointer_that_is_written) {
  ir::Builder b;
  ir::Tensor x = b.input("x", {1, 14}), h = b.state("h", {1, 24});
  models::Gru p;
  ir::Tensor w = b.param("w", {72, 14});  // a line each: arguments come in the order of declaration
  ir::Tensor u = b.param("u", {72, 24});
  ir::Tensor bias = b.param("bias", {72});
  p.cell = {w, u, bias, {}};
  b.output(models::gru_cell(x, h, p), "h");
  const ir::Graph g = b.graph();
  const run::Files f = emitted(g, "step");
  EXPECT_EQ(f.arguments, (std::vector<std::string>{"x", "w", "u", "bias", "h"}));
  EXPECT_NE(f.header.find("int step_run(const float* step_RESTRICT x, const float* step_RESTRICT w, const float* step_RESTRICT u, const float* step_RESTRICT bias, "
                          "float* step_RESTRICT h, void* step_RESTRICT workspace);"),
            std::string::npos)
      << f.header;
  expect_standalone(g, "step");
}
TEST(standalone, its_test_fails_when_a_kernel_does_not_run) {
  run::Files f = emitted(example("gru"), "gru");
  const size_t at = f.source.rfind("(tang_a, 0, ");
  ASSERT_NE(at, std::string::npos);
  f.source.insert(at + 11, " 0 * ");
  Folder folder;
  folder.write("gru.c", f.source), folder.write("gru.h", f.header), folder.write("main.c", main_of("gru", f.arguments.size()));
  ASSERT_EQ(folder.run("gcc -std=gnu11 -O1 main.c gru.c -lm -o main"), 0) << folder.read("log");
  const int status = folder.run("./main");
  EXPECT_EQ(WEXITSTATUS(status), 16 + 1) << "the last kernel writes the second output";
}
TEST(standalone, the_header_serves_cxx) {
  const run::Files f = emitted(example("gru"), "gru");
  Folder folder;
  folder.write("gru.c", f.source), folder.write("gru.h", f.header);
  folder.write("main.cpp", "#include \"gru.h\"\n#include <cstdlib>\nint main() { return gru_selftest(std::aligned_alloc(gru_ALIGNMENT, gru_selftest_bytes())); }\n");
  ASSERT_EQ(folder.run("gcc -std=gnu11 -c gru.c && g++ -std=c++17 -Wall -Werror main.cpp gru.o -lm -o main && ./main"), 0) << folder.read("log");
}

namespace {
ir::Graph doubled(const std::string& in, const std::string& out) {
  ir::Builder b;
  ir::Tensor x = b.input(in, {20});
  auto [i] = ir::axes<"i">();
  b.output(ir::map({i}, 2 * x(i)), out);
  return b.graph();
}
std::string bare(const std::string& s) {  // without comments
  std::istringstream in(s);
  std::string out;
  for (std::string l; std::getline(in, l);) out += l.substr(0, l.find("//")) + "\n";
  return out;
}
std::string replaced(std::string s, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
  return s;
}
run::Files plain(const ir::Graph& g) {
  run::Standalone s;
  s.name = "twice", s.file = "*/ \n#error \\\n";
  for (auto& n : g.nodes)
    if (n.input()) s.fillings[n.name] = {7, 0, 1};
  return run::standalone(g, run::derive(g, options()), options(), s);
}
}  // namespace
TEST(standalone, hostile_names_change_nothing_but_their_own_spelling) {
  const run::Files good = plain(doubled("x", "y"));
  for (std::string name : {"\"; touch /tmp/tang-hostile #", "*/ int evil; /*", "a\nint evil;\n#error b", "%s%n%s", "int", "tang_w", "twice_run", "memcpy", "int64_t", "NAN", "w", "a", "0", "",
                           "\\", "?\?/", "k0123456789abcdef", "\xc3\xa9t\xc3\xa9", "sizeof"}) {
    if (name.empty()) name = std::string(300, 'q');
    const run::Files f = plain(doubled(name, "y"));
    run::CNames names("twice");
    const std::string safe = names.take(name);
    EXPECT_TRUE(run::is_identifier(safe)) << safe;
    EXPECT_EQ(replaced(bare(f.source), safe, "x").size() > 0, true);
    Folder folder;
    folder.write("twice.c", f.source), folder.write("twice.h", f.header);
    EXPECT_EQ(folder.run("gcc -std=gnu11 -O0 -fsyntax-only -Wall -Werror -Wno-error=unused-function twice.c"), 0) << name << "\n" << folder.read("log");
    if (safe.size() < 4) continue;  // too short to be told from other text
    EXPECT_EQ(replaced(bare(f.source), safe, "x"), bare(good.source)) << safe;
    EXPECT_EQ(replaced(bare(f.header), safe, "x"), bare(good.header)) << safe;
  }
  struct stat s;
  EXPECT_NE(stat("/tmp/tang-hostile", &s), 0);
  EXPECT_THROW(
      {
        run::Standalone bad;
        bad.name = "x;y";
        run::standalone(doubled("x", "y"), run::derive(doubled("x", "y"), options()), options(), bad);
      },
      Error);
}
TEST(standalone, names_stay_apart) {
  run::CNames names("p");
  std::vector<std::string> all;
  for (const char* n : {"a b", "a_b", "a-b", "workspace", "p_run", "A", "a", "a_b_2", "int", "int_"}) all.push_back(names.take(n));
  for (auto& n : all) EXPECT_EQ(std::count(all.begin(), all.end(), n), 1) << n;
}
TEST(standalone, runs_on_a_64_bit_arm) {
  if (!present("aarch64-linux-gnu-gcc") || !present("qemu-aarch64")) GTEST_SKIP() << "aarch64-linux-gnu-gcc or qemu-aarch64: not present";
  const run::Files f = emitted(example("gru"), "gru");
  Folder at;
  at.write("gru.c", f.source), at.write("gru.h", f.header), at.write("main.c", main_of("gru", f.arguments.size()));
  ASSERT_EQ(at.run("aarch64-linux-gnu-gcc -std=gnu11 -O2 -static main.c gru.c -lm -o main"), 0) << at.read("log");
  EXPECT_EQ(at.run("qemu-aarch64 ./main"), 0);
}
