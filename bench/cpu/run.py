"""Compares devtensor on cpu() with alternatives: make bench-cpu [ROW=text] [SHORT=1].

Every participant is a process that answers runner.h's commands, so that their samples can be
interleaved. A sample repeats the call for some milliseconds. A row's figure is the median over the
samples. A ratio is the median over the rounds, in which both are sampled at nearly the same time.
Before that, each participant's result is compared with float64. Writes a table in Markdown and
charts in SVG.
"""
import argparse
import datetime
import os
import re
import statistics
import sys
import tempfile
import time

import busy_core
import whole
from chart import bars, ratios
from expected import error, expected
from participants import Participants
from report import (Line, against_each, commit, figures, is_unsteady, machine, plural, summary,
                    summary_chart, table, versions)
from rows import ROWS

PATIENCE = 6.0  # seconds of samples of one row, after which three are enough
MOST, UNSTEADY = 15, 0.1  # maximum rounds of a row whose spread exceeds UNSTEADY
SHORT = 260.0  # seconds for the rows of the selection; five minutes in all


def prepared(row, name, threads, everybody, wanted, folder, wrong):
    """Returns the participant, ready to be sampled; None when it does not have this row."""
    one = everybody.get(name, threads)
    if not one:
        return None
    answer = one.ask(row.limit[0] if name == "machine" else row.command)
    if answer != "ok":
        other = answer.startswith("no such") or answer == "no only products"
        if name == "devtensor" or not other:
            wrong.append(f"{name}: {answer[3:]}")
        return None
    if name != "machine":
        path = os.path.join(folder, "result")
        answer = one.ask("result " + path)
        ok = answer.startswith("ok")
        off, most = error(row, path, wanted) if ok and answer != "ok 0" else (float("nan"), 0)
        if not off <= most:
            wrong.append(f"{name}: result off by {off:.2g}" if ok else f"{name}: {answer}")
            return None
    if not row.few:  # otherwise the result was the warm-up
        one.sample(0)
    return one


def wants_more(taken, rounds, samples, few, until):
    if rounds < 3:
        return True
    if few or time.perf_counter() > until:
        return False
    return rounds < samples or (rounds < MOST and is_unsteady(figures(taken), UNSTEADY))


def rounds_of(taking_part, samples, seconds, few, patience):
    """Returns {name: work per second in each round}; rotates the order, repeats unsteady rows."""
    taken, order = {name: [] for name in taking_part}, list(taking_part)
    rounds, until = 0, time.perf_counter() + patience
    while wants_more(taken, rounds, samples, few, until):
        for name in order:
            one, work = taking_part[name]
            spent = one.sample(seconds)
            one.rests()
            if spent:
                taken[name].append(work / spent)
        order = order[1:] + order[:1]
        rounds += 1
    for name in [n for n, t in taken.items() if len(t) < rounds]:
        del taken[name]
    return taken


def measure(row, threads, everybody, samples, seconds, folder, patience):
    """Returns {name: Figure} and the errors."""
    wanted, taking_part, wrong = expected(row), {}, []
    for name in ("devtensor", *row.peers, *(["machine"] if row.limit else [])):
        one = prepared(row, name, threads, everybody, wanted, folder, wrong)
        if one:
            taking_part[name] = one, row.limit[1] if name == "machine" else row.work
    for one, _ in taking_part.values():
        one.rests()
    taken = rounds_of(taking_part, samples, 0 if row.few else seconds, row.few, patience)
    wrong += [f"{name}: ended while it was measured" for name in taking_part if name not in taken]
    return figures(taken), wrong


class Findings:
    """Contents of the document: sections, summary lines, charts, number of our wrong results."""

    def __init__(self):
        self.text, self.lines, self.charts, self.off = [], [], {}, 0
        self.last = [], []  # text and lines of the last sections

    def group(self, title, threads, measured):
        part, over = table(measured, threads)
        self.text.append(part)
        if over:
            each = against_each(measured)
            self.text.append("Over each: " + ", ".join(f"{n} {v:.2f}"
                                                       for n, v in each.items()) + ".\n")
            self.lines.append(
                Line(title, threads, len(over), statistics.geometric_mean(over), min(over),
                     each.get("torch")))
            self.charts[f"{title}, {plural(threads)}"] = ratios(measured)

    def section(self, found):
        for kept, more in zip(self.last, found):
            kept.extend(more)

    def write(self, stem, head, tail):
        """Returns the document; with a stem, writes it and the charts.

        Called after each group, so a long run can be stopped early.
        """
        lines = self.lines + self.last[1]
        document = "\n".join(
            [*head, f"## Summary\n\n{summary(lines)}\n", *self.text, *self.last[0], *tail])
        if stem:
            with open(stem + ".md", "w", encoding="utf-8") as file:
                file.write(document)
            bars(stem + ".svg", self.charts)
            bars(stem + "-summary.svg", summary_chart(lines))
        return document


def compare(rows, everybody, samples, seconds, widths, findings, end):
    """Adds a group of rows to the findings in each iteration.

    end: deadline of the last row; half of each row's share of the time is for samples.
    """
    left = sum(threads in r.threads for r in rows for threads in widths)
    with tempfile.TemporaryDirectory() as folder:
        for group in dict.fromkeys(r.group for r in rows):
            findings.text.append(f"## {group}\n")
            for threads in widths:
                measured = []
                for row in (r for r in rows if r.group == group and threads in r.threads):
                    patience = min(PATIENCE, (end - time.perf_counter()) / left / 2)
                    left -= 1
                    result, wrong = measure(row, threads, everybody, samples, seconds, folder,
                                            patience)
                    measured.append((row, result, wrong))
                    findings.off += sum(w.startswith("devtensor: result") for w in wrong)
                    print(
                        f"{threads}T {row.title}: " + "  ".join(f"{n} {f.median:.3g}"
                                                                for n, f in result.items()), *wrong,
                        flush=True)
                if measured:
                    findings.group(group, threads, measured)
            yield


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--build", required=True)
    parse.add_argument("--python", default=sys.executable)
    parse.add_argument("--row", default="", help="only rows whose group or title contains this")
    parse.add_argument("--short", action="store_true", help="a selection that fits in five minutes")
    parse.add_argument("--threads", type=int, default=0, choices=(0, 1, 2),
                       help="only with this number of threads")
    parse.add_argument("--out", default="",
                       help="directory of the table and charts; else only printed")
    a, begin = parse.parse_args(), time.perf_counter()

    def chosen(group, title):
        return a.row.lower() in f"{group}: {title}".lower()
    rows = [r for r in ROWS if chosen(r.group, r.title) and (r.short or not a.short)]
    samples, seconds = 5, 0.02 if a.short else 0.05
    widths = [t for t in (1, 2) if t <= len(os.sched_getaffinity(0)) and a.threads in (0, t)]
    if not widths:
        sys.exit(f"THREADS={a.threads}: this process may use one processor only")
    command = "make bench-cpu" + (" SHORT=1" if a.short else "") + (
        f' ROW="{a.row}"' if a.row else "") + (f" THREADS={a.threads}" if a.threads else "")
    head = [
        f"# cpu() versus other libraries, {datetime.date.today()}\n",
        f"Machine: {machine()}. Command: `{command}`, devtensor at {commit()}. "
        f"Peers: {versions(a.python)}. "
        f"Medians of {3 if a.short else samples} to {MOST} interleaved samples "
        "(three of long ones). A ratio is the median over rounds of samples. "
        "Every result was compared with float64 in the same run. "
        "All libraries write matrix products into an existing array "
        "(`dvt_matmul_with`). Larger is better; the bold column is devtensor over the best peer.\n"
    ]
    # A partial table must not replace the whole one.
    part = "".join(f"-{word}" for word in re.findall(r"\w+", a.row.lower()))
    stem = os.path.join(a.out, f"{datetime.date.today()}-cpu{part}") if a.out else ""
    if a.out:
        os.makedirs(a.out, exist_ok=True)
    everybody, findings = Participants(a.build, a.python), Findings()
    findings.section(whole.sections(a.build, a.python, widths, chosen, a.short))
    findings.section(busy_core.section(a.build, a.python, widths, chosen, a.short))
    for _ in compare(rows, everybody, samples, seconds, widths, findings,
                     begin + SHORT if a.short else float("inf")):
        findings.write(stem, head, [])
    everybody.end()
    if not findings.text and not findings.last[0]:
        sys.exit(f'ROW="{a.row}": no row has this in "group: title". Groups: ' +
                 "; ".join(dict.fromkeys(r.group for r in ROWS)))
    print(
        findings.write(stem, head, [f"{name} {why}.\n" for name, why in everybody.missing.items()]))
    if stem:
        print(f"wrote {stem}.md, {stem}.svg and {stem}-summary.svg")
    return 1 if findings.off else 0


if __name__ == "__main__":
    sys.exit(main())
