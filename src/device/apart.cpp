#include "tang/device/apart.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace tang::device {

namespace {
// In the copy: a crash is a plain end without a core, and nothing of this process is wound up twice.
[[noreturn]] void work_apart(const std::function<std::string()>& work, int out) {
  setpgid(0, 0);
  struct sigaction normal = {};
  normal.sa_handler = SIG_DFL;
  for (int s : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGINT, SIGTERM}) sigaction(s, &normal, nullptr);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  sigset_t open;
  sigemptyset(&open);
  sigprocmask(SIG_SETMASK, &open, nullptr);
  try {
    const std::string value = work();
    for (size_t at = 0; at < value.size();) {
      const ssize_t n = write(out, value.data() + at, value.size() - at);
      if (n <= 0 && errno != EINTR) _exit(1);
      if (n > 0) at += size_t(n);
    }
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

std::string whole_file(int fd) {
  std::string out(size_t(std::max<off_t>(0, lseek(fd, 0, SEEK_END))), '\0');
  for (size_t at = 0; at < out.size();) {
    const ssize_t n = pread(fd, out.data() + at, out.size() - at, off_t(at));
    if (n <= 0 && errno != EINTR) return "";
    if (n > 0) at += size_t(n);
  }
  return out;
}
} // namespace

Apart run_apart(const std::function<std::string()>& work, const ProcessLimits& limits) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  if (!file) return {{ProcessResult::not_started, errno}, ""};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); // no handler of ours runs in the copy
  const pid_t pid = fork();
  if (pid == 0) work_apart(work, fileno(file.get()));
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  Apart out{finish({pid, error}, limits), ""};
  if (out.end.kind == ProcessResult::exited && !out.end.code) out.value = whole_file(fileno(file.get()));
  return out;
}

} // namespace tang::device
