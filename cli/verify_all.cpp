// Every builder of the library on every target: the matrix, or a sample of its cells.
#include <algorithm>
#include <cstdio>

#include "tang/cli/matrix.hpp"
#include "tang/cli/tool.hpp"

namespace tang::cli {

namespace {
class MatrixPage {
public:
  explicit MatrixPage(bool json) : json_(json) {}

  void target(const std::string& name, const Result<run::Opened>& to) {
    if (json_)
      std::printf("%s{\"name\":\"%s\",\"class\":\"%s\",\"device\":\"%s\"}", targets_++ ? "," : "{\"schema\":\"tang.matrix/1\",\"targets\":[", name.c_str(),
                  !to ? "-" : to->target.values == target::Class::exact ? "exact" : "finite", to ? to->description.c_str() : "not here");
    else if (!to) std::printf("%-8s not here: %s\n", name.c_str(), to.why().c_str());
  }

  void cell(const Cell& x) {
    passed_ += x.passed, failed_ += x.failed;
    if (json_) std::printf("%s\n%s", cells_ + same_ ? "," : "],\"cells\":[", json(x).c_str());
    else if (x.applies())
      std::printf("%-8s %-26s %-8s %-12s %3d passed %2d failed  worst error %.1e %s\n", x.target.c_str(), x.builder.c_str(),
                  x.backward ? "backward" : "forward", x.way.c_str(), x.passed, x.failed, x.worst, x.failed ? x.why.c_str() : "");
    ++(x.applies() ? cells_ : same_);
    std::fflush(stdout);
  }

  int close() const {
    if (json_) std::printf("%s],\"passed\":%d,\"failed\":%d}\n", cells_ + same_ ? "" : "],\"cells\":[", passed_, failed_);
    else
      std::printf("%d cells; in %d more the schedule gives the first one's kernels, or does not fit\n%d passed, %d failed\n", cells_, same_,
                  passed_, failed_);
    return failed_ ? 1 : 0;
  }

private:
  const bool json_;
  int targets_ = 0, cells_ = 0, same_ = 0, passed_ = 0, failed_ = 0;
};

std::vector<std::string> chosen(const std::vector<std::string>& all, const std::string& only, const char* what) {
  if (only.empty()) return all;
  if (std::find(all.begin(), all.end(), only) != all.end()) return {only};
  std::string names;
  for (auto& n : all) names += (names.empty() ? "" : ", ") + n;
  throw Error({}, "there is no " + std::string(what) + " '" + only + "'", {{what + ("s are " + names), {}}}, "choose one of them");
}
} // namespace

int verify_all(const Common& c, const MatrixArguments& a) {
  if (!a.target.empty()) open_or_throw(c, a.target);
  return verify_all(c, a, [&](const std::string& name) { return run::open_target(name, target_options(c)); });
}

int verify_all(const Common& c, const MatrixArguments& a, const Opener& open) {
  const std::vector<std::string> names = chosen(run::target_names(), a.target, "target"), builders = chosen(builder_names(), a.builder, "builder");
  MatrixPage page(c.json);
  std::vector<std::pair<std::string, run::Opened>> targets;
  for (auto& name : run::target_names()) {
    const bool wanted = std::find(names.begin(), names.end(), name) != names.end();
    if (!wanted && !a.sample) continue; // a sample is the same, whichever part of it is wanted
    const auto to = open(name);
    if (wanted) page.target(name, to);
    if (to) targets.emplace_back(name, *to);
    else if (name == a.target) return absent;
  }
  auto cell = [&](size_t builder, size_t target, bool backward, size_t way) {
    const auto& [name, to] = targets[target];
    if (a.target.empty() || a.target == name) page.cell(verify_cell(name, to, builders[builder], backward, ways()[way], thread_count(c)));
  };
  if (a.sample) {
    for (auto& row : pairwise({int(builders.size()), int(targets.size()), int(ways().size()), 2}))
      cell(size_t(row[0]), size_t(row[1]), row[3] == 1, size_t(row[2]));
  } else {
    for (size_t target = 0; target < targets.size(); ++target)
      for (size_t builder = 0; builder < builders.size(); ++builder)
        for (bool backward : {false, true})
          for (size_t way = 0; way < ways().size(); ++way) cell(builder, target, backward, way);
  }
  return page.close();
}

} // namespace tang::cli
