#!/usr/bin/python3
"""Proves what the compiler TANG prints: `exported.py TANG [prove | mutants ..]`. Every file must be accepted by coqc; every
mutant of a theorem in it must be rejected by its prover. JOBS processes at a time. Prints `N passed, N failed`."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

import mutation
from mutation import REJECTED, alone, theorems

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["-q", "-w", "-notation-overridden,-ambiguous-paths", "-R", HERE, "Tang"]
# file | theorem | what to replace (first occurrence after the theorem's Definition) | by what. Theorems and texts are those
# of the export: a row whose text is gone fails, so that the list follows the compiler.
MUTANTS = os.path.join(HERE, "exported_mutants.txt")


# Words of fast memory at which the worked table of docs/bound.md is printed.
MEMORIES = (2048, 4096, 16384, 65536)


def printed(tang, folder):
    """All that the compiler prints, into a folder; returns what it counts and the lines of what it leaves out."""
    run = subprocess.run([tang, "export", "proofs", folder], capture_output=True, text=True, check=True)
    for memory in MEMORIES:
        subprocess.run([tang, "bound", os.path.join(HERE, "..", "docs", "bound.tang"), "--as-written", "--words", "--memory",
                        str(memory), "--coq", folder], capture_output=True, text=True, check=True)
    omitted = [line.split(": ", 1)[1] for line in run.stderr.splitlines() if line.startswith("not covered: ")]
    return run.stdout.rsplit(":", 1)[0].strip(), omitted


def coqc_says(path):
    try:
        run = subprocess.run(["coqc", *FLAGS, path], cwd=os.path.dirname(path), capture_output=True, text=True, timeout=280)
    except subprocess.TimeoutExpired:
        return False, "", "no answer in 280 s"
    return run.returncode == 0, run.stdout.strip(), run.stderr.strip()


def coqc(path):
    ok, _, err = coqc_says(path)
    return ok, err


def mutants(folder):
    """Yields (what, mutated text or None when the text to replace is not there)."""
    for number, line in enumerate(open(MUTANTS), 1):
        if not line.strip() or line.startswith("#"):
            continue
        file, name, old, new = [p.strip() for p in line.rstrip("\n").split(" | ")]
        what = f"exported_mutants.txt:{number}"
        files = [f for f in sorted(os.listdir(folder)) if re.fullmatch(re.escape(file) + r"(_\d+)?\.v", f)]
        texts = [t for t in (open(os.path.join(folder, f)).read() for f in files) if name in theorems(t)]
        text = alone(texts[0], name) if texts else ""
        yield what, text.replace(old, new, 1) if old in text else None


def parts_of(text, name):
    """The body of Definition NAME, and the statement and the prover of its theorem."""
    body = re.search(rf"^Definition {name} : (\w+(?: \w+)*) :=(.*?)\.$", text, re.M | re.S)
    claim = re.search(rf"^Theorem {name}_ok : (.*?)\.\s+Proof\. (\w+)\. Qed\.", text, re.M | re.S)
    return body.group(1), body.group(2), claim.group(1), claim.group(2)


def wrong_fusion(body, claim):
    """A read of the result moved by one; a certificate dropped; a coefficient of a certificate changed."""
    lines = body.split("\n")
    read = re.search(r"\(rd \d+ \[(?!\])", lines[-1])    # the last line is what the compiler made of the reader
    if read:
        yield "\n".join(lines[:-1] + [lines[-1][:read.end()] + "(lit 77 0); " + lines[-1][read.end():]]), claim
    lists = re.match(r"fused (\[[^\]]*\]) (.*) (\w+)$", claim, re.S)
    at = lists.group(2).find("[Drop ")
    if at >= 0:
        yield body, f"fused {lists.group(1)} {lists.group(2)[:at]}[] {lists.group(3)}"
        if "%nat, " in claim:
            yield body, re.sub(r"%nat, (\d+)%Z", lambda m: f"%nat, {int(m.group(1)) + 1}%Z", claim, count=1)


def wrong_elimination(body, claim):
    """A quotient turned into a product; a node left out; a value that moves with the max among the roots."""
    if "(Ratio " in body:
        yield body.replace("(Ratio ", "(Mul ", 1), claim
    nodes = body.split(";\n")
    less = re.sub(r"(\d+)%nat", lambda m: f"{int(m.group(1)) - 1}%nat", claim)
    if len(nodes) > 2:
        yield " [" + ";\n".join(nodes[1:]), less
    moving = [k + 1 for k, node in enumerate(nodes) if "(Exp2 " in node and "(Ratio " not in node]
    if moving:
        yield body, re.sub(r"\[(\d+%nat)", rf"[{moving[0]}%nat; \1", claim)


def wrong_certificate(body, claim):
    """A cover that costs more; a tile that is longer; a step of the derivation that counts double."""
    lines = body.split("\n")
    more = {5: r"\[+([^;\]]*)", 7: r"\[+([^;\]]*)", 11: r"Step \(([^)]*)\)"}
    for k, place in more.items():
        first = re.search(place, lines[k])
        if first and first.group(1):
            line = lines[k][:first.start(1)] + f"({first.group(1)}) + 1" + lines[k][first.end(1):]
            yield "\n".join(lines[:k] + [line] + lines[k + 1:]), claim


# Kernels of docs/bound.tang: each must be proved at each size of memory that was printed.
TABLE = ("matmul", "skinny", "narrow", "gemv", "batched", "pointwise", "conv3x3", "strided", "conv1x1", "depthwise", "attention")


def missing_rows(folder):
    """Rows of the worked table without a printed theorem."""
    tables = [f for f in sorted(os.listdir(folder)) if re.fullmatch(r"certificate_bound_\d+\.v", f)]
    if len(tables) != len(MEMORIES):
        yield f"the worked table is printed at {len(tables)} sizes of memory"
    for file in tables:
        printed = theorems(open(os.path.join(folder, file)).read())
        for row in TABLE:
            wanted = rf"b\d+_{row}_\d+" if row != "attention" else r"b\d+_\w+_chained_\d+"
            if not any(re.fullmatch(wanted, name) for name in printed):
                yield f"{file}: no certificate of {row}"


def wrong_cover(body, claim):
    """A step that counts double; half of what the first array pays."""
    step = re.search(r"Step \(([^)]*)\)", body)
    if step:
        yield body[:step.start(1)] + f"({step.group(1)}) + 1" + body[step.end(1):], claim
    paid = re.search(r"%Z \[(?:0; )*([1-9][^;\]]*)", claim)
    if paid:
        yield body, claim[:paid.start(1)] + f"({paid.group(1)}) * (1 # 2)" + claim[paid.end(1):]


# By the type of what is printed.
WRONG = {"fusion": wrong_fusion, "list node": wrong_elimination, "certificate": wrong_certificate, "derivation": wrong_cover}


def wrong_files(folder):
    """For every file of these kinds one with wrong versions of its theorems: (what, text, how many). It runs each prover, which
    must fail, and says so."""
    for file in sorted(os.listdir(folder)):
        if not re.fullmatch(r"(fusion|elimination|certificate|cover)_\w+\.v", file):
            continue
        text = open(os.path.join(folder, file)).read()
        out, count = re.sub(r"^(Theorem|Lemma) .*?Qed\.\n", "", text, flags=re.M | re.S), 0
        for name in theorems(text):
            kind, body, claim, prover = parts_of(text, name)
            for other, goal in WRONG[kind](body, claim):
                count += 1
                mutant = f"{name}_wrong{count}"
                goal = re.sub(rf"\b{name}\b", mutant, goal)
                out += f"Definition {mutant} : {kind} :={other}.\nGoal {goal}.\nProof. {mutation.fails(prover)}; idtac \"{REJECTED}\". Abort.\n"
        yield file, out, count


def check_mutants(job):
    """The listed mutants of one file: (number, what, text) each; returns what was not rejected, and why."""
    key, jobs, folder = job
    path = os.path.join(folder, f"mutants_of_{key}.v")
    with open(path, "w") as f:
        f.write(mutation.trials([(number, text) for number, _, text in jobs]))
    ok, said, err = coqc_says(path)
    killed = mutation.rejected(said)
    return [(what, "" if ok and number in killed else err[-300:] or "accepted") for number, what, _ in jobs]


def check_wrong(job):
    (what, text, count), folder = job
    path = os.path.join(folder, "wrong_" + what)
    with open(path, "w") as f:
        f.write(text)
    ok, said, err = coqc_says(path)
    rejected = said.count(REJECTED)
    return what, count, "" if ok and rejected == count else err[-400:] or f"{rejected} of {count} rejected"


def main():
    with tempfile.TemporaryDirectory() as folder:
        counts, omitted = printed(os.path.abspath(sys.argv[1]), folder)
        print("\n".join([counts] + ["not covered: " + line for line in omitted]), flush=True)
        return checked(folder, sys.argv[2:] or ["prove", "mutants"])


def checked(folder, parts):
    """Proves the files of a folder and tries their mutants; true when something failed."""
    jobs = int(os.environ.get("JOBS", "2"))
    passed, failed = 0, list(missing_rows(folder))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        if "prove" in parts:
            paths = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".v") and not f.startswith("mutant_"))
            # The slow ones first, so that no process waits for the last.
            paths.sort(key=lambda p: (not os.path.basename(p).startswith("monoid_"), -os.path.getsize(p)))
            for path, (ok, err) in zip(paths, pool.map(coqc, paths)):
                count = len(theorems(open(path).read()))
                if ok and count:
                    passed += count
                else:
                    failed.append(f"{path}: {err[:600] or 'no theorem'}")
        if "mutants" in parts:
            work = os.path.join(folder, "mutants")
            os.makedirs(work, exist_ok=True)
            every, wrong, killed = list(mutants(folder)), list(wrong_files(folder)), 0
            groups = {}
            for number, (what, text) in enumerate(every):
                if text is None:
                    failed.append(f"{what}: the file, the theorem or the text to replace is not there")
                else:
                    groups.setdefault(mutation.imports(text), []).append((number, what, text))
            jobs = [(f"{k}_{part}", g[part::2], work) for k, g in enumerate(groups.values()) for part in (0, 1) if g[part::2]]
            for said in pool.map(check_mutants, jobs):
                for what, why in said:
                    killed += not why
                    if why:
                        failed.append(f"{what}: not rejected by the prover: {why}")
            for what, count, said in pool.map(check_wrong, [(w, work) for w in wrong]):
                killed += count if not said else 0
                if said:
                    failed.append(f"{what}: a wrong version is not rejected by the prover: {said}")
            passed += killed
            total = len(every) + sum(count for _, _, count in wrong)
            print(f"{killed} of {total} wrong versions rejected")
            kinds = {k for _, text, _ in wrong for k in re.findall(r"^Definition \w+_wrong\d+ : (\w+(?: \w+)*) :=", text, re.M)}
            if len(every) < 30 or kinds != set(WRONG):
                failed.append(f"only {len(every)} listed mutants, and made ones of {sorted(kinds)}")
    for line in failed:
        print("FAIL", line)
    print(f"{passed} passed, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
