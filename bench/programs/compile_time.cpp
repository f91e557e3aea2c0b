// What compiling costs: the passes alone, and a program whose kernels are already on disk.
#include "bench.hpp"
#include "tang/models/decoder.hpp"

namespace bench {

void compile_time(Bench& b) {
  auto add = [&](const std::string& name, double most, int rounds, const std::function<std::string()>& f) {
    Row r;
    r.section = "compile", r.name = name, r.threads = b.threads;
    for (int n = 0; n < (b.quick ? 2 : rounds); ++n) {
      const double t = device::Cpu::seconds();
      r.schedule = f();
      r.ours.t.push_back(device::Cpu::seconds() - t);
    }
    r.most_seconds = most;
    b.add(std::move(r));
  };
  auto kernels = [](const run::Derivation& d) { return std::to_string(d.kernels.kernels.size()) + " kernels, " + std::to_string(d.trace.steps.size()) + " rewrites"; };
  ir::Builder block;
  models::BlockSize size;
  size.naive = true;
  block.output(models::block(block.input("x", {1, 256, size.model}), models::block_weights(block, "l0", size), size), "y");
  const ir::Graph one = block.graph();
  add("passes, transformer block", 0.020, 15, [&] { return kernels(run::derive(one, b.options())); });

  ir::Builder decoder;
  models::DecoderSize s;
  s.layers = 36;
  models::decode_step(decoder, models::decoder_weights(decoder, s), s);
  const ir::Graph many = decoder.graph();
  add("passes, 36-layer decode step", 1, 5, [&] { return kernels(run::derive(many, b.options())); });

  b.program(one);  // its kernels are in the cache from here on
  add("start of a cached program, block", 0.050, 15, [&] {
    device::CompilerOptions o;
    o.search = {"/usr/local/bin", "/usr/bin", "/bin"};
    o.cache = b.cache;
    auto fresh = std::make_shared<device::Compiler>(o);
    run::Program p(one, fresh, b.cpu, b.options());
    return kernels(p.derivation()) + ", " + std::to_string(fresh->runs()) + " compiler runs";
  });
}

}  // namespace bench
