#include "tang/fuzz/shrink.hpp"

#include "tang/fuzz/message.hpp"

namespace tang::fuzz {

namespace {
struct Shown {
  Fault fault;
  Sequence taken;
};

std::optional<Shown> tried(const Sequence& q, const Finding& f, const Settings& s) {
  Summary unused;
  const auto found = in_process(
      [&](Sender& out) {
        const Trial t = try_choices(q, f.target, s);
        for (auto& x : t.faults) out.fault(0, x, t.taken);
      },
      unused, f.target, 20);
  for (auto& x : found)
    if (x.kind == f.kind) return Shown{{x.kind, x.what}, x.choices.empty() ? q : x.choices};
  return {};
}
} // namespace

Finding shrink(Finding f, const Settings& s, int tries) {
  if (f.choices.empty()) { // it ended the process: its choices are those of the seed
    Choices c(f.seed);
    try {
      generate(c, reach_on(f.target, s));
    } catch (const std::exception&) {} // what it had drawn by then
    f.choices = c.taken();
  }
  auto better = [&](Sequence q) {
    while (!q.empty() && q.back() == 0) q.pop_back();
    if (tries <= 0 || q == f.choices || q.size() > f.choices.size()) return false;
    --tries;
    const auto t = tried(q, f, s);
    if (!t) return false;
    f.choices = q;
    f.what = t->fault.what;
    return true;
  };
  for (bool again = true; again && tries > 0;) {
    again = false;
    for (size_t span = std::max<size_t>(1, f.choices.size() / 2); span > 0; span /= 2)
      for (size_t at = f.choices.size(); at-- > 0 && tries > 0;) {
        if (at % span) continue;
        if (at + span > f.choices.size() + span - 1) continue;
        Sequence q = f.choices;
        const size_t end = std::min(q.size(), at + span);
        q.erase(q.begin() + long(at), q.begin() + long(end));
        if (better(q)) again = true;
      }
    for (size_t at = 0; at < f.choices.size() && tries > 0; ++at) {
      if (!f.choices[at]) continue;
      Sequence q = f.choices;
      q[at] = 0;
      if (better(q)) {
        again = true;
        continue;
      }
      if (q = f.choices; q[at] > 1) {
        q[at] /= 2;
        again |= better(q);
      }
    }
  }
  return f;
}

} // namespace tang::fuzz
