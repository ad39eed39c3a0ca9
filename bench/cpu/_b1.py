"""Compares two builds of ours.c, row by row: before.py [--row TEXT] [--rounds N] OLD NEW.

Each row runs both in turn and prints the speed of NEW over OLD: the median of the ratios of the
rounds. Rows below 0.95 are measured again with three times the rounds, and listed at the end. The
results themselves are compared with float64 by run.py and the tests, not here.
"""
import argparse
import statistics

from participants import Participant
from rows import ROWS

LEAST = 0.95


def ratio(old, new, seconds, rounds):
    """Returns new speed over old: the median over the rounds, which alternate the order."""
    taken = []
    for k in range(rounds):
        times = {}
        for one in (old, new) if k % 2 else (new, old):
            times[one] = one.sample(seconds)
            one.rests()
        if None in times.values():
            return None
        taken.append(times[old] / times[new])
    return statistics.median(taken)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--row", default="")
    parse.add_argument("--rounds", type=int, default=7)
    parse.add_argument("old")
    parse.add_argument("new")
    a = parse.parse_args()
    low, logs = [], {}
    for threads in (1,):
        old, new = Participant("old", [a.old], threads), Participant("new", [a.new], threads)
        for row in ROWS:
            if threads not in row.threads or a.row not in f"{row.group}: {row.title}":
                continue
            if old.ask(row.command) != "ok" or new.ask(row.command) != "ok":
                print(f"{threads}T {row.title}: not in both", flush=True)
                continue
            seconds = 0 if row.few else 0.02
            over = ratio(old, new, seconds, a.rounds)
            if over is not None and over < LEAST:
                over = ratio(old, new, seconds, 3 * a.rounds)
            if over is None:
                raise SystemExit(f"{threads}T {row.title}: a program ended")
            print(f"{threads}T {row.title}: {over:.3f}", flush=True)
            logs.setdefault((threads, row.group), []).append(over)
            if over < LEAST:
                low.append(f"{threads}T {row.title}: {over:.3f}")
        old.end()
        new.end()
    for (threads, group), overs in logs.items():
        mean = statistics.geometric_mean(overs)
        print(f"{threads}T {group}: geometric mean {mean:.3f}, lowest {min(overs):.3f}")
    print(f"{len(low)} rows below {LEAST}", *low, sep="\n")


if __name__ == "__main__":
    main()
