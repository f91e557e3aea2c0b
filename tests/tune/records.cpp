// Schedules as text, and the errors of those that do not apply.
#include "tune/graphs.hpp"

#include "tang/text/schedule.hpp"

namespace {
using namespace tang;
using schedule::Record;

Record random_record(std::mt19937_64& rng) {
  Record r;
  r.graph = rng();
  if (rng() % 2) r.target = "c, 16 lanes, \"2\" workers\\";
  if (rng() % 2) r.kernels = int(rng() % 100), r.digest = "0123abcd";
  r.schedule.short_contraction = int64_t(rng() % 5000);
  r.schedule.share_contractions = rng() % 2;
  r.schedule.epilogues = rng() % 2;
  if (rng() % 2) r.schedule.memory = 1 + int64_t(rng() % 5000);
  for (size_t n = rng() % 5; n > 0; --n) {
    schedule::GroupFields& f = r.schedule.groups[std::string("a \"name\" \x01\xff") + char('a' + rng() % 26)];
    for (int a = 0; a < 4; ++a) {
      if (rng() % 2) f.tile[a] = 1 + int64_t(rng() % 100000);
      if (rng() % 3 == 0) f.role[a] = rng() % 2 ? schedule::Role::grid : schedule::Role::looped;
    }
    if (rng() % 2) f.stored = rng() % 2;
    if (rng() % 2) f.joint = rng() % 2;
    if (rng() % 2) f.parts = 1 + int(rng() % 64);
    if (rng() % 2) f.rows = 1 + int(rng() % 64);
    if (rng() % 2) f.vectors = 1 + int(rng() % 64);
    if (rng() % 2) f.pack_a = schedule::Pack(rng() % 3);
    if (rng() % 2) f.pack_b = schedule::Pack(rng() % 3);
    if (rng() % 2) {
      target::Roles x;
      x.math = int(1 + rng() % 3), x.split = int(1 + rng() % 9), x.turns = rng() % 2, x.reuse = rng() % 2;
      x.cluster = int(1 + rng() % 8), x.beneath = rng() % 2;
      x.persist = target::Persist(rng() % 2), x.order = target::WorkOrder(rng() % 3);
      for (uint64_t rings = rng() % 3; rings; --rings) x.stages.push_back(int(1 + rng() % 8));
      f.roles = x;
    }
    if (rng() % 2) f.ways = 1 + int(rng() % 64);
    if (rng() % 2) f.split = 1 + int(rng() % 1000);
    if (rng() % 2) f.store = rng() % 2 ? ir::Format::bf16 : ir::Format::f16;
  }
  return r;
}
TEST(tune_text, what_is_printed_is_read_back) {
  std::mt19937_64 rng(1);
  for (int k = 0; k < 500; ++k) {
    const Record r = random_record(rng);
    const std::string s = text::print(r);
    const text::ScheduleReading back = text::read_schedule(s, "r.tangsched");
    ASSERT_TRUE(back.record) << s << text::render(back.problems, s, "r.tangsched");
    EXPECT_EQ(*back.record, r) << s;
    EXPECT_EQ(text::print(*back.record), s);
  }
}
TEST(tune_text, damage_is_a_diagnostic_or_another_schedule_never_a_crash) {
  std::mt19937_64 rng(2);
  int problems = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string s = text::print(random_record(rng));
    for (size_t n = 1 + rng() % 3; n > 0; --n) {
      const size_t at = rng() % s.size();
      switch (rng() % 3) {
        case 0: s[at] = char(rng()); break;
        case 1: s.erase(at, 1 + rng() % 5); break;
        default: s.insert(at, s.substr(rng() % s.size(), 1 + rng() % 10));
      }
      if (s.empty()) s = "x";
    }
    const text::ScheduleReading r = text::read_schedule(s, "damaged.tangsched");
    ASSERT_NE(r.record.has_value(), !r.problems.empty()) << s;
    problems += !r.problems.empty();
    for (auto& p : r.problems) {
      EXPECT_FALSE(p.headline.empty());
      EXPECT_FALSE(p.fix.empty()) << p.headline;
    }
    if (r.record) {
      EXPECT_EQ(text::parse_schedule(text::print(*r.record), "again"), *r.record);
    }
  }
  EXPECT_GT(problems, 1000);
}
std::string said(const std::string& schedule) {
  try {
    text::parse_schedule(schedule, "s.tangsched");
    return "";
  } catch (const Error& e) { return e.what(); }
}
TEST(tune_text, problems_name_the_line_and_a_fix) {
  EXPECT_EQ(said("tangsched 1\ngroup \"y\" tile 0:96 rows 200\n"),
            "error[T1002]: rows is a whole number from 1 to 64\n --> s.tangsched:2:26\n 2 | group \"y\" tile 0:96 rows 200\n   |                          ^^^\n  help: write such a number\n");
  EXPECT_NE(said("tangsched 1\ngroup \"y\" til 0:96\n").find("a group has no field `til`"), std::string::npos);
  EXPECT_NE(said("tangsched 1\ngroup \"y\" tile 0:96 0:4\n").find("axis 0 is given twice"), std::string::npos);
  EXPECT_NE(said("tangsched 1\ngroup \"y\" rows 4\ngroup \"y\" rows 4\n").find("is given twice"), std::string::npos);
  EXPECT_NE(said("tangsched 2\n").find("the version of the form"), std::string::npos);
  EXPECT_NE(said("input x[i: 4]\n").find("this is no schedule"), std::string::npos);
  EXPECT_NE(said("").find("an empty schedule"), std::string::npos);
  EXPECT_NE(said("tangsched 1\ngroup \"y\" store i8\n").find("no format of reals"), std::string::npos);
}

struct Replay {
  ir::Graph g = tests::two_layers(32, 64, 48);
  run::Options o;
  Record record = tune::record_of(g, run::derive(g, o), o);
  std::string error(const Record& r, bool locked = false) const {
    try {
      tune::restored(r, g, o, locked);
      return "";
    } catch (const Error& e) {
      EXPECT_GE(e.facts().size(), 2u) << e.what();  // both facts
      EXPECT_FALSE(e.fix().empty());
      return e.what();
    }
  }
};
TEST(tune_record, a_schedule_replays_where_it_was_made) {
  Replay r;
  EXPECT_EQ(r.error(r.record, true), "");
}
TEST(tune_record, one_that_does_not_apply_is_an_error_with_both_facts) {
  Replay r;
  Record x = r.record;
  x.graph ^= 1;
  EXPECT_NE(r.error(x).find("the schedule is for another graph"), std::string::npos);
  x = r.record;
  x.target = "c, 4 lanes, 64 workers";
  EXPECT_EQ(r.error(x), "");  // it may be tried elsewhere
  EXPECT_NE(r.error(x, true).find("another target"), std::string::npos);
  x = r.record;
  x.schedule.groups["nobody"].rows = 4;
  EXPECT_NE(r.error(x).find("a group that the program does not have: 'nobody'"), std::string::npos);
  const run::Derivation d = run::derive(r.g, r.o);
  const std::string key = schedule::key(*d.plan.graph, d.plan.steps[0].group.members[0].node);
  x = r.record;
  x.schedule.groups[key].tile[9] = 4;
  EXPECT_NE(r.error(x).find("axis 9"), std::string::npos);
  x = r.record;
  {  // a maximum cannot be added to from several places: its fold stays in one workgroup
    ir::Builder b;
    Tensor t = b.input("t", {32, 48});
    auto [i, k] = axes<"i k">();
    b.output(map({i}, max(k, t(i, k))), "m");
    Replay other;
    other.g = b.graph();
    const run::Derivation dm = run::derive(other.g, other.o);
    Record y = tune::record_of(other.g, dm, other.o);
    y.schedule.groups[schedule::key(*dm.plan.graph, dm.plan.steps[0].group.members[0].node)].role[1] = schedule::Role::grid;
    EXPECT_NE(other.error(y).find("does not apply"), std::string::npos) << other.error(y);
  }
  x = r.record;
  x.schedule.groups[key].ways = 3, x.schedule.groups[key].rows = 3; // on no target the rules' choice
  EXPECT_EQ(r.error(x), "");  // another program for the same graph
  EXPECT_NE(r.error(x, true).find("no longer gives the kernels"), std::string::npos);
}
TEST(tune_record, keys_tell_nodes_of_one_name_apart) {
  const ir::Graph g = tests::two_layers(32, 64, 48);
  std::set<std::string> keys;
  size_t comps = 0;
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (g[id].comp()) keys.insert(schedule::key(g, id)), ++comps;
  EXPECT_EQ(keys.size(), comps);
}
TEST(tune_record, narrow_storage_is_a_field_of_the_schedule) {
  const ir::Graph g = tests::two_layers(32, 64, 48);
  run::Options o;
  const run::Derivation before = run::derive(g, o);
  ASSERT_EQ(before.plan.buffers.size(), 2u);
  o.schedule.groups[schedule::key(*before.plan.graph, before.plan.buffers[0].of.node)].store = ir::Format::bf16;
  o.schedule.groups[schedule::key(*before.plan.graph, before.plan.buffers[1].of.node)].store = ir::Format::bf16;
  const run::Derivation after = run::derive(g, o);
  for (auto& b : after.plan.buffers) EXPECT_EQ(b.format, b.output ? ir::Format::f32 : ir::Format::bf16);  // outputs keep theirs
  EXPECT_LT(after.plan.bytes_moved(), before.plan.bytes_moved());
}
}  // namespace
