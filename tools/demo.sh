# The demonstration twice: as people see it, then from a warm cache as one JSON document. Both and the files they write are
# checked. usage: demo.sh DEMO FOLDER CACHE      Closing line: N passed, N failed.
set -eu
demo=$1
out=$2
cache=$3
mkdir -p "$out"
"$demo" --out "$out" --cache "$cache"
"$demo" --json --out "$out" --cache "$cache" > "$out/second.json" 2> "$out/second.log"
python3 - "$out" <<'END'
import json, pathlib, sys

out = pathlib.Path(sys.argv[1])
results = []


def say(ok, what):
    results.append(bool(ok))
    print(("ok      " if ok else "FAILED  ") + what)


document = json.loads((out / "second.json").read_text())  # exactly one, or this fails
say("schema" in document and document["failed"] == 0 and document["verified"] > 0, "one document: schema, verified, none failed")
programs = document["programs"]
say(len(programs) >= 6 and all(p["kernels"] for p in programs), "every program with its kernels")
fields = {"schedule", "median_ns", "max_error", "ok"}
say(all(fields <= k.keys() and k["ok"] and k["median_ns"] > 0 for p in programs for k in p["kernels"]), "schedule, median_ns, max_error, ok of every kernel")
kept = json.loads((out / "results.json").read_text())
say(kept["verified"] == document["verified"], "results.json is the same document")
say(len(json.loads((out / "trace.json").read_text())["traceEvents"]) > len(programs), "trace.json has events")
page = (out / "report.html").read_text()
say(all(p["name"] in page for p in programs) and page.count("<details") >= len(programs), "report.html shows every program and its sources")
print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
sys.exit(not all(results))
END
