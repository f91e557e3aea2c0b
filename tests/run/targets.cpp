// Every builder of models/ on every target that this machine has a driver for, each kernel against the oracle.
#include "tang/models/cases.hpp"
#include "run/opened.hpp"
#include "tang/verify/verify.hpp"

using namespace tang;

namespace {
using test::opened;

double worst_seen = 0; // of the test that runs, for the table of docs/targets.md
int kernels_seen = 0;

void verify_on(const run::Opened& to, const ir::Graph& g, eval::Inputs in, double budget) {
  uint64_t seed = 1;
  for (auto& n : g.nodes)
    if (auto* x = n.input(); x && !in.count(n.name)) in[n.name] = test::random_reals(eval::bound(x->shape), seed++);
  run::Options o = run::options_for(to.target);
  o.guards = true;
  run::Program p(g, to.backend, o);
  const auto r = verify::verify(p, g, in, budget, 2);
  worst_seen = std::max(worst_seen, r.worst());
  kernels_seen += int(p.derivation().kernels.kernels.size());
  for (auto& c : r.kernels) {
    EXPECT_TRUE(c.ok) << c.what << " (" << c.schedule << "): error " << c.error << ", " << c.unwritten << " unwritten of " << c.values << ". " << c.why << "\n"
                      << kernel::print(p.derivation().kernels.kernels[c.kernel].kernel);
    EXPECT_EQ(c.unwritten, 0) << c.what;
  }
  for (auto& c : r.outputs) EXPECT_TRUE(c.ok) << "output " << c.what << ": error " << c.error;
  for (auto& t : r.trespass) ADD_FAILURE() << "guard band: " << t;
}

class Targets : public testing::TestWithParam<std::tuple<std::string, std::string>> {};
} // namespace

TEST_P(Targets, builder) {
  const auto& [target, builder] = GetParam();
  const auto& to = opened(target);
  if (!to) GTEST_SKIP() << "not present: " << to.why();
  worst_seen = kernels_seen = 0;
  for (auto& c : cases::builders)
    if (builder == c.name)
      c.run({[&](const ir::Graph& g, eval::Inputs in, double budget) {
        try {
          verify_on(*to, g, std::move(in), budget);
        } catch (const Error& e) {
          std::string all = e.what();
          for (auto& f : e.facts()) all += "\n  " + f.text;
          ADD_FAILURE() << all;
        }
      }});
  RecordProperty("device", to->description);
  RecordProperty("class", to->target.values == target::Class::exact ? "exact" : "finite");
  RecordProperty("kernels", kernels_seen);
  RecordProperty("worst", std::to_string(worst_seen * 1e9)); // in 1e-9
}

namespace {
std::vector<std::string> every_target() { return run::target_names(); }
std::vector<std::string> builder_names() {
  std::vector<std::string> out;
  for (auto& c : cases::builders) out.push_back(c.name);
  return out;
}
} // namespace

class OneTarget : public Targets {};

// Elementary functions of a target, in units in the last place of the f64 answer; large arguments of the sine, too.
TEST_P(OneTarget, elementary_functions) {
  const auto& to = opened(std::get<0>(GetParam()));
  if (!to) GTEST_SKIP() << "not present: " << to.why();
  struct Function {
    const char* name;
    ir::Scalar (*term)(const ir::Scalar&, const ir::Scalar&);
    double (*want)(double, double);
    double lo, hi, bound; // of x; y is 0.3 x + 1
  };
  const Function all[] = {
      {"exp2", [](auto& x, auto&) { return ir::exp2(x); }, [](double x, double) { return std::exp2(x); }, -120, 120, 4},
      {"log2", [](auto& x, auto&) { return ir::log2(x); }, [](double x, double) { return std::log2(x); }, 1e-30, 1e3, 4},
      {"sin", [](auto& x, auto&) { return ir::sin(x); }, [](double x, double) { return std::sin(x); }, -1000, 1000, 4},
      {"large sin", [](auto& x, auto&) { return ir::sin(x); }, [](double x, double) { return std::sin(x); }, 4e4, 1e30, 4},
      {"atan2", [](auto& x, auto& y) { return ir::atan2(y, x); }, [](double x, double y) { return std::atan2(y, x); }, -9, 9, 6},
      {"sqrt", [](auto& x, auto&) { return ir::sqrt(x); }, [](double x, double) { return std::sqrt(x); }, 0, 1e9, 3},
      {"floor", [](auto& x, auto&) { return ir::floor(x); }, [](double x, double) { return std::floor(x); }, -1e9, 1e9, 0},
      {"quotient", [](auto& x, auto& y) { return x / y; }, [](double x, double y) { return x / y; }, 0.1, 1e5, 2.5},
  };
  constexpr int64_t n = 20000;
  for (auto& f : all) {
    ir::Builder b;
    ir::Tensor x = b.input("x", {n}), y = b.input("y", {n});
    auto [i] = ir::axes<"i">();
    b.output(ir::map({i}, f.term(x(i), y(i))), "out");
    const ir::Graph g = b.graph();
    run::Program p(g, to->backend, run::options_for(to->target));
    std::vector<float> xs(n), ys(n), got(n);
    for (int64_t k = 0; k < n; ++k) {
      const double t = double(k) / double(n - 1), u = f.hi > 1e20 ? f.lo * std::pow(f.hi / f.lo, t) : f.lo + (f.hi - f.lo) * t;
      xs[size_t(k)] = float(u), ys[size_t(k)] = float(0.3 * u + 1);
    }
    p.write("x", xs.data()), p.write("y", ys.data());
    p.run();
    p.read("out", got.data());
    double worst = 0, where = 0;
    for (int64_t k = 0; k < n; ++k) {
      const double want = f.want(double(xs[size_t(k)]), double(ys[size_t(k)]));
      const double ulp = std::ldexp(1.0, std::max(want == 0 ? -149 : std::ilogb(want) - 23, -126));
      const double off = std::fabs(double(got[size_t(k)]) - want) / ulp;
      if (!(off <= worst)) worst = off, where = double(xs[size_t(k)]);
    }
    EXPECT_LE(worst, f.bound) << f.name << " at " << where;
    std::printf("  %-10s %.2f ulp\n", f.name, worst);
  }
}

// Terms of one sorted key, by their run: halving finds its ends on every target.
TEST_P(OneTarget, runs_of_sorted_keys) {
  const auto& to = opened(std::get<0>(GetParam()));
  if (!to) GTEST_SKIP() << "not present: " << to.why();
  for (int64_t places : {5, 300}) {
    ir::Builder b;
    const ir::Tensor key = ir::set_sorted(b.input("key", {2, 77}, ir::Format::i32)), w = b.input("w", {2, 77, 6});
    auto [n, t, c] = ir::axes<"n t c">();
    const ir::Axis x = ir::axis("x", ir::Extent(places));
    b.output(ir::map({n, x, c}, ir::sum(t, ir::masked(ir::Index(x) == ir::Index(key(n, t)), w(n, t, c)))), "y");
    std::vector<int64_t> v;
    for (int64_t k = 0; k < 154; ++k) v.push_back(k % 77 * (k % 77) * (places + 3) / 5929 - 1);
    verify_on(*to, b.graph(), {{"key", eval::indices({2, 77}, v)}}, 1e-5);
  }
}

// Storage in every narrow format, in and out, with sizes that leave a word partly filled; integers and truth values.
TEST_P(OneTarget, narrow_storage) {
  const auto& to = opened(std::get<0>(GetParam()));
  if (!to) GTEST_SKIP() << "not present: " << to.why();
  using ir::Format;
  for (Format f : {Format::f16, Format::bf16, Format::e4m3, Format::e5m2, Format::tf32})
    for (int64_t n : {1, 2, 37}) {
      ir::Builder b;
      ir::Tensor x = b.input("x", {5, n}, f), w = b.input("w", {n}, f);
      auto [i, j] = ir::axes<"i j">();
      b.output(ir::map({i, j}, x(i, j) * w(j) + 0.25), "y", f);
      b.output(ir::map({i}, ir::sum(j, x(i, j) * w(j))), "s", f);
      verify_on(*to, b.graph(), {}, 1e-5);
    }
  for (Format f : {Format::i8, Format::i16, Format::i32}) {
    ir::Builder b;
    ir::Tensor x = b.input("x", {3, 7}, f);
    auto [i, j] = ir::axes<"i j">();
    b.output(ir::map({i, j}, ir::max(x(i, j), ir::index_literal(b, -3))), "y", f);
    std::vector<int64_t> v(21);
    for (size_t k = 0; k < v.size(); ++k) v[k] = int64_t(k * 11 % 250) - 125;
    verify_on(*to, b.graph(), {{"x", eval::indices({3, 7}, v)}}, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(every, Targets, testing::Combine(testing::ValuesIn(every_target()), testing::ValuesIn(builder_names())),
                         [](const auto& x) { return std::get<0>(x.param) + "_" + std::get<1>(x.param); });
INSTANTIATE_TEST_SUITE_P(every, OneTarget, testing::Combine(testing::ValuesIn(every_target()), testing::Values("functions")),
                         [](const auto& x) { return std::get<0>(x.param); });
