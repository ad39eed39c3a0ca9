#!/usr/bin/env python3
"""Makes the changes that a document describes: blocks under <!-- check: insert FILE --> (a new
file) and <!-- check: insert FILE after TEXT --> (after the one line that contains TEXT).

    apply.py DOCUMENT ROOT
"""
import os
import re
import sys

BLOCK = re.compile(r"<!-- check: insert (\S+)(?: after (.*?))? -->\n```c\n(.*?)^```$", re.S | re.M)
document, root = sys.argv[1:]
with open(document, encoding="utf-8") as opened:
    blocks = BLOCK.findall(opened.read())
for name, after, code in blocks:
    path = os.path.join(root, name)
    if not after:
        if os.path.exists(path):
            sys.exit(f"{document}: {name} is there already")
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)
        continue
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    places = [i for i, line in enumerate(lines) if after in line]
    if len(places) != 1:
        sys.exit(f"{document}: {len(places)} lines of {name} contain `{after}`; expected one")
    lines.insert(places[0] + 1, code)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)
if not blocks:
    sys.exit(f"{document} describes no change")
