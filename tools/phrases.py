#!/usr/bin/env python3
"""Writes docs/PHRASES.md, and the program that runs its last column, from tests/phrases/*.txt.

    tools/phrases.py                 write the page
    tools/phrases.py --check         write nothing; fail when the page is stale
    tools/phrases.py --program FILE  write the C program

The form of the files is described in tests/phrases/README.md.
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SOURCE, OUT = "tests/phrases", "docs/PHRASES.md"
LIBRARIES = ("np", "pt", "mx", "jax", "dvt")
OTHERS = ("see", "is", "fails", "undo", "apart")
TITLES = "| | NumPy | PyTorch | MXNet | JAX | devtensor | gives |"
# The dtype of DVT_ARRAY, and NumPy's.
TYPES = {"f32": ("float", "float32"), "i64": ("int64_t", "int64"), "i32": ("int32_t", "int32"),
         "u8": ("unsigned char", "uint8"), "bool": ("bool", "bool")}
MODULES = {"pt": "torch.", "mx": "mx.np.", "jax": "jnp."}
HEAD = """# Phrase book

How to say it in devtensor, for those who know NumPy, PyTorch, MXNet or JAX. There are {count}
rows. `make check` compiles and runs each cell of the column devtensor, on `cpu()` and on a virtual
GPU. It compares the result with the column "gives". A script does the same with the other
libraries: [tests/phrases](../tests/phrases/README.md).

In all rows `dev` is `dvt_try_gpu(0)` and `cpu` is `dvt_cpu()`. The usual names of modules are
`np`, `torch`, `nn`, `F`, `nd`, `gluon`, `autograd`, `jnp`, `optax`; `flax.nn` is `flax.linen`.
Functions of `mx.np` take arrays of `mx.np`. A dash means that there is no short equivalent.
Results that belong to no name yet are owned by the innermost scope: see [USING.md](USING.md).

To add a row, add it to a file of `tests/phrases`, then run `make docs`.
"""


def fail(what, why, fix):
    sys.exit(f"phrases: {what}\n  Why: {why}\n  Fix: {fix}")


class Row:
    def __init__(self, title):
        self.title, self.cells, self.lines = title, {}, {}

    def add(self, key, text, line):
        self.cells.setdefault(key, []).append(text)
        self.lines.setdefault(key, []).append(line)

    def cell(self, library):
        """Returns the lines of a cell; a missing one is NumPy's under another module's name."""
        if library in self.cells:
            return [] if self.cells[library] == ["-"] else self.cells[library]
        return [re.sub(r"\bnp\.", MODULES[library], line) for line in self.cell("np")]


class Section:
    def __init__(self, file):
        self.file, self.title, self.arrays, self.lets, self.rows = file, "", [], [], []
        self.preparations = {}

    def setup(self):
        """Returns the statements before each row."""
        lines = [
            f"dvt_array *{name} = DVT_ARRAY({TYPES[kind][0]}, DVT_SHAPE({', '.join(shape)}), dev, "
            f"{', '.join(values)});" for name, kind, shape, values in self.arrays
        ]
        lines = [line if len(line) <= 100 else line.replace(", dev, ", ", dev,\n" + " " * 25)
                 for line in lines]
        return lines + self.lets


def read(path):
    section = Section(path)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number, line in enumerate(lines, 1):
        entry = re.match(r"    (\w+) +(.*)$", line)
        key = entry and entry[1]
        # The indentation of continued code belongs to the code.
        text = entry and (line[8:] if line[7:8] == " " else entry[2]).rstrip()
        if line.startswith("# "):
            section.title = line[2:]
        elif line.startswith("array "):
            _, name, kind, shape, *values = line.split()
            section.arrays.append((name, kind, shape.split("x"), values))
        elif line.startswith("let "):
            section.lets.append(line[4:])
        elif line.startswith("prepare "):
            _, library, text = line.split(" ", 2)
            section.preparations.setdefault(library, []).append(text)
        elif entry and key in LIBRARIES + OTHERS and section.rows:
            section.rows[-1].add(key, text, number)
        elif line and not line.startswith(" "):
            section.rows.append(Row(line))
        elif line:
            fail(f"{path}:{number}: {line.strip()}",
                 "a row is a title, then lines of " + ", ".join(LIBRARIES + OTHERS),
                 "see tests/phrases/README.md")
    titles = [row.title for row in section.rows]
    for row in section.rows:
        for needed in ("np", "dvt"):
            if needed not in row.cells:
                fail(f"{path}: the row \"{row.title}\" has no line {needed}",
                     "the other columns are made of these two",
                     f"write it, or `{needed} -`" if needed == "np" else "remove the row")
        if titles.count(row.title) > 1:
            fail(f"{path}: two rows are \"{row.title}\"", "a row is found by its title",
                 "rename one")
    return section


def sections():
    names = sorted(name for name in os.listdir(SOURCE) if name.endswith(".txt"))
    return [read(f"{SOURCE}/{name}") for name in names]


def code(lines):
    return "<br>".join("`" + line.strip().replace("|", "\\|") + "`" for line in lines) or "–"


def page():
    found = sections()
    lines = HEAD.format(count=sum(len(section.rows) for section in found)).split("\n")
    for section in found:
        lines += [f"## {section.title}", ""]
        if section.setup():
            lines += ["Before each row:", "",
                      "<!-- check: with dvt_ctx dev = dvt_try_gpu(0), cpu = dvt_cpu(); -->", "```c",
                      *section.setup(), "```", ""]
        lines += [TITLES, "|" + "---|" * 7]
        for row in section.rows:
            result = " ".join(row.cells.get("is", [""]))
            result = f"`{result}`" if result else ""
            cells = [code(row.cell(library)) for library in LIBRARIES]
            lines.append(f"| {row.title.replace('|', chr(92) + '|')} | {' | '.join(cells)} | "
                         f"{result} |")
        lines.append("")
    return "\n".join(lines)


def is_expression(lines):
    return len(lines) == 1 and not lines[0].rstrip().endswith((";", "}"))


def statements(row, file):
    """Returns the C statements of a row and of the checks of its result."""
    cell, lines = row.cells["dvt"], []
    for text, line in zip(cell, row.lines["dvt"]):
        lines.append(f'#line {line} "{file}"')
        lines.append(text)
    seen = row.cells.get("see", [None])[0]
    if is_expression(cell):
        expression = lines.pop()
        if seen or "is" not in row.cells:
            lines.append(f"(void)({expression});")
        else:
            seen = expression
    if seen:
        want = " ".join(row.cells.get("is", []))
        text = want if want.startswith('"') or want.endswith("_STRING") else "NULL"
        numbers = "" if text != "NULL" else ", ".join(want.split())
        number = row.lines["is" if "is" in row.lines else "see"][0]
        count = len(want.split()) if text == "NULL" else 0
        lines += [f'#line {number} "{file}"',
                  f"{{ const double want[] = {{{numbers or 0}}}; "
                  f"SEE({seen}, want, {count}, {text}); }}"]
    if "fails" in row.cells:
        lines.append(f"FAILS(DVT_ERR_{row.cells['fails'][0]});")
    return lines


def program():
    lines = ['#include "tests/phrases/phrases.h"', ""]
    calls = []
    for section in sections():
        for row in section.rows:
            name = f"row_{len(calls)}"
            title = row.title.replace("\\", "\\\\").replace('"', '\\"')
            calls.append(f'    RUN({name}, "{section.file}:{row.lines["dvt"][0]}: {title}");')
            lines += [f"static void {name}(void) {{",
                      "dvt_ctx dev = dvt_try_gpu(0), cpu = dvt_cpu();", *section.setup(),
                      *statements(row, section.file), "}"]
            lines += [f"#define UNDO_{name} " + " ".join(row.cells.get("undo", []))]
    return "\n".join(lines + ["int main(void) {", *calls, "    return finish();", "}", ""])


def main():
    os.chdir(ROOT)
    if "--program" in sys.argv:
        path = sys.argv[sys.argv.index("--program") + 1]
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(program())
        return
    text = page()
    old = open(OUT, encoding="utf-8").read() if os.path.exists(OUT) else None
    if old == text:
        return
    if "--check" in sys.argv:
        fail(f"stale: {OUT}", "tests/phrases changed but the page did not",
             "run `make docs` and commit the result")
    with open(OUT, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    print(f"wrote {OUT}")


if __name__ == "__main__":
    main()
