// The system's C compiler: source text in, loaded library out, through the cache when there is one.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/device/cache.hpp"
#include "tang/device/process.hpp"

namespace tang::device {

class CompileError : public Error {
public:
  enum Kind : uint8_t { no_compiler, rejected, timed_out, killed, no_folder, not_loadable };

  CompileError(Kind kind, const std::string& headline, std::vector<Note> facts, const std::string& fix)
      : Error({}, headline, std::move(facts), fix), kind_(kind) {}

  Kind kind() const { return kind_; }

private:
  Kind kind_;
};

struct CompilerOptions {
  std::vector<std::string> search; // folders, first wins: the caller's PATH
  std::vector<std::string> names = {"cc", "gcc", "clang"};
  std::string work = "/tmp";      // where a private folder is made
  std::string cache;              // folder of compiled libraries; empty: none
  std::vector<std::string> flags; // after ours
  ProcessLimits limits;
};

// Loaded code; stays loaded while anyone holds it.
class Library {
public:
  using Find = std::function<void*(const std::string&)>; // owns what was loaded

  explicit Library(Find find) : find_(std::move(find)) {}

  Library(const Library&) = delete;

  void* find(const std::string& symbol) const { return find_(symbol); } // nullptr when it is not there

  template <class F> F function(const std::string& symbol) const { return reinterpret_cast<F>(find(symbol)); }

private:
  Find find_;
};

class Compiler {
public:
  explicit Compiler(CompilerOptions options); // throws CompileError::no_compiler, no_folder
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
  // Several units compile at once, a process each, and load as one library.
  std::shared_ptr<Library> compile(const std::vector<std::string>& units);

  std::shared_ptr<Library> compile(const std::string& unit) {
    return compile(std::vector<std::string>{unit});
  }

  const std::string& path() const { return path_; }

  const std::string& identity() const { return identity_; } // of the compiler, this CPU and the flags

  int runs() const { return runs_; } // compiler processes started so far

private:
  std::vector<std::string> environment() const;
  CompilerOptions options_;
  std::string path_, folder_, identity_;
  std::vector<std::string> flags_;
  std::unique_ptr<Cache> cache_;
  int runs_ = 0, loads_ = 0;
};

std::vector<std::string> split_path(const std::string& path); // "a:b" -> {"a", "b"}

} // namespace tang::device
