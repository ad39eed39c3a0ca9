"""The rows of the comparison: operation, work per call, participants."""


class Row:
    """One line of the table.

    work: work of a call, in `unit`s. limit: the limit of the machine, as a case of machine.c with
    the work of its call. few: a call takes seconds, so there are only a few samples of one call.
    """
    def __init__(self, group, op, work, unit, peers, threads=(1, 2), short=False, limit=None,
                 few=False, **arguments):
        self.group, self.op, self.arguments = group, op, arguments
        self.work, self.unit, self.peers = work, unit, peers
        self.threads, self.short = threads, short
        self.limit, self.few = limit, few
        self.seconds = 0.0  # of our call, from which run.py tells a slow peer

    @property
    def title(self):
        a = self.arguments
        if self.op == "mm":
            form = "NT"[a.get("ta", 0)] + "NT"[a.get("tb", 0)]
            return f"{a['m']}x{a['n']}x{a['k']} {form}"
        if self.op == "conv":
            size = f"{a['n']}x{a['c']}x{a['h']}x{a.get('w', a['h'])} to {a['o']}, {a['k']}x{a['k']}"
            more = (f", stride {a['stride']}" if a.get("stride", 1) > 1 else
                    "") + (f", pad {a['pad']}" if a.get("pad") else "")
            return size + more + (", forward and gradients" if a.get("backward") else "")
        if "rows" in a:
            along = "all" if a.get("all") else "rows" if a.get("axis", -1) == 0 else ""
            name = f"top {a['k']}" if self.op == "topk" else self.op
            return f"{name} {a['rows']}x{a['columns']}" + (" over " + along if along else "")
        if "n" in a:
            return f"{CHAINS.get(self.op, self.op)}, {a['n']:,} elements"
        return self.op + "".join(f", {k} {v}" for k, v in a.items())

    @property
    def command(self):
        return "case " + self.op + "".join(f" {k}={v}" for k, v in self.arguments.items())


# From the tutorials on arrays.
CHAINS = {"exp_chain": "(z + 2).exp() * y", "log_chain": "z ** 0.5 - log(abs(z))"}
ARRAYS = ("torch", "numpy", "jax", "mlx")
BLAS = ("openblas", "blis", "dnnl", "torch")
MLX_PRODUCT = 2e-9 * 512**3  # MLX's products take seconds above this work, in GFLOP
SQUARES = (8, 16, 24, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SHAPES = ((256, 10, 84), (256, 120, 400), (256, 84, 120), (64, 500, 800), (64, 10, 500),
          (20, 576, 25), (1, 4096, 4096), (4096, 4096, 16), (128, 128, 64), (64, 64, 512))
FORMS = ((0, 0), (1, 0), (0, 1), (1, 1))


def product(m, n, k, ta=0, tb=0, short=False):
    small = ("xsmm",) if not tb and max(m, n, k) <= 256 else ()
    limit = ("case fma", 0.4) if min(m, n, k) >= 128 else None
    work = 2e-9 * m * n * k
    small += ("mlx", ) if work <= MLX_PRODUCT else ()
    return Row("matrix products, float32", "mm", work, "GFLOP/s", BLAS + small,
               short=short, limit=limit, m=m, n=n, k=k, ta=ta, tb=tb)


def products():
    for n in SQUARES:
        yield product(n, n, n, short=n in (16, 128, 512, 1024))
    for m, n, k in SHAPES:
        for ta, tb in FORMS:
            if m > 1 or not ta:  # a row is a transposed column
                yield product(m, n, k, ta, tb, short=(m, n, ta, tb) == (256, 10, 0, 0))
    for n in SQUARES[:-1]:  # the largest takes a minute for each row
        for ta, tb in FORMS[1:]:
            yield product(n, n, n, ta, tb, short=n == 64)


def elementwise():
    peers = ("torch", "numpy", "jax", "jax 512", "numexpr", "sleef")
    for op in ("exp", "log", "tanh", "sin", "sigmoid", "erf"):
        for exponent in range(3, 9):
            n = 10 ** exponent
            limit = (f"case copy n={n}", n * 1e-9) if exponent >= 7 else None
            mlx = ("mlx", ) if exponent <= 7 else ()  # a call of MLX takes seconds above that
            yield Row("vector functions, float32", op, n * 1e-9, "Gelement/s", peers + mlx,
                      n=n, short=exponent == 5 or (op == "exp" and exponent == 7), limit=limit)


def reductions():
    for op in ("sum", "mean", "var", "max", "argmax"):
        for form in ({"all": 1}, {"axis": -1}, {"axis": 0}):
            if op == "argmax" and "all" in form:
                continue
            yield Row("along axes, float32", op, 4e-9 * 4096 * 1024, "GB/s read",
                      ARRAYS, rows=4096, columns=1024,
                      short=form.get("axis") == 0, **form)
    for op in ("softmax", "layernorm", "transpose"):
        yield Row("along axes, float32", op, 4e-9 * 4096 * 1024, "GB/s read",
                  ARRAYS, rows=4096, columns=1024, short=True)
    yield Row("along axes, float32", "softmax", 4e-9 * 2560, "GB/s read", ARRAYS,
              rows=256, columns=10)
    for op in ("max", "argmax", "softmax"):
        yield Row("along axes, float32", op, 4e-9 * 100_000, "GB/s read", ARRAYS,
                  rows=10_000, columns=10, **({} if op == "softmax" else {"axis": -1}))


def ordering():
    """Cumulative sums, sorting, top k: 1e6 elements in 1 row, 1000 rows, and 10000 short rows."""
    for rows, columns in ((1, 1_000_000), (1000, 1000), (10_000, 100)):
        for op, more in (("cumsum", {}), ("sort", {}), ("argsort", {}), ("topk", {"k": 10})):
            yield Row("cumulative sums, sorting, top k", op, rows * columns * 1e-6,
                      "million elements/s", ARRAYS, rows=rows, columns=columns, short=rows == 1,
                      **more)


def convolutions():
    peers = ("torch", "torch channels_last", "mlx")
    for backward in (0, 1):
        for name, a in (("LeNet", {"n": 64, "c": 1, "h": 28, "o": 20, "k": 5}), ("LeNet", {
                "n": 64, "c": 20, "h": 12, "o": 50, "k": 5
        }), ("LeNet", {"n": 256, "c": 1, "h": 28, "o": 6, "k": 5}), ("LeNet", {
                "n": 256, "c": 6, "h": 12, "o": 16, "k": 3
        }), ("ResNet", {"n": 8, "c": 64, "h": 56, "o": 64, "k": 3, "pad": 1}), ("ResNet", {
                "n": 8, "c": 256, "h": 14, "o": 256, "k": 3, "pad": 1
        }), ("ResNet", {"n": 8, "c": 3, "h": 224, "o": 64, "k": 7, "stride": 2,
                        "pad": 3}), ("ResNet", {"n": 8, "c": 64, "h": 56, "o": 256, "k": 1})):
            out = (a["h"] + 2 * a.get("pad", 0) - a["k"]) // a.get("stride", 1) + 1
            flops = 2 * a["n"] * a["o"] * out * out * a["c"] * a["k"] ** 2 * (3 if backward else 1)
            yield Row("convolutions, " + name + " shapes", "conv", flops * 1e-9, "GFLOP/s", peers,
                      short=a["c"] in (1, 20) and a["n"] == 64, backward=backward, **a)
    yield Row("convolutions, LeNet shapes", "maxpool", 4e-9 * 64 * 20 * 576, "GB/s read", peers,
              short=True)


def the_rest():
    yield Row("1000 products of 100x100 with their norms", "mm_norms", 2.0, "GFLOP/s",
              ("torch", "numpy", "mlx"), count=1000, short=True)
    for op in CHAINS:
        yield Row("chains of operations, float32", op, 1e-2, "Gelement/s",
                  ("torch", "numpy", "mlx", "mlx compile"), n=10_000_000, short=True)
    yield Row("one operation on 3 floats", "add", 1e-6, "million calls/s",
              ("torch", "numpy", "mlx"), threads=(1, ), n=3, short=True)
    for op in ("uniform", "normal"):
        for n in (10_000_000, 100_000_000):
            yield Row("random numbers, float32", op, n * 1e-9, "Gelement/s",
                      ("torch", "numpy") + (("mlx", ) if n < 100_000_000 else ()), n=n,
                      short=n == 10_000_000)
    nets = ("torch", "torch channels_last", "torch compile", "jax")
    for batch in (1, 32, 256):
        yield Row("LeNet training step", "lenet_step", batch * 1e-3, "thousand samples/s", nets,
                  batch=batch, short=batch == 256)
    yield Row("one epoch of Fashion-MNIST, LeNet", "lenet_epoch", 60, "thousand samples/s", nets,
              few=True)
    yield Row("inference of one image", "lenet_infer", 1e-3, "thousand images/s",
              (*nets, "onnxruntime"), threads=(1, ), batch=1, short=True)


ROWS = [*products(), *reductions(), *ordering(), *convolutions(), *the_rest(), *elementwise()]
