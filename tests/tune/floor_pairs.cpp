// Every run on an H200 that was written down against the floor as it is today, and the floor's terms one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tang/tune/measured.hpp"

namespace {
using namespace tang;

std::string stored(const char* name) {
  std::ifstream in(std::string(TANG_SOURCE "/docs/results/tune-h200/") + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Pairs {
  tune::Machine machine;
  std::vector<tune::Measured> rows;
  int counted = 0; // of them, rows whose instructions are known
};

Pairs pairs() {
  Pairs p;
  const auto m = tune::machine_of(stored("probe.json"));
  EXPECT_TRUE(bool(m)) << m.why();
  p.machine = *m;
  for (const char* file : {"cuda.json", "peers.json"}) {
    const auto some = tune::measured_of(stored(file), p.machine);
    EXPECT_TRUE(bool(some)) << some.why();
    p.rows.insert(p.rows.end(), some->begin(), some->end());
  }
  const auto n = tune::put_counts(p.rows, stored("counts.json"));
  EXPECT_TRUE(bool(n)) << n.why();
  p.counted = *n;
  return p;
}

int below(const Pairs& p, const tune::Machine& m) {
  int n = 0;
  for (auto& r : p.rows) n += tune::floor(r, m).seconds > r.time.best;
  return n;
}

TEST(tune_floor, every_pair_that_was_measured_is_above_it) {
  const Pairs p = pairs();
  EXPECT_EQ(p.rows.size(), 3813u);
  for (auto& r : p.rows) {
    const tune::Time t = tune::floor(r, p.machine);
    EXPECT_LE(t.seconds, r.time.best) << r.group << ", " << r.problem << ", " << r.schedule << ": " << t.binding().name;
    EXPECT_GT(t.seconds, 0) << r.problem;
  }
}
TEST(tune_floor, a_machine_that_is_taken_for_slower_is_found_out) {
  const Pairs p = pairs();
  tune::Machine slower = p.machine;
  slower.clock /= 4; // instructions alone
  EXPECT_GT(below(p, slower), 0);
  slower = p.machine;
  for (auto& l : slower.levels) l.read.best /= 2;
  EXPECT_GT(below(p, slower), 0);
}
TEST(tune_floor, it_is_near_what_layers_of_experts_take) {
  const Pairs p = pairs();
  std::vector<double> ratios;
  for (auto& r : p.rows)
    if (r.group == "class" && r.cold && !r.candidate) ratios.push_back(tune::floor(r, p.machine).seconds / r.time.median);
  ASSERT_EQ(ratios.size(), 24u);
  std::sort(ratios.begin(), ratios.end());
  EXPECT_GE(ratios[11], 0.6) << "the median";
  EXPECT_GE(ratios[2], 0.4) << "the tenth percentile";
}

tune::Machine made_up() {
  tune::Machine m;
  m.workers = 100, m.lanes = 32, m.margin = 1;
  m.fma = m.exp = m.write = {1e13, 1e13}, m.matrix = {1e15, 1e15};
  m.levels = {{"memory", 0, {1e12, 1e12}, true, 0}};
  m.one = m.every = m.full = {1e-6, 1.25e-6, 1.5e-6};
  m.clock = 1e9, m.schedulers = 4;
  return m;
}
double named(const tune::Time& t, const std::string& name) {
  for (auto& x : t.terms)
    if (x.name == name) return x.seconds;
  return -1;
}
TEST(tune_floor, instructions_are_started_by_the_workers_that_have_work) {
  tune::Work w;
  w.launches = 1, w.workgroups = 1000, w.planned = true, w.read = 4e3, w.issued = 4e6;
  // 400 a cycle; those of the first quarter of a microsecond run while loads are on their way.
  EXPECT_NEAR(named(tune::floor(w, made_up()), "instructions"), 10e-6 - 0.25e-6, 1e-12);
  EXPECT_NEAR(named(tune::floor(w, made_up(), true), "instructions"), 10e-6 - 0.5e-6, 1e-12);
  w.workgroups = 25;
  EXPECT_NEAR(named(tune::floor(w, made_up()), "instructions"), 40e-6 - 0.25e-6, 1e-12);
  w.launches = 2; // of another kernel's workgroups nothing is known, but it waits, too
  EXPECT_NEAR(named(tune::floor(w, made_up()), "instructions"), 10e-6 - 0.5e-6, 1e-12);
}
TEST(tune_floor, what_follows_the_last_bytes_comes_on_top_of_them) {
  tune::Work w;
  w.launches = 1, w.workgroups = 100, w.planned = true, w.read = 2e6, w.after = 300;
  EXPECT_NEAR(tune::floor(w, made_up()).seconds, 1.25e-6 + 2e-6 + 0.3e-6, 1e-12);
  w.contracted = 2.2e7; // what computes may do so meanwhile
  EXPECT_NEAR(tune::floor(w, made_up()).seconds, 1.25e-6 + 2.3e-6, 1e-12);
  tune::Machine unknown = made_up();
  unknown.clock = 0;
  EXPECT_NEAR(tune::floor(w, unknown).seconds, 1.25e-6 + 2.2e-6, 1e-12);
}
TEST(tune_floor, measured_rows_survive_their_json) {
  tune::Work w;
  w.launches = 2, w.issued = 12345, w.after = 67, w.resident = true, w.read = 1.5;
  const std::string row = R"({"schema":"tang.tune-cuda/1","rows":[{"group":"g","problem":"p","candidate":3,"schedule":"s",
    "mode":"cold","median":2.0,"low":1.5,"high":2.5,"best":1.0,"runs":9,"error":0.5,"works":[)" + tune::as_json(w) + "]}]}";
  auto rows = tune::measured_of(row, made_up());
  ASSERT_TRUE(bool(rows)) << rows.why();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(tune::as_json((*rows)[0].works[0]), tune::as_json(w));
  EXPECT_TRUE((*rows)[0].cold);
  EXPECT_EQ((*rows)[0].candidate, 3u);
  const std::string counts = R"({"schema":"tang.tune-counts/1","counts":[{"group":"g","problem":"p","schedule":"s",
    "works":[{"workgroups":7,"issued":8}]}]})";
  EXPECT_EQ(*tune::put_counts(*rows, counts), 1);
  EXPECT_EQ((*rows)[0].works[0].workgroups, 7);
  EXPECT_EQ((*rows)[0].works[0].issued, 8);
  EXPECT_EQ((*rows)[0].works[0].after, 67); // what is not said stays
  EXPECT_FALSE(bool(tune::measured_of("{", made_up())));
  EXPECT_FALSE(bool(tune::measured_of(R"({"schema":"tang.tune-cuda/1"})", made_up())));
}
} // namespace
