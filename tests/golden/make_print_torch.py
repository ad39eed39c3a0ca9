"""Writes print_torch.txt: arrays and the text that PyTorch prints for them, in the format of make_print_numpy.py.

Run with NumPy 1.24 and PyTorch 2. The committed file was made on a machine without PyTorch, by running the functions of
its torch/_tensor_str.py on NumPy arrays; with PyTorch installed this script must reproduce it.
"""
import make_print_numpy as common

try:
    import torch
except ImportError:
    torch = None

rng = common.rng
rng.seed(7)


def show(a):
    return repr(torch.from_numpy(a.copy()))


def case(a, precision=0, threshold=0, edge=0, width=0, suppress=0):
    torch.set_printoptions(precision=precision or 4, threshold=threshold or 1000, edgeitems=edge or 3,
                           linewidth=width or 80, sci_mode=False if suppress else None)
    common.STYLES["torch"] = show
    common.case("torch", a, precision, threshold, edge, width, suppress)


def all_cases():
    for name in common.NAMES:
        for shape in ((0,), (2, 0), (0, 3), (), (1,), (1, 1)):
            case(common.values(name, shape))
    for _ in range(120):
        case(common.values(rng.choice(common.FLOATS), (rng.randrange(1, 6),)))
    for _ in range(100):
        case(common.values(rng.choice(list(common.NAMES)), common.random_shape(24)))
    for _ in range(60):
        case(common.values(rng.choice(common.FLOATS), common.random_shape(12)), precision=rng.choice((1, 2, 6, 12)),
             suppress=rng.randrange(2), width=rng.choice((0, 20, 40)))
    for _ in range(80):
        case(common.values(rng.choice(list(common.NAMES)), common.random_shape(60)), threshold=rng.choice((1, 3, 10)),
             edge=rng.choice((1, 2, 3)), width=rng.choice((0, 10, 24, 50, 200)))


if __name__ == "__main__":
    all_cases()
    common.write("print_torch.txt")
