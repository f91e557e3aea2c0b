#!/usr/bin/env python3
"""Attention by torch on the CPU, forward and forward + backward, as JSON (schema tang.bench/1) for bench_programs report.
usage: torch_peers.py THREADS [SECONDS per row]"""
import json
import math
import sys
import time

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
budget = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
try:
    import torch
except ImportError:
    print(json.dumps({"schema": "tang.bench/1", "torch": "not present", "rows": []}))
    sys.exit(0)

torch.set_num_threads(threads)
fused = getattr(torch.nn.functional, "scaled_dot_product_attention", None)


def plain(q, k, v, mask):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s + mask
    return torch.softmax(s, -1) @ v


rows = []


def measure(section, name, run):
    run()
    times = []
    end = time.perf_counter() + budget
    while len(times) < 3 or time.perf_counter() < end:
        t = time.perf_counter()
        run()
        times.append(time.perf_counter() - t)
    times.sort()
    rows.append({"section": section, "name": name, "threads": threads,
                 "median_ns": times[len(times) // 2] * 1e9, "best_ns": times[0] * 1e9, "runs": len(times)})


for d in (64, 128):
    for n in (512, 2048, 8192):
        for causal in (False, True):
            h = 8 if n <= 512 else 2 if n <= 2048 else 1
            q, k, v, g = (torch.rand(1, h, n, d) - 0.5 for _ in range(4))
            mask = torch.full((n, n), -math.inf).triu(1) if causal else None
            forward = (lambda: fused(q, k, v, is_causal=causal)) if fused else (lambda: plain(q, k, v, mask))
            name = f"{'causal' if causal else 'full'} h{h} n{n} d{d}"
            with torch.no_grad():
                measure("attention", name, forward)
            for x in (q, k, v):
                x.requires_grad_(True)
            measure("backward", name, lambda: torch.autograd.grad(forward(), (q, k, v), g))
what = f"torch {torch.__version__} " + ("scaled_dot_product_attention" if fused else "softmax(Q K^T) V")
print(json.dumps({"schema": "tang.bench/1", "torch": what, "rows": rows}, indent=1))
