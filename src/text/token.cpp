#include "tang/text/token.hpp"

#include <cmath>
#include <cstdlib>
#include <mutex>
#include <set>

namespace tang::text {

namespace {
bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool digit(char c) { return c >= '0' && c <= '9'; }

int hex(char c) {
  return digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

struct Scanner {
  std::string_view s; // one line
  int line;
  const char* file;
  std::vector<Diagnostic>& problems;
  size_t at = 0;
  std::vector<Token> out = {};

  char peek(size_t k = 0) const { return at + k < s.size() ? s[at + k] : '\0'; }

  Where span(size_t from) const { return {file, line, int(from) + 1, int(at - from)}; }

  void fail(const char* code, size_t from, std::string headline, std::string fix) {
    problems.push_back({Diagnostic::error, code, span(from), std::move(headline), {}, std::move(fix)});
  }

  void run() {
    while (at < s.size() && s[at] != '#') {
      const char c = s[at];
      if (c == ' ' || c == '\t' || c == '\r')
        ++at;
      else if (letter(c) || c == '"' || c == '$')
        word();
      else if (digit(c) || (c == '.' && digit(peek(1))))
        number();
      else
        mark();
    }
    const size_t from = at;
    out.push_back({});
    out.back().where = span(from);
  }

  std::string identifier() {
    const size_t from = at;
    while (letter(peek()) || digit(peek())) ++at;
    return std::string(s.substr(from, at - from));
  }

  void word() {
    const size_t from = at;
    Token t;
    t.kind = Token::name;
    if (peek() == '$') {
      t.symbol = true;
      ++at;
      if (!letter(peek()) && peek() != '"')
        return fail("T0001", from, "`$` without the name of a symbol", "write $name");
    }
    if (peek() == '"') {
      t.quoted = true;
      if (!quoted(t.text, from)) return;
    } else {
      t.text = identifier();
    }
    if (peek() == '.' && (letter(peek(1)) || digit(peek(1)))) {
      ++at;
      t.field = identifier();
    }
    t.where = span(from);
    out.push_back(std::move(t));
  }

  bool quoted(std::string& text, size_t from) {
    for (++at; at < s.size() && s[at] != '"'; ++at) {
      if (s[at] != '\\') {
        text += s[at];
        continue;
      }
      ++at;
      if (peek() == 'x' && hex(peek(1)) >= 0 && hex(peek(2)) >= 0) {
        text += char(hex(peek(1)) * 16 + hex(peek(2)));
        at += 2;
      } else if (peek() == '"' || peek() == '\\') {
        text += peek();
      } else {
        const size_t slash = at - 1;
        at = std::min(at + 1, s.size());
        fail("T0002", slash, "an escape that is not known", "use \\\", \\\\ or \\xNN");
        at = s.size();
        return false;
      }
    }
    if (at >= s.size()) {
      fail("T0002", from, "a quoted name that does not end on its line", "close it with \"");
      return false;
    }
    ++at;
    if (!text.empty()) return true;
    fail("T0002", from, "an empty name", "put the name between the quotes");
    return false;
  }

  void number() {
    const size_t from = at;
    Token t;
    t.kind = Token::number;
    bool fits = true, malformed = false;
    auto grow = [&](uint64_t base, uint64_t d) {
      uint64_t m, a;
      fits = fits && !__builtin_mul_overflow(t.whole, base, &m) && !__builtin_add_overflow(m, d, &a);
      if (fits) t.whole = a;
    };
    t.integral = true;
    if (peek() == '0' && peek(1) == 'x') {
      at += 2;
      malformed = hex(peek()) < 0;
      for (; hex(peek()) >= 0; ++at) grow(16, uint64_t(hex(peek())));
      t.real = double(t.whole);
      malformed = malformed || !fits;
    } else {
      for (; digit(peek()); ++at) grow(10, uint64_t(peek() - '0'));
      if (peek() == '.' && digit(peek(1))) {
        t.integral = false;
        for (++at; digit(peek()); ++at) {}
      }
      if ((peek() == 'e' || peek() == 'E') &&
          (digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && digit(peek(2))))) {
        t.integral = false;
        for (at += 2; digit(peek()); ++at) {}
      }
      t.real = std::strtod(std::string(s.substr(from, at - from)).c_str(), nullptr);
    }
    if ((peek() == 'i' || peek() == 'u') && !letter(peek(1)) && !digit(peek(1))) {
      t.suffix = s[at++];
      malformed = malformed || !t.integral || !fits;
    }
    t.integral = t.integral && fits;
    if (letter(peek()) || digit(peek())) {
      while (letter(peek()) || digit(peek())) ++at;
      malformed = true;
    }
    if (malformed)
      return fail("T0003", from, "`" + shown(s.substr(from, at - from)) + "` is no number",
                  "write 12, 0.5, 1e-3, 12i (an index), 12u or 0xffu (bits)");
    t.where = span(from);
    out.push_back(t);
  }

  void mark() {
    static constexpr const char* twos[] = {":=", "==", "!=", "<=", ">=", "<<", ">>", "->"};
    const size_t from = at;
    size_t n = 0;
    for (const char* m : twos)
      if (s.substr(at, 2) == m) n = 2;
    if (!n && std::string_view("()[]{},:=<>+-*/%&|^").find(s[at]) != std::string_view::npos) n = 1;
    if (!n) {
      at += 1;
      while (at < s.size() && (s[at] & 0xc0) == 0x80) ++at;
      return fail("T0001", from, "`" + shown(s.substr(from, at - from)) + "` has no meaning here",
                  "names are letters, digits and _; put any other name in \"quotes\"");
    }
    at += n;
    Token t;
    t.kind = Token::mark;
    t.text = std::string(s.substr(from, n));
    t.where = span(from);
    out.push_back(t);
  }
};
} // namespace

bool is_identifier(std::string_view s) {
  if (s.empty() || !letter(s[0])) return false;
  for (char c : s)
    if (!letter(c) && !digit(c)) return false;
  return true;
}

const char* kept_name(const std::string& file_name) {
  static std::mutex lock;
  static std::set<std::string> names;
  std::lock_guard hold(lock);
  return names.insert(file_name).first->c_str();
}

Lines tokenize(std::string_view text, const char* file, std::vector<Diagnostic>& problems) {
  Lines out;
  auto too_long = [&](int line, std::string what, std::string fix) {
    problems.push_back({Diagnostic::error, "T0007", {file, line, 1, 1}, std::move(what), {}, std::move(fix)});
  };
  if (text.size() > most_bytes) {
    too_long(1, "a file of more than 16 MiB", "split the model");
    return out;
  }
  int line = 0;
  for (size_t from = 0; from <= text.size();) {
    size_t to = text.find('\n', from);
    if (to == std::string_view::npos) to = text.size();
    const std::string_view s = text.substr(from, to - from);
    from = to + 1;
    ++line;
    Scanner scan{s, line, file, problems};
    const size_t before = problems.size();
    scan.run();
    if (problems.size() > 200) break;
    size_t indent = 0;
    while (indent < s.size() && (s[indent] == ' ' || s[indent] == '\t')) ++indent;
    if (scan.out.size() == 1 && problems.size() == before) continue;
    out.push_back({std::move(scan.out), int(indent), problems.size() != before});
    if (out.size() > most_lines) {
      too_long(line, "more than 20000 lines", "fold repeated layers into one recurrence, or split the model");
      break;
    }
  }
  return out;
}

} // namespace tang::text
