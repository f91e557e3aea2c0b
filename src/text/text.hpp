// The `.tang` notation: text to graph, graph to text, and what is wrong with a text. Reference:
// docs/notation.md.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tang/ir/graph.hpp"

namespace tang::text {

// One problem of a file. `code` is stable; `where` and the facts carry spans (line, column, length, all
// 1-based bytes).
struct Diagnostic {
  enum Kind { error, not_yet, warning } kind = error;

  std::string code;
  Where where;
  std::string headline;
  std::vector<Note> facts;
  std::string fix;
};

// The user's lines with carets under them. Control characters are shown escaped, long lines are cut around
// the span.
std::string render(const Diagnostic& d, std::string_view text, const std::string& file_name);
std::string render(const std::vector<Diagnostic>& all, std::string_view text, const std::string& file_name);

// A graph, or every problem that could be told apart in one pass over the file.
struct Reading {
  std::optional<ir::Graph> graph; // canonical
  std::vector<Diagnostic> problems;
  std::vector<Diagnostic> warnings;
};

Reading read(std::string_view text, const std::string& file_name);

// All problems of a file as one Error; what() is the rendered report.
class Problems : public Error {
public:
  Problems(std::vector<Diagnostic> all, const std::string& report);

  const std::vector<Diagnostic>& all() const { return all_; }

private:
  std::vector<Diagnostic> all_;
};

ir::Graph parse(std::string_view text, const std::string& file_name); // throws Problems

// The canonical text, in the exact form: one line a node. Law: parse(print(g)) has g's hash and prints the
// same.
std::string print(const ir::Graph& g);

// A name as text: control characters escaped, cut when long. Every message passes user text through it.
std::string shown(std::string_view s, size_t most = 60);

} // namespace tang::text
