"""bench/h200/tensor beside torch (cuBLAS, cuDNN) in one run: for each work, rounds of ours and theirs in turn, CUDA graphs of up to
ten runs on both sides. The chip is warmed by the peer first; who goes first alternates; a side's time is the median of its rounds,
each the median of twenty replays; the ratio is that of the fastest peer.
   tensor_peers.py TENSOR_PROGRAM CACHE_FOLDER OUT_FOLDER WORKS_FILE [rounds]      WORKS_FILE: a work of tensor.cpp a line
Rounds 0: the peers are compiled into their caches, f32 attention is checked, nothing is timed; for several processes at once
beforehand, each with an OUT_FOLDER of its own."""
import glob, hashlib, json, os, subprocess, sys, time
import torch, torch.nn.functional as F
from torch.nn.attention import sdpa_kernel, SDPBackend

program, cache, out, works = sys.argv[1:5]
rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 2
ours = subprocess.Popen([program, cache], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

def ask(line):
    ours.stdin.write(line + "\n"); ours.stdin.flush()
    return ours.stdout.readline().rstrip("\n")

FORMATS = {"bf16": torch.bfloat16, "f16": torch.float16, "tf32": torch.float32, "f32": torch.float32}
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")

def graphed(f, runs=10):
    for _ in range(3): f()
    torch.cuda.synchronize()
    s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s): f()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(runs): f()
    return g

def median_ms(g, runs=10, replays=20):
    ts = []
    for i in range(replays + 3):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); g.replay(); b.record(); b.synchronize()
        ms = a.elapsed_time(b)
        if i >= 3 or ms > 200: ts.append(ms / runs)
        if ms > 200 and i == 2: break  # of long ones three are enough
    return sorted(ts)[len(ts) // 2]

class Difference:
    """A backward: forward and backward in one graph, less the forward."""
    def __init__(self, whole, first, runs): self.whole, self.first = graphed(whole, runs), graphed(first, runs)
    def replay(self): self.whole.replay()
    def median_ms(self, runs): return median_ms(self.whole, runs) - median_ms(self.first, runs)

def randn(*shape, dtype): return torch.randn(*shape, device="cuda", dtype=dtype)

def exact(f):
    """f in f32 itself, not in TF32."""
    def run():
        torch.backends.cuda.matmul.allow_tf32 = False
        try: return f()
        finally: torch.backends.cuda.matmul.allow_tf32 = True
    return run

def narrow_products(m, n, k, form):
    """8-bit operands: rows of terms on both sides, as cuBLAS takes them."""
    if form == "i8":
        a, b = (torch.randint(-127, 128, s, device="cuda", dtype=torch.int8) for s in ((m, k), (n, k)))
        return {"cublas int8": lambda: torch._int_mm(a, b.t())}
    a, b = (randn(*s, dtype=torch.float32).to(torch.float8_e4m3fn) for s in ((m, k), (n, k)))
    sa, sb = (torch.tensor(x, device="cuda") for x in (0.5, 0.25))
    product = lambda fast: lambda: torch._scaled_mm(a, b.t(), scale_a=sa, scale_b=sb, out_dtype=torch.bfloat16, use_fast_accum=fast)
    return {"cublas fp8": product(False), "cublas fp8, fast sums": product(True)}

def scaled_blocks(m, n, k, form, size=128):
    """Scales for 128 terms of a row, and of 128 columns: as cuBLAS takes them (checked against dequantized operands); else without."""
    if form != "e4m3": return {"cublas without scales": (lambda a, b: lambda: torch.mm(a, b.t()))(*(randn(*s, dtype=FORMATS[form]) for s in ((m, k), (n, k))))}
    a, b = (randn(*s, dtype=torch.float32).to(torch.float8_e4m3fn) for s in ((m, k), (n, k)))
    sa, sb = (torch.exp2(torch.randint(-4, 4, s, device="cuda").float()) for s in ((m, k // size), (n // size, k // size)))
    some = slice(0, 128)
    want = (a[some].float() * sa[some].repeat_interleave(size, 1)) @ (b.float() * sb.repeat_interleave(size, 0).repeat_interleave(size, 1)).t()
    rows = sa.t().contiguous().t()  # next to each other
    def ways():
        kinds = getattr(F, "ScalingType", None)
        for columns in (sb, sb.t(), sb.t().contiguous(), sb.t().contiguous().t()):
            if kinds and hasattr(F, "scaled_mm"):
                yield "scaled_mm", lambda c=columns: F.scaled_mm(a, b.t(), rows, kinds.BlockWise1x128, c, kinds.BlockWise128x128, output_dtype=torch.bfloat16)
            yield "_scaled_mm", lambda c=columns: torch._scaled_mm(a, b.t(), scale_a=rows, scale_b=c, out_dtype=torch.bfloat16)
    why = ""
    for name, f in ways():
        try:
            got = f()
            error = ((got[some].float() - want).norm() / want.norm()).item()
            if error < 6e-3: return {f"cublas fp8 by blocks ({name})": f}
            why = f"{name}: error {error:.1e}"
        except Exception as e: why = f"{name}: {str(e)[:300]}"
    print("    peer by blocks refused:", why.replace("\n", " "), flush=True)
    return {name + " without blocks": f for name, f in narrow_products(m, n, k, form).items()}

def convolution(w):
    n, h, wide, c, outs, taps, stride, groups = map(int, w[1:9]); f = FORMATS[w[9]]
    last = lambda t: t.to(memory_format=torch.channels_last)
    x, y = last(randn(n, c, h, wide, dtype=f)), last(randn(outs, c // groups, taps, taps, dtype=f))
    return {"cudnn": lambda: F.conv2d(x, y, stride=stride, padding=taps // 2, groups=groups)}

class Block(torch.nn.Module):
    """tensor_work.hpp's block: RMS norms, rotary positions, grouped causal attention, SwiGLU."""
    def __init__(self, d=576, h=9, kv=3, head=64, hidden=1536):
        super().__init__()
        self.h, self.kv, self.head, p = h, kv, head, lambda *shape: torch.nn.Parameter(torch.randn(*shape) / shape[-1] ** 0.5)
        self.attention_norm, self.mlp_norm = torch.nn.Parameter(torch.ones(d)), torch.nn.Parameter(torch.ones(d))
        self.q, self.k, self.v, self.o = p(h * head, d), p(kv * head, d), p(kv * head, d), p(d, h * head)
        self.gate, self.up, self.down = p(hidden, d), p(hidden, d), p(d, hidden)
    def forward(self, x, cos, sin):
        b, n, d = x.shape
        turned = lambda t: t * cos + torch.cat((-t[..., self.head // 2:], t[..., :self.head // 2]), -1) * sin
        y = F.rms_norm(x, (d,), self.attention_norm, 1e-5)
        heads = lambda w, count: F.linear(y, w).view(b, n, count, self.head).transpose(1, 2)
        a = F.scaled_dot_product_attention(turned(heads(self.q, self.h)), turned(heads(self.k, self.kv)), heads(self.v, self.kv), is_causal=True, enable_gqa=True)
        x = x + F.linear(a.transpose(1, 2).reshape(b, n, -1), self.o)
        y = F.rms_norm(x, (d,), self.mlp_norm, 1e-5)
        return x + F.linear(F.silu(F.linear(y, self.gate)) * F.linear(y, self.up), self.down)

def angles(n, head, dtype):
    a = torch.outer(torch.arange(n, device="cuda", dtype=torch.float64), 10000 ** (-torch.arange(0, head, 2, device="cuda", dtype=torch.float64) / head))
    return [torch.cat((f(a), f(a)), -1).to(dtype) for f in (torch.cos, torch.sin)]

def block_of(w):
    """A block's module, arguments, and the function that is timed."""
    n, f = int(w[1]), FORMATS[w[2]]
    m = Block().to("cuda", f)
    x = torch.randn(1, n, 576, device="cuda", dtype=f, requires_grad=True)
    dy, turns = torch.randn(1, n, 576, device="cuda", dtype=f), angles(n, 64, f)
    torch._dynamo.reset()
    c = torch.compile(m)
    def forward():
        with torch.no_grad(): return c(x, *turns)
    return forward if w[3] == "forward" else lambda: torch.autograd.grad(c(x, *turns), [x, *m.parameters()], dy)

def check_block(w, folder):
    """Every value of our results against the same function in f64."""
    said, f = ask("dump " + " ".join(w) + " " + folder), FORMATS[w[2]]
    def load(name, shape):
        return torch.frombuffer(bytearray(open(f"{folder}/{name}.bin", "rb").read()), dtype=f).reshape(shape).to("cuda", torch.float64)
    if "FAILED" in said: return said
    m, n = Block().to("cuda", torch.float64), int(w[1])
    with torch.no_grad():
        for name, p in m.named_parameters(): p.copy_(load("w." + name, p.shape))
    x = load("x", (1, n, 576)).requires_grad_()
    with sdpa_kernel(SDPBackend.MATH): y = m(x, *angles(n, 64, torch.float64))
    want = {"y": y}
    if w[3] == "both":
        of = {"x": x} | {"w." + k: p for k, p in m.named_parameters()}
        want |= dict(zip(["d" + k for k in of], torch.autograd.grad(y, list(of.values()), load("dy", y.shape))))
    error = {k: ((load(k, v.shape) - v).norm() / v.norm()).item() for k, v in want.items()}
    worst = max(error, key=error.get)
    good = all(e < 1.5e-2 for e in error.values()) and " bad 0 guards 0 other 0 " in said + " "
    return f"{said.split('  bad')[0]}  err {error[worst]:.2e} of {worst}  bad{said.split('  bad')[1]} {'ok' if good else 'WRONG'}"

def check_wide(w, folder):
    """Every value of f32 attention and its gradients against f64: the largest error over the largest value."""
    said = ask("dump " + " ".join(w) + " " + folder)
    if "FAILED" in said: return said
    h, rows, keys, d = int(w[1]) * int(w[2]), int(w[4]), int(w[5]), int(w[6])
    load = lambda name, n: torch.frombuffer(bytearray(open(f"{folder}/{name}.bin", "rb").read()), dtype=torch.float32).reshape(h, n, d).to("cuda")
    sides = {"q": rows, "k": keys, "v": keys} | ({"dout": rows} if w[0] == "backward" else {})
    q, k, v, *dout = (load(x, n) for x, n in sides.items())
    got = {x: load(x, n) for x, n in ({"dq": rows, "dk": keys, "dv": keys} if dout else {"out": rows}).items()}
    off, top = dict.fromkeys(got, 0.0), dict.fromkeys(got, 0.0)
    for i in range(h):
        a, b, c = q[i].double(), k[i].double(), v[i].double()
        s = a @ b.t() / d ** 0.5
        if w[7] == "causal": s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu(1), float("-inf"))
        p = torch.softmax(s, -1)
        want = {"out": p @ c}
        if dout:
            o = dout[0][i].double()
            ds = p * (o @ c.t() - (o * want["out"]).sum(-1, keepdim=True)) / d ** 0.5
            want = {"dv": p.t() @ o, "dq": ds @ b, "dk": ds.t() @ a}
        for x in got:
            off[x] = max(off[x], (got[x][i].double() - want[x]).abs().max().item()); top[x] = max(top[x], want[x].abs().max().item())
    error = {x: off[x] / top[x] for x in got}
    worst = max(error, key=error.get)
    good = all(e <= 1e-5 for e in error.values()) and " bad 0 guards 0 other 0 " in said + " "
    return f"{said.split('  bad')[0]}  err {error[worst]:.2e} of {worst}, all values  bad{said.split('  bad')[1]} {'ok' if good else 'WRONG'}"

def peers(w):
    """name -> a function that runs it; what torch cannot do is left out with the reason."""
    if w[0] == "block": return {"torch.compile": block_of(w)}
    if w[0] == "conv": return convolution(w)
    if w[0] == "gemm" and w[-1] == "blocks=128": return scaled_blocks(*map(int, w[1:4]), w[5])
    if w[0] == "gemm" and w[5] in ("e4m3", "i8"): return narrow_products(*map(int, w[1:4]), w[5])
    if w[0] == "gemm":
        m, n, k = map(int, w[1:4]); f = FORMATS[w[5]]
        a, b, at, bt = randn(m, k, dtype=f), randn(k, n, dtype=f), randn(k, m, dtype=f), randn(n, k, dtype=f)
        if w[5] == "f32": return {"cublas f32 nn": exact(lambda: torch.mm(a, b)), "cublas f32 nt": exact(lambda: torch.mm(a, bt.t()))}
        return {"cublas nn": lambda: torch.mm(a, b), "cublas nt": lambda: torch.mm(a, bt.t())} | (
            {"cublas " + w[4]: (lambda: torch.mm(at.t(), b if w[4][1] == "n" else bt.t()))} if w[4][0] == "t" else {})
    b, h, kv, rows, keys, d = map(int, w[1:7]); f = FORMATS[w[8] if len(w) > 8 and "=" not in w[8] else "bf16"]
    q, k, v = randn(b, h, rows, d, dtype=f), randn(b, kv, keys, d, dtype=f), randn(b, kv, keys, d, dtype=f)
    back = w[0] == "backward"
    table = torch.randn(h, 32, device="cuda", dtype=f)
    if back:
        of = (q, k, v, table) if w[7] == "t5" else (q, k, v)
        for x in of: x.requires_grad_()
        dout = randn(b, h, rows, d, dtype=f)
        both = lambda run: (lambda: torch.autograd.grad(run(), of, dout), run)
    if w[7] in ("full", "causal") and f != torch.float32:
        def cudnn():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return F.scaled_dot_product_attention(q, k, v, is_causal=w[7] == "causal", enable_gqa=h != kv)
        return {"cudnn": both(cudnn) if back else cudnn}
    # FlexAttention (f32 in TF32), compiled for this case alone; its block mask is made beforehand, as a user would.
    from torch.nn.attention.flex_attention import flex_attention, create_block_mask
    torch._dynamo.reset()
    slopes = torch.exp2(-8.0 * torch.arange(1, h + 1, device="cuda") / h)
    ids = torch.arange(rows, device="cuda") // 700
    masks = {"causal": lambda b_, h_, i, j: j <= i, "window": lambda b_, h_, i, j: (j <= i) & (i - j < 128), "prefix": lambda b_, h_, i, j: (j <= i) | (j < 256),
             "document": lambda b_, h_, i, j: (j <= i) & (ids[i] == ids[j])}
    scores = {"softcap": lambda s, b_, h_, i, j: 20 * torch.tanh(s / 20), "alibi": lambda s, b_, h_, i, j: s - slopes[h_] * (i - j),
              "t5": lambda s, b_, h_, i, j: s + table[h_, torch.clamp((i - j) // 64 + 16, 0, 31)]}
    block = create_block_mask(masks[w[7]], None, None, rows, keys, device="cuda") if w[7] in masks else None
    f_ = torch.compile(flex_attention, fullgraph=True)
    flex = lambda: f_(q, k, v, score_mod=scores.get(w[7]), block_mask=block, enable_gqa=h != kv)
    return {"flex": both(flex) if back else flex}

def is_wide(w): return w[0] in ("attention", "backward") and w[-1] == "f32"

def checked(line):
    """With as few pieces as keep 1e-5, as an error budget chooses from samples: how ours is told, what the check says."""
    for told in (line, line + " pieces=3"):
        said = check_wide(told.split(), out)
        print(said, flush=True)
        if said.endswith("ok"): break
    return told, said

build = hashlib.sha256(open(program, "rb").read()).hexdigest()[:16]
if not rounds:
    known = {}
    for line in map(str.strip, open(works)):
        if not line or line[0] == "#": continue
        for f in peers(line.split()).values(): (f[0] if isinstance(f, tuple) else f)()
        if is_wide(line.split()): known[line] = checked(line)
    torch.cuda.synchronize()
    json.dump(known, open(os.path.join(cache, f"checks.{build}.{os.getpid()}.json"), "w"))
    sys.exit()
before = {}
for f in glob.glob(os.path.join(cache, f"checks.{build}.*.json")): before.update(json.load(open(f)))
rows = []
state = subprocess.run(["nvidia-smi", "--query-gpu=driver_version,clocks.sm,power.draw,temperature.gpu", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
def save():
    json.dump({"date": time.strftime("%Y-%m-%d"), "device": torch.cuda.get_device_name(), "driver": state, "torch": torch.__version__,
               "cudnn": torch.backends.cudnn.version(), "rows": rows}, open(os.path.join(out, "tensor.json"), "w"), indent=1)
for line in open(works):
    line = line.strip()
    if not line or line.startswith("#"): continue
    w = line.split()
    told = line
    if is_wide(w): told, said = before.get(line) or checked(line)
    else: said = check_block(w, out) if w[0] == "block" else ask("check " + line)
    print(said, flush=True)
    row = {"work": line, "check": said.split(line)[1].strip().replace("pieces=3", "in 3 pieces,"), "ok": said.endswith("ok"), "ms": {}, "tflops": None}
    if row["ok"]:
        graphs, times = {}, {"ours": []}
        runs = 10
        def mine():
            t = ask(f"time {told} {runs}")
            try:
                ms, rate = float(t.split(" ms ")[0].split()[-1]), float(t.split(" ms ")[1].split()[0])
                times["ours"].append(ms); row["tflops"] = rate * ms
            except Exception: print(t, flush=True)
        def theirs_():
            for name, g in graphs.items():
                times[name].append(g.median_ms(runs) if isinstance(g, Difference) else median_ms(g, runs))
        runs = 2
        mine()  # loads the kernel; long ones need fewer runs in a graph
        if times["ours"]: runs = max(2, min(10, int(8 / times["ours"][0])))
        times["ours"].clear()
        for name, f in peers(w).items():
            try: graphs[name] = Difference(*f, runs) if isinstance(f, tuple) else graphed(f, runs)
            except Exception as e: row.setdefault("left out", {})[name] = str(e).split("\n")[0][:200]
        times.update({name: [] for name in graphs})
        begin = time.time()
        while graphs and time.time() - begin < 0.15:
            for g in graphs.values(): g.replay()
            torch.cuda.synchronize()
        for r in range(rounds):
            for side in (mine, theirs_) if r % 2 else (theirs_, mine): side()
        row["rounds"] = times
        row["ms"] = {name: sorted(x)[len(x) // 2] if len(x) % 2 else sum(sorted(x)[len(x) // 2 - 1:len(x) // 2 + 1]) / 2 for name, x in times.items() if x}
        if "ours" in row["ms"]: row["tflops"] /= row["ms"]["ours"]
        theirs = [(t, name) for name, t in row["ms"].items() if name != "ours"]
        if theirs and "ours" in row["ms"]:
            t, name = min(theirs); row["peer"], row["ratio"] = name, t / row["ms"]["ours"]
            print(f"    ours {row['ms']['ours']:.4f} ms {row['tflops']:.1f} TFLOP/s   {name} {t:.4f} ms   ratio {row['ratio']:.3f}", flush=True)
        del graphs; torch.cuda.empty_cache()
    rows.append(row); save()
ours.stdin.close()
good = [r["ratio"] for r in rows if "ratio" in r]
if good:
    p = 1.0
    for r in good: p *= r
    print(f"{len(good)} rows, geomean {p ** (1 / len(good)):.3f}, worst {min(good):.3f}; {sum(not r['ok'] for r in rows)} wrong")
