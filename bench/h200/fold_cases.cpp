// Folds along rows and their maps, compiled for an NVIDIA GPU without one: cubins and a manifest of launches that
// fold_peers.py runs and times beside torch. Usage: fold_cases FOLDER [operator ..].
#include <cstdio>
#include <fstream>

#include "tang.hpp"
#include "tang/emit/cuda.hpp"
#include "tang/models/norms.hpp"
#include "tang/models/softmax.hpp"
#include "tang/run/cuda.hpp"

using namespace tang;

namespace {
struct Case {
  std::string work;
  int64_t rows, columns;
};

ir::Graph graph(const Case& c) {
  ir::Builder b;
  const ir::Format f = ir::Format::bf16;
  const double n = double(c.columns);
  ir::Tensor x = b.input("x", {c.rows, c.columns}, f);
  auto [i, j] = ir::axes<"i j">();
  auto weight = [&](const char* name) { return b.param(name, {c.columns}, f); };
  if (c.work == "rms norm") b.output(models::rms_norm(x, weight("gain")), "y", f);
  if (c.work == "layer norm") b.output(models::layer_norm(x, weight("gain"), weight("bias")), "y", f);
  if (c.work == "softmax") b.output(models::softmax(x), "y", f);
  if (c.work == "log softmax") b.output(models::log_softmax(x), "y", f);
  if (c.work == "log-sum-exp") b.output(models::log_sum_exp(x), "y");
  if (c.work == "arg-max") b.output(ir::map({i}, ir::fold(ir::argmax(), j, {x(i, j), ir::iota(j)})[1]), "y");
  if (c.work == "variance") {
    const ir::Scalar mean = ir::sum(j, x(i, j)) / n;
    b.output(ir::map({i}, ir::sum(j, ir::square(x(i, j) - mean)) / (n - 1)), "y");
  }
  if (c.work == "cross entropy") b.output(models::cross_entropy(x, b.input("target", {c.rows}, ir::Format::i64)), "y");
  if (c.work == "top 8") {
    const auto s = ir::top(8, j, x(i, j));
    for (int r = 0; r < 8; ++r) {
      b.output(ir::map({i}, s.first[size_t(r)]), "value" + std::to_string(r));
      b.output(ir::map({i}, s.second[size_t(r)]), "index" + std::to_string(r));
    }
  }
  return b.graph();
}

std::string quoted(const std::string& s) { return "\"" + s + "\""; }

std::string shape_text(const std::vector<ir::Extent>& shape) {
  std::string out = "[";
  for (auto& e : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(e.value());
  return out + "]";
}

// One entry of the manifest: arrays by name, launches in order.
std::string entry(const Case& c, const run::Derivation& d, const std::string& cubin) {
  const plan::Plan& p = d.plan;
  const ir::Graph& g = *p.graph;
  std::map<ir::Port, std::string> names;
  std::string arrays, launches;
  auto array = [&](const std::string& name, const std::vector<ir::Extent>& shape, ir::Format f, bool output) {
    arrays += (arrays.empty() ? "" : ", ") + std::string("{\"name\": ") + quoted(name) + ", \"shape\": " + shape_text(shape) +
              ", \"format\": " + quoted(expr::row(f).name) + ", \"output\": " + (output ? "true" : "false") + "}";
  };
  for (ir::NodeId id = 0; id < g.nodes.size(); ++id)
    if (auto* in = g[id].input()) {
      names[{id, 0}] = g[id].name;
      array(g[id].name, in->shape, in->format, false);
    }
  for (auto& o : g.outputs)
    if (names.emplace(o.port, o.name).second) array(o.name, g.shape(o.port), lower::format_of(p, o.port), true);
  for (auto& l : d.kernels.kernels) {
    std::string args;
    for (auto& a : l.arguments) {
      args += args.empty() ? "" : ", ";
      if (const int* t = std::get_if<int>(&a.what)) {
        args += "{\"temporary\": " + std::to_string(*t) + "}";
        continue;
      }
      const ir::Port port = std::get<ir::Port>(a.what);
      const plan::Buffer* b = p.buffer(port);
      if (auto it = names.find(port); it != names.end()) args += "{\"array\": " + quoted(it->second) + "}";
      else args += "{\"arena\": " + std::to_string(b->offset) + "}";
    }
    launches += (launches.empty() ? "" : ", ") + std::string("{\"kernel\": ") + quoted(l.kernel.name) +
                ", \"blocks\": " + std::to_string(emit::cuda_blocks(l.kernel)) + ", \"lanes\": " + std::to_string(emit::cuda_lanes(l.kernel)) +
                ", \"shared\": " + std::to_string(emit::cuda_shared_bytes(l.kernel)) + ", \"arguments\": [" + args + "]}";
  }
  std::string temporaries;
  for (int64_t t : d.kernels.temporaries) temporaries += (temporaries.empty() ? "" : ", ") + std::to_string(t);
  return "{\"work\": " + quoted(c.work) + ", \"rows\": " + std::to_string(c.rows) + ", \"columns\": " + std::to_string(c.columns) +
         ", \"bytes\": " + std::to_string(p.bytes_moved()) + ", \"cubin\": " + quoted(cubin) + ", \"arena\": " +
         std::to_string(p.arena_bytes) + ", \"temporaries\": [" + temporaries + "], \"arrays\": [" + arrays + "], \"launches\": [" +
         launches + "]}";
}
} // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: fold_cases FOLDER [operator ..]\n"), 2;
  const std::string folder = argv[1];
  const std::pair<int64_t, int64_t> shapes[] = {{8192, 8192}, {65536, 576}, {4096, 4096}, {1000, 151936}, {262144, 64}, {33, 100003}};
  const char* const works[] = {"rms norm", "layer norm", "softmax", "log softmax", "log-sum-exp", "arg-max", "variance", "cross entropy", "top 8"};
  try {
    const auto compiler = device::CudaCompiler::open();
    std::string manifest;
    for (const std::string work : works) {
      bool wanted = argc == 2;
      for (int a = 2; a < argc; ++a) wanted |= work == argv[a];
      for (auto& [m, n] : shapes) {
        if (!wanted || (work == "top 8" && n != 8192)) continue;
        const Case c{work, m, n};
        const run::Derivation d = run::derive(graph(c), run::cuda_options());
        std::string file = work + " " + std::to_string(m) + "x" + std::to_string(n);
        std::replace(file.begin(), file.end(), ' ', '_');
        const std::string source = run::cuda_source(d);
        std::ofstream(folder + "/" + file + ".cu") << source;
        std::ofstream(folder + "/" + file + ".cubin", std::ios::binary) << compiler->compile(source, "sm_90a");
        manifest += (manifest.empty() ? "" : ",\n") + entry(c, d, file + ".cubin");
        std::printf("%-14s %7lld x %-7lld %zu kernels, %d lanes, %s\n", work.c_str(), static_cast<long long>(m), static_cast<long long>(n),
                    d.kernels.kernels.size(), d.kernels.kernels[0].kernel.lanes, d.kernels.kernels[0].schedule.c_str());
      }
    }
    std::ofstream(folder + "/manifest.json") << "[\n" << manifest << "\n]\n";
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    for (auto& f : e.facts()) std::fprintf(stderr, "  %s\n", f.text.c_str());
    return 1;
  }
}
