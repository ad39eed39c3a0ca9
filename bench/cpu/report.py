"""Tables of the comparison, and what they were measured on."""
import os
import statistics
import subprocess
import typing


def plural(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def table(rows, threads):
    """The table of one group and its ratios over the best peer. rows: [(row, {name: (median, low, high)}, what was wrong)]."""
    names = sorted({n for _, r, _ in rows for n in r if n not in ("devtensor", "machine")})
    limited = any("machine" in r for _, r, _ in rows)
    head = ["devtensor", *names, "over the best", "spread", *(["the machine can", "reached"] if limited else [])]
    lines = [f"| {rows[0][0].unit}, {plural(threads)} | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    ratios, notes = [], []
    for row, result, wrong in rows:
        ours = result.get("devtensor")
        best = max((result[n][0] for n in names if n in result), default=None)
        ratio = ours[0] / best if ours and best else None
        if ratio:
            ratios.append(ratio)
        cells = [f"{result[n][0]:.3g}" if n in result else "" for n in ("devtensor", *names)]
        cells += [f"**{ratio:.2f}**" if ratio else "", f"{100 * (ours[2] - ours[1]) / ours[0]:.0f} %" if ours else ""]
        if limited:
            most = result.get("machine")
            cells += [f"{most[0]:.3g}" if most else "", f"{100 * ours[0] / most[0]:.0f} %" if most and ours else ""]
        lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
        notes += [f"{row.title}: {w}." for w in wrong]
    lines += [""] + list(dict.fromkeys(notes))
    if ratios:
        lines.append(f"\nGeometric mean over the best peer of each row: {statistics.geometric_mean(ratios):.2f}; the lowest: {min(ratios):.2f}.")
    return "\n".join(lines) + "\n", ratios


def against_each(rows):
    """{peer: geometric mean of ours over it}."""
    ratios = {}
    for _, result, _ in rows:
        for name, value in result.items():
            if name not in ("devtensor", "machine") and "devtensor" in result:
                ratios.setdefault(name, []).append(result["devtensor"][0] / value[0])
    return {name: statistics.geometric_mean(r) for name, r in sorted(ratios.items())}


class Line(typing.NamedTuple):
    """One line of the summary."""
    title: str
    threads: typing.Optional[int]
    rows: int
    mean: float
    lowest: float
    torch: typing.Optional[float]


def summary(lines):
    def shown(value):
        return "" if value is None else f"{value:.3g}" if value >= 10 else f"{value:.2f}"
    head = "| | threads | rows | geometric mean over the best | lowest | over PyTorch |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(f"| {x.title} | {x.threads or ''} | {x.rows} | **{shown(x.mean)}** | {shown(x.lowest)} | {shown(x.torch)} |" for x in lines)


def summary_chart(lines):
    return {"geometric mean over the best of the others, by kind of work": [
        (x.title + (f", {plural(x.threads)}" if x.threads else ""), x.mean, "the best of each row") for x in lines]}


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    return f"{model}, {plural(len(os.sched_getaffinity(0)))}; {compiler}"


def versions(python):
    """Of the Python libraries and of Debian's packages."""
    text = []
    for package in ("torch", "numpy", "jax", "numexpr", "onnxruntime", "scipy-openblas32"):
        found = subprocess.run([python, "-c", f"import importlib.metadata as m; print(m.version('{package}'))"], capture_output=True, text=True)
        text += [f"{package} {found.stdout.strip()}"] if found.returncode == 0 else []
    debian = ["libblis4-pthread", "libdnnl2", "libxsmm-dev", "libsleef3"]
    if not any(t.startswith("scipy-openblas32") for t in text):
        debian.append("libopenblas0-pthread")
    for package in debian:
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
        text += [f"{package} {found.stdout.strip()}"] if found.returncode == 0 and found.stdout.strip() else []
    return ", ".join(text)
