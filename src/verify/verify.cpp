#include "tang/verify/verify.hpp"

#include "tang/verify/bound.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tang::verify {

using eval::Array;
using expr::State;
using ir::NodeId;
using ir::Port;

bool Report::ok() const { return failed() == 0 && trespass.empty(); }

int Report::verified() const {
  const auto good = [](const Check& c) { return c.ok; };
  return int(std::count_if(kernels.begin(), kernels.end(), good) +
             std::count_if(outputs.begin(), outputs.end(), good));
}

int Report::failed() const { return int(kernels.size() + outputs.size()) - verified(); }

double Report::worst() const {
  double w = 0;
  for (auto& c : outputs) w = std::max(w, c.error);
  return w;
}

double as_promised(double v, target::Class values) {
  constexpr double large = 0x1.fffffep+126; // half of the largest f32
  if (values == target::Class::exact || std::fabs(v) <= large) return v;
  return v > large ? HUGE_VAL : v < -large ? -HUGE_VAL : v;
}

namespace {

Array from_memory(const void* at, ir::Format f, std::vector<int64_t> shape, expr::Type type) {
  Array a(std::move(shape), type);
  if (type == expr::Type::real)
    a.r = run::read_reals(at, f, a.size());
  else
    a.i = run::read_integers(at, f, a.size());
  return a;
}

// Fills error, unwritten and ok. Absent points of a stored array hold its fill and are seen by nobody.
void compare(Check& c, const Array& got, const Array& want, double budget, ir::Format f,
             target::Class values) {
  c.values = c.unwritten = 0;
  double worst = 0, scale = 0;
  for (int64_t k = 0; k < want.size(); ++k) {
    expr::Value x = got.at(k), y = want.at(k);
    if (y.state != State::present) continue;
    if (want.type == expr::Type::real) {
      if (values == target::Class::finite && std::isnan(y.r)) continue; // never promised
      x.r = as_promised(x.r, values), y.r = as_promised(y.r, values);
    }
    ++c.values;
    if (want.type != expr::Type::real) {
      worst = std::max(worst, x.i == y.i ? 0.0 : HUGE_VAL);
      continue;
    }
    if (std::isnan(x.r) && !std::isnan(y.r)) ++c.unwritten;
    if (x.r == y.r || (std::isnan(x.r) && std::isnan(y.r))) {
      if (std::isfinite(y.r)) scale = std::max(scale, std::fabs(y.r));
      continue;
    }
    const double gap = std::fabs(x.r - y.r);
    worst = std::max(worst, gap < HUGE_VAL ? gap : HUGE_VAL);
    if (std::isfinite(y.r)) scale = std::max(scale, std::fabs(y.r));
  }
  c.scale = scale;
  c.error = worst == 0 ? 0 : scale > 0 ? worst / scale : worst;
  // Storing rounds once more: half a unit in the last place of the format is not an error of the kernel.
  const double ulp = ir::row(f).type == expr::Type::real ? std::ldexp(1.0, -ir::row(f).mantissa - 1) : 0;
  c.ok = c.error <= budget + ulp;
}

// Is every element as near to the reference as rounding alone must leave it? (The gradient of a mean through
// its own variance is 0 of terms that cancel: no relative error says how exactly.) A bound that is not finite
// says nothing.
bool within(const Array& got, const Array& want, const Array& bound, ir::Format f) {
  if (want.type != expr::Type::real) return false;
  for (int64_t k = 0; k < want.size(); ++k) {
    const expr::Value x = got.at(k), y = want.at(k);
    if (y.state != State::present || x.r == y.r || (std::isnan(x.r) && std::isnan(y.r))) continue;
    const double room = bound.r.empty() ? 0 : bound.r[size_t(k)];
    if (!(std::fabs(x.r - y.r) <= room + std::ldexp(std::fabs(y.r) + room, -ir::row(f).mantissa - 1)) ||
        !(room < HUGE_VAL))
      return false;
  }
  return true;
}

// What the reals of a kernel are rounded to: the narrowest format that it holds.
Arithmetic arithmetic_of(const kernel::Kernel& k) {
  Arithmetic a = single();
  for (auto& m : k.memories)
    if (ir::row(m.format).type == expr::Type::real)
      a.unit = std::max(a.unit, std::ldexp(1.0, -ir::row(m.format).mantissa - 1));
  a.elementary = std::max(a.elementary, a.unit);
  return a;
}

// Which other value does the buffer hold? Names the kernel whose correct output it contains.
std::string provenance(eval::Oracle& o, const plan::Plan& p, Port failing, const Array& got, double budget,
                       target::Class values) {
  for (auto& b : p.buffers) {
    if (b.of == failing) continue;
    const Array& other = o.port(b.of);
    if (other.size() != got.size() || other.type != got.type) continue;
    Check c;
    compare(c, got, other, budget, b.format, values);
    if (c.ok && c.values) return "it holds the value of " + p.graph->label(b.of);
  }
  return "";
}

// A budget below one rounding of f32 asks for exact results: rounding is then no excuse.
bool allows_rounding(double budget) { return budget >= std::ldexp(1.0, -24); }

// Judges a value against the oracle's, by the budget and then by what rounding alone may do to it.
void judge(Check& c, const Array& got, const plan::Buffer& b, const ir::Graph& g, eval::Oracle& oracle,
           const std::set<Port>& stored, const Arithmetic& arithmetic, double budget, target::Class values) {
  const Array want = oracle.port(b.of);
  compare(c, got, want, budget, b.format, values);
  if (c.ok || !allows_rounding(budget)) return;
  const auto room = error_bound(g, oracle, stored, b.of, arithmetic);
  c.ok = room && within(got, want, *room, b.format);
}

// What a step left in a port's memory.
struct Placed {
  int step;
  Port of;
  Array value;
};

// Judges a value from what lay in memory before the last step. A step that stores a value in two formats may
// take the second from its registers, where the first is not rounded yet; `c` was judged from the rounded
// one.
void judge_unrounded(Check& c, const Array& got, const plan::Buffer& b, const ir::Graph& g,
                     eval::Oracle& earlier, const std::vector<Placed>& all, const Arithmetic& arithmetic,
                     double budget, target::Class values) {
  std::set<Port> stored;
  for (auto& p : all)
    if (p.step != all.back().step) stored.insert(p.of), earlier.place(p.of, p.value);
  Check other = c;
  judge(other, got, b, g, earlier, stored, arithmetic, budget, values);
  if (other.ok) c = other;
}

// An input's values as bytes of its format.
std::vector<char> packed(const ir::Node& n, const ir::Input& in, const eval::Inputs& inputs) {
  auto it = inputs.find(n.name);
  if (it == inputs.end())
    throw Error(n.where, "input '" + n.name + "' has no data", {}, "bind an array to it");
  std::vector<char> out(size_t(it->second.size() * run::bytes_of(in.format)));
  if (it->second.type == expr::Type::real)
    run::write(out.data(), in.format, it->second.r);
  else
    run::write(out.data(), in.format, it->second.i);
  return out;
}

} // namespace

Check compared(const void* held, ir::Format f, const Array& want, double budget) {
  Check c;
  compare(c, from_memory(held, f, want.shape, want.type), want, budget, f, target::Class::exact);
  return c;
}

void feed(run::Program& p, const ir::Graph& g, const eval::Inputs& inputs) {
  for (auto& n : g.nodes)
    if (auto* in = n.input()) p.write(n.name, packed(n, *in, inputs).data());
}

Array read(run::Program& p, Port port, ir::Format f, const ir::Graph& g) {
  const auto shape = eval::bound(g.shape(port));
  std::vector<char> held(size_t(eval::volume(shape) * run::bytes_of(f)));
  const device::Slice at = p.port(port).value();
  at.region->read(held.data(), at.offset, held.size());
  return from_memory(held.data(), f, shape, g.type(port));
}

Report verify(run::Program& p, const ir::Graph& written, const eval::Inputs& given, double budget,
              int threads, const Seen& seen) {
  const plan::Plan& plan = p.derivation().plan;
  const ir::Graph& g = *plan.graph;
  const target::Class values = p.target().values;
  const auto& kernels = p.derivation().kernels.kernels;
  eval::Inputs inputs = given; // as the device sees them: rounded to their formats
  for (auto& n : written.nodes)
    if (auto* in = n.input(); in && inputs.count(n.name))
      for (double& v : inputs.at(n.name).r) v = ir::rounded(v, in->format);
  for (auto& n : written.nodes)
    if (auto* in = n.input()) {
      const std::vector<char> bytes = packed(n, *in, inputs);
      p.write(n.name, bytes.data());
    }
  auto bytes_of = [](const plan::Buffer& b) {
    return size_t(eval::volume(b.shape) * run::bytes_of(b.format));
  };
  auto poison = [&](const plan::Buffer& b) {
    const device::Slice at = p.port(b.of).value();
    at.region->fill(at.offset, 0xff, bytes_of(b));
  };
  p.poison_scratch();
  for (auto& b : plan.buffers)
    if (!b.overwrites) poison(b);

  Report report;
  eval::Options options;
  options.threads = threads;
  eval::Oracle oracle(g, inputs, options);
  auto finished = [&](size_t k) { return k + 1 == kernels.size() || kernels[k + 1].step != kernels[k].step; };
  // Buffers of one arena take each other's place: what a step writes is poisoned when the step begins.
  int begun = -1;
  std::set<Port> stored;
  std::vector<Placed> placed;
  for (auto& b : plan.buffers) stored.insert(b.of);
  p.run(
      [&](size_t k) {
        if (kernels[k].step == begun) return;
        begun = kernels[k].step;
        for (auto& b : plan.buffers)
          if ((b.first == begun || b.again == begun) && !b.overwrites) poison(b);
      },
      [&](size_t k) {
        if (!finished(k)) return;
        for (auto& b : plan.buffers) {
          if (b.first != kernels[k].step && b.again != kernels[k].step) continue;
          Check c;
          c.what = g.label(b.of);
          c.schedule = kernels[k].schedule;
          c.kernel = k;
          std::vector<char> held(bytes_of(b));
          const device::Slice at = p.port(b.of).value();
          at.region->read(held.data(), at.offset, held.size());
          const Array got = from_memory(held.data(), b.format, b.shape, g.type(b.of));
          const Array want = oracle.port(b.of);
          const Arithmetic arithmetic = arithmetic_of(kernels[k].kernel);
          judge(c, got, b, g, oracle, stored, arithmetic, budget, values);
          if (!c.ok && !placed.empty() && placed.back().step == begun) {
            eval::Oracle earlier(g, inputs, options);
            judge_unrounded(c, got, b, g, earlier, placed, arithmetic, budget, values);
          }
          if (!c.ok) c.why = provenance(oracle, plan, b.of, got, budget, values);
          report.kernels.push_back(c);
          if (seen) seen(c, got, want);
          Array now = got; // later kernels are judged from here; absence stays absence
          now.state = want.state;
          placed.push_back({begun, b.of, now});
          oracle.place(b.of, std::move(now));
        }
      });
  eval::Oracle naive(written, inputs, options);
  std::optional<std::map<std::string, Array>> rooms; // of the whole program
  auto room = [&](const std::string& name) {
    Arithmetic a = single();
    for (auto& k : kernels) a.unit = std::max(a.unit, arithmetic_of(k.kernel).unit);
    a.elementary = std::max(a.elementary, a.unit);
    if (!rooms) rooms = error_bounds(g, inputs, a);
    return rooms->at(name);
  };
  for (auto& o : written.outputs) {
    Check c;
    c.what = o.name;
    const ir::Port port = o.port;
    const auto shape = eval::bound(written.shape(port));
    std::vector<char> held(size_t(eval::volume(shape) * run::bytes_of(p.format(o.name))));
    p.read(o.name, held.data());
    const Array got = from_memory(held.data(), p.format(o.name), shape, written.type(port));
    compare(c, got, naive.port(port), budget, p.format(o.name), values);
    c.ok = c.ok || (allows_rounding(budget) && within(got, naive.port(port), room(o.name), p.format(o.name)));
    report.outputs.push_back(c);
    if (seen) seen(c, got, naive.port(port));
  }
  report.trespass = p.trespass();
  return report;
}

} // namespace tang::verify
