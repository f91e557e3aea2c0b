#include "tang/device/tool.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tang::device {

namespace {
constexpr size_t at_once = 4;
}

std::string find_program(const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  struct stat s;
  for (auto& n : names)
    for (auto& f : folders) {
      const std::string p = f + "/" + n;
      if (p[0] == '/' && !stat(p.c_str(), &s) && S_ISREG(s.st_mode) && !access(p.c_str(), X_OK)) return p;
    }
  return "";
}

Result<std::shared_ptr<Tool>> Tool::find(ToolOptions o) {
  std::shared_ptr<Tool> t(new Tool);
  t->path_ = find_program(o.names, o.search);
  if (t->path_.empty()) return Refusal{"no program " + o.names[0] + " in the search path"};
  std::string pattern = o.work + "/tang-XXXXXX";
  if (!mkdtemp(pattern.data())) return Refusal{"no private folder in " + o.work + ": " + std::strerror(errno)};
  t->folder_ = pattern;
  struct stat s;
  if (!stat(t->path_.c_str(), &s))
    t->identity_ = t->path_ + " " + std::to_string(s.st_size) + " " + std::to_string(s.st_mtim.tv_sec) + "\n" + o.extra;
  for (auto& a : o.arguments) t->identity_ += a + "\n";
  if (!o.cache.empty()) t->cache_ = std::make_unique<Cache>(o.cache);
  t->options_ = std::move(o);
  return t;
}

Tool::~Tool() {
  if (!folder_.empty()) rmdir(folder_.c_str());
}

std::vector<std::string> Tool::run(const std::vector<std::string>& texts) {
  struct Job {
    size_t text;
    std::string key, in, out, log;
    Process process;
  };
  std::vector<std::string> results(texts.size());
  std::vector<Job> todo;
  for (size_t k = 0; k < texts.size(); ++k) {
    Job j{k, digest(identity_ + '\0' + texts[k]), "", "", "", {}};
    if (cache_)
      if (auto known = cache_->find(j.key)) {
        results[k] = *known;
        continue;
      }
    const std::string stem = folder_ + "/" + std::to_string(made_++);
    j.in = stem + options_.in, j.out = stem + options_.out, j.log = stem + ".log";
    todo.push_back(std::move(j));
  }
  const ProcessLimits& limits = options_.limits;
  std::string refused;
  for (size_t first = 0; first < todo.size(); first += at_once) {
    const size_t last = std::min(todo.size(), first + at_once);
    for (size_t k = first; k < last; ++k) {
      Job& j = todo[k];
      if (!write_file(j.in, texts[j.text], false))
        throw Error({}, "a text could not be written", {{j.in, {}}}, "free some disk space");
      std::vector<std::string> argv{path_};
      for (auto& a : options_.arguments) argv.push_back(a == "@in" ? j.in : a == "@out" ? j.out : a);
      j.process = start(argv, {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + folder_}, j.log, limits);
    }
    for (size_t k = first; k < last; ++k) {
      Job& j = todo[k];
      const ProcessResult r = finish(j.process, limits);
      const auto bytes = read_file(j.out);
      if (r.kind == ProcessResult::exited && r.code == 0) {
        results[j.text] = bytes.value_or("");
        if (cache_ && bytes) cache_->store(j.key, *bytes);
      } else if (refused.empty()) {
        refused = read_file(j.log).value_or("").substr(0, 3000);
        if (refused.empty()) refused = "it did not finish";
      }
      unlink(j.in.c_str()), unlink(j.out.c_str()), unlink(j.log.c_str());
    }
  }
  if (!refused.empty()) throw Error({}, path_ + " refused generated text", {{refused, {}}}, "report this");
  return results;
}

} // namespace tang::device
