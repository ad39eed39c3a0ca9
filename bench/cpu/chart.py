"""Draws charts of ratios as SVG: a bar from 1 to devtensor over the best peer, on a log scale."""
import math
from html import escape

from report import over_best

ROW, LEFT, WIDTH, TOP = 18, 370, 400, 44


def ratios(measured):
    """Returns the (title, ratio, best peer) of rows [(row, {name: Figure}, wrong)]."""
    found = []
    for row, result, _ in measured:
        best = over_best(result)
        if best:
            found.append((row.title, *best))
    return found


def bars(path, charts):
    """Writes charts: {title: [(name of the row, ratio, name of the peer)]}."""
    out, y = [], 24
    for title, found in charts.items():
        if not found:
            continue
        out.append(f'<text x="8" y="{y}" class="title">{escape(title)}</text>')
        y += 8
        bottom = y + len(found) * ROW
        for value in (0.25, 0.5, 1, 2, 4, 8, 16, 32):
            x = place(value)
            kind = "one" if value == 1 else "grid"
            out.append(
                f'<line x1="{x}" y1="{y}" x2="{x}" y2="{bottom}" class="{kind}"/>'
                f'<text x="{x}" y="{bottom + 12}" class="scale">{value:g}</text>')
        for name, ratio, best in found:
            x, one, middle = place(ratio), place(1), y + ROW / 2
            kind = "ahead" if ratio >= 1 else "behind"
            out.append(
                f'<text x="{LEFT - 8}" y="{middle + 4}" class="row">{escape(name)}</text>'
                f'<rect x="{min(x, one)}" y="{middle - 5}" width="{max(1, abs(x - one))}" '
                f'height="10" class="{kind}"><title>{ratio:.2f} of {escape(best)}</title></rect>'
                f'<text x="{max(x, one) + 4}" y="{middle + 4}" class="value">{ratio:.2f}</text>')
            y += ROW
        y += TOP
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 50}" height="{y}" '
            'font-family="sans-serif" font-size="12">'
            "<style>.title{font-weight:bold}.row{text-anchor:end}"
            ".scale{text-anchor:middle;fill:#666;font-size:10px}"
            ".value{fill:#333;font-size:10px}.grid{stroke:#ddd}.one{stroke:#333}"
            ".ahead{fill:#2a7}.behind{fill:#c64}</style>"
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(out)}</svg>\n')


def place(ratio):
    """Returns the x coordinate of a ratio: 1/4 at the left end, 32 at the right one."""
    part = (math.log2(min(32, max(0.25, ratio))) + 2) / 7
    return round(LEFT + part * WIDTH, 1)
