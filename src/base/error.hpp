// The three kinds of failure, never mixed: Error (the user's mistake), Refusal (a rule does not apply), check
// (our bug).
#pragma once
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tang {

// A place in the user's source: a C++ line (builtins, since source_location needs clang 15) or a span of a
// `.tang` file.
struct Where {
  const char* file = "";
  int line = 0;
  int column = 0; // 1-based; 0: the whole line
  int length = 0;

  static constexpr Where here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
    return {f, l, 0, 0};
  }
};

std::string place(const Where& where); // "attn.cpp:12" or "attn.tang:7:20"; the folder is left out

struct Note {
  std::string text;
  Where where = {};
};

// The user's mistake: what is wrong, each fact with its line, and a fix.
class Error : public std::runtime_error {
public:
  Error(Where where, std::string headline, std::vector<Note> facts = {}, std::string fix = "");

  const Where& where() const { return where_; }

  const std::string& headline() const { return headline_; }

  const std::vector<Note>& facts() const { return facts_; }

  const std::string& fix() const { return fix_; }

private:
  Where where_;
  std::string headline_;
  std::vector<Note> facts_;
  std::string fix_;
};

// Our bug: carries the printed node, so that a fuzzer can catch it and go on.
class Bug : public std::logic_error {
public:
  using std::logic_error::logic_error;
};

[[noreturn]] void bug(const char* file, int line, const std::string& what);

inline void check(bool ok, const std::string& what, const char* f = __builtin_FILE(),
                  int l = __builtin_LINE()) {
  if (!ok) bug(f, l, what);
}

inline void check(bool ok, const char* what, const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
  if (!ok) bug(f, l, what);
}

// A rule, schedule or legality test says no: logged by the tuner, shown by `tang why`.
struct Refusal {
  std::string why;
};

// A value, or the reason why there is none.
template <class T> class Result {
public:
  Result(T value) : value_(std::move(value)) {}

  Result(Refusal r) : why_(std::move(r.why)) {}

  explicit operator bool() const { return value_.has_value(); }

  const T& operator*() const { return *value_; }

  T& operator*() { return *value_; }

  const T* operator->() const { return &*value_; }

  T* operator->() { return &*value_; }

  const std::string& why() const { return why_; }

private:
  std::optional<T> value_;
  std::string why_;
};

} // namespace tang
