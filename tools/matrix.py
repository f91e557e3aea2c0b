#!/usr/bin/env python3
"""Writes docs/results/matrix.md from what `tang_matrix --json` (or `tang verify --all --json`) printed: any number of files, each
of a target, or of a part of it, run on any machine.

usage: tools/matrix.py NAME=FILE[,DATE] ..   (NAME: the column's heading; several files of one NAME are one column)"""
import json
import pathlib
import sys

root = pathlib.Path(__file__).resolve().parent.parent
columns, about = {}, {}
for word in sys.argv[1:]:
    name, _, rest = word.partition("=")
    file, _, date = rest.partition(",")
    page = json.loads(pathlib.Path(file).read_text())
    device = page["targets"][0]
    about[name] = (device["device"], device["class"], date or about.get(name, ("", "", ""))[2])
    for c in page["cells"]:
        columns.setdefault(name, {})[c["builder"], c["backward"], c["way"]] = c
if not columns:
    sys.exit(__doc__)
keys = list(dict.fromkeys(k for c in columns.values() for k in c))
builders, ways = list(dict.fromkeys(k[0] for k in keys)), list(dict.fromkeys(k[2] for k in keys))


def text(c):
    if c is None: return "not run"
    if c["failed"]: return f'{c["failed"]} of {c["failed"] + c["passed"]} FAILED: {c["why"][:60]}'
    if not c["kernels"]: return f'refused: {c["why"].rpartition(": ")[2]}' if c["refused"] and c["way"] == "derived" else "refused" if c["refused"] else "="
    return f'{c["kernels"]}, {c["worst"]:.0e}' + (f' ({c["refused"]} refused)' if c["refused"] else "")


out = """# Builders, targets and schedules

Every builder of the library, forward and backward, under each way to schedule it (`cli/matrix.hpp`), every kernel against the f64
oracle: kernels, and the largest error of an output relative to its largest value. `=`: the schedule gives the first one's kernels.
*refused*: the target has too little for a kernel, or the schedule fits no graph of the builder. `build/tests/tang_matrix --target
NAME --json > FILE` (or `tang verify --all --json`) runs a column; `python3 tools/matrix.py NAME=FILE,DATE ..` writes this page.

| | """ + " | ".join(columns) + " |\n|---|" + "---|" * len(columns) + "\n"
for what, k in (("class", 1), ("date", 2), ("device", 0)):
    out += f"| {what} | " + " | ".join(f"*{about[n][k]}*" if k == 1 else about[n][k] for n in columns) + " |\n"
totals = {n: [sum(c[k] for c in cells.values()) for k in ("kernels", "passed", "failed")] for n, cells in columns.items()}
for what, k in (("kernels", 0), ("checks passed", 1), ("failed", 2)):
    out += f"| {what} | " + " | ".join(str(totals[n][k]) for n in columns) + " |\n"
out += "\n| builder | | schedule | " + " | ".join(columns) + " |\n|---|---|---|" + "---|" * len(columns) + "\n"
for b in builders:
    for back in (False, True):
        for way in ways:
            row = [columns[n].get((b, back, way)) for n in columns]
            if any(c is None or c["kernels"] or c["failed"] for c in row):
                out += f"| {b.replace('_', ' ')} | {'backward' if back else 'forward'} | {way} | " + " | ".join(map(text, row)) + " |\n"
(root / "docs" / "results" / "matrix.md").write_text(out)
print("; ".join(f"{n}: {t[1]} passed, {t[2]} failed" for n, t in totals.items()))
sys.exit(any(t[2] for t in totals.values()))
