#include "tang/kernel/merge.hpp"

#include <functional>

#include "tang/base/match.hpp"

namespace tang::kernel {

namespace {
void each_ref(Block& b, const std::function<void(Ref&)>& f) {
  auto all = [&](std::vector<Ref>& refs) {
    for (auto& r : refs) f(r);
  };
  for (auto& s : b)
    std::visit(Match{[&](Apply& x) { all(x.dst), all(x.body.refs); }, [&](Fold& x) { all(x.dst), all(x.body.refs); },
                     [&](Contract& x) { f(x.dst), f(x.a), f(x.b); },
                     [&](Let& x) {
                       if (x.kind == Let::load) f(x.ref);
                     },
                     [&](Loop& x) { each_ref(x.body, f); }, [&](If& x) { each_ref(x.then, f); },
                     [&](Pipeline& x) { each_ref(x.operands, f), each_ref(x.body, f); }, [](Barrier&) {}},
               s.node);
}

// Global `drop` goes; its refs, already rewritten, name `keep`.
void take_out(Kernel& k, int keep, int drop) {
  k.memories.erase(k.memories.begin() + drop);
  each_ref(k.body, [&](Ref& r) {
    if (r.memory == drop)
      r.memory = keep;
    else if (r.memory > drop)
      --r.memory;
  });
}
} // namespace

Result<Kernel> merged(const Kernel& k, int keep, int drop) {
  Kernel out = k;
  Memory &a = out.memories[size_t(keep)], &b = out.memories[size_t(drop)];
  check(keep < drop && a.home == Home::global && b.home == Home::global, "two arguments, in order");
  if (a.format != b.format || a.shape != b.shape || a.strides != b.strides)
    return Refusal{a.name + " and " + b.name + " share a place and are laid out differently"};
  if (a.access != b.access) a.access = Access::read_write;
  take_out(out, keep, drop);
  return out;
}

bool checks(const Kernel& k, int memory) {
  bool any = false;
  Block copy = k.body;
  each_ref(copy, [&](Ref& r) { any |= r.memory == memory && r.checked; });
  return any;
}

Kernel joined(const Kernel& k, const std::vector<Part>& parts, int64_t size) {
  Kernel out = k;
  const int keep = parts[0].memory;
  for (auto& p : parts) {
    const Memory m = k.memories[size_t(p.memory)];
    check(m.home == Home::global && m.format == k.memories[size_t(keep)].format && p.memory >= keep &&
              p.at >= 0 && p.at + m.size() <= size,
          "parts are globals of one format, the first one first");
    each_ref(out.body, [&](Ref& r) {
      if (r.memory != p.memory) return;
      check(!r.checked, "a checked ref has no flat coordinate");
      Coordinate flat{constant(p.at), {}};
      for (size_t d = 0; d < r.index.size(); ++d) {
        flat.affine = flat.affine + m.strides[d] * r.index[d].affine;
        for (auto& [ref, times] : r.index[d].refs) flat.refs.emplace_back(ref, times * m.strides[d]);
      }
      r.index = {std::move(flat)};
    });
    if (p.memory != keep && m.access != out.memories[size_t(keep)].access)
      out.memories[size_t(keep)].access = Access::read_write;
  }
  out.memories[size_t(keep)].shape = {size}, out.memories[size_t(keep)].strides = {1};
  for (size_t n = parts.size(); n-- > 1;) take_out(out, keep, parts[n].memory);
  return out;
}

} // namespace tang::kernel
