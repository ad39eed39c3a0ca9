"""The rows of rows.txt in PyTorch and CuPy, where the machine has them.

    peer.py rows torch|cupy ROWS OUT SAMPLES     appends JSON lines, as ours.c does
    peer.py first torch|cupy                     process start to the first result

The forms of a row (eager, channels_last, replayed CUDA graph, compiled) take their samples in turn,
next to a copy of the row's bytes, which shows the state of the GPU. A form that raises an exception
gets a line with the reason, and the others continue. A child measures: when it ends or hangs, lines
say so, and another child continues with the next row. Exit code 77: the library is not installed.
"""
import ctypes
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SAMPLE, PATIENCE = 2e-3, 2.0  # seconds: of a sample, of a row's samples after the least number
LIMIT, TRAINING_LIMIT = 45, 100  # seconds: of a row, of a row that trains to an accuracy
SKIPPED = 77
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

    def least_samples(self):
        return 1 if self.op == "mnist_099" else 3

    def limit(self):
        return TRAINING_LIMIT if self.op == "mnist_099" else LIMIT


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


def reason(error):
    """Returns an exception's type and text in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def append(path, **line):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def fail(path, row, form, why):
    append(path, kind="row", row=row.text, who=form, failed=why[:300])


class Case:
    """One form of a row. error: relative to float64, or None; warm: calls before any sample.
    `clock` is events, wall or queued; once: a call is a sample, without calls before it."""

    def __init__(self, call, error=None, clock="events", warm=1, once=False):
        self.call, self.error, self.clock, self.warm, self.once = call, error, clock, warm, once


class Contest:
    """The forms of one row, which take their samples in turn."""

    def __init__(self, library, row, path):
        self.library, self.row, self.path = library, row, path
        self.cases, self.errors, self.calls, self.taken = {}, {}, {}, {}

    def attempt(self, form, work, *arguments):
        """Returns work(form, *arguments); drops the form when that raises."""
        try:
            return work(form, *arguments)
        except Missing as missing:
            self.drop(form, f"missing: {missing}")
        except Exception as error:  # of any kind: the other forms continue
            self.drop(form, reason(error))
        return None

    def drop(self, form, why):
        self.cases.pop(form, None)
        fail(self.path, self.row, form, why)
        print("done", form, flush=True)

    def sample(self, case, calls):
        """Returns the seconds of a call, averaged over `calls`."""
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

    def build(self, form):
        self.cases[form] = self.library.case(self.row, form)

    def build_copy(self, form, traffic):
        self.cases[form] = Case(self.library.copy(traffic))

    def prepare(self, form):
        """Compares with float64, warms up, and chooses the number of calls of a sample."""
        case = self.cases[form]
        self.errors[form] = case.error() if case.error else None
        self.library.wait()
        self.calls[form], self.taken[form] = 1, []
        if not case.once:
            for _ in range(case.warm):
                self.sample(case, 1)
            spent = min(self.sample(case, 1), self.sample(case, 4))
            self.calls[form] = max(1, min(1000, int(SAMPLE / max(spent, 1e-7)) + 1))

    def take(self, form):
        self.taken[form].append(self.sample(self.cases[form], self.calls[form]))

    def measure(self, samples):
        for form in list(self.cases):
            self.attempt(form, self.prepare)
        order, begin = list(self.cases), time.perf_counter()
        for done in range(samples):
            late = time.perf_counter() - begin > PATIENCE
            if not self.cases or (late and done >= self.row.least_samples()):
                break
            for form in order:
                if form in self.cases:
                    self.attempt(form, self.take)
            order = order[1:] + order[:1]

    def report(self, form, work, unit):
        seconds, off = sorted(self.taken[form]), self.errors[form]
        append(self.path, kind="row", row=self.row.text, who=form,
               seconds=statistics.median(seconds), low=seconds[len(seconds) // 10],
               high=seconds[-1 - len(seconds) // 10], samples=len(seconds), work=work, unit=unit,
               floor=self.row.floor, error=off if off is not None and math.isfinite(off) else None,
               bound=self.row.bound, right=None if off is None else bool(off <= self.row.bound))
        print("done", form, flush=True)


def measure_row(library, row, path, samples):
    contest, (work, unit) = Contest(library, row, path), work_of(row)
    for form in row.forms(library.name):
        contest.attempt(form, contest.build)
    if not contest.cases:
        return
    if unit == "GB/s" and "copy" in row.peers.split():
        contest.attempt("copy in " + library.name, contest.build_copy, work * 1e9)
    contest.measure(samples)
    for form in list(contest.cases):
        contest.attempt(form, contest.report, work, unit)


def library_of(name):
    return __import__(BUILDERS[name]).Library()


def end_with_parent():
    """Asks Linux to end this process when its parent ends. Other systems do not offer that."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # 1: PR_SET_PDEATHSIG
    except (AttributeError, OSError, TypeError):
        pass


def child(name, path_rows, path, samples, first):
    """Measures the rows from number `first`; prints what it begins and what has a line."""
    end_with_parent()
    library, rows = library_of(name), read_rows(path_rows)
    for number in range(first, len(rows)):
        if rows[number].forms(name):
            print("row", number, flush=True)
            signal.alarm(rows[number].limit())
            measure_row(library, rows[number], path, samples)
            library.trim()
            library.wait()  # a lost GPU ends this child, not each row after it
    signal.alarm(0)


def last_line(file):
    """Returns the last line of a file, and copies the file to stderr."""
    file.seek(0)
    text = file.read().decode(errors="replace")
    sys.stderr.write(text)
    return " ".join((text.strip().splitlines() or [""])[-1].split())


def run_child(command):
    """Returns (exit code, number of the last row or -1, forms with a line, end of stderr)."""
    at, done = -1, []
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process:
            for line in process.stdout:
                word, _, rest = line.strip().partition(" ")
                if word == "row" and rest.isdigit():
                    at, done = int(rest), []
                elif word == "done":
                    done.append(rest)
        return process.returncode, at, done, last_line(said)


def parent(name, path_rows, path, samples):
    rows, first, failures = read_rows(path_rows), 0, 0
    while first < len(rows):
        code, at, done, said = run_child([sys.executable, os.path.abspath(__file__), "child", name,
                                          path_rows, path, str(samples), str(first)])
        if code == 0:
            break
        why = f"ended with {code}" if code > 0 else f"ended by signal {-code}"
        if code == -signal.SIGALRM:
            why = f"exceeded its time, {rows[at].limit()} s"
        why += f": {said}" if said else ""
        if at < 0:
            print(f"{name} does not start: {why}")
            return 1
        for form in rows[at].forms(name):
            if form not in done:
                fail(path, rows[at], form, why)
        failures, first = failures + 1, at + 1
        print(f"{rows[at].text}: {why}")
    return 1 if failures else 0


def main():
    what, name = sys.argv[1:3]
    try:
        __import__(name)
    except ImportError as error:
        print(f"{name}: not installed ({' '.join(str(error).split())})")
        return SKIPPED
    except Exception as error:  # it is installed, and broken
        print(f"{name}: the import failed: {reason(error)}")
        return 1
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if what == "first":
        print(library_of(name).first())
        return 0
    path_rows, path, samples = sys.argv[3], sys.argv[4], int(sys.argv[5])
    if what == "child":
        child(name, path_rows, path, samples, int(sys.argv[6]))
        return 0
    return parent(name, path_rows, path, samples)


if __name__ == "__main__":
    import peer  # the libraries' modules import it under this name
    sys.exit(peer.main())
