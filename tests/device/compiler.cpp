// The compiler by process: what comes back for good, bad and endless sources; and the cache on disk.
#include "tang/device/compiler.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tang/device/apart.hpp"

using namespace tang;
using namespace tang::device;
namespace fs = std::filesystem;

namespace {
CompilerOptions options(const std::string& cache = "") {
  CompilerOptions o;
  o.search = {"/usr/local/bin", "/usr/bin", "/bin"};
  o.cache = cache;
  return o;
}

struct Folder {
  std::string path;

  Folder() {
    std::string p = fs::temp_directory_path().string() + "/tang-test-XXXXXX";
    path = mkdtemp(p.data());
  }

  ~Folder() { fs::remove_all(path); }
};

CompileError::Kind kind_of(Compiler& c, const std::string& source, std::string* text = nullptr) {
  try {
    c.compile(source);
  } catch (const CompileError& e) {
    if (text) *text = e.what();
    return e.kind();
  }
  ADD_FAILURE() << "compiled: " << source;
  return CompileError::no_compiler;
}

const std::string seven = "int seven(void) { return 7; }\n";
} // namespace

TEST(compiler, a_unit_becomes_functions) {
  Compiler c(options());
  auto lib = c.compile(seven);
  EXPECT_EQ(lib->function<int (*)()>("seven")(), 7);
  EXPECT_EQ(lib->find("eight"), nullptr);
  const std::vector<std::string> units = {"int a(void) { return 1; }", "int b(void) { return 2; }"};
  auto two = c.compile(units); // two processes at once
  EXPECT_EQ(two->function<int (*)()>("a")() + 10 * two->function<int (*)()>("b")(), 21);
}

TEST(compiler, failures_have_kinds) {
  Compiler c(options());
  std::string text;
  EXPECT_EQ(kind_of(c, "int f( { }", &text), CompileError::rejected);
  EXPECT_NE(text.find("error"), std::string::npos); // carries the compiler's own words
  CompilerOptions none = options();
  none.search = {"/nonexistent"};
  try {
    Compiler missing(none);
    ADD_FAILURE();
  } catch (const CompileError& e) { EXPECT_EQ(e.kind(), CompileError::no_compiler); }
  CompilerOptions unwritable = options();
  unwritable.work = "/proc";
  EXPECT_THROW(Compiler{unwritable}, CompileError);
}

TEST(compiler, one_that_never_ends_is_killed_with_its_children) {
  Folder f;
  const std::string pid_file = f.path + "/child";
  {
    std::ofstream script(f.path + "/cc");
    script << "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nsleep 60 &\necho $! > " << pid_file << "\nwait\n";
  }
  chmod((f.path + "/cc").c_str(), 0755);
  CompilerOptions o = options();
  o.search.insert(o.search.begin(), f.path);
  o.limits.wall_seconds = 1;
  Compiler c(o);
  EXPECT_EQ(kind_of(c, seven), CompileError::timed_out);
  int child = 0;
  std::ifstream(pid_file) >> child;
  ASSERT_GT(child, 0);
  bool gone = false; // dead, or a zombie that nobody has waited for
  for (int i = 0; i < 100 && !gone; ++i) {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string line;
    std::getline(stat, line);
    gone = line.empty() || line.find(") Z ") != std::string::npos;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

TEST(compiler, too_much_memory_is_a_failure_and_leaves_nothing_behind) {
  Folder f;
  CompilerOptions o = options();
  o.work = f.path;
  o.limits.memory = int64_t(24) << 20;
  {
    Compiler c(o);
    try {
      c.compile(seven);
      ADD_FAILURE();
    } catch (const CompileError&) {}
  }
  EXPECT_TRUE(fs::is_empty(f.path));
}

TEST(cache, a_second_compiler_runs_nothing) {
  Folder f;
  Compiler a(options(f.path + "/cache")), b(options(f.path + "/cache"));
  a.compile(seven);
  EXPECT_EQ(b.compile(seven)->function<int (*)()>("seven")(), 7);
  EXPECT_EQ(a.runs(), 1);
  EXPECT_EQ(b.runs(), 0);
  CompilerOptions other = options(f.path + "/cache");
  other.flags = {"-O1"};
  Compiler c(other); // another key
  c.compile(seven);
  EXPECT_EQ(c.runs(), 1);
}

TEST(cache, a_corrupt_or_cut_entry_is_a_miss_and_is_replaced) {
  Folder f;
  const Cache cache(f.path);
  const std::string key = digest("key"), bytes(5000, 'x');
  ASSERT_TRUE(cache.store(key, bytes));
  ASSERT_EQ(cache.find(key), bytes);
  const auto whole = read_file(cache.path(key));
  std::minstd_rand r(3);
  for (int round = 0; round < 60; ++round) {
    std::string bad = *whole;
    if (round % 2)
      bad[r() % bad.size()] ^= char(1 << r() % 8);
    else
      bad.resize(r() % bad.size());
    unlink(cache.path(key).c_str());
    ASSERT_TRUE(write_file(cache.path(key), bad, false));
    ASSERT_FALSE(cache.find(key)) << round;
    ASSERT_TRUE(cache.store(key, bytes));
    ASSERT_EQ(cache.find(key), bytes);
  }
  EXPECT_FALSE(cache.find(digest("other")));
  fs::copy_file(cache.path(key), cache.path(digest("other"))); // right bytes under a wrong name
  EXPECT_FALSE(cache.find(digest("other")));
}

TEST(cache, a_folder_of_others_is_refused) {
  Folder f;
  chmod(f.path.c_str(), 0777);
  EXPECT_THROW(Cache{f.path}, Error);
  chmod(f.path.c_str(), 0700);
  fs::create_directory_symlink(f.path, f.path + "-link");
  EXPECT_THROW(Cache{f.path + "-link"}, Error);
  unlink((f.path + "-link").c_str());
  std::ofstream(f.path + "/file") << "x";
  EXPECT_THROW(Cache{f.path + "/file"}, Error);
}

TEST(process, work_apart_gives_its_value_or_how_it_ended) {
  ProcessLimits limits;
  limits.wall_seconds = 1;
  const std::string much(300000, 'x');
  const Apart good = run_apart([&] { return much; }, limits);
  EXPECT_EQ(good.end.kind, ProcessResult::exited);
  EXPECT_EQ(good.end.code, 0);
  EXPECT_EQ(good.value, much);
  const Apart crash = run_apart([]() -> std::string { raise(SIGSEGV); return "x"; }, limits);
  EXPECT_EQ(crash.end.kind, ProcessResult::signalled);
  EXPECT_EQ(crash.end.code, SIGSEGV);
  EXPECT_EQ(crash.value, "");
  const Apart thrown = run_apart([]() -> std::string { throw std::runtime_error("x"); }, limits);
  EXPECT_EQ(thrown.end.code, 1);
  EXPECT_EQ(run_apart([]() -> std::string { for (;;) pause(); }, limits).end.kind, ProcessResult::timed_out);
}

// Eight processes read and write few keys while they are killed and bits are flipped under them: whatever is
// found is right.
TEST(cache, survives_eight_processes_kills_and_bit_flips) {
  Folder f;
  auto content = [](int k) {
    std::mt19937 r{unsigned(k)};
    std::string s(size_t(20000 + 1000 * k), ' ');
    for (char& c : s) c = char(r());
    return s;
  };
  const auto key = [](int k) { return digest("entry " + std::to_string(k)); };
  auto child = [&](unsigned seed) {
    const Cache cache(f.path);
    std::minstd_rand r(seed);
    for (;;) {
      const int k = int(r() % 4);
      if (auto got = cache.find(key(k))) {
        if (*got != content(k)) _exit(1);
      }
      cache.store(key(k), content(k));
    }
  };
  std::vector<pid_t> children(8, 0);
  std::minstd_rand r(11);
  unsigned seed = 1;
  auto spawn = [&](pid_t& slot) {
    slot = fork();
    if (slot == 0) child(seed);
    ++seed;
  };
  for (auto& c : children) spawn(c);
  const Cache cache(f.path);
  int killed = 0, flips = 0, found = 0, wrong = 0;
  for (int round = 0; round < 120; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    pid_t& victim = children[r() % 8];
    int status = 0;
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
    wrong += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    ++killed;
    spawn(victim);
    const std::string path = cache.path(key(int(r() % 4)));
    if (FILE* file = fopen(path.c_str(), "r+")) {
      fseek(file, 0, SEEK_END);
      const long at = long(r() % unsigned(ftell(file)));
      fseek(file, at, SEEK_SET);
      const int byte = fgetc(file);
      fseek(file, at, SEEK_SET);
      fputc(byte ^ (1 << r() % 8), file);
      fclose(file);
      ++flips;
    }
    const int k = int(r() % 4);
    if (auto got = cache.find(key(k))) {
      ++found;
      EXPECT_EQ(*got == content(k), true);
    }
  }
  for (auto c : children) {
    int status = 0;
    kill(c, SIGKILL);
    waitpid(c, &status, 0);
    wrong += WIFEXITED(status) && WEXITSTATUS(status) == 1;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(killed, 120);
  EXPECT_GT(flips, 0);
  EXPECT_GT(found, 0);
  for (int k = 0; k < 4; ++k) {
    ASSERT_TRUE(cache.store(key(k), content(k)));
    EXPECT_EQ(cache.find(key(k)), content(k));
  }
}
