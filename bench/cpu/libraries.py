"""The libraries of the comparison: where the newest copy of each is, and its version.

run.sh extracts Debian's newest packages into build/bench-peers, with the C library that they need.
A program uses them through that C library's loader. Where they are missing or do not start, the
copies from PyPI and from the system follow.
"""
import functools
import glob
import importlib.metadata
import os
import re
import subprocess

NEWER = "build/bench-peers"
KINDS = {"openblas": "cblas", "blis": "cblas", "dnnl": "dnnl", "xsmm": "xsmm"}
PACKAGES = {
    "torch": "PyTorch", "numpy": "NumPy", "jax": "JAX", "numexpr": "numexpr",
    "onnxruntime": "ONNX Runtime", "mlx": "MLX"
}
NAMES = {
    "openblas": "OpenBLAS", "blis": "BLIS", "dnnl": "oneDNN", "xsmm": "libxsmm", "sleef": "SLEEF"
}
# Per library: the pattern of the file, PyPI's package, Debian's packages and the system's file.
PLACES = {
    "openblas": (None, "scipy-openblas32", "libopenblas0-pthread", "libopenblas.so.0"),
    "blis": ("blis-openmp/libblis.so.*", None, "libblis4-openmp", "libblis.so.4"),
    "dnnl": ("libdnnl.so.3*", "onednn-cpu-gomp", "libdnnl2", "libdnnl.so.2"),
    "xsmm": (None, None, "libxsmm-dev", "libxsmm.so.1"),
    "sleef": ("libsleef.so.3", None, "libsleef3", "libsleef.so.3")
}


def first(pattern, recursive=False):
    found = sorted(glob.glob(pattern, recursive=recursive))
    return os.path.abspath(found[0]) if found else None


def package_version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def upstream(version):
    """Returns Debian's version without its own part: 3.12.1+ds-3 is 3.12.1."""
    return re.split(r"[+-]", version)[0]


def debian_version(name):
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True,
                           text=True) if os.path.exists("/usr/bin/dpkg-query") else None
    return upstream(found.stdout.strip()) if found and found.returncode == 0 else None


def newer_version(pattern):
    """Returns the version of the extracted package that has this file."""
    with open(f"{NEWER}/versions", encoding="utf-8") as file:
        versions = dict(line.split() for line in file)
    name = os.path.basename(pattern).split(".")[0]
    return next((upstream(v) for k, v in versions.items() if k.startswith(name)), "")


class Libraries:
    """build: the directory of our programs. python: the interpreter with the packages."""

    def __init__(self, build, python):
        self.build, self.root = build, os.path.dirname(os.path.dirname(python))

    def candidates(self, name):
        """Yields (command, version) of a library, the newest first."""
        pattern, pypi, debian, system = PLACES[name]
        program = [os.path.abspath(f"{self.build}/bench/cpu/{'blas' if name in KINDS else name}")]
        folders = glob.glob(os.path.abspath(NEWER) + "/usr/lib/*-linux-gnu*")
        loader = first(NEWER + "/usr/lib/*-linux-gnu*/ld-linux*.so.*")
        at = first(f"{NEWER}/usr/lib/*/{pattern}") if pattern else None

        def command(file):
            return program + ([file, KINDS[name]] if name in KINDS else [])
        if at and loader:
            path = ":".join([*folders, os.path.dirname(at)])
            yield [loader, "--library-path", path, *command(at)], newer_version(pattern)
        at = pypi and first(f"{self.root}/**/lib{'scipy_' if name == 'openblas' else ''}{name}.so*",
                            recursive=True)
        if at:
            yield command(at), package_version(pypi)
        at = first(f"{self.build}/bench/cpu/lib{name}.so")  # made by run.sh
        yield command(at or system), debian_version(debian)


@functools.lru_cache
def torch_version(python):
    """Returns the versions of PyTorch and of the libraries in it."""
    shown = subprocess.run([python, "-c", "import torch; print(torch.__config__.show())"],
                           capture_output=True, text=True).stdout
    inside = [f"{name} {found[1]}" for name, found in
              (("oneDNN", re.search(r"MKL-DNN v([\d.]+)", shown)),
               ("MKL", re.search(r"Kernel Library Version ([\d.]+)", shown))) if found]
    return package_version("torch") + (f" with {' and '.join(inside)}" if inside else "")


def versions(python, used):
    """Returns names and versions; used: {name: version} of the libraries that were started."""
    text = []
    for package, name in PACKAGES.items():
        version = package_version(package)
        if version:
            text.append(f"{name} {torch_version(python) if package == 'torch' else version}")
    return ", ".join(text + [f"{NAMES[n]} {v}" for n, v in sorted(used.items()) if v])
