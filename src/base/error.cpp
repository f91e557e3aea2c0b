#include "tang/base/error.hpp"

namespace tang {

namespace {
std::string message(const Where& where, const std::string& headline, const std::vector<Note>& facts,
                    const std::string& fix) {
  std::string out = where.line ? place(where) + ": " + headline : headline;
  for (auto& f : facts) out += "\n    " + f.text + (f.where.line ? "  at " + place(f.where) : "");
  if (!fix.empty()) out += "\n  fix: " + fix;
  return out;
}
} // namespace

std::string place(const Where& where) {
  std::string file = where.file;
  file = file.substr(file.rfind('/') + 1);
  std::string out = file + ":" + std::to_string(where.line);
  return where.column ? out + ":" + std::to_string(where.column) : out;
}

Error::Error(Where where, std::string headline, std::vector<Note> facts, std::string fix)
    : std::runtime_error(message(where, headline, facts, fix)), where_(where), headline_(std::move(headline)),
      facts_(std::move(facts)), fix_(std::move(fix)) {}

void bug(const char* file, int line, const std::string& what) {
  throw Bug(place(Where{file, line, 0, 0}) + ": internal error: " + what);
}

} // namespace tang
