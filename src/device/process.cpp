#include "tang/device/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace tang::device {

namespace {
struct Plan {
  char *const *args, *const *env;
  const char* log;
  const ProcessLimits* limits;
};

// Between vfork and exec: nothing here may allocate, lock or return. Only the limits need this; posix_spawn
// cannot set them before the program starts its own children.
[[noreturn]] void become(const Plan& p, volatile int& error) {
  const auto cap = [](auto resource, int64_t soft, int64_t hard) {
    const rlimit r{rlim_t(soft), rlim_t(hard)};
    return setrlimit(resource, &r);
  };
  const int in = open("/dev/null", O_RDONLY), out = open(p.log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  sigset_t none;
  sigemptyset(&none);
  struct sigaction normal = {};
  normal.sa_handler = SIG_DFL;
  for (int s : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD, SIGHUP}) sigaction(s, &normal, nullptr);
  if (in >= 0 && out >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0 &&
      setpgid(0, 0) == 0 && cap(RLIMIT_CPU, p.limits->cpu_seconds, p.limits->cpu_seconds + 2) == 0 &&
      cap(RLIMIT_AS, p.limits->memory, p.limits->memory) == 0 && cap(RLIMIT_CORE, 0, 0) == 0) {
    if (in > 2) close(in);
    if (out > 2) close(out);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(p.args[0], p.args, p.env);
  }
  error = errno;
  _exit(127);
}
} // namespace

Process start(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
              const std::string& log, const ProcessLimits& limits) {
  std::vector<char*> args, env;
  for (auto& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  for (auto& e : environment) env.push_back(const_cast<char*>(e.c_str()));
  args.push_back(nullptr), env.push_back(nullptr);
  const Plan plan{args.data(), env.data(), log.c_str(), &limits};
  volatile int error = 0; // written by the child: it shares our memory until it is another program
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); // no handler of ours runs in the child
  const pid_t pid = vfork();
  if (pid == 0) become(plan, error);
  if (pid < 0) error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  Process p;
  p.error = error;
  if (pid > 0 && error) waitpid(pid, nullptr, 0);
  if (!error) p.pid = pid;
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
    if (fd >= 0)
      poll(&wait, 1, int(left > 0 ? left + 1 : 10));
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (fd >= 0) close(fd);
  if (late) return {ProcessResult::timed_out, 0};
  if (WIFSIGNALED(status)) return {ProcessResult::signalled, WTERMSIG(status)};
  return {ProcessResult::exited, WEXITSTATUS(status)};
}

} // namespace tang::device
