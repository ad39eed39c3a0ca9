"""The inputs of the comparison, the same numbers as in runner.h."""
import numpy as np


def values(seed, n, low=-1.0, high=1.0):
    with np.errstate(over="ignore"):
        x = np.arange(n, dtype=np.uint32) * np.uint32(2654435769) + np.uint32(seed * 40503)
        x ^= x >> np.uint32(16)
        x *= np.uint32(0x7FEB352D)
        x ^= x >> np.uint32(15)
        x *= np.uint32(0x846CA68B)
        x ^= x >> np.uint32(16)
    unit = x.view(np.int32).astype(np.float32) * np.float32(1 / 2147483648.0)
    return np.float32(low) + np.float32(high - low) * np.float32(0.5) * (unit + np.float32(1))


RANGES = {
    "exp": (-4, 4), "log": (0.01, 10), "tanh": (-4, 4), "sin": (-10, 10), "sigmoid": (-8, 8),
    "erf": (-3, 3), "gelu": (-4, 4), "sqrt": (0, 10), "relu": (-1, 1), "exp_chain": (-1, 1),
    "log_chain": (0.01, 10)
}


class Missing(Exception):
    """Raised when this library does not have the case."""


def matrix(a, seed=1):
    return values(seed, a["rows"] * a["columns"]).reshape(a["rows"], a["columns"])


def factors(a):
    """Returns both operands of a product in their memory layout."""
    return (values(1,
                   a["m"] * a["k"]).reshape((a["k"], a["m"]) if a.get("ta") else (a["m"], a["k"])),
            values(2,
                   a["k"] * a["n"]).reshape((a["n"], a["k"]) if a.get("tb") else (a["k"], a["n"])))


def conv_inputs(a):
    return (values(1, a["n"] * a["c"] * a["h"] * a.get("w", a["h"])).reshape(
        a["n"], a["c"], a["h"],
        a.get("w", a["h"])), values(2, a["o"] * a["c"] * a["k"] * a["k"]).reshape(
            a["o"], a["c"], a["k"], a["k"]), values(3, a["o"]))


def axes_of(a):
    return None if a.get("all") else a.get("axis", -1)
