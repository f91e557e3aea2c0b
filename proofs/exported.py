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
MARK = "tang: not proved"
# file | theorem | what to replace (first occurrence after the theorem's Definition) | by what. Theorems and texts are those
# of the export: a row whose text is gone fails, so that the list follows the compiler.
MUTANTS = os.path.join(HERE, "exported_mutants.txt")


def coqc(path):
    try:
        run = subprocess.run(["coqc", *FLAGS, path], cwd=os.path.dirname(path), capture_output=True, text=True, timeout=280)
    except subprocess.TimeoutExpired:
        return False, "no answer in 280 s"
    return run.returncode == 0, run.stderr.strip()


def theorems(text):
    return re.findall(r"^Theorem (\w+)_ok\b", text, re.M)


def alone(text, name):
    """One theorem of a file with the definitions it needs: imports, its shared subterms, itself."""
    keep = []
    for part in re.split(r"(?m)^(?=Definition |Theorem )", text):
        head = re.match(r"(?:Definition|Theorem) (\w+)", part)
        if not head or head.group(1) in (name, name + "_ok") or re.fullmatch(re.escape(name) + r"_\d+", head.group(1)):
            keep.append(part)
    return "".join(keep)


def mutants(folder):
    """Yields (what, mutated text or None when the text to replace is not there)."""
    for number, line in enumerate(open(MUTANTS), 1):
        if not line.strip() or line.startswith("#"):
            continue
        file, name, old, new = [p.strip() for p in line.rstrip("\n").split(" | ")]
        what = f"exported_mutants.txt:{number}"
        files = [f for f in sorted(os.listdir(folder)) if re.fullmatch(r"rules_\d+\.v" if file == "rules" else re.escape(file + ".v"), f)]
        texts = [t for t in (open(os.path.join(folder, f)).read() for f in files) if name in theorems(t)]
        text = alone(texts[0], name) if texts else ""
        yield what, text.replace(old, new, 1) if old in text else None


def mutated_fusions(folder):
    """Of every tenth fusion theorem: one read of the result moved by one, or one constant changed."""
    files = sorted(f for f in os.listdir(folder) if f.startswith("fusion_") and f.endswith(".v"))
    number = 0
    for file in files:
        text = open(os.path.join(folder, file)).read()
        for name in theorems(text):
            number += 1
            if number % 10:
                continue
            one = alone(text, name)
            start = one.index(f"Definition {name} :")
            lines = one[start:].split("\n")
            after = next(i for i in range(len(lines)) if lines[i].endswith(".") and lines[i].startswith("  "))
            read = re.search(r"\(rd \d+ \[", lines[after])
            if read:  # the last line of the step is what the compiler made of it
                coords = lines[after][read.end():]
                if coords.startswith("]"):
                    continue
                lines[after] = lines[after][:read.end()] + "(lit 77 0); " + coords
                yield f"{file}: {name}, a coordinate more", one[:start] + "\n".join(lines)


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
            every = list(mutants(folder)) + list(mutated_fusions(folder))
            killed = 0
            for what, ok, why in pool.map(check_mutant, [(k, m, work) for k, m in enumerate(every)]):
                killed += ok
                if not ok:
                    failed.append(f"{what}: not rejected by the prover: {why}")
            passed += killed
            print(f"{killed} of {len(every)} mutants rejected")
            if len(every) < 30:
                failed.append(f"only {len(every)} mutants")
    for line in failed:
        print("FAIL", line)
    print(f"{passed} passed, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
