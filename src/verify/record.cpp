#include "tang/verify/record.hpp"

#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

#include "tang/base/hash.hpp"
#include "tang/base/number.hpp"

namespace tang::verify {

namespace {
constexpr const char* title = "tangrun 1";

double number_of(const expr::Value& v) { return v.type == expr::Type::real ? v.r : double(v.i); }

std::vector<double> numbers(const eval::Array& a, const eval::Array& present) {
  std::vector<double> out;
  for (int64_t k = 0; k < a.size(); ++k)
    out.push_back(present.at(k).state == expr::State::present ? number_of(a.at(k)) : NAN);
  return out;
}

std::string exact(double v) {
  char out[40];
  std::snprintf(out, sizeof out, "%a", v);
  return out;
}

bool same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

std::string place(const std::vector<int64_t>& shape, int64_t at) {
  std::string out;
  for (size_t d = shape.size(); d-- > 0; at /= std::max<int64_t>(1, shape[d]))
    out = std::to_string(at % std::max<int64_t>(1, shape[d])) + (out.empty() ? "" : ", " + out);
  return "[" + out + "]";
}

std::optional<Difference> difference(const Stored& a, const Stored& b) {
  Difference d;
  double scale = 0;
  for (size_t k = 0; k < a.got.size(); ++k) {
    if (std::isnan(a.want[k]) && std::isnan(b.want[k])) continue;
    if (std::isfinite(a.want[k])) scale = std::max(scale, std::fabs(a.want[k]));
    if (same(a.got[k], b.got[k])) continue;
    const double gap = std::fabs(a.got[k] - b.got[k]), here = gap < HUGE_VAL ? gap : HUGE_VAL;
    if (!d.differ++ || here > d.gap) d.at = int64_t(k), d.gap = here;
  }
  if (!d.differ) return {};
  if (scale > 0) d.gap /= scale;
  return d;
}

[[noreturn]] void no_recording(const std::string& name, const std::string& why) {
  throw Error({}, "'" + name + "' is no recording of a run", {{why, {}}},
              "make one with tang verify FILE --record");
}
} // namespace

std::string name_of(const ir::Graph& g, uint64_t seed) {
  uint64_t h = ir::hash(g);
  for (auto& o : g.outputs) h = combine(h, combine(hash_of(o.name), uint64_t(o.format)));
  char out[60];
  std::snprintf(out, sizeof out, "graph %016llx, seed %llu", static_cast<unsigned long long>(h),
                static_cast<unsigned long long>(seed));
  return out;
}

Seen recorder(Recording& r) {
  return [&r](const Check& c, const eval::Array& got, const eval::Array& want) {
    r.all.push_back({c.what, c.schedule, c.error, c.ok, got.shape, numbers(got, want), numbers(want, want)});
  };
}

std::string print(const Recording& r) {
  std::string out = std::string(title) + "\n" + r.graph + "\n" + r.target + "\n";
  for (auto& s : r.all) {
    out += "array " + s.what + "\n" + s.schedule + "\n" + exact(s.error) + (s.ok ? " ok" : " failed");
    for (int64_t e : s.shape) out += " " + std::to_string(e);
    out += "\n";
    for (size_t k = 0; k < s.got.size(); ++k) out += exact(s.got[k]) + " " + exact(s.want[k]) + "\n";
  }
  return out;
}

Recording recording(const std::string& all, const std::string& name) {
  std::istringstream in(all);
  std::string line, verdict;
  Recording r;
  if (!std::getline(in, line) || line != title)
    no_recording(name, std::string("it does not begin with '") + title + "'");
  std::getline(in, r.graph), std::getline(in, r.target);
  while (std::getline(in, line)) {
    Stored s;
    if (line.rfind("array ", 0))
      no_recording(name, "a line is '" + line.substr(0, 40) + "' where an array begins");
    s.what = line.substr(6);
    std::getline(in, s.schedule), std::getline(in, line);
    std::istringstream head(line);
    std::string error;
    head >> error >> verdict;
    s.error = std::strtod(error.c_str(), nullptr), s.ok = verdict == "ok";
    int64_t n = 1;
    for (int64_t e; head >> e; n *= e) s.shape.push_back(e);
    for (int64_t k = 0; k < n; ++k) {
      std::string got, want;
      if (!std::getline(in, line) || !(std::istringstream(line) >> got >> want))
        no_recording(name, "'" + s.what + "' ends after " + std::to_string(k) + " of " + std::to_string(n) +
                               " elements");
      s.got.push_back(std::strtod(got.c_str(), nullptr)),
          s.want.push_back(std::strtod(want.c_str(), nullptr));
    }
    r.all.push_back(std::move(s));
  }
  return r;
}

Comparison compare(const Recording& a, const Recording& b, double budget) {
  if (a.graph != b.graph)
    throw Error({}, "two runs of different graphs or inputs",
                {{a.graph + " on " + a.target, {}}, {b.graph + " on " + b.target, {}}},
                "record both with one file and one seed");
  std::multimap<std::string, size_t> by_label;
  for (size_t k = 0; k < b.all.size(); ++k) by_label.emplace(b.all[k].what, k);
  Comparison out;
  for (size_t k = 0; k < a.all.size(); ++k) {
    auto [it, end] = by_label.equal_range(a.all[k].what);
    while (it != end && (b.all[it->second].shape != a.all[k].shape ||
                         b.all[it->second].schedule.empty() != a.all[k].schedule.empty()))
      ++it;
    if (it == end) continue;
    ++out.common;
    auto d = difference(a.all[k], b.all[it->second]);
    if (d) d->a = k, d->b = it->second;
    by_label.erase(it);
    out.equal += !d;
    if (!d) continue;
    if (!out.first) out.first = d;
    if (!out.beyond && d->gap > budget) out.beyond = d;
  }
  return out;
}

std::string text(const Comparison& c, const Recording& a, const Recording& b, double budget) {
  auto said = [&](const std::string& what, const std::optional<Difference>& d) {
    if (!d) return what + ": none\n";
    const Stored &x = a.all[d->a], &y = b.all[d->b];
    const size_t k = size_t(d->at);
    auto one = [&](const char* name, const Stored& s) {
      return "  " + std::string(name) + " " + shortest(s.got[k]) + ", f64 " + shortest(s.want[k]) +
             ", error " + shortest(s.error) + (s.ok ? ", within its budget" : ", beyond its budget") +
             (s.schedule.empty() ? "" : ", " + s.schedule) + "\n";
    };
    return what + ": " + (x.schedule.empty() ? "output " : "kernel ") + x.what + ", " +
           std::to_string(d->differ) + " of " + std::to_string(x.got.size()) + " values, by " +
           shortest(d->gap) + " of the largest at " + place(x.shape, d->at) + "\n" + one("A", x) +
           one("B", y);
  };
  return "A: " + a.target + ", " + std::to_string(a.all.size()) + " arrays; B: " + b.target + ", " +
         std::to_string(b.all.size()) + "\n" + std::to_string(c.common) + " stored by both, " +
         std::to_string(c.equal) + " equal\n" + said("first difference", c.first) +
         said("first beyond " + shortest(budget), c.beyond);
}

} // namespace tang::verify
