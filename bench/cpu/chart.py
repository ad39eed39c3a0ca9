"""Draws the charts of tables that run.py wrote.

    chart.py TABLE.md...           writes TABLE.svg, the rows, and TABLE-summary.svg
    chart.py --check TABLE.md...   only checks whether that would change anything

A bar goes from 1 to devtensor over the best peer, on a log scale.
"""
import math
import os
import re
import sys
from html import escape

ROW, SCALE, SIZE = 18, 60, 12  # pixels: of a row, of a factor of 2, of the letters
# Widths in parts of the size: at least those of DejaVu Sans, the widest of the usual fonts.
NARROW, WIDE, OTHER = "filjtI.,:;|'!()[] ", "mwMW%@", 0.66


def text_width(text, size=SIZE):
    """Returns a width in which the text fits."""
    return size * sum(
        0.42 if c in NARROW else 0.99 if c in WIDE else 0.8 if c.isupper() else OTHER
        for c in text)


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text):
    try:
        return float(text)
    except ValueError:
        return 0.0


def best_peer(head, row):
    """Returns (ratio, peer) of a row, or None. Older tables name the peer by its speed only."""
    at = head.index("over the best")
    found = re.match(r"\*\*([\d.]+)\*\* ?(.*)", row[at]) if at < len(row) else None
    if not found:
        return None
    peer = found[2] or max(zip(row[2:at], head[2:at]), key=lambda x: number(x[0]))[1]
    return float(found[1]), peer


def tables(text):
    """Yields (section, head, rows) of each table."""
    section, head, rows = "", None, []
    for line in text.split("\n") + [""]:
        if line.startswith("## "):
            section = line[3:]
        if line.startswith("|"):
            if head is None:
                head = cells(line)
            elif not line.startswith("|--"):
                rows.append(cells(line))
        elif head:
            yield section, head, rows
            head, rows = None, []


def rows_of(text):
    """Returns {title: [(row, ratio, note)]} of the tables of rows."""
    charts = {}
    for section, head, rows in tables(text):
        if "over the best" in head:
            threads = head[0].rpartition(", ")[2]
            charts[f"{section}, {threads}: devtensor over the best peer"] = [
                (row[0], *best_peer(head, row)) for row in rows if best_peer(head, row)]
    return charts


def peers_of(text):
    """Returns {(section, threads): names of the peers}."""
    found = {}
    for section, head, _ in tables(text):
        if "over the best" in head:
            threads = head[0].rpartition(", ")[2].split()[0]
            found[section, threads] = head[2:head.index("over the best")]
    return found


def summary_of(text):
    """Returns {title: [(row, ratio, note)]} of the summary."""
    peers = peers_of(text)
    for section, _, rows in tables(text):
        if section == "Summary":
            found = []
            for title, threads, count, mean, lowest, _ in rows:
                name = title + (f", {threads} thread{'s' * (threads != '1')}" if threads else "")
                notes = [f"lowest of {count}: {lowest}"] if count != "1" else []
                notes += [", ".join(peers[title, threads])] if (title, threads) in peers else []
                found.append((name, float(mean.strip("*")), "; ".join(notes)))
            return {"geometric means of devtensor over the best peer of each row": found}
    return {}


def shown(ratio):
    return f"{ratio:.3g}" if ratio >= 10 else f"{ratio:.2f}"


def bars(machine, charts):
    """Returns the SVG of charts: {title: [(name of the row, ratio, note behind the bar)]}."""
    charts = {title: found for title, found in charts.items() if found}
    found = [row for rows in charts.values() for row in rows]
    if not found:
        return ""
    powers = [math.log2(max(1e-3, ratio)) for _, ratio, _ in found]
    low, high = math.floor(min(-1, *powers)), math.ceil(max(1, *powers))
    left = 16 + max(text_width(name) for name, _, _ in found)
    # The value stands behind the bar, which ends at 1 or later.
    right = max(left + (max(0, p) - low) * SCALE + 8 + text_width(f"{shown(r)}  {note}", 10)
                for p, (_, r, note) in zip(powers, found))
    width = max(right, left + (high - low) * SCALE + 16,
                *(8 + text_width(title, 13) * 1.1 for title in (machine, *charts)))

    def place(power):
        return round(left + (power - low) * SCALE, 1)
    out, y = [f'<text x="8" y="20" class="title">{escape(machine)}</text>'], 48
    for title, rows in charts.items():
        out.append(f'<text x="8" y="{y}" class="title">{escape(title)}</text>')
        y += 8
        bottom = y + len(rows) * ROW
        for power in range(low, high + 1):
            x = place(power)
            out.append(f'<line x1="{x}" y1="{y}" x2="{x}" y2="{bottom}" '
                       f'class="{"grid" if power else "one"}"/>'
                       f'<text x="{x}" y="{bottom + 12}" class="scale">{2.0**power:g}</text>')
        for name, ratio, note in rows:
            x, one, middle = place(math.log2(max(1e-3, ratio))), place(0), y + ROW / 2
            kind = "ahead" if ratio >= 1 else "behind"
            out.append(
                f'<text x="{round(left - 8, 1)}" y="{middle + 4}" class="row">{escape(name)}</text>'
                f'<rect x="{min(x, one)}" y="{middle - 5}" '
                f'width="{max(1, round(abs(x - one), 1))}" height="10" class="{kind}"/>'
                f'<text x="{max(x, one) + 4}" y="{middle + 4}" class="value">{shown(ratio)}'
                f'<tspan dx="5" class="note">{escape(note)}</tspan></text>')
            y += ROW
        y += 44
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{math.ceil(width)}" '
            f'height="{y - 16}" font-family="sans-serif" font-size="{SIZE}">'
            "<style>.title{font-weight:bold}.row{text-anchor:end}"
            ".scale{text-anchor:middle;fill:#666;font-size:10px}"
            ".value{fill:#333;font-size:10px}.note{fill:#777}.grid{stroke:#ddd}.one{stroke:#333}"
            ".ahead{fill:#2a7}.behind{fill:#c64}</style>"
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(out)}</svg>\n')


def charts_of(table):
    """Returns {path: SVG} of the table at this path."""
    with open(table, encoding="utf-8") as file:
        text = file.read()
    stem, machine = table[:-3], text.split("\n")[0].lstrip("# ").partition(": ")[2]
    return {stem + ".svg": bars(machine, rows_of(text)),
            stem + "-summary.svg": bars(machine, summary_of(text))}


def draw(table):
    """Writes both charts of the table at this path."""
    for path, drawn in charts_of(table).items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(drawn)


def is_drawn(table):
    for path, drawn in charts_of(table).items():
        if not os.path.exists(path):
            return False
        with open(path, encoding="utf-8") as file:
            if file.read() != drawn:
                return False
    return True


def main():
    if sys.argv[1] != "--check":
        for table in sys.argv[1:]:
            draw(table)
        return
    stale = [table for table in sys.argv[2:] if not is_drawn(table)]
    if stale:
        sys.exit(f"run python3 bench/cpu/chart.py {' '.join(stale)}")


if __name__ == "__main__":
    main()
