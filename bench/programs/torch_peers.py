#!/usr/bin/env python3
"""Attention, a transformer block and training steps by torch on the CPU, as JSON (schema tang.bench/1) for bench_programs report.
usage: torch_peers.py THREADS [SECONDS per row] [SECTION ..]"""
import json
import math
import os
import sys
import time

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
budget = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
sections = sys.argv[3:] or ["attention", "backward", "training"]
# torch.set_num_threads does not reach the threads that Debian's OpenBLAS has of its own. Two pools that spin for more
# cores than there are stand in each other's way, so a row with several threads is measured with torch's own pool and
# without it, and the better one counts.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(threads)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
try:
    import torch
except ImportError:
    print(json.dumps({"schema": "tang.bench/1", "torch": "not present", "rows": []}))
    sys.exit(0)

fused = getattr(torch.nn.functional, "scaled_dot_product_attention", None)


def plain(q, k, v, mask):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s + mask
    return torch.softmax(s, -1) @ v


rows = []


def times_of(run, seconds):
    run()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        t = time.perf_counter()
        run()
        times.append(time.perf_counter() - t)
    return sorted(times)


def measure(section, name, run):
    pools = sorted({1, threads})
    best = None
    for pool in pools:
        torch.set_num_threads(pool)
        times = times_of(run, budget / len(pools))
        if best is None or times[len(times) // 2] < best[0][len(best[0]) // 2]:
            best = times, pool
    times, pool = best
    rows.append({"section": section, "name": name, "threads": threads, "torch_threads": pool,
                 "median_ns": times[len(times) // 2] * 1e9, "best_ns": times[0] * 1e9, "runs": len(times)})


for d in (64, 128):
    for n in (512, 2048, 8192):
        for causal in (False, True):
            h = 8 if n <= 512 else 2 if n <= 2048 else 1
            q, k, v, g = (torch.rand(1, h, n, d) - 0.5 for _ in range(4))
            mask = torch.full((n, n), -math.inf).triu(1) if causal else None
            forward = (lambda: fused(q, k, v, is_causal=causal)) if fused else (lambda: plain(q, k, v, mask))
            name = f"{'causal' if causal else 'full'} h{h} n{n} d{d}"
            if "attention" in sections:
                with torch.no_grad():
                    measure("attention", name, forward)
            if "backward" not in sections:
                continue
            for x in (q, k, v):
                x.requires_grad_(True)
            measure("backward", name, lambda: torch.autograd.grad(forward(), (q, k, v), g))


def norm(x, gain):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * gain


def turned(x, cos, sin):  # rotary, feature d with d + half
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block:
    def __init__(self, model, heads, kv, head, hidden):
        self.heads, self.kv, self.head = heads, kv, head
        shapes = {"norm1": (model,), "q": (heads * head, model), "k": (kv * head, model), "v": (kv * head, model),
                  "o": (model, heads * head), "norm2": (model,), "gate": (hidden, model), "up": (hidden, model), "down": (model, hidden)}
        self.w = {n: ((torch.rand(s) - 0.5) * math.sqrt(12 / s[-1]) if len(s) > 1 else torch.ones(s)).requires_grad_() for n, s in shapes.items()}

    def __call__(self, x):
        b, n, _ = x.shape
        w = self.w
        angle = torch.arange(n)[:, None] * 10000 ** (-torch.arange(0, self.head, 2) / self.head)
        cos, sin = angle.cos(), angle.sin()
        h = norm(x, w["norm1"])
        q, k, v = (torch.nn.functional.linear(h, w[p]).view(b, n, -1, self.head).transpose(1, 2) for p in "qkv")
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        if self.kv != self.heads:
            k, v = (t.repeat_interleave(self.heads // self.kv, 1) for t in (k, v))
        if fused:
            a = fused(q, k, v, is_causal=True)
        else:
            a = plain(q, k, v, torch.full((n, n), -math.inf).triu(1))
        x = x + torch.nn.functional.linear(a.transpose(1, 2).reshape(b, n, -1), w["o"])
        h = norm(x, w["norm2"])
        gated = torch.nn.functional.silu(torch.nn.functional.linear(h, w["gate"])) * torch.nn.functional.linear(h, w["up"])
        return x + torch.nn.functional.linear(gated, w["down"])


def training_step(name, layers, model, heads, batch, context):
    blocks = [Block(model, heads, heads, model // heads, 3 * model) for _ in range(layers)]
    table, gain = ((torch.rand(64, model) - 0.5).requires_grad_(), torch.ones(model, requires_grad=True))
    weights = [table, gain] + [t for x in blocks for t in x.w.values()]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, foreach=True)
    ids, target = torch.randint(64, (batch, context)), torch.randint(64, (batch, context))

    def step():
        x = table[ids]
        for block in blocks:
            x = block(x)
        loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(norm(x, gain), table).view(-1, 64), target.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()

    measure("training", name, step)


if "training" in sections:
    block = Block(576, 9, 3, 64, 1536)
    x, dy = torch.rand(1, 512, 576, requires_grad=True), torch.rand(1, 512, 576)
    measure("training", "block forward+backward n512", lambda: torch.autograd.grad(block(x), [x, *block.w.values()], dy))
    training_step("step L2 d128 b16 t64", 2, 128, 4, 16, 64)
    training_step("step L4 d128 b4 t256", 4, 128, 4, 4, 256)
what = f"torch {torch.__version__} " + ("scaled_dot_product_attention" if fused else "softmax(Q K^T) V")
print(json.dumps({"schema": "tang.bench/1", "torch": what, "rows": rows}, indent=1))
