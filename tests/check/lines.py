#!/usr/bin/env python3
"""Checks that with DEVTENSOR_LINES every line of the header names its origin in src/.

Argument: the preprocessed header.
"""
import re
import sys

here, number, compared, wrong = "", 0, 0, []
files = {}
for line in open(sys.argv[1], encoding="utf-8"):
    marker = re.match(r'# (\d+) "([^"]*)"', line)
    if marker:
        number, here = int(marker[1]), marker[2]
        continue
    # Compares first lines of functions: they are lines of their own, and macros do not change them.
    function = re.search(r"\b(dvti_\w+)\([^()]*\) \{$", line.rstrip())
    if re.match(r"src/.*[.][ch]$", here) and function:
        compared += 1
        if here not in files:
            files[here] = open(here, encoding="utf-8").read().split("\n")
        if number > len(files[here]) or function[1] not in files[here][number - 1]:
            wrong.append(f"{here}:{number} is not where {function[1]} begins")
    number += 1
print("\n".join(wrong[:10]))
sys.exit(f"{len(wrong)} of {compared} functions are elsewhere" if wrong or compared < 100 else 0)
