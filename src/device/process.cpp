#include "tang/device/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace tang::device {

Process start(const std::vector<std::string>& argv, const std::vector<std::string>& environment, const std::string& log,
              const ProcessLimits& limits) {
  std::vector<char*> args, env;
  for (auto& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  for (auto& e : environment) env.push_back(const_cast<char*>(e.c_str()));
  args.push_back(nullptr), env.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t attr;
  posix_spawnattr_init(&attr);
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setsigdefault(&attr, &all);
  posix_spawnattr_setpgroup(&attr, 0);
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  Process p;
  pid_t pid = -1;
  p.error = posix_spawn(&pid, argv[0].c_str(), &files, &attr, args.data(), env.data());
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&files);
  if (p.error) return p;
  p.pid = pid;
  // Set from here because posix_spawn cannot; the driver has not yet started its passes, which inherit them.
  const rlimit cpu{rlim_t(limits.cpu_seconds), rlim_t(limits.cpu_seconds) + 2}, memory{rlim_t(limits.memory), rlim_t(limits.memory)}, core{0, 0};
  prlimit(pid, RLIMIT_CPU, &cpu, nullptr);
  prlimit(pid, RLIMIT_AS, &memory, nullptr);
  prlimit(pid, RLIMIT_CORE, &core, nullptr);
  return p;
}
ProcessResult finish(const Process& p, const ProcessLimits& limits) {
  if (p.pid < 0) return {ProcessResult::not_started, p.error};
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(limits.wall_seconds);
  const int fd = int(syscall(SYS_pidfd_open, p.pid, 0));
  int status = 0;
  bool late = false;
  for (;;) {
    const pid_t got = waitpid(p.pid, &status, WNOHANG);
    if (got == p.pid) break;
    if (got < 0 && errno != EINTR) {
      if (fd >= 0) close(fd);
      return {ProcessResult::not_started, errno};
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0 && !late) {
      late = true;
      kill(-p.pid, SIGKILL);
    }
    pollfd wait{fd, POLLIN, 0};
    if (fd >= 0) poll(&wait, 1, int(left > 0 ? left + 1 : 10));
    else std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (fd >= 0) close(fd);
  if (late) return {ProcessResult::timed_out, 0};
  if (WIFSIGNALED(status)) return {ProcessResult::signalled, WTERMSIG(status)};
  return {ProcessResult::exited, WEXITSTATUS(status)};
}

}  // namespace tang::device
