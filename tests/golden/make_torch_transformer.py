"""Trains torch/transformer.safetensors: a language model of characters, on the documents in docs/.

Run with PyTorch 2 (python3 -m pip install torch safetensors numpy); it takes some minutes. The committed file is the
reference, since other versions of PyTorch train other weights. examples/generate.c writes text with it.

    torch/transformer.safetensors       float16: the state_dict, without the head, which shares the embedding's weight.
                                        Metadata: vocabulary, heads, groups, layers; prompt, and greedy, the text that
                                        PyTorch adds to it
    torch/transformer_logits.safetensors  float32: tokens (2, 12), logits of these weights (2, 12, vocabulary)
"""
import glob
import os
import sys
import time

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS, HEADS, GROUPS, LAYERS, HIDDEN, LENGTH = 64, 4, 2, 3, 192, 128


def rotate(x):
    """Rotates (N, heads, T, size) by positions 0, 1, ..: element i with element i + size / 2."""
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(x.shape[2], dtype=torch.float64)[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        size = UNITS // HEADS
        self.q_proj = nn.Linear(UNITS, UNITS, bias=False)
        self.k_proj = nn.Linear(UNITS, GROUPS * size, bias=False)
        self.v_proj = nn.Linear(UNITS, GROUPS * size, bias=False)
        self.o_proj = nn.Linear(UNITS, UNITS, bias=False)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (f(x).view(n, t, heads, -1).transpose(1, 2) for f, heads in
                   ((self.q_proj, HEADS), (self.k_proj, GROUPS), (self.v_proj, GROUPS)))
        y = functional.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(n, t, -1))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(UNITS, HIDDEN, bias=False)
        self.up_proj = nn.Linear(UNITS, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, UNITS, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_norm = nn.RMSNorm(UNITS, eps=1e-5)
        self.attention = Attention()
        self.output_norm = nn.RMSNorm(UNITS, eps=1e-5)
        self.mlp = Gated()

    def forward(self, x):
        x = x + self.attention(self.input_norm(x))
        return x + self.mlp(self.output_norm(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, UNITS)
        nn.init.normal_(self.embedding.weight, std=0.05)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(UNITS, eps=1e-5)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.embedding.weight.T


def corpus():
    """Returns the prose of the documents, in ASCII, without tables, lists of names and code."""
    text = []
    for path in sorted(glob.glob(os.path.join(HERE, "../../docs/*.md")) + [os.path.join(HERE, "../../README.md")]):
        if os.path.basename(path) in ("API.md", "PHRASES.md", "TUTORIAL_MAP.md", "OPERATIONS.md"):
            continue
        code = False
        for line in open(path, encoding="utf-8"):
            code ^= line.startswith("```")
            if not code and not line.startswith(("|", "```", "    ", "<!--")):
                text.append(line)
    return "".join(c for c in "".join(text) if c == "\n" or " " <= c <= "~")


def main():
    torch.manual_seed(1)
    torch.set_num_threads(2)
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    text = corpus()
    vocabulary = "".join(sorted(set(text)))
    data = torch.tensor([vocabulary.index(c) for c in text])
    net = Transformer(len(vocabulary))
    print("%d characters, %d different, %d parameters" % (len(text), len(vocabulary), sum(p.numel() for p in net.parameters())))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    began = time.time()
    for step in range(steps):
        at = torch.randint(len(data) - LENGTH - 1, (16,))
        rows = torch.stack([data[i:i + LENGTH + 1] for i in at])
        loss = functional.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print("step %d, loss %.3f, %.0f s" % (step, loss.item(), time.time() - began), flush=True)
    weights = {name: value.half() for name, value in net.state_dict().items()}
    net.load_state_dict({name: value.float() for name, value in weights.items()})
    prompt = "The library "
    tokens = [vocabulary.index(c) for c in prompt]
    with torch.no_grad():
        for _ in range(60):
            tokens.append(int(net(torch.tensor([tokens]))[0, -1].argmax()))
        greedy = "".join(vocabulary[i] for i in tokens[len(prompt):])
        rows = torch.stack([data[i:i + 12] for i in (100, 2000)])
        logits = net(rows)
    print(repr(prompt + greedy))
    folder = os.path.join(HERE, "torch")
    save_file(weights, os.path.join(folder, "transformer.safetensors"),
              {"vocabulary": vocabulary, "heads": str(HEADS), "groups": str(GROUPS), "layers": str(LAYERS),
               "prompt": prompt, "greedy": greedy})
    save_file({"tokens": rows, "logits": logits}, os.path.join(folder, "transformer_logits.safetensors"))


if __name__ == "__main__":
    main()
