#!/usr/bin/env python3
"""House rules that a program can check. Closing line: N passed, N failed."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
files = [root / f for f in subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True).stdout.split()]
files = [f for f in files if f.exists()]
code = [f for f in files if f.suffix in (".cpp", ".hpp") and f.parts[len(root.parts)] in ("src", "include", "models", "formats", "cli", "capi", "engine")]
compiler = [f for f in code if f.parts[len(root.parts)] == "src" and f.parts[len(root.parts) + 1] in ("rewrite", "schedule", "plan", "kernel", "lower", "emit")]
problems = {}


def rule(name):
    def run(check):
        problems[name] = list(check())
        return check
    return run


def lines(f):
    return f.read_text(errors="replace").split("\n")


@rule("files of at most 500 lines (tables excepted)")
def _():
    for f in code:
        n = len(lines(f))
        if n > 500:
            yield f"{f.relative_to(root)}: {n} lines"


unformatted = {"cli", "device", "emit", "kernel", "lower", "run"}  # clang-format has not been over every file yet


@rule("lines of at most 110 columns (raw strings, and literals without a blank, excepted)")
def _():
    for f in code:
        most = 180 if unformatted & set(f.parts[len(root.parts):]) else 110
        raw = False
        for k, l in enumerate(lines(f), 1):
            inside = raw or 'R"' in l
            if 'R"' in l:
                raw = True
            if raw and re.search(r'\)\w*"', l.split('R"')[-1]):
                raw = False
            if len(l) > most and not inside and len(re.sub(r'"[^" ]*"', '""', l)) > most:
                yield f"{f.relative_to(root)}:{k}: {len(l)} columns"


@rule("a header says first what lives there")
def _():
    for f in code:
        if f.suffix == ".hpp" and not lines(f)[0].startswith("// "):
            yield str(f.relative_to(root))


@rule("no code keyed on an operator's name")
def _():
    words = re.compile(r"attention|matmul|conv2d|layernorm|swiglu|\brope\b|rotary", re.I)
    for f in compiler:
        for k, l in enumerate(lines(f), 1):
            bare = l.split("//")[0]
            if words.search(bare):
                yield f"{f.relative_to(root)}:{k}: {l.strip()}"


@rule("no environment variables and no exit below cli/")
def _():
    for f in code:
        if f.parts[len(root.parts)] == "cli":
            continue
        for k, l in enumerate(lines(f), 1):
            if re.search(r"\bgetenv\s*\(|\bstd::exit\s*\(", l.split("//")[0]):
                yield f"{f.relative_to(root)}:{k}: {l.strip()}"


@rule("C++20 that every compiler here shares")
def _():
    banned = re.compile(r"#include <(format|ranges|source_location|expected|print|mdspan|stacktrace)>|std::bit_cast|std::jthread|std::visitor")
    for f in code:
        for k, l in enumerate(lines(f), 1):
            if banned.search(l):
                yield f"{f.relative_to(root)}:{k}: {l.strip()}"


@rule("nothing unfinished")
def _():
    for f in code:
        for k, l in enumerate(lines(f), 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", l):
                yield f"{f.relative_to(root)}:{k}: {l.strip()}"


@rule("no machine paths or hosts")
def _():
    words = re.compile(r"/work/|/root/|\.internal\b|registry\.npmjs|deb\.debian\.org")
    for f in files:
        if f.suffix in (".md", ".cpp", ".hpp", ".cmake", ".txt", ".sh", ".py", ".v", ".tang", "") and f.name != "check.py":
            for k, l in enumerate(lines(f), 1):
                if words.search(l):
                    yield f"{f.relative_to(root)}:{k}: {l.strip()[:120]}"


def rooms():
    """Of each room of src/rooms.cmake: its folder, the rooms it uses, the patterns of files that are apart."""
    text = re.sub(r"#.*", "", (root / "src/rooms.cmake").read_text())
    found = {}
    for name, words in re.findall(r"tang_room\((\w+)([^)]*)\)", text):
        fields, at = {}, None
        for w in words.split():
            if w.isupper() and w in ("USES", "LIBS", "FLAGS", "FOLDER", "APART", "ALONE"):
                at = fields.setdefault(w, [])
            elif at is not None:
                at.append(w)
        found[name] = (root / (fields.get("FOLDER") or [f"src/{name}"])[0], fields.get("USES", []), fields.get("APART", []))
    return found


most_of_demo = 30500  # lines: what two cores compile from nothing in about a minute


@rule("the demonstration compiles few files (src/rooms.cmake: APART)")
def _():
    known, needed = rooms(), {"verify", "models"}
    while needed != (more := needed | {below for n in needed for below in known[n][1]}):
        needed = more
    total = 0
    for name in needed:
        folder, _, apart = known[name]
        total += sum(len(lines(f)) for f in folder.glob("*.cpp") if not any(f.match(a + ".cpp") for a in apart))
    if total > most_of_demo:
        yield f"{total} lines in {len(needed)} rooms, at most {most_of_demo}: keep apart what a program for the CPU does without"


failed = 0
for name, found in problems.items():
    print(("FAILED  " if found else "ok      ") + name)
    for p in found[:20]:
        print("        " + p)
    failed += bool(found)
print(f"{len(problems) - failed} passed, {failed} failed")
sys.exit(failed > 0)
