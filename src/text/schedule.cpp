#include "tang/text/schedule.hpp"

#include <algorithm>
#include <functional>

#include "tang/text/print.hpp"
#include "tang/text/token.hpp"

namespace tang::text {

using schedule::GroupFields;
using schedule::Pack;
using schedule::Role;

namespace {
constexpr const char* packs[] = {"none", "tile", "copy"};
constexpr const char* roles[] = {"grid", "looped"};
constexpr int64_t most_elements = int64_t(1) << 40;

// One line of a file, word by word; the first problem of a line ends it.
struct LineReader {
  const std::vector<Token>& tokens;
  std::vector<Diagnostic>& problems;
  size_t at = 0;
  bool good = true;

  const Token& peek() const { return tokens[at]; }

  bool done() const { return !good || peek().kind == Token::end; }

  void fail(const char* code, const Token& t, std::string headline, std::string fix, std::string fact = "") {
    if (!good) return;
    good = false;
    problems.push_back({Diagnostic::error, code, t.where, std::move(headline), {}, std::move(fix)});
    if (!fact.empty()) problems.back().facts.push_back({std::move(fact), t.where});
  }

  std::string word(const char* what) {
    const Token& t = peek();
    if (t.kind != Token::name || t.symbol || !t.field.empty()) {
      fail("T1001", t, std::string("expected ") + what, "see docs/tuning.md for the form of a schedule");
      return "";
    }
    ++at;
    return t.text;
  }

  int64_t whole(const char* what, int64_t least, int64_t most) {
    const Token& t = peek();
    if (t.kind != Token::number || !t.integral || t.suffix || t.whole > uint64_t(most) ||
        int64_t(t.whole) < least) {
      fail("T1002", t,
           std::string(what) + " is a whole number from " + std::to_string(least) + " to " +
               std::to_string(most),
           "write such a number");
      return least;
    }
    ++at;
    return int64_t(t.whole);
  }

  void mark(const char* m) {
    if (peek().kind == Token::mark && peek().text == m)
      ++at;
    else
      fail("T1001", peek(), std::string("expected `") + m + "`", "write axis:value, as tile 0:96 1:1024");
  }

  // Which of the words it is.
  template <size_t n> int choice(const char* what, const char* const (&words)[n]) {
    const Token& t = peek();
    const std::string w = word(what);
    std::string all;
    for (size_t k = 0; k < n; ++k) {
      if (good && w == words[k]) return int(k);
      all += (k ? ", " : "") + std::string(words[k]);
    }
    fail("T1003", t, "`" + shown(w) + "` is no " + what, "write one of " + all);
    return 0;
  }

  bool yes(const char* what) {
    static constexpr const char* words[] = {"no", "yes"};
    return choice(what, words) == 1;
  }

  // axis:value, as many as there are
  template <class F> void by_axis(F value) {
    do {
      const Token& t = peek();
      const int axis = int(whole("an axis", 0, 63));
      mark(":");
      if (good && !value(axis))
        fail("T1004", t, "axis " + std::to_string(axis) + " is given twice", "give it once");
    } while (good && peek().kind == Token::number);
  }
};

// One field of a group: its word, how it is read and printed.
struct Field {
  const char* word;
  std::function<bool(const GroupFields&)> is_set;
  std::function<void(LineReader&, GroupFields&)> read;
  std::function<std::string(const GroupFields&)> print;
};

template <class T, class V>
Field number_field(const char* word, std::optional<T> GroupFields::*of, V least, V most) {
  return {word, [of](const GroupFields& f) { return (f.*of).has_value(); },
          [=](LineReader& r, GroupFields& f) { f.*of = T(r.whole(word, least, most)); },
          [of](const GroupFields& f) { return std::to_string(*(f.*of)); }};
}

Field yes_field(const char* word, std::optional<bool> GroupFields::*of) {
  return {word, [of](const GroupFields& f) { return (f.*of).has_value(); },
          [of](LineReader& r, GroupFields& f) { f.*of = r.yes("answer"); },
          [of](const GroupFields& f) { return std::string(*(f.*of) ? "yes" : "no"); }};
}

Field format_field(const char* name, std::optional<ir::Format> GroupFields::*p) {
  return {name, [p](const GroupFields& f) { return (f.*p).has_value(); },
          [p](LineReader& r, GroupFields& f) {
            const Token& t = r.peek();
            const std::string w = r.word("the name of a format");
            const ir::Format format = ir::format_named(w);
            if (format == ir::Format::count_ || ir::type_of(format) != ir::Type::real)
              return r.fail("T1003", t, "`" + shown(w) + "` is no format of reals",
                            "write one of f64, f32, f16, bf16");
            f.*p = format;
          },
          [p](const GroupFields& f) { return std::string(ir::row(*(f.*p)).name); }};
}

Field pack_field(const char* word, std::optional<Pack> GroupFields::*of) {
  return {word, [of](const GroupFields& f) { return (f.*of).has_value(); },
          [of](LineReader& r, GroupFields& f) { f.*of = Pack(r.choice("way to reach an operand", packs)); },
          [of](const GroupFields& f) { return std::string(packs[int(*(f.*of))]); }};
}

template <class T>
Field axis_field(const char* word, std::map<int, T> GroupFields::*of, std::function<T(LineReader&)> read,
                 std::function<std::string(const T&)> print) {
  return {word, [of](const GroupFields& f) { return !(f.*of).empty(); },
          [=](LineReader& r, GroupFields& f) {
            r.by_axis([&](int axis) { return (f.*of).emplace(axis, read(r)).second; });
          },
          [=](const GroupFields& f) {
            std::string s;
            for (auto& [a, v] : f.*of) s += (s.empty() ? "" : " ") + std::to_string(a) + ":" + print(v);
            return s;
          }};
}

// The numbers of roles: name:value, as many as there are; a ring's depth for each contraction.
struct RoleNumber {
  const char* word;
  std::function<int(const target::Roles&)> get;
  std::function<void(target::Roles&, int)> set;
  int least, most;
};

template <class T> RoleNumber role_number(const char* word, T target::Roles::*of, int least, int most) {
  return {word, [of](const target::Roles& r) { return int(r.*of); },
          [of](target::Roles& r, int v) { r.*of = T(v); }, least, most};
}

const std::vector<RoleNumber>& role_numbers() {
  using R = target::Roles;
  static const std::vector<RoleNumber> all = {role_number("math", &R::math, 1, 16),
                                              role_number("tall", &R::tall, 0, 8),
                                              role_number("across", &R::across, 1, 16),
                                              role_number("hoisted", &R::hoisted, 1, 8),
                                              role_number("skew", &R::skew, 0, 1),
                                              role_number("turns", &R::turns, 0, 1),
                                              role_number("late", &R::late, 0, 1),
                                              role_number("lag", &R::lag, 0, 7),
                                              role_number("reuse", &R::reuse, 0, 1),
                                              role_number("polynomial", &R::polynomial, 0, 8),
                                              role_number("one_loop", &R::one_loop, 0, 1),
                                              role_number("split", &R::split, 1, 64),
                                              role_number("cluster", &R::cluster, 1, 8),
                                              role_number("beneath", &R::beneath, 0, 1),
                                              role_number("dynamic", &R::persist, 0, 1),
                                              role_number("order", &R::order, 0, 3),
                                              role_number("group", &R::group, 1, 1 << 20),
                                              role_number("producer", &R::producer_registers, 24, 256),
                                              role_number("registers", &R::math_registers, 24, 256)};
  return all;
}

void read_roles(LineReader& r, GroupFields& f) {
  target::Roles out;
  std::string all = "stages";
  for (auto& n : role_numbers()) all += ", " + std::string(n.word);
  do {
    const Token& t = r.peek();
    const std::string w = r.word("a field of roles");
    r.mark(":");
    const RoleNumber* number = nullptr;
    for (auto& n : role_numbers())
      if (w == n.word) number = &n;
    if (w == "stages")
      out.stages.push_back(int(r.whole("a ring's depth", 1, 64)));
    else if (number)
      number->set(out, int(r.whole(number->word, number->least, number->most)));
    else
      r.fail("T1005", t, "roles have no field `" + shown(w) + "`", "write one of " + all);
  } while (r.good && r.peek().kind == Token::name && r.tokens[r.at + 1].kind == Token::mark);
  f.roles = out;
}

std::string role_text(const GroupFields& f) {
  std::string s;
  for (auto& n : role_numbers())
    s += std::string(s.empty() ? "" : " ") + n.word + ":" + std::to_string(n.get(*f.roles));
  for (int depth : f.roles->stages) s += " stages:" + std::to_string(depth);
  return s;
}

const std::vector<Field>& table() {
  static const std::vector<Field> all = {
      axis_field<Role>(
          "role", &GroupFields::role, [](LineReader& r) { return Role(r.choice("role", roles)); },
          [](const Role& v) { return std::string(roles[int(v)]); }),
      axis_field<int64_t>(
          "tile", &GroupFields::tile, [](LineReader& r) { return r.whole("a tile", 1, most_elements); },
          [](const int64_t& v) { return std::to_string(v); }),
      yes_field("stored", &GroupFields::stored),
      yes_field("joint", &GroupFields::joint),
      number_field("parts", &GroupFields::parts, 1, 1 << 10),
      number_field("rows", &GroupFields::rows, 1, 64),
      number_field("vectors", &GroupFields::vectors, 1, 64),
      pack_field("pack_a", &GroupFields::pack_a),
      pack_field("pack_b", &GroupFields::pack_b),
      number_field("ways", &GroupFields::ways, 1, 64),
      number_field("split", &GroupFields::split, 1, 1 << 20),
      number_field("pieces", &GroupFields::pieces, 0, 3),
      format_field("store", &GroupFields::store),
      format_field("accumulate", &GroupFields::accumulate),
      {"roles", [](const GroupFields& f) { return f.roles.has_value(); }, read_roles, role_text}};
  return all;
}

void read_group(LineReader& r, schedule::Schedule& s) {
  const Token& name = r.peek();
  const std::string label = r.word("the name of a group");
  GroupFields f;
  while (!r.done()) {
    const Token& t = r.peek();
    const std::string w = r.word("a field");
    const Field* field = nullptr;
    std::string all;
    for (auto& x : table()) {
      all += (all.empty() ? "" : ", ") + std::string(x.word);
      if (w == x.word) field = &x;
    }
    if (r.good && !field)
      r.fail("T1005", t, "a group has no field `" + shown(w) + "`", "its fields are " + all);
    if (!r.good) return;
    if (field->is_set(f)) return r.fail("T1004", t, "`" + shown(w) + "` is given twice", "give it once");
    field->read(r, f);
  }
  if (r.good && !s.groups.emplace(label, f).second)
    r.fail("T1004", name, "the group " + quoted(shown(label)) + " is given twice",
           "put its fields on one line");
}

void read_line(LineReader& r, schedule::Record& out) {
  static constexpr const char* words[] = {
      "graph", "target", "kernels", "short_contraction", "share_contractions", "epilogues", "memory",
      "pieces", "chunk", "group"};
  switch (r.choice("line of a schedule", words)) {
  case 0: {
    const Token& t = r.peek();
    if (t.kind != Token::number || !t.integral)
      return r.fail("T1002", t, "the graph's hash is a number", "write 0x and 16 hexadecimal digits");
    out.graph = t.whole;
    ++r.at;
    break;
  }
  case 1: out.target = r.word("the target's name in quotes"); break;
  case 2:
    out.kernels = int(r.whole("a number of kernels", 0, 1 << 24));
    out.digest = r.word("the kernels' digest in quotes");
    break;
  case 3: out.schedule.short_contraction = r.whole("short_contraction", 0, most_elements); break;
  case 4: out.schedule.share_contractions = r.yes("answer"); break;
  case 5: out.schedule.epilogues = r.yes("answer"); break;
  case 6: out.schedule.memory = r.whole("memory", 1, most_elements); break;
  case 7: out.schedule.pieces = int(r.whole("pieces", 2, 3)); break;
  case 8: out.schedule.chunk = r.whole("chunk", 2, most_elements); break;
  default: return read_group(r, out.schedule);
  }
}
} // namespace

ScheduleReading read_schedule(std::string_view text, const std::string& file_name) {
  ScheduleReading out;
  const char* file = kept_name(file_name);
  const Lines lines = tokenize(text, file, out.problems);
  schedule::Record record;
  bool first = true;
  for (auto& line : lines) {
    if (line.broken) continue;
    LineReader r{line.tokens, out.problems};
    if (first) {
      const Token& t = r.peek();
      first = false;
      if (t.kind != Token::name || t.text != "tangsched") {
        r.fail("T1000", t, "this is no schedule", "its first line is `tangsched 1`");
        return out;
      }
      ++r.at;
      r.whole("the version of the form", 1, 1);
    } else {
      read_line(r, record);
    }
    if (r.good && !r.done())
      r.fail("T1001", r.peek(), "more than the line may hold", "remove it, or begin a new line");
  }
  if (first && out.problems.empty())
    out.problems.push_back({Diagnostic::error,
                            "T1000",
                            {file, 1, 1, 1},
                            "an empty schedule",
                            {},
                            "its first line is `tangsched 1`"});
  if (out.problems.empty()) out.record = std::move(record);
  return out;
}

schedule::Record parse_schedule(std::string_view text, const std::string& file_name) {
  ScheduleReading r = read_schedule(text, file_name);
  if (r.record) return std::move(*r.record);
  const std::string report = render(r.problems, text, file_name);
  throw Problems(std::move(r.problems), report);
}

std::string fields(const GroupFields& f) {
  std::string s;
  for (auto& x : table())
    if (x.is_set(f)) s += (s.empty() ? "" : " ") + std::string(x.word) + " " + x.print(f);
  return s;
}

std::string print(const schedule::Record& r) {
  char hash[24];
  std::snprintf(hash, sizeof hash, "0x%016llx", static_cast<unsigned long long>(r.graph));
  const auto yes = [](bool b) { return b ? "yes\n" : "no\n"; };
  std::string s = "tangsched 1\ngraph " + std::string(hash) + "\n";
  if (!r.target.empty()) s += "target " + quoted(r.target) + "\n";
  if (!r.digest.empty()) s += "kernels " + std::to_string(r.kernels) + " " + quoted(r.digest) + "\n";
  s += "short_contraction " + std::to_string(r.schedule.short_contraction) + "\n";
  s += "share_contractions " + std::string(yes(r.schedule.share_contractions));
  s += "epilogues " + std::string(yes(r.schedule.epilogues));
  if (r.schedule.pieces) s += "pieces " + std::to_string(r.schedule.pieces) + "\n";
  if (r.schedule.memory) s += "memory " + std::to_string(r.schedule.memory) + "\n";
  if (r.schedule.chunk) s += "chunk " + std::to_string(r.schedule.chunk) + "\n";
  for (auto& [name, f] : r.schedule.groups) {
    const std::string text = fields(f);
    s += "group " + quoted(name) + (text.empty() ? "" : " " + text) + "\n";
  }
  return s;
}

} // namespace tang::text
