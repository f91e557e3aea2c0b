// What a training step holds at once, with everything kept and with what is computed again; and that nothing of
// its values depends on it.
#include "grad/training_step.hpp"

using namespace tang;
using namespace tang::test;

namespace {
int64_t planned(const run::Derivation& d) { return d.plan.arena_bytes; }

int again(const run::Derivation& d) {
  int n = 0;
  for (auto& s : d.plan.steps) n += s.again;
  return n;
}

// Every output after `steps` steps from the same start, as bytes.
std::map<std::string, std::vector<char>> after(const Graph& g, const Inputs& in, const run::Options& o, int steps) {
  run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(1), o);
  Inputs given = in;
  fill(p, g, given);
  p.poison_scratch();
  for (int k = 0; k < steps; ++k) p.run();
  std::map<std::string, std::vector<char>> out;
  for (auto& x : g.outputs) {
    auto& bytes = out[x.name];
    bytes.resize(size_t(p.elements(x.name) * run::bytes_of(p.format(x.name))));
    p.read(x.name, bytes.data());
  }
  EXPECT_TRUE(p.trespass().empty());
  return out;
}
} // namespace

// Six layers, 8 sequences of 64 characters: what the forward pass keeps for the backward pass grows with the
// layers, unless it is computed again from the blocks' inputs.
TEST(grad_memory, a_layers_values_are_computed_again) {
  const Graph g = character_step({.layers = 6, .batch = 8, .context = 64});
  run::Options o;
  const run::Derivation all = run::derive(g, o);
  o.schedule.memory = 1; // as little as can be
  const run::Derivation least = run::derive(g, o);
  EXPECT_EQ(again(all), 0);
  EXPECT_GT(again(least), 0);
  RecordProperty("all kept, bytes", std::to_string(planned(all)));
  RecordProperty("least, bytes", std::to_string(planned(least)));
  std::printf("all kept: %.2f MB in %zu steps; least: %.2f MB in %zu steps, %d of them again\n", double(planned(all)) / 1e6,
              all.plan.steps.size(), double(planned(least)) / 1e6, least.plan.steps.size(), again(least));
  // What a layer adds is at most half as much.
  const int64_t one = planned(run::derive(character_step({.layers = 1, .batch = 8, .context = 64}), {}));
  EXPECT_LT(planned(least) - one, (planned(all) - one) / 2);
}

TEST(grad_memory, a_limit_is_kept_or_said) {
  const Graph g = character_step({.layers = 3, .batch = 2, .context = 16});
  run::Options o;
  const int64_t all = planned(run::derive(g, o));
  o.schedule.memory = all * 3 / 4;
  const run::Derivation d = run::derive(g, o);
  EXPECT_LE(planned(d), all * 3 / 4);
  o.schedule.memory = 1;
  std::string notes;
  for (auto& n : run::derive(g, o).plan.notes) notes += n + "\n";
  EXPECT_NE(notes.find("refused: 1 bytes of memory"), std::string::npos) << notes;
}

TEST(grad_memory, values_are_bit_equal) {
  const CharacterStep z{.layers = 3, .batch = 2, .context = 16};
  const Graph g = character_step(z);
  const Inputs in = first_inputs(g, z);
  run::Options o;
  o.guards = true;
  const auto kept = after(g, in, o, 3);
  o.schedule.memory = 1;
  ASSERT_GT(again(run::derive(g, o)), 0);
  EXPECT_EQ(after(g, in, o, 3), kept);
}

// Each kernel, those that run again among them, against the oracle.
TEST(grad_memory, every_kernel_that_runs_again_is_verified) {
  const CharacterStep z{.layers = 2, .batch = 2, .context = 8, .model = 16, .heads = 2};
  const Graph g = character_step(z);
  run::Options o;
  o.guards = true;
  o.schedule.memory = 1;
  run::Program p(g, shared_compiler(), std::make_shared<device::Cpu>(1), o);
  ASSERT_GT(again(p.derivation()), 0);
  const verify::Report r = verify::verify(p, g, first_inputs(g, z), 1e-4);
  for (auto& c : r.kernels) EXPECT_TRUE(c.ok) << c.what << " error " << c.error << " " << c.why;
  for (auto& c : r.outputs) EXPECT_TRUE(c.ok) << c.what << " error " << c.error;
  for (auto& t : r.trespass) ADD_FAILURE() << t;
}
