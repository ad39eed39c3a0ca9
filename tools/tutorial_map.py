#!/usr/bin/env python3
"""Writes docs/TUTORIAL_MAP.md from two lists: the documents' cells (examples/tutorials/cells.txt,
extracted from the documents), and the block("n", "title") lines of examples/tutorials/*.c. A cell
without a block and a block without a cell are errors.

    tools/tutorial_map.py                      write the page
    tools/tutorial_map.py --check              write nothing; fail when the page is stale
    tools/tutorial_map.py --documents FOLDER   compare the list of cells with the documents
"""
import itertools
import os
import re
import sys

FOLDER, OUT = "examples/tutorials", "docs/TUTORIAL_MAP.md"
CELLS = FOLDER + "/cells.txt"
HEAD = re.compile(r"^\[(\S+\.c)\] (\S+): (.+)$")
ROW = re.compile(r"^(cell \d+|text|exercise \d+) = (.+?) \| (.+)$")
BLOCK = re.compile(r'^\s*block\(\s*"([^"]+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\);', re.M)
PART = re.compile(r'"((?:[^"\\]|\\.)*)"')


def fail(what, why, fix):
    sys.exit(f"{what}\n  Why: {why}\n  Fix: {fix}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def listed():
    """Returns the list as [(program, document, title, [(cell, block, first line)])]."""
    sections = []
    for number, line in enumerate(read(CELLS).split("\n"), 1):
        head, row = HEAD.match(line), ROW.match(line)
        if head:
            sections.append((head[1], head[2], head[3], []))
        elif row and sections:
            sections[-1][3].append((row[1], row[2], row[3]))
        elif line and not line.startswith("#"):
            fail(f"{CELLS}:{number}: {line}",
                 "it is no [PROGRAM] line and no `cell N = BLOCK | CODE`", "write it so")
    return sections


def blocks(program):
    """Returns {block: (title, first line, last line)} of a program."""
    text = read(os.path.join(FOLDER, program))
    found = []
    for m in BLOCK.finditer(text):
        line = text.count("\n", 0, text.index("block(", m.start())) + 1
        found.append((m[1], "".join(PART.findall(m[2])), line))
    names = [name for name, _, _ in found]
    if len(found) != len(re.findall(r"^\s*block\(", text, re.M)) or len(set(names)) != len(names):
        fail(f"{program}: a block() is not block(\"number\", \"title\"), or two have one number",
             "the map is made from these lines", "write them so")
    ends = [line - 1 for _, _, line in found[1:]] + [text.count("\n")]
    return {name: (title, line, end) for (name, title, line), end in zip(found, ends)}


def compared(program, rows, found):
    shown = {block for _, block, _ in rows}
    names = [cell for cell, _, _ in rows if cell != "text"]
    numbers = [int(cell.split()[1]) for cell in names if cell.startswith("cell")]
    if numbers != list(range(1, len(numbers) + 1)) or len(set(names)) != len(names):
        fail(f"{CELLS}: the cells of {program} are {numbers}",
             "they are numbered in the document's order, from 1",
             "tools/tutorial_map.py --documents FOLDER says which one is missing")
    for cell, block, code in rows:
        if block not in found:
            fail(f"{program} has no block {block} for {cell}: {code}",
                 "every cell of the documents is shown", "write it, or correct " + CELLS)
    for block in found:
        if block not in shown:
            fail(f"{CELLS} has no line for block {block} of {program}",
                 "a block shows a cell, the text or an exercise", "say which")


def page():
    lines = [
        "# The tutorials, cell by cell", "",
        "Each program under `examples/tutorials` follows one published document on using GPUs. "
        "Run one",
        "with `make examples`, or alone:",
        "`cc -I. examples/tutorials/1_gluon_use_gpu.c -lm -ldl -lpthread`, with",
        "`DEVTENSOR_VIRTUAL_GPUS=2` for the two GPUs that the documents ask for. Sizes are the",
        "documents' own; `TUTORIAL_SHORT=1` takes short ones, as the test does that runs each "
        "program",
        "with 0 and with 2 GPUs and compares what it prints. The cells are those of",
        "`examples/tutorials/cells.txt`, in the documents' order. `tools/tutorial_map.py` writes "
        "this",
        "page, and fails when a cell has no block.", ""
    ]
    for program, _, title, rows in listed():
        found = blocks(program)
        compared(program, rows, found)
        lines += [f"## {title}", "", f"[{program}](../{FOLDER}/{program})", "",
                  "| in the document | block | it shows | lines |", "|---|---|---|---|"]
        for cell, block, _ in rows:
            title, line, end = found[block]
            lines.append(f"| {cell} | {block} | `{title.replace('|', chr(92) + '|')}` | "
                         f"[{line}-{end}](../{FOLDER}/{program}#L{line}-L{end}) |")
        lines.append("")
    return "\n".join(lines)


def cells_of(document):
    """Returns the first lines of a document's cells, in code without comments.

    Cells follow ``` fences of code to run, or In [n]: of a notebook's text.
    """
    text = read(document)
    fenced = re.findall(r"^```\{\.python \.input[^\n]*\n(.*?)^```", text, re.M | re.S)
    cells = fenced or re.findall(r"^In \[\d+\]:\n(.*?)(?=\n\n|\Z)", text, re.M | re.S)
    for cell in cells:
        lines = [line.strip() for line in cell.split("\n") if line.strip()]
        code = [bare for bare in (re.sub(r"\s*#.*", "", line) for line in lines) if bare] or lines
        yield "; ".join(code[:2]) if code[0].startswith("%%") else code[0]


def check_documents(folder):
    for program, document, _, rows in listed():
        path = os.path.join(folder, document + ".txt")
        if not os.path.exists(path):
            fail(f"{path} is not there", "the list names this document",
                 "give the folder with the five documents")
        have = [code for cell, _, code in rows if cell.startswith("cell")]
        want = list(cells_of(path))
        for number, (a, b) in enumerate(itertools.zip_longest(have, want), 1):
            if a != b:
                fail(f"{CELLS}: cell {number} of {document} is `{a}`, in the document `{b}`",
                     "the list is the documents'", "correct it")
        print(f"{document}: {len(want)} cells")


def main(arguments):
    if "--documents" in arguments:
        check_documents(arguments[arguments.index("--documents") + 1])
        return
    text = page()
    if "--check" in arguments:
        if not os.path.exists(OUT) or read(OUT) != text:
            fail(f"stale: {OUT}", "examples/tutorials changed but the map did not",
                 "python3 tools/tutorial_map.py, and commit the result")
    else:
        with open(OUT, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
