// A plan as canonical text.
#include "tang/plan/facts.hpp"

namespace tang::plan {

namespace {
const char* name(Role r) { return r == Role::grid ? "grid" : "looped"; }

const char* name(Flush f) {
  return f == Flush::store ? "store" : f == Flush::ordered ? "ordered" : "accumulate";
}

struct Printer {
  const Plan& p;
  std::string indent;
  std::string out = {};

  std::string node(NodeId id) const { return label(*p.graph, id) + "#" + std::to_string(id); }

  static std::string axes(const std::vector<int>& axis) {
    std::string s = " (";
    for (size_t a = 0; a < axis.size(); ++a)
      s += (a ? " " : "") + (axis[a] < 0 ? "." : std::to_string(axis[a]));
    return s + ")";
  }

  void line(const std::string& s) { out += indent + s + "\n"; }

  void step(size_t k) {
    const Step& s = p.steps[k];
    std::string head = std::to_string(k) + (s.again ? " again:" : ":");
    if (s.recur) {
      line(head + " recur " + node(*s.recur) + " " +
           std::to_string((*p.graph)[*s.recur].recur()->steps.value()) + " steps");
      Printer inner{*s.body, indent + "    "};
      inner.all();
      out += inner.out;
      return;
    }
    const Group& g = s.group;
    for (size_t a = 0; a < g.extent.size(); ++a)
      head += " " + std::to_string(g.extent[a]) + ":" + name(g.role[a]);
    line(head);
    for (auto& x : g.shared) line("   shared   " + node(x.node) + axes(x.axis));
    for (auto& m : g.members)
      line("   member   " + node(m.node) + axes(m.axis) + " " + name(m.flush) +
           (m.each_tile ? " each tile" : ""));
    for (auto& e : g.epilogues) line("   epilogue " + node(e.node) + axes(e.axis));
  }

  void buffer(const Buffer& b) {
    std::string s = "   " + node(b.of.node) + "." + std::to_string(b.of.port) + " [";
    for (size_t d = 0; d < b.shape.size(); ++d) s += (d ? ", " : "") + std::to_string(b.shape[d]);
    s += std::string("] ") + row(b.format).name + " " + std::to_string(b.first) + ".." +
         (b.again < 0 ? "" : std::to_string(b.away) + " " + std::to_string(b.again) + "..") +
         std::to_string(b.last);
    if (b.output) s += " output";
    if (b.overwrites)
      s += " over " + node(*b.overwrites) + (b.masked ? " where " + p.graph->pool.print(b.when) : "");
    if (b.offset >= 0) s += " at " + std::to_string(b.offset);
    line(s);
  }

  void all() {
    for (size_t k = 0; k < p.steps.size(); ++k) step(k);
    line("buffers, arena of " + std::to_string(p.arena_bytes) + " bytes");
    for (auto& b : p.buffers) buffer(b);
    for (auto& n : p.notes) line("note " + n);
  }
};
} // namespace

std::string print(const Plan& p) {
  Printer out{p, ""};
  out.all();
  return out.out;
}

} // namespace tang::plan
