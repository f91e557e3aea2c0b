// The command line: one table of verbs, one meaning each.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <system_error>

#include "tang/cli/measured.hpp"
#include "tang/text/syntax.hpp"

using namespace tang;

namespace {
// A number above 0 that is finite: no NaN, which every comparison would let pass or fail alike.
CLI::Validator above_zero() {
  return {[](std::string& s) {
            char* end = nullptr;
            const double v = std::strtod(s.c_str(), &end);
            const bool good = end != s.c_str() && !*end && std::isfinite(v) && v > 0;
            return good ? std::string() : "'" + s + "' is no number above 0";
          },
          "above 0"};
}

// The word after `tang` that is no verb, with those that are.
void refuse_unknown_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> verbs;
  for (auto* a : app.get_subcommands({})) verbs.push_back(a->get_name());
  if (std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) return;
  std::string all;
  for (auto& v : verbs) all += (all.empty() ? "" : ", ") + v;
  const std::string near = text::nearest(argv[1], verbs);
  throw Error({}, "there is no command '" + text::shown(argv[1]) + "'", {{"commands are " + all, {}}},
              near.empty() ? "tang --help says what each does" : "did you mean '" + near + "'?");
}

// The status of a run whose output may not have arrived, on a full disk.
int finished(int status) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout) return status;
  std::fprintf(stderr, "error: cannot write the output\n  fix: check the space left where it goes\n");
  return status ? status : 1;
}

int failed(const std::string& what) {
  // Problems of a .tang file begin so by themselves.
  std::fprintf(stderr, "%s%s\n", what.rfind("error[", 0) == 0 ? "" : "error: ", what.c_str());
  return 1;
}

int guarded(const std::function<int()>& act) {
  try {
    return act();
  } catch (const Error& e) {
    return failed(e.what());
  } catch (const Bug& e) {
    std::fprintf(stderr, "%s\nthis is a bug in tang: please report it with the file that caused it\n", e.what());
    return 70;
  } catch (const std::bad_alloc&) {
    return failed("not enough memory\n  fix: smaller sizes, or another machine");
  } catch (const std::system_error& e) {
    return failed(std::string("the system refused: ") + e.what() + "\n  fix: fewer threads, or a higher limit");
  }
}
} // namespace

int main(int argc, char** argv) {
  CLI::App app{"tang: kernels are derived, not written"};
  app.require_subcommand(1);
  cli::Common c;
  auto shared = [&](CLI::App* a) {
    a->add_option("--threads", c.threads, "threads of the C target (default: all)")->check(CLI::Range(1, 1024));
    a->add_option("--cache", c.cache,
                  "folder of compiled kernels (default: $TANG_CACHE_DIR, else ~/.cache/tang)");
    a->add_flag("--json", c.json, "print exactly one JSON document");
    return a;
  };
  int64_t scale = 1;
  std::string file, model, tokenizer, prompt, target, name = "kernel";
  uint64_t seed = 1;
  double budget = 1e-4;
  int tokens = 64, lanes = 4;
  bool greedy = false, every = false, formats = false;
  std::vector<std::string> sizes;
  std::function<int()> act;

  auto* demo = shared(app.add_subcommand(
      "demo", "five programs: naive graphs become kernels, run, and are checked\n  tang demo"));
  demo->add_option("--out", c.out, "folder of report.html, results.json and trace.json")
      ->default_val("build/demo");
  demo->add_option("--scale", scale, "multiplies the sizes")->default_val(1)->check(CLI::Range(1, 64));
  demo->callback([&] { act = [&] { return cli::demo(c, scale); }; });

  auto* run =
      shared(app.add_subcommand("run", "run a .tang file on random inputs, or decode with a language model\n "
                                       " tang run --model stories260K.bin --greedy --tokens 64"));
  run->add_option("file", file, "a .tang file");
  run->add_option("--model", model, "a llama2.c checkpoint");
  run->add_option("--tokenizer", tokenizer,
                  "its tokenizer (default: tok512.bin or tokenizer.bin beside the model)");
  run->add_option("--prompt", prompt, "text to continue");
  run->add_option("--tokens", tokens, "tokens to generate")->default_val(64)->check(CLI::Range(0, 1 << 30));
  run->add_option("--seed", seed, "of random inputs and of sampling")->default_val(1);
  run->add_flag("--greedy", greedy, "always the most likely token");
  std::string schedule;
  bool locked = false;
  run->add_option("--schedule", schedule, "a .tangsched file (default: the tuned schedule that the cache knows)");
  run->add_flag("--locked", locked, "refuse a schedule that does not give the very kernels it was made with");
  double limit = 0;
  run->add_option("--budget", limit, "refuse what may be further off than this, by proof or predicted from the inputs")->check(above_zero());
  run->add_option("--target", target, "what it runs on, of those that `tang devices` lists (default: c)");
  run->callback([&] {
    act = [&] {
      return model.empty() ? cli::run_file(c, file, {seed, schedule, locked, target, limit})
                           : cli::run_model(c, model, tokenizer, prompt, tokens, greedy);
    };
  });

  cli::TrainArguments training;
  auto* train = shared(app.add_subcommand(
      "train", "train a small Llama-style model on the characters of a text\n"
               "  tang train /usr/share/common-licenses/GPL-3 --out build/training"));
  train->add_option("text", training.text, "a text file")->required();
  train->add_option("--steps", training.steps, "of the optimizer")->default_val(500)->check(CLI::Range(1, 1000000));
  train->add_option("--batch", training.batch, "sequences a step")->default_val(4)->check(CLI::Range(1, 4096));
  train->add_option("--context", training.context, "characters a sequence")->default_val(256)->check(CLI::Range(2, 8192));
  train->add_option("--model", training.model, "width")->default_val(128)->check(CLI::Range(8, 8192));
  train->add_option("--layers", training.layers, "transformer blocks")->default_val(2)->check(CLI::Range(1, 128));
  train->add_option("--heads", training.heads, "attention heads")->default_val(4)->check(CLI::Range(1, 256));
  train->add_option("--rate", training.rate, "the largest learning rate of the schedule")->default_val(3e-3);
  train->add_option("--clip", training.clip, "norm that gradients are scaled down to; 0: none")->default_val(1);
  train->add_option("--format", training.format, "storage of activations and their gradients: f32, bf16 or f16 (with a loss scale)")
      ->default_val("f32")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  train->add_option("--memory", training.memory, "bytes of stored values to hold at once: beyond, they are computed again")
      ->default_val(0);
  train->add_option("--seed", training.seed, "of weights, batches and samples: the same seed gives the same curve")->default_val(1);
  train->add_option("--prompt", training.prompt, "what the samples continue")->default_val("\n");
  train->add_option("--letters", training.letters, "of each sample")->default_val(300)->check(CLI::Range(0, 100000));
  train->add_option("--out", c.out, "folder of training.svg and training.csv");
  train->callback([&] { act = [&] { return cli::train(c, training); }; });

  auto* explain = shared(app.add_subcommand(
      "explain",
      "the derivation of a graph: each step with its law\n  tang explain examples/attention.tang"));
  explain->add_option("file", file, "a .tang file")->required();
  explain->callback([&] { act = [&] { return cli::explain(c, file); }; });

  auto* verify = shared(app.add_subcommand(
      "verify", "each kernel of a .tang file against the f64 oracle\n  tang verify examples/attention.tang"));
  auto* verified = verify->add_option("file", file, "a .tang file; with --formats a part of a builder's name");
  auto* all = verify->add_flag("--all", every, "every builder of the library instead of a file, forward and backward, under every schedule that applies");
  all->excludes(verified);
  auto* narrow = verify->add_flag("--formats", formats, "every builder in f16 and bf16: what is predicted beside what happens");
  narrow->excludes(all);
  cli::MatrixArguments matrix;
  verify->add_flag("--sample", matrix.sample, "with --all: a part of it in which any two of builder, direction, target and schedule meet")
      ->needs(all);
  verify->add_option("--builder", matrix.builder, "with --all: this one alone")->needs(all);
  verify->add_option("--target", target, "what it runs on (default: c; with --all: everything found)");
  verify->add_option("--seed", seed, "of the random inputs")->default_val(1);
  verify->add_option("--budget", budget, "largest error relative to the largest value")->default_val(1e-4)->check(above_zero());
  verify->add_option("--schedule", schedule, "a .tangsched file");
  std::string record;
  verify->add_option("--record", record, "a file for what each kernel stored: see tang diff");
  verify->callback([&] { act = [&] {
      if (every) return matrix.target = target, cli::verify_all(c, matrix);
      if (formats) return cli::verify_formats(c, target.empty() ? "c" : target, file);
      if (file.empty()) throw Error({}, "nothing to verify", {}, "name a .tang file, or --all");
      return cli::verify_file(c, file, {seed, budget, target.empty() ? "c" : target, schedule, record});
    }; });

  std::string other;
  auto* diff = shared(app.add_subcommand(
      "diff", "the first kernel where two runs differ: devices, schedules or builds\n"
              "  tang verify F.tang --record a; tang verify F.tang --target vulkan --record b; tang diff a b"));
  diff->add_option("a", file, "what tang verify --record wrote")->required();
  diff->add_option("b", other, "of another run of the same graph and seed")->required();
  diff->add_option("--budget", budget, "largest difference relative to the largest value")->default_val(1e-4)->check(above_zero());
  diff->callback([&] { act = [&] { return cli::diff_runs(c, file, other, budget); }; });

  auto* emit =
      shared(app.add_subcommand("emit", "generated source\n  tang emit c examples/gru.tang -o policy"));
  auto* emit_c = emit->add_subcommand("c", "one self-contained .c and .h: C11, no malloc, a self-test");
  emit_c->add_option("file", file, "a .tang file")->required();
  emit_c->add_option("-o,--output", name, "path without extension; its last part prefixes the functions");
  emit_c->add_option("--lanes", lanes, "f32 lanes of a vector: 4 (any x86-64 or Arm), 8 (AVX2), 16 (AVX-512)")
      ->default_val(4)
      ->check(CLI::IsMember({4, 8, 16}));
  emit_c->add_option("--set", sizes, "the value of a symbol of the file, as seq=32")->type_size(1)->allow_extra_args(false);
  emit->require_subcommand(1);
  emit_c->callback([&] { act = [&] { return cli::emit_c(c, file, name, lanes, sizes); }; });

  auto* exports = app.add_subcommand("export", "what the compiler relies on, for others to check\n  tang export proofs build/proofs");
  auto* proofs = exports->add_subcommand("proofs", "monoids, scalar facts and fusion steps as Coq files; proofs/ proves them");
  proofs->add_option("folder", c.out, "folder of the files")->required();
  exports->require_subcommand(1);
  proofs->callback([&] { act = [&] { return cli::export_proofs(c.out); }; });

  int64_t memory = 1 << 20;
  bool in_words = false, as_written = false;
  std::string coq;
  auto* bound = shared(app.add_subcommand("bound", "the least traffic of each kernel of a .tang file, with certificates\n  tang bound examples/attention.tang --bytes 233472"));
  bound->add_option("file", file, "a .tang file")->required();
  bound->add_option("--bytes,--memory", memory, "fast memory, in bytes (in words with --words)")->default_val(1 << 20)->check(above_zero());
  bound->add_flag("--words", in_words, "count elements, not bytes");
  bound->add_flag("--as-written", as_written, "the graph before it is rewritten");
  bound->add_option("--coq", coq, "folder for the certificates as Coq files");
  bound->callback([&] { act = [&] { return cli::bound_file(c, file, memory, in_words, as_written, coq); }; });

  cli::TuneFlags tuning;
  auto* tune = shared(app.add_subcommand("tune", "search for a faster schedule by measuring: a .tang file, demo, or one of its programs\n"
                                           "  tang tune examples/attention.tang -o attention.tangsched"));
  tune->add_option("program", file, "a .tang file, or a program of the demonstration")->required();
  tune->add_option("-o,--output", tuning.out, "the schedule's file (of several programs: a folder)");
  tune->add_option("--seconds", tuning.seconds, "longest search of a program")->default_val(30)->check(above_zero());
  tune->add_option("--candidates", tuning.most, "candidates of a group that are timed")->default_val(8)->check(CLI::Range(1, 1 << 20));
  tune->add_option("--budget", tuning.budget, "largest error relative to the largest value")->default_val(1e-4)->check(above_zero());
  tune->add_option("--seed", tuning.seed, "of the random inputs")->default_val(1);
  tune->add_option("--report", tuning.report, "folder for pictures (SVG)");
  tune->add_flag("--precision", tuning.precision, "then narrower storage and parts of folds, within the budget");
  tune->add_flag("--untimed", tuning.untimed, "measure nothing: of each group the lowest estimate");
  tune->add_flag("--again", tuning.again, "although the cache knows the program");
  tune->callback([&] { act = [&] { return cli::tune_program(c, file, tuning); }; });

  std::string what, kernel;
  auto* probe = shared(app.add_subcommand("probe", "this machine's constants: bandwidth by level, rates, launches\n  tang probe -o probe.json"));
  probe->add_option("-o,--output", what, "a file (default: the screen)");
  probe->add_option("--target", target, "c, or cuda: an NVIDIA GPU (default: c)");
  probe->callback([&] { act = [&] { return cli::probe(c, what, target); }; });

  auto* why = shared(app.add_subcommand("why", "what binds a kernel, what its best schedule would give, what was refused\n  tang why examples/attention.tang"));
  why->add_option("file", file, "a .tang file")->required();
  why->add_option("kernel", kernel, "a part of its label (default: all)");
  why->callback([&] { act = [&] { return cli::why(c, file, kernel); }; });

  int64_t days = 365, most = 100000;
  auto* cache = app.add_subcommand("cache", "what tuning keeps\n  tang cache ls");
  cache->require_subcommand(1);
  for (const char* verb : {"ls", "export", "import", "gc", "train"}) {
    const std::string is = verb;
    const char* says = is == "ls"      ? "rows"
                       : is == "gc"    ? "removes old rows"
                       : is == "train" ? "learns the estimate's weights from the candidates that were timed"
                                       : "rows as text";
    auto* one = shared(cache->add_subcommand(verb, says));
    if (is == "export" || is == "import") one->add_option("file", file, "the text")->required();
    if (is == "train") one->add_option("-o,--output", file, "the weights' file");
    if (is == "gc") {
      one->add_option("--days", days, "older rows go")->default_val(365);
      one->add_option("--most", most, "beyond so many the oldest go")->default_val(100000);
    }
    one->callback([&, verb] { act = [&, verb] { return cli::cache(c, verb, file, days, most); }; });
  }

  cli::FuzzArguments fuzzing;
  auto* fuzz = shared(app.add_subcommand("fuzz", "random graphs on several targets against the oracle\n  tang fuzz --seed 1 --seconds 60 --targets c"));
  fuzz->add_option("--seed", fuzzing.seed, "of the first case")->default_val(1);
  fuzz->add_option("--limit", fuzzing.limit, "seconds a batch: more is a finding")->default_val(120);
  fuzz->add_option("--skip", fuzzing.skip, "cases of that seed to leave out first");
  fuzz->add_option("--seconds", fuzzing.seconds, "how long (default 60 unless --cases is given)");
  fuzz->add_option("--cases", fuzzing.cases, "how many a target");
  fuzz->add_option("--batch", fuzzing.batch, "cases a compilation of the C target")->default_val(40);
  fuzz->add_option("--jobs", fuzzing.jobs, "processes side by side")->default_val(1);
  fuzz->add_option("--targets", fuzzing.targets, "c, simulator, opencl, vulkan, cuda")->delimiter(',')->default_val("c");
  fuzz->add_option("--mutants", fuzzing.mutants, "instead: so many kernels changed by each operator; are they found?");
  fuzz->add_option("--choices", fuzzing.choices, "one case by its choices: what a finding prints");
  fuzz->add_option("--file", fuzzing.file, "one case by the file that --out wrote")->check(CLI::ExistingFile);
  fuzz->add_flag("--show", fuzzing.show, "with --choices or --file: the case, whether it shows something or not");
  fuzz->add_option("--out", c.out, "folder of what was found, as .tang files");
  fuzz->add_option("--compiler", fuzzing.compiler, "of the C target: system, or tcc inside this process (one lane, optimizes nothing)")->check(CLI::IsMember({"system", "tcc"}))->default_val("system");
  fuzz->add_flag("--no-shrinking", fuzzing.no_shrinking, "findings as they are");
  fuzz->add_flag("--no-templates", fuzzing.no_templates, "without the graphs that one rule each is for, as make test draws");
  fuzz->callback([&] {
    if (!fuzzing.cases && fuzzing.seconds <= 0) fuzzing.seconds = 60;
    act = [&] { return cli::fuzz_targets(c, fuzzing); };
  });

  auto* devices = shared(app.add_subcommand("devices", "what was found to run on, with limits"));
  devices->callback([&] { act = [&] { return cli::devices(c); }; });
  app.add_subcommand("version", "the version")->callback([&] {
    act = [] {
      std::puts("tang 0.1.0");
      return 0;
    };
  });

  if (argc == 1) {
    std::fputs(app.help().c_str(), stderr);
    return 1;
  }
  return finished(guarded([&] {
    refuse_unknown_verb(app, argc, argv);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& e) { // --help is one as well
      return app.exit(e) ? 1 : 0;
    }
    return act();
  }));
}
