"""Speed of two threads while another process uses one of the two cores, versus one thread alone."""
import os
import signal
import statistics
import subprocess
import sys

from participants import Participants
from report import Line
from rows import ROWS

TITLE = "another process takes one of two cores"
OPS = (("mm", {"m": 512, "n": 512, "ta": 0, "tb": 0}), ("tanh", {"n": 1_000_000}),
       ("softmax", {"rows": 4096}), ("conv", {"n": 64, "c": 1, "backward": 0}),
       ("conv", {"n": 64, "c": 20, "backward": 1}), ("lenet_step", {"batch": 256}))


def picked():
    for op, wanted in OPS:
        yield next(r for r in ROWS
                   if r.op == op and all(r.arguments.get(k) == v for k, v in wanted.items()))


class Busy:
    """A process that keeps one core busy, or is stopped."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", sys.executable, "-c", "while True: pass"])
        self.rest()

    def work(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def rest(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def end(self):
        self.process.kill()
        self.process.wait()


def measure(row, name, everybody, busy, samples, seconds):
    """Returns ms per call: one thread alone, two alone, two with a busy core; None on failure."""
    alone, two = everybody.get(name, 1), everybody.get(name, 2)
    if not alone or not two or any(one.ask(row.command) != "ok" for one in (alone, two)):
        return None
    taken = [], [], []
    for _ in range(samples):
        taken[0].append(alone.sample(seconds))
        taken[1].append(two.sample(seconds))
        busy.work()
        taken[2].append(two.sample(4 * seconds))  # time slices of the scheduler are milliseconds
        busy.rest()
    if any(t is None for part in taken for t in part):
        return None
    return [1000 * statistics.median(part) for part in taken]


def section(build, python, processor, widths, chosen, short):
    rows = [r for r in picked() if chosen(TITLE, r.title)]
    if not rows or widths != [1, 2]:
        return [], []
    everybody, busy = Participants(build, python, processor, bound=False), Busy()
    lines = [
        "| ms per call | " +
        " | ".join(f"{n}: 1 thread | 2 threads | 2, one core busy | over 1 thread"
                   for n in ("devtensor", "torch")) + " |", "|---" * 9 + "|"
    ]
    ratios, torches = [], []
    try:
        for row in rows[:3] if short else rows:
            cells = []
            for name, kept in (("devtensor", ratios), ("torch", torches)):
                found = measure(row, name, everybody, busy, 3 if short else 7,
                                0.05 if short else 0.2)
                if found:
                    kept.append(found[2] / found[0])
                    cells += [f"{ms:.3g}" for ms in found] + [f"**{found[2] / found[0]:.2f}**"]
                else:
                    cells += [""] * 4
            lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    finally:
        busy.end()
        everybody.end()
    text = [f"## {TITLE}\n\n" + "\n".join(lines) + "\n"]
    if not ratios or not torches:
        return text, []
    text.append(f"devtensor is at most {max(ratios):.2f} times slower than one thread alone, "
                f"PyTorch {max(torches):.2f} times.\n")
    gains = [t / o for t, o in zip(torches, ratios)]
    mean = statistics.geometric_mean(gains)
    return text, [
        Line("slowdown with one core busy, PyTorch / devtensor", 2, len(gains), mean, min(gains),
             mean)
    ]
