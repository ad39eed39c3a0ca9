"""The rows of the comparison: what is called, what one call does, who takes part, and the results in float64."""
import math

import numpy as np
from peer import RANGES, conv_inputs, values


class Row:
    """One line of the table. work: what a call does, in `unit`s."""

    def __init__(self, group, op, work, unit, peers, threads=(1, 2), short=False, **arguments):
        self.group, self.op, self.arguments = group, op, arguments
        self.work, self.unit, self.peers, self.threads, self.short = work, unit, peers, threads, short

    @property
    def title(self):
        a = self.arguments
        if self.op == "mm":
            form = "NT"[a.get("ta", 0)] + "NT"[a.get("tb", 0)]
            return f"{a['m']}x{a['n']}x{a['k']} {form}"
        if self.op == "conv":
            size = f"{a['n']}x{a['c']}x{a['h']}x{a.get('w', a['h'])} to {a['o']}, {a['k']}x{a['k']}"
            more = (f", stride {a['stride']}" if a.get("stride", 1) > 1 else "") + (f", pad {a['pad']}" if a.get("pad") else "")
            return size + more + (", forward and gradients" if a.get("backward") else "")
        if "rows" in a:
            along = "all" if a.get("all") else "rows" if a.get("axis", -1) == 0 else ""
            return f"{self.op} {a['rows']}x{a['columns']}" + (" over " + along if along else "")
        if "n" in a:
            return f"{self.op}, {a['n']:,} elements"
        return self.op + "".join(f", {k} {v}" for k, v in a.items())

    @property
    def command(self):
        return "case " + self.op + "".join(f" {k}={v}" for k, v in self.arguments.items())


BLAS = ("openblas", "blis", "dnnl")
SQUARES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SHAPES = ((256, 10, 84), (256, 120, 400), (256, 84, 120), (64, 500, 800), (64, 10, 500), (20, 576, 25), (1, 4096, 4096),
          (4096, 4096, 16), (128, 128, 64), (64, 64, 512))


def product(m, n, k, ta=0, tb=0, short=False):
    small = ("xsmm",) if not tb and max(m, n, k) <= 256 else ()
    return Row("matrix products, float32", "mm", 2e-9 * m * n * k, "GFLOP/s", BLAS + small, short=short, m=m, n=n, k=k, ta=ta, tb=tb)


def products():
    for n in SQUARES:
        yield product(n, n, n, short=n in (16, 128, 512, 1024))
    for m, n, k in SHAPES:
        yield product(m, n, k, short=(m, n) == (256, 10))
        if m > 1:
            yield product(m, n, k, ta=1)
        yield product(m, n, k, tb=1)
    for n in (16, 64, 256, 1024):
        for ta, tb in ((0, 1), (1, 0), (1, 1)):
            yield product(n, n, n, ta, tb, short=n == 64)


def elementwise():
    for op in ("exp", "log", "tanh", "sin", "sigmoid", "erf"):
        for n in (1000, 100_000, 10_000_000, 100_000_000):
            yield Row("vector functions, float32", op, n * 1e-9, "Gelement/s", ("torch", "numpy", "jax", "numexpr"), n=n,
                      short=n == 100_000)


def reductions():
    for op in ("sum", "mean", "var", "max", "argmax"):
        for form in ({"all": 1}, {"axis": -1}, {"axis": 0}):
            if op == "argmax" and "all" in form:
                continue
            yield Row("along axes, float32", op, 4e-9 * 4096 * 1024, "GB/s read", ("torch", "numpy", "jax"), rows=4096, columns=1024,
                      short=form.get("axis") == 0, **form)
    for op in ("softmax", "layernorm", "transpose"):
        yield Row("along axes, float32", op, 4e-9 * 4096 * 1024, "GB/s read", ("torch", "numpy", "jax"), rows=4096, columns=1024,
                  short=True)
    yield Row("along axes, float32", "softmax", 4e-9 * 2560, "GB/s read", ("torch", "numpy", "jax"), rows=256, columns=10)


def convolutions():
    peers = ("torch", "torch channels_last")
    for backward in (0, 1):
        for name, a in (("LeNet", {"n": 64, "c": 1, "h": 28, "o": 20, "k": 5}), ("LeNet", {"n": 64, "c": 20, "h": 12, "o": 50, "k": 5}),
                        ("LeNet", {"n": 256, "c": 1, "h": 28, "o": 6, "k": 5}), ("LeNet", {"n": 256, "c": 6, "h": 12, "o": 16, "k": 3}),
                        ("ResNet", {"n": 8, "c": 64, "h": 56, "o": 64, "k": 3, "pad": 1}),
                        ("ResNet", {"n": 8, "c": 256, "h": 14, "o": 256, "k": 3, "pad": 1}),
                        ("ResNet", {"n": 8, "c": 3, "h": 224, "o": 64, "k": 7, "stride": 2, "pad": 3}),
                        ("ResNet", {"n": 8, "c": 64, "h": 56, "o": 256, "k": 1})):
            out = (a["h"] + 2 * a.get("pad", 0) - a["k"]) // a.get("stride", 1) + 1
            flops = 2 * a["n"] * a["o"] * out * out * a["c"] * a["k"] ** 2 * (3 if backward else 1)
            yield Row("convolutions, " + name + " shapes", "conv", flops * 1e-9, "GFLOP/s", peers, short=a["c"] in (1, 20) and a["n"] == 64,
                      backward=backward, **a)
    yield Row("convolutions, LeNet shapes", "maxpool", 4e-9 * 64 * 20 * 576, "GB/s read", peers, short=True)


def the_rest():
    yield Row("1000 products of 100x100 with their norms", "mm_norms", 2.0, "GFLOP/s", ("torch", "numpy"), count=1000, short=True)
    yield Row("one operation on 3 floats", "add", 1e-6, "million calls/s", ("torch", "numpy"), threads=(1,), n=3, short=True)
    for op in ("uniform", "normal"):
        yield Row("random numbers, float32", op, 0.1, "Gelement/s", ("torch", "numpy"), n=100_000_000, short=True)
    for batch in (1, 32, 256):
        yield Row("LeNet training step", "lenet_step", batch * 1e-3, "thousand samples/s",
                  ("torch", "torch channels_last", "torch compile", "jax"), batch=batch, short=batch == 256)
    yield Row("inference of one image", "lenet_infer", 1e-3, "thousand images/s", ("torch", "torch channels_last"), threads=(1,), batch=1,
              short=True)


ROWS = [*products(), *elementwise(), *reductions(), *convolutions(), *the_rest()]


# ---- results in float64 ----
def expected(row):
    """None: nothing to compare with (random numbers, training, or too large to be worth it)."""
    a, op = row.arguments, row.op
    if op == "mm":
        x = values(1, a["m"] * a["k"]).astype(np.float64).reshape((a["k"], a["m"]) if a["ta"] else (a["m"], a["k"]))
        y = values(2, a["k"] * a["n"]).astype(np.float64).reshape((a["n"], a["k"]) if a["tb"] else (a["k"], a["n"]))
        return (x.T if a["ta"] else x) @ (y.T if a["tb"] else y)
    if op == "mm_norms":
        x, y = (values(s, 10000).astype(np.float64).reshape(100, 100) for s in (1, 2))
        return np.array(a["count"] * np.linalg.norm(x @ y))
    if op in RANGES:
        x = values(1, min(a["n"], 1_000_000), *RANGES[op]).astype(np.float64)
        if op in ("erf", "gelu"):
            erf = np.frompyfunc(math.erf, 1, 1)
            return (erf(x) if op == "erf" else 0.5 * x * (1 + erf(x / math.sqrt(2)))).astype(np.float64)
        return {"sigmoid": lambda v: 1 / (1 + np.exp(-v)), "relu": lambda v: np.maximum(v, 0)}.get(op, getattr(np, op, None))(x)
    if op == "add":
        return values(1, a["n"]).astype(np.float64) + values(2, a["n"])
    if op == "conv":
        return conv_expected(a)
    if op == "maxpool":
        x = values(1, 64 * 20 * 24 * 24).astype(np.float64)
        return x.reshape(64, 20, 12, 2, 12, 2).max((3, 5))
    if "rows" in a:
        x = values(1, a["rows"] * a["columns"]).astype(np.float64).reshape(a["rows"], a["columns"])
        if op == "softmax":
            e = np.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)
        if op == "layernorm":
            return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        if op == "transpose":
            return x.T
        return getattr(np, op)(x, axis=None if a.get("all") else a.get("axis", -1))
    return None


def conv_expected(a):
    """y of the first image; or the gradient to w of the sum of y: windows of x summed over images and positions."""
    x, w, b = conv_inputs(a)
    pad, stride = a.get("pad", 0), a.get("stride", 1)
    if not a["backward"]:
        x = x[:1]
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (a["k"], a["k"]), (2, 3))[:, :, ::stride, ::stride]
    if a["backward"]:
        one = windows.sum((0, 2, 3))
        return np.broadcast_to(one, w.shape)
    return np.einsum("nchwrs,ocrs->nohw", windows, w.astype(np.float64), optimize=True) + b[None, :, None, None]


def error(row, path, wanted):
    """The largest difference, relative to the largest result; NaN where one is."""
    got = np.fromfile(path, np.float32).astype(np.float64)
    flat = np.asarray(wanted, np.float64).reshape(-1)
    n = min(got.size, flat.size)
    if n == 0 or (got.size != flat.size and row.op not in RANGES and row.op != "conv"):
        return math.nan
    scale = max(1e-30, float(np.abs(flat[:n]).max()))
    return float(np.max(np.abs(got[:n] - flat[:n]))) / scale
