"""Writes the speed rows of the README from the summaries of tables that run.py wrote.

    readme.py [TABLE [TABLE]] README   writes them between the README's two markers
    readme.py --check README           only checks whether that would change anything

One or two tables, each of another processor or ISA target. Without one it uses those that the
README links.
"""
import os
import re
import sys
import textwrap

BEGIN, END = "<!-- bench-cpu: begin -->", "<!-- bench-cpu: end -->"
ROWS = ["matrix products, float32", "vector functions, float32", "along axes, float32",
        "convolutions, ResNet shapes", "LeNet training step", "one operation on 3 floats"]


class Table:
    """name: the processor and ISA target. rows: the summary's cells by title and threads."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        head = re.match(r"# .*?: (.*?); .*; (\d{4}-\d\d-\d\d), commit (\S+)\n", text)
        peers = re.search(r"^Peers: (.*?)\. ", text, re.M)
        block = re.search(r"^## Summary\n\n(.*?)\n\n", text, re.M | re.S)
        lines = [line.strip("|").split("|") for line in block[1].splitlines()[2:]] if block else []
        self.rows = {(cells[0].strip(), cells[1].strip()): [cell.strip() for cell in cells[2:]]
                     for cells in lines}
        missing = [title for title in ROWS if (title, "1") not in self.rows]
        if not head or not peers or missing:
            sys.exit(f"{path} lacks its heading, peers or rows {missing}: run.py did not write "
                     "it, or did not finish")
        self.name, self.day, self.commit = head.groups()
        self.peers = [re.match(r"(.*?) \d", peer)[1] for peer in peers[1].split(", ")]
        # "AMD EPYC amd-19-11 (Zen 4), AVX-512" is "Zen 4, AVX-512" in the table.
        core = re.search(r"\((.*?)\)(, .*)", self.name)
        self.short = core[1] + core[2] if core else self.name

    def ratio(self, title, threads):
        cells = self.rows.get((title, threads))
        return cells[1] if cells else ""


def part(paths, readme):
    tables = [Table(path) for path in paths]
    heads = [f"{t.short}: 1 thread | 2 threads | over PyTorch, 1 thread" for t in tables]
    lines = [f"| speed of `cpu()` over the best peer | {' | '.join(heads)} |",
             "|---" * (1 + 3 * len(tables)) + "|"]
    for title in ROWS:
        cells = [f"{t.ratio(title, '1')} | {t.ratio(title, '2')} | {t.rows[title, '1'][3]}"
                 for t in tables]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    runs = "; ".join(f"{t.name}, {t.day}, commit {t.commit}" for t in tables)
    peers = dict.fromkeys(peer for t in tables for peer in t.peers)
    links = [os.path.relpath(path, os.path.dirname(os.path.abspath(readme))) for path in paths]
    words = textwrap.fill(
        f"Geometric means; above 1 devtensor is faster. {runs}; `make bench-cpu`. Peers: "
        f"{', '.join(peers)}. All rows, versions and settings: "
        f"{', '.join(f'[{link}]({link})' for link in links)}.", 100, break_on_hyphens=False,
        break_long_words=False)
    return "\n".join(lines) + f"\n\n{words}"


def main():
    check = sys.argv[1] == "--check"
    *tables, readme = sys.argv[2 if check else 1:]
    with open(readme, encoding="utf-8") as file:
        old = file.read()
    if BEGIN not in old or END not in old:
        sys.exit(f"{readme} has no markers {BEGIN} and {END}")
    linked = re.findall(r"\]\((\S*/cpu-\S*\.md)\)", old[old.index(BEGIN):old.index(END)])
    tables = tables or [os.path.join(os.path.dirname(readme), link) for link in linked]
    if not 1 <= len(tables) <= 2:
        sys.exit(f"{readme} links {len(linked)} tables; give one or two")
    new = old[:old.index(BEGIN)] + BEGIN + "\n" + part(tables, readme) + "\n" + old[old.index(END):]
    if check:
        sys.exit(0 if new == old else f"{readme} does not show {' and '.join(tables)}; "
                 f"run python3 bench/cpu/readme.py {readme}")
    with open(readme, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
