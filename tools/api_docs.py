#!/usr/bin/env python3
"""Writes docs/API.md from src/0_api: every public function, macro and type with its signature and
the first sentence of its comment. A declaration without a sentence is an error.

    tools/api_docs.py           write the page
    tools/api_docs.py --check   write nothing; fail when the page is stale

tests/check/api_list.py parses the declarations. Environment: CC.
"""
import itertools
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "check"))
import api_list  # noqa: E402

OUT = "docs/API.md"
COMMENT = re.compile(r"/\*.*?\*/", re.S)
SUBSECTION = re.compile(r"/\* ---- ?(.*?)(?: ?----)?\s*\*/", re.S)
CONTENTS = re.compile(r"^     \[dvt:(\w+)\]\s+(.*)$", re.M)
SETTING = re.compile(r"^   (DEVTENSOR_\w+)  +(.*(?:\n {20}.*)*)$", re.M)
# The forms of a row of DVT_DECLARE_..., each with what it does besides the row's comment.
FORMS = [(r"dvt_(\w+)_scalar_", "{}; b is a number, the result is written into x"),
         (r"dvt_(\w+)_scalar", "{}; b is a number"),
         (r"dvt_scalar_(\w+)", "{}; a is a number"),
         (r"dvt_(\w+)_", "{}; the result is written into the first argument"),
         (r"dvt_(\w+)", "{}")]


def fail(what, why, fix):
    sys.exit(f"api_docs: {what}\n  Why: {why}\n  Fix: {fix}")


def sentence(comment):
    """Returns the first sentence, without the notes after it."""
    text = " ".join(re.sub(r"^/\*|\*/$", "", comment).split())
    text = re.split(r"(?<=[.;:)]) +(?:Copies|Waits|Owns|Shapes|Errors|Source)\b.*?:", text)[0]
    first = re.split(r"(?<=[^.]\.)(?= )", text)[0].strip()
    if len(first) > 240 and ": " in first:
        first = first[:first.index(": ")]
    return first.rstrip(":")


class Header:
    """The lines of a file with the comments that belong to them."""

    def __init__(self, name):
        self.name = name
        text = api_list.read(name)
        self.lines = text.split("\n")
        self.ends, self.subsections = {}, [(0, "")]
        tagged = re.match(r"/\* \[dvt:(\w+)\]", text)
        self.tag = tagged[1] if tagged else ""
        for found in COMMENT.finditer(text):
            first = text.count("\n", 0, found.start()) + 1
            last = text.count("\n", 0, found.end()) + 1
            title = SUBSECTION.match(found[0])
            if title:
                short = re.split(r"[.:;](?= |$)", " ".join(title[1].split()))[0]
                self.subsections.append((first, short[0].upper() + short[1:]))
                self.ends[last] = ""  # it documents none of the declarations after it
            elif self.lines[first - 1].startswith("/*"):
                self.ends[last] = found[0]

    def subsection(self, line):
        return [title for first, title in self.subsections if first <= line][-1]

    def comment(self, line):
        """Returns the comment after the declaration, else the one above its group."""
        last = line
        while ";" not in self.lines[last - 1] and self.lines[last - 1].endswith((",", "\\")):
            last += 1
        after = re.search(r"[;)}\w] +/\*(.*)$", self.lines[last - 1])
        if after and "{" not in self.lines[line - 1]:
            text, at = after[1], last
            while "*/" not in text:
                at += 1
                text += " " + self.lines[at - 1]
            return text[:text.index("*/")]
        for above in range(line - 1, 0, -1):
            if above in self.ends:
                return self.ends[above]
            if not self.lines[above - 1].strip():
                return ""
        return ""


def signature_of_type(kind, body, name):
    if name.endswith("_guard"):
        return f"struct {name}"
    if kind == "enum":
        return f"enum {name} {{ {', '.join(one.split(' = ')[0] for one in body if one)} }}"
    return f"{kind} {name} {{ {' '.join(one + ';' for one in body if one)} }}"


def entries():
    """Returns [(file, line, name, signature)] in reading order."""
    order = re.findall(r'#include "0_api/(\w+\.h)"', api_list.read("dvt_api.h"))
    found = []
    for file, line, text in api_list.statements():
        composed = api_list.COMPOSED.match(text)
        if composed:
            body = list(api_list.pieces(composed[3], "," if composed[1] == "enum" else ";"))
            found.append((file, line, composed[4], signature_of_type(composed[1], body,
                                                                     composed[4])))
        elif text.startswith("DVT_API "):
            text = text[8:].replace("( ", "(")  # a space is left of the macro bool
            found.append((file, line, re.search(r"\b(dvt_\w+)\(", text)[1], text))
        else:
            name = re.search(r"\(\*(\w+)\)\(|(\w+)$", text)
            found.append((file, line, name[1] or name[2], text))
    for file, line, name, parameters, _ in api_list.macro_definitions():
        found.append((file, line, name, name + parameters))
    found = [row for row in found if row[0] in order]
    # dvt_config.h defines a macro twice or more, for different compilers.
    first = {}
    for row in sorted(found, key=lambda row: (order.index(row[0]), row[1])):
        first.setdefault(row[2], row)
    return list(first.values())


def effect(header, line, name):
    comment = header.comment(line)
    text = sentence(comment)
    row = re.match(r"DVT_DECLARE_\w+\((\w+)\)", header.lines[line - 1])
    if row:
        for pattern, form in FORMS:
            if re.fullmatch(pattern.replace(r"(\w+)", row[1]), name):
                text = form.format(text.rstrip("."))
                break
    return text


def cell(text):
    return text.replace("|", "\\|").replace("*", "\\*").replace("_ ", "\\_ ").replace("<", "&lt;")


def settings():
    for text, title in zip(api_list.read("dvt_config.h").split("Environment, read once", 1),
                           ("Switches", "Environment variables")):
        yield title, [(name, " ".join(what.replace("*/", "").split()))
                      for name, what in SETTING.findall(text.split("\n#define")[0])]


def page():
    headers = {name: Header(name) for name in api_list.files()}
    titles = dict(CONTENTS.findall(api_list.read("dvt_intro.h")))
    rows = entries()
    missing = []
    for file, line, name, _ in rows:
        if not effect(headers[file], line, name):
            missing.append(f"{file}:{line}: {name}")
    if missing:
        fail("no sentence for\n  " + "\n  ".join(missing),
             "docs/API.md shows the first sentence of each comment",
             "write a comment above the declaration, or after it on its line")
    lines = [
        "# API index", "",
        f"All {len(rows)} public declarations of `devtensor.h`, first by name, then by task with "
        "their signatures.",
        "The number after each sentence leads to its comment in the header, which has the shapes, "
        "copies,",
        "waits, ownership and errors. `make docs` writes this page from the sources.", "",
        "## By name", "", "| | |", "|---|---|"
    ]
    by_name = sorted((name for _, _, name, _ in rows), key=str.lower)

    def letter(name):
        return re.sub(r"^dvt_", "", name.lower())[0].upper()

    for initial, names in itertools.groupby(
            sorted(by_name, key=lambda name: (letter(name), name.lower(), name)), letter):
        lines.append(f"| {initial} | " + " ".join(f"[{name}](#{name})" for name in names) + " |")
    lines += ["", "## By task", ""]
    for (tag, title), group in itertools.groupby(
            rows, lambda row: (headers[row[0]].tag, headers[row[0]].subsection(row[1]))):
        heading = titles.get(tag, tag)
        if heading:
            lines += [f"### [dvt:{tag}] {heading}", ""]
            titles[tag] = ""
        if title:
            lines += [f"#### {title}", ""]
        lines += ["| declaration | effect |", "|---|---|"]
        for file, line, name, signature in group:
            lines.append(f'| <a id="{name}"></a>`{signature}` | '
                         f"{cell(effect(headers[file], line, name))} "
                         f"[{line}](../src/0_api/{file}#L{line}) |")
        lines.append("")
    for title, found in settings():
        lines += [f"### {title}", "", "| name | effect |", "|---|---|"]
        lines += [f'| <a id="{name}"></a>`{name}` | {cell(what)} |' for name, what in found]
        lines.append("")
    return "\n".join(lines)


def main():
    os.chdir(ROOT)
    text = page()
    old = open(OUT, encoding="utf-8").read() if os.path.exists(OUT) else None
    if old == text:
        return
    if "--check" in sys.argv:
        fail(f"stale: {OUT}", "the declarations in src/0_api or their comments changed",
             "run `make docs` and commit the result")
    with open(OUT, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    print(f"wrote {OUT}")


if __name__ == "__main__":
    main()
