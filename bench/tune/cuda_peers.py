"""Kernels of torch, cuBLAS and cuDNN at random sizes, timed as graphs of twenty launches: none may be faster than the floor
that `bench_tune_cuda report` computes for its work.   cuda_peers.py OUT.json [SECONDS]"""
import json, random, sys, time
import torch, torch.nn.functional as F
from torch.nn.attention import sdpa_kernel, SDPBackend

out, limit = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 40
FORMATS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
torch.backends.cuda.matmul.allow_tf32 = True
draw = random.Random(29)
pool = torch.randn(1 << 28, device="cuda").to(torch.bfloat16)
wide = torch.randn(1 << 27, device="cuda")
LAUNCHES = 20


def take(f, *shape, at=0):
    n = 1
    for x in shape: n *= x
    source = wide if f == "f32" else pool if f == "bf16" else pool.view(torch.float16)
    return source[at:at + n].view(*shape)


def best_us(f):
    for _ in range(2): f()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(LAUNCHES): f()
    g.replay()
    ts = []
    for _ in range(9):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); g.replay(); b.record(); b.synchronize()
        ts.append(a.elapsed_time(b) * 1e3 / LAUNCHES)
    return min(ts), sorted(ts)[4]


def size(least, most, step=8):
    return max(step, int(2 ** draw.uniform(least, most)) // step * step)


def product():
    f = draw.choice(["bf16", "bf16", "f16", "f32"])
    m, n, k = draw.choice([1, 2, 8, 16, 48, size(5, 12)]), size(6, 13), size(6, 13)
    a, b = take(f, m, k), take(f, n, k, at=m * k)
    y = torch.empty(m, n, device="cuda", dtype=FORMATS[f])
    return {"kind": "product", "format": f, "shape": [m, n, k]}, lambda: torch.mm(a, b.t(), out=y)


def attention():
    b, h, n, d = draw.choice([1, 2, 4]), draw.choice([4, 8, 16]), size(7, 12, 64), draw.choice([64, 128])
    causal = draw.random() < 0.5
    q, k, v = (take("bf16", b, h, n, d, at=i * b * h * n * d) for i in range(3))
    backend = draw.choice([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION])
    def run():
        with sdpa_kernel(backend): return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return {"kind": "attention", "format": "bf16", "shape": [b, h, n, d], "causal": causal}, run


def rows():
    f = draw.choice(["bf16", "f32"])
    m, n = size(3, 13), size(6, 13)
    while m * n > 1 << 26: m //= 2
    x = take(f, m, n)
    what = draw.choice(["sum", "max", "softmax", "layer norm", "add", "copy", "relu"])
    y = torch.empty_like(x)
    z = take(f, m, n, at=m * n)
    runs = {"sum": lambda: x.sum(-1), "max": lambda: x.amax(-1), "softmax": lambda: torch.softmax(x, -1),
            "layer norm": lambda: F.layer_norm(x, (n,)), "add": lambda: torch.add(x, z, out=y),
            "copy": lambda: y.copy_(x), "relu": lambda: torch.clamp_min(x, 0, out=y)}
    return {"kind": what, "format": f, "shape": [m, n]}, runs[what]


records, skipped, begin = [], 0, time.time()
while time.time() - begin < limit:
    work, f = draw.choice([product, product, rows, rows, attention])()
    try:
        work["best_us"], work["median_us"] = best_us(f)
        records.append(work)
    except Exception as e:
        skipped += 1
        if skipped < 4: print(work, str(e).split("\n")[0][:200])
json.dump({"schema": "tang.tune-peers/1", "device": torch.cuda.get_device_name(), "date": time.strftime("%Y-%m-%d"),
           "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "skipped": skipped, "records": records},
          open(out, "w"))
print(len(records), "kernels of torch timed,", skipped, "skipped")
