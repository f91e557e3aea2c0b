#!/usr/bin/python3
"""Proves what the compiler printed: `exported.py DIR [prove | mutants ..]`. Every file of DIR must be accepted by coqc; every
mutant of a theorem in it must be rejected by its prover. JOBS processes at a time. Prints `N passed, N failed`."""
import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["-q", "-w", "-notation-overridden,-ambiguous-paths", "-R", HERE, "Tang"]
MARK, REJECTED = "tang: not proved", "tang: rejected"
# file | theorem | what to replace (first occurrence after the theorem's Definition) | by what. Theorems and texts are those
# of the export: a row whose text is gone fails, so that the list follows the compiler.
MUTANTS = os.path.join(HERE, "exported_mutants.txt")


def coqc_says(path):
    try:
        run = subprocess.run(["coqc", *FLAGS, path], cwd=os.path.dirname(path), capture_output=True, text=True, timeout=280)
    except subprocess.TimeoutExpired:
        return False, "", "no answer in 280 s"
    return run.returncode == 0, run.stdout.strip(), run.stderr.strip()


def coqc(path):
    ok, _, err = coqc_says(path)
    return ok, err


def theorems(text):
    return re.findall(r"^Theorem (\w+)_ok\b", text, re.M)


def alone(text, name):
    """One theorem of a file with the definitions it needs: imports, its shared subterms, itself."""
    keep = []
    for part in re.split(r"(?m)^(?=Definition |Theorem )", text):
        head = re.match(r"(?:Definition|Theorem) (\w+)", part)
        if not head or head.group(1) in (name, name + "_ok") or re.fullmatch(re.escape(name) + r"(_\d+)+", head.group(1)):
            keep.append(part)
    return "".join(keep)


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
    """A cover that costs more; a tile that is longer."""
    lines = body.split("\n")
    for k in (4, 6):
        first = re.search(r"\[+([^;\]]*)", lines[k])
        if first and first.group(1):
            line = lines[k][:first.start(1)] + f"({first.group(1)}) + 1" + lines[k][first.end(1):]
            yield "\n".join(lines[:k] + [line] + lines[k + 1:]), claim


WRONG = {"fusion": wrong_fusion, "elimination": wrong_elimination, "certificate": wrong_certificate}


def wrong_files(folder):
    """For every file of these kinds one with wrong versions of its theorems: (what, text, how many). It runs each prover, which
    must fail, and says so."""
    for file in sorted(os.listdir(folder)):
        wrong = WRONG.get(file.split("_")[0])
        if not wrong or not file.endswith(".v"):
            continue
        text = open(os.path.join(folder, file)).read()
        out, count = re.sub(r"^(Theorem|Lemma) .*?Qed\.\n", "", text, flags=re.M | re.S), 0
        for name in theorems(text):
            kind, body, claim, prover = parts_of(text, name)
            for other, goal in wrong(body, claim):
                count += 1
                mutant = f"{name}_wrong{count}"
                goal = re.sub(rf"\b{name}\b", mutant, goal)
                out += f"Definition {mutant} : {kind} :={other}.\nGoal {goal}.\nProof. assert_fails {prover}; idtac \"{REJECTED}\". Abort.\n"
        yield file, out, count


def check_mutant(job):
    number, (what, text), folder = job
    if text is None:
        return what, False, "the file, the theorem or the text to replace is not there"
    path = os.path.join(folder, f"mutant_{number}.v")
    with open(path, "w") as f:
        f.write(text)
    ok, err = coqc(path)
    # Rejected by the prover, not by a slip of the pen in the mutant.
    return what, not ok and MARK in err, "accepted" if ok else err[:300]


def check_wrong(job):
    (what, text, count), folder = job
    path = os.path.join(folder, "wrong_" + what)
    with open(path, "w") as f:
        f.write(text)
    ok, said, err = coqc_says(path)
    rejected = said.count(REJECTED)
    return what, count, "" if ok and rejected == count else err[-400:] or f"{rejected} of {count} rejected"


def main():
    folder = os.path.abspath(sys.argv[1])
    parts = sys.argv[2:] or ["prove", "mutants"]
    jobs = int(os.environ.get("JOBS", "2"))
    passed, failed = 0, []
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
            for what, ok, why in pool.map(check_mutant, [(k, m, work) for k, m in enumerate(every)]):
                killed += ok
                if not ok:
                    failed.append(f"{what}: not rejected by the prover: {why}")
            for what, count, said in pool.map(check_wrong, [(w, work) for w in wrong]):
                killed += count if not said else 0
                if said:
                    failed.append(f"{what}: a wrong version is not rejected by the prover: {said}")
            passed += killed
            total = len(every) + sum(count for _, _, count in wrong)
            print(f"{killed} of {total} wrong versions rejected")
            kinds = {what.split("_")[0] for what, _, count in wrong if count}
            if len(every) < 30 or kinds != set(WRONG):
                failed.append(f"only {len(every)} listed mutants, and made ones of {sorted(kinds)}")
    for line in failed:
        print("FAIL", line)
    print(f"{passed} passed, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
