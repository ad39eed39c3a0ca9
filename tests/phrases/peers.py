#!/usr/bin/env python3
"""Runs the cells of tests/phrases of the other libraries that this Python has, and compares their
results with the stated ones. A cell is skipped if it needs a GPU or a module that is missing.

    peers.py [TEXT]     only rows whose file or title contains the text
"""
import ast
import contextlib
import importlib
import io
import os
import re
import sys
import tempfile
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import phrases  # noqa: E402

IMPORTS = {
    "np": "import numpy as np",
    "pt": "import torch; from torch import nn; import torch.nn.functional as F; "
          "from torch.utils.data import TensorDataset, DataLoader; import torch.utils.benchmark",
    "mx": "import mxnet as mx; from mxnet import nd, autograd, gluon",
    "jax": "import jax, jax.numpy as jnp; jax.config.update('jax_enable_x64', True)",
}
# Undoes settings of the process.
RESTORE = {
    "np": "np.set_printoptions(legacy=False); np.seterr(all='warn')",
    "pt": "torch.set_default_device(None); torch.set_printoptions(profile='default')",
    "jax": "jax.config.update('jax_transfer_guard', 'allow'); "
           "jax.config.update('jax_disable_jit', False)",
}
OPTIONAL = ("PIL.Image", "torchvision.transforms.v2", "tqdm", "safetensors", "safetensors.torch",
            "safetensors.numpy", "safetensors.flax", "optax", "flax.serialization", "torchinfo",
            "torchmetrics", "torchdata", "torchtune.modules", "fvcore.nn", "sklearn.metrics",
            "torch.utils.tensorboard", "time", "timeit", "logging", "warnings")
ABSENT = re.compile(
    r"CUDA|cuda|NVIDIA|gpu|GPU|No module named|Failed to import|not built|HIP|xnnpack|"
    r"name '(PIL|torchvision|tqdm|safetensors|optax|flax|torchinfo|torchmetrics|torchdata|plt|"
    r"torchtune|fvcore|sklearn|prof|orbax|glob|state|amp|jmp|"
    r"steps|losses|mesh)'|no attribute '(hub|stateful_dataloader|tensorboard|P)'|process group|"
    r"unbound axis name|before backends are initialized|index out of range")
counts = {"passed": 0, "failed": 0, "skipped": 0}


def environment(library):
    """Returns the names of a library's cells; None if it is not installed."""
    scope = {}
    try:
        exec("import numpy as np", scope)
        exec(IMPORTS[library], scope)
    except Exception:
        return None
    for module in OPTIONAL:
        try:
            importlib.import_module(module)
            scope[module.split(".")[0]] = importlib.import_module(module.split(".")[0])
        except ImportError:
            pass
    if "flax" in scope:
        import flax.linen
        scope["flax"].nn = flax.linen
    return scope


def arrays(section, library, scope, module):
    np = scope["np"]
    for name, kind, shape, values in section.arrays:
        host = np.array([float(v) for v in values]).astype(phrases.TYPES[kind][1])
        host = host.reshape([int(extent) for extent in shape])
        if library == "pt":
            scope[name] = scope["torch"].from_numpy(host)
        elif library == "jax":
            scope[name] = scope["jnp"].array(host)
        elif library == "mx" and module:
            scope[name] = scope["mx"].np.array(host, dtype=host.dtype)
        elif library == "mx":
            scope[name] = scope["nd"].array(host, dtype=host.dtype)
        else:
            scope[name] = host


def run(lines, scope):
    """Executes the lines. Returns the last value: of an expression, or of an assigned name."""
    tree = ast.parse("\n".join(lines))
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        body = ast.Module(tree.body[:-1], [])
        exec(compile(body, "cell", "exec"), scope)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)
        if isinstance(last.value, ast.Call) and value is None:  # x.fill_(7)
            return None
        return value
    exec(compile(tree, "cell", "exec"), scope)
    if isinstance(last, (ast.Assign, ast.AugAssign)):
        target = last.targets[0] if isinstance(last, ast.Assign) else last.target
        while isinstance(target, ast.Subscript):
            target = target.value
        return scope.get(target.id) if isinstance(target, ast.Name) else None
    return scope.get("z")


def values(result, np):
    """Returns the numbers of a result, or None."""
    if isinstance(result, (tuple, list)) and result and not isinstance(result[0], (int, float)):
        result = result[0]
    for convert in (lambda x: x.detach().float().cpu().numpy(), lambda x: x.asnumpy(),
                    lambda x: np.asarray(x, dtype="float64")):
        try:
            return [float(x) for x in np.asarray(convert(result)).astype("float64").ravel()]
        except Exception:
            pass
    return None


def wanted(row):
    try:
        return [float({"true": 1, "false": 0}.get(v, v)) for v in row.cells["is"][0].split()]
    except (KeyError, ValueError):
        return None


def check(section, row, library, scope):
    lines = row.cell(library)
    if not lines or re.match(r"[A-Z_]+=\w+$", lines[0]) or "fails" in row.cells:
        return  # no cell, a variable of the environment, or a download
    where = f"{section.file}: {row.title}: {library}"
    names = dict(scope)
    try:
        arrays(section, library, names, "mx.np." in " ".join(lines))
        exec("\n".join(section.preparations.get(library, [])), names)
        got = run(lines, names)
    except SyntaxError as error:
        counts["failed"] += 1
        print(f"FAIL {where}: {error}")
        return
    except Exception as error:  # whatever the library raises
        absent = (ABSENT.search(str(error)) or isinstance(error, ImportError) or
                  re.search(r"cuda|gpu\(|imread", " ".join(lines)))
        counts["skipped" if absent else "failed"] += 1
        if not absent:
            print(f"FAIL {where}: {type(error).__name__}: {str(error)[:200]}")
        return
    want, numbers = wanted(row), None if got is None else values(got, scope["np"])
    if "apart" in row.cells or "dvt_shape_of" in row.cells.get("see", row.cells["dvt"])[0]:
        want = None
    good = want is None or numbers is None or (len(want) == len(numbers) and all(
        abs(a - b) <= 2e-5 * (1 + abs(b)) or a != a for a, b in zip(numbers, want)))
    counts["passed" if good else "failed"] += 1
    if not good:
        print(f"FAIL {where}: {numbers[:12]}, expected {want}")


def main():
    os.chdir(ROOT)
    sections = phrases.sections()
    text = sys.argv[1] if len(sys.argv) > 1 else ""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("h.csv", "w", encoding="utf-8") as file:
            file.write("a,b,c\n1,2,3\n4,5,6\n")
        for library in IMPORTS:
            scope = environment(library)
            if scope is None:
                counts["skipped"] += 1
                print(f"SKIP {library}: it is not installed")
                continue
            for section in sections:
                for row in section.rows:
                    if text in section.file + row.title:
                        # Cells that print do not disturb the report.
                        with contextlib.redirect_stdout(io.StringIO()) as caught:
                            check(section, row, library, scope)
                            exec(RESTORE.get(library, ""), scope)
                        print("".join(line + "\n" for line in caught.getvalue().split("\n")
                                      if line.startswith("FAIL ")), end="")
        os.chdir(ROOT)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.exit(counts["failed"] != 0)


if __name__ == "__main__":
    main()
