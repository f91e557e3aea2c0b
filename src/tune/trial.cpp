#include "tang/tune/trial.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tang::tune {

using device::Cpu;
using nlohmann::json;

Sample sample_of(std::vector<double> t) {
  Sample s;
  if (t.empty()) return s;
  std::sort(t.begin(), t.end());
  const double n = double(t.size()), half = 0.98 * std::sqrt(n); // ranks n/2 -+ 1.96 sqrt(n)/2
  auto at = [&](double rank) { return t[size_t(std::clamp(rank, 0.0, n - 1))]; };
  return {at(std::floor(n / 2)), at(std::floor(n / 2 - half)), at(std::ceil(n / 2 + half)), t.front(),
          int(t.size())};
}

double oracle_terms(const ir::Graph& g) {
  double sum = 0;
  for (auto& n : g.nodes) {
    if (auto* c = n.comp()) {
      double terms = 1;
      for (auto& e : c->extents()) terms *= double(e.value());
      sum += terms;
    }
    if (auto* r = n.recur()) sum += double(r->steps.value()) * oracle_terms(*r->step);
  }
  return sum;
}

namespace {
std::vector<uint8_t> held(run::Program& p, const std::string& name) {
  std::vector<uint8_t> bytes(size_t(p.elements(name) * run::bytes_of(p.format(name))));
  p.read(name, bytes.data());
  return bytes;
}
} // namespace

std::map<std::string, eval::Array> results(run::Program& p, const ir::Graph& written) {
  std::map<std::string, eval::Array> all;
  for (auto& out : written.outputs) {
    eval::Array a(eval::bound(written.shape(out.port)), written.type(out.port));
    const auto from = held(p, out.name);
    if (a.type == expr::Type::real)
      a.r = run::read_reals(from.data(), p.format(out.name), a.size());
    else
      a.i = run::read_integers(from.data(), p.format(out.name), a.size());
    all[out.name] = std::move(a);
  }
  return all;
}

Reference reference_of(const ir::Graph& written, const eval::Inputs& inputs, const run::Options& o,
                       const std::shared_ptr<device::Compiler>& compiler) {
  Reference r;
  if (oracle_terms(written) <= most_oracle_terms) {
    eval::Options how;
    how.threads = o.target.workers;
    r.outputs = eval::run(written, inputs, how);
    r.from = "the f64 oracle";
    return r;
  }
  run::Options plain = o;
  plain.optimize = false;
  plain.schedule = schedule::as_written();
  run::Program p(written, compiler, std::make_shared<Cpu>(o.target.workers), plain);
  verify::feed(p, written, inputs);
  p.run();
  r.outputs = results(p, written);
  r.from = "the graph as written, in f32";
  return r;
}

std::pair<double, std::string> checked(run::Program& p, const ir::Graph& written, const eval::Inputs& inputs,
                                       const Reference& r, double budget) {
  verify::feed(p, written, inputs);
  p.poison_scratch();
  for (auto& o : written.outputs) {
    bool state = false;
    for (auto& n : written.nodes) state |= n.input() && n.name == o.name;
    if (!state) p.memory(o.name)->poison();
  }
  p.run();
  double worst = 0;
  std::string why;
  for (auto& o : written.outputs) {
    const eval::Array& want = r.outputs.at(o.name);
    const verify::Check c = verify::compared(held(p, o.name).data(), p.format(o.name), want, budget);
    worst = std::max(worst, c.error);
    if (!c.ok)
      why = "output '" + o.name + "' is off by " + std::to_string(c.error) + " of its largest value, " +
            std::to_string(c.unwritten) + " of " + std::to_string(c.values) + " unwritten";
  }
  for (auto& t : p.trespass()) why = "wrote outside its memory: " + t;
  return {worst, why};
}

namespace {
// The child: builds, checks and measures; every line of its report is one JSON value.
class Child {
public:
  Child(const Bench& b, const std::vector<schedule::Schedule>& all, const std::vector<size_t>& todo, int pipe)
      : b_(b), all_(all), todo_(todo), pipe_(pipe), cpu_(std::make_shared<Cpu>(b.options.target.workers)) {}

  void run(double seconds, int least) {
    std::vector<size_t> good;
    for (size_t k : todo_)
      if (check(k)) good.push_back(k);
    const double end = Cpu::seconds() + seconds * double(good.size());
    for (int round = 0; !good.empty() && (round < least || Cpu::seconds() < end) && round < 2000; ++round)
      for (size_t k : good) {
        say({{"at", k}});
        once(k);
      }
    for (size_t k : good) report(k);
    say({{"end", true}});
  }

private:
  struct Made {
    std::unique_ptr<run::Program> program;
    std::vector<double> whole;
    std::vector<std::vector<double>> steps;
  };

  void say(const json& j) {
    const std::string s = j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    for (size_t at = 0; at < s.size();) {
      const ssize_t n = write(pipe_, s.data() + at, s.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) _exit(3);
      at += size_t(n);
    }
  }

  bool check(size_t k) {
    say({{"at", k}});
    Made& m = made_[k];
    try {
      run::Options o = b_.options;
      o.schedule = all_[k];
      o.guards = true;
      m.program = std::make_unique<run::Program>(b_.written, b_.compiler, cpu_, o);
      if (b_.in_child) b_.in_child(k);
      const auto [error, why] = checked(*m.program, b_.written, b_.inputs, b_.reference, b_.budget);
      say({{"checked", k}, {"error", std::isfinite(error) ? error : 1e300}, {"why", why}});
      if (why.empty()) return true;
    } catch (const Error& e) {
      say({{"checked", k}, {"error", 0.0}, {"why", e.headline()}, {"refused", true}});
    } catch (const std::exception& e) { say({{"checked", k}, {"error", 0.0}, {"why", e.what()}}); }
    made_.erase(k);
    return false;
  }

  void once(size_t k) {
    Made& m = made_.at(k);
    const auto& kernels = m.program->derivation().kernels.kernels;
    m.steps.resize(m.program->derivation().plan.steps.size());
    double from = Cpu::seconds();
    m.program->run();
    m.whole.push_back(b_.clock ? b_.clock(m.program->derivation()) : Cpu::seconds() - from);
    if (m.steps.size() < 2) { // no need for a second look
      if (!m.steps.empty()) m.steps[0].push_back(m.whole.back());
      return;
    }
    std::vector<double> spent(m.steps.size(), 0);
    m.program->run([&](size_t) { from = Cpu::seconds(); },
                   [&](size_t kernel) { spent[size_t(kernels[kernel].step)] += Cpu::seconds() - from; });
    for (size_t s = 0; s < spent.size(); ++s) m.steps[s].push_back(spent[s]);
  }

  static json as_json(const Sample& s) { return {s.median, s.low, s.high, s.best, s.runs}; }

  void report(size_t k) {
    const Made& m = made_.at(k);
    json steps = json::array();
    for (auto& s : m.steps) steps.push_back(as_json(sample_of(s)));
    say({{"measured", k}, {"whole", as_json(sample_of(m.whole))}, {"steps", steps}});
  }

  const Bench& b_;
  const std::vector<schedule::Schedule>& all_;
  const std::vector<size_t>& todo_;
  int pipe_;
  std::shared_ptr<Cpu> cpu_;
  std::map<size_t, Made> made_;
};

Sample sample_from(const json& j) { return {j.at(0), j.at(1), j.at(2), j.at(3), j.at(4)}; }

// The parent's side of one child.
class Watch {
public:
  Watch(const Bench& b, std::vector<Trial>& trials) : b_(b), trials_(trials) {}

  // False: some candidate took the child down, the others go again.
  bool run(const std::vector<schedule::Schedule>& all, const std::vector<size_t>& todo, double seconds,
           int least) {
    int ends[2];
    if (pipe(ends))
      throw Error({}, "no pipe for a child process", {{std::strerror(errno), {}}}, "close some files");
    const pid_t pid = fork();
    if (pid < 0)
      throw Error({}, "no child process for candidates", {{std::strerror(errno), {}}}, "end some processes");
    if (pid == 0) {
      close(ends[0]);
      setpgid(0, 0); // Ctrl-C is for the parent
      signal(SIGPIPE, SIG_IGN);
      try {
        Child(b_, all, todo, ends[1]).run(seconds, least);
      } catch (...) { _exit(4); }
      _exit(0);
    }
    close(ends[1]);
    const End how = listen(ends[0]);
    close(ends[0]);
    if (how != End::finished) kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (how == End::finished) return true;
    if (how == End::stopped || at_ == none) {
      for (size_t k : todo)
        if (trials_[k].kind == Trial::pending || trials_[k].whole.runs == 0) {
          trials_[k].kind = Trial::stopped;
          trials_[k].why = how == End::stopped ? "stopped" : "the child process ended";
        }
      return true;
    }
    trials_[at_].kind = how == End::silent ? Trial::hung : Trial::crashed;
    trials_[at_].why = how == End::silent    ? "silent for " + std::to_string(int(b_.deadline)) + " s"
                       : WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                             : "ended with status " + std::to_string(WEXITSTATUS(status));
    if (b_.done) b_.done(at_, trials_[at_].kind);
    return false;
  }

private:
  enum class End : uint8_t { finished, silent, died, stopped };
  static constexpr size_t none = SIZE_MAX;

  End listen(int fd) {
    std::string held;
    at_ = none;
    double last = Cpu::seconds();
    for (;;) {
      if (b_.stop && b_.stop->load()) return End::stopped;
      pollfd wait{fd, POLLIN, 0};
      const int n = poll(&wait, 1, 50);
      if (n == 0 || (n < 0 && errno == EINTR)) {
        if (Cpu::seconds() - last > b_.deadline) return End::silent;
        continue;
      }
      char buffer[4096];
      const ssize_t got = read(fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return End::died;
      last = Cpu::seconds();
      held.append(buffer, size_t(got));
      for (size_t line; (line = held.find('\n')) != std::string::npos; held.erase(0, line + 1)) {
        const json j = json::parse(held.substr(0, line), nullptr, false);
        if (j.is_object() && take(j)) return End::finished;
      }
    }
  }

  bool take(const json& j) {
    if (j.contains("end")) return true;
    if (j.contains("at")) at_ = j["at"];
    if (j.contains("checked")) {
      Trial& t = trials_.at(j["checked"]);
      t.error = j["error"];
      t.why = j["why"];
      t.kind = t.why.empty() ? Trial::ok : j.contains("refused") ? Trial::refused : Trial::wrong;
      if (b_.done) b_.done(j["checked"], t.kind);
    }
    if (j.contains("measured")) {
      Trial& t = trials_.at(j["measured"]);
      t.whole = sample_from(j["whole"]);
      t.steps.clear();
      for (auto& s : j["steps"]) t.steps.push_back(sample_from(s));
    }
    return false;
  }

  const Bench& b_;
  std::vector<Trial>& trials_;
  size_t at_ = none;
};
} // namespace

std::vector<Trial> measure(const Bench& b, const std::vector<schedule::Schedule>& all, double seconds,
                           int least) {
  std::vector<Trial> trials(all.size());
  std::vector<std::pair<size_t, std::string>> units;
  auto stopped = [&] { return b.stop && b.stop->load(); };
  for (size_t k = 0; k < all.size() && !stopped(); ++k) {
    run::Options o = b.options;
    o.schedule = all[k];
    try {
      trials[k].derivation = run::derive(b.written, o);
      units.emplace_back(k, run::source(trials[k].derivation, o));
    } catch (const Error& e) {
      trials[k].kind = Trial::refused;
      trials[k].why = e.headline() + (e.facts().empty() ? "" : ": " + e.facts()[0].text);
    }
  }
  // Compiled here, several at once, into the kernel cache; the child loads them from there.
  for (size_t from = 0; from < units.size() && !stopped(); from += size_t(b.compilers)) {
    std::vector<std::string> some;
    for (size_t k = from; k < std::min(units.size(), from + size_t(b.compilers)); ++k)
      some.push_back(units[k].second);
    try {
      b.compiler->compile(some);
    } catch (const Error& e) { // which one shows in the child
    }
  }
  for (;;) {
    std::vector<size_t> todo;
    for (auto& u : units)
      if (auto kind = trials[u.first].kind; kind == Trial::pending || kind == Trial::ok)
        todo.push_back(u.first);
    if (todo.empty()) break;
    if (stopped()) {
      for (size_t k : todo) trials[k].kind = Trial::stopped;
      break;
    }
    if (Watch(b, trials).run(all, todo, seconds, least)) break;
  }
  return trials;
}

} // namespace tang::tune
