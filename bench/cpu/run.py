"""Compares devtensor on cpu() with what a user would pick instead: make bench-cpu [ROW=text] [SHORT=1].

Every participant is a process that answers runner.h's commands, so that samples of all of them can be taken in turn. A sample repeats
the call for some milliseconds; a row's figure is the median over the samples, its spread the middle half of them. Before that, each
participant's result is compared with float64. Writes a table in Markdown and charts in SVG."""
import argparse
import datetime
import os
import statistics
import subprocess
import sys
import tempfile

from chart import bars
from rows import ROWS, error, expected

TOLERANCE = {"mm": 2e-5, "conv": 1e-4, "mm_norms": 1e-4, "var": 1e-4, "layernorm": 2e-5, "softmax": 1e-5}
LIBRARIES = {"openblas": ("libopenblas.so.0", "cblas"), "blis": ("libblis.so.4", "cblas"), "dnnl": ("libdnnl.so.2", "dnnl"),
             "xsmm": ("libxsmm.so.1", "xsmm")}


class Participant:
    def __init__(self, name, command, threads):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "DEVTENSOR_"))}
        several = {k: str(threads) for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS",
                                             "NUMEXPR_NUM_THREADS", "DEVTENSOR_NUM_THREADS")}
        pinned = ["taskset", "-c", "0"] if threads == 1 else []
        self.name = name
        self.process = subprocess.Popen([*pinned, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env={**keep, **several, "OMP_PROC_BIND": "true",
                                                                        "DEVTENSOR_CUDA": "0"})

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            return self.process.stdout.readline().strip() or "no answer"
        except OSError:
            return "no answer"

    def end(self):
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


class Participants:
    """Started when a row needs them, one set for each number of threads."""

    def __init__(self, build, python):
        self.build, self.python, self.running, self.missing = build, python, {}, {}

    def get(self, name, threads):
        key = name, threads
        if key not in self.running and name not in self.missing:
            made = Participant(name, self.command(name, threads), threads)
            if made.ask("sample 0") == "no answer":
                self.missing[name] = "could not be started"
                made.end()
            else:
                self.running[key] = made
        return self.running.get(key)

    def command(self, name, threads):
        if name == "devtensor":
            return [f"{self.build}/bench/cpu/ours"]
        if name in LIBRARIES:
            return [f"{self.build}/bench/cpu/blas", *LIBRARIES[name]]
        library, *form = name.split(" ")
        return [self.python, os.path.join(os.path.dirname(__file__), "peer.py"), library, str(threads), *form]

    def end(self):
        for one in self.running.values():
            one.end()


def measure(row, threads, everybody, samples, seconds, folder):
    """{name: (median, low, high) of work per second}, and what was wrong."""
    wanted, taking_part, wrong = expected(row), {}, []
    for name in ("devtensor", *row.peers):
        one = everybody.get(name, threads)
        if not one:
            continue
        answer = one.ask(row.command)
        if answer != "ok":
            if not answer.startswith("no such") and answer != "no only products":
                wrong.append(f"{name}: {answer[3:]}")
            continue
        if wanted is not None:
            path = os.path.join(folder, "result")
            answer = one.ask("result " + path)
            off = error(row, path, wanted) if answer.startswith("ok") and answer != "ok 0" else float("nan")
            if not off <= TOLERANCE.get(row.op, 1e-5):
                wrong.append(f"{name}: result off by {off:.2g}")
                continue
        one.ask(f"sample {seconds}")  # warm-up
        taking_part[name] = (one, [])
    for _ in range(samples):
        for name, (one, taken) in taking_part.items():
            answer = one.ask(f"sample {seconds}")
            if answer.startswith("no"):
                wrong.append(f"{name}: {answer}")
                break
            taken.append(row.work / float(answer.split()[0]))
    result = {}
    for name, (_, taken) in taking_part.items():
        if len(taken) < samples:
            continue
        taken.sort()
        result[name] = (statistics.median(taken), taken[len(taken) // 4], taken[-1 - len(taken) // 4])
    return result, wrong


def table(rows, threads):
    names = sorted({n for _, r, _ in rows for n in r if n != "devtensor"})
    unit = rows[0][0].unit
    lines = [f"| {unit}, {threads} thread{'s' if threads > 1 else ''} | devtensor | " + " | ".join(names) + " | over the best | spread |",
             "|---" * (len(names) + 4) + "|"]
    ratios = []
    for row, result, wrong in rows:
        ours = result.get("devtensor")
        best = max((result[n][0] for n in names if n in result), default=None)
        ratio = ours[0] / best if ours and best else None
        if ratio:
            ratios.append(ratio)
        cells = [f"{result[n][0]:.3g}" if n in result else "" for n in ("devtensor", *names)]
        spread = f"{100 * (ours[2] - ours[1]) / ours[0]:.0f} %" if ours else "; ".join(wrong)
        lines.append(f"| {row.title} | " + " | ".join(cells) + f" | {f'**{ratio:.2f}**' if ratio else ''} | {spread} |")
        lines += [f"\n{w}\n" for w in wrong if ours and w]
    if ratios:
        lines.append(f"\nGeometric mean over the best peer of each row: {statistics.geometric_mean(ratios):.2f}; the lowest: {min(ratios):.2f}.")
    return "\n".join(lines) + "\n", ratios


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    return f"{model}, {len(os.sched_getaffinity(0))} threads; {compiler}"


def versions(python):
    """Of the Python libraries and of Debian's packages."""
    text = []
    for package in ("torch", "numpy", "jax", "numexpr"):
        found = subprocess.run([python, "-c", f"import importlib.metadata as m; print(m.version('{package}'))"], capture_output=True, text=True)
        text += [f"{package} {found.stdout.strip()}"] if found.returncode == 0 else []
    for package in ("libopenblas0-pthread", "libblis4-pthread", "libdnnl2", "libxsmm-dev"):
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
        text += [f"{package} {found.stdout.strip()}"] if found.returncode == 0 and found.stdout.strip() else []
    return ", ".join(text)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--build", required=True)
    parse.add_argument("--python", default=sys.executable)
    parse.add_argument("--row", default="", help="only rows whose group or title contains this")
    parse.add_argument("--short", action="store_true", help="a selection that fits in five minutes")
    parse.add_argument("--threads", type=int, default=0, help="only with this number of threads")
    parse.add_argument("--out", default="", help="folder of the table and charts; else only printed")
    a = parse.parse_args()
    rows = [r for r in ROWS if a.row.lower() in f"{r.group}: {r.title}".lower() and (r.short or not a.short)]
    samples, seconds = (5, 0.02) if a.short else (11, 0.05)
    everybody = Participants(a.build, a.python)
    width = len(os.sched_getaffinity(0))
    text = [f"# cpu() beside other libraries, {datetime.date.today()}\n",
            f"Machine: {machine()}. Command: `make bench-cpu{' SHORT=1' if a.short else ''}`. Peers: {versions(a.python)}. Medians of {samples} samples taken in turn; "
            "every result was compared with float64 in the same run. Larger is better; the column in bold is devtensor over the best peer.\n"]
    charts, all_off = {}, 0
    summary = ["| | threads | rows | geometric mean | lowest |\n|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for group in dict.fromkeys(r.group for r in rows):
            text.append(f"## {group}\n")
            for threads in (1, 2):
                if threads > width or a.threads not in (0, threads):
                    continue
                measured = []
                for row in (r for r in rows if r.group == group and threads in r.threads):
                    result, wrong = measure(row, threads, everybody, samples, seconds, folder)
                    measured.append((row, result, wrong))
                    all_off += sum(w.startswith("devtensor") for w in wrong)
                    print(f"{threads}T {row.title}: " + "  ".join(f"{n} {v[0]:.3g}" for n, v in result.items()), *wrong, flush=True)
                if measured:
                    part, ratios = table(measured, threads)
                    text.append(part)
                    if ratios:
                        summary.append(f"| {group} | {threads} | {len(ratios)} | **{statistics.geometric_mean(ratios):.2f}** | "
                                       f"{min(ratios):.2f} |")
                        charts[f"{group}, {threads} thread{'s' if threads > 1 else ''}"] = measured
    everybody.end()
    text.insert(2, "## Summary\n\n" + "\n".join(summary) + "\n")
    text += [f"{name} {why}.\n" for name, why in everybody.missing.items()]
    document = "\n".join(text)
    print(document)
    if a.out:
        stem = os.path.join(a.out, f"{datetime.date.today()}-cpu")
        with open(stem + ".md", "w", encoding="utf-8") as file:
            file.write(document)
        bars(stem + ".svg", charts)
        print(f"wrote {stem}.md and {stem}.svg")
    return 1 if all_off else 0


if __name__ == "__main__":
    sys.exit(main())
