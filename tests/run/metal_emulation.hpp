// MSL on a CPU: the unit is compiled as C++ against tests/device/metal and every lane is a fiber that yields at barriers.
// A barrier that some lanes reach and others pass by is an error.
#pragma once
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "tang/device/cpu.hpp"
#include "tang/device/tool.hpp"
#include "tang/target/target.hpp"

namespace tang::test {

class Fibers {
public:
  using Lane = void (*)(void* const* buffers, unsigned char* shared, unsigned lane, unsigned group, unsigned groups);

  static Fibers& all() {
    static Fibers f;
    return f;
  }

  // Runs one workgroup; false: a barrier was not reached by all lanes.
  bool run(Lane f, void* const* buffers, unsigned char* shared, unsigned lanes, unsigned group, unsigned groups) {
    while (fibers_.size() < lanes) fibers_.push_back({nullptr, new_stack(), true});
    f_ = f, buffers_ = buffers, shared_ = shared, group_ = group, groups_ = groups;
    for (now_ = 0; now_ < lanes; ++now_) {
      Fiber& x = fibers_[now_];
      void** top = reinterpret_cast<void**>(x.stack + stack_bytes);
      *--top = nullptr;
      *--top = reinterpret_cast<void*>(&Fibers::enter);
      for (int k = 0; k < 6; ++k) *--top = nullptr;
      x.at = top, x.done = false;
    }
    for (;;) {
      unsigned done = 0;
      for (now_ = 0; now_ < lanes; ++now_) {
        if (!fibers_[now_].done) tang_switch(&main_, fibers_[now_].at);
        done += fibers_[now_].done;
      }
      if (done == lanes) return true;
      if (done) return false;
    }
  }

  static void meet() {
    Fibers& f = all();
    tang_switch(&f.fibers_[f.now_].at, f.main_);
  }

private:
  static constexpr size_t stack_bytes = 64 << 10;

  struct Fiber {
    void* at;
    char* stack;
    bool done;
  };

  static char* new_stack() {
    return static_cast<char*>(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }

  static void enter() {
    Fibers& f = all();
    f.f_(f.buffers_, f.shared_, f.now_, f.group_, f.groups_);
    f.fibers_[f.now_].done = true;
    meet();
  }

  // Saves the registers that a call keeps, and the stack pointer in *from; goes on where `to` was saved.
  __attribute__((naked, noinline)) static void tang_switch(void** /*from*/, void* /*to*/) {
    asm volatile("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n mov %rsp, (%rdi)\n"
                 "mov %rsi, %rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret");
  }

  std::vector<Fiber> fibers_;
  void* main_ = nullptr;
  unsigned now_ = 0, group_ = 0, groups_ = 0;
  Lane f_ = nullptr;
  void* const* buffers_ = nullptr;
  unsigned char* shared_ = nullptr;
};

class EmulatedMetal : public device::Device {
public:
  static Result<std::shared_ptr<EmulatedMetal>> find(const std::vector<std::string>& search, const std::string& shims,
                                                     const std::string& effort = "-O1") {
#if !defined(__x86_64__)
    return Refusal{"the emulation switches lanes on x86-64 only"};
#endif
    device::ToolOptions o;
    o.search = search, o.names = {"c++", "g++", "clang++"}, o.in = ".cpp", o.out = ".so";
    o.arguments = {"-std=c++17", effort, "-shared", "-fPIC", "-w", "-ffp-contract=off", "-I" + shims, "-o", "@out", "@in"};
    auto tool = device::Tool::find(o);
    if (!tool) return Refusal{tool.why()};
    std::shared_ptr<EmulatedMetal> out(new EmulatedMetal);
    out->compiler_ = *tool;
    return out;
  }

  static target::Target target() {
    target::Facts f;
    f.workgroup = 256, f.shared_bytes = 32 << 10, f.bindings = 31, f.values = target::Class::finite, f.meets = true;
    return target::gpu_target("metal", f);
  }

  std::shared_ptr<device::Region> allocate(size_t bytes, bool guards) override {
    return std::make_shared<device::Buffer>(bytes, guards);
  }

  void copy(const device::Slice& to, const device::Slice& from) override {
    std::memcpy(to.region->as<char>() + to.offset, from.region->as<char>() + from.offset, from.bytes);
  }

  void wait() override {}

  std::shared_ptr<device::Code> compile(const device::Unit& unit) override {
    std::string text = unit.source;
    const std::string attribute = "[[threadgroup("; // its name is a qualifier's, which is a macro here
    for (size_t at = 0; (at = text.find(attribute, at)) != std::string::npos;) text.replace(at, attribute.size(), "[[tile(");
    std::map<std::string, bool> seen;
    for (auto& e : unit.entries)
      if (seen.emplace(e.name, true).second)
        text += "extern \"C\" __attribute__((visibility(\"default\"))) void " + e.name +
                "_lane(void* const* b, uchar* s, uint l, uint g, uint n) { tang_call(&" + e.name + ", b, s, l, g, n); }\n";
    const std::string bytes = compiler_->run({text}).at(0);
    static int loads = 0; // the loader takes a file of a known name for the library that is open
    const std::string path = "/tmp/tang-metal-" + std::to_string(getpid()) + "-" + std::to_string(loads++) + ".so";
    device::write_file(path, bytes, false);
    void* h = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    unlink(path.c_str());
    check(h, std::string("the emulated library loads: ") + (h ? "" : dlerror()));
    *static_cast<void (**)()>(dlsym(h, "tang_meet")) = &Fibers::meet;
    return std::make_shared<EmulatedCode>(h, unit.entries);
  }

private:
  struct EmulatedLaunch : device::Launch {
    Fibers::Lane f;
    device::Entry entry;
    std::vector<void*> buffers;
    std::vector<unsigned char> shared;

    void run() override {
      for (int64_t g = 0; g < entry.workgroups; ++g) {
        std::fill(shared.begin(), shared.end(), 0xff); // nothing of another workgroup is left
        if (!Fibers::all().run(f, buffers.data(), shared.data(), unsigned(entry.lanes), unsigned(g), unsigned(entry.workgroups)))
          throw Error({}, "a barrier of " + entry.name + " was not reached by all lanes", {}, "report this");
      }
    }
  };

  struct EmulatedCode : device::Code {
    void* library;
    std::vector<device::Entry> entries;

    EmulatedCode(void* h, std::vector<device::Entry> e) : library(h), entries(std::move(e)) {}

    ~EmulatedCode() override { dlclose(library); }

    std::unique_ptr<device::Launch> bind(size_t k, const std::vector<device::Slice>& arguments) override {
      auto out = std::make_unique<EmulatedLaunch>();
      out->entry = entries[k];
      out->f = reinterpret_cast<Fibers::Lane>(dlsym(library, (out->entry.name + "_lane").c_str()));
      check(out->f, "the library lacks " + out->entry.name);
      for (auto& a : arguments) out->buffers.push_back(a.region->as<char>() + a.offset);
      out->shared.resize(size_t(out->entry.local_bytes) + 16);
      return out;
    }
  };

  std::shared_ptr<device::Tool> compiler_;
};

} // namespace tang::test
