"""docs/results/h200.md and .json from what tensor_peers.py wrote: report.py OUT_PREFIX TENSOR_JSON..   (later files
add rows; OUT_PREFIX.json may be the first)"""
import json, math, os, sys

NEEDED = {"transformer": 1.0, "conv2d": 0.7, "gemm": 0.85, "attention": 1.0, "variants": 1.0}

def needed(w):
    if "sm80=1" in w: return 0.0
    if w[-1] == "f32": return 1.0
    if w[0] == "backward" and w[7] in ("full", "causal"): return 0.9 if w[6] == "128" else 0.8
    if w[0] == "backward" and w[7] == "t5": return 20.0
    return NEEDED[section(w).split()[0]]

OLDER = "The sm_80-style lowering on the same chip"

def section(w):
    if "sm80=1" in w: return OLDER
    if w[0] == "gemm": return "gemm " + w[5] + (", scales by blocks" if w[-1].startswith("blocks=") else "")
    if w[0] == "conv": return "conv2d NHWC " + w[9]
    if w[0] == "block": return "transformer block " + w[2]
    if w[0] == "backward" and "joint=1" in w: return "attention backward, joint"
    if w[-1] == "f32" and w[0] in ("attention", "backward"): return "f32 attention" + (" backward" if w[0] == "backward" else "")
    if w[0] == "backward": return "attention backward" if w[7] in ("full", "causal") else "variants backward"
    return "attention" if w[7] in ("full", "causal") else "variants"

def shape(w):
    if w[0] == "gemm": return f"{w[1]} x {w[2]} x {w[3]} {w[4]}"
    if w[0] == "conv":
        return f"{w[1]} x {w[2]} x {w[3]} x {w[4]} to {w[5]}, {w[6]}x{w[6]}" + (f" stride {w[7]}" if w[7] != "1" else "") + (f", {w[8]} groups" if w[8] != "1" else "")
    if w[0] == "block": return f"{w[3]} N{w[1]}"
    kv = "" if w[2] == w[3] else f"/{w[3]}"
    n = w[4] if w[4] == w[5] else f"{w[4]}x{w[5]}"
    return f"{w[7]} d{w[6]} N{n} B{w[1]} H{w[2]}{kv}"

prefix, files = sys.argv[1], sys.argv[2:]
loaded = [json.load(open(f)) for f in files]
rows = {r["work"]: r for x in loaded for r in x["rows"]}
runs = [run for x in loaded for run in x.get("runs", [x])]  # a report's own file holds several
sections = ["gemm bf16", "gemm f16", "gemm tf32", "gemm f32", "gemm e4m3", "gemm e4m3, scales by blocks", "gemm bf16, scales by blocks", "gemm i8", "conv2d NHWC bf16", "attention", "attention backward", "attention backward, joint", "variants", "variants backward",
            "f32 attention", "f32 attention backward",
            "transformer block bf16", "transformer block tf32", OLDER]
json.dump({"runs": [{k: v for k, v in run.items() if k != "rows"} for run in runs], "rows": list(rows.values())}, open(prefix + ".json", "w"), indent=1)
with open(prefix + ".md", "w") as out:
    say = lambda *x: print(*x, file=out)
    say("# Speed on an NVIDIA H200\n")
    say("Every kernel is derived from its textbook form by the ordinary pipeline (`run::hopper_options`) and passed its check first: outputs poisoned, guard")
    say("bands, two runs back to back, sampled rows against f64. Peers run in the same process and turn; CUDA graphs of ten runs on both sides, medians of")
    say("rounds of twenty replays, random data, the chip warmed by the peer. Ratio: the fastest peer's time over ours; above 1 we are faster.\n")
    say("Reprint: build with `-DTANG_BENCH=ON`, then on the machine `python3 bench/h200/tensor_peers.py build/bench/h200/tensor CACHE OUT bench/h200/works.txt`")
    say("and here `python3 bench/h200/report.py docs/results/h200 OUT/tensor.json`.\n")
    say("Rows whose error reads `ok` were checked too; their times are from the printed table of a run whose file was cut off.\n")
    machine = lambda run: f"{run['date']}: {run['device']}, driver {run['driver'].split(',')[0]}, torch {run['torch']}, cuDNN {run['cudnn']}"
    for line in sorted(set(map(machine, runs))): say(f"- {line} ({sum(machine(r) == line for r in runs)} runs)")
    for name in sections:
        mine = [r for r in rows.values() if section(r["work"].split()) == name]
        ratios = [r["ratio"] for r in mine if "ratio" in r]
        if not mine: continue
        say(f"\n## {name}\n")
        if name.endswith("joint"):
            say("One kernel for dq, dk and dv (the schedule's `joint`): dq is added to in the order in which workgroups come, as the peer's may be;")
            say("the rows above are bit-equal in every run.\n")
        if name == OLDER:
            say("The same kernels in tensor form by mma.sync and cp.async (`sm80=1` after a work; docs/decisions/0056), beside the rows of the same")
            say("works by wgmma and bulk copies of the same run, and the peer, which has those as well. mma.sync reaches about 0.62 of wgmma's rate.\n")
            say("| work | by mma.sync ms | TFLOP/s | by wgmma ms | peer | peer ms | error |\n|---|---|---|---|---|---|---|")
            for r in mine:
                whole = rows.get(r["work"].replace(" sm80=1", ""), {}).get("ms", {}).get("ours")
                ms, peer = r.get("ms", {}), r.get("peer")
                say(f"| {shape(r['work'].split())} | {ms.get('ours', float('nan')):.4f} | {r.get('tflops') or float('nan'):.1f} | {f'{whole:.4f}' if whole else '-'} | "
                    f"{peer or '-'} | {f'{ms[peer]:.4f}' if peer else '-'} | {r['check'].split('err ')[1].split()[0] if 'err ' in r['check'] else r['check'][:60]} |")
            continue
        if ratios:
            say(f"{len(ratios)} rows beside a peer: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, worst {min(ratios):.3f}.\n")
        say("| work | ours ms | TFLOP/s | peer | peer ms | ratio | error | |\n|---|---|---|---|---|---|---|---|")
        for r in mine:
            ms, ratio = r.get("ms", {}), r.get("ratio")
            ours = f"{ms['ours']:.4f}" if "ours" in ms else "-"
            rate = f"{r['tflops']:.1f}" if r.get("tflops") else "-"
            peer = r.get("peer"); theirs = f"{ms[peer]:.4f}" if peer else "-"
            error = r["check"].split("err ")[1].split()[0] if "err " in r["check"] else r["check"][:60]
            if "in 3 pieces" in r["check"]: error += ", 3 pieces"
            verdict = "wrong" if not r["ok"] else "" if ratio is None or ratio >= needed(r["work"].split()) else "below what is needed"
            say(f"| {shape(r['work'].split())} | {ours} | {rate} | {peer or '; '.join(r.get('left out', {}).values())[:60] or '-'} | {theirs} | {f'{ratio:.3f}' if ratio else '-'} | {error} | {verdict} |")
    say("\n" + open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "notes.md")).read().rstrip())
print(len(rows), "rows")
