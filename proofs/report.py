#!/usr/bin/python3
"""Writes docs/proofs.md: each law, its theorem, its file, what it assumes; what the compiler TANG prints; and what is not
covered. `report.py TANG`"""
import os
import sys
import tempfile

import check
import exported

NOT_COVERED = """
- **Floating point**: `round/` bounds sums of any tree in binary32, bfloat16 and binary16, and expressions of sums, products,
  extremes, quotients, roots and narrower stores for any rounding with a relative error (`expression_error`), assuming no overflow
  and, beyond sums, no result below the normal numbers. exp2, log2, sin and atan2 have the error that their maker states. The
  rescaling of online softmax has no bound of its own. Signed zeros and NaN payloads are not modelled anywhere.
- **1/0** is NaN in the extended reals of `export/` (there is one zero, so it has no sign): no rule may rest on what a
  device gives for it. The same holds for atan2 at infinities.
- **Integers** are real numbers in printed terms: wrap-around of 64-bit arithmetic, shifts and bit operations are not modelled;
  conversions from real to index do not saturate. Index terms are proved where the compiler keeps them in range.
- **Read guard to absence** is proved for any monoid and any notion of NaN that every combine propagates. That the compiler's
  simplifier decides the condition correctly is a matter of the scalar rules, which are proved one by one.
- **The compiler's C++** is not verified. What it did is: monoids, scalar rules, max eliminations, fusion steps and
  certificates are printed as terms and proved here (export/README.md).
- **Which monoid** it is: the laws accept every lawful combine. One that prefers the larger index among NaNs is as lawful as the
  contract's; only tests against the oracle tell them apart.
- **`exported_split`** is about terms that range over the declared kinds; that the inputs do is a contract of the language.
- **Top-k**: the network is proved for every k from its generator (`topk_row`); printed terms are compared with the generator for
  k = 1 and 2 only, because the unrolled text grows exponentially.
- **Rows with more sums or places** than the printed ones (`online_softmax` of three sums, `top8`): `online_softmax_monoid` and
  `best_row_is_best` hold for any number; that the C++ generator makes those terms is seen for 1 and 2 only.
- **absorbing**: the theorem is generic in base and act. That a given printed combine has the absorbing form is decided by the
  compiler, and checked there; what is proved of the printed combine is the monoid laws.
- **Gradients** through Recur, gathers inside bodies of several ports, and ties of a max (a gate on the first arg-max; the
  derivative does not exist there) are not covered. `gradient_of_max` asks for a unique arg-max.
- **Max eliminations**: values are numbers, or absent. A row without a term (its max is -inf, which is no number) is outside the
  theorem, and so are logs of numbers that are not positive; comparisons of what moves with an infinity are decided as for
  numbers. Subterms free of the max, guards free of it and infinite literals are data. A double that is another's reciprocal
  up to rounding stands for that reciprocal (`rounded` checks the distance). A gather of what moves is refused, and so is Recur.
- **Bounds**: the whole way from schedules to words is proved for matmul and its like (three arrays, three loops) and for fused
  attention. For other kernels the inequality between points and touched elements is proved, whatever their views; that a schedule
  of Q words has Q/T + 1 segments, and the constants of docs/bound.md made of it, are proved for those two shapes only.
  Certificates are exact in both directions for the program as stated, not for its integer tiles. A strided loop is cut into
  quotient and remainder before, by C++ (the coordinates are `radix_split` and `radix_merge`).
- **Plans, kernels, Recur adjoints, memory and concurrency** are outside: they are tested against the oracle, not proved.
- **`normalise` with `ratio`** over the extended reals is false without a term above 0 (`normalise_needs_a_term`). The rule asks for
  one: exponents that are numbers, or the max of the very terms, whose exponent is then 0. That test is C++, with refusals as
  tests.
- **Scalar facts** are over the reals: a literal that the compiler computes in doubles may be rounded (`literal_*` are samples where
  nothing is), and overflow is not modelled. A fact that drops an operand holds where the operand exists. `finite` operands of
  `distribute`: leaves are taken for numbers; log2 and literal infinities are not distributed over.
- **Fusion steps**: axes and index reads are numbers that exist, axes within the extents that the compiler prints. When to
  fuse and the simplifications after it are not printed. Nor are the steps of the other structural rules (`merge_siblings`,
  `drop_guard`, `guard_to_absence`, `absence_to_domain`, `one_term_splice`, `hoist`, `factor`, `reshape`, `reuse`, `swap_folds`,
  `normalise`, `keep_row`, `stabilize_softmax`): each law is a theorem or says why there is none, and that the C++ does what the
  law says is tested. Terms are checked written out, some 2 us a node; sharing inside a step is not used.
- **Counts of Welford**: a component that others divide by ranges over numbers >= 0; its laws fail for weights of both signs.
"""


def exported_counts(tang):
    """Theorems of what this compiler prints, by kind, and how many wrong versions of it are tried."""
    with tempfile.TemporaryDirectory() as folder:
        counts, omitted = exported.printed(os.path.abspath(tang), folder)
        rejected = len(list(exported.mutants(folder))) + sum(count for _, _, count in exported.wrong_files(folder))
    return counts, rejected, omitted


def short(axiom):
    return axiom.split(".")[-1]


def main():
    printed, rejected, omitted = exported_counts(sys.argv[1])
    found = check.check_assumptions(each=True)
    lines = ["# Proofs", "",
             "Generated by `make -C proofs report`; do not edit. The laws that rewrite rules cite, as Coq 8.16 theorems.",
             "`make -C proofs` builds them, `make -C proofs check` checks them: no admitted proof, no axiom beyond the list",
             "below, printed samples proved, mutated samples rejected.", ""]
    section = None
    for title, name, path, text in check.headlines():
        if title != section:
            section = title
            lines += [f"## {title}", "", "| theorem | says | file | assumes |", "|---|---|---|---|"]
            lines = lines if lines[-5] == "" else lines[:-4] + [""] + lines[-4:]
        axioms = found.get(f"{path}:{name}")
        assumes = "?" if axioms is None else ", ".join(sorted(set(map(short, axioms)))) or "nothing"
        lines.append(f"| `{name}` | {text.replace('|', chr(92) + '|')} | proofs/{path}.v | {assumes} |")
    lines += ["", "## Assumptions", "", "Nothing else may be assumed (`proofs/allow.txt`):", ""]
    lines += [f"- `{a}`" for a in check.allowed()]
    samples = sorted(f[:-2] for f in os.listdir(check.HERE + "/export/samples") if f.endswith(".v"))
    lines += ["", "## Printed terms", "",
              f"{len(samples)} printed samples are proved and {len(list(check.mutants()))} mutants of them rejected "
              "(`proofs/export/samples/`): " + ", ".join(f"`{s}`" for s in samples) + ".",
              "", "## What the compiler prints", "",
              f"`tang export proofs DIR` prints {printed}, and `make -C proofs exported` proves all of it and sees "
              f"{rejected} wrong versions rejected:", "",
              "- every row of the monoid table, and the rows of `more_proved_monoids`, as their combines are traced: what a fold may "
              "use without its author's `unproved` (`ir::is_proved`);",
              "- every fact that the simplifier or the split into existence and value uses (`src/expr/facts.cpp`, where a test "
              "shows that each is performed);",
              "- every step of `fuse` in compiles of the demonstration's programs, of the builders of `models/`, and of the "
              "gradients of both: Coq splices the map's body, its whole domain included, compares with what the compiler made, "
              "coordinates as linear forms; a bound that the compiler dropped has an affine certificate (coefficients >= 0 over "
              "the ranges of the reader's axes and the bounds of its domain), which Coq checks;",
              "- every max that those gradients eliminate: Coq computes the degree of each node between the max and the roots;",
              "- the traffic bound of every kernel of those compiles, and of the worked table of docs/bound.md with 2048, 4096, 16384 "
              "and 65536 words: tile and cover, checked as integer powers, ranks computed by Coq, and a derivation of the cover's "
              "inequality from submodularity of entropy, whatever the views;",
              "- the same inequality for the cover that each printed number of words rests on, in both models.", "",
              *(["Not in it:", ""] + [f"- {line}" for line in omitted] if omitted else
                ["Nothing that these compiles do of these kinds is left out."]), "", "## Not covered", NOT_COVERED.strip(), ""]
    target = os.path.join(check.HERE, "..", "docs", "proofs.md")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w") as f:
        f.write("\n".join(lines))
    print(f"wrote docs/proofs.md: {sum(1 for _ in check.headlines())} theorems")
    return bool(check.failed)


if __name__ == "__main__":
    raise SystemExit(main())
