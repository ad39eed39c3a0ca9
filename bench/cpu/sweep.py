"""Looks for holes: sizes at which devtensor is much slower than at the sizes around them.

    sweep.py products|functions --program PROGRAM --out DIRECTORY [--isa TARGET]... [--seconds N]

products: float32 products of n x n x n for all n to 1100, with all transpositions, one thread.
functions: elementwise operations over 1 to 1e8 elements, one and two threads. Writes
sweep-KIND-PROCESSOR.csv and .svg, and prints the holes: sizes below LEAST of the median of their
neighbors, and functions that two threads compute below SHARED of the speed of one. Both are
measured three times more before they are reported.
"""
import argparse
import csv
import math
import os
import statistics
import time
from html import escape

from chart import text_width
from participants import Participant
from processor import this_processor

LEAST = 0.85
SHARED = 0.95
LARGEST = 1100  # rows of a product
NEIGHBORS = 4  # on each side
OPS = ("add", "relu", "sqrt", "exp", "log", "tanh", "sin", "sigmoid", "erf", "gelu")
COLORS = "#27a", "#c64", "#2a7", "#a3a", "#777"


def function_sizes():
    """Returns 1, 2, 3, 5, 7 per decade and powers of 4, to 1e8."""
    sizes = {k * 10**e for e in range(8) for k in (1, 2, 3, 5, 7)} | {4**e for e in range(2, 14)}
    return sorted(sizes | {10**8})


class Point:
    """One case of one program: title of its curve, size, work of a call, best speed.

    hole: the speed over that of the neighbors, alone: over that of one thread; None if not low.
    """

    def __init__(self, key, size, work, command, threads):
        self.key, self.size, self.work, self.command = key, size, work, command
        self.threads = threads
        self.speed, self.hole, self.alone = 0.0, None, None

    def measure(self, program, seconds):
        """Keeps the best speed of the samples: other processes only make it slower."""
        if program.ask(self.command) != "ok":
            raise SystemExit(f"{program.name} does not have {self.command}")
        program.sample(0)
        until, samples = time.perf_counter() + seconds, 0
        while samples < 3 or (samples < 9 and time.perf_counter() < until):
            self.speed = max(self.speed, self.work / program.sample(seconds / 5))
            samples += 1


def product_points():
    for ta, tb in ((0, 0), (1, 0), (0, 1), (1, 1)):
        for n in range(1, LARGEST + 1):
            yield Point("NT"[ta] + "NT"[tb], n, 2e-9 * n**3,
                        f"case mm m={n} n={n} k={n} ta={ta} tb={tb}", 1)


def function_points():
    for threads in (1, 2):
        for op in OPS:
            for n in function_sizes():
                title = f"{op}, {threads} thread{'s' * (threads > 1)}"
                yield Point(title, n, n * 1e-9, f"case {op} n={n}", threads)


KINDS = {"products": (product_points, "GFLOP/s"), "functions": (function_points, "Gelement/s")}


def expected_speed(curve, i):
    """Returns the median over pairs of neighbors, one on each side, interpolated at this size.

    It is logarithmic in size and speed, because the speed of small sizes is a power of the size.
    """
    found, at = [], math.log(curve[i].size)
    for k in range(1, min(i, len(curve) - 1 - i, NEIGHBORS) + 1):
        low, high = curve[i - k], curve[i + k]
        part = (at - math.log(low.size)) / (math.log(high.size) - math.log(low.size))
        found.append((1 - part) * math.log(low.speed) + part * math.log(high.speed))
    return math.exp(statistics.median(found)) if found else None


def find_holes(curves):
    """Sets `hole` and `alone` of the points, and returns those that have one of them."""
    for curve in curves.values():
        for i, point in enumerate(curve):
            wanted = expected_speed(curve, i)
            over = point.speed / wanted if wanted else 1
            point.hole = over if over < LEAST else None
    one = {p.command: p.speed for c in curves.values() for p in c if p.threads == 1}
    points = [p for curve in curves.values() for p in curve]
    for point in points:
        over = point.speed / one.get(point.command, point.speed)
        point.alone = over if over < SHARED else None
    return [p for p in points if p.hole or p.alone]


def sweep(points, programs, seconds):
    """Returns {key: [Point]}; seconds: for all points, including the second look at holes."""
    points = list(points)
    curves, begin = {}, time.perf_counter()
    for k, point in enumerate(points):
        left = 0.8 * seconds - (time.perf_counter() - begin)
        point.measure(programs[point.threads], min(0.05, max(1e-3, left / (len(points) - k) / 2)))
        curves.setdefault(point.key, []).append(point)
    for _ in range(3):
        for point in find_holes(curves):
            if time.perf_counter() - begin < seconds:
                point.measure(programs[point.threads], 0.05)
    find_holes(curves)
    return curves


def plot(path, title, unit, found):
    """Draws a panel for each curve, with a line for each ISA target; found: {isa: curves}."""
    width, height, left, y = 900, 150, 60, 52
    sizes = [math.log2(p.size) for curves in found.values() for c in curves.values() for p in c]
    most = max(sizes) or 1

    def across(size):
        return round(left + math.log2(size) / most * (width - left - 20), 1)
    out = [f'<text x="8" y="20" class="title">{escape(title)}</text>']
    x = 8
    for color, isa in zip(COLORS, found):
        out.append(f'<text x="{x}" y="38" fill="{color}">{escape(isa)}</text>')
        x += text_width(isa) + 16
    out.append(f'<text x="{x}" y="38">circles: below {LEAST} of the neighbors, or below {SHARED} '
               'of one thread</text>')
    for key in dict.fromkeys(k for curves in found.values() for k in curves):
        top = max(p.speed for curves in found.values() for p in curves.get(key, []))
        bottom = y + 16 + height
        out.append(f'<text x="8" y="{y + 8}" class="title">{escape(f"{key}, {unit}")}</text>')
        for part in range(5):
            at = bottom - height * part / 4
            out.append(f'<line x1="{left}" y1="{at}" x2="{width - 20}" y2="{at}" class="grid"/>'
                       f'<text x="{left - 6}" y="{at + 4}" class="end">{top * part / 4:.3g}</text>')
        for power in range(0, int(most) + 1, 1 if most < 12 else 2):
            at, label = across(2**power), f"{2**power:,}"
            out.append(f'<text x="{at}" y="{bottom + 14}" class="middle">{label}</text>')
        for color, curves in zip(COLORS, found.values()):
            curve = curves.get(key, [])
            places = [(across(p.size), round(bottom - p.speed / top * height, 1), p) for p in curve]
            out.append(f'<polyline fill="none" stroke="{color}" points="' +
                       " ".join(f"{a},{b}" for a, b, _ in places) + '"/>')
            out += [f'<circle cx="{a}" cy="{b}" r="4" fill="none" stroke="#c00"/>'
                    for a, b, p in places if p.hole or p.alone]
        y = bottom + 34
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
                   'font-family="sans-serif" font-size="12"><style>.title{font-weight:bold}'
                   ".end{text-anchor:end;font-size:10px}.middle{text-anchor:middle;"
                   "font-size:10px}.grid{stroke:#ddd}</style>"
                   f'<rect width="100%" height="100%" fill="#fff"/>{"".join(out)}</svg>\n')


def write(stem, unit, found):
    with open(stem + ".csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["isa", "curve", "size", unit, "over neighbors if a hole",
                       "over one thread if low"])
        for isa, curves in found.items():
            for curve in curves.values():
                rows.writerows([isa, p.key, p.size, f"{p.speed:.4g}",
                                f"{p.hole:.2f}" if p.hole else "",
                                f"{p.alone:.2f}" if p.alone else ""] for p in curve)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("kind", choices=KINDS)
    parse.add_argument("--program", required=True)
    parse.add_argument("--out", required=True)
    parse.add_argument("--isa", nargs="*", default=[], help="ISA targets; default: the best")
    parse.add_argument("--seconds", type=float, default=420, help="for all ISA targets together")
    a = parse.parse_args()
    processor = this_processor(a.program)
    points, unit = KINDS[a.kind]
    targets, found = a.isa or [processor.isa], {}
    for isa in targets:
        programs = {t: Participant("devtensor", [a.program], t, more={"DEVTENSOR_ISA": isa})
                    for t in (1, 2)}
        found[isa] = sweep(points(), programs, a.seconds / len(targets))
        for one in programs.values():
            one.end()
        low = find_holes(found[isa])
        print(f"{isa}: {sum(1 for p in low if p.hole)} of {sum(map(len, found[isa].values()))} "
              f"sizes are holes, {sum(1 for p in low if p.alone)} slower than one thread")
        for p in low:
            print(f"  {p.key} {p.size:,}: {p.speed:.3g} {unit}" +
                  (f", {p.hole:.2f} of its neighbors" if p.hole else "") +
                  (f", {p.alone:.2f} of one thread" if p.alone else ""), flush=True)
    os.makedirs(a.out, exist_ok=True)
    stem = os.path.join(a.out, f"sweep-{a.kind}-{processor.kind}")
    write(stem, unit, found)
    plot(stem + ".svg", f"{a.kind} of devtensor, {processor.model} {processor.kind}", unit, found)
    print(f"wrote {stem}.csv and {stem}.svg")


if __name__ == "__main__":
    main()
