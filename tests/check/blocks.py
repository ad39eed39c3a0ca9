#!/usr/bin/env python3
"""Compiles and runs every C and C++ block of the documents, and the quick start of the header.

A block with `int main` is a program. Any other is a fragment: it becomes the body of a main that
fails when an error is set at its end. Both run without and with two virtual GPUs. A comment on the
line above the fence changes that:

    <!-- check: with STATEMENTS -->         declarations from the text around the fragment
    <!-- check: insert FILE after TEXT -->  a change to the sources: see worked_examples.sh
    <!-- check: file FOLDER/NAME -->        a file of any language, for the commands below
    <!-- check: run FOLDER [needs TOOL] --> commands of a shell in that folder, which has
                                            devtensor.h; skipped without the tool
    <!-- check: skip REASON -->             counted as skipped, with its reason

    blocks.py [DOCUMENT...]

Environment: CC, CXX, BUILD, LIBRARY, LIBS, as the Makefile sets them.
"""
import os
import re
import shutil
import subprocess
import sys

FENCE = re.compile(r"(?:<!-- check: (.*?) -->\n)?^```(\w*)\n(.*?)^```$", re.S | re.M)
PIECE = """#include "devtensor.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int main(void) {{
{setup}
#line {line} "{file}"
{code}
    if (dvt_error_code() != DVT_OK)
        fprintf(stderr, "%s\\n", dvt_error());
    return dvt_error_code() != DVT_OK;
}}
"""
folder = os.path.abspath(os.path.join(os.environ["BUILD"], "blocks"))
counts = {"passed": 0, "failed": 0, "skipped": 0}


def blocks(file):
    with open(file, encoding="utf-8") as opened:
        text = opened.read()
    for match in FENCE.finditer(text):
        note = match[1] or ""
        if match[2] in ("c", "cpp") or note.startswith(("file ", "run ")):
            yield text[:match.start(3)].count("\n") + 1, note, match[2], match[3]


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **more)
    return done.returncode, done.stdout


def try_block(name, program, language):
    """Returns the error of a block, or an empty text."""
    source, binary = f"{folder}/{name}.{language}", f"{folder}/{name}"
    with open(source, "w", encoding="utf-8") as file:
        file.write(program)
    # Links the library, so that the implementation is not compiled for each block.
    flags = ("-Wall -Wextra -Werror -Wno-unused -I. -D_GNU_SOURCE -DDEVTENSOR_IMPLEMENTED "
             "-include stdio.h")
    compiler, standard = ("CC", "gnu99") if language == "c" else ("CXX", "gnu++17")
    command = os.environ[compiler].split() + ["-std=" + standard] + flags.split()
    command += [source, "-o", binary]
    code, said = run(command + os.environ["LIBRARY"].split() + os.environ["LIBS"].split())
    if code:
        return "does not compile:\n" + said
    for gpus in ("0", "2"):
        environment = dict(os.environ, DEVTENSOR_VIRTUAL_GPUS=gpus)
        code, said = run([binary], cwd=folder, timeout=120, env=environment)
        if code:
            return f"ends with {code} on {gpus} virtual GPUs:\n{said[-1500:]}"
    return ""


def written(name, code):
    path = f"{folder}/{name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(code)


def commands(where, note, code):
    """Runs the commands of a shell in the folder of the files before them."""
    name, _, tool = note.partition(" needs ")
    if tool and not shutil.which(tool):
        counts["skipped"] += 1
        print(f"SKIP {where}: {tool} is not installed")
        return
    work = f"{folder}/{name}"
    shutil.copy("devtensor.h", work)
    environment = dict(os.environ, DEVTENSOR_SOURCES=os.getcwd())
    status, said = run(["sh", "-e", "-c", code], cwd=work, timeout=600, env=environment)
    counts["failed" if status else "passed"] += 1
    if status:
        print(f"FAIL {where} ends with {status}:\n{said[-1500:]}")


def check(file, line, note, language, code):
    where = f"{file}:{line}"
    if note.startswith("insert "):
        return
    if note.startswith("file "):
        written(note[5:], code)
        return
    if note.startswith("run "):
        commands(where, note[4:], code)
        return
    if note.startswith("skip "):
        counts["skipped"] += 1
        print(f"SKIP {where}: {note[5:]}")
        return
    if language == "cpp" and not shutil.which(os.environ.get("CXX", "")):
        counts["skipped"] += 1
        print(f"SKIP {where}: there is no C++ compiler")
        return
    if not re.search(r"\bint main\b", code):
        code = PIECE.format(setup=note[5:] if note.startswith("with ") else "", line=line + 1,
                            file=file, code=code)
    wrong = try_block(re.sub(r"\W", "_", where), code, language)
    counts["failed" if wrong else "passed"] += 1
    if wrong:
        print(f"FAIL {where} {wrong}")


def main():
    os.makedirs(folder, exist_ok=True)
    files = [name for name in ("README.md", "CONTRIBUTING.md") if os.path.exists(name)]
    files += sorted("docs/" + name for name in os.listdir("docs") if name.endswith(".md"))
    for file in sys.argv[1:] or files:
        for line, note, language, code in blocks(file):
            check(file, line, note, language, code)
    with open("src/0_api/dvt_intro.h", encoding="utf-8") as file:
        quick_start = re.search(r"Quick start.*?\n\n((?:       .*\n)+)", file.read())
    check("src/0_api/dvt_intro.h", 1, "", "c",
          quick_start[1] if quick_start else "#error there is no quick start")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.exit(counts["failed"] != 0)


main()
