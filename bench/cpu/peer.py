"""Cases of the comparison in Python libraries.

    peer.py torch|numpy|jax|numexpr|onnxruntime|mlx THREADS [FORM]

Implements runner.h's protocol on standard input and output. A case is a function; its optional
attribute `result` returns the value that is compared with float64.
"""
import importlib
import os
import sys
import time

import numpy as np
from inputs import RANGES, Missing, axes_of, factors, matrix, values


def numpy_cases(_threads):
    def case(op, a, _form):
        if op == "mm":
            x, y = factors(a)
            x, y = x.T if a.get("ta") else x, y.T if a.get("tb") else y
            out = np.empty((a["m"], a["n"]), np.float32)
            return lambda: np.matmul(x, y, out=out)
        if op == "mm_norms":
            x, y = (values(s, 10000).reshape(100, 100) for s in (1, 2))

            def norms():
                total = 0.0
                for _ in range(a["count"]):
                    total += np.linalg.norm(x @ y)
                return np.float32(total)
            return norms
        if op in ("exp", "log", "tanh", "sin", "sqrt"):
            x = values(1, a["n"], *RANGES[op])
            f, out = getattr(np, op), np.empty_like(x)
            return lambda: f(x, out=out)
        if op == "add":
            x, y = values(1, a["n"]), values(2, a["n"])
            return lambda: x + y
        if op.endswith("_chain"):
            z, y = values(1, a["n"], *RANGES[op]), values(2, a["n"])
            return {"exp_chain": lambda: np.exp(z + 2) * y,
                    "log_chain": lambda: z ** 0.5 - np.log(np.abs(z))}[op]
        if op in ("sum", "mean", "var", "max", "argmax", "transpose", "cumsum", "sort", "argsort",
                  "topk"):
            x, axis = matrix(a), axes_of(a)
            if op == "transpose":
                return lambda: np.ascontiguousarray(x.T)
            if op == "topk":
                return lambda: -np.sort(
                    np.partition(-x,
                                 a.get("k", 1) - 1, axis)[..., :a.get("k", 1)], axis)
            if op == "argsort":
                return lambda: np.argsort(x, axis, kind="stable")
            f = getattr(np, op)
            return lambda: f(x, axis)
        if op in ("uniform", "normal"):
            generator, out = np.random.Generator(np.random.SFC64(1)), np.empty(a["n"], np.float32)
            f = generator.random if op == "uniform" else generator.standard_normal
            return lambda: f(dtype=np.float32, out=out)
        raise Missing(op)
    return case, lambda y: np.ascontiguousarray(y, np.float32)


def numexpr_cases(threads):
    import numexpr
    numexpr.set_num_threads(threads)

    def case(op, a, _form):
        if op not in ("exp", "log", "tanh", "sin", "sqrt"):
            raise Missing(op)
        x = values(1, a["n"], *RANGES[op])
        out = np.empty_like(x)
        return lambda: numexpr.evaluate(f"{op}(x)", local_dict={"x": x}, out=out)
    return case, lambda y: y


def library(name, threads):
    if name in ("numpy", "numexpr"):
        return (numpy_cases if name == "numpy" else numexpr_cases)(threads)
    return importlib.import_module(
        {"torch": "peer_torch", "jax": "peer_jax", "onnxruntime": "peer_onnx",
         "mlx": "peer_mlx"}[name]).cases(threads)


def sample(call, seconds):
    begin, calls, batch = time.perf_counter(), 0, 1
    while True:
        for _ in range(batch):
            call()
        calls += batch
        spent = time.perf_counter() - begin
        if spent < seconds / 16:
            batch *= 2
        if spent >= seconds:
            return spent / calls, calls


def peak():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    form = sys.argv[3] if len(sys.argv) > 3 else ""
    case, plain = library(name, threads)
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not disturb the protocol
    call = None
    for line in sys.stdin:
        word, *rest = line.split()
        try:
            if word == "quit":
                break
            if word == "case":
                call = None
                call = case(rest[0], {k: int(v) for k, v in (p.split("=") for p in rest[1:])}, form)
                call()
                print("ok", file=replies)
            elif word == "sample":
                print("%.9g %d" % sample(call, float(rest[0])), file=replies)
            elif word == "result":
                out = getattr(call, "result", call)()
                flat = np.zeros(0, np.float32) if out is None else plain(out)
                flat.tofile(rest[0])
                print(f"ok {flat.size}", file=replies)
            elif word == "peak":
                print(peak(), file=replies)
        except Missing as missing:
            print(f"no such case: {missing}", file=replies)
        except Exception as error:  # the comparison continues without this peer's row
            print("no", type(error).__name__, str(error).replace("\n", " ")[:200], file=replies)


if __name__ == "__main__":
    main()
