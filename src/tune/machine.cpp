#include "tang/tune/machine.hpp"

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

namespace tang::tune {

using nlohmann::ordered_json;

namespace {
ordered_json as_json(const Rate& r) { return {{"best", r.best}, {"typical", r.typical}}; }

ordered_json as_json(const Start& s) {
  return {{"empty_s", s.empty}, {"near_s", s.near}, {"cold_s", s.cold}};
}
} // namespace

std::string as_json(const Machine& m) {
  ordered_json doc{{"schema", "tang.probe/1"},
                   {"device", m.device},
                   {"compiler", m.compiler},
                   {"driver", m.driver},
                   {"date", m.date},
                   {"margin", m.margin},
                   {"workers", m.workers},
                   {"lanes", m.lanes},
                   {"fma_flop_s", as_json(m.fma)},
                   {"exp_s", as_json(m.exp)},
                   {"write_bytes_s", as_json(m.write)},
                   {"call_s", m.call},
                   {"launch_s", m.launch},
                   {"workgroup_s", m.workgroup},
                   {"chain_s", m.chain}};
  for (auto& l : m.levels)
    doc["levels"].push_back({{"name", l.name},
                             {"bytes", l.bytes},
                             {"read_bytes_s", as_json(l.read)},
                             {"kept", l.kept},
                             {"latency_s", l.latency}});
  if (m.matrix.best > 0) {
    doc["matrix_flop_s"] = as_json(m.matrix);
    doc["one_workgroup"] = as_json(m.one), doc["one_a_worker"] = as_json(m.every);
    doc["all_shared_memory"] = as_json(m.full);
    doc["some_workgroups"] = ordered_json::array();
    for (auto& [n, start] : m.some)
      doc["some_workgroups"].push_back(as_json(start)), doc["some_workgroups"].back()["workgroups"] = n;
    doc["begin_early_s"] = m.begin_early, doc["ingress_bytes_s"] = m.ingress;
    doc["clock_hz"] = m.clock, doc["schedulers"] = m.schedulers;
    doc["in_flight"] = ordered_json::array();
    for (auto& f : m.in_flight) doc["in_flight"].push_back({{"bytes", f.bytes}, {"read_bytes_s", f.rate}});
  }
  return doc.dump(1);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char s[32];
  std::tm utc = {};
  gmtime_r(&now, &utc);
  std::strftime(s, sizeof s, "%Y-%m-%d %H:%M", &utc);
  return s;
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
    m.margin = doc.value("margin", m.margin);
    m.workers = doc.at("workers");
    m.lanes = doc.at("lanes");
    m.fma = rate(doc.at("fma_flop_s"));
    m.exp = rate(doc.at("exp_s"));
    m.write = rate(doc.at("write_bytes_s"));
    m.call = doc.at("call_s");
    m.launch = doc.at("launch_s");
    m.workgroup = doc.at("workgroup_s");
    m.chain = doc.value("chain_s", 0.0);
    m.driver = doc.value("driver", "");
    for (auto& l : doc.at("levels"))
      m.levels.push_back({l.at("name"), l.at("bytes"), rate(l.at("read_bytes_s")), l.value("kept", true),
                          l.value("latency_s", 0.0)});
    if (doc.contains("matrix_flop_s")) {
      m.matrix = rate(doc["matrix_flop_s"]);
      auto start = [](const ordered_json& j) {
        return Start{j.at("empty_s"), j.at("near_s"), j.at("cold_s")};
      };
      m.one = start(doc.at("one_workgroup")), m.every = start(doc.at("one_a_worker"));
      m.full = start(doc.at("all_shared_memory")), m.begin_early = doc.at("begin_early_s");
      for (auto& x : doc.value("some_workgroups", ordered_json::array()))
        m.some.emplace_back(x.at("workgroups"), start(x));
      m.ingress = doc.at("ingress_bytes_s");
      m.clock = doc.value("clock_hz", 0.0), m.schedulers = doc.value("schedulers", 0);
      for (auto& f : doc.at("in_flight")) m.in_flight.push_back({f.at("bytes"), f.at("read_bytes_s")});
    }
    for (const Rate& r : {m.fma, m.exp, m.write})
      if (!(r.best > 0) || !(r.typical > 0)) return Refusal{"a rate that is not positive"};
    if (m.levels.empty()) return Refusal{"no level of memory"};
    return m;
  } catch (const ordered_json::exception& e) { return Refusal{e.what()}; }
}

} // namespace tang::tune
