#include "tang/tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tang/text/schedule.hpp"
#include "tang/tune/ranking.hpp"

namespace tang::tune {

using device::Cpu;
using schedule::GroupFields;
using schedule::Schedule;

namespace {
struct Named {
  std::string name;
  Schedule schedule;
};

class Search {
public:
  Search(const ir::Graph& written, const eval::Inputs& inputs, const run::Options& o,
         const std::shared_ptr<device::Compiler>& compiler, const Machine& m, const Options& how)
      : written_(written), o_(o), machine_(m), how_(how), bench_{written,
                                                                 inputs,
                                                                 o,
                                                                 compiler,
                                                                 reference_of(written, inputs, o, compiler),
                                                                 how.error_budget,
                                                                 how.deadline,
                                                                 std::max(1, o.target.workers),
                                                                 how.stop,
                                                                 {},
                                                                 how.in_child} {
    bench_.done = [this](size_t, Trial::Kind) { say(++done_); };
    out_.reference = bench_.reference.from;
  }

  Tuned run() {
    programs();
    if (!stopped()) groups();
    finish();
    return std::move(out_);
  }

private:
  bool stopped() const { return (how_.stop && how_.stop->load()) || late(); }

  bool late() const { return Cpu::seconds() - start_ > how_.seconds; }

  void say(int done) {
    if (!how_.progress) return;
    const double spent = Cpu::seconds() - start_;
    const double left = done ? spent * double(planned_ - done) / double(done) : 0;
    how_.progress({what_, done, planned_, out_.before.median, best_, spent,
                   std::min(left, std::max(0.0, how_.seconds - spent))});
  }

  std::vector<Trial> trials(const std::vector<Schedule>& all, double each) {
    return measure(bench_, all, each);
  }

  // Moves that change which kernels there are: each a program of its own.
  std::vector<Named> moves() const {
    std::vector<Named> out = {{"automatic", o_.schedule}, {"as written", schedule::as_written()}};
    run::Options o = o_;
    const run::Derivation d = run::derive(written_, o);
    const ir::Graph& g = *d.plan.graph;
    Schedule s = o_.schedule;
    s.epilogues = false;
    out.push_back({"no epilogues", s});
    std::set<std::string> shared;
    for (auto& step : d.plan.steps) {
      for (auto& x : step.group.shared)
        if (shared.insert(schedule::key(g, x.node)).second) {
          s = o_.schedule;
          s.groups[schedule::key(g, x.node)].stored = true;
          out.push_back({"store " + g.label({x.node, 0}), s});
        }
      // Members that share a group, apart.
      if (step.group.members.size() > 1) {
        s = o_.schedule;
        for (size_t k = 1; k < step.group.members.size(); ++k)
          s.groups[schedule::key(g, step.group.members[k].node)].joint = false;
        out.push_back({"apart " + g.label({step.group.members[0].node, 0}), s});
      }
      // A long fold with less than one point a worker: parts of it may run beside each other.
      if (step.recur || step.group.members.size() != 1 || !step.group.shared.empty()) continue;
      const ir::NodeId id = step.group.members[0].node;
      const ir::Comp& c = *g[id].comp();
      double points = 1, terms = 1;
      for (auto& e : c.points) points *= double(e.value());
      for (auto& e : c.folds) terms *= double(e.value());
      if (c.folds.empty() || points > 4 * o_.target.workers || points * terms < 1 << 16) continue;
      for (int parts : {2, 4}) {
        s = o_.schedule;
        s.groups[schedule::key(g, id)].split = parts * o_.target.workers;
        out.push_back({"split " + g.label({id, 0}), s});
      }
    }
    if (out.size() > 10) out.resize(10);
    return out;
  }

  void programs() {
    what_ = "programs";
    const std::vector<Named> all = moves();
    planned_ = int(all.size());
    std::vector<Schedule> schedules;
    for (auto& n : all) schedules.push_back(n.schedule);
    std::vector<Trial> t = trials(schedules, how_.each);
    out_.before = t[0].whole;
    best_ = t[0].kind == Trial::ok ? t[0].whole.median : HUGE_VAL;
    base_ = 0;
    for (size_t k = 0; k < all.size(); ++k) {
      note("program", all[k].name, "", t[k], t[k].whole, 0);
      if (t[k].kind == Trial::ok && t[k].whole.runs &&
          (t[0].kind != Trial::ok || (t[k].whole.median < best_ && disjoint(t[k].whole, t[base_].whole)))) {
        best_ = t[k].whole.median;
        base_ = k;
      }
    }
    schedule_ = all[base_].schedule;
    start_trial_ = std::move(t[base_]);
  }

  void note(const std::string& group, const std::string& fields, const std::string& shown, const Trial& t,
            const Sample& time, double estimated, bool remembered = false) {
    out_.timed.push_back({group, fields, shown, t.kind, t.why, estimated, time, remembered});
  }

  // Every group takes its k-th candidate in round k: one program a round.
  void groups() {
    run::Options o = o_;
    o.schedule = schedule_;
    const run::Derivation& d = start_trial_.derivation;
    std::vector<Space> spaces;
    double total = 0;
    for (auto& s : start_trial_.steps) total += s.median;
    for (size_t s = 0; s < d.plan.steps.size() && s < start_trial_.steps.size(); ++s) {
      if (d.plan.steps[s].again || start_trial_.steps[s].median < 0.02 * total) continue; // nothing to gain
      Space space = space_of(d, o, s, machine_);
      out_.refused.insert(out_.refused.end(), space.refused.begin(), space.refused.end());
      if (space.candidates.size() < 2) continue;
      const size_t most = size_t(how_.most) + 1;
      if (space.candidates.size() > most) space.candidates.resize(most);
      spaces.push_back(std::move(space));
      if (stopped()) break;
    }
    size_t rounds = 0;
    for (auto& s : spaces) rounds = std::max(rounds, s.candidates.size());
    planned_ += int(rounds > 0 ? rounds - 1 : 0) + 2;
    times_.assign(spaces.size(), {});
    for (size_t g = 0; g < spaces.size(); ++g) {
      times_[g].resize(spaces[g].candidates.size());
      if (recall(spaces[g], g)) continue;
      times_[g][0] = start_trial_.steps[spaces[g].step];
      remember(spaces[g], 0, times_[g][0]);
    }
    const auto known = [&](size_t g) { return times_[g].size() > 1 && times_[g][1].runs > 0; };
    for (size_t g = spaces.size(); g-- > 0;)
      if (known(g)) {
        settle(spaces[g], g);
        spaces.erase(spaces.begin() + int64_t(g));
        times_.erase(times_.begin() + int64_t(g));
      }
    rounds = 0;
    for (auto& s : spaces) rounds = std::max(rounds, s.candidates.size());
    const size_t batch = size_t(std::max(2, bench_.compilers));
    for (size_t r = 1; r < rounds && !stopped(); r += batch) {
      std::vector<Schedule> all;
      const size_t last = std::min(rounds, r + batch);
      for (size_t k = r; k < last; ++k) all.push_back(round(spaces, k));
      what_ = "groups, round " + std::to_string(r) + " of " + std::to_string(rounds - 1);
      std::vector<Trial> t = trials(all, how_.each);
      for (size_t k = r; k < last; ++k) take(spaces, k, t[k - r]);
    }
    for (size_t g = 0; g < spaces.size(); ++g) settle(spaces[g], g);
  }

  Schedule round(const std::vector<Space>& spaces, size_t k) const {
    Schedule s = schedule_;
    for (auto& x : spaces)
      if (k < x.candidates.size()) s.groups[x.key] = x.candidates[k].fields;
    return s;
  }

  void take(const std::vector<Space>& spaces, size_t k, const Trial& t) {
    if (t.kind == Trial::ok && t.whole.runs) {
      best_ = std::min(best_, t.whole.median);
      for (size_t g = 0; g < spaces.size(); ++g)
        if (k < spaces[g].candidates.size()) record(spaces[g], g, k, t, t.steps[spaces[g].step]);
      return;
    }
    // One of them is at fault: each alone, the others as they were.
    for (size_t g = 0; g < spaces.size() && !stopped(); ++g) {
      if (k >= spaces[g].candidates.size()) continue;
      Trial one = t;
      if (spaces.size() > 1) {
        Schedule s = schedule_;
        s.groups[spaces[g].key] = spaces[g].candidates[k].fields;
        one = std::move(trials({s}, how_.each)[0]);
      }
      record(spaces[g], g, k, one, one.kind == Trial::ok ? one.steps[spaces[g].step] : Sample{});
    }
  }

  void record(const Space& s, size_t g, size_t k, const Trial& t, const Sample& time) {
    const Candidate& c = s.candidates[k];
    if (t.kind == Trial::ok) {
      times_[g][k] = time;
      remember(s, k, time);
    }
    note(s.key, text::fields(c.fields), c.shown, t, time, c.estimated);
  }

  // Kernels that were all timed before, perhaps in another program, are not timed again.
  bool recall(const Space& s, size_t g) {
    if (!how_.store || how_.again) return false;
    for (size_t k = 0; k < s.candidates.size(); ++k) {
      const auto row = how_.store->find("candidate", machine_.device + " " + s.candidates[k].text);
      const auto j = row ? nlohmann::json::parse(*row, nullptr, false) : nlohmann::json();
      Sample t;
      if (j.is_object())
        t = {j.value("median", 0.0), j.value("low", 0.0), j.value("high", 0.0), j.value("best", 0.0),
             j.value("runs", 0)};
      if (!t.runs || !(t.median > 0)) {
        times_[g].assign(s.candidates.size(), {});
        return false;
      }
      times_[g][k] = t;
    }
    Trial ok;
    ok.kind = Trial::ok;
    for (size_t k = 1; k < s.candidates.size(); ++k)
      note(s.key, text::fields(s.candidates[k].fields), s.candidates[k].shown, ok, times_[g][k],
           s.candidates[k].estimated, true);
    return true;
  }

  void remember(const Space& s, size_t k, const Sample& t) {
    if (!how_.store || !t.runs) return;
    const Candidate& c = s.candidates[k];
    const nlohmann::json row = {{"median", t.median},
                                {"low", t.low},
                                {"high", t.high},
                                {"best", t.best},
                                {"runs", t.runs},
                                {"schedule", c.shown},
                                {"fields", text::fields(c.fields)},
                                {"estimated", c.estimated},
                                {"label", s.label},
                                {"graph", std::to_string(ir::hash(written_))},
                                {"group", s.key},
                                {"automatic", k == 0},
                                {"terms", nlohmann::json::parse(judged_terms(c.work, machine_))}};
    how_.store->put("candidate", machine_.device + " " + c.text, row.dump());
  }

  // Of a group the fastest that beats the automatic choice beyond doubt; all groups' together are tried at
  // the end.
  void settle(const Space& s, size_t g) {
    size_t best = 0;
    for (size_t k = 1; k < times_[g].size(); ++k)
      if (times_[g][k].runs && times_[g][k].median < times_[g][best].median &&
          disjoint(times_[g][k], times_[g][0]))
        best = k;
    if (!best) return;
    if (!together_) together_ = schedule_;
    together_->groups[s.key] = s.candidates[best].fields;
  }

  void finish() {
    what_ = "confirming";
    std::vector<Schedule> all = {o_.schedule};
    if (base_) all.push_back(schedule_);
    if (together_) all.push_back(*together_);
    const bool halted = how_.stop && how_.stop->load();
    size_t best = 0;
    if (all.size() > 1 && !halted) {
      std::vector<Trial> t = trials(all, 3 * how_.each);
      for (size_t k = 0; k < all.size(); ++k)
        if (k == 0 ||
            (t[k].kind == Trial::ok && t[k].whole.runs && t[k].whole.median < 0.99 * t[best].whole.median))
          best = k;
      out_.before = t[0].whole;
      out_.after = t[best].whole;
      out_.error = t[best].error;
    } else {
      best = halted && together_ ? all.size() - 1 : halted && base_ ? 1 : 0; // the best so far, unconfirmed
      out_.after = best ? start_trial_.whole : out_.before;
      out_.error = start_trial_.error;
    }
    run::Options o = o_;
    o.schedule = all[best];
    run::Derivation d = run::derive(written_, o);
    // Every field that the rules chose is written down: other rules later, the same kernels.
    Schedule fixed = o.schedule;
    for (size_t s = 0; s < d.plan.steps.size(); ++s)
      if (!d.plan.steps[s].recur) {
        const ir::NodeId id = d.plan.steps[s].group.members[0].node;
        fixed.groups[schedule::key(*d.plan.graph, id)] = resolved(d, o, s);
      }
    run::Options exact = o;
    exact.schedule = fixed;
    run::Derivation same = run::derive(written_, exact);
    out_.record = same.names == d.names ? record_of(written_, same, exact) : record_of(written_, d, o);
    out_.stopped = halted;
    out_.seconds = Cpu::seconds() - start_;
    if (how_.store && !halted)
      how_.store->put("program", program_key(written_, o_, *bench_.compiler), text::print(out_.record));
  }

  const ir::Graph& written_;
  const run::Options& o_;
  const Machine& machine_;
  const Options& how_;
  const double start_ = Cpu::seconds();
  Bench bench_;
  Tuned out_;
  std::string what_;
  int planned_ = 0, done_ = 0;
  double best_ = 0;
  size_t base_ = 0;
  Schedule schedule_; // what groups start from
  Trial start_trial_;
  std::vector<std::vector<Sample>> times_; // of each space's candidates
  std::optional<Schedule> together_;
};
} // namespace

Tuned tune(const ir::Graph& written, const eval::Inputs& inputs, const run::Options& o,
           const std::shared_ptr<device::Compiler>& compiler, const Machine& m, const Options& how) {
  if (how.store && !how.again)
    if (auto known = recalled(written, o, *compiler, *how.store)) {
      Tuned t;
      t.record = std::move(*known);
      t.from_store = true;
      return t;
    }
  return Search(written, inputs, o, compiler, m, how).run();
}

} // namespace tang::tune
