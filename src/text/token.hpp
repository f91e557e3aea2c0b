// Tokens with spans, and the lines of a file grouped into statements by indentation.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tang/text/text.hpp"

namespace tang::text {

struct Token {
  enum Kind { name, number, mark, end } kind = end;

  std::string text;    // of a name without quotes; of a mark as written
  std::string field;   // name.field
  bool quoted = false; // "name": never a keyword, an axis or a symbol
  bool symbol = false; // $name: always a symbol
  double real = 0;     // of a number
  uint64_t whole = 0;  // the same when it is an integer
  bool integral = false;
  char suffix = 0; // 'i' index, 'u' bits
  Where where;
};

struct Line {
  std::vector<Token> tokens; // the last one is `end`
  int indent = 0;
  bool broken = false; // something on it is no token, and was reported
};

using Lines = std::vector<Line>; // without empty ones

inline constexpr size_t most_bytes = size_t(16) << 20;
inline constexpr size_t most_lines = 20000;

// Reports what is no token and goes on.
Lines tokenize(std::string_view text, const char* file, std::vector<Diagnostic>& problems);
// A name with this spelling survives for the life of the process: Where points at it from graphs.
const char* kept_name(const std::string& file_name);

bool is_identifier(std::string_view s);

} // namespace tang::text
