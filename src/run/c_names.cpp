// Text by people inside generated C: it can name things and nothing else.
#include <set>

#include "tang/run/standalone.hpp"

namespace tang::run {

namespace {
bool lower(char c) { return c >= 'a' && c <= 'z'; }

bool upper(char c) { return c >= 'A' && c <= 'Z'; }

bool digit(char c) { return c >= '0' && c <= '9'; }

// Keywords of C and C++, words that compilers define as macros, and what the generated functions call
// themselves.
const std::set<std::string>& taken() {
  static const std::set<std::string> words = {"alignas",
                                              "alignof",
                                              "and",
                                              "and_eq",
                                              "asm",
                                              "auto",
                                              "bitand",
                                              "bitor",
                                              "bool",
                                              "break",
                                              "case",
                                              "catch",
                                              "char",
                                              "char16_t",
                                              "char32_t",
                                              "char8_t",
                                              "class",
                                              "co_await",
                                              "co_return",
                                              "co_yield",
                                              "compl",
                                              "concept",
                                              "const",
                                              "const_cast",
                                              "consteval",
                                              "constexpr",
                                              "constinit",
                                              "continue",
                                              "decltype",
                                              "default",
                                              "delete",
                                              "do",
                                              "double",
                                              "dynamic_cast",
                                              "else",
                                              "enum",
                                              "explicit",
                                              "export",
                                              "extern",
                                              "false",
                                              "float",
                                              "for",
                                              "friend",
                                              "goto",
                                              "if",
                                              "inline",
                                              "int",
                                              "long",
                                              "mutable",
                                              "namespace",
                                              "new",
                                              "noexcept",
                                              "not",
                                              "not_eq",
                                              "nullptr",
                                              "operator",
                                              "or",
                                              "or_eq",
                                              "private",
                                              "protected",
                                              "public",
                                              "register",
                                              "reinterpret_cast",
                                              "requires",
                                              "restrict",
                                              "return",
                                              "short",
                                              "signed",
                                              "sizeof",
                                              "static",
                                              "static_assert",
                                              "static_cast",
                                              "struct",
                                              "switch",
                                              "template",
                                              "this",
                                              "thread_local",
                                              "throw",
                                              "true",
                                              "try",
                                              "typedef",
                                              "typeid",
                                              "typename",
                                              "typeof",
                                              "typeof_unqual",
                                              "union",
                                              "unsigned",
                                              "using",
                                              "virtual",
                                              "void",
                                              "volatile",
                                              "wchar_t",
                                              "while",
                                              "xor",
                                              "xor_eq",
                                              "linux",
                                              "unix",
                                              "i386",
                                              "sun",
                                              "mips",
                                              "arm",
                                              "vector",
                                              "pixel",
                                              "errno",
                                              "stdin",
                                              "stdout",
                                              "stderr",
                                              "complex",
                                              "imaginary",
                                              "near",
                                              "far",
                                              "interface",
                                              "workspace",
                                              "memcpy",
                                              "memset",
                                              "fabs"};
  return words;
}
} // namespace

bool is_identifier(const std::string& s) {
  if (s.empty() || !(lower(s[0]) || upper(s[0]))) return false;
  for (char c : s)
    if (!lower(c) && !upper(c) && !digit(c) && c != '_') return false;
  return true;
}

std::string CNames::take(const std::string& name) {
  std::string s;
  bool small = false;
  for (char c : name) {
    const bool fits = lower(c) || upper(c) || digit(c);
    if (!fits && (s.empty() || s.back() == '_')) continue;
    s += fits ? c : '_';
    small |= lower(c);
    if (s.size() == 48) break;
  }
  while (!s.empty() && s.back() == '_') s.pop_back();
  // What is around: generated locals begin with tang, kernels with k and a hash; functions and macros with
  // the prefix.
  const bool generated =
      !s.compare(0, 4, "tang") || (s.size() > 16 && s[0] == 'k') || !s.compare(0, prefix_.size(), prefix_);
  if (s.empty() || digit(s[0]) || generated) s = "t_" + s, small = true;
  const bool type = s.size() > 2 && !s.compare(s.size() - 2, 2, "_t");
  if (!small || type || taken().count(s)) s += "_"; // a name in capitals may be somebody's macro
  std::string unique = s;
  for (int k = 2; !used_.emplace(unique, true).second; ++k) unique = s + "_" + std::to_string(k);
  return unique;
}

std::string in_comment(const std::string& s) {
  std::string out;
  for (char c : s) {
    const bool plain =
        lower(c) || upper(c) || digit(c) || (c && std::string(" ._+-=,:[]()").find(c) != std::string::npos);
    out += plain ? c : '_';
    if (out.size() == 120) break;
  }
  return out;
}

} // namespace tang::run
