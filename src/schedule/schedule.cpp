#include "tang/schedule/schedule.hpp"

#include <cstdio>

namespace tang::schedule {

Schedule as_written() {
  Schedule s;
  s.share_contractions = false;
  s.epilogues = false;
  return s;
}

std::string key(const ir::Graph& g, ir::NodeId id) {
  char head[12];
  std::snprintf(head, sizeof head, "%08x", unsigned(g[id].hash >> 32));
  return (g[id].name.empty() ? "value" : g[id].name) + "@" + head;
}

const GroupFields* fields_of(const Schedule& s, const ir::Graph& g, ir::NodeId id) {
  if (s.groups.empty()) return nullptr;
  auto it = s.groups.find(key(g, id));
  if (it == s.groups.end()) it = s.groups.find(g.label({id, 0}));
  return it == s.groups.end() ? nullptr : &it->second;
}

} // namespace tang::schedule
