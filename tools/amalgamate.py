#!/usr/bin/env python3
"""Writes src/ into devtensor.h, and the CUDA kernels into devtensor_kernels.cu.inc.

The same sources give the same bytes: no dates, no paths, no hashes. The tool also checks the
architecture. A violation ends it with a message that says what, why, and how to fix it.

    tools/amalgamate.py            write stale files
    tools/amalgamate.py --check    write nothing; fail when a file is stale
    tools/amalgamate.py --root DIR work on another tree, as tests/check/guards.sh does
"""
import argparse
import os
import re
import sys

SPINE = "devtensor_spine.h"
HEADER = "devtensor.h"
KERNELS = "devtensor_kernels.cu.inc"
KERNEL_FOLDER = "3_cuda/kernels"
MATH_FOLDER = "2_core/math"  # compiled for the CPU, and part of the CUDA source
PLATFORM = "1_base/dvt_platform.h"
# A long file that every ISA target includes. The header has one copy of it, at the end, and
# includes itself to reach it.
SECTION = "3_cpu/simd/isa_target.inl"
# From plan or cold to end, other optimization options are in effect.
LEVEL = re.compile(r"1_base/level_(\w+)[.]inl")
SECTION_BEGIN = """#define DVTI_SECTION
#include DEVTENSOR_FILE /* a copy with another name: define DEVTENSOR_FILE as that name */
#ifdef DVTI_SECTION
#error "devtensor: DEVTENSOR_FILE names another file than this one"
#endif
"""
# Written behind the line that begins the implementation.
IMPLEMENTED = "#define DEVTENSOR_IMPLEMENTED\n"
NUMBERED = """\
/* -Wall of GCC's C compiler compares the indentation of all lines, which takes it ten seconds in a
   file of this size. It does not compare after a #line, so this one repeats the number. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus) && !defined(DEVTENSOR_LINES)
#line {number}
#endif
"""
PUBLIC_SYSTEM_HEADERS = {"stdbool.h", "stddef.h", "stdint.h"}
LINES_PER_FILE = 1000
LITERAL = 4095  # what ISO C guarantees, the final 0 not counted

BANNER = ("/* GENERATED from src/ by tools/amalgamate.py: do not edit. "
          "Edit src/, then run `make header`. */\n")
SPDX = "/* SPDX-License-Identifier: MIT OR Unlicense */\n"

INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CONDITIONAL = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)")
DIRECTORY = re.compile(r"(\d)_\w+")
CUDA_NAME = re.compile(r"\b(?:CU[a-z]\w*|cu[A-Z]\w*_t|cuda[A-Z]\w*|nvrtc[A-Z]\w*)\b")
MOVES_BYTES = re.compile(r"->\s*(?:upload|download|copy_from)\s*\(")


def die(what, why, fix):
    sys.exit(f"amalgamate: {what}\n  Why: {why}\n  Fix: {fix}")


def code_of(lines, strings):
    """Returns the lines without comments, and without string literals unless `strings`."""

    def blank(found):
        keep = strings and found[0][0] in "\"'"
        return found[0] if keep else "\n" * found[0].count("\n") or " "

    return TOKEN.sub(blank, "".join(lines)).split("\n")


def compact(lines):
    """The lines with tabs for indentation and one space before a backslash, but for comments.

    That is 10 % of the header, and nothing that a reader misses.
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


def directory_of(path):
    """Returns '3_cpu' for '3_cpu/ref/x.c', and None for the spine, which is above all layers."""
    first = path.split("/")[0]
    return first if DIRECTORY.fullmatch(first) else None


def layer_of(directory):
    """Returns the directory's number; 3_kernels is between the backends and the operations."""
    return 3.5 if directory == "3_kernels" else int(directory[0])


class Sources:
    """The files under src/, by their path relative to it."""

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
                "readers lose the overview of longer files", "split it by subject")
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
        self.section = None  # the text of SECTION, once included
        self.level = "end"  # of the last LEVEL file
        self.under = {}  # header -> the conditions around its first inclusion
        self.conditions = []  # texts of the open #ifs; None for an include guard

    def paste(self, name):
        lines = self.sources.lines(name)
        self.check_code(name, lines)
        self.drop_line_directive()
        self.out.append(f"/* ==== begin src/{name} ==== */\n")
        depth = len(self.conditions)
        code = code_of(lines, strings=True)
        # The first comment precedes the #line, so that numbers begin at 1. That of the spine is for
        # contributors and left out.
        begin = next(i for i, line in enumerate(code) if line.strip() or i == len(lines))
        if not lines or not lines[0].startswith("/*"):
            die(f"src/{name} does not begin with a comment",
                "the first comment of a file states its subject and its limits",
                "write two to six lines, from the first line on")
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
            die(f"src/{name} ends inside an #if", "the condition would cover the files after it",
                "add the #endif")

    def drop_line_directive(self):
        """Drops a directive that no line follows."""
        if self.out and self.out[-1].startswith("#ifdef DEVTENSOR_LINES"):
            self.out.pop()

    def line_directive(self, number, name):
        """Numbers the next line as `number` of src/name; the #endif counts as the line before."""
        self.drop_line_directive()
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
                "GCC compiles a function with the options in effect at its first declaration",
                f"include it in src/{SPINE} before")
        if target.endswith(".inl") or target not in self.under:
            self.under.setdefault(target, active)
            self.paste(target)
        elif self.under[target] != active[:len(self.under[target])]:
            die(f"src/{name}:{number} includes {target}, which was pasted above under `"
                f"{self.under[target][-1]}`",
                "a header is pasted once, at its first inclusion, and that condition may remove it",
                "include it earlier, outside of that condition")

    def paste_section(self):
        """Pastes SECTION into a text of its own, which all its inclusions share."""
        if self.section is not None:
            return
        out, self.out = self.out, []
        conditions, self.conditions = self.conditions, []
        self.section = ""
        self.paste(SECTION)
        self.section = "".join(self.out)
        self.out, self.conditions = out, conditions

    def text(self):
        """Returns the header: SECTION, or all other text, by DVTI_SECTION."""
        head = BANNER + SPDX + "#ifndef DVTI_SECTION\n"
        if self.section is None:
            die(f"src/{SECTION} is not included", "the header includes itself for this file",
                "include it, or change SECTION")
        tail = (f"#else /* src/{SECTION}, for which the header includes itself */\n"
                f"#undef DVTI_SECTION\n{self.section}#endif\n")
        before, behind = (head + "".join(self.out) + tail).split(IMPLEMENTED)
        before += IMPLEMENTED
        number = before.count("\n") + NUMBERED.count("\n")  # of the #endif
        return before + NUMBERED.format(number=number) + behind

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
        here, there = directory_of(name), directory_of(target)
        if not here or not there or here == there or layer_of(here) > layer_of(there):
            return
        sibling = layer_of(here) == layer_of(there)
        die(f"src/{name}:{number} includes {target}: {here} may not know {there}",
            "directories with one number are siblings, and any of them can be left out"
            if sibling else "lower layers must work without higher ones",
            "move the shared declarations to a lower directory" if sibling else
            "move the shared declaration down, or the code that uses it up")

    @staticmethod
    def check_system_header(name, number, header):
        if name == PLATFORM or (directory_of(name) == "0_api" and header in PUBLIC_SYSTEM_HEADERS):
            return
        die(f"src/{name}:{number} includes <{header}>",
            "every system header of the declarations costs users compile time, and one file of the "
            "implementation adapts to the platform",
            f"use only {', '.join(sorted(PUBLIC_SYSTEM_HEADERS))} in the declarations; for the "
            f"implementation add it to src/{PLATFORM}")

    @staticmethod
    def check_code(name, lines):
        for number, line in enumerate(code_of(lines, strings=False), 1):
            if directory_of(name) != "3_cuda" and CUDA_NAME.search(line):
                die(f"src/{name}:{number} names {CUDA_NAME.search(line)[0]}",
                    "only 3_cuda may use CUDA, so that the library can be built without it",
                    "call it through a function of 2_core/dvt_backend.h")
            if directory_of(name) != "2_core" and MOVES_BYTES.search(line):
                die(f"src/{name}:{number} moves bytes between memories",
                    "only 2_core may, so that every transfer is counted and guarded",
                    "call dvti_copy_elements or dvti_read")


def kernels(sources):
    """Returns the CUDA files: each a struct of strings, of at most LITERAL characters each.

    A struct of its own lets a linker drop the text of kernels that a program does not use; string
    literals behind pointers share one section. The strings follow each other in memory, and an
    empty one ends them. Comments are left out; #line directives in their place keep the numbers
    that errors name. Indentation is outside of the literals, where it takes no memory.
    """
    names = [n for n in sources.all() if n.startswith(KERNEL_FOLDER + "/")]
    names += [n for n in sources.all() if n.startswith(MATH_FOLDER + "/") and n.endswith(".inl")]
    out = [BANNER.replace("Edit src/", f"Edit src/{KERNEL_FOLDER}/"), SPDX]
    if names:
        out.append("/* The CUDA source: for each file the strings that it consists of, and an "
                   "empty one. */\n")
    else:
        out.append("/* The CUDA source. There are no kernels: it is empty. */\n")
    for name in names:
        parts = literals(kernel_lines(sources, name))
        members = ", ".join(f"part{i}[{length + 1}]" for i, (length, _) in enumerate(parts))
        out.append(f"static const struct {{\n    char {members}, end[1];\n")
        out.append(f"}} {kernel_name(name)} = {{\n")
        for _, text in parts:
            out.append(text + ",\n")
        out.append('""};\n')
    if names:
        out.append("/* The files of functions, which programs choose by name. */\n"
                   "static const char *const dvti_cuda_math_texts[] = {\n")
        out += [f"(const char *)&{kernel_name(n)},\n" for n in names if n.startswith(MATH_FOLDER)]
        out.append("NULL};\n")
    return "".join(out)


def kernel_name(name):
    return "dvti_cuda_text_" + os.path.basename(name).replace(".", "_")


def kernel_lines(sources, name):
    """Yields (indentation, line) of a CUDA file without comments and long runs of empty lines."""
    yield "", f'#line 1 "{os.path.basename(name)}"'
    expected = 1  # the line that the compiler counts
    for number, line in enumerate(code_of(sources.lines(name), strings=True)[:-1], 1):
        if not line.strip():
            continue
        if number - expected > 5:
            yield "", f"#line {number}"
        else:
            yield from [("", "")] * (number - expected)
        yield line[:len(line) - len(line.lstrip())], line.strip()
        expected = number + 1


def literals(lines):
    """Returns [(length, C string literals)], the lines joined to at most LITERAL characters."""
    parts = []
    for indent, line in lines:
        if not line and parts and parts[-1][0] < LITERAL:  # joins the literal before
            length, before = parts[-1]
            parts[-1] = (length + 1, before[:-1] + '\\n"')
            continue
        text = line.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")
        text = indent.replace("    ", "\t") + f'"{text}\\n"'
        if not parts or parts[-1][0] + len(line) + 1 > LITERAL:
            parts.append((0, ""))
        length, before = parts[-1]
        parts[-1] = (length + len(line) + 1, f"{before}\n{text}" if before else text)
    return parts


def generate(root):
    sources = Sources(root)
    new = {KERNELS: kernels(sources)}
    paster = Paster(sources, new[KERNELS])
    paster.paste(SPINE)
    new[HEADER] = paster.text()
    lost = sorted(set(sources.all()) - sources.used)
    if lost:
        die("not reachable from the spine: " + ", ".join("src/" + name for name in lost),
            "a file that is not included is never compiled",
            f"add it to src/{SPINE} at its place, or delete it")
    return new


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument(
        "--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
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
        die("stale: " + ", ".join(stale),
            "src/ changed and the generated file did not, or it was edited by hand",
            "run `make header` and commit the result")


if __name__ == "__main__":
    main()
