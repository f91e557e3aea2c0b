// Damaged and hostile text: always a graph or diagnostics, never a crash, a hang or an internal error.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "tang/text/text.hpp"
#include "text/files.hpp"
#include "text/random_graph.hpp"

namespace {
using namespace tang;

struct Dice {
  uint64_t state;
  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15u); }
  size_t below(size_t n) { return n ? size_t(next() % n) : 0; }
};
double seconds(const std::function<void()>& f) {
  const auto from = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}
void check_total(const std::string& s) {
  const text::Reading r = text::read(s, "damaged.tang");
  ASSERT_NE(r.graph.has_value(), !r.problems.empty()) << s;
  const std::string report = text::render(r.problems, s, "damaged.tang");
  for (auto& d : r.problems) {
    ASSERT_EQ(d.code.size(), 5u) << report;
    ASSERT_FALSE(d.headline.empty());
  }
  for (char c : report) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << "a control character reached the terminal:\n" << s;
  if (!r.graph) return;
  ir::validate(*r.graph);
  const std::string printed = text::print(*r.graph);
  const text::Reading again = text::read(printed, "printed.tang");
  ASSERT_TRUE(again.graph.has_value()) << s << "\n" << printed << "\n" << text::render(again.problems, printed, "printed.tang");
  ASSERT_EQ(ir::hash(*again.graph), ir::hash(*r.graph)) << s << "\n" << printed;
}
std::vector<std::string> seeds() {
  std::vector<std::string> out;
  for (auto& p : tests::files_in("examples", ".tang")) out.push_back(tests::slurp(p));
  for (auto& p : tests::files_in("tests/errors", ".tang")) out.push_back(tests::slurp(p));
  for (uint64_t k = 1; k <= 12; ++k) out.push_back(text::print(tests::random_graph(k)));
  return out;
}
std::string damaged(std::string s, Dice& d, const std::vector<std::string>& all) {
  static const std::vector<std::string> words{"sum[", "]", "(", ")", " if ", " else ", " and ", "not ", "let t = 1 in ", "* 9223372036854775807", "- ", "/ 16", "% 3", "[i]", "fold top2[e] ",
                                              "\"", "\\x", "$", ".1", "1e999", "0x", "\n", "\n  ", "\t", "recur r over t: 4\n  state h = 0\n", " where ", " to [i0]", "MAX", "nan", "{never}", "iota ", "\x1b[31m", "\xff", "\xe2\x80\xae", ":", ":=", ", "};
  for (size_t k = 1 + d.below(4); k > 0; --k) {
    if (s.empty()) s = "x";
    const size_t at = d.below(s.size());
    switch (d.below(8)) {
      case 0: s[at] = char(d.next()); break;
      case 1: s.erase(at, 1 + d.below(8)); break;
      case 2: s.insert(at, words[d.below(words.size())]); break;
      case 3: s.insert(at, s.substr(d.below(s.size()), d.below(40))); break;
      case 4: {  // a line gone
        const size_t from = s.rfind('\n', at), to = s.find('\n', at);
        if (from != std::string::npos && to != std::string::npos) s.erase(from, to - from);
        break;
      }
      case 5: {  // a line of another file
        const std::string& other = all[d.below(all.size())];
        const size_t from = other.find('\n', d.below(other.size() + 1));
        if (from == std::string::npos) break;
        const size_t line = s.find('\n', at);
        if (line != std::string::npos) s.insert(line, other.substr(from, other.find('\n', from + 1) - from));
        break;
      }
      case 6: {  // a digit
        const size_t digit = s.find_first_of("0123456789", at);
        if (digit != std::string::npos) s[digit] = char('0' + d.below(10));
        break;
      }
      default: {  // one name for another
        const size_t from = s.find_first_of("abcdefghijklmnopqrstuvwxyz", at), other = s.find_first_of("abcdefghijklmnopqrstuvwxyz", d.below(s.size()));
        if (from != std::string::npos && other != std::string::npos) s[from] = s[other];
      }
    }
  }
  return s;
}

TEST(Damage, a_mutated_file_gives_a_graph_or_diagnostics_in_less_than_a_second) {
  const std::vector<std::string> all = seeds();
  ASSERT_GT(all.size(), 15u);
  Dice d{7};
  int graphs = 0;
  for (int k = 0; k < 2500; ++k) {
    const std::string s = damaged(all[size_t(k) % all.size()], d, all);
    SCOPED_TRACE(k);
    EXPECT_LT(seconds([&] { check_total(s); }), 2.0) << s;  // reads twice and prints
    if (::testing::Test::HasFatalFailure()) return;
    graphs += text::read(s, "x").graph.has_value();
  }
  EXPECT_GT(graphs, 100);  // some damage is harmless
}
TEST(Damage, random_bytes_and_empty_files) {
  Dice d{11};
  check_total("");
  check_total("\n\n#\n");
  check_total(std::string(1000, '\0'));
  for (int k = 0; k < 300; ++k) {
    std::string s;
    for (size_t n = d.below(200); n > 0; --n) s += char(d.next());
    check_total(s);
  }
}
TEST(Damage, depth_and_size_are_capped_with_a_diagnostic) {
  auto code = [](const std::string& s) {
    text::Reading r;
    EXPECT_LT(seconds([&] { r = text::read(s, "big.tang"); }), 1.0);
    return r.problems.empty() ? std::string() : r.problems[0].code;
  };
  const std::string head = "input x[i: 4]\n";
  EXPECT_EQ(code(head + "y[i] = " + std::string(100000, '(') + "x[i]" + std::string(100000, ')') + "\n"), "T0006");
  EXPECT_EQ(code(head + "y[i] = " + std::string(100000, '-') + "x[i]\n"), "T0006");
  std::string chain = "x[i]", lets = "let a = x[i]", guard = "j <= i", extents = "n";
  for (int k = 0; k < 20000; ++k) chain += " + x[i]";
  EXPECT_EQ(code(head + "y[i] = " + chain + "\n"), "T0006");
  for (int k = 0; k < 3000; ++k) lets += ", a = a + 1";
  EXPECT_EQ(code(head + "y[i] = " + lets + " in a\n"), "T0006");
  for (int k = 0; k < 12; ++k) guard = "(" + guard + " or j == " + std::to_string(k) + ") and (i < " + std::to_string(k) + " or j != 2)";
  EXPECT_EQ(code(head + "axis j: 4\ny[i] = sum[j] (x[i] if " + guard + ")\n"), "T0309");
  for (int k = 0; k < 40; ++k) extents = "(" + extents + " + 1)*(m + " + std::to_string(k) + ")";
  EXPECT_EQ(code("sym n, m\ninput x[" + extents + "]\n"), "T0210");
  std::string doubling = "let a0 = x[i]";  // a term that is a tree of 2^900 leaves
  for (int k = 0; k < 900; ++k) doubling += ", a" + std::to_string(k + 1) + " = a" + std::to_string(k) + " * a" + std::to_string(k);
  EXPECT_EQ(code(head + "y[i] = " + doubling + " in a900\noutput y\n"), "");
  std::string lines = "exact\ninput x : f32\n";
  for (int k = 0; k < 30000; ++k) lines += "v" + std::to_string(k) + " = x\n";
  EXPECT_EQ(code(lines), "T0007");
  std::string nested;
  for (int k = 0; k < 40; ++k) nested += std::string(size_t(k), ' ') + "recur r over t: 4\n";
  const auto deep = text::read(nested, "nested.tang").problems;
  EXPECT_TRUE(std::any_of(deep.begin(), deep.end(), [](auto& d) { return d.code == "T0006"; }));
}
TEST(Damage, terms_that_share_print_as_small_as_they_are) {
  std::string s = "input x[i: 4]\ny[i] = let a0 = x[i]";
  for (int k = 0; k < 500; ++k) s += ", a" + std::to_string(k + 1) + " = a" + std::to_string(k) + " * a" + std::to_string(k);
  const auto g = text::parse(s + " in a500\noutput y\n", "shared.tang");
  EXPECT_LT(text::print(g).size(), 20000u);
  check_total(text::print(g));
}
}  // namespace
