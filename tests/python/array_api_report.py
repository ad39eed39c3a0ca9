#!/usr/bin/env python3
"""Prints the tables of docs/PYTHON.md from a report of the array API suite.

    array_api_report.py REPORT.json
"""
import collections
import json
import re
import sys

REASONS = [
    (r"imag\(x_i\)", "special values of complex numbers: there are no complex dtypes"),
    (r"test_has_names\[linalg-", "the optional extension `linalg` is missing"),
    (r"test_has_names\[fft-", "the optional extension `fft` is missing"),
    (r"an array has at most 8", "more than 8 axes"),
    (r"floor_?div", "`//` of an infinity, or by one: C follows NumPy"),
]
SKIPS = [
    (r"(linalg|fft) not found", "the optional extension `{}` is missing"),
    (r"flaky", "the suite itself leaves it out"),
    (r"complex|func_in_dtypes|no valid dtypes|available", "no dtype of this kind"),
]


def reason_of(text, table):
    for pattern, reason in table:
        match = re.search(pattern, text)
        if match:
            return reason.format(*match.groups())
    return "other: " + text.splitlines()[-1][-90:]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        tests = json.load(file)["tests"]
    groups, failures = collections.OrderedDict(), collections.Counter()
    skips = collections.Counter()
    for test in tests:
        group = re.sub(r".*/test_|\.py.*", "", test["nodeid"])
        counts = groups.setdefault(group, collections.Counter())
        counts["failed" if test["outcome"] == "error" else test["outcome"]] += 1
        if test["outcome"] == "skipped":
            part = next(test[p] for p in ("setup", "call") if test.get(p, {}).get("longrepr"))
            skips[reason_of(str(part["longrepr"]), SKIPS)] += 1
        elif test["outcome"] != "passed":
            why = str(test.get("call", {}).get("longrepr"))
            failures[reason_of(why + "\n" + test["nodeid"], REASONS)] += 1
    print("| group | passed | failed | skipped |\n|---|---:|---:|---:|")
    total = collections.Counter()
    for group, counts in groups.items():
        total.update(counts)
        print(f"| {group} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
    print(f"| all | {total['passed']} | {total['failed']} | {total['skipped']} |")
    for title, found in (("failed", failures), ("skipped", skips)):
        print(f"\n| {title} | reason |\n|---:|---|")
        for reason, count in found.most_common():
            print(f"| {count} | {reason} |")


main()
