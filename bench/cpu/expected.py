"""Expected results of the rows: in float64, or as statistics."""
import math

import lenet64
import numpy as np
from inputs import RANGES, conv_inputs, factors, matrix, values

TOLERANCE = {
    "mm": 2e-5, "conv": 1e-4, "mm_norms": 1e-4, "var": 1e-4, "cumsum": 1e-4, "layernorm": 2e-5,
    "lenet_step": 2e-3, "lenet_infer": 1e-4
}


def expected(row):
    """Returns the result in float64, or None when `error` checks it otherwise."""
    a, op = row.arguments, row.op
    if op == "mm":
        x, y = (v.astype(np.float64) for v in factors(a))
        return (x.T if a["ta"] else x) @ (y.T if a["tb"] else y)
    if op == "mm_norms":
        x, y = (values(s, 10000).astype(np.float64).reshape(100, 100) for s in (1, 2))
        return np.array(a["count"] * np.linalg.norm(x @ y))
    if op in RANGES:
        x = values(1, min(a["n"], 1_000_000), *RANGES[op]).astype(np.float64)
        if op == "exp_chain":
            return np.exp(x + 2) * values(2, x.size)
        if op == "log_chain":
            return x**0.5 - np.log(np.abs(x))
        if op in ("erf", "gelu"):
            erf = np.frompyfunc(math.erf, 1, 1)
            return (erf(x) if op == "erf" else 0.5 * x * (1 + erf(x / math.sqrt(2)))).astype(
                np.float64)
        return {"sigmoid": lambda v: 1 / (1 + np.exp(-v)), "relu": lambda v: np.maximum(v, 0)}.get(
            op, getattr(np, op, None))(x)
    if op == "add":
        return values(1, a["n"]).astype(np.float64) + values(2, a["n"])
    if op == "conv":
        return conv_expected(a)
    if op == "maxpool":
        x = values(1, 64 * 20 * 24 * 24).astype(np.float64)
        return x.reshape(64, 20, 12, 2, 12, 2).max((3, 5))
    if op == "lenet_step":
        return lenet64.gradient(a["batch"])
    if op == "lenet_infer":
        return lenet64.forward(a["batch"])[0]
    if "rows" in a:
        x = matrix(a).astype(np.float64)
        if op == "topk":
            return -np.sort(-x, -1)[:, :a["k"]]
        if op == "argsort":
            return np.argsort(x, a.get("axis", -1), kind="stable")
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
    """Returns y of the first image; or the gradient of sum(y) with respect to w.

    That gradient is the sum of the windows of x over images and positions.
    """
    x, w, b = conv_inputs(a)
    pad, stride = a.get("pad", 0), a.get("stride", 1)
    if not a["backward"]:
        x = x[:1]
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (a["k"], a["k"]),
                                                       (2, 3))[:, :, ::stride, ::stride]
    if a["backward"]:
        one = windows.sum((0, 2, 3))
        return np.broadcast_to(one, w.shape)
    return np.einsum("nchwrs,ocrs->nohw", windows, w.astype(np.float64),
                     optimize=True) + b[None, :, None, None]


def off_by_moments(op, got):
    """Returns the deviation of mean, variance and range of random numbers over its likely bound."""
    if op == "uniform":
        if got.min() < 0 or got.max() >= 1:
            return math.inf
        mean, variance, fourth = 0.5, 1 / 12, 1 / 80
    else:
        mean, variance, fourth = 0.0, 1.0, 3.0
    n = got.size
    centered = got - mean
    return max(
        abs(centered.mean()) / math.sqrt(variance / n),
        abs((centered**2).mean() - variance) / math.sqrt((fourth - variance**2) / n)) / 6


def error(row, path, wanted):
    """Returns (the error of the result, its bound)."""
    got = np.fromfile(path, np.float32)
    if row.op in ("uniform", "normal"):
        return (off_by_moments(row.op, got[:4_000_000].astype(np.float64)),
                1) if got.size == row.arguments["n"] else (math.nan, 1)
    if row.op == "lenet_epoch":  # an accuracy: one epoch exceeds 0.5 in any order
        return (1 - float(got[0]), 0.5) if got.size == 1 else (math.nan, 0.5)
    flat = np.asarray(wanted, np.float64).reshape(-1)
    n = min(got.size, flat.size)
    if n == 0 or (got.size != flat.size and row.op not in RANGES and row.op != "conv"):
        return math.nan, 0
    scale = max(1e-30, float(np.abs(flat[:n]).max()))
    return float(np.max(np.abs(got[:n].astype(np.float64) - flat[:n]))) / scale, TOLERANCE.get(
        row.op, 1e-5)
