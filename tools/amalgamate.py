#!/usr/bin/env python3
"""Pastes src/ into devtensor.h, and the CUDA kernels into devtensor_kernels.cu.inc.

The same sources give the same bytes: no dates, no paths, no hashes. It is also the guard of the architecture: what
it refuses, it refuses with what, why and how to fix it.

    tools/amalgamate.py            write what is stale
    tools/amalgamate.py --check    write nothing; fail when something is stale
    tools/amalgamate.py --root DIR work on another tree (the guards' own test does)
"""
import argparse
import os
import re
import sys

SPINE = "devtensor_spine.h"
HEADER = "devtensor.h"
KERNELS = "devtensor_kernels.cu.inc"
KERNEL_FOLDER = "3_cuda/kernels"
MATH_FOLDER = "2_core/math"  # its functions are pasted for the CPU, and are text for CUDA
PLATFORM = "1_base/dvt_platform.h"
# Included once per ISA target, and long: it stands once, at the end, where the header includes itself for it.
SECTION = "3_cpu/simd/isa_target.inl"
LEVEL = re.compile(r"1_base/level_(\w+)[.]inl")  # from plan or cold to end, other optimization options hold
SECTION_BEGIN = """#define DVTI_SECTION
#include DEVTENSOR_FILE /* a copy with another name: define DEVTENSOR_FILE as that name */
#ifdef DVTI_SECTION
#error "devtensor: DEVTENSOR_FILE names another file than this one"
#endif
"""
PUBLIC_SYSTEM_HEADERS = {"stdbool.h", "stddef.h", "stdint.h"}
LINES_PER_FILE = 1000
LITERAL = 4095  # what ISO C guarantees, the final 0 not counted

BANNER = "/* GENERATED from src/ by tools/amalgamate.py: do not edit. Edit src/, then run `make header`. */\n"
SPDX = "/* SPDX-License-Identifier: MIT OR Unlicense */\n"

INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CONDITIONAL = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)")
ROOM = re.compile(r"(\d)_\w+")
CUDA_NAME = re.compile(r"\b(?:CU[a-z]\w*|cu[A-Z]\w*_t|cuda[A-Z]\w*|nvrtc[A-Z]\w*)\b")
MOVES_BYTES = re.compile(r"->\s*(?:upload|download|copy_from)\s*\(")


def die(what, why, fix):
    sys.exit(f"amalgamate: {what}\n  Why: {why}\n  Fix: {fix}")


def code_of(lines, strings):
    """The lines without comments, and without string literals unless wanted; every line still in its place."""

    def blank(found):
        keep = strings and found[0][0] in "\"'"
        return found[0] if keep else "\n" * found[0].count("\n") or " "

    return TOKEN.sub(blank, "".join(lines)).split("\n")


def compact(lines):
    """The lines with tabs for indentation and one space before a backslash, but for comments.

    That is a tenth of the header, and nothing that a reader misses.
    """
    inside = set()
    text = "".join(lines)
    for found in TOKEN.finditer(text):
        first = text.count("\n", 0, found.start())
        inside.update(range(first + 1, first + 1 + found[0].count("\n")))
    out = []
    for number, line in enumerate(lines):
        if number not in inside:
            body = line.lstrip(" ")
            depth = len(line) - len(body)
            line = "\t" * (depth // 4) + " " * (depth % 4) + re.sub(r" +\\\n$", r" \\\n", body)
        out.append(line)
    return out


def room_of(path):
    """'3_cpu/ref/x.c' -> '3_cpu'; the spine stands above all rooms."""
    first = path.split("/")[0]
    return first if ROOM.fullmatch(first) else None


def layer_of(room):
    """The room's number; the list of kernels stands between the backends and the operations."""
    return 3.5 if room == "3_kernels" else int(room[0])


class Sources:
    """The files under src/, by their path from there."""

    def __init__(self, root):
        self.folder = os.path.join(root, "src")
        self.used = set()

    def path(self, name):
        return os.path.join(self.folder, *name.split("/"))

    def lines(self, name):
        self.used.add(name)
        with open(self.path(name), encoding="utf-8") as file:
            lines = [line.rstrip() + "\n" for line in file]
        if len(lines) > LINES_PER_FILE:
            die(f"src/{name} has {len(lines)} lines; the limit is {LINES_PER_FILE}",
                "a room that long is hard to find one's way in", "split it by subject")
        return lines

    def all(self):
        for folder, folders, files in os.walk(self.folder):
            folders.sort()
            for file in sorted(files):
                yield os.path.relpath(os.path.join(folder, file), self.folder).replace(os.sep, "/")


class Paster:
    """Follows the includes from the spine, and collects the text of the header."""

    def __init__(self, sources, kernels):
        self.sources = sources
        self.kernels = kernels  # the text of devtensor_kernels.cu.inc
        self.out = []
        self.section = None  # the text of SECTION, once it was included
        self.level = "end"  # the last of LEVEL that was pasted
        self.under = {}  # of each pasted header: the conditions that it stands under
        self.conditions = []  # [text] of every #if around this place; None for an include guard

    def paste(self, name):
        lines = self.sources.lines(name)
        self.check_code(name, lines)
        self.out.append(f"/* ==== begin src/{name} ==== */\n")
        depth = len(self.conditions)
        code = code_of(lines, strings=True)
        # The first comment is pasted before the #line, so that it can count from 1. The spine's is for contributors.
        begin = next(i for i, line in enumerate(code) if line.strip() or i == len(lines))
        if not lines or not lines[0].startswith("/*"):
            die(f"src/{name} does not begin with a comment", "a room says what lives in it, and what must not",
                "say it in two to six lines, from the first line on")
        if name != SPINE:
            self.out += lines[:begin]
        self.line_directive(begin + 1, name)
        for number, line in list(enumerate(compact(lines), 1))[begin:]:
            found = INCLUDE.match(code[number - 1])
            if found and found[1] == KERNELS:
                self.out.append(self.kernels)
                self.line_directive(number + 1, name)
                continue
            if found and found[1]:
                self.include(name, number, found[1])
                self.line_directive(number + 1, name)
                continue
            if found:
                self.check_system_header(name, number, found[2])
            self.follow_conditions(code, number)
            self.out.append(line)
        if len(self.conditions) != depth:
            die(f"src/{name} ends inside an #if", "what follows would be left out with it",
                "add the #endif")
        self.out.append(f"/* ==== end src/{name} ==== */\n")

    def line_directive(self, number, name):
        """What follows is line `number` of src/name; the #endif counts as the line before."""
        if self.out and self.out[-1].startswith("#ifdef DEVTENSOR_LINES"):
            self.out.pop()
        self.out.append(f'#ifdef DEVTENSOR_LINES\n#line {number - 1} "src/{name}"\n#endif\n')

    def include(self, name, number, target):
        if not os.path.isfile(self.sources.path(target)):
            die(f"src/{name}:{number} includes {target}, which is not there",
                "includes are written as paths from src/",
                'write it like "1_base/dvt_base.h", or add the file')
        self.check_layer(name, number, target)
        if target == SECTION:
            self.out.append(SECTION_BEGIN)
            self.paste_section()
            return
        active = [text for text in self.conditions if text]
        if LEVEL.fullmatch(target):
            self.level = LEVEL.fullmatch(target)[1]
        elif self.level != "end" and target.endswith(".h") and target not in self.under:
            die(f"src/{name}:{number} includes {target} first after 1_base/level_{self.level}.inl",
                "GCC gives a function the options that hold where it is declared first",
                f"include it in src/{SPINE} before")
        if target.endswith(".inl") or target not in self.under:
            self.under.setdefault(target, active)
            self.paste(target)
        elif self.under[target] != active[:len(self.under[target])]:
            die(f"src/{name}:{number} includes {target}, which was pasted above under `"
                f"{self.under[target][-1]}`", "a header is pasted once, where it is first included; "
                "there it may be compiled away", "include it earlier, outside of that condition")

    def paste_section(self):
        """Pastes SECTION into a text of its own; every inclusion of it finds the same."""
        if self.section is not None:
            return
        out, self.out = self.out, []
        conditions, self.conditions = self.conditions, []
        self.section = ""
        self.paste(SECTION)
        self.section = "".join(self.out)
        self.out, self.conditions = out, conditions

    def text(self):
        """The header: all of it but SECTION, unless it includes itself for that."""
        head = BANNER + SPDX + "#ifndef DVTI_SECTION\n"
        if self.section is None:
            die(f"src/{SECTION} is not included", "it is what the header includes itself for", "include it, or change SECTION")
        tail = f"#else /* src/{SECTION}, for which the header includes itself */\n#undef DVTI_SECTION\n{self.section}#endif\n"
        return head + "".join(self.out) + tail

    def follow_conditions(self, code, number):
        found = CONDITIONAL.match(code[number - 1])
        if not found:
            return
        word, text = found[1], found[2].strip()
        if word == "endif":
            self.conditions.pop()
        elif word in ("else", "elif"):
            self.conditions[-1] = f"#{word} after {self.conditions[-1]}"
        else:
            following = code[number].split()
            guard = word == "ifndef" and following[:2] == ["#define", text]
            self.conditions.append(None if guard else f"#{word} {text}")

    @staticmethod
    def check_layer(name, number, target):
        here, there = room_of(name), room_of(target)
        if not here or not there or here == there or layer_of(here) > layer_of(there):
            return
        sibling = layer_of(here) == layer_of(there)
        die(f"src/{name}:{number} includes {target}: {here} may not know {there}",
            "rooms with one number are siblings, and any of them can be left out" if sibling else
            "lower layers must work without higher ones",
            "move what both need into a lower room" if sibling else
            "move the shared declaration down, or the code that needs it up")

    @staticmethod
    def check_system_header(name, number, header):
        if name == PLATFORM or (room_of(name) == "0_api" and header in PUBLIC_SYSTEM_HEADERS):
            return
        die(f"src/{name}:{number} includes <{header}>",
            "users pay for every system header of the declarations, and the implementation must "
            "have one place that knows the platform",
            f"the declarations get by with {', '.join(sorted(PUBLIC_SYSTEM_HEADERS))}; for the "
            f"implementation add it to src/{PLATFORM}")

    @staticmethod
    def check_code(name, lines):
        for number, line in enumerate(code_of(lines, strings=False), 1):
            if room_of(name) != "3_cuda" and CUDA_NAME.search(line):
                die(f"src/{name}:{number} names {CUDA_NAME.search(line)[0]}",
                    "only 3_cuda knows CUDA, so that the library is whole without it",
                    "put it behind a slot of 2_core/dvt_backend.h")
            if room_of(name) != "2_core" and MOVES_BYTES.search(line):
                die(f"src/{name}:{number} moves bytes between memories",
                    "only 2_core does, so that every transfer is counted and guarded",
                    "call dvti_copy_elements or dvti_read")


def kernels(sources):
    """The CUDA files as C string literals of at most LITERAL characters; each file begins a new one.

    Comments stay in src/; #line directives in their place keep the numbers that errors name.
    Indentation stands outside of the literals, where it takes no memory in programs.
    """
    names = [n for n in sources.all() if n.startswith(KERNEL_FOLDER + "/")]
    names += [n for n in sources.all() if n.startswith(MATH_FOLDER + "/") and n.endswith(".inl")]
    out = [BANNER.replace("Edit src/", f"Edit src/{KERNEL_FOLDER}/"), SPDX,
           "/* The CUDA source: a table of strings, ended by NULL. "]
    out.append("Include it inside an initializer. */\n" if names else
               "No kernel has been written yet: it is empty. */\n")
    for name in names:
        length = literal_line(out, f'#line 1 "{os.path.basename(name)}"', "", LITERAL)
        expected = 1  # the line that the compiler counts
        for number, line in enumerate(code_of(sources.lines(name), strings=True)[:-1], 1):
            if not line.strip():
                continue
            if number - expected > 5:
                length = literal_line(out, f"#line {number}", "", length)
            else:
                for _ in range(number - expected):
                    length = literal_line(out, "", "", length)
            indent = line[:len(line) - len(line.lstrip())]
            length = literal_line(out, line.strip(), indent, length)
            expected = number + 1
        out.append(",\n")
    out.append("NULL\n")
    return "".join(out)


def literal_line(out, line, indent, length):
    """Adds a line to the literal, which has `length` characters; returns its new length."""
    if length + len(line) + 1 > LITERAL and length != LITERAL:
        out.append(",\n")
    if length + len(line) + 1 > LITERAL:
        length = 0
    text = line.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")
    out.append(f'{indent}"{text}\\n"\n')
    return length + len(line) + 1


def generate(root):
    sources = Sources(root)
    new = {KERNELS: kernels(sources)}
    paster = Paster(sources, new[KERNELS])
    paster.paste(SPINE)
    new[HEADER] = paster.text()
    lost = sorted(set(sources.all()) - sources.used)
    if lost:
        die("not reachable from the spine: " + ", ".join("src/" + name for name in lost),
            "a file that nobody includes is dead or forgotten",
            f"add it to src/{SPINE} at its place, or delete it")
    return new


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    arguments = arguments.parse_args()
    stale = []
    for name, text in generate(arguments.root).items():
        path = os.path.join(arguments.root, name)
        old = None
        if os.path.exists(path):
            with open(path, encoding="utf-8", newline="") as file:
                old = file.read()
        if old == text:
            continue
        stale.append(name)
        if not arguments.check:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            print("wrote", name)
    if arguments.check and stale:
        die("stale: " + ", ".join(stale), "src/ changed and the generated file did not, or somebody edited it",
            "run `make header` and commit the result; never edit it by hand")


if __name__ == "__main__":
    main()
