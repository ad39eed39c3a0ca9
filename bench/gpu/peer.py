"""The rows of rows.txt in PyTorch and CuPy, where the machine has them.

    peer.py rows torch|cupy ROWS OUT SAMPLES     appends JSON lines, as ours.c does
    peer.py first torch|cupy                     process start to the first result

The forms of a row (eager, channels_last, replayed CUDA graph, compiled) take their samples in turn,
next to a copy of the row's bytes, which shows the state of the GPU. A child measures: when a row
fails or hangs, its line says so, and another child continues with the next row.
"""
import json
import os
import signal
import statistics
import subprocess
import sys
import time

SAMPLE, PATIENCE, LIMIT = 2e-3, 5.0, 45  # seconds: of a sample, of a row's samples, of a row
BUILDERS = {"torch": "peer_torch", "cupy": "peer_cupy"}


class Missing(Exception):
    """The library does not have this row."""


class Row:
    def __init__(self, line):
        self.text, self.peers, bound, self.floor = (part.strip() for part in line.split("|"))
        self.bound, words = float(bound), self.text.split()
        self.op, self.arguments = words[0], dict(word.split("=") for word in words[1:])
        self.dtype = self.arguments.get("dtype", "f32")

    def __getitem__(self, name):
        return int(self.arguments.get(name, {"stride": 1, "axis": -1}.get(name, 0)))

    def forms(self, library):
        return [name for name in self.peers.split() if name.split("-")[0] == library]


def read_rows(path):
    with open(path, encoding="utf-8") as file:
        return [Row(line) for line in file if "|" in line and not line.startswith("#")]


def work_of(row):
    """Returns the work of a call and its unit, as cases.h counts them."""
    op, n = row.op, row["n"]
    if op in ("uniform", "normal"):
        return 1e-9 * n, "Gelement/s"
    if op in ("copy", "add", "where", "exp", "chain", "relu_gradient"):
        return 1e-9 * n * {"add": 12, "where": 13, "relu_gradient": 20}.get(op, 8), "GB/s"
    if "rows" in row.arguments:
        elements, size = row["rows"] * row["columns"], 2 if row.dtype in ("f16", "bf16") else 4
        if op == "sort":
            return 1e-6 * elements, "Melement/s"
        return 1e-9 * elements * size * (1 if op == "sum" else 2), "GB/s"
    if op == "mm":
        return 2e-12 * row["m"] * n * row["k"], "TFLOP/s"
    if op == "conv":
        out = (row["h"] + 2 * row["pad"] - row["k"]) // row["stride"] + 1
        return (2e-12 * row["batch"] * row["o"] * out * out * row["c"] * row["k"]**2 *
                (3 if row["backward"] else 1)), "TFLOP/s"
    if op in ("upload", "download"):
        return 1e-9 * row["bytes"], "GB/s"
    if op in ("dispatch", "allocate"):
        return 1e-6, "million calls/s"
    if op == "mnist_099":
        return 1, "trainings/s"
    return 1e-6 * (60000 if op == "lenet_epoch" else row["batch"]), "million samples/s"


def append(path, **line):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def fail(path, row, forms, why):
    for form in forms:
        append(path, kind="row", row=row.text, who=form, failed=str(why).replace("\n", " ")[:300])


class Contest:
    """Callables of one row that take their samples in turn. `clock` is events, wall or queued."""

    def __init__(self, library):
        self.library, self.calls = library, {}

    def sample(self, case, calls):
        library, begin = self.library, time.perf_counter()
        if case.clock == "events":
            first, last = library.event(), library.event()
            first.record()
            for _ in range(calls):
                case.call()
            last.record()
            last.synchronize()
            return library.seconds(first, last) / calls
        for _ in range(calls):
            case.call()
        queued = time.perf_counter() - begin
        library.wait()
        return (queued if case.clock == "queued" else time.perf_counter() - begin) / calls

    def measure(self, cases, samples):
        taken, begin = {name: [] for name in cases}, None
        for name, case in cases.items():
            if not case.once:
                for _ in range(case.warm):
                    self.sample(case, 1)
                spent = min(self.sample(case, 1), self.sample(case, 4))
                self.calls[name] = max(1, min(1000, int(SAMPLE / max(spent, 1e-7)) + 1))
        order, begin = list(cases), time.perf_counter()
        for done in range(samples):
            if done >= 3 and time.perf_counter() - begin > PATIENCE:
                break
            for name in order:
                taken[name].append(self.sample(cases[name], self.calls.get(name, 1)))
            order = order[1:] + order[:1]
        return taken


class Case:
    """One form of a row. error: relative to float64, or None; warm: calls before any sample."""

    def __init__(self, call, error=None, clock="events", warm=1, once=False):
        self.call, self.error, self.clock, self.warm, self.once = call, error, clock, warm, once


def measure_row(library, row, path, samples):
    forms, cases = row.forms(library.name), {}
    for form in forms:
        try:
            cases[form] = library.case(row, form)
        except Missing as missing:
            fail(path, row, [form], f"missing: {missing}")
        except Exception as error:  # the other forms continue
            fail(path, row, [form], f"{type(error).__name__}: {error}")
    if not cases:
        return
    errors = {}
    for form, case in cases.items():
        errors[form] = case.error() if case.error else None
        library.wait()
    work, unit = work_of(row)
    if unit == "GB/s" and "copy" in row.peers.split():
        cases["copy in " + library.name] = Case(library.copy(work * 1e9))
        errors["copy in " + library.name] = None
    for form, seconds in Contest(library).measure(cases, samples).items():
        seconds.sort()
        off = errors[form]
        append(path, kind="row", row=row.text, who=form, seconds=statistics.median(seconds),
               low=seconds[len(seconds) // 10], high=seconds[-1 - len(seconds) // 10],
               samples=len(seconds), work=work, unit=unit, floor=row.floor,
               error=off if off is None or off == off else None, bound=row.bound,
               right=None if off is None else bool(off <= row.bound))


def library_of(name):
    return __import__(BUILDERS[name]).Library()


def child(name, path_rows, path, samples, first):
    """Measures the rows from number `first`; prints each number before its row."""
    library, rows = library_of(name), read_rows(path_rows)
    for number in range(first, len(rows)):
        if rows[number].forms(name):
            print(number, flush=True)
            signal.alarm(LIMIT)
            measure_row(library, rows[number], path, samples)
            library.trim()
    signal.alarm(0)


def parent(name, path_rows, path, samples):
    rows, first, failures = read_rows(path_rows), 0, 0
    while first < len(rows):
        command = [sys.executable, __file__, "child", name, path_rows, path, str(samples),
                   str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            at = -1
            for line in process.stdout:
                if line.strip().isdigit():
                    at = int(line)
        if process.returncode == 0:
            break
        if at < 0:
            print(f"{name} does not start")
            return 1
        fail(path, rows[at], rows[at].forms(name), f"ended with {process.returncode}")
        failures, first = failures + 1, at + 1
    return 1 if failures else 0


def main():
    what, name = sys.argv[1:3]
    try:
        __import__(name)
    except ImportError as error:
        print(f"{name}: {error}")
        return 3
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if what == "first":
        print("loss", library_of(name).first())
        return 0
    path_rows, path, samples = sys.argv[3], sys.argv[4], int(sys.argv[5])
    if what == "child":
        child(name, path_rows, path, samples, int(sys.argv[6]))
        return 0
    return parent(name, path_rows, path, samples)


if __name__ == "__main__":
    import peer  # the libraries' modules import it under this name
    sys.exit(peer.main())
