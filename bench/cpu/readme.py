"""Puts the summaries of tables of run.py into the README, between its two markers: readme.py TABLE... README. With --check in front it only
says whether that would change anything; without a TABLE those that the README has."""
import os
import re
import sys

SUBJECT = "How many times the speed of the best other library devtensor has, by kind of work"


def part(table, readme):
    with open(table, encoding="utf-8") as file:
        text = file.read()
    machine = re.search(r"^Machine: (.*?)\. Command: (`.*?`)", text, re.M)
    summary = re.search(r"^## Summary\n\n(.*?)\n\n", text, re.M | re.S)
    peers = re.search(r"\. Peers: (.*?)\. Medians", text)
    code = re.search(r", devtensor at (\w+)\.", text)
    if not machine or not summary or not peers or not code:
        sys.exit(f"{table} has no machine, no commit, no peers or no summary: it was not written by run.py, or by a run that ended early")
    stem = os.path.relpath(table, os.path.dirname(os.path.abspath(readme)))[:-3]
    day = re.match(r"[\d-]*\d", os.path.basename(table))[0]
    return (f"{machine[1]}, {day}, {machine[2]}, devtensor at {code[1]}, beside {peers[1]}: speed over the best peer of each row, or how many times less "
            f"time, memory or room it takes (above 1: devtensor is ahead; empty: not measured with PyTorch).\n\n"
            f"![{SUBJECT}]({stem}-summary.svg)\n\n{summary[1]}\n\nAll rows: [{stem}.md]({stem}.md), drawn in "
            f"[{stem}.svg]({stem}.svg).")


def main():
    check = sys.argv[1] == "--check"
    *tables, readme = sys.argv[2 if check else 1:]
    with open(readme, encoding="utf-8") as file:
        old = file.read()
    tables = tables or [os.path.join(os.path.dirname(readme), link) for link in re.findall(r"All rows.*?\]\((.*?\.md)\)", old)]
    text = "\n\n".join(part(table, readme) for table in tables)
    begin, end = "<!-- bench-cpu: begin -->", "<!-- bench-cpu: end -->"
    if begin not in old or end not in old:
        sys.exit(f"{readme} has no markers {begin} and {end}")
    new = old[:old.index(begin)] + begin + "\n" + text + "\n" + old[old.index(end):]
    if check:
        sys.exit(0 if new == old else f"{readme} has not what {' '.join(tables)} say; run python3 bench/cpu/readme.py {readme}")
    with open(readme, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
