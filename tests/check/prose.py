#!/usr/bin/env python3
"""Checks comments, documents and messages: width, words, length of sentences.

    prose.py [--count] [PATH...]

Prints one line per place, and returns 1 if there is one. With --count it prints the number of
places per rule and directory instead. Without PATHs it reads all files of the repository.
"""
import collections
import os
import re
import subprocess
import sys

WIDTH = 100
SENTENCE = 25
CODE = (".c", ".h", ".inl", ".cu", ".cpp")
SCRIPT = (".py", ".sh")
# Generated, or data of tests.
LEFT_OUT = re.compile(
    r"^(devtensor\.h|devtensor_kernels\.cu\.inc|src/0_api/dvt_call_sites.*|tests/golden/|"
    r"tests/fuzz/corpus/|bench/results/|examples/.*embedded|LICENSE)")
# Words of a dialect, with the field's term. A word in an identifier counts as well.
WORDS = {
    r"tiers?": "ISA target",
    r"rooms?": "directory, module; space, memory",
    r"pictures?": "image",
    r"cards?": "GPU",
    r"beside": "next to, versus",
    # Python's .strip() and the command strip are allowed.
    r"(?<![.\"])strips?(?! \")|(?<=\.)strips?(?!\()": "padded input tile",
    r"truths?": "bool",
    r"halves": "float16/bfloat16; halves of what",
    r"twentieth|tenths?|thirds? of the time": "a percentage or a factor",
    r"travels?|travelled": "is embedded, is copied",
    r"around the caches?": "non-temporal",
    r"near the|what is near|while it is near": "fits in cache",
    r"(?:initial|optim|normal|summar|recogn|vector|serial|synchron|random|parallel|minim|maxim|"
    r"organ|real|special|general|material|quant|final|categor|visual|local|util|author|emphas|"
    r"symbol|regular|standard)"
    r"is(?:e|es|ed|ing|er|ers|ation|ations)|analys(?:e|es|ed|ing)": "American spelling, -ize",
    r"colours?|neighbours?|neighbouring|behaviours?|favours?|honours?|honoured":
        "American spelling, -or",
    r"centres?|centred|metres?|catalogue|grey|cancelled|labelled|modelled|travelling":
        "American spelling",
}
WORD = {
    re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", re.I): term
    for pattern, term in WORDS.items()
}


def comments_and_strings(text):
    """Yields (line, is_comment, text) for every comment and string literal of C."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
    for match in pattern.finditer(text):
        piece = match.group()
        yield text.count("\n", 0, match.start()) + 1, piece[0] == "/", piece


def prose_of(path, text):
    """Yields (line, text) of prose: comments of code, Markdown without tables and fences."""
    if path.endswith(CODE):
        for line, comment, piece in comments_and_strings(text):
            if comment:
                yield line, re.sub(r"^\s*(/\*|\*/|\*|//)|\*/$", " ", piece, flags=re.M)
    elif path.endswith(".md"):
        fence, first, block = False, 0, []
        for number, line in enumerate(text.split("\n") + [""], 1):
            if line.startswith("```"):
                fence = not fence
            plain = not fence and not line.startswith(
                ("|", "#", "<!--", "    ", "```", "!["))
            if plain and line.strip() and not re.match(r"\s*([-*] |\d+\. )", line):
                if not block:
                    first = number
                block.append(line)
                continue
            if block:
                yield first, " ".join(block)
            block = [line] if plain and line.strip() else []
            first = number
    elif path.endswith(SCRIPT):
        first, block = 0, []
        for number, line in enumerate(text.split("\n") + [""], 1):
            match = re.match(r"\s*# ?(.*)", line)
            if match and not line.startswith("#!"):
                if not block:
                    first = number
                block.append(match[1])
            elif block:
                yield first, " ".join(block)
                block = []


def too_wide(path, text):
    fence = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fence = not fence
        if len(line) <= WIDTH:
            continue
        if path.endswith(".md") and not fence and (
                line.startswith(("|", "    ", "<!--", "![")) or " " not in line.strip()):
            continue
        yield number, f"{len(line)} columns"


def long_sentences(path, text):
    for line, prose in prose_of(path, text):
        if re.search(r"[|+]--|--[|+>]|\s{4,}\S+\s{4,}", prose):  # a diagram or a table
            continue
        for sentence in re.split(r"(?<=[.;:?!])\s+|\n\s*\n|\n\s*[-*] ", prose):
            plain = re.sub(r"`[^`]*`|\S+\(.*?\)|\S*[_/\\]\S*", " x ", sentence)
            words = re.findall(r"[A-Za-z][\w'-]*", plain)
            if len(words) > SENTENCE:
                yield line, f"a sentence of {len(words)} words: {' '.join(sentence.split())[:60]}"


def wrong_words(path, text):
    if path.endswith(CODE + SCRIPT + (".md",)) or os.path.basename(path) in ("Makefile", "run"):
        for number, line in enumerate(text.split("\n"), 1):
            for pattern, term in WORD.items():
                for match in pattern.finditer(line.replace("_", " ")):
                    yield number, f'"{match.group()}": {term}'


RULES = {"width": too_wide, "sentence": long_sentences, "word": wrong_words}


def files(arguments):
    listed = subprocess.run(["git", "ls-files", *arguments], stdout=subprocess.PIPE, text=True,
                            check=True).stdout.split("\n")
    return [
        path for path in listed
        if path.endswith(CODE + SCRIPT + (".md",)) or path in ("Makefile", ".ci/run")
    ]


def main():
    count = "--count" in sys.argv
    counts = collections.Counter()
    for path in files([a for a in sys.argv[1:] if a != "--count"]):
        if LEFT_OUT.match(path) or path == "tests/check/prose.py":
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for rule, check in RULES.items():
            for line, what in check(path, text):
                folder = "/".join(path.split("/")[:2]) if "/" in path else path
                counts[rule, folder] += 1
                if not count:
                    print(f"{path}:{line}: {what}")
    if count:
        for (rule, folder), n in sorted(counts.items()):
            print(f"{rule:10} {folder:30} {n}")
    sys.exit(bool(counts))


main()
