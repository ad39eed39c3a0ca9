"""MLX's cases on its CPU backend. It is lazy: every call ends with mx.eval.

Convolutions are in NHWC, MLX's only layout. The gradients of a convolution, and the chains with
FORM compile, are functions of mx.compile; other cases are one operation, which gains nothing.
"""
import mlx.core as mx
import mlx.nn as nn
import numpy as np
from inputs import RANGES, Missing, axes_of, conv_inputs, factors, matrix, values


def array(x):
    made = mx.array(np.ascontiguousarray(x))
    mx.eval(made)
    return made


def nhwc(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def evaluated(f, result=None):
    """Returns a call that computes f() at once. result: converts it for the comparison."""
    def call():
        y = f()
        mx.eval(y)
        return y
    if result:
        call.result = lambda: result(call())
    return call


def product(a):
    x, y = (array(v) for v in factors(a))
    x, y = x.T if a.get("ta") else x, y.T if a.get("tb") else y
    return evaluated(lambda: mx.matmul(x, y))


def product_norms(a):
    x, y = (array(values(s, 10000).reshape(100, 100)) for s in (1, 2))

    def norms():
        total = 0.0
        for _ in range(a["count"]):
            total += mx.linalg.norm(x @ y).item()
        return mx.array(total)
    return norms


def along(op, a):
    x, axis, k = array(matrix(a)), axes_of(a), a.get("k", 1)
    simple = {"sum": mx.sum, "mean": mx.mean, "var": mx.var, "max": mx.max, "argmax": mx.argmax,
              "softmax": mx.softmax, "cumsum": mx.cumsum, "sort": mx.sort, "argsort": mx.argsort}
    if op in simple:
        return evaluated(lambda: simple[op](x, axis=axis))
    f = {"layernorm": lambda: mx.fast.layer_norm(x, None, None, 1e-5),
         "topk": lambda: -mx.sort(-mx.topk(x, k, axis=axis), axis=axis),
         "transpose": lambda: mx.contiguous(x.T)}
    if op not in f:
        raise Missing(op)
    return evaluated(f[op])


def convolution(a):
    x, w, b = conv_inputs(a)
    x, w, b = array(nhwc(x)), array(nhwc(w)), array(b)

    def forward(x, w, b):
        return mx.conv2d(x, w, a.get("stride", 1), a.get("pad", 0)) + b
    if not a.get("backward"):
        return evaluated(lambda: forward(x, w, b), lambda y: mx.moveaxis(y, -1, 1))
    gradients = mx.compile(
        mx.value_and_grad(lambda x, w, b: forward(x, w, b).sum(), argnums=(0, 1, 2)))
    return evaluated(lambda: gradients(x, w, b), lambda y: mx.moveaxis(y[1][1], -1, 1))


def chain(op, a, form):
    z, y = array(values(1, a["n"], *RANGES[op])), array(values(2, a["n"]))
    f = {"exp_chain": lambda z, y: mx.exp(z + 2) * y,
         "log_chain": lambda z, y: z ** 0.5 - mx.log(mx.abs(z))}[op]
    if form == "compile":
        f = mx.compile(f)
    return evaluated(lambda: f(z, y))


def cases(_threads):
    mx.set_default_device(mx.cpu)

    def case(op, a, form):
        if op.endswith("_chain"):
            return chain(op, a, form)
        if op == "mm":
            return product(a)
        if op == "mm_norms":
            return product_norms(a)
        if op in RANGES:
            x = array(values(1, a["n"], *RANGES[op]))
            f = getattr(nn, op) if op in ("gelu", "relu") else getattr(mx, op)
            return evaluated(lambda: f(x))
        if op == "add":
            x, y = array(values(1, a["n"])), array(values(2, a["n"]))
            return evaluated(lambda: x + y)
        if "rows" in a:
            return along(op, a)
        if op == "conv":
            return convolution(a)
        if op == "maxpool":
            x = array(nhwc(values(1, 64 * 20 * 24 * 24).reshape(64, 20, 24, 24)))
            pool = nn.MaxPool2d(2, 2)
            return evaluated(lambda: pool(x), lambda y: mx.moveaxis(y, -1, 1))
        if op in ("uniform", "normal"):
            f = getattr(mx.random, op)
            return evaluated(lambda: f(shape=(a["n"], )))
        raise Missing(op)
    return case, lambda y: np.ascontiguousarray(np.array(y), np.float32).reshape(-1)
