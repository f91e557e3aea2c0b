// gpt-nano-sort fine-tuned for ten steps: loss and every gradient of each step against torch in f64
// (nano_sort_reference.py), on the oracle; and the first steps on the C target.
#include <cstdint>
#include <fstream>

#include "models/weights.hpp"
#include "run/harness.hpp"
#include "tang/formats/json_tensors.hpp"
#include "tang/models/block.hpp"
#include "tang/models/optim.hpp"
#include "tang/models/softmax.hpp"
#include "tang/run/program.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

namespace {
struct Digits { // a linear congruence, the same as in the reference
  int64_t state = 1;

  int64_t operator()() { return ((state = (state * 1103515245 + 12345) % 2147483648) >> 16) % 3; }
};

// Six digits and the same sorted; what is asked for begins at the sixth place.
void batch(Digits& digit, Inputs& in) {
  std::vector<int64_t> x, y;
  for (int n = 0; n < 8; ++n) {
    std::vector<int64_t> d, sorted;
    for (int k = 0; k < 6; ++k) d.push_back(digit());
    sorted = d;
    std::sort(sorted.begin(), sorted.end());
    d.insert(d.end(), sorted.begin(), sorted.end());
    x.insert(x.end(), d.begin(), d.end() - 1);
    y.insert(y.end(), 5, -1);
    y.insert(y.end(), d.begin() + 6, d.end());
  }
  in["idx"] = eval::indices({8, 11}, x);
  in["target"] = eval::indices({8, 11}, y);
}

Graph training_step(const formats::TensorFile& file, Inputs& in) {
  Builder b;
  std::vector<Tensor> weights;
  auto weight = [&](const std::string& name) {
    in[name] = array_of(file, name);
    weights.push_back(b.state(name, extents(in[name])));
    return weights.back();
  };
  const Tensor idx = b.input("idx", {8, 11}, Format::i32), target = b.input("target", {8, 11}, Format::i32);
  auto [n, i, c] = axes<"n i c">();
  const Tensor wte = weight("transformer.wte.weight"), wpe = weight("transformer.wpe.weight");
  const Tensor tokens = embedding(wte, idx);
  Tensor x = map({n, i, c}, tokens(n, i, c) + wpe(i, c));
  GptSize z;
  z.model = 48;
  z.heads = 3;
  for (int layer = 0; layer < 3; ++layer) {
    const std::string h = "transformer.h." + std::to_string(layer) + ".";
    GptWeights w;
    w.norm1 = weight(h + "ln_1.weight"), w.norm1_bias = weight(h + "ln_1.bias");
    w.qkv = weight(h + "attn.c_attn.weight"), w.qkv_bias = weight(h + "attn.c_attn.bias");
    w.proj = weight(h + "attn.c_proj.weight"), w.proj_bias = weight(h + "attn.c_proj.bias");
    w.norm2 = weight(h + "ln_2.weight"), w.norm2_bias = weight(h + "ln_2.bias");
    w.fc = weight(h + "mlp.c_fc.weight"), w.fc_bias = weight(h + "mlp.c_fc.bias");
    w.out = weight(h + "mlp.c_proj.weight"), w.out_bias = weight(h + "mlp.c_proj.bias");
    x = gpt_block(x, w, z).y;
  }
  const Tensor last = layer_norm(x, weight("transformer.ln_f.weight"), weight("transformer.ln_f.bias"));
  const Tensor logits = linear(last, weight("lm_head.weight"));
  const Axis letter = axis("letter");
  const Scalar score = logits(n, i, letter), lse = attend(letter, score, 1.0).lse;
  const Scalar of = masked(Index(target(n, i)) >= 0, lse - logits(n, i, target(n, i)));
  const Tensor loss = map(std::vector<Axis>{}, sum({n, i}, of) / 48, "loss"); // 8 rows of 6 places
  const std::vector<Tensor> gradients = grad(loss, weights);
  Scalar norm = 0.0;
  for (auto& d : gradients) {
    const auto all = axes_of(d, "g");
    norm = norm + sum(Over(all), square(d.at(coords(all))));
  }
  b.output(loss, "loss");
  for (size_t k = 0; k < weights.size(); ++k) b.output(gradients[k], "d " + weights[k].name());
  b.output(map(std::vector<Axis>{}, sqrt(norm), "norm"), "norm");
  AdamW o;
  o.rate.peak = 5e-4;
  o.beta2 = 0.95;
  o.decay = 0.1;
  adamw(weights, gradients, o);
  for (auto& node : b.graph().nodes)
    if (auto* s = node.input(); s && s->kind == ir::Input::state && !in.count(node.name))
      in[node.name] = Array(eval::bound(s->shape), ir::type_of(s->format));
  return b.graph();
}

// As nano_sort_reference.py prints them.
struct Reference {
  double loss = 0, norm = 0;
  std::map<std::string, std::array<double, 3>> gradients = {}; // of each weight: norm, products with two probes
};

std::vector<Reference> reference() {
  std::ifstream in(TANG_SOURCE "/tests/grad/nano_sort_reference.txt");
  std::vector<Reference> out;
  for (std::string word; in >> word;) {
    if (word == "step") {
      int step = 0;
      out.emplace_back();
      in >> step >> out.back().loss >> out.back().norm;
    } else {
      auto& g = out.back().gradients[word];
      in >> g[0] >> g[1] >> g[2];
    }
  }
  return out;
}

double product(const Array& a, int64_t seed) {
  double s = 0;
  for (double v : a.r) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    s += v * (double(seed) / 1073741824 - 1);
  }
  return s;
}
} // namespace

// The loss, the norm of all gradients, and of each of the 41 weights' gradients the norm and two products with vectors
// that no other gradient has: within 1e-7 of the gradient's norm.
TEST(grad_training, nano_sort_loss_and_every_gradient_are_torchs_in_f64_for_ten_steps) {
  TANG_WEIGHTS(path, "gpt-nano-sort-model.json");
  const auto file = formats::read_json_tensors(formats::read_file(path));
  Inputs in;
  const Graph g = training_step(file, in);
  Digits digit;
  eval::Options two;
  two.threads = 2;
  const std::vector<Reference> want = reference();
  ASSERT_EQ(want.size(), 10u);
  for (size_t step = 0; step < 10; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    batch(digit, in);
    auto out = eval::run(g, in, two);
    EXPECT_NEAR(out["loss"].r[0], want[step].loss, 1e-9 * std::max(1e-4, want[step].loss));
    EXPECT_NEAR(out["norm"].r[0], want[step].norm, 1e-7 * want[step].norm);
    EXPECT_EQ(want[step].gradients.size(), 41u);
    for (auto& [name, g3] : want[step].gradients) {
      const Array& d = out.at("d " + name);
      double square = 0;
      for (double v : d.r) square += v * v;
      EXPECT_NEAR(std::sqrt(square), g3[0], 1e-7 * g3[0]) << name;
      for (int k : {1, 2}) EXPECT_NEAR(product(d, k), g3[size_t(k)], 1e-7 * g3[0]) << name << ", probe " << k;
    }
    for (auto& [name, a] : out)
      if (in.count(name)) in[name] = a;
  }
}

TEST(grad_training, nano_sort_on_c_updates_its_states_in_place) {
  TANG_WEIGHTS(path, "gpt-nano-sort-model.json");
  const auto file = formats::read_json_tensors(formats::read_file(path));
  Inputs in;
  const Graph g = training_step(file, in);
  run::Options o;
  run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(2), o);
  const std::vector<Reference> want = reference();
  Digits digit;
  batch(digit, in);
  fill(p, g, in);
  for (int step = 0; step < 4; ++step) {
    if (step) {
      batch(digit, in);
      for (auto* name : {"idx", "target"}) run::write(p.memory(name)->data(), Format::i32, in[name].i);
    }
    p.run();
    EXPECT_NEAR(p.data<float>("loss")[0], want[size_t(step)].loss, 2e-3 * want[size_t(step)].loss + 1e-6) << step;
    EXPECT_EQ(p.data<int32_t>("step")[0], step + 1);
  }
}

TEST(grad_training, one_step_of_each_optimizer) {
  // loss = sum w^2 / 2, so g = w. With w = (3, -4): norm 5.
  for (double clip : {0.0, 2.5}) {
    Builder b;
    const Tensor w = b.state("w", {2});
    const Axis i = axis("i");
    const Tensor loss = map(std::vector<Axis>{}, sum(i, 0.5 * w(i) * w(i)));
    AdamW o;
    o.rate = {0.1, 2, 0};
    o.clip = clip;
    adamw({w}, grad(loss, {w}), o);
    Inputs in{{"w", eval::reals({2}, {3, -4})}, {"step", eval::indices({}, {0})}, {"w.m", eval::reals({2}, {0, 0})}, {"w.v", eval::reals({2}, {0, 0})}};
    auto out = eval::run(b.graph(), in);
    // Rate 0.1 / 2 at step 0. m^ = g, v^ = g^2: the first move is rate (sign g + decay w).
    const double g[2] = {clip > 0 ? 1.5 : 3, clip > 0 ? -2.0 : -4};
    for (int k = 0; k < 2; ++k) {
      const double w0 = k ? -4 : 3;
      EXPECT_NEAR(out["w"].r[size_t(k)], w0 - 0.05 * ((k ? -1 : 1) + 0.01 * w0), 1e-8);
      EXPECT_NEAR(out["w.m"].r[size_t(k)], 0.1 * g[k], 1e-15);
      EXPECT_NEAR(out["w.v"].r[size_t(k)], 0.001 * g[k] * g[k], 1e-15);
    }
    EXPECT_EQ(out["step"].i[0], 1);
  }
  Builder b;
  const Tensor w = b.state("w", {2});
  const Axis i = axis("i");
  const Tensor loss = map(std::vector<Axis>{}, sum(i, 0.5 * w(i) * w(i)));
  Sgd o;
  o.rate = {0.5, 0, 4, 0.1};
  o.momentum = 0.9;
  b.output(sgd({w}, grad(loss, {w}), o), "rate");
  // Step 2 of 4: half of the cosine, 0.1 + 0.4 / 2 = 0.3. u = 0.9 * 1 + w; w = w - 0.3 u.
  auto out = eval::run(b.graph(), {{"w", eval::reals({2}, {3, -4})}, {"step", eval::indices({}, {2})}, {"w.u", eval::reals({2}, {1, 1})}});
  EXPECT_NEAR(out["rate"].r[0], 0.3, 1e-15);
  EXPECT_NEAR(out["w"].r[0], 3 - 0.3 * 3.9, 1e-14);
  EXPECT_NEAR(out["w"].r[1], -4 - 0.3 * -3.1, 1e-14);
}
