#!/usr/bin/env python3
"""Ten steps of AdamW on gpt-nano-sort in f64 by torch: what nano_sort.cpp compares with. For each step a line with the loss
and the norm of all gradients; for each weight, in the order of their names, the norm of its gradient and its products with
two fixed vectors (places and signs of a linear congruence), which no gradient but the right one has.
usage: nano_sort_reference.py gpt-nano-sort-model.json > nano_sort_reference.txt"""
import base64
import json
import math
import struct
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
raw = json.load(open(sys.argv[1]))
w = {}
for name, t in raw.items():
    if name == "config" or name.endswith(".attn.bias"):
        continue
    data = base64.b64decode(t["data"])
    w[name] = torch.tensor(struct.unpack(f"<{len(data) // 4}f", data)).reshape(t["shape"]).requires_grad_()
names = [n for n in w if w[n].dtype == torch.float64]
state = 1


def digit():  # a linear congruence, so that both sides draw the same numbers
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return (state >> 16) % 3


def batch():
    x, y = [], []
    for _ in range(8):
        d = [digit() for _ in range(6)]
        both = d + sorted(d)
        x.append(both[:-1])
        y.append([-1] * 5 + both[6:])
    return torch.tensor(x), torch.tensor(y)


def model(idx):
    t = idx.shape[1]
    x = w["transformer.wte.weight"][idx] + w["transformer.wpe.weight"][:t]
    for layer in range(3):
        p = f"transformer.h.{layer}."
        h = F.layer_norm(x, (48,), w[p + "ln_1.weight"], w[p + "ln_1.bias"])
        q, k, v = (h @ w[p + "attn.c_attn.weight"].T + w[p + "attn.c_attn.bias"]).split(48, dim=2)
        q, k, v = (z.view(-1, t, 3, 16).transpose(1, 2) for z in (q, k, v))
        s = q @ k.transpose(-2, -1) / 4
        s = s.masked_fill(torch.ones(t, t).tril() == 0, -math.inf)
        h = (s.softmax(-1) @ v).transpose(1, 2).reshape(-1, t, 48)
        x = x + h @ w[p + "attn.c_proj.weight"].T + w[p + "attn.c_proj.bias"]
        h = F.layer_norm(x, (48,), w[p + "ln_2.weight"], w[p + "ln_2.bias"])
        h = h @ w[p + "mlp.c_fc.weight"].T + w[p + "mlp.c_fc.bias"]
        h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        x = x + h @ w[p + "mlp.c_proj.weight"].T + w[p + "mlp.c_proj.bias"]
    return F.layer_norm(x, (48,), w["transformer.ln_f.weight"], w["transformer.ln_f.bias"]) @ w["lm_head.weight"].T


def probe(seed, n):  # in [-1, 1), of a linear congruence
    v = []
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % 2147483648
        v.append(seed / 1073741824 - 1)
    return torch.tensor(v)


optimizer = torch.optim.AdamW([w[n] for n in names], lr=5e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
for step in range(10):
    x, y = batch()
    loss = F.cross_entropy(model(x).view(-1, 3), y.view(-1), ignore_index=-1)
    optimizer.zero_grad()
    loss.backward()
    norm = math.sqrt(sum(float((w[n].grad**2).sum()) for n in names))
    print(f"step {step} {loss.item():.17g} {norm:.17g}")
    for n in sorted(names):
        g = w[n].grad.flatten()
        print(f"{n} {float(g.norm()):.17g} {float(g @ probe(1, len(g))):.17g} {float(g @ probe(2, len(g))):.17g}")
    optimizer.step()
