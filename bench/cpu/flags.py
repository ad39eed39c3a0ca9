"""Measures kernels through the API in programs compiled with different flags: flags.py PROGRAM...

The first program is the reference. Samples are interleaved, results compared with float64. Writes
a table.
"""
import argparse
import datetime
import os
import statistics
import tempfile

from expected import error, expected
from participants import Participant
from report import machine
from rows import ROWS

OPS = (("exp", {"n": 100_000}), ("mm", {"m": 256, "n": 256, "k": 256, "ta": 0, "tb": 0}),
       ("sum", {"all": 1}), ("softmax", {"rows": 4096}), ("conv", {"n": 64, "c": 1, "backward": 0}),
       ("conv", {"n": 64, "c": 20, "backward": 1}), ("maxpool", {}),
       ("uniform", {"n": 10_000_000}), ("lenet_step", {"batch": 256}), ("add", {"n": 3}))


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--python")
    parse.add_argument("--out", default="")
    parse.add_argument("programs", nargs="+")
    a = parse.parse_args()
    names = [os.path.basename(p) for p in a.programs]
    everybody = [Participant(n, [p], 1) for n, p in zip(names, a.programs)]
    lines = [
        f"| one thread | {names[0]} | " + " | ".join(f"{n} of it" for n in names[1:]) + " |",
        "|---" * (len(names) + 1) + "|"
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result")
        for op, want in OPS:
            row = next(r for r in ROWS
                       if r.op == op and all(r.arguments.get(k) == v for k, v in want.items()))
            wanted = expected(row)
            for one in everybody:
                if one.ask(row.command) != "ok" or not one.ask("result " + path).startswith("ok"):
                    raise SystemExit(f"{one.name}: {row.title} could not be run")
                off, most = error(row, path, wanted)
                if not off <= most:
                    raise SystemExit(f"{one.name}: {row.title} is off by {off:.2g}")
            taken = [[] for _ in everybody]
            for _ in range(9):
                for one, kept in zip(everybody, taken):
                    kept.append(one.sample(0.03))
            speeds = [row.work / statistics.median(t) for t in taken]
            lines.append(f"| {row.title} | {speeds[0]:.3g} {row.unit} | " +
                         " | ".join(f"{s / speeds[0]:.2f}" for s in speeds[1:]) + " |")
            print(lines[-1], flush=True)
    for one in everybody:
        one.end()
    text = (
        f"# Kernels in programs compiled with other flags, {datetime.date.today()}\n\n"
        f"Machine: {machine()}. Command: `make bench-flags`; medians of 9 interleaved samples, "
        "results compared with float64. 1.00: the speed of the first program.\n\n"
        + "\n".join(lines) + "\n")
    print(text)
    if a.out:
        with open(os.path.join(a.out, f"{datetime.date.today()}-flags.md"), "w",
                  encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
