// Files of the source tree, for tests that read examples and goldens.
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tang::tests {

inline std::filesystem::path source_root() { return TANG_SOURCE; }
inline std::string slurp(const std::filesystem::path& p) {
  std::ifstream in(p, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}
inline std::vector<std::filesystem::path> files_in(const char* folder, const char* extension) {
  std::vector<std::filesystem::path> out;
  for (auto& e : std::filesystem::directory_iterator(source_root() / folder))
    if (e.path().extension() == extension) out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tang::tests
