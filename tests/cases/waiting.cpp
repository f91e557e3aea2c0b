// Which cases are not shown here, or not wholly, and what each waits for. All numbers are accounted for.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace {
const std::set<int> numbers{1,  3,  4,  5,  7,  8,  10, 11, 13, 14, 16, 18, 19, 21, 22, 24,
                            25, 27, 28, 29, 31, 33, 35, 36, 38, 39, 41, 42, 44, 45, 46, 48,
                            50, 52, 54, 56, 57, 59, 60, 61, 63, 65, 66, 68, 70, 72, 74, 75,
                            76, 78, 80, 81, 83, 85, 86, 87, 90, 91, 93, 95, 97};

struct Waiting {
  int number;
  const char* what; // remains to be shown
  const char*
      waits_for; // what does not exist yet
};

// Not shown by any test of this executable.
const Waiting waiting[] = {
    {81, "hostile GGUF headers", "a reader of GGUF files in formats/"},
    {83, "speculative decoding equals greedy decoding for every drafter", "an engine that drafts and accepts"},
    {90, "a prefix cache that works with recurrent layers", "an engine that keeps blocks of keys and checkpoints of states"},
};
// The forward value is shown here; this part is not.
const Waiting partly[] = {
    {27, "a report of the margin of the arg-max where rows computed together differ in the last bit", "an engine that decodes batches"},
    {70, "batch invariance as a promise of a schedule", "an engine that decodes batches"},
};

// Shown by a test of another room.
const struct {
  int number;
  const char *file, *test;
} elsewhere[] = {
    {25, "tests/run/budget.cpp", "case_25_scores_that_overflow_f16_are_refused"},
    {35, "tests/run/budget.cpp", "case_35_a_variance_that_overflows_is_refused"},
    {86, "tests/grad/chunks.cpp", "case_85_and_86_chunks_of_the_delta_rule_against_its_recurrence"},
    {5, "tests/run/cases.cpp", "case_05_keys_that_do_not_fill_a_tile"},
    {24, "tests/run/cases.cpp", "case_24_tanh_of_large_arguments"},
    {38, "tests/run/cases.cpp", "case_38_dimensions_of_extent_zero"},
    {41, "tests/tune/cases.cpp", "case_41_a_narrow_running_sum_is_a_field_that_a_budget_refuses"},
    {45, "tests/kernel/cases.cpp", "case_45_equal_values_written_by_two_lanes_are_a_race"},
    {63, "tests/run/cases.cpp", "case_63_offsets_beyond_31_bits"},
    {66, "tests/tune/search.cpp", "inputs_stay_as_they_are"},
    {68, "tests/tune/cases.cpp", "case_68_a_kept_schedule_is_of_one_size"},
    {91, "tests/run/cases.cpp", "case_91_infinity_and_nan_are_values"},
    {93, "tests/run/cases.cpp", "case_93_more_workgroups_than_a_dimension_holds"},
    {95, "tests/kernel/cases.cpp", "case_95_every_width_of_a_subgroup_sums_the_same_integers"},
    {97, "tests/run/cases.cpp", "case_97_literals_and_shifts"},
    {97, "tests/emit/literals.cpp", "case_97_every_dialect_keeps_their_bits"},
};

// Numbers in the names of this executable's tests: case_27_rows_.. shows 27.
std::map<int, std::string> shown() {
  std::map<int, std::string> out;
  const auto& unit = *testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s) {
    const auto& suite = *unit.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const std::string name = suite.GetTestInfo(t)->name();
      if (name.rfind("case_", 0) == 0) out[std::stoi(name.substr(5))] = name;
    }
  }
  return out;
}
} // namespace

TEST(waiting, every_case_is_shown_or_waits_for_something) {
  const auto here = shown();
  EXPECT_EQ(numbers.size(), 61u);
  std::set<int> seen;
  for (auto& [n, name] : here) {
    EXPECT_TRUE(numbers.count(n)) << name << " is no case";
    seen.insert(n);
  }
  for (auto& w : waiting) {
    EXPECT_TRUE(numbers.count(w.number)) << w.number;
    EXPECT_TRUE(seen.insert(w.number).second) << w.number << " is shown, or listed twice";
  }
  for (auto& e : elsewhere) {
    std::ifstream in(std::string(TANG_SOURCE) + "/" + e.file);
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_NE(text.str().find(std::string(", ") + e.test + ")"), std::string::npos) << e.file << " has no " << e.test;
    seen.insert(e.number);
  }
  for (int n : numbers) EXPECT_TRUE(seen.count(n)) << "case " << n << " is neither shown nor waiting";
  for (auto& w : partly)
    EXPECT_TRUE(here.count(w.number)) << w.number << " is listed as shown in part, but is not shown";
  for (auto& w : waiting)
    RecordProperty("case_" + std::to_string(w.number), std::string(w.waits_for) + ": " + w.what);
  for (auto& w : partly)
    RecordProperty("part_of_case_" + std::to_string(w.number), std::string(w.waits_for) + ": " + w.what);
}
