#!/usr/bin/python3
"""Banned words in Coq files: nothing may be assumed outside a closed section. `lint.py FILE..` exits 1 on a hit."""
import re
import sys

BANNED = re.compile(r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|Abort|bypass_check|Unset\s+(Guard|Positivity|Universe)\s+Checking)\b")
LOCAL = re.compile(r"\b(Variables?|Hypothes[ie]s|Context)\b")


def strip_comments(text):
    """Comments become blanks of the same length, so that line numbers stay."""
    out, depth, i = [], 0, 0
    while i < len(text):
        if text.startswith("(*", i):
            depth += 1
            out.append("  ")
            i += 2
        elif depth and text.startswith("*)", i):
            depth -= 1
            out.append("  ")
            i += 2
        else:
            out.append(text[i] if not depth or text[i] == "\n" else " ")
            i += 1
    return "".join(out)


def problems(path):
    text = re.sub(r'"[^"\n]*"', lambda m: " " * len(m.group()), strip_comments(open(path).read()))
    sections = []
    for number, line in enumerate(text.split("\n"), 1):
        for m in BANNED.finditer(line):
            yield f"{path}:{number}: {m.group()}"
        for m in re.finditer(r"(?:^|\.\s+)\s*(Section|Module(?:\s+Type)?|End)\s+(\w+)", line):
            if m.group(1) == "Section":
                sections.append(m.group(2))
            elif m.group(1) == "End" and sections and sections[-1] == m.group(2):
                sections.pop()
        for m in LOCAL.finditer(line):
            if not sections:
                yield f"{path}:{number}: {m.group()} outside a section"
    for name in sections:
        yield f"{path}: section {name} is not closed"


if __name__ == "__main__":
    found = [p for path in sys.argv[1:] for p in problems(path)]
    print("\n".join(found))
    sys.exit(bool(found))
