"""Wrong versions of printed theorems: what a mutated text claims is put beside the imports, and its prover must fail on it. One
run of coqc tries all that belong to one file, because starting it costs more than most proofs."""
import re

REJECTED = "tang: rejected"
CLAIM = re.compile(r"^(Theorem|Lemma) \w+ : (.*?)\.\s+Proof\. (\w+)\. Qed\.\n?", re.M | re.S)


def theorems(text):
    return re.findall(r"^Theorem (\w+)_ok\b", text, re.M)


def alone(text, name):
    """One theorem of a file with the definitions it needs: imports, its shared subterms, itself."""
    others = set(theorems(text)) - {name}
    keep = []
    for part in re.split(r"(?m)^(?=Definition |Theorem )", text):
        head = re.match(r"(?:Definition|Theorem) (\w+)", part)
        owner = head and re.sub(r"_ok$", "", head.group(1))
        while owner and owner not in others and re.search(r"_\d+$", owner):
            owner = re.sub(r"_\d+$", "", owner)
        if not owner or owner not in others or head.group(1) == name:
            keep.append(part)
    return "".join(keep)


def fails(prover):
    """A tactic that asks for a failure of the prover: each `first` takes a level from it, so that it does not pass through."""
    return f"assert_fails (first [first [first [first [{prover}]]]])"


def imports(text):
    return text[:re.search(r"^(?:Definition|Theorem|Lemma) ", text, re.M).start()]


def trial(text, number):
    """A module in which every theorem of `text` is tried: one that is proved, or is not well formed, stops coqc."""
    def goal(m):
        return m.group(1) == "Theorem" and f"Goal {m.group(2)}.\nProof. {fails(m.group(3))}; idtac \"{REJECTED} {number}\". Abort.\n" or ""
    tried = CLAIM.sub(goal, text[len(imports(text)):])
    return f"Module Wrong{number}.\n{tried}End Wrong{number}.\n"


def trials(jobs):
    """One text for (number, mutated text) pairs of one file."""
    return "".join(dict.fromkeys(imports(text) for _, text in jobs)) + "".join(trial(text, number) for number, text in jobs)


def rejected(said):
    """Numbers of the mutants that were rejected, from what coqc said."""
    return {int(n) for n in re.findall(re.escape(REJECTED) + r" (\d+)", said)}
