// Records: what a schedule was made for, and whether it applies.
#include <algorithm>

#include "tang/device/cache.hpp"
#include "tang/text/schedule.hpp"
#include "tang/tune/search.hpp"

namespace tang::tune {

namespace {
constexpr const char* tuning_version = "tang 0.1.0, tuning 1";

std::string hexadecimal(uint64_t v) {
  char s[24];
  std::snprintf(s, sizeof s, "0x%016llx", static_cast<unsigned long long>(v));
  return s;
}

std::string digest_of(const run::Derivation& d) {
  std::string all;
  for (auto& n : d.names) all += n + "\n";
  return device::digest(all);
}

// Groups of a plan and of the bodies inside it.
void groups_of(const plan::Plan& p, std::vector<std::pair<const ir::Graph*, const plan::Group*>>& out) {
  for (auto& s : p.steps) {
    if (s.recur)
      groups_of(*s.body, out);
    else
      out.emplace_back(p.graph.get(), &s.group);
  }
}

[[noreturn]] void refuse(const std::string& headline, const std::string& has, const std::string& needs) {
  throw Error({}, headline, {{has, {}}, {needs, {}}},
              "tune this program again: tang tune FILE -o FILE.tangsched");
}

// Every name of the schedule is a group's member, a shared subterm or a buffer, and its axes exist.
void check_names(const schedule::Schedule& s, const plan::Plan& p) {
  std::vector<std::pair<const ir::Graph*, const plan::Group*>> groups;
  groups_of(p, groups);
  for (auto& [name, f] : s.groups) {
    bool found =
        f.split.value_or(1) > 1; // a split fold has another key; refusals of the split are Errors by then
    std::string nearest;
    for (auto& [g, group] : groups) {
      auto named = [&, graph = g, wanted = name](ir::NodeId id) {
        if (nearest.empty()) nearest = schedule::key(*graph, id);
        return schedule::key(*graph, id) == wanted || graph->label({id, 0}) == wanted;
      };
      for (auto& m : group->members) {
        if (!named(m.node)) continue;
        found = true;
        const int axes = int(group->extent.size());
        for (auto* by : {&f.tile})
          for (auto& x : *by)
            if (x.first >= axes)
              refuse("the schedule gives a tile to axis " + std::to_string(x.first) + " of '" + name + "'",
                     "its group has " + std::to_string(axes) + " axes",
                     "the schedule says: " + text::fields(f));
        for (auto& [axis, role] : f.role)
          if (axis >= axes || group->role[size_t(axis)] != role)
            refuse("the schedule's role for axis " + std::to_string(axis) + " of '" + name +
                       "' does not apply",
                   axis >= axes ? "its group has " + std::to_string(axes) + " axes"
                                : "the planner refused it: " + (p.notes.empty() ? "no note" : p.notes.back()),
                   "the schedule says: " + text::fields(f));
      }
      for (auto& x : group->shared) found |= named(x.node);
      for (auto& x : group->epilogues) found |= named(x.node);
    }
    if (!found)
      refuse("the schedule names a group that the program does not have: '" + text::shown(name) + "'",
             "the program has " + std::to_string(groups.size()) + " groups, as '" + nearest + "'",
             "the schedule says: " + text::fields(f));
  }
}
} // namespace

std::string target_text(const target::Target& t) {
  return t.name + ", " + std::to_string(t.lanes) + " lanes, " + std::to_string(t.workers) + " workers";
}

std::string program_key(const ir::Graph& written, const run::Options& o, const device::Compiler& c) {
  return device::digest(std::string(tuning_version) + "\n" + hexadecimal(ir::hash(written)) + "\n" +
                        target_text(o.target) + "\n" + c.identity() +
                        (o.optimize ? "optimized" : "as written"));
}

schedule::Record record_of(const ir::Graph& written, const run::Derivation& d, const run::Options& o) {
  schedule::Record r;
  r.graph = ir::hash(written);
  r.target = target_text(o.target);
  r.kernels = int(d.kernels.kernels.size());
  r.digest = digest_of(d);
  r.schedule = o.schedule;
  return r;
}

run::Options restored(const schedule::Record& r, const ir::Graph& written, run::Options o, bool locked) {
  if (r.graph && r.graph != ir::hash(written))
    refuse("the schedule is for another graph", "this graph has the hash " + hexadecimal(ir::hash(written)),
           "the schedule was made for " + hexadecimal(r.graph));
  if (locked && r.target != target_text(o.target))
    refuse("the schedule is for another target", "this is " + target_text(o.target),
           "the schedule was made for " + (r.target.empty() ? "no target that it names" : r.target));
  o.schedule = r.schedule;
  run::Derivation d;
  try {
    d = run::derive(written, o);
  } catch (const Error& e) {
    std::vector<Note> facts = e.facts();
    for (auto& [name, f] : r.schedule.groups)
      if (facts.size() < 4)
        facts.push_back({"the schedule says of '" + text::shown(name) + "': " + text::fields(f), {}});
    throw Error(e.where(), e.headline(), facts, e.fix());
  }
  check_names(r.schedule, d.plan);
  if (locked && r.digest != digest_of(d))
    refuse("the schedule no longer gives the kernels that it was made with",
           "it gives " + std::to_string(d.kernels.kernels.size()) + " kernels, digest " + digest_of(d),
           "it was made with " + std::to_string(r.kernels) + ", digest " +
               (r.digest.empty() ? "none" : r.digest));
  return o;
}

std::optional<schedule::Record> recalled(const ir::Graph& written, const run::Options& o,
                                         const device::Compiler& c, Store& s) {
  const auto text = s.find("program", program_key(written, o, c));
  if (!text) return std::nullopt;
  const text::ScheduleReading r = text::read_schedule(*text, "tuning.db");
  if (!r.record) return std::nullopt;
  try {
    restored(*r.record, written, o, true);
    return *r.record;
  } catch (const Error&) { return std::nullopt; } // made by another tang, or the row is not for us
}

} // namespace tang::tune
