#!/usr/bin/env python3
"""Writes docs/targets.md: every builder on every target that this machine can run, each kernel against the oracle. A target that
is not here is shown as docs/results/matrix.md has it (tools/matrix.py), where it has a column of that name.

usage: tools/targets.py BUILD   (BUILD/tests/test_run must exist)"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
test = pathlib.Path(sys.argv[1]).resolve() / "tests" / "test_run"
with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "out.json"
    subprocess.run([test, "--gtest_filter=every/Targets.*", f"--gtest_output=json:{out}"], stdout=subprocess.DEVNULL, check=False)
    suites = json.loads(out.read_text())["testsuites"]
cells, device, kind, targets, builders = {}, {}, {}, [], []
for t in (t for s in suites for t in s["testsuite"]):
    target, builder = re.match(r"builder/([a-z]+)_(\w+)", t["name"]).groups()
    targets += [] if target in targets else [target]
    builders += [] if builder in builders else [builder]
    if "failures" in t:
        cells[target, builder] = "FAILED: " + t["failures"][0]["failure"].split("\n")[-2].strip()[:60]
    elif "worst" in t:
        device[target], kind[target] = t["device"], t["class"]
        cells[target, builder] = f'{t["kernels"]}, {float(t["worst"]) * 1e-9:.0e}'
    else:
        cells[target, builder] = "not here"
        device.setdefault(target, "not here")


def rows(line): return [x.strip() for x in line.strip().strip("|").split("|")]


# The matrix's column of a target: its head by name, and what is derived, forward, by builder.
def column(target):
    table = [rows(x) for x in (root / "docs" / "results" / "matrix.md").read_text().splitlines() if x.startswith("|")]
    if target not in table[0]: return {}, {}
    k = table[0].index(target)
    return {r[0]: r[k] for r in table if len(r) == len(table[0])}, {r[0].replace(" ", "_"): r[k + 2] for r in table if r[1:3] == ["forward", "derived"]}


for t in targets:
    if t in kind: continue
    head, body = column(t)
    if not head: continue
    device[t], kind[t] = f'{head["device"]}, {head["date"]} ([results/matrix.md](results/matrix.md))', head["class"].strip("*")
    cells.update({(t, b): body.get(b, "not run") for b in builders})
text = (root / "docs" / "targets.head.md").read_text()
text += "| builder | " + " | ".join(targets) + " |\n|---|" + "---|" * len(targets) + "\n"
text += "| *class* | " + " | ".join("*" + kind.get(t, "-") + "*" for t in targets) + " |\n"
for b in builders:
    text += f"| {b.replace('_', ' ')} | " + " | ".join(cells[t, b] for t in targets) + " |\n"
text += "\nDevices of this table:\n\n" + "".join(f"- {t}: {device[t]}\n" for t in targets)
(root / "docs" / "targets.md").write_text(text)
bad = sum(c.startswith("FAILED") for c in cells.values())
print(f"{len(cells) - bad} passed, {bad} failed")
sys.exit(bad > 0)
