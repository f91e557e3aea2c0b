#include "tang/tune/measured.hpp"

#include <map>
#include <nlohmann/json.hpp>

namespace tang::tune {

using nlohmann::ordered_json;

namespace {
// Calls f with the name and the field of everything that a file holds of a step's work.
template <class W, class F> void each(W& w, F f) {
  f("launches", w.launches), f("workgroups", w.workgroups), f("contracted", w.contracted);
  f("padded", w.padded), f("plain", w.plain), f("special", w.special), f("moved", w.moved);
  f("near", w.near), f("far", w.far), f("loads", w.loads), f("blocks", w.blocks);
  f("chained", w.chained), f("gathered", w.gathered), f("scattered", w.scattered), f("gathered_far", w.gathered_far);
  f("matrix", w.matrix), f("read", w.read);
  f("issued", w.issued), f("after", w.after), f("resident", w.resident), f("planned", w.planned);
}

ordered_json json_of(const Work& w) {
  ordered_json j;
  each(w, [&](const char* name, auto& field) { j[name] = field; });
  return j;
}

// Fields that the file lacks stay as they are.
void put(Work& w, const ordered_json& j) {
  each(w, [&](const char* name, auto& field) { field = j.value(name, field); });
}

Measured of_library(const ordered_json& r, const Machine& m) {
  Measured out;
  const std::string kind = r.at("kind");
  const auto shape = r.at("shape").get<std::vector<double>>();
  out.group = "torch: " + std::string(kind == "product" || kind == "attention" ? kind : "rows");
  out.problem = kind + " " + r.at("shape").dump() + " " + std::string(r.at("format"));
  out.time.best = r.at("best_us").get<double>() * 1e-6;
  out.time.median = r.at("median_us").get<double>() * 1e-6;
  Work w;
  w.launches = 1, w.workgroups = m.workers;
  const double width = r.at("format") == "f32" ? 4 : 2;
  if (kind == "product") {
    w.contracted = 2 * shape.at(0) * shape.at(1) * shape.at(2), w.matrix = w.contracted * width / 2;
    w.read = width * (shape[0] + shape[1]) * shape[2];
  } else if (kind == "attention") {
    const double n = shape.at(2), pairs = r.at("causal").get<bool>() ? n * (n + 1) / 2 : n * n;
    w.contracted = w.matrix = 4 * shape[0] * shape[1] * pairs * shape.at(3);
    w.read = 3 * width * shape[0] * shape[1] * n * shape[3];
  } else {
    w.read = width * shape.at(0) * shape.at(1) * (kind == "add" ? 2 : 1);
  }
  out.works = {w};
  return out;
}

Measured of_ours(const ordered_json& j) {
  Measured r{j.at("group"), j.at("problem"), j.at("schedule"), j.at("mode") == "cold", j.at("candidate"),
             {j.at("median"), j.at("low"), j.at("high"), j.at("best"), j.at("runs")}, j.at("error"), {}};
  for (auto& w : j.at("works")) {
    r.works.emplace_back();
    put(r.works.back(), w);
  }
  return r;
}

template <class T, class F> Result<T> from_text(const std::string& json, F f) {
  const auto doc = ordered_json::parse(json, nullptr, false);
  if (doc.is_discarded()) return Refusal{"no JSON"};
  try {
    return f(doc);
  } catch (const ordered_json::exception& e) { return Refusal{e.what()}; }
}
} // namespace

std::string as_json(const Work& w) { return json_of(w).dump(); }

Work work_in(const std::string& json) {
  Work w;
  if (const auto doc = ordered_json::parse(json, nullptr, false); doc.is_object()) put(w, doc);
  return w;
}

Result<std::vector<Measured>> measured_of(const std::string& json, const Machine& m) {
  return from_text<std::vector<Measured>>(json, [&](auto& doc) {
    std::vector<Measured> out;
    const std::string schema = doc.is_object() ? doc.value("schema", "") : "";
    if (schema == "tang.tune-peers/1")
      for (auto& r : doc.at("records")) out.push_back(of_library(r, m));
    if (schema == "tang.tune-cuda/1")
      for (auto& r : doc.at("rows")) out.push_back(of_ours(r));
    return out;
  });
}

Result<int> put_counts(std::vector<Measured>& rows, const std::string& json) {
  return from_text<int>(json, [&](auto& doc) {
    int put_in = 0;
    if (!doc.is_object() || doc.value("schema", "") != "tang.tune-counts/1") return put_in;
    std::map<std::vector<std::string>, const ordered_json*> known;
    for (auto& c : doc.at("counts")) known[{c.at("group"), c.at("problem"), c.at("schedule")}] = &c.at("works");
    for (auto& r : rows) {
      const auto it = known.find({r.group, r.problem, r.schedule});
      if (it == known.end() || it->second->size() != r.works.size()) continue;
      for (size_t s = 0; s < r.works.size(); ++s) put(r.works[s], (*it->second)[s]);
      ++put_in;
    }
    return put_in;
  });
}

Time floor(const Measured& r, const Machine& m) {
  Time sum;
  double largest = 0;
  for (size_t s = 0; s < r.works.size(); ++s) {
    const Time t = floor(r.works[s], m, r.cold && s == 0);
    if (t.seconds > largest) largest = t.seconds, sum.terms = t.terms;
    sum.seconds += t.seconds;
  }
  return sum;
}

} // namespace tang::tune
