// Golden messages: tests/errors/*.tang and what is said about each. TANG_UPDATE=1 rewrites the expectations.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tang/text/text.hpp"
#include "text/files.hpp"

namespace {
using namespace tang;

TEST(Errors, say_what_was_agreed) {
  const auto files = tests::files_in("tests/errors", ".tang");
  ASSERT_GE(files.size(), 30u);
  std::set<std::string> codes;
  for (auto& f : files) {
    const std::string source = tests::slurp(f);
    const text::Reading r = text::read(source, f.filename().string());
    EXPECT_FALSE(r.graph.has_value()) << f;
    for (auto& d : r.problems) {
      codes.insert(d.code);
      EXPECT_GT(d.where.line, 0) << f;
      EXPECT_FALSE(d.fix.empty()) << f << ": " << d.headline;
      EXPECT_FALSE(d.facts.empty() && d.code[1] != '0') << f << ": " << d.headline;
    }
    const std::string report = text::render(r.problems, source, f.filename().string());
    auto golden = f;
    golden.replace_extension(".txt");
    if (std::getenv("TANG_UPDATE")) std::ofstream(golden, std::ios::binary) << report;
    EXPECT_EQ(report, tests::slurp(golden)) << f;
    for (const char* word : {"std::", "assert", "tang::", "internal error", "terminate"}) EXPECT_EQ(report.find(word), std::string::npos) << f << report;
  }
  EXPECT_GE(codes.size(), 25u);  // the goldens cover most codes
}
TEST(Errors, parse_throws_all_problems_of_a_file_at_once) {
  const std::string source = tests::slurp(tests::source_root() / "tests/errors/several_at_once.tang");
  try {
    text::parse(source, "several_at_once.tang");
    FAIL();
  } catch (const text::Problems& p) {
    ASSERT_EQ(p.all().size(), 3u) << p.what();
    EXPECT_EQ(p.all()[0].where.line, 2);
    EXPECT_EQ(p.all()[1].where.line, 4);
    EXPECT_EQ(p.all()[2].where.line, 6);
    EXPECT_NE(std::string(p.what()).find("several_at_once.tang:4:"), std::string::npos);
  }
}
TEST(Errors, a_fold_that_hides_an_absence_is_a_warning_with_a_fix) {
  const text::Reading r = text::read("input q[i: 4, d: 8]\ninput hit[i] : i32\ns[i] = sum[d] (q[i,d] if hit[i] > 0)\ny[i] = exp(s[i])\noutput y\n", "w.tang");
  ASSERT_TRUE(r.graph.has_value());
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_EQ(r.warnings[0].kind, text::Diagnostic::warning);
  EXPECT_FALSE(r.warnings[0].fix.empty());
}
}  // namespace
