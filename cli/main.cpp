// The command line: one table of verbs, one meaning each.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "tang/cli/tool.hpp"

using namespace tang;

int main(int argc, char** argv) {
  CLI::App app{"tang: kernels are derived, not written"};
  app.require_subcommand(1);
  cli::Common c;
  auto shared = [&](CLI::App* a) {
    a->add_option("--threads", c.threads, "threads of the C target (default: all)");
    a->add_option("--cache", c.cache,
                  "folder of compiled kernels (default: $TANG_CACHE_DIR, else ~/.cache/tang)");
    a->add_flag("--json", c.json, "print exactly one JSON document");
    return a;
  };
  int64_t scale = 1;
  std::string file, model, tokenizer, prompt, name = "kernel";
  uint64_t seed = 1;
  double budget = 1e-4;
  int tokens = 64, lanes = 4;
  bool greedy = false;
  std::vector<std::string> sizes;
  std::function<int()> act;

  auto* demo = shared(app.add_subcommand(
      "demo", "five programs: naive graphs become kernels, run, and are checked\n  tang demo"));
  demo->add_option("--out", c.out, "folder of report.html, results.json and trace.json")
      ->default_val("build/demo");
  demo->add_option("--scale", scale, "multiplies the sizes")->default_val(1);
  demo->callback([&] { act = [&] { return cli::demo(c, scale); }; });

  auto* run =
      shared(app.add_subcommand("run", "run a .tang file on random inputs, or decode with a language model\n "
                                       " tang run --model stories260K.bin --greedy --tokens 64"));
  run->add_option("file", file, "a .tang file");
  run->add_option("--model", model, "a llama2.c checkpoint");
  run->add_option("--tokenizer", tokenizer,
                  "its tokenizer (default: tok512.bin or tokenizer.bin beside the model)");
  run->add_option("--prompt", prompt, "text to continue");
  run->add_option("--tokens", tokens, "tokens to generate")->default_val(64);
  run->add_option("--seed", seed, "of random inputs and of sampling")->default_val(1);
  run->add_flag("--greedy", greedy, "always the most likely token");
  run->callback([&] {
    act = [&] {
      return model.empty() ? cli::run_file(c, file, seed)
                           : cli::run_model(c, model, tokenizer, prompt, tokens, greedy);
    };
  });

  auto* explain = shared(app.add_subcommand(
      "explain",
      "the derivation of a graph: each step with its law\n  tang explain examples/attention.tang"));
  explain->add_option("file", file, "a .tang file")->required();
  explain->callback([&] { act = [&] { return cli::explain(c, file); }; });

  auto* verify = shared(app.add_subcommand(
      "verify", "each kernel of a .tang file against the f64 oracle\n  tang verify examples/attention.tang"));
  verify->add_option("file", file, "a .tang file")->required();
  verify->add_option("--seed", seed, "of the random inputs")->default_val(1);
  verify->add_option("--budget", budget, "largest error relative to the largest value")->default_val(1e-4);
  verify->callback([&] { act = [&] { return cli::verify_file(c, file, seed, budget); }; });

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
  bound->add_option("--bytes,--memory", memory, "fast memory, in bytes (in words with --words)")->default_val(1 << 20);
  bound->add_flag("--words", in_words, "count elements, not bytes");
  bound->add_flag("--as-written", as_written, "the graph before it is rewritten");
  bound->add_option("--coq", coq, "folder for the certificates as Coq files");
  bound->callback([&] { act = [&] { return cli::bound_file(c, file, memory, in_words, as_written, coq); }; });

  auto* devices = shared(app.add_subcommand("devices", "what was found to run on, with limits"));
  devices->callback([&] { act = [&] { return cli::devices(c); }; });
  app.add_subcommand("version", "the version")->callback([&] {
    act = [] {
      std::puts("tang 0.1.0");
      return 0;
    };
  });

  CLI11_PARSE(app, argc, argv);
  try {
    return act();
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  } catch (const Bug& e) {
    std::fprintf(stderr, "%s\nthis is a bug in tang: please report it with the file that caused it\n",
                 e.what());
    return 70;
  }
}
