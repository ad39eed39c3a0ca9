"""Writes the tables and the chart of results.jsonl: make gpu-report DIR=folder.

    report.py FOLDER        writes FOLDER/report.md and FOLDER/report.svg

Needs no GPU and no packages. Lines that were cut off are left out. If a step ran twice, its last
line counts.
"""
import csv
import json
import os
import sys
from html import escape

COUNTERS = ("Duration", "DRAM Throughput", "Compute (SM) Throughput", "L2 Cache Throughput",
            "Registers Per Thread", "Achieved Occupancy")
NOISE = 0.05  # copies of two processes that differ by more make ratios between them doubtful


def read(path):
    lines = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                lines.append(json.loads(line))
            except ValueError:  # the call was cut
                continue
    return [line for line in lines if isinstance(line, dict)]


def rows_of(lines):
    """Returns {row: {who: line}} in order."""
    rows = {}
    for line in lines:
        if line.get("kind") == "row":
            rows.setdefault(line["row"], {})[line["who"]] = line
    return rows


def rate(line):
    return line["work"] / line["seconds"]


def digits(value):
    """Formats with three significant digits, without an exponent where that is short."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def figure(line):
    """Returns the median rate, with the middle 80 % where it varies by more than NOISE."""
    if "failed" in line:
        return "failed"
    text = digits(rate(line))
    if line["high"] - line["low"] > 2 * NOISE * line["seconds"]:
        text += f" ({digits(line['work'] / line['high'])} to {digits(line['work'] / line['low'])})"
    return text + (" **wrong**" if line["right"] is False else "")


def ratio(ours, theirs):
    return rate(ours) / rate(theirs) if "seconds" in ours and "seconds" in theirs else None


def is_peer(name):
    return name not in ("devtensor", "copy") and not name.startswith("copy in ")


def best(entries):
    """Returns (ratio, peer) against the fastest right peer, or None."""
    ours, found = entries.get("devtensor", {}), []
    for name, line in entries.items():
        if is_peer(name) and line.get("right") is not False and ratio(ours, line):
            found.append((ratio(ours, line), name))
    return min(found, default=None)


def verdict(entries):
    """Returns what the row's floor asks for: reached, missed, or unknown."""
    ours = entries.get("devtensor", {})
    least, peer = ours.get("floor", "0 nobody").split()
    over = ratio(ours, entries.get(peer, {}))
    if "failed" in ours:
        return "failed: " + ours["failed"]
    if ours and ours["right"] is False:
        return f"wrong: error {ours['error']}, at most {ours['bound']}"
    if over is None:
        return f"{least} of {peer}: not measured"
    return f"{least} of {peer}: {'reached' if over >= float(least) else 'missed'}, {over:.2f}"


def doubtful(entries):
    """Names the peers whose own copies ran at another speed than ours."""
    ours = entries.get("copy", {})
    return [name[8:] for name, line in entries.items() if name.startswith("copy in ") and
            ratio(ours, line) and abs(ratio(ours, line) - 1) > NOISE]


def row_tables(rows):
    yield "## Rows\n"
    yield "Work per second, medians; larger is better. The middle 80 % follows where it varies.\n"
    yield "| row | unit | devtensor | peers | over the best peer | floor |"
    yield "|---|---|---|---|---|---|"
    for name, entries in rows.items():
        ours = entries.get("devtensor", {"failed": "no line"})
        unit = next((line["unit"] for line in entries.values() if "unit" in line), "")
        peers = ", ".join(f"{who} {figure(line)}" for who, line in entries.items()
                          if who != "devtensor" and not who.startswith("copy in "))
        found = best(entries)
        doubt = "".join(f"; {who}: its copy differs by over 5 %" for who in doubtful(entries))
        yield (f"| {name} | {unit} | {figure(ours)} | {peers} | "
               f"{f'{found[0]:.2f} ({found[1]})' if found else ''} | {verdict(entries)}{doubt} |")
    errors = [(name, who, line) for name, entries in rows.items() for who, line in entries.items()
              if "failed" in line or line["right"] is False]
    if errors:
        yield "\n## Failures and wrong results\n\n| row | who | what |\n|---|---|---|"
        for name, who, line in errors:
            what = line.get("failed", f"error {line.get('error')}, at most {line.get('bound')}")
            yield f"| {name} | {who} | {what.replace('|', '/')} |"


def step_table(steps):
    yield "\n## Steps\n\n| step | result | seconds | detail |\n|---|---|---|---|"
    for name, line in steps.items():
        yield (f"| {name} | {line['state']} | {line['seconds']} | "
               f"{line.get('detail', '').replace('|', '/')} |")


def counter_table(path):
    """Returns the table of the profiler's counters: one line for each kernel of each row."""
    row, kernels = "", {}
    with open(path, encoding="utf-8", errors="replace") as file:
        head = None
        for cells in csv.reader(file):
            if len(cells) == 1 and cells[0].startswith("==== "):
                row, head = cells[0][5:], None
            elif "Metric Name" in cells:
                head = cells
            elif head and len(cells) == len(head):
                entry = dict(zip(head, cells))
                kernel = (row, entry.get("ID", ""), entry.get("Kernel Name", "")[:50])
                kernels.setdefault(kernel, {})[entry["Metric Name"]] = (
                    f"{entry['Metric Value']} {entry.get('Metric Unit', '')}".strip())
    if not kernels:
        return
    yield "\n## Counters\n\n| row | kernel | " + " | ".join(COUNTERS) + " |"
    yield "|---|---|" + "---|" * len(COUNTERS)
    for (row, _, kernel), found in kernels.items():
        yield f"| {row} | `{kernel}` | " + " | ".join(found.get(c, "") for c in COUNTERS) + " |"


def chart(rows):
    """Returns an SVG with a bar for each row, from 0 to the ratio over the best peer."""
    bars = [(name, *best(entries)) for name, entries in rows.items() if best(entries)]
    height, width, left, unit = 18, 900, 400, 200
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
             f'height="{height * (len(bars) + 2)}" font-family="sans-serif" font-size="11">',
             f'<text x="{left}" y="12">devtensor over the best peer; the line is 1</text>']
    for at, (name, over, peer) in enumerate(bars):
        y, length = height * (at + 1), min(over, 2) * unit
        color = "#2a7" if over >= 1 else "#c60"
        parts += [f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
                  f'<rect x="{left}" y="{y + 2}" width="{length:.0f}" height="{height - 4}" '
                  f'fill="{color}"/>',
                  f'<text x="{left + length + 4:.0f}" y="{y + 13}">{over:.2f} '
                  f'{escape(peer)}</text>']
    parts.append(f'<path d="M{left + unit} {height}V{height * (len(bars) + 1)}" stroke="#000"/>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    folder = sys.argv[1] if len(sys.argv) == 2 else "build/gpu-first"
    path = os.path.join(folder, "results.jsonl")
    if not os.path.exists(path):
        print(f"report.py: {path} does not exist; `make gpu-first DIR={folder}` writes it")
        return 2
    lines = read(path)
    rows = rows_of(lines)
    steps = {line["step"]: line for line in lines if line.get("kind") == "step"}
    machine = next((line for line in lines if line.get("kind") == "machine"), {})
    gpu = steps.get("gpu", {}).get("detail") or "an unknown GPU"
    text = [f"# devtensor on {gpu}\n",
            f"`make gpu-first`, on {machine.get('processor', '')}, {machine.get('system', '')}; "
            f"programs of `{machine.get('programs', '')}`." +
            ("" if "end" in steps else " The call was cut.") + "\n",
            *row_tables(rows), *step_table(steps)]
    counters = os.path.join(folder, "counters.csv")
    if os.path.exists(counters):
        text += counter_table(counters)
    for name, content in (("report.md", "\n".join(text) + "\n"), ("report.svg", chart(rows))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)
        print(os.path.join(folder, name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
