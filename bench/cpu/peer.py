"""Cases of the comparison in Python libraries, each as its own users would write it for speed: peer.py torch|numpy|jax|numexpr THREADS.
Speaks runner.h's protocol on standard input and output."""
import os
import sys
import time

import numpy as np


def values(seed, n, low=-1.0, high=1.0):
    """runner.h's inputs."""
    with np.errstate(over="ignore"):
        x = np.arange(n, dtype=np.uint32) * np.uint32(2654435769) + np.uint32(seed * 40503)
        x ^= x >> np.uint32(16)
        x *= np.uint32(0x7FEB352D)
        x ^= x >> np.uint32(15)
        x *= np.uint32(0x846CA68B)
        x ^= x >> np.uint32(16)
    unit = x.view(np.int32).astype(np.float32) * np.float32(1 / 2147483648.0)
    return np.float32(low) + np.float32(high - low) * np.float32(0.5) * (unit + np.float32(1))


RANGES = {"exp": (-4, 4), "log": (0.01, 10), "tanh": (-4, 4), "sin": (-10, 10), "sigmoid": (-8, 8), "erf": (-3, 3),
          "gelu": (-4, 4), "sqrt": (0, 10), "relu": (-1, 1)}


class Missing(Exception):
    """There is no such case in this library."""


def conv_inputs(a):
    return (values(1, a["n"] * a["c"] * a["h"] * a.get("w", a["h"])).reshape(a["n"], a["c"], a["h"], a.get("w", a["h"])),
            values(2, a["o"] * a["c"] * a["k"] * a["k"]).reshape(a["o"], a["c"], a["k"], a["k"]), values(3, a["o"]))


def axes_of(a):
    return None if a.get("all") else a.get("axis", -1)


def torch_cases(threads):
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(threads)
    torch.backends.mkldnn.enabled = True

    def tensor(x):
        return torch.from_numpy(np.ascontiguousarray(x))

    def lenet(channels_last):
        net = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(6, 16, 3),
                                  torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(400, 120),
                                  torch.nn.ReLU(), torch.nn.Linear(120, 84), torch.nn.ReLU(), torch.nn.Linear(84, 10))
        return net.to(memory_format=torch.channels_last) if channels_last else net

    def case(op, a, form):
        if op == "mm":
            x = tensor(values(1, a["m"] * a["k"]).reshape((a["k"], a["m"]) if a.get("ta") else (a["m"], a["k"])))
            y = tensor(values(2, a["k"] * a["n"]).reshape((a["n"], a["k"]) if a.get("tb") else (a["k"], a["n"])))
            x, y = x.T if a.get("ta") else x, y.T if a.get("tb") else y
            out = torch.empty(a["m"], a["n"])
            return lambda: torch.mm(x, y, out=out)
        if op == "mm_norms":
            x, y = (tensor(values(s, 10000).reshape(100, 100)) for s in (1, 2))

            def norms():
                total = 0.0
                for _ in range(a["count"]):
                    total += torch.linalg.norm(torch.mm(x, y)).item()
                return torch.tensor(total)
            return norms
        if op in RANGES:
            x = tensor(values(1, a["n"], *RANGES[op]))
            if op in ("gelu", "relu"):
                f = F.gelu if op == "gelu" else torch.relu
                return lambda: f(x)
            f, out = getattr(torch, op), torch.empty_like(x)
            return lambda: f(x, out=out)
        if op == "add":
            x, y = tensor(values(1, a["n"])), tensor(values(2, a["n"]))
            return lambda: x + y
        if op in ("sum", "mean", "var", "max", "argmax", "softmax", "layernorm", "transpose"):
            x, axis = tensor(values(1, a["rows"] * a["columns"]).reshape(a["rows"], a["columns"])), axes_of(a)
            if op in ("sum", "mean"):
                f = getattr(torch, op)
                return (lambda: f(x)) if axis is None else (lambda: f(x, axis))
            if op == "var":
                return lambda: torch.var(x, axis, correction=0)
            if op == "max":
                return (lambda: torch.amax(x)) if axis is None else (lambda: torch.amax(x, axis))
            if op == "argmax":
                return lambda: torch.argmax(x, axis)
            if op == "softmax":
                return lambda: torch.softmax(x, -1)
            if op == "layernorm":
                return lambda: F.layer_norm(x, (a["columns"],))
            return lambda: x.T.contiguous()
        if op == "conv":
            x, w, b = (tensor(v) for v in conv_inputs(a))
            if form == "channels_last":
                x, w = (v.to(memory_format=torch.channels_last) for v in (x, w))
            if not a.get("backward"):
                def forward():
                    with torch.inference_mode():
                        return F.conv2d(x, w, b, a.get("stride", 1), a.get("pad", 0))
                return forward
            for v in (x, w, b):
                v.requires_grad_(True)

            def backward():
                for v in (x, w, b):
                    v.grad = None
                y = F.conv2d(x, w, b, a.get("stride", 1), a.get("pad", 0))
                y.backward(torch.ones_like(y))
                return w.grad
            return backward
        if op == "maxpool":
            x = tensor(values(1, 64 * 20 * 24 * 24).reshape(64, 20, 24, 24))
            if form == "channels_last":
                x = x.to(memory_format=torch.channels_last)
            return lambda: F.max_pool2d(x, 2)
        if op in ("uniform", "normal"):
            out = torch.empty(a["n"])
            return (lambda: out.uniform_()) if op == "uniform" else (lambda: out.normal_())
        if op in ("lenet_step", "lenet_infer"):
            x = tensor(values(1, a["batch"] * 784).reshape(a["batch"], 1, 28, 28))
            if form == "channels_last":
                x = x.to(memory_format=torch.channels_last)
            labels, net = torch.arange(a["batch"]) % 10, lenet(form == "channels_last")
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

            def loss_of(inputs):
                return F.cross_entropy(net(inputs), labels, reduction="sum") / a["batch"]
            if form == "compile":
                loss_of = torch.compile(loss_of)
            if op == "lenet_infer":
                run = torch.compile(net) if form == "compile" else net

                def infer():
                    with torch.inference_mode():
                        return run(x).argmax(-1)
                return infer

            def step():
                optimizer.zero_grad(set_to_none=True)
                loss_of(x).backward()
                optimizer.step()
            return step
        raise Missing(op)
    return case, lambda y: y.detach().to(torch.float32).contiguous().numpy(), torch.__version__


def numpy_cases(_threads):
    def case(op, a, _form):
        if op == "mm":
            x = values(1, a["m"] * a["k"]).reshape((a["k"], a["m"]) if a.get("ta") else (a["m"], a["k"]))
            y = values(2, a["k"] * a["n"]).reshape((a["n"], a["k"]) if a.get("tb") else (a["k"], a["n"]))
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
        if op in ("sum", "mean", "var", "max", "argmax", "transpose"):
            x, axis = values(1, a["rows"] * a["columns"]).reshape(a["rows"], a["columns"]), axes_of(a)
            if op == "transpose":
                return lambda: np.ascontiguousarray(x.T)
            f = getattr(np, op)
            return lambda: f(x, axis)
        if op in ("uniform", "normal"):
            generator, out = np.random.Generator(np.random.SFC64(1)), np.empty(a["n"], np.float32)
            f = generator.random if op == "uniform" else generator.standard_normal
            return lambda: f(dtype=np.float32, out=out)
        raise Missing(op)
    return case, lambda y: np.ascontiguousarray(y, np.float32), np.__version__


def jax_cases(_threads):
    import jax
    import jax.numpy as jnp

    def case(op, a, _form):
        if op in RANGES and op not in ("gelu", "relu", "sigmoid", "erf"):
            x, f = jnp.asarray(values(1, a["n"], *RANGES[op])), jax.jit(getattr(jnp, op))
        elif op in ("gelu", "relu", "sigmoid"):
            x, f = jnp.asarray(values(1, a["n"], *RANGES[op])), jax.jit(getattr(jax.nn, op))
        elif op == "erf":
            x, f = jnp.asarray(values(1, a["n"], *RANGES[op])), jax.jit(jax.scipy.special.erf)
        elif op in ("sum", "mean", "var", "max", "argmax"):
            x, axis = jnp.asarray(values(1, a["rows"] * a["columns"]).reshape(a["rows"], a["columns"])), axes_of(a)
            f = jax.jit(lambda v: getattr(jnp, op)(v, axis=axis))
        elif op == "softmax":
            x = jnp.asarray(values(1, a["rows"] * a["columns"]).reshape(a["rows"], a["columns"]))
            f = jax.jit(jax.nn.softmax)
        elif op == "lenet_step":
            return jax_lenet(jax, jnp, a["batch"])
        else:
            raise Missing(op)
        return lambda: f(x).block_until_ready()
    return case, lambda y: np.ascontiguousarray(y, np.float32), jax.__version__


def jax_lenet(jax, jnp, batch):
    shapes = [(6, 1, 5, 5), (6,), (16, 6, 3, 3), (16,), (400, 120), (120,), (120, 84), (84,), (84, 10), (10,)]
    state = [jnp.asarray(values(i + 1, int(np.prod(s)), -0.1, 0.1).reshape(s)) for i, s in enumerate(shapes)]
    x = jnp.asarray(values(1, batch * 784).reshape(batch, 1, 28, 28))
    labels = jnp.arange(batch) % 10

    def layer(v, w, b):
        v = jax.lax.conv(v, w, (1, 1), "VALID") + b[None, :, None, None]
        return jax.lax.reduce_window(jax.nn.relu(v), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(p):
        v = layer(layer(x, p[0], p[1]), p[2], p[3]).reshape(batch, -1)
        v = jax.nn.relu(v @ p[4] + p[5])
        v = jax.nn.relu(v @ p[6] + p[7]) @ p[8] + p[9]
        return -jax.nn.log_softmax(v)[jnp.arange(batch), labels].mean()
    step = jax.jit(lambda p: [v - 0.01 * g for v, g in zip(p, jax.grad(loss)(p))])

    def run():
        nonlocal state
        state = step(state)
        jax.block_until_ready(state)
    return run


def numexpr_cases(threads):
    import numexpr
    numexpr.set_num_threads(threads)

    def case(op, a, _form):
        if op not in ("exp", "log", "tanh", "sin", "sqrt"):
            raise Missing(op)
        x = values(1, a["n"], *RANGES[op])
        out = np.empty_like(x)
        return lambda: numexpr.evaluate(f"{op}(x)", local_dict={"x": x}, out=out)
    return case, lambda y: y, numexpr.__version__


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


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    form = sys.argv[3] if len(sys.argv) > 3 else ""
    case, plain, version = {"torch": torch_cases, "numpy": numpy_cases, "jax": jax_cases,
                            "numexpr": numexpr_cases}[name](threads)
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries that print do not disturb the protocol
    call = None
    for line in sys.stdin:
        word, *rest = line.split()
        try:
            if word == "quit":
                break
            if word == "version":
                print(version, file=replies)
            elif word == "case":
                call = None
                call = case(rest[0], {k: int(v) for k, v in (p.split("=") for p in rest[1:])}, form)
                call()
                print("ok", file=replies)
            elif word == "sample":
                print("%.9g %d" % sample(call, float(rest[0])), file=replies)
            elif word == "result":
                out = call()
                flat = np.zeros(0, np.float32) if out is None else plain(out)
                flat.tofile(rest[0])
                print(f"ok {flat.size}", file=replies)
        except Missing:
            print("no such case", file=replies)
        except Exception as error:  # the comparison goes on without this peer's row
            print("no", type(error).__name__, str(error).replace("\n", " ")[:200], file=replies)


if __name__ == "__main__":
    main()
