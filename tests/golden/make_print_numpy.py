"""Writes print_numpy.txt: arrays and the text that NumPy prints for them.

Run with NumPy 1.24 (python3 -m pip install numpy==1.24.4); the tests themselves need no NumPy. Deterministic.

A case is
    case STYLE DTYPE SHAPE PRECISION THRESHOLD EDGE_ITEMS LINE_WIDTH SUPPRESS      (0: the default; SHAPE "-": no axes)
    bits HEX...          one number per element, as wide as the dtype, or
    make                 element i is ((i * 7919) % 2003 - 1001) * 0.37, converted
    |text                one line each
"""
import os
import random
import sys

import numpy as np

assert np.__version__.startswith("1.24"), np.__version__
rng = random.Random(20260101)
OUT = []
NAMES = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "int8": np.int8, "uint8": np.uint8,
         "int32": np.int32, "int64": np.int64, "bool": np.bool_}
FLOATS = ["float32", "float64", "float16"]


def np_style(a):
    """What mxnet.numpy prints: NumPy's repr with float32 and bool as the defaults."""
    text = np.array_repr(a)
    if "dtype=" in text:
        if a.dtype == np.float32:
            text = text[:text.rindex(",")] + ")"
    elif a.dtype not in (np.float32, np.bool_):
        text = text[:-1] + ", dtype={})".format(a.dtype)
    return text


def jax_style(a):
    """What a jax.Array prints."""
    width = np.get_printoptions()["linewidth"]
    dtype = "dtype={})".format(a.dtype.name)
    if a.size == 0:
        s = "[], shape={}".format(a.shape)
    else:
        s = np.array2string(a, prefix="Array(", suffix=",", separator=", ", max_line_width=width)
    last = len(s) - s.rfind("\n") + 1
    return "Array(" + s + "," + (" " * 6 if last + len(dtype) + 1 > width else " ") + dtype


STYLES = {"str": str, "np": np_style, "jax": jax_style}


def case(style, a, precision=0, threshold=0, edge=0, width=0, suppress=0, make=False):
    options = dict(precision=abs(precision) or 8, floatmode="unique" if precision < 0 else "maxprec", threshold=threshold or 1000,
                   edgeitems=edge or 3, linewidth=width or 75, suppress=bool(suppress), legacy=False)
    with np.printoptions(**options):
        text = STYLES[style](a)
    OUT.append("case %s %s %s %d %d %d %d %d" % (style, a.dtype.name, ",".join(map(str, a.shape)) or "-",
                                               precision, threshold, edge, width, suppress))
    if make:
        OUT.append("make")
    else:
        unsigned = np.ascontiguousarray(a).reshape(-1).view("u%d" % a.itemsize)
        OUT.append(" ".join(["bits"] + ["%0*x" % (2 * a.itemsize, int(v)) for v in unsigned]))
    OUT.extend("|" + line for line in text.split("\n"))


def real(kind):
    if kind == "unit":
        return rng.uniform(0, 1)
    if kind == "signed":
        return rng.uniform(-1, 1) * 10 ** rng.uniform(0, 3)
    if kind == "wide":
        return rng.choice((-1, 1)) * 10 ** rng.uniform(-12, 12)
    if kind == "extreme":
        return rng.choice((-1, 1)) * 10 ** rng.uniform(-320, 308)
    if kind == "integer":
        return float(rng.randrange(-10 ** rng.randrange(1, 9), 10 ** rng.randrange(1, 9)))
    if kind == "short":
        return rng.randrange(-9999, 9999) / 10 ** rng.randrange(0, 6)
    if kind == "edge":
        return rng.choice((1e8, 99999999.0, 99999999.5, 1e-4, 9.9999e-5, 1.0001e-4, 1e5, 1e2, 1000.0, 1.0, 0.001, 1e7,
                           123456.785, 0.123456785, 0.999999995, 0.0, -0.0, 9.99999999, 16777216.0, 16777217.0,
                           67108872.0, 65504.0, 65520.0, 2.0 ** -24, 2.0 ** -149, 1e22, 1e23, 5e-324, 0.1, 0.3,
                           1.0 / 3, 2.0 / 3, 4.35, 2.675, 1e16, 1e15, 123456789.125))
    if kind == "special":
        return rng.choice((float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.5, -2.25, 1e10, 1e-10, 100.0))
    raise AssertionError(kind)


KINDS = ["unit", "signed", "wide", "extreme", "integer", "short", "edge", "special"]


def convert(values, name):
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).astype(NAMES[name])


def random_bits(name, n):
    size = np.dtype(NAMES[name]).itemsize
    raw = bytes(rng.randrange(256) for _ in range(size * n))
    return np.frombuffer(raw, NAMES[name]).copy()


def random_shape(limit):
    while True:
        shape = tuple(rng.choice((1, 2, 3, 4, 7)) for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))))
        if np.prod(shape) <= limit:
            return shape


def values(name, shape):
    n = int(np.prod(shape))
    if name in FLOATS:
        kind = rng.choice(KINDS + ["bits", "mixed"])
        if kind == "bits":
            return random_bits(name, n).reshape(shape)
        return convert([real(rng.choice(KINDS) if kind == "mixed" else kind) for _ in range(n)], name).reshape(shape)
    if name == "bool":
        return np.array([rng.random() < 0.6 for _ in range(n)], np.bool_).reshape(shape)
    info = np.iinfo(NAMES[name])
    high = rng.choice((9, 100, 12345, info.max))
    low = max(info.min, -high - 1) if rng.random() < 0.7 else 0
    return np.array([rng.randrange(low, min(high, info.max) + 1) for _ in range(n)], NAMES[name]).reshape(shape)


def all_cases():
    every = list(NAMES)
    for name in every:
        for style in STYLES:
            for shape in ((0,), (2, 0), (0, 3), (1, 0, 2), (), (1,), (1, 1), (1, 1, 1)):
                case(style, values(name, shape))
    for _ in range(500):  # scalars: all digits, the two notations
        case(rng.choice(("str", "str", "np", "jax")), values(rng.choice(FLOATS), ()))
    for _ in range(1100):  # one row, where the number rules show
        case("str", values(rng.choice(FLOATS), (rng.randrange(1, 6),)))
    for _ in range(700):
        case(rng.choice(list(STYLES)), values(rng.choice(every), random_shape(24)))
    for _ in range(350):  # options
        case(rng.choice(list(STYLES)), values(rng.choice(FLOATS), random_shape(12)), precision=rng.choice((-1, 1, 2, 3, 5, 12, 20)),
             suppress=rng.randrange(2), width=rng.choice((0, 20, 40)))
    for _ in range(250):  # summaries and line breaks
        case(rng.choice(list(STYLES)), values(rng.choice(every), random_shape(60)), threshold=rng.choice((1, 3, 10)),
             edge=rng.choice((1, 2, 3)), width=rng.choice((0, 10, 24, 50, 200)))
    for _ in range(60):
        case(rng.choice(list(STYLES)), values(rng.choice(every), (rng.randrange(8, 40),)), width=rng.choice((0, 1, 17, 33, 60)))
    index = np.arange(2000)
    ramp = ((index * 7919) % 2003 - 1001) * 0.37
    for name in every:
        for shape in ((1000,), (1001,), (40, 25), (40, 26), (11, 10, 11), (3, 4, 5, 20)):
            n = int(np.prod(shape))
            if n <= 1000 and name not in ("float32", "int32"):
                continue
            a = ramp[:n].astype(np.int64).astype(NAMES[name]) if name not in FLOATS else ramp[:n].astype(NAMES[name])
            case("np" if n > 1000 else "str", a.reshape(shape), make=True)
            case("str", a.reshape(shape), make=True, edge=2, threshold=50)


def write(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, "w", newline="\n") as file:
        file.write("\n".join(OUT) + "\n")
    sys.stdout.write("%s: %d cases\n" % (path, sum(line.startswith("case") for line in OUT)))


if __name__ == "__main__":
    all_cases()
    write("print_numpy.txt")
