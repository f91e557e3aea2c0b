// Every builder of models/ on this CPU, each kernel against the oracle.
#include "run/cases.hpp"
#include "run/harness.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;
using namespace tang::ir;

namespace {

void verify_on_cpu(const Graph& g, eval::Inputs in, double budget) {
  uint64_t seed = 1;
  for (auto& n : g.nodes)
    if (auto* x = n.input(); x && !in.count(n.name)) {
      ASSERT_EQ(type_of(x->format), expr::Type::real) << n.name;
      in[n.name] = test::random_reals(eval::bound(x->shape), seed++);
    }
  run::Options o;
  o.guards = true;
  run::Program p(g, test::shared_compiler(), std::make_shared<device::Cpu>(2), o);
  const auto r = verify::verify(p, g, in, budget, 2);
  for (auto& c : r.kernels) {
    EXPECT_TRUE(c.ok) << c.what << " (" << c.schedule << "): error " << c.error << ", " << c.unwritten << " unwritten of " << c.values << ". " << c.why << "\n"
                      << kernel::print(p.derivation().kernels.kernels[c.kernel].kernel);
    EXPECT_EQ(c.unwritten, 0) << c.what;
  }
  for (auto& c : r.outputs) EXPECT_TRUE(c.ok) << "output " << c.what << ": error " << c.error;
  for (auto& t : r.trespass) ADD_FAILURE() << "guard band: " << t;
}
void verify_all(const char* name) {
  for (auto& c : cases::builders)
    if (std::string(c.name) == name) return c.run({verify_on_cpu});
  FAIL() << "no builder " << name;
}
}  // namespace

TEST(builders, attention_masks) { verify_all("attention_masks"); }
TEST(builders, attention_scores) { verify_all("attention_scores"); }
TEST(builders, attention_with_tables) { verify_all("attention_with_tables"); }
TEST(builders, attention_over_documents) { verify_all("attention_over_documents"); }
TEST(builders, grouped_queries) { verify_all("grouped_queries"); }
TEST(builders, norms) { verify_all("norms"); }
TEST(builders, softmax_family) { verify_all("softmax_family"); }
TEST(builders, mlps_and_rope) { verify_all("mlps_and_rope"); }
TEST(builders, convolutions_and_pooling) { verify_all("convolutions_and_pooling"); }
TEST(builders, mixture_of_experts) { verify_all("mixture_of_experts"); }
TEST(builders, transformer_blocks) { verify_all("transformer_blocks"); }
TEST(builders, recurrent_cells) { verify_all("recurrent_cells"); }
TEST(builders, recurrences_over_time) { verify_all("recurrences_over_time"); }
TEST(builders, gated_delta_rule) { verify_all("gated_delta_rule"); }
TEST(builders, one_decode_step) { verify_all("one_decode_step"); }
