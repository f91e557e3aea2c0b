#include "tang/cli/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tang/cli/json.hpp"

namespace tang::cli {

namespace {
std::string escaped(const std::string& s) {
  std::string out;
  for (char c : s) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string number(const char* format, double v) {
  char s[64];
  std::snprintf(s, sizeof s, format, v);
  return s;
}
} // namespace

std::string as_json(const Results& r) {
  std::vector<Json> programs;
  for (auto& p : r.programs) {
    std::vector<Json> kernels;
    for (auto& k : r.kernels)
      if (k.program == p.name)
        kernels.push_back(object({{"name", k.kernel},
                                  {"schedule", k.schedule},
                                  {"bytes", k.bytes},
                                  {"max_error", k.error},
                                  {"ok", k.ok},
                                  {"median_ns", k.time.median * 1e9},
                                  {"low_ns", k.time.low * 1e9},
                                  {"high_ns", k.time.high * 1e9},
                                  {"p99_ns", k.time.p99 * 1e9},
                                  {"runs", k.time.runs}}));
    const std::vector<Json> never_written(p.never_written.begin(), p.never_written.end());
    programs.push_back(object({{"name", p.name},
                               {"size", p.size},
                               {"naive_kernels", p.naive_kernels},
                               {"kernels_derived", p.kernels},
                               {"naive_bytes", p.naive_bytes},
                               {"bytes", p.bytes},
                               {"derive_seconds", p.derive_seconds},
                               {"never_written", array(never_written)},
                               {"flops", p.flops},
                               {"median_ns", p.time.median * 1e9},
                               {"naive_median_ns", p.naive.median * 1e9},
                               {"reference_ns", p.reference > 0 ? p.reference * 1e9 : HUGE_VAL}, // null: none
                               {"reference_products", p.products},
                               {"max_error", p.error},
                               {"ok", p.ok},
                               {"kernels", array(kernels)}}));
  }
  return object({{"schema", "tang.results/1"},
                 {"host", r.host},
                 {"reference", r.reference},
                 {"verified", r.verified},
                 {"failed", r.failed},
                 {"seconds", r.seconds},
                 {"programs", array(programs)}})
      .text;
}

std::string as_trace(const Results& r) {
  std::vector<Json> events;
  events.push_back(object({{"name", "process_name"}, {"ph", "M"}, {"pid", 2}, {"args", object({{"name", "kernels"}})}}));
  double at = 0;
  for (auto& k : r.kernels) {
    events.push_back(object({{"name", k.kernel},
                             {"cat", k.program},
                             {"ph", "X"},
                             {"pid", 2},
                             {"tid", 1},
                             {"ts", at},
                             {"dur", k.time.median * 1e6},
                             {"args", object({{"schedule", k.schedule}})}}));
    at += k.time.median * 1e6;
  }
  return object({{"traceEvents", array(events)}, {"displayTimeUnit", "ns"}}).text;
}

std::string as_html(const Results& r) {
  std::string h = "<!doctype html><meta charset=\"utf-8\"><title>tang demo</title><style>body{font:15px/1.5 "
                  "system-ui;margin:2rem auto;max-width:70rem;color:#222}"
                  "table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;border-bottom:1px "
                  "solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}"
                  "pre{background:#f6f6f4;padding:1rem;overflow:auto;font-size:12px}.bar{background:#3b6;"
                  "height:.7rem;display:inline-block}.old{background:#c96}</style>";
  h += "<h1>tang demo</h1><p>" + escaped(r.host) + ". " + std::to_string(r.verified) +
       " results verified against the f64 oracle, " + std::to_string(r.failed) + " failed, in " +
       number("%.1f s", r.seconds) + ".</p>";
  h += "<table><tr><th>program</th><th>kernels as written</th><th>derived</th><th>MB as written</th><th>MB "
       "derived</th><th>median</th><th>x as written</th><th>GFLOP/s</th><th>max error</th></tr>";
  for (auto& p : r.programs)
    h += "<tr><td>" + escaped(p.name) + " <small>" + p.size + "</small></td><td>" +
         std::to_string(p.naive_kernels) + "</td><td>" + std::to_string(p.kernels) + "</td><td>" +
         number("%.3f", p.naive_bytes / 1e6) + "</td><td>" + number("%.3f", p.bytes / 1e6) + "</td><td>" +
         number("%.3f ms", p.time.median * 1e3) + "</td><td>" +
         number("%.1f", p.naive.median / p.time.median) + "</td><td>" +
         number("%.1f", p.flops / p.time.median / 1e9) + "</td><td>" + number("%.1e", p.error) + "</td></tr>";
  h += "</table>";
  for (auto& p : r.programs) {
    const double most = std::max(p.naive.median, p.time.median);
    h += "<h2>" + escaped(p.name) + "</h2><p>as written <span class=\"bar old\" style=\"width:" +
         number("%.0f", 300 * p.naive.median / most) + "px\"></span> " +
         number("%.3f ms", p.naive.median * 1e3) +
         "<br>derived <span class=\"bar\" style=\"width:" + number("%.0f", 300 * p.time.median / most) +
         "px\"></span> " + number("%.3f ms", p.time.median * 1e3) +
         "</p><details><summary>derivation</summary><pre>" + escaped(p.derivation) + "</pre></details>";
    for (auto& k : r.kernels)
      if (k.program == p.name)
        h += "<details><summary>" + escaped(k.kernel) + " <small>" + escaped(k.schedule) +
             "</small></summary><pre>" + escaped(k.source) + "</pre></details>";
  }
  return h + "<p>Printed by <code>tang demo</code>.</p>";
}

} // namespace tang::cli
