#include "tang/device/compiler.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace tang::device {

namespace {
// Model and feature flags of this CPU: -march=native means another thing elsewhere.
std::string cpu_identity() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, out;
  while (std::getline(in, line) && !line.empty())
    for (const char* field : {"vendor_id", "cpu family", "model", "stepping", "flags", "Features"})
      if (!line.compare(0, std::strlen(field), field)) out += line + "\n";
  return out;
}

bool has_flag(const std::string& cpu, const std::string& flag) {
  return (cpu + " ").find(" " + flag + " ") != std::string::npos;
}

std::string first_lines(const std::string& s, size_t most) {
  size_t at = 0;
  for (size_t n = 0; n < most && at != std::string::npos; ++n) at = s.find('\n', at ? at + 1 : 0);
  return s.substr(0, at);
}

struct Handles {
  std::vector<void*> all;

  Handles() = default;
  Handles(const Handles&) = delete;

  ~Handles() {
    for (void* h : all) dlclose(h);
  }
};
} // namespace

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= path.size();) {
    const size_t colon = std::min(path.find(':', at), path.size());
    if (colon > at) out.push_back(path.substr(at, colon - at));
    at = colon + 1;
  }
  return out;
}

Compiler::Compiler(CompilerOptions options) : options_(std::move(options)) {
  struct stat s;
  for (auto& name : options_.names) {
    for (auto& folder : options_.search) {
      const std::string p = folder + "/" + name;
      if (!p.empty() && p[0] == '/' && !stat(p.c_str(), &s) && S_ISREG(s.st_mode) &&
          !access(p.c_str(), X_OK)) {
        path_ = p;
        break;
      }
    }
    if (!path_.empty()) break;
  }
  if (path_.empty()) {
    std::string looked;
    for (auto& f : options_.search) looked += (looked.empty() ? "" : ":") + f;
    std::string names;
    for (auto& n : options_.names) names += (names.empty() ? "" : ", ") + n;
    throw CompileError(CompileError::no_compiler, "no C compiler was found",
                       {{"looked for " + names + " in " + looked, {}}},
                       "install gcc or clang, or add its folder to PATH");
  }
  std::string pattern = options_.work + "/tang-XXXXXX";
  if (!mkdtemp(pattern.data()))
    throw CompileError(CompileError::no_folder, "no private folder for compiling",
                       {{options_.work + ": " + std::strerror(errno), {}}},
                       "name a folder that can be written");
  folder_ = pattern;
  const std::string cpu = cpu_identity();
  flags_ = {"-std=gnu11",
            "-O2",
            "-march=native",
            "-fPIC",
            "-shared",
            "-fno-math-errno",
            "-fno-trapping-math",
            "-ffp-contract=off",
            "-fno-strict-aliasing",
            "-fno-tree-vectorize", // kernels have vectors of their own; gcc 12 loses terms of sums of conditions
            "-fvisibility=default",
            "-w"};
  if (has_flag(cpu, "avx512f")) flags_.push_back("-mprefer-vector-width=512");
  flags_.insert(flags_.end(), options_.flags.begin(), options_.flags.end());
  const std::string log = folder_ + "/version";
  finish(start({path_, "--version"}, environment(), log, options_.limits), options_.limits);
  identity_ = path_ + "\n" + read_file(log).value_or("") + std::to_string(s.st_size) + " " +
              std::to_string(s.st_mtim.tv_sec) + "\n" + cpu;
  for (auto& f : flags_) identity_ += f + "\n";
  unlink(log.c_str());
  if (!options_.cache.empty()) cache_ = std::make_unique<Cache>(options_.cache);
}

Compiler::~Compiler() { rmdir(folder_.c_str()); }

std::vector<std::string> Compiler::environment() const {
  std::string path;
  for (auto& f : options_.search) path += (path.empty() ? "PATH=" : ":") + f;
  return {path, "TMPDIR=" + folder_, "LC_ALL=C"};
}

std::shared_ptr<Library> Compiler::compile(const std::vector<std::string>& units) {
  struct Build {
    std::string key, source, object, log;
    std::optional<std::string> bytes;
    Process process;
  };

  std::vector<Build> builds;
  for (auto& u : units) {
    Build b;
    b.key = digest(identity_ + '\0' + u);
    const std::string stem = folder_ + "/" + b.key + "-" + std::to_string(loads_++);
    b.source = stem + ".c", b.object = stem + ".so", b.log = stem + ".log";
    if (cache_) b.bytes = cache_->find(b.key);
    if (!b.bytes) {
      if (!write_file(b.source, u, false))
        throw CompileError(CompileError::no_folder, "the source could not be written", {{b.source, {}}},
                           "free some disk space");
      std::vector<std::string> argv{path_};
      argv.insert(argv.end(), flags_.begin(), flags_.end());
      argv.insert(argv.end(), {"-o", b.object, b.source, "-lm"});
      b.process = start(argv, environment(), b.log, options_.limits);
      ++runs_;
    }
    builds.push_back(std::move(b));
  }
  auto handles = std::make_shared<Handles>();
  std::optional<CompileError> failure;
  for (auto& b : builds) {
    ProcessResult r{ProcessResult::exited, 0};
    std::string log;
    const bool compiled = !b.bytes;
    if (compiled) {
      r = finish(b.process, options_.limits);
      log = first_lines(read_file(b.log).value_or(""), 12);
    }
    unlink(b.source.c_str()), unlink(b.log.c_str());
    const std::vector<Note> facts{{path_, {}}, {log, {}}};
    if (failure) {
    } else if (r.kind == ProcessResult::timed_out) {
      failure.emplace(CompileError::timed_out,
                      "the C compiler took more than " + std::to_string(options_.limits.wall_seconds) + " s",
                      facts, "compile fewer kernels at once");
    } else if (r.kind == ProcessResult::signalled) {
      failure.emplace(CompileError::killed, "the C compiler was ended by signal " + std::to_string(r.code),
                      facts, "give it more time or memory");
    } else if (r.kind == ProcessResult::not_started) {
      failure.emplace(CompileError::no_compiler,
                      std::string("the C compiler did not start: ") + std::strerror(r.code), facts,
                      "check that it runs");
    } else if (r.code) {
      failure.emplace(CompileError::rejected, "the C compiler refused a generated kernel", facts,
                      "report it: the generator is wrong, or the compiler is older than gcc 12 or clang 14");
    } else if (b.bytes) {
      if (!write_file(b.object, *b.bytes, false))
        failure.emplace(CompileError::no_folder, "the library could not be written",
                        std::vector<Note>{{b.object, {}}}, "free some disk space");
    } else if (cache_) {
      if (auto bytes = read_file(b.object)) cache_->store(b.key, *bytes);
    }
    if (!failure) {
      void* h = dlopen(b.object.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (h)
        handles->all.push_back(h);
      else
        failure.emplace(CompileError::not_loadable, "a compiled library does not load",
                        std::vector<Note>{{dlerror(), {}}},
                        "check that the compiler makes code for this machine");
    }
    unlink(b.object.c_str());
  }
  if (failure) throw *failure;
  return std::make_shared<Library>([handles](const std::string& symbol) -> void* {
    for (void* h : handles->all)
      if (void* p = dlsym(h, symbol.c_str())) return p;
    return nullptr;
  });
}

} // namespace tang::device
