// Weights as an artefact, and training from what the cache holds.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tang/tune/ranking.hpp"

namespace tang::tune {

using nlohmann::ordered_json;

namespace {
std::vector<std::string> names_of_cpu() {
  Machine any;
  any.levels = {{}};
  std::vector<std::string> out;
  for (auto& t : unweighted({}, any)) out.push_back(t.name);
  return out;
}

// Values by the names of terms, in their order; nothing when a name is missing or unknown.
std::optional<std::vector<double>> by_name(const ordered_json& j) {
  const auto names = names_of_cpu();
  if (!j.is_object() || j.size() != names.size()) return {};
  std::vector<double> out;
  for (auto& n : names) {
    if (!j.contains(n) || !j[n].is_number() || !(j[n].get<double>() >= 0)) return {};
    out.push_back(j[n]);
  }
  return out;
}
} // namespace

std::string as_json(const Ranking& r) {
  ordered_json doc{{"schema", "tang.ranking/1"},
                   {"device", r.device},
                   {"date", r.date},
                   {"groups", r.groups},
                   {"pairs", r.pairs},
                   {"regret_left_out", r.regret},
                   {"regret_before", r.regret_before}};
  const auto names = names_of_cpu();
  for (size_t k = 0; k < names.size(); ++k) doc["weights"][names[k]] = r.weights.at(k);
  return doc.dump(1);
}

Result<Ranking> ranking_of(const std::string& json) {
  const auto doc = ordered_json::parse(json, nullptr, false);
  if (!doc.is_object()) return Refusal{"no JSON"};
  try {
    if (doc.at("schema") != "tang.ranking/1") return Refusal{"another schema"};
    const auto weights = by_name(doc.at("weights"));
    if (!weights) return Refusal{"its weights are not those of this version's terms"};
    return Ranking{doc.at("device"),       doc.at("date"),  *weights,
                   doc.at("groups"),       doc.at("pairs"), doc.at("regret_left_out"),
                   doc.at("regret_before")};
  } catch (const ordered_json::exception& e) { return Refusal{e.what()}; }
}

std::string judged_terms(const Work& w, const Machine& m) {
  ordered_json j = ordered_json::object();
  for (auto& t : unweighted(w, m)) j[t.name] = t.seconds;
  return j.dump();
}

std::vector<JudgedGroup> judged_of(const std::vector<Row>& rows, const std::string& device) {
  std::map<std::string, JudgedGroup> groups; // by graph and group
  for (auto& r : rows) {
    if (r.key.rfind(device + " ", 0) != 0) continue;
    const auto j = ordered_json::parse(r.value, nullptr, false);
    if (!j.is_object() || !j.contains("graph") || !j.contains("group")) continue;
    const auto terms = by_name(j.value("terms", ordered_json()));
    const Sample t{j.value("median", 0.0), j.value("low", 0.0), j.value("high", 0.0), j.value("best", 0.0),
                   j.value("runs", 0)};
    if (!terms || !t.runs || !(t.median > 0)) continue;
    JudgedGroup& g = groups[j.value("graph", "") + " " + j.value("group", "")];
    g.graph = j.value("graph", "");
    g.all.push_back({*terms, t});
    if (j.value("automatic", false)) std::swap(g.all.front(), g.all.back());
  }
  std::vector<JudgedGroup> out;
  for (auto& [name, g] : groups) out.push_back(std::move(g));
  return out;
}

Result<Ranking> trained(const std::vector<JudgedGroup>& all, const std::string& device) {
  Groups groups;
  std::set<std::string> graphs;
  for (auto& g : all) groups.push_back(&g), graphs.insert(g.graph);
  Ranking r;
  r.device = device, r.date = today();
  r.groups = int64_t(groups.size()), r.pairs = pairs(groups);
  if (graphs.size() < 3 || !r.pairs)
    return Refusal{"the cache knows " + std::to_string(graphs.size()) + " graphs and " +
                   std::to_string(r.pairs) + " pairs of candidates whose times differ beyond doubt"};
  const Prior prior = prior_of_cpu();
  const Trainer train = [](const Groups& g, const Prior& p) { return pairwise(g, p); };
  const auto apart = held_out(groups, prior, train);
  double logs = 0, before = 0;
  for (size_t k = 0; k < groups.size(); ++k) {
    logs += std::log1p(regret(*groups[k], lowest(*groups[k], apart[k])));
    before += std::log1p(regret(*groups[k], lowest(*groups[k], prior.weights)));
  }
  r.regret = std::expm1(logs / double(groups.size()));
  r.regret_before = std::expm1(before / double(groups.size()));
  r.weights = train(groups, prior);
  return r;
}

} // namespace tang::tune
