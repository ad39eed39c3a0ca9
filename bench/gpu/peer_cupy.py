"""The rows in CuPy."""
import cupy
from peer import Case, Missing

DTYPES = {"f32": cupy.float32, "f16": cupy.float16}


def drawn(*shape, dtype=cupy.float32, high=1.0):
    return cupy.random.uniform(-high, high, shape, dtype=cupy.float32).astype(dtype)


def relative(got, want):
    got, want = got.astype(cupy.float64), want.astype(cupy.float64)
    return float(cupy.linalg.norm((got - want).ravel()) /
                 max(float(cupy.linalg.norm(want.ravel())), 1e-300))


def chain(t):
    for _ in range(4):
        t = cupy.tanh(t * cupy.float32(0.9) + cupy.float32(0.1))
    return t


class Library:
    name = "cupy"
    event = staticmethod(cupy.cuda.Event)

    def seconds(self, first, last):
        return 1e-3 * cupy.cuda.get_elapsed_time(first, last)

    def wait(self):
        cupy.cuda.runtime.deviceSynchronize()

    def trim(self):
        cupy.get_default_memory_pool().free_all_blocks()

    def copy(self, traffic):
        """Returns a copy that moves `traffic` bytes, read and written."""
        a, b = (cupy.empty(int(traffic / 2), cupy.uint8) for _ in range(2))
        return lambda: b.data.copy_from_device_async(a.data, a.nbytes, cupy.cuda.Stream.null)

    def first(self):
        x = drawn(256, 784)
        return f"sum of a product {float((x @ x.T).sum()):g}"

    def call(self, row):
        op, n = row.op, row["n"]
        if row.dtype not in DTYPES:
            raise Missing(row.dtype)
        dtype = DTYPES[row.dtype]
        if op == "where":
            return cupy.where, [drawn(n) > 0, drawn(n), drawn(n)]
        if "rows" in row.arguments:
            axis = None if row["axis"] < 0 else row["axis"]
            calls = {"sum": lambda t: t.sum(axis), "sort": lambda t: cupy.sort(t, -1),
                     "transpose": lambda t: cupy.ascontiguousarray(t.T)}
            if op in calls:
                return calls[op], [drawn(row["rows"], row["columns"], dtype=dtype)]
        if op == "mm":
            a = drawn(*((row["k"], row["m"]) if row["ta"] else (row["m"], row["k"])), dtype=dtype)
            b = drawn(*((row["n"], row["k"]) if row["tb"] else (row["k"], row["n"])), dtype=dtype)
            return cupy.matmul, [a.T if row["ta"] else a, b.T if row["tb"] else b]
        calls = {"copy": cupy.copy, "add": cupy.add, "exp": cupy.exp, "chain": chain,
                 "dispatch": cupy.add}
        if op not in calls:
            raise Missing(op)
        return calls[op], [drawn(n, high=4.0 if op == "exp" else 1.0)
                           for _ in range(2 if op in ("add", "dispatch") else 1)]

    def case(self, row, _form):
        if row.op in ("uniform", "normal"):
            make = cupy.random.default_rng(1)
            make = make.random if row.op == "uniform" else make.standard_normal
            return Case(lambda: make(row["n"], dtype=cupy.float32))
        if row.op == "allocate":
            return Case(lambda: cupy.empty(row["bytes"] // 4, cupy.float32), clock="queued")
        call, inputs = self.call(row)

        def reference():
            return call(*(v if v.dtype == bool else v.astype(cupy.float64) for v in inputs))
        return Case(lambda: call(*inputs), lambda: relative(call(*inputs), reference()),
                    clock="queued" if row.op == "dispatch" else "events", warm=3)
