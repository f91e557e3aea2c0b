#!/usr/bin/python3
"""The checks of `make check`: banned words, laws cited by rules, assumptions of every headline theorem, samples and
their mutants, and that the first two checks fail when violated. Prints one line a failure and `N passed, N failed`."""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import zlib

import lint
import mutation

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["-q", "-w", "-notation-overridden,-ambiguous-paths"]
MATHCOMP = ("bound/loomis_whitney", "bound/machine", "bound/matmul", "bound/attention", "monoids/affine")
passed, failed = 0, []


def expect(ok, what):
    global passed
    if ok:
        passed += 1
    else:
        failed.append(what)
        print("FAIL", what, flush=True)


def coqc(path, *flags):
    run = subprocess.run(["coqc", *FLAGS, *flags, path], cwd=HERE, capture_output=True, text=True, timeout=280)
    return run.returncode, run.stdout, run.stderr


def headlines():
    """Rows of theorems.txt as (section, name, file, statement)."""
    section = ""
    for line in open(os.path.join(HERE, "theorems.txt")):
        line = line.rstrip("\n")
        if line.startswith("## "):
            section = line[3:]
        elif line and not line.startswith("#"):
            name, path, text = [p.strip() for p in line.split(" | ", 2)]
            yield section, name, path, text


def allowed():
    return [l.strip() for l in open(os.path.join(HERE, "allow.txt")) if l.strip() and not l.startswith("#")]


def assumptions(names, imports, flags=("-R", ".", "Tang")):
    """What each theorem assumes, read from Print Assumptions. `names` maps a label to a qualified name."""
    build = os.path.join(HERE, "build")
    os.makedirs(build, exist_ok=True)
    path = os.path.join(build, f"assumptions_{zlib.crc32(repr(sorted(names)).encode()):08x}.v")
    with open(path, "w") as f:
        f.write("\n".join(imports) + "\n")
        for label, name in names.items():
            f.write(f'Goal True. idtac "@@ {label}". Abort.\nPrint Assumptions {name}.\n')
    code, out, err = coqc(path, *flags)
    if code:
        return None, err
    found, label, listing = {}, None, False
    for line in out.split("\n"):
        if line.startswith("@@ "):
            label, listing = line[3:].strip(), False
            found[label] = None                                # neither closed nor listed: an error
        elif line.startswith("Closed under the global context"):
            found[label] = []
        elif line.startswith("Axioms:") or line.startswith("Section Variables:"):
            listing, found[label] = True, []
        elif listing and (m := re.match(r"([A-Za-z_][\w.']*)\s*(:|$)", line)):
            found[label].append(m.group(1))
    return found, err


def is_allowed(axiom):
    return any(a == axiom or a.endswith("." + axiom) for a in allowed())


def assumed_together(names, imports):
    """What all these theorems assume between them: one listing of a tuple of them costs what one theorem costs."""
    every = "(" + ", ".join("@" + n for n in names.values()) + ")"
    return assumptions({"all": "every"}, imports + [f"Definition every := {every}."])


def check_assumptions(each=False):
    """Nothing beyond the list. Returns what each theorem assumes when asked for `each` (a minute more), or where it fails."""
    rows = list(headlines())
    found, files = {}, sorted({path for _, _, path, _ in rows})
    for group in ([f for f in files if f not in MATHCOMP], [f for f in files if f in MATHCOMP]):
        names = {f"{p}:{n}": "Tang." + p.replace("/", ".") + "." + n for _, n, p, _ in rows if p in group}
        imports = [f"From Tang Require {p.replace('/', '.')}." for p in group]
        part, err = assumed_together(names, imports)
        axioms = part and part.get("all")
        if each or axioms is None or not all(map(is_allowed, axioms)):
            part, err = assumptions(names, imports)
        else:
            part = {name: axioms for name in names}
        if part is None:
            expect(False, "Print Assumptions does not run: " + err.strip()[:400])
            return {}
        found.update(part)
    for _, name, path, _ in rows:
        axioms = found.get(f"{path}:{name}")
        expect(axioms is not None and all(map(is_allowed, axioms)), f"{name} assumes {axioms}")
    return found


def check_words():
    for path in sorted(glob.glob(HERE + "/*/*.v") + glob.glob(HERE + "/export/samples/*.v")):
        if "/selftest/" in path or "/build/" in path:
            continue
        found = list(lint.problems(path))
        expect(not found, "; ".join(found))
        expect(open(path).read().count("\n") <= 300, f"{path}: more than 300 lines")


def check_itself():
    """The two checks must fail on files that break them."""
    known = {name for _, name, _, _ in headlines()}
    for text in ('{"a law", "no_such_theorem", Law::exact}', '{"a law", "unproved: ", rewrite::Law::algebraic}',
                 '{"a law", name, Law::exact}'):
        expect(uncited(text, known)[1], f"the check of laws accepts {text}")
    expect(not uncited('{"a law", "split_fold", rewrite::Law::exact}', known)[1], "the check of laws refuses a good law")
    for name in ("bad_words", "bad_variable"):
        expect(list(lint.problems(f"{HERE}/selftest/{name}.v")), f"lint accepts {name}.v")
    # Every banned word at the end of a good file.
    good, damaged = open(f"{HERE}/fold/monoid.v").read(), f"{HERE}/build/damaged.v"
    os.makedirs(f"{HERE}/build", exist_ok=True)
    for line in ("Theorem t : False. Admitted.", "Proof. admit. Qed.", "Proof. give_up. Qed.", "Axiom a : False.", "Axioms a b : False.",
                 "Parameter p : nat.", "Parameters p q : nat.", "Conjecture c : False.", "Variable v : nat.", "Hypothesis h : False.",
                 "Hypotheses h i : False.", "Context (x : nat).", "Section Open.", "Unset Guard Checking.", "#[bypass_check(guard)]"):
        with open(damaged, "w") as f:
            f.write(good + line + "\n")
        expect(list(lint.problems(damaged)), f"lint accepts {line}")
    with open(damaged, "w") as f:
        f.write(good + "(* Axiom, Admitted: words in a comment. *)\n")
    expect(not list(lint.problems(damaged)), "lint refuses a comment")
    os.remove(damaged)
    code, _, err = coqc("selftest/bad_assumption.v", "-R", "selftest", "Bad")
    expect(code == 0, "selftest/bad_assumption.v does not compile: " + err[:200])
    found, err = assumptions({"headline": "Bad.bad_assumption.headline"}, ["From Bad Require bad_assumption."],
                             ("-R", "selftest", "Bad"))
    expect(found and found.get("headline") and not all(map(is_allowed, found["headline"])),
           "the assumption check accepts an axiom that is not on the list")


CITED = re.compile(r'"([^"]*)",\s*(?:\w+::)*Law::(?:exact|algebraic)\b')
ANY = re.compile(r"\bLaw::(?:exact|algebraic)\b(?!\s*[;)?:=])")


def uncited(text, known):
    """Laws in a C++ text that name no theorem and give no reason; and laws that are written in another way."""
    text = re.sub(r'"\s*\n\s*"', "", text)                      # a literal over several lines is one
    names = CITED.findall(text)
    bad = [n for n in names if n not in known and not re.fullmatch(r"unproved: \S.{9,}", n)]
    return names, bad + ["a law without a theorem's name"] * (len(ANY.findall(text)) - len(names))


def unlisted(table, files):
    """Files of a room that the table of its laws does not name; without.cpp only stands in for one that it names."""
    listed = set(re.findall(r'^\s*\{"(\w+)",$', table, re.M)) | {"laws", "without"}
    return [f for f in sorted(files) if f.endswith(".cpp") and f[:-4] not in listed]


def check_cited():
    """Every law of a rule names a theorem of theorems.txt, or says why there is none; and each rule file has a law."""
    known = {name for _, name, _, _ in headlines()}
    for path in sorted(glob.glob(os.path.join(HERE, "..", "src", "*", "*.cpp"))):
        text = open(path).read()
        names, bad = uncited(text, known)
        expect(not bad, f"{os.path.basename(path)} cites {bad}")
        makes = re.search(r"^(?:const )?(?:rewrite::)?Rule \w+\(|^const rewrite::Law& \w+\(", text, re.M)
        expect(names or not makes, f"{os.path.basename(path)} has a rule and no law")
    grad = os.path.join(HERE, "..", "src", "grad")
    table = open(os.path.join(grad, "laws.cpp")).read()
    for file in unlisted(table, os.listdir(grad)):
        expect(False, f"src/grad/{file} has no row in the table of laws")
    expect(unlisted(table, ["other.cpp"]) == ["other.cpp"], "the check of gradient laws accepts a file without a law")


def mutants():
    for number, line in enumerate(open(HERE + "/export/samples/mutants.txt"), 1):
        if line.strip() and not line.startswith("#"):
            sample, old, new = [p.strip() for p in line.rstrip("\n").split(" | ")]
            yield number, sample, old, new


def check_sample(path):
    code, out, err = coqc(path, "-R", ".", "Tang")
    return path, code == 0, err


def wrong_claims(sample, old, new):
    """The theorems of a sample that a replacement changes, each with its definitions; the proofs that stay as they are are left
    out. None when the text to replace is not there."""
    text = open(f"{HERE}/export/samples/{sample}.v").read()
    if old not in text:
        return None
    other = text.replace(old, new, 1)
    changed = [n for n in mutation.theorems(other) if mutation.alone(other, n) != mutation.alone(text, n)]
    return [mutation.alone(other, n) for n in changed] or [other]


def check_mutants(job):
    """All mutants of one sample; returns (number, why it is not rejected or nothing)."""
    sample, rows = job
    folder = f"{HERE}/build/mutants"
    os.makedirs(folder, exist_ok=True)
    tried, said = [], []
    for number, old, new in rows:
        claims = wrong_claims(sample, old, new)
        if claims is None:
            said.append((number, "the text to replace is not there"))
        else:
            # Rejected means that no claim which the replacement changes is proved.
            tried += [(number * 100 + k, claim) for k, claim in enumerate(claims)]
    path = f"{folder}/{sample}.v"
    with open(path, "w") as f:
        f.write(mutation.trials(tried))
    code, out, err = coqc(path, "-R", ".", "Tang")
    killed = mutation.rejected(out)
    for number, _, _ in rows:
        mine = [n for n, _ in tried if n // 100 == number]
        if mine:
            said.append((number, "" if code == 0 and killed.issuperset(mine) else err.strip()[-300:] or "accepted"))
    return said


def check_samples(jobs):
    slow = ("monoid_online_softmax", "monoid_welford", "monoid_count_of_max", "monoid_m")  # first, so that none waits for the last
    paths = sorted(glob.glob(HERE + "/export/samples/*.v"), key=lambda p: (not os.path.basename(p).startswith(slow), p))
    by_sample = {}
    for number, sample, old, new in mutants():
        by_sample.setdefault(sample, []).append((number, old, new))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        proofs, wrong = pool.map(check_sample, paths), pool.map(check_mutants, by_sample.items())
        for path, ok, err in proofs:
            expect(ok, f"{path}: {err.strip()[:300]}")
        for said in wrong:
            for number, why in said:
                expect(not why, f"mutants.txt:{number}: not rejected by the prover: {why}")


if __name__ == "__main__":
    parts = sys.argv[1:] or ["words", "cited", "assumptions", "itself", "samples"]
    if "words" in parts:
        check_words()
    if "cited" in parts:
        check_cited()
    if "assumptions" in parts:
        check_assumptions()
    if "itself" in parts:
        check_itself()
    if "samples" in parts:
        check_samples(int(os.environ.get("JOBS", "2")))
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(bool(failed))
