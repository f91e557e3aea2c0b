// The tuning cache: what is put is found, what is damaged is a miss, what the disk refuses is said once.
#include "tune/graphs.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>

namespace {
using namespace tang;
using tests::Folder;
using tune::Store;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
// The value of a key is a function of it, so that a wrong answer shows.
std::string value_of(const std::string& key) { return key + " has the value " + std::to_string(hash_of(key)) + std::string(hash_of(key) % 500, 'v'); }

TEST(tune_store, keeps_rows_between_processes) {
  Folder f;
  {
    Store s(f.path);
    EXPECT_FALSE(s.find("candidate", "a"));
    EXPECT_TRUE(s.put("candidate", "a", "1"));
    EXPECT_TRUE(s.put("program", "a", std::string("2\0\n", 3)));
    EXPECT_TRUE(s.put("candidate", "a", "3"));
  }
  Store s(f.path);
  EXPECT_EQ(s.find("candidate", "a"), "3");
  EXPECT_EQ(s.find("program", "a"), std::string("2\0\n", 3));
  EXPECT_EQ(s.rows().size(), 2u);
  EXPECT_EQ(s.rows("program").size(), 1u);
  EXPECT_EQ(s.trouble(), "");
  struct stat st;
  ASSERT_EQ(stat(s.path().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 077, 0u);  // ours alone
}
TEST(tune_store, collects_old_and_surplus_rows) {
  Folder f;
  Store s(f.path);
  for (int k = 0; k < 10; ++k) s.put("candidate", std::to_string(k), "v");
  EXPECT_EQ(s.gc(0, 4), 6);
  EXPECT_EQ(s.rows().size(), 4u);
  EXPECT_EQ(s.gc(INT64_MAX, 100), 4);  // all are older than the end of time
  EXPECT_EQ(s.rows().size(), 0u);
}
TEST(tune_store, exports_and_imports_what_is_sound) {
  Folder f;
  Store s(f.path);
  s.put("candidate", "key with blanks", "value\nof two lines");
  s.put("program", "p", "");
  const std::string text = tune::exported(s.rows());
  int64_t damaged = -1;
  auto rows = tune::imported(text, damaged);
  EXPECT_EQ(damaged, 0);
  ASSERT_EQ(rows.size(), 2u);
  for (auto& r : rows) EXPECT_EQ(s.find(r.kind, r.key), r.value);
  for (size_t at = 14; at < text.size(); ++at) {  // any one byte that changes costs its line
    std::string bad = text;
    bad[at] = bad[at] == '0' ? '1' : '0';
    if (bad == text) continue;
    rows = tune::imported(bad, damaged);
    for (auto& r : rows) EXPECT_EQ(s.find(r.kind, r.key), r.value) << at;
    EXPECT_GE(damaged, 1) << at;
  }
  EXPECT_THROW(tune::imported("something else", damaged), Error);
}
TEST(tune_store, a_flipped_bit_is_a_miss_and_never_another_value) {
  Folder f;
  std::mt19937_64 rng(3);
  std::vector<std::string> keys;
  for (int k = 0; k < 200; ++k) keys.push_back("key " + std::to_string(k));
  int64_t found = 0, missed = 0;
  for (int round = 0; round < 150; ++round) {
    {
      Store s(f.path);
      for (auto& k : keys) s.put("candidate", k, value_of(k));
    }
    std::string bytes = slurp(f / "tuning.db");
    ASSERT_GT(bytes.size(), 1000u);
    for (size_t n = 1 + rng() % 4; n > 0; --n) bytes[rng() % bytes.size()] ^= char(1 << rng() % 8);
    if (round % 10 == 9) bytes.resize(rng() % bytes.size());
    std::ofstream(f / "tuning.db", std::ios::binary) << bytes;
    try {
      Store s(f.path);
      for (auto& k : keys) {
        auto v = s.find("candidate", k);
        v ? ++found : ++missed;
        if (v) {
          ASSERT_EQ(*v, value_of(k));
        }
      }
      ASSERT_TRUE(s.put("candidate", "after", value_of("after"))) << s.trouble();
      ASSERT_EQ(s.find("candidate", "after"), value_of("after"));
    } catch (const Error& e) { FAIL() << e.what(); }  // damage is mended, not reported
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(missed, 100);
}
TEST(tune_store, a_file_of_something_else_is_set_aside) {
  Folder f;
  std::ofstream(f / "tuning.db") << "this is no data base, it is a text that is longer than a header of one hundred bytes would be, by far\n";
  Store s(f.path);
  EXPECT_TRUE(s.put("candidate", "a", "1"));
  EXPECT_EQ(s.find("candidate", "a"), "1");
  EXPECT_TRUE(std::filesystem::exists(f / "tuning.db.damaged"));
}

// A folder that cannot be used: one message that names it.
std::string refusal(const std::string& folder) {
  try {
    Store s(folder);
    return "";
  } catch (const Error& e) { return e.what(); }
}
TEST(tune_store, folders_that_are_not_for_us_are_refused_by_name) {
  Folder f;
  std::ofstream(f / "file") << "x";
  EXPECT_NE(refusal(f / "file").find("it is not a folder"), std::string::npos);
  std::filesystem::create_directory(f / "open");
  chmod((f / "open").c_str(), 0777);
  EXPECT_NE(refusal(f / "open").find("others may write to it"), std::string::npos);
  EXPECT_NE(refusal("/proc/tang").find("/proc/tang"), std::string::npos);  // a read-only place
  std::filesystem::create_directory(f / "linked");
  std::filesystem::create_symlink("/etc/hostname", f / "linked/tuning.db");
  chmod((f / "linked").c_str(), 0700);
  EXPECT_NE(refusal(f / "linked").find("not a plain file"), std::string::npos);
  std::filesystem::create_directory(f / "theirs");
  if (chown((f / "theirs").c_str(), 12345, 12345) == 0)
    EXPECT_NE(refusal(f / "theirs").find("it belongs to another user"), std::string::npos);
  else
    EXPECT_NE(geteuid(), 0u);  // only root can give a folder away
}
TEST(tune_store, a_full_disk_gives_one_message_and_the_rows_before_stay) {
  Folder f;
  const pid_t child = fork();
  if (child == 0) {  // files may not grow: every write beyond says that the disk is full
    signal(SIGXFSZ, SIG_IGN);
    Store s(f.path);
    for (int k = 0; k < 50; ++k)
      if (!s.put("candidate", std::to_string(k), value_of(std::to_string(k)))) _exit(2);
    const rlimit limit{rlim_t(std::filesystem::file_size(s.path())), rlim_t(std::filesystem::file_size(s.path()))};
    setrlimit(RLIMIT_FSIZE, &limit);
    bool refused = false;
    for (int k = 0; k < 200 && !refused; ++k) refused = !s.put("candidate", "more " + std::to_string(k), std::string(4000, 'x'));
    if (!refused || s.trouble().empty()) _exit(3);
    for (int k = 0; k < 50; ++k)
      if (s.find("candidate", std::to_string(k)) != value_of(std::to_string(k))) _exit(4);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Processes that write and read, are killed at random and have bits flipped under them.
// TANG_TUNE_ROUNDS=1000 TANG_TUNE_PROCESSES=16 is the long form: tools/faults.sh.
int64_t number(const char* name, int64_t otherwise) {
  const char* v = std::getenv(name);
  return v ? std::atoll(v) : otherwise;
}
// One round of one process: 0 right, 1 a wrong value, 2 something else.
[[noreturn]] void one_round(const std::string& folder, uint64_t seed) {
  std::mt19937_64 rng(seed);
  try {
    Store s(folder);
    for (int n = 0; n < 12; ++n) {
      const std::string key = "key " + std::to_string(rng() % 64);
      if (rng() % 2) s.put("candidate", key, value_of(key));
      if (auto v = s.find("candidate", key); v && *v != value_of(key)) _exit(1);
    }
    for (auto& r : s.rows())
      if (r.value != value_of(r.key)) _exit(1);
  } catch (const Error&) { _exit(0); }  // it could not be opened just then: a miss
  catch (...) { _exit(2); }
  _exit(0);
}
TEST(tune_store, many_processes_killed_and_damaged_never_give_a_wrong_value) {
  Folder f;
  const int64_t processes = number("TANG_TUNE_PROCESSES", 6), rounds = number("TANG_TUNE_ROUNDS", 12);
  std::mt19937_64 rng(5);
  struct Run {
    pid_t pid = 0;
    int64_t rounds = 0;
    double kill_at = HUGE_VAL, late_at = 0;
  };
  std::vector<Run> runs(static_cast<size_t>(processes));
  int64_t killed = 0, right = 0, wrong = 0, other = 0, hung = 0, flips = 0;
  auto begin = [&](Run& r) {
    const uint64_t seed = rng();
    r.pid = fork();
    if (r.pid == 0) one_round(f.path, seed);
    const double now = device::Cpu::seconds();
    r.kill_at = rng() % 3 ? HUGE_VAL : now + double(rng() % 20000) * 1e-6;
    r.late_at = now + 60;
  };
  for (auto& r : runs) begin(r);
  for (int64_t left = processes; left > 0;) {
    usleep(500);
    for (auto& r : runs) {
      if (!r.pid) continue;
      const double now = device::Cpu::seconds();
      if (now > r.kill_at) kill(r.pid, SIGKILL);
      if (now > r.late_at) ++hung, kill(r.pid, SIGKILL), r.late_at = HUGE_VAL;
      int status = 0;
      if (waitpid(r.pid, &status, WNOHANG) != r.pid) continue;
      if (WIFSIGNALED(status)) ++killed;
      else if (WEXITSTATUS(status) == 0) ++right;
      else if (WEXITSTATUS(status) == 1) ++wrong;
      else ++other;
      r.pid = 0;
      if (++r.rounds < rounds) begin(r);
      else --left;
    }
    if (rng() % 8 == 0) {  // a bit of the file, the journal, whatever is there
      const char* const names[] = {"tuning.db", "tuning.db", "tuning.db-journal"};
      const int fd = open((f / names[rng() % 3]).c_str(), O_RDWR | O_CLOEXEC);
      if (fd < 0) continue;
      const off_t size = lseek(fd, 0, SEEK_END);
      const off_t at = size > 0 ? off_t(rng() % uint64_t(size)) : 0;
      char c;
      if (size > 0 && pread(fd, &c, 1, at) == 1) {
        c ^= char(1 << rng() % 8);
        flips += pwrite(fd, &c, 1, at) == 1;
      }
      close(fd);
    }
  }
  std::printf("%lld processes x %lld rounds: %lld ended by themselves, %lld killed, %lld bits flipped; %lld wrong values, %lld hung\n", static_cast<long long>(processes),
              static_cast<long long>(rounds), static_cast<long long>(right), static_cast<long long>(killed), static_cast<long long>(flips), static_cast<long long>(wrong), static_cast<long long>(hung));
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(other, 0);
  EXPECT_EQ(hung, 0);
  EXPECT_EQ(right + killed, processes * rounds);
  EXPECT_GT(killed, 0);
  Store s(f.path);  // and it still works
  EXPECT_TRUE(s.put("candidate", "after", value_of("after")));
  EXPECT_EQ(s.find("candidate", "after"), value_of("after"));
}
}  // namespace
