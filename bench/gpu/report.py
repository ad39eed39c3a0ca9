"""Writes the tables and the chart of results.jsonl: make gpu-report DIR=folder OUT=folder.

    report.py FOLDER [OUT]      writes report.md and report.svg to OUT (default: FOLDER)

Needs no GPU and no packages. Lines that cannot be read are left out and counted. If a step or a row
has several lines, its last one counts. Environment: ROWS, the file of all rows (default: rows.txt
next to this program), shows which rows have no line.
"""
import csv
import json
import os
import sys
from html import escape

COUNTERS = ("Duration", "DRAM Throughput", "Compute (SM) Throughput", "L2 Cache Throughput",
            "Registers Per Thread", "Achieved Occupancy")
NOISE = 0.05  # copies of two processes that differ by more make ratios between them doubtful
FEW = 30  # the figures of fewer samples say so
INSTEAD = os.path.join("build", "gpu-report")  # where FOLDER is read-only


# ---- reading ----
def cell(value):
    """Returns text for a cell of a table: one line, without bars and lone surrogates."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    return text.replace("|", "/").strip()[:400]


def is_text(value):
    return isinstance(value, str) and value != ""


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_positive(value):
    return is_number(value) and 1e-15 < value < 1e15


def is_count(value):
    return is_number(value) and 0 <= value < 1e15


def is_size(value):
    return value is None or is_number(value)


def is_answer(value):
    return value is None or isinstance(value, bool)


def is_floor(value):
    words = value.split() if isinstance(value, str) else []
    try:
        return len(words) == 2 and is_positive(float(words[0]))
    except ValueError:
        return False


# What the keys of each kind of line must be. A row is measured, or it failed.
NEEDED = {
    "call": {},
    "machine": {},
    "step": {"step": is_text, "state": is_text},
    "kernels": {"step": is_text, "compiled": is_count, "cached": is_count, "seconds": is_count},
    "row": {"row": is_text, "who": is_text},
    "failed": {"failed": is_text},
    "measured": {"seconds": is_positive, "low": is_positive, "high": is_positive,
                 "work": is_positive, "unit": is_text, "floor": is_floor, "right": is_answer},
}
OPTIONAL = {"samples": is_count, "error": is_size, "bound": is_size, "worst": is_size,
            "spot": is_size}


def fits(line, kind):
    return all(key in line and test(line[key]) for key, test in NEEDED[kind].items())


def is_whole(line):
    """Says whether the report can use a line."""
    kind = line.get("kind")
    if kind not in ("call", "machine", "step", "kernels", "row") or not fits(line, kind):
        return False
    if kind == "step":
        return is_count(line.get("seconds", 0))
    if kind != "row":
        return True
    return (fits(line, "failed" if "failed" in line else "measured") and
            all(test(line[key]) for key, test in OPTIONAL.items() if key in line))


def objects(text):
    """Yields the JSON values of a line, and None for each part that is none."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):  # cut: another process continued the line
            yield None
            at = text.find('{"kind"', at + 1)
            if at < 0:
                return
        while text[at:at + 1].isspace():
            at += 1


def read(path):
    """Returns (the lines that can be used, the number of others)."""
    lines, others = [], 0
    with open(path, encoding="utf-8", errors="replace") as file:
        for text in file:
            for line in objects(text.strip()):
                if isinstance(line, dict):
                    line = {cell(key): cell(value) if isinstance(value, str) else value
                            for key, value in line.items()}
                if isinstance(line, dict) and is_whole(line):
                    lines.append(line)
                else:
                    others += 1
    return lines, others


def rows_of(lines):
    """Returns {row: {who: line}} in order. A failure keeps what was measured before it."""
    rows = {}
    for line in lines:
        if line["kind"] == "row":
            entries = rows.setdefault(line["row"], {})
            before = entries.get(line["who"])
            if "failed" in line and before:
                line = {**line, "before": before.get("before", before)}
            entries[line["who"]] = line
    return rows


def calls_of(lines):
    """Returns the lines of each call. Older files begin a call with a line "machine"."""
    first = "call" if any(line["kind"] == "call" for line in lines) else "machine"
    calls = [[]]
    for line in lines:
        if line["kind"] == first and calls[-1]:
            calls.append([])
        calls[-1].append(line)
    return calls


# ---- rows ----
def rate(line):
    return line["work"] / line["seconds"]


def digits(value):
    """Formats with three significant digits, without an exponent where that is short."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def figure(line):
    """Returns the median rate, with the middle 80 % where it varies by more than NOISE."""
    if "failed" in line:
        before = line.get("before", {})
        return "failed" + (f" (before: {digits(rate(before))})" if "seconds" in before else "")
    text = digits(rate(line))
    if line["high"] - line["low"] > 2 * NOISE * line["seconds"]:
        text += f" ({digits(line['work'] / line['high'])} to {digits(line['work'] / line['low'])})"
    samples = line.get("samples", FEW)
    if samples < FEW:
        text += f" ({samples} sample{'' if samples == 1 else 's'})"
    return text + (" **wrong**" if line["right"] is False else "")


def mistake(line):
    """Returns what is known about a wrong result."""
    bound, error = line.get("bound"), line.get("error")
    text = "the error is not finite" if error is None else f"error {error}"
    text += "" if bound is None else f", at most {bound}"
    for key, name in (("worst", "largest error of an element over the RMS"),
                      ("spot", "error of a sample against cpu()")):
        if line.get(key) is not None:
            text += f"; {name} {line[key]}"
    return text


def ratio(ours, theirs):
    return rate(ours) / rate(theirs) if "seconds" in ours and "seconds" in theirs else None


def is_peer(row, name):
    """Says whether `name` does the same work. Pinned memory is another kind of memory."""
    if row.split()[0] in ("upload", "download") and name == "pinned":
        return False
    return name not in ("devtensor", "copy") and not name.startswith("copy in ")


def best(row, entries):
    """Returns (ratio, peer) of our right result and the fastest right peer, or None."""
    ours, found = entries.get("devtensor", {}), []
    for name, line in entries.items():
        over = ratio(ours, line)
        if over and is_peer(row, name) and False not in (ours.get("right"), line.get("right")):
            found.append((over, name))
    return min(found, default=None)


def verdict(entries):
    """Returns what the row's floor asks for: reached, missed, or unknown."""
    ours = entries.get("devtensor")
    if ours is None:
        return "not measured"
    if "failed" in ours:
        return "failed: " + ours["failed"]
    if ours["right"] is False:
        return "wrong: " + mistake(ours)
    least, peer = ours["floor"].split()
    theirs = entries.get(peer, {})
    if theirs.get("right") is False:
        return f"{least} of {peer}: the result of {peer} is wrong"
    over = ratio(ours, theirs)
    if over is None:
        return f"{least} of {peer}: not measured"
    return f"{least} of {peer}: {'reached' if over >= float(least) else 'missed'}, {over:.2f}"


def doubtful(entries):
    """Names the peers whose own copies ran at another speed than ours."""
    ours = entries.get("copy", {})
    return [name[8:] for name, line in entries.items() if name.startswith("copy in ") and
            ratio(ours, line) and abs(ratio(ours, line) - 1) > NOISE]


# ---- sections ----
def row_table(rows):
    yield "\n## Rows\n"
    yield ("Work per second, medians; larger is better. The middle 80 % follows where it varies, "
           f"and the number of samples where it is less than {FEW}.\n")
    yield "| row | unit | devtensor | peers | over the best peer | floor |"
    yield "|---|---|---|---|---|---|"
    for name, entries in rows.items():
        ours = entries.get("devtensor", {"failed": "no line"})
        unit = next((found["unit"] for line in entries.values()
                     for found in (line, line.get("before", {})) if "unit" in found), "")
        peers = ", ".join(f"{who} {figure(line)}" for who, line in entries.items()
                          if who != "devtensor" and not who.startswith("copy in "))
        found = best(name, entries)
        doubt = "".join(f"; {who}: its copy differs by over 5 %" for who in doubtful(entries))
        yield (f"| {name} | {unit} | {figure(ours)} | {peers} | "
               f"{f'{found[0]:.2f} ({found[1]})' if found else ''} | {verdict(entries)}{doubt} |")


def error_table(rows):
    errors = [(name, who, line) for name, entries in rows.items() for who, line in entries.items()
              if "failed" in line or line["right"] is False]
    if errors:
        yield "\n## Failures and wrong results\n\n| row | who | what |\n|---|---|---|"
    for name, who, line in errors:
        yield f"| {name} | {who} | {line.get('failed') or mistake(line)} |"


def unreached(rows):
    """Lists the rows of the whole comparison that have no line of ours."""
    path = os.environ.get("ROWS") or os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                  "rows.txt")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        names = [line.split("|")[0].strip() for line in file
                 if "|" in line and not line.startswith("#")]
    names = [name for name in names if "devtensor" not in rows.get(name, {})]
    if names:
        yield "\n## Rows that were not reached\n"
    for name in names:
        yield f"- {name}"


def step_table(steps):
    yield "\n## Steps\n\n| step | result | seconds | detail |\n|---|---|---|---|"
    for name, line in steps.items():
        state = line["state"]
        state = "running when the call was cut" if state == "running" else state
        yield f"| {name} | {state} | {line.get('seconds', '')} | {cell(line.get('detail', ''))} |"
    if any(name.startswith("start-") for name in steps):
        yield ("\nSteps start-*: from the start of a process to its first result, which the detail "
               "names.")


def kernel_table(lines):
    found = {line["step"]: line for line in lines if line["kind"] == "kernels"}
    if found:
        yield ("\n## Kernels compiled during steps\n\n| step | compiled | from the cache | "
               "seconds |\n|---|---|---|---|")
    for name, line in found.items():
        yield f"| {name} | {line['compiled']} | {line['cached']} | {line['seconds']} |"


def counter_table(path):
    """Yields the table of the profiler's counters: one line for each kernel of each row."""
    row, kernels, head = "", {}, None
    if not os.path.exists(path):
        return
    csv.field_size_limit(2**31 - 1)  # names of templates are long
    with open(path, encoding="utf-8", errors="replace") as file:
        for cells in csv.reader(text.replace("\0", " ") for text in file):
            if len(cells) == 1 and cells[0].startswith("==== "):
                row, head = cell(cells[0][5:]), None
            elif "Metric Name" in cells:
                head = cells
            elif head and len(cells) == len(head):
                entry = dict(zip(head, cells))
                kernel = (row, entry.get("ID", ""), cell(entry.get("Kernel Name", ""))[:50])
                kernels.setdefault(kernel, {})[entry["Metric Name"]] = cell(
                    f"{entry.get('Metric Value', '')} {entry.get('Metric Unit', '')}")
    if not kernels:
        return
    yield "\n## Counters\n\n| row | kernel | " + " | ".join(COUNTERS) + " |"
    yield "|---|---|" + "---|" * len(COUNTERS)
    for (row, _, kernel), found in kernels.items():
        yield f"| {row} | `{kernel}` | " + " | ".join(found.get(c, "") for c in COUNTERS) + " |"


def head(lines, others):
    """Yields the title, how the last call ended, and the keys of its call and machine."""
    calls = calls_of(lines)
    ends = [line for line in calls[-1] if line.get("step") == "end"]
    named = [line.get("detail") for line in lines
             if line.get("step") == "gpu" and line["state"] == "passed"]
    yield f"# devtensor on {cell((named or [None])[-1] or 'an unknown GPU')}\n"
    if not ends:
        yield "**The last call was cut.**\n"
    elif ends[-1]["state"] != "passed":
        detail = cell(ends[-1].get("detail", ""))
        yield f"**The last call {ends[-1]['state']}{': ' + detail if detail else ''}.**\n"
    if others:
        yield f"{others} line{'' if others == 1 else 's'} could not be read.\n"
    if len(calls) > 1:
        yield f"Results of {len(calls)} calls; the last one:\n"
    known = {}
    for kind in ("machine", "call"):
        found = [line for line in calls[-1] if line["kind"] == kind]
        known.update({key: value for key, value in (found or [{}])[-1].items() if key != "kind"})
    yield from (f"- {key}: {cell(value)}" for key, value in known.items())


def section(title, make, *arguments):
    """Returns the lines of a section. One that fails says so, and the others remain."""
    try:
        return list(make(*arguments))
    except Exception as error:  # of any kind: results of a GPU must not be lost
        return [f"\n## {title}\n", f"This section failed: {type(error).__name__}: {cell(error)}"]


def chart(rows):
    """Yields an SVG with a bar for each row, from 0 to the ratio over the best peer."""
    bars = [(name, *best(name, entries)) for name, entries in rows.items() if best(name, entries)]
    height, width, left, unit = 18, 900, 400, 200
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height * (len(bars) + 2)}" font-family="sans-serif" font-size="11">')
    yield f'<text x="{left}" y="12">devtensor over the best peer; the line is 1</text>'
    for at, (name, over, peer) in enumerate(bars):
        y, length = height * (at + 1), min(over, 2) * unit
        color = "#2a7" if over >= 1 else "#c60"
        yield f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
        yield (f'<rect x="{left}" y="{y + 2}" width="{length:.0f}" height="{height - 4}" '
               f'fill="{color}"/>')
        yield f'<text x="{left + length + 4:.0f}" y="{y + 13}">{over:.2f} {escape(peer)}</text>'
    yield f'<path d="M{left + unit} {height}V{height * (len(bars) + 1)}" stroke="#000"/>'
    yield "</svg>"


# ---- the program ----
def write(folder, files):
    os.makedirs(folder, exist_ok=True)
    for name, lines in files.items():
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write("\n".join(lines) + "\n")
        print(path)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n\n")[1])
        return 2
    folder = sys.argv[1]
    path = os.path.join(folder, "results.jsonl")
    if not os.path.exists(path):
        print(f"report.py: {path} does not exist; `make gpu-first DIR={folder}` writes it")
        return 2
    lines, others = read(path)
    rows = rows_of(lines)
    steps = {line["step"]: line for line in lines if line["kind"] == "step"}
    files = {
        "report.md": [*section("The call", head, lines, others),
                      *section("Rows", row_table, rows),
                      *section("Failures and wrong results", error_table, rows),
                      *section("Rows that were not reached", unreached, rows),
                      *section("Steps", step_table, steps),
                      *section("Kernels compiled during steps", kernel_table, lines),
                      *section("Counters", counter_table, os.path.join(folder, "counters.csv"))],
        "report.svg": section("Chart", chart, rows),
    }
    if len(sys.argv) == 3:
        write(sys.argv[2], files)
        return 0
    try:
        write(folder, files)
    except OSError as error:
        print(f"report.py: {folder} cannot be written ({error.strerror}); writing {INSTEAD}")
        write(INSTEAD, files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
