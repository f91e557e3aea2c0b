#include "tang/fuzz/message.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace tang::fuzz {

std::string words(const Sequence& s) {
  std::string out;
  for (uint32_t v : s) out += (out.empty() ? "" : ",") + std::to_string(v);
  return out;
}

Sequence sequence(const std::string& words) {
  Sequence out;
  std::stringstream in(words);
  for (std::string w; std::getline(in, w, ',');) out.push_back(uint32_t(std::stoul(w)));
  return out;
}

void Sender::line(const std::string& s) {
  const std::string l = s + "\n";
  for (size_t at = 0; at < l.size();) {
    const ssize_t n = write(pipe_, l.data() + at, l.size() - at);
    if (n <= 0) _exit(3);
    at += size_t(n);
  }
}

void Sender::at(uint64_t seed) { line("at " + std::to_string(seed)); }

void Sender::fault(uint64_t seed, const Fault& f, const Sequence& choices) {
  std::string what = f.what;
  std::replace(what.begin(), what.end(), '\n', ' ');
  line("fault " + std::to_string(seed) + "\t" + f.kind + "\t" + words(choices) + "\t" + what);
}

void Sender::number(const std::string& what, int64_t n) { line("number " + std::to_string(n) + " " + what); }

namespace {
void take(const std::string& line, Summary& sum, const std::string& target, uint64_t& last, bool& done,
          std::vector<Finding>& found) {
  std::stringstream in(line);
  std::string head;
  in >> head;
  if (head == "at") in >> last;
  if (head == "done") done = true;
  if (head == "number") {
    int64_t n = 0;
    std::string what;
    in >> n;
    in.ignore();
    std::getline(in, what);
    if (!what.compare(0, 6, "cases "))
      sum.cases[what.substr(6)] += n;
    else if (!what.compare(0, 8, "refused "))
      sum.refused[what.substr(8)] += n;
    else if (what == "values")
      sum.values += n;
    else if (what == "open")
      sum.open += n;
    else if (what == "refused")
      sum.refused[target] += n;
    else if (!what.compare(0, 5, "rule "))
      sum.fired[what.substr(5)] += n;
    else if (!what.compare(0, 5, "kind "))
      sum.kinds[what.substr(5)] += n;
  }
  if (head == "fault") {
    Finding f;
    f.target = target;
    std::string seed, choices;
    in.ignore();
    std::getline(in, seed, '\t');
    std::getline(in, f.kind, '\t');
    std::getline(in, choices, '\t');
    std::getline(in, f.what);
    f.seed = std::stoull(seed);
    f.choices = sequence(choices);
    found.push_back(f);
  }
}
} // namespace

Process start(const std::function<void(Sender&)>& work, int limit) {
  int ends[2];
  if (pipe(ends))
    throw Error({}, "no pipe to a process of its own", {{std::strerror(errno), {}}}, "close some files");
  const pid_t child = fork();
  if (child < 0)
    throw Error({}, "no process for a batch", {{std::strerror(errno), {}}}, "end some processes");
  if (!child) {
    close(ends[0]);
    alarm(unsigned(limit));
    Sender out(ends[1]);
    try {
      work(out);
      out.number("done", 0);
      const char done[] = "done\n";
      if (write(ends[1], done, 5) != 5) _exit(3);
    } catch (const std::exception& e) { out.fault(0, {"bug", e.what()}, {}); }
    _exit(0);
  }
  close(ends[1]);
  return {child, ends[0], limit};
}

std::vector<Finding> finish(const Process& p, Summary& sum, const std::string& target) {
  std::vector<Finding> found;
  std::string held;
  uint64_t last = 0;
  bool done = false;
  char block[4096];
  for (ssize_t n; (n = read(p.pipe, block, sizeof block)) > 0;) {
    held.append(block, size_t(n));
    for (size_t at; (at = held.find('\n')) != std::string::npos; held.erase(0, at + 1))
      take(held.substr(0, at), sum, target, last, done, found);
  }
  close(p.pipe);
  int status = 0;
  waitpid(p.id, &status, 0);
  if (!done && WIFSIGNALED(status)) {
    const bool slow = WTERMSIG(status) == SIGALRM;
    found.push_back({last,
                     target,
                     slow ? "hang" : "crash",
                     slow ? "no end within " + std::to_string(p.limit) + " s"
                          : std::string("ended by signal ") + strsignal(WTERMSIG(status)),
                     {},
                     ""});
  }
  return found;
}

std::vector<Finding> in_process(const std::function<void(Sender&)>& work, Summary& sum,
                                const std::string& target, int limit) {
  return finish(start(work, limit), sum, target);
}

} // namespace tang::fuzz
