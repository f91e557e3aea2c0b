#include "tang/fuzz/campaign.hpp"

#include <chrono>
#include <cstdio>

#include "tang/fuzz/batch.hpp"
#include "tang/fuzz/message.hpp"
#include "tang/fuzz/shrink.hpp"
#include "tang/fuzz/together.hpp"

namespace tang::fuzz {

namespace {
double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void count_kinds(const Case& c, std::map<std::string, int64_t>& kinds) {
  ++kinds[c.integer ? "integer case" : "real case"];
  if (!c.bindings.empty()) ++kinds["symbolic"];
  if (!c.schedule.groups.empty()) ++kinds["scheduled"];
  for (auto& n : c.graph.nodes) {
    if (n.input()) continue;
    if (n.recur()) ++kinds["recurrence"];
    if (auto* k = n.comp()) {
      ++kinds[k->monoid ? "fold " + k->monoid->name : "map"];
      bool gathers = false;
      for (auto& a : k->args)
        for (auto& f : a.view) gathers |= !f.args.empty();
      if (gathers) ++kinds["gather"];
      if (k->domain != ir::everywhere()) ++kinds["domain"];
      if (!k->outs[0].view.empty()) ++kinds["output view"];
    }
  }
}

void add(const Summary& part, Summary& sum) {
  sum.values += part.values, sum.open += part.open;
  for (auto& [name, n] : part.cases) sum.cases[name] += n;
  for (auto& [name, n] : part.refused) sum.refused[name] += n;
  for (auto& [name, n] : part.fired) sum.fired[name] += n;
  for (auto& [name, n] : part.kinds) sum.kinds[name] += n;
}

Result<run::Opened> open(const std::string& target, const Settings& s) {
  return s.open ? s.open(target) : run::open_target(target, s.opening);
}

// Those that have a derivation.
void run_on(std::vector<Job>& jobs, run::Backend b, bool at_once, const std::function<void(size_t)>& now) {
  std::vector<const run::Derivation*> all;
  for (auto& j : jobs)
    if (j.derivation) all.push_back(&*j.derivation);
  if (at_once) b = together(b, all);
  for (size_t k = 0; k < jobs.size(); ++k)
    if (jobs[k].derivation) now(k), run_on(jobs[k], b);
}

// The cases with these seeds on one target, in the process that calls it. Lines of the protocol go to `out`.
void run_batch(const Settings& s, const std::string& target, uint64_t first, int n,
               const std::set<uint64_t>& without, Sender& out) {
  std::vector<Case> cases(static_cast<size_t>(n));
  std::vector<Job> jobs(static_cast<size_t>(n));
  std::map<std::string, int64_t> fired, kinds;
  Result<run::Opened> opened = Refusal{"c"};
  const bool simulator = target == "simulator";
  if (target != "c" && !simulator) opened = open(target, s);
  if (target != "c" && !simulator && !opened) {
    out.fault(0, {"absent", opened.why()}, {});
    return;
  }
  const Reach reach = reach_on(target, s);
  Judged count;
  int64_t refused = 0;
  for (int k = 0; k < n; ++k) {
    const uint64_t seed = first + uint64_t(k);
    if (without.count(seed)) continue;
    out.at(seed);
    Job& j = jobs[size_t(k)];
    Choices choices(seed);
    j.c = &cases[size_t(k)];
    try {
      cases[size_t(k)] = generate(choices, reach); // gradients are derived here
      j.want = reference(*j.c);
      if (target == "c") {
        count_kinds(*j.c, kinds);
        if (s.laws) j.faults = laws(*j.c, j.want, fired, count);
      }
    } catch (const std::exception& e) {
      cases[size_t(k)].choices = choices.taken();
      j.faults.push_back({"oracle", e.what()});
      continue;
    }
    derive(j, opened ? opened->target : simulator ? simulated_row(*j.c) : row_of(*j.c));
    if (!j.derivation) continue;
    if (target == "c" && s.laws) derive_twin(j);
    if (j.twin) ++kinds[std::string("also run: ") + word(j.twin->kind)];
    if (simulator) run_simulated(j);
  }
  for (auto& j : jobs)
    if (!j.c) j.derivation.reset(); // left out
  if (opened) run_on(jobs, opened->backend, s.at_once, [&](size_t k) { out.at(first + k); });
  if (target == "c") run_on_c(jobs, {s.in_memory, s.opening.compiler}, [&](size_t k) { out.at(first + k); });
  for (int k = 0; k < n; ++k) {
    Job& j = jobs[size_t(k)];
    refused += j.refused;
    count.values += j.count.values, count.open += j.count.open;
    for (auto& f : j.faults) out.fault(first + uint64_t(k), f, cases[size_t(k)].choices);
  }
  out.number("values", count.values);
  out.number("open", count.open);
  out.number("refused", refused);
  for (auto& [rule, k] : fired) out.number("rule " + rule, k);
  for (auto& [kind, k] : kinds) out.number("kind " + kind, k);
}
} // namespace

Reach reach_on(const std::string& target, const Settings& s) {
  Reach r = s.reach;
  r.f64 &= target == "c"; // a device may not have it, and a case must not depend on where it runs
  return r;
}

Trial try_choices(const Sequence& q, const std::string& target, const Settings& s) {
  Choices c(q);
  try {
    const Case k = generate(c, reach_on(target, s));
    return {try_case(k, target, s), k.choices};
  } catch (const std::exception& e) { return {{{"oracle", e.what()}}, c.taken()}; }
}

std::vector<Fault> try_case(const Case& c, const std::string& target, const Settings& s) {
  std::vector<Job> jobs(1);
  jobs[0].c = &c;
  std::map<std::string, int64_t> fired;
  Judged count;
  try {
    jobs[0].want = reference(c);
    if (s.laws && target == "c") jobs[0].faults = laws(c, jobs[0].want, fired, count);
  } catch (const std::exception& e) { return {{"oracle", e.what()}}; }
  if (target == "c") {
    derive(jobs[0], row_of(c));
    if (s.laws) derive_twin(jobs[0]);
    run_on_c(jobs, {s.in_memory, s.opening.compiler}, [](size_t) {});
  } else if (target == "simulator") {
    derive(jobs[0], simulated_row(c));
    if (jobs[0].derivation) run_simulated(jobs[0]);
  } else {
    const auto opened = open(target, s);
    if (!opened) return {};
    derive(jobs[0], opened->target);
    if (jobs[0].derivation) run_on(jobs[0], opened->backend);
  }
  return jobs[0].faults;
}

Summary fuzz(const Settings& s, const Report& report) {
  Summary sum;
  const double start = now_seconds();
  const uint64_t seed = s.seed * 1000000 + s.skip;
  for (bool more = true; more;) {
    more = false;
    for (auto& target : s.targets) {
      const int64_t left = s.cases ? s.cases - sum.cases[target] : s.batch;
      if (left <= 0 || (s.seconds > 0 && now_seconds() - start >= s.seconds)) continue;
      const int n = int(std::min<int64_t>(left, s.batch));
      const uint64_t first = seed + uint64_t(sum.cases[target]);
      std::vector<Finding> found;
      std::set<uint64_t> without; // what ended the process: the others run again without it
      for (bool ended = true; ended && int(without.size()) < n;) {
        ended = false;
        Summary part;
        auto now = in_process([&](Sender& out) { run_batch(s, target, first, n, without, out); }, part,
                              target, s.limit);
        for (auto& f : now)
          if (f.kind == "crash" || f.kind == "hang") {
            ended = true;
            without.insert(f.seed);
            found.push_back(f);
          }
        if (ended) continue;
        found.insert(found.end(), now.begin(), now.end());
        add(part, sum);
      }
      sum.cases[target] += n;
      more = true;
      for (Finding f : found) {
        if (s.shrink && f.kind != "absent") f = shrink(f, s);
        if (!s.folder.empty() && f.kind != "absent") f.file = write_finding(f, s);
        sum.findings.push_back(f);
        if (report) report(f);
      }
    }
  }
  sum.seconds = now_seconds() - start;
  return sum;
}

Summary fuzz_side_by_side(const Settings& s, int jobs, const Report& report) {
  Summary sum;
  const double begin = now_seconds();
  for (auto& target : s.targets) {
    std::vector<Process> all;
    for (int j = 0; j < jobs; ++j) {
      Settings own = s;
      own.targets = {target};
      const int64_t share = s.cases ? s.cases / jobs + (j < s.cases % jobs) : 0;
      own.cases = share;
      own.skip = s.skip + uint64_t(s.cases ? j * (s.cases / jobs) + std::min<int64_t>(j, s.cases % jobs)
                                           : j * (int64_t(1000000) / jobs));
      if (s.cases && !share) continue;
      all.push_back(start(
          [&](Sender& out) {
            const Summary part = fuzz(own, [&](const Finding& f) {
              out.fault(f.seed, {f.kind, f.what}, f.choices);
            });
            out.number("values", part.values), out.number("open", part.open);
            for (auto& [name, n] : part.cases) out.number("cases " + name, n);
            for (auto& [name, n] : part.refused) out.number("refused " + name, n);
            for (auto& [name, n] : part.fired) out.number("rule " + name, n);
            for (auto& [name, n] : part.kinds) out.number("kind " + name, n);
          },
          0));
    }
    for (auto& p : all)
      for (auto& f : finish(p, sum, target)) {
        sum.findings.push_back(f);
        if (report) report(f);
      }
  }
  sum.seconds = now_seconds() - begin;
  return sum;
}

std::string text(const Summary& s) {
  std::string out;
  if (s.cases.count("c"))
    for (auto& name : rule_names()) {
      const auto it = s.fired.find(name);
      out += "rule " + name + " fired " + std::to_string(it == s.fired.end() ? 0 : it->second) + "\n";
    }
  for (auto& [name, n] : s.kinds) out += name + ": " + std::to_string(n) + "\n";
  int64_t all = 0;
  std::string each;
  for (auto& [target, n] : s.refused) out += target + ": " + std::to_string(n) + " refused\n";
  for (auto& [target, n] : s.cases) {
    all += n;
    each += (each.empty() ? "" : ", ") + target + " " + std::to_string(n);
  }
  char rate[64];
  std::snprintf(rate, sizeof rate, "%.1f s", s.seconds);
  out += std::to_string(all) + " cases (" + each + "), " + std::to_string(s.values) + " values compared, " +
         std::to_string(s.open) + " without a finite bound, " + rate + ": " +
         (s.findings.empty() ? "nothing found" : std::to_string(s.findings.size()) + " found") + "\n";
  return out;
}

} // namespace tang::fuzz
