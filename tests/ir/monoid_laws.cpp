// The laws of every registered monoid on sampled states; proofs/ has them for all states.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tang/ir/monoids.hpp"

using namespace tang;
using namespace tang::ir;

namespace {
using State = std::vector<Value>;

struct Traced {
  expr::Pool pool;
  MonoidSpec spec;
  std::vector<Id> combine;

  explicit Traced(const MonoidSpec& m) : spec(m) {
    std::vector<expr::E> left, right;
    for (size_t c = 0; c < m.identity.size(); ++c) {
      left.push_back({&pool, pool.leaf(Op::var, m.identity[c].type, 2 * int64_t(c))});
      right.push_back({&pool, pool.leaf(Op::var, m.identity[c].type, 2 * int64_t(c) + 1)});
    }
    for (auto& e : m.combine(pool, left, right)) combine.push_back(e.id);
  }

  State join(const State& a, const State& b) const {
    State out;
    for (Id c : combine)
      out.push_back(expr::evaluate(
          pool, c, [&](const expr::Term& t) { return (t.whole % 2 ? b : a)[size_t(t.whole / 2)]; }));
    return out;
  }

  State inject(const State& a) const { return join(spec.identity, a); }
};

// The state of one term: of a run of components with one infinite or greatest identity, the first is live
// (top-k).
State live(const MonoidSpec& m, std::mt19937& random) {
  State s = m.identity;
  for (size_t c = 0; c < s.size(); ++c) {
    const Value& e = m.identity[c];
    const bool extreme = e.type == Type::real ? std::isinf(e.r) : e.i == INT64_MAX;
    if (extreme && c > 0 && expr::identical(e, m.identity[c - 1])) continue;
    if (e.type == Type::boolean)
      s[c] = expr::truth(random() % 2);
    else if (e.type == Type::real)
      s[c] = expr::real(double(random() % 64 + 1) / 8); // positive: counts are
    else
      s[c] = expr::whole(int64_t(random() % 100));
  }
  return s;
}

void expect_close(const State& a, const State& b, const std::string& what) {
  for (size_t c = 0; c < a.size(); ++c) {
    if (a[c].type == Type::real)
      EXPECT_TRUE(a[c].r == b[c].r || std::fabs(a[c].r - b[c].r) <= 1e-9 * (1 + std::fabs(a[c].r)))
          << what << ": " << a[c].r << " and " << b[c].r;
    else
      EXPECT_EQ(a[c].i, b[c].i) << what;
  }
}
} // namespace

TEST(monoid_laws, injection_does_not_change_a_live_state) {
  std::mt19937 random(1);
  for (auto& m : all_monoids()) {
    const Traced t(m);
    for (int k = 0; k < 200; ++k) {
      const State term = live(m, random);
      const State in = t.inject(term);
      for (size_t c = 0; c < term.size(); ++c)
        EXPECT_TRUE(expr::identical(in[c], term[c]))
            << m.name << ", component " << c << ": " << term[c].r << " became " << in[c].r;
      const State two = t.join(in, t.inject(live(m, random)));
      expect_close(t.inject(two), two, m.name + ", of two terms");
    }
  }
}

TEST(monoid_laws, an_absorbing_element_is_no_identity) {
  // What the law above is for: 0 is neutral to nothing in a product with 0, yet combine(0, 0) = 0.
  const MonoidSpec bad{"bad",
                       {expr::real(0)},
                       [](Pool&, const std::vector<expr::E>& a, const std::vector<expr::E>& b) {
                         return std::vector<expr::E>{a[0] * b[0]};
                       },
                       true};
  const Traced t(bad);
  const State term{expr::real(3)};
  EXPECT_FALSE(expr::identical(t.inject(term)[0], term[0]));
}

TEST(monoid_laws, a_row_is_proved_under_any_name_and_in_any_spelling) {
  for (auto list : {all_monoids(), more_proved_monoids()})
    for (auto& m : list) EXPECT_TRUE(is_proved(m)) << m.name;
  EXPECT_TRUE(is_proved(online_softmax(5)));
  EXPECT_TRUE(is_proved(topk(4)));
  using Es = std::vector<expr::E>;
  const expr::Value zero = expr::real(0), one = expr::real(1);
  auto spec = [](std::vector<expr::Value> identity, decltype(MonoidSpec::combine) combine, bool commutative = true) {
    return MonoidSpec{"mine", std::move(identity), std::move(combine), commutative};
  };
  EXPECT_TRUE(is_proved(spec({zero}, [](Pool&, const Es& a, const Es& b) { return Es{b[0] + a[0]}; })));
  EXPECT_TRUE(is_proved(spec({zero, one}, [](Pool&, const Es& a, const Es& b) { return Es{a[0] + b[0], a[1] * b[1]}; })));
  // A wrong identity, a wrong combine, an order that the law does not allow, components that mix.
  EXPECT_FALSE(is_proved(spec({one}, [](Pool&, const Es& a, const Es& b) { return Es{a[0] + b[0]}; })));
  EXPECT_FALSE(is_proved(spec({zero}, [](Pool&, const Es& a, const Es& b) { return Es{a[0] - b[0]}; })));
  EXPECT_FALSE(is_proved(spec({zero, zero}, [](Pool&, const Es& a, const Es& b) { return Es{a[0] + b[0], a[1] + b[0]}; })));
  auto affine = [](Pool&, const Es& a, const Es& b) { return Es{b[0] * a[0], b[0] * a[1] + b[1]}; };
  EXPECT_TRUE(is_proved(spec({one, zero}, affine, false)));
  EXPECT_FALSE(is_proved(spec({one, zero}, affine)));
}

TEST(monoid_laws, a_fold_without_a_proof_is_refused_unless_its_author_answers_for_it) {
  MonoidSpec mean{"mean", {expr::real(0)}, [](Pool& p, const std::vector<expr::E>& a, const std::vector<expr::E>& b) {
                    return std::vector<expr::E>{(a[0] + b[0]) * expr::lit(p, 0.5)};
                  }};
  Builder b;
  auto x = b.input("x", {3, 4});
  auto [i, j] = axes<"i j">();
  auto build = [&] { return map({i}, fold(mean, j, {x(i, j)})[0]); };
  try {
    build();
    FAIL() << "a fold of a monoid without a proof";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("monoid 'mean' has no proof"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("MonoidSpec::unproved"), std::string::npos) << e.what();
  }
  mean.unproved = true;
  EXPECT_NO_THROW(build());
}

TEST(monoid_laws, identity_order_and_trees) {
  std::mt19937 random(2);
  for (auto& m : all_monoids()) {
    const Traced t(m);
    expect_close(t.join(m.identity, m.identity), m.identity, m.name + ", identity");
    for (int k = 0; k < 200; ++k) {
      const State a = t.inject(live(m, random)), b = t.inject(live(m, random)), c = t.inject(live(m, random));
      expect_close(t.join(a, m.identity), a, m.name + ", right identity");
      expect_close(t.join(a, t.join(b, c)), t.join(t.join(a, b), c), m.name + ", associative");
      if (m.commutative) expect_close(t.join(a, b), t.join(b, a), m.name + ", commutative");
    }
  }
}
