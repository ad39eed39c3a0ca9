"""Compares the blocks that the rule of cpu_gemm_blocks.c predicts for this machine with those that
it predicts for other caches: make bench-blocks. Prints a table in Markdown.

    blocks.py --program PROGRAM [--isa TARGET]... [--out FILE]

The products are float32, on one thread. Figures are the median over rounds of the speed over that
with the blocks for this machine; the processes with different blocks are sampled in turn.
"""
import argparse
import os
import statistics
import subprocess

from participants import Participant
from processor import ISA_NAMES, this_processor

# L1 and L2 with their ways; L3. The rule takes them for this machine's (DEVTENSOR_CPU_CACHES).
OTHERS = ("32K/8,256K/4,8M/16", "32K/8,256K/8,32M/16", "32K/8,512K/8,32M/16", "32K/8,1M/16,2M/16",
          "48K/12,1280K/20,2M/12", "48K/12,2M/16,32M/16", "64K/4,1M/8,32M/16",
          "128K/8,4M/16,16M/16")
CASES = (("256 NN", "m=256 n=256 k=256 ta=0 tb=0"), ("512 NN", "m=512 n=512 k=512 ta=0 tb=0"),
         ("512 TT", "m=512 n=512 k=512 ta=1 tb=1"), ("1024 NN", "m=1024 n=1024 k=1024 ta=0 tb=0"),
         ("1024 TN", "m=1024 n=1024 k=1024 ta=1 tb=0"),
         ("2048 NN", "m=2048 n=2048 k=2048 ta=0 tb=0"))
ROUNDS = 7


def blocks(program, environment):
    """Returns what the rule predicts: rows, depth, columns."""
    found = subprocess.run([program, "blocks"], capture_output=True, text=True, check=True,
                           env={**os.environ, **environment})
    return found.stdout.split()


def speeds(programs, command):
    """Returns for each process the median over rounds of its speed over the first one's."""
    for one in programs:
        if one.ask("case mm " + command) != "ok":
            raise SystemExit(f"no such case: {command}")
        one.sample(0.02)
    over = [[] for _ in programs]
    for _ in range(ROUNDS):
        spent = [one.sample(0.05) for one in programs]
        for k, seconds in enumerate(spent):
            over[k].append(spent[0] / seconds)
    return [statistics.median(values) for values in over]


def table(program, isa):
    """Returns the lines of the table of one ISA target."""
    settings = [{"DEVTENSOR_ISA": isa}]
    settings += [{**settings[0], "DEVTENSOR_CPU_CACHES": caches} for caches in OTHERS]
    programs = [Participant("devtensor", [program], 1, more=more) for more in settings]
    columns = [speeds(programs, command) for _, command in CASES]
    for one in programs:
        one.end()
    lines = [f"| {ISA_NAMES.get(isa, isa)}: caches of the rule | rows | depth | columns | " +
             " | ".join(name for name, _ in CASES) + " |", "|---|" + "---|" * (3 + len(CASES))]
    for k, more in enumerate(settings):
        cells = [more.get("DEVTENSOR_CPU_CACHES", "this machine's"), *blocks(program, more)]
        cells += [f"{column[k]:.2f}" for column in columns]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--program", required=True)
    parse.add_argument("--isa", nargs="*", default=[], help="ISA targets; default: the best")
    parse.add_argument("--out", help="also write the tables to this file")
    a = parse.parse_args()
    processor = this_processor(a.program)
    lines = [f"# Predicted blocks and others: {processor.model} {processor.kind}, "
             f"{processor.caches}", "",
             "Speed over that with the blocks for this machine, one thread, float32 products."]
    for isa in a.isa or [processor.isa]:
        lines += ["", *table(a.program, isa)]
    print("\n".join(lines))
    if a.out:
        with open(a.out, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
