#include "tang/bound/report.hpp"

#include "tang/base/json.hpp"
#include "tang/base/number.hpp"

namespace tang::bound {

namespace {
std::string grouped(int64_t v) {
  std::string s = std::to_string(v);
  for (int k = int(s.size()) - 3; k > (v < 0 ? 1 : 0); k -= 3) s.insert(size_t(k), ",");
  return s;
}

std::string padded(const std::string& s, size_t n) {
  return s.size() < n ? s + std::string(n - s.size(), ' ') : s;
}

std::string right(const std::string& s, size_t n) {
  return s.size() < n ? std::string(n - s.size(), ' ') + s : s;
}

std::string cover(const Bound& b, const Term& t) {
  std::string out;
  for (size_t j = 0; j < t.s.size(); ++j)
    if (t.s[j].sign()) out += (out.empty() ? "" : " ") + b.nest.arrays[j].name + ":" + t.s[j].text();
  for (size_t i = 0; i < t.t.size(); ++i)
    if (t.t[i].sign() && b.nest.extents[i] > 1) out += " " + b.nest.axes[i] + ":" + t.t[i].text();
  return out;
}

std::string form(const Certificate& c, const Form& f) {
  std::string out;
  for (size_t k = 0; k < f.size(); ++k) {
    if (!f[k].sign()) continue;
    const std::string q = f[k].text();
    const std::string what = k ? "log " + std::to_string(c.atoms.values()[k]) : "";
    const std::string term = what.empty() ? q : q == "1" ? what : q == "-1" ? "-" + what : q + " " + what;
    out += out.empty() || term[0] == '-' ? term : "+" + term;
  }
  return out.empty() ? "0" : out;
}

std::string term_json(const Bound& b, const std::optional<Term>& t, Model m) {
  if (!t) return "null";
  std::string s, x;
  for (auto& v : t->s) s += (s.empty() ? "\"" : ",\"") + v.text() + "\"";
  for (auto& v : t->t) x += (x.empty() ? "\"" : ",\"") + v.text() + "\"";
  return "{\"s\":[" + s + "],\"t\":[" + x + "],\"leading\":" + std::to_string(t->leading) +
         ",\"correction\":" + std::to_string(t->correction) + ",\"bound\":" + std::to_string(b.value(m)) +
         "}";
}
} // namespace

std::vector<Line> bounds_of(const ir::Graph& g, int64_t memory, Unit unit) {
  std::vector<Line> out;
  auto add = [&](ir::NodeId id, const char* kind, const Result<Nest>& n) {
    out.push_back({g.label({id, 0}), kind, n ? bound(*n, memory) : Result<Bound>(Refusal{n.why()})});
  };
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id) {
    if (!g[id].comp()) continue;
    add(id, "as written", nest_of(g, id, unit));
    auto chained = chained_nest_of(g, id, unit);
    if (chained) add(id, "chained", chained);
  }
  return out;
}

std::string as_text(const std::vector<Line>& lines, int64_t memory, Unit unit) {
  const char* units = unit == Unit::bytes ? "bytes" : "words";
  std::string out =
      "traffic bounds with " + grouped(memory) + " " + units + " of fast memory, in " + units + "\n";
  out += padded("kernel", 20) + right("points", 16) + right("compulsory", 16) + right("leading", 16) +
         right("- correction", 14) + right("chain", 16) + right("any order", 16) + "  cover\n";
  for (auto& l : lines) {
    out += padded(l.kernel.substr(0, 19), 20);
    if (!l.bound) {
      out += "  no bound: " + l.bound.why() + "\n";
      continue;
    }
    const Bound& b = *l.bound;
    out += right(grouped(b.points), 16) + right(grouped(b.compulsory), 16);
    out += b.chain ? right(grouped(b.chain->leading), 16) + right(grouped(b.chain->correction), 14)
                   : std::string(30, ' ');
    out += right(grouped(b.value(Model::chain)), 16) + right(grouped(b.value(Model::any)), 16) + "  " +
           (b.chain ? cover(b, *b.chain) : "") + (l.kind == "chained" ? "  (chain evaluated inside)" : "") +
           "\n";
    if (!b.certificate.x.empty()) {
      std::string tile;
      for (size_t h = 0; h < b.certificate.x.size(); ++h)
        if (!is_zero(b.certificate.x[h])) {
          if (!tile.empty()) tile += ", ";
          tile += b.certificate.conditions[h].text + " " + form(b.certificate, b.certificate.x[h]);
        }
      const std::string bad = failure(b.certificate);
      out += "    tile exponents (log M = 1): " + (tile.empty() ? "none" : tile) +
             (bad.empty() ? "; certificate holds" : "; certificate FAILS: " + bad) + "\n";
    }
    for (auto& n : b.notes) out += "    note: " + n + "\n";
  }
  return out + "chain: accumulators are loaded before they are updated, folds are not split; a kernel that "
               "starts its accumulators for\n"
               "nothing may move one load of each output less. any order: every schedule, splits and "
               "recomputation included.\n";
}

std::string as_json(const std::vector<Line>& lines, int64_t memory, Unit unit) {
  std::string out = "{\"schema\":\"tang.bound/1\",\"unit\":\"" +
                    std::string(unit == Unit::bytes ? "bytes" : "words") +
                    "\",\"memory\":" + std::to_string(memory) + ",\"kernels\":[";
  for (size_t k = 0; k < lines.size(); ++k) {
    const Line& l = lines[k];
    out += (k ? "," : "") + std::string("{\"kernel\":") + quoted_json(l.kernel) + ",\"kind\":" + quoted_json(l.kind);
    if (!l.bound) {
      out += ",\"refused\":" + quoted_json(l.bound.why()) + "}";
      continue;
    }
    const Bound& b = *l.bound;
    out += ",\"points\":" + std::to_string(b.points) + ",\"compulsory\":" + std::to_string(b.compulsory) +
           ",\"arrays\":[";
    for (size_t j = 0; j < b.nest.arrays.size(); ++j)
      out += (j ? "," : "") + std::string("{\"name\":") + quoted_json(b.nest.arrays[j].name) +
             ",\"weight\":" + std::to_string(b.nest.arrays[j].weight) + "}";
    out += "],\"loops\":[";
    for (size_t i = 0; i < b.nest.axes.size(); ++i) out += (i ? "," : "") + std::to_string(b.nest.extents[i]);
    out += "],\"chain\":" + term_json(b, b.chain, Model::chain) +
           ",\"any\":" + term_json(b, b.any, Model::any) +
           ",\"vertices\":" + std::to_string(b.vertices.size()) +
           ",\"unsplit\":" + std::to_string(b.unsplit()) + ",\"certificate\":" +
           (b.certificate.x.empty()          ? "null"
            : failure(b.certificate).empty() ? "true"
                                             : "false") +
           ",\"notes\":[";
    for (size_t i = 0; i < b.notes.size(); ++i) out += (i ? "," : "") + quoted_json(b.notes[i]);
    out += "]}";
  }
  return out + "]}\n";
}

} // namespace tang::bound
