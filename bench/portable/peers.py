"""bench_portable on every target of a machine with an NVIDIA GPU, and torch on the same works, in one run; then the page.
usage: peers.py run BENCH OUT.json [--seconds S] [--block ROWS VECTORS] [--heads N] [work ..]
       peers.py report PAGE.md GPU.json [CPU.jsonl ..]"""
import json
import subprocess
import sys
import time

TARGETS = ("cuda", "opencl", "vulkan")


def ours(bench, target, more):
    out = subprocess.run([bench, target, *more], capture_output=True, text=True, timeout=420)
    if out.returncode:
        print(f"{target}: {out.stderr.strip()[-600:]}", flush=True)
    rows = [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]
    for r in rows:
        took = f"{r['ms']:.3f} ms" if "ms" in r else r.get("refused", "wrong")[:300]
        print(f"{target:7} {r['work']:32} {took}  {r.get('error', '')}  {r.get('schedule', '')[:90]}", flush=True)
    return rows


def torch_rows(seconds, heads):
    import torch
    import torch.nn.functional as F

    rows = []

    def timed(work, how, run):
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        times, end = [], time.time() + seconds
        while len(times) < 5 or (time.time() < end and len(times) < 15):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            for _ in range(10):
                graph.replay()
            b.record()
            b.synchronize()
            times.append(a.elapsed_time(b) / 10)
        times.sort()
        rows.append({"work": work, "target": "torch", "how": how, "ms": times[len(times) // 2]})
        print(f"torch   {work:32} {rows[-1]['ms']:.3f} ms  {how}", flush=True)

    def rand(*shape):
        return torch.rand(*shape, device="cuda") - 0.5

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for n in (1024, 2048, 4096):
        x, w = rand(n, n), rand(n, n)
        timed(f"matmul {n}", "f32, no tf32", lambda x=x, w=w: x @ w)
    q, k, v = (rand(1, heads, 2048, 64) for _ in range(3))
    timed("attention 2048", "f32, SDPA", lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    x, gain = rand(4096, 8192), rand(8192)
    timed("rms norm 4096 x 8192", "eager", lambda: F.rms_norm(x, (8192,), gain, 1e-5))
    compiled = torch.compile(lambda x: F.rms_norm(x, (8192,), gain, 1e-5))
    timed("rms norm 4096 x 8192", "compiled", lambda: compiled(x))
    timed("top 8 of 4096 x 8192", "eager", lambda: torch.topk(x, 8))
    img, f = rand(8, 64, 56, 56), rand(64, 64, 3, 3)
    timed("conv2d 3x3 8 x 64 x 56^2", "f32, no tf32", lambda: F.conv2d(img, f, padding=1))
    return rows


def run(args):
    bench, out, rest = args[0], args[1], args[2:]
    value = {"--seconds": "0.3", "--heads": "16"}
    for key in value:
        if key in rest:
            value[key] = rest[rest.index(key) + 1]
    rows = []
    for target in TARGETS:
        rows += ours(bench, target, rest)
    try:
        rows += torch_rows(float(value["--seconds"]), int(value["--heads"]))
    except ImportError as e:
        print("no torch:", e)
    with open(out, "w") as f:
        json.dump({"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "rows": rows}, f, indent=0)


def ms(rows, work, target):
    best = [r["ms"] for r in rows if r["work"] == work and r["target"] == target and "ms" in r]
    return min(best) if best else None


def blocks(row):
    """Rows and keys of a block of the attention kernel, together: the first two extents of its tile that are not 1."""
    last = row["schedule"].split("; ")[-1]
    tile = (last.split("cut to ")[-1] if "cut to" in last else last.split("tile ")[-1]).split()[0]
    sizes = [int(x) for x in tile.split("x") if int(x) > 1]
    return sum(sizes[:2])


def speed_table(say, rows, targets):
    works = list(dict.fromkeys(r["work"] for r in rows if r["target"] == targets[0]))
    say("| work | " + " | ".join(f"{t} ms" for t in targets) + " | best rate |" + (" torch ms | best / torch |" if any(r["target"] == "torch" for r in rows) else ""))
    has = any(r["target"] == "torch" for r in rows)
    say("|---|" + "---|" * (len(targets) + 1 + (2 if has else 0)))
    for w in works:
        times = [ms(rows, w, t) for t in targets]
        known = [t for t in times if t]
        any_row = next((r for r in rows if r["work"] == w and "ms" in r), {})
        rate = "-"
        if known and any_row.get("flops"):
            rate = f"{any_row['flops'] / min(known) * 1e-9:.2f} TFLOP/s"
        elif known and any_row.get("bytes"):
            rate = f"{any_row['bytes'] / min(known) * 1e-6:.0f} GB/s"
        cells = [f"{t:.4g}" if t else "-" for t in times]
        line = f"| {w} | " + " | ".join(cells) + f" | {rate} |"
        if has:
            peer = ms(rows, w, "torch")
            line += f" {peer:.4g} | {peer / min(known):.2f} |" if peer and known else " - | - |"
        say(line)


def laws(say, rows, targets):
    say("\n| target | N | derived ms | arrays of rows x keys, ms | as written, ms | ratio | needed | |\n|---|---|---|---|---|---|---|---|")
    for t in targets:
        for n, needed in ((512, 0.9), (2048, 1.0)):
            flash = ms(rows, f"gradient {n}", t)
            stored = [ms(rows, f"gradient {n} {how}", t) for how in ("materialized", "as written")]
            known = [x for x in stored if x]
            if not flash or not known:
                continue
            ratio = min(known) / flash
            cells = " | ".join(f"{x:.4g}" if x else "-" for x in stored)
            say(f"| {t} | {n} | {flash:.4g} | {cells} | {ratio:.2f} | {needed} | {'ok' if ratio >= needed else '**missed**'} |")
    say("\n| target | causal 8192, ms | window of 128, ms | allowed ms | |\n|---|---|---|---|---|")
    for t in targets:
        whole, part = ms(rows, "causal 8192", t), ms(rows, "window 8192", t)
        row = next((r for r in rows if r["work"] == "window 8192" and r["target"] == t), None)
        if not whole or not part:
            continue
        block = blocks(row)
        allowed = 2.5 * (128 + block) / 4096 * whole
        say(f"| {t} | {whole:.4g} | {part:.4g} | {allowed:.4g} (Bq + Bk = {block}) | {'ok' if part <= allowed else '**missed**'} |")


def report(args):
    page, gpu, cpu = args[0], args[1], args[2:]
    lines = []
    say = lines.append
    data = json.load(open(gpu))
    rows = data["rows"]
    device = {r["target"]: r["device"] for r in rows if "device" in r}
    say("# Portable speed\n")
    say("f32 programs, one graph for all targets, each with the schedule that is chosen by itself; checked in f64 from poisoned memory first")
    say("(the largest error relative to the largest value is at most 1e-5, and nothing for a selection), then timed: medians of batches of whole")
    say("programs, launches and submission included. torch: CUDA graphs, f32 without tf32. `best / torch` above 1 is faster than torch.\n")
    say("On a machine with an NVIDIA GPU `python3 bench/portable/peers.py run build/bench_portable gpu.json`; on a CPU `build/bench_portable TARGET")
    say("--heads 1 gradient causal window >> cpu.jsonl`; then `python3 bench/portable/peers.py report docs/results/portable.md gpu.json cpu.jsonl`.\n")
    say(f"- date: {data['date']}")
    for t, d in device.items():
        say(f"- {t}: {d}")
    say("\n## An H200\n")
    speed_table(say, rows, TARGETS)
    say("\n## Attention forward and backward without arrays of rows x keys, beside schedules that have them\n")
    say("Causal, head size 64; both skip dead tiles. The ratio is the faster of the two schedules with such arrays over the derived one. The window's")
    say("law: t(w) <= 2.5 (w + Bq + Bk) / (N / 2) t(causal).\n\nOn the H200, 16 heads (windows: 4):")
    laws(say, rows, TARGETS)
    for path in cpu:
        other = [json.loads(line) for line in open(path) if line.startswith("{")]
        names = list(dict.fromkeys(r["target"] for r in other))
        say("\nOn this machine's CPU, 1 head:\n")
        for t in names:
            say(f"- {t}: {next((r['device'] for r in other if r['target'] == t and 'device' in r), '-')}")
        laws(say, other, names)
    say("\n## What binds, and what has changed since\n")
    say("- The H200's times are of one build and one run of 85 s, which ended before Vulkan's last works: `-`. torch's and the CPU's are of earlier")
    say("  runs of the same day. The run: `bench_portable TARGET --seconds 0.06 gradient`, then the other works.")
    say("- Gradients: until dq, dk and dv contracted (decision 37) each of their terms had an exponential of its own for every column: gradient 2048")
    say("  took 18.16 ms (cuda), 13.7 (opencl), 68.37 (vulkan), and 21.97, 24.35 and 29.43 with arrays, whose products did not contract either. Both")
    say("  sides of the comparison have the new form.")
    say("- Vulkan: where many bytes are touched it is 2 to 6 times slower than OpenCL with the same kernels, products of 1024 and 2048 rows are the")
    say("  fastest of the three. In memory that the host does not see (tried: 10.4 ms at 4096, gradient 2048 in 22.0) it is no faster. Between runs, too: rms norm")
    say("  0.076 ms in one run, 0.187 in another; attention 1.00 and 2.00, convolution 0.31 and 1.26.")
    say("- In an earlier run CUDA's contractions had a processor each (200 KiB of tiles) and blocks of 12 x 64: products 1.71 (2048) and 9.16 ms (4096),")
    say("  windows 0.322; now four workgroups share one.")
    say("- Before long chunks of terms were cut first, and loops counted in 32 bits: products 2048 took 3.10 ms (OpenCL), 4.67 (Vulkan), 5.21 (CUDA).")
    say("- Products: the state of a block lies in shared memory between chunks of terms, so a block is narrow; the rows' operand is read element by")
    say("  element. No tensor core is used in f32.")
    say("- The plain CUDA target is timed (`cuda`): f32 has no form for warpgroups. bf16 and f16 on that path: h200.md.")
    say("- Top 8: joining 16 components through shared memory; CUDA keeps a pair as one integer and exchanges registers.")
    say("- On the C target the arrays' schedule is no fair rival: its products run far below 0.8 of the derived matmul. Its dq, dk and dv are plain")
    say("  folds: kernels of one lane contract nothing under a predicate of data (`not (lse == -inf)`), which others do since decision 37.")
    say("- On 1 December, of a later build, one run of 50 s (cuda, opencl, vulkan): products 0.171, 0.137, 0.135 (1024), 0.947, 0.683, 0.862 (2048),")
    say("  4.81, 7.19, 10.3 (4096); attention 0.648, 0.629, 2.44; rms norm 0.0700, 0.0776, 0.197; convolution 0.209, 0.175, 1.14; top 8 0.151, 0.674,")
    say("  2.67; gradient 512 0.364 and 0.360 (arrays: 0.362, 0.575), 2048 2.80 and 2.84 (arrays: 3.91, 3.51); Vulkan's gradients did not begin.")
    open(page, "w").write("\n".join(lines) + "\n")
    print(len(rows), "rows")


if __name__ == "__main__":
    {"run": run, "report": report}[sys.argv[1]](sys.argv[2:])
