// Schedules as text (`*.tangsched`): one line a group, so that a difference between two files is a difference
// between two schedules. Reference: docs/tuning.md.
#pragma once
#include "tang/schedule/schedule.hpp"
#include "tang/text/text.hpp"

namespace tang::text {

struct ScheduleReading {
  std::optional<schedule::Record> record;
  std::vector<Diagnostic> problems;
};

ScheduleReading read_schedule(std::string_view text, const std::string& file_name);
schedule::Record parse_schedule(std::string_view text, const std::string& file_name); // throws Problems
// Law: parse_schedule(print(r)) == r.
std::string print(const schedule::Record& r);
std::string fields(const schedule::GroupFields& f); // of one group: "tile 0:96 1:1024 rows 12 vectors 2"

} // namespace tang::text
