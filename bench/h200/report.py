"""docs/results/h200.md and .json from what tensor_peers.py wrote: report.py OUT_PREFIX TENSOR_JSON..   (later files
add rows; OUT_PREFIX.json may be the first)"""
import json, math, sys

NEEDED = {"transformer": 1.0, "conv2d": 0.7, "gemm": 0.85, "attention": 1.0, "variants": 1.0}

def needed(w):
    if w[0] == "backward" and w[7] in ("full", "causal"): return 0.9 if w[6] == "128" else 0.8
    if w[0] == "backward" and w[7] == "t5": return 20.0
    return NEEDED[section(w).split()[0]]

def section(w):
    if w[0] == "gemm": return "gemm " + w[5]
    if w[0] == "conv": return "conv2d NHWC " + w[9]
    if w[0] == "block": return "transformer block " + w[2]
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
sections = ["gemm bf16", "gemm f16", "gemm tf32", "gemm e4m3", "gemm i8", "conv2d NHWC bf16", "attention", "attention backward", "variants", "variants backward",
            "transformer block bf16", "transformer block tf32"]
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
    for run in runs: say(f"- {run['date']}: {run['device']}, driver and state `{run['driver']}`, torch {run['torch']}, cuDNN {run['cudnn']}")
    for name in sections:
        mine = [r for r in rows.values() if section(r["work"].split()) == name]
        ratios = [r["ratio"] for r in mine if "ratio" in r]
        if not mine: continue
        say(f"\n## {name}\n")
        if ratios:
            say(f"{len(ratios)} rows beside a peer: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, worst {min(ratios):.3f}.\n")
        say("| work | ours ms | TFLOP/s | peer | peer ms | ratio | error | |\n|---|---|---|---|---|---|---|---|")
        for r in mine:
            ms, ratio = r.get("ms", {}), r.get("ratio")
            ours = f"{ms['ours']:.4f}" if "ours" in ms else "-"
            rate = f"{r['tflops']:.1f}" if r.get("tflops") else "-"
            peer = r.get("peer"); theirs = f"{ms[peer]:.4f}" if peer else "-"
            error = r["check"].split("err ")[1].split()[0] if "err " in r["check"] else r["check"][:60]
            verdict = "wrong" if not r["ok"] else "" if ratio is None or ratio >= needed(r["work"].split()) else "below what is needed"
            say(f"| {shape(r['work'].split())} | {ours} | {rate} | {peer or '; '.join(r.get('left out', {}).values())[:60] or '-'} | {theirs} | {f'{ratio:.3f}' if ratio else '-'} | {error} | {verdict} |")
    say("\ncompute-sanitizer, 2026-11-30: memcheck and synccheck, no error in 17 checks: products in every format (transposed, odd and split")
    say("ones, too), convolutions with and without strides and by channel, attention causal, full and grouped, its backward; and memcheck over")
    say("every candidate of 1000 x 1000 x 1000. Again: `compute-sanitizer --tool memcheck build/bench/h200/tensor CACHE < bench/h200/sanitizer.txt`.\n")
    say("\n## What loses, and what binds it\n")
    say("- 6000 x 6000 x 600: rows of 1200 bytes begin in the middle of a line, and ten steps of terms a block leave its ends in the")
    say("  open: blocks of work do not overlap (one team of 64 rows a block that takes turns with another would).")
    say("- Parts of a loop: the join is read by one team, see docs/decisions/0011; the rule charges for it and splits rarely.")
    say("- tf32 with columns that lie apart: 32-bit operands must be rows of terms, so that each such one is turned first, 25-35 us at 4096")
    say("  (134 MB moved).")
    say("- 1536 x 576 x 8192: the row above is of tiles of 64 columns without parts. The rule takes three parts of tiles of 192 columns now, 0.0291")
    say("  ms in `choices` of bench/h200/tensor.cpp (0.0309 without), not timed again beside the peer; so it does for 4096 x 96 x 4096 (11.3 and")
    say("  11.6 us). 1000 x 1000 x 1000 and 6000 x 6000 x 600: the rule's choice is the fastest.")
    say("- Backward, head size 128: dq, and dk with dv, each evaluate the scores: seven products where cuDNN has five, at 610-650 TFLOP/s of")
    say("  their own products, the forward's rate (`parts WORK` of bench/h200/tensor.cpp has each kernel: at 4 x 16 x 4096 dq 1.29 ms, dk and dv")
    say("  1.80 ms, the rows' sums 0.03 ms). See docs/decisions/0012. The times are those of all kernels after the forward's; the peer's are")
    say("  forward and backward in one graph less the forward.")
    say("- Backward, causal rows of grouped heads at 4096 and more: 0.79-0.89 where one head each has 0.94-1.07. The heads of a group are a loop")
    say("  around the rows' loop of one block of keys. Read off the order of work, not profiled: twelve heads went in sections of eight and four,")
    say("  three in two and one, and the last section begins with its longest blocks, fewer than there are workers. Sections are of one size")
    say("  since; not measured again.")
    say("- Gradients of variants: a learned bias of 32 buckets (needed: 20 times FlexAttention). At 2048 rows and head size 64 its parts are dq")
    say("  0.365 ms, dk with dv 0.504, the sums by key 1.06 (`parts WORK`; these two rows compare dq, dk and dv on the device, the table's gradient with the oracle in the simulator): each score reads its bucket, then the bucket's bias, one after")
    say("  the other, and tests both where blocks are ragged (rows of 192, terms of 96); head size 128 has blocks that divide 2048 and takes")
    say("  0.10 and 0.14 ms for half the scores. At 8192 rows ours take 31.3 ms (head size 64) and 11.6 ms (128), all kernels checked; the")
    say("  peer was not run beside them (alone, earlier: 1190 and 637 ms). Documents at 2048 rows and head size 128: 13 of 110 us are four small")
    say("  kernels: dO.O, two of extrema, one of runs. The rows of documents were measured with dq's tests made without branches, as")
    say("  those of dk and dv are; with them, as it is now, dq alone takes 0.037 instead of 0.044 ms (2048 rows, head size 64).")
    say("- Soft cap: two exponentials and a reciprocal a score, in its gradient too: the derivative is made of the quotient's share.")
    say("- Transformer block, 2048 rows, with gradients (`parts block 2048 bf16 both` of bench/h200/tensor.cpp, us): dk with dv 44, drope 28, the")
    say("  gate's product with its three maps 26 (the product alone would be 8; by its text lanes evaluate one sigmoid three times; not")
    say("  profiled), attention 24, a norm's column sums 14, products 4-11 each. Not done: q, k and v as one product, gradients of one side as one")
    say("  product, tf32 attention on fragments (only 16-bit fragments are operands, so that such a block's gradients take 39 ms).")
    say("- Soft cap: two exponentials and a reciprocal a score, in its gradient too: the derivative is made of the quotient's share.")
    say("- Transformer block, 2048 rows, with gradients (`parts block 2048 bf16 both` of bench/h200/tensor.cpp, us): dk with dv 46, the gate's")
    say("  product with its three maps 38 (the product alone would be 8; by its text lanes evaluate one sigmoid three times; not profiled),")
    say("  drope 30, attention 24, the gradient of attention 22, products 4-11 each. In these rows that last one and a copy of 4 us twice")
    say("  come from one value that was stored in two orders, the worse of which won; mended since, not measured again (9 us for the 22 in")
    say("  an earlier run of the same day). Not done: q, k and v as one product, gradients of one side as one product, tf32 attention on")
    say("  fragments (only 16-bit fragments are operands, so that such a block's gradients take 39 ms).")
print(len(rows), "rows")
