#!/usr/bin/env python3
"""Compares the public declarations in src/0_api with the list in api.txt, one line for each.

    api_list.py             compare; return 1 when they differ
    api_list.py --update    write the list

docs/STABILITY.md promises every line. Names of parameters, the functions and macros of
[dvt:macros], and texts of comments are not in the list. Environment: CC.
"""
import os
import re
import subprocess
import sys

API = "src/0_api"
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "api.txt")
# [dvt:macros] and the macros of call sites: programs do not call them directly.
PRIVATE_FILES = {"dvt_macros.h", "dvt_call_sites.h", "dvt_call_sites_off.h"}
PRIVATE_MACROS = re.compile(r"DVT_(API_H|MODE_SCOPED?|DECLARE_\w+|STATUS_ENUM_ROW)$")
COMPOSED = re.compile(r"typedef (enum|struct|union) (\w+) \{(.*)\} (\w+)$")
CHANGING = re.compile(r"DVT_(API|VERSION\w*)$")  # macros whose values may change


def files():
    return [name for name in sorted(os.listdir(API)) if name not in PRIVATE_FILES]


def read(name):
    with open(os.path.join(API, name), encoding="utf-8") as file:
        return file.read()


def preprocessed():
    """Yields (file, line number, text) of the declarations, with the macros expanded, without those
    of other headers."""
    command = os.environ.get("CC", "cc").split() + [
        "-std=gnu11", "-E", "-DDEVTENSOR_NO_CALL_SITES", "-DDVT_API=DVT_API", "-Isrc", "-x", "c",
        f"{API}/dvt_api.h"
    ]
    name, number, here = "", 0, False
    for line in subprocess.run(command, stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split("\n"):
        marker = re.match(r'#\s*(\d+) "(.*?)"', line)
        if marker:
            folder, name = os.path.split(marker[2])
            number = int(marker[1])
            here = folder.endswith("0_api") and name not in PRIVATE_FILES
            continue
        if here and not line.startswith("#"):
            yield name, number, re.sub(r"\b_Bool\b", "bool", line)
        number += 1


def statements():
    """Yields (file, number of the first line, text) of each declaration."""
    depth, piece, begin = 0, "", None
    for name, number, line in preprocessed():
        for c in line + "\n":
            depth += (c in "({[") - (c in ")}]")
            if c == ";" and depth == 0:
                yield (*begin, " ".join(piece.split()))
                piece, begin = "", None
            else:
                piece += c
                begin = begin or (None if c.isspace() else (name, number))
    if piece.strip():
        yield (*begin, " ".join(piece.split()))


def pieces(text, separator):
    """Splits the text at a separator outside of braces and parentheses."""
    depth, piece = 0, ""
    for c in text:
        depth += (c in "({[") - (c in ")}]")
        if c == separator and depth == 0:
            yield " ".join(piece.split())
            piece = ""
        else:
            piece += c
    yield " ".join(piece.split())


def without_names(declaration):
    """Removes the names of parameters: `int f(int *)` for `int f(int *x)`."""
    function = re.match(r"(.*?(?:\w|\)))\((.*)\)$", declaration)
    if not function:
        return declaration
    types = []
    for one in pieces(function[2], ","):
        one = re.sub(r"(?<=\(\*)\w+", "", without_names(one))
        types.append(re.sub(r"(?<=[\s*])\w+(?=$|\[)", "", one).rstrip())
    return f"{function[1]}({', '.join(types)})"


def fields(body):
    """Yields each field with its type: `double factor, minimum;` has two."""
    for statement in pieces(body, ";"):
        first, *others = pieces(statement, ",")
        kind = re.match(r"(?:const )?[\w ]+(?=[ *])", first)
        if first:
            yield without_names(first)
        for other in others:
            yield f"{kind[0].strip()} {other}"


def enumerators(body):
    value = -1
    for one in pieces(body, ","):
        name, _, number = one.partition(" = ")
        value = eval(number) if number else value + 1  # a C integer
        if name:
            yield f"{name} = {value}"


def declarations():
    for _, _, statement in statements():
        composed = COMPOSED.match(statement)
        if composed and composed[1] == "enum":
            for one in enumerators(composed[3]):
                yield f"enum {composed[4]}: {one}"
        elif composed and composed[4].endswith("_guard"):
            yield f"type {composed[4]}"  # its fields are private
        elif composed:
            for number, one in enumerate(fields(composed[3]), 1):
                yield f"{composed[1]} {composed[4]}, field {number}: {one}"
        elif statement.startswith("DVT_API "):
            yield f"function {without_names(statement[8:])}"
        elif statement.startswith("typedef "):
            yield f"type {without_names(statement[8:])}"
        elif statement:
            sys.exit(f"api_list: \"{statement[:100]}\" is no declaration that it knows\n"
                     "  Fix: teach declarations() in tests/check/api_list.py")


def macro_definitions():
    """Yields (file, line number, name, parameters, body) of the public macros."""
    for file in files():
        # Comments become as many line ends, which keeps the numbers of the lines.
        text = re.sub(r"/\*.*?\*/", lambda found: re.sub(r".", "", found[0]), read(file),
                      flags=re.S)
        for found in re.finditer(r"^#define (DVT_\w+)(\(.*?\))?((?:.*\\\n)*.*)$", text, re.M):
            if not PRIVATE_MACROS.match(found[1]):
                body = found[3].replace("\\\n", " ")
                yield file, text.count("\n", 0, found.start()) + 1, found[1], found[2] or "", body


def macros():
    for _, _, macro, parameters, body in macro_definitions():
        constant = not parameters and re.match(r"[-\w()]+$", body.strip())
        value = f" {body.strip()}" if constant and not CHANGING.match(macro) else ""
        yield f"macro {macro}{parameters}{value}"


def settings():
    for part, kind in zip(read("dvt_config.h").split("Environment, read once", 1),
                          ("switch", "variable")):
        for name in re.findall(r"^   (DEVTENSOR_\w+)", part.split("*/")[0], re.M):
            yield f"{kind} {name}"


def main():
    now = list(dict.fromkeys([*declarations(), *macros(), *settings()]))
    if "--update" in sys.argv:
        with open(LIST, "w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(now) + "\n")
        return
    with open(LIST, encoding="utf-8") as file:
        listed = file.read().splitlines()
    gone = [line for line in listed if line not in set(now)]
    added = [line for line in now if line not in set(listed)]
    for sign, lines in (("-", gone), ("+", added)):
        for line in lines:
            print(f"{sign} {line}")
    if gone:
        print("  Why: a removed or changed line breaks the promise of docs/STABILITY.md\n"
              "  Fix: restore it; or say in CHANGELOG.md what replaces it, and run\n"
              "       `python3 tests/check/api_list.py --update`")
    elif added:
        print("  Why: tests/check/api.txt lists all public declarations\n"
              "  Fix: run `python3 tests/check/api_list.py --update` and commit the result")
    sys.exit(bool(gone or added))


if __name__ == "__main__":
    main()
