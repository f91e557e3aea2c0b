// Whole sequences and letter by letter: one model.
#include "models/data.hpp"
#include "tang/models/decoder.hpp"

using namespace tang;
using namespace tang::models;
using namespace tang::test;

TEST(sequences, a_decoder_step_by_step_gives_the_same_logits) {
  for (int64_t kv : {1, 2}) {
    DecoderSize s;
    s.block = {8, 2, kv, 4, 12, 1e-5, {}};
    s.layers = 2, s.vocab = 7, s.context = 6;
    const Graph g = [&] {
      Builder b;
      const DecoderWeights w = decoder_weights(b, s);
      EXPECT_EQ(every(w).size(), 2 + 9 * 2u);
      b.output(decode_sequences(b.input("ids", {1, 6}, Format::i32), w, s), "logits");
      return b.graph();
    }();
    const Graph one = [&] {
      Builder b;
      decode_step(b, decoder_weights(b, s), s);
      return b.graph();
    }();
    Inputs in{{"ids", eval::indices({1, 6}, {3, 1, 4, 1, 5, 2})}};
    double seed = 1;
    for (auto& n : g.nodes)
      if (auto* x = n.input(); x && x->kind == ir::Input::param) in[n.name] = u(seed++, eval::bound(x->shape));
    const Array want = eval::run(g, in).at("logits");
    Inputs now = in;
    now.erase("ids");
    for (auto& n : one.nodes)
      if (auto* x = n.input(); x && x->kind == ir::Input::state) now[n.name] = Array(eval::bound(x->shape), Type::real);
    for (int64_t t = 0; t < 6; ++t) {
      now["token"] = eval::indices({}, {in["ids"].i[size_t(t)]});
      now["pos"] = eval::indices({}, {t});
      auto out = eval::run(one, now);
      for (int64_t c = 0; c < 7; ++c) EXPECT_NEAR(out["logits"].r[size_t(c)], want.r[size_t(t * 7 + c)], 1e-12) << t << " " << c;
      for (auto& [name, a] : out)
        if (now.count(name)) now[name] = a;
    }
  }
}

TEST(sequences, the_loss_is_the_mean_over_all_letters) {
  Builder b;
  b.output(next_token_loss(b.input("logits", {2, 2, 3}), b.input("target", {2, 2}, Format::i32)), "loss");
  const Array x = u(1, {2, 2, 3});
  const std::vector<int64_t> target{2, 0, 1, 1};
  double want = 0;
  for (size_t row = 0; row < 4; ++row) {
    double total = 0;
    for (size_t c = 0; c < 3; ++c) total += std::exp(x.r[3 * row + c]);
    want += (std::log(total) - x.r[3 * row + size_t(target[row])]) / 4;
  }
  EXPECT_NEAR(eval::run(b.graph(), {{"logits", x}, {"target", eval::indices({2, 2}, target)}})["loss"].r[0], want, 1e-14);
}
