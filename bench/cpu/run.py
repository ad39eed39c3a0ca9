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
from chart import draw
from expected import error, expected
from libraries import versions
from participants import Participants
from processor import this_processor
from report import (Line, against_each, commit, compiler, figures, is_unsteady, plural, summary,
                    table)
from rows import ROWS

PATIENCE = 6.0  # seconds of samples of one row, after which three are enough
SAMPLES = 5
MOST, UNSTEADY = 15, 0.1  # maximum rounds of a row whose spread exceeds UNSTEADY
SHORT = 260.0  # seconds for the rows of the selection; five minutes in all
LONG = 870.0  # seconds for all rows; at most 20 minutes in all
WARM = 0.5  # seconds of a call that is its own warm-up
SLOW = 2.0, 10.0  # a peer is left out of a row if a call takes so many seconds and times ours


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
        begin = time.perf_counter()
        answer = one.ask("result " + path)
        spent = time.perf_counter() - begin
        ok = answer.startswith("ok")
        off, most = error(row, path, wanted) if ok and answer != "ok 0" else (float("nan"), 0)
        if not off <= most:
            wrong.append(f"{name}: result off by {off:.2g}" if ok else f"{name}: {answer}")
            return None
        if name == "devtensor":
            row.seconds = spent
        elif not row.few and spent > SLOW[0] and spent > SLOW[1] * row.seconds:
            wrong.append(f"{name}: left out, a call takes {spent:.1f} s")
            return None
    if not row.few and (name == "machine" or spent < WARM):  # else the result was the warm-up
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
    """Contents of the document: sections, summary lines, number of our wrong results."""

    def __init__(self):
        self.text, self.lines, self.off = [], [], 0
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

    def section(self, found):
        for kept, more in zip(self.last, found):
            kept.extend(more)

    def write(self, stem, head, tail):
        """Returns the document; with a stem, writes it and the charts."""
        lines = self.lines + self.last[1]
        document = "\n".join(
            [*head, f"## Summary\n\n{summary(lines)}\n", *self.text, *self.last[0], *tail])
        if stem:
            with open(stem + ".md", "w", encoding="utf-8") as file:
                file.write(document)
            draw(stem + ".md")
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


class Head:
    """The first lines of the document. They name the peers that have been started so far."""

    def __init__(self, options, processor, widths, everybody):
        self.everybody, self.python = everybody, options.python
        self.title = (f"# cpu() versus other libraries: {processor.title}; {processor.caches}; "
                      f"{datetime.date.today()}, commit {commit()}\n")
        isa = f"DEVTENSOR_ISA={processor.isa} " if os.environ.get("DEVTENSOR_ISA") else ""
        row = f' ROW="{options.row}"' if options.row else ""
        threads = f" THREADS={options.threads}" if options.threads else ""
        self.command = (f"Command: `{isa}make bench-cpu{' SHORT=1' * options.short}{row}{threads}` "
                        f"with at most {plural(max(widths))}; {compiler()}.\n")
        self.method = (
            f"Medians of {3 if options.short else SAMPLES} to {MOST} interleaved samples (three of "
            "long ones). A ratio is the median over rounds of samples. Every result was compared "
            "with float64 in the same run. All libraries except MLX write matrix products into an "
            "existing array (`dvt_matmul_with`). MLX is lazy: each call ends with `mx.eval`. Its "
            "number of threads cannot be set, its convolutions are in NHWC, and their gradients "
            "in `mx.compile`. Larger is better. The bold number is devtensor over the best peer, "
            "which follows it.\n")

    def lines(self):
        peers = versions(self.python, self.everybody.used)
        return [self.title, self.command, f"Peers: {peers}. {self.everybody.limits.text()}\n",
                self.method]


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
    processor = this_processor(f"{a.build}/bench/cpu/ours")

    def chosen(group, title):
        return a.row.lower() in f"{group}: {title}".lower()
    rows = [r for r in ROWS if chosen(r.group, r.title) and (r.short or not a.short)]
    samples, seconds = SAMPLES, 0.02 if a.short else 0.05
    widths = [t for t in (1, 2) if t <= len(os.sched_getaffinity(0)) and a.threads in (0, t)]
    if not widths:
        sys.exit(f"THREADS={a.threads}: this process may use one processor only")
    # A partial table must not replace the whole one.
    part = "".join(f"-{word}" for word in re.findall(r"\w+", a.row.lower()))
    part += (f"-{plural(a.threads)}".replace(" ", "-") if a.threads else "") + "-short" * a.short
    stem = os.path.join(a.out, processor.stem + part) if a.out else ""
    if a.out:
        os.makedirs(a.out, exist_ok=True)
    everybody, findings = Participants(a.build, a.python, processor), Findings()
    findings.section(whole.sections(a.build, a.python, processor, widths, chosen, a.short))
    findings.section(
        busy_core.section(a.build, a.python, processor, widths, chosen, a.short))

    head = Head(a, processor, widths, everybody)
    for _ in compare(rows, everybody, samples, seconds, widths, findings,
                     begin + (SHORT if a.short else LONG)):
        # A run that is stopped early leaves this, and the earlier table as it was.
        findings.write(os.path.join(a.build, "bench/cpu", processor.stem + "-unfinished"),
                       head.lines(), [])
    everybody.end()
    if not findings.text and not findings.last[0]:
        sys.exit(f'ROW="{a.row}": no row has this in "group: title". Groups: ' +
                 "; ".join(dict.fromkeys(r.group for r in ROWS)))
    missing = [f"{name} {why}.\n" for name, why in everybody.missing.items()]
    print(findings.write(stem, head.lines(), missing))
    if stem:
        print(f"wrote {stem}.md, {stem}.svg and {stem}-summary.svg")
    return 1 if findings.off else 0


if __name__ == "__main__":
    sys.exit(main())
