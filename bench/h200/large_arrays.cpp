#include "large_arrays.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <random>

#include "tang/models/attention.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/softmax.hpp"
#include "tang/run/cuda.hpp"

namespace tang::bench {

namespace {
constexpr auto bf16 = ir::Format::bf16;
constexpr size_t period = 200003; // elements that an array repeats: a prime number, so that no wrapped offset finds its own

// `graph` of so many items, along the first axis of what is not `whole`; each item by itself.
struct Large {
  std::string name;
  int64_t items;
  std::function<ir::Graph(int64_t items)> graph;
  std::vector<std::string> whole;
};

std::vector<Large> larges() {
  return {{"map 2200000 x 1024", 2200000,
           [](int64_t m) {
             ir::Builder b;
             ir::Tensor x = b.input("x", {m, 1024}, bf16);
             auto [i, j] = ir::axes<"i j">();
             b.output(ir::map({i, j}, ir::gelu_tanh(x(i, j)) + x(i, j)), "y", bf16);
             return b.graph();
           },
           {}},
          {"softmax 270000 x 8192", 270000,
           [](int64_t m) {
             ir::Builder b;
             b.output(models::softmax(b.input("x", {m, 8192}, bf16)), "y", bf16);
             return b.graph();
           },
           {}},
          {"rms norm 21500 x 100003", 21500,
           [](int64_t m) {
             ir::Builder b;
             b.output(models::rms_norm(b.input("x", {m, 100003}, bf16), b.input("gain", {100003}, bf16)), "y", bf16);
             return b.graph();
           },
           {"gain"}},
          {"product 1100000 x 2048 x 2048", 1100000,
           [](int64_t m) {
             ir::Builder b;
             ir::Tensor x = b.input("x", {m, 2048}, bf16), w = b.input("w", {2048, 2048}, bf16);
             auto [i, j, k] = ir::axes<"i j k">();
             b.output(ir::map({i, j}, ir::sum(k, x(i, k) * w(j, k))), "y", bf16);
             return b.graph();
           },
           {"w"}},
          {"attention 2100 x 64 heads, 128 x 128, head 128", 2100,
           [](int64_t m) {
             ir::Builder b;
             ir::Tensor q = b.input("q", {m, 64, 128, 128}, bf16), k = b.input("k", {m, 64, 128, 128}, bf16),
                        v = b.input("v", {m, 64, 128, 128}, bf16);
             models::AttentionOptions o;
             o.mask = models::causal();
             b.output(models::attention(q, k, v, o).out, "y", bf16);
             return b.graph();
           },
           {}}};
}

class Check {
public:
  Check(const Large& l, device::CudaCompiler& compiler, const std::shared_ptr<device::Cuda>& gpu)
      : l_(l), g_(l.graph(l.items)), p_(g_, compiler, gpu, options()) {}

  // Largest difference over largest value on some items; infinite where an element was not written or a guard was.
  double error() {
    for (auto& n : g_.nodes)
      if (n.input()) fill(n.name);
    const auto y = p_.memory("y");
    y->poison();
    p_.run(), p_.run();
    roles_ = 0;
    for (auto& k : p_.derivation().kernels.kernels) roles_ += k.roles.has_value();
    if (unwritten(*y) || !p_.trespass().empty()) return INFINITY;
    return against_oracle(*y);
  }

  int64_t elements() const { return p_.elements("y"); }

  int roles() const { return roles_; } // kernels whose warpgroups have roles

private:
  static run::Options options() {
    run::Options o = run::hopper_options();
    o.guards = true;
    return o;
  }

  static uint16_t half(double v) {
    return uint16_t(std::bit_cast<uint32_t>(float(ir::rounded(v, bf16))) >> 16);
  }

  static double real(uint16_t h) {
    return double(std::bit_cast<float>(uint32_t(h) << 16));
  }

  void fill(const std::string& name) {
    std::mt19937_64 rng(17 + uint64_t(name[0]));
    std::normal_distribution<double> normal;
    std::vector<uint16_t>& small = blocks_[name];
    small.resize(period);
    for (auto& v : small) v = half(normal(rng));
    std::vector<uint16_t> many;
    for (int n = 0; n < 128; ++n) many.insert(many.end(), small.begin(), small.end());
    const auto memory = p_.memory(name);
    const size_t bytes = size_t(p_.elements(name)) * 2, step = many.size() * 2;
    for (size_t at = 0; at < bytes; at += step) memory->write(at, many.data(), std::min(step, bytes - at));
  }

  int64_t unwritten(const device::Region& y) const {
    std::vector<uint16_t> part(size_t(1) << 27);
    const size_t bytes = size_t(elements()) * 2;
    int64_t n = 0;
    for (size_t at = 0; at < bytes; at += part.size() * 2) {
      const size_t some = std::min(part.size(), (bytes - at) / 2);
      y.read(part.data(), at, some * 2);
      n += std::count(part.begin(), part.begin() + long(some), uint16_t(0xffff));
    }
    return n;
  }

  double against_oracle(const device::Region& y) const {
    std::mt19937_64 rng(5);
    std::vector<int64_t> items{0, l_.items - 1, int64_t((uint64_t(1) << 31) / uint64_t(elements() / l_.items))};
    while (items.size() < 8) items.push_back(int64_t(rng() % uint64_t(l_.items)));
    const ir::Graph g = l_.graph(int64_t(items.size()));
    eval::Inputs in;
    for (auto& n : g.nodes)
      if (auto* x = n.input()) {
        eval::Array a(eval::bound(x->shape), expr::Type::real);
        const bool whole = std::count(l_.whole.begin(), l_.whole.end(), n.name);
        const int64_t each = a.size() / (whole ? 1 : int64_t(items.size()));
        for (int64_t e = 0; e < a.size(); ++e)
          a.r[size_t(e)] = real(blocks_.at(n.name)[size_t((whole ? e : items[size_t(e / each)] * each + e % each) % int64_t(period))]);
        in[n.name] = std::move(a);
      }
    const eval::Array want = eval::run(g, in).at("y");
    const int64_t each = want.size() / int64_t(items.size());
    double worst = 0, largest = 0;
    std::vector<uint16_t> got(static_cast<size_t>(each));
    for (size_t s = 0; s < items.size(); ++s) {
      y.read(got.data(), size_t(items[s] * each) * 2, got.size() * 2);
      for (int64_t e = 0; e < each; ++e) {
        const double w = want.r[s * size_t(each) + size_t(e)], off = std::abs(real(got[size_t(e)]) - w);
        worst = std::max(worst, off == off ? off : INFINITY), largest = std::max(largest, std::abs(w));
      }
    }
    return worst / largest;
  }

  const Large& l_;
  const ir::Graph g_;
  run::CudaProgram p_;
  std::map<std::string, std::vector<uint16_t>> blocks_; // what each input repeats
  int roles_ = 0;
};
} // namespace

void verify_large(device::CudaCompiler& compiler, const std::shared_ptr<device::Cuda>& gpu,
                  const std::function<void(const std::string&)>& say, int& passed, int& failed) {
  constexpr int64_t needed = int64_t(24) << 30; // bytes: four arrays of attention
  constexpr double allowed = 8e-3;              // bf16's rounding, and that of weights
  if (gpu->memory() < needed)
    return say("arrays of more than 2^31 elements: not present: " + std::to_string(needed >> 30) + " GiB of device memory (here " +
               std::to_string(gpu->memory() >> 30) + ")");
  for (auto& l : larges()) {
    Check c(l, compiler, gpu);
    const double error = c.error();
    char text[200];
    std::snprintf(text, sizeof text, "%-48s %lld elements, %d kernels of roles, error %.2e of %.0e %s", l.name.c_str(),
                  static_cast<long long>(c.elements()), c.roles(), error, allowed, error <= allowed ? "ok" : "FAILED");
    say(text);
    ++(error <= allowed ? passed : failed);
  }
}

} // namespace tang::bench
