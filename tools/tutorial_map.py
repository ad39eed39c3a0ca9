#!/usr/bin/env python3
"""Writes docs/TUTORIAL_MAP.md from the block("n", "title") lines of examples/tutorials/*.c; --check only compares."""
import os
import re
import sys

FOLDER, OUT = "examples/tutorials", "docs/TUTORIAL_MAP.md"
SOURCES = {
    "1_gluon_use_gpu.c": '"GPUs", MXNet Gluon',
    "2_gluon_use_gpu_zh.c": '"使用GPU来计算", MXNet Gluon, with its printed outputs',
    "3_d2l_gpus.c": '"GPUs", Dive into Deep Learning: MXNet, PyTorch and TensorFlow',
    "4_np_use_gpus.c": '"Step 6: Use GPUs to increase efficiency", MXNet np',
    "5_gpus_and_tpus.c": '"GPUs and TPUs", the JAX edition, with its printed outputs',
}
BLOCK = re.compile(r'^\s*block\(\s*"([^"]+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\);', re.M)

PART = re.compile(r'"((?:[^"\\]|\\.)*)"')


def table(name):
    text = open(os.path.join(FOLDER, name), encoding="utf-8").read()
    found = [(text.count("\n", 0, text.index("block(", m.start())) + 1, m[1], "".join(PART.findall(m[2]))) for m in BLOCK.finditer(text)]
    if len(found) != len(re.findall(r"^\s*block\(", text, re.M)):
        sys.exit(f"{name}: a block() is not in the form block(\"number\", \"title\")")
    ends = [line - 1 for line, _, _ in found[1:]] + [text.count("\n")]
    rows = [f"| {number} | `{title.replace('|', chr(92) + '|')}` | [{line}-{end}](../{FOLDER}/{name}#L{line}-L{end}) |"
            for (line, number, title), end in zip(found, ends)]
    return rows


def main(check):
    lines = ["# The tutorials, block by block", "",
             "Each program under `examples/tutorials` follows one published document on using GPUs. Run one with",
             "`make examples`, or alone: `cc -I. examples/tutorials/1_gluon_use_gpu.c -lm -ldl -lpthread`, with",
             "`DEVTENSOR_VIRTUAL_GPUS=2` for the two GPUs that the documents ask for. A test runs each with 0 and with 2 GPUs",
             "and compares what it prints. Block numbers are the documents' own where they have them.",
             "This page is written by `tools/tutorial_map.py`.", ""]
    for name, title in SOURCES.items():
        lines += [f"## {title}", "", f"[{name}](../{FOLDER}/{name})", "", "| block | in the document | lines |",
                  "|---|---|---|"] + table(name) + [""]
    text = "\n".join(lines)
    if check:
        if not os.path.exists(OUT) or open(OUT, encoding="utf-8").read() != text:
            sys.exit(f"stale: {OUT}\n  Why: examples/tutorials changed but the map did not\n"
                     f"  Fix: python3 tools/tutorial_map.py, and commit the result")
    else:
        open(OUT, "w", encoding="utf-8", newline="\n").write(text)


main("--check" in sys.argv)
