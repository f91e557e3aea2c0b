// `tang train`: a character model trained on a text. One graph a training step, one of the loss on held-out text and
// one a letter of the samples, which share the weights' memory.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tang/cli/tool.hpp"
#include "tang/models/decoder.hpp"
#include "tang/models/optim.hpp"
#include "tang/tune/picture.hpp"
#include "tang/tune/scaling.hpp"

namespace tang::cli {

using models::DecoderSize;
using models::DecoderWeights;

namespace {
// A text as numbers of its distinct bytes, in the order of their values.
struct Corpus {
  std::string letters;
  std::vector<int32_t> ids;
  size_t trained = 0; // the first nine tenths; the rest is held out

  Corpus(const std::string& text, const std::string& file, int64_t context) {
    bool seen[256] = {};
    for (unsigned char ch : text) seen[ch] = true;
    int number[256] = {};
    for (int ch = 0; ch < 256; ++ch)
      if (seen[ch]) number[ch] = int(letters.size()), letters += char(ch);
    for (unsigned char ch : text) ids.push_back(number[ch]);
    trained = ids.size() * 9 / 10;
    if (ids.size() - trained < size_t(context) + 1)
      throw Error({}, "'" + file + "' has " + std::to_string(text.size()) + " characters",
                  {{"a tenth is held out, and a sequence takes " + std::to_string(context + 1), {}}},
                  "train on a longer text, or with a shorter --context");
  }
};

// Numbers that depend on the seed alone (Steele, Lea and Flood 2014).
struct Random {
  uint64_t state;

  uint64_t operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  double unit() { return double((*this)() >> 11) * 0x1p-53; }
};

DecoderSize size_of(const TrainArguments& a, const Corpus& text) {
  if (a.model % (2 * a.heads))
    throw Error({}, std::to_string(a.heads) + " heads in a model of " + std::to_string(a.model), {},
                "--model is a multiple of twice --heads");
  DecoderSize s;
  s.block.model = a.model;
  s.block.heads = s.block.kv_heads = a.heads;
  s.block.head = a.model / a.heads;
  s.block.hidden = 3 * a.model;
  s.layers = a.layers;
  s.vocab = int64_t(text.letters.size());
  s.context = a.context;
  return s;
}

struct Sequences {
  Tensor ids, target;

  Sequences(Builder& b, int64_t batch, int64_t context)
      : ids(b.input("ids", {batch, context}, Format::i32)), target(b.input("target", {batch, context}, Format::i32)) {}
};

Graph step_graph(const TrainArguments& a, const DecoderSize& s, int64_t batch) {
  Builder b;
  const Sequences in(b, batch, a.context);
  const DecoderWeights w = models::decoder_weights(b, s, Format::f32, models::Weights::trained);
  const Tensor loss = models::next_token_loss(models::decode_sequences(in.ids, w, s), in.target);
  models::AdamW o;
  o.rate = {a.rate, a.steps / 20, a.steps, a.rate / 10};
  o.beta2 = 0.99, o.decay = 0.1, o.clip = a.clip;
  if (a.format == "f16") o.scaled = models::scaled(loss);
  const std::vector<Tensor> weights = models::every(w);
  models::adamw(weights, grad(a.format == "f16" ? o.scaled.loss : loss, weights), o);
  b.output(loss, "loss");
  return b.graph();
}

Graph loss_graph(const TrainArguments& a, const DecoderSize& s) {
  Builder b;
  const Sequences in(b, a.batch, a.context);
  b.output(models::next_token_loss(models::decode_sequences(in.ids, models::decoder_weights(b, s), s), in.target), "loss");
  return b.graph();
}

// Gains are 1; a matrix has deviation 1 / sqrt of what it sums over, less where it adds to the residual stream.
std::vector<double> first_values(const std::string& name, const std::vector<int64_t>& shape, int64_t layers, Random& r) {
  std::vector<double> v(size_t(eval::volume(shape)), 1.0);
  if (shape.size() < 2) return v;
  const bool adds = name.ends_with(".o") || name.ends_with(".down");
  const double bound = std::sqrt(3 / double(shape.back()) / (adds ? 2 * double(layers) : 1));
  for (double& x : v) x = double(float(bound * (2 * r.unit() - 1)));
  return v;
}

// Every input of a training step: weights by the seed, everything else 0.
eval::Inputs first_inputs(const Graph& g, int64_t layers, uint64_t seed) {
  eval::Inputs in;
  std::map<std::string, const ir::Input*> all; // by name: the order does not depend on the graph
  for (auto& n : g.nodes)
    if (n.input()) all[n.name] = n.input();
  for (auto& [name, x] : all) {
    const auto shape = eval::bound(x->shape);
    const bool moment = name.ends_with(".m") || name.ends_with(".v");
    const bool weight = !moment && (name.starts_with("blocks.") || name == "tokens" || name == "norm");
    Random r{seed += 0x632be59bd9b4e019u};
    in[name] = weight ? eval::reals(shape, first_values(name, shape, layers, r)) : eval::Array(shape, ir::type_of(x->format));
  }
  return in;
}

// `count` windows of the text from `from` on: at random places below `below`, or evenly spread.
struct Window {
  const Corpus& text;
  int64_t batch, context;

  void put(int32_t* ids, int32_t* target, const std::function<size_t()>& place) const {
    for (int64_t n = 0; n < batch; ++n) {
      const size_t at = place();
      for (int64_t i = 0; i < context; ++i) {
        *ids++ = text.ids[at + size_t(i)];
        *target++ = text.ids[at + size_t(i) + 1];
      }
    }
  }

  void training(int32_t* ids, int32_t* target, Random& r) const {
    put(ids, target, [&] { return size_t(r() % (text.trained - size_t(context))); });
  }

  // Batch k of `batches` of the held-out tenth.
  void held_out(int32_t* ids, int32_t* target, int64_t k, int64_t batches) const {
    const size_t room = text.ids.size() - text.trained - size_t(context);
    int64_t n = k * batch;
    put(ids, target, [&] { return text.trained + size_t(n++) * room / size_t(batches * batch); });
  }
};

struct Measured {
  int64_t step;
  double loss;
};

// The three programs of one run.
struct Trainer {
  const TrainArguments& a;
  const Corpus& text;
  const DecoderSize size;
  const Window window{text, a.batch, a.context};
  Host host;
  std::unique_ptr<run::Program> step = {}, loss = {}, letter = {};
  tune::ScaleChoice scale = {};
  std::vector<Measured> training = {}, held_out = {};
  double seconds = 0;

  void compile() {
    host.options.guards = false;
    run::Options o = host.options;
    o.schedule.memory = a.memory;
    const Graph g = step_graph(a, size, a.batch);
    const eval::Inputs in = first_inputs(g, size.layers, a.seed);
    if (a.format != "f32") o.schedule = narrow(g, o);
    step = std::make_unique<run::Program>(g, host.compiler, host.cpu, o);
    verify::feed(*step, g, in);
    if (a.format == "f16") *step->data<float>("loss.scale") = float(scale.scale);
    loss = std::make_unique<run::Program>(loss_graph(a, size), host.compiler, host.cpu, host.options);
    ir::Builder b;
    models::decode_step(b, models::decoder_weights(b, size), size);
    letter = std::make_unique<run::Program>(b.graph(), host.compiler, host.cpu, host.options);
    for (run::Program* p : {loss.get(), letter.get()})
      for (auto& n : p->derivation().plan.graph->nodes)
        if (auto* x = n.input(); x && x->kind == ir::Input::param) p->bind(n.name, step->memory(n.name));
  }

  // Narrow storage; with f16 the scale that the emulator predicts for one sequence, for a whole batch: what is
  // averaged over more sequences is as many times smaller.
  schedule::Schedule narrow(const Graph& g, const run::Options& o) {
    const ir::Format f = ir::format_named(a.format);
    if (a.format == "f16") {
      const Graph one = step_graph(a, size, 1);
      run::Options small = host.options;
      small.schedule = tune::narrowed(run::derive(one, small), small.schedule, f);
      eval::Inputs in = first_inputs(one, size.layers, a.seed);
      Random r{a.seed};
      std::vector<int32_t> ids(size_t(a.context)), target(ids);
      Window{text, 1, a.context}.training(ids.data(), target.data(), r);
      in["ids"] = eval::indices({1, a.context}, {ids.begin(), ids.end()});
      in["target"] = eval::indices({1, a.context}, {target.begin(), target.end()});
      scale = tune::choose_scale(run::derive(one, small), one, in, "loss.scale", 8, thread_count_of(host));
      scale.scale *= std::exp2(std::floor(std::log2(double(a.batch))));
    }
    return tune::narrowed(run::derive(g, o), o.schedule, f);
  }

  static int thread_count_of(const Host& h) { return h.options.target.workers; }

  double loss_on_held_out() {
    constexpr int64_t batches = 4;
    double total = 0;
    for (int64_t k = 0; k < batches; ++k) {
      window.held_out(loss->data<int32_t>("ids"), loss->data<int32_t>("target"), k, batches);
      loss->run();
      total += double(*loss->data<float>("loss"));
    }
    return total / double(batches);
  }

  void run() {
    Random r{a.seed};
    const int64_t often = std::max<int64_t>(1, a.steps / 20);
    held_out.push_back({0, loss_on_held_out()});
    for (int64_t n = 0; n < a.steps; ++n) {
      window.training(step->data<int32_t>("ids"), step->data<int32_t>("target"), r);
      const double t = device::Cpu::seconds();
      step->run();
      seconds += device::Cpu::seconds() - t;
      training.push_back({n + 1, double(*step->data<float>("loss"))});
      if ((n + 1) % often && n + 1 < a.steps) continue;
      held_out.push_back({n + 1, loss_on_held_out()});
      std::fprintf(stderr, "step %5lld  loss %.4f  held out %.4f  %.1f ms a step\n", static_cast<long long>(n + 1),
                   training.back().loss, held_out.back().loss, 1e3 * seconds / double(n + 1));
    }
  }

  std::string sample_text() {
    std::mt19937_64 rng(a.seed);
    for (auto& n : letter->derivation().plan.graph->nodes) // no caches of an earlier text
      if (auto* x = n.input(); x && x->kind == ir::Input::state)
        std::fill_n(letter->data<char>(n.name), size_t(letter->elements(n.name) * run::bytes_of(x->format)), 0);
    std::string out;
    for (int64_t at = 0; at < size.context && int(out.size()) < a.letters + int(a.prompt.size()); ++at) {
      if (out.size() <= size_t(at)) out += at < int64_t(a.prompt.size()) ? a.prompt[size_t(at)] : text.letters[0];
      const size_t ch = text.letters.find(out[size_t(at)]);
      if (ch == std::string::npos)
        throw Error({}, "the prompt has a character that the text has not: '" + out.substr(size_t(at), 1) + "'", {},
                    "choose another --prompt");
      *letter->data<int32_t>("token") = int32_t(ch);
      *letter->data<int32_t>("pos") = int32_t(at);
      letter->run();
      if (at + 1 < int64_t(a.prompt.size())) continue;
      out += text.letters[size_t(sample(letter->data<float>("logits"), size.vocab, false, rng))];
    }
    return out;
  }
};

// The process's largest resident set so far, in bytes; 0 where it is not known.
double most_resident() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return 1024 * std::stod(line.substr(6));
  return 0;
}

std::string as_csv(const Trainer& t) {
  std::string s = "step,training loss\n";
  char line[64];
  for (auto& m : t.training) {
    std::snprintf(line, sizeof line, "%lld,%.6f\n", static_cast<long long>(m.step), m.loss);
    s += line;
  }
  return s;
}

std::string as_svg(const Trainer& t, const std::string& title) {
  tune::Curve training{"training", {}}, held_out{"held out", {}};
  for (auto& m : t.training) training.points.push_back({double(m.step), m.loss});
  for (auto& m : t.held_out) held_out.points.push_back({double(m.step), m.loss});
  return tune::curves_svg(title, "step", "loss, nats a character", {training, held_out});
}

nlohmann::ordered_json as_json(const Trainer& t) {
  nlohmann::ordered_json losses = nlohmann::ordered_json::array(), held = losses;
  for (auto& m : t.training) losses.push_back(m.loss);
  for (auto& m : t.held_out) held.push_back({m.step, m.loss});
  const run::Derivation& d = t.step->derivation();
  int64_t again = 0, temporaries = 0;
  for (auto& s : d.plan.steps) again += s.again;
  for (int64_t b : d.kernels.temporaries) temporaries += b;
  return {{"losses", losses},
          {"held_out", held},
          {"seconds_a_step", t.seconds / double(t.training.size())},
          {"kernels", d.kernels.kernels.size()},
          {"arena_bytes", d.plan.arena_bytes},
          {"operand_copies_bytes", temporaries},
          {"computed_again", again},
          {"resident_bytes", most_resident()},
          {"scale", t.scale.scale}};
}
} // namespace

int train(const Common& c, const TrainArguments& a) {
  const Corpus text(read_text(a.text), a.text, a.context);
  Trainer t{a, text, size_of(a, text), {text, a.batch, a.context}, open_host(c)};
  t.compile();
  const size_t slash = a.text.rfind('/');
  const std::string name = a.text.substr(slash == std::string::npos ? 0 : slash + 1);
  int64_t parameters = 0;
  for (auto& n : t.loss->derivation().plan.graph->nodes)
    if (auto* x = n.input(); x && x->kind == ir::Input::param) parameters += t.loss->elements(n.name);
  std::fprintf(stderr, "%zu characters of %zu kinds, %lld parameters, a training step in %zu kernels\n", text.ids.size(),
               text.letters.size(), static_cast<long long>(parameters), t.step->derivation().kernels.kernels.size());
  for (auto& n : t.step->derivation().plan.notes)
    if (n.find("bytes of memory") != std::string::npos) std::fprintf(stderr, "%s\n", n.c_str());
  if (a.format == "f16")
    std::fprintf(stderr, "loss scale %g; of the scaled gradients %.2g%% vanish in f16 (unscaled %.2g%%)\n", t.scale.scale,
                 100 * t.scale.vanished, 100 * t.scale.vanished_unscaled);
  const std::string before = t.sample_text();
  t.run();
  const std::string after = t.sample_text();
  const nlohmann::ordered_json doc = as_json(t);
  if (!c.out.empty()) {
    write_text(c.out + "/training.csv", as_csv(t));
    write_text(c.out + "/training.svg", as_svg(t, name + ", " + std::to_string(parameters) + " parameters"));
  }
  if (c.json) {
    std::printf("%s\n", doc.dump(1).c_str());
    return 0;
  }
  std::printf("before:\n%s\n\nafter %lld steps:\n%s\n\n", before.c_str(), static_cast<long long>(a.steps), after.c_str());
  std::printf("loss %.4f -> %.4f, held out %.4f -> %.4f nats a character\n", t.training.front().loss, t.training.back().loss,
              t.held_out.front().loss, t.held_out.back().loss);
  std::printf("%.1f ms a step, %.1f s; values between kernels %.2f MB, operand copies %.2f MB, %lld steps computed again, "
              "process at most %.1f MB\n",
              1e3 * t.seconds / double(a.steps), t.seconds, double(doc["arena_bytes"]) / 1e6,
              double(doc["operand_copies_bytes"]) / 1e6, static_cast<long long>(doc["computed_again"]), most_resident() / 1e6);
  return 0;
}

} // namespace tang::cli
