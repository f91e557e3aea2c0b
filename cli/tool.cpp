#include "tang/cli/tool.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

namespace tang::cli {

namespace {
std::string variable(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

std::string cache_folder(const Common& c) {
  if (!c.cache.empty()) return c.cache;
  if (std::string v = variable("TANG_CACHE_DIR"); !v.empty()) return v;
  if (std::string v = variable("XDG_CACHE_HOME"); !v.empty() && v[0] == '/') return v + "/tang";
  if (std::string v = variable("HOME"); !v.empty()) return v + "/.cache/tang";
  return "";
}
} // namespace

int thread_count(const Common& c) {
  return c.threads > 0 ? c.threads : std::max(1, int(std::thread::hardware_concurrency()));
}

run::TargetOptions target_options(const Common& c) {
  run::TargetOptions o;
  o.compiler.search = device::split_path(variable("PATH").empty() ? "/usr/bin:/bin" : variable("PATH"));
  o.compiler.cache = o.cache = cache_folder(c);
  o.threads = thread_count(c);
  if (std::string v = variable("TANG_WEBGPU"); !v.empty()) o.webgpu = {v};
  for (size_t k = 1; k < o.cache.size(); ++k) // parents of the private folder
    if (o.cache[k] == '/') mkdir(o.cache.substr(0, k).c_str(), 0755);
  return o;
}

std::string private_cache() {
  std::string name = "/tmp/tang-cache-XXXXXX";
  if (!mkdtemp(name.data())) throw Error({}, "no private folder for compiled kernels", {}, "name one: --cache FOLDER");
  return name;
}

Host open_host(const Common& c) { return open_host_in(c, cache_folder(c)); }

Host open_host_in(const Common& c, const std::string& cache) {
  Host h;
  h.options.target = target::c_target_of_host(thread_count(c));
  device::CompilerOptions o = target_options(c).compiler;
  o.cache = h.cache = cache;
  for (size_t k = 1; k < o.cache.size(); ++k) // parents of the private folder
    if (o.cache[k] == '/') mkdir(o.cache.substr(0, k).c_str(), 0755);
  try {
    h.compiler = std::make_shared<device::Compiler>(o);
  } catch (const device::CompileError&) { throw; } catch (const Error& e) {
    std::fprintf(stderr, "no kernel cache: %s\n", e.what());
    o.cache = h.cache = "";
    h.compiler = std::make_shared<device::Compiler>(o);
  }
  h.cpu = std::make_shared<device::Cpu>(thread_count(c));
  h.options.guards = true;
  return h;
}

double memory_bytes() { return double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)); }

bool exists(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0;
}

std::string read_text(const std::string& path) {
  struct stat is;
  if (stat(path.c_str(), &is) == 0 && S_ISDIR(is.st_mode)) throw Error({}, "'" + path + "' is a folder", {}, "name a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error({}, "cannot read '" + path + "'", {{std::strerror(errno), {}}}, "check the path and its permissions");
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}

void write_text(const std::string& path, const std::string& text) {
  for (size_t k = 1; k < path.size(); ++k)
    if (path[k] == '/') mkdir(path.substr(0, k).c_str(), 0755);
  const std::string part = path + ".part";
  {
    std::ofstream out(part, std::ios::binary);
    out << text;
    if (!out.flush())
      throw Error({}, "cannot write '" + path + "'", {}, "check the folder and the space left");
  }
  if (std::rename(part.c_str(), path.c_str()) != 0)
    throw Error({}, "cannot write '" + path + "'", {}, "check the folder");
}

std::string time_text(double s) {
  char out[32];
  std::snprintf(out, sizeof out,
                s < 1e-3 ? "%.1f us"
                : s < 1  ? "%.2f ms"
                         : "%.2f s",
                s < 1e-3 ? s * 1e6
                : s < 1  ? s * 1e3
                         : s);
  return out;
}

Timing measure(const std::function<void()>& once, double budget, int least) {
  std::vector<double> t;
  once();
  const double end = device::Cpu::seconds() + budget;
  while (int(t.size()) < least || (device::Cpu::seconds() < end && t.size() < 100000)) {
    const double start = device::Cpu::seconds();
    once();
    t.push_back(device::Cpu::seconds() - start);
    if (int(t.size()) >= least && device::Cpu::seconds() >= end) break;
  }
  std::sort(t.begin(), t.end());
  const double n = double(t.size()),
               half = 0.98 * std::sqrt(n); // ranks n/2 -+ 1.96 sqrt(n)/2 bracket the median at 95%
  auto at = [&](double rank) { return t[size_t(std::min(n - 1, std::max(0.0, rank)))]; };
  return {at(n / 2), at(std::floor(n / 2 - half)), at(std::ceil(n / 2 + half)), at(std::ceil(0.99 * n) - 1),
          int(t.size())};
}

} // namespace tang::cli
