"""Puts the summaries of tables of run.py into the README, between its two markers: readme.py TABLE... README."""
import os
import re
import sys

SUBJECT = "How many times the speed of the best other library devtensor has, by kind of work"


def part(table, readme):
    with open(table, encoding="utf-8") as file:
        text = file.read()
    machine = re.search(r"^Machine: (.*?)\. Command: (`.*?`)", text, re.M)
    summary = re.search(r"^## Summary\n\n(.*?)\n\n", text, re.M | re.S)
    if not machine or not summary:
        sys.exit(f"{table} has no machine or no summary: it was not written by run.py, or by a run that ended early")
    stem = os.path.relpath(table, os.path.dirname(os.path.abspath(readme)))[:-3]
    day = re.match(r"[\d-]*\d", os.path.basename(table))[0]
    return (f"{machine[1]}, {day}, {machine[2]}: speed over the best peer of each row, or how many times less "
            f"time, memory or room it takes (above 1: devtensor is ahead; empty: PyTorch has no such row).\n\n"
            f"![{SUBJECT}]({stem}-summary.svg)\n\n{summary[1]}\n\nAll rows, peers and their versions: [{stem}.md]({stem}.md), drawn in "
            f"[{stem}.svg]({stem}.svg).")


def main():
    *tables, readme = sys.argv[1:]
    text = "\n\n".join(part(table, readme) for table in tables)
    with open(readme, encoding="utf-8") as file:
        old = file.read()
    begin, end = "<!-- bench-cpu: begin -->", "<!-- bench-cpu: end -->"
    if begin not in old or end not in old:
        sys.exit(f"{readme} has no markers {begin} and {end}")
    new = old[:old.index(begin)] + begin + "\n" + text + "\n" + old[old.index(end):]
    with open(readme, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
