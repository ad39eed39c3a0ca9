"""Tables of the comparison, and the description of the machine."""
import os
import statistics
import subprocess
import typing


def plural(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


class Figure(typing.NamedTuple):
    """A participant's samples of one row.

    samples: work per second. over: devtensor's over these, by round (None without devtensor's).
    """
    median: float
    samples: list
    over: typing.Optional[list]

    @property
    def ratio(self):
        return statistics.median(self.over) if self.over else None


def spread(values):
    """Returns the interquartile range over the median."""
    values = sorted(values)
    return (values[-1 - len(values) // 4] - values[len(values) // 4]) / statistics.median(values)


def figures(taken):
    """Turns {name: [work per second in each round]} into {name: Figure}."""
    ours = taken.get("devtensor")
    return {
        name: Figure(
            statistics.median(theirs), theirs,
            None if name == "devtensor" or not ours else [a / b for a, b in zip(ours, theirs)])
        for name, theirs in taken.items() if theirs
    }


def over_best(result):
    """Returns the lowest ratio of devtensor over a peer, and the peer's name; or None."""
    return min(((f.ratio, name) for name, f in result.items() if name != "machine" and f.over),
               default=None)


def is_unsteady(result, most):
    """Tells whether the interquartile range of the ratio to the best peer exceeds `most`."""
    best = over_best(result)
    return bool(best) and spread(result[best[1]].over) > most


def table(rows, threads):
    """Returns the table of one group and its ratios over the best peer.

    rows: [(row, {name: Figure}, errors)]
    """
    names = sorted({n for _, r, _ in rows for n in r if n not in ("devtensor", "machine")})
    limited = any("machine" in r for _, r, _ in rows)
    head = [
        "devtensor", *names, "over the best", "spread",
        *(["machine limit", "reached"] if limited else [])
    ]
    lines = [
        f"| {rows[0][0].unit}, {plural(threads)} | " + " | ".join(head) + " |",
        "|---" * (len(head) + 1) + "|"
    ]
    ratios, notes = [], []
    for row, result, wrong in rows:
        ours = result.get("devtensor")
        best = over_best(result)
        if best:
            ratios.append(best[0])
        cells = [f"{result[n].median:.3g}" if n in result else "" for n in ("devtensor", *names)]
        cells += [
            f"**{best[0]:.2f}** {best[1]}" if best else "",
            f"{100 * spread(result[best[1]].over):.0f} %" if best else ""
        ]
        if limited:
            most = result.get("machine")
            cells += [
                f"{most.median:.3g}" if most else "",
                f"{100 * most.ratio:.0f} %" if most and ours else ""
            ]
        lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
        notes += [f"{row.title}: {w}." for w in wrong]
    lines += [""] + list(dict.fromkeys(notes))
    if ratios:
        mean = statistics.geometric_mean(ratios)
        lines.append(f"\nGeometric mean over the best peer of each row: {mean:.2f}; "
                     f"the lowest: {min(ratios):.2f}.")
    return "\n".join(lines) + "\n", ratios


def against_each(rows):
    """Returns {peer: geometric mean of ours over it}."""
    ratios = {}
    for _, result, _ in rows:
        for name, figure in result.items():
            if name != "machine" and figure.over:
                ratios.setdefault(name, []).append(figure.ratio)
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
        if value is None:
            return ""
        if value >= 1000:
            return f"{value:.0f}"
        return f"{value:.3g}" if value >= 10 else f"{value:.2f}"

    head = ("| | threads | rows | geometric mean over the best | lowest row | over PyTorch |\n"
            "|---|---|---|---|---|---|\n")
    return head + "\n".join(
        f"| {x.title} | {x.threads or ''} | {x.rows} | **{shown(x.mean)}** | {shown(x.lowest)} "
        f"| {shown(x.torch)} |" for x in lines)


def compiler():
    return subprocess.run(["cc", "--version"], capture_output=True, text=True).stdout.split("\n")[0]


def machine():
    model = next((line.split(":")[1].strip()
                  for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return f"{model}, {plural(len(os.sched_getaffinity(0)))}; {compiler()}"


def commit():
    """Returns the commit, with -dirty after changes to anything but the results."""
    def git(*words):
        return subprocess.run(["git", *words], capture_output=True, text=True).stdout.strip()
    found = git("describe", "--always")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results",
                  ":!README.md")
    return (found + "-dirty" * bool(changed)) or "unknown"
