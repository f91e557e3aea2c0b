#include "tang/tune/machine.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tang::tune {

using nlohmann::ordered_json;

namespace {
ordered_json as_json(const Rate& r) { return {{"best", r.best}, {"typical", r.typical}}; }
} // namespace

std::string as_json(const Machine& m) {
  ordered_json doc{{"schema", "tang.probe/1"},
                   {"device", m.device},
                   {"compiler", m.compiler},
                   {"date", m.date},
                   {"workers", m.workers},
                   {"lanes", m.lanes},
                   {"fma_flop_s", as_json(m.fma)},
                   {"exp_s", as_json(m.exp)},
                   {"write_bytes_s", as_json(m.write)},
                   {"call_s", m.call},
                   {"launch_s", m.launch},
                   {"workgroup_s", m.workgroup}};
  for (auto& l : m.levels)
    doc["levels"].push_back({{"name", l.name}, {"bytes", l.bytes}, {"read_bytes_s", as_json(l.read)}});
  return doc.dump(1);
}

Result<Machine> machine_of(const std::string& json) {
  const auto doc = ordered_json::parse(json, nullptr, false);
  if (doc.is_discarded() || !doc.is_object()) return Refusal{"no JSON"};
  try {
    if (doc.at("schema") != "tang.probe/1") return Refusal{"another schema"};
    auto rate = [](const ordered_json& j) { return Rate{j.at("best"), j.at("typical")}; };
    Machine m;
    m.device = doc.at("device");
    m.compiler = doc.at("compiler");
    m.date = doc.at("date");
    m.workers = doc.at("workers");
    m.lanes = doc.at("lanes");
    m.fma = rate(doc.at("fma_flop_s"));
    m.exp = rate(doc.at("exp_s"));
    m.write = rate(doc.at("write_bytes_s"));
    m.call = doc.at("call_s");
    m.launch = doc.at("launch_s");
    m.workgroup = doc.at("workgroup_s");
    for (auto& l : doc.at("levels"))
      m.levels.push_back({l.at("name"), l.at("bytes"), rate(l.at("read_bytes_s"))});
    for (const Rate& r : {m.fma, m.exp, m.write})
      if (!(r.best > 0) || !(r.typical > 0)) return Refusal{"a rate that is not positive"};
    if (m.levels.empty()) return Refusal{"no level of memory"};
    return m;
  } catch (const ordered_json::exception& e) { return Refusal{e.what()}; }
}

} // namespace tang::tune
