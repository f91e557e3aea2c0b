#!/usr/bin/env python3
"""What the documentation shows is run: C++ blocks and examples against an installed tang, `$ tang ..` lines by the binary.

A block opened with ```cpp run is a program, or the statements of one. A block opened with ```output right after it is
what the program prints, exactly. Closing line: N passed, N failed.
usage: docs.py blocks|commands|consumer --source DIR --prefix DIR --work DIR [--compiler CXX] [--flags FLAGS]
"""
import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("what", choices=["blocks", "commands", "consumer"])
for option in ("source", "prefix", "work"):
    parser.add_argument("--" + option, type=pathlib.Path, required=True)
parser.add_argument("--compiler", default="c++")
parser.add_argument("--flags", default="")
args = parser.parse_args()
results = []


def say(ok, name, detail=""):
    results.append(ok)
    print(("ok      " if ok else "FAILED  ") + name)
    if not ok and detail:
        print("        " + detail.strip().replace("\n", "\n        "))


def call(command, **more):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def fences(path):
    """(line, info, text) of each fenced block."""
    lines = path.read_text().split("\n")
    at = 0
    while at < len(lines):
        opened = re.match(r"^( *)```(.+)$", lines[at])
        if not opened:
            at += 1
            continue
        end = at + 1
        while lines[end].strip() != "```":
            end += 1
        yield at + 1, opened.group(2).strip(), "\n".join(l[len(opened.group(1)):] for l in lines[at + 1:end]) + "\n"
        at = end + 1


def pages():
    return [args.source / "README.md"] + sorted((args.source / "docs").rglob("*.md"))


def programs():
    """(name, source, expected output or None)"""
    for page in pages():
        blocks = list(fences(page))
        for k, (line, info, text) in enumerate(blocks):
            if info != "cpp run":
                continue
            follows = k + 1 < len(blocks) and blocks[k + 1][1] == "output" and blocks[k + 1][0] == line + text.count("\n") + 2
            yield f"{page.relative_to(args.source)}:{line}", text, blocks[k + 1][2] if follows else None
    for f in sorted((args.source / "examples").glob("*.cpp")):
        yield str(f.relative_to(args.source)), f.read_text(), None


def one_unit(found):
    """All programs as one translation unit, each in a namespace of its own: the headers are read once."""
    includes, parts = {}, []
    for k, (name, text, _) in enumerate(found):
        body = []
        for n, line in enumerate(text.split("\n"), 1):
            if line.startswith("#include"):
                includes[line] = True
                body.append("")
            else:
                body.append(line)
        inside = "\n".join(body)
        if "int main()" not in inside:
            inside = "using namespace tang;\nint main() {\n" + inside + "return 0;\n}\n"
        if not re.search(r"\breturn\b[^;]*;\s*}\s*$", inside):  # main may end without one
            inside = inside.rstrip()[:-1] + "return 0;\n}\n"
        parts.append(f'namespace program_{k} {{\n#line 1 "{name}"\n' + inside.replace("int main()", "int program()") + "\n}\n")
    table = ", ".join(f"program_{k}::program" for k in range(len(found)))
    return ("#include <tang.hpp>\n#include <cstdlib>\n" + "\n".join(includes) + "\n" + "\n".join(parts) +
            f"int main(int, char** a) {{\n  int (*all[])() = {{{table}}};\n  return all[std::atoi(a[1])]();\n}}\n")


def compile_flags():
    env = f"PKG_CONFIG_PATH={args.prefix}/lib/pkgconfig"
    out = call(["env", env, "pkg-config", "--cflags", "--libs", "tang"])
    if out.returncode:
        sys.exit(out.stdout)
    flags = shlex.split(out.stdout)
    return [f for f in flags if not f.startswith(("-l", "-L"))], [f for f in flags if f.startswith(("-l", "-L"))]


def blocks():
    found = list(programs())
    source = args.work / "docs.cpp"
    source.write_text(one_unit(found))
    first, last = compile_flags()
    built = call([args.compiler, *shlex.split(args.flags), "-w", *first, source, "-o", args.work / "docs", *last])
    if built.returncode:
        say(False, "the programs compile", built.stdout[:4000])
        return
    for k, (name, _, expected) in enumerate(found):
        ran = call([args.work / "docs", k], cwd=args.source, timeout=60)
        if ran.returncode:
            say(False, name, f"exit status {ran.returncode}\n{ran.stdout}")
        elif expected is not None and ran.stdout != expected:
            say(False, name, "prints\n" + ran.stdout + "where the page says\n" + expected)
        else:
            say(True, name)


def commands():
    """Each `$ tang ..` line of a sh block, once. `tang demo` is a stage of `make test`."""
    seen = {}
    for page in pages():
        for line, info, text in fences(page):
            if info == "sh":
                for l in text.split("\n"):
                    if l.startswith("$ tang ") and not l.startswith("$ tang demo"):
                        seen.setdefault(l[2:].split("#")[0].strip(), f"{page.relative_to(args.source)}:{line}")
    shutil.copytree(args.source / "examples", args.work / "examples", dirs_exist_ok=True)
    for command, where in seen.items():
        words = shlex.split(command)
        ran = call(["env", f"TANG_CACHE_DIR={args.work / 'cache'}", args.prefix / "bin" / "tang", *words[1:]], cwd=args.work, timeout=120)
        say(ran.returncode == 0, f"{where}: {command}", f"exit status {ran.returncode}\n{ran.stdout[-1500:]}")
    if not seen:
        say(False, "no command found in any page")


def consumer():
    source, build = args.source / "tests/docs/consumer", args.work / "consumer"
    shutil.rmtree(build, ignore_errors=True)
    flags = ["-G", "Ninja", f"-DCMAKE_PREFIX_PATH={args.prefix}", f"-DCMAKE_CXX_COMPILER={args.compiler}",
             f"-DCMAKE_CXX_FLAGS={args.flags}", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF"]
    configured = call(["cmake", "-S", source, "-B", build, *flags])
    say(configured.returncode == 0, "find_package(tang)", configured.stdout[-2000:])
    if not configured.returncode:
        built = call(["cmake", "--build", build])
        say(built.returncode == 0, "a consumer builds", built.stdout[-3000:])
        if not built.returncode:
            ran = call([build / "consumer"])
            say(ran.returncode == 0 and "same graph: yes" in ran.stdout, "and runs", ran.stdout)
            print("        " + ran.stdout.strip())
    version = call([args.prefix / "bin" / "tang", "version"])
    say(version.returncode == 0 and version.stdout.startswith("tang "), "the installed binary says its version", version.stdout)
    first, last = compile_flags()
    say("-ltang" in last and any(f.startswith("-I") and pathlib.Path(f[2:], "tang.hpp").exists() for f in first),
        "pkg-config tang names the headers and the library", " ".join(first + last))


args.work.mkdir(parents=True, exist_ok=True)
{"blocks": blocks, "commands": commands, "consumer": consumer}[args.what]()
passed = sum(results)
print(f"{passed} passed, {len(results) - passed} failed")
sys.exit(passed != len(results) or not results)
