// A program of this machine that turns a text into a file: shader compilers, validators. Found once, results cached.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tang/base/error.hpp"
#include "tang/device/cache.hpp"
#include "tang/device/process.hpp"

namespace tang::device {

struct ToolOptions {
  std::vector<std::string> search;    // folders, first wins
  std::vector<std::string> names;     // of the program
  std::vector<std::string> arguments; // "@in" and "@out" stand for the files
  std::string in = ".txt", out = ".bin"; // how the files' names end
  std::string work = "/tmp";
  std::string cache; // folder; empty: none
  std::string extra; // what else the result depends on
  ProcessLimits limits;
};

class Tool {
public:
  static Result<std::shared_ptr<Tool>> find(ToolOptions o); // a Refusal where the program is not there
  ~Tool();
  Tool(const Tool&) = delete;
  // One file a text, several at once. Throws Error with the program's words when it refuses one.
  std::vector<std::string> run(const std::vector<std::string>& texts);

  const std::string& path() const { return path_; }

private:
  Tool() = default;
  ToolOptions options_;
  std::string path_, folder_, identity_;
  std::unique_ptr<Cache> cache_;
  int made_ = 0;
};

// The first of `names` that is an executable file in one of `folders`; empty when none is.
std::string find_program(const std::vector<std::string>& names, const std::vector<std::string>& folders);

} // namespace tang::device
