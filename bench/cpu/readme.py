"""Writes the speed rows of the README from the summary of a table that run.py wrote.

    readme.py [TABLE] README           writes them between the README's two markers
    readme.py --check README           only checks whether that would change anything

Without a TABLE it uses the one that the README links.
"""
import os
import re
import sys
import textwrap

BEGIN, END = "<!-- bench-cpu: begin -->", "<!-- bench-cpu: end -->"
ROWS = ["matrix products, float32", "vector functions, float32", "along axes, float32",
        "convolutions, ResNet shapes", "LeNet training step", "one operation on 3 floats"]


def summary(text):
    """Returns the summary's cells by title and number of threads."""
    block = re.search(r"^## Summary\n\n(.*?)\n\n", text, re.M | re.S)
    lines = [] if not block else [line.strip("|").split("|") for line in block[1].splitlines()[2:]]
    return {(cells[0].strip(), cells[1].strip()): [cell.strip() for cell in cells[2:]]
            for cells in lines}


def part(table, readme):
    with open(table, encoding="utf-8") as file:
        text = file.read()
    machine = re.search(r"^Machine: (.*?), \d+ threads;", text, re.M)
    commit = re.search(r", devtensor at (\w+)\.", text)
    peers = re.search(r"\. Peers: (.*?)\. Medians", text)
    cells = summary(text)
    missing = [title for title in ROWS if (title, "1") not in cells]
    if not machine or not commit or not peers or missing:
        sys.exit(
            f"{table} lacks its machine, commit, peers or rows {missing}: run.py did not write it, "
            "or did not finish")
    stem = os.path.relpath(table, os.path.dirname(os.path.abspath(readme)))[:-3]
    day = re.match(r"[\d-]*\d", os.path.basename(table))[0]
    names = ", ".join(peer.split()[0] for peer in peers[1].split(", "))
    lines = [
        "| speed of `cpu()` over the best peer | 1 thread | 2 threads | over PyTorch, 1 thread |",
        "|---|---|---|---|"
    ]
    for title in ROWS:
        one, two = cells[title, "1"], cells.get((title, "2"))
        lines.append(f"| {title} | {one[1]} | {two[1] if two else ''} | {one[3]} |")
    words = textwrap.fill(
        f"Geometric means; above 1 devtensor is faster. {machine[1]}, {day}, commit {commit[1]}, "
        f"`make bench-cpu`. Peers: {names}. All rows and versions: [{stem}.md]({stem}.md).", 100,
        break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines) + f"\n\n{words}"


def main():
    check = sys.argv[1] == "--check"
    *tables, readme = sys.argv[2 if check else 1:]
    with open(readme, encoding="utf-8") as file:
        old = file.read()
    if BEGIN not in old or END not in old:
        sys.exit(f"{readme} has no markers {BEGIN} and {END}")
    linked = re.findall(r"\]\((\S*-cpu\.md)\)", old)
    if not tables and not linked:
        sys.exit(f"{readme} links no table, and none was given")
    table = tables[0] if tables else os.path.join(os.path.dirname(readme), linked[0])
    new = old[:old.index(BEGIN)] + BEGIN + "\n" + part(table, readme) + "\n" + old[old.index(END):]
    if check:
        sys.exit(0 if new == old else
                 f"{readme} does not show {table}; run python3 bench/cpu/readme.py {readme}")
    with open(readme, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
