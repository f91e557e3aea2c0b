// Compiles kernels with a C compiler of this machine and runs them on guarded, poisoned buffers.
#pragma once
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "../kernel/samples.hpp"
#include "tang/device/compiler.hpp"
#include "tang/device/cpu.hpp"
#include "tang/emit/c.hpp"

namespace machine {

using namespace tang;

inline device::Compiler& compiler(const std::string& name = "gcc") {
  static std::map<std::string, std::unique_ptr<device::Compiler>> all;
  auto& c = all[name];
  if (!c) {
    device::CompilerOptions o;
    o.search = {"/usr/local/bin", "/usr/bin", "/bin"};
    o.names = {name};
    if (name == "clang") o.flags = {"-O1"}; // bits do not depend on the optimizer
    c = std::make_unique<device::Compiler>(o);
  }
  return *c;
}

inline double decode(kernel::Format f, const void* p, size_t i) {
  switch (f) {
  case kernel::Format::f64: return static_cast<const double*>(p)[i];
  case kernel::Format::f32: return static_cast<const float*>(p)[i];
  case kernel::Format::f16: {
    const uint16_t h = static_cast<const uint16_t*>(p)[i];
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24);
    return h >> 15 ? -v : v;
  }
  case kernel::Format::bf16: {
    const uint32_t u = uint32_t(static_cast<const uint16_t*>(p)[i]) << 16;
    float x;
    std::memcpy(&x, &u, 4);
    return x;
  }
  default: throw std::logic_error("decode");
  }
}

inline void encode(kernel::Format f, void* p, size_t i, double v) {
  if (f == kernel::Format::f64) static_cast<double*>(p)[i] = v;
  if (f == kernel::Format::f32) static_cast<float*>(p)[i] = float(v);
  if (f == kernel::Format::bf16) {
    const float x = float(expr::rounded(v, f));
    uint32_t u;
    std::memcpy(&u, &x, 4);
    static_cast<uint16_t*>(p)[i] = uint16_t(u >> 16);
  }
  if (f == kernel::Format::f16) {
    const double a = std::fabs(expr::rounded(v, f));
    uint16_t h = 0x7e00;
    int e = 0;
    if (std::isinf(a))
      h = 0x7c00;
    else if (a == 0)
      h = 0;
    else if (!std::isnan(a)) {
      std::frexp(a, &e);
      h = e - 1 < -14 ? uint16_t(std::ldexp(a, 24))
                      : uint16_t((e + 14) << 10 | (int(std::ldexp(a, 11 - e)) & 1023));
    }
    static_cast<uint16_t*>(p)[i] = uint16_t(h | (std::signbit(v) ? 0x8000 : 0));
  }
}

inline int64_t whole(kernel::Format f, const void* p, size_t i) {
  switch (f) {
  case kernel::Format::i64: return static_cast<const int64_t*>(p)[i];
  case kernel::Format::i32: return static_cast<const int32_t*>(p)[i];
  case kernel::Format::u32: return static_cast<const uint32_t*>(p)[i];
  case kernel::Format::boolean: return static_cast<const uint8_t*>(p)[i];
  default: throw std::logic_error("whole");
  }
}

inline void set_whole(kernel::Format f, void* p, size_t i, int64_t v) {
  if (f == kernel::Format::i64) static_cast<int64_t*>(p)[i] = v;
  if (f == kernel::Format::i32) static_cast<int32_t*>(p)[i] = int32_t(v);
  if (f == kernel::Format::u32) static_cast<uint32_t*>(p)[i] = uint32_t(v);
  if (f == kernel::Format::boolean) static_cast<uint8_t*>(p)[i] = v != 0;
}

struct Run {
  std::vector<kernel::Buffer> buffers;
  std::string trespass; // a memory whose guard band was written
  std::string source;
};

inline std::vector<const kernel::Memory*> globals(const kernel::Kernel& k) {
  std::vector<const kernel::Memory*> out;
  for (auto& m : k.memories)
    if (m.home == kernel::Home::global) out.push_back(&m);
  return out;
}

// Runs compiled code on copies of the buffers: workgroups in two calls, the later half first; scratch is
// poisoned.
inline Run launch(const kernel::Kernel& k, const device::Library& lib,
                  const std::vector<kernel::Buffer>& in) {
  auto f = lib.function<device::KernelFunction>(k.name);
  if (!f) throw std::logic_error("no symbol " + k.name);
  const auto mem = globals(k);
  std::vector<device::Buffer> bytes;
  std::vector<void*> args;
  for (size_t b = 0; b < mem.size(); ++b) {
    const auto& row = expr::row(mem[b]->format);
    const size_t n = row.type == expr::Type::real ? in[b].r.size() : in[b].i.size();
    bytes.emplace_back(n * size_t(row.bits) / 8, true);
    for (size_t i = 0; i < n; ++i)
      if (row.type == expr::Type::real)
        encode(mem[b]->format, bytes.back().data(), i, in[b].r[i]);
      else
        set_whole(mem[b]->format, bytes.back().data(), i, in[b].i[i]);
    args.push_back(bytes.back().data());
  }
  device::Buffer scratch(size_t(emit::scratch_bytes(k)), true);
  scratch.poison();
  const int64_t n = kernel::workgroups(k), half = n / 2;
  f(args.data(), half, n, scratch.data());
  f(args.data(), 0, half, scratch.data());
  Run out;
  if (scratch.trespass()) out.trespass = "scratch";
  for (size_t b = 0; b < mem.size(); ++b) {
    if (auto at = bytes[b].trespass()) out.trespass += mem[b]->name + " at byte " + std::to_string(*at);
    kernel::Buffer r;
    for (size_t i = 0; i < in[b].r.size(); ++i) r.r.push_back(decode(mem[b]->format, bytes[b].data(), i));
    for (size_t i = 0; i < in[b].i.size(); ++i) r.i.push_back(whole(mem[b]->format, bytes[b].data(), i));
    out.buffers.push_back(std::move(r));
  }
  return out;
}

// One unit for many kernels: each gets a name of its own.
struct Batch {
  std::vector<kernel::Kernel> kernels;
  std::shared_ptr<device::Library> library;
};

inline void name_all(std::vector<kernel::Kernel*> kernels, const std::string& stem) {
  for (size_t i = 0; i < kernels.size(); ++i) kernels[i]->name = stem + std::to_string(i);
}

inline std::shared_ptr<device::Library> build(const std::vector<kernel::Kernel*>& kernels,
                                              const emit::COptions& o = {}, const std::string& with = "gcc",
                                              std::string* source = nullptr) {
  const std::string text = emit::c_unit({kernels.begin(), kernels.end()}, o);
  if (source) *source = text;
  if (const char* dump = std::getenv("TANG_DUMP")) {
    if (FILE* f = std::fopen((std::string(dump) + "/" + kernels[0]->name + ".c").c_str(), "w"))
      std::fputs(text.c_str(), f), std::fclose(f);
  }
  return compiler(with).compile(text);
}

inline bool same_bits(const std::vector<kernel::Buffer>& a, const std::vector<kernel::Buffer>& b) {
  for (size_t m = 0; m < a.size(); ++m) {
    for (size_t i = 0; i < a[m].r.size(); ++i)
      if (std::memcmp(&a[m].r[i], &b[m].r[i], 8) && !(std::isnan(a[m].r[i]) && std::isnan(b[m].r[i])))
        return false;
    if (a[m].i != b[m].i) return false;
  }
  return true;
}

} // namespace machine
