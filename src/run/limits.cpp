#include "tang/run/limits.hpp"

#include <algorithm>
#include <set>

#include "tang/kernel/merge.hpp"
#include "tang/run/program.hpp"

namespace tang::run {

void merge_places(const plan::Plan& p, lower::Lowered& l) {
  const auto differ = lower::name_once(l, [&](const lower::Argument& a) {
    auto* port = std::get_if<ir::Port>(&a.what);
    const plan::Buffer* b = port ? p.buffer(*port) : nullptr;
    return b && b->overwrites ? ir::Port{*b->overwrites, 0} : a.what;
  });
  if (differ) throw Error({}, "the kernel cannot run on this target", {{differ->why, {}}}, "choose another target");
}

void pool_temporaries(lower::Program& p) {
  struct Place {
    int pool;
    int64_t at;
  };
  std::map<int, Place> places;
  std::map<ir::Format, int> pools;
  std::map<int, int64_t> elements; // of a pool
  auto temporary = [](const lower::Argument& a) {
    auto* n = std::get_if<int>(&a.what);
    return n ? *n : -1;
  };
  std::set<int> apart; // read with a test of every coordinate
  for (auto& l : p.loops) apart.insert(l.time);
  for (auto& l : p.kernels)
    for (size_t k = 0; k < l.arguments.size(); ++k)
      if (kernel::checks(l.kernel, int(k))) apart.insert(temporary(l.arguments[k]));
  for (auto& l : p.kernels)
    for (size_t k = 0; k < l.arguments.size(); ++k) {
      const int n = temporary(l.arguments[k]);
      if (n < 0 || apart.count(n) || places.count(n)) continue;
      const ir::Format f = l.kernel.memories[k].format;
      auto [pool, fresh] = pools.try_emplace(f, int(p.temporaries.size()));
      if (fresh) p.temporaries.push_back(0);
      places[n] = {pool->second, elements[pool->second]};
      const int64_t unit = std::max<int64_t>(1, 16 / bytes_of(f));
      elements[pool->second] += (p.temporaries[size_t(n)] / bytes_of(f) + unit) / unit * unit;
    }
  for (auto& [f, n] : pools) p.temporaries[size_t(n)] = elements[n] * bytes_of(f);
  for (auto& l : p.kernels)
    for (auto& [f, pool] : pools) {
      std::vector<kernel::Part> parts;
      for (size_t k = 0; k < l.arguments.size(); ++k)
        if (auto it = places.find(temporary(l.arguments[k])); it != places.end() && it->second.pool == pool)
          parts.push_back({int(k), it->second.at});
      if (parts.empty()) continue;
      l.kernel = kernel::joined(l.kernel, parts, elements[pool]);
      for (size_t n = parts.size(); n-- > 1;) {
        l.arguments[size_t(parts[0].memory)].written |= l.arguments[size_t(parts[n].memory)].written;
        l.arguments.erase(l.arguments.begin() + parts[n].memory);
      }
      l.arguments[size_t(parts[0].memory)].what = pool;
    }
  for (auto& [n, place] : places) p.temporaries[size_t(n)] = 0;
}

bool store_shared(const plan::Plan& p, const plan::Step& step, schedule::Schedule& s) {
  bool more = false;
  for (auto& x : step.group.shared) {
    const auto* told = schedule::fields_of(s, *p.graph, x.node);
    schedule::GroupFields f = told ? *told : schedule::GroupFields();
    more |= !f.is_stored();
    f.stored = true;
    s.groups[schedule::key(*p.graph, x.node)] = f;
  }
  if (step.body)
    for (auto& inner : step.body->steps) more |= store_shared(*step.body, inner, s);
  return more;
}

void refuse_wide_inputs(const ir::Graph& g, const target::Target& t) {
  for (auto& n : g.nodes)
    if (auto* in = n.input(); in && in->format == ir::Format::i64)
      throw Error(n.where, "input '" + n.name + "' holds 64-bit integers", {{"target " + t.name + " has integers of 32 bits", {}}},
                  "declare it as i32");
}

} // namespace tang::run
