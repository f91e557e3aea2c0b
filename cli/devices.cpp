// What there is to run on, with its limits.
#include <cstdio>

#include "tang/cli/json.hpp"
#include "tang/cli/tool.hpp"

namespace tang::cli {

namespace {
std::string field(const char* name, int64_t v) { return ",\"" + std::string(name) + "\":" + std::to_string(v); }

std::string limits_as_json(const target::Target& t) {
  std::string out = ",\"class\":\"" + std::string(t.values == target::Class::exact ? "exact" : "finite") + "\"";
  out += field("lanes", t.lanes) + field("workgroup", t.workgroup_limit) + field("workers", t.workers) +
         field("shared_bytes", t.fast_memory) + field("integers", t.index64 ? 64 : 32) + field("f64", t.f64);
  if (t.storage_bindings < 1 << 20) out += field("bindings", t.storage_bindings);
  if (t.binding_bytes < INT64_MAX) out += field("binding_bytes", t.binding_bytes);
  return out;
}

std::string limits_in_words(const target::Target& t) {
  std::string out = t.values == target::Class::exact ? "exact" : "finite";
  if (t.workgroup_limit > 1)
    out += ", workgroups of " + std::to_string(t.workgroup_limit) + " lanes, " + std::to_string(t.fast_memory >> 10) + " KiB shared";
  else
    out += ", " + std::to_string(t.lanes) + " f32 lanes, " + std::to_string(t.workers) + " threads";
  if (t.storage_bindings < 1 << 20) out += ", " + std::to_string(t.storage_bindings) + " memories a kernel";
  if (t.binding_bytes < INT64_MAX) out += " of " + std::to_string(t.binding_bytes >> 20) + " MiB";
  return out + (t.index64 ? "" : ", 32-bit integers") + (t.f64 ? "" : ", no f64");
}
} // namespace

run::Opened open_or_throw(const Common& c, const std::string& target) {
  auto r = run::open_target(target, target_options(c));
  if (!r) throw Error({}, "target " + target + " cannot be used here", {{r.why(), {}}}, "`tang devices` lists what can");
  return *r;
}

int devices(const Common& c) {
  std::string found, absent;
  for (auto& name : run::target_names()) {
    const auto r = run::open_target(name, target_options(c));
    if (c.json) {
      std::string& to = r ? found : absent;
      to += (to.empty() ? "" : ",") + std::string("{\"name\":") + quoted_json(name) +
            (r ? ",\"device\":" + quoted_json(r->description) + limits_as_json(r->target) : ",\"why\":" + quoted_json(r.why())) + "}";
    } else if (r) {
      std::printf("%-8s %s\n         %s\n", name.c_str(), r->description.c_str(), limits_in_words(r->target).c_str());
    } else {
      std::printf("%-8s not here: %s\n", name.c_str(), r.why().c_str());
    }
  }
  if (c.json) std::printf("{\"schema\":\"tang.devices/2\",\"devices\":[%s],\"absent\":[%s]}\n", found.c_str(), absent.c_str());
  return 0;
}

} // namespace tang::cli
